"""Tables of 0, 1 and 2 units, and WHERE that as many match: nothing fails, or changes its words or shape.

Questions are S62 and models M16; in parts, as on Spark, S63 and M17. With whole numbers as ids a fit of no rows once
failed after its charge and one of a single person did not, and on Spark each part failed by itself. Whether a table, or
what a WHERE leaves of it, has any row at all would so be known exactly, at any epsilon. So every verb is asked of three
neighbouring tables at a tiny epsilon, and all that is seen of it but digits is compared.
"""

import numpy as np

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.empty_tables import (
    LINKED,
    MODELS,
    QUESTIONS,
    RELATIONS,
    UNITS,
    VERBS,
    WANTED,
    Few,
    coded_counts,
    in_connection,
    in_turn,
    told_apart,
)
from tacit_gauntlet.stage.engine import rows_too_many
from tacit_gauntlet.stage.parts import as_read, asked_in_parts, exact_whole, quickest_path, stand_in
from tacit_gauntlet.stage.table import SALT, plan_of, protected_here

QUICK = (
    *(("count", Few("int", 0)), ("listed groups", Few("int", 0, filtered=True)), ("learn", Few("int", 0))),
    *(("anti join", Few("int", 0, filtered=True)), ("found groups", Few("text", 0)), ("mean", Few("row", 0))),
    ("median", Few("text", 0, filtered=True)),
)
# A choice among models is drawn slowly, whoever is there.
QUICK_MODELS = [name for name in MODELS if "choice" not in name]
# Settings of a connection that change the types in which DuckDB hands over rows, and verbs about a truth value.
SETTINGS = (
    "arrow_lossless_conversion = true",
    "arrow_large_buffer_size = true",
    "arrow_output_version = '1.4'",
)
QUICK_OF_SETTINGS = ("two classes", "a score of classes")
RAISING = (("spread", Few("int", 0)), ("median", Few("int", 0)), ("a line", Few("int", 0)))
PATIENT = ("per unit, found",)
PARTED = (
    f"SELECT g, COUNT(*) AS n, SUM(x) AS s FROM t WHERE x = {WANTED} GROUP BY g",
    f"SELECT COUNT(DISTINCT w) AS d, MEDIAN(y) AS m FROM t WHERE x = {WANTED}",
)


@case("S62", title="with 0, 1 or 2 units a question ends alike, in the same words and shape", feature="session")
def few_units(size: Size) -> Evidence:
    verbs = {**QUESTIONS, **RELATIONS, **VERBS}
    some = list(QUICK if size == "quick" else in_turn(["int", "text", "row"], verbs))
    broken = [what for name, few in some for what in told_apart(name, few)]
    with rows_too_many():
        for name in PATIENT if size == "quick" else {**QUESTIONS, **RELATIONS}:
            broken += told_apart(name, Few("int", 0, filtered=True))
    return Evidence(passed=not broken, details={"asked": len(some), "told apart": broken[:5]})


@case("S66", title="a process whose arithmetic raises answers about 0, 1 or 2 units alike", feature="session")
def arithmetic_that_raises(size: Size) -> Evidence:
    """With np.seterr(all="raise") a quantile of some rows underflows on the way, and of others, or none, does not."""
    verbs = {**QUESTIONS, **VERBS, **MODELS}
    some = list(RAISING if size == "quick" else in_turn(["int"], verbs))
    with np.errstate(all="raise"):
        broken = [what for name, few in some for what in told_apart(name, few)]
    return Evidence(passed=not broken, details={"asked": len(some), "told apart": broken[:5]})


@case("S63", title="parts of which no row counts add nothing, and do not fail", feature="engine")
def parts_of_no_rows(size: Size) -> Evidence:
    asked, broken = 0, list[str]()
    for kind in ("int",) if size == "quick" else UNITS:
        for people in (0, 1) if size == "quick" else (0, 1, 2):
            for sql in PARTED:
                asked += 1
                broken += _other_integers(Few(kind, people, filtered=True), sql)
    return Evidence(passed=not broken, details={"asked": asked, "other integers": broken[:5]})


def _other_integers(few: Few, sql: str) -> list[str]:
    """Return what parts answer otherwise than the whole table does, failures included."""
    rows, unit = few.rows(), few.unit
    declared = {"unit": unit, "columns": {"x": {"between": (0, 10)}, "y": {"between": (-5, 5)}}}
    there, here = (protected_here(each, **declared).sql(sql) for each in (stand_in(rows), rows))
    plan, found = plan_of(here), []
    with quickest_path(here, plan) as path:
        whole = as_read(exact_whole(here, plan, SALT, path))
        try:
            parts = asked_in_parts(there, plan, SALT, parts=8, places=3, path=path, batch_rows=2)
            if as_read(parts) != whole:
                found.append(f"{few}, {sql}: other integers")
        except Exception as problem:
            found.append(f"{few}, {sql}: {type(problem).__name__}")
    return found


@case("M16", title="with 0, 1 or 2 units a model ends alike, in the same words and shape", feature="learning")
def models_of_few(size: Size) -> Evidence:
    some = [(name, Few("int", 0, filtered=place % 2 == 0)) for place, name in enumerate(QUICK_MODELS)]
    some += [("a line", Few("far apart", 0)), ("a number", Few("text", 0)), ("a line", Few("row", 0))]
    some.append(("made-up people", Few("int", 0, filtered=True)))
    if size == "full":
        some += list(in_turn(list(UNITS), MODELS | LINKED))
    broken = [what for name, few in some for what in told_apart(name, few)]
    return Evidence(passed=not broken, details={"asked": len(some), "told apart": broken[:5]})


@case("M17", title="rows are coded alike in parts of which no row counts", feature="learning")
def coded_parts_of_no_rows(size: Size) -> Evidence:
    kinds = ("int", "text", "row") if size == "quick" else tuple(UNITS)
    some = [Few(kind, people, filtered=True) for kind in kinds for people in (0, 1, 2)]
    broken = [f"{few}: {what}" for few in some for what in _unlike(few)]
    return Evidence(passed=not broken, details={"tables": len(some), "unlike": broken[:5]})


@case("M18", title="a setting of a user's connection does not make a model of few units fail", feature="learning")
def settings_and_few_units(size: Size) -> Evidence:
    """A setting that changes types makes whatever reads rows fail, but not if the table has no row to read."""
    broken = list[str]()
    for setting in SETTINGS[:1] if size == "quick" else SETTINGS:
        for name in QUICK_OF_SETTINGS if size == "quick" else QUICK_MODELS:
            broken += told_apart(name, Few("int", 0, filtered=True), in_connection(setting))
    return Evidence(passed=not broken, details={"told apart": broken[:5]})


def _unlike(few: Few) -> list[str]:
    """Return how parts code the rows of a table otherwise than the whole, failures included."""
    try:
        whole, parts = coded_counts(few)
    except Exception as problem:
        return [type(problem).__name__]
    return [] if whole == parts else ["other integers"]
