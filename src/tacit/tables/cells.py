"""Defines how each Arrow type is read, so that no cell can make a question fail.

An engine that converts while it scans fails on text that is not UTF-8, a time beyond the range of microseconds, a
decimal with more digits than its type (a buffer of decimal(38, 0) can hold 2^127). So the engine gets checked texts and
decimals, bytes and whole numbers, and SQL that turns them into values, or NULL; only the type of a column decides how.
Such a table of files or servers is a view of our connection, read anew with the columns of each question.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from tacit import typed_sql as sql
from tacit.typed_sql import quoted

WIDE = 16  # bytes of a decimal128
WORD = (1 << 64) - 1
# Seconds from 1970 to the first second of the year 1 and to the last of 9999. Times outside are NULL.
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
DAY = "TRY_CAST({} AS DATE)"
# Longer text is NULL, in a cell and as the result of a function: so the work for one row is bounded.
TEXT_BYTES_MAX = 1 << 15


@dataclass(frozen=True)
class CellReading:
    """A readable column: the Arrow type of its cells, and the SQL that gives them their meaning."""

    name: str
    stored: pa.DataType
    meaning: str
    rounds: bool = False  # whether two different cells may be read as one
    is_instant: bool = False  # whether its times have a zone, and are read in UTC

    @property
    def is_plain(self) -> bool:
        """Whether the engine may read the column by itself."""
        is_checked = pat.is_string(self.stored) or pat.is_large_string(self.stored) or pat.is_decimal(self.stored)
        return self.meaning == quoted(self.name) and not is_checked


def reading_of(name: str, kind: pa.DataType) -> CellReading | None:
    """Return the reading of a column of an Arrow type, or None if some cell of that type could not be read."""
    kind = value_type(kind)
    column = quoted(name)
    if pat.is_float16(kind):
        return CellReading(name, pa.float32(), column)
    if pat.is_duration(kind):
        return CellReading(name, pa.int64(), column)
    if pat.is_decimal32(kind) or pat.is_decimal64(kind) or pat.is_decimal128(kind):
        # engines do not have scales below 0
        return None if kind.scale < 0 else CellReading(name, pa.decimal128(kind.precision, kind.scale), column)
    if kind == pa.timestamp("us") or _is_harmless(kind):
        return CellReading(name, kind, column)
    if pat.is_binary(kind) or pat.is_large_binary(kind) or pat.is_binary_view(kind):
        return CellReading(name, kind, f"CASE WHEN octet_length({column}) <= {TEXT_BYTES_MAX} THEN {column} END")
    if pat.is_timestamp(kind):
        time = _time(column, kind.unit)
        return CellReading(name, pa.int64(), time, rounds=kind.unit == "ns", is_instant=kind.tz is not None)
    if pat.is_date64(kind):
        return CellReading(name, pa.int64(), DAY.format(_time(column, "ms")), rounds=True)
    if isinstance(kind, pa.UuidType):
        return CellReading(name, pa.binary(16), f"TRY_CAST(hex({column}) AS UUID)")
    text = _as_text(kind)
    return None if text is None else CellReading(name, text, column)


def stored_column(column: pa.ChunkedArray, reading: CellReading) -> pa.ChunkedArray:
    """Return a column in the form in which the engine gets it: the same bytes, but with checked texts and decimals."""
    return pa.chunked_array([_stored_chunk(chunk, reading.stored) for chunk in column.chunks], reading.stored)


def _stored_chunk(chunk: pa.Array, stored: pa.DataType) -> pa.Array:
    while pat.is_dictionary(chunk.type) or isinstance(chunk.type, pa.BaseExtensionType):
        chunk = chunk.dictionary_decode() if pat.is_dictionary(chunk.type) else chunk.storage
    if pat.is_decimal(chunk.type):
        return sound_decimals(chunk, stored)
    if pat.is_string(stored) or pat.is_large_string(stored):
        return sound_texts(chunk, stored)
    if chunk.type == stored:
        return chunk
    if pat.is_null(chunk.type) or pat.is_float16(chunk.type):
        return chunk.cast(stored)
    return chunk.view(stored)


def value_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column's cells, without dictionary encoding and extension types."""
    while pat.is_dictionary(kind) or (isinstance(kind, pa.BaseExtensionType) and not isinstance(kind, pa.UuidType)):
        kind = kind.value_type if pat.is_dictionary(kind) else kind.storage_type
    return kind


def select(readings: Iterable[CellReading], rows: str) -> str:
    """Return the SELECT that gives every column its meaning."""
    columns = ", ".join(f"{each.meaning} AS {quoted(each.name)}" for each in readings)
    return f"SELECT {columns} FROM {rows}"  # noqa: S608 - of names, quoted


def _is_harmless(kind: pa.DataType) -> bool:
    binary = pat.is_fixed_size_binary(kind) and kind.byte_width <= TEXT_BYTES_MAX
    number = pat.is_boolean(kind) or pat.is_integer(kind) or pat.is_floating(kind)
    return bool(binary or number or pat.is_date32(kind))


def _as_text(kind: pa.DataType) -> pa.DataType | None:
    """Return the type that text is handed over in; an empty column is text that is all NULL."""
    if pat.is_large_string(kind) or pat.is_string_view(kind):
        return pa.large_string()
    return pa.string() if pat.is_string(kind) or pat.is_null(kind) else None


def _time(column: str, unit: str) -> str:
    """A count of units since 1970 as a time in microseconds, rounded down; NULL if the calendar lacks such a year."""
    per = PER_SECOND[unit]
    low, high = FIRST_SECOND * per, (LAST_SECOND + 1) * per - 1
    if per > 10**6:  # nanoseconds: all of them are inside the calendar
        down = f"CASE WHEN {column} % {per // 10**6} < 0 THEN 1 ELSE 0 END"
        return f"make_timestamp({column} // {per // 10**6} - {down})"
    # the CASE is inside the product: an engine may evaluate a product that a CASE guards
    return f"make_timestamp((CASE WHEN {column} BETWEEN {low} AND {high} THEN {column} END) * {10**6 // per})"


# --- texts ---


def sound_texts(chunk: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return texts as `kind`, NULL if a cell is too long or its bytes are not UTF-8."""
    if pat.is_string_view(chunk.type):
        chunk = chunk.view(pa.binary_view()).cast(pa.large_binary()).view(kind)
    elif pat.is_null(chunk.type):
        chunk = chunk.cast(kind)
    if not len(chunk) or _are_sound(chunk):
        return chunk
    raw = chunk.view(pa.large_binary() if pat.is_large_string(kind) else pa.binary())
    return pa.array([None if cell is None else _sound_text(cell) for cell in raw.to_pylist()], kind)


def _are_sound(texts: pa.Array) -> bool:
    longest = pc.max(pc.binary_length(texts)).as_py()
    if longest is not None and longest > TEXT_BYTES_MAX:
        return False
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _sound_text(cell: bytes) -> str | None:
    try:
        return cell.decode() if len(cell) <= TEXT_BYTES_MAX else None
    except UnicodeDecodeError:
        return None


# --- decimals ---


def sound_decimals(chunk: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return decimals of any width as `kind`, NULL if a cell has more digits than `kind` has."""
    buffer = chunk.buffers()[1]
    if buffer is None or not len(chunk):
        return pa.nulls(len(chunk), kind)
    low, high = _halves(buffer, chunk)
    most = 10**kind.precision - 1
    outside = _is_after(low, high, most) | ~_is_after(low, high, -most - 1)
    if chunk.type == kind and not outside.any():
        return chunk
    words = np.column_stack((low, high.view(np.uint64)))
    read = pa.Array.from_buffers(kind, len(chunk), [None, pa.py_buffer(words)])
    return pc.if_else(pc.and_(chunk.is_valid(), pa.array(~outside)), read, pa.scalar(None, kind))


def _halves(buffer: pa.Buffer, chunk: pa.Array) -> tuple[Any, Any]:
    """Return each number's lower 64 bits, and the upper with its sign."""
    width = chunk.type.byte_width
    if width == WIDE:
        words = np.frombuffer(buffer, np.uint64, 2 * len(chunk), WIDE * chunk.offset)
        return words[::2], words[1::2].view(np.int64)
    whole = np.frombuffer(buffer, f"i{width}", len(chunk), width * chunk.offset).astype(np.int64)
    return whole.view(np.uint64), whole >> 63


def _is_after(low: Any, high: Any, bound: int) -> Any:
    return (high > bound >> 64) | ((high == bound >> 64) & (low > np.uint64(bound & WORD)))


# --- rows that are handed over ---


BATCH_BYTES = 1 << 26
# Batches of this number of rows are not joined: that copies every cell, and DuckDB's own have 122,880 rows.
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
        return self.handing(relation)

    def handing(self, relation: sql.Relation) -> sql.Relation:
        """Return the relation over a view of the columns it names, whose rows are handed over."""
        fields = relation.columns_named()
        named = [each for each in self.readings if each.name in fields] or list(self.readings[:1])
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
