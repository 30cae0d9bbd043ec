"""Attacks by sizes that rows decide: how long texts are together, how much one unit has, how many keys there are.

A question that fails for one person more is an exact answer, whatever epsilon. So after the charge nothing of that kind
may end it: texts leave the engine short, and where memory would not do, the patient path gives the same integers.
"""

import warnings
from typing import Any

import numpy as np
import pyarrow as pa

from tacit import count, count_distinct, mean, median
from tacit.errors import EngineError, QueryRefused, TacitError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.engine import (
    TEXT_BYTES_MAX,
    hashes_of,
    little_memory,
    nowhere_to_write,
    rows_too_many,
    words_with_hashes,
)
from tacit_gauntlet.stage.table import Question, bounded_plan, exact_cells, protected, same_people, too_far

ANSWERED = "answered"
# What a join keeps of one unit's pairs.
PAIRS_MOST = 1 << 20
SLOT_BITS = 12
CRAFTED = 2000
# 2,000 words in 4,096 slots: 15 in one has a chance below 1e-12, over all slots and salts.
IN_ONE_SLOT_MOST = 14


def _answered(question: Question) -> bool:
    try:
        question.answer(epsilon="0.000001", accept_noise=True)
    except EngineError:
        return False
    return True


def _grown(matching: int) -> Question:
    """Ask for groups by a text that is long where a predicate holds, and short elsewhere."""
    people = 400
    rows = {
        "id": range(people),
        "name": [f"p{n:04d}" for n in range(people)],
        "sick": [n < matching for n in range(people)],
    }
    table = protected(pa.table({**rows, "note": ["a" * 400] * people}), rows_per_unit=1, groups_per_unit=1)
    long = f"CONCAT(name, REPLACE(CASE WHEN sick THEN note ELSE '' END, 'a', '{'b' * (TEXT_BYTES_MAX // 410)}'))"
    return table.derive(k=long).group_by("k").count()


@case("Q27", title="how long texts are together ends no question", feature="engine")
def long_texts(_: Size) -> Evidence:
    with little_memory():
        failed = [matching for matching in (0, 20, 400) if not _answered(_grown(matching))]
        made_shown = _made_shown()
    shown = _longest_shown() and made_shown
    return Evidence(passed=not failed and shown, details={"failed at": failed, "long keys are shown whole": shown})


def _longest_shown() -> bool:
    """Whether a long key that is shown is the row's own text, though it left as a digest."""
    texts = {"z" * 63, "y" * 64, "x" * 5000}
    rows = pa.table({"id": range(900), "g": sorted(texts) * 300})
    return {row["g"] for row in protected(rows).group_by("g").count().answer(epsilon=50).to_dicts()} == texts


def _made_shown() -> bool:
    """Whether long keys that a question makes are shown whole, though rows to look in are more than memory has."""
    people = 400
    table = protected(pa.table({"id": range(people), "g": ["a" * 400] * people}), rows_per_unit=1, groups_per_unit=1)
    question = table.derive(k=f"REPLACE(g, 'a', '{'b' * 80}')").group_by("k").count()
    try:
        return [row["k"] for row in question.answer(epsilon=50).to_dicts()] == ["b" * 32_000]
    except EngineError:
        return False


def _heavy(extra: str) -> Question:
    """Ask a crowd, and one more person who has as much as all others together: rows, keys, or different values."""
    crowd, many = [(n, n % 50, n % 9) for n in range(3000)], 30_000
    one = {
        "nobody": [],
        "many rows": [(-1, 3, n % 9) for n in range(many)],
        "many keys": [(-1, 1000 + n, 1) for n in range(many)],
        "many values": [(-1, 3, n) for n in range(many)],
    }[extra]
    ids, keys, values = zip(*crowd, *one, strict=True)
    aggregates: dict[str, Any] = {"n": count(), "m": mean("x", between=(0, 9)), "q": median("x", between=(0, 9))}
    if extra == "many values":
        aggregates = {"d": count_distinct("x", per_unit=2)}
    return protected(pa.table({"id": ids, "g": keys, "x": values})).group_by("g").agg(**aggregates)


@case("Q28", title="what one unit has, and how many keys there are, ends no question", feature="engine")
def heavy_units(_: Size) -> Evidence:
    failures = []
    with little_memory():
        for extra in ("many rows", "many keys", "many values"):
            question = _heavy(extra)
            if not _answered(question):
                failures.append(f"{extra}: no answer")
            elif extra != "many values":
                failures += [f"{extra}: {what}" for what in too_far(_heavy("nobody"), question)]
    return Evidence(passed=not failures, details={"failures": failures})


def _in_both(rows: int, **declared: Any) -> Question:
    """Ask about a join in which one unit has so many rows on either side, and a hundred others have one."""
    ids = np.concatenate([np.zeros(rows, np.int64), np.arange(1, 101)])
    visits, people = same_people(pa.table({"id": ids, "x": ids % 7}), pa.table({"id": ids, "age": ids % 9}), **declared)
    return visits.sql("SELECT COUNT(*) AS n FROM visits JOIN people USING (id)", tables=[people])


@case("Q52", title="what one unit has in two joined tables ends no question", feature="engine")
def heavy_pairs(size: Size) -> Evidence:
    """Count the pairs of a unit with many rows in both tables, and ask with a hundred thousand in each."""
    rows = 2500
    question = _in_both(rows, rows_per_unit=2 * PAIRS_MOST)  # no unit has so many
    (cells,) = exact_cells(question, plan=bounded_plan(question))
    pairs = sum(cells.values())
    failures = [] if rows + 100 <= pairs <= PAIRS_MOST + rows + 100 else [f"{pairs:,} pairs"]
    if not failures and not _answered(_in_both(10_000 if size == "quick" else 100_000)):
        failures.append("no answer")
    return Evidence(passed=not failures, details={"pairs": pairs, "failures": failures})


@case("Q29", title="nobody can choose values whose hashes are alike", feature="engine")
def chosen_hashes(_: Size) -> Evidence:
    known = "a salt that somebody knew"
    crafted = words_with_hashes(np.arange(CRAFTED, dtype=np.uint64), known)
    shift = np.uint64(64 - SLOT_BITS)
    found = {}
    for salt in ("1", "2", "3"):
        slots = (hashes_of(crafted, salt) >> shift).astype(np.int64)
        found[salt] = int(np.bincount(slots).max())
    alike = int(np.bincount((hashes_of(crafted, known) >> shift).astype(np.int64)).max())
    return Evidence(
        passed=alike == CRAFTED and max(found.values()) <= IN_ONE_SLOT_MOST,
        details={"in one slot where the secret is known": alike, "in one slot, by salt": found},
    )


@case(
    "Q30",
    title="that rows need a disk is not seen where there is none, nor where warnings are errors",
    feature="engine",
)
def need_of_a_disk(_: Size) -> Evidence:
    small, large = _heavy("nobody"), _heavy("many rows")
    with nowhere_to_write():
        said = [_said(small), _with_patience(large)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        strictly = [_said(small), _with_patience(large)]
    return Evidence(
        passed=said == [QueryRefused.__name__] * 2 and strictly == [ANSWERED] * 2,
        details={"without a folder to write to": said, "where warnings are errors": strictly},
    )


def _said(question: Question) -> str:
    try:
        question.answer(epsilon="0.000001", accept_noise=True)
    except TacitError as problem:
        return type(problem).__name__
    return ANSWERED


def _with_patience(question: Question) -> str:
    """Return what is said where rows are too many for a quick path."""
    with rows_too_many():
        return _said(question)
