"""Reads Parquet files so that no cell can make a question fail.

There are two ways. If every cell of the columns in a question is safe for the engine (ints, floats, dates), the engine
reads the files itself. Other columns may hold text that is not UTF-8, times in other units, or decimals with more
digits than declared. For these the engine gets checked texts and decimals, and whole numbers, and only the columns that
the question names. Which way is taken depends on the schema and the question alone.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tacit import typed_sql as sql
from tacit.errors import QueryRefused
from tacit.tables.cells import WIDE, Reading, quoted, reading_of, select, stored_column
from tacit.tables.connection import literal

BATCH_ROWS, BATCH_BYTES = 1 << 17, 1 << 26
# Batches of so many rows are not joined: that copies every cell, and DuckDB's own have 122,880 rows.
ROWS_ENOUGH = 1 << 16
# Views of one source, before its name.
NATIVE, HANDED, NAMED = "read_by_the_engine", "handed_rows", "handed_columns"
VIEWS_MOST = 64


@dataclass(frozen=True)
class HandedRows:
    """Rows of Parquet files as Arrow batches, in the form in which the engine gets them; each scan reads them anew."""

    paths: Sequence[str]
    readings: Sequence[Reading]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        schema = pa.schema([(each.name, each.stored) for each in self.readings])
        batches = put_together(self._batches(schema), schema)
        return pa.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(requested_schema)

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        names = [each.name for each in self.readings]
        for path in self.paths:
            with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
                for batch in file.iter_batches(BATCH_ROWS, columns=names):
                    columns = [
                        stored_column(pa.chunked_array([batch.column(each.name)]), each) for each in self.readings
                    ]
                    yield from pa.Table.from_arrays(columns, schema=schema).to_batches()


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
class ParquetFiles:
    """Parquet files of one schema, in a connection of ours, and the two ways to read the view they are asked as."""

    backend: sql.Connection
    view: sql.Stored
    paths: Sequence[str]
    readings: Sequence[Reading]
    by_engine: frozenset[str]  # columns the engine may read by itself
    # views of the rows with some columns, each made once
    _views: dict[tuple[str, ...], str] = field(default_factory=dict, init=False, compare=False)

    def reading(self, relation: sql.Table) -> sql.Table:
        """Return the relation over the cheapest way to read the view that is safe for the columns it names."""
        if self._is_read_by_engine(relation):
            return relation.reading(self.view, f"{NATIVE}_{self.view.name}")
        named = self._named(relation) or list(self.readings[:1])
        names = tuple(each.name for each in named)
        if names not in self._views and len(self._views) < VIEWS_MOST:
            self._views[names] = self._made_view(named, f"_{len(self._views)}")
        view = self._views.get(names) or self._made_view(named, "")
        return relation.reading(self.view, view)

    def _is_read_by_engine(self, relation: sql.Table) -> bool:
        return bool(self.by_engine) and self.by_engine.issuperset(each.name for each in self._named(relation))

    def _made_view(self, named: Sequence[Reading], suffix: str) -> str:
        handed, columns = (f"{each}_{self.view.name}{suffix}" for each in (HANDED, NAMED))
        self.backend.con.register(handed, HandedRows(self.paths, named))
        self.backend.con.execute(f"CREATE OR REPLACE TEMP VIEW {quoted(columns)} AS {select(named, quoted(handed))}")
        return columns

    def _named(self, relation: sql.Table) -> list[Reading]:
        fields = relation.columns_named()
        return [each for each in self.readings if each.name in fields]


def open_parquet(backend: sql.Connection, paths: Sequence[str], *, name: str) -> tuple[ParquetFiles, dict[str, str]]:
    """Make the view `name` of all readable columns, and return the files; other columns come with their type."""
    columns, by_engine = schema_of(paths[0])
    _refuse_other_schemas(paths)
    readings = [reading for reading in columns.values() if isinstance(reading, Reading)]
    others = {column: kind for column, kind in columns.items() if isinstance(kind, str)}
    if not readings:
        raise QueryRefused("no column of these Parquet files can be read\nhint: convert a column to text or a number")
    if by_engine:
        listed = ", ".join(literal(path) for path in paths)
        columns_read = ", ".join(quoted(each.name) for each in readings if each.name in by_engine)
        rows = f"read_parquet([{listed}], hive_partitioning = false)"
        backend.con.execute(f"CREATE TEMP VIEW {NATIVE}_{name} AS SELECT {columns_read} FROM {rows}")  # noqa: S608
    every = f"every_{HANDED}_{name}"
    backend.con.register(every, HandedRows(paths, readings))
    backend.con.execute(f"CREATE TEMP VIEW {quoted(name)} AS {select(readings, every)}")
    return ParquetFiles(backend, backend.table(name), paths, readings, by_engine), others


def _refuse_other_schemas(paths: Sequence[str]) -> None:
    """Refuse files that would be read in different ways; a schema equal to the first needs no closer look."""
    first, wanted = _schemas(paths[0]), schema_of(paths[0])
    for path in paths[1:]:
        found = _schemas(path)
        same = found[0].equals(first[0]) and found[1].equals(first[1])
        if not (same or schema_of(path) == wanted):
            raise QueryRefused(
                "these Parquet files do not have the same columns and types\nhint: give files with the same schema"
            )


def _schemas(path: str) -> tuple[Any, pa.Schema]:
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        return file.schema, file.schema_arrow


def schema_of(path: str) -> tuple[dict[str, Reading | str], frozenset[str]]:
    """Return how each column of a file is read (its type, if it cannot be), and the columns the engine may read."""
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        leaves = [file.schema.column(index) for index in range(len(file.schema))]
        kinds = {each.name: each.type for each in file.schema_arrow}
        if len(kinds) != len(file.schema_arrow):
            raise QueryRefused("two columns of the table have the same name\nhint: rename one of them")
    rounded = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}  # in nanoseconds
    loose = {leaf.path for leaf in leaves if _is_loose_decimal(leaf)}
    ids = {leaf.path for leaf in leaves if _meaning(leaf) == "UUID"}
    found: dict[str, Reading | str] = {}
    for name, kind in kinds.items():
        is_id = name in ids and not pa.types.is_nested(kind)
        reading = None if name in loose else reading_of(name, pa.uuid() if is_id else kind)
        reading = replace(reading, rounds=True) if reading is not None and name in rounded else reading
        found[name] = reading or str(kind)
    plain = {each.name for each in found.values() if isinstance(each, Reading) and (each.is_plain or each.name in ids)}
    return found, frozenset(plain - rounded)


def _meaning(leaf: Any) -> str:
    return str(json.loads(leaf.logical_type.to_json())["Type"])


def _is_loose_decimal(leaf: Any) -> bool:
    """Whether a decimal is stored as bytes, where some cell may have more bytes than a reader accepts."""
    fixed = leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" and leaf.length <= WIDE
    return _meaning(leaf) == "Decimal" and not fixed and leaf.physical_type not in ("INT32", "INT64")
