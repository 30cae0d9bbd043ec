"""The tables of a ledger with every query on them, and the interface of a store: durable transactions.

The queries are written once for all stores; a store supplies only how a statement runs. Values read here are not
trusted: the head is signed, and drafts check the rest against it.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from threading import RLock
from typing import Any

from tacit.errors import LedgerError, TacitError
from tacit.ledger.entry import SCHEMA, Entry, Head, Writes
from tacit.ledger.locks import Locks

Query = tuple[str, tuple[Any, ...]]
Run = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]

# The hash covers `body`; `request`, `question` and `answers` are copies from it to be found by. `body` is the
# last, so that a long one is not read for the others' sake.
TABLES = (
    "CREATE TABLE tacit_head (one INTEGER PRIMARY KEY CHECK (one = 1), ledger TEXT NOT NULL, number BIGINT NOT NULL,"
    " hash TEXT NOT NULL, root TEXT NOT NULL, time TEXT NOT NULL, signature TEXT NOT NULL)",
    "CREATE TABLE tacit_entry (number INTEGER PRIMARY KEY, hash TEXT NOT NULL, request TEXT, question TEXT,"
    " answers BIGINT, body TEXT NOT NULL)",
    "CREATE TABLE tacit_state (name TEXT PRIMARY KEY, place TEXT NOT NULL, value TEXT NOT NULL)",
    "CREATE TABLE tacit_node (place TEXT PRIMARY KEY, children TEXT NOT NULL)",
    "CREATE UNIQUE INDEX tacit_request ON tacit_entry (request) WHERE request IS NOT NULL",
    "CREATE INDEX tacit_question ON tacit_entry (question) WHERE question IS NOT NULL",
    "CREATE UNIQUE INDEX tacit_answers ON tacit_entry (answers) WHERE answers IS NOT NULL",
    "CREATE INDEX tacit_place ON tacit_state (place)",
    # Beside the chain: hashes of a token's secret, and its last use. A row may be deleted, which ends the token;
    # a row does not make a token, since the chain has a hash of them. Visits of pages that were signed out are here too
    # until their natural end, under ids that tokens never have: `last` is their end.
    "CREATE TABLE tacit_token (id TEXT PRIMARY KEY, hash TEXT NOT NULL, first TEXT, last TEXT)",
)

HEAD = "SELECT ledger, number, hash, root, time, signature FROM tacit_head WHERE one = 1"
_ENTRY = "SELECT number, body, hash, request, question, answers FROM tacit_entry"
ENTRY = f"{_ENTRY} WHERE number = ?"
ENTRIES = f"{_ENTRY} WHERE number >= ? ORDER BY number"
BETWEEN = f"{_ENTRY} WHERE number BETWEEN ? AND ? ORDER BY number"
HASHES = "SELECT number, hash FROM tacit_entry WHERE number BETWEEN ? AND ? ORDER BY number"
BY_REQUEST = f"{_ENTRY} WHERE request = ?"
BY_QUESTION = f"{_ENTRY} WHERE question = ? ORDER BY number LIMIT 1"
BY_CHARGE = f"{_ENTRY} WHERE answers = ?"
NODE = "SELECT children FROM tacit_node WHERE place = ?"
NODES = "SELECT place, children FROM tacit_node"
BUCKET = "SELECT name, value FROM tacit_state WHERE place >= ? AND place < ?"
STATE = "SELECT name, place, value FROM tacit_state"
NAMES = "SELECT name FROM tacit_state WHERE name >= ? AND name < ? ORDER BY name"
HASH_OF = "SELECT id, hash, first, last FROM tacit_token WHERE id = ?"
NEXT_HASH = "SELECT id, hash, first, last FROM tacit_token WHERE id >= ? ORDER BY id LIMIT 1"
LAST_ID = "SELECT id FROM tacit_token WHERE id < 'g' ORDER BY id DESC LIMIT 1"  # of tokens: ids are hexadecimal

ALL_HASHES = "SELECT id, hash, first, last FROM tacit_token ORDER BY id"
KEEP_USED = "INSERT INTO tacit_token (id, hash, first, last) VALUES (?, ?, ?, ?)"
KEEP_HASH = "INSERT INTO tacit_token (id, hash) VALUES (?, ?)"
NOTE_USE = "UPDATE tacit_token SET first = COALESCE(first, ?), last = ? WHERE id = ?"
END_VISIT = "INSERT INTO tacit_token (id, hash, last) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING"
FORGET_VISITS = "DELETE FROM tacit_token WHERE id >= 'visit' AND last < ?"
FORGET_HASH = "DELETE FROM tacit_token WHERE id = ?"
ADD_HEAD = "INSERT INTO tacit_head (one, ledger, number, hash, root, time, signature) VALUES (1, ?, ?, ?, ?, ?, ?)"
# the one conditional write: it changes no row unless the head is still the one the decision was made on
MOVE_HEAD = (
    "UPDATE tacit_head SET number = ?, hash = ?, root = ?, time = ?, signature = ?"
    " WHERE one = 1 AND number = ? AND hash = ?"
)
ADD_ENTRY = "INSERT INTO tacit_entry (number, body, hash, request, question, answers) VALUES (?, ?, ?, ?, ?, ?)"
PUT_VALUE = (
    "INSERT INTO tacit_state (name, place, value) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
    " place = excluded.place, value = excluded.value"
)
PUT_NODE = (
    "INSERT INTO tacit_node (place, children) VALUES (?, ?) ON CONFLICT (place) DO UPDATE SET"
    " children = excluded.children"
)


class StoreRows:
    """The content of the store, read inside one transaction."""

    def __init__(self, run: Run, scan: Callable[[str, tuple[Any, ...]], Iterator[tuple[Any, ...]]]) -> None:
        self._run = run
        self._scan = scan

    def head(self) -> Head | None:
        found = self._run(HEAD, ())
        return Head(*found[0]) if found else None

    def entry(self, number: int) -> Entry | None:
        return self._one(ENTRY, number)

    def between(self, first: int, last: int) -> list[Entry]:
        """Return the entries of these numbers, both ends included."""
        return [Entry(*row) for row in self._run(BETWEEN, (first, last))]

    def hashes(self, first: int, last: int) -> dict[int, str]:
        """Return the hashes of the entries of these numbers, both ends included."""
        return dict(self._run(HASHES, (first, last)))

    def charge_for(self, request: str) -> Entry | None:
        return self._one(BY_REQUEST, request)

    def answer_to(self, question: str) -> Entry | None:
        """Return the first answer to a question."""
        return self._one(BY_QUESTION, question)

    def answer_paid_by(self, charge: int) -> Entry | None:
        return self._one(BY_CHARGE, charge)

    def node(self, place: str) -> str | None:
        """Return the children of the state's node at a place, if one is there."""
        found = self._run(NODE, (place,))
        return str(found[0][0]) if found else None

    def nodes(self) -> dict[str, str]:
        return dict(self._run(NODES, ()))

    def bucket(self, place: str) -> list[tuple[str, str]]:
        """Return the names and values of the state at places that begin with `place`."""
        return [(str(name), str(value)) for name, value in self._run(BUCKET, (place, place + "g"))]

    def values(self) -> Iterator[tuple[Any, ...]]:
        """Yield every name, place and value of the state."""
        return self._scan(STATE, ())

    def names(self, beginning: str) -> list[str]:
        """Return every name of the state that begins so; a missing name is not detected here."""
        after = beginning[:-1] + chr(ord(beginning[-1]) + 1)
        return [str(name) for (name,) in self._run(NAMES, (beginning, after))]

    def token(self, id: str) -> tuple[Any, ...] | None:
        """Return a token's id, the hash of its secret, and its first and last use."""
        found = self._run(HASH_OF, (id,))
        return found[0] if found else None

    def token_near(self, id: str) -> tuple[Any, ...] | None:
        """Return the same of that token, or of one that replaces it; None in an empty table."""
        last = self._run(LAST_ID, ())
        is_within = bool(last) and id <= last[0][0]
        found = self._run(NEXT_HASH, (id if is_within else "",))  # one row, for any id
        return next(iter(found), None)

    def tokens(self) -> list[tuple[Any, ...]]:
        """Return the same of every token."""
        return self._run(ALL_HASHES, ())

    def columns(self, first: int = 1) -> Iterator[tuple[Any, ...]]:
        """Yield entries in order as bare columns, a few at a time."""
        return self._scan(ENTRIES, (first,))

    def _one(self, query: str, key: int | str) -> Entry | None:
        found = self._run(query, (key,))
        return Entry(*found[0]) if found else None


@dataclass(frozen=True)
class Likely:
    """The probable reads of a step: rows that should be absent, and names of the state."""

    absent: tuple[Query, ...] = ()
    names: tuple[str, ...] = ()


def looks_for(*, request: str | None, questions: Iterable[str]) -> tuple[Query, ...]:
    """Return the queries by which a charge looks for rows that should be absent."""
    by_question = ((BY_QUESTION, (question,)) for question in questions)
    return (*(() if request is None else ((BY_REQUEST, (request,)),)), *by_question)


def write_statements(writes: Writes) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Yield the statements that write a transaction, each with its rows; the head is the last and moves one row."""
    yield ADD_ENTRY, [(e.number, e.body, e.hash, e.request, e.question, e.answers) for e in writes.entries]
    if writes.values:
        yield PUT_VALUE, list(writes.values)
    if writes.nodes:
        yield PUT_NODE, list(writes.nodes)
    head, before = writes.head, writes.before
    moved = (head.number, head.hash, head.root, head.time, head.signature)
    if before is None:
        yield ADD_HEAD, [(head.ledger, *moved)]
    else:
        yield MOVE_HEAD, [(*moved, before.number, before.hash)]


Work = Callable[[StoreRows], Writes | None]


class NotAsSigned(Exception):
    """The tables do not match the signed head: damage, or a head that has moved on meanwhile."""


class LedgerStore(ABC):
    """Keeps the tables of one ledger, through one connection, which the holder of `turn` uses.

    `durable` is whether a transaction survives a power cut; `place` and `places` name the location, without a password.
    """

    durable: bool
    place: str
    places: tuple[str, ...]
    locks: Locks
    _connection: Any = None

    def __init__(self) -> None:
        self.turn: RLock = RLock()
        self._process = os.getpid()

    @abstractmethod
    def transact(self, likely: Sequence[Likely], work: Work) -> None:
        """Run `work` on the content and write its result, all or none, on the disk on return; `work` may run again."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[StoreRows]:
        """Return the rows as of one moment."""

    @abstractmethod
    def checking(self) -> AbstractContextManager[None]:
        """Refuse tables or files that the store itself finds damaged, by the time what is inside has ended."""

    @abstractmethod
    def _open(self) -> Any:
        """Return a new connection to tables that are there and as we make them."""

    @abstractmethod
    def _failed(self, error: BaseException) -> BaseException:
        """Let go of the connection after an error, and return our error for one of the database's, or the same."""

    def beside(self, statement: str, values: tuple[Any, ...]) -> None:
        """Run one statement on the table beside the chain; on return it is on the disk."""
        with self.turn, self._opened() as connection:
            connection.execute(self._spelled(statement), values)

    def disconnect(self) -> None:
        """Let go of the connection, which the next use opens again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()

    def enter_child(self) -> None:
        """Note that this process is a fork of the one that opened the store."""
        self._process = os.getpid()

    def close(self) -> None:
        with self.turn:
            self.disconnect()

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        """Yield the connection; after any failure it is dropped, and the database's errors become ours."""
        if self._process != os.getpid():
            raise LedgerError("this ledger was opened in another process\nhint: open it again in this one")
        try:
            if self._connection is None:
                self._connection = self._open()
            yield self._connection
        except BaseException as error:
            fault = self._failed(error)
            if fault is error and isinstance(error, Exception) and not isinstance(error, TacitError):
                fault = unexpected(error)
            if fault is error:
                raise
            raise fault from error

    @staticmethod
    def _spelled(statement: str) -> str:
        """Return a statement in the database's own spelling."""
        return statement


def not_a_ledger(place: str) -> LedgerError:
    """Return the error for a database that is someone else's."""
    return LedgerError(f"{place} is not a ledger\nhint: give another path; the file was not changed")


def require_layout(version: int, place: str) -> None:
    """Refuse the layout of a later version, and one of an earlier version with another rule for budgets."""
    if version > SCHEMA:
        raise LedgerError(f"the ledger {place} was written by a newer version\nhint: update tacit")
    if version < SCHEMA:
        raise LedgerError(
            f"the ledger {place} was written by an older version, with another rule for budgets"
            "\nhint: read it with that version; here begin a new one, with budgets lowered by the amounts spent"
        )


def damaged(place: str) -> LedgerError:
    """Return the error for tables that are not as we wrote them."""
    return LedgerError(f"the ledger {place} is damaged\nhint: restore it from a backup, then: tacit ledger verify")


def unexpected(error: Exception) -> LedgerError:
    """Return the error for rows that differ from the signed ones, or that cannot be parsed."""
    if isinstance(error, NotAsSigned):
        return LedgerError(
            "the ledger was changed from outside: an entry, a total or a budget differs from its signed head; "
            "no charge was made and no answer was given"
            "\nhint: tacit ledger verify names it; restore the newest whole copy"
        )
    fault = LedgerError(
        f"the ledger holds a row that tacit did not write ({type(error).__name__}); no answer was given"
        "\nhint: tacit ledger verify names what is wrong"
    )
    fault.__cause__ = error
    return fault
