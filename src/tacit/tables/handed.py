"""Rows that are handed to our engine as Arrow batches, in the form of `cells.py`: of Parquet files, and of servers.

A table that is handed over is a view of our connection. For a question it is read anew with only the columns that the
question names.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tacit import typed_sql as sql
from tacit.tables.cells import CellReading, select, stored_column
from tacit.typed_sql import quoted

BATCH_BYTES = 1 << 26
# Batches of so many rows are not joined: that copies every cell, and DuckDB's own have 122,880 rows.
ROWS_ENOUGH = 1 << 16
# Views of one source, before its name.
NATIVE, HANDED, NAMED = "read_by_the_engine", "handed_rows", "handed_columns"
VIEWS_MOST = 64

# Yields the batches of some columns, as they are stored; connects and opens when the first batch is wanted.
Read = Callable[[Sequence[CellReading]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class HandedRows:
    """Rows as Arrow batches, in the form in which the engine gets them; each scan reads them anew."""

    read: Read
    readings: Sequence[CellReading]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        schema = pa.schema([(each.name, each.stored) for each in self.readings])
        batches = put_together(self._batches(schema), schema)
        return pa.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(requested_schema)

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in self.read(self.readings):
            cells = [stored_column(pa.chunked_array([batch.column(at)]), each) for at, each in enumerate(self.readings)]
            yield from pa.Table.from_arrays(cells, schema=schema).to_batches()


def put_together(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the same rows with small batches joined: thousands of small files would each cost one batch."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows >= ROWS_ENOUGH or size >= BATCH_BYTES:
            yield from waiting if len(waiting) == 1 else _as_few(waiting, schema)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield from _as_few(waiting, schema)


def _as_few(batches: list[pa.RecordBatch], schema: pa.Schema) -> list[pa.RecordBatch]:
    return pa.Table.from_batches(batches, schema).combine_chunks().to_batches()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class HandedTable:
    """A view of all readable columns in a connection of ours, whose rows are handed over."""

    backend: sql.Connection
    view: sql.Stored  # that relations are about
    read: Read
    readings: Sequence[CellReading]
    by_engine: frozenset[str]  # columns that the engine may read by itself
    # views of the rows with some columns, each made once
    _views: dict[tuple[str, ...], str] = field(default_factory=dict, init=False, compare=False)

    def reading(self, relation: sql.Relation) -> sql.Relation:
        """Return the relation over the cheapest way to read the view that is safe for the columns it names."""
        fields = relation.columns_named()
        named = [each for each in self.readings if each.name in fields]
        if self.by_engine and self.by_engine.issuperset(each.name for each in named):
            return relation.reading(self.view, f"{NATIVE}_{self.view.name}")
        named = named or list(self.readings[:1])
        names = tuple(each.name for each in named)
        if names not in self._views and len(self._views) < VIEWS_MOST:
            self._views[names] = self._made_view(named, f"_{len(self._views)}")
        view = self._views.get(names) or self._made_view(named, "")
        return relation.reading(self.view, view)

    def _made_view(self, named: Sequence[CellReading], suffix: str) -> str:
        handed, columns = (f"{each}_{self.view.name}{suffix}" for each in (HANDED, NAMED))
        self.backend.con.register(handed, HandedRows(self.read, named))
        self.backend.con.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(columns)} AS {select(named, quoted(handed))}")
        return columns


def hand(
    backend: sql.Connection, name: str, read: Read, readings: Sequence[CellReading], by_engine: frozenset[str]
) -> HandedTable:
    """Make the view `name` of all readable columns; reads no row."""
    every = f"every_{HANDED}_{name}"
    backend.con.register(every, HandedRows(read, readings))
    backend.con.execute(f"CREATE TEMP VIEW {quoted(name)} AS {select(readings, every)}")
    return HandedTable(backend, backend.table(name), read, readings, by_engine)
