"""The parts of a request: one question, or several that are charged as one, each with the session of its rows.

The two differ in how they are planned, and in the key and the text of their answer; `request.py` is the same for both.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tacit.asking.learned import asked_key, basis_of, facts_at, plan_on
from tacit.asking.session import Session
from tacit.errors import QueryRefused
from tacit.numbers import from_text, to_text
from tacit.plan import (
    NO_FACTS,
    Fact,
    Facts,
    Plan,
    PlannedTogether,
    Spend,
    needed_facts,
    plan_of_other_noise,
    plan_with_room,
    plans_of_noise,
    plans_together,
    question_key,
    spends_of,
)
from tacit.query import PostProcessing, Query
from tacit.release import NoisyTable

# The most questions of an answer: each gets its share of epsilon.
QUESTIONS_MOST = 256

Part = tuple[Session, Query]
Admits = Callable[[PlannedTogether], bool]
Basis = Mapping[str, Any]


@dataclass(frozen=True)
class RequestParts:
    """Several questions about one people, to be planned and charged as one; equal ones are asked once."""

    questions: tuple[Part, ...]
    different: tuple[Part, ...] = field(init=False)
    places: tuple[int, ...] = field(init=False)  # at which of the different ones each question is

    def __post_init__(self) -> None:
        if not 1 <= len(self.questions) <= QUESTIONS_MOST:
            raise QueryRefused(
                f"{len(self.questions)} questions cannot be charged together: at most {QUESTIONS_MOST}"
                "\nhint: ask some of them by themselves"
            )
        for each, _ in self.questions[1:]:
            self.questions[0][0].refuse_other_people(each)
        found: dict[object, int] = {}
        different: list[Part] = []
        places = []
        for session, query in self.questions:
            same = session.source_mark, _asked_of_rows(query)
            if same not in found:
                found[same] = len(different)
                different.append((session, query))
            places.append(found[same])
        object.__setattr__(self, "different", tuple(different))
        object.__setattr__(self, "places", tuple(places))

    @property
    def payer(self) -> Session:
        """The session of the table itself, which pays; it names the others that are read."""
        first, _ = self.different[0]
        base = first.base or first
        read = {id for session, _ in self.different for id in (session.registered.id, *session.registered.beside)}
        beside = tuple(sorted(read - {base.registered.id}))
        base = replace(base, registered=replace(base.registered, beside=beside)) if beside else base
        # what is read of a relation has no WHERE of the table's own: all blocks
        return base.narrowed(query.where if session.relation is None else None for session, query in self.different)

    @property
    def queries(self) -> list[Query]:
        """The different questions."""
        return [query for _, query in self.different]

    @property
    def words(self) -> str:
        """The questions in words, for the record."""
        return "\n".join(session.words(query) for session, query in self.different)

    def spends(self, spend: Spend) -> Sequence[Spend]:
        """Return what each part may spend."""
        return spends_of(spend, self.queries)

    def key(self, spend: Spend) -> str:
        """Return a text that is equal for two calls that ask the same at the same price, whatever is known by then."""
        asked = [
            (session.registered.id, session.registered.declaration_hash, session.source_mark, asked_key(query, share))
            for (session, query), share in zip(self.different, self.spends(spend), strict=True)
        ]
        return "together " + _digest(repr(asked))

    def declared(self, spend: Spend, admits: Admits, is_taken: Admits) -> PlannedTogether | None:  # noqa: ARG002
        """Return the plan from declared bounds only, if the answer is kept under that plan: never for several parts."""
        return None

    def needs_facts(self, spend: Spend) -> bool:  # noqa: ARG002 - one question may need none
        """Return whether the plan rests on facts, known or not."""
        return True

    def planned(self, facts: Sequence[Facts], spend: Spend, admits: Admits) -> PlannedTogether:
        """Return the plans; if the noise is left open, with a kind that the budgets have room for."""
        return plans_together(self._asked(facts), spend, admits)

    def planned_again(self, basis: Basis, spend: Spend, facts: Sequence[Facts]) -> PlannedTogether | None:
        """Return the plans that a stored answer was made by; None if they are not made so any more."""
        whole = replace(spend, epsilon=from_text(basis["epsilon"]))
        try:
            planned = plans_of_noise(self._asked(facts), whole, basis["noise"])
        except QueryRefused:
            return None
        return planned if list(planned.keys) == basis["plans"] else None

    def basis(self, planned: PlannedTogether, facts: Sequence[Facts], learned: Sequence[Fact]) -> Basis | None:
        """Return, as plain values, what makes the plans of a stored answer again."""
        return {
            "facts": [{name: fact.entry for name, fact in each.items()} for each in facts],
            "learned": [fact.entry for fact in learned],
            "epsilon": to_text(planned.spend.epsilon),
            "noise": planned.noise,
            "plans": list(planned.keys),
        }

    def facts_of(self, basis: Basis) -> list[Facts]:
        """Read the facts of each part that a stored answer rests on."""
        both = zip(self.different, basis["facts"], strict=True)
        return [facts_at(session.ledger, entries) for (session, _), entries in both]

    def learned_of(self, basis: Basis, facts: Sequence[Facts]) -> tuple[Fact, ...]:
        """Return the facts that a stored answer's own call has paid for."""
        known = {fact.entry: fact for each in facts for fact in each.values()}
        return tuple(known[entry] for entry in basis["learned"] if entry in known)

    def key_beside(self, planned: PlannedTogether) -> str:
        """Return what tells an answer from an older one under the same key, whose plans are made in another way."""
        return _digest(" ".join(planned.keys))

    def text(self, noisy: Sequence[NoisyTable], stamp: str | None, basis: Basis | None) -> str:
        """Return what was released as the ledger keeps it."""
        return NoisyTable.all_to_json(noisy, stamp=stamp, basis=basis)

    def read(self, text: str) -> Sequence[NoisyTable]:
        """Return what `text` wrote."""
        return NoisyTable.all_from_json(text)

    def in_places(
        self, planned: PlannedTogether, noisy: Sequence[NoisyTable]
    ) -> tuple[tuple[Plan, ...], tuple[NoisyTable, ...]]:
        """Return what each question has: its plan, as it asks for it, and its noisy integers."""
        return self.plans_in_places(planned), tuple(noisy[place] for place in self.places)

    def plans_in_places(self, planned: PlannedTogether) -> tuple[Plan, ...]:
        """Return the plan of each question, with its own names."""
        return tuple(
            named_as(planned.plans[place], self.different[place][1], query)
            for place, (_, query) in zip(self.places, self.questions, strict=True)
        )

    def _asked(self, facts: Sequence[Facts]) -> list[tuple[Query, Any, Facts]]:
        both = zip(self.different, facts, strict=True)
        return [(query, session.declaration, known) for (session, query), known in both]


@dataclass(frozen=True)
class OnePart(RequestParts):
    """A single question: its session pays, and gets all of the epsilon."""

    @property
    def payer(self) -> Session:
        """The session of its rows."""
        session, query = self.questions[0]
        return session.narrowed([query.where])

    def spends(self, spend: Spend) -> Sequence[Spend]:
        """Return what it may spend: all."""
        return (spend,)

    def key(self, spend: Spend) -> str:
        """Return a text that is equal for two calls that ask the same at the same price, whatever is known by then."""
        return asked_key(self.questions[0][1], spend)

    def declared(self, spend: Spend, admits: Admits, is_taken: Admits) -> PlannedTogether | None:
        """Return the plan from declared bounds only, with the other noise if this one `is_taken`.

        None if the question lacks facts: they change plans, and must not change whether it was asked before.
        """
        session, query = self.questions[0]
        try:
            planned = self.planned((NO_FACTS,), spend, admits)
        except QueryRefused:
            if not self.needs_facts(spend):
                raise
            return None
        if spend.noise is None and is_taken(planned):
            other = plan_of_other_noise(query, session.declaration, planned.plans[0])
            return planned if other is None else _alone(other)
        return planned

    def needs_facts(self, spend: Spend) -> bool:
        """Return whether the plan rests on facts, known or not."""
        session, query = self.questions[0]
        return bool(needed_facts(query, session.declaration, spend, NO_FACTS))

    def planned(self, facts: Sequence[Facts], spend: Spend, admits: Admits) -> PlannedTogether:
        """Return the plan; if the noise is left open, with a kind that the budgets have room for."""
        session, query = self.questions[0]
        return _alone(plan_with_room(query, session.declaration, spend, lambda plan: admits(_alone(plan)), facts[0]))

    def planned_again(self, basis: Basis, spend: Spend, facts: Sequence[Facts]) -> PlannedTogether | None:
        """Return the plan that a stored answer was made by; None if it is not made so any more."""
        session, query = self.questions[0]
        plan = plan_on(basis, query, session.declaration, spend, facts[0])
        return None if plan is None else _alone(plan)

    def basis(self, planned: PlannedTogether, facts: Sequence[Facts], learned: Sequence[Fact]) -> Basis | None:
        """Return, as plain values, what makes the plan of a stored answer again; None for one that is declared."""
        return basis_of(planned.plans[0], facts[0], learned) if facts[0] else None

    def facts_of(self, basis: Basis) -> list[Facts]:
        """Read the facts that a stored answer rests on."""
        return [facts_at(self.payer.ledger, basis["facts"])]

    def learned_of(self, basis: Basis, facts: Sequence[Facts]) -> tuple[Fact, ...]:
        """Return the facts that a stored answer's own call has paid for."""
        return tuple(fact for fact in facts[0].values() if fact.entry in basis["learned"])

    def key_beside(self, planned: PlannedTogether) -> str:
        """Return what tells an answer from an older one under the same key, whose plan is made in another way."""
        return question_key(planned.plans[0])

    def text(self, noisy: Sequence[NoisyTable], stamp: str | None, basis: Basis | None) -> str:
        """Return what was released as the ledger keeps it."""
        return noisy[0].to_json(stamp=stamp, basis=basis)

    def read(self, text: str) -> Sequence[NoisyTable]:
        """Return what `text` wrote."""
        return [NoisyTable.from_json(text)]

    def plans_in_places(self, planned: PlannedTogether) -> tuple[Plan, ...]:
        """Return its plan."""
        return planned.plans


def _alone(plan: Plan) -> PlannedTogether:
    return PlannedTogether((plan,), plan.spend, plan.noise)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


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
