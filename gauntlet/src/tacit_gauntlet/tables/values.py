"""Attacks by values and bounds: overflow, the ends of the floats, NaN and NULL, failed casts, noise of no width."""

import math
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from tacit import count, mean
from tacit import sum as sum_of
from tacit.errors import TacitError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.odd_cells import odd_cells_that_tell
from tacit_gauntlet.stage.table import (
    SCALE_MIN,
    Table,
    bounded_plan,
    bounded_table,
    disagreements,
    plan_of,
    protected,
    uncut,
)

NAN, INF = float("nan"), float("inf")
INT_MOST = 2**63 - 1

# (what, column type, rows, range): each sum is exact, or refused before anything is read
WIDE_SHAPES: list[tuple[str, pa.DataType, Sequence[Any], tuple[Any, Any]]] = [
    ("int64 at both ends", pa.int64(), [INT_MOST, -INT_MOST - 1, 0, None], (-(2**63), INT_MOST)),
    ("int64 below 0", pa.int64(), [INT_MOST, -INT_MOST - 1, -5], (-(2**63), 0)),
    ("int64 in a wider range", pa.int64(), [INT_MOST, 3], (0, 10**30)),
    ("int64 near its end", pa.int64(), [INT_MOST, 2**62], (2**63 - 10, INT_MOST)),
    ("int8", pa.int8(), [127, -128], (-128, 127)),
    ("uint64 beyond int64", pa.uint64(), [2**64 - 1, 5], (0, 10)),
    ("decimal of 38 digits", pa.decimal128(38, 0), [Decimal("9" * 38), Decimal("-" + "9" * 38), Decimal(3)], (0, 10)),
    ("decimal all fraction", pa.decimal128(38, 37), [Decimal("0." + "9" * 37), Decimal(0)], (0, 1)),
    ("decimal with a wide range", pa.decimal128(38, 2), [Decimal("9" * 36), Decimal("0.01")], (0, 10**20)),
    ("money", pa.decimal128(18, 2), [Decimal("12.34"), Decimal("-0.01"), Decimal("99.99")], (0, 100)),
]
FLOAT_RANGES: list[tuple[Any, Any]] = [
    (-1.7e308, 1.7e308),
    (0, "1e400"),
    (1e15, 1e15 + 1),
    (1e300, 1.1e300),
    (0, 5e-324),
    ("1e-400", "2e-400"),
    (0, 1e-300),
    (3, 3),
]
FLOATS = [1.5, -1.5, NAN, INF, -INF, -0.0, 5e-324, 1.7e308, -1.7e308, 2.0**53, 0.1, None]


def _column(values: Sequence[Any], kind: pa.DataType) -> Table:
    rows = pa.table({"id": range(len(values)), "x": pa.array(list(values), kind)})
    return protected(rows)


def _exact_or_refused(table: Table, values: Sequence[Any], between: tuple[Any, Any]) -> tuple[int, list[str]]:
    """Ask for a sum and a mean, under caps and by dropping: refused before any charge, or exact."""
    refused, wrong = 0, []
    for ask, planned in ((table.mean, plan_of), (table.sum, plan_of), (table.sum, bounded_plan)):
        try:
            question = ask("x", between=between)
            plan = planned(question)
        except TacitError:
            refused += 1
            continue
        wrong += disagreements(question, values, plan)
        if plan.releases[0].scale < SCALE_MIN:
            wrong.append("noise of no width")
    return refused, wrong


@case("S03", title="integers, dates and decimals overflow nothing", feature="engine")
def overflow(_: Size) -> Evidence:
    refused, wrong = 0, []
    for name, kind, values, between in WIDE_SHAPES:
        known = [None if kind == pa.uint64() and value > INT_MOST else value for value in values]
        declined, differ = _exact_or_refused(_column(values, kind), known, between)
        refused += declined
        wrong += [f"{name}: {what}" for what in differ]
    days = pa.array([2**31 - 1, -(2**31), 0], pa.date32())
    table = protected(pa.table({"id": range(3), "day": days}))
    days_listed = table.where("day >= DATE '1960-01-01'").group_by("day", keys=[date(1970, 1, 1), None])
    found = bounded_table(days_listed.count())
    if list(found.sums["rows"]) != [1, 0]:
        wrong.append(f"dates: {list(found.sums['rows'])}")
    shapes = len(WIDE_SHAPES) + 1
    return Evidence(passed=not wrong, details={"shapes": shapes, "refused": refused, "wrong": wrong})


@case("S04", title="ranges at the ends of the floats are refused or exact, with noise", feature="plan")
def float_ranges(_: Size) -> Evidence:
    values = [value for value in FLOATS if value is None or abs(value) < 1e300 or math.isinf(value)]
    refused, wrong = 0, []
    for between in FLOAT_RANGES:
        declined, differ = _exact_or_refused(_column(values, pa.float64()), values, between)
        refused += declined
        wrong += [f"{between}: {what}" for what in differ]
    return Evidence(passed=not wrong, details={"ranges": len(FLOAT_RANGES), "refused": refused, "wrong": wrong})


@case("S05", title="NaN, infinities, -0, bad text, far times and NULL give the same finite shape", feature="engine")
def odd_values(size: Size) -> Evidence:
    kinds: dict[str, pa.DataType] = {"float64": pa.float64(), "float32": pa.float32()}
    shapes, wrong = set(), []
    for name, kind in kinds.items():
        tried: list[list[float | None]]
        tried = [[value] * 3 for value in FLOATS] if size == "full" else [FLOATS, [NAN] * 3, [None], []]
        for values in tried:
            narrow = [None if v is None else v for v in pa.array(values, pa.float64()).cast(kind).to_pylist()]
            table = _column(narrow, kind)
            question = table.agg(n=count(), c=count("x"), m=mean("x", between=(-2, 2)), s=sum_of("x", between=(-1, 1)))
            answer = question.answer(epsilon=1)
            shapes.add((answer.columns, tuple(answer.types.items()), len(answer)))
            cells = [cell for row in answer.to_dicts() for name, cell in row.items() if name != "m"]
            if not all(math.isfinite(cell) for cell in cells):
                wrong.append(f"{name} {values[:1]}: not finite")
            wrong += [f"{name} {values[:1]}: {what}" for what in disagreements(question, narrow)]
    wrong += [f"{where}: an odd cell is not NULL" for where in odd_cells_that_tell(size)]
    return Evidence(passed=not wrong and len(shapes) == 1, details={"shapes seen": len(shapes), "wrong": wrong})


@case("S10", title="no count is free: failed casts, %0 and unmatched cuts are charged and noisy", feature="query")
def free_counts(_: Size) -> Evidence:
    words = pa.table({"id": range(6), "t": ["1", "x", "", "2", "9" * 30, None], "x": pa.array([1, 0, 2, 0, 5, None])})
    table = protected(words, rows_per_unit=1, groups_per_unit=1)
    questions = [
        "SELECT COUNT(CAST(t AS INT)) AS n FROM t",
        "SELECT COUNT(x % 0) AS n FROM t",
        "SELECT COUNT(1 / x) AS n FROM t",
        "SELECT COUNT(*) AS n FROM t WHERE CAST(t AS INT) > 10",
        "SELECT COUNT(CASE WHEN x > 100 THEN 1 END) AS n FROM t",
        "SELECT COUNT(*) AS n FROM t WHERE 1 = 2",
    ]
    free = []
    for text in questions:
        before = table.session.ledger.spent(table.session.registered)
        # six noises of scale 100 are all equal with probability below 10^-12
        with uncut():
            seen = {table.sql(text).answer(epsilon=Fraction(1, 100 + turn)).rows[0]["n"] for turn in range(6)}
        if table.session.ledger.spent(table.session.registered) == before or len(seen) == 1:
            free.append(text)
    return Evidence(passed=not free, details={"questions": len(questions), "free": free})


@case("S14", title="noise is never of no width", feature="plan")
def noise_width(_: Size) -> Evidence:
    silent, tries = [], 0
    rows = pa.table({"id": range(3), "x": [1, 2, 3]})
    for epsilon in ("1e-9", 1, "1e4", "1e15", "1e300"):
        for bounds in ((1, 1), (1, 10**9), (10**9, 1), (10**18, 10**18)):
            table = protected(rows, rows_per_unit=bounds[0], groups_per_unit=bounds[1])
            question = table.group_by("x").agg(m=mean("x", between=(0, 10)), n=count())
            tries += 1
            try:
                plan = plan_of(question, epsilon=epsilon)
            except TacitError:
                continue
            if any(release.scale < SCALE_MIN or release.sensitivity.l1 < 1 for release in plan.releases):
                silent.append(f"epsilon {epsilon}, bounds {bounds}")
    for word in ("rows_per_unit", "groups_per_unit"):
        for bound in (0, -1):
            tries += 1
            try:
                protected(rows, **{word: bound})
                silent.append(f"{word}={bound}")
            except TacitError:
                pass
    return Evidence(passed=not silent, details={"combinations": tries, "silent": silent})
