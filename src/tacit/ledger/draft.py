"""A draft: the view of one transaction, that is the store's content plus everything the transaction will add.

Everything it returns was checked against the signed head: totals and pointers by the state, entries by the chain.

The first part is the rule book: the tables and budgets in force, each read when it is needed. The state has, for every
name, source and budget, a pointer to the entry that declares it: its number and its hash. A question reads only what
it needs, for any number of tables, analysts and budgets.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from tacit.accounting import Charge
from tacit.errors import LedgerError
from tacit.ledger.budget import BLOCK, EACH, Budget, aside_changes, budget_from, set_aside
from tacit.ledger.chain import BEGINNING, SigningKey, canonical, link
from tacit.ledger.entry import (
    Account,
    Entry,
    Head,
    Record,
    Writes,
    account_from,
    account_name,
    account_text,
)
from tacit.ledger.spelling import name_key
from tacit.ledger.state import Pieces, State, whole_state
from tacit.ledger.store import NotAsSigned, StoreRows

# The prefixes of names in the state.
NAME = "name "
TABLE = "table "
SOURCE = "source "
MEMBER = "people "  # of a cohort; the state keeps the older word
FIRST = "first "
FACT = "fact "
PERSON = "person "
PEOPLE = "people"  # the first person: from then on, only listed people may ask
HELD = "token "
NOTE = "note "
BLOCKS = "blocks "  # those that a cohort was ever charged for
STREAM = "stream "  # the newest step of a stream, by its charge
ATTEMPT = "attempt "  # the newest at a charge that was carried out again, or that failed
WRITTEN = "written "  # how a name was first written
NAMES = "names"  # the first entry: from then on, spellings of a name are one
BUDGETS = "budgets "
KEY = "key"  # the newest entry that names a key to sign with; None: the first entry does

Get = Callable[[str], str | None]
Pointed = Callable[[int, str], Entry]


# ---- the rule book ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Declared:
    """A table as last declared: the entry that declares it, and its content."""

    entry: int
    id: str
    name: str
    cohort: str
    version: int
    declaration: Record
    declaration_hash: str
    source: str | None
    marks: tuple[str, ...] = ()  # hashes of the parts of its source

    @property
    def sources(self) -> tuple[str, ...]:
        return self.marks if self.source is None else (self.source, *self.marks)


class RuleBook:
    """Tables by name and id, the cohort of each source, and the budgets of each cohort, as the state has them."""

    def __init__(self, get: Get, pointed: Pointed) -> None:
        self._get = get
        self._pointed = pointed

    def named(self, name: str) -> Declared | None:
        return self._declared(name_of(name))

    def table(self, id: str) -> Declared | None:
        return self._declared(TABLE + id)

    def known_by(self, source: str) -> Declared | None:
        """Return the table that a source, or a part of one, was first declared with."""
        return self._declared(SOURCE + source)

    def member(self, cohort: str) -> Declared | None:
        """Return the first table of a cohort; every other one has the same unit and neighbours."""
        return self._declared(MEMBER + cohort)

    def budgets(self, cohort: str, analyst: str | None) -> list[tuple[int, Budget]]:
        """Return an analyst's or everyone's budgets with their entries: one for each period."""
        text = self._get(budgets_of(cohort, analyst))
        found = [] if text is None else json.loads(text)
        return [(number, _budget(self._pointed(number, hash).body)) for _, number, hash in found]

    def applying(self, cohort: str, analyst: str) -> list[Budget]:
        """Return the budgets that limit a charge by `analyst`: the personal one, otherwise each analyst's."""
        own = self.budgets(cohort, analyst)
        each = [] if analyst == EACH else self.budgets(cohort, EACH)
        periods = {budget.period for _, budget in own}
        applying = [*self.budgets(cohort, None), *own, *(one for one in each if one[1].period not in periods)]
        return [budget for _, budget in sorted(applying, key=lambda one: one[0])]

    def first(self, cohort: str) -> Budget | None:
        entry = self._at(FIRST + cohort)
        return None if entry is None else _budget(entry.body)

    def declared(self, cohort: str) -> Budget:
        """Return the budget that every cohort has, to everyone together: for life, or per the period first declared."""
        first = self.first(cohort)
        period = None if first is None else first.period
        found = next((budget for _, budget in self.budgets(cohort, None) if budget.period == period), None)
        if found is None:
            raise LedgerError("the ledger is damaged: a table lacks a budget\nhint: run tacit ledger verify")
        return found

    def charged(
        self, budget: Budget, *, analyst: str, time: str, blocks: Sequence[str] | None
    ) -> Iterator[tuple[str, int]]:
        """Yield the accounts that a charge is added to, with its times: two if a block's rows may replace another's."""
        if budget.period != BLOCK or blocks is None:
            yield budget.scope(analyst=analyst, time=time), 1
            return
        table = self.member(budget.cohort)
        times = 2 if table is not None and table.declaration.get("neighbours") == "replace" else 1
        for block in blocks:
            yield budget.scope(analyst=analyst, time=time, block=block), times

    def limited(
        self,
        budget: Budget,
        account: Callable[[str], Account],
        *,
        analyst: str,
        time: str,
        blocks: Sequence[str] | None,
    ) -> Iterator[tuple[str, Account, int]]:
        """Yield the totals that a budget limits when a charge is added, with how many times the charge counts in each.

        The total of a block has the charges to it and those to all blocks. A charge to all blocks is limited by every
        block that was ever charged, and by one that was not.
        """
        for scope, times in self.charged(budget, analyst=analyst, time=time, blocks=blocks):
            yield scope, self._total(budget, account, scope, analyst, time), times
        if budget.period == BLOCK and blocks is None:
            for block in self.blocks(budget.cohort):
                scope = budget.scope(analyst=analyst, time=time, block=block)
                yield scope, self._total(budget, account, scope, analyst, time), 1

    def blocks(self, cohort: str) -> list[str]:
        """Return the blocks of a cohort that were ever charged by name."""
        return json.loads(self._get(BLOCKS + cohort) or "[]")  # type: ignore[no-any-return]

    def _total(self, budget: Budget, account: Callable[[str], Account], scope: str, analyst: str, time: str) -> Account:
        found = account(scope)
        every = budget.scope(analyst=analyst, time=time)
        if budget.period != BLOCK or scope == every:
            return found
        other = account(every)
        return Account(found.spent + other.spent, found.charges + other.charges, max(found.last, other.last))

    def _declared(self, name: str) -> Declared | None:
        entry = self._at(name)
        return None if entry is None else declared_from(entry)

    def _at(self, name: str) -> Entry | None:
        text = self._get(name)
        return None if text is None else self._pointed(*json.loads(text))


def changes(entry: Entry, get: Get) -> dict[str, str]:
    """Return the changes that an entry makes in the state, as pointers to the entry; `get` reads the current state."""
    record = entry.record
    pointer = canonical([entry.number, entry.hash])
    if record["kind"] == "table":
        table = declared_from(entry)
        new = [MEMBER + table.cohort, *(SOURCE + source for source in table.sources)]
        names = {name_of(table.name): pointer, TABLE + table.id: pointer}
        return names | {name: pointer for name in new if get(name) is None}
    if record["kind"] == "budget":
        cohort, analyst, period = record["people"], record["analyst"], record["period"]
        name = budgets_of(cohort, analyst_key(analyst))
        others = [one for one in json.loads(get(name) or "[]") if one[0] != period]
        put = {name: canonical([*others, [period, entry.number, entry.hash]])} | written(analyst, get)
        return put if get(FIRST + cohort) is not None else put | {FIRST + cohort: pointer}
    if record["kind"] == "fact":
        return {fact_name(record["table"], record["question"]): pointer}
    if record["kind"] == "attempt":
        return {attempt_name(record["charge"]): pointer} | aside_changes(record, get)
    if record["kind"] == "step":
        return {stream_name(record["charge"]): pointer}
    if record["kind"] == "charge":
        return aside_changes(record, get) | block_changes(record, get)
    if record["kind"] == "person":
        first = {} if get(PEOPLE) is not None else {PEOPLE: pointer}
        return first | {person_name(record["name"]): pointer} | written(record["name"], get)
    if record["kind"] == "token":
        return {HELD + record["token"]: pointer}
    if record["kind"] == "note":
        return {NOTE + record["note"]: pointer}
    if record["kind"] == "key":
        return {KEY: pointer}
    if record["kind"] == "ledger":
        return {NAMES: pointer}
    return {}


def block_changes(record: Record, get: Get) -> dict[str, str]:
    """Return the change that a charge makes in the list of blocks that were ever charged."""
    if not (new := {*record.get("blocks", ())}):
        return {}
    name = BLOCKS + record["people"]
    known = {*json.loads(get(name) or "[]")}
    return {} if new <= known else {name: canonical(sorted(known | new))}


def analyst_key(analyst: str | None) -> str | None:
    """Return what an analyst goes by in the state: the name's key."""
    return name_key(analyst) if analyst else analyst


def written(name: str | None, get: Get) -> dict[str, str]:
    """Return the change that keeps how a name was first written, where its key does not say so."""
    if not name or name == (key := name_key(name)) or get(WRITTEN + canonical(key)) is not None:
        return {}
    return {WRITTEN + canonical(key): canonical(name)}


def person_name(name: str | None) -> str:
    """Return the key in the state for a person; None means requests without a name."""
    return PERSON + canonical(None if name is None else name_key(name))


def name_of(name: str) -> str:
    return NAME + canonical(name)


def budgets_of(cohort: str, analyst: str | None) -> str:
    return BUDGETS + canonical([cohort, analyst])


def fact_name(table: str, question: str) -> str:
    return facts_of(table) + canonical(question)


def attempt_name(charge: int) -> str:
    """Return the key in the state for the newest attempt at a charge, after its first."""
    return f"{ATTEMPT}{charge}"


def stream_name(charge: int) -> str:
    """Return the key in the state for the newest step of the stream that a charge paid for."""
    return f"{STREAM}{charge}"


def facts_of(table: str) -> str:
    """Return how the keys of all that was learned of a table begin."""
    return f"{FACT}{table} "


@lru_cache(maxsize=4096)
def _budget(body: str) -> Budget:
    return budget_from(json.loads(body))


@lru_cache(maxsize=4096)
def declared_from(entry: Entry) -> Declared:
    record = entry.record
    return Declared(
        entry=entry.number,
        id=record["table"],
        name=record["name"],
        cohort=record["people"],
        version=record["version"],
        declaration=record["declaration"],
        declaration_hash=record["declaration_hash"],
        source=record["source"],
        marks=tuple(record.get("marks", ())),
    )


# The state keeps one hash for each page of this many entries: an old entry is checked without reading those after it.
PAGE = 32


# ---- the draft -------------------------------------------------------------------------------------------------------


class LedgerDraft:
    """The ledger as of one transaction, with the entries it is about to add."""

    def __init__(
        self, rows: StoreRows, head: Head, *, time: str, pieces: Pieces | None = None, durable: bool = False
    ) -> None:
        self.rows = rows
        self.durable = durable  # whether what is written survives the process
        self.before: Head | None = head
        self.head: Head = head
        self.now = time
        self.time: str = never_earlier(time, head.time)
        self._pieces = Pieces() if pieces is None else pieces
        self.state: State = State(rows, head.root, self._pieces)
        self.book: RuleBook = RuleBook(self.state.get, self.pointed)
        self.sealed: Writes | None = None
        self.next_key: SigningKey | None = None  # signs from here on, if this draft names it
        self.is_over: Callable[[str], bool] = lambda _: False  # whether a call has ended, by the name of its lock
        self._stored = head.number
        self._hashes: dict[int, str] = {}
        self._entries: list[Entry] = []
        self._requests: dict[str, Entry] = {}
        self._questions: dict[str, Entry] = {}
        self._answers: dict[int, Entry] = {}

    def account(self, scope: str) -> Account:
        """Return the running total of a scope; a scope without charges is at zero."""
        text = self.state.get(account_name(scope))
        return Account() if text is None else account_from(text)

    def written(self, key: str) -> str:
        """Return a name as it was first written, by its key."""
        text = self.state.get(WRITTEN + canonical(key))
        return key if text is None else str(json.loads(text))

    def over(self, cohort: str) -> list[str]:
        """Return the calls that have ended without their last charge: the room set aside for them is free again."""
        return sorted(id for id in set_aside(self.state.get, cohort) if self.is_over(id))

    def set_aside(self, cohort: str, *, by: str | None, but: str | None) -> Charge:
        """Return the room set aside for all calls in progress, or for those of one analyst, without the call `but`."""
        found = set_aside(self.state.get, cohort)
        counted = [id for id, (analyst, _) in found.items() if id != but and by in (None, analyst)]
        return sum((found[id][1] for id in counted if not self.is_over(id)), Charge())

    def charge_for(self, request: str) -> Entry | None:
        return self._requests.get(request) or self._found(self.rows.charge_for(request), "charge", request=request)

    def answer_to(self, question: str) -> Entry | None:
        """Return the first answer to a question."""
        found = self._found(self.rows.answer_to(question), "answer", question=question)
        return found or self._questions.get(question)

    def fact(self, name: str) -> Entry | None:
        """Return the entry of the last fact under a name of the state."""
        text = self.state.get(name)
        return None if text is None else self.pointed(*json.loads(text))

    def attempt(self, charge: int) -> Entry | None:
        """Return the newest attempt at a charge, if there was one after the first, or if it failed."""
        text = self.state.get(attempt_name(charge))
        return None if text is None else self.pointed(*json.loads(text))

    def answer_paid_by(self, charge: int) -> Entry | None:
        return self._answers.get(charge) or self._found(self.rows.answer_paid_by(charge), "answer", charge=charge)

    def last_step(self, charge: int) -> Entry | None:
        """Return the newest step of the stream that a charge paid for, or None."""
        text = self.state.get(stream_name(charge))
        return None if text is None else self.pointed(*json.loads(text))

    def entry(self, number: int) -> Entry | None:
        """Return one entry, or None beyond the ledger's end."""
        if not 0 < number <= self.head.number:
            return None
        if number > self._stored:
            return self._entries[number - self._stored - 1]
        found = self.rows.entry(number)
        if found is None:
            raise NotAsSigned
        return self._checked(found)

    def holds(self, entry: Entry) -> bool:
        """Return whether an entry that this process has made is in the chain."""
        return 0 < entry.number <= self.head.number and self._hash(entry.number) == entry.hash

    def pointed(self, number: int, hash: str) -> Entry:
        """Return the entry of a number, with a hash that is known to be right."""
        if number > self._stored:
            return self._entries[number - self._stored - 1]
        known = self._pieces.entries.get(hash)
        if known is None:
            pair = self.rows.between(number - 1, number)
            if [entry.number for entry in pair] != [*range(max(1, number - 1), number + 1)] or pair[-1].hash != hash:
                raise NotAsSigned
            known = pair[-1]
            if link(BEGINNING if number == 1 else pair[0].hash, known.body) != hash:
                raise NotAsSigned
            self._pieces.keep(entries={hash: known})
        return known

    def append(
        self, record: Record, *, request: str | None = None, question: str | None = None, answers: int | None = None
    ) -> Entry:
        """Add an entry at the end of the chain, at the draft's time, and return it."""
        entry = self.add(canonical({**record, "time": self.time}), request, question, answers)
        for name, value in changes(entry, self.state.get).items():
            self.state.put(name, value)
        return entry

    def add(self, body: str, request: str | None, question: str | None, answers: int | None) -> Entry:
        number = self.head.number + 1
        entry = Entry(number, body, link(self.head.hash, body), request, question, answers)
        self._entries.append(entry)
        if request is not None:
            self._requests[request] = entry
        if question is not None:
            self._questions.setdefault(question, entry)
        if answers is not None:
            self._answers[answers] = entry
        if number % PAGE == 0:
            # the first one first: it is followed to the end, and the others with it
            hashes = [self._hash(one) for one in range(number - PAGE + 1, number + 1)]
            self.state.put(page_name(number), page_hash(hashes))
        self.head = replace(self.head, number=number, hash=entry.hash, time=self.time)
        return entry

    def charge(self, scope: str, charge: Charge, *, number: int) -> None:
        """Add a charge to a scope's running total."""
        self.state.put(account_name(scope), account_text(self.account(scope).add(charge, number=number)))

    def seal(self, key: SigningKey) -> Writes | None:
        """Return all that the transaction adds, with its head signed; None if it is empty."""
        if not self._entries:
            return None
        change = self.state.change()
        head = replace(self.head, root=change.root)
        head = replace(head, signature=(self.next_key or key).sign(head.signed()))
        self.sealed = Writes(self.before, head, self._entries, change.values, change.nodes)
        return self.sealed

    def _found(self, entry: Entry | None, kind: str, **copied: object) -> Entry | None:
        """Return an entry that a column led to, if it is in the chain and its own text agrees with the column."""
        if entry is None:
            return None
        record = self._checked(entry).record
        if record["kind"] != kind or any(record[name] != value for name, value in copied.items()):
            raise NotAsSigned
        return entry

    def _checked(self, entry: Entry) -> Entry:
        """Return an entry of the store, if its text is the one that its place in the chain is for."""
        number = entry.number
        before = self._hashes.get(number - 1) or self.rows.hashes(number - 1, number - 1).get(number - 1, BEGINNING)
        # no other text, after no other hash, has this one
        if self._hash(number) != entry.hash or link(before, entry.body) != entry.hash:
            raise NotAsSigned
        return entry

    def _hash(self, number: int) -> str:
        """Return the hash of an entry that is surely in the chain."""
        if number > self._stored:
            return self._entries[number - self._stored - 1].hash
        if number == self._stored and self.before is not None:
            return self.before.hash
        if number not in self._hashes:
            first = (number - 1) // PAGE * PAGE + 1
            last = first + PAGE - 1
            self._hashes |= self._page(first, last) if last <= self._stored else self._end(number)
        return self._hashes[number]

    def _page(self, first: int, last: int) -> dict[int, str]:
        """Return the hashes of a page of entries, checked against the state."""
        hashes = self.rows.hashes(first, last)
        signed = self.state.get(page_name(last))
        if list(hashes) != [*range(first, last + 1)] or page_hash([*hashes.values()]) != signed:
            raise NotAsSigned
        return hashes

    def _end(self, first: int) -> dict[int, str]:
        """Return the hashes of the last entries, checked against the head: each covers the one before."""
        entries = self.rows.between(first, self._stored)
        if [entry.number for entry in entries] != [*range(first, self._stored + 1)]:
            raise NotAsSigned
        for earlier, later in pairwise(entries):
            if link(earlier.hash, later.body) != later.hash:
                raise NotAsSigned
        if self.before is None or entries[-1].hash != self.before.hash:
            raise NotAsSigned
        return {entry.number: entry.hash for entry in entries}


def never_earlier(time: str, latest: str) -> str:
    """Return the time of a new entry: never before an entry's, so a clock set back cannot re-open a period."""
    return max(time, latest)


def first_draft(rows: StoreRows, *, ledger: str, time: str) -> LedgerDraft:
    root, _ = whole_state({})
    draft = LedgerDraft(rows, Head(ledger, 0, BEGINNING, root, time, ""), time=time)
    draft.before = None
    return draft


def page_name(last: int) -> str:
    """Return the key in the state for the page of entries that ends with a number."""
    return f"page {last}"


def page_hash(hashes: list[str]) -> str:
    return hashlib.sha256("".join(hashes).encode()).hexdigest()
