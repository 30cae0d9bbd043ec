"""Undeclared columns of a model: ranges and keys that are learned first, for a part of the fit's epsilon.

Ranges are the facts that any question learns. Keys are those that enough people have, above a threshold, found once as
a question with private keys finds them. Both are charged by themselves, kept in the ledger as facts, free for every
later fit, and as public as declared values: the model is made from them in the same way, and is as safe.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal

from tacit.accounting import NoiseLoss
from tacit.asking import (
    ALL,
    Learn,
    Session,
    Table,
    all_missing,
    can_plan,
    events_of,
    explain_what_was_learned,
    fact_text,
    read_learn,
    source_of,
)
from tacit.errors import QueryRefused
from tacit.hold import holding
from tacit.json_wire import tagged, untagged
from tacit.learning.features import NUMBERS, Feature
from tacit.learning.rounds import Rounds
from tacit.ledger import Learning
from tacit.numbers import Number, decimal_meaning
from tacit.plan import CodedPlan, Fact, Spend, WantedFact, make_plan, make_spend, unseen_columns
from tacit.privacy import ApproximateLoss, GaussianNoise
from tacit.query import Aggregate, Column, Frame, Output, Query, Scalar
from tacit.tables import ColumnFacts, Declaration

Kind = Literal["classifier", "regressor", "transformer"]

# Which part of a fit's epsilon ranges have together, and keys: that much less is for the rounds, known or not, so that
# the same fit again is the same question.
FOR_RANGES = Fraction(1, 5)
FOR_KEYS = Fraction(1, 10)
KEYS_SHOWN = 6
KEYS = "keys "  # the facts which values columns have begin so
# Unlisted classes are found for columns of these types.
CLASSES = ("text", "int")
# Before keys are found, these stand in for them in a plan.
TEXTS_STANDING_IN, NUMBERS_STANDING_IN = ("one value", "another value"), (0, 1)


@dataclass(frozen=True)
class Ask:
    """The facts to learn: the declared table, the columns for ranges, and the facts."""

    session: Session
    ranges: tuple[str, ...]
    spend: Spend  # of all ranges together
    wanted: tuple[WantedFact, ...]

    def learn(self, analyst: str | None, learned: list[Fact]) -> None:
        """Charge for each fact and learn it, as a part of the fit's call; add it to `learned`."""
        session, keys = self.session, [each for each in self.wanted if each.key.startswith(KEYS)]
        with holding(session.hold):
            if len(keys) < len(self.wanted):
                query = _of_ranges(session, self.ranges)
                session.learn(query, spend=self.spend, again=False, analyst=analyst, learned=learned)
            for each in keys:
                learned += _find_keys(session, each, analyst)


@dataclass(frozen=True)
class KnownColumns:
    """A fit's table with the known facts about its columns, the epsilon for rounds, and the facts still to learn."""

    table: Table
    features: tuple[str, ...] | None
    epsilon: Number
    ask: Ask | None = None
    facts: tuple[Fact, ...] = ()
    names: tuple[str, ...] = ()  # the undeclared columns
    left_out: tuple[str, ...] = ()  # features of which no value is had by enough people
    unseen: tuple[str, ...] = ()  # features with a size that is unclear at this epsilon

    @property
    def cost(self) -> Fraction:
        return sum((each.plan.spend.epsilon for each in (() if self.ask is None else self.ask.wanted)), Fraction(0))

    def _facts(self, name: str) -> ColumnFacts:
        return self.table.session.declaration.columns[name]

    def _found(self) -> list[str]:
        """Return what was learned of each column, in words; of many keys the first few."""
        found = []
        for name in (each for each in self.names if each not in (*self.left_out, *self.unseen)):
            facts = self._facts(name)
            if facts.between is not None:
                found.append(f"{name} from {float(facts.between[0]):.6g} to {float(facts.between[1]):.6g}")
            else:
                keys = [str(each) for each in facts.keys or ()]
                shown = keys if len(keys) <= KEYS_SHOWN else [*keys[:KEYS_SHOWN], f"{len(keys) - KEYS_SHOWN} more"]
                found.append(f"{name} is {', '.join(shown)}")
        return found

    @property
    def words(self) -> str:
        """The facts that were, or would be, learned first; empty if all is declared."""
        if not self.names:
            return ""
        lines = []
        if self.ask is not None:
            lines.append(
                f"of it ε = {float(self.cost):.2g} first learns undeclared facts of {', '.join(self.names)}: "
                "kept, and free from then on; until then the plan shows stand-in cells"
            )
        else:
            cost = sum((each.epsilon for each in self.facts), Fraction(0))
            entries = sorted(each.entry for each in self.facts)
            lines.append(
                f"learned once, for ε ≈ {float(cost):.2g} (entries {entries[0]} to {entries[-1]}), undeclared; "
                f"free from now on: {'; '.join(self._found())}"
            )
            if any(self._facts(name).between for name in self.names):
                lines.append("values beyond a range count as its end; a range that you declare wins")
        if self.left_out:
            lines.append(f"left out: {', '.join(self.left_out)}; no value was found that enough people have")
        if self.unseen:
            lines.append(
                f"left out: {', '.join(self.unseen)}; the range of its values is unclear at this ε: too few "
                "people have one, or nearly all are 0 (declare its range, or table.learn(epsilon=1, "
                f"columns=['{self.unseen[0]}']) first)"
            )
        return "\n".join(lines)


@dataclass(frozen=True, repr=False)
class FitPlan:
    """The plan of a fit: free, made of public facts, and printed as text."""

    table: Table  # with the known facts of its columns
    features: tuple[Feature, ...]
    coded: CodedPlan  # the columns as they are read
    events: tuple[GaussianNoise, ...]
    asked: NoiseLoss
    known: KnownColumns
    recipe: object  # all that the arithmetic depends on: a stored model is found by its text
    words: str  # for the record
    text: str
    learn: Callable[[Rounds], Any]  # asks for noisy rounds and returns what leaves: the part after the charge
    model: Callable[[Any], Any]  # from what left to the fitted model

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)

    @property
    def loss(self) -> ApproximateLoss:
        """The cost of fitting: the requested epsilon, and the delta of its noise."""
        return ApproximateLoss(self.asked.epsilon, self.asked.delta)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


@contextmanager
def one_call(planned: Callable[[], FitPlan], analyst: str | None) -> Iterator[FitPlan]:
    """Learn what a fit lacks, and yield its plan, to be charged inside: refused as a whole, before the first charge.

    Of two equal fits at once, the second waits for the first, and has its model.
    """
    plan = planned()
    if not plan.known.names:
        yield plan
        return
    session, about = plan.known.table.session, (plan.known.names, str(plan.known.epsilon))
    key = f"a fit {hashlib.sha256(repr(about).encode('utf-8', 'surrogatepass')).hexdigest()}"
    with session.ledger.alone(session.registered, question_key=session.key_of(key), analyst=analyst):
        plan = planned()
        if plan.known.ask is None:
            yield plan
            return
        ask = plan.known.ask
        session.ledger.require_may_ask(session.registered, session.asker(analyst))
        call = session.ledger.call(
            session.registered,
            plan.events,
            beside=events_of(ask.wanted),
            asked=plan.asked,
            question_key="a model",
            analyst=analyst,
        )
        with call, explain_what_was_learned() as learned:
            ask.learn(analyst, learned)
            yield planned()


def known_columns(
    table: Table,
    names: Iterable[str] | None,
    target: str | None,
    epsilon: Number,
    *,
    kind: Kind,
    learn: Learn = None,
    analyst: str | None = None,
) -> KnownColumns:
    """Return a table with ranges and keys of all columns that a fit reads: declared, known, or standing in.

    A classifier's target is one of several values; a transformer has none, and its features are numbers.
    """
    session, declaration = table.session, table.session.declaration
    if isinstance(names, str) or table.frame.derived:
        return KnownColumns(table, names, epsilon)  # type: ignore[arg-type] # refused where features are read
    named = None if names is None else tuple(names)
    columns, ranges, keys = _columns_read(declaration, named, target, kind)
    if not (ranges or keys) or not read_learn(learn).allowed:
        return KnownColumns(table, named, epsilon)
    whole, budget = decimal_meaning(epsilon, name="epsilon"), session.registered.budget
    spend, of_keys = (make_spend(whole * share, None, None, budget) for share in (FOR_RANGES, FOR_KEYS))
    found, wanted, known, unseen = _ranges(session, ranges, spend, analyst)
    for name in keys:
        facts, want = declaration.columns[name], _wanted_keys(session, name, of_keys, len(keys))
        fact = session.recall_fact(want.key, analyst)
        stored = None if fact is None else session.ledger.stored(fact.entry)
        if fact is None or stored is None:
            wanted.append(want)
            values = TEXTS_STANDING_IN if facts.type == "text" else NUMBERS_STANDING_IN
        else:
            known.append(fact)
            values = tuple(untagged(json.loads(stored.answer)["values"]))
        found[name] = replace(facts, keys=values)
    empty = [name for name in keys if not found[name].keys]
    _refuse_nothing(columns, (*empty, *unseen), target, found.get(str(target)) if kind == "classifier" else None)
    return KnownColumns(
        with_facts(table, {name: each for name, each in found.items() if name not in (*empty, *unseen)}),
        tuple(name for name in columns if name not in (*empty, *unseen, target)),
        whole * (1 - (FOR_RANGES if ranges else 0) - (FOR_KEYS if keys else 0)),
        Ask(session, ranges, spend, tuple(wanted)) if wanted else None,
        tuple(known),
        (*ranges, *keys),
        tuple(empty),
        unseen,
    )


def _columns_read(
    declaration: Declaration, names: Sequence[str] | None, target: str | None, kind: Kind
) -> tuple[list[str], tuple[str, ...], tuple[str, ...]]:
    """Return the columns that a fit reads, and those with a range, or with keys, to learn. The fit refuses others."""
    facts = declaration.columns
    if names is None:
        names = [name for name in facts if name != target]
        if kind == "transformer":
            names = [name for name in names if facts[name].type in NUMBERS and facts[name].keys is None]
    wanted = dict.fromkeys([*names, *([] if target is None else [target])])
    columns = [name for name in wanted if isinstance(name, str) and name in facts and name != declaration.unit]
    undeclared = [name for name in columns if facts[name].keys is None and facts[name].between is None]
    class_target, listed = target if kind == "classifier" else None, () if kind == "transformer" else ("text",)
    keys = tuple(name for name in undeclared if facts[name].type in (CLASSES if name == class_target else listed))
    ranges = tuple(name for name in undeclared if facts[name].type in NUMBERS and name not in (*keys, class_target))
    return columns, ranges, keys


def _refuse_nothing(
    columns: Sequence[str], nothing: Sequence[str], target: str | None, classes: ColumnFacts | None
) -> None:
    """Refuse a fit if too little was found, which only noisy counts decide."""
    if target in nothing and classes is None:
        raise QueryRefused(
            f"the range of '{target}' cannot be learned at this epsilon: too few people have a value, "
            "or nearly all values are 0"
            f"\nhint: declare its range: columns={{'{target}': {{'between': (0, 100)}}}}; or learn it with more first:"
            f" table.learn(epsilon=0.5, columns=['{target}']); learned facts are kept"
        )
    if classes is not None and len(classes.keys or ()) < 2:
        raise QueryRefused(
            f"fewer than two values of '{target}' are shared by enough people, so there is nothing to classify"
            f"\nhint: declare its classes: columns={{'{target}': {{'keys': [...]}}}}; learned facts are kept"
        )
    if nothing and not [name for name in columns if name not in (*nothing, target)]:
        raise QueryRefused(
            f"too few people have values of {', '.join(nothing)}: neither keys nor ranges can be learned from so few"
            "\nhint: declare their keys and ranges, or name other features; table.learn(epsilon=0.5, columns=[...])"
            " learns ranges with more; learned facts are kept"
        )


def with_facts(table: Table, facts: Mapping[str, ColumnFacts]) -> Table:
    """Return a table of which more is known: the same rows, people, budget and ledger."""
    if not facts:
        return table
    declaration = table.session.declaration
    more = replace(declaration, columns={**declaration.columns, **facts})
    return replace(
        table,
        session=replace(table.session, declaration=more),
        frame=replace(table.frame, declaration=more),
    )


def with_target(
    table: Table, name: str, *, keys: Sequence[Scalar] = (), between: tuple[float, float] | None = None
) -> Table:
    """Return a table of which a model's target is known: as it was declared, or else as the model has it."""
    facts = table.session.declaration.columns.get(name)
    if facts is None or facts.keys is not None or facts.between is not None or facts.type == "bool":
        return table
    ends = None if between is None else (Fraction(between[0]), Fraction(between[1]))
    return with_facts(table, {name: replace(facts, keys=tuple(keys) or None, between=ends)})


# ---- ranges: the facts of any question ----------------------------------------------------------------------------


def _ranges(
    session: Session, names: tuple[str, ...], spend: Spend, analyst: str | None
) -> tuple[dict[str, ColumnFacts], list[WantedFact], list[Fact], tuple[str, ...]]:
    """Return columns with their ranges, known or assumed, the facts still to learn, and the facts used.

    Last are the columns without a usable fact: a range for them would add only noise.
    """
    if not names:
        return {}, [], [], ()
    query, declaration = _of_ranges(session, names), session.declaration
    facts, wanted = all_missing(query, declaration, spend, ALL, partial(session.recall_fact, analyst=analyst))
    known = {key: fact for key, fact in facts.items() if fact.entry}
    if can_plan(query, declaration, spend, known):
        facts, wanted = known, ()
    plan = make_plan(query, declaration, spend, facts)
    found = {
        each.expression.name: replace(declaration.columns[each.expression.name], between=each.between)
        for each in plan.measured
        if isinstance(each.expression, Column)
    }
    nothing = frozenset() if wanted else unseen_columns(query, declaration, spend, facts)
    unseen = tuple(name for name in names if Column(name) in nothing)
    return found, list(wanted), [] if wanted else list(plan.learned), unseen


def _of_ranges(session: Session, names: tuple[str, ...]) -> Query:
    """Return a question that needs only the range of each column: medians of people."""
    outputs = [
        Output(f"of {name}", Aggregate("quantile", Column(name), fraction=Fraction(1, 2), of="people"))
        for name in names
    ]
    return Query(session.declaration.name, tuple(outputs))


# ---- keys: found once, above a threshold --------------------------------------------------------------------------


def _wanted_keys(session: Session, name: str, spend: Spend, columns: int) -> WantedFact:
    """Return the fact of which values a column has: each unit brings one of its values, by a fresh salt."""
    unit = session.declaration.unit_column
    most = None if unit is None else 1
    declaration = replace(session.declaration, rows_per_unit=most, groups_per_unit=most)
    table = Table(replace(session, declaration=declaration), Frame(declaration))
    grouped = table.group_by(name)
    query = (grouped.count() if unit is None else grouped.count_units()).query
    each = replace(
        spend,
        epsilon=spend.epsilon / columns,
        delta_keys=spend.delta_keys / columns,
        delta_noise=spend.delta_noise / columns,
        delta_rho=spend.delta_rho / columns,
    )
    about = (unit or "", declaration.neighbours, name, declaration.columns[name].type)
    key = f"{KEYS}{hashlib.sha256(repr(about).encode('utf-8', 'surrogatepass')).hexdigest()}"
    return WantedFact(key, f"which values {name} has", make_plan(query, declaration, each))


def _find_keys(session: Session, wanted: WantedFact, analyst: str | None) -> list[Fact]:
    """Charge for a column's keys, find them and keep them as a fact; return it if it was charged here."""
    with session.spend_on_fact(wanted, None, analyst, Learning(wanted.words)) as charge:
        if charge.stored is None:
            noisy = session.release(wanted.plan)
            record = json.loads(fact_text(wanted, noisy, source_of((session.base or session).source_mark)))
            values = [key[0] for key in noisy.keys if key[0] is not None]
            charge.keep(json.dumps(record | {"values": tagged(values)}, separators=(",", ":")))
    fact = session.recall_fact(wanted.key, analyst)
    return [] if charge.free or fact is None else [fact]
