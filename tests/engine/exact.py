"""What tests of the engine share: small tables, and their exact sums on a chosen path."""

import os
from contextlib import contextmanager

import pyarrow as pa

import tacit
from tacit.plan.exact import ExactTable
from tacit.query.frame import count, count_units, mean
from tacit.query.frame import sum as sum_of

INT, TEXT = pa.int64(), pa.string()
SALT = "0123456789abcdef"
DECLARED = {"x": {"between": (0, 10)}, "y": {"between": (-5, 5)}}


@contextmanager
def on_path(path):
    """Answer on this path inside."""
    before = os.environ.pop("TACIT_KERNEL", None)
    if path == "sql":
        os.environ["TACIT_KERNEL"] = "off"
    try:
        yield
    finally:
        os.environ.pop("TACIT_KERNEL", None)
        if before is not None:
            os.environ["TACIT_KERNEL"] = before


def question(rows, aggregates=None, *, by=("g",), rows_per_unit=2, groups_per_unit=2, keys=None, **declared):
    """Ask aggregates, or everything the kernel adds up, of rows with columns id, g, x and y."""
    table = tacit.table(
        rows,
        unit="id",
        rows_per_unit=rows_per_unit,
        groups_per_unit=groups_per_unit,
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
