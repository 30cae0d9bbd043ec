"""Whole questions are what DuckDB makes of them: random SELECTs over random tables, where noise is nothing.

No luck is needed. At epsilon 10^15, of which a part has at least a fortieth, a count or sum of at most 64 rows × 2^20
steps has noise of scale 64 · 2^20 · 40 / 10^15 < 3e-6 steps, which moves it with a chance below 2·exp(-10^5). Squares
and products of fractions, in 2^40 steps, have scale below 3 steps, and reach a thousandth of their range, which is
below what is allowed here, with a chance below exp(-10^8). So has another value of a quantile, a rank away.
"""

import datetime as dt
import random
import warnings
from dataclasses import dataclass
from fractions import Fraction
from math import isnan
from typing import Any

import duckdb
import pytest

import tacit
from tacit.ledger import open_ledger
from tests.door.random_compounds import random_compound
from tests.door.random_kinds import LISTED, random_kind
from tests.door.random_rows import Tables, random_tables
from tests.door.random_selects import Column, Select, random_select

EPSILON = 10**15
BOUNDS = {"rows_per_unit": 64, "groups_per_unit": 64, "most_rows_per_unit": 64}
COLUMNS = {"x": {"between": (-16, 16)}, "f": {"between": (-8, 8), "step": "1/8"}}


@dataclass(frozen=True)
class Opened:
    """The tables as Tacit has them, and as DuckDB does: rows that belong to nobody are in no question about people."""

    protected: dict[str, tacit.Table]
    others: list[Any]
    db: duckdb.DuckDBPyConnection


def opened(tables: Tables) -> Opened:
    """Return the tables, opened in both."""
    ledger = open_ledger(":memory:")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tacit.LargeEpsilonWarning)
        budget, of_visits = tacit.epsilon(10**40, delta="1e-6"), {"same_people_as": "visits", "unit": "id", **BOUNDS}
        given = {"ledger": ledger, "columns": COLUMNS}
        visits = tacit.table(tables.visits, name="visits", unit="id", budget=budget, **given, **BOUNDS)
        known = {**COLUMNS, **{name: {"keys": list(keys)} for name, keys in LISTED.items()}}
        listed = tacit.table(tables.visits, name="listed", ledger=ledger, columns=known, **of_visits)
        events = tacit.table(tables.visits, name="events", unit=tacit.ROW, budget=budget, **given)
        patients = tacit.table(tables.patients, name="patients", ledger=ledger, **of_visits)
    db = duckdb.connect()
    db.execute("SET ieee_floating_point_ops = false; SET error_on_division_by_zero = false")  # a quotient by 0 is NULL
    for name, rows in (("visits", tables.visits), ("patients", tables.patients)):
        db.register(f"all_{name}", rows)
        db.execute(f"CREATE TABLE {name} AS SELECT * FROM all_{name} WHERE id IS NOT NULL")
    db.execute("CREATE VIEW listed AS FROM visits; CREATE VIEW events AS FROM all_visits")
    public = []
    for name, rows in (("wards", tables.wards), ("beds", tables.beds)):
        db.register(name, rows)
        public.append(tacit.public(rows, name=name))
    return Opened({"visits": visits, "listed": listed, "events": events}, [patients, *public], db)


def is_near(value, other, column: Column) -> bool:
    """Whether a cell of ours is what DuckDB has."""
    if column.is_among:
        return as_words([value])[0] in as_words(other) if other else value is None
    if column.fraction is not None:
        return is_at_rank(value, other, column.fraction)
    if column.is_line and (other is None or isnan(other)):
        return True  # noise may move one of the points
    if column.ours.startswith("REGR_R2") and other == 1.0 and (value is None or value < 1e-3):
        return True  # of points side by side, with nothing but noise to explain
    if value is None or other is None:
        return value is None and other is None
    if isinstance(other, dt.datetime) and not isinstance(value, dt.datetime):
        other = other.date()
    if isinstance(other, bool | str | dt.date):
        return value == other
    return abs(value - float(other)) <= max(column.near, 1e-9) * max(1.0, abs(float(other)))


def is_at_rank(value, values, fraction: float) -> bool:
    """Whether a quantile lies between the values around its rank; of nothing it is anything."""
    if not values:
        return True
    rank = Fraction(fraction) * (len(values) - 1)
    low, high = max(int(rank) - 2, 0), min(int(rank) + 3, len(values) - 1)
    return float(values[low]) - 0.04 <= value <= float(values[high]) + 0.04


def differences(select: Select, given: Opened) -> list[str]:
    """Return where the answer differs from DuckDB's."""
    wanted = given.db.execute(select.theirs).fetchall()
    others = given.others[1:] if select.table == "events" else given.others
    question = given.protected[select.table].sql(
        select.ours, tables=others, per_unit=select.per_unit, most=dict(select.most), dialect=select.dialect
    )
    answer = question.answer(epsilon=EPSILON, noise="laplace")
    found = [tuple(row[column.name] for column in select.columns) for row in answer.rows]
    if answer.facts.is_public:
        listed = [] if " OVER " in select.ours else wanted  # a window is over all groups, those without rows too
        return [f"{row} is not listed" for row in listed if as_words(row) not in [as_words(each) for each in found]]
    if select.is_listed:
        keys = sum(column.name.startswith("k") for column in select.columns)
        there = {tuple(as_words(row[:keys])) for row in wanted}
        empty = [row for row in found if tuple(as_words(row[:keys])) not in there]
        counted = [
            column.ours.startswith(("COUNT", "SUM")) for column in select.columns
        ]  # a mean of nothing is anything
        if any(cell for row in empty for cell, is_counted in zip(row, counted, strict=True) if is_counted):
            return [f"something in a group without rows: {empty}"]
        found = [row for row in found if row not in empty]
    if not found and wanted == [(None,)] and select.columns[0].is_among:
        return []  # a mode of nothing, asked alone, has no row
    if len(found) != len(wanted):
        return [f"{len(found)} rows and not {len(wanted)}: {found} {wanted}"]
    if not select.is_ordered:
        keys = sum(column.name.startswith("k") for column in select.columns)
        found, wanted = (sorted(rows, key=lambda row: as_words(row[:keys])) for rows in (found, wanted))
    return [
        f"{column.name}: {value!r} and not {other!r} in {row} and {their}"
        for row, their in zip(found, wanted, strict=True)
        for value, other, column in zip(row, their, select.columns, strict=True)
        if not is_near(value, other, column)
    ]


def as_words(cells) -> list[str]:
    """Return cells so that equal ones are equal words: a whole number as a float, a midnight as its day."""
    days = [each.date() if isinstance(each, dt.datetime) and each.time() == dt.time() else each for each in cells]
    return [str(float(each)) if isinstance(each, int) and not isinstance(each, bool) else str(each) for each in days]


def random_question(draw: random.Random) -> Select:
    """Return any question of the grammar."""
    which = draw.random()
    return random_compound(draw) if which < 0.12 else random_kind(draw) if which < 0.3 else random_select(draw)


def compare(seed: int, questions: int) -> None:
    """Ask so many questions about one set of tables."""
    draw = random.Random(seed)
    given = opened(random_tables(draw))
    for _ in range(questions):
        select = random_question(draw)
        assert not differences(select, given), select.ours


@pytest.mark.parametrize("seed", range(4))
def test_a_select_is_what_duckdb_makes_of_it(seed):
    compare(seed, 50)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_twenty_thousand_selects_are_what_duckdb_makes_of_them(seed):
    compare(seed, 50)


@pytest.mark.parametrize(
    ("asked", "other", "column"),
    [
        ("COUNT(*)", "COUNT(*) + 1", Column("", "", "c")),
        ("AVG(f)", "AVG(f) + 0.05", Column("", "", "c", near=2e-3)),
        ("AVG(x)", "NULL", Column("", "", "c", near=2e-3)),
        ("MEDIAN(x)", "[1000.0]", Column("", "", "c", fraction=0.5)),
    ],
)
def test_a_difference_is_noticed(asked, other, column):
    given = opened(random_tables(random.Random(0)))
    select = Select(f"SELECT {asked} AS c FROM visits", f"SELECT {other} AS c FROM visits", (column,))
    assert differences(select, given)
