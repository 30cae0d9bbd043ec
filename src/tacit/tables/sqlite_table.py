"""Opens a table of a SQLite file: 'clinic.sqlite?table=visits', or (connection, 'visits').

SQLite holds any kind of value in any column. The declared type decides how a column is read, and a cell of another
kind is NULL: so no cell makes a question fail. Only stored tables are opened. What one answer reads is of one
transaction, by a connection of our own that only reads.
"""

import os
import re
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from tacit import typed_sql as sql
from tacit.errors import QueryRefused
from tacit.tables.cells import TEXT_BYTES_MAX, CellReading, hand
from tacit.tables.connection import listed_names
from tacit.tables.identity import link_alias
from tacit.tables.source import Source, Store, WantedRows, described
from tacit.typed_sql import quoted

BATCH_ROWS = 1 << 15
BUSY_SECONDS = 60
_INT, _NUMBER = "typeof({0}) = 'integer'", "typeof({0}) IN ('real', 'integer')"
_TEXT = f"typeof({{0}}) = 'text' AND length(CAST({{0}} AS BLOB)) <= {TEXT_BYTES_MAX}"
# What a column of a declared type holds, by the first of these words in it: the condition on a cell, the type in
# which it is handed over, and its meaning in our engine. Days and times are texts, as they are in CSV; NUMERIC and
# DECIMAL are floats, as SQLite stores them.
KINDS: tuple[tuple[str, tuple[str, pa.DataType, str]], ...] = (
    ("BOOL", (f"{_INT} AND {{0}} IN (0, 1)", pa.int64(), "CAST({} AS BOOLEAN)")),
    *((word, (_TEXT, pa.string(), "{}")) for word in ("DATE", "TIME", "CHAR", "CLOB", "TEXT")),
    *((word, (_NUMBER, pa.float64(), "{}")) for word in ("REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL")),
    ("INT", (_INT, pa.int64(), "{}")),
)
_FILE = re.compile(r"(?P<path>.+\.(?:sqlite3?|db3?))(?:\?table=(?P<name>.+))?", re.IGNORECASE | re.DOTALL)
_MAGIC = b"SQLite format 3\0"


def is_sqlite(text: str) -> bool:
    """Return whether a text names a SQLite file; of a name that other databases have too, its first bytes decide."""
    found = _FILE.fullmatch(text)
    if found is None or Path(found["path"]).suffix.lower().startswith(".sqlite"):
        return found is not None
    try:
        with Path(found["path"]).open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def table_in(text: str) -> "SqliteTable":
    """Return the table of a SQLite file that a text names, or refuse it with the reason."""
    found = _FILE.fullmatch(text)
    path, name = (text, None) if found is None else (found["path"], found["name"])
    return _open_snapshot(path, name)


def table_of(connection: sqlite3.Connection, name: str) -> "SqliteTable":
    """Return the table of that name in the file of a connection, which we open by a connection of our own."""
    path = next((file for _, place, file in connection.execute("PRAGMA database_list") if place == "main"), "")
    if not path:
        raise QueryRefused("this SQLite database is in memory\nhint: give a file, or the rows as a frame")
    return _open_snapshot(str(path), name)


def _open_snapshot(path: str, name: str | None) -> "SqliteTable":
    if not os.path.isfile(path):
        raise QueryRefused(f"no file exists at {path!r}\nhint: give the path of a SQLite file, and its table")
    path = os.path.realpath(path)
    try:
        with closing(_connected(path)) as connection:
            found = _chosen_table(connection, path, name)
    except QueryRefused:
        raise
    except Exception:  # noqa: BLE001 - its text may quote a cell
        raise QueryRefused(
            f"{path!r} cannot be read as a SQLite database\nhint: check that the file is complete, and not encrypted"
        ) from None
    return SqliteTable(path, *found)


def _connected(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{Path(path).as_uri()}?mode=ro", uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    connection.text_factory = bytes  # a text need not be UTF-8
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _chosen_table(
    connection: sqlite3.Connection, path: str, name: str | None
) -> tuple[str, tuple[tuple[str, str, int], ...]]:
    """Return a table's name, and its columns with their declared types and how they are generated."""
    stored = [
        (each.decode(), kind, (made or b"").decode())
        for each, kind, made in connection.execute("SELECT name, type, sql FROM sqlite_master WHERE type <> 'index'")
    ]
    tables = [each for each, kind, _ in stored if kind == b"table" and not each.startswith("sqlite_")]
    if name is None:
        example = tables[0] if tables else "visits"
        raise QueryRefused(
            f"{path!r} is a database: name one of its tables"
            f"\nhint: '{path}?table={example}'; its tables: {listed_names(tables)}"
        )
    same = [each for each in stored if each[0].lower() == name.lower() and each[1] in (b"table", b"view")]
    if not same:
        raise QueryRefused(f"this SQLite database has no table {name!r}\nhint: its tables: {listed_names(tables)}")
    ((full, kind, made),) = same
    if kind == b"view" or re.match(r"\s*CREATE\s+VIRTUAL", made, re.IGNORECASE):
        raise QueryRefused(
            f"'{full}' is a view or a virtual table, which may compute across rows: one person could change others'"
            " rows\nhint: store it as a table (CREATE TABLE … AS SELECT …), or ask the table it is made from"
        )
    columns = connection.execute(f"PRAGMA main.table_xinfo({quoted(full)})").fetchall()
    return full, tuple((column.decode(), kind.decode(), hidden) for _, column, kind, _, _, _, hidden in columns)


@dataclass(eq=False)
class SqliteTable:
    """One opened table: its columns, and the connection that is read at the moment."""

    path: str
    name: str
    columns: tuple[tuple[str, str, int], ...]
    _turn: Any = field(default_factory=threading.RLock, repr=False)
    _deep: int = 0
    _held: sqlite3.Connection | None = field(default=None, repr=False)

    def refuse_changes(self) -> None:
        """Refuse if the table is gone, or has other columns than when it was opened; reads no row."""
        try:
            found = _open_snapshot(self.path, self.name)
        except QueryRefused:
            raise QueryRefused(
                f"'{self.name}' of {self.path!r} is gone or cannot be read any more, so no charge was made"
                "\nhint: open the table again"
            ) from None
        if found.columns != self.columns:
            raise QueryRefused(
                f"'{self.name}' no longer has the columns it was opened with, so no charge was made"
                "\nhint: open the table again, with a new version="
            )

    @contextmanager
    def moment(self, _beside: Sequence[Store]) -> Iterator[None]:
        """Hold what is read inside to one transaction."""
        with self._turn:
            self._deep += 1
            try:
                if self._held is None:
                    self._held = _connected(self.path)
                    self._held.execute("BEGIN")
                    if _chosen_table(self._held, self.path, self.name)[1] != self.columns:
                        raise TypeError("the table is not as it was when it was opened")
                yield
            finally:
                self._deep -= 1
                if not self._deep and self._held is not None:
                    self._held.close()
                    self._held = None

    def wanting(self, _wanted: WantedRows | None) -> AbstractContextManager[None]:
        """Leave out no row: SQLite compares values of several kinds by rules of its own."""
        return nullcontext()

    def read(self, readings: Sequence[CellReading]) -> Iterator[pa.RecordBatch]:
        """Yield the rows' cells of these columns; one of another kind than its column's is NULL."""
        if self._held is None:
            raise RuntimeError("rows of a database are read inside a moment")
        declared = {name: _kind_of(kind) for name, kind, _ in self.columns}
        cells = []
        for each in readings:
            is_kept, _, _ = declared[each.name] or ("0", None, None)
            cells.append(f"CASE WHEN {is_kept.format(quoted(each.name))} THEN {quoted(each.name)} END")
        rows = self._held.execute(f"SELECT {', '.join(cells)} FROM main.{quoted(self.name)}")  # noqa: S608 - quoted names
        names, types = [each.name for each in readings], [each.stored for each in readings]
        while found := rows.fetchmany(BATCH_ROWS):
            columns = zip(*found, strict=True)
            arrays = [_array(column, kind) for column, kind in zip(columns, types, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=names)

    def into(self, backend: sql.Connection, name: str) -> Source:
        """Open the table in a connection of ours, as a view of that name; reads no row."""
        readings, others = list[CellReading](), dict[str, str]()
        for column, declared, generated in self.columns:
            kind = _kind_of(declared)
            if generated or kind is None:
                others[column] = "a generated column" if generated else declared or "a column without a type"
            else:
                _, stored, meaning = kind
                readings.append(CellReading(column, stored, meaning.format(quoted(column))))
        if not readings:
            raise QueryRefused(f"no column of '{self.name}' can be read\nhint: declare types of the columns")
        handed = hand(backend, name, self.read, readings, frozenset())
        full = self.name.lower()
        source = described(
            handed.view,
            backend,
            {},
            stem=self.name,
            identity=f"sqlite:{self.path}:{full}",
            others=others,
            readings=readings,
        )
        source = replace(source, files=(handed,), opened=(self,), stores=(self,))
        aliases, written = (f"{link_alias(self.path)}:{full}",), (self.path, f"{self.path}-wal")
        return replace(source, aliases=aliases, written=written)


def _kind_of(declared: str) -> tuple[str, pa.DataType, str] | None:
    """Return how a column of a declared type is read, or None if it cannot be."""
    return next((how for word, how in KINDS if word in declared.upper()), None)


def _array(cells: tuple[Any, ...], kind: pa.DataType) -> pa.Array:
    if kind == pa.string():
        return pa.array(cells, pa.binary()).view(kind)
    return pa.array([None if cell is None else float(cell) for cell in cells] if kind == pa.float64() else cells, kind)
