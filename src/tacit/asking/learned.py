"""Facts, which are released answers: noisy integers, the scale of their noise, and their cost.

A fact may be read back at any later epsilon and version of its table. This file writes and reads facts; a session
learns them and pays.
"""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar, overload

from tacit.errors import NOTHING_CHARGED, BudgetExceeded, InvalidParameter, LedgerError, QueryRefused, printable
from tacit.ledger import Ledger, Receipt, StoredFact
from tacit.numbers import Number, decimal_meaning, from_text, show, to_text
from tacit.plan import (
    AT_MOST,
    AT_MOST_OF_TABLE,
    Fact,
    Facts,
    Plan,
    Spend,
    WantedFact,
    ceiling_keys,
    make_plan,
    missing_facts,
    plan_of_other_noise,
    question_key,
    refuse_no_groups,
    standing_in,
)
from tacit.privacy import Event
from tacit.query import (
    PLACES,
    Aggregate,
    Join,
    Marked,
    PerUnit,
    Query,
    Relation,
    RowWise,
    SomeUnits,
    Value,
    Windowed,
    name_of,
    no_more_rows_than,
    publics_of,
    tables_of,
)
from tacit.release import NoisyTable, keys_from, keys_record
from tacit.tables import Declaration

Planned = TypeVar("Planned")

# How a fact is written: since 2, profiles have two bins an octave, and which groups there are is a fact.
FORMAT = 2
EARLIER = " (by an earlier version; learned again when needed)"
# A share of epsilon, or whether a question may learn at all, and from what.
Learn = Number | str | bool | None
WORDS = ("reuse", "fresh")
# Below this epsilon a question with a WHERE takes the facts of the whole table, where they are known.
OWN_FACTS_FROM = Fraction(1, 2)
# The most of a call's epsilon that is spent on facts, if it names no share.
LEARNED_MOST = Fraction(9, 10)


@dataclass(frozen=True)
class LearnChoice:
    """How a call may learn what it lacks: at all, for which share of its epsilon, and whether a WHERE has its own."""

    allowed: bool = True
    share: Fraction | None = None  # None: the usual one
    own: bool | None = None  # None: from `OWN_FACTS_FROM` on

    def reuses(self, spend: Spend) -> bool:
        """Whether the facts of the whole table will do for a question with a WHERE."""
        return spend.epsilon < OWN_FACTS_FROM and self.share is None if self.own is None else not self.own


USUAL = LearnChoice()
ALL = LearnChoice(share=Fraction(1))


def read_learn(learn: Learn) -> LearnChoice:
    """Return what `learn=` means, or refuse it with the words to write instead."""
    if learn is None or learn is True:
        return LearnChoice()
    if learn is False:
        return LearnChoice(allowed=False)
    if learn in WORDS:
        return LearnChoice(own=learn == "fresh")
    try:
        share = decimal_meaning(learn, name="learn")
    except InvalidParameter:
        share = Fraction(0)
    if not 0 < share < 1:
        raise InvalidParameter(
            "learn must be a share of epsilon between 0 and 1, 'reuse', 'fresh' or False"
            "\nhint: leave it out for the usual share; learn=0.1 learns with a tenth; learn=False never learns"
        )
    return LearnChoice(share=share)


def rows_in_words(relation: Relation | None, unit: str) -> str:
    """Return which rows a fact is about, where they are not the table's own."""
    if isinstance(relation, PerUnit):
        return f" (of rows by {', '.join([unit, *(name_of(key.expression) for key in relation.keys)])})"
    if isinstance(relation, SomeUnits):
        share = 100 * (relation.end - relation.first) / PLACES
        return f"{rows_in_words(relation.source, unit)} (of {share:.4g} % of the units)"
    if isinstance(relation, RowWise | Marked | Windowed):
        return rows_in_words(relation.source, unit)
    if isinstance(relation, Join):
        return f" (joined with {', '.join([*publics_of(relation.right), *tables_of(relation.right)])})"
    return ""


def fact_text(wanted: WantedFact, noisy: NoisyTable, source: str) -> str:
    """Return what was learned as text for the ledger; `source` tells the rows of the table that it was learned from."""
    record = {
        "format": FORMAT,
        "key": wanted.key,
        "words": wanted.words,
        "parts": _numbers_of(wanted.plan, noisy),
        "scales": [to_text(release.scale) for release in wanted.plan.releases],
        "epsilon": to_text(wanted.plan.spend.epsilon),
        "source": source,
    }
    if wanted.plan.threshold is not None:
        record |= {"keys": keys_record(noisy.keys), "delta": to_text(wanted.plan.threshold.delta)}
    return json.dumps(record, separators=(",", ":"))


def _numbers_of(plan: Plan, noisy: NoisyTable) -> list[Sequence[int]]:
    """Return the noisy integers of a fact; of groups that were found also the threshold that they reached."""
    parts: list[Sequence[int]] = [part for release in noisy.parts for part in release]
    return parts if plan.threshold is None else [*parts, [plan.threshold.least]]


def fact_from(text: str, receipt: Receipt) -> Fact:
    record: dict[str, Any] = json.loads(text)
    if record.get("format") not in range(1, FORMAT + 1):
        raise LedgerError("this fact was stored by a newer version of tacit\nhint: update tacit to read it")
    return Fact(
        key=record["key"],
        words=record["words"],
        parts=tuple(tuple(part) for part in record["parts"]),
        scales=tuple(from_text(scale) for scale in record["scales"]),
        epsilon=from_text(record["epsilon"]),
        entry=receipt.number,
        time=receipt.time,
        keys=keys_from(record.get("keys", ())),
        delta=from_text(record.get("delta", "0")),
    )


def source_of(mark: str) -> str:
    """Return what tells the source of a table from others, in facts that are shown together."""
    return hashlib.sha256(mark.encode()).hexdigest()


def facts_at(ledger: Ledger, entries: Mapping[str, int]) -> dict[str, Fact]:
    """Return facts by their keys, from the entries of the ledger that hold them."""
    stored = {name: ledger.stored(number) for name, number in entries.items()}
    return {
        name: replace(fact_from(each.answer, each.receipt), key=name)
        for name, each in stored.items()
        if each is not None
    }


def without_limit(key: str) -> str:
    """Return the key by which a fact is kept: what limits another is kept under its own."""
    return key.removeprefix(AT_MOST_OF_TABLE).removeprefix(AT_MOST)


def limits_rows_of(key: str, relation: Relation | None, table: str) -> bool:
    """Return whether what is known of a table under this key limits the rows of a relation that is made from it."""
    return key.startswith(AT_MOST_OF_TABLE) and relation is not None and no_more_rows_than(relation) == table


def cost_of_wanted(wanted: Sequence[WantedFact]) -> Fraction:
    return sum((each.plan.spend.epsilon for each in wanted), Fraction(0))


def is_too_dear(missing: Sequence[WantedFact], facts: Facts, learned: Sequence[Fact], spend: Spend) -> bool:
    """Return whether another round that finds groups would leave the answer too little, or exceed a call's delta."""
    cost = sum((fact.epsilon for fact in learned), cost_of_wanted(missing))
    delta = sum((fact.delta for fact in learned), sum((each.cost[1] for each in missing), Fraction(0)))
    another = any(fact.finds_groups for fact in facts.values()) and all(each.plan.threshold for each in missing)
    return another and (cost > LEARNED_MOST * spend.epsilon or delta > spend.delta_keys)


def spend_for(missing: Sequence[WantedFact], learned: Sequence[Fact], spend: Spend, choice: LearnChoice) -> Spend:
    """Return by which spend to learn what is missing: the call's, or so much less that facts that follow have room."""
    most = LEARNED_MOST if choice.share is None else (1 + choice.share) / 2
    left = most * spend.epsilon - sum((fact.epsilon for fact in learned), Fraction(0))
    cost = cost_of_wanted(missing)
    return spend if cost <= left else replace(spend, epsilon=spend.epsilon * left / 2 / cost)


def events_of(wanted: Sequence[WantedFact]) -> tuple[Event, ...]:
    return tuple(event for each in wanted for event in each.plan.events)


Recall = Callable[[str], Fact | None]  # a fact that was paid for before, by its key


def missing_from(
    query: Query, declaration: Declaration, spend: Spend, choice: LearnChoice, facts: dict[str, Fact], recall: Recall
) -> tuple[WantedFact, ...]:
    """Return what must be learned next; all that is known already is added to `facts`."""
    while missing := missing_facts(query, declaration, spend, facts, choice.share):
        known = {each.key: recall(each.key) for each in missing}
        if query.where is not None and choice.reuses(spend):
            used = {fact.entry for fact in facts.values()}  # a fact stands in for one round, or rounds have no end
            known |= {
                each.key: _of_whole_table(each, query, declaration, spend, recall, used)
                for each in missing
                if known[each.key] is None
            }
        others = (key for each in missing if known[each.key] is None for key in each.instead)
        known |= {key: recall(key) for key in others if key not in facts}
        found = {key: fact for key, fact in known.items() if fact is not None}
        if not found:
            return missing
        facts |= found
    _recall_ceilings(query, declaration, spend, facts, recall)
    return ()


def next_facts(
    query: Query,
    declaration: Declaration,
    spend: Spend,
    choice: LearnChoice,
    facts: dict[str, Fact],
    learned: Sequence[Fact],
    recall: Recall,
) -> tuple[WantedFact, ...]:
    """Return what a call learns next, for what it has left; nothing if all is known, or there is a plan without."""
    missing = missing_from(query, declaration, spend, choice, facts, recall)
    if not missing or not choice.allowed or is_too_dear(missing, facts, learned, spend):
        return ()
    less = spend_for(missing, learned, spend, choice)
    return missing if less == spend else missing_from(query, declaration, less, choice, facts, recall)


def _recall_ceilings(
    query: Query, declaration: Declaration, spend: Spend, facts: dict[str, Fact], recall: Recall
) -> None:
    """Add to `facts` what is known of more rows than are asked about; nothing is learned for that."""
    tried: set[str] = set()
    while keys := [key for key in ceiling_keys(query, declaration, spend, facts) if key not in tried]:
        tried |= set(keys)
        known = {key: recall(key) for key in keys}
        facts |= {key: fact for key, fact in known.items() if fact is not None}


def _of_whole_table(
    wanted: WantedFact, query: Query, declaration: Declaration, spend: Spend, recall: Recall, used: Collection[int]
) -> Fact | None:
    """Return the fact about the whole table that is a filtered one but for its WHERE, if it is known and not used."""
    facts: dict[str, Fact] = {}
    whole = replace(query, where=None)
    same = question_key(replace(wanted.plan, where=None))
    while missing := missing_facts(whole, declaration, spend, facts, None):
        found = {each.key: recall(each.key) for each in missing}
        for each in missing:
            fact = found[each.key]
            if fact is None:
                return None
            if question_key(each.plan) == same and fact.entry not in used:
                return replace(fact, key=wanted.key)
            facts[each.key] = fact
    return None


def all_missing(
    query: Query, declaration: Declaration, spend: Spend, choice: LearnChoice, recall: Recall, rows: int | None = None
) -> tuple[dict[str, Fact], tuple[WantedFact, ...]]:
    """Return what a question would learn if it were asked now, and its facts, made-up ones in the place of those."""
    facts: dict[str, Fact] = {}
    wanted: list[WantedFact] = []
    while missing := missing_from(query, declaration, spend, choice, facts, recall):
        wanted += missing
        facts |= {each.key: standing_in(each, rows) for each in missing}
    return facts, tuple(wanted)


def can_plan(query: Query, declaration: Declaration, spend: Spend, facts: Facts) -> bool:
    """Return whether a question can be planned from what is declared and known."""
    try:
        refuse_no_groups([make_plan(query, declaration, spend, facts)])  # others may be found by what is learned next
    except QueryRefused:
        return False
    return True


def refuse_where_unknown(query: Query, declaration: Declaration, spend: Spend, facts: Facts) -> None:
    """Refuse a question that cannot do without learning, in words that name the bound to give by hand."""
    try:
        make_plan(query, declaration, spend, facts)
    except QueryRefused as problem:
        raise QueryRefused(
            f"{problem}; or leave out learn=False (--learn no), and it is learned once, for a part of epsilon"
        ) from None


def basis_of(plan: Plan, facts: Facts, learned: Sequence[Fact]) -> dict[str, Any]:
    """Return, as plain values, what makes the plan of a stored answer again: its facts, its epsilon and its noise."""
    return {
        "facts": {key: fact.entry for key, fact in facts.items()},
        "learned": [fact.entry for fact in learned],
        "epsilon": to_text(plan.spend.epsilon),
        "noise": plan.noise,
        "plan": question_key(plan),
    }


def plan_on(
    basis: Mapping[str, Any], query: Query, declaration: Declaration, spend: Spend, facts: Facts
) -> Plan | None:
    """Return the plan that a stored answer was made by; None where it is not made so any more."""
    try:
        plan: Plan | None = make_plan(query, declaration, replace(spend, epsilon=from_text(basis["epsilon"])), facts)
    except QueryRefused:
        return None
    if plan is not None and plan.noise != basis["noise"]:
        plan = plan_of_other_noise(query, declaration, plan, facts)
    return plan if plan is not None and question_key(plan) == basis["plan"] else None


def asked_key(query: Query, spend: Spend) -> str:
    """Return a text that is equal for calls that ask the same at the same price; plans change with facts, and are no
    key."""
    asked = sorted({repr(_plain_aggregate(output.aggregate)) for output in query.outputs})
    named = {output.name: repr(_plain_aggregate(output.aggregate)) for output in query.outputs}
    weights = sorted((named.get(name, name), weight) for name, weight in spend.weights)
    draws = any(output.aggregate.kind == "quantile" for output in query.outputs)
    parts = (
        query.table,
        query.where,
        tuple(key.expression for key in query.keys),
        query.public_keys,
        query.smallest,
        asked,
        (spend.epsilon, spend.delta, spend.delta_keys, spend.delta_noise, spend.delta_rho, spend.noise),
        spend.confidence if draws else None,  # other intervals are post-processing
        weights,
        *((query.levels,) if query.levels else ()),
        *(("other",) if query.other else ()),
        *((query.public_totals,) if query.public_totals else ()),
    )
    return "asked " + hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()


def _plain_aggregate(aggregate: Aggregate) -> Aggregate:
    """Return an aggregate as it is written most simply: COUNT(1) counts rows."""
    constant = isinstance(aggregate.expression, Value) and aggregate.expression.value is not None
    return Aggregate("count") if aggregate.kind == "count" and constant else aggregate


@dataclass(frozen=True)
class KnownFact:
    """One thing that is known of a table: in words, for how much and since when, and the fact itself."""

    words: str
    epsilon: Fraction
    since: str
    version: int
    entry: int
    fact: Fact
    source: str | None = None  # of which table's rows, and rows made from them; None: of those alone that know it


class KnownFacts(Sequence[KnownFact]):
    """What is known of a table, free for every question: it prints as a table."""

    def __init__(self, stored: Sequence[StoredFact] = (), known: Sequence[KnownFact] = ()) -> None:
        self._known = (*known, *(_known(each) for each in stored))

    def only(self, wanted: Callable[[KnownFact], bool]) -> "KnownFacts":
        """Return those that are wanted."""
        return KnownFacts(known=[each for each in self._known if wanted(each)])

    @overload
    def __getitem__(self, place: int) -> KnownFact: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[KnownFact]: ...
    def __getitem__(self, place: int | slice) -> KnownFact | Sequence[KnownFact]:
        return self._known[place]

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[KnownFact]:
        return iter(self._known)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each fact as plain values."""
        return [
            {"what": each.words, "epsilon": float(each.epsilon), "since": each.since, "version": each.version}
            | {"entry": each.entry}
            for each in self._known
        ]

    def __str__(self) -> str:
        if not self._known:
            return "Nothing is known yet. The first question learns what it needs, or: learn(epsilon=0.2)"
        rows = [("known", "for ε", "since", "entry")]
        rows += [(each.words, show(each.epsilon), each.since[:10], str(each.entry)) for each in self._known]
        widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
        lines = [
            "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        ]
        rule = "─" * max(map(len, lines))
        return printable("\n".join([f" {lines[0]}", f" {rule}", *(f" {line}" for line in lines[1:])]), keeping="\n")

    __repr__ = __str__


def _known(stored: StoredFact) -> KnownFact:
    receipt = stored.stored.receipt
    fact = fact_from(stored.stored.answer, receipt)
    record = json.loads(stored.stored.answer)
    words, source = stored.words + (EARLIER if record["format"] < FORMAT else ""), record.get("source")
    return KnownFact(words, fact.epsilon, receipt.time, stored.version, receipt.number, fact, source)


def costs_of_learning(learned: Sequence[Fact], foreseen: Sequence[WantedFact], spend: Spend) -> list[Fraction]:
    """Return the cost that a request has paid for facts, and the foreseen one if that is more; refuse if nothing is
    left.

    By rho, an answer with more than was foreseen may cost more than was set aside.
    """
    cost = sum((fact.epsilon for fact in learned), Fraction(0))
    if cost >= spend.epsilon:
        raise InvalidParameter(
            "an earlier attempt of this request already spent all of this epsilon on learning"
            "\nhint: give a larger epsilon, or leave out request_id"
        )
    return sorted({cost, max(cost, cost_of_wanted(foreseen))})


def first_with_room(plans: Iterable[Planned], has_room: Callable[[Planned], bool]) -> Planned:
    """Return the first plan that the budgets have room for, or else the last."""
    *others, last = plans
    return next((plan for plan in others if has_room(plan)), last)


@contextmanager
def explain_what_was_learned() -> Iterator[list[Fact]]:
    """Add to a refusal or an interruption what this request has spent on facts by then: yields a list of them."""
    learned: list[Fact] = []
    try:
        yield learned
    except KeyboardInterrupt as stopped:
        if not learned or stopped.args:
            raise
        raise KeyboardInterrupt(f"interrupted after learning: {_spent_on(learned)}\nhint: ask again") from None
    except (BudgetExceeded, QueryRefused, InvalidParameter) as refused:
        if not learned:
            raise
        problem, newline, hint = str(refused).partition("\n")
        problem = problem.removesuffix(f"; {NOTHING_CHARGED}")
        raise type(refused)(f"{problem}; {_spent_on(learned)}{newline}{hint}") from None


def _spent_on(learned: Sequence[Fact]) -> str:
    cost = sum((fact.epsilon for fact in learned), Fraction(0))
    return f"this request spent ε = {show(cost)} on facts that it learned first; later questions use them free"
