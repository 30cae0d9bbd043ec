"""Attacks on the question language: functions, raw rows, files, quoting, odd grammar, bombs, and errors as oracles."""

import time
from collections.abc import Iterable
from itertools import product
from typing import Any

import duckdb
import pyarrow as pa

from tacit.errors import QueryRefused
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.cells import KINDS, arrow, every_form, plain, rows, same_cell
from tacit_gauntlet.stage.fuzz import statements
from tacit_gauntlet.stage.language import (
    TEXT,
    Expression,
    asked,
    columns_in,
    comes_back,
    filter_of,
    functions_in,
    functions_known,
    functions_translated,
    is_itself,
    is_refused,
    kinds_of_visits,
    read,
    trial,
    trial_under,
    written,
)
from tacit_gauntlet.stage.payloads import (
    BOMBS,
    ERROR_FUNCTIONS,
    ERROR_ORACLES,
    INTROSPECTION,
    OUTSIDE,
    RAW_ROWS,
    ROW_TRICKS,
    hostile_texts,
)
from tacit_gauntlet.stage.reference import meaning
from tacit_gauntlet.stage.reference_maths import NEAR, is_near

_FEATURE = "question language"
# By this setting DuckDB raises on cells that give infinity or NaN otherwise.
_RAISES_MORE = "ieee_floating_point_ops = false"
_MATHS = {"/", "%", "//", "sqrt", "exp", "ln", "log10", "log2", "power"}
# Of this thread's own time on a processor: what else the machine does is not the reader's. A bomb would take minutes.
_SECONDS_EACH_MAX = 5.0

# engine functions whose names our reader knows, each as the catalogue's function or an aggregate
REVIEWED = {
    *("avg", "count", "lcase", "lower", "mod", "nullif", "sum", "trim", "ucase", "upper"),
    *("abs", "ceil", "ceiling", "floor", "greatest", "least", "round"),
    *("char_length", "character_length", "concat", "len", "length", "replace", "substr", "substring"),
    *("day", "hour", "minute", "month", "quarter", "second", "week", "year"),
    *("date_diff", "date_trunc", "datediff"),
    *("max", "median", "min", "stddev", "stddev_pop", "stddev_samp", "var_pop", "var_samp", "variance"),
    *("corr", "covar_pop", "covar_samp", "quantile", "mode"),
    *("sqrt", "exp", "ln", "log", "log10", "log2", "pow", "power", "sign", "if", "strftime", "date_part", "datepart"),
    *("left", "dayofweek", "dayofyear", "dayofmonth", "weekofyear", "isodow", "dayname", "monthname", "date"),
    *(
        "starts_with",
        "ends_with",
        "contains",
        "prefix",
        "suffix",
        "ifnull",
        "mean",
        "approx_count_distinct",
        *("regr_count", "regr_slope", "regr_intercept", "regr_r2", "regr_avgx", "regr_avgy", "regr_sxx", "regr_syy"),
        "regr_sxy",
    ),
}


@case("S09", title="every function of the catalogue means on an engine what its words say", feature=_FEATURE)
def engine_beliefs(size: Size) -> Evidence:
    """Evaluate every form of every function on odd cells, on DuckDB and by the reference, and compare cell by cell.

    A user's own connection may have a setting by which DuckDB raises where it would not: the cells must be the same.
    """
    cells_each = 3_000 if size == "quick" else 20_000
    cells, wrong = 0, []
    forms = every_form()
    for name, expressions in forms.items():
        chosen = expressions[:: 1 + len(expressions) // (20 if size == "quick" else 60)]
        made_up = rows(max(cells_each // len(chosen), 150))
        columns = {f"x{place}": each for place, each in enumerate(chosen)}
        tried = [trial(columns, arrow(made_up), KINDS)]
        if name in _MATHS:
            tried.append(trial_under(_RAISES_MORE, columns, arrow(made_up), KINDS))
        plain_rows = [plain(row) for row in made_up]
        for found, (place, each) in product(tried, enumerate(chosen)):
            for row, cell in zip(plain_rows, found[f"x{place}"], strict=True):
                cells += 1
                same = is_near if name in NEAR else same_cell
                if not same(cell, meaning(each, row, KINDS)):
                    wrong.append(f"{name}: {written(each)}")
    missing = functions_known() - set(forms)
    return Evidence(not wrong and not missing, {"cells": cells, "wrong": wrong[:5], "functions not tried": missing})


@case("Q01", title="no row makes an expression fail, and none changes another row's value", feature=_FEATURE)
def error_oracles(size: Size) -> Evidence:
    """Run filters that raise in some engine on a table with the row that triggers them, and without it."""
    del size
    kinds = kinds_of_visits()
    target = {"ward": "A", "sex": "f", "age": 42, "days": 0.0, "note": "CANARY-7731", "day": None, "cost": None}
    others = [
        {"ward": "B", "sex": "m", "age": age, "days": days, "note": note, "day": None, "cost": None}
        for age, days, note in [(41, 1.0, "1"), (43, 1e308, "2011-01-31"), (None, None, None), (2**63 - 1, -1.0, "")]
    ]
    failed, moved = [], []
    expressions = {text: filter_of(text) for text in ERROR_ORACLES}
    for text, each in _one_by_one_if_it_fails(expressions, _visits([*others, target]), kinds):
        try:
            with_target = trial(each, _visits([*others, target]), kinds)
            without = trial(each, _visits(others), kinds)
        except Exception:  # whatever it says would reach whoever reads logs
            failed.append(text)
            continue
        moved += [text for text in each if with_target[text][: len(others)] != without[text]]
    left_in = [text for text in ERROR_FUNCTIONS if not is_refused(f"SELECT COUNT(*) FROM visits WHERE {text}")]
    details = {"expressions": len(ERROR_ORACLES), "failed": failed, "moved": moved, "not refused": left_in}
    return Evidence(not failed and not moved and not left_in, details)


@case("Q06", title="every function an engine has is in the catalogue or refused", feature=_FEATURE)
def catalogue_closure(size: Size) -> Evidence:
    """Ask for every function DuckDB lists; only reviewed names may pass, and only as catalogue functions."""
    with duckdb.connect() as engine:
        known = engine.execute("SELECT DISTINCT function_name FROM duckdb_functions() ORDER BY 1").fetchall()
    names = [name for (name,) in known if name.replace("_", "a").isalnum()]
    arguments = (
        ("age", "ward", "day", "ward, ward")
        if size == "quick"
        else (
            *("", "age", "ward", "days", "day", "age, age", "ward, ward", "days, 2", "ward, 1, 2", "*"),
            *("'month', day", "'day', day, day", "ward, 'a', 'b'", "day, INTERVAL 3 DAY"),
        )
    )
    passed, strange = set(), []
    for name in names:
        for given in arguments:
            for text in (
                f"SELECT COUNT(*) FROM visits WHERE {name}({given}) IS NULL",
                f"SELECT {name}({given}) AS k FROM visits",
            ):
                query = asked(text)
                if query is not None:
                    passed.add(name.lower())
                    strange += sorted(functions_in(query) - functions_known())
    untranslated = functions_known() ^ functions_translated()
    unreviewed = passed - REVIEWED
    details = {"functions": len(names), "unreviewed": unreviewed, "strange": strange, "untranslated": untranslated}
    return Evidence(len(names) > 500 and not (unreviewed or strange or untranslated), details)


@case("Q07", title="80 statements that would show a row are refused", feature=_FEATURE)
def raw_rows(size: Size) -> Evidence:
    """Send every payload, as it is and in other cases and spacing."""
    del size
    return _all_refused(
        variant for text in RAW_ROWS for variant in (text, text.replace(" ", "\n\t /* x */ "), f"{text};")
    )


@case("Q08", title="other relations, the row as a value and columns by pattern are refused", feature=_FEATURE)
def row_tricks(size: Size) -> Evidence:
    """Send every payload."""
    del size
    return _all_refused(ROW_TRICKS)


@case("Q09", title="files, network, extensions and programs cannot be named", feature=_FEATURE)
def outside_access(size: Size) -> Evidence:
    """Send every payload; the reader touches nothing, and nothing of it reaches an engine."""
    del size
    return _all_refused(OUTSIDE)


@case("Q10", title="hostile names and texts come back as they were, and nothing else with them", feature=_FEATURE)
def quoting(size: Size) -> Evidence:
    """Write hostile names and texts as SQL, read them again, and find them unchanged on an engine too."""
    hostile = hostile_texts(60 if size == "quick" else 500)
    kinds = dict.fromkeys(hostile, TEXT)
    broken = []
    broken += [text for text in hostile if not comes_back(text, hostile)]
    unlike = [name for name in _distinct_in_any_case(hostile) if name and "\x00" not in name]
    table = pa.table({name: [name, "other"] for name in unlike})
    asked = {f"x{place}": is_itself(name) for place, name in enumerate(unlike)}
    found = trial(asked, table, kinds)
    broken += [name for place, name in enumerate(unlike) if found[f"x{place}"] != [True, False]]
    return Evidence(not broken, {"texts": len(hostile), "broken": broken[:5]})


@case("Q11", title="made-up statements are questions or refusals, never anything else", feature=_FEATURE)
def grammar_fuzz(size: Size) -> Evidence:
    """Read statements from a grammar; what becomes a question uses catalogue functions and never the unit."""
    crashed, unreviewed, slow, asked = [], [], [], 0
    for text in statements(600 if size == "quick" else 10_000):
        start = time.thread_time()
        try:
            query = read(text)
        except QueryRefused:
            query = None
        except Exception as error:
            crashed.append(f"{type(error).__name__}: {text}")
            continue
        if time.thread_time() - start > _SECONDS_EACH_MAX:
            slow.append(text)
        if query is not None:
            asked += 1
            if not functions_in(query) <= functions_known() or "patient_id" in columns_in(query):
                unreviewed.append(text)
    details = {"questions": asked, "crashed": crashed[:3], "unreviewed": unreviewed[:3], "slow": slow[:3]}
    return Evidence(asked > 0 and not crashed and not unreviewed and not slow, details)


@case("Q12", title="plans, statistics, settings and other statements are refused", feature=_FEATURE)
def introspection(size: Size) -> Evidence:
    """Send every payload."""
    del size
    return _all_refused(INTROSPECTION)


@case("Q18", title="bombs are stopped by static limits, at once, whatever the rows", feature=_FEATURE)
def bombs(size: Size) -> Evidence:
    """Send every bomb as a filter, alone and guarded by a predicate; a healthy question stays quick."""
    del size
    passed, slow = [], []
    healthy = "SELECT ward, COUNT(*) AS n FROM visits WHERE age BETWEEN 18 AND 65 GROUP BY ward HAVING n > 10"
    for bomb in BOMBS:
        for text in (
            f"SELECT COUNT(*) FROM visits WHERE {bomb}",
            f"SELECT COUNT(*) FROM visits WHERE age = 42 AND {bomb}",
        ):
            start = time.thread_time()
            if not is_refused(text):
                passed.append(text[:80])
            if time.thread_time() - start > _SECONDS_EACH_MAX:
                slow.append(text[:80])
    start = time.thread_time()
    heard = asked(healthy) is not None and time.thread_time() - start < _SECONDS_EACH_MAX
    return Evidence(heard and not passed and not slow, {"bombs": len(BOMBS), "passed": passed, "slow": slow})


def _one_by_one_if_it_fails(
    expressions: dict[str, Expression], table: pa.Table, kinds: Any
) -> list[tuple[str, dict[str, Expression]]]:
    """All expressions at once, which is quick; or each by itself, to name the one that fails."""
    try:
        trial(expressions, table, kinds)
    except Exception:
        return [(text, {text: each}) for text, each in expressions.items()]
    return [("all", expressions)]


def _all_refused(texts: Iterable[str]) -> Evidence:
    sent = list(texts)
    passed = [text for text in sent if not is_refused(text)]
    return Evidence(not passed, {"payloads": len(sent), "not refused": passed[:5]})


def _visits(made_up: list[dict[str, Any]]) -> pa.Table:
    kinds = {"ward": pa.string(), "sex": pa.string(), "age": pa.int64(), "days": pa.float64(), "note": pa.string()}
    kinds |= {"day": pa.date32(), "cost": pa.decimal128(10, 2)}
    return pa.table({name: pa.array([row[name] for row in made_up], type=kind) for name, kind in kinds.items()})


def _distinct_in_any_case(names: list[str]) -> list[str]:
    return list({name.casefold(): name for name in names}.values())
