"""Connections to a PostgreSQL server, and snapshots: rows come as Arrow through ADBC, and nowhere else is it used.

The first connection of a `Snapshot`, the leader, locks the tables against changes of their columns, takes the snapshot
and exports it. Every read takes another connection on it, or several with a range of pages each: so all that is read is
about the same rows, and a connection that breaks can be replaced.
"""

import os
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import adbc_driver_manager as adbc
import adbc_driver_postgresql
import pyarrow as pa

from tacit.errors import QueryRefused

BATCH_BYTES = 4 << 20
# A further connection pays where a table has this many pages (of 8 KiB) for each, and two cores for each: one for the
# server's process, one for ours. On two cores, two connections took as long as one.
PAGES_EACH, CORES_EACH, CONNECTIONS_MOST = 8192, 2, 4
# batches that wait for whoever reads them
WAITING_MOST = 4
PATIENCE_SECONDS = 0.1
# How long a reader waits for a lock that its leader has already, and how often it is all tried again.
LOCK_MILLISECONDS, TRIES = 500, 5
LOCK_NOT_AVAILABLE = "55P03"
_READ_ONLY = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
# What a setting of the server, the database or the role could change in the meaning of our SELECTs. A policy that would
# hide rows is an error instead.
_SETTINGS = {
    "search_path": "pg_catalog",
    "standard_conforming_strings": "on",
    "row_security": "off",
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "jit": "off",
    "max_parallel_workers_per_gather": "0",  # rows leave by one process anyway
}
# How long a read takes follows from rows: no clock may end it after the charge. The last one is PostgreSQL 17's.
_WITHOUT_CLOCKS = """
    SELECT pg_catalog.set_config(name, '0', true) FROM pg_catalog.pg_settings
    WHERE name IN ('statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')"""


class PostgresServer:
    """A database on a server, by the address that reaches it; what it shows of itself has no password in it."""

    def __init__(self, address: str | None = None, database: Any = None) -> None:
        self._address, self._database = address, database
        self._same = address or id(database)
        self._turn = threading.Lock()

    def __repr__(self) -> str:
        return "<a PostgreSQL server>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PostgresServer) and self._same == other._same

    def __hash__(self) -> int:
        return hash(self._same)

    def connect(self) -> "Link":
        """Return a new connection, inside a transaction that reads one snapshot and writes nothing."""
        with self._turn:
            if self._database is None:
                self._database = adbc_driver_postgresql.connect(self._address)
        return Link(adbc.AdbcConnection(self._database))


class Link:
    """One connection, in one transaction."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._turn = threading.Lock()
        connection.set_autocommit(False)
        self.run(_READ_ONLY)
        self.run("SET client_encoding = 'UTF8'")

    def run(self, sql: str) -> None:
        """Run a statement without rows."""
        with adbc.AdbcStatement(self._connection) as statement:
            statement.set_sql_query(sql)
            statement.execute_update()

    def rows(self, sql: str) -> list[dict[str, Any]]:
        """Return the rows of a small SELECT, such as one of the catalog."""
        with self.stream(sql) as reader:
            return reader.read_all().to_pylist()  # type: ignore[no-any-return]

    def settle(self) -> None:
        """Set what the meaning of a SELECT depends on; it takes the snapshot, if no statement has."""
        listed = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in _SETTINGS.items())
        self.rows(f"SELECT {listed.replace('set_config', 'pg_catalog.set_config')}")
        self.rows(_WITHOUT_CLOCKS)

    @contextmanager
    def stream(self, sql: str) -> Iterator[pa.RecordBatchReader]:
        """Lend a SELECT's rows as batches, made as they are read."""
        with adbc.AdbcStatement(self._connection) as statement:
            statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)})
            statement.set_sql_query(sql)
            handle, _ = statement.execute_query()
            reader = pa.RecordBatchReader._import_from_c(handle.address)
            try:
                yield reader
            finally:
                reader.close()

    def close(self) -> None:
        """End the transaction and the connection; one that is broken already is left."""
        with self._turn, suppress(Exception):
            self._connection.close()


class Snapshot:
    """The rows of one moment, opened at the first read; `locked` are the names of the tables that are read."""

    def __init__(self, server: PostgresServer, locked: Sequence[str], check: "Callable[[Link], None]") -> None:
        self._server, self._locked, self._check = server, sorted(set(locked)), check
        self._leader: Link | None = None
        self._free: list[Link] = []  # readers that wait for a SELECT
        self._lock = f"LOCK TABLE {', '.join(self._locked)} IN ACCESS SHARE MODE"
        self._name = ""
        self._turn = threading.Lock()

    def read(self, select: str, *, pages: str | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a SELECT in this snapshot; those of a plain table, named by `pages`, by several connections
        that divide its pages."""
        selects = [select]
        self._open()
        if pages is not None:
            selects = [select + part for part in self._parts(pages)]
        if len(selects) == 1:
            yield from self._stream(select)
        else:
            yield from merged([lambda each=each: self._stream(each) for each in selects])  # type: ignore[misc]

    def close(self) -> None:
        """Let go of the snapshot and its locks."""
        with self._turn:
            links = [*self._free, *([self._leader] if self._leader is not None else [])]
            self._free, self._leader = [], None
        for link in links:
            link.close()

    def _open(self) -> None:
        """Take the snapshot and a reader for each table, with its lock. Whoever waits to alter a table makes later
        readers wait too: it goes first, and all of this is done again."""
        with self._turn:
            for left in reversed(range(TRIES)):
                if self._leader is not None:
                    return
                leader = self._server.connect()
                readers: list[Link] = []
                try:
                    # before the snapshot: a TRUNCATE between the two would empty the table under it
                    leader.run(self._lock)
                    leader.settle()
                    self._name = leader.rows("SELECT pg_export_snapshot() AS name")[0]["name"]
                    self._check(leader)
                    readers = [self._reader() for _ in self._locked]
                except BaseException as problem:
                    leader.close()
                    if not left or getattr(problem, "sqlstate", None) != LOCK_NOT_AVAILABLE:
                        raise
                else:
                    self._leader, self._free = leader, readers

    def _reader(self) -> Link:
        """Return a connection on the snapshot; one that would have to wait for its lock raises."""
        link = self._server.connect()
        try:
            link.run(f"SET LOCAL lock_timeout = {LOCK_MILLISECONDS}")
            link.run(self._lock)
            link.run(f"SET TRANSACTION SNAPSHOT '{self._name}'")
            link.settle()
        except BaseException:
            link.close()
            raise
        return link

    def _stream(self, select: str) -> Iterator[pa.RecordBatch]:
        with self._turn:
            link = self._free.pop() if self._free else None
        link = link or self._reader()
        try:
            with link.stream(select) as reader:
                # of a SELECT without rows too: whoever reads looks at the types before there is a row
                yield pa.RecordBatch.from_pylist([], schema=reader.schema)
                yield from reader
        except BaseException:  # also one who stops early: the rest of its rows would wait there
            link.close()
            raise
        with self._turn:
            self._free.append(link)

    def _parts(self, table: str) -> list[str]:
        """Return conditions that divide a table's pages: every row is in one of them, new pages are in the last."""
        if self._leader is None:
            raise RuntimeError("the snapshot is not open")
        sizes = self._leader.rows(
            f"SELECT pg_relation_size('{table.replace(chr(39), chr(39) * 2)}'::regclass)"
            " / current_setting('block_size')::int8 AS pages"
        )
        pages = int(sizes[0]["pages"])
        parts = max(1, min(CONNECTIONS_MOST, (os.cpu_count() or 1) // CORES_EACH, pages // PAGES_EACH))
        ends = [pages * part // parts for part in range(1, parts)]
        ranges = zip([None, *ends], [*ends, None], strict=True)
        return [_pages_between(low, high) for low, high in ranges]


def _pages_between(low: int | None, high: int | None) -> str:
    ends = [] if low is None else [f"ctid >= '({low},0)'::tid"]
    ends += [] if high is None else [f"ctid < '({high},0)'::tid"]
    return " AND " + " AND ".join(ends) if ends else ""


def merged(streams: "Sequence[Callable[[], Iterator[pa.RecordBatch]]]") -> Iterator[pa.RecordBatch]:
    """Yield the batches of several streams as they come, each read by a thread; a stream that fails fails them all."""
    box: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(WAITING_MOST)
    stopped = threading.Event()

    def put(found: pa.RecordBatch | BaseException | None) -> None:
        while not stopped.is_set():
            with suppress(queue.Full):
                return box.put(found, timeout=PATIENCE_SECONDS)

    def read(stream: "Callable[[], Iterator[pa.RecordBatch]]") -> None:
        try:
            for batch in stream():
                put(batch)
                if stopped.is_set():
                    return
            put(None)
        except BaseException as problem:  # noqa: BLE001 - handed to whoever reads: rows must not end early
            put(problem)

    threads = [threading.Thread(target=read, args=(stream,), daemon=True) for stream in streams]
    for thread in threads:
        thread.start()
    try:
        left = len(threads)
        while left:
            found = box.get()
            if isinstance(found, BaseException):
                raise found
            if found is None:
                left -= 1
            else:
                yield found
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def link_of(server: PostgresServer) -> Link:
    """Return a connection to look at the catalog with; refuse before anything is charged if there is none."""
    try:
        link = server.connect()
    except Exception:  # noqa: BLE001 - libpq's text may have what the address has
        raise QueryRefused(
            "this PostgreSQL server cannot be reached, or does not let this user into a database of that name; "
            "no charge was made\nhint: try the same address in psql, without its table=; a password may come "
            "from PGPASSWORD, ~/.pgpass or a service"
        ) from None
    try:
        link.settle()
    except Exception:  # noqa: BLE001 - the same
        link.close()
        raise QueryRefused(
            "this PostgreSQL server has other settings than ours\nhint: use PostgreSQL 12 to 18"
        ) from None
    return link
