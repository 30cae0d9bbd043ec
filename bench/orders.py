"""The table that grouped questions are asked of: orders of people, of whom few have very many.

`rows` orders of rows / 10 people; a bound of 5 items and 2 orders of each leaves out more than half of them, as many
people have too many.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import duckdb

import tacit
from tacit.asking import Table

AGGREGATES = "COUNT(*) AS n, SUM(amount) AS total, AVG(amount) AS mean"
BARE = "SELECT item, user_id, count(*), sum(amount) FROM '{}' GROUP BY item, user_id"
COLUMN_BYTES = 3 * 8

epsilons = (1 + turn / 10**6 for turn in count())  # a new question each time: an old one would be free


@contextmanager
def orders(rows: int, items: int, *, near: int | None = None) -> Iterator[Path]:
    """Lend a Parquet file of orders."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "orders.parquet"
        write_orders(path, rows, items, near=near)
        yield path


def write_orders(path: Path, rows: int, items: int, *, near: int | None = None, huge: bool = False) -> None:
    """Write orders by a fixed rule: the same file each time; a person's items are so few and `near` each other.

    Of a `huge` table one person has half of the orders.
    """
    person = f"floor({rows // 10} * u * u * u * u)"
    if huge:
        person = f"CASE WHEN w % 2 = 0 THEN 0 ELSE {person} END"
    item = f"floor({items} * v)"
    if near is not None:
        first = f"CAST(hash(floor({rows // 10} * u * u * u * u)) % {items} AS BIGINT)"
        item = f"({first} + CAST(floor({near} * v) AS BIGINT)) % {items}"
    engine = duckdb.connect()
    engine.execute("SET enable_progress_bar = false")
    engine.sql(f"""
        COPY (
            WITH mixed AS (SELECT hash(range) AS h FROM range({rows})),
                 parts AS (
                     SELECT (h & 4294967295) / 4294967296 AS u, ((h >> 32) & 262143) / 262144 AS v, h >> 50 AS w
                     FROM mixed
                 )
            SELECT CAST({person} AS BIGINT) AS user_id,
                   CAST({item} AS BIGINT) AS item,
                   (w % 10000) / 100 AS amount
            FROM parts
        ) TO '{path}' (FORMAT parquet)
    """)


def protected(path: Path, *, items: int | None, unit: Any = "user_id", name: str = "orders") -> Table:
    """Return the orders as a protected table; `items` lists the public keys, None leaves them private."""
    bounds = {} if unit is tacit.ROW else {"rows_per_unit": 2, "groups_per_unit": 5}
    keys = {} if items is None else {"item": {"keys": range(items)}}
    return tacit.table(
        path,
        unit=unit,
        name=name,
        budget=tacit.epsilon(10**6, delta=1e-6),
        ledger=path.parent / f"{name}-{items}-{os.getpid()}.db",
        columns={"amount": {"between": (0, 100)}, **keys},
        **bounds,
    )


def ask(table: Table, aggregates: str = AGGREGATES) -> None:
    """Answer the question once more, and pay for it."""
    table.sql(f"SELECT item, {aggregates} FROM {table.frame.declaration.name} GROUP BY item").answer(
        epsilon=next(epsilons)
    )
