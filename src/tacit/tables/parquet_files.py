"""Reads Parquet files: local ones by their paths, others as objects that open."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tacit import typed_sql as sql
from tacit.errors import QueryRefused
from tacit.tables.cells import NATIVE, WIDE, CellReading, HandedTable, hand, reading_of
from tacit.typed_sql import quoted, text_of

PARQUET = {".parquet", ".pq"}
BATCH_ROWS = 1 << 17


def open_parquet(backend: sql.Connection, paths: Sequence[str], *, name: str) -> tuple[HandedTable, dict[str, str]]:
    """Make the view `name` of all readable columns, and return the files; other columns come with their type."""
    columns, by_engine = schema_of(paths[0])
    _refuse_other_schemas(paths)
    readings = [reading for reading in columns.values() if isinstance(reading, CellReading)]
    others = {column: kind for column, kind in columns.items() if isinstance(kind, str)}
    if not readings:
        raise QueryRefused("no column of these Parquet files can be read\nhint: convert a column to text or a number")
    if by_engine:
        listed = ", ".join(text_of(path) for path in paths)
        columns_read = ", ".join(quoted(each.name) for each in readings if each.name in by_engine)
        rows = f"read_parquet([{listed}], hive_partitioning = false)"
        backend.con.execute(f"CREATE TEMP VIEW {NATIVE}_{name} AS SELECT {columns_read} FROM {rows}")  # noqa: S608
    return hand(backend, name, partial(batches_of, paths), readings, by_engine), others


def batches_of(paths: Sequence[Any], readings: Sequence[CellReading]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these columns of Parquet files, each a path or an object at an address."""
    names = [each.name for each in readings]
    for path in paths:
        with parquet_file(path) as file:
            yield from (batch.select(names) for batch in file.iter_batches(BATCH_ROWS, columns=names))


def parquet_file(path: Any) -> pq.ParquetFile:
    is_remote = not isinstance(path, str)
    return pq.ParquetFile(path.opened() if is_remote else path, coerce_int96_timestamp_unit="us", pre_buffer=is_remote)


def _refuse_other_schemas(paths: Sequence[str]) -> None:
    """Refuse files that would be read in different ways; a schema equal to the first needs no closer look."""
    wanted = schema_of(paths[0])
    with parquet_file(paths[0]) as first:
        for path in paths[1:]:
            with parquet_file(path) as file:
                same = file.schema.equals(first.schema) and file.schema_arrow.equals(first.schema_arrow)
            if not (same or schema_of(path) == wanted):
                raise QueryRefused(
                    "these Parquet files do not have the same columns and types\nhint: give files with the same schema"
                )


def schema_of(path: Any) -> tuple[dict[str, CellReading | str], frozenset[str]]:
    """Return how each column of a file is read (its type, if it cannot be), and the columns the engine may read."""
    with parquet_file(path) as file:
        return columns_of(file)


def columns_of(file: pq.ParquetFile) -> tuple[dict[str, CellReading | str], frozenset[str]]:
    """Return what `schema_of` does, of a file that is open."""
    leaves = [file.schema.column(index) for index in range(len(file.schema))]
    kinds = {each.name: each.type for each in file.schema_arrow}
    if len(kinds) != len(file.schema_arrow):
        raise QueryRefused("two columns of the table have the same name\nhint: rename one of them")
    rounded = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}  # in nanoseconds
    loose = {leaf.path for leaf in leaves if _is_loose_decimal(leaf)}
    ids = {leaf.path for leaf in leaves if _meaning(leaf) == "UUID"}
    found: dict[str, CellReading | str] = {}
    for name, kind in kinds.items():
        is_id = name in ids and not pa.types.is_nested(kind)
        reading = None if name in loose else reading_of(name, pa.uuid() if is_id else kind)
        reading = replace(reading, rounds=True) if reading is not None and name in rounded else reading
        found[name] = reading or str(kind)
    plain = {
        each.name for each in found.values() if isinstance(each, CellReading) and (each.is_plain or each.name in ids)
    }
    return found, frozenset(plain - rounded)


def _meaning(leaf: Any) -> str:
    return str(json.loads(leaf.logical_type.to_json())["Type"])


def _is_loose_decimal(leaf: Any) -> bool:
    """Whether a decimal is stored as bytes, where some cell may have more bytes than a reader accepts."""
    fixed = leaf.physical_type == "FIXED_LEN_BYTE_ARRAY" and leaf.length <= WIDE
    return _meaning(leaf) == "Decimal" and not fixed and leaf.physical_type not in ("INT32", "INT64")
