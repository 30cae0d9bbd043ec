"""The tables of the group-by task: orders of people, of whom few have very many.

`spread` items are about equally common; `skewed` ones follow Zipf's law, so that most are in few orders. A `bounded`
table keeps at most 5 items of a person and 2 orders of each, so that no library has anything to leave out: what its
answer is off by is noise alone.
"""

from pathlib import Path

import duckdb

ITEM = {"spread": "floor({items} * v)", "skewed": "floor(({items} + 1) ^ v) - 1"}


def write_orders(path: Path, rows: int, items: int, *, law: str = "spread", bounded: bool = False) -> None:
    """Write orders by a fixed rule: the same file each time."""
    engine = duckdb.connect()
    engine.execute("SET enable_progress_bar = false")
    item = ITEM[law].format(items=items)
    engine.sql(f"""
        CREATE VIEW orders AS
        WITH mixed AS (SELECT hash(range) AS h FROM range({rows})),
             parts AS (
                 SELECT (h & 4294967295) / 4294967296 AS u, ((h >> 32) & 262143) / 262144 AS v, h >> 50 AS w
                 FROM mixed
             )
        SELECT CAST(floor({rows // 10} * u * u * u * u) AS BIGINT) AS user_id,
               CAST({item} AS BIGINT) AS item,
               (w % 10000) / 100 AS amount,
               CAST(w % 10000 AS BIGINT) AS cents
        FROM parts
    """)
    source = "orders"
    if bounded:
        engine.sql("""
            CREATE VIEW numbered AS
            SELECT *, row_number() OVER (PARTITION BY user_id, item ORDER BY cents) AS row,
                   dense_rank() OVER (PARTITION BY user_id ORDER BY hash(user_id, item), item) AS place
            FROM orders
        """)
        source = "(SELECT user_id, item, amount, cents FROM numbered WHERE row <= 2 AND place <= 5)"
    engine.sql(f"COPY (SELECT * FROM {source}) TO '{path}' (FORMAT parquet)")


def exact(path: Path) -> dict[int, tuple[float, float, float]]:
    """Return the count, sum and mean of each item as they are."""
    query = f"SELECT item, count(*), sum(amount), avg(amount) FROM '{path}' GROUP BY item"
    return {item: (float(n), total, mean) for item, n, total, mean in duckdb.sql(query).fetchall()}
