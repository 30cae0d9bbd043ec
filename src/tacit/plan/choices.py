"""Private choices in a plan: the quantiles of a column, and the ranking of public keys.

Of quantiles, estimates get most of the loss; the rest pays for intervals, which cover the quantile at the stated rate
for every table (docs/proofs/quantiles.md). A ranking shows the keys with the most units, without their counts. A unit
changes every count by at most 1, all in the same direction, so it costs the same however many keys a unit is in
(docs/proofs/selection.md).
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, isqrt, log

from tacit.accounting import rho_within
from tacit.errors import QueryRefused
from tacit.plan.layout import WantedQuantiles
from tacit.plan.plan import UNIT_WEIGHT, Choice, QuantileDraw, Spend
from tacit.privacy import Event, ExponentialChoice, PureChoice
from tacit.query import Aggregate, QuantileOf, Query, Scalar
from tacit.selection import BEYOND, EXTREME_BITS, Rate, TopK, levels_of, rows_for
from tacit.tables import Declaration, RowUnit

# The share of the loss that estimates get, in epsilon and in rho: either way they err by a third more than without
# intervals.
ESTIMATES_PART = Fraction(3, 4)
ESTIMATES_PART_OF_RHO = Fraction(9, 16)
# The same if only the minimum or the maximum is asked: they aim far enough inside for a short interval.
EXTREMES_PART = Fraction(9, 10)
# The minimum and the maximum are drawn beyond the last row with about this probability at most, even if the range is
# nearly empty.
BEYOND_CHANCE = Fraction(1, 20)
# Up to this many choices are recorded one by one, each at its epsilon²/8; more are recorded as one, at its epsilon.
EVENTS_MOST = 1024
EPSILON_BITS = 40
EPSILON_STEP = Fraction(1, 1 << EPSILON_BITS)
EPSILON_LEAST = Fraction(1, 2**36)
EPSILON_USEFUL = Fraction(2**20)


@dataclass(frozen=True)
class UnitBounds:
    """The bounds on one unit: rows in each group, groups, and whether neighbours replace it or add it."""

    rows: int
    groups: int
    replace: bool


def with_quantiles_of(query: Query, declaration: Declaration) -> Query:
    """Return the question with its open quantiles decided: of rows if bounds for that are declared, else people."""
    alone = isinstance(declaration.unit, RowUnit)
    bounded = declaration.rows_per_unit is not None and (not query.keys or declaration.groups_per_unit is not None)
    usual: QuantileOf = "rows" if alone or bounded else "people"

    def decided(aggregate: Aggregate) -> Aggregate:
        if aggregate.kind != "quantile":
            return aggregate
        return replace(aggregate, of="rows" if alone else aggregate.of or usual)

    outputs = tuple(replace(output, aggregate=decided(output.aggregate)) for output in query.outputs)
    return replace(query, outputs=outputs)


def draw_of(
    wanted: WantedQuantiles,
    heights: tuple[int, ...],
    spend: Spend,
    share: Fraction,
    unit: UnitBounds,
    *,
    rho: Fraction | None,
) -> QuantileDraw:
    """Return the draw of one column's quantiles; with `rho`, levels and intervals in all groups cost it together."""
    if wanted.of == "people":  # a unit's weights in all groups add up to this, so groups cost no more together than one
        unit = UnitBounds(UNIT_WEIGHT, 1, replace=unit.replace)
    fractions = wanted.fractions
    levels, ends = levels_of(len(fractions)), len(fractions)
    many = (levels + ends) * unit.groups > EVENTS_MOST
    extreme = all(fraction in (0, 1) for fraction in fractions)
    part, part_of_rho = (EXTREMES_PART,) * 2 if extreme else (ESTIMATES_PART, ESTIMATES_PART_OF_RHO)
    if rho is None or many:
        whole = spend.epsilon * share if rho is None else _root_down(2 * rho)  # epsilon-DP is at most epsilon²/2-zCDP
        epsilon = whole * part / (unit.groups * levels)
        ends_epsilon = whole * (1 - part) / (unit.groups * ends)
    else:
        epsilon = _root_down(8 * rho * part_of_rho / (unit.groups * levels))
        ends_epsilon = _root_down(8 * rho * (1 - part_of_rho) / (unit.groups * ends))
    epsilon, ends_epsilon = (_drawable(each, unit.rows) for each in (epsilon, ends_epsilon))
    rate, ends_rate = (Rate(each, unit.rows, unit.replace) for each in (epsilon, ends_epsilon))
    targets = tuple(
        (fraction, inside_of(rate, fraction, heights[wanted.column]), reach_of(ends_rate, fraction, spend.confidence))
        for fraction in fractions
    )
    if rho is None or many:
        events: tuple[Event, ...] = (PureChoice((epsilon * levels + ends_epsilon * ends) * unit.groups),)
    else:
        events = (ExponentialChoice(epsilon),) * (levels * unit.groups)
        events += (ExponentialChoice(ends_epsilon),) * (ends * unit.groups)
    return QuantileDraw(wanted.column, targets, levels, ends, epsilon, ends_epsilon, share, events, wanted.of)


def inside_of(rate: Rate, fraction: Fraction, height: int) -> int:
    """Return how many rows inside to aim for the least and the greatest; 0 for every other quantile."""
    if fraction not in (0, 1):
        return 0
    return max(1, ceil(log(min(height + 1, 1 << EXTREME_BITS) / BEYOND_CHANCE) / float(rate.for_extreme() * BEYOND)))


def reach_of(rate: Rate, fraction: Fraction, confidence: Fraction) -> int:
    """Return how many rows should lie between a quantile and each end of its interval."""
    if fraction in (0, 1):
        return rows_for(1 - confidence, per_row=rate.for_extreme() * BEYOND)
    up, down, slope = rate.for_fraction(fraction)
    return rows_for(1 - confidence, per_row=slope * (up + down))


def _drawable(epsilon: Fraction, rows: int) -> Fraction:
    """Return the epsilon of a level, capped at its largest useful value; refuse one with ranks beyond 64 bits.

    Ranks are then off by less than 2^45 rows, and scores stay below 2^62.
    """
    if epsilon / rows < EPSILON_LEAST:
        raise QueryRefused(
            "epsilon is too small for quantiles with these bounds per unit: the result would be noise only"
            "\nhint: give a larger epsilon, fewer quantiles, or smaller bounds per unit"
        )
    return min(epsilon, EPSILON_USEFUL)


def quantile_gain(purely: tuple[QuantileDraw, ...], by_rho: tuple[QuantileDraw, ...]) -> float:
    """Return how much larger, in logarithms, rank errors get when charged in rho instead of epsilon."""
    return sum(log(one.epsilon / two.epsilon) for one, two in zip(purely, by_rho, strict=True))


def _root_down(value: Fraction) -> Fraction:
    """Return the square root, rounded down to whole steps of epsilon."""
    return isqrt((value.numerator << 2 * EPSILON_BITS) // value.denominator) * EPSILON_STEP


# ---- The ranking of public keys.

# Permute-and-flip errs up to twice less than the exponential mechanism at the same epsilon.
GAIN_LEAST = 2


def choice_of(
    query: Query, listed: tuple[tuple[Scalar, ...], ...] | None, spend: Spend, unit: UnitBounds
) -> Choice | None:
    """Return the plan of the best keys, or None without a ranking."""
    best = next((output.aggregate.best for output in query.outputs if output.aggregate.best is not None), None)
    if best is None:
        return None
    if len(query.outputs) > 1 or listed is None or not query.keys:
        raise QueryRefused(
            "a ranking must be the only aggregate of a question, and its keys must be public"
            "\nhint: top('city', 3, keys=['A', 'B', 'C', 'D'])"
        )
    if not 1 <= best < len(listed):
        raise QueryRefused(
            f"cannot choose the best {best} of {len(listed)} keys: every key would be chosen"
            "\nhint: give a smaller number, or ask for the counts"
        )
    pure = TopK(k=best, epsilon=spend.epsilon, monotone=not unit.replace)
    if spend.delta_rho == 0 or spend.noise == "laplace":
        return _choice(pure, monotone=not unit.replace)
    each = max(_root_down(8 * rho_within(spend.epsilon, spend.delta_noise) / best), EPSILON_STEP)
    by_rho = TopK(k=best, epsilon=each * best, monotone=not unit.replace, by="exponential")
    better = each > GAIN_LEAST * spend.epsilon / best
    return _choice(by_rho if better or spend.noise == "gaussian" else pure, monotone=not unit.replace)


def _choice(top: TopK, *, monotone: bool) -> Choice:
    return Choice(top.k, top.by, top.terms.epsilon, monotone, top.events)
