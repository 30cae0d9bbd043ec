"""Quantiles in a plan: how many levels of splitting, what each costs, and how far off in ranks to expect them.

A quantile's interval is two more quantiles, shifted down and up by the bound on the rank error; they are drawn in the
same call and their cost is in it (docs/proofs/quantiles.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt, log

from tacit.plan.layout import WantedQuantiles
from tacit.plan.plan import QuantileDraw, Spend
from tacit.privacy.event import Event, ExponentialChoice, PureChoice
from tacit.selection.quantile import TIE_BITS, Rate, levels_of

# More single events than this are recorded as one.
EVENTS_MOST = 64
EPSILON_BITS = 40


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
    """Return the draw of one column's quantiles; with `rho`, each level in each group costs its part of it."""
    levels = levels_of(3 * len(wanted.fractions))
    times = levels * unit.groups
    epsilon = spend.epsilon * share / times if rho is None else _root_down(8 * rho / times)
    rate = Rate(epsilon, unit.rows, unit.replace)
    targets = []
    for fraction in wanted.fractions:
        reach = Fraction(levels * rank_error(rate, fraction, heights[wanted.column], spend.confidence, levels))
        middle = reach if fraction == 0 else -reach if fraction == 1 else Fraction(0)
        targets += [(fraction, middle - reach), (fraction, middle), (fraction, middle + reach)]
    return QuantileDraw(
        wanted.column, tuple(targets), levels, epsilon, share, _events(epsilon, times, pure=rho is None)
    )


def rank_error(rate: Rate, fraction: Fraction, height: int, confidence: Fraction, levels: int) -> int:
    """Return a number of rows that one level's draw is off by at most, with all levels together at this confidence."""
    up, down, slope = rate.for_fraction(fraction)
    points = log(height + 1) + TIE_BITS * log(2)
    miss = log(2 * levels / float(1 - confidence))
    return ceil(((points + miss) / float(slope) + max(up, down)) / (up + down))


def quantile_gain(purely: tuple[QuantileDraw, ...], by_rho: tuple[QuantileDraw, ...]) -> float:
    """Return how much larger, in logarithms, rank errors get when charged in rho instead of epsilon."""
    return sum(log(one.epsilon / two.epsilon) for one, two in zip(purely, by_rho, strict=True))


def _events(epsilon: Fraction, times: int, *, pure: bool) -> tuple[Event, ...]:
    if pure:
        return (PureChoice(epsilon * times),)
    if times <= EVENTS_MOST:
        return (ExponentialChoice(epsilon),) * times
    return (ExponentialChoice(_root_up(epsilon * epsilon * times)),)  # the same rho in one: epsilon²·times/8


def _root_down(value: Fraction) -> Fraction:
    scaled = (value.numerator << 2 * EPSILON_BITS) // value.denominator
    return Fraction(max(isqrt(scaled), 1), 1 << EPSILON_BITS)


def _root_up(value: Fraction) -> Fraction:
    scaled = -(-(value.numerator << 2 * EPSILON_BITS) // value.denominator)
    return Fraction(isqrt(scaled - 1) + 1, 1 << EPSILON_BITS)
