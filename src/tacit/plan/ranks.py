"""Quantiles in a plan: how many levels of splitting, what each costs, and how far off in ranks to expect them.

The ends of a quantile's interval are two more quantiles, shifted down and up by the bound on the rank error; they are
drawn in the same call and their cost is in it (docs/proofs/quantiles.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt, log

from tacit.errors import QueryRefused
from tacit.plan.layout import WantedQuantiles
from tacit.plan.plan import QuantileDraw, Spend
from tacit.privacy.event import Event, ExponentialChoice, PureChoice
from tacit.selection.quantile import (
    OUTSIDE_POINTS,
    TIE_BITS,
    WRONG_SIDE,
    Rate,
    end_draws_of,
    levels_of,
    rank_errors,
)

# An end of an interval gets this part of a level's epsilon: the quantile itself matters more.
ENDS_PART = Fraction(1, 3)
# Ranks are whole and quantiles lie between two rows: so much more on either side.
ROWS_BETWEEN = 2
# So many choices are recorded one by one, each at its epsilon²/8; more are recorded as one, at its epsilon.
EVENTS_MOST = 1024
EPSILON_BITS = 40
EPSILON_LEAST = Fraction(1, 2**36)
EPSILON_USEFUL = Fraction(2**20)


@dataclass(frozen=True)
class UnitBounds:
    """What one unit may have: rows in a group, groups, and whether it is replaced or added."""

    rows: int
    groups: int
    replace: bool


def draw_of(
    wanted: WantedQuantiles,
    heights: tuple[int, ...],
    spend: Spend,
    share: Fraction,
    unit: UnitBounds,
    *,
    rho: Fraction | None,
) -> QuantileDraw:
    """Return the draw of one column's quantiles; with `rho`, all levels and ends in all groups cost it together."""
    fractions = wanted.fractions
    levels, ends = levels_of(len(fractions)), end_draws_of(fractions)
    many = (levels + ends) * unit.groups > EVENTS_MOST
    if rho is None or many:
        whole = spend.epsilon * share if rho is None else _root_down(2 * rho)  # epsilon-DP is at most epsilon²/2-zCDP
        epsilon = whole / (unit.groups * (levels + ends * ENDS_PART))
    else:
        epsilon = _root_down(8 * rho / (unit.groups * (levels + ends * ENDS_PART**2)))
    epsilon = _drawable(epsilon, unit.rows)
    ends_epsilon = epsilon * ENDS_PART
    rate, ends_rate = (Rate(each, unit.rows, unit.replace) for each in (epsilon, ends_epsilon))
    height = heights[wanted.column]
    # an interval misses if one of its draws does: those on the way down to the quantile, and its two ends
    miss = (1 - spend.confidence) / (levels + 2)
    errors = rank_errors(fractions, lambda fraction: rank_error(rate, fraction, height, miss))
    inside = end_error(ends_rate, height, miss)
    edge_error = rank_error(rate, Fraction(1), height, miss) + ROWS_BETWEEN
    targets = []
    for fraction, error in zip(fractions, errors, strict=True):
        shift = edge_error if fraction == 0 else -edge_error if fraction == 1 else 0
        targets.append((fraction, shift, error + inside + ROWS_BETWEEN))
    if rho is None or many:
        events: tuple[Event, ...] = (PureChoice((epsilon * levels + ends_epsilon * ends) * unit.groups),)
    else:
        events = (ExponentialChoice(epsilon),) * (levels * unit.groups)
        events += (ExponentialChoice(ends_epsilon),) * (ends * unit.groups)
    return QuantileDraw(wanted.column, tuple(targets), levels, ends, epsilon, ends_epsilon, share, events)


def rank_error(rate: Rate, fraction: Fraction, height: int, miss: Fraction) -> int:
    """Return a number of rows that one quantile's draw is off by at most, but for a chance of `miss`."""
    up, down, slope = rate.for_fraction(fraction)
    points = ((height + 1) << TIE_BITS) + OUTSIDE_POINTS
    return ceil((log(points) - log(miss)) / float(slope * (up + down)))


def end_error(rate: Rate, height: int, miss: Fraction) -> int:
    """Return a number of rows that an interval's end is too far inside by at most, but for a chance of `miss`."""
    return ceil((log(height + 1 + OUTSIDE_POINTS) - log(miss)) / float(rate.for_end() * WRONG_SIDE))


def _drawable(epsilon: Fraction, rows: int) -> Fraction:
    """Return the epsilon of a level, at most as large as is of use; refuse one whose ranks would leave 64 bits.

    Ranks are then off by less than 2^45 rows, and every score of a table that fits a disk stays below 2^62.
    """
    if epsilon / rows < EPSILON_LEAST:
        raise QueryRefused(
            "epsilon is too small for quantiles with these bounds: they would say nothing about any table"
            "\nhint: give a larger epsilon, fewer quantiles, or smaller bounds per unit"
        )
    return min(epsilon, EPSILON_USEFUL)


def quantile_gain(purely: tuple[QuantileDraw, ...], by_rho: tuple[QuantileDraw, ...]) -> float:
    """Return how much larger, in logarithms, rank errors get when charged in rho instead of epsilon."""
    return sum(log(one.epsilon / two.epsilon) for one, two in zip(purely, by_rho, strict=True))


def _root_down(value: Fraction) -> Fraction:
    scaled = (value.numerator << 2 * EPSILON_BITS) // value.denominator
    return Fraction(isqrt(scaled), 1 << EPSILON_BITS)
