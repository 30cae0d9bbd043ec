"""What tests of the engine share: small tables, and their exact sums on a chosen path."""

import datetime as dt
import os
from contextlib import contextmanager
from decimal import Decimal

import pyarrow as pa

import tacit
from tacit.engine.engine import EmbeddedEngine
from tacit.exact import ExactTable
from tacit.query.frame import count, count_units, mean
from tacit.query.frame import sum as sum_of

INT, TEXT = pa.int64(), pa.string()
SALT = "0123456789abcdef"
DECLARED = {"x": {"between": (0, 10)}, "y": {"between": (-5, 5)}}


def moment(*parts):
    return dt.datetime(*parts)  # noqa: DTZ001 - a column without a zone


UNITS = {
    "int": (pa.int64(), [0, 1, -1, 2**63 - 1, -(2**63), 7, None]),
    "uint": (pa.uint64(), [0, 1, 2**64 - 1, 2**63, None]),
    "small": (pa.int16(), list(range(-3, 4))),
    "float": (pa.float64(), [0.0, -0.0, 1.5, float("inf"), float("nan"), 5e-324, None]),
    "text": (pa.string(), ["", "a", "A", "ä", "a\0", "a" * 9, "a" * 8, "b" * 400, None]),
    "bool": (pa.bool_(), [True, False, None]),
    "date": (pa.date32(), [dt.date(1970, 1, 1), dt.date(2024, 2, 29), None]),
    "time": (pa.timestamp("us"), [moment(1969, 12, 31), moment(2024, 2, 29, 1), None]),
    "decimal": (pa.decimal128(30, 4), [Decimal("1.5"), Decimal("-1.5"), Decimal("9e20"), None]),
}
KEYS = {
    "text": (pa.string(), ["", "a", "b", "c" * 30, None]),
    "int": (pa.int64(), [0, 1, -(2**63), 2**63 - 1, None]),
    "float": (pa.float64(), [0.0, -0.0, 0.1, float("nan"), None]),
    "bool": (pa.bool_(), [True, False, None]),
    "date": (pa.date32(), [dt.date(1, 1, 1), dt.date(2024, 2, 29), None]),
    "time": (pa.timestamp("us"), [moment(1969, 12, 31, 23), moment(2024, 2, 29), None]),
    "decimal": (pa.decimal128(20, 2), [Decimal("1.50"), Decimal("-2.25"), None]),
}
XS = [None, -(2**63), -1, 0, 3, 10, 2**63 - 1]
YS = [None, float("nan"), float("-inf"), -5.0, -0.0, 0.3, 4.999, 1e300]


@contextmanager
def on_path(path, *, or_patient=False):
    """Answer on this path inside; that the patient one would take over is not enough, unless said."""
    quick = EmbeddedEngine._quick
    if not or_patient:
        EmbeddedEngine._quick = EmbeddedEngine._on_path
    before = os.environ.pop("TACIT_KERNEL", None)
    if path == "sql":
        os.environ["TACIT_KERNEL"] = "off"
    try:
        yield
    finally:
        EmbeddedEngine._quick = quick
        os.environ.pop("TACIT_KERNEL", None)
        if before is not None:
            os.environ["TACIT_KERNEL"] = before


def question(rows, aggregates=None, *, by=("g",), unit="id", rows_per_unit=2, groups_per_unit=2, keys=None, **declared):
    """Ask aggregates, or everything the kernel adds up, of rows with columns id, g, x and y."""
    table = tacit.table(
        rows,
        unit=unit,
        **({} if unit is tacit.ROW else {"rows_per_unit": rows_per_unit, "groups_per_unit": groups_per_unit}),
        budget=tacit.epsilon(1000, delta=1e-6),
        ledger=":memory:",
        columns=DECLARED | declared,
    )
    aggregates = aggregates or {"n": count(), "x_mean": mean("x"), "y_sum": sum_of("y"), "people": count_units()}
    return (table.group_by(*by, keys=keys) if by else table).agg(**aggregates)


def exact_of(asked, *, salt=SALT, path, epsilon=1):
    """Return {key: {sum: integer}} of the groups that have any unit."""
    plan = asked.plan(epsilon=epsilon).plan
    with on_path(path):
        engine = asked.session.engine
        assert engine.path_of(plan) == path
        return by_key(engine.aggregate(plan, salt))


def by_key(exact: ExactTable):
    names = sorted(exact.sums)
    found = {key: {name: exact.sums[name][at] for name in names} for at, key in enumerate(exact.keys)}
    return {key: sums for key, sums in found.items() if sums["units"]}


def added(one, two):
    """Return the sums of two tables that share no unit."""
    total = {key: dict(sums) for key, sums in one.items()}
    for key, sums in two.items():
        for name, value in sums.items():
            there = total.setdefault(key, dict.fromkeys(sums, 0))
            there[name] += value
    return total


def as_table(rows, unit=INT, key=TEXT):
    """Return (id, g, x, y) tuples as an Arrow table."""
    schema = pa.schema([("id", unit), ("g", key), ("x", pa.int64()), ("y", pa.float64())])
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)
