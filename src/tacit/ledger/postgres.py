"""The PostgreSQL store: for several servers that share one ledger.

A transaction is one conditional statement. Every write moves the head, so a charge decided on what this process
last wrote is right if the head has not moved since, and the request and the question it took to be new are new: the
statement writes everything if all that holds and nothing otherwise. Otherwise the work is done again from what the
tables hold, under a lock on the head, so that it gets through. Isolation is serialisable throughout.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import RLock
from typing import Any

try:
    import psycopg
    from psycopg.errors import DeadlockDetected, SerializationFailure, UniqueViolation
    from psycopg.pq import TransactionStatus
except ImportError as missing:
    from tacit.errors import LedgerError as _LedgerError

    raise _LedgerError("PostgreSQL needs psycopg\nhint: pip install 'tacit[postgres]'") from missing

from tacit.errors import LedgerError, TacitError
from tacit.ledger.chain import canonical
from tacit.ledger.entry import SCHEMA, Head, Writes
from tacit.ledger.rows import (
    BY_QUESTION,
    BY_REQUEST,
    HEAD,
    MOVE_HEAD,
    TABLES,
    Query,
    Rows,
    account_row,
    write_statements,
)
from tacit.ledger.store import Work, damaged, newer_layout, not_a_ledger, unexpected

TRIES_MAX = 50
LOCK_SECONDS = 60
_LAYOUT = "tacit ledger layout "
_OURS = (
    "SELECT oid FROM pg_class WHERE relname IN ('tacit_head', 'tacit_entry', 'tacit_account', 'tacit_pointer')"
    " AND relnamespace = current_schema()::regnamespace"
)
_TAMPERED = (
    f"SELECT 1 FROM pg_trigger WHERE NOT tgisinternal AND tgrelid IN ({_OURS})"  # noqa: S608 (our own constants)
    f" UNION ALL SELECT 1 FROM pg_rewrite WHERE ev_class IN ({_OURS})"
)

# What a decision may take for absent, as a condition of the write it led to.
_ABSENT = {BY_REQUEST: "request = ANY(?::text[])", BY_QUESTION: "question = ANY(?::text[])"}
_CONDITIONS = " ".join(
    f"AND NOT EXISTS (SELECT 1 FROM tacit_entry WHERE {taken})"  # noqa: S608 (our own constants)
    for taken in _ABSENT.values()
)

# Writes a transaction in one statement, all of it or none of it.
_WRITE = f"""
WITH moved AS ({MOVE_HEAD} {_CONDITIONS} RETURNING 1),
entries AS (
    INSERT INTO tacit_entry (number, body, hash, request, question, answers)
    SELECT new.* FROM moved, json_to_recordset(?::json)
    AS new(number bigint, body text, hash text, request text, question text, answers bigint)),
accounts AS (
    INSERT INTO tacit_account (scope, epsilon, rho, delta, charges, last)
    SELECT new.* FROM moved, json_to_recordset(?::json)
    AS new(scope text, epsilon text, rho text, delta text, charges bigint, last bigint)
    ON CONFLICT (scope) DO UPDATE SET epsilon = excluded.epsilon, rho = excluded.rho, delta = excluded.delta,
    charges = excluded.charges, last = excluded.last),
pointers AS (
    INSERT INTO tacit_pointer (name, number)
    SELECT new.* FROM moved, json_to_recordset(?::json) AS new(name text, number bigint)
    ON CONFLICT (name) DO UPDATE SET number = excluded.number)
SELECT count(*) FROM moved
""".replace("?", "%s")  # noqa: S608 (our own constants)

Found = dict[Query, list[tuple[Any, ...]]]
Link = psycopg.Connection[tuple[Any, ...]]


class PostgresStore:
    """A ledger's tables in a PostgreSQL schema: the first one on the connection's search path."""

    durable = True
    _link: "Link | None" = None

    def __init__(self, address: str) -> None:
        self._address = address
        self._last: Head | None = None
        self._process = os.getpid()
        self.turn = RLock()
        self.place = "postgresql"
        with self._opened() as link:
            info = link.info
            schema = link.execute("SELECT current_schema()").fetchall()[0][0]
            self.place = f"postgresql {info.host}:{info.port}/{info.dbname}.{schema}"

    def __del__(self) -> None:
        self.disconnect()

    def transact(self, likely: Sequence[Query], work: Work) -> None:
        """Run `work` and write what it returns in one durable transaction (see `Store`)."""
        with self.turn:
            for attempt in range(TRIES_MAX):
                try:
                    self._attempt(likely, work, locked=attempt > 0)
                except _TryAgain:
                    time.sleep(0 if attempt == 0 else min(0.1, 0.001 * 2**attempt))
                else:
                    return
            raise LedgerError(f"the ledger {self.place} is too busy; nothing was answered\nhint: ask again")

    def _attempt(self, likely: Sequence[Query], work: Work, *, locked: bool) -> None:
        last, self._last = self._last, None
        if not locked and last is None:
            raise _TryAgain
        with self._opened() as link:
            if locked:
                link.execute("BEGIN; LOCK TABLE tacit_head IN EXCLUSIVE MODE")
            assumed: Found = {} if locked or last is None else _assumed(last, likely)
            writes = work(_rows(link, assumed))
            if writes is not None:
                _write(link, writes, assumed)
            elif not locked:
                raise _TryAgain  # nothing to make conditional, so nothing would tell that the head has moved
            if locked:
                link.execute("COMMIT")
            self._last = None if writes is None else writes.head

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        """Return the rows as of one moment."""
        with self.turn, self._opened() as link:
            link.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield _rows(link, {})
            link.execute("COMMIT")

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Refuse tables that carry a trigger or a rule: it could undo a charge."""
        with self.turn:
            with self._opened() as link:
                _check_tables(link, self.place)
            yield

    def disconnect(self) -> None:
        """Close the connection; the next use opens another."""
        if self._link is not None:
            link, self._link = self._link, None
            with contextlib.suppress(psycopg.Error):
                link.close()

    def enter_child(self) -> None:
        """Let a child process connect anew."""
        self._process = os.getpid()

    def close(self) -> None:
        """Close the connection."""
        with self.turn:
            self.disconnect()

    @contextmanager
    def _opened(self) -> Iterator[Link]:
        """Yield the connection; after any failure it is dropped, and the server's errors become ours."""
        if self._process != os.getpid():
            raise LedgerError("this ledger was opened in another process\nhint: open it again in this one")
        try:
            if self._link is None:
                self._link = self._connect()
            yield self._link
        except (_TryAgain, SerializationFailure, DeadlockDetected, UniqueViolation) as error:
            if self._link is not None and self._link.info.transaction_status != TransactionStatus.IDLE:
                self.disconnect()
            raise _TryAgain from error
        except BaseException as error:
            self.disconnect()
            if isinstance(error, psycopg.Error):
                raise explained(error, self.place) from error
            if isinstance(error, Exception) and not isinstance(error, TacitError):
                raise unexpected(error) from error
            raise

    def _connect(self) -> Link:
        link: Link = psycopg.connect(
            self._address, autocommit=True, prepare_threshold=1, connect_timeout=10, application_name="tacit ledger"
        )
        try:
            # a server may be set up to answer before the disk has it
            link.execute("SET synchronous_commit = on")
            link.execute("SET default_transaction_isolation = serializable")
            # a plan made while the tables are small must not scan them once they are large
            link.execute("SET enable_seqscan = off")
            link.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
            _require_sync(link, self.place)
            _create_tables(link)
            _check_tables(link, self.place)
        except BaseException:
            link.close()
            raise
        return link


class _TryAgain(Exception):
    """Another writer came between and nothing was written; running the work again is safe."""


def _assumed(last: Head, likely: Sequence[Query]) -> Found:
    """Return what a decision takes for granted: the head this process wrote last, and that what it asks for is new."""
    head = (last.ledger, last.number, last.hash, last.signature, last.time, last.rules)
    return {(HEAD, ()): [head], **{query: [] for query in likely if query[0] in _ABSENT}}


def _write(link: Link, writes: Writes, assumed: Found) -> None:
    """Write everything if the head and what was assumed still hold; otherwise nothing, and it is to be tried again."""
    if writes.before is None:
        for statement, rows in write_statements(writes):
            for row in rows:
                link.execute(_ours(statement), row)
        return
    head, before = writes.head, writes.before
    moved = (head.number, head.hash, head.signature, head.time, head.rules, before.number, before.hash)
    absent = [_array([values[0] for query, values in assumed if query == kind]) for kind in _ABSENT]
    entries = [(e.number, e.body, e.hash, e.request, e.question, e.answers) for e in writes.entries]
    accounts = [account_row(scope, account) for scope, account in writes.accounts.items()]
    written = (
        _json(("number", "body", "hash", "request", "question", "answers"), entries),
        _json(("scope", "epsilon", "rho", "delta", "charges", "last"), accounts),
        _json(("name", "number"), list(writes.pointers.items())),
    )
    if link.execute(_WRITE, (*moved, *absent, *written)).fetchall() != [(1,)]:
        raise _TryAgain


def _array(keys: Sequence[str]) -> str:
    """Return hashes as an array's text; they hold nothing that would need quoting."""
    return "{" + ",".join(keys) + "}"


def _json(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    return canonical([dict(zip(names, row, strict=True)) for row in rows])


def _rows(link: Link, assumed: Found) -> Rows:
    def run(statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        found = assumed.get((statement, values))
        return link.execute(_ours(statement), values).fetchall() if found is None else found

    def scan(statement: str, values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        with link.cursor(name="tacit_scan") as cursor:
            cursor.itersize = 5000
            yield from cursor.execute(_ours(statement), values)

    return Rows(run, scan)


@lru_cache(maxsize=64)
def _ours(statement: str) -> str:
    return statement.replace("?", "%s")


def _create_tables(link: Link) -> None:
    """Create the tables, unless they are there or another process is at it."""
    with link.transaction():
        link.execute("SELECT pg_advisory_xact_lock(hashtext('tacit ledger'))")
        if link.execute("SELECT to_regclass('tacit_head')").fetchall()[0][0] is None:
            for statement in TABLES:
                # an index on the rows that have a key would not serve a search for any of several keys
                everywhere = statement.partition(" WHERE ")[0].replace("INTEGER PRIMARY KEY", "BIGINT PRIMARY KEY")
                link.execute(everywhere)
            link.execute(f"COMMENT ON TABLE tacit_head IS '{_LAYOUT}{SCHEMA}'")


def _require_sync(link: Link, place: str) -> None:
    if link.execute("SHOW fsync").fetchall() != [("on",)]:
        raise LedgerError(f"{place} runs with fsync off, so a charge could be lost\nhint: set fsync = on")


def _check_tables(link: Link, place: str) -> None:
    layout = link.execute("SELECT obj_description('tacit_head'::regclass)").fetchall()[0][0] or ""
    number = layout.removeprefix(_LAYOUT)
    if not layout.startswith(_LAYOUT) or not number.isdigit():
        raise not_a_ledger(place)
    if int(number) > SCHEMA:
        raise newer_layout(place)
    if link.execute(_TAMPERED).fetchall():
        raise damaged(place)


def explained(error: psycopg.Error, place: str) -> LedgerError:
    """Return our error for one of the server's, by its code; its text may quote what was sent."""
    code = error.sqlstate or type(error).__name__
    hint = _HINTS.get(code, _HINTS.get(code[:2], "check the address and that the server is up"))
    return LedgerError(f"the ledger in {place} cannot be used ({code}); nothing was answered\nhint: {hint}")


_HINTS = {
    "53": "the server is out of space or connections",
    "55P03": "another process holds the ledger; ask again",
    "25006": "the server is read-only; use the primary",
    "42501": "give this user the right to create and write tables in its schema",
}
