"""The story of every answer: read the facts that are known, learn those that are missing, plan, charge, run, keep.

`Request.answer` tells it, for one question as for several that are charged as one. Rows are read after the charge is
durable, a charge is never given back, and the answers to several questions are kept together.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from tacit.answer import Answer, AnswerInfo, advised, loss_record
from tacit.asking.learned import (
    USUAL,
    LearnChoice,
    all_missing,
    cost_of_wanted,
    costs_of_learning,
    events_of,
    explain_what_was_learned,
    first_with_room,
    refuse_where_unknown,
)
from tacit.asking.paying import OpenCharge, Payment
from tacit.asking.request_parts import RequestParts
from tacit.asking.session import Session
from tacit.errors import DeadRequest, InvalidParameter
from tacit.hold import past_the_charge
from tacit.ledger import Asker, BudgetRoom, Fit, Left, Receipt, StoredAnswer
from tacit.numbers import float_below
from tacit.plan import NO_FACTS, Fact, Facts, Plan, PlannedTogether, Spend, WantedFact, refuse_no_groups
from tacit.privacy import Event, Loss
from tacit.release import NoisyTable, basis_in, stamp_in

Judge = Callable[[Sequence[Plan]], None]  # refuses plans before they are charged
Found = Sequence[tuple[Facts, Sequence[WantedFact]]]  # of each part, its facts, and those that are missing


@dataclass(frozen=True)
class Foreseen:
    """The plans of an answer to come, and the facts to learn first; made-up facts stand in for those."""

    planned: PlannedTogether
    wanted: tuple[WantedFact, ...] = ()
    facts: tuple[Facts, ...] = ()  # of each part, those that are known
    is_settled: bool = True  # whether all facts are known: then the plans are those to come

    @property
    def plan(self) -> Plan:
        """The first plan."""
        return self.planned.plans[0]

    @property
    def beside(self) -> tuple[Event, ...]:
        return events_of(self.wanted)

    @property
    def entries(self) -> list[int]:
        """The ledger's entries of the facts that are known."""
        return sorted({fact.entry for facts in self.facts for fact in facts.values()})


@dataclass(frozen=True)
class Answered:
    """A private answer: for each question its plan and its noisy integers, and the ledger's receipt for all."""

    planned: PlannedTogether
    plans: tuple[Plan, ...]
    noisy: tuple[NoisyTable, ...]
    receipt: Receipt
    free: bool
    has_changed: bool | None = None  # of a free one: whether the source's files were written since; None: not known
    learned: tuple[Fact, ...] = ()  # facts that the same call paid for; `plan.learned` has all facts of the plan

    @property
    def loss(self) -> Loss:
        """The cost of the call, with the facts that it learned."""
        return self.planned.loss_with(fact.cost for fact in self.learned)


# Makes the text for people of an answer before it has a ledger entry.
Show = Callable[[PlannedTogether, Sequence[Plan], Sequence[NoisyTable], Sequence[Fact]], str]


@dataclass(frozen=True)
class KnownRequest:
    """A request without a stored answer, as of one moment of the ledger: its plans, and the key of its answer."""

    key: str
    foreseen: Foreseen
    is_declared: bool = False  # whether the plan rests on no facts, and the answer is kept under the plan itself
    is_paid: bool = False  # of a declared plan: whether it has an answer
    is_taken: bool = False  # whether an answer of plans that are made in another way by now has the key
    learned: tuple[Fact, ...] = ()  # facts that an earlier attempt at the request has paid for


@dataclass(frozen=True)
class Request:
    """Questions that are charged as one: the asker, the amount to spend, and how missing facts may be learned."""

    parts: RequestParts
    spend: Spend
    asker: Asker
    request_id: str | None = None
    learn: LearnChoice = USUAL

    def answer(self, *, show: Show | None = None, judge: Judge | None = None) -> Answered:
        """Charge for a private answer and return it.

        The ledger keeps the text that `show` makes of it, for people to read. `judge` may refuse the plans before
        their charge; it sees only the plans.
        """
        with self.alone():  # the second of two equal requests waits for the first
            known = self.known()  # one reading: the stored answer, facts, and the room left
            if isinstance(known, Answered):
                return known
            with self.call(known) as learned:  # refused here if the budgets lack room for the whole
                facts = self.learn_missing(known, learned)  # one charge for each missing fact
                planned = self.plan(known, facts, learned, judge)
                stamp, basis = self.payer.stamp(), self.parts.basis(planned, facts, learned)
                with self.charged(known, planned) as charge:  # durable before a row is read
                    if charge.stored is None:
                        noisy = self.release(planned)  # rows are read, and noise enters
                        text = self.parts.text(noisy, stamp, basis)
                        charge.keep(text, self.shown(show, planned, noisy, learned))
                        return self.answered(planned, noisy, learned, charge)
            return self.found(known, planned, learned, stamp, charge)  # another asker was quicker

    @property
    def payer(self) -> Session:
        return self.parts.payer

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Refuse an asker without access, and wait for others with the same request."""
        payer, asker = self.payer, self.asker
        payer.ledger.require_may_ask(payer.registered, asker)
        key = payer.key_of(self.parts.key(self.spend))
        with payer.ledger.alone(payer.registered, question_key=key, analyst=asker.name, asker=asker):
            yield

    def known(self) -> "KnownRequest | Answered":
        """Read the stored answer, the facts and the room left, in one transaction; plan if there is no answer."""
        payer, parts = self.payer, self.parts
        payer.engine.refuse_changes()
        with payer.ledger.one_moment():
            room = payer.ledger.room(payer.registered, self.asker.name)

            def fits(planned: PlannedTogether) -> bool:
                return _fits_room(room, planned) or self._has_answer(planned)

            declared = parts.declared(self.spend, fits, self._is_of_another)
            if declared is not None and not parts.needs_facts(self.spend):
                foreseen, is_paid = Foreseen(declared, (), (NO_FACTS,)), self._has_answer(declared)
                return KnownRequest(declared.keys[0], foreseen, is_declared=True, is_paid=is_paid)
            key = parts.key(self.spend) if declared is None else declared.keys[0]
            stored = self._recall(key, self.request_id)
            found = self._found() if stored is None else []
            learned = self._paid_before(found)
        if stored is not None:
            answered = self._answered_before(stored, declared)
            if answered is not None:
                return answered
            with payer.ledger.one_moment():
                found = self._found()
                learned = self._paid_before(found)
        return KnownRequest(key, self._foreseen(found, room), is_taken=stored is not None, learned=learned)

    def foresee(self, rows: int | None = None) -> Foreseen:
        """Return the plans and the facts to learn: free, and without reading a row; made-up facts give each person
        `rows` rows.

        Whether the question was asked before is left out: that may be another asker's secret.
        """
        payer = self.payer
        with payer.ledger.one_moment():
            found, room = self._found(rows), payer.ledger.room(payer.registered, self.asker.name)
        return self._foreseen(found, room)

    def learn_ahead(self) -> tuple[Fact, ...]:
        """Charge for and learn the facts that answering would learn first, and leave the answer for later.

        Whether the question was asked before is left out, as in `foresee`. With all facts known, no charge is made.
        """
        with self.alone():
            foreseen = self.foresee()
            if foreseen.is_settled:
                return ()
            known = KnownRequest(self.parts.key(self.spend), foreseen)
            with self.call(known) as learned:  # refused here if the budgets lack room for the whole
                self.learn_missing(known, learned)
                return tuple(learned)

    def fit(self, foreseen: Foreseen) -> Fit:
        """Return whether the budgets have room for all of it now, and how much would be left."""
        planned, payer = foreseen.planned, self.payer
        return payer.ledger.fit(
            payer.registered, planned.events, asked=planned.asked, analyst=self.asker.name, beside=foreseen.beside
        )

    @contextmanager
    def call(self, known: KnownRequest) -> Iterator[list[Fact]]:
        """Make all charges inside charges of one call, which has room as a whole; yield the facts that it pays for."""
        planned, payer = known.foreseen.planned, self.payer
        call = payer.ledger.call(
            payer.registered,
            planned.events,
            beside=known.foreseen.beside,
            asked=planned.asked,
            question_key=payer.key_of(known.key),
            analyst=self.asker.name,
            request_id=self.request_id,
            known=known.foreseen.entries,
        )
        with call, explain_what_was_learned() as learned:
            yield learned

    def learn_missing(self, known: KnownRequest, learned: list[Fact]) -> Sequence[Facts]:
        """Charge for and learn the facts that the parts lack; return each part's, and add the new ones to `learned`."""
        if known.foreseen.is_settled:
            learned += known.learned
            return known.foreseen.facts
        found: list[Facts] = []
        for (session, query), share in zip(self.parts.different, self.parts.spends(self.spend), strict=True):
            new: list[Fact] = []
            try:
                facts = session.learn_missing(query, share, self.learn, self.request_id, self.asker.name, new)
            finally:
                entries = {fact.entry for fact in learned}
                learned += [fact for fact in new if fact.entry not in entries]
            found.append(facts)
        return found

    def plan(
        self, known: KnownRequest, facts: Sequence[Facts], learned: Sequence[Fact], judge: Judge | None
    ) -> PlannedTogether:
        """Return the plans for the epsilon that is left; if all facts were known, they are made already."""
        planned = known.foreseen.planned
        if learned or not known.foreseen.is_settled:
            fits = partial(_fits_room, self.payer.ledger.room(self.payer.registered, self.asker.name))
            costs = costs_of_learning(learned, known.foreseen.wanted, self.spend)
            lefts = [replace(self.spend, epsilon=self.spend.epsilon - cost) for cost in costs]
            planned = first_with_room((self.parts.planned(facts, left, fits) for left in lefts), fits)
        refuse_no_groups(planned.plans)
        if judge is not None and not known.is_paid:
            judge(planned.plans)
        return planned

    def charged(self, known: KnownRequest, planned: PlannedTogether) -> AbstractContextManager[OpenCharge]:
        for session, _ in self.parts.different:
            session.engine.refuse_changes()  # a file that is gone is not charged for
        payment = Payment(
            planned.events,
            f"{known.key} {self.parts.key_beside(planned)}" if known.is_taken else known.key,
            asked=planned.asked,
            loss=planned.loss,
            request_id=self.request_id,
            analyst=self.asker.name,
            asker=self.asker,
            words=self.parts.words,
        )
        return self.payer.spend(payment)

    def release(self, planned: PlannedTogether) -> Sequence[NoisyTable]:
        """Read the rows of each part, and add noise."""
        sessions = [session for session, _ in self.parts.different]
        return [*map(Session.release, sessions, planned.plans)]

    def shown(
        self, show: Show | None, planned: PlannedTogether, noisy: Sequence[NoisyTable], learned: Sequence[Fact]
    ) -> Callable[[], str] | None:
        """Return what makes the text for people, if there is to be one."""
        return None if show is None else lambda: show(planned, *self.parts.in_places(planned, noisy), learned)

    def answered(
        self,
        planned: PlannedTogether,
        noisy: Sequence[NoisyTable],
        learned: Sequence[Fact],
        charge: OpenCharge,
        *,
        has_changed: bool | None = None,
    ) -> Answered:
        """Return what was released, for each question as it asks for it."""
        plans, tables = self.parts.in_places(planned, noisy)
        return Answered(planned, plans, tables, charge.receipt, charge.free, has_changed, tuple(learned))

    def found(
        self,
        known: KnownRequest,
        planned: PlannedTogether,
        learned: Sequence[Fact],
        stamp: str | None,
        charge: OpenCharge,
    ) -> Answered:
        """Return the stored answer of a quicker asker, or of the same question in other words."""
        if not known.is_declared and not known.is_taken:
            again = self.known()
            if isinstance(again, Answered):
                return again
        stored = charge.stored or ""
        return self.answered(planned, self.parts.read(stored), learned, charge, has_changed=_has_changed(stored, stamp))

    def _answered_before(self, stored: StoredAnswer, declared: PlannedTogether | None) -> Answered | None:
        """Return the stored answer with its plans; None if plans are made in another way by now."""
        past_the_charge()
        parts, basis = self.parts, basis_in(stored.answer)
        planned, learned = declared, tuple[Fact, ...]()
        if basis is not None:
            facts = parts.facts_of(basis)
            planned, learned = parts.planned_again(basis, self.spend, facts), parts.learned_of(basis, facts)
        if planned is None:
            return None
        plans, tables = parts.in_places(planned, parts.read(stored.answer))
        has_changed = _has_changed(stored.answer, self.payer.stamp())
        return Answered(planned, plans, tables, stored.receipt, True, has_changed, learned)

    def _found(self, rows: int | None = None) -> Found:
        """Read the facts that the parts would be planned from now; made-up ones stand in for those that are missing."""
        found = []
        for (session, query), share in zip(self.parts.different, self.parts.spends(self.spend), strict=True):
            recall = partial(session.recall_fact, analyst=self.asker.name)
            found.append(all_missing(query, session.declaration, share, self.learn, recall, rows))
        return found

    def _foreseen(self, found: Found, room: BudgetRoom) -> Foreseen:
        """Return what answering would do by these facts."""
        used: list[Facts] = []
        known: list[Facts] = []
        wanted: dict[str, WantedFact] = {}
        shares = self.parts.spends(self.spend)
        for (session, query), share, (facts, lacks) in zip(self.parts.different, shares, found, strict=True):
            own = {key: fact for key, fact in facts.items() if fact.entry}
            if lacks and not self.learn.allowed:
                refuse_where_unknown(query, session.declaration, share, own)
            is_made_up = bool(lacks) and self.learn.allowed
            used.append(facts if is_made_up else own)
            known.append(own)
            for each in lacks if is_made_up else ():  # of two questions that need one fact, the first learns it
                wanted.setdefault(f"{each.key}:{session.source_mark}", each)
        unknown = tuple(wanted.values())
        left = self.spend.epsilon - cost_of_wanted(unknown)
        if left <= 0:
            raise InvalidParameter(
                "learning would take all of epsilon and leave nothing for the answer\nhint: give a smaller learn"
            )
        fits = partial(_fits_room, room, beside=events_of(unknown))
        planned = self.parts.planned(used, replace(self.spend, epsilon=left), fits)
        return Foreseen(planned, unknown, tuple(known), not any(lacks for _, lacks in found))

    def _paid_before(self, found: Found) -> tuple[Fact, ...]:
        """Read which facts an earlier attempt at this request has paid for, if all facts are known."""
        if any(lacks for _, lacks in found):
            return ()
        paid: list[Fact] = []
        for (session, _), (facts, _) in zip(self.parts.different, found, strict=False):
            entries = {fact.entry for fact in paid}
            new = session.paid_within(self.request_id, self.asker.name, facts)
            paid += [fact for fact in new if fact.entry not in entries]
        return tuple(paid)

    def _recall(self, key: str, request_id: str | None) -> StoredAnswer | None:
        payer, analyst = self.payer, self.asker.name
        return payer.ledger.recall(
            payer.registered, question_key=payer.key_of(key), request_id=request_id, analyst=analyst
        )

    def _has_answer(self, planned: PlannedTogether) -> bool:
        return self._recall(planned.keys[0], None) is not None

    def _is_of_another(self, planned: PlannedTogether) -> bool:
        """Return whether the request was charged for another question, or for this one with the other noise."""
        if self.request_id is None:
            return False
        try:
            self._recall(planned.keys[0], self.request_id)
        except InvalidParameter:
            return True
        except DeadRequest:  # refused when it is charged
            return False
        return False


def _fits_room(room: BudgetRoom, planned: PlannedTogether, beside: Sequence[Event] = ()) -> bool:
    return room.admits(planned.events, planned.asked, beside)


def _has_changed(stored: str, stamp: str | None) -> bool | None:
    """Return whether a source's files were written since an answer was stored; None if that is not known."""
    before = stamp_in(stored)
    return None if before is None or stamp is None else before != stamp


class Drafts:
    """The answer of a release, computed once: the ledger keeps its text before the asker gets its numbers."""

    def __init__(self, make: Callable[[Sequence[Plan], Sequence[NoisyTable], Sequence[Fact]], Answer]) -> None:
        self._make = make
        self._last: tuple[Sequence[NoisyTable], Answer] | None = None

    def of(self, plans: Sequence[Plan], noisy: Sequence[NoisyTable], learned: Sequence[Fact] = ()) -> Answer:
        """Return the answer made from noisy tables; the same tables, given again, are not computed again."""
        if self._last is None or [*map(id, self._last[0])] != [*map(id, noisy)]:
            self._last = noisy, self._make(plans, noisy, learned)
        return self._last[1]


def recorded(
    answer: Answer,
    facts: AnswerInfo,
    *,
    notices: tuple[str, ...],
    certify: Callable[[], Mapping[str, Any]] | None = None,
) -> Answer:
    """Return an answer, made before the ledger had its entry, with the entry's facts and certificate."""
    parts = {name: recorded(each, facts, notices=(), certify=certify) for name, each in answer.parts.items()}
    made = advised(answer, *notices).facts
    notes = (*made.notes, *facts.notes, *notices)
    stated = replace(facts, notes=notes, reading=made.reading, advice=made.advice, bounds=made.bounds)
    return replace(answer, facts=stated, certify=certify, parts=parts)


def answer_info(
    session: Session, answered: Answered, confidence: Fraction, analyst: str | None, notes: tuple[str, ...] = ()
) -> AnswerInfo:
    """Return the words of an answer about itself beside its numbers: all public, or read from the ledger."""
    plan, receipt = answered.plans[0], answered.receipt
    return AnswerInfo(
        loss=loss_record(answered.loss),
        left=left_record(what_is_left(session, analyst)),
        unit=session.protected,
        neighbours="add or remove one" if plan.neighbours == "add-remove" else "replace one",
        confidence=confidence,
        durable=receipt.durable,
        free=answered.free,
        version=session.registered.version,
        has_changed=answered.has_changed,
        receipt={"ledger": receipt.ledger, "entry": receipt.number, "hash": receipt.hash, "time": receipt.time},
        notes=(*session.block_notes, *notes),
    )


def info_of_record(plan: Plan, loss: Loss, confidence: Fraction, notes: tuple[str, ...]) -> AnswerInfo:
    """Return the words of an answer about itself before it is stored: the record has the rest beside it."""
    return AnswerInfo(
        loss=loss_record(loss),
        left={},
        unit="",
        neighbours=plan.neighbours,
        confidence=confidence,
        durable=True,
        free=False,
        notes=notes,
    )


def what_is_left(session: Session, analyst: str | None) -> Left:
    """Return what one more question may ask for; it prints as words."""
    return session.ledger.left(session.registered, analyst)


def left_record(left: Left) -> dict[str, Any]:
    """Return what is left as numbers that may be asked for as they are, and as text."""
    return {
        "epsilon": float_below(left.epsilon),
        "laplace": {"epsilon": float_below(left.laplace), "delta": float_below(left.delta)},
        "gaussian": {"epsilon": float_below(left.gaussian), "delta": float_below(left.delta_gaussian)},
        "rho": None if left.rho is None else float_below(left.rho),
        "questions": left.questions,
        "text": str(left),
    }
