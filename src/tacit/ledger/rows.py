"""The ledger's tables and every query on them, once for all stores: a store supplies only how a statement runs."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tacit.accounting.filter import Charge
from tacit.ledger.entry import Account, Entry, Head, Writes, amount_or_none
from tacit.privacy.number import from_text, to_text

Query = tuple[str, tuple[Any, ...]]
Run = Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]

# `body` is what the hash covers; `request`, `question` and `answers` are copies from it to be found by.
TABLES = (
    "CREATE TABLE tacit_head (one INTEGER PRIMARY KEY CHECK (one = 1), ledger TEXT NOT NULL, number BIGINT NOT NULL,"
    " hash TEXT NOT NULL, signature TEXT NOT NULL, time TEXT NOT NULL, rules BIGINT NOT NULL)",
    "CREATE TABLE tacit_entry (number INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL, request TEXT,"
    " question TEXT, answers BIGINT)",
    "CREATE TABLE tacit_account (scope TEXT PRIMARY KEY, epsilon TEXT, rho TEXT NOT NULL, delta TEXT NOT NULL,"
    " charges BIGINT NOT NULL, last BIGINT NOT NULL)",
    "CREATE TABLE tacit_pointer (name TEXT PRIMARY KEY, number BIGINT NOT NULL)",
    "CREATE UNIQUE INDEX tacit_request ON tacit_entry (request) WHERE request IS NOT NULL",
    "CREATE INDEX tacit_question ON tacit_entry (question) WHERE question IS NOT NULL",
    "CREATE UNIQUE INDEX tacit_answers ON tacit_entry (answers) WHERE answers IS NOT NULL",
)

HEAD = "SELECT ledger, number, hash, signature, time, rules FROM tacit_head WHERE one = 1"
ACCOUNT = "SELECT epsilon, rho, delta, charges, last FROM tacit_account WHERE scope = ?"
ACCOUNTS = "SELECT scope, epsilon, rho, delta, charges, last FROM tacit_account ORDER BY scope"
_ENTRY = "SELECT number, body, hash, request, question, answers FROM tacit_entry"
ENTRY = f"{_ENTRY} WHERE number = ?"
ENTRIES = f"{_ENTRY} WHERE number >= ? ORDER BY number"
BY_REQUEST = f"{_ENTRY} WHERE request = ?"
BY_QUESTION = f"{_ENTRY} WHERE question = ? ORDER BY number LIMIT 1"
BY_CHARGE = f"{_ENTRY} WHERE answers = ?"
POINTER = "SELECT number FROM tacit_pointer WHERE name = ?"
POINTERS = "SELECT name, number FROM tacit_pointer ORDER BY name"

ADD_HEAD = "INSERT INTO tacit_head (one, ledger, number, hash, signature, time, rules) VALUES (1, ?, ?, ?, ?, ?, ?)"
# the one conditional write: it changes nothing unless the head is still the one the decision was made on
MOVE_HEAD = (
    "UPDATE tacit_head SET number = ?, hash = ?, signature = ?, time = ?, rules = ?"
    " WHERE one = 1 AND number = ? AND hash = ?"
)
ADD_ENTRY = "INSERT INTO tacit_entry (number, body, hash, request, question, answers) VALUES (?, ?, ?, ?, ?, ?)"
PUT_ACCOUNT = (
    "INSERT INTO tacit_account (scope, epsilon, rho, delta, charges, last) VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (scope) DO UPDATE SET epsilon = excluded.epsilon, rho = excluded.rho, delta = excluded.delta,"
    " charges = excluded.charges, last = excluded.last"
)
PUT_POINTER = (
    "INSERT INTO tacit_pointer (name, number) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET number = excluded.number"
)


class Rows:
    """What the store holds, read inside one transaction."""

    def __init__(self, run: Run, scan: Callable[[str, tuple[Any, ...]], Iterator[tuple[Any, ...]]]) -> None:
        self._run = run
        self._scan = scan

    def head(self) -> Head | None:
        """Return the head, or None in a ledger that has no entry yet."""
        found = self._run(HEAD, ())
        return Head(*found[0]) if found else None

    def account(self, scope: str) -> Account:
        """Return the running total of a scope; one that was never charged is at nothing."""
        found = self._run(ACCOUNT, (scope,))
        return _account(found[0]) if found else Account()

    def accounts(self) -> dict[str, Account]:
        """Return every running total by scope."""
        return {row[0]: _account(row[1:]) for row in self._run(ACCOUNTS, ())}

    def entry(self, number: int) -> Entry | None:
        """Return one entry."""
        return self._one(ENTRY, number)

    def charge_for(self, request: str) -> Entry | None:
        """Return the charge made for a request."""
        return self._one(BY_REQUEST, request)

    def answer_to(self, question: str) -> Entry | None:
        """Return the first answer to a question."""
        return self._one(BY_QUESTION, question)

    def answer_paid_by(self, charge: int) -> Entry | None:
        """Return the answer that a charge paid for."""
        return self._one(BY_CHARGE, charge)

    def pointer(self, name: str) -> int | None:
        """Return the number of the entry that a name points to."""
        found = self._run(POINTER, (name,))
        return int(found[0][0]) if found else None

    def pointers(self) -> dict[str, int]:
        """Return every name and the number of the entry it points to."""
        return {name: int(number) for name, number in self._run(POINTERS, ())}

    def columns(self, first: int = 1) -> Iterator[tuple[Any, ...]]:
        """Yield entries in order as bare columns, a few at a time."""
        return self._scan(ENTRIES, (first,))

    def _one(self, query: str, key: int | str) -> Entry | None:
        found = self._run(query, (key,))
        return Entry(*found[0]) if found else None


def reads_of_charge(*, scopes: Sequence[str], request: str | None, question: str) -> list[Query]:
    """Return the queries a charge will probably make, for a store that can send them ahead in one message."""
    reads: list[Query] = [(ACCOUNT, (scope,)) for scope in scopes]
    reads += [(BY_REQUEST, (request,))] if request is not None else []
    return [*reads, (BY_QUESTION, (question,))]


def reads_of_answer(charge: int) -> list[Query]:
    """Return the queries that storing an answer will make."""
    return [(ENTRY, (charge,)), (BY_CHARGE, (charge,))]


def write_statements(writes: Writes) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    """Yield the statements that write a transaction, each with its rows; the head is the last and moves one row."""
    yield ADD_ENTRY, [(e.number, e.body, e.hash, e.request, e.question, e.answers) for e in writes.entries]
    if writes.accounts:
        yield PUT_ACCOUNT, [account_row(scope, account) for scope, account in writes.accounts.items()]
    if writes.pointers:
        yield PUT_POINTER, list(writes.pointers.items())
    head, before = writes.head, writes.before
    moved = (head.number, head.hash, head.signature, head.time, head.rules)
    if before is None:
        yield ADD_HEAD, [(head.ledger, *moved)]
    else:
        yield MOVE_HEAD, [(*moved, before.number, before.hash)]


def _account(row: Sequence[Any]) -> Account:
    epsilon, rho, delta, charges, last = row
    return Account(Charge(amount_or_none(epsilon), from_text(rho), from_text(delta)), int(charges), int(last))


def account_row(scope: str, account: Account) -> tuple[Any, ...]:
    """Return an account as the columns of its row."""
    spent = account.spent
    epsilon = None if spent.epsilon is None else to_text(spent.epsilon)
    return (scope, epsilon, to_text(spent.rho), to_text(spent.delta), account.charges, account.last)
