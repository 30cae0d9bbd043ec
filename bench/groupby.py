"""A grouped question through the whole path, ledger included, against what the engine needs for the bare aggregate.

The table: 10^6 rows, 100,000 people of whom few have many rows, 1000 items, amounts in 0 … 100. We count, add up and
average amounts by item, at most 5 items and 2 rows in each for one person, and pay for it. The baseline is the
engine's own GROUP BY item, person on the same file in the same process: no bounds, no noise, no ledger.
"""

import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import duckdb

import tacit
from bench.measure import Result, median_ratio

ROWS = 1_000_000
PEOPLE = 100_000
ITEMS = 1000
QUESTION = "SELECT item, COUNT(*) AS n, SUM(amount) AS total, AVG(amount) AS mean FROM orders GROUP BY item"
BARE = "SELECT item, user_id, count(*), sum(amount) FROM '{}' GROUP BY item, user_id"
LIMIT = 8


def results() -> Iterator[Result]:
    """Yield the ratio for public keys, which has a limit, and for private ones, which has none."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "orders.parquet"
        write_orders(path)
        yield against_bare("public", path, {"item": {"keys": range(ITEMS)}}, limit=LIMIT)
        yield against_bare("private", path, {}, limit=None)


def against_bare(keys: str, path: Path, facts: dict[str, Any], *, limit: float | None) -> Result:
    """Return our time for the question against the engine's for the bare aggregate."""
    table = tacit.table(
        path,
        unit="user_id",
        rows_per_unit=2,
        groups_per_unit=5,
        budget=tacit.epsilon(1000, delta=1e-6),
        ledger=path.parent / f"{keys}.db",
        columns={"amount": {"between": (0, 100)}, **facts},
    )
    engine = duckdb.connect()
    epsilons = (1 + turn / 1000 for turn in count())  # a new question each time: an old one would be free
    return median_ratio(
        f"answer(), {ITEMS} {keys} keys",
        lambda: table.sql(QUESTION).answer(epsilon=next(epsilons)),
        lambda: engine.sql(BARE.format(path)).to_arrow_table(),
        limit=limit,
        repeats=11,
    )


def write_orders(path: Path) -> None:
    """Write the orders. The bounds of the question leave out three rows in five, as many people have too many."""
    duckdb.sql(f"""
        COPY (
            WITH mixed AS (SELECT hash(range) AS h FROM range({ROWS})),
                 uniform AS (
                     SELECT (h % 1000003) / 1000003 AS u, ((h >> 20) % 1000033) / 1000033 AS v, h >> 40 AS w FROM mixed
                 )
            SELECT CAST(floor({PEOPLE} * u * u * u * u) AS BIGINT) AS user_id,
                   CAST(floor({ITEMS} * v) AS BIGINT) AS item,
                   (w % 10000) / 100 AS amount
            FROM uniform
        ) TO '{path}' (FORMAT parquet)
    """)
