"""Sums of products are exact, and one unit moves them as far as is claimed and no farther.

Each claim has mutants: the published bugs that it would have found.
"""

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tacit.asking import Table
from tacit.engine import CodedRows
from tacit.engine import residuals as engine_products
from tacit.engine.coding_rows import Block
from tacit.errors import InvalidParameter
from tacit.plan import NUMBER_ONE, UNIT, CodedColumn, CodedPlan, MomentBlock, Moments, SquaredErrors
from tacit.query import Column
from tests.learning.coded_people import measured, people

COLUMNS = {"age": {"between": (0, 100)}, "pay": {"between": (-1, 1)}, "hours": {"between": (0, 40)}}
FEATURES = Moments((0, 1), (0, 1), (0, 1, 2))
WITH_TARGET = Moments((0, 1), (0, 1), (0, 1, 2), target=2)
SIZES = (3, 3)
RANGES = ((0, 100), (-1, 1), (0, 40))


def rows_of(people_rows: list[tuple[Any, ...]]) -> pa.Table:
    """Return rows of (person, age, pay, hours, sex, ward)."""
    names = ("person", "age", "pay", "hours", "sex", "ward")
    kinds = (pa.int64(), pa.int64(), pa.float64(), pa.int64(), pa.string(), pa.string())
    return pa.table(
        {name: pa.array([row[at] for row in people_rows], kinds[at]) for at, name in enumerate(names)},
    )


def plan_of(table: Table, unit: str | None = "person") -> CodedPlan:
    columns = (
        CodedColumn("sex", Column("sex"), listed=("f", "m")),
        CodedColumn("ward", Column("ward"), listed=("A", "B")),
    )
    return CodedPlan(unit, None, columns, tuple(measured(table, name) for name in ("age", "pay", "hours")))


def read(rows: list[tuple[Any, ...]], what: Callable[[CodedRows], Any]) -> list[int]:
    """Return what an engine adds up over a table's rows."""
    table = people(rows_of(rows), columns=COLUMNS)
    with table.session.engine.coded(plan_of(table)) as coded:
        return list(what(coded).values.tolist())


@cache
def plan() -> CodedPlan:
    return plan_of(people(rows_of([]), columns=COLUMNS))


def asked(rows: list[tuple[Any, ...]], what: Callable[[CodedRows], Any]) -> list[int]:
    """Return the same of rows that were coded here: many tables in little time."""
    cells = tuple(np.array([inside_of(row)[at] for row in rows], dtype=np.uint8) for at in range(2))
    values = tuple(
        np.array([steps_of(row[1 + at], *RANGES[at]) for row in rows], dtype=np.int64) for at in range(len(RANGES))
    )
    alike = np.array([sum(each[0] == row[0] for each in rows) for row in rows], dtype=np.int64)
    return list(what(CodedRows.of(plan(), [Block(cells, values, alike, len(rows))])).values.tolist())


def sums(rows: list[tuple[Any, ...]], moments: Moments) -> list[int]:
    return asked(rows, lambda coded: coded.moments(moments))


def inside_of(row: tuple[Any, ...]) -> tuple[int, int]:
    return {"f": 0, "m": 1}.get(row[4], 2), {"A": 0, "B": 1}.get(row[5], 2)


def steps_of(value: float | None, low: int, high: int) -> int:
    """Return whole steps above the low end, -1 where there is no number."""
    if value is None or value != value:
        return -1
    steps = 2**19 if (low, high) == (-1, 1) else 1  # a float's step is its range over 2^20
    return round(min(max(value, low), high) * steps) - low * steps


# (person, age, pay, hours, sex, ward): people with one, two and three rows, at ends of ranges, beyond them, missing
PEOPLE = [
    (1, 0, -1.0, 0, "f", "A"),
    (2, 100, 1.0, 40, "m", "B"),
    (3, 250, -7.0, 90, "f", "B"),
    (4, 50, 0.0, 20, "x", None),
    (4, 0, 1.0, 40, "f", "A"),
    (5, 100, -1.0, 0, "m", "A"),
    (5, 100, -1.0, 0, "m", "A"),
    (5, 17, 0.3, 13, "f", "B"),
    (6, None, 0.5, 10, "f", "A"),
    (7, 30, 0.5, None, "m", "A"),
    (8, 30, float("nan"), 5, "m", "A"),
]


def numbers_of(row: tuple[Any, ...]) -> tuple[int, ...] | None:
    """Return a row's numbers as parts of their half ranges, in whole numbers; None where one is missing."""
    found = []
    for value, (low, high) in zip(row[1:4], RANGES, strict=True):
        steps, height = steps_of(value, low, high), steps_of(high, low, high)
        if steps < 0:
            return None
        found.append(int((Fraction((2 * steps - height) * NUMBER_ONE, height) + Fraction(1, 2)) // 1))
    return tuple(found)


def by_hand(rows: list[tuple[Any, ...]], moments: Moments) -> list[int]:
    """Return the same sums, row by row and place by place."""
    found = []
    for block in moments.blocks:
        for cells in product(*(range(SIZES[column]) for column in block.columns)):
            total = 0
            for each in rows:
                numbers, inside = numbers_of(each), inside_of(each)
                if numbers is None or any(
                    inside[column] != cell for column, cell in zip(block.columns, cells, strict=True)
                ):
                    continue
                factors = [numbers[value] for value in block.values] + [NUMBER_ONE] * (2 - len(block.values))
                row = factors[0] * factors[1] - (UNIT // 2 if block.is_square else 0)
                alike = sum(other[0] == each[0] for other in rows)
                total += (abs(row) // alike) * (1 if row > 0 else -1)
            found.append(total)
    return found


@pytest.mark.parametrize("moments", [FEATURES, WITH_TARGET])
def test_sums_of_products_are_those_of_every_row_by_hand(moments):
    assert read(PEOPLE, lambda coded: coded.moments(moments)) == by_hand(PEOPLE, moments) == sums(PEOPLE, moments)


def moved(rows: list[tuple[Any, ...]], person: int, moments: Moments) -> int:
    """Return the square of how far one person's rows move all the sums."""
    others = [row for row in rows if row[0] != person]
    pairs = zip(sums(rows, moments), sums(others, moments), strict=True)
    return sum((one - other) ** 2 for one, other in pairs)


def farthest(moments: Moments) -> int:
    """Return the most that one person moves the sums, squared, of people at all ends and with several rows."""
    corners = [
        (9, age, pay, hours, sex, ward)
        for age, pay, hours in product((0, 100), (-1.0, 1.0), (0, 40))
        for sex, ward in (("f", "A"), ("m", None))
    ]
    alone = [moved([*PEOPLE[:4], corner], 9, moments) for corner in corners]
    several = [moved([*PEOPLE[:4], *corners[:2]], 9, moments), moved([*PEOPLE[:4], *([corners[0]] * 3)], 9, moments)]
    return max(*alone, *several, *(moved(PEOPLE, person, moments) for person in range(1, 9)))


@pytest.mark.parametrize("moments", [FEATURES, WITH_TARGET])
def test_one_person_moves_the_sums_as_far_as_claimed_and_no_farther(moments):
    assert farthest(moments) == moments.moves_squared


def lower_bound_twice(block: MomentBlock) -> int:
    """A published bug: a product's size from the low end of its range alone, which is 0 for a range (0, 100)."""
    return 0 if block.values else UNIT


@pytest.mark.parametrize(
    ("broken", "planted"),
    [
        ("the low end is taken for both ends", (MomentBlock, "most", property(lower_bound_twice))),
        (
            "the constant is not in the sensitivity",
            (Moments, "moves_squared", property(lambda each: sum(block.most**2 for block in each.blocks[1:]))),
        ),
        ("the rows of a person are not divided", (engine_products, "divided", lambda products, _rows: products)),
    ],
)
def test_each_published_bug_is_found(monkeypatch, broken, planted):
    monkeypatch.setattr(*planted)
    assert any(farthest(moments) > moments.moves_squared for moments in (FEATURES, WITH_TARGET)), broken


def model(cap: int = UNIT // 2) -> SquaredErrors:
    tables = (np.array([100, -300, 7]), np.array([0, 2500, -9]))
    return SquaredErrors((0, 1), (0, 1), 2, tables, np.array([1000, -2000]), 77, cap)


def errors_by_hand(rows: list[tuple[Any, ...]], of: SquaredErrors) -> list[int]:
    totals = [0] * (1 + 2 + 6)
    for row in rows:
        numbers, inside = numbers_of(row), inside_of(row)
        if numbers is None:
            continue
        predicted = of.intercept + sum(int(table[cell]) for table, cell in zip(of.tables, inside, strict=True))
        for slope, number in zip(of.slopes.tolist(), numbers, strict=False):
            predicted += (slope * number + NUMBER_ONE // 2) // NUMBER_ONE
        square = min((numbers[2] - predicted) ** 2, of.cap)
        alike = sum(each[0] == row[0] for each in rows)
        totals[0] += square // alike
        for at in range(2):
            totals[1 + at] += numbers[at] ** 2 * square // UNIT // alike
            totals[3 + 3 * at + inside[at]] += square // alike
    return totals


def test_sums_of_squared_errors_are_those_of_every_row_by_hand():
    assert read(PEOPLE, lambda coded: coded.squared_errors(model())) == errors_by_hand(PEOPLE, model())


def test_one_person_moves_squared_errors_as_far_as_claimed_and_no_farther():
    of = model(cap=1000)
    everybody = [*PEOPLE, (9, 100, 1.0, 0, "f", "A")]
    found = [
        sum(
            (one - other) ** 2
            for one, other in zip(
                asked(everybody, lambda coded: coded.squared_errors(of)),
                asked([row for row in everybody if row[0] != person], lambda coded: coded.squared_errors(of)),
                strict=True,
            )
        )
        for person in range(1, 10)
    ]
    assert max(found) == of.moves_squared == (1 + 2 + 2) * 1000**2


def test_moments_of_what_is_not_coded_are_refused():
    with pytest.raises(InvalidParameter, match="values that are known"):
        Moments((), (0,), ())
    table = people(rows_of(PEOPLE), columns=COLUMNS)
    with table.session.engine.coded(plan_of(table)) as coded:
        with pytest.raises(InvalidParameter, match="coded columns"):
            coded.moments(Moments((5,), (0,), (0,)))
        with pytest.raises(InvalidParameter, match="entry for each bin"):
            coded.squared_errors(SquaredErrors((0,), (), 2, (np.array([1]),), np.zeros(0, dtype=np.int64), 0, 1))
