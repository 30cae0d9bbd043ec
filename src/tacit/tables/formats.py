"""Opens the source of a table's rows: files, a frame, a DuckDB table or an Ibis table; or several in one connection.

Opening reads only the schema, and no row. A connection that we make ourselves is locked: it can reach no other file,
load no extension and change no setting. A user's own connection is left as it is.

CSV files are read so that no row can change the structure of the file or another row. Names and delimiter come only
from the first line. Every later line is a row by itself, however the first one ends: a quote that is never closed ends
with its own line. A line counts if it has the first line's number of fields and its quotes are closed; any other is
left out, and so is one that is not UTF-8 or is megabytes long. Every field is text, an empty one NULL. A line break
inside a field therefore breaks its row (docs/sharp-edges.md).

Parquet files are read so that no cell can make a question fail. There are two ways. If every cell of the columns in a
question is safe for the engine (ints, floats, dates), the engine reads the files itself. Other columns may hold text
that is not UTF-8, times in other units, or decimals with more digits than declared. For these the engine gets checked
texts and decimals, and whole numbers, and only the columns that the question names. Which way is taken depends on the
schema and the question alone.
"""

import csv
import glob
import os
import threading
import warnings
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa

from tacit import typed_sql as sql
from tacit.errors import InvalidParameter, QueryRefused
from tacit.tables.cells import (
    TEXT_BYTES_MAX,
    HandedTable,
    reading_of,
    select,
    stored_column,
)
from tacit.tables.connection import is_database, lock, named_table, open_database, our_connection
from tacit.tables.elsewhere import Elsewhere
from tacit.tables.frames import frame_to_arrow
from tacit.tables.identity import (
    StoredTable,
    file_aliases,
    is_delta_folder,
    is_ibis,
    named_by_ibis,
    opened_files,
    refuse_parts_of_tables,
    stored_table,
)
from tacit.tables.parquet_files import PARQUET, open_parquet, schema_of
from tacit.tables.schema import ColumnFacts, WrittenFacts
from tacit.tables.source import Own, Source, described, refuse_duplicates
from tacit.tables.sqlite_table import is_sqlite, table_in, table_of
from tacit.typed_sql import quoted, text_of

OURS = "protected"
REMOTE = ("s3://", "gs://", "https://", "http://")
STORES = ("s3://", "gs://")
ICEBERG = "iceberg://"
POSTGRES = ("postgresql://", "postgres://")
SPARK = ("spark://", "sc://")
CSV = {".csv", ".tsv", ".txt"}
COARSE_TIMES, FINE_TIMES = (0, 3), 9  # digits of a second
# DuckDB's own functions between text and its bytes.
_encode = sql.function("encode", "binary")
_decode = sql.function("decode", "string")

_opening = threading.RLock()

# The sources that were opened together last, by the connection of the first of them and by what they are.
_together: "WeakKeyDictionary[Any, OrderedDict[tuple[Own, ...], tuple[Source, ...]]]" = WeakKeyDictionary()
TOGETHER_MOST = 4


def open_source(source: Any, written: Mapping[str, WrittenFacts], *, spark: Any = None) -> Source:
    """Return the source of a path or glob, a frame, a (DuckDB connection, table name) pair, an Ibis table, or an open
    source with these facts; `spark` is the session of a table of Spark."""
    if type(source).__module__.startswith("pyspark.") and type(source).__name__ == "DataFrame":
        raise QueryRefused(
            "a Spark DataFrame is a computation, which may compute across rows: one person could change others' rows"
            "\nhint: store it (frame.write.saveAsTable('clinic.visits')) and give its name:"
            " tacit.table('spark://clinic.visits', spark=session, ...)"
        )
    if isinstance(source, str) and source.startswith(SPARK):
        from tacit.tables.spark_tables import open_spark  # it needs what is here

        return open_spark(source, spark, written)
    if spark is not None:
        raise InvalidParameter(
            "spark= is for tables of Spark\nhint: tacit.table('spark://clinic.visits', spark=session)"
        )
    with no_warnings():
        return _opened(source, written)


def open_together(sources: Sequence[Source], *, streams: bool = False) -> tuple[Source, ...]:
    """Return sources as one connection reads them, each with its own facts; no row is read.

    Tables of a user's own connection are there already, and cannot be read with ours. The connections used last are
    kept: to open one takes longer than most questions. One that `streams` belongs to one question.
    """
    if all(source.backend.con is sources[0].backend.con for source in sources):
        return tuple(sources)
    places = [None if source.elsewhere is None else source.elsewhere.place for source in sources]
    if any(place is not places[0] for place in places[1:]):
        raise QueryRefused(
            "these two tables cannot be read together: their rows are not in the same engine"
            "\nhint: give both as tables of one Spark session, or both as files or frames"
        )
    ours = [source.own for source in sources if source.own is not None]
    if len(ours) < len(sources):
        raise QueryRefused(
            "these two tables cannot be read together: one is in a DuckDB connection of yours and the other is not"
            "\nhint: give both as tables of one connection, or both as files or frames"
        )
    with no_warnings():
        opened = _opened_together(ours, streams=True) if streams else _kept_together(sources[0].backend.con, ours)
    return tuple(replace(each, columns=source.columns) for each, source in zip(opened, sources, strict=True))


def _kept_together(first: Any, ours: Sequence[Own]) -> tuple[Source, ...]:
    kept, which = _together.setdefault(first, OrderedDict()), tuple(ours)
    if which not in kept:
        kept[which] = _opened_together(ours, streams=False)
    kept.move_to_end(which)
    if len(kept) > TOGETHER_MOST:
        kept.popitem(last=False)
    return kept[which]


def _opened_together(ours: Sequence[Own], *, streams: bool) -> tuple[Source, ...]:
    backend = our_connection()
    opened = tuple(own.into(backend, f"{OURS}_{place}") for place, own in enumerate(ours))
    lock(backend, [path for own in ours for path in own.paths], streams=streams)
    return opened


def open_elsewhere(
    elsewhere: Elsewhere, written: Mapping[str, WrittenFacts], *, stem: str, identity: str, others: Mapping[str, str]
) -> Source:
    """Return the source that stands for rows which another engine keeps; `others` are columns that cannot be read."""
    with no_warnings():
        source = in_our_engine(Own(partial(_elsewhere_into, elsewhere, others)), {})
        source = replace(source, stem=stem, identity=identity)
        return replace(_with_facts(source, written), again=None)


def _elsewhere_into(elsewhere: Elsewhere, others: Mapping[str, str], backend: sql.Connection, name: str) -> Source:
    source = _frame_into(elsewhere.schema.empty_table(), backend, name)
    more = {column: ColumnFacts(type="other") for column in others}
    columns = {**source.columns, **more}
    return replace(source, elsewhere=elsewhere, others={**source.others, **others}, columns=columns)


def run_public(relation: sql.Relation) -> pa.Table:
    """Return the rows of a relation over public tables, from an engine for these alone; they are not secret."""
    with no_warnings():
        return _public_engine(os.getpid()).to_arrow(relation)


@lru_cache(maxsize=1)
def _public_engine(_process: int) -> sql.Connection:
    """Return the engine of public tables; a forked process has none of its parent's threads, so it has its own."""
    backend = our_connection()
    lock(backend, [])
    return backend


@contextmanager
def no_warnings() -> Iterator[None]:
    """Open a source without warnings, even where they are errors: rows may decide whether it is opened again. Filters
    of warnings are the whole process's, so this takes a lock."""
    with _opening, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _opened(source: Any, written: Mapping[str, WrittenFacts]) -> Source:
    if isinstance(source, Source):
        return _with_facts(source, written)
    if isinstance(source, str | os.PathLike):
        path = os.fspath(source)
        if not isinstance(path, str):
            raise InvalidParameter("a path must be text, not bytes\nhint: os.fsdecode(path)")
        return _at_path(path, written)
    if type(source).__module__.startswith(("deltalake.", "pyiceberg.table")):
        return _snapshot(_lakes().lake_table(source), written)
    if is_ibis(source):
        return _from_stored(stored_table(named_by_ibis(source)), written, stem="data")
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], str):
        return _from_connection(source[0], source[1], written)
    frame = frame_to_arrow(source)
    if frame is None:
        raise InvalidParameter(
            f"a {type(source).__name__} cannot be opened as a table\nhint: give a path or glob of Parquet or CSV"
            " files, an address with ?table=, a pandas, Polars or Arrow frame, (connection, 'table'), or an Ibis table"
        )
    refuse_duplicates(frame.column_names)
    if all(reading_of(field.name, field.type) is None for field in frame.schema):
        raise InvalidParameter(
            "the frame lacks a column of a type that can be read\nhint: convert a column to text or a number"
        )
    return in_our_engine(Own(partial(_frame_into, frame)), written)


def _at_path(path: str, written: Mapping[str, WrittenFacts]) -> Source:
    if path.lower().startswith(POSTGRES):
        return in_our_engine(Own(partial(_postgres().into, _postgres().table_at(path))), written)
    if path.lower().startswith(ICEBERG):
        return _snapshot(_lakes().iceberg_table(path), written)
    if is_delta_folder(path) or (path.lower().startswith(STORES) and Path(path).suffix.lower() not in PARQUET | CSV):
        return _snapshot(_lakes().delta_table(path), written)
    if path.lower().startswith(REMOTE):
        return in_our_engine(Own(_remote().remote_files(path).into), written)
    if "://" in path:  # its rest may have a password
        raise QueryRefused(
            f"addresses of {path.partition('://')[0]}:// are not read\nhint: give s3://, gs://, https://,"
            " postgresql://, iceberg:// or spark://; a SQLite file by its path; of another database, its rows as a"
            " frame or a Parquet file"
        )
    return _from_files(path, written)


def _with_facts(source: Source, written: Mapping[str, WrittenFacts]) -> Source:
    """Return a source with these facts of its columns instead of earlier ones."""
    again = described(
        source.table, source.backend, written, stem=source.stem, identity=source.identity, others=source.others
    )
    return replace(source, columns=again.columns)


def _postgres() -> Any:
    """Return the module that opens tables of PostgreSQL; what it needs comes with an extra."""
    try:
        from tacit.tables import postgres_table
    except ModuleNotFoundError:
        raise QueryRefused(
            "tables of a PostgreSQL server need a package that is not installed\nhint: pip install 'tacit[postgres]'"
        ) from None
    return postgres_table


def _remote() -> Any:
    """Return the module that reads files at an address; its package comes with an extra."""
    try:
        from tacit.tables import remote_files
    except ModuleNotFoundError:
        raise QueryRefused(
            "files at an address need a package that is not installed\nhint: pip install 'tacit[remote]'"
        ) from None
    return remote_files


def _lakes() -> Any:
    from tacit.tables import lakes  # it needs what is here

    return lakes


def _snapshot(table: Any, written: Mapping[str, WrittenFacts]) -> Source:
    return in_our_engine(Own(partial(_lakes().into, table)), written)


def in_our_engine(own: Own, written: Mapping[str, WrittenFacts], *, streams: bool = False) -> Source:
    """Open a source alone in a connection of ours."""
    backend = our_connection()
    source = own.into(backend, OURS)
    lock(backend, own.paths, streams=streams)

    def again() -> Source:
        with no_warnings():
            return in_our_engine(own, {}, streams=True)

    return replace(_with_facts(source, written), again=again, own=own)


def _frame_into(frame: pa.Table, backend: sql.Connection, name: str) -> Source:
    found = {field.name: reading_of(field.name, field.type) for field in frame.schema}
    readings = [reading for reading in found.values() if reading is not None]
    others = {field.name: str(field.type) for field in frame.schema if found[field.name] is None}
    given = f"given_{name}"
    try:
        handed = {reading.name: stored_column(frame.column(reading.name), reading) for reading in readings}
        backend.con.register(given, pa.table(handed))
        backend.con.execute(f"CREATE TEMP VIEW {quoted(name)} AS {select(readings, given)}")
    except Exception:  # noqa: BLE001 - the engine's text may quote a cell
        raise InvalidParameter(
            "the frame has a column of a type that cannot be read\nhint: leave out that column, or convert it"
        ) from None
    return described(backend.table(name), backend, {}, stem="data", identity=None, others=others, readings=readings)


def _from_files(pattern: str, written: Mapping[str, WrittenFacts]) -> Source:
    if is_sqlite(pattern):
        return in_our_engine(Own(table_in(pattern).into), written)
    if is_database(pattern):
        return in_our_engine(Own(partial(_database_into, pattern)), written)
    paths = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern] if os.path.isfile(pattern) else []
    if not paths:
        raise QueryRefused(
            f"no file exists at {pattern!r}\nhint: give the path of a Parquet or CSV file, a glob of them, or a "
            "table of a DuckDB file: 'air.duckdb?table=flights'"
        )
    paths = [os.path.realpath(path) for path in paths]
    refuse_parts_of_tables(paths)
    if any(glob.has_magic(path) for path in paths):
        raise QueryRefused(
            f"a file of {pattern!r} has *, ? or [ in its path, which an engine would read as a pattern"
            "\nhint: rename the file or its folder"
        )
    endings = {Path(path).suffix.lower() for path in paths}
    if not (endings <= PARQUET or endings <= CSV):
        raise QueryRefused(
            f"{pattern!r} does not end like a Parquet or CSV file\nhint: rename it, or read it into a frame"
        )
    return in_our_engine(Own(partial(_files_into, paths, pattern), tuple(paths)), written)


def _files_into(paths: list[str], pattern: str, backend: sql.Connection, name: str) -> Source:
    is_parquet = {Path(path).suffix.lower() for path in paths} <= PARQUET
    files, others = tuple[HandedTable, ...](), dict[str, str]()
    try:
        if is_parquet:
            found, others = open_parquet(backend, paths, name=name)
            files = (found,)
        else:
            read_csv(backend, paths, name=name)
        opened = opened_files(paths, schema_of if is_parquet else read_header)
        table = backend.table(name)
    except QueryRefused:
        raise
    except Exception:  # noqa: BLE001 - the engine's text may quote a cell
        raise QueryRefused(
            f"{pattern!r} cannot be read as the format of its ending\nhint: check that the file is complete"
        ) from None
    stem = Path(paths[0]).stem if len(paths) == 1 else Path(pattern).stem.strip("*?[]") or "data"
    # a glob is identified by its pattern: a new file in it is like new rows in a file
    identity = f"file:{paths[0]}"
    if glob.has_magic(pattern):  # links in its folder are resolved, unless the folder is itself a pattern
        folder, last = os.path.split(os.path.abspath(pattern))
        identity = f"glob:{os.path.join(folder if glob.has_magic(folder) else os.path.realpath(folder), last)}"
    readings = [reading for each in files for reading in each.readings]
    source = described(table, backend, {}, stem=stem or "data", identity=identity, others=others, readings=readings)
    return replace(source, files=files, opened=(opened,), aliases=file_aliases(paths), written=tuple(paths))


def _database_into(text: str, backend: sql.Connection, name: str) -> Source:
    return _from_backend(backend, open_database(backend, text, name=f"attached_{name}"), {})


def _from_connection(connection: Any, name: str, written: Mapping[str, WrittenFacts]) -> Source:
    is_remote = type(connection).__module__.startswith(("psycopg", "adbc_driver_manager"))
    if is_remote and (table := _postgres().table_of(connection, name)) is not None:
        return in_our_engine(Own(partial(_postgres().into, table)), written)
    if type(connection).__module__ == "sqlite3":
        return in_our_engine(Own(table_of(connection, name).into), written)
    if not type(connection).__module__.startswith(("duckdb", "_duckdb")):
        raise InvalidParameter(
            "the first item of the pair must be a connection of DuckDB, PostgreSQL or SQLite, by its own driver"
            "\nhint: (duckdb.connect('file.db'), 'visits'), or (psycopg.connect(...), 'clinic.visits')"
        )
    return _from_backend(sql.Connection(connection), name, written)


def _from_backend(backend: sql.Connection, name: str, written: Mapping[str, WrittenFacts]) -> Source:
    table, stem = named_table(backend, name)
    return _from_stored(stored_table(table), written, stem=stem)


def _from_stored(stored: StoredTable, written: Mapping[str, WrittenFacts], *, stem: str) -> Source:
    plain = _plain_cells(stored.table)
    others = dict.fromkeys(stored.generated, "a generated column")
    source = described(
        plain.drop(*others), stored.table.connection, written, stem=stem, identity=stored.identity, others=others
    )
    kinds = stored.table.schema().items()
    rounded = frozenset(name for name, kind in kinds if kind.is_timestamp() and kind.scale == FINE_TIMES)
    instants = frozenset(name for name, kind in kinds if kind.is_zoned)
    return replace(source, aliases=stored.aliases, written=stored.written, rounded=rounded, instants=instants)


def _plain_cells(table: sql.Stored) -> sql.Relation:
    """Return a DuckDB user's table with every text compared by its bytes, and every time in microseconds.

    An ENUM is hashed by a code that another row can change, and a collation takes different units for equal.
    """
    _refuse_other_meanings(table.connection)
    plain = {}
    for name, found in table.schema().items():
        if found.is_string():
            stored = _encode(table[name])
            text = _decode(stored, "replace")
            whole = (stored.byte_length() <= TEXT_BYTES_MAX) & (_encode(text) == stored)
            plain[name] = sql.cases((whole, text), else_=sql.null("string"))
        elif found.is_binary():
            plain[name] = sql.cases((table[name].byte_length() <= TEXT_BYTES_MAX, table[name]), else_=sql.null(found))
        elif found.is_timestamp() and found.scale in COARSE_TIMES:
            plain[name] = table[name].cast("timestamp(6)")
    return table.mutate(**plain) if plain else table


def _refuse_other_meanings(backend: sql.Connection) -> None:
    """Refuse a user's DuckDB connection that compares texts otherwise, replaces a function, or prints row counts."""
    if backend.con.execute("SELECT current_setting('default_collation')").fetchall()[0][0]:
        raise QueryRefused(
            "this DuckDB connection has a default collation, which can treat different units as equal"
            "\nhint: RESET default_collation, or open another connection"
        )
    if backend.con.execute("SELECT current_setting('enable_profiling')").fetchall()[0][0]:
        raise QueryRefused(
            "this DuckDB connection has profiling on, which prints exactly how many rows each step of a question has"
            "\nhint: RESET enable_profiling, or open another connection"
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


# --- CSV ---


DELIMITERS = (",", "\t", ";", "|")
HEADER_BYTES_MAX = 1_000_000
LINE_BYTES_MAX = 2_000_000
# A delimiter that never occurs: without a delimiter or a quote to find, the engine returns whole lines.
NEVER = "\x01\x02\x03\x04"
# Both \r and \n end a line. With \r\n, the engine would take \r and any one character after it for a line end.
LINE_END = r"'\n'"


def read_csv(backend: Any, paths: Sequence[str], *, name: str) -> None:
    """Make the view `name` of CSV files with one header: a column of text for each of its names."""
    headers = [read_header(path) for path in paths]
    if any(header != headers[0] for header in headers):
        raise QueryRefused("these CSV files do not have the same first line\nhint: give files with the same columns")
    names, delimiter = headers[0]
    backend.con.execute(f"CREATE TEMP VIEW {quoted(name)} AS {csv_rows(paths, names, delimiter)}")


def csv_rows(paths: Sequence[str], names: Sequence[str], delimiter: str) -> str:
    """Return the SELECT of the rows of CSV files with these names in their first line."""
    return _fields(_lines(paths), names, delimiter)


def read_header(path: str) -> tuple[tuple[str, ...], str]:
    """Return the names and the delimiter of a CSV file, only from its first line."""
    with Path(path).open("rb") as file:
        line = file.readline(HEADER_BYTES_MAX)
    try:
        text = line.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        text = ""
    if not text.strip() or "\r" in text:
        raise QueryRefused(
            f"{path!r} does not begin with a line of column names\nhint: write the names of the columns, in UTF-8, in"
            " the first line, and end it with a newline"
        )
    delimiter = max(DELIMITERS, key=text.count)
    names = tuple(next(csv.reader([text], delimiter=delimiter)))
    for number, each in enumerate(names, 1):
        if not each.strip():
            raise QueryRefused(f"column {number} of {path!r} lacks a name\nhint: name every column in the first line")
    refuse_duplicates(names)
    return names, delimiter


def _lines(paths: Sequence[str]) -> str:
    """Every line as it stands; a line that is too long or not UTF-8 is left out by itself."""
    options = {
        "columns": "{'line': 'VARCHAR'}",
        "auto_detect": "false",
        "header": "true",
        "delim": text_of(NEVER),
        "quote": "''",
        "escape": "''",
        "comment": "''",
        "new_line": LINE_END,
        "max_line_size": str(LINE_BYTES_MAX),
        "ignore_errors": "true",
        "strict_mode": "false",
        "null_padding": "false",
        "hive_partitioning": "false",  # a folder named line=5 would be a column
    }
    listed = ", ".join(text_of(path) for path in paths)
    return f"read_csv([{listed}], {', '.join(f'{option} = {value}' for option, value in options.items())})"


def _fields(lines: str, names: Sequence[str], delimiter: str) -> str:
    """Lines as fields: split without a quote, otherwise parsed by a pattern."""
    between = "\\|" if delimiter == "|" else delimiter  # as a pattern writes it
    field = f'"(?:[^"]|"")*"|[^"{delimiter}][^{delimiter}]*|'
    pattern = text_of("^" + between.join([f"({field})"] * len(names)) + "$")
    shape = text_of("^" + between.join([f"(?:{field})"] * len(names)) + "$")
    fields_taken = ", ".join(f"'f{index}'" for index in range(len(names)))
    divided = text_of(delimiter)
    counted = f"length(line) - length(replace(line, {divided}, '')) = {len(names) - 1}"
    has_quote = "contains(line, '\"')"
    # patterns are slow, and each CASE keeps them from lines without a quote
    taken = f"CASE WHEN {has_quote} THEN regexp_extract(line, {pattern}, [{fields_taken}]) END AS taken"
    split = f"CASE WHEN NOT {has_quote} THEN string_split(line, {divided}) END AS split"
    whole = f"line <> '' AND CASE WHEN {has_quote} THEN regexp_matches(line, {shape}) ELSE {counted} END"
    columns = []
    for index, name in enumerate(names):
        bare = f"replace(taken.f{index}[2:-2], '\"\"', '\"')"
        of_quoted = f"CASE WHEN taken.f{index}[1] = '\"' THEN {bare} ELSE taken.f{index} END"
        columns.append(
            f"nullif(CASE WHEN split IS NULL THEN {of_quoted} ELSE split[{index + 1}] END, '') AS {quoted(name)}"
        )
    fields = f"SELECT {taken}, {split} FROM {lines} WHERE {whole}"  # noqa: S608 - of names, quoted
    read = f"SELECT {', '.join(columns)} FROM ({fields})"  # noqa: S608 - of names, quoted
    capped = [f"CASE WHEN strlen({each}) <= {TEXT_BYTES_MAX} THEN {each} END AS {each}" for each in map(quoted, names)]
    return f"SELECT {', '.join(capped)} FROM ({read})"  # noqa: S608 - of names, quoted
