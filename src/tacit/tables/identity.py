"""Identifies stored tables and files for the ledger, and detects files that changed after they were opened.

A table's name is looked up once, and it is read by its full name from then on, even if the connection's default schema
changes. Files may get new rows, but must exist with the same columns, by their names, times and schemas: otherwise a
question is refused before it is charged.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacit import typed_sql as sql
from tacit.errors import QueryRefused
from tacit.tables.connection import name_parts
from tacit.typed_sql import quoted

_NAMED = """
SELECT database_name, schema_name, table_name, NULL FROM duckdb_tables()
WHERE NOT internal AND lower(table_name) = lower(?)
UNION ALL SELECT database_name, schema_name, view_name, coalesce(sql, '') FROM duckdb_views()
WHERE NOT internal AND lower(view_name) = lower(?)
"""
_GENERATED = """
SELECT column_name FROM duckdb_columns()
WHERE database_name = ? AND schema_name = ? AND table_name = ? AND is_generated ORDER BY column_index
"""


@dataclass(frozen=True)
class StoredTable:
    """A table by its full name, and its identity for the ledger; a table in memory lacks a lasting identity."""

    table: sql.Stored
    identity: str | None
    aliases: tuple[str, ...] = ()
    generated: tuple[str, ...] = ()  # columns computed while they are read, which may fail on a row
    written: tuple[str, ...] = ()  # the database's file and its log


@dataclass(frozen=True)
class _Entry:
    """An entry of DuckDB's catalog; `view` is the SQL of a view, None for a table."""

    database: str
    schema: str
    name: str
    view: str | None

    @property
    def full_name(self) -> tuple[str, str, str]:
        return self.database, self.schema, self.name

    def is_within(self, within: tuple[str, ...]) -> bool:
        """Whether it is in the named database and schema; a single name may be either of them."""
        here, wanted = (_without_case(self.database), _without_case(self.schema)), tuple(map(_without_case, within))
        return here == wanted if len(wanted) == 2 else set(wanted) <= set(here)


def is_ibis(source: object) -> bool:
    return type(source).__module__.partition(".")[0] == "ibis"


def named_by_ibis(table: Any) -> sql.Stored:
    """Return the table of DuckDB that a user's Ibis table names, in its connection; Ibis's own SQL is never run."""
    named = table.op()
    kind = type(named).__name__
    if kind == "InMemoryTable":
        raise QueryRefused("this Ibis table is a frame\nhint: give the frame itself: tacit.table(frame, ...)")
    if kind != "DatabaseTable":  # an alias has a name too, of anything
        raise QueryRefused(
            "this Ibis table is an expression, which may compute across rows: one person could change others' rows"
            "\nhint: give the stored table itself, and filter and derive with .where(...) and .derive(...)"
        )
    backend = table.get_backend()
    if backend.name != "duckdb":
        raise QueryRefused(
            f"this Ibis table is in {backend.name}, where questions do not run yet"
            "\nhint: give its rows as a frame: tacit.table(table.to_pyarrow(), ...), or copy it into DuckDB"
        )
    within = (named.namespace.catalog, named.namespace.database)
    return sql.Stored(named.name, {}, sql.Connection(backend.con), tuple(each for each in within if each is not None))


def stored_table(named: sql.Stored) -> StoredTable:
    """Return the stored table that a name of DuckDB's stands for, by its full name."""
    backend = named.connection
    entry = _entry(backend, named)
    identity, aliases, written = _known_by(backend, entry)
    full = backend.table(entry.name, (entry.database, entry.schema))
    generated = backend.con.execute(_GENERATED, [*entry.full_name]).fetchall()
    return StoredTable(full, identity, aliases, tuple(name for (name,) in generated), written)


def file_aliases(paths: list[str]) -> tuple[str, ...]:
    """Return the aliases by which the ledger recognises a file in another glob, or under another link."""
    return (*(f"file:{path}" for path in paths), *(link_alias(path) for path in paths))


def link_alias(path: str) -> str:
    """Return the alias of a file under another link or name."""
    stat = os.stat(path)
    # inode numbers are used again for new files; together with the time of the last change they are unique
    return f"stored:{stat.st_dev}:{stat.st_ino}:{stat.st_mtime_ns}"


def _entry(backend: sql.Connection, named: sql.Stored) -> _Entry:
    """Return the one table that DuckDB reads under this name now."""
    rows = backend.con.execute(_NAMED, [named.name] * 2).fetchall()
    entries = [entry for row in rows if (entry := _Entry(*row)).is_within(named.database)]
    for entry in entries:
        _refuse_view(entry)
    if len(entries) > 1:
        read = set(_tables_read(backend, named))
        entries = [entry for entry in entries if entry.full_name in read]
    if len(entries) != 1:
        raise QueryRefused(
            f"this DuckDB connection does not have exactly one table '{named.name}'"
            f"\nhint: be exact: (connection, 'file.main.{named.name}')"
        )
    return entries[0]


def _refuse_view(entry: _Entry) -> None:
    """A view may compute across rows, and a frame lent to a connection has types guessed from its cells."""
    if entry.view is None:
        return
    if re.search(r"AS SELECT \* FROM \w+_scan\(", entry.view):
        raise QueryRefused(
            f"'{entry.name}' is a frame that DuckDB reads in its own way, with types guessed from cells"
            "\nhint: give the frame itself: tacit.table(frame, ...)"
        )
    raise QueryRefused(
        f"'{entry.name}' is a view, which may compute across rows: one person could change others' rows"
        "\nhint: store it as a table (CREATE TABLE … AS SELECT …), or ask the table it is made from"
    )


def refuse_other_stores(name: str, kind: str) -> None:
    """Refuse a table that DuckDB reads through an extension: it may fail on a cell, or trust foreign statistics."""
    if kind != "duckdb":
        raise QueryRefused(
            f"'{name}' is in an attached {kind} database, in which one cell can make every question fail\nhint: "
            "copy it into a DuckDB table first (CREATE TABLE … AS …)"
        )


def _tables_read(backend: sql.Connection, table: sql.Stored) -> Iterator[tuple[str, ...]]:
    """Yield the full names of the tables that DuckDB would scan, from its query plan; no row is read."""
    for _, text in backend.con.execute(f"EXPLAIN (FORMAT json) {sql.sql_of(table)}").fetchall():
        steps = json.loads(text)
        while steps:
            step = steps.pop()
            steps.extend(step.get("children", ()))
            yield tuple(name_parts(step.get("extra_info", {}).get("Table", "")))


def _known_by(backend: sql.Connection, entry: _Entry) -> tuple[str | None, tuple[str, ...], tuple[str, ...]]:
    """Return a table's identity (by its file), its aliases (under another link), and the files that are written."""
    asked = "SELECT path, type FROM duckdb_databases() WHERE database_name = ?"
    ((path, kind),) = backend.con.execute(asked, [entry.database]).fetchall()
    refuse_other_stores(entry.name, kind)
    if not path:  # in memory, or temporary
        return None, (), ()
    file = os.path.realpath(path) if os.path.isabs(path) else path  # an address stays as it is
    name = ".".join(quoted(_without_case(part)) for part in (entry.schema, entry.name))
    if not os.path.isfile(file):
        return f"duckdb:{file}:{name}", (), ()
    return f"duckdb:{file}:{name}", (f"{link_alias(file)}:{name}",), (file, f"{file}.wal")


def _without_case(name: str) -> str:
    """Return a name as DuckDB compares names: ignoring the case of ASCII letters only."""
    return name.encode("utf-8").lower().decode("utf-8")


# --- files of Delta and Iceberg tables ---


def is_delta_folder(path: str) -> bool:
    return os.path.isdir(os.path.join(path, "_delta_log"))


def refuse_parts_of_tables(paths: Sequence[str]) -> None:
    """Refuse files of a Delta or Iceberg table: among them are rows that the table has deleted."""
    for folder in {each for path in paths for each in Path(path).parents}:
        if is_delta_folder(str(folder)) or any(folder.glob("metadata/*.metadata.json")):
            raise QueryRefused(
                f"these files are parts of the table in {str(folder)!r}, and rows that it has deleted are among them"
                "\nhint: give the table: the folder of a Delta table, 'iceberg://catalog?table=care.visits' of Iceberg"
            )


# --- files that changed after they were opened ---

# device, inode, size and time of the last change
FileStamp = tuple[int, int, int, int]


@dataclass(frozen=True)
class OpenedFiles:
    """Opened files: their paths, the stamp of each, and the columns that all of them had."""

    paths: Sequence[str]
    stamps: Sequence[FileStamp]
    columns: object
    columns_of: Callable[[str], object]

    def refuse_changes(self) -> None:
        """Refuse if a file is gone, or was written since and now has other columns."""
        for path, stamp in zip(self.paths, self.stamps, strict=True):
            try:
                is_same = _stamp(path) == stamp
            except OSError:
                raise QueryRefused(
                    f"the file at {path!r} is gone, so no charge was made\nhint: put it back, or open the table again"
                ) from None
            with suppress(Exception):  # for any reason, it is not the file that was opened
                is_same = is_same or self.columns_of(path) == self.columns
            if not is_same:
                raise QueryRefused(
                    f"the file at {path!r} no longer has the columns it was opened with, so no charge was made"
                    "\nhint: open the table again, with a new version="
                )


def opened_files(paths: Sequence[str], columns_of: Callable[[str], object]) -> OpenedFiles:
    """Return the record of files that were just opened; all have the same columns."""
    return OpenedFiles(tuple(paths), [_stamp(path) for path in paths], columns_of(paths[0]), columns_of)


def _stamp(path: str) -> FileStamp:
    stat = os.stat(path)
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def written_stamp(paths: Sequence[str]) -> str:
    """Return a text that changes when a file is written or replaced: its inode and time, never its size."""
    return "|".join(f"{path}:{_written_at(path)}" for path in paths)


def _written_at(path: str) -> str:
    try:
        stat = os.stat(path)
    except OSError:
        return "absent"
    return f"{stat.st_ino}:{stat.st_mtime_ns}"
