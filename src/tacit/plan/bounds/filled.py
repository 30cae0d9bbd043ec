"""Filling in: a question that needs a range or a bound by hand gets the ones that were learned.

If every row is a unit, a sum needs only a range. Quantiles, variances and counts of different
values are made of bounded rows, as if a person had written their bounds. Filled-in bounds are as public as written
ones: the plan is made from them in the same way, and is as safe.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from tacit.errors import QueryRefused
from tacit.plan.bounds.caps import EPSILON_MOST
from tacit.plan.bounds.facts import Fact, Facts
from tacit.plan.bounds.filled_bounds import missing_bounds, with_bounds_filled
from tacit.plan.bounds.known import FEW_CELLS, Grouping, Subject, grouping_of, span_in
from tacit.plan.bounds.profiles import Beyond, beyond, stretched
from tacit.plan.bounds.scaling import Profile, Vector
from tacit.plan.bounds.vectors import ValueColumn
from tacit.plan.outputs import FAMILIES
from tacit.plan.plan import Measured, Spend
from tacit.query import Aggregate, Call, Expression, Query, Value, type_of
from tacit.tables import Declaration

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
    Distances from the centre decide, of which more is known. The size of values makes the range narrower unless that
    leaves out an octave with a believed distance.
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
            low = max(low, centre + down) if low <= centre + down / 2 else centre + down
            high = min(high, centre + up) if high >= centre + up / 2 else centre + up
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
