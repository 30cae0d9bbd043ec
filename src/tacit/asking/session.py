"""The story of every answer: plan, charge, read, add noise, record, answer.

Whatever is paid for out of a budget goes through `spend` (paying.py): answers, and what is learned for them.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TypeVar

from tacit.asking.learned import (
    ALL,
    USUAL,
    Foreseen,
    KnownFacts,
    LearnChoice,
    all_missing,
    asked_key,
    basis_of,
    cost_of_wanted,
    costs_of_learning,
    events_of,
    explain_what_was_learned,
    fact_from,
    fact_text,
    facts_at,
    first_with_room,
    limits_rows_of,
    missing_from,
    next_facts,
    plan_on,
    refuse_where_unknown,
    rows_in_words,
    source_of,
    without_limit,
)
from tacit.asking.paying import Answered, Judge, Paid, Said, spend
from tacit.engine import Engine, Stored, derived_source, open_engine
from tacit.errors import DeadRequest, InvalidParameter, LedgerError, QueryRefused
from tacit.hold import longest, past_the_charge
from tacit.ledger import Fit, Learning, Ledger, RegisteredTable
from tacit.noise import fresh_bytes
from tacit.plan import (
    NO_FACTS,
    Fact,
    Facts,
    Plan,
    Spend,
    WantedFact,
    each_plan_once,
    needed_facts,
    plan_of_other_noise,
    plan_with_room,
    question_key,
    refuse_no_groups,
)
from tacit.privacy import ApproximateLoss, Event, Loss
from tacit.query import Query, Relation, TableRows, question_text, relation_lines, relation_mark, tables_of
from tacit.release import NoisyTable, basis_in, joined, release, stamp_in
from tacit.tables import Declaration, PublicTable

SALT_BYTES = 16

Value = TypeVar("Value")


@dataclass(frozen=True)
class Beside:
    """The tables that a table may be joined with: sessions of protected ones by name, and public ones by digest."""

    sessions: "Mapping[str, Session]"
    publics: Mapping[str, PublicTable]

    def and_also(self, other: "Session | PublicTable | Beside") -> "Beside":
        """Return these tables with further ones; two protected tables of one name are refused."""
        if isinstance(other, PublicTable):
            return replace(self, publics={**self.publics, other.digest: other})
        if isinstance(other, Beside):
            more = replace(self, publics={**self.publics, **other.publics})
            for each in other.sessions.values():
                more = more.and_also(each)
            return more
        table = other.base or other
        name = table.declaration.name
        more = self.and_also(other.beside)
        if name in more.sessions and more.sessions[name].engine.source is not table.engine.source:
            raise InvalidParameter(f"two different tables are named '{name}'\nhint: open one with another name=")
        return replace(more, sessions={**more.sessions, name: table})


ALONE = Beside({}, {})


@dataclass(frozen=True)
class Session:
    """A protected table with its engine and its ledger: the only way from a question about rows to an answer."""

    declaration: Declaration
    registered: RegisteredTable
    engine: Engine
    ledger: Ledger
    # Frames have no stable identity: a random mark keeps answers about one frame from being reused for another.
    source_mark: str = ""
    notices: tuple[str, ...] = ()  # printed with every answer about this table
    relation: Relation | None = None  # the rows that it is about, where they are not the table's own
    base: "Session | None" = None  # then the session of the table itself
    beside: Beside = ALONE  # the tables that the relation reads beside it
    hold: Fraction | None = None  # the public clock's ticks, in seconds; None: answers leave when they are ready

    def about(self, relation: Relation | None, beside: Beside | None = None) -> "Session":
        """Return a session about a relation of this table: the same people, budget and ledger, and rows of its own.

        `declaration` is then the relation's. Answers and facts have keys of their own, by what the relation is, and by
        what is declared of the other tables in it: they must be about the same people.
        """
        base = self.base or self
        if relation is None or isinstance(relation, TableRows):
            return base
        beside = self.beside if beside is None else beside
        others = [beside.sessions[name] for name in dict.fromkeys(tables_of(relation)) if name != base.declaration.name]
        for other in others:
            base.refuse_other_people(other)
        sessions = [base, *others]
        stored = Stored(
            {each.declaration.name: each.engine.source for each in sessions},
            {each.declaration.name: each.declaration for each in sessions},
            beside.publics,
        )
        marks = [f"{each.registered.id} {each.registered.declaration_hash} {each.source_mark}" for each in others]
        return replace(
            base,
            declaration=stored.declaration(relation),
            engine=open_engine(derived_source(relation, stored)),
            source_mark=" ".join([base.source_mark, relation_mark(relation), *marks]),
            registered=replace(base.registered, beside=tuple(each.registered.id for each in others)),
            notices=tuple(dict.fromkeys(notice for each in sessions for notice in each.notices)),
            relation=relation,
            base=base,
            beside=beside,
            hold=longest(each.hold for each in sessions),
        )

    def refuse_other_people(self, other: "Session") -> None:
        """Refuse to join a table whose budget is not this one's: what is learned would be charged to one of the two."""
        if (self.ledger.id, self.registered.cohort) == (other.ledger.id, other.registered.cohort):
            return
        mine, theirs = self.declaration.name, other.declaration.name
        raise QueryRefused(
            f"'{mine}' and '{theirs}' have budgets of their own, and a question about both is charged to one"
            f"\nhint: if they are about the same people, declare that: same_people_as='{mine}' for '{theirs}', in the"
            f" same ledger"
        )

    def answer(
        self,
        query: Query,
        *,
        spend: Spend,
        request_id: str | None,
        analyst: str | None,
        learn: LearnChoice = USUAL,
        show: Callable[[Plan, NoisyTable, Sequence[Fact]], str] | None = None,
        judge: Judge | None = None,
    ) -> Answered:
        """Return a private answer; nothing is read before the charge is durable, and no charge is ever given back.

        Facts that the question lacks are learned first, for a part of its epsilon; the rest is set aside meanwhile. Of
        two who ask the same at once, the second waits for the first. The record keeps what `show` makes. `judge` may
        refuse a plan before its charge, by nothing but the plan.
        """
        self.ledger.require_may_ask(self.registered, analyst)
        said = self.words(query), show
        asked = self.key_of(asked_key(query, spend))
        with self.ledger.alone(self.registered, question_key=asked, analyst=analyst), each_plan_once():
            plan, key = self._identity(query, spend, request_id, analyst)
            if plan is not None and not needed_facts(query, self.declaration, spend, NO_FACTS):
                if judge is not None and not self._is_answered(plan, None, analyst):
                    judge([plan])
                return self._pay(plan, key, request_id, analyst, said=said)
            before, is_taken = self._answered_before(query, spend, plan, key, request_id, analyst)
            if before is not None:
                return before
            foreseen = self.plan(query, spend=spend, analyst=analyst, learn=learn)
            call = self.ledger.call(
                self.registered,
                foreseen.plan.events,
                beside=foreseen.beside,
                asked=foreseen.plan.asked,
                question_key=self.key_of(key),
                analyst=analyst,
                request_id=request_id,
                known=[fact.entry for fact in foreseen.facts.values()],
            )
            has_room = partial(self._has_room, analyst=analyst)
            with call, explain_what_was_learned() as learned:
                facts = self.learn_missing(query, spend, learn, request_id, analyst, learned)
                costs = costs_of_learning(learned, foreseen.wanted, spend)
                lefts = [replace(spend, epsilon=spend.epsilon - cost) for cost in costs]
                plans = (plan_with_room(query, self.declaration, left, has_room, facts) for left in lefts)
                refuse_no_groups(plan := first_with_room(plans, has_room))
                if judge is not None:
                    judge([plan])
                own = f"{key} {question_key(plan)}" if is_taken else key
                answered = self._pay(plan, own, request_id, analyst, facts, tuple(learned), said)
            if answered.free and not is_taken:  # its plan is that of whoever asked the same in other words
                return self._answered_before(query, spend, plan, key, request_id, analyst)[0] or answered
            return answered

    def _identity(
        self, query: Query, spend: Spend, request_id: str | None, analyst: str | None
    ) -> tuple[Plan | None, str]:
        """Return the plan of a question from what is declared alone, if there is one, and the key it is found by."""
        # what is learned changes plans, and must not change whether a question was asked before
        try:
            plan = self._plan_to_answer(query, spend, request_id, analyst)
        except QueryRefused:
            if not needed_facts(query, self.declaration, spend, NO_FACTS):
                raise
            return None, asked_key(query, spend)
        return plan, question_key(plan)

    def learn(
        self, query: Query, *, spend: Spend, again: bool, analyst: str | None, learned: list[Fact] | None = None
    ) -> KnownFacts:
        """Charge for and learn facts ahead of a question, for at most epsilon; with `again` also those that are known.

        As a part of a larger call, the facts that were paid for here are added to `learned`.
        """
        self.ledger.require_may_ask(self.registered, analyst)
        known: dict[str, Fact] = {}
        left = spend.epsilon

        def recall(key: str) -> Fact | None:
            return known.get(key) if again else self.recall_fact(key, analyst)

        _, wanted = all_missing(query, self.declaration, spend, ALL, recall)
        if not wanted:
            return KnownFacts()
        first, beside, found = wanted[0].plan.events, events_of(wanted[1:]), set()
        key = self._fact_key(wanted[0].key)
        call = self.ledger.call(self.registered, first, beside=beside, question_key=key, analyst=analyst)
        with call, explain_what_was_learned() if learned is None else nullcontext(learned) as paid:
            while missing := missing_from(query, self.declaration, spend, ALL, known, recall):
                left -= sum((each.plan.spend.epsilon for each in missing), Fraction(0))
                if left < 0:  # another round, where the first has told nothing, is a question's to pay
                    break
                for each in missing:
                    known[each.key], is_new = self._learn(each, None, analyst, again=again)
                    paid += [known[each.key]] if is_new else []
                    found.add(known[each.key].entry)
        return self.facts(analyst).only(lambda each: each.entry in found)

    def facts(self, analyst: str | None = None) -> KnownFacts:
        """Return what is known of this table, and of rows made from its own: free for every question."""
        known = KnownFacts(self.ledger.facts(self.registered, analyst))
        mark = source_of(self.source_mark) if self.relation is None else ""
        return known.only(lambda each: each.source == mark or self.recall_fact(each.fact.key, analyst) == each.fact)

    def _pay(
        self,
        plan: Plan,
        key: str,
        request_id: str | None,
        analyst: str | None,
        facts: Facts = NO_FACTS,
        learned: tuple[Fact, ...] = (),
        said: tuple[str, Callable[[Plan, NoisyTable, Sequence[Fact]], str] | None] = ("", None),
    ) -> Answered:
        """Return the answer that a plan gives, charged under its key."""
        words, show = said
        stamp, basis = self.stamp(), basis_of(plan, facts, learned) if facts else None
        paid = self.spend(
            plan.events,
            key=key,
            run=lambda: (self.release(plan), stamp),
            encode=lambda released: released[0].to_json(stamp=released[1], basis=basis),
            decode=lambda stored: (NoisyTable.from_json(stored), stamp_in(stored)),
            asked=plan.asked,
            request_id=request_id,
            analyst=analyst,
            loss=plan.loss,
            said=Said(words, None if show is None else lambda released: show(plan, released[0], learned)),
        )
        noisy, before = paid.value
        has_changed = None if not paid.free or before is None or stamp is None else before != stamp
        return Answered(plan, noisy, paid.receipt, paid.free, has_changed, learned)

    def words(self, query: Query) -> str:
        """Return a question in words, with what its joins are."""
        unit = self.declaration.unit if isinstance(self.declaration.unit, str) else None
        return "\n".join([question_text(query, unit), *(relation_lines(self.relation) if self.relation else ())])

    def _answered_before(
        self,
        query: Query,
        spend: Spend,
        declared: Plan | None,
        key: str,
        request_id: str | None,
        analyst: str | None,
    ) -> tuple[Answered | None, bool]:
        """Return the stored answer to a question that rests on facts, with its plan; and whether its key is taken.

        It is taken without an answer if plans are made in another way by now.
        """
        self.engine.refuse_changes()
        stored = self.ledger.recall(
            self.registered, question_key=self.key_of(key), request_id=request_id, analyst=analyst
        )
        if stored is None:
            return None, False
        past_the_charge()
        basis = basis_in(stored.answer)
        facts = {} if basis is None else facts_at(self.ledger, basis["facts"])
        plan = declared if basis is None else plan_on(basis, query, self.declaration, spend, facts)
        if plan is None:
            return None, True
        stamp, before = self.stamp(), stamp_in(stored.answer)
        has_changed = None if before is None or stamp is None else before != stamp
        learned = tuple(fact for fact in facts.values() if basis is not None and fact.entry in basis["learned"])
        noisy = NoisyTable.from_json(stored.answer)
        return Answered(plan, noisy, stored.receipt, True, has_changed, learned), True

    def learn_missing(
        self,
        query: Query,
        spend: Spend,
        learn: LearnChoice,
        request_id: str | None,
        analyst: str | None,
        learned: list[Fact],
    ) -> dict[str, Fact]:
        """Charge for and learn the facts that a question lacks; add to `learned` those that this request paid for."""
        facts: dict[str, Fact] = {}

        def recall(key: str) -> Fact | None:
            return self.recall_fact(key, analyst)

        while missing := next_facts(query, self.declaration, spend, learn, facts, learned, recall):
            for each in missing:
                facts[each.key], is_new = self._learn(each, request_id, analyst)
                learned += [facts[each.key]] if is_new else []
        if request_id is not None:  # what an earlier attempt at this request has learned is a part of its price
            others = [fact for fact in facts.values() if fact.entry not in {each.entry for each in learned}]
            learned += [fact for fact in others if self.ledger.paid_within(fact.entry, request_id, analyst)]
        return facts

    def _learn(
        self, wanted: WantedFact, request_id: str | None, analyst: str | None, *, again: bool = False
    ) -> tuple[Fact, bool]:
        """Return a fact, charged for, and whether it was; of two that are learned at once, the first is the fact."""
        plan = wanted.plan
        wanted = replace(wanted, words=wanted.words + rows_in_words(self.relation, plan.unit or ""))
        paid = self.spend(
            plan.events,
            key=wanted.key,
            run=lambda: self.release(plan),
            encode=lambda noisy: fact_text(wanted, noisy, source_of((self.base or self).source_mark)),
            decode=lambda _: NoisyTable((), ()),
            asked=plan.asked,
            request_id=request_id,
            analyst=analyst,
            loss=plan.loss,
            learning=Learning(wanted.words, again=again),
        )
        fact = self.recall_fact(wanted.key, analyst)
        if fact is None:
            raise LedgerError("what was learned is not in the ledger any more\nhint: run tacit ledger verify")
        return fact, not paid.free

    def recall_fact(self, key: str, analyst: str | None) -> Fact | None:
        """Return a fact that was paid for; what limits it may be known of the table that its rows are made from."""
        about = self._fact_key(without_limit(key))
        stored = self.ledger.recall(self.registered, question_key=about, analyst=analyst, is_fact=True)
        if stored is not None:
            return replace(fact_from(stored.answer, stored.receipt), key=key)
        if self.base is None or not limits_rows_of(key, self.relation, self.base.declaration.name):
            return None
        return self.base.recall_fact(key, analyst)

    def spend(
        self,
        events: Sequence[Event],
        *,
        key: str,
        run: Callable[[], Value],
        encode: Callable[[Value], str],
        decode: Callable[[str], Value],
        asked: ApproximateLoss | None = None,
        request_id: str | None = None,
        analyst: str | None = None,
        loss: Loss | None = None,
        learning: Learning | None = None,
        said: Said[Value] | None = None,
    ) -> Paid[Value]:
        """Return what `run` releases of this table, charged to its budget: the function `spend` says what each is.

        `key` need not name the table, what is declared of it or its source: they are added here.
        """
        self.engine.refuse_changes()  # a file that is gone is not charged for
        return spend(
            self.ledger,
            self.registered,
            events,
            key=self.key_of(key) if learning is None else self._fact_key(key),
            run=run,
            encode=encode,
            decode=decode,
            asked=asked,
            request_id=request_id,
            analyst=analyst,
            loss=loss,
            learning=learning,
            said=said,
        )

    def plan(
        self, query: Query, *, spend: Spend, analyst: str | None, learn: LearnChoice = USUAL, rows: int | None = None
    ) -> Foreseen:
        """Return the plan of a question: where the noise is left open, that which the budgets have room for.

        It does not tell whether the question was asked before, which may be another's to know. In made-up facts each
        person has so many `rows`.
        """
        recall = partial(self.recall_fact, analyst=analyst)
        facts, wanted = all_missing(query, self.declaration, spend, learn, recall, rows)
        known = {key: fact for key, fact in facts.items() if fact.entry}
        if wanted and not learn.allowed:
            refuse_where_unknown(query, self.declaration, spend, known)
            facts, wanted = known, ()
        left = spend.epsilon - cost_of_wanted(wanted)
        if left <= 0:
            raise InvalidParameter(
                "learning would take all of epsilon and leave nothing for the answer\nhint: give a smaller learn"
            )
        plan = plan_with_room(
            query,
            self.declaration,
            replace(spend, epsilon=left),
            lambda plan: self._has_room(plan, analyst, events_of(wanted)),
            facts,
        )
        return Foreseen(plan, wanted, known)

    def fit(self, foreseen: Foreseen, analyst: str | None) -> Fit:
        """Return whether the budgets have room for a plan now, and what it would leave."""
        plan = foreseen.plan
        return self.ledger.fit(self.registered, plan.events, asked=plan.asked, analyst=analyst, beside=foreseen.beside)

    def _plan_to_answer(self, query: Query, spend: Spend, request_id: str | None, analyst: str | None) -> Plan:
        """Return the plan to answer by: a question, or a request, that has its answer keeps the noise of that."""

        def admits(plan: Plan) -> bool:
            return self._has_room(plan, analyst) or self._is_answered(plan, None, analyst)

        plan = plan_with_room(query, self.declaration, spend, admits)
        if request_id is None or spend.noise is not None:
            return plan
        try:
            self._is_answered(plan, request_id, analyst)
        except InvalidParameter:  # it was charged for another question: this one with the other noise, or no one's
            return plan_of_other_noise(query, self.declaration, plan) or plan
        except DeadRequest:  # refused when it is charged
            return plan
        return plan

    def _has_room(self, plan: Plan, analyst: str | None, beside: Sequence[Event] = ()) -> bool:
        return self.ledger.admits(self.registered, plan.events, asked=plan.asked, analyst=analyst, beside=beside)

    def _is_answered(self, plan: Plan, request_id: str | None, analyst: str | None) -> bool:
        key = self.key_of(question_key(plan))
        stored = self.ledger.recall(self.registered, question_key=key, request_id=request_id, analyst=analyst)
        return stored is not None

    def stamp(self) -> str | None:
        """Return what tells later whether the source's files were written since; nothing can be read off it."""
        stamp = self.engine.stamp()
        return None if stamp is None else source_of(f"{self.ledger.id} {stamp}")

    def release(self, plan: Plan) -> NoisyTable:
        salt = fresh_bytes(SALT_BYTES).hex()
        with self.engine.moment(), closing(self.engine.parts(plan, salt)) as exact:  # bounded, still secret
            noisy = joined([release(plan, part) for part in exact])  # noise enters here and nowhere else
            return noisy.with_texts(self.engine.texts(plan, noisy.keys))

    def key_of(self, asked: str) -> str:
        """Return the key of an answer: the question, the whole declaration (types too), and the source."""
        return f"{asked}:{self.registered.declaration_hash}:{self.source_mark}"

    def _fact_key(self, about: str) -> str:
        """Return the key of a fact: about what, with unit, types and source; what else is declared may change."""
        return f"{about}:{self.source_mark}"
