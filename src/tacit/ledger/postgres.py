"""The PostgreSQL store: for several servers that share one ledger.

A transaction is one conditional statement: it writes everything if the head is still the one the decision was made on,
and otherwise changes no row. A process that was the last to write sends only that statement. If others write too, they
queue for a lock, and the next in line reads as soon as the one before has written. The next need not wait for the
disk: the server has one log, so waiting for its own write to reach the disk includes all earlier ones, and many wait
together.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock
from typing import Any

try:
    import psycopg
    from psycopg.errors import DeadlockDetected, SerializationFailure, UniqueViolation
    from psycopg.pq import TransactionStatus
except ImportError as missing:
    from tacit.errors import LedgerError as _LedgerError

    raise _LedgerError("PostgreSQL needs psycopg\nhint: pip install 'tacit[postgres]'") from missing

from tacit.errors import LedgerError
from tacit.ledger.chain import canonical
from tacit.ledger.entry import SCHEMA, Head, Writes
from tacit.ledger.locks import number_of
from tacit.ledger.state import place_of
from tacit.ledger.store import (
    BUCKET,
    BY_CHARGE,
    BY_QUESTION,
    BY_REQUEST,
    HEAD,
    MOVE_HEAD,
    NODE,
    TABLES,
    LedgerStore,
    Likely,
    NotAsSigned,
    Query,
    StoreRows,
    Work,
    damaged,
    not_a_ledger,
    require_layout,
    write_statements,
)

TRIES_MAX = 50
# How long a busy server is waited for: to let us in, and to let us write.
CONNECT_SECONDS = 60
LOCK_SECONDS = 60
_LAYOUT = "tacit ledger layout "
_OURS = (
    "SELECT oid FROM pg_class"
    " WHERE relname IN ('tacit_head', 'tacit_entry', 'tacit_state', 'tacit_node', 'tacit_token')"
    " AND relnamespace = current_schema()::regnamespace"
)
# a trigger, a rule or a view, a policy that hides rows, a table with rows shown among ours
_TAMPERED = (
    f"SELECT 1 FROM pg_trigger WHERE NOT tgisinternal AND tgrelid IN ({_OURS})"  # noqa: S608 (our own constants)
    f" UNION ALL SELECT 1 FROM pg_rewrite WHERE ev_class IN ({_OURS})"
    f" UNION ALL SELECT 1 FROM pg_policy WHERE polrelid IN ({_OURS})"
    f" UNION ALL SELECT 1 FROM pg_inherits WHERE inhparent IN ({_OURS}) OR inhrelid IN ({_OURS})"
)

# A lock for each ledger of a server.
_LOCK = "'tacit_head'::regclass::oid::int, 0"

# Rows that a decision took for absent: the write is conditional on their absence.
_ABSENT = {
    BY_REQUEST: "request = ANY(?::text[])",
    BY_QUESTION: "question = ANY(?::text[])",
    BY_CHARGE: "answers = ANY(?::bigint[])",
}
_CONDITIONS = " ".join(
    f"AND NOT EXISTS (SELECT 1 FROM tacit_entry WHERE {taken})"  # noqa: S608 (our own constants)
    for taken in _ABSENT.values()
)

# Writes a transaction in one statement, all of it or none of it; {0} holds further conditions.
_WRITE = f"""
WITH moved AS ({MOVE_HEAD} {{0}} RETURNING 1),
entries AS (
    INSERT INTO tacit_entry (number, body, hash, request, question, answers)
    SELECT new.* FROM moved, json_to_recordset(?::json)
    AS new(number bigint, body text, hash text, request text, question text, answers bigint)),
state AS (
    INSERT INTO tacit_state (name, place, value)
    SELECT new.* FROM moved, json_to_recordset(?::json) AS new(name text, place text, value text)
    ON CONFLICT (name) DO UPDATE SET place = excluded.place, value = excluded.value),
nodes AS (
    INSERT INTO tacit_node (place, children)
    SELECT new.* FROM moved, json_to_recordset(?::json) AS new(place text, children text)
    ON CONFLICT (place) DO UPDATE SET children = excluded.children)
SELECT count(*) FROM moved
""".replace("?", "%s")  # noqa: S608 (our own constants)
_WRITE_LOCKED = _WRITE.format("")
# without queueing: the lock is free and not awaited, and the rows assumed absent are absent
_WRITE_ALONE = _WRITE.format(f"AND pg_try_advisory_xact_lock({_LOCK}) {_CONDITIONS}".replace("?", "%s"))

_QUEUE = f"BEGIN; SET LOCAL synchronous_commit = off; SELECT pg_advisory_xact_lock({_LOCK})"
_AWAIT_DISK = "SELECT pg_logical_emit_message(true, 'tacit', '')"
# Prepared once per connection and run by name: several statements in one message cannot take parameters otherwise.
_SOME_NODES = "SELECT place, children FROM tacit_node WHERE place = ANY(?::text[])"
_PLANNED = {
    HEAD: "tacit_get_head",
    BY_REQUEST: "tacit_by_request",
    BY_QUESTION: "tacit_by_question",
    BY_CHARGE: "tacit_by_charge",
    BUCKET: "tacit_bucket",
    _SOME_NODES: "tacit_some_nodes",
    _WRITE_LOCKED: "tacit_write",
}
# How many nodes of the state are remembered to be there.
NODES_MAX = 4096

Found = dict[Query, list[tuple[Any, ...]]]
Link = psycopg.Connection[tuple[Any, ...]]


class PostgresStore(LedgerStore):
    """A ledger's tables in a PostgreSQL schema: the first one on the connection's search path."""

    durable = True

    def __init__(self, address: str) -> None:
        super().__init__()
        self._address = address
        self.locks: SessionLocks = SessionLocks(address)
        self._last: Head | None = None  # the head this process wrote last
        self._alone = False  # whether no other process seems to write
        self._nodes: set[str] = set()  # if the state is known to have nodes
        self.place = "postgresql"
        with self._opened() as link:
            info = link.info
            schema = link.execute("SELECT current_schema()").fetchall()[0][0]
            self.place: str = f"postgresql {info.host}:{info.port}/{info.dbname}.{schema}"
        self.places: tuple[str, ...] = (self.place,)

    def __del__(self) -> None:
        self.disconnect()
        self.locks.close()

    def transact(self, likely: Sequence[Likely], work: Work) -> None:
        """Run `work` and write what it returns in one durable transaction (see `LedgerStore`)."""
        with self.turn:
            for attempt in range(TRIES_MAX):
                try:
                    if self._alone and self._last is not None:
                        self._write_alone(self._last, likely, work)
                    else:
                        self._write_in_turn(likely, work)
                except _TryAgain:
                    time.sleep(0 if attempt == 0 else min(0.1, 0.001 * 2**attempt))
                else:
                    return
            raise LedgerError(f"the ledger {self.place} is too busy; no answer was given\nhint: ask again")

    def _write_alone(self, last: Head, likely: Sequence[Likely], work: Work) -> None:
        """Decide on this process's own last write, and write on condition that no other process has written since."""
        self._alone = False  # unless it turns out well
        assumed: Found = {(HEAD, ()): [_head_row(last)]}
        assumed |= {query: [] for one in likely for query in one.absent}
        with self._opened() as link:
            try:
                writes = work(_rows_of_link(link, assumed))
            except NotAsSigned:
                raise _TryAgain from None  # read after another had written
            if writes is None:
                raise _TryAgain  # without a conditional write a moved head would not be detected
            absent = [_array_text([values[0] for query, values in assumed if query == kind]) for kind in _ABSENT]
            if link.execute(_WRITE_ALONE, (*_head_values(writes), *absent, *_json_values(writes))).fetchall() != [(1,)]:
                raise _TryAgain
            self._last, self._alone = writes.head, True

    def _write_in_turn(self, likely: Sequence[Likely], work: Work) -> None:
        """Queue, decide on the current tables, write, let the next one in, and wait for the disk."""
        with self._opened() as link:
            found = self._queue(link, likely)
            writes = work(_rows_of_link(link, found))
            if writes is None:
                link.execute("COMMIT")
                return
            if not _write_and_commit(link, writes):
                raise _TryAgain
            self._alone = self._last == writes.before
            self._last = writes.head

    def _queue(self, link: Link, likely: Sequence[Likely]) -> Found:
        """Take the lock, and fetch the rows that the work will probably read: one round trip."""
        places = sorted({place_of(name) for one in likely for name in one.names})
        queries: Found = {query: [] for one in likely for query in one.absent}
        found: Found = {(HEAD, ()): [], **queries}
        paths = [self._path(place) for place in places]
        nodes = sorted({at for path in paths for at in path})
        buckets = sorted({path[-1] for path in paths})
        statements = [_QUEUE, *map(_planned, found)]
        if places:
            statements += [_planned((_SOME_NODES, (_array_text(nodes),)))]
            statements += [_planned((BUCKET, (at, at + "g"))) for at in buckets]
        cursor = link.execute("; ".join(statements).encode(), prepare=False)
        for _ in range(3):  # the statements that begin, set and lock return no rows
            cursor.nextset()
        for query in found:
            found[query] = cursor.fetchall()
            cursor.nextset()
        if places:
            children: dict[str, str] = dict(cursor.fetchall())
            found |= {(NODE, (at,)): [(children[at],)] if at in children else [] for at in nodes}
            self._nodes = {*self._nodes, *children} if len(self._nodes) < NODES_MAX else {*children}
            for at in buckets:
                cursor.nextset()
                found[BUCKET, (at, at + "g")] = cursor.fetchall()
        return found

    def _path(self, place: str) -> list[str]:
        """Return the known nodes on the way to a place, and the bucket that should follow."""
        path = [""]
        while path[-1] in self._nodes:
            path.append(place[: len(path)])
        return path

    @contextmanager
    def reading(self) -> Iterator[StoreRows]:
        with self.turn, self._opened() as link:
            with link.pipeline():
                link.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                found = link.execute(HEAD)
            heads = found.fetchall()
            if self._last is not None and heads != [_head_row(self._last)]:
                self._alone = False  # another has written
            yield _rows_of_link(link, {(HEAD, ()): heads})
            link.execute("COMMIT")

    @contextmanager
    def checking(self) -> Iterator[None]:
        """Refuse tables that carry a trigger or a rule: it could undo a charge."""
        with self.turn:
            with self._opened() as link:
                _check_tables(link, self.place)
            yield

    def close(self) -> None:
        super().close()
        self.locks.close()

    @staticmethod
    def _spelled(statement: str) -> str:
        return _ours(statement)

    def _failed(self, error: BaseException) -> BaseException:
        if isinstance(error, _TryAgain | SerializationFailure | DeadlockDetected | UniqueViolation):
            if self._connection is not None and self._connection.info.transaction_status != TransactionStatus.IDLE:
                self.disconnect()
            return _TryAgain()
        self.disconnect()
        return explained(error, self.place) if isinstance(error, psycopg.Error) else error

    def _open(self) -> Link:
        link: Link = psycopg.connect(
            self._address,
            autocommit=True,
            prepare_threshold=1,
            connect_timeout=CONNECT_SECONDS,
            application_name="tacit ledger",
        )
        try:
            # a server may be set up to answer before the disk has it
            link.execute("SET synchronous_commit = on")
            # a read sees one moment; a write is conditional on the head, whatever else it sees
            link.execute("SET default_transaction_isolation = 'read committed'")
            # a plan made while the tables are small must not scan them once they are large
            link.execute("SET enable_seqscan = off")
            link.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
            # from here on one schema: other schemas and temporary tables never come before ours
            link.execute("SELECT set_config('search_path', quote_ident(current_schema()) || ', pg_temp', false)")
            _require_sync(link, self.place)
            _create_tables(link)
            _check_tables(link, self.place)
            _prepare_statements(link)
        except BaseException:
            link.close()
            raise
        return link


class _TryAgain(Exception):
    """Another writer came between and no row was written; running the work again is safe."""


def _head_row(head: Head) -> tuple[Any, ...]:
    return (head.ledger, head.number, head.hash, head.root, head.time, head.signature)


def _head_values(writes: Writes) -> tuple[Any, ...]:
    head, before = writes.head, writes.before
    if before is None:
        raise LedgerError("the ledger's head is missing\nhint: open it again")
    return (head.number, head.hash, head.root, head.time, head.signature, before.number, before.hash)


def _json_values(writes: Writes) -> tuple[str, str, str]:
    entries = [(e.number, e.body, e.hash, e.request, e.question, e.answers) for e in writes.entries]
    return (
        _json(("number", "body", "hash", "request", "question", "answers"), entries),
        _json(("name", "place", "value"), writes.values),
        _json(("place", "children"), writes.nodes),
    )


def _write_and_commit(link: Link, writes: Writes) -> bool:
    """Write everything if the head is still the one that was read, let the next one in, and wait for the disk."""
    if writes.before is None:
        for statement, rows in write_statements(writes):
            for row in rows:
                link.execute(_ours(statement), row)
        link.execute("COMMIT")
        link.execute(_AWAIT_DISK)
        return True
    write = _planned((_WRITE_LOCKED, (*_head_values(writes), *_json_values(writes))))
    return link.execute(f"{write}; COMMIT; {_AWAIT_DISK}".encode(), prepare=False).fetchall() == [(1,)]


def _planned(query: Query) -> str:
    statement, values = query
    return f"EXECUTE {_PLANNED[statement]}" + (f"({', '.join(map(_literal, values))})" if values else "")


def _literal(value: int | str) -> str:
    """Return a value as a constant; the escaping is the one that no setting of the server changes."""
    if isinstance(value, int):
        return str(value)
    if "\0" in value:
        raise LedgerError("a text for the ledger holds a NUL character\nhint: this is a bug in tacit; please report it")
    return "E'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _prepare_statements(link: Link) -> None:
    """Plan what is run by name; a plan made for one value serves all."""
    link.execute("SET plan_cache_mode = force_generic_plan")
    for statement, name in _PLANNED.items():
        parts = statement.replace("%s", "?").split("?")
        numbered = "".join(f"{part}${number}" for number, part in enumerate(parts[:-1], start=1)) + parts[-1]
        link.execute(f"PREPARE {name} AS {numbered}".encode())


def _array_text(keys: Sequence[object]) -> str:
    """Return hashes, places or numbers as an array's text; none of them needs escaping."""
    return "{" + ",".join(f'"{key}"' for key in keys) + "}"


def _json(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    return canonical([dict(zip(names, row, strict=True)) for row in rows])


def _rows_of_link(link: Link, assumed: Found) -> StoreRows:
    def run(statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        found = assumed.get((statement, values))
        return link.execute(_ours(statement), values).fetchall() if found is None else found

    def scan(statement: str, values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        with link.cursor(name="tacit_scan") as cursor:
            cursor.itersize = 5000
            yield from cursor.execute(_ours(statement), values)

    return StoreRows(run, scan)


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
                # names are in the order of their bytes, as they are everywhere
                link.execute(everywhere.replace(" TEXT", ' TEXT COLLATE "C"'))
            link.execute(f"COMMENT ON TABLE tacit_head IS '{_LAYOUT}{SCHEMA}'")


def _require_sync(link: Link, place: str) -> None:
    if link.execute("SHOW fsync").fetchall() != [("on",)]:
        raise LedgerError(f"{place} runs with fsync off, so a charge could be lost\nhint: set fsync = on")


def _layout(link: Link) -> str:
    return link.execute("SELECT obj_description('tacit_head'::regclass)").fetchall()[0][0] or ""


def _check_tables(link: Link, place: str) -> None:
    layout = _layout(link)
    number = layout.removeprefix(_LAYOUT)
    if not layout.startswith(_LAYOUT) or not number.isdigit():
        raise not_a_ledger(place)
    require_layout(int(number), place)
    if link.execute(_TAMPERED).fetchall():
        raise damaged(place)


def explained(error: psycopg.Error, place: str) -> LedgerError:
    """Return our error for one of the server's, by its code: its text may quote the data that was sent."""
    code = error.sqlstate or type(error).__name__
    hint = _HINTS.get(code, _HINTS.get(code[:2], "check the address and that the server is up"))
    return LedgerError(f"the ledger in {place} cannot be used ({code}); no answer was given\nhint: {hint}")


_HINTS = {
    "53": "the server is out of space or connections",
    "55P03": "another process holds the ledger; ask again",
    "25006": "the server is read-only; use the primary",
    "42501": "give this user the right to create and write tables in its schema",
}


# ---- locks of requests in hand (see `locks.py`) ----------------------------------------------------------------------

# Seconds until the server notices a client on a machine that is gone.
_NOTICED = {"tcp_keepalives_idle": 10, "tcp_keepalives_interval": 5, "tcp_keepalives_count": 4}


class SessionLocks:
    """Locks of a separate session: the server lets go of them with it, of a vanished machine in half a minute."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._held: set[int] = set()  # a session may take its own lock twice
        self._link: Link | None = None
        self._of_parent: list[Link] = []  # kept: closing one in a fork would end the parent's session
        self._process = os.getpid()
        self._door = Lock()

    def take(self, key: str) -> bool:
        number = number_of(key)
        with self._door:
            self._leave_to_parent()
            if number in self._held:
                return False
            is_free = self._ask_or_reconnect("pg_try_advisory_lock", number)
            if is_free:
                self._held.add(number)
            return is_free

    def is_free(self, key: str) -> bool:
        """Return whether no process holds a lock; several may look at the same time."""
        number = number_of(key)
        with self._door:
            self._leave_to_parent()
            if number in self._held or not self._ask_or_reconnect("pg_try_advisory_lock_shared", number):
                return False
            self._ask_or_reconnect("pg_advisory_unlock_shared", number)
            return True

    def let_go(self, key: str) -> None:
        number = number_of(key)
        with self._door:
            self._leave_to_parent()
            self._held.discard(number)
            try:
                if self._link is not None:
                    self._ask("pg_advisory_unlock", number)
            except psycopg.Error:
                self._drop()

    def close(self) -> None:
        with self._door:
            self._leave_to_parent()
            self._drop()

    def _ask_or_reconnect(self, function: str, number: int) -> bool:
        try:
            return self._ask(function, number)
        except psycopg.Error:  # it was idle for long, or the server was restarted
            self._drop()
        try:
            return self._ask(function, number)
        except psycopg.Error as error:
            self._drop()
            raise _lost(error) from error

    def _ask(self, function: str, number: int) -> bool:
        if self._link is None:
            self._link = psycopg.connect(
                self._address, autocommit=True, connect_timeout=CONNECT_SECONDS, application_name="tacit in hand"
            )
            for setting, value in _NOTICED.items():
                self._link.execute(f"SET {setting} = {value}".encode())
        # a lock of two numbers is another's: the ledger's own has them
        return bool(self._link.execute(f"SELECT {function}(%s::bigint)".encode(), (number,)).fetchall()[0][0])

    def _drop(self) -> None:
        if self._link is not None:
            link, self._link = self._link, None
            with contextlib.suppress(psycopg.Error):
                link.close()

    def _leave_to_parent(self) -> None:
        """Open a new connection in a fork: the old connection and its locks are the parent's."""
        if self._process != os.getpid():
            self._process, self._held = os.getpid(), set()
            self._of_parent += [] if self._link is None else [self._link]
            self._link = None


def _lost(error: psycopg.Error) -> LedgerError:
    code = error.sqlstate or type(error).__name__
    return LedgerError(
        f"requests cannot be held on the PostgreSQL server ({code}); no charge was made and no answer was given"
        "\nhint: check that the server is up, and has room for one more connection of each worker"
    )
