"""Filling in: a question that needs a range or a bound by hand gets the ones that were learned.

If every row is a unit, a sum needs only a range. Quantiles, variances and counts of different values are made of
bounded rows, as if a person had written their bounds. Filled-in bounds are as public as written ones: the plan is made
from them in the same way, and is as safe.

A bound on rows is what a cap would be; any other one is such that most people keep all they have. Like every learned
number it never touches privacy: what is beyond it is dropped, whatever it is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil

import numpy as np

from tacit.errors import QueryRefused
from tacit.plan.bounds.caps import EPSILON_MOST, NoiseTerms, Told, UnitSizes, best_cap, by_rank
from tacit.plan.bounds.chosen import CLEARLY_LESS, WITHIN_BOUNDS
from tacit.plan.bounds.facts import FEW_CELLS, Fact, Facts, Grouping, Subject, grouping_of, reading_of, span_in
from tacit.plan.bounds.profiles import Beyond, beyond, stretched
from tacit.plan.bounds.scaling import Profile, Vector
from tacit.plan.bounds.vectors import ValueColumn, count_subject, lacks_groups, lacks_rows_bound, under_ceilings
from tacit.plan.plan import FAMILIES, KeyColumn, Measured, Spend
from tacit.query import Aggregate, Call, Expression, Query, Value, type_of
from tacit.tables import Declaration, RowUnit

# The least width of a learned range, as a part of its farther end from 0, so that floats can distinguish its steps.
NARROWEST = 1 << 20
# Families with values that need a range.
RANGED = ("column", "pair", "quantile")


@dataclass(frozen=True)
class Filled:
    """A complete question and declaration, and the facts that were filled in."""

    query: Query
    declaration: Declaration
    used: tuple[Fact, ...]
    # the expected part beyond each range that was filled in
    ranged: Mapping[Expression, Beyond] = field(default_factory=dict)


def ranged_columns(query: Query, grouping: Grouping) -> Iterator[ValueColumn]:
    """Yield each expression that needs a range and lacks one by hand, once."""
    seen = set()
    for output in query.outputs:
        for aggregate in _sides_of_range(output.aggregate):
            column = ValueColumn(aggregate, grouping, about_zero=False)
            if column.between is None and aggregate.expression not in seen:
                seen.add(aggregate.expression)
                yield column


def _sides_of_range(aggregate: Aggregate) -> tuple[Aggregate, ...]:
    """Return an aggregate of one column as it is, and one of two columns as an aggregate of each."""
    if FAMILIES[aggregate.kind] not in RANGED:
        return ()
    if aggregate.other is None:
        return (aggregate,)
    return aggregate, replace(aggregate, expression=aggregate.other, between=aggregate.other_between, step=None)


def lacks_anything(query: Query, declaration: Declaration, spend: Spend) -> bool:
    """Whether a range or a bound is missing."""
    grouping = grouping_of(query, declaration, spend)
    missing: tuple[Iterator[object], ...] = (missing_bounds(query, grouping), ranged_columns(query, grouping))
    return any(next(each, None) is not None for each in missing)


def unseen_columns(query: Query, declaration: Declaration, spend: Spend, facts: Facts) -> frozenset[Expression]:
    """Return the expressions without any believed value, if their range was to be learned."""
    columns = ranged_columns(query, grouping_of(query, declaration, spend))
    return frozenset(each.expression for each in columns if each.has_no_size(facts))


def filled(query: Query, declaration: Declaration, spend: Spend, facts: Facts) -> Filled | None:
    """Return the question with all that it lacks filled in; None if a fact is missing."""
    grouping = grouping_of(query, declaration, spend)
    ranges: dict[Expression | None, tuple[Fraction, Fraction]] = {}
    lost: dict[Expression, Beyond] = {}
    used: list[Fact] = []
    for column in ranged_columns(query, grouping):
        found = learned_range(column, facts, _Room.of(query, grouping, spend))
        if found is None:
            return None
        ranges[column.expression] = found
        used += column.known(facts)
        distances = distances_of(column, facts)
        if column.expression is not None:
            lost[column.expression] = _beyond(column, distances, found, facts)
        used += [] if distances is None else distances.rounds(facts)
    outputs = tuple(replace(each, aggregate=_ranged(each.aggregate, grouping, ranges)) for each in query.outputs)
    bounded = with_bounds_filled(replace(query, outputs=outputs), grouping, facts, spend.epsilon)
    if bounded is None:
        return None
    return Filled(
        bounded.query,
        bounded.declaration,
        tuple(dict.fromkeys((*used, *bounded.used))),
        lost,
    )


def _ranged(
    aggregate: Aggregate, grouping: Grouping, ranges: Mapping[Expression | None, tuple[Fraction, Fraction]]
) -> Aggregate:
    for place, side in enumerate(_sides_of_range(aggregate)):
        if ValueColumn(side, grouping, about_zero=False).between is None:
            found = ranges[side.expression]
            aggregate = replace(aggregate, between=found) if place == 0 else replace(aggregate, other_between=found)
    return aggregate


# ---- Ranges.


@dataclass(frozen=True)
class _Room:
    """The cost of a wider range for a question: the noise on a group's number for a range of 1, and the number of
    groups that lose."""

    width: float
    cells: float

    @staticmethod
    def of(query: Query, grouping: Grouping, spend: Spend) -> "_Room | None":
        """Return it for sums and means; None if no number is lost beyond a range."""
        added = [output for output in query.outputs if output.aggregate.kind in ("sum", "mean")]
        if not added:
            return None
        declaration = grouping.declaration
        rows = 1 if grouping.unit is None else (declaration.rows_per_unit or 1)
        groups = 1 if grouping.unit is None or not query.keys else (declaration.groups_per_unit or 1)
        width = rows * groups * len(query.outputs) / float(min(spend.epsilon, EPSILON_MOST))
        return _Room(width, float(len(grouping.public_keys or ()) or FEW_CELLS))


def distances_of(column: ValueColumn, facts: Facts) -> Subject | None:
    """Return the fact of how far values are from their centre, on either side; None if it cannot be planned yet."""
    middle = column.middle(facts)
    if middle is None or column.has_no_size(facts):
        return None
    centre = _writable(column, middle)
    constant = Value(-float(centre) + 0.0, "float") if column.type == "float" else Value(-int(centre), "int")
    moved = Call("+", (column.expression, constant))
    try:
        kind = type_of(moved, column.grouping.declaration)
    except QueryRefused:  # more digits than a decimal has
        return None
    measured = Measured(moved, kind, Fraction(1), 0, 1)
    return Subject(column.grouping.of_whole_table(), (measured,), (Profile("largest", Vector("centred", 0)),))


def _writable(column: ValueColumn, middle: Fraction) -> Fraction:
    """Return a centre as a question can write it: a float, or a whole number."""
    return Fraction(float(middle)) if column.type == "float" else Fraction(round(middle))


def learned_range(column: ValueColumn, facts: Facts, room: _Room | None) -> tuple[Fraction, Fraction] | None:
    """Return the range that holds all values that are believed; None if a fact is missing.

    With `room` it goes on to the expected end of the values, if they lose more than the noise that it adds.
    Distances from the centre decide, of which more is known. The size of values ends the range at 0 if no value is
    believed on one side of it, and if the range is then clearly smaller: few values there are not seen.
    """
    found, middle = column.range(facts), column.middle(facts)
    if found is None or middle is None:
        return None
    low, high = found
    distances = distances_of(column, facts)
    if distances is not None:
        rounds = distances.rounds(facts)
        if not rounds:
            return None
        span = span_in(rounds, distances, of_distances=True)
        if room is not None:
            profiles = [(each.parts[0], float(each.scales[0])) for each in rounds]
            span = stretched(profiles, span, width=room.width, cells=room.cells)
        if span.top is not None:
            centre, (down, up) = _writable(column, middle), span.range
            low_cut = max(centre + down, Fraction(0)) if low == 0 else centre + down
            high_cut = min(centre + up, Fraction(0)) if high == 0 else centre + up
            low, high = centre + down, centre + up
            if high_cut - low_cut <= CLEARLY_LESS * (high - low):
                low, high = low_cut, high_cut
            if not _has_one_row(column.grouping):  # a person far on one side hides their values on the other
                far = max(up, -down)
                low, high = min(low, max(found[0], centre - far)), max(high, min(found[1], centre + far))
    return _wide_enough(*column.possible(low, high), column.own_step() or Fraction(0))


def _beyond(column: ValueColumn, distances: Subject | None, between: tuple[Fraction, Fraction], facts: Facts) -> Beyond:
    """Return the largest part of people's values beyond a learned range; without a profile of distances it is
    unknown."""
    middle = column.middle(facts)
    rounds = [] if distances is None else distances.rounds(facts)
    if not rounds or middle is None:
        return Beyond()
    profiles = [(each.parts[0], float(each.scales[0])) for each in rounds]
    return beyond(profiles, float(middle - between[0]), float(between[1] - middle))


def _has_one_row(grouping: Grouping) -> bool:
    return grouping.unit is None or grouping.declaration.rows_per_unit == 1


def _wide_enough(low: Fraction, high: Fraction, step: Fraction) -> tuple[Fraction, Fraction]:
    """Return a range that a grid can have, however its ends were learned."""
    low, high = min(low, high), max(low, high)
    least = max(step, max(abs(low), abs(high)) / NARROWEST)
    return (low, high) if high - low >= least > 0 else (low - least - step, high + least + (step or 1))


# --- bounds ---


BOUND_MOST = 1 << 20


@dataclass(frozen=True)
class MissingBound:
    """A bound that is not given by hand: what it is a bound on, and the fact that it is read off."""

    what: str
    subject: Subject
    expression: Expression | None = None  # whose different values are bounded


def missing_bounds(query: Query, grouping: Grouping) -> Iterator[MissingBound]:
    """Yield each bound that a question needs and does not have, groups last: others are divided by them."""
    declaration = grouping.declaration
    if lacks_rows_bound(query, declaration):
        yield MissingBound("rows", count_subject(grouping, "rows"))
    for expression in dict.fromkeys(_unbounded_values(query, declaration)):
        value = KeyColumn("value", expression, type_of(expression, declaration))
        cells = replace(grouping, keys=(*grouping.keys, value), public_keys=None, cells=0)
        yield MissingBound("values", count_subject(cells, "units"), expression)
    if lacks_groups(query, declaration):
        yield MissingBound("groups", count_subject(grouping, "units"))


def _unbounded_values(query: Query, declaration: Declaration) -> Iterator[Expression]:
    for output in query.outputs:
        if _lacks_per_unit(output.aggregate, declaration) and output.aggregate.expression is not None:
            yield output.aggregate.expression


def _lacks_per_unit(aggregate: Aggregate, declaration: Declaration) -> bool:
    if isinstance(declaration.unit, RowUnit) or declaration.rows_per_unit is not None:
        return False
    return aggregate.kind == "count_distinct" and aggregate.per_unit is None


@dataclass(frozen=True)
class FilledBounds:
    """A question and a declaration with the bounds that they lacked, and the facts these were read off."""

    query: Query
    declaration: Declaration
    used: tuple[Fact, ...]


def with_bounds_filled(query: Query, grouping: Grouping, facts: Facts, epsilon: Fraction) -> FilledBounds | None:
    """Return the question with the bounds that it lacks; None where a fact is missing."""
    declaration = grouping.declaration
    sizes: dict[tuple[str, Expression | None], float] = {}
    used: list[Fact] = []
    for bound in missing_bounds(query, grouping):
        rounds = bound.subject.at_hand(facts, epsilon).rounds(facts)
        if not rounds:
            return None
        read, ceilings = under_ceilings(reading_of(rounds, 0, bound.subject.profiles[0].vector), bound.subject, facts)
        used += [*rounds, *ceilings]
        (people,) = by_rank([Told(read)])
        if bound.what == "rows":  # noise grows with them, as with a cap, so they are as many as a cap would be
            cells = float(len(grouping.public_keys or ()) or grouping.cells or 1)
            terms = NoiseTerms("laplace", float(min(epsilon, EPSILON_MOST)) / len(query.outputs))
            cap = best_cap(people, terms, cells=cells)
            sizes[bound.what, bound.expression] = cap.tail or cap.size
        else:
            sizes[bound.what, bound.expression] = _size_of_most(people)
    groups = declaration.groups_per_unit
    if ("groups", None) in sizes:
        groups = _whole_bound(sizes["groups", None])
    shared = groups if query.keys and groups is not None else 1
    rows = declaration.rows_per_unit
    if ("rows", None) in sizes:
        rows = _whole_bound(sizes["rows", None] / shared)

    def bounded(aggregate: Aggregate) -> Aggregate:
        if not _lacks_per_unit(aggregate, declaration):
            return aggregate
        return replace(aggregate, per_unit=_whole_bound(sizes["values", aggregate.expression] / shared))

    outputs = tuple(replace(output, aggregate=bounded(output.aggregate)) for output in query.outputs)
    filled = replace(declaration, rows_per_unit=rows, groups_per_unit=groups)
    return FilledBounds(replace(query, outputs=outputs), filled, tuple(dict.fromkeys(used)))


def _whole_bound(size: float) -> int:
    return min(max(1, ceil(size)), BOUND_MOST)


def _size_of_most(people: UnitSizes) -> float:
    """Return what most people have no more of."""
    ranks = np.cumsum(people.people)
    place = min(int(np.searchsorted(ranks, WITHIN_BOUNDS * ranks[-1])), len(ranks) - 1)
    return min(float(people.total[place]), people.tail_cap)
