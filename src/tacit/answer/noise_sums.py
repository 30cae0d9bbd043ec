"""Bounds on weighted sums of independent noises, from their distribution only.

The bounds do not depend on rows, so they are free. Integer weights give a sum on the integers, and one Fourier
transform finds
its distribution. Other weights use continuous noises, plus one step for each (docs/proofs/error-bars.md). Every error
of the arithmetic is bounded and added to the probability to miss: floating point can only widen an interval.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from tacit.numbers import Floats
from tacit.plan import NoiseKind, NoisyRelease
from tacit.privacy import GaussianLaw, LaplaceLaw, Law

# A probability treated as 0, and a generous bound on the rounding error of a transform (which is below 1e-11).
NEVER = 1e-15
ROUNDING = 1e-9
# A transform has at most this many points; wider noise is treated as continuous.
POINTS_MOST = 1 << 17
# Below this probability to miss, Chernoff's bound is used, which is close there.
MISS_LEAST = 1e-4
# Equal scales are spread by this much, upwards, so that the tail of a sum of Laplace noises is a plain sum.
SPREAD = 1.004
SAFETY = 1 + 1e-9
# More noises than this lose too many digits to cancellation in a sum of partial fractions.
FEW = 3
# Slopes at which Chernoff's bound is tried, as shares of the largest possible.
SLOPES = np.array([0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9])
# The shares of the probability to miss that may be lost to the cut of a series, and to its repetition.
CUT_SHARE = 1e-3
REPEAT_SHARE = 1e-4
# The search may end anywhere: the bound a thousandth wider than its end is checked, and used only if it holds.
MARGIN = 1.001
BLOCK = 1 << 10


def single_bound(noise: NoiseKind, scale: Fraction, confidence: Fraction) -> int:
    """Return the least whole a with Pr[|Z| <= a] at least the confidence, exactly."""
    return law_bound(LaplaceLaw(scale) if noise == "laplace" else GaussianLaw(scale), confidence)


@lru_cache(maxsize=4096)
def law_bound(law: Law, confidence: Fraction) -> int:
    """Return the same for any distribution."""
    return law.smallest_bound(1 - confidence)


@lru_cache(maxsize=4096)
def whole_sum_bound(noise: NoiseKind, scale: Fraction, weights: tuple[int, ...], confidence: Fraction) -> int:
    """Return an a with Pr[|w1·Z1 + w2·Z2 + …| <= a] at least the confidence: the least, rounded upwards."""
    sizes = tuple(sorted((abs(weight) for weight in weights if weight), reverse=True))
    if not sizes:
        return 0
    step = math.gcd(*sizes)
    sizes = tuple(size // step for size in sizes)
    if len(sizes) == 1:
        return step * single_bound(noise, scale, confidence)
    found = _lattice_bound(noise, scale, sizes, float(1 - confidence))
    if found is None:
        return step * math.ceil(weighted_bound(noise, scale, sizes, confidence))
    return step * found


def nearest_bound(
    noise: NoiseKind, scale: Fraction, weights: tuple[int, ...], height: int, confidence: Fraction
) -> int:
    """Return how far off the nearest whole number to (n·height + w1·Z1 + w2·Z2 + …)/height is from n at most."""
    strays = whole_sum_bound(noise, scale, weights, confidence)
    # within a·height + (height - 1)/2, the nearest whole number is within a
    return max(0, -(-(strays - (height - 1) // 2) // height))


def weighted_bound(noise: NoiseKind, scale: Fraction, weights: Sequence[float], confidence: Fraction) -> float:
    """Return an a with Pr[|w1·Z1 + w2·Z2 + …| <= a] at least the confidence, for independent equal noises Z."""
    sizes = tuple(sorted((abs(weight) for weight in weights if weight != 0), reverse=True))
    if not sizes:
        return 0.0
    if len(sizes) == 1:
        return sizes[0] * single_bound(noise, scale, confidence)
    # at the same probability, a discrete noise goes at most one step further than the continuous one
    return unit_sum_bound(noise, sizes, float(1 - confidence)) * float(scale) + sum(sizes)


def weighted_bounds(noise: NoiseKind, scale: Fraction, weights: Floats, confidence: Fraction) -> Floats:
    """Return such a bound for each row of weights, all at once."""
    sizes = np.abs(weights)
    most = sizes.max(axis=1, initial=0.0)
    largest = np.where(most > 0, most, 1.0)
    miss = float(1 - confidence)
    if noise == "gaussian":
        units = normal_bound(miss) * np.sqrt(((sizes / largest[:, None]) ** 2).sum(axis=1)) * SAFETY
    else:
        units = _laplace_bounds(sizes / largest[:, None], miss)
    found: Floats = units * most * float(scale) + sizes.sum(axis=1)
    return found


def noise_bounds(noises: Sequence[tuple[NoisyRelease, Fraction]], weights: Floats, confidence: Fraction) -> Floats:
    """Return a bound on each weighted sum of one noise of each release, given with how many of its units a step is.

    Noises of different kinds, as staircases are in a single group, are each bounded at a part of the probability to
    miss.
    """
    fine = np.array([1 / float(per_step) for _, per_step in noises])
    if len({release.noise for release, _ in noises}) > 1 or noises[0][0].noise == "staircase":
        each = 1 - (1 - confidence) / len(noises)
        reach = np.array([law_bound(release.law, each) for release, _ in noises])
        return np.asarray(weights @ (reach * fine))
    # as weights of one noise of scale 1; what whole units add to continuous noise is added apart
    sizes = weights * (np.array([float(release.scale) for release, _ in noises]) * fine)[None, :]
    units = weighted_bounds(noises[0][0].summed, Fraction(1), sizes, confidence) - sizes.sum(axis=1)
    return np.asarray(units + weights @ fine)


@lru_cache(maxsize=65536)
def unit_sum_bound(noise: NoiseKind, sizes: tuple[float, ...], miss: float) -> float:
    """Return the bound for continuous noises of scale 1; it grows in proportion to the scale."""
    if noise == "gaussian":
        return normal_bound(miss) * math.sqrt(sum(size * size for size in sizes)) * SAFETY
    if len(sizes) > FEW:
        return sizes[0] * float(_laplace_bounds(np.array([sizes]) / sizes[0], miss)[0])
    scales = _spread_apart(list(sizes))
    low, high = 0.0, scales[0] * (math.log(1 / miss) + len(sizes) * 8)
    factors = [_partial_fraction(scales, place) for place in range(len(scales))]
    for _ in range(36):
        middle = (low + high) / 2
        low, high = (middle, high) if _laplace_sum_tail(scales, factors, middle) > miss else (low, middle)
    return high * SAFETY


def _lattice_bound(noise: NoiseKind, scale: Fraction, sizes: tuple[int, ...], miss: float) -> int | None:
    """Return the bound of the exact distribution of the sum modulo a number it never reaches; None if it is large."""
    width = float(scale)
    reach = _noise_reach(noise, sizes) * width + sum(sizes)
    points = 1 << max(4, math.ceil(2 * reach + 2).bit_length()) if reach < POINTS_MOST else 2 * POINTS_MOST
    if points > POINTS_MOST or miss <= 2 * ROUNDING:
        return None
    angles = 2 * np.pi / points * np.arange(points // 2 + 1)
    transform = np.ones_like(angles)
    for size in sizes:
        transform *= _characteristic(noise, width, np.remainder(size * angles + np.pi, 2 * np.pi) - np.pi)
    masses = np.fft.irfft(transform, points)
    inside = masses[0] + 2 * np.concatenate([[0.0], np.cumsum(masses[1 : points // 2])])
    covered = np.flatnonzero(1 - inside + ROUNDING <= miss)
    return int(covered[0]) if len(covered) else None


def _characteristic(noise: NoiseKind, scale: float, angles: Floats) -> Floats:
    """Return E[cos(angle·Z)] of one discrete noise, for angles within ±π."""
    if noise == "laplace":
        return np.asarray(1 / (1 + (np.sin(angles / 2) / math.sinh(min(1 / (2 * scale), 300.0))) ** 2))
    if scale < 1:
        steps = np.arange(1, 13)
        masses = np.exp(-(steps**2) / (2 * scale * scale))
        return np.asarray((1 + 2 * np.cos(np.outer(angles, steps)) @ masses) / (1 + 2 * masses.sum()))
    turns = 2 * np.pi * np.arange(-2, 3)
    waves = np.exp(-((angles[:, None] + turns[None, :]) ** 2) * scale * scale / 2).sum(axis=1)
    return np.asarray(waves / np.exp(-(turns**2) * scale * scale / 2).sum())


def _noise_reach(noise: NoiseKind, sizes: tuple[int, ...]) -> float:
    """Return what continuous noises of scale 1 never exceed."""
    if noise == "gaussian":
        return 9 * math.sqrt(sum(size * size for size in sizes))
    return float(_chernoff(np.array([sizes], dtype=np.float64) / sizes[0], NEVER)[0]) * sizes[0]


def _laplace_bounds(sizes: Floats, miss: float) -> Floats:
    """Return bounds for sums of continuous Laplace noises of these scales, the largest of each row being 1."""
    bounds = _chernoff(sizes, miss)
    if miss < MISS_LEAST:
        return bounds
    for begin in range(0, len(sizes), BLOCK):
        rows = slice(begin, begin + BLOCK)
        bounds[rows] = _searched(sizes[rows], miss, bounds[rows])
    return bounds * SAFETY


def _chernoff(sizes: Floats, miss: float) -> Floats:
    """Return the least of (ln(2/miss) - Σ ln(1 - (s·size)²))/s over some slopes s; any of them is a bound."""
    moments = sum(-np.log1p(-((size[:, None] * SLOPES[None, :]) ** 2)) for size in sizes.T)
    found: Floats = ((math.log(2 / miss) + moments) / SLOPES).min(axis=1) if len(sizes) else np.zeros(0)
    return found


def _searched(sizes: Floats, miss: float, most: Floats) -> Floats:
    """Return the point at which the tail of each sum falls to the probability to miss, rounded up; `most` if that is
    in doubt.

    The tail beyond x is 1 - E[square wave of (x - sum)], except for the probability that the sum is more than half a
    wave away. The square wave is a Fourier series, and the cut of the characteristic function bounds its remainder.
    """
    if not len(sizes):
        return most
    half_wave = most + _chernoff(sizes, miss * REPEAT_SHARE)
    step = np.pi / half_wave
    count = math.ceil(float((_tail_cut(sizes, math.pi * miss * CUT_SHARE) / (2 * step)).max())) + 1
    odd = 2 * np.arange(count) + 1.0
    waves = step[:, None] * odd[None, :]  # (j + 1/2)·2·step
    heights = np.full_like(waves, 4 / np.pi) / odd
    for size in sizes.T:
        heights /= 1 + (size[:, None] * waves) ** 2
    slopes = heights * waves
    lost = miss * (CUT_SHARE * 1.01 + 2 * REPEAT_SHARE) + 1e-12
    x = np.full(len(sizes), math.log(1 / miss))
    for _ in range(5):
        turned = waves * x[:, None]
        tail = np.maximum(1 - (heights * np.sin(turned)).sum(axis=1) + lost, miss / 10)
        density = np.maximum((slopes * np.cos(turned)).sum(axis=1), miss / 100)
        x = np.clip(x + tail * np.log(tail / miss) / density, math.log(1 / miss), most)
    x = x * MARGIN
    tail = 1 - (heights * np.sin(waves * x[:, None])).sum(axis=1) + lost
    found: Floats = np.where(tail <= miss, np.minimum(x, most), most)
    return found


def _tail_cut(sizes: Floats, level: float) -> Floats:
    """Return from where on each characteristic function is at most `level`."""
    low, high = np.zeros(len(sizes)), np.full(len(sizes), 1 / math.sqrt(level))
    for _ in range(20):
        middle = (low + high) / 2
        above = np.log1p((sizes * middle[:, None]) ** 2).sum(axis=1) < -math.log(level)
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    found: Floats = np.maximum(high, 10.0)
    return found


def _spread_apart(scales: list[float]) -> list[float]:
    """Return scales at least that large, largest first, without two that are close together."""
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


def normal_bound(miss: float) -> float:
    """Return how many standard deviations a normal number stays within, except with this probability."""
    low, high = 0.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(middle / math.sqrt(2)) > miss else (low, middle)
    return high
