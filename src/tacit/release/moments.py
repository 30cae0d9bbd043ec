"""Variance, covariance and correlation from noisy Bernstein parts, with intervals that cover (docs/proofs/moments.md).

At the true mean k and variance v, the sum of (y - k)² - v over the rows is 0, and on the noisy parts it is one weighted
sum of their noises. So every v for which that is within its bound, for some k the mean may be, is kept.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import prod

from tacit.plan.bernstein import indices
from tacit.plan.plan import Measured, NoisyRelease, Plan, PlannedOutput
from tacit.release.error_bars import weighted_bound
from tacit.release.noisy import NoisyTable
from tacit.release.rounding import ROWS_SHARE, unrounded_mean, unrounded_variance

Number = int | float | None
NARROWINGS = 3


@dataclass(frozen=True)
class NoisyColumn:
    """One aggregate for every group, with its interval."""

    name: str
    values: tuple[Number, ...]
    low: tuple[Number, ...]
    high: tuple[Number, ...]


@dataclass(frozen=True)
class Span:
    """An estimate and the range the truth is in."""

    value: float
    low: float
    high: float


def _ordered(value: float, low: float, high: float) -> Span:
    return Span(value, min(low, value), max(high, value))


def moment_column(output: PlannedOutput, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> NoisyColumn:
    """Return one output that comes from Bernstein parts, for every group."""
    release = plan.releases[output.release]
    parts = noisy.parts[output.release]
    group_count = len(noisy.keys)
    rows = [_one(output, plan, release, [part[group] for part in parts], confidence) for group in range(group_count)]
    return NoisyColumn(
        output.name,
        tuple(value for value, _, _ in rows),
        tuple(low for _, low, _ in rows),
        tuple(high for _, _, high in rows),
    )


def _one(
    output: PlannedOutput, plan: Plan, release: NoisyRelease, parts: Sequence[int], confidence: Fraction
) -> tuple[Number, Number, Number]:
    missing = [value for part, value in zip(release.parts, parts, strict=True) if part.kind == "missing"]
    kept = [(part, value) for part, value in zip(release.parts, parts, strict=True) if part.kind == "moment"]
    columns = [plan.measured[place] for place in kept[0][0].columns]
    steps = [float(column.step) for column in columns]
    group = _Group(
        [value for _, value in kept],
        kept[0][0].degrees,
        tuple(column.height for column in columns),
        release,
        confidence,
    )
    if output.kind == "count":
        return group.count(missing if output.column is None else [])
    if output.kind == "sum":
        return group.total(columns[0])
    if group.is_small:
        return _unknown(output, [column.height * step for column, step in zip(columns, steps, strict=True)], columns)
    if output.kind == "mean":
        mean = group.mean(0)
        start = float(columns[0].low * columns[0].step)
        ends = unrounded_mean(columns[0], start + mean.low * steps[0], start + mean.high * steps[0])
        return start + mean.value * steps[0], *ends
    if output.kind in ("variance", "std"):
        span = group.spreading(events=2).variance(0)
        low, value, high = (max(end, 0.0) * steps[0] ** 2 for end in (span.low, span.value, span.high))
        low, high = unrounded_variance(columns[0], low, high)
        if output.kind == "std":
            low, value, high = math.sqrt(low), math.sqrt(value), math.sqrt(high)
        return value, low, high
    if output.kind == "covariance":
        both, scale = group.spreading(events=3).covariance(), steps[0] * steps[1]
        return both.value * scale, both.low * scale, both.high * scale
    strict = group.spreading(events=5)  # two means, two variances and a covariance
    return _correlation(strict.covariance(), strict.variance(0), strict.variance(1))


def _unknown(output: PlannedOutput, ranges: list[float], columns: list[Measured]) -> tuple[Number, Number, Number]:
    """Not enough people: nothing but what the ranges say."""
    if output.kind == "mean":
        start = float(columns[0].low * columns[0].step)
        return None, *unrounded_mean(columns[0], start, start + ranges[0])
    if output.kind == "variance":
        return None, 0.0, ranges[0] ** 2 / 4
    if output.kind == "std":
        return None, 0.0, ranges[0] / 2
    most = 1.0 if output.kind == "correlation" else ranges[0] * ranges[1] / 4
    return None, -most, most


def _correlation(both: Span, one: Span, two: Span) -> tuple[Number, Number, Number]:
    def ratio(top: float, first: float, second: float) -> float:
        bottom = math.sqrt(max(first, 0.0) * max(second, 0.0))
        return max(-1.0, min(1.0, top / bottom)) if bottom > 0 else math.copysign(1.0, top)

    low = min(ratio(both.low, one.low, two.low), ratio(both.low, one.high, two.high))
    high = max(ratio(both.high, one.low, two.low), ratio(both.high, one.high, two.high))
    value = ratio(both.value, one.value, two.value)
    return (None if one.value <= 0 or two.value <= 0 else value), min(low, value), max(high, value)


@dataclass(frozen=True)
class _Group:
    """The noisy parts of one group."""

    parts: Sequence[int]
    degrees: tuple[int, ...]
    heights: tuple[int, ...]
    release: NoisyRelease
    confidence: Fraction

    @property
    def _whole(self) -> float:
        return float(prod(height**degree for height, degree in zip(self.heights, self.degrees, strict=True)))

    @property
    def _rows(self) -> float:
        return sum(self.parts) / self._whole

    @property
    def is_small(self) -> bool:
        """Whether the noise could have made this many rows out of next to none."""
        return self._rows <= 2 * self._bound([1 / self._whole] * len(self.parts), self.confidence)

    def count(self, missing: Sequence[int]) -> tuple[int, int, int]:
        """Return the number of rows; with the part of rows that have no value, of all rows."""
        counted = [*self.parts, *missing]
        value = round(sum(counted) / self._whole)
        bound = math.ceil(self._bound([1 / self._whole] * len(counted), self.confidence) + 0.5)
        return value, value - bound, value + bound

    def total(self, measured: Measured) -> tuple[Number, Number, Number]:
        """Return the sum of the first column."""
        low, step = measured.low, measured.step
        weights = [weight + low / self._whole for weight in self._weights(lambda column, y: y if column == 0 else 1.0)]
        value, bound = self._dot(weights), self._bound(weights, self.confidence)
        if measured.off:  # each row may have been moved, and how many there are is known but for its own noise
            levels = [1 - (1 - self.confidence) * share for share in (1 - ROWS_SHARE, ROWS_SHARE)]
            rows = self._rows + self._bound([1 / self._whole] * len(self.parts), levels[1])
            bound = self._bound(weights, levels[0]) + max(rows, 0.0) * float(measured.off / step)
        middle, low_end, high_end = (end * float(step) for end in (value, value - bound, value + bound))
        if step.denominator == 1:
            return round(middle), math.floor(low_end), math.ceil(high_end)
        return middle, low_end, high_end

    def spreading(self, *, events: int) -> "_Group":
        """Return the group with bounds so strict that `events` of them hold together at the confidence."""
        return replace(self, confidence=1 - (1 - self.confidence) / events)

    def mean(self, column: int) -> Span:
        """Return a column's mean in steps above its low end."""
        at = self._mean_at(column)
        height = float(self.heights[column])
        low, high = 0.0, height
        corners = self._weights(lambda place, y: y if place == column else 1.0)
        for _ in range(NARROWINGS):
            off = self._off([[weight - end / self._whole for weight in corners] for end in (low, high)])
            low, high = max(0.0, at - off), min(height, at + off)
        return _ordered(min(max(at, 0.0), height), low, high)

    def variance(self, column: int) -> Span:
        """Return the mean of (y - k)², k the mean of a column."""
        at, mean, height = self._mean_at(column), self.mean(column), float(self.heights[column])
        value = self._dot(self._square_weights(column, at)) / self._rows
        more = max(mean.high - at, at - mean.low) ** 2
        middles = [mean.low, mean.high, *([height / 2] if mean.low < height / 2 < mean.high else [])]
        squares = [self._square_weights(column, middle) for middle in middles]
        low, high = 0.0, height * height / 4
        for _ in range(NARROWINGS):
            off = self._off([[w - end / self._whole for w in square] for square in squares for end in (low, high)])
            low, high = max(0.0, value - off), min(height * height / 4, value + more + off)
        return _ordered(min(max(value, 0.0), height * height / 4), low, high)

    def covariance(self) -> Span:
        """Return the mean of (y - k)·(z - l) around the means of the two columns."""
        at = [self._mean_at(column) for column in (0, 1)]
        means = [self.mean(column) for column in (0, 1)]
        value = self._dot(self._products_around(at)) / self._rows
        more = prod(max(mean.high - at[place], at[place] - mean.low) for place, mean in enumerate(means))
        boxes = product(*((mean.low, mean.high) for mean in means))
        corners = [self._products_around(box) for box in boxes]
        most = float(self.heights[0] * self.heights[1]) / 4
        low, high = -most, most
        for _ in range(NARROWINGS):
            off = self._off([[w - end / self._whole for w in corner] for corner in corners for end in (low, high)])
            low, high = max(-most, value - more - off), min(most, value + more + off)
        return _ordered(min(max(value, -most), most), low, high)

    def _mean_at(self, column: int) -> float:
        """Return a column's noisy mean, which may lie outside its range."""
        return self._dot(self._weights(lambda place, y: y if place == column else 1.0)) / self._rows

    def _off(self, corners: Sequence[Sequence[float]]) -> float:
        """Return how far off a ratio may be whose weights lie anywhere between these."""
        largest = [max(map(abs, each)) for each in zip(*corners, strict=True)]
        return self._bound(largest, self.confidence) / self._rows

    def _weights(self, corner: Callable[[int, float], float]) -> list[float]:
        """Return the weights of a product of functions that are linear in each column, given at its control points."""
        weights = []
        for index in indices(self.degrees):
            factor = 1.0
            for column, (i, degree, height) in enumerate(zip(index, self.degrees, self.heights, strict=True)):
                factor *= corner(column, height * i / degree)
            weights.append(factor / self._whole)
        return weights

    def _products_around(self, middles: Sequence[float]) -> list[float]:
        """Return the weights of (y - middles[0])·(z - middles[1])."""
        return self._weights(lambda column, y: y - middles[column])

    def _square_weights(self, column: int, middle: float) -> list[float]:
        """Return the weights of (y - middle)²: in degree 2 its control points are m², -m·(H - m) and (H - m)²."""
        height = float(self.heights[column])
        control = (middle * middle, -middle * (height - middle), (height - middle) ** 2)
        return [control[index[column]] / self._whole for index in indices(self.degrees)]

    def _dot(self, weights: Sequence[float]) -> float:
        return math.fsum(weight * part for weight, part in zip(weights, self.parts, strict=True))

    def _bound(self, weights: Sequence[float], confidence: Fraction) -> float:
        return weighted_bound(self.release.noise, self.release.scale, weights, confidence)
