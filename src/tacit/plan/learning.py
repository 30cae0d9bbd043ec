"""Learning: which facts a question needs, and the plans that learn them.

A fact is learned once, by a plan of its own that is charged as any other, and serves every later question about the
same people and the same cells (`known.py` has its key). Facts build on each other: how large a column's values are,
then its centre, then the profiles of sums about it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from tacit.accounting import laplace_scale
from tacit.plan.by_hand import facts_by_hand
from tacit.plan.choices import with_quantiles_of
from tacit.plan.facts import Fact, Facts, WantedFact
from tacit.plan.filled import distances_of, lacks_anything, ranged_columns
from tacit.plan.filled_bounds import missing_bounds
from tacit.plan.known import Grouping, KeyCount, Subject, grouping_of, key_counts, profile_plan, reading_of, span_in
from tacit.plan.plan import Plan, Spend
from tacit.plan.planner import hand_set_plan
from tacit.plan.vectors import (
    ValueColumn,
    count_subject,
    is_scaled,
    missing_subject,
    value_columns,
    wanted_vectors,
)
from tacit.query import Aggregate, Column, Output, Query
from tacit.tables import Declaration

# Which part of a call's epsilon learns: of a question of counts, of one with values, and of one without GROUP BY, where
# the cap is all there is to choose.
COUNTS_SHARE = Fraction(10, 100)
VALUES_SHARE = Fraction(14, 100)
ONE_NUMBER_SHARE = Fraction(20, 100)
# The same of a sum or a mean, whose profile should have no less for that it needs to know a size too.
ONE_VALUE_SHARE = Fraction(24, 100)
# Of a question whose ranges, or bounds by which rows are dropped, are learned.
RANGES_SHARE = Fraction(10, 100)
# How that is divided: parts of a fact, each profile's by its norm. The L1 norm is also what tail caps are read off; a
# size gives no more than a grid, and a centre need not be near.
PARTS = {
    "size": (Fraction(1),),
    "centre": (Fraction(1),),
    "missing": (Fraction(1),),
    "counts": (Fraction(5), Fraction(5, 4)),
    "sums": (Fraction(5), Fraction(3, 2)),
    "distances": (Fraction(5),),
    "groups": (Fraction(4),),
}
# Where nothing is believed, another round gets this part, if its noise is clearly smaller than that of all before it.
AGAIN_SHARE = Fraction(25, 100)
AGAIN_SHARE_OF_SIZES = Fraction(10, 100)
CLEARLY_SMALLER = 0.75
# A profile with so many times the noise that this call's own would have was learned by a far smaller call.
POORER = 8
SHARE_PARTS = 10**6
# Profiles of the octaves of values.
OF_VALUES = ("size", "distances")


@dataclass(frozen=True)
class _Needed:
    """A fact that a question needs, once it is known what it is about."""

    kind: str
    subject: Subject
    words: str
    centre_of: ValueColumn | None = None


def needed_facts(
    query: Query, declaration: Declaration, spend: Spend, facts: Facts, learn: Fraction | None = None
) -> tuple[WantedFact, ...]:
    """Return the facts that a question is planned from, known or not, as this call would learn them.

    Later ones depend on earlier ones: where some are not known yet, those that depend on them are not in the list.
    `learn` is the part of the call's epsilon that all of them have together, if not the usual one.
    """
    query = with_quantiles_of(query, declaration)
    grouping = grouping_of(query, declaration, spend)
    if is_scaled(query, declaration):
        needed = list(_needed(query, grouping, facts, spend.epsilon))
        unit = _share(query, learn) / _parts(query, grouping)
    elif lacks_anything(query, declaration, spend):
        needed = list(_needed_to_fill(query, grouping, facts, spend.epsilon))
        unit = (RANGES_SHARE if learn is None else learn) / _parts_to_fill(query, grouping)
    else:
        return facts_by_hand(query, declaration, spend, facts, learn)
    left = _left_for_more(learn)
    profiles = sum(each.kind in ("counts", "sums") for each in needed)
    sizes = sum(each.kind in OF_VALUES for each in needed)
    wanted: dict[str, WantedFact] = {}
    for each in needed:
        of_values = each.kind in OF_VALUES
        again = AGAIN_SHARE_OF_SIZES / max(sizes, 1) if of_values else AGAIN_SHARE / max(profiles, 1)
        for fact in _rounds(each, spend.epsilon, unit, again * left, facts):
            wanted.setdefault(fact.key, fact)
    if is_scaled(query, declaration):
        for count in key_counts(grouping, facts, spend.epsilon):
            epsilon = spend.epsilon * _whole_parts(unit * PARTS["groups"][0])
            name = count.grouping.keys[0].name
            plan = key_count_plan(count, epsilon)
            wanted.setdefault(count.key, WantedFact(count.key, f"about how many different {name} there are", plan))
    return tuple(wanted.values())


def missing_facts(
    query: Query, declaration: Declaration, spend: Spend, facts: Facts, learn: Fraction | None = None
) -> tuple[WantedFact, ...]:
    """Return what must be learned next; nothing where all is known, or nothing is needed."""
    return tuple(wanted for wanted in needed_facts(query, declaration, spend, facts, learn) if wanted.key not in facts)


def _left_for_more(learn: Fraction | None) -> Fraction:
    """Return which part of their usual shares further rounds have: all rounds together leave some of the epsilon.

    Who learns ahead, with all of an epsilon, counts the rounds (`Session.learn`).
    """
    if learn is None or learn >= 1:
        return Fraction(1)
    return min(Fraction(1), (1 - learn) / 2 / (AGAIN_SHARE + AGAIN_SHARE_OF_SIZES))


def _share(query: Query, learn: Fraction | None) -> Fraction:
    if learn is not None:
        return learn
    values = any(output.aggregate.kind in ("sum", "mean") for output in query.outputs)
    if not query.keys:
        return ONE_VALUE_SHARE if values else ONE_NUMBER_SHARE
    return VALUES_SHARE if values else COUNTS_SHARE


def _parts(query: Query, grouping: Grouping) -> Fraction:
    """Return the parts of all facts of a question together, known or not."""
    norms = 1 if grouping.is_pure or not grouping.keys else 2
    counts, sums = (sum(PARTS[kind][:norms], Fraction(0)) for kind in ("counts", "sums"))
    columns = list(value_columns(query, grouping))
    has_rows = any(output.aggregate.kind == "count" and output.aggregate.expression is None for output in query.outputs)
    total = Fraction(0)
    for column, _ in columns:
        total += sums + (PARTS["size"][0] if column.between is None else 0)
        total += 0 if column.about_zero else PARTS["centre"][0] + (PARTS["missing"][0] if has_rows else counts)
    subjects = {
        (output.aggregate.kind, output.aggregate.expression)
        for output in query.outputs
        if output.aggregate.kind in ("count", "count_units")
    }
    keys = PARTS["groups"][0] * len(grouping.keys) if grouping.public_keys is None else 0
    return (total + counts * len(subjects) or counts) + keys


def _needed(query: Query, grouping: Grouping, facts: Facts, epsilon: Fraction) -> Iterator[_Needed]:
    """Yield all facts whose subject is known: sizes first."""
    who = "a row" if grouping.unit is None else f"a {grouping.unit}"
    by = ", ".join(key.name for key in grouping.keys)
    cells = f", in all and by {by}" if by else ""
    cells += " (of the rows that are asked about)" if grouping.where is not None else ""
    rows = any(output.aggregate.kind == "count" and output.aggregate.expression is None for output in query.outputs)
    for column, _ in value_columns(query, grouping):
        name = column.expression.name if isinstance(column.expression, Column) else "the expression"
        size, centre, grid = column.size(), column.centre(facts), column.grid(facts)
        if size is not None:
            yield _Needed("size", size, f"how large {name} is")
        if centre is not None:
            yield _Needed("centre", centre, f"about the middle of {name}", column)
        if grid is not None and rows and not column.about_zero:
            missing = missing_subject(column, grid).at_hand(facts, epsilon)
            yield _Needed("missing", missing, f"how often {name} of {who} is missing")
    wanted = wanted_vectors(query, grouping, facts, epsilon)
    if wanted is None:
        if rows:
            subject = count_subject(grouping, "rows").at_hand(facts, epsilon)
            yield _Needed("counts", subject, f"how many rows {who} has{cells}")
        return
    for vector in wanted.vectors:
        if vector.subject is None:
            continue
        subject = vector.subject.at_hand(facts, epsilon)
        if vector.role == "centred":
            words = f"how far from their middle the values of {who} add up{cells}"
            yield _Needed("sums", subject, words)
        else:
            what = "groups" if vector.role == "units" else "rows" if vector.role == "rows" else "values"
            yield _Needed("counts", subject, f"how many {what} {who} has{cells}")


def _parts_to_fill(query: Query, grouping: Grouping) -> Fraction:
    columns = sum(1 for _ in ranged_columns(query, grouping))
    total = columns * sum((PARTS[kind][0] for kind in ("size", "centre", "distances")), Fraction(0))
    for bound in missing_bounds(query, grouping):
        total += sum(_parts_of("counts", bound.subject), Fraction(0))
    return total


def _needed_to_fill(query: Query, grouping: Grouping, facts: Facts, epsilon: Fraction) -> Iterator[_Needed]:
    """Yield all facts that ranges and bounds are read off, whose subject is known."""
    for column in ranged_columns(query, grouping):
        name = column.expression.name if isinstance(column.expression, Column) else "the expression"
        size, centre, distances = column.size(), column.centre(facts), distances_of(column, facts)
        if size is not None:
            yield _Needed("size", size, f"how large {name} is")
        if centre is not None:
            yield _Needed("centre", centre, f"about the middle of {name}", column)
        if distances is not None:
            yield _Needed("distances", distances, f"how far {name} is from its middle")
    by = ", ".join(key.name for key in grouping.keys)
    for bound in missing_bounds(query, grouping):
        what = bound.what
        if bound.expression is not None:
            name = bound.expression.name if isinstance(bound.expression, Column) else "the expression"
            what = f"different values of {name}"
        words = f"how many {what} a {grouping.unit} has{', in all and by ' + by if by else ''}"
        yield _Needed("counts", bound.subject.at_hand(facts, epsilon), words)


def _parts_of(kind: str, subject: Subject) -> tuple[Fraction, ...]:
    return PARTS[kind][: max(len(subject.profiles), 1)]


def _rounds(needed: _Needed, epsilon: Fraction, unit: Fraction, again: Fraction, facts: Facts) -> Iterator[WantedFact]:
    """Yield the rounds of a fact: those that are known, and the next one if there should be one.

    A part of the first round is `unit` of the call's epsilon, and another round has `again` of it in all.
    """
    subject = needed.subject
    parts = _parts_of(needed.kind, subject)
    first = [epsilon * _whole_parts(unit * part) for part in parts]
    more = [epsilon * _whole_parts(again * part / sum(parts)) for part in parts]
    epsilons, known = first, list[Fact]()
    while True:
        key = subject.key(len(known))
        yield WantedFact(key, needed.words, _learning_plan(needed, epsilons))
        if key not in facts:
            return
        known.append(facts[key])
        is_poor = _is_poor(needed, known, first)
        epsilons = first if is_poor else more
        if subject.key(len(known)) not in facts and not is_poor and not _should_repeat(needed, known, more):
            return


def _is_poor(needed: _Needed, known: Sequence[Fact], epsilons: Sequence[Fraction]) -> bool:
    """Whether a profile has so much more noise than this call's own would have that it is worth learning again.

    Not of sizes: a grid that changes would make all that was learned on it worthless.
    """
    if needed.kind not in ("counts", "sums"):
        return False
    reading = reading_of(known, 0, needed.subject.profiles[0].vector)
    return reading.scale > POORER * _scale_at(epsilons[0], needed.subject)


def _whole_parts(share: Fraction) -> Fraction:
    """Return a share in whole parts, rounded down: what is charged for it is then exactly that."""
    return max(Fraction(share * SHARE_PARTS // 1, SHARE_PARTS), Fraction(1, SHARE_PARTS))


def _should_repeat(needed: _Needed, known: Sequence[Fact], epsilons: Sequence[Fraction]) -> bool:
    """Whether nothing is believed yet, and another round would have clearly less noise than all before it."""
    if needed.kind in ("centre", "missing"):
        return False
    subject = needed.subject
    if needed.kind in OF_VALUES:
        top, scale = span_in(known).top, min(float(fact.scales[0]) for fact in known)
    else:
        reading = reading_of(known, 0, subject.profiles[0].vector)
        top, scale = reading.top, reading.scale
    return top is None and _scale_at(epsilons[0], subject) <= CLEARLY_SMALLER * scale


def _scale_at(epsilon: Fraction, subject: Subject) -> float:
    """Return the scale of the noise of a round: no epsilon makes it less than can be drawn."""
    return float(laplace_scale(Fraction(subject.grouping.moves), epsilon))


# ---- Plans.


def _learning_plan(needed: _Needed, epsilons: Sequence[Fraction]) -> Plan:
    if needed.centre_of is None:
        return profile_plan(needed.subject, epsilons)
    return centre_plan(needed.subject, needed.centre_of, epsilons[0])


def centre_plan(subject: Subject, column: ValueColumn, epsilon: Fraction) -> Plan:
    """Return the plan that learns a centre: the median of one row of each unit, within the range of its size."""
    (measured,) = subject.measured
    declaration = replace(subject.grouping.declaration, rows_per_unit=1, groups_per_unit=1)
    aggregate = Aggregate("quantile", column.expression, measured.between, fraction=Fraction(1, 2))
    query = Query(declaration.name, (Output("centre", aggregate),))
    return hand_set_plan(query, declaration, Spend(epsilon))


def key_count_plan(count: KeyCount, epsilon: Fraction) -> Plan:
    """Return the plan that learns how many different keys there are: each unit brings one, by a fresh salt."""
    grouping = count.grouping
    declaration = replace(grouping.declaration, rows_per_unit=1, groups_per_unit=1)
    aggregate = Aggregate("count_distinct", grouping.keys[0].expression, per_unit=1)
    query = Query(declaration.name, (Output("groups", aggregate),), where=grouping.where)
    return hand_set_plan(query, declaration, Spend(epsilon))
