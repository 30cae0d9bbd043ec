"""The ledger: every answer needs a durable charge, entries are never lost, and budget is never spent twice.

`open_ledger` gives one; `register` names a table and its budget, `reserve` charges before a row is read, `commit`
stores the answer before it leaves. Steps are in `charging.py` and `registry.py`, storage in the stores; this ties them.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from itertools import islice
from typing import Self, TypeVar

from tacit.accounting import Charge
from tacit.errors import InvalidParameter, LedgerError, TacitError
from tacit.ledger import certificate, charging, registry
from tacit.ledger.anchor import AnchorPosition, LedgerAnchor
from tacit.ledger.chain import SigningKey, digest, verify_signature
from tacit.ledger.charging import Learning, StoredAnswer, StoredFact
from tacit.ledger.charging import keys_of as question_keys
from tacit.ledger.clock import Clock, correct, refuse_far_ahead, time_text
from tacit.ledger.draft import NAME, LedgerDraft
from tacit.ledger.entry import Entry, Head, Record, Writes, scope_of
from tacit.ledger.group_commit import GroupCommit, PendingWrite
from tacit.ledger.locks import in_hand, is_alone
from tacit.ledger.notes import KeepsNotes, Step, add_step, steps_of
from tacit.ledger.registry import RegisteredTable
from tacit.ledger.reservation import CarriesOut, Reservation
from tacit.ledger.roles import KnowsPeople, require_allowed
from tacit.ledger.rotation import keys_of, require_follows, rotate
from tacit.ledger.spelling import name_key
from tacit.ledger.state import Pieces
from tacit.ledger.status import (
    Asker,
    BudgetStatus,
    Fit,
    Left,
    analysts,
    budget_status,
    cost_of,
    first_shortfall,
    smallest,
)
from tacit.ledger.store import LedgerStore, NotAsSigned, StoreRows
from tacit.ledger.verify import Verified, verify
from tacit.privacy import ApproximateLoss, Event, Loss, LossPerPeriod

KeySource = Callable[[str], SigningKey]  # the key of this home that a public key belongs to
Outcome = TypeVar("Outcome")

# The ledger that this thread reads as of one moment, and what it is then.
_MOMENT: ContextVar[tuple["Ledger", LedgerDraft] | None] = ContextVar("tacit_moment", default=None)

# Entries are read this many at a time, so that charges go on while they are shown.
PAGE = 1000


class Ledger(CarriesOut, KnowsPeople, KeepsNotes):
    """A durable record of every charge, answer, refusal and change of budget.

    `durable` is False for a ledger in memory: its answers have a note about that.
    """

    def __init__(
        self, store: LedgerStore, *, id: str, public_key: str, key: KeySource, anchor: LedgerAnchor | None, clock: Clock
    ) -> None:
        self.id = id
        self.public_key: str = public_key
        self.durable: bool = store.durable
        self.place: str = store.place
        self._store = store
        self._key_source = key
        self._key: SigningKey | None = None
        self._anchor = anchor
        self._clock = clock
        self._head: Head | None = None  # the last one that was checked or written
        self._pieces = Pieces()
        self._group_commit = GroupCommit(store, self._flush)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the store; the ledger can be opened again."""
        self._store.close()

    def register(
        self,
        *,
        name: str,
        declaration: Record,
        source: str | None = None,
        marks: Sequence[str] = (),
        budget: Loss | LossPerPeriod | None = None,
        population: int | None = None,
        accept_large_delta: bool = False,
        same_people_as: str | None = None,
    ) -> RegisteredTable:
        """Return the table as registered; a new one needs `budget`.

        `declaration` has its public facts, `source` identifies its data and `marks` the parts of it; none is computed
        from rows.
        """
        registration = registry.Registration(
            name=name,
            declaration=declaration,
            source=source,
            marks=marks,
            budget=budget,
            population=population,
            accept_large_delta=accept_large_delta,
            same_people_as=same_people_as,
        )
        return self._group_commit.submit(lambda draft: registry.register(draft, registration))

    def reserve(
        self,
        table: RegisteredTable,
        events: Sequence[Event],
        *,
        question_key: str,
        asked: ApproximateLoss | None = None,
        request_id: str | None = None,
        analyst: str | None = None,
        learning: Learning | None = None,
        words: str | None = None,
        sent: str | None = None,
    ) -> Reservation | StoredAnswer:
        """Charge for a question, durably, before a row is read; or return the answer it already has, for free.

        The whole charge is made, or `BudgetExceeded` raised and a refusal noted. A request id is charged once: used
        again it has its answer, or raises `DeadRequest`; within `in_hand` a dead process's charge is carried out again.
        `asked` is the (epsilon, delta) of noise that is not pure; without it, such noise counts by its rho. With
        `learning` the answer is a fact. `words` is the question for people, and `sent` the request as it came.
        """
        request = charging.new_request(
            table,
            tuple(events),
            asked=asked,
            question_key=question_key,
            request_id=request_id,
            analyst=analyst,
            ledger=self.id,
            learning=learning,
            words=words,
            sent=sent,
            is_in_hand=in_hand(self.id) is not None,
            is_alone=is_alone(),
            call=(call := self._call(table, analyst)),
        )
        outcome = self._group_commit.submit(lambda draft: charging.decide(draft, request), likely=request.likely())
        if isinstance(outcome, StoredAnswer):
            return outcome
        if call is not None and outcome.rest is not None:
            call.rest = outcome.rest
        return Reservation(self, outcome)

    def recall(
        self,
        table: RegisteredTable,
        *,
        question_key: str,
        request_id: str | None = None,
        analyst: str | None = None,
        is_fact: bool = False,
    ) -> StoredAnswer | None:
        """Return the answer to this request or this question, or None; charges nothing."""
        keys = question_keys(
            table, question_key=question_key, request_id=request_id, analyst=analyst, ledger=self.id, is_fact=is_fact
        )
        with self._view() as draft:
            if not is_fact:  # known facts only start a plan, and a fit of a plan is refused
                require_allowed(draft, analyst, table)
            question = charging.question_of(draft, keys, table.cohort, keys.analyst or "")
            return charging.find_stored(draft, keys, question=question, is_in_hand=in_hand(self.id) is not None)

    def require_may_ask(self, table: RegisteredTable, asker: Asker) -> None:
        """Refuse, for the record, someone who may not ask about a table, or about those beside it."""
        why = asker.why_not
        if why is not None:
            self._group_commit.submit(lambda draft: charging.deny(draft, table, asker.name, why))

    def facts(self, table: RegisteredTable, analyst: str | None = None) -> tuple[StoredFact, ...]:
        """Return what was learned of a table and may be used free, in the order in which it was paid for."""
        with self._view() as draft:
            return charging.facts(draft, table, _key(analyst))

    def stored(self, number: int) -> StoredAnswer | None:
        """Return the answer at an entry, or None if the entry is of another kind."""
        with self._view() as draft:
            return charging.stored_at(draft, number)

    def steps(self, charge: int, *, after: int = 0) -> list[Step]:
        """Return the released parts of the stream that a charge paid for: those in entries after the number `after`."""
        with self._view() as draft:
            return steps_of(draft, charge, after=after)

    def add_step(self, charge: int, *, first: int, end: int, text: str) -> None:
        """Write the next part of a stream, durably, before it leaves; if another process was first, its part stays."""
        self._submit(lambda draft: add_step(draft, charge, first=first, end=end, text=text))

    @property
    def time(self) -> datetime:
        """The ledger's time in UTC: the clock's, and never earlier than its last entry's."""
        with self._view() as draft:
            return datetime.fromisoformat(draft.time).replace(tzinfo=None)

    def answer_of(self, charge: int) -> Entry | None:
        """Return the entry of the answer that a charge paid for, or None."""
        with self._view() as draft:
            return draft.answer_paid_by(charge)

    def charged_for(self, table: RegisteredTable, *, request_id: str, analyst: str | None = None) -> int | None:
        keys = question_keys(table, question_key="-", request_id=request_id, analyst=analyst, ledger=self.id)
        with self._view() as draft:
            charge = charging.charge_made_for(draft, keys)
            return None if charge is None else charge.number

    def sent_with(self, request_id: str, analyst: str | None = None) -> tuple[str, str | None] | None:
        """Return the table that a request was charged for, and the request as it was sent; None without a charge."""
        with self._view() as draft:
            return charging.sent_with(draft, request_id=request_id, analyst=analyst)

    def version_of(self, name: str) -> int | None:
        """Return the version that a table of this name was last declared with; None if the table does not exist."""
        with self._view() as draft:
            known = draft.book.named(name)
        return None if known is None else known.version

    def known_as(self, *, name: str, source: str | None, marks: Sequence[str], by_name: bool = True) -> str | None:
        """Return the name of a source in this ledger, or a table of that name; None if it is not registered."""
        registration = registry.Registration(name=name, declaration={}, source=source, marks=marks)
        with self._view() as draft:
            return registry.known_as(draft, registration, by_name=by_name)

    def tables(self) -> tuple[RegisteredTable, ...]:
        """Return every table, by name, as last declared."""
        with self._view() as draft:
            names = sorted(json.loads(name.removeprefix(NAME)) for name in draft.rows.names(NAME))
            found = [draft.book.named(name) for name in names]
            return tuple(registry.registered(draft.book, table) for table in found if table is not None)

    def table(self, name: str) -> RegisteredTable | None:
        """Return the table of that name, as last declared, or None."""
        with self._view() as draft:
            found = draft.book.named(name)
            return None if found is None else registry.registered(draft.book, found)

    def budget_status(self, table: RegisteredTable, analyst: str | None = None) -> tuple[BudgetStatus, ...]:
        with self._view() as draft:
            return budget_status(draft, table, analyst=_key(analyst), call=self._call_id(table, analyst))

    def left(self, table: RegisteredTable, analyst: str | None = None) -> Left:
        """Return what one more question may cost: the smallest of all budgets that apply wins."""
        return smallest(self.budget_status(table, analyst))

    def fit(
        self,
        table: RegisteredTable,
        events: Sequence[Event],
        *,
        asked: ApproximateLoss | None = None,
        analyst: str | None = None,
        beside: Sequence[Event] = (),
    ) -> Fit:
        """Return whether a question would be admitted now, and what it would leave: the decision `reserve` makes."""
        charge, who, call = cost_of(events, asked, beside), _key(analyst), self._call_id(table, analyst)
        with self._view() as draft:
            charging.refuse_misuse(draft, table, events)
            require_allowed(draft, analyst, table)
            short = first_shortfall(draft, table, analyst=who, charge=charge, call=call)
            if short is not None:
                return Fit(short.words(draft), None)
            return Fit(None, smallest(budget_status(draft, table, analyst=who, charge=charge, call=call)))

    def spent(self, table: RegisteredTable, analyst: str | None = None) -> Charge:
        """Return all that was ever spent on the people in a table, or by one analyst on them."""
        with self._view() as draft:
            return draft.account(scope_of(table.cohort, analyst=None if analyst is None else _key(analyst))).spent

    def analysts(self, table: RegisteredTable) -> tuple[str, ...]:
        """Return the named analysts who have a budget for a table's people or spent on them, as first written."""
        with self._view() as draft:
            return analysts(draft, table.cohort)

    def length(self) -> int:
        with self._store.reading() as rows:
            return self._checked_head(rows).number

    def verify(self) -> Verified:
        """Read the whole ledger again and recompute chain, signature and totals; damage is an error that names it."""
        with self._store.checking(), self._store.reading() as rows:
            verified = verify(rows)
            self._checked_head(rows)
        self.check_anchor()
        return verified

    def certificate(self, number: int) -> Record:
        """Return the signed certificate of an answer, by its entry's number or its charge's."""
        with self._view() as draft:
            facts = certificate.facts(draft, number, public_key=self.public_key)
        return certificate.sign(facts, self._signing_key())

    def secret_for(self, purpose: str) -> bytes:
        """Return a secret that only holders of this ledger's key can derive: replicas share it."""
        return self._signing_key().secret_for(purpose)

    def entry(self, number: int) -> Entry | None:
        with self._view() as draft:
            return draft.entry(number)

    def entries(self, first: int = 1) -> Iterator[Entry]:
        """Yield the entries in order, from number `first`."""
        while True:
            with self._store.reading() as rows:
                page = [Entry(*columns) for columns in islice(rows.columns(first), PAGE)]
            yield from page
            if len(page) < PAGE:
                return
            first = page[-1].number + 1

    def accept(self, reason: str) -> None:
        """Accept a ledger that is behind its anchor, if the newest copy is lost: later answers are missing from it."""
        if self._anchor is None or (mark := self._anchor.read()) is None or self._hash_of(mark.number) == mark.hash:
            raise InvalidParameter("this ledger is not behind its anchor; accepting is not needed")
        record = {"kind": "override", "reason": reason, "anchor": {"number": mark.number, "hash": mark.hash}}
        self._group_commit.submit(lambda draft: draft.append(record))
        with self._store.reading() as rows:
            self._anchor.replace(self._mark(self._checked_head(rows)))

    def change_key(self, new: SigningKey, reason: str) -> None:
        """Sign with another key from here on, for the record; see `rotation.py`."""
        self._submit(lambda draft: rotate(draft, old=self._signing_key(), new=new, reason=reason))

    def correct_clock(self, reason: str) -> None:
        """Set the ledger's time to the clock's, for the record: after a clock that was far ahead, or a long rest."""
        self._group_commit.submit(lambda draft: correct(draft, reason), publishes=True, sets_clock=True)

    def check_anchor(self) -> None:
        """Refuse a ledger that is behind the answers this machine has given from it, or has another history."""
        if self._anchor is not None:
            self._anchor.check(self._hash_of)

    def anchor_now(self) -> None:
        """Set the anchor to the ledger's current position."""
        with self._store.reading() as rows:
            head = self._checked_head(rows)
        self._advance_anchor(head)

    def _flush(self, writes: Sequence[PendingWrite[object]]) -> None:
        """Write the steps of all waiting callers in one transaction; the anchor moves only if an answer is to leave."""
        self._signing_key()
        if self._anchor is not None:
            self._anchor.require_writable()
        time = time_text(self._clock)
        last: list[LedgerDraft] = []

        def work(rows: StoreRows) -> Writes | None:
            # read: the head that our key signed, and through it every total, table and budget
            draft = self._draft(rows, time)
            if not any(write.sets_clock for write in writes):
                refuse_far_ahead(draft)
            begun = draft.head.number
            for write in writes:
                write.attempt(draft)  # decide and append, each after those before it
            last[:] = [draft]
            return draft.seal(self._signing_key()) if draft.head.number > begun else None  # sign

        # write, all or none; on return it is on the disk
        self._store.transact([write.likely for write in writes], work)
        draft = last[0]
        head = draft.before if draft.sealed is None else draft.sealed.head
        if draft.sealed is not None:
            self._head = head
        if draft.next_key is not None:
            self.public_key, self._key = draft.next_key.public, draft.next_key
        if head is not None and any(write.publishes and write.error is None for write in writes):
            self._advance_anchor(head)

    def _signing_key(self) -> SigningKey:
        if self._key is None or self._key.public != self.public_key:
            self._key = self._key_source(self.public_key)
        return self._key

    def _checked_head(self, rows: StoreRows) -> Head:
        """Return the head, signed by the ledger's key; refuse another ledger's, or one older than we have seen."""
        head, seen = rows.head(), self._head
        if head == seen and head is not None:
            return head
        if head is None or head.ledger != self.id:
            raise LedgerError(
                "the ledger was replaced by another while it was open; no answer was given\nhint: open it again"
            )
        if seen is not None and (head.number < seen.number or (head.number == seen.number and head.hash != seen.hash)):
            raise LedgerError(
                f"the ledger went back from entry {seen.number} to {head.number} while it was open; "
                "no answer was given\nhint: put the newest copy back, then: tacit ledger verify"
            )
        if not verify_signature(head.signed(), signature=head.signature, public=self.public_key):
            keys = keys_of(LedgerDraft(rows, head, time=head.time))  # another process may have changed the key
            if not verify_signature(head.signed(), signature=head.signature, public=keys[0][1]):
                raise NotAsSigned
            self.public_key = require_follows(keys, self.public_key)
        self._head = head
        return head

    def _advance_anchor(self, head: Head) -> None:
        if self._anchor is not None:
            self._anchor.advance(self._mark(head), self._hash_of)

    def _mark(self, head: Head) -> AnchorPosition:
        return AnchorPosition(head.number, head.hash, self.public_key, digest(self.place))

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Read everything inside as of one moment, in one transaction of the store; nothing may be written inside."""
        refused: TacitError | None = None
        with self._view() as draft:
            before = _MOMENT.set((self, draft))
            try:
                yield
            except TacitError as problem:  # it says nothing of the store, whose transaction ends as usual
                refused = problem
            finally:
                _MOMENT.reset(before)
        if refused is not None:
            raise refused

    @contextmanager
    def _view(self) -> Iterator[LedgerDraft]:
        moment = _MOMENT.get()
        if moment is not None and moment[0] is self:
            yield moment[1]
            return
        with self._store.reading() as rows:
            draft = self._draft(rows)
            yield draft

    def _draft(self, rows: StoreRows, time: str | None = None) -> LedgerDraft:
        head, now = self._checked_head(rows), time or time_text(self._clock)
        draft = LedgerDraft(rows, head, time=now, pieces=self._pieces, durable=self.durable)
        draft.is_over = self._store.locks.is_free
        return draft

    def _submit(self, step: Callable[[LedgerDraft], Outcome]) -> Outcome:
        return self._group_commit.submit(step, publishes=True)

    def _hash_of(self, number: int) -> str | None:
        with self._store.reading() as rows:
            entry = self._draft(rows).entry(number)
            return None if entry is None else entry.hash


def _key(analyst: str | None) -> str:
    return "" if analyst is None else name_key(analyst)
