"""How far off a noisy number may be: from the law of the noise alone, so it costs nothing and depends on no row.

Intervals cover at least at the rate they state (docs/proofs/error-bars.md). Means and counts of units are here; how
far noises stray, one or several, is `noise_sums.py`'s.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.plan.integers import Wholes, combined
from tacit.plan.plan import NoiseKind
from tacit.privacy.law import GaussianLaw, LaplaceLaw
from tacit.privacy.rounding import nearest_float
from tacit.release.noise_sums import single_bound, unit_sum_bound

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Means are bounded by a table over where in its range the mean lies, each cell rounded up to its wider end.
MEAN_CELLS = 256


@dataclass(frozen=True)
class MeanBounds:
    """Bounds for a mean's noise, by where in its range it lies; wider ones for groups that are only just shown."""

    usual: tuple[float, ...]
    wider: tuple[float, ...]

    @property
    def least_total(self) -> float:
        """Noisy parts that add up to no more than this say too little."""
        return 2 * self.usual[0]

    @property
    def ample_total(self) -> float:
        """From here on, being shown at all says little about the noise."""
        return 4 * self.usual[0]


@lru_cache(maxsize=256)
def mean_bounds(noise: NoiseKind, scale: Fraction, confidence: Fraction) -> MeanBounds:
    """Return bounds at this confidence, and at a fifth of its chance to miss."""
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
    places = (cell / (2 * MEAN_CELLS) for cell in range(1, MEAN_CELLS + 1))
    return tuple(unit_sum_bound(noise, (1 - place, place), miss) for place in places)


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

    def too_far_down(down: int) -> bool:  # so high a count would be too rare among the shown
        return tail(down) < float(miss) * tail(down - gap)

    def too_far_up(up: int) -> bool:  # so low a count would be too rare among the shown
        shown = tail(-gap - up)
        return shown - tail(1 - up) < float(miss) * shown

    # the first that is too far is the first left out
    down = _first(too_far_down, 1, reach + gap)
    up = _first(too_far_up, 1, reach + 1)
    return (None if down == reach + gap else down - 1), up - 1


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first whole number in low … high at which a condition that stays true holds, or `high`."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
