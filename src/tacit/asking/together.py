"""Several questions answered as one: one charge, one entry with all that was released, all or nothing.

It is the story of `session.py` for a list of questions: learn what is not known, plan all of them, charge once, read,
add noise, record once. Nothing is stored of a call that fails between, and a repeat of the whole is free.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from tacit.asking.learned import (
    USUAL,
    LearnChoice,
    all_missing,
    asked_key,
    cost_of_wanted,
    costs_of_learning,
    events_of,
    explain_what_was_learned,
    facts_at,
    first_with_room,
    refuse_where_unknown,
)
from tacit.asking.paying import Judge, Said
from tacit.asking.session import Session
from tacit.errors import InvalidParameter, QueryRefused
from tacit.hold import past_the_charge
from tacit.ledger import Fit, Receipt, StoredAnswer
from tacit.plan import Fact, Facts, Plan, PlannedTogether, Spend, WantedFact, plans_of_noise, plans_together, spends_of
from tacit.privacy import Event, Loss, from_text, to_text
from tacit.query import PostProcessing, Query
from tacit.release import NoisyTable, basis_in, stamp_in

# An answer has at most so many questions: each gets its share of epsilon, in thousandths.
QUESTIONS_MOST = 64


@dataclass(frozen=True)
class ForeseenTogether:
    """What answering would do: the plans, and what it would learn first; made-up facts stand in for those."""

    planned: PlannedTogether
    wanted: tuple[WantedFact, ...] = ()
    known: tuple[int, ...] = ()  # the entries of the facts that are known

    @property
    def beside(self) -> tuple[Event, ...]:
        """The events of what is learned."""
        return events_of(self.wanted)


@dataclass(frozen=True)
class AnsweredTogether:
    """What was released: for each question its plan and its noisy integers, and one receipt for all."""

    planned: PlannedTogether
    plans: tuple[Plan, ...]  # in the order of the questions; equal questions are released once
    noisy: tuple[NoisyTable, ...]
    receipt: Receipt
    free: bool
    has_changed: bool | None = None
    learned: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class Together:
    """Questions about one people, to be planned and charged as one; each comes with the session of its rows."""

    questions: tuple[tuple[Session, Query], ...]
    # the different ones of them, and at which of those each question is
    parts: tuple[tuple[Session, Query], ...] = field(init=False)
    places: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        if not 1 <= len(self.questions) <= QUESTIONS_MOST:
            raise QueryRefused(
                f"{len(self.questions)} questions cannot be charged together: at most {QUESTIONS_MOST}"
                "\nhint: ask some of them by themselves"
            )
        for each, _ in self.questions[1:]:
            self.questions[0][0].refuse_other_people(each)
        found: dict[object, int] = {}
        parts: list[tuple[Session, Query]] = []
        places = []
        for session, query in self.questions:
            same = session.source_mark, _asked_of_rows(query)
            if same not in found:
                found[same] = len(parts)
                parts.append((session, query))
            places.append(found[same])
        object.__setattr__(self, "parts", tuple(parts))
        object.__setattr__(self, "places", tuple(places))

    @property
    def session(self) -> Session:
        """The session of the table itself, which pays; it names the others that are read."""
        first, _ = self.parts[0]
        base = first.base or first
        read = {id for session, _ in self.parts for id in (session.registered.id, *session.registered.beside)}
        beside = tuple(sorted(read - {base.registered.id}))
        return replace(base, registered=replace(base.registered, beside=beside)) if beside else base

    @property
    def queries(self) -> list[Query]:
        """The different questions."""
        return [query for _, query in self.parts]

    def plan(
        self, *, spend: Spend, analyst: str | None, learn: LearnChoice = USUAL, rows: int | None = None
    ) -> ForeseenTogether:
        """Return what answering would do, cost and learn: free, and no row is read."""
        used: list[Facts] = []
        entries: set[int] = set()
        wanted: dict[str, WantedFact] = {}
        for (session, query), share in zip(self.parts, spends_of(spend, self.queries), strict=True):
            recall = partial(session.recall_fact, analyst=analyst)
            facts, lacks = all_missing(query, session.declaration, share, learn, recall, rows)
            known = {key: fact for key, fact in facts.items() if fact.entry}
            if lacks and not learn.allowed:
                refuse_where_unknown(query, session.declaration, share, known)
                facts, lacks = known, ()
            used.append(facts)
            entries |= {fact.entry for fact in known.values()}
            for each in lacks:  # of two questions that need one fact, the first learns it
                wanted.setdefault(f"{each.key}:{session.source_mark}", each)
        unknown = tuple(wanted.values())
        left = spend.epsilon - cost_of_wanted(unknown)
        if left <= 0:
            raise InvalidParameter(
                "learning would take all of epsilon and leave nothing for the answer\nhint: give a smaller learn"
            )
        planned = self._planned(used, replace(spend, epsilon=left), analyst, events_of(unknown))
        return ForeseenTogether(planned, unknown, tuple(sorted(entries)))

    def fit(self, foreseen: ForeseenTogether, analyst: str | None) -> Fit:
        """Return whether the budgets have room for all of it now, and what it would leave."""
        planned, session = foreseen.planned, self.session
        return session.ledger.fit(
            session.registered, planned.events, asked=planned.asked, analyst=analyst, beside=foreseen.beside
        )

    def answer(
        self,
        *,
        spend: Spend,
        request_id: str | None,
        analyst: str | None,
        learn: LearnChoice = USUAL,
        show: Callable[[Sequence[Plan], Sequence[NoisyTable], Loss], str] | None = None,
        judge: Judge | None = None,
    ) -> AnsweredTogether:
        """Return all answers; nothing is read before the one charge is durable, and all of it is stored or nothing."""
        self.session.ledger.require_may_ask(self.session.registered, analyst)
        key, session = self._key(spend), self.session
        with session.ledger.alone(session.registered, question_key=session.key_of(key), analyst=analyst):
            before, is_taken = self._answered_before(spend, key, request_id, analyst)
            if before is not None:
                return before
            foreseen = self.plan(spend=spend, analyst=analyst, learn=learn)
            call = session.ledger.call(
                session.registered,
                foreseen.planned.events,
                beside=foreseen.beside,
                asked=foreseen.planned.asked,
                question_key=session.key_of(key),
                analyst=analyst,
                request_id=request_id,
                known=foreseen.known,
            )
            with call, explain_what_was_learned() as learned:
                facts = self._learn(spend, learn, request_id, analyst, learned)
                costs = costs_of_learning(learned, foreseen.wanted, spend)
                lefts = [replace(spend, epsilon=spend.epsilon - cost) for cost in costs]
                plans = (self._planned(facts, left, analyst) for left in lefts)
                planned = first_with_room(plans, lambda one: self._admits(one, analyst))
                if judge is not None:
                    judge(planned.plans)
                if is_taken:
                    key = f"{key} {hashlib.sha256(' '.join(planned.keys).encode()).hexdigest()}"
                return self._pay(planned, key, request_id, analyst, facts, learned, show)

    def _key(self, spend: Spend) -> str:
        """Return what is equal for two calls that ask the same together, whatever is known by then."""
        shares = spends_of(spend, self.queries)
        asked = [
            (session.registered.id, session.registered.declaration_hash, session.source_mark, asked_key(query, share))
            for (session, query), share in zip(self.parts, shares, strict=True)
        ]
        return "together " + hashlib.sha256(repr(asked).encode("utf-8", "surrogatepass")).hexdigest()

    def _planned(
        self, facts: Sequence[Facts], spend: Spend, analyst: str | None, beside: Sequence[Event] = ()
    ) -> PlannedTogether:
        return plans_together(self._asked(facts), spend, lambda planned: self._admits(planned, analyst, beside))

    def _admits(self, planned: PlannedTogether, analyst: str | None, beside: Sequence[Event] = ()) -> bool:
        session = self.session
        return session.ledger.admits(
            session.registered, planned.events, asked=planned.asked, analyst=analyst, beside=beside
        )

    def _asked(self, facts: Sequence[Facts]) -> list[tuple[Query, Any, Facts]]:
        return [(query, session.declaration, known) for (session, query), known in zip(self.parts, facts, strict=True)]

    def _learn(
        self, spend: Spend, learn: LearnChoice, request_id: str | None, analyst: str | None, learned: list[Fact]
    ) -> list[Facts]:
        """Charge for and learn the facts that the questions lack; return the facts of each question."""
        found: list[Facts] = []
        for (session, query), share in zip(self.parts, spends_of(spend, self.queries), strict=True):
            new: list[Fact] = []
            try:
                found.append(session.learn_missing(query, share, learn, request_id, analyst, new))
            finally:
                entries = {fact.entry for fact in learned}
                learned += [fact for fact in new if fact.entry not in entries]
        return found

    def _pay(
        self,
        planned: PlannedTogether,
        key: str,
        request_id: str | None,
        analyst: str | None,
        facts: Sequence[Facts],
        learned: Sequence[Fact],
        show: Callable[[Sequence[Plan], Sequence[NoisyTable], Loss], str] | None,
    ) -> AnsweredTogether:
        stamp, whole = self.session.stamp(), planned.loss_with(fact.cost for fact in learned)
        basis = {
            "facts": [{name: fact.entry for name, fact in each.items()} for each in facts],
            "learned": [fact.entry for fact in learned],
            "epsilon": to_text(planned.spend.epsilon),
            "noise": planned.noise,
            "plans": list(planned.keys),
        }

        def run() -> tuple[list[NoisyTable], str | None]:
            both = zip(self.parts, planned.plans, strict=True)
            return [session.release(plan) for (session, _), plan in both], stamp

        for session, _ in self.parts:
            session.engine.refuse_changes()  # a file that is gone is not charged for
        paid = self.session.spend(
            planned.events,
            key=key,
            run=run,
            encode=lambda released: NoisyTable.all_to_json(released[0], stamp=released[1], basis=basis),
            decode=lambda stored: (NoisyTable.all_from_json(stored), stamp_in(stored)),
            asked=planned.asked,
            request_id=request_id,
            analyst=analyst,
            loss=planned.loss,
            said=Said(
                "\n".join(session.words(query) for session, query in self.parts),
                None if show is None else lambda released: show(*self._in_places(planned, released[0]), whole),
            ),
        )
        noisy, before = paid.value
        has_changed = None if not paid.free or before is None or stamp is None else before != stamp
        return self._answered(planned, noisy, paid.receipt, tuple(learned), free=paid.free, has_changed=has_changed)

    def _answered_before(
        self, spend: Spend, key: str, request_id: str | None, analyst: str | None
    ) -> tuple[AnsweredTogether | None, bool]:
        """Return the stored answer, with its plans; and whether its key is taken.

        It is taken without an answer if plans are made in another way by now.
        """
        session = self.session
        session.engine.refuse_changes()
        stored = session.ledger.recall(
            session.registered, question_key=session.key_of(key), request_id=request_id, analyst=analyst
        )
        if stored is None:
            return None, False
        past_the_charge()
        basis = basis_in(stored.answer) or {}
        facts = [facts_at(part.ledger, each) for (part, _), each in zip(self.parts, basis["facts"], strict=True)]
        planned = self._planned_on(basis, spend, facts)
        if planned is None:
            return None, True
        known = {fact.entry: fact for each in facts for fact in each.values()}
        learned = tuple(known[entry] for entry in basis["learned"] if entry in known)
        return self._recalled(planned, stored, learned), True

    def _planned_on(self, basis: Any, spend: Spend, facts: Sequence[Facts]) -> PlannedTogether | None:
        whole = replace(spend, epsilon=from_text(basis["epsilon"]))
        try:
            planned = plans_of_noise(self._asked(facts), whole, basis["noise"])
        except QueryRefused:
            return None
        return planned if list(planned.keys) == basis["plans"] else None

    def _recalled(self, planned: PlannedTogether, stored: StoredAnswer, learned: tuple[Fact, ...]) -> AnsweredTogether:
        stamp, before = self.session.stamp(), stamp_in(stored.answer)
        has_changed = None if before is None or stamp is None else before != stamp
        noisy = NoisyTable.all_from_json(stored.answer)
        return self._answered(planned, noisy, stored.receipt, learned, free=True, has_changed=has_changed)

    def _answered(
        self,
        planned: PlannedTogether,
        noisy: Sequence[NoisyTable],
        receipt: Receipt,
        learned: tuple[Fact, ...],
        *,
        free: bool,
        has_changed: bool | None,
    ) -> AnsweredTogether:
        plans, tables = self._in_places(planned, noisy)
        return AnsweredTogether(planned, plans, tables, receipt, free, has_changed, learned)

    def _in_places(
        self, planned: PlannedTogether, noisy: Sequence[NoisyTable]
    ) -> tuple[tuple[Plan, ...], tuple[NoisyTable, ...]]:
        """Return what each question has: its plan, as it asks for it, and its noisy integers."""
        plans = [
            named_as(planned.plans[place], self.queries[place], query)
            for place, (_, query) in zip(self.places, self.questions, strict=True)
        ]
        return tuple(plans), tuple(noisy[place] for place in self.places)


def _asked_of_rows(query: Query) -> Query:
    """Return a question without its names and what it does afterwards: two that are equal release the same."""
    keys = tuple(replace(key, name=str(place)) for place, key in enumerate(query.keys))
    outputs = tuple(replace(output, name=str(place)) for place, output in enumerate(query.outputs))
    return replace(query, keys=keys, outputs=outputs, after=PostProcessing(), columns=())


def named_as(plan: Plan, planned: Query, query: Query) -> Plan:
    """Return the plan of a question with the names of an equal one."""
    outputs = {old.name: new.name for old, new in zip(planned.outputs, query.outputs, strict=True)}
    keys = {old.name: new.name for old, new in zip(planned.keys, query.keys, strict=True)}
    return replace(
        plan,
        outputs=tuple(replace(each, name=outputs[each.name]) for each in plan.outputs),
        keys=tuple(replace(each, name=keys[each.name]) for each in plan.keys),
        columns=query.columns or (*keys.values(), *outputs.values()),
        after=query.after,
    )
