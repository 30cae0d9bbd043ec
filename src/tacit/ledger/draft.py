"""A draft: what one transaction sees, which is what the store holds and what the transaction itself will add."""

from collections.abc import Mapping
from dataclasses import replace

from tacit.accounting.filter import Charge
from tacit.errors import LedgerError
from tacit.ledger.chain import BEGINNING, SigningKey, canonical, link
from tacit.ledger.entry import Account, Entry, Head, Record, Writes
from tacit.ledger.rows import Rows
from tacit.ledger.rulebook import RuleBook, fold, pointers_of

# How many accounts are kept at hand between transactions.
KNOWN_MAX = 4096


class Draft:
    """The ledger as of one transaction, with the entries it is about to add."""

    def __init__(
        self,
        rows: Rows,
        head: Head,
        *,
        time: str,
        book: RuleBook | None,
        accounts: Mapping[str, Account] | None = None,
    ) -> None:
        self.rows = rows
        self.before: Head | None = head
        self.head = head
        self.time = never_earlier(time, head.time)
        self.book = book if book is not None and book.number == head.rules else _read_book(rows)
        self._entries: list[Entry] = []
        self._requests: dict[str, Entry] = {}
        self._questions: dict[str, Entry] = {}
        self._answers: dict[int, Entry] = {}
        self.sealed: Writes | None = None
        self._known: dict[str, Account] = dict(accounts or {})
        self._accounts: dict[str, Account] = {}
        self._pointers: dict[str, int] = {}

    def account(self, scope: str) -> Account:
        """Return the running total of a scope."""
        if scope not in self._known:
            self._known[scope] = self.rows.account(scope)
        return self._known[scope]

    def known_accounts(self) -> dict[str, Account]:
        """Return the accounts this draft has read or changed, as they will be once it is written."""
        return self._known if len(self._known) <= KNOWN_MAX else {}

    def charge_for(self, request: str) -> Entry | None:
        """Return the charge made for a request."""
        return self._requests.get(request) or self.rows.charge_for(request)

    def answer_to(self, question: str) -> Entry | None:
        """Return the first answer to a question."""
        return self.rows.answer_to(question) or self._questions.get(question)

    def answer_paid_by(self, charge: int) -> Entry | None:
        """Return the answer that a charge paid for."""
        return self._answers.get(charge) or self.rows.answer_paid_by(charge)

    def entry(self, number: int) -> Entry | None:
        """Return one entry."""
        stored = 0 if self.before is None else self.before.number
        return self._entries[number - stored - 1] if stored < number <= self.head.number else self.rows.entry(number)

    def append(
        self, record: Record, *, request: str | None = None, question: str | None = None, answers: int | None = None
    ) -> Entry:
        """Add an entry at the end of the chain, at the draft's time, and return it."""
        body = canonical({**record, "time": self.time})
        number = self.head.number + 1
        entry = Entry(number, body, link(self.head.hash, body), request, question, answers)
        pointers = pointers_of(entry, self.book)
        if pointers:
            self._pointers |= pointers
            self.book = self.book.with_entry(entry)
        self._entries.append(entry)
        if request is not None:
            self._requests[request] = entry
        if question is not None:
            self._questions.setdefault(question, entry)
        if answers is not None:
            self._answers[answers] = entry
        self.head = replace(self.head, number=number, hash=entry.hash, time=self.time, rules=self.book.number)
        return entry

    def charge(self, scope: str, charge: Charge, *, number: int) -> None:
        """Add a charge to a scope's running total."""
        self._accounts[scope] = self._known[scope] = self.account(scope).add(charge, number=number)

    def seal(self, key: SigningKey) -> Writes | None:
        """Return what the transaction adds, its head signed; None where it adds nothing."""
        if not self._entries:
            return None
        head = replace(self.head, signature=key.sign(self.head.signed()))
        self.sealed = Writes(self.before, head, self._entries, self._accounts, self._pointers)
        return self.sealed


def never_earlier(time: str, latest: str) -> str:
    """Return the time of a new entry: never before an entry's, so a clock set back cannot re-open a period."""
    return max(time, latest)


def first_draft(rows: Rows, *, ledger: str, time: str) -> Draft:
    """Return the draft of a ledger's first entry."""
    draft = Draft(rows, Head(ledger, 0, BEGINNING, "", time, 0), time=time, book=RuleBook())
    draft.before = None
    return draft


def _read_book(rows: Rows) -> RuleBook:
    entries = [rows.entry(number) for number in sorted(set(rows.pointers().values()))]
    found = [entry for entry in entries if entry is not None]
    if len(found) != len(entries):
        raise LedgerError("the ledger is damaged: a table or a budget is missing\nhint: tacit ledger verify")
    return fold(found)
