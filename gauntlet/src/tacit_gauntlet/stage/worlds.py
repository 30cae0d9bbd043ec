"""Worlds of made-up units: all tables that have one of a few versions of each unit's rows, and which are neighbours.

A version of a unit without rows is among them. So the table without any unit, one unit beside none and two beside one
are tables of every world.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import combinations, product
from typing import Any, Literal

import pyarrow as pa

from tacit_gauntlet.stage.fuzz import Chooser

NAN, INF = float("nan"), float("inf")
Neighbours = Literal["add-remove", "replace"]
NEIGHBOURS: tuple[Neighbours, Neighbours] = ("add-remove", "replace")
Row = tuple[Any, ...]  # the unit's id, then the cells
Rows = Mapping[str, Sequence[Row]]  # by table
Columns = Mapping[str, tuple[pa.DataType, Sequence[Any]]]  # by name: the type, and cells to choose from
Versions = tuple[int, ...]  # of each unit, which of its versions a table has

# For each type of id, its Arrow type and units; a unit's id may be written in several ways.
IDS: Mapping[str, tuple[pa.DataType, Sequence[Sequence[Any]]]] = {
    "int": (pa.int64(), ((0,), (1,), (-(2**63),), (2**63 - 1,), (7,))),
    "text": (pa.string(), (("a",), ("A",), ("",), (" ",), ("ä",), ("x" * 70,), ("x" * 71,), ("0",), ("00",))),
    "float": (pa.float64(), ((0.0, -0.0), (1.5,), (INF,), (-INF,), (2.0**60,), (1e-300,))),
    "date": (pa.date32(), tuple((date(2020, 1, 1 + day),) for day in range(5))),
    "decimal": (pa.decimal128(20, 2), ((Decimal("0.00"),), (Decimal("-0.25"),), (Decimal("1.50"),), (Decimal(7),))),
    "bool": (pa.bool_(), ((True,), (False,))),
}
# Ids that belong to no unit.
NO_UNIT: Mapping[str, Sequence[Any]] = {"float": (None, NAN)}

VISITS: Columns = {
    "g": (pa.string(), ("A", "A", "B", "B", "C", "D", "", "z" * 80, "ü", None)),
    "k": (pa.int64(), (0, 0, 1, 1, 2, 3, -1, 2**40, None)),
    "x": (pa.float64(), (0.0, -0.0, 1.0, 2.5, -3.25, 10.0, 99.0, 1e6, -1e9, 1e18, 1e300, NAN, INF, -INF, 1e-9, None)),
    "y": (pa.int64(), (0, 1, 2, 5, 7, -4, 100, 1000, 2**31, 2**53 + 1, 2**62, -(2**63), 2**63 - 1, 12, 49, None)),
    "b": (pa.bool_(), (True, False, None)),
    "d": (pa.decimal128(18, 2), (*map(Decimal, ("0.50", "-7.25", "99999999999999.99", "3", "61")), None)),
    "t": (pa.timestamp("us"), tuple(datetime(2023, 12, 1) + timedelta(hours=h) for h in (0, 9, 700, 900, 9000))),  # noqa: DTZ001
}
PEOPLE: Columns = {
    "age": (pa.int64(), (0, 1, 17, 40, 65, 99, -1, 10**9, None)),
    "sex": (pa.string(), ("f", "m", "x", None)),
    "k": (pa.int64(), (0, 1, 2, None)),
}
TABLES: Mapping[str, Columns] = {"v": VISITS, "p": PEOPLE}
# How many rows a version of a unit has in each table, by what it is like; one of several numbers.
SIZES: Mapping[str, Mapping[str, Sequence[int]]] = {
    "none": {"v": (0,), "p": (0,)},
    "one": {"v": (1, 2), "p": (1,)},
    "some": {"v": (3, 12), "p": (0, 1, 3)},
    "many": {"v": (40,), "p": (5,)},
}
# The versions of each unit of a world.
SMALL = (("none", "one", "many"), ("none", "some"))
LARGE = (("none", "one", "some", "many"),) * 2
Likes = Sequence[Sequence[str]]


@dataclass(frozen=True)
class World:
    """Rows that are in every table, and the versions of each unit's rows; the first version has no rows."""

    always: Rows
    units: tuple[tuple[Rows, ...], ...]  # [unit][version]

    def places(self) -> list[Versions]:
        """Return which versions the units have in each table."""
        return list(product(*(range(len(versions)) for versions in self.units)))

    def rows(self, place: Versions) -> dict[str, list[Row]]:
        """Return the rows of a table of each name, in an order that is turned in every second one."""
        each = [versions[at] for versions, at in zip(self.units, place, strict=True)]
        found = {
            name: [row for rows in (each[0], self.always, *each[1:]) for row in rows[name]] for name in self.always
        }
        return {name: rows[::-1] if sum(place) % 2 else rows for name, rows in found.items()}

    def pairs(self, neighbours: Neighbours) -> Iterator[tuple[Versions, Versions]]:
        """Yield the tables in which one unit differs: it comes, or where units are replaced has other rows."""
        for unit, versions in enumerate(self.units):
            others = (range(len(each)) for at, each in enumerate(self.units) if at != unit)
            for rest, (one, other) in product(product(*others), combinations(range(len(versions)), 2)):
                if neighbours == "replace" or one == 0:
                    yield (*rest[:unit], one, *rest[unit:]), (*rest[:unit], other, *rest[unit:])


def world_of(choose: Chooser, ids: str, likes: Likes, *, tables: Mapping[str, Columns] = TABLES) -> World:
    """Return a world of some units, sometimes with another unit and rows of no unit in all of its tables."""
    known = list(IDS[ids][1])
    written = [known.pop(choose.number(len(known))) for _ in likes]
    nobody = choose.one(NO_UNIT.get(ids, (None,)))
    others = [[nobody], known[0]] if known and choose.number(2) else [[nobody]]
    always = {
        name: [row for each in others for row in _rows(choose, each, columns, choose.one((0, 0, 1, 3)))]
        for name, columns in tables.items()
    }
    versions = [
        tuple(
            {name: _rows(choose, each, columns, choose.one(SIZES[like][name])) for name, columns in tables.items()}
            for like in of_unit
        )
        for each, of_unit in zip(written, likes, strict=True)
    ]
    return World(always, tuple(versions))


def world_of_rows(choose: Chooser, likes: Likes, *, columns: Columns = VISITS) -> World:
    """Return a world whose units are rows of the table v: each is absent, or one of some rows."""
    ids = IDS["int"][1]
    always = {"v": _rows(choose, ids[0], columns, choose.one((0, 0, 3)))}
    made = [_rows(choose, choose.one(ids), columns, len(of_unit) - 1) for of_unit in likes]
    return World(always, tuple(({"v": []}, *({"v": [row]} for row in each)) for each in made))


def _rows(choose: Chooser, ids: Sequence[Any], columns: Columns, number: int) -> list[Row]:
    """Return so many rows of one unit; every second time nearly all of them are alike."""
    alike = number > 3 and choose.number(2) == 0
    fresh = [tuple(choose.one(cells) for _, cells in columns.values()) for _ in range(3 if alike else number)]
    return [(choose.one(ids), *fresh[0 if alike and at > 2 else at % len(fresh)]) for at in range(number)]


def schema_of(columns: Columns, ids: str) -> pa.Schema:
    """Return the schema of a table whose unit is the column u."""
    return pa.schema([("u", IDS[ids][0]), *((name, kind) for name, (kind, _) in columns.items())])


def as_table(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    """Return rows as an Arrow table."""
    cells = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.Table.from_arrays(
        [pa.array(each, field.type, from_pandas=False) for each, field in zip(cells, schema, strict=True)],
        schema=schema,
    )
