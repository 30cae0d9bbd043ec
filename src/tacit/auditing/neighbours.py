"""Made-up neighbouring tables for any declaration and question: a crowd, and people whose arrival exposed past bugs.

Values come from public facts: a column's type, range and keys, and the constants that the question compares with. So
the rows reach every branch of the question, and no row is of a real person.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from tacit.query import Call, Expression, Query, Scalar, Value
from tacit.tables import ColumnFacts, Declaration, RowUnit, WrittenFacts

Row = dict[str, Any]

PEOPLE = 12
HEAVY = 120
NEWCOMER = 10**6
NAN, INF = float("nan"), float("inf")
# Past these, sums of machine numbers wrap, lose their last digit, or exceed int64.
POWERS = (2**31, 2**53, 2**63 - 1)


@dataclass(frozen=True)
class Pool:
    """The values of one column: usual values, odd ones that its type allows, its lowest and its highest, a new one."""

    usual: tuple[Any, ...]
    odd: tuple[Any, ...]
    low: Any
    high: Any
    new: Any


@dataclass(frozen=True)
class MadeTables:
    """A crowd of units, and for each way in which one more unit has mattered, that unit's rows."""

    crowd: tuple[Row, ...]
    newcomers: dict[str, tuple[Row, ...]]
    schema: pa.Schema

    def with_newcomer(self, name: str | None) -> pa.Table:
        """Return the crowd with one of the newcomers, before or after all others, or without any."""
        rows = list(self.crowd)
        if name is not None:
            first = list(self.newcomers).index(name) % 2 == 0
            rows = [*self.newcomers[name], *rows] if first else [*rows, *self.newcomers[name]]
        return pa.Table.from_pylist(rows, schema=self.schema)

    def alone(self, name: str | None) -> pa.Table:
        """Return the table of one newcomer without the crowd, or without a name the table of no rows."""
        return pa.Table.from_pylist([] if name is None else list(self.newcomers[name]), schema=self.schema)


def make_tables(declaration: Declaration, query: Query) -> MadeTables:
    """Return made-up tables of the declared columns that try this question."""
    columns = {name: facts for name, facts in declaration.columns.items() if facts.type != "other"}
    written = tuple(_constants(query))
    pools = {name: _pool(facts, written) for name, facts in columns.items()}
    unit = None if isinstance(declaration.unit, RowUnit) else declaration.unit
    crowd = [row for person in range(PEOPLE) for row in _person(person, pools, unit, columns)]
    newcomers = {name: tuple(_owned(rows, unit, columns)) for name, rows in _newcomers(pools, crowd).items()}
    if unit is None:  # every row is a separate unit: a newcomer has one
        newcomers = {name: rows[:1] for name, rows in newcomers.items()}
    schema = pa.schema([(name, _arrow_type(facts)) for name, facts in columns.items()])
    return MadeTables(tuple(crowd), newcomers, schema)


def written_facts(declaration: Declaration) -> dict[str, WrittenFacts]:
    """Return a declaration's columns as a curator would write them for a table of ours."""
    return {
        name: WrittenFacts(facts.type, facts.between, facts.step, facts.keys)
        for name, facts in declaration.columns.items()
        if facts.type != "other"
    }


def _person(person: int, pools: dict[str, Pool], unit: str | None, columns: dict[str, ColumnFacts]) -> list[Row]:
    """Return some rows of one of the crowd: over its bounds, tied, repeated, with values missing."""
    rows: list[Row] = []
    for turn in range(1 + person % 6):
        row: Row = {}
        for place, (name, pool) in enumerate(pools.items()):
            at = person * (place + 1) + turn * (2 * place + 1)
            row[name] = None if (person + turn + place) % 7 == 6 else pool.usual[at % len(pool.usual)]
        rows += [row] * (1 + turn % 2)
    return [row if unit is None else row | {unit: _unit_value(person, columns[unit])} for row in rows]


def _newcomers(pools: dict[str, Pool], crowd: Sequence[Row]) -> dict[str, list[Row]]:
    """Return one unit's rows for every way such a unit has mattered."""

    def turned(by: int) -> Row:
        return {name: pool.usual[(by + place) % len(pool.usual)] for place, (name, pool) in enumerate(pools.items())}

    odd_most = max((len(pool.odd) for pool in pools.values()), default=0)
    longest = max((len(pool.usual) for pool in pools.values()), default=1)
    odd_rows = [
        {name: (pool.odd[turn % len(pool.odd)] if pool.odd else pool.usual[0]) for name, pool in pools.items()}
        for turn in range(odd_most)
    ]
    # one odd value among usual ones: the row is still counted
    lone = [
        {other: (value if other == name else pools[other].usual[0]) for other in pools}
        for name, pool in pools.items()
        for value in pool.odd
    ]
    return {
        **{f"a plain row ({turn + 1})": [turned(turn)] for turn in range(min(longest, 4))},
        "an unused key": [{name: pool.new for name, pool in pools.items()}],
        "heavy, across groups": [turned(turn) for turn in range(HEAVY)],
        "heavy, in one group": [turned(0)] * HEAVY,
        "heavy, highest values": [{name: pool.high for name, pool in pools.items()}] * HEAVY,
        "heavy, lowest values": [{name: pool.low for name, pool in pools.items()}] * HEAVY,
        "heavy, highest values in a usual group": [_high_numbers(turned(turn), pools) for turn in range(HEAVY)],
        "odd values": odd_rows or [turned(0)],
        "one odd value at a time": lone or [turned(0)],
        "all null": [dict.fromkeys(pools)] * 4,
        "the crowd's own rows": [dict(row) for row in crowd[:9]],
    }


def _high_numbers(row: Row, pools: dict[str, Pool]) -> Row:
    """Return a row with the highest numbers, and its other values unchanged."""
    return {
        name: pools[name].high if isinstance(value, int | float | Decimal) else value for name, value in row.items()
    }


def _owned(rows: list[Row], unit: str | None, columns: dict[str, ColumnFacts]) -> list[Row]:
    return rows if unit is None else [row | {unit: _unit_value(NEWCOMER, columns[unit])} for row in rows]


# ---- values --------------------------------------------------------------------------------------------------------


def _pool(facts: ColumnFacts, written: Sequence[Scalar]) -> Pool:
    keys = tuple(key for key in facts.keys or () if key is not None)
    if facts.type in ("int", "float", "decimal"):
        return _tempting_numbers(facts, [*keys, *written])
    if facts.type == "bool":
        return Pool((True, False), (None,), False, True, True)
    if facts.type == "text":
        said = tuple(value for value in written if isinstance(value, str))
        usual = tuple(dict.fromkeys((*keys, *said, *(() if keys else ("a", "b", "c")))))
        return Pool(usual, ("", "\U0010ffff", " a ", "A" * 300, "'; --"), usual[0], usual[-1], "only me")
    return _tempting_times(facts, [*keys, *written])


def _tempting_numbers(facts: ColumnFacts, written: Sequence[Any]) -> Pool:
    low, high = facts.between or (Fraction(-10), Fraction(10))
    said = [Fraction(value) for value in written if isinstance(value, int | float | Fraction) and _is_finite(value)]
    near = [value + step for value in said for step in (-1, 0, 1)]
    inside = [low, high, (low + high) / 2, Fraction(0), Fraction(1), *near]
    far = [low - 1, high + 1, *map(Fraction, POWERS), *(-Fraction(power) for power in POWERS)]
    usual = tuple(dict.fromkeys(_typed_number(value, facts) for value in inside))
    odd = [_typed_number(value, facts) for value in far]
    if facts.type == "float":
        odd += [NAN, INF, -INF, -0.0, 5e-324, 1e308, -1e308]
    ends = _typed_number(low, facts), _typed_number(high, facts)
    return Pool(usual, tuple(dict.fromkeys(odd)), *ends, _typed_number(high + 7, facts))


def _typed_number(value: Fraction, facts: ColumnFacts) -> Any:
    """Return a number of the column's type, the nearest that it can hold."""
    if facts.type == "int":
        return max(-(2**63), min(2**63 - 1, round(value)))
    if facts.type == "float":
        return float(value)
    most = 10**facts.digits - 1
    return Decimal(max(-most, min(most, round(value * 10**facts.scale)))).scaleb(-facts.scale)


def _tempting_times(facts: ColumnFacts, written: Sequence[Any]) -> Pool:
    kind: type = date if facts.type == "date" else datetime
    said = [_as_time(value, kind) for value in written if isinstance(value, date)]
    plain = [datetime(2000, 2, 29), datetime(2024, 12, 31, 23, 59, 59), datetime(1970, 1, 1)]  # noqa: DTZ001
    usual = [*said, *(value + timedelta(days=1) for value in said), *(_as_time(value, kind) for value in plain)]
    odd = [_as_time(value, kind) for value in (datetime(1, 1, 1), datetime(9999, 12, 31))]  # noqa: DTZ001
    return Pool(tuple(dict.fromkeys(usual)), tuple(odd), min(usual), max(usual), _as_time(datetime(1984, 4, 4), kind))  # noqa: DTZ001


def _as_time(value: Any, kind: type) -> Any:
    if kind is date:
        return value.date() if isinstance(value, datetime) else value
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)  # noqa: DTZ001


def _unit_value(number: int, facts: ColumnFacts) -> Any:
    if facts.type == "text":
        return f"unit {number}"
    if facts.type == "bool":
        return bool(number % 2)
    if facts.type in ("date", "timestamp"):
        day = datetime(1900, 1, 1) + timedelta(days=number % 40_000)  # noqa: DTZ001
        return _as_time(day, date if facts.type == "date" else datetime)
    return _typed_number(Fraction(number), facts)


def _is_finite(value: Any) -> bool:
    return not isinstance(value, bool) and (not isinstance(value, float) or abs(value) < INF)


def _arrow_type(facts: ColumnFacts) -> pa.DataType:
    plain = {
        "bool": pa.bool_(),
        "int": pa.int64(),
        "float": pa.float64(),
        "text": pa.string(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
    }
    return plain[facts.type] if facts.type in plain else pa.decimal128(facts.digits, facts.scale)


# ---- the question's constants --------------------------------------------------------------------------------------


def _constants(query: Query) -> Iterator[Scalar]:
    """Yield the values that a question's own words and keys mention."""
    expressions: list[Expression | None] = [query.where, *(key.expression for key in query.keys)]
    for output in query.outputs:
        expressions += [output.aggregate.expression, output.aggregate.other]
    for expression in expressions:
        yield from _values(expression)
    for key in (query.public_keys or ())[:50]:
        yield from key


def _values(expression: Expression | None) -> Iterator[Scalar]:
    if isinstance(expression, Value):
        yield expression.value
    elif isinstance(expression, Call):
        for argument in expression.arguments:
            yield from _values(argument)
