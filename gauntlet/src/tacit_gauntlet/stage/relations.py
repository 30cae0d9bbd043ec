"""The stage for attacks on subqueries: rows in a DuckDB of its own that come and go, and what each unit has of them.

What a subquery makes of rows is secret; here it is read from the engine directly, which only the curator's side can do.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

from tacit_gauntlet.stage.table import Table, protected

Rows = list[tuple[Any, ...]]  # (id, g, x, y)
ByUnit = dict[Any, Rows]  # a unit -> its rows of a subquery, in a fixed order
KINDS = pa.schema([("id", pa.int64()), ("g", pa.string()), ("x", pa.int64()), ("y", pa.float64())])

# what people aggregate of one person, and a second subquery over the first
INNER = (
    "SELECT id, COUNT(*) AS n, SUM(y) AS s, AVG(y) AS m, MIN(y) AS l, MAX(x) AS h, COUNT(DISTINCT g) AS d FROM t"
    " GROUP BY id",
    "SELECT id, g, COUNT(y) AS n, SUM(x) AS s, AVG(y) AS m, BOOL_OR(x > 3) AS b FROM t WHERE x <> 2 GROUP BY id, g"
    " HAVING COUNT(*) > 1",
    "SELECT id, MAX(s) AS top, SUM(s) AS s, COUNT(*) AS n FROM (SELECT id, g, SUM(y) AS s FROM t GROUP BY id, g)"
    " GROUP BY id",
    "SELECT DISTINCT id, g FROM t",
)


# Ids of the people of one world: many small databases are one table, each with people of its own.
WORLD = 1000


def worlds_of(people: Sequence[Any], seeds: Sequence[int]) -> Rows:
    """Return the rows of several worlds, each with these people; rows of nobody are nobody's in all of them."""
    return [
        (None if unit is None else place * WORLD + unit, *cells)
        for place, seed in enumerate(seeds)
        for unit, *cells in rows_of(people, seed)
    ]


def rows_of(people: Sequence[Any], seed: int, *, each: int = 6) -> Rows:
    """Return rows of some people: values of very different sizes, keys that are shared, and NULL among all of them."""
    values = (1e17, 0.1, None, -1e17, 3.14e-9, 1.0, float("nan"), -7.5, 1e300)
    found: Rows = []
    for place, person in enumerate(people):
        for turn in range(1 + (place * 7 + seed) % each):
            at = place * 31 + turn * 17 + seed
            key = (None, "a", "b", "c" * 70)[at % 4]
            found.append((person, key, None if at % 11 == 0 else at % 5, values[(at * at + turn) % len(values)]))
    return found


class Kept:
    """A table in a DuckDB of its own, whose rows can be changed, and the rows of one subquery about it."""

    def __init__(self, inner: str, *, threads: int = 1) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads = {threads}")
        self._connection.execute("CREATE TABLE t (id BIGINT, g VARCHAR, x BIGINT, y DOUBLE)")
        table: Table = protected((self._connection, "t"))
        question = table.sql(f"SELECT COUNT(*) AS n FROM ({inner})")
        self._source = question.session.engine.source
        self._read = _all_columns(self._source)

    def fill(self, rows: Rows) -> None:
        """Have these rows and no others."""
        given = pa.Table.from_arrays([list(each) for each in zip(*rows, strict=True)] or [[]] * 4, schema=KINDS)
        self._connection.register("given", given)
        self._connection.execute("DELETE FROM t")
        self._connection.execute("INSERT INTO t SELECT * FROM given")

    @contextmanager
    def without(self, unit: Any) -> Iterator[None]:
        """Have the same rows but those of one unit in each world; None has all rows that belong to nobody."""
        condition = "id IS NULL" if unit is None else f"id % {WORLD} = {int(unit)}"
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE away AS SELECT * FROM t WHERE {condition}")
        self._connection.execute(f"DELETE FROM t WHERE {condition}")
        yield
        self._connection.execute("INSERT INTO t SELECT * FROM away")

    def by_unit(self, *, on_disk: bool = False) -> ByUnit:
        """Return what each unit has of the subquery's rows, floats bit for bit."""
        if on_disk:
            source = self._source.streaming()
            found = source.fetch(_all_columns(source)).to_pydict()
        else:
            found = self._source.fetch(self._read).to_pydict()
        units: ByUnit = defaultdict(list)
        for row in zip(*found.values(), strict=True):
            units[row[0]].append(tuple(each.hex() if isinstance(each, float) else each for each in row[1:]))
        return {unit: sorted(rows, key=repr) for unit, rows in units.items()}


def _all_columns(source: Any) -> Any:
    """Return all of a source's columns, the unit first; columns are named so that each is asked for."""
    table = source.table
    columns = ["id", *sorted(name for name in table.columns if name != "id")]
    return table.select(**{f"{name} ": table[name] for name in columns})
