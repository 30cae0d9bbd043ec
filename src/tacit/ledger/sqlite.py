"""The SQLite store: one file, write-ahead log, synced in full at every commit.

A transaction takes the write lock before it reads, so no other process decides on the same totals, and moves the
head only from the one it read. An error of the disk leaves the outcome unknown: the connection is dropped, no answer
is given, and the next use reads the disk's real content.
"""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError
from tacit.ledger.entry import SCHEMA, Writes
from tacit.ledger.locks import FileLocks
from tacit.ledger.store import (
    TABLES,
    LedgerStore,
    Likely,
    StoreRows,
    Work,
    damaged,
    not_a_ledger,
    require_layout,
    write_statements,
)
from tacit.system import sync_folder

BUSY_SECONDS = 60.0
# "Tcit": the file's header names its owner, tacit
APPLICATION = 0x54636974
MEMORY = ":memory:"


SqliteConnection = Any  # a connection of sqlite3, or what stands in for one: execute, executemany and close
Connect = Callable[[str], SqliteConnection]


def connect_to_file(path: str) -> SqliteConnection:
    """Return the standard library's connection, which leaves transactions to us."""
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


class SqliteStore(LedgerStore):
    """A ledger's tables in one SQLite file, or in memory until the process ends."""

    def __init__(self, path: Path | None, connect: Connect = connect_to_file) -> None:
        super().__init__()
        self._path = path
        self._connect = connect
        self.durable: bool = path is not None
        self.place: str = MEMORY if path is None else os.path.realpath(path)
        self.places: tuple[str, ...] = (MEMORY,) if path is None else _names_of(path)
        self.locks: FileLocks = FileLocks(None if path is None else f"{self.place}-in-hand")
        if path is not None:
            _make_file(path)

    def transact(self, likely: Sequence[Likely], work: Work) -> None:  # noqa: ARG002 (a file needs no reads ahead)
        """Run `work` and write what it returns in one durable transaction (see `LedgerStore`)."""
        with self.turn, self._opened() as connection:
            connection.execute("BEGIN IMMEDIATE")
            writes = work(_rows_of_connection(connection))
            if writes is None:
                connection.execute("ROLLBACK")
                return
            _write_all(connection, writes)
            connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[StoreRows]:
        with self.turn, self._opened() as connection:
            connection.execute("BEGIN")
            yield _rows_of_connection(connection)
            connection.execute("ROLLBACK")

    @contextmanager
    def checking(self) -> Iterator[None]:
        """While the block runs, refuse a file if SQLite finds its pages or indexes damaged."""
        with self.turn:
            if self._path is None or self._connect is not connect_to_file:
                with self._opened() as connection:
                    self._check(connection)
                yield
                return
            # a separate connection, on another core; `turn` is held, so no fork comes between
            # in this order: the thread has ended when the connection is closed
            with closing(connect_to_file(str(self._path))) as connection, ThreadPoolExecutor(1) as other:
                found = other.submit(self._check, connection)
                yield
                found.result()

    def _check(self, connection: SqliteConnection) -> None:
        try:
            whole = list(connection.execute("PRAGMA integrity_check(1)")) == [("ok",)]
        except sqlite3.Error as error:
            raise explained(error, self.place) from error
        if not whole:
            raise damaged(self.place)

    def disconnect(self) -> None:
        """Close the file; a store in memory keeps its connection, which is all it is."""
        if self._path is not None:
            super().disconnect()

    def enter_child(self) -> None:
        """Let a child process open the file again; a ledger in memory stays with the parent."""
        if self._path is not None:
            super().enter_child()

    def close(self) -> None:
        """Close the file, or forget the ledger in memory."""
        with self.turn:
            super().disconnect()

    def _failed(self, error: BaseException) -> BaseException:
        if self._connection is not None:
            with contextlib.suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
        self.disconnect()
        return explained(error, self.place) if isinstance(error, sqlite3.Error) else error

    def _open(self) -> SqliteConnection:
        connection = self._connect(MEMORY if self._path is None else str(self._path))
        try:
            self._prepare(connection)
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                connection.close()
            raise
        return connection

    def _prepare(self, connection: SqliteConnection) -> None:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA cell_size_check = ON")
        connection.execute("BEGIN")  # both looks at one moment: another process may be making the tables
        is_new = self._is_new(connection)
        connection.execute("ROLLBACK")
        if self._path is not None:
            if _keep_log(connection) != "wal":
                raise LedgerError(
                    f"the file system of {self.place} cannot keep a write-ahead log"
                    "\nhint: put the ledger on a local disk"
                )
            connection.execute("PRAGMA synchronous = FULL")
        if is_new:
            self._create(connection)
        self._check_tables(connection)

    def _is_new(self, connection: SqliteConnection) -> bool:
        """Return whether the file is still empty; refuse a file that is not a ledger, before it is touched."""
        application = list(connection.execute("PRAGMA application_id"))[0][0]
        if application == APPLICATION:
            return False
        if application == 0 and not list(connection.execute("SELECT 1 FROM sqlite_master LIMIT 1")):
            return True
        raise not_a_ledger(self.place)

    def _create(self, connection: SqliteConnection) -> None:
        """Create the tables, unless another process did so first."""
        connection.execute("BEGIN IMMEDIATE")
        if self._is_new(connection):
            for statement in TABLES:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION}")
            connection.execute(f"PRAGMA user_version = {SCHEMA}")
        connection.execute("COMMIT")

    def _check_tables(self, connection: SqliteConnection) -> None:
        """Refuse a newer layout, and any table, trigger or view that is not ours: it could undo a charge."""
        version = list(connection.execute("PRAGMA user_version"))[0][0]
        if version > 0:
            require_layout(version, self.place)
        present = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
        if version != SCHEMA or sorted(present) != sorted(TABLES):
            raise damaged(self.place)


def _rows_of_connection(connection: SqliteConnection) -> StoreRows:
    return StoreRows(
        run=lambda statement, values: list(connection.execute(statement, values)),
        scan=lambda statement, values: iter(connection.execute(statement, values)),
    )


def _keep_log(connection: SqliteConnection) -> str:
    """Switch the file to a write-ahead log; SQLite does not wait for another process that does the same, so we do."""
    until = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return str(list(connection.execute("PRAGMA journal_mode = WAL"))[0][0])
        except sqlite3.OperationalError as error:
            if getattr(error, "sqlite_errorname", "") != "SQLITE_BUSY" or time.monotonic() >= until:
                raise
            time.sleep(0.01)


def _write_all(connection: SqliteConnection, writes: Writes) -> None:
    for statement, rows in write_statements(writes):
        connection.executemany(statement, rows)
    if list(connection.execute("SELECT changes()")) != [(1,)]:
        raise LedgerError(
            "the ledger's head moved while it was locked; the ledger was not changed\nhint: tacit ledger verify"
        )


def _names_of(path: Path) -> tuple[str, ...]:
    """Return a file's real path, its path if it is a link itself, and the given name."""
    named = os.path.abspath(path)
    in_folder = os.path.join(os.path.realpath(os.path.dirname(named)), os.path.basename(named))
    return tuple(dict.fromkeys((os.path.realpath(path), in_folder, named)))


def _make_file(path: Path) -> None:
    """Make a missing file, empty and readable only by its owner, and sync its name to the disk."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        raise LedgerError(
            f"the ledger {path} cannot be made ({error.strerror})"
            "\nhint: choose a path where you may write, with --ledger PATH"
        ) from error
    os.close(descriptor)
    sync_folder(path.parent)


def explained(error: sqlite3.Error, place: str) -> LedgerError:
    """Return our error for one of SQLite's: the fault, a note that no answer was given, and the repair."""
    code = getattr(error, "sqlite_errorname", "") or ""
    for prefix, (what, hint) in _MEANINGS.items():
        if code.startswith(prefix):
            return LedgerError(f"the ledger {place} {what}; no answer was given\nhint: {hint}")
    return LedgerError(
        f"the ledger {place} cannot be used ({code or type(error).__name__}); no answer was given"
        "\nhint: tacit ledger verify names what is wrong"
    )


_MEANINGS = {
    "SQLITE_NOTADB": ("is not a ledger", "give another path; this file is left as it is"),
    "SQLITE_CORRUPT": ("is damaged", "restore it from a backup, then: tacit ledger verify"),
    "SQLITE_READONLY": ("may not be written", "give its owner the right to write the file and its folder"),
    "SQLITE_CANTOPEN": ("cannot be opened", "give its owner the right to write the file and its folder"),
    "SQLITE_PERM": ("cannot be opened", "give its owner the right to write the file and its folder"),
    "SQLITE_FULL": ("cannot be written: the disk is full", "free some space and ask again"),
    "SQLITE_IOERR": ("cannot be written: the disk reports an error", "check the disk, then: tacit ledger verify"),
    "SQLITE_BUSY": ("is held by another process", "wait for it to end and ask again"),
}
