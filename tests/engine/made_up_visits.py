"""Made-up visits of people, of whom a few have most, with each type and its odd cells."""

import datetime as dt
from decimal import Decimal
from functools import cache

import pyarrow as pa

PEOPLE, ROWS = 23, 260
WARDS = pa.table({"ward": ["a", "é", None], "kind": ["x", "y", "y"]})


def mixed(row, salt, of):
    """Return a number that looks random, from the row alone."""
    return ((row * 2654435761 + salt * 40503) % 2**32 >> 7) % of


@cache
def visits():
    """Rows of people, of whom a few have most, with each type and its odd cells."""
    floats = [0.25, 7.5, -0.0, float("nan"), float("inf"), None, 1e300, 3.125]
    wards = ["a", "b", "é", None, "w" * 300, ""]
    days = [dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31), None]
    rows = [
        {
            "id": None if mixed(row, 1, 40) == 0 else mixed(row, 2, PEOPLE) * mixed(row, 3, 2),
            "person": f"p{mixed(row, 2, PEOPLE) % 7}" if mixed(row, 4, 30) else None,
            "w": f"w{mixed(row, 12, 9)}",
            "ward": wards[mixed(row, 5, len(wards))],
            "place": mixed(row, 6, 6) - 1,
            "x": [None, -3, 0, 5, 10, 2**62][mixed(row, 7, 6)],
            "y": floats[mixed(row, 8, len(floats))],
            "cost": [None, Decimal("1.25"), Decimal("-9.75"), Decimal("7.50")][mixed(row, 9, 4)],
            "day": days[mixed(row, 10, len(days))],
            "late": [True, False, None][mixed(row, 11, 3)],
        }
        for row in range(ROWS)
    ]
    types = [
        pa.int64(),
        pa.string(),
        pa.string(),
        pa.string(),
        pa.int32(),
        pa.int64(),
        pa.float64(),
        pa.decimal128(12, 2),
    ]
    names = ["id", "person", "w", "ward", "place", "x", "y", "cost", "day", "late"]
    return pa.Table.from_pylist(
        rows, schema=pa.schema(list(zip(names, [*types, pa.date32(), pa.bool_()], strict=True)))
    )


@cache
def people():
    rows = [{"id": each, "age": mixed(each, 12, 90), "person": f"p{each % 7}"} for each in range(PEOPLE)]
    return pa.Table.from_pylist(
        rows, schema=pa.schema([("id", pa.int64()), ("age", pa.int64()), ("person", pa.string())])
    )


COLUMNS = {
    "x": {"between": (0, 10)},
    "y": {"between": (-5, 5)},
    "cost": {"between": (-10, 10)},
    "place": {"keys": [-1, 0, 1, 2, 3, 7]},
}
