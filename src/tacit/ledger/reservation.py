"""Carrying a charge out: the part of a ledger between a charge and its answer, by one process at a time."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from tacit.accounting import Charge
from tacit.errors import BeingAnswered, InvalidParameter
from tacit.ledger import charging
from tacit.ledger.budget import CallInProgress, call_in_progress, less, within
from tacit.ledger.chain import digest, fresh_id
from tacit.ledger.charging import Attempt, Receipt, keys_of, request_name
from tacit.ledger.draft import LedgerDraft
from tacit.ledger.entry import Entry, charge_from
from tacit.ledger.group_commit import GroupCommit
from tacit.ledger.locks import InHand, in_hand, taken, waited_for
from tacit.ledger.registry import RegisteredTable
from tacit.ledger.roles import why_not
from tacit.ledger.spelling import name_key
from tacit.ledger.status import Asker, BudgetRoom, first_shortfall, limits_of
from tacit.ledger.store import LedgerStore
from tacit.privacy import ApproximateLoss, Event


@dataclass(frozen=True)
class Reservation:
    """A charge that has been made: the answer it pays for may now be computed, and committed once."""

    ledger: "CarriesOut"
    attempt: Attempt

    @property
    def charge(self) -> Entry:
        return self.attempt.charge

    @property
    def number(self) -> int:
        return self.charge.number

    @property
    def is_again(self) -> bool:
        """Whether the charge was made before, and is carried out again."""
        return self.attempt.number > 1

    def commit(self, answer: str, shown: str | None = None) -> Receipt:
        """Store the released answer and its text for people; on return both are durable, and may leave."""
        return self.ledger.commit(self.attempt, answer, shown)

    def fail(self) -> None:
        """Note that the charge will never be answered: a charge that was made in hand is not carried out again."""
        if "attempts" in self.charge.record:
            self.ledger.fail(self.attempt)


class CarriesOut:
    """The part of a ledger that stores answers, each from the newest attempt at its charge."""

    id: str
    _store: LedgerStore
    _group_commit: GroupCommit

    def _view(self) -> AbstractContextManager[LedgerDraft]:
        raise NotImplementedError

    @contextmanager
    def in_hand(self, request_id: str, analyst: str | None = None) -> Iterator[None]:
        """Carry out a request under a lock among all processes of this ledger; `BeingAnswered` if another has it.

        A charge made inside, unanswered because this process dies, is carried out by the next process in hand.
        """
        key = request_name(self.id, request_id=request_id, analyst=analyst)
        with taken(InHand(self.id, request_id, analyst), key, self._store.locks) as is_alone:
            if not is_alone:
                raise BeingAnswered(
                    "this request id is being answered, here or by another server of the same ledger"
                    "\nhint: ask again under the same request id: it is charged once"
                )
            yield

    @contextmanager
    def alone(
        self,
        table: RegisteredTable,
        *,
        question_key: str,
        analyst: str | None = None,
        is_fact: bool = False,
        asker: Asker | None = None,
    ) -> Iterator[None]:
        """Wait for other payers of the same question or fact, then go on under the lock of its answer's key."""
        keys = keys_of(
            table, question_key=question_key, request_id=None, analyst=analyst, ledger=self.id, is_fact=is_fact
        )
        if asker is None:
            with self._view() as draft:
                question = charging.question_of(draft, keys, table.cohort, keys.analyst or "")
        else:
            question = keys.own if asker.is_limited else keys.question
        with waited_for(digest("paid for alone", question), self._store.locks):
            yield

    @contextmanager
    def call(
        self,
        table: RegisteredTable,
        events: Sequence[Event],
        *,
        question_key: str,
        beside: Sequence[Event] = (),
        asked: ApproximateLoss | None = None,
        analyst: str | None = None,
        request_id: str | None = None,
        known: Sequence[int] = (),
        is_one_question: bool = True,
    ) -> Iterator[None]:
        """Make the charges inside one call: its first is refused if the budgets lack room for all of them.

        From then on the rest is set aside (`budget.py`). `beside` are facts that are learned first: pure, and
        charged by themselves; an earlier attempt may have paid for some of the `known`. A call inside a call has its
        room already.
        """
        if not beside or self._call(table, analyst) is not None:
            yield
            return
        request = charging.new_request(
            table,
            tuple(events),
            beside=tuple(beside),
            asked=asked,
            question_key=question_key,
            request_id=None,
            analyst=analyst,
            ledger=self.id,
        )
        with self._view() as draft:
            paid = [self._paid(draft, entry, request_id, analyst) for entry in known]
            rest = less(request.charge, sum(paid, Charge()))
            record = charging.as_asked(draft, request)
            short = first_shortfall(draft, table, analyst=request.analyst, charge=rest)
        if short is not None:  # a refusal is written, room is not
            self._group_commit.submit(lambda draft: charging.require_room(draft, request, rest))
        id = digest("call", self.id, fresh_id())
        call = CallInProgress(id, self.id, table.cohort, request.analyst, record, rest, is_one_question)
        self._store.locks.take(id)
        try:
            with within(call):
                yield
        finally:
            self._store.locks.let_go(id)

    def paid_within(self, entry: int, request_id: str, analyst: str | None) -> bool:
        """Return whether the fact at an entry was charged for a request."""
        with self._view() as draft:
            return self._paid(draft, entry, request_id, analyst) != Charge()

    def _paid(self, draft: LedgerDraft, entry: int, request_id: str | None, analyst: str | None) -> Charge:
        """Return the amount that a request has paid for the fact with its answer at an entry."""
        answer = draft.entry(entry)
        paid = None if answer is None or request_id is None else draft.entry(answer.record["charge"])
        if paid is None or request_id is None:
            return Charge()
        is_own = paid.record.get("for") == request_name(self.id, request_id=request_id, analyst=analyst)
        return charge_from(paid.record) if is_own else Charge()

    def room(self, table: RegisteredTable, analyst: str | None = None) -> BudgetRoom:
        """Return the room that is left for questions about a table, as of now."""
        with self._view() as draft:
            charging.refuse_misuse(draft, table, ())
            standing, call = self._standing(draft, table), self._call_id(table, analyst)
            return BudgetRoom(
                limits_of(draft, table, analyst=_asker_key(analyst), call=call),
                why_not(draft, analyst, table) is None,
                None if standing is None else standing.record["events"],
            )

    def asker(self, table: RegisteredTable, analyst: str | None = None) -> Asker:
        """Return the limits of an analyst, or of requests without a name, about a table and those beside it."""
        with self._view() as draft:
            return Asker(
                analyst, tuple(draft.book.applying(table.cohort, _asker_key(analyst))), why_not(draft, analyst, table)
            )

    def _call(self, table: RegisteredTable, analyst: str | None) -> CallInProgress | None:
        return call_in_progress(self.id, table.cohort, _asker_key(analyst))

    def _call_id(self, table: RegisteredTable, analyst: str | None) -> str | None:
        call = self._call(table, analyst)
        return None if call is None else call.id

    def fail(self, attempt: Attempt) -> None:
        """Note that an attempt at a charge has failed; see `Reservation.fail`."""
        self._group_commit.submit(lambda draft: charging.fail(draft, attempt))

    def commit(self, attempt: Attempt, answer: str, shown: str | None = None) -> Receipt:
        """Store the answer that a charge paid for."""
        if not isinstance(answer, str):
            raise InvalidParameter(f"answer must be text, not {type(answer).__name__}")
        return self._group_commit.submit(
            lambda draft: charging.commit(draft, attempt, answer, shown),
            likely=attempt.likely(),
            publishes=True,
        )

    def _standing(self, draft: LedgerDraft, table: RegisteredTable) -> Entry | None:
        """Return the charge of the request that is in hand here, if it is to be carried out again."""
        now = in_hand(self.id)
        if now is None:
            return None
        keys = keys_of(table, question_key="-", request_id=now.request_id, analyst=now.analyst, ledger=self.id)
        return charging.standing_for(draft, keys)


def _asker_key(analyst: str | None) -> str:
    return name_key(analyst) if isinstance(analyst, str) else ""  # anything else is refused with the request
