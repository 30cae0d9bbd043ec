"""How far off a noisy number may be: from the law of the noise alone, so it costs nothing and depends on no row.

Intervals cover at least at the rate they state. One noise has its exact bound; a weighted sum of several Laplace or
Gaussian noises has a bound rounded up (docs/proofs/error-bars.md). Floating point here widens a bar and decides
nothing.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.plan.integers import Wholes, combined
from tacit.plan.plan import NoiseKind
from tacit.privacy.law import GaussianLaw, LaplaceLaw
from tacit.privacy.rounding import nearest_float

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Equal scales are spread by this much, upwards, so that the tail of a sum of Laplace noises is a plain sum.
SPREAD = 1.004
SAFETY = 1 + 1e-9
# More noises than this lose too many digits to cancellation in a sum of partial fractions.
FEW = 3


@lru_cache(maxsize=4096)
def single_bound(noise: NoiseKind, scale: Fraction, confidence: Fraction) -> int:
    """Return the least whole a with Pr[|Z| <= a] at least the confidence, exactly."""
    law = LaplaceLaw(scale) if noise == "laplace" else GaussianLaw(scale)
    return law.smallest_bound(1 - confidence)


def weighted_bound(noise: NoiseKind, scale: Fraction, weights: Sequence[float], confidence: Fraction) -> float:
    """Return an a with Pr[|w1·Z1 + w2·Z2 + …| <= a] at least the confidence, for independent noises of one law."""
    sizes = tuple(sorted((abs(weight) for weight in weights if weight != 0), reverse=True))
    if not sizes:
        return 0.0
    if len(sizes) == 1:
        return sizes[0] * single_bound(noise, scale, confidence)
    # a discrete noise strays at most one step further than its continuous likeness at the same chance
    return _unit_sum_bound(noise, sizes, float(1 - confidence)) * float(scale) + sum(sizes)


@lru_cache(maxsize=65536)
def _unit_sum_bound(noise: NoiseKind, sizes: tuple[float, ...], miss: float) -> float:
    """Return the bound for continuous noises of scale 1; it grows in proportion to the scale, so it is found once."""
    if noise == "gaussian":
        return _normal_bound(miss) * math.sqrt(sum(size * size for size in sizes)) * SAFETY
    if len(sizes) > FEW:
        return _chernoff_bound(sizes, miss) * SAFETY
    scales = _spread_apart(list(sizes))
    low, high = 0.0, scales[0] * (math.log(1 / miss) + len(sizes) * 8)
    factors = [_partial_fraction(scales, place) for place in range(len(scales))]
    for _ in range(36):
        middle = (low + high) / 2
        low, high = (middle, high) if _laplace_sum_tail(scales, factors, middle) > miss else (low, middle)
    return high * SAFETY


def _chernoff_bound(sizes: tuple[float, ...], miss: float) -> float:
    """Return a bound for many Laplace noises: the least (ln(2/miss) - Σ ln(1 - (s·size)²))/s over s below 1/largest."""

    def at(share: float) -> float:
        slope = share / sizes[0]
        return (math.log(2 / miss) - math.fsum(math.log1p(-((slope * size) ** 2)) for size in sizes)) / slope

    low, high = 0.0, 1.0  # it falls and then rises, so thirds of the range are left out
    for _ in range(12):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, two) if at(one) < at(two) else (one, high)
    return at((low + high) / 2)  # any slope gives a bound; this one nearly the least


def _spread_apart(scales: list[float]) -> list[float]:
    """Return scales at least as large, largest first, with no two close together."""
    rising = sorted(scales)
    for place in range(1, len(rising)):
        rising[place] = max(rising[place], rising[place - 1] * SPREAD)
    return rising[::-1]


def _partial_fraction(scales: list[float], place: int) -> float:
    scale = scales[place]
    others = (other for other_place, other in enumerate(scales) if other_place != place)
    return math.prod(scale * scale / (scale * scale - other * other) for other in others)


def _laplace_sum_tail(scales: list[float], factors: list[float], distance: float) -> float:
    """Return Pr[|sum| > distance] for independent Laplace noises of distinct scales, by partial fractions."""
    return math.fsum(factor * math.exp(-distance / scale) for scale, factor in zip(scales, factors, strict=True))


def _normal_bound(miss: float) -> float:
    low, high = 0.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle / math.sqrt(2)) > miss else (low, middle)
    return high


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
    return tuple(_unit_sum_bound(noise, (1 - place, place), miss) for place in places)


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

    down = _first(too_far_down, 0, reach + gap)
    up = _first(too_far_up, 1, reach + 1)
    return (None if down == reach + gap else down), up


def _first(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the first whole number in low … high at which a condition that stays true holds, or `high`."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low
