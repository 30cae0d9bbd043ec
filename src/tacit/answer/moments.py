"""Variance, covariance and correlation from noisy Bernstein parts, with intervals that cover (docs/proofs/moments.md).

At the true mean k and variance v, the sum of (y - k)² - v over the rows is 0. On the noisy parts the same sum is one
weighted sum of their noises. So the interval keeps every v for which that sum is within its bound, for some possible
mean k. The mean itself moves the interval only by its square, so it gets a small share of the probability to miss.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from tacit.answer.error_bars import declared_range, sum_levels, unrounded_means, unrounded_variances
from tacit.answer.noise_sums import weighted_bound, weighted_bounds
from tacit.plan import (
    MEAN_SHARE,
    Correlation,
    Covariance,
    Mean,
    Measured,
    Moment,
    NoisyRelease,
    Plan,
    StandardDeviation,
    Sum,
    Variance,
    indices,
)
from tacit.privacy import Floats, wholes
from tacit.release import NoisyTable

Number = int | float | None
NARROWINGS = 3
# What has a span of its own kind; a sum is weighed from its parts.
Spanned = Mean | Variance | StandardDeviation | Covariance | Correlation


@dataclass(frozen=True)
class NoisyColumn:
    """One aggregate for every group, with its interval."""

    name: str
    values: tuple[Number, ...]
    low: tuple[Number, ...]
    high: tuple[Number, ...]


@dataclass(frozen=True)
class Span:
    """For every group, an estimate and the range the truth is in."""

    value: Floats
    low: Floats
    high: Floats

    def times(self, factor: float) -> "Span":
        """Return it in another unit."""
        return Span(self.value * factor, self.low * factor, self.high * factor)


def _ordered(value: Floats, low: Floats, high: Floats) -> Span:
    return Span(value, np.minimum(low, value), np.maximum(high, value))


def moment_column(output: Moment, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> NoisyColumn:
    """Return one output that comes from Bernstein parts, for every group."""
    release = plan.releases[output.release]
    both = zip(release.parts, noisy.parts[output.release], strict=True)
    kept = [(part, values) for part, values in both if part.kind == "moment"]
    columns = [plan.measured[column] for column in kept[0][0].columns]
    groups = _Groups(
        np.array([wholes(values).astype(np.float64) for _, values in kept]).reshape(len(kept), len(noisy.keys)),
        kept[0][0].degrees,
        tuple(column.height for column in columns),
        release,
        confidence,
    )
    if isinstance(output, Sum):
        return _whole_sums(output.name, groups.total(columns[0]), columns[0])
    span, ends = _asked(output, groups, columns), widest(output, columns)
    known = ~groups.are_small & ~np.isnan(span.value)
    return NoisyColumn(
        output.name,
        tuple(value if some else None for value, some in zip(span.value.tolist(), known.tolist(), strict=True)),
        tuple(np.where(groups.are_small, ends[0], span.low).tolist()),
        tuple(np.where(groups.are_small, ends[1], span.high).tolist()),
    )


def _asked(output: Spanned, groups: "_Groups", columns: Sequence[Measured]) -> Span:
    steps = [float(column.step) for column in columns]
    match output:
        case Mean():
            start, mean = float(columns[0].low * columns[0].step), groups.mean(0).times(steps[0])
            ends = unrounded_means(columns[0], start + mean.low, start + mean.high)
            return Span(start + mean.value, *ends)
        case Variance() | StandardDeviation():
            spread = groups.variance(0).times(steps[0] ** 2)
            span = Span(spread.value, *unrounded_variances(columns[0], spread.low, spread.high))
            is_root = isinstance(output, StandardDeviation)
            return Span(np.sqrt(span.value), np.sqrt(span.low), np.sqrt(span.high)) if is_root else span
        case Covariance():
            return groups.covariance().times(steps[0] * steps[1])
        case Correlation():
            return groups.correlation()
        case _:
            assert_never(output)


def widest(output: Spanned, columns: Sequence[Measured]) -> tuple[float, float]:
    """Return the interval of a group with too few people: all that the public ranges allow."""
    ranges = [declared_range(column) for column in columns]
    match output:
        case Mean():
            ends = (np.array([float(end * columns[0].step)]) for end in (columns[0].low, columns[0].high))
            low, high = unrounded_means(columns[0], *ends)
            return float(low[0]), float(high[0])
        case Variance():
            return 0.0, ranges[0] ** 2 / 4
        case StandardDeviation():
            return 0.0, ranges[0] / 2
        case Covariance():
            most = ranges[0] * ranges[1] / 4
            return -most, most
        case Correlation():
            return -1.0, 1.0
        case _:
            assert_never(output)


def _whole_sums(name: str, span: Span, column: Measured) -> NoisyColumn:
    """Sums are whole where their step is."""
    if column.step.denominator != 1:
        return NoisyColumn(name, *(tuple(each.tolist()) for each in (span.value, span.low, span.high)))
    rounded = np.rint(span.value), np.floor(span.low), np.ceil(span.high)
    return NoisyColumn(name, *(tuple(int(end) for end in each.tolist()) for each in rounded))


@dataclass(frozen=True)
class _Interval:
    """For every group, a range that some unknown lies in; arithmetic on them keeps every possible value."""

    low: Floats
    high: Floats

    def __mul__(self, other: "_Interval") -> "_Interval":
        ends = [one * two for one in (self.low, self.high) for two in (other.low, other.high)]
        return _Interval(np.minimum.reduce(ends), np.maximum.reduce(ends))

    def __add__(self, other: "_Interval") -> "_Interval":
        return _Interval(self.low + other.low, self.high + other.high)

    def __sub__(self, other: "_Interval") -> "_Interval":
        return _Interval(self.low - other.high, self.high - other.low)

    @property
    def size(self) -> Floats:
        """The largest size in it."""
        found: Floats = np.maximum(np.abs(self.low), np.abs(self.high))
        return found


@dataclass(frozen=True)
class _Groups:
    """The noisy parts of all groups: (parts, groups)."""

    parts: Floats
    degrees: tuple[int, ...]
    heights: tuple[int, ...]
    release: NoisyRelease
    confidence: Fraction
    share: Fraction = Fraction(1)  # of the probability to miss

    @property
    def _whole(self) -> float:
        return float(prod(height**degree for height, degree in zip(self.heights, self.degrees, strict=True)))

    @property
    def _rows(self) -> Floats:
        """The noisy number of rows; 1 where a group is too small, whose numbers are not shown."""
        rows = self.parts.sum(axis=0) / self._whole
        return np.where(self.are_small, 1.0, rows)

    @property
    def are_small(self) -> NDArray[np.bool_]:
        """Whether a group is too small: its noisy number of rows could be noise only."""
        bound = self._bound([1 / self._whole] * len(self.parts), self.confidence)
        return np.asarray(self.parts.sum(axis=0) / self._whole <= 2 * bound)

    def total(self, measured: Measured) -> Span:
        """Return the sum of the first column."""
        low, step = measured.low, measured.step
        weights = [weight + low / self._whole for weight in self._weights(lambda column, y: y if column == 0 else 1.0)]
        value = np.array(weights) @ self.parts
        bound: Floats | float = self._bound(weights, self.confidence)
        if measured.off:  # rounding may have moved each row; the number of rows is known up to its own noise
            levels = sum_levels(measured, self.confidence)
            rows = self.parts.sum(axis=0) / self._whole
            rows = rows + self._bound([1 / self._whole] * len(self.parts), levels[1])
            bound = self._bound(weights, levels[0]) + np.maximum(rows, 0.0) * float(measured.off / step)
        return Span(value, value - bound, value + bound).times(float(step))

    def given(self, share: Fraction) -> "_Groups":
        """Return the groups with this share of the probability to miss."""
        return replace(self, share=share)

    def mean(self, column: int) -> Span:
        """Return a column's mean in steps above its low end."""
        at, height = self._mean_at(column), float(self.heights[column])
        low, high = np.zeros_like(at), np.full_like(at, height)
        corners = np.array(self._weights(lambda place, y: y if place == column else 1.0))[:, None]
        for _ in range(NARROWINGS):
            off = self._off([corners - end / self._whole for end in (low, high)])
            low, high = np.maximum(0.0, at - off), np.minimum(height, at + off)
        return _ordered(np.clip(at, 0.0, height), low, high)

    def variance(self, column: int, of_mean: Span | None = None) -> Span:
        """Return the mean of (y - k)², k the mean of a column; with the mean's interval at hand, at its own share."""
        if of_mean is None:
            return self.given(1 - MEAN_SHARE).variance(column, self.given(MEAN_SHARE).mean(column))
        at, height = self._mean_at(column), float(self.heights[column])
        value = self._spread_at(column, at)
        more = np.maximum(of_mean.high - at, at - of_mean.low) ** 2
        middle = np.clip(height / 2, of_mean.low, of_mean.high)
        squares = [self._square_weights(column, each) for each in (of_mean.low, of_mean.high, middle)]
        low, high = np.zeros_like(at), np.full_like(at, height * height / 4)
        for _ in range(NARROWINGS):
            off = self._off([square - end / self._whole for square in squares for end in (low, high)])
            low, high = np.maximum(0.0, value - off), np.minimum(height * height / 4, value + more + off)
        return _ordered(np.clip(value, 0.0, height * height / 4), low, high)

    def covariance(self) -> Span:
        """Return the mean of (y - k)·(z - l) around the means of the two columns."""
        at = [self._mean_at(column) for column in (0, 1)]
        means = [self.given(MEAN_SHARE / 2).mean(column) for column in (0, 1)]
        main = self.given(1 - MEAN_SHARE)
        value = self._covariance_at(at)
        more = prod(np.maximum(mean.high - at[place], at[place] - mean.low) for place, mean in enumerate(means))
        corners = [self._products_around(box) for box in product(*((mean.low, mean.high) for mean in means))]
        most = float(self.heights[0] * self.heights[1]) / 4
        low, high = np.full_like(value, -most), np.full_like(value, most)
        for _ in range(NARROWINGS):
            off = main._off([corner - end / self._whole for corner in corners for end in (low, high)])
            low, high = np.maximum(-most, value - more - off), np.minimum(most, value + more + off)
        return _ordered(np.clip(value, -most, most), low, high)

    def correlation(self) -> Span:
        """Return the correlation: at the truth, the sum of (y-k)(z-l) - r/2·(t·(y-k)² + (z-l)²/t) is 0.

        k and l are the means and t is the ratio of the standard deviations.
        """
        at = [self._mean_at(column) for column in (0, 1)]
        means = [self.given(MEAN_SHARE / 2).mean(column) for column in (0, 1)]
        spreads = [self.given(MEAN_SHARE / 2).variance(column, means[column]) for column in (0, 1)]
        main = self.given(1 - 2 * MEAN_SHARE)
        both, noisy = self._covariance_at(at), [self._spread_at(column, at[column]) for column in (0, 1)]
        known = (spreads[0].low > 0) & (spreads[1].low > 0) & ~self.are_small
        safe = [Span(*(np.where(known, end, 1.0) for end in (s.value, s.low, s.high))) for s in spreads]
        ratio = _Interval(np.sqrt(safe[1].low / safe[0].high), np.sqrt(safe[1].high / safe[0].low))
        off = [np.maximum(mean.high - place, place - mean.low) for mean, place in zip(means, at, strict=True)]
        noisy = [np.where(known, each, 1.0) for each in noisy]
        best = np.clip(np.sqrt(noisy[1] / noisy[0]), ratio.low, ratio.high)
        least = (best * noisy[0] + noisy[1] / best) / 2
        more = [each + far**2 for each, far in zip(noisy, off, strict=True)]
        most = np.maximum.reduce([(end * more[0] + more[1] / end) / 2 for end in (ratio.low, ratio.high)])
        low, high = np.full_like(both, -1.0), np.full_like(both, 1.0)
        for _ in range(NARROWINGS):
            sizes = self._correlation_sizes(means, ratio, _Interval(low, high))
            far = main._bounds(sizes) / self._rows + off[0] * off[1]
            bottom, top = both - far, both + far
            low = np.maximum(-1.0, bottom / np.where(bottom < 0, least, most))
            high = np.minimum(1.0, top / np.where(top > 0, least, most))
            low, high = np.where(known, low, -1.0), np.where(known, high, 1.0)
        some = (spreads[0].value > 0) & (spreads[1].value > 0)
        bottom = np.sqrt(np.where(some, spreads[0].value * spreads[1].value, 1.0))
        span = _ordered(np.clip(both / bottom, -1.0, 1.0), low, high)
        return replace(span, value=np.where(some, span.value, np.nan))

    def _correlation_sizes(self, means: Sequence[Span], ratio: _Interval, r: _Interval) -> Floats:
        """Return the largest size of each weight over all means, ratios and correlations that are left."""
        boxes = [_Interval(mean.low, mean.high) for mean in means]
        inverse = _Interval(1 / ratio.high, 1 / ratio.low)
        half = _Interval(r.low / 2, r.high / 2)
        sizes = []
        for one, two in indices(self.degrees):
            ends = [self._around(place, i, box) for place, (i, box) in enumerate(zip((one, two), boxes, strict=True))]
            squares = [
                self._squares(place, i, box) for place, (i, box) in enumerate(zip((one, two), boxes, strict=True))
            ]
            sizes.append((ends[0] * ends[1] - half * (ratio * squares[0] + inverse * squares[1])).size / self._whole)
        return np.array(sizes)

    def _around(self, column: int, i: int, middle: _Interval) -> _Interval:
        """Return the control points of y - k."""
        point = self.heights[column] * i / self.degrees[column]
        return _Interval(point - middle.high, point - middle.low)

    def _squares(self, column: int, i: int, middle: _Interval) -> _Interval:
        """Return the control points of (y - k)²."""
        height = float(self.heights[column])
        kinds = [middle.low, middle.high, np.clip(height / 2, middle.low, middle.high)]
        points = [self._square_points(height, each)[i] for each in kinds]
        return _Interval(np.minimum.reduce(points), np.maximum.reduce(points))

    def _mean_at(self, column: int) -> Floats:
        """Return a column's noisy mean, which may lie outside its range."""
        return np.array(self._weights(lambda place, y: y if place == column else 1.0)) @ self.parts / self._rows

    def _spread_at(self, column: int, middle: Floats) -> Floats:
        """Return the noisy mean of (y - middle)²."""
        found: Floats = (self._square_weights(column, middle) * self.parts).sum(axis=0) / self._rows
        return found

    def _covariance_at(self, middles: Sequence[Floats]) -> Floats:
        """Return the noisy mean of (y - middles[0])·(z - middles[1])."""
        found: Floats = (self._products_around(middles) * self.parts).sum(axis=0) / self._rows
        return found

    def _off(self, corners: Sequence[Floats]) -> Floats:
        """Return how far off a ratio may be whose weights lie anywhere between these."""
        return self._bounds(np.maximum.reduce([np.abs(corner) for corner in corners])) / self._rows

    def _weights(self, corner: Callable[[int, float], float]) -> list[float]:
        """Return the weights of a product of functions that are linear in each column, given at its control points."""
        weights = []
        for index in indices(self.degrees):
            factor = 1.0
            for column, (i, degree, height) in enumerate(zip(index, self.degrees, self.heights, strict=True)):
                factor *= corner(column, height * i / degree)
            weights.append(factor / self._whole)
        return weights

    def _products_around(self, middles: Sequence[Floats]) -> Floats:
        """Return the weights of (y - middles[0])·(z - middles[1]): (parts, groups)."""
        points = [
            [height * i / degree - middle for i in range(degree + 1)]
            for height, degree, middle in zip(self.heights, self.degrees, middles, strict=True)
        ]
        return np.array([points[0][one] * points[1][two] / self._whole for one, two in indices(self.degrees)])

    def _square_weights(self, column: int, middle: Floats) -> Floats:
        """Return the weights of (y - middle)²: (parts, groups)."""
        points = self._square_points(float(self.heights[column]), middle)
        return np.array([points[index[column]] / self._whole for index in indices(self.degrees)])

    @staticmethod
    def _square_points(height: float, middle: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the control points of (y - m)² in degree 2: m², -m·(H - m) and (H - m)²."""
        return middle * middle, -middle * (height - middle), (height - middle) ** 2

    def _bound(self, weights: Sequence[float], confidence: Fraction) -> float:
        return weighted_bound(self.release.summed, self.release.scale, weights, confidence)

    def _bounds(self, sizes: Floats) -> Floats:
        """Return a bound for each group, of weights (parts, groups)."""
        level = 1 - (1 - self.confidence) * self.share
        return weighted_bounds(self.release.summed, self.release.scale, sizes.T, level)
