"""Where rows come from: files, frames, DuckDB or any Ibis table, opened so that nothing but them can be reached.

Opening reads the schema that a file or a database declares and no row. A connection we make ourselves is locked down:
no other file, no extension, no setting. A user's own connection is left as it is.
"""

import atexit
import glob
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
import pyarrow as pa

from tacit.errors import InvalidParameter, QueryRefused
from tacit.tables.arrow import frame_to_arrow
from tacit.tables.schema import ColumnFacts, ColumnType, WrittenFacts

CAST_TO: Mapping[str, str] = {
    "bool": "boolean",
    "int": "int64",
    "float": "float64",
    "decimal": "decimal(38, 12)",
    "text": "string",
    "date": "date",
    "timestamp": "timestamp(6)",
}
OURS = "protected"
PARQUET = {".parquet", ".pq"}
CSV = {".csv", ".tsv", ".txt"}


@dataclass(frozen=True)
class Source:
    """A protected table, ready for an engine; what is in it is secret, what it is called and typed is public."""

    table: ir.Table
    backend: Any
    columns: Mapping[str, ColumnFacts]
    stem: str  # the name a question uses when none is given
    identity: str | None  # what tells the ledger that two tables are one; None for frames

    @contextmanager
    def with_table(self, public: pa.Table | None) -> Iterator[ir.Table | None]:
        """Lend a public table, such as a list of keys, to the source's engine."""
        if public is None:
            yield None
        else:
            yield ibis.memtable(public)

    def fetch(self, relation: ir.Table) -> pa.Table:
        """Return a relation's rows."""
        found: pa.Table = self.backend.to_pyarrow(relation)
        return found


def open_source(source: Any, written: Mapping[str, WrittenFacts]) -> Source:
    """Return a source from a path or glob, a frame, a (DuckDB connection, table name) pair, or an Ibis table."""
    if isinstance(source, str | os.PathLike):
        return _from_files(os.fspath(source), written)
    if isinstance(source, ir.Table):
        return _described(source, source.get_backend(), written, stem="data", identity=f"ibis:{source.get_name()}")
    if isinstance(source, tuple) and len(source) == 2 and isinstance(source[1], str):
        return _from_connection(source[0], source[1], written)
    frame = frame_to_arrow(source)
    if frame is None:
        raise InvalidParameter(
            f"a table cannot be made from a {type(source).__name__}\nhint: give a path or glob of Parquet or CSV"
            " files, a pandas, Polars or Arrow frame, (duckdb_connection, 'table'), or an Ibis table"
        )
    _refuse_duplicates(frame.column_names)
    backend = ibis.duckdb.connect()
    backend.con.register(OURS, frame)
    _lock(backend, [])
    return _described(backend.table(OURS), backend, written, stem="data", identity=None)


def _from_files(pattern: str, written: Mapping[str, WrittenFacts]) -> Source:
    paths = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern] if os.path.isfile(pattern) else []
    if not paths:
        raise QueryRefused(
            f"there is no file at {pattern!r}\nhint: give the path of a Parquet or CSV file, or a glob of them"
        )
    paths = [os.path.realpath(path) for path in paths]
    endings = {Path(path).suffix.lower() for path in paths}
    backend = ibis.duckdb.connect()
    if not (endings <= PARQUET or endings <= CSV):
        raise QueryRefused(
            f"{pattern!r} is neither Parquet nor CSV by its ending\nhint: rename it, or read it into a frame"
        )
    try:
        if endings <= PARQUET:
            table = backend.read_parquet(paths, table_name=OURS)
        else:
            table = backend.read_csv(paths, table_name=OURS, all_varchar=True, header=True)
    except Exception:  # noqa: BLE001 - the engine's text may quote a cell
        raise QueryRefused(
            f"{pattern!r} cannot be read as what its ending says\nhint: check that it is a whole file"
        ) from None
    _lock(backend, paths)
    stem = Path(paths[0]).stem if len(paths) == 1 else Path(pattern).stem.strip("*?[]") or "data"
    return _described(table, backend, written, stem=stem or "data", identity="file:" + "|".join(paths))


def _from_connection(connection: Any, name: str, written: Mapping[str, WrittenFacts]) -> Source:
    if not type(connection).__module__.startswith(("duckdb", "_duckdb")):
        raise InvalidParameter(
            "the first of the pair must be a DuckDB connection\nhint: (duckdb.connect('file.db'), 'visits')"
        )
    backend = ibis.duckdb.from_connection(connection)
    if name not in backend.list_tables():
        raise QueryRefused(f"this DuckDB connection has no table {name!r}")
    database = connection.execute(
        "SELECT path FROM duckdb_databases() WHERE database_name = current_database()"
    ).fetchone()
    identity = f"duckdb:{os.path.realpath(database[0])}:{name}" if database and database[0] else None
    return _described(backend.table(name), backend, written, stem=name, identity=identity)


def _described(
    table: ir.Table, backend: Any, written: Mapping[str, WrittenFacts], *, stem: str, identity: str | None
) -> Source:
    """Give every column its public facts: the declared type wins, read by a cast that cannot fail."""
    _refuse_duplicates(table.columns)
    for name in written:
        if name not in table.columns:
            raise QueryRefused(
                f"columns= names '{name}', which the table does not have\nhint: it has {', '.join(table.columns)}"
            )
    columns, casts = {}, {}
    for name, found in table.schema().items():
        said = written.get(name, WrittenFacts())
        kind = said.type or _type_of(found)
        if said.type is not None and said.type != _type_of(found):
            casts[name] = table[name].try_cast(CAST_TO[said.type])
        elif kind in ("int", "float", "timestamp") and str(found) != CAST_TO[kind]:
            casts[name] = table[name].try_cast(CAST_TO[kind])  # an integer beyond int64 is NULL
        scale = (found.scale or 0) if isinstance(found, dt.Decimal) else 12
        columns[name] = ColumnFacts(type=kind, between=said.between, step=said.step, keys=said.keys, scale=scale)
    return Source(table.mutate(**casts) if casts else table, backend, columns, stem, identity)


def _type_of(found: dt.DataType) -> ColumnType:
    checks: tuple[tuple[bool, ColumnType], ...] = (
        (found.is_boolean(), "bool"),
        (found.is_integer(), "int"),
        (found.is_floating(), "float"),
        (found.is_decimal(), "decimal"),
        (found.is_string(), "text"),
        (found.is_date(), "date"),
        (found.is_timestamp(), "timestamp"),
    )
    return next((kind for matches, kind in checks if matches), "other")


def _refuse_duplicates(names: Any) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise QueryRefused(f"the table has two columns named '{name}' (case aside)\nhint: rename one of them")
        seen.add(name.lower())


def _lock(backend: Any, paths: list[str]) -> None:
    """Lock down a connection of ours: these files and a private folder to spill to, and nothing else."""
    spill = tempfile.mkdtemp(prefix="tacit-")
    atexit.register(shutil.rmtree, spill, ignore_errors=True)
    listed = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    for setting in (
        f"SET allowed_paths = [{listed}]" if paths else None,
        f"SET temp_directory = '{spill}'",
        "SET enable_progress_bar = false",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        if setting:
            backend.raw_sql(setting)
