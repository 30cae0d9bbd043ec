"""Learning: which facts a question needs, and the plans that learn them.

A fact is learned once, by a separate plan that is charged as any other, and serves every later question about the
same people and the same cells (`facts.py` has its key). Facts build on each other: how large a column's values are,
then its centre, then the profiles of sums about it.

Made-up facts, in the place of those that are not known yet: a plan foresees with them what else will be learned.

Made-up facts are never kept, and never become a part of an answer. Before a question is charged, made-up facts show
what the question would want next, if the facts that it learns first told of very many people who are all alike, and of
a few groups with very many people each.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from fractions import Fraction

from tacit.accounting import laplace_scale
from tacit.errors import with_article
from tacit.plan.bounds.chosen import (
    AGAIN_SHARE,
    CLEARLY_LESS,
    FEWEST_CELLS,
    LEARNS,
    LEARNS_BY_GROUP,
    MANY_COLUMNS,
    OF_VALUES,
    PART_OF_LENGTHS,
    PART_OF_MANY,
    PART_OF_TOTALS,
    POORER,
)
from tacit.plan.bounds.facts import (
    FEW_CELLS,
    MADE_OF,
    Fact,
    Facts,
    Grouping,
    KeySearch,
    Subject,
    WantedFact,
    grouping_in,
    profile_plan,
    reading_of,
    span_in,
    with_others,
)
from tacit.plan.bounds.filled import distances_of, lacks_anything, missing_bounds, ranged_columns
from tacit.plan.bounds.moment_vectors import all_vectors, paired_columns
from tacit.plan.bounds.profiles import bin_of
from tacit.plan.bounds.scaled import Halves, halves_of, known_groups
from tacit.plan.bounds.vectors import (
    MOMENTS_OF_ONE,
    ValueColumn,
    count_subject,
    is_scaled,
    keys_of_ceilings,
    value_columns,
    widens,
)
from tacit.plan.groups import UNIT_SHIFT
from tacit.plan.plan import Plan, Spend
from tacit.plan.planner import hand_set_plan
from tacit.plan.split import with_quantiles_of
from tacit.query import Aggregate, Output, Query, Scalar, Type, name_of
from tacit.tables import Declaration

# How a call's learning is divided: parts of a fact, each profile's by its norm. A size gives no more than a grid, and a
# centre need not be near. Of many columns at once a range must be found with little, and without a size there is none.
PARTS = {
    "size": (Fraction(1),),
    "centre": (Fraction(1),),
    "counts": (PART_OF_TOTALS, PART_OF_LENGTHS),
    "sums": (PART_OF_TOTALS, PART_OF_LENGTHS),
    "squares": (PART_OF_TOTALS, PART_OF_LENGTHS),
    "distances": (PART_OF_TOTALS,),
    "size of many": (PART_OF_MANY,),
    "distances of many": (PART_OF_MANY,),
}
SHARE_PARTS = 10**6
# What needs squares or products of values.
MOMENT_KINDS = MOMENTS_OF_ONE | {"covariance", "correlation"}
# Profiles of the lengths of vectors.
PROFILED = ("counts", "sums", "squares")
# How large values are, which makes the grid of all that is learned of them; and all profiles of the octaves of values.
SIZES = ("size", "size of many")
OF_COLUMNS = (*SIZES, "distances", "distances of many")
OF_WHERE = " (of the rows that are asked about)"


@dataclass(frozen=True)
class _Needed:
    """A fact that a question needs, once it is known what it is about."""

    kind: str
    subject: Subject
    words: str
    centre_of: ValueColumn | None = None
    instead: bool = False  # of all rows, because too little was learned of those that are asked about


def needed_facts(
    query: Query, declaration: Declaration, spend: Spend, facts: Facts, learn: Fraction | None = None
) -> tuple[WantedFact, ...]:
    """Return the facts that a question is planned from, known or not, as this call would learn them.

    Later ones depend on earlier ones: where some are not known yet, those that depend on them are not in the list.
    `learn` is the part of the call's epsilon that all of them have together, if not the usual one.
    """
    if query.other:
        return _needed_with_others(query, declaration, spend, facts, learn)
    query = with_quantiles_of(query, declaration)
    if (halves := halves_of(query, declaration, spend)) is not None:
        return _needed_by_halves(halves, declaration, facts, learn)
    grouping = grouping_in(query, declaration, spend, facts)
    if is_scaled(query, declaration):
        first = None if grouping.cells else _first_groups(grouping, facts, spend, learn)
        if first is not None:  # how many groups there are decides what else is learned
            return (first,)
        needed = list(_needed(query, grouping, facts, spend.epsilon))
        unit = _share_to_learn(query, grouping, learn) / _parts_of_epsilon(query, grouping)
        unit /= 1 if learn is None or grouping.public_keys is not None else 2  # groups have the other half
    elif lacks_anything(query, declaration, spend):
        needed = list(_needed_to_fill(query, grouping, facts, spend.epsilon))
        unit = _share_to_learn(query, grouping, learn) / _parts_to_fill(query, grouping)
    else:
        return ()
    left = _left_for_more(learn)
    profiles = sum(each.kind in PROFILED for each in needed)
    values = sum(each.kind in OF_COLUMNS for each in needed)
    wanted: dict[str, WantedFact] = {}

    def want(some: Iterable[_Needed]) -> None:
        for each in some:
            again = AGAIN_SHARE / max(profiles + values, 1)
            for fact in _rounds(each, spend.epsilon, unit, again * left, facts):
                wanted.setdefault(fact.key, fact)

    want(each for each in needed if each.kind in SIZES)
    if any(key not in facts for key in wanted):  # what is learned on a grid waits until the grid stays what it is
        return tuple(wanted.values())
    want(each for each in needed if each.kind not in SIZES)
    if is_scaled(query, declaration):
        for each in _key_rounds(grouping, facts, wanted, needed, spend, learn):
            wanted.setdefault(each.key, each)
    return tuple(wanted.values())


def _needed_by_halves(
    halves: Halves, declaration: Declaration, facts: Facts, learn: Fraction | None
) -> tuple[WantedFact, ...]:
    """Return what the scaled part needs, and what its quantiles need of the same groups once these are known."""
    wanted = {
        each.key: each for each in needed_facts(halves.scaled.query, declaration, halves.scaled.spend, facts, learn)
    }
    groups = known_groups(halves, declaration, facts)
    if groups is not None and all(key in facts for key in wanted):
        drawn = halves.drawn_with(groups)
        for each in needed_facts(drawn.query, declaration, drawn.spend, facts, learn):
            wanted.setdefault(each.key, each)
    return tuple(wanted.values())


def _needed_with_others(
    query: Query, declaration: Declaration, spend: Spend, facts: Facts, learn: Fraction | None
) -> tuple[WantedFact, ...]:
    """Return the round that finds groups, whatever else is asked; once they are known, what the listed groups need."""
    grouping = grouping_in(query, declaration, spend, facts)
    if grouping.public_keys is None and spend.delta_keys > 0:
        search = KeySearch(grouping).at_hand(facts)
        wanted = search.next_round(facts, (), spend, None if search.rounds(facts) else learn)
        if wanted is not None:
            return (wanted,)
    return needed_facts(with_others(query, declaration, spend, facts)[0], declaration, spend, facts, learn)


def _first_groups(grouping: Grouping, facts: Facts, spend: Spend, learn: Fraction | None) -> WantedFact | None:
    """Return the first round that finds groups; None if they are listed, or a round was run."""
    if grouping.public_keys is not None or spend.delta_keys == 0:
        return None
    search = KeySearch(grouping).at_hand(facts)
    return None if search.rounds(facts) else search.next_round(facts, (), spend, learn)


def _key_rounds(
    grouping: Grouping,
    facts: Facts,
    wanted: Mapping[str, WantedFact],
    needed: Sequence[_Needed],
    spend: Spend,
    learn: Fraction | None,
) -> Iterator[WantedFact]:
    """Yield the next round in which groups are found, once profiles tell about how many people there are."""
    if grouping.public_keys is not None or spend.delta_keys == 0 or any(key not in facts for key in wanted):
        return
    search = KeySearch(grouping).at_hand(facts)
    readings = [
        reading_of(rounds, 0, each.subject.profiles[0].vector)
        for each in needed
        if each.kind in PROFILED and (rounds := each.subject.rounds(facts))
    ]
    following = search.next_round(facts, readings, spend, learn)
    if following is not None:
        yield following


def missing_facts(
    query: Query, declaration: Declaration, spend: Spend, facts: Facts, learn: Fraction | None = None
) -> tuple[WantedFact, ...]:
    """Return what must be learned next; nothing where all is known, or nothing is needed."""
    return tuple(wanted for wanted in needed_facts(query, declaration, spend, facts, learn) if wanted.key not in facts)


def ceiling_keys(query: Query, declaration: Declaration, spend: Spend, facts: Facts) -> tuple[str, ...]:
    """Return the keys of facts that would improve a question's plan, if they are paid for: limits and more groups."""
    if query.other:
        grouping = grouping_in(query, declaration, spend, facts)
        search = KeySearch(grouping).at_hand(facts)
        rounds = () if grouping.public_keys is not None else search.rounds(facts)
        if grouping.public_keys is None and not rounds:
            return (search.key(0),)
        own = ceiling_keys(with_others(query, declaration, spend, facts)[0], declaration, spend, facts)
        return own if not rounds else (search.key(len(rounds)), *own)
    query = with_quantiles_of(query, declaration)
    if (halves := halves_of(query, declaration, spend)) is not None:
        query, spend = halves.scaled.query, halves.scaled.spend
    grouping = grouping_in(query, declaration, spend, facts)
    if is_scaled(query, declaration):
        wanted = all_vectors(query, grouping, facts)
        learned = () if wanted is None else (each.learned_from for each in wanted.vectors)
        subjects = [each for each in learned if each is not None]
    else:
        subjects = [bound.subject for bound in missing_bounds(query, grouping)]
    more = [key for subject in subjects for key in keys_of_ceilings(subject, facts)]
    if is_scaled(query, declaration) and grouping.public_keys is None:
        search = KeySearch(grouping).at_hand(facts)
        more.append(search.key(len(search.rounds(facts))))
    return tuple(dict.fromkeys(more))


def _left_for_more(learn: Fraction | None) -> Fraction:
    """Return which part of their usual shares further rounds have: all rounds together leave some of the epsilon.

    Who learns ahead, with all of an epsilon, counts the rounds (`Session.learn`).
    """
    if learn is None or learn >= 1:
        return Fraction(1)
    return min(Fraction(1), (1 - learn) / 2 / AGAIN_SHARE)


def _share_to_learn(query: Query, grouping: Grouping, learn: Fraction | None) -> Fraction:
    """Return which part of a call's epsilon learns: more if groups are few, and if values are asked of."""
    if learn is not None:
        return learn
    kinds = {output.aggregate.kind for output in query.outputs}
    more = OF_VALUES**2 if kinds & MOMENT_KINDS else OF_VALUES if kinds & {"sum", "mean"} else Fraction(1)
    return more * (LEARNS + LEARNS_BY_GROUP / max(grouping.cells or FEW_CELLS, FEWEST_CELLS))


def _parts_of_epsilon(query: Query, grouping: Grouping) -> Fraction:
    """Return the parts of all facts of a question together, known or not."""
    norms = 1 if grouping.only_l1 or not grouping.keys else 2
    parts = {kind: sum(PARTS[kind][:norms], Fraction(0)) for kind in PROFILED}
    sums, squares = parts["sums"], parts["squares"]
    columns = list(value_columns(query, grouping))
    total = Fraction(0)
    for column, outputs in columns:
        total += sums + (PARTS["size"][0] if column.between is None else 0)
        total += 0 if column.about_zero else PARTS["centre"][0]
        total += squares if any(output.aggregate.kind in MOMENT_KINDS for output in outputs) else 0
    for pair, outputs in paired_columns(query, grouping):
        total += sum((PARTS["size"][0] for column in pair if column.between is None), 2 * PARTS["centre"][0])
        total += parts["counts"] + 2 * sums
        total += squares * (3 if any(output.aggregate.kind == "correlation" for output in outputs) else 1)
    subjects = {
        (output.aggregate.kind, output.aggregate.expression)
        for output in query.outputs
        if output.aggregate.kind in ("count", "count_units")
    }
    subjects |= {("count", None)} if any(not column.about_zero for column, _ in columns) else set()
    return total + parts["counts"] * len(subjects) or parts["counts"]


def _needed(query: Query, grouping: Grouping, facts: Facts, epsilon: Fraction) -> Iterator[_Needed]:
    """Yield all facts whose subject is known: sizes first."""
    who = "a row" if grouping.unit is None else with_article(grouping.unit)
    by = ", ".join(key.name for key in grouping.keys)
    cells = f", in all and by {by}" if by else ""
    cells += OF_WHERE if grouping.where is not None else ""
    rows = any(output.aggregate.kind == "count" and output.aggregate.expression is None for output in query.outputs)
    alone = [column for column, _ in value_columns(query, grouping)]
    paired = [column for pair, _ in paired_columns(query, grouping) for column in pair]
    for column in (*alone, *paired):
        name = name_of(column.expression)
        size, centre = column.size(), column.centre(facts)
        if size is not None:
            yield _Needed("size", size, f"how large {name} is")
        if centre is not None:
            yield _Needed("centre", centre, f"about the middle of {name}", column)
    wanted = all_vectors(query, grouping, facts)
    if wanted is None:
        if rows:
            subjects = count_subject(grouping, "rows").tried(facts, epsilon, widens=True)
            yield from _tried("counts", subjects, f"how many rows {who} has{cells}")
        return
    for vector in wanted.vectors:
        if vector.learned_from is None:
            continue
        if vector.role == "centred":
            values = "values" if vector.factors is None else "squares" if len(set(vector.factors)) == 1 else "products"
            words = f"how far from their middle the {values} of {who} add up{cells}"
            kind = "sums" if vector.factors is None else "squares"
        else:
            what = "groups" if vector.role == "units" else "rows" if vector.role == "rows" else "values"
            kind, words = "counts", f"how many {what} {who} has{cells}"
        yield from _tried(kind, vector.learned_from.tried(facts, epsilon, widens=widens(query)), words)


def _tried(kind: str, subjects: Sequence[Subject], words: str) -> Iterator[_Needed]:
    """Yield a fact of the rows that are asked about, and of all rows where that tells too little."""
    first, *then = subjects
    yield _Needed(kind, first, words)
    for wider in then:
        yield _Needed(kind, wider, words.replace(OF_WHERE, ""), instead=True)


def _parts_to_fill(query: Query, grouping: Grouping) -> Fraction:
    columns = sum(1 for _ in ranged_columns(query, grouping))
    many = " of many" if columns >= MANY_COLUMNS else ""
    total = columns * sum((PARTS[kind][0] for kind in (f"size{many}", "centre", f"distances{many}")), Fraction(0))
    for bound in missing_bounds(query, grouping):
        total += sum(_parts_of("counts", bound.subject), Fraction(0))
    return total


def _needed_to_fill(query: Query, grouping: Grouping, facts: Facts, epsilon: Fraction) -> Iterator[_Needed]:
    """Yield all facts that ranges and bounds are read off, whose subject is known."""
    columns = list(ranged_columns(query, grouping))
    many = " of many" if len(columns) >= MANY_COLUMNS else ""
    for column in columns:
        name = name_of(column.expression)
        size, centre, distances = column.size(), column.centre(facts), distances_of(column, facts)
        if size is not None:
            yield _Needed(f"size{many}", size, f"how large {name} is")
        if centre is not None:
            yield _Needed("centre", centre, f"about the middle of {name}", column)
        if distances is not None:
            yield _Needed(f"distances{many}", distances, f"how far {name} is from its middle")
    by = ", ".join(key.name for key in grouping.keys)
    for bound in missing_bounds(query, grouping):
        what = bound.what
        if bound.expression is not None:
            name = name_of(bound.expression)
            what = f"different values of {name}"
        words = f"how many {what} {with_article(str(grouping.unit))} has{', in all and by ' + by if by else ''}"
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
    epsilons, known = more if needed.instead else first, list[Fact]()
    while True:
        key = subject.key(len(known))
        yield WantedFact(key, needed.words, _learning_plan(needed, epsilons))
        if key not in facts:
            return
        known.append(subject.sound(facts[key]))
        is_poor = _is_poor(needed, known, first)
        epsilons = first if is_poor else more
        if subject.key(len(known)) not in facts and not is_poor and not _should_repeat(needed, known, more):
            return


def _is_poor(needed: _Needed, known: Sequence[Fact], epsilons: Sequence[Fraction]) -> bool:
    """Whether a profile has so much more noise than this call's own would have that it is worth learning again.

    Not of sizes: a grid that changes would make all that was learned on it worthless.
    """
    if needed.kind not in PROFILED:
        return False
    reading = reading_of(known, 0, needed.subject.profiles[0].vector)
    return reading.scale > POORER * _scale_at(epsilons[0], needed.subject)


def _whole_parts(share: Fraction) -> Fraction:
    """Return a share in whole parts, rounded down: what is charged for it is then exactly that."""
    return max(Fraction(share * SHARE_PARTS // 1, SHARE_PARTS), Fraction(1, SHARE_PARTS))


def _should_repeat(needed: _Needed, known: Sequence[Fact], epsilons: Sequence[Fraction]) -> bool:
    """Whether nothing is believed yet, and another round would have clearly less noise than all before it."""
    if needed.kind == "centre":
        return False
    subject = needed.subject
    if needed.kind in OF_COLUMNS:
        top, scale = (
            span_in(known, subject, of_distances=needed.kind not in SIZES).top,
            min(float(fact.scales[0]) for fact in known),
        )
    else:
        reading = reading_of(known, 0, subject.profiles[0].vector)
        top, scale = reading.top, reading.scale
    return top is None and _scale_at(epsilons[0], subject) <= CLEARLY_LESS * scale


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


# The number of people, all in one bin, that planning assumes for an unknown fact.
PEOPLE_STANDING_IN = 10**6
BIN_STANDING_IN = 10
LARGEST_STANDING_IN = 64 + 3
GROUPS_STANDING_IN = 8
DISTANCE_STANDING_IN = Fraction(4)  # a quarter of the largest values that stand in


def standing_in(wanted: WantedFact, rows: int | None = None) -> Fact:
    """Return a made-up fact, to predict further facts and charges, and errors if each person has this many rows.

    Of a profile everyone is in one bin; of groups there are a few; a number that is drawn is the middle of its range.
    """
    plan = wanted.plan
    if plan.threshold is not None:
        return made_up_groups(wanted, groups=GROUPS_STANDING_IN, people=PEOPLE_STANDING_IN)
    parts: list[tuple[int, ...]] = []
    for place, _ in enumerate(plan.releases):
        largest = bool(plan.profiles) and plan.profiles[place].norm == "largest"
        full = LARGEST_STANDING_IN if largest else BIN_STANDING_IN
        if rows is not None and plan.profiles and not largest:
            full = _made_up_bin(plan, place, rows=rows)
        bins = range(len(plan.public_keys or ()))
        parts.append(tuple(PEOPLE_STANDING_IN if each == full else 0 for each in bins))
    for draw in plan.quantiles:
        middle = plan.measured[draw.column].height // 2
        parts += [(middle,)] * (3 * len(draw.targets))
    scales = tuple(release.scale for release in plan.releases)
    return Fact(wanted.key, wanted.words, tuple(parts), scales, plan.spend.epsilon)


def _made_up_bin(plan: Plan, place: int, *, rows: int) -> int:
    """Return the bin of one unit in a plan's profile, given its rows or its groups.

    Values of a column with a declared range are a quarter of it away from the centre.
    """
    vector = plan.profiles[place].vector
    if vector.kind != "centred" or vector.column is None:
        groups = len(plan.cells.public_keys or ()) if plan.cells is not None else 0
        return bin_of((min(rows, groups or rows) if vector.kind == "units" else rows) * 2.0**vector.shift)
    column = plan.measured[vector.column]
    steps = Fraction(column.height, 4) if column.between is not None else DISTANCE_STANDING_IN / column.step
    return bin_of(float(rows * steps) * 2.0**vector.shift)


def made_up_groups(wanted: WantedFact, *, groups: int, people: int) -> Fact:
    """Return a made-up fact in the place of a round that was not run, with this many groups and people each."""
    plan = wanted.plan
    if plan.threshold is None:
        raise ValueError("this fact is not about which groups there are")
    some = {kind: [_made_up(kind, place) for place in range(groups)] for kind in MADE_OF}
    keys = tuple(dict.fromkeys(zip(*(some[key.type] for key in plan.keys), strict=True)))
    parts = ((people << UNIT_SHIFT,) * len(keys), (plan.threshold.least,))
    scales = (plan.releases[0].scale,)
    return Fact(wanted.key, wanted.words, parts, scales, *wanted.cost[:1], keys=keys, delta=wanted.cost[1])


def _made_up(kind: Type, place: int) -> Scalar:
    if kind in ("date", "timestamp"):
        day = datetime(2000, 1, 1 + place % 28)  # noqa: DTZ001 - a key is without a time zone
        return day if kind == "timestamp" else day.date()
    made: Scalar = MADE_OF[kind](place)
    return made
