"""Stage one: rows are cut into parts by a salted hash of their unit, so that all rows of a unit meet in one part.

The unit is hashed as our own engine reads it; rows of nobody are left out. A piece (Arrow rows of one batch and part)
depends only on those rows, the salt and the number of parts, so a piece that is made again is the same.
"""

from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit import typed_sql as sql
from tacit.engine.derived import kinds_of
from tacit.engine.relation import belongs_to_someone, salted_units, unit_value
from tacit.tables import BatchReader, BatchRecipe, Source, recipe_of

PARTS_MOST = 1 << 12
HASH = "unit_hash"
# Batches are put together up to these sizes before they are cut: many small pieces would each cost a little.
ROWS_TOGETHER, BYTES_TOGETHER = 1 << 20, 1 << 26


@dataclass(frozen=True)
class Cut:
    """How rows of one table are cut: what is computed of them, which columns go on, and into how many parts."""

    recipe: BatchRecipe
    columns: tuple[str, ...]  # columns of the rows that go on
    parts: int


@dataclass(frozen=True)
class Piece:
    """Some bytes on their way: to which part, and what they are."""

    part: int
    kind: int
    data: bytes

    def __repr__(self) -> str:
        return f"Piece(part={self.part}, kind={self.kind}, withheld)"


def cut_of_table(source: Source, unit: str, columns: Iterable[str], salt: str, parts: int) -> Cut:
    table = source.table
    return Cut(recipe_of(source, table.select(**{HASH: hash_of(table, unit, source, salt)})), tuple(columns), parts)


def hash_of(table: sql.Relation, unit: str, source: Source, salt: str) -> sql.Typed:
    """Return the salted hash of each row's unit, NULL where the row is nobody's."""
    value = unit_value(table, unit, kinds_of(source))
    return sql.cases((belongs_to_someone(value), salted_units(value, salt)))


def cut_rows(batches: Iterable[pa.RecordBatch], cut: Cut, kind: int) -> Iterator[Piece]:
    """Yield the pieces of some rows."""
    with closing(BatchReader(cut.recipe)) as reader:
        for rows in put_together(batches):
            computed = reader.run(rows)
            words, known = _hashes(computed.column(HASH))
            if len(rows) != len(computed):
                raise ValueError("a hash is computed for every row")
            yield from _pieces(rows.select(cut.columns), (words, known), cut.parts, kind)


def put_together(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the same rows in larger tables."""
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if not len(batch):
            continue
        waiting.append(batch)
        rows, size = rows + len(batch), size + batch.nbytes
        if rows >= ROWS_TOGETHER or size >= BYTES_TOGETHER:
            yield pa.Table.from_batches(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield pa.Table.from_batches(waiting)


def _hashes(column: pa.ChunkedArray) -> tuple[NDArray[np.uint64], NDArray[np.bool_]]:
    known = column.is_valid().to_numpy()
    words = column.fill_null(0).to_numpy()
    return words.view(np.uint64) if words.dtype == np.int64 else words.astype(np.uint64), known


def _pieces(
    rows: pa.Table, hashed: tuple[NDArray[np.uint64], NDArray[np.bool_]], parts: int, kind: int
) -> Iterator[Piece]:
    words, known = hashed
    part = part_of(words, parts)
    part[~known] = parts
    order = np.argsort(part, kind="stable")
    edges = np.searchsorted(part[order], np.arange(parts + 1))
    body = rows.take(pa.array(order[: edges[parts]])).combine_chunks()
    for at in range(parts):
        if edges[at] < edges[at + 1]:
            yield Piece(at, kind, to_stream(body.slice(edges[at], edges[at + 1] - edges[at])))


def part_of(words: NDArray[np.uint64], parts: int) -> NDArray[np.uint16]:
    """Return the part of each hash: any number of parts, of nearly equal sizes."""
    if not 1 <= parts <= PARTS_MOST:
        raise ValueError("there are 1 to 4096 parts")
    high = words >> np.uint64(32)
    return ((high * np.uint64(parts)) >> np.uint64(32)).astype(np.uint16)


def to_stream(rows: pa.Table) -> bytes:
    """Return rows as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def from_stream(data: Any) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
