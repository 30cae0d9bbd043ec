"""Error bars of means, shown counts and rounded values, from the distribution of the noise only.

They depend on no row, so they cost nothing. Intervals cover at least at the rate they state
(docs/proofs/error-bars.md). The last part widens an interval by the error of rounding values to the public grid. Bounds
on the noise itself, for one number or a sum of several, are in `noise_sums.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from tacit.answer.noise_sums import single_bound, unit_sum_bound
from tacit.numbers import FLOAT_EXACT, Flags, Floats, Wholes, combined, largest, nearest_float
from tacit.plan import ROWS_SHARE, Measured, NoiseKind
from tacit.privacy import GaussianLaw, LaplaceLaw

Ends = tuple[int | float, ...]

# Means are bounded by a table over where in its range the mean lies, each cell rounded up to its wider end.
MEAN_CELLS = 256


@dataclass(frozen=True)
class MeanBounds:
    """Bounds for a mean's noise, by where in its range it lies; wider ones for groups that are only just shown."""

    usual: tuple[float, ...]
    wider: tuple[float, ...]

    @property
    def least_total(self) -> float:
        """A group whose noisy parts add up to no more than this has too few people."""
        return 2 * self.usual[0]

    @property
    def ample_total(self) -> float:
        """From this total on, being shown tells little about the noise."""
        return 4 * self.usual[0]


@lru_cache(maxsize=256)
def mean_bounds(noise: NoiseKind, scale: Fraction, confidence: Fraction) -> MeanBounds:
    """Return bounds at this confidence, and at a fifth of its probability to miss."""
    strict = 1 - (1 - confidence) / 5
    return MeanBounds(_mean_bounds(noise, scale, confidence), _mean_bounds(noise, scale, strict))


def _mean_bounds(noise: NoiseKind, scale: Fraction, confidence: Fraction) -> tuple[float, ...]:
    """Return bounds of |(1-p)·Z1 - p·Z2| for p in each of the cells of [0, 1/2]; it is symmetric about 1/2.

    As `weighted_bound` gives them, the two weights adding up to 1.
    """
    units, times = _unit_mean_bounds(noise, float(1 - confidence)), float(scale)
    return (float(single_bound(noise, scale, confidence)), *[unit * times + 1.0 for unit in units])


@lru_cache(maxsize=256)
def _unit_mean_bounds(noise: NoiseKind, miss: float) -> tuple[float, ...]:
    means = (cell / (2 * MEAN_CELLS) for cell in range(1, MEAN_CELLS + 1))
    return tuple(unit_sum_bound(noise, (1 - p, p), miss) for p in means)


def mean_intervals(bounds: MeanBounds, below: Wholes, above: Wholes) -> tuple[Floats, Floats, Flags]:
    """Return, group by group, the range of p = above/(below + above) that the noisy parts allow, and whether they do.

    Every p with |(1-p)·above - p·below| within its bound is kept. The bound is largest at the ends of [0, 1], so
    starting from its largest value and narrowing keeps every such p. Where the parts allow any p, that is 0 to 1.
    """
    tops = above.astype(np.float64)
    totals = combined((1, below), (1, above)).astype(np.float64)
    known = totals > bounds.least_total
    totals[~known] = 1.0
    table = np.array([bounds.wider, bounds.usual])
    chosen = (totals >= bounds.ample_total).astype(np.intp)
    bound = table[chosen, 0]
    for narrowing in range(4):
        low = np.clip((tops - bound) / totals, 0.0, 1.0)
        high = np.clip((tops + bound) / totals, 0.0, 1.0)
        if narrowing < 3:
            bound = np.maximum(table[chosen, _cell(low)], table[chosen, _cell(high)])
    low[~known], high[~known] = 0.0, 1.0
    return low, high, known


def _cell(p: Floats) -> NDArray[np.intp]:
    return (np.minimum(p, 1 - p) * 2 * MEAN_CELLS).astype(np.intp)


@lru_cache(maxsize=65536)
def shown_count_reach(
    noise: NoiseKind, scale: Fraction, confidence: Fraction, above_threshold: int
) -> tuple[int | None, int]:
    """Return how far below and above a shown count of units the truth may lie, given that it is shown.

    It covers at the stated rate among groups that are shown: one barely above the threshold may be a small group with
    lucky noise. None: any lower count is possible. Beyond a few bounds above the threshold it no longer matters.
    """
    law = LaplaceLaw(scale) if noise == "laplace" else GaussianLaw(scale)
    miss = (1 - confidence) / 2
    reach = 4 * single_bound(noise, scale, confidence) + 4
    gap = min(above_threshold, reach)

    def tail(distance: int) -> float:
        return nearest_float(lambda: law.upper_tail(distance))

    def too_far_down(down: int) -> bool:  # among shown groups, a count this high would be too rare
        return tail(down) < float(miss) * tail(down - gap)

    def too_far_up(up: int) -> bool:  # among shown groups, a count this low would be too rare
        shown = tail(-gap - up)
        return shown - tail(1 - up) < float(miss) * shown

    # the interval ends just before the first distance that is too far
    down = _first(too_far_down, 1, reach + gap)
    up = _first(too_far_up, 1, reach + 1)
    return (None if down == reach + gap else down - 1), up - 1


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first whole number in low … high at which a condition that stays true holds, or `high`."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


# ---- The public grid, and the error of rounding to it.


def on_grid(steps: Sequence[int] | Wholes, step: Fraction) -> tuple[int | float, ...]:
    """Return numbers on the public grid: whole where the step is, whatever the numbers."""
    top, bottom = step.numerator, step.denominator
    exact = combined((top, steps))
    if bottom == 1:
        return tuple(exact.tolist())
    # whole numbers divide with one rounding, as a Fraction does, and much sooner
    if max(largest(exact), bottom) <= FLOAT_EXACT:
        return tuple((exact.astype(np.float64) / float(bottom)).tolist())
    return tuple([each / bottom for each in exact.tolist()])


def sum_levels(column: Measured, confidence: Fraction) -> tuple[Fraction, Fraction]:
    """Return the confidence of a sum's own noise, and that of the number of rows its rounding depends on."""
    if not column.off:
        return confidence, Fraction(0)
    miss = 1 - confidence
    return 1 - miss * (1 - ROWS_SHARE), 1 - miss * ROWS_SHARE


def declared_range(column: Measured) -> float:
    """Return how far apart two rows may be, before or after they were rounded."""
    grid = float(column.height * column.step)
    return grid if column.between is None else max(grid, float(column.between[1] - column.between[0]))


def unrounded_means(column: Measured, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the intervals of means of rows before they were rounded, inside the column's declared range."""
    if not column.off:
        return low, high
    off = float(column.off)
    least, most = (-np.inf, np.inf) if column.between is None else map(float, column.between)
    return np.maximum(low - off, np.minimum(least, low)), np.minimum(high + off, np.maximum(most, high))


def unrounded_variances(column: Measured, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the intervals of variances before rounding: a standard deviation is a norm, moved by at most that much."""
    low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
    if not column.off:
        return low, high
    off = float(column.off)
    return np.maximum(np.sqrt(low) - off, 0.0) ** 2, (np.sqrt(high) + off) ** 2


def unrounded_quantiles(column: Measured, low: Ends, high: Ends) -> tuple[Ends, Ends]:
    """Return the ends around quantiles of rows before they were rounded, inside the column's declared range.

    The grid's last step may lie before the range's end, and rows at that end count as that step.
    """
    if not column.off or column.between is None:
        return low, high
    off, least, most = (float(each) for each in (column.off, *column.between))
    if column.type == "int":
        off, least, most = ceil(column.off), ceil(column.between[0]), floor(column.between[1])
    lower = tuple(max(end - off, min(least, end)) for end in low)
    higher = tuple(min(end + off, max(most, end)) for end in high)
    return lower, higher
