"""Variances, covariances and correlations, and what comes with them, from noisy sums, with intervals that cover.

A moment is made of the sums of 1, y, z, y², yz and z² over the rows of a group. Each of them is a weighted sum of noisy
numbers: of the Bernstein parts of one release (docs/proofs/moments.md), or of the vectors of a plan that scales, whose
values are about centres (docs/proofs/corrected.md). At the true mean m and variance v, the sum of (y - m)² - v over the
rows is 0. On the noisy numbers the same sum is one weighted sum of their noises. So the interval keeps every v for
which that sum is within its bound, for some possible mean m (Fieller).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from math import prod
from typing import TypeGuard, assert_never

import numpy as np

from tacit.answer.anchors import Anchor, fine_per_step, most_missing, most_of_groups, shares_of, vectors_of
from tacit.answer.error_bars import declared_range, sum_levels, unrounded_means, unrounded_variances
from tacit.answer.noise_sums import law_bound, noise_bounds, weighted_bound
from tacit.numbers import Flags, Floats, wholes
from tacit.plan import (
    MEAN_SHARE,
    Correlation,
    Covariance,
    Mean,
    Measured,
    Moment,
    NoisyRelease,
    Plan,
    PlannedOutput,
    StandardDeviation,
    Sum,
    Variance,
    indices,
)
from tacit.release import NoisyTable

ScaledMoment = Variance | StandardDeviation | Covariance | Correlation
Spanned = Mean | ScaledMoment
Number = int | float | None
# The exponents of two columns in a product of a row's values.
Powers = tuple[int, int]
ROWS: Powers = (0, 0)
OF: tuple[Powers, Powers] = ((1, 0), (0, 1))
NARROWINGS = 4


@dataclass(frozen=True)
class NoisyColumn:
    """One aggregate for every group, with its interval."""

    name: str
    values: tuple[Number, ...]
    low: tuple[Number, ...]
    high: tuple[Number, ...]


def is_scaled_moment(output: PlannedOutput, plan: Plan) -> TypeGuard[ScaledMoment]:
    """Whether an output is made of a plan's vectors of squares or products."""
    return plan.scaling is not None and isinstance(output, ScaledMoment)


def moment_column(output: Moment, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> NoisyColumn:
    """Return one output that comes from squares or products, for every group."""
    if is_scaled_moment(output, plan):
        moments, columns = _of_vectors(output, plan, noisy, confidence)
    else:
        columns = [plan.measured[column] for column in plan.releases[output.release].parts[-1].columns]
        if isinstance(output, Sum):
            return _sum_of_parts(output, plan, noisy, confidence)
        moments = _of_parts(output.release, plan, noisy, confidence)
    least, most = _limits(output, columns, is_scaled=is_scaled_moment(output, plan))
    span = _asked_moments(output, moments, columns)
    bottom, top = -np.inf if least is None else least, np.inf if most is None else most
    span = span.each(lambda ends: np.minimum(np.maximum(ends, bottom), top))
    is_known = (moments.known & ~np.isnan(span.value)).tolist()

    def shown(ends: Floats, instead: float | None) -> tuple[float | None, ...]:
        return tuple(end if some else instead for end, some in zip(ends.tolist(), is_known, strict=True))

    return NoisyColumn(output.name, shown(span.value, None), shown(span.low, least), shown(span.high, most))


def foreseen_moment(output: ScaledMoment, plan: Plan, sums: Mapping[int, float], confidence: Fraction) -> float | None:
    """Return the low end of a moment of equal groups whose vectors add up to this many steps, noise included, and to 0
    if they are not named; None if the moment would not be shown."""
    groups = max(len(plan.public_keys or ()), 1)
    fine = [int(sums.get(index, 0.0) * fine_per_step(vector)) for index, vector in enumerate(vectors_of(plan))]
    noisy = NoisyTable(((),) * groups, tuple(((each,) * groups,) for each in fine))
    column = moment_column(output, plan, noisy, confidence)
    return None if column.values[0] is None else column.low[0]


@dataclass(frozen=True)
class MomentSpan:
    """For every group, an estimate and the range the truth is in."""

    value: Floats
    low: Floats
    high: Floats

    def each(self, change: Callable[[Floats], Floats]) -> "MomentSpan":
        """Return it with the value and both ends changed."""
        return MomentSpan(change(self.value), change(self.low), change(self.high))

    @property
    def farthest(self) -> Floats:
        """How far from the value an end is at most."""
        return np.maximum(self.high - self.value, self.value - self.low)

    @property
    def size(self) -> Floats:
        """How far from 0 an end is at most."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


def _asked_moments(output: Spanned, moments: "_Moments", columns: Sequence[Measured]) -> MomentSpan:
    match output:
        case Mean():
            start, mean = float(columns[0].low * columns[0].step), moments.mean(0)
            ends = unrounded_means(columns[0], start + mean.low, start + mean.high)
            return MomentSpan(start + mean.value, *ends)
        case Variance() | StandardDeviation():
            spread = moments.spread(0, 0)
            if not moments.off:  # of parts, whose values are on their grid
                spread = MomentSpan(spread.value, *unrounded_variances(columns[0], spread.low, spread.high))
            return spread.each(np.sqrt) if isinstance(output, StandardDeviation) else spread
        case Covariance():
            return moments.spread(0, 1)
        case Correlation():
            return moments.correlation()
        case _:
            assert_never(output)


def _limits(output: Spanned, columns: Sequence[Measured], *, is_scaled: bool) -> tuple[float | None, float | None]:
    """Return all that is possible, which is the interval of a group with too few people."""
    if is_scaled and not isinstance(output, Correlation) and any(column.between is None for column in columns):
        return (None if isinstance(output, Covariance) else 0.0), None  # what was learned limits no moment
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
            most = ranges[0] * ranges[-1] / 4
            return -most, most
        case Correlation():
            return -1.0, 1.0
        case _:
            assert_never(output)


# ---- The noisy numbers, and which weighted sums of them are the sums that moments are made of.


def _of_vectors(
    output: ScaledMoment, plan: Plan, noisy: NoisyTable, confidence: Fraction
) -> tuple["_Moments", list[Measured]]:
    """Return the moments of a plan's vectors, in the unit of their columns, which are returned too."""
    vectors = vectors_of(plan)
    rows, factors = vectors[output.release].rows, vectors[output.release].factors
    if rows is None or factors is None:
        raise ValueError("this vector is not one of squares or products")
    both = tuple(dict.fromkeys(factors))
    place_of: dict[Powers, int] = {(1, 1) if len(both) > 1 else (2, 0): output.release}
    if isinstance(output, Correlation):
        squares = {vector.factors: place for place, vector in enumerate(vectors)}
        place_of |= {(2, 0): squares[both[0], both[0]], (0, 2): squares[both[1], both[1]]}
    place_of |= dict(zip(OF, both, strict=False)) | {ROWS: rows}
    measured = {place: plan.measured[vectors[place].column or 0] for place in place_of.values()}
    fine = {
        place: fine_per_step(vectors[place]) / (column.step if vectors[place].kind == "centred" else 1)
        for place, column in measured.items()
    }
    numbers = np.array([wholes(noisy.parts[at][0]).astype(np.float64) * float(1 / fine[at]) for at in fine])
    at_one = np.eye(len(fine))
    lost = {}
    for powers, at in place_of.items():
        step = float(measured[at].step if vectors[at].kind == "centred" else 1)
        lost[powers] = step * most_missing(vectors[at], Anchor())
    moments = _Moments(
        numbers.reshape(len(fine), len(noisy.keys)),
        tuple((plan.releases[at], per_unit) for at, per_unit in fine.items()),
        dict(zip(place_of, at_one, strict=True)),
        confidence,
        lost=lost,
        off={powers: float(measured[at].off) for powers, at in place_of.items()},
    )
    return moments.with_known(), [measured[place] for place in both]


def _of_parts(index: int, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> "_Moments":
    """Return the moments of a release of Bernstein parts, in the unit of their columns above their low ends."""
    release, numbers, basis, spans = _moment_parts(index, plan, noisy)
    noises = ((release, Fraction(1)),) * len(numbers)
    return _Moments(numbers, noises, basis, confidence, spans=spans).with_known()


def _moment_parts(
    index: int, plan: Plan, noisy: NoisyTable
) -> tuple[NoisyRelease, Floats, dict[Powers, Floats], tuple[float, ...]]:
    release = plan.releases[index]
    both = zip(release.parts, noisy.parts[index], strict=True)
    kept = [(part, values) for part, values in both if part.kind == "moment"]
    degrees = kept[0][0].degrees
    columns = [plan.measured[column] for column in kept[0][0].columns]
    spans = tuple(float(column.height * column.step) for column in columns)
    whole = float(prod(column.height**degree for column, degree in zip(columns, degrees, strict=True)))
    basis = {}
    for powers in product(*(range(degree + 1) for degree in degrees)):
        points = [
            [_control_point(power, i, degree, span) for i in range(degree + 1)]
            for power, degree, span in zip(powers, degrees, spans, strict=True)
        ]
        weights = [prod(points[at][i] for at, i in enumerate(each)) / whole for each in indices(degrees)]
        basis[(*powers, 0)[0], (*powers, 0)[1]] = np.array(weights)
    numbers = np.array([wholes(values).astype(np.float64) for _, values in kept])
    return release, numbers.reshape(len(kept), len(noisy.keys)), basis, spans


def _control_point(power: int, i: int, degree: int, span: float) -> float:
    """Return control point `i` of a power of y, for y in 0 … span."""
    if power < 2:
        return span * i / degree if power else 1.0
    return span * span if i == degree else 0.0  # of y² in degree 2


def _sum_of_parts(output: Sum, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> NoisyColumn:
    """Return the sum of the first column; whole where its step is."""
    release, numbers, basis, _ = _moment_parts(output.release, plan, noisy)
    column = plan.measured[output.column]
    weights = basis[OF[0]] + float(column.low * column.step) * basis[ROWS]

    def bound(of: Floats, level: Fraction) -> float:
        return weighted_bound(release.summed, release.scale, of.tolist(), level)

    value = weights @ numbers
    off: Floats | float = bound(weights, confidence)
    if column.off:  # rounding may have moved each row; the number of rows is known up to its own noise
        levels = sum_levels(column, confidence)
        rows = basis[ROWS] @ numbers + bound(basis[ROWS], levels[1])
        off = bound(weights, levels[0]) + np.maximum(rows, 0.0) * float(column.off)
    ends = value, value - off, value + off
    if column.step.denominator != 1:
        return NoisyColumn(output.name, *(tuple(each.tolist()) for each in ends))
    rounded = (to_whole(each) for to_whole, each in zip((np.rint, np.floor, np.ceil), ends, strict=True))
    return NoisyColumn(output.name, *(tuple(int(end) for end in each.tolist()) for each in rounded))


# ---- Moments from them.


@dataclass(frozen=True)
class _Moments:
    """The noisy numbers of every group, and the weights of the sums that moments are made of."""

    numbers: Floats  # (number, group)
    noises: tuple[tuple[NoisyRelease, Fraction], ...]  # of each number, with how many of its units a unit is
    basis: Mapping[Powers, Floats]  # of the sum of each product of powers: the weight of each number
    confidence: Fraction
    spans: tuple[float, ...] = ()  # values are in 0 … span of each column; none: about a centre, without limit
    lost: Mapping[Powers, float] = field(default_factory=dict)  # how much all groups lack together at most
    off: Mapping[Powers, float] = field(default_factory=dict)  # how far rounding to grids may have moved each product
    known: Flags = field(default_factory=lambda: np.empty(0, dtype=bool))  # groups with enough rows for their noise

    def with_known(self) -> "_Moments":
        """Return the same with which groups are known, at the whole confidence."""
        return replace(self, known=np.asarray(self._sum(ROWS) > 2 * self._reach(ROWS)))

    def mean(self, column: int) -> MomentSpan:
        """Return the mean of a column: at the true one, m, the sum of y less m times the rows is noise."""
        sums, rows, one, of_rows = self._sum(OF[column]), self._rows, self.basis[OF[column]], self.basis[ROWS]
        at = np.where(self.known, sums / rows, 0.0)
        if self.spans:
            low, high = np.zeros_like(at), np.full_like(at, self.spans[column])
        else:
            low, high = self._ends_of(OF[column])
        ends = low, high
        for _ in range(NARROWINGS):
            noise = self._bounds([_outer(one) - of_rows[:, None] * m for m in (low, high)]) / rows
            low, high = np.maximum(low, at - noise), np.minimum(high, at + noise)
        if self.spans:
            return MomentSpan(at, np.maximum(ends[0], at - noise), np.minimum(ends[1], at + noise))
        return MomentSpan(at, at - noise, at + noise)

    def spread(self, one: int, two: int) -> MomentSpan:
        """Return the mean product of two columns about their own means: the variance if they are one column."""
        powers, is_square = _product_powers(one, two), one == two
        places = tuple(dict.fromkeys((one, two)))
        means = [self._at(MEAN_SHARE / len(places)).mean(place) for place in places]
        first, second = means[0], means[-1]
        value = self._sum(powers) / self._rows - first.value * second.value
        more = first.farthest * second.farthest
        off = self._at(1 - MEAN_SHARE)._noise((one, two), (first, second), value, more)
        lacks, rounded = self._lacks((one, two), (first, second), value), self._rounded((one, two), (first, second))
        low = value - np.hypot(off if is_square else off + more, lacks[0]) - rounded
        high = value + np.hypot(off + more, lacks[1]) + rounded
        span = MomentSpan(value, low, high)
        return span.each(lambda end: np.maximum(end, 0.0)) if is_square else span

    def correlation(self) -> MomentSpan:
        """Return the covariance over the root of both variances, with the least and the most that those allow."""
        both, each = self._at(Fraction(1, 2)).spread(0, 1), self._at(Fraction(1, 4))
        first, second = each.spread(0, 0), each.spread(1, 1)
        some = (first.value > 0) & (second.value > 0)
        root = np.sqrt(np.where(some, first.value * second.value, 1.0))
        value = np.where(some, np.clip(both.value / root, -1.0, 1.0), np.nan)
        least, most = np.sqrt(first.low * second.low), np.sqrt(first.high * second.high)
        ends = []
        for end, inner in ((both.low, both.low < 0), (both.high, both.high > 0)):
            under = np.where(inner, least, most)  # the smaller divisor is where the end is further from 0
            far = np.where(inner, np.sign(end), 0.0)
            ends.append(np.clip(np.where(under > 0, end / np.where(under > 0, under, 1.0), far), -1.0, 1.0))
        return MomentSpan(value, np.fmin(ends[0], value), np.fmax(ends[1], value))

    def _noise(self, of: tuple[int, int], means: tuple[MomentSpan, MomentSpan], value: Floats, more: Floats) -> Floats:
        """Return how far off the mean product about possible means may be, by the noise of all numbers."""
        one, two, both = self.basis[OF[of[0]]], self.basis[OF[of[1]]], self.basis[_product_powers(*of)]
        if self.spans:
            most = np.full_like(value, self.spans[of[0]] * self.spans[of[1]] / 4)
            low, high = np.zeros_like(most) if of[0] == of[1] else -most, most
        else:
            _, first = self._ends_of(_product_powers(*of))
            high = first + means[0].size * means[1].size
            low = -high
        off = high
        corners = list(product((means[0].low, means[0].high), (means[1].low, means[1].high)))
        for _ in range(NARROWINGS):
            weights = [
                _outer(both) - one[:, None] * b - two[:, None] * a + self.basis[ROWS][:, None] * (a * b - end)
                for a, b in corners
                for end in (low, high)
            ]
            off = self._bounds(weights) / self._rows
            low, high = np.maximum(low, value - more - off), np.minimum(high, value + more + off)
        return np.asarray(off)

    def _ends_of(self, powers: Powers) -> tuple[Floats, Floats]:
        """Return the least and the greatest mean of a product that its noise allows, if no range is known."""
        reach = self._reach(ROWS)
        most = (np.abs(self._sum(powers)) + self._reach(powers)) / np.maximum(self._rows - reach, reach)
        most = np.where(self.known, most, 0.0) if sum(powers) == 1 else most
        return -most, most

    def _lacks(self, of: tuple[int, int], means: tuple[MomentSpan, MomentSpan], value: Floats) -> tuple[Floats, Floats]:
        """Return how far below and above a group's spread may be because of what people have beyond their caps.

        Missing squares lower a variance, and missing sums or rows raise it; a covariance goes either way.
        """
        if not self.lost:
            return np.zeros_like(value), np.zeros_like(value)
        parts = most_of_groups(shares_of(self._sum(ROWS), self._reach(ROWS))) / self._rows
        lost = {powers: parts * missing for powers, missing in self.lost.items()}
        sizes = np.abs(means[0].value), np.abs(means[1].value)
        products, others = lost[_product_powers(*of)], sizes[1] * lost[OF[of[0]]] + sizes[0] * lost[OF[of[1]]]
        others = others + np.abs(value - sizes[0] * sizes[1]) * lost[ROWS]
        return (others, products) if of[0] == of[1] else (products + others, products + others)

    def _rounded(self, of: tuple[int, int], means: tuple[MomentSpan, MomentSpan]) -> Floats | float:
        """Return how far rounding to grids may have moved the mean product."""
        if not self.off:
            return 0.0
        offs = self.off[OF[of[0]]], self.off[OF[of[1]]]
        found: Floats = (
            self.off[_product_powers(*of)] + offs[0] * means[1].size + offs[1] * means[0].size + offs[0] * offs[1]
        )
        return found

    # ---- Sums and their noise.

    def _at(self, share: Fraction) -> "_Moments":
        """Return the same at this share of the probability to miss."""
        return replace(self, confidence=1 - (1 - self.confidence) * share)

    def _sum(self, powers: Powers) -> Floats:
        return np.asarray(self.basis[powers] @ self.numbers)

    @property
    def _rows(self) -> Floats:
        """Every group's noisy rows; 1 where there are too few, whose numbers are not shown."""
        return np.where(self.known, self._sum(ROWS), 1.0)

    def _reach(self, powers: Powers) -> float:
        """Return how far off one of the sums may be."""
        weights = self.basis[powers]
        (used,) = np.nonzero(weights)
        if len(used) > 1:
            return float(noise_bounds(self.noises, np.abs(weights)[None, :], self.confidence)[0])
        release, per_unit = self.noises[used[0]]
        return law_bound(release.law, self.confidence) / float(per_unit) * abs(float(weights[used[0]]))

    def _bounds(self, weights: Sequence[Floats]) -> Floats:
        """Return a bound for each group on a sum of the noises with any of these weights: (number, group)."""
        sizes = np.maximum.reduce([np.abs(each) for each in weights])
        if not sizes.size:
            return np.zeros(sizes.shape[1])
        used = sizes.any(axis=1)
        noises = [noise for noise, some in zip(self.noises, used.tolist(), strict=True) if some]
        return noise_bounds(noises, np.ascontiguousarray(sizes[used].T), self.confidence)


def _product_powers(one: int, two: int) -> Powers:
    """Return the powers of the product of two columns."""
    return OF[one][0] + OF[two][0], OF[one][1] + OF[two][1]


def _outer(weights: Floats) -> Floats:
    """Return weights of numbers as those of every group."""
    return weights[:, None]
