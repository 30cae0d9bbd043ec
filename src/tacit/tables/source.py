"""Opens the source of a table's rows: files, a frame, a DuckDB table or an Ibis table.

Opening reads only the schema, and no row. A connection that we make ourselves is locked: it can reach no other file,
load no extension and change no setting. A user's own connection is left as it is.
"""

import glob
import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
import pyarrow as pa

from tacit.errors import InvalidParameter, QueryRefused
from tacit.memory import reuse_freed_memory
from tacit.tables.cells import TEXT_BYTES_MAX, Reading, reading_of, select, stored_column
from tacit.tables.connection import is_database, lock, named_table, open_database, our_connection, stopping
from tacit.tables.csv import read_csv, read_header
from tacit.tables.frames import frame_to_arrow
from tacit.tables.identity import OpenedFiles, StoredTable, file_aliases, opened_files, stored_table, written_stamp
from tacit.tables.parquet import ParquetFiles, open_parquet, put_together, schema_of
from tacit.tables.schema import ColumnFacts, ColumnType, WrittenFacts

OURS, GIVEN = "protected", "given_frame"
PARQUET = {".parquet", ".pq"}
CSV = {".csv", ".tsv", ".txt"}
NO_COLUMNS: Mapping[str, str] = MappingProxyType({})
# The digits of a decimal that is declared over text or ints; a stored decimal has its own.
DECLARED_DIGITS, DECLARED_SCALE = 18, 6
COARSE_TIMES, FINE_TIMES = (0, 3), 9  # digits of a second
# DuckDB's own functions between text and its bytes.
_encode = ibis.udf.scalar.builtin(lambda text: text, name="encode", signature=(("string",), "binary"))
_octet_length = ibis.udf.scalar.builtin(lambda data: data, name="octet_length", signature=(("binary",), "int64"))
_decode = ibis.udf.scalar.builtin(lambda data, _: data, name="decode", signature=(("binary", "string"), "string"))

_opening = threading.RLock()


@dataclass(frozen=True)
class Source:
    """A protected table, ready for an engine. Its rows are secret; its name and the types of its columns are public."""

    table: ir.Table
    backend: Any
    columns: Mapping[str, ColumnFacts]
    stem: str  # the table's name if the curator gives no other
    identity: str | None  # by which the ledger recognises the table; None for frames
    aliases: tuple[str, ...] = ()  # further identities of its parts: each file's path, and the file behind the path
    files: ParquetFiles | None = None  # Parquet files, which have two ways to be read
    opened: OpenedFiles | None = None  # if the rows are in files
    written: tuple[str, ...] = ()  # the files whose time of last writing shows whether rows may have changed
    others: Mapping[str, str] = field(default_factory=dict)  # columns that cannot be read, with their type
    rounded: frozenset[str] = frozenset()  # columns in which two different cells may be read as equal
    again: "Callable[[], Source] | None" = None  # opens it in a streaming engine; None: a user's own engine

    @contextmanager
    def with_table(self, public: pa.Table | None) -> Iterator[ir.Table | None]:
        """Lend a public table, such as a list of keys, to the source's engine."""
        if public is None:
            yield None
        else:
            yield ibis.memtable(public)

    def refuse_changes(self) -> None:
        """Refuse if a file is gone, or has other columns than when it was opened; reads no row."""
        if self.opened is not None:
            self.opened.refuse_changes()

    def streaming(self) -> "Source":
        """Return the same rows in an engine with one thread that holds at most a few thousand rows at a time.

        Its memory depends on public limits alone, so no memory limit can stop it. A user's own engine stays as it is.
        """
        if self.again is None:
            return self
        with _no_warnings():
            return self.again()

    def stamp(self) -> str | None:
        """Return a text that changes when a file of the source is written; None if there is no file."""
        return written_stamp(self.written) if self.written else None

    def fetch(self, relation: ir.Table, sql: str | None = None) -> pa.Table:
        """Return a relation's rows; `sql` is what `compiled` gave for it, if anything."""
        with stopping():
            if sql is None:
                found: pa.Table = self.backend.to_pyarrow(self._read(relation))
            else:
                found = relation.__pyarrow_result__(self.backend.con.sql(sql).to_arrow_table())
        return found

    def stream(self, relation: ir.Table, batch_rows: int, sql: str | None = None) -> pa.RecordBatchReader:
        """Return a DuckDB relation's rows in batches, made as they are read."""
        reuse_freed_memory()
        with stopping():
            # as Ibis's to_pyarrow does; its to_pyarrow_batches calls a method that DuckDB 2 does not have
            found = self.backend._to_duckdb_relation(self._read(relation)) if sql is None else self.backend.con.sql(sql)
            reader = found.to_arrow_reader(batch_rows)
            return pa.RecordBatchReader.from_batches(reader.schema, put_together(reader, reader.schema))

    def compiled(self, relation: ir.Table) -> str | None:
        """Return the SQL of a relation, valid as long as the relation; None if it must be compiled for every read."""
        if self.files is not None and not self.files.is_read_by_engine(relation):
            return None
        if any(kind.is_null() for kind in relation.schema().types):  # Ibis converts such columns itself
            return None
        read = self._read(relation)
        self.backend._run_pre_execute_hooks(read)
        return str(self.backend.compile(read))

    def _read(self, relation: ir.Table) -> ir.Table:
        return relation if self.files is None else self.files.reading(relation, self.table)


def open_source(source: Any, written: Mapping[str, WrittenFacts]) -> Source:
    """Return a source from a path or glob, a frame, a (DuckDB connection, table name) pair, or an Ibis table.

    A source that is already open gets these facts instead of its own.
    """
    with _no_warnings():
        return _opened(source, written)


@contextmanager
def _no_warnings() -> Iterator[None]:
    """Open a source without warnings, even where warnings are errors.

    Rows may decide whether a source is opened again, so a warning would show it. Ibis also uses a name that DuckDB will
    drop, and the user cannot change that. Filters of warnings belong to the whole process, so this takes a lock.
    """
    with _opening, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _opened(source: Any, written: Mapping[str, WrittenFacts]) -> Source:
    if isinstance(source, Source):
        again = _described(
            source.table, source.backend, written, stem=source.stem, identity=source.identity, others=source.others
        )
        again = replace(again, files=source.files, opened=source.opened, again=source.again, rounded=source.rounded)
        return replace(again, aliases=source.aliases, written=source.written)
    if isinstance(source, str | os.PathLike):
        return _from_files(_path_text(source), written)
    if isinstance(source, ir.Table):
        return _from_ibis(source, written)
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], str):
        return _from_connection(source[0], source[1], written)
    frame = frame_to_arrow(source)
    if frame is None:
        raise InvalidParameter(
            f"a {type(source).__name__} cannot be opened as a table\nhint: give a path or glob of Parquet or CSV"
            " files, a pandas, Polars or Arrow frame, (duckdb_connection, 'table'), or an Ibis table"
        )
    return _from_frame(frame, written)


def _path_text(source: "str | os.PathLike[str]") -> str:
    path = os.fspath(source)
    if not isinstance(path, str):
        raise InvalidParameter("a path must be text, not bytes\nhint: os.fsdecode(path)")
    return path


def _from_frame(frame: pa.Table, written: Mapping[str, WrittenFacts], *, streams: bool = False) -> Source:
    _refuse_duplicates(frame.column_names)
    found = {field.name: reading_of(field.name, field.type) for field in frame.schema}
    readings = [reading for reading in found.values() if reading is not None]
    others = {field.name: str(field.type) for field in frame.schema if found[field.name] is None}
    if not readings:
        raise InvalidParameter(
            "the frame has no column of a type that can be read\nhint: convert a column to text or a number"
        )
    backend = our_connection()
    try:
        handed = {reading.name: stored_column(frame.column(reading.name), reading) for reading in readings}
        backend.con.register(GIVEN, pa.table(handed))
        backend.con.execute(f"CREATE TEMP VIEW {OURS} AS {select(readings, GIVEN)}")
    except Exception:  # noqa: BLE001 - the engine's text may quote a cell
        raise InvalidParameter(
            "the frame has a column of a type that cannot be read\nhint: leave out that column, or convert it"
        ) from None
    lock(backend, [], streams=streams)
    described = _described(backend.table(OURS), backend, written, stem="data", identity=None, others=others)
    return replace(described, again=partial(_from_frame, frame, {}, streams=True), rounded=_rounded(readings))


def _rounded(readings: Iterable[Reading]) -> frozenset[str]:
    return frozenset(reading.name for reading in readings if reading.rounds)


def _from_files(pattern: str, written: Mapping[str, WrittenFacts]) -> Source:
    if is_database(pattern):
        return _from_database(pattern, written)
    paths = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern] if os.path.isfile(pattern) else []
    if not paths:
        raise QueryRefused(
            f"there is no file at {pattern!r}\nhint: give the path of a Parquet or CSV file, a glob of them, or a table"
            " of a DuckDB file: 'air.duckdb?table=flights'"
        )
    paths = [os.path.realpath(path) for path in paths]
    if any(glob.has_magic(path) for path in paths):
        raise QueryRefused(
            f"a file of {pattern!r} has *, ? or [ in its path, which an engine would read as a pattern"
            "\nhint: rename the file or its folder"
        )
    return _from_paths(paths, pattern, written)


def _from_paths(
    paths: list[str], pattern: str, written: Mapping[str, WrittenFacts], *, streams: bool = False
) -> Source:
    endings = {Path(path).suffix.lower() for path in paths}
    backend = our_connection()
    if not (endings <= PARQUET or endings <= CSV):
        raise QueryRefused(
            f"{pattern!r} does not end like a Parquet or CSV file\nhint: rename it, or read it into a frame"
        )
    files, others = None, dict[str, str]()
    try:
        if endings <= PARQUET:
            files, others = open_parquet(backend, paths, name=OURS)
        else:
            read_csv(backend, paths, name=OURS)
        opened = opened_files(paths, schema_of if endings <= PARQUET else read_header)
        table = backend.table(OURS)
    except QueryRefused:
        raise
    except Exception:  # noqa: BLE001 - the engine's text may quote a cell
        raise QueryRefused(
            f"{pattern!r} cannot be read as the format of its ending\nhint: check that the file is complete"
        ) from None
    lock(backend, paths, streams=streams)
    stem = Path(paths[0]).stem if len(paths) == 1 else Path(pattern).stem.strip("*?[]") or "data"
    # a glob is identified by its pattern: a new file in it is like new rows in a file
    identity = f"glob:{_whole_pattern(pattern)}" if glob.has_magic(pattern) else f"file:{paths[0]}"
    described = _described(table, backend, written, stem=stem or "data", identity=identity, others=others)
    again = partial(_from_paths, paths, pattern, {}, streams=True)
    rounded = frozenset[str]() if files is None else _rounded(files.readings)
    described = replace(described, files=files, opened=opened, again=again, rounded=rounded)
    return replace(described, aliases=file_aliases(paths), written=tuple(paths))


def _whole_pattern(pattern: str) -> str:
    """Return a glob as an absolute path, with links in its folder resolved unless the folder is itself a pattern."""
    folder, name = os.path.split(os.path.abspath(pattern))
    return os.path.join(folder if glob.has_magic(folder) else os.path.realpath(folder), name)


def _from_database(text: str, written: Mapping[str, WrittenFacts], *, streams: bool = False) -> Source:
    database = open_database(text)
    source = _from_backend(*database, written)
    lock(source.backend, [], streams=streams)
    return replace(source, again=partial(_from_database, text, {}, streams=True))


def _from_connection(connection: Any, name: str, written: Mapping[str, WrittenFacts]) -> Source:
    if not type(connection).__module__.startswith(("duckdb", "_duckdb")):
        raise InvalidParameter(
            "the first item of the pair must be a DuckDB connection\nhint: (duckdb.connect('file.db'), 'visits')"
        )
    return _from_backend(ibis.duckdb.from_connection(connection), name, written)


def _from_backend(backend: Any, name: str, written: Mapping[str, WrittenFacts]) -> Source:
    table, stem = named_table(backend, name)
    return _from_stored(stored_table(table), written, stem=stem)


def _from_ibis(table: ir.Table, written: Mapping[str, WrittenFacts]) -> Source:
    return _from_stored(stored_table(table), written, stem="data")


def _from_stored(stored: StoredTable, written: Mapping[str, WrittenFacts], *, stem: str) -> Source:
    plain = _plain_cells(stored.table, backend := stored.table.get_backend())
    others = dict.fromkeys(stored.generated, "a generated column")
    described = _described(plain.drop(*others), backend, written, stem=stem, identity=stored.identity, others=others)
    kinds = stored.table.schema().items()
    rounded = frozenset(name for name, kind in kinds if isinstance(kind, dt.Timestamp) and kind.scale == FINE_TIMES)
    return replace(described, aliases=stored.aliases, written=stored.written, rounded=rounded)


def _plain_cells(table: ir.Table, backend: Any) -> ir.Table:
    """Return a DuckDB user's table with every text compared by its bytes, and every time in microseconds.

    An ENUM is hashed by its code, which another row's value can change, and a collation takes different units or keys
    for equal. Converting texts to bytes and back removes both. A time beyond the range of microseconds is NULL.
    """
    _refuse_other_meanings(backend)
    plain = {}
    for name, found in table.schema().items():
        if found.is_string():
            stored = _encode(table[name])
            text = _decode(stored, "replace")
            whole = (_octet_length(stored) <= TEXT_BYTES_MAX) & (_encode(text) == stored)
            plain[name] = ibis.cases((whole, text), else_=ibis.null("string"))
        elif found.is_binary():
            plain[name] = ibis.cases(
                (_octet_length(table[name]) <= TEXT_BYTES_MAX, table[name]), else_=ibis.null(found)
            )
        elif isinstance(found, dt.Timestamp) and found.scale in COARSE_TIMES:
            plain[name] = table[name].try_cast("timestamp(6)")
    return table.mutate(**plain) if plain else table


def _refuse_other_meanings(backend: Any) -> None:
    """Refuse a user's DuckDB connection that changes how texts are compared, or replaces a built-in function."""
    if backend.con.execute("SELECT current_setting('default_collation')").fetchall()[0][0]:
        raise QueryRefused(
            "this DuckDB connection has a default collation, which can treat different units as equal"
            "\nhint: RESET default_collation, or open another connection"
        )
    # filtered in Python, because any SQL function may be replaced by the user's
    functions = backend.con.execute("SELECT function_name, internal FROM duckdb_functions()").fetchall()
    built_in = {name.lower() for name, is_internal in functions if is_internal}
    for name, is_internal in functions:
        if not is_internal and name.lower() in built_in:
            raise QueryRefused(
                f"this DuckDB connection has a macro '{name}' that replaces DuckDB's function: no row could be bounded"
                "\nhint: DROP the macro, or open another connection"
            )


def _described(
    table: ir.Table,
    backend: Any,
    written: Mapping[str, WrittenFacts],
    *,
    stem: str,
    identity: str | None,
    others: Mapping[str, str] = NO_COLUMNS,
) -> Source:
    """Give every column its public facts; a declared type wins, and the engine reads the column as that.

    `others` are columns that cannot be read, with their type: known by name, and in no question.
    """
    _refuse_duplicates([*table.columns, *others])
    for name in written:
        if name in others:
            raise QueryRefused(
                f"columns= names '{name}', but its stored type, {others[name]}, cannot be read for every row"
                "\nhint: convert it to text or a number where the table is made"
            )
        if name not in table.columns:
            raise QueryRefused(
                f"columns= names '{name}', but the table has no such column"
                f"\nhint: its columns are {', '.join(table.columns)}"
            )
    columns = {name: ColumnFacts(type="other") for name in others}
    for name, found in table.schema().items():
        facts = written.get(name, WrittenFacts())
        digits, scale = DECLARED_DIGITS, DECLARED_SCALE
        if isinstance(found, dt.Decimal):
            digits, scale = found.precision or 38, found.scale or 0
        columns[name] = ColumnFacts(
            type=facts.type or _type_of(found),
            between=facts.between,
            step=facts.step,
            keys=facts.keys,
            scale=scale,
            digits=digits,
        )
    return Source(table, backend, columns, stem, identity, others=others)


def _type_of(found: dt.DataType) -> ColumnType:
    checks: tuple[tuple[bool, ColumnType], ...] = (
        (found.is_boolean(), "bool"),
        (found.is_integer(), "int"),
        (found.is_floating(), "float"),
        (found.is_decimal() and (found.scale or 0) < 38, "decimal"),  # one digit stays before the point
        (found.is_string(), "text"),
        (found.is_date(), "date"),
        (found.is_timestamp(), "timestamp"),
    )
    return next((kind for matches, kind in checks if matches), "other")


def _refuse_duplicates(names: Any) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise QueryRefused(f"two columns of the table are named '{name}' (ignoring case)\nhint: rename one of them")
        seen.add(name.lower())
