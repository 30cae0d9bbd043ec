"""Variances, covariances and correlations of a plan that scales, from noisy rows, sums and products about centres.

At the true mean m and variance v of what was kept, the sum of (x - m)² - v over it is 0. On the noisy numbers the same
sum is one weighted sum of three noises. So an interval keeps every v for which that sum is within its bound, for some
mean that is possible (Fieller); a covariance has four noises. What people have beyond the
caps is not measured: as much of it as is foreseen is in the interval by convention (`missing.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TypeGuard, assert_never

import numpy as np

from tacit.answer.anchors import Anchor, fine_per_step
from tacit.answer.missing import most_missing, most_of_groups, shares_of
from tacit.answer.moments import NoisyColumn, Span, widest
from tacit.answer.noise_sums import law_bound
from tacit.answer.scaled_columns import noise_bounds
from tacit.plan import (
    MEAN_SHARE,
    PART_OF_VARIANCE,
    Correlation,
    Covariance,
    NoisyRelease,
    Plan,
    PlannedOutput,
    StandardDeviation,
    Variance,
    Vector,
)
from tacit.privacy import Flags, Floats, wholes
from tacit.release import NoisyTable

ScaledMoment = Variance | StandardDeviation | Covariance | Correlation
NARROWINGS = 4


def is_scaled_moment(output: PlannedOutput, plan: Plan) -> TypeGuard[ScaledMoment]:
    """Whether an output is made of a plan's vectors of squares or products."""
    return plan.scaling is not None and isinstance(output, ScaledMoment)


def scaled_moment_column(output: ScaledMoment, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> NoisyColumn:
    """Return one output for every group, with its interval."""
    moments = _Moments(plan, noisy, confidence)
    match output:
        case Variance():
            span = moments.spread(output.release)
        case StandardDeviation():
            spread = moments.spread(output.release)
            span = Span(np.sqrt(spread.value), np.sqrt(spread.low), np.sqrt(spread.high))
        case Covariance():
            span = moments.spread(output.release)
        case Correlation():
            span = moments.correlation(output.release)
        case _:
            assert_never(output)
    least, most = moments.limits(output)
    if least is not None:
        span = Span(*(np.maximum(each, least) for each in (span.value, span.low, span.high)))
    if most is not None:
        span = Span(*(np.minimum(each, most) for each in (span.value, span.low, span.high)))
    is_known = moments.are_known(moments.counting(output.release)) & ~np.isnan(span.value)

    def shown(ends: Floats, instead: float | None) -> tuple[float | None, ...]:
        return tuple(end if some else instead for end, some in zip(ends.tolist(), is_known.tolist(), strict=True))

    return NoisyColumn(output.name, shown(span.value, None), shown(span.low, least), shown(span.high, most))


@dataclass(frozen=True)
class _Moments:
    """Moments of every group, in the unit of its columns, from the noisy cells of a plan's vectors."""

    plan: Plan
    noisy: NoisyTable
    confidence: Fraction

    def limits(self, output: ScaledMoment) -> tuple[float | None, float | None]:
        """Return all that is possible: by the ranges that are declared, or by what a moment is."""
        factors = dict.fromkeys(self._factors(output.release))
        columns = [self.plan.measured[self._vector(place).column or 0] for place in factors]
        if isinstance(output, Correlation) or all(column.between is not None for column in columns):
            return widest(output, columns)
        return (None if isinstance(output, Covariance) else 0.0), None

    def spread(self, index: int) -> Span:
        """Return the mean product of two columns about their own means: the variance where they are one column."""
        one, two = self._factors(index)
        counting, is_square = self.counting(index), one == two
        places = (one,) if is_square else (one, two)
        means = [self._at(MEAN_SHARE / len(places)).mean(place) for place in places]
        rows = self._safe_rows(counting)
        value = self._amount(index) / rows - means[0].value * means[-1].value
        off, more = self._at(1 - MEAN_SHARE)._noise(index, means, value), _farthest(means[0]) * _farthest(means[-1])
        lacks, rounded = self._lacks(index, means, value), self._rounded(index, means)
        low = value - np.hypot(off if is_square else off + more, lacks[0]) - rounded
        high = value + np.hypot(off + more, lacks[1]) + rounded
        ends = [np.maximum(each, 0.0) if is_square else each for each in (value, low, high)]
        return Span(*ends)

    def correlation(self, index: int) -> Span:
        """Return the covariance over the root of both variances, with the least and the most that those allow."""
        both, each = self._at(Fraction(1, 2)).spread(index), self._at(Fraction(1, 4))
        first, second = (each.spread(self._squares(side)) for side in self._factors(index))
        some = (first.value > 0) & (second.value > 0)
        root = np.sqrt(np.where(some, first.value * second.value, 1.0))
        value = np.where(some, np.clip(both.value / root, -1.0, 1.0), np.nan)
        least, most = np.sqrt(first.low * second.low), np.sqrt(first.high * second.high)
        ends = []
        for end, inner in ((both.low, both.low < 0), (both.high, both.high > 0)):
            under = np.where(inner, least, most)  # the smaller divisor is where the end is further from 0
            far = np.where(inner, np.sign(end), 0.0)
            ends.append(np.clip(np.where(under > 0, end / np.where(under > 0, under, 1.0), far), -1.0, 1.0))
        return Span(value, np.fmin(ends[0], value), np.fmax(ends[1], value))

    def mean(self, index: int) -> Span:
        """Return the mean distance of a column from its centre: at the true one, m, sums less m times rows is noise."""
        counting = self.counting(index)
        sums, rows, known = self._amount(index), self._safe_rows(counting), self.are_known(counting)
        kept = np.where(known, sums / rows, 0.0)
        reach = self._reach(counting)
        size = np.where(known, (np.abs(sums) + self._reach(index)) / np.maximum(rows - reach, reach), 0.0)
        noise = size
        for _ in range(NARROWINGS):
            noise = self._bounds((index, counting), [np.ones_like(size), size]) / rows
            size = np.minimum(size, np.abs(kept) + noise)
        return Span(kept, kept - noise, kept + noise)

    def are_known(self, counting: int) -> Flags:
        """Whether groups have enough rows for the noise on them."""
        return np.asarray(self._amount(counting) > 2 * self._reach(counting))

    def counting(self, index: int) -> int:
        """The vector that counts the rows of a vector of sums or products."""
        counting = self._vector(index).rows
        if counting is None:
            raise ValueError("sums of a moment need a vector that counts their rows")
        return counting

    def _noise(self, index: int, means: Sequence[Span], value: Floats) -> Floats:
        """Return how far off the mean product about possible means may be, by the noise of all its vectors."""
        (one, two), counting = self._factors(index), self.counting(index)
        rows, reach = self._safe_rows(counting), self._reach(counting)
        sizes = [np.maximum(np.abs(mean.low), np.abs(mean.high)) for mean in means]
        corners = [a * b for a in (means[0].low, means[0].high) for b in (means[-1].low, means[-1].high)]
        top, bottom = np.maximum.reduce(corners), np.minimum.reduce(corners)
        first = (np.abs(self._amount(index)) + self._reach(index)) / np.maximum(rows - reach, reach)
        low, high = -(first + sizes[0] * sizes[-1]), first + sizes[0] * sizes[-1]
        off = high
        for _ in range(NARROWINGS):
            of_rows = np.maximum(np.abs(top - low), np.abs(high - bottom))
            if one == two:
                weights = [np.ones_like(value), 2 * sizes[0], of_rows]
                off = self._bounds((index, one, counting), weights) / rows
            else:
                weights = [np.ones_like(value), sizes[1], sizes[0], of_rows]
                off = self._bounds((index, one, two, counting), weights) / rows
            more = _farthest(means[0]) * _farthest(means[-1])
            low, high = np.maximum(low, value - more - off), np.minimum(high, value + more + off)
        return np.asarray(off)

    def _lacks(self, index: int, means: Sequence[Span], value: Floats) -> tuple[Floats, Floats]:
        """Return how far below and above a group's spread may be because of what people have beyond their caps.

        Missing squares lower a variance, and missing sums or rows raise it; a covariance goes either way.
        """
        (one, two), counting = self._factors(index), self.counting(index)
        parts = most_of_groups(shares_of(self._amount(counting), self._reach(counting))) / self._safe_rows(counting)
        missing = {each: self._missing(each) for each in (index, one, two, counting)}
        sizes = np.abs(means[0].value), np.abs(means[-1].value)
        products = PART_OF_VARIANCE * parts * missing[index]
        others = sizes[1] * missing[one] + sizes[0] * missing[two]
        others = others + np.abs(value - sizes[0] * sizes[1]) * missing[counting]
        others = PART_OF_VARIANCE * parts * others
        return (others, products) if one == two else (products + others, products + others)

    def _missing(self, index: int) -> float:
        """Return how much all groups lack together at most, in the unit of the column."""
        return most_missing(self._vector(index), Anchor()) * float(self._exact_step(index))

    def _rounded(self, index: int, means: Sequence[Span]) -> Floats:
        """Return how far rounding to grids may have moved the mean product."""
        offs = [float(self._column_off(place)) for place in self._factors(index)]
        sizes = [np.maximum(np.abs(mean.low), np.abs(mean.high)) for mean in (means[0], means[-1])]
        found: Floats = float(self._column_off(index)) + offs[0] * sizes[1] + offs[1] * sizes[0] + offs[0] * offs[1]
        return found

    # ---- Vectors, in the unit of their columns.

    def _at(self, share: Fraction) -> "_Moments":
        """Return the same at this share of the probability to miss."""
        return replace(self, confidence=1 - (1 - self.confidence) * share)

    def _vector(self, index: int) -> Vector:
        if self.plan.scaling is None:
            raise ValueError("this plan has no vectors: it scales nothing")
        return self.plan.scaling.vectors[index]

    def _factors(self, index: int) -> tuple[int, int]:
        factors = self._vector(index).factors
        if factors is None:
            raise ValueError("this vector is not one of squares or products")
        return factors

    def _squares(self, side: int) -> int:
        """The vector of the squares of a column, given that of its sums."""
        vectors = self.plan.scaling.vectors if self.plan.scaling else ()
        return next(place for place, vector in enumerate(vectors) if vector.factors == (side, side))

    def _step(self, index: int) -> float:
        return float(self._exact_step(index))

    def _exact_step(self, index: int) -> Fraction:
        vector = self._vector(index)
        is_value = vector.kind == "centred" and vector.column is not None
        return self.plan.measured[vector.column or 0].step if is_value else Fraction(1)

    def _column_off(self, index: int) -> Fraction:
        return self.plan.measured[self._vector(index).column or 0].off

    def _amount(self, index: int) -> Floats:
        fine = wholes(self.noisy.parts[index][0]).astype(np.float64)
        return fine * float(self._exact_step(index) / fine_per_step(self._vector(index)))

    def _safe_rows(self, counting: int) -> Floats:
        """Every group's noisy rows; 1 where there are too few, whose numbers are not shown."""
        return np.where(self.are_known(counting), self._amount(counting), 1.0)

    def _fine(self, index: int) -> tuple[NoisyRelease, Fraction]:
        """A vector's release, and how many of its units a unit of the column is."""
        return self.plan.releases[index], fine_per_step(self._vector(index)) / self._exact_step(index)

    def _reach(self, index: int) -> float:
        release, fine = self._fine(index)
        return law_bound(release.law, self.confidence) / float(fine)

    def _bounds(self, indexes: Sequence[int], weights: Sequence[Floats]) -> Floats:
        return noise_bounds([self._fine(each) for each in indexes], np.stack(weights, axis=1), self.confidence)


def _farthest(span: Span) -> Floats:
    """Return how far from the value an end is at most."""
    far: Floats = np.maximum(span.high - span.value, span.value - span.low)
    return far
