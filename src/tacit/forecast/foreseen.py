"""The predicted error of a plan with down-weighting, from learned facts: noise, total and weights, separately, as in
the answer's intervals (docs/proofs/corrected.md), in a group of mean size."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.answer import (
    ScaledOutput,
    foreseen_missing,
    law_bound,
    noise_bounds,
    weighted_bound,
)
from tacit.plan import (
    PART_OF_MEAN,
    Correlation,
    Covariance,
    Mean,
    NoisyRelease,
    Plan,
    StandardDeviation,
    Sum,
    Variance,
    Vector,
)


@dataclass(frozen=True)
class ForeseenError:
    """How far off an output may be in a group of this size, at the confidence it was asked for."""

    noise: float
    total: float = 0.0  # the error of the measured totals: the same in all groups, in proportion
    scaling: float = 0.0  # the possible difference between a group's loss and the others'
    size: float | None = None  # of a group, in the output's unit or, for means, in rows; None: not known
    number: float | None = None  # about how large the output is; None: equal to the group's size

    @property
    def whole(self) -> float:
        return math.hypot(self.noise, self.total, self.scaling)

    @property
    def about(self) -> float | None:
        """About how large the number is that it is the error of; None: not known."""
        return self.size if self.number is None else self.number

    @property
    def half_width(self) -> float:
        """Half of the interval's width: missing rows are on one side of a count or a sum, on both of a mean."""
        return self.whole if self.number is not None else (self.noise + self.whole) / 2

    @property
    def uselessness(self) -> float:
        """The noise as a part of the number, or half of the interval's; 0 if the number is not known. Missing rows are
        a doubtful allowance."""
        return max(self.noise, self.half_width / 2) / self.about if self.about is not None and self.about > 0 else 0.0


def foreseen_error(
    output: ScaledOutput, plan: Plan, confidence: Fraction, *, rows: float | None = None
) -> ForeseenError:
    """Return the error of an output in a group of `rows` rows, or of the average size."""
    outlook = _Outlooks(plan, confidence, rows)
    if isinstance(output, Mean):
        return outlook.mean(output)
    if isinstance(output, Sum) and outlook.vector(output.release).rows is not None:
        return outlook.sum_beside_mean(output)
    step = float(plan.measured[output.column].step) if isinstance(output, Sum) else 1.0
    return outlook.count(output.release, step)


def noise_of_moment(
    output: Mean | Variance | StandardDeviation | Covariance | Correlation, plan: Plan, confidence: Fraction
) -> float:
    """Return the noise of a moment in a group of mean size, as a part of the moment; 1 or more: it may be anything. A
    correlation's is over the least roots of squares, a mean's that of its rows."""
    if nothing_is_believed(plan):
        return math.inf
    outlook = _Outlooks(plan, confidence, None)
    counting = outlook.vector(output.release).rows
    rows = 0.0 if counting is None else outlook.part_of_noise(counting)
    if isinstance(output, Mean):
        return rows
    if not isinstance(output, Correlation):
        return max(rows, outlook.part_of_noise(output.release))
    factors, vectors = outlook.vector(output.release).factors or (), plan.scaling.vectors if plan.scaling else ()
    squares = [next(at for at, each in enumerate(vectors) if each.factors == (side, side)) for side in factors]
    left = [max(1 - outlook.part_of_noise(at), 0.0) * (outlook.mass(at) or math.inf) for at in squares]
    root = math.sqrt(math.prod(left))
    return max(rows, outlook.noise(output.release) / root) if root > 0 else math.inf


def foreseen_range(output: Mean, plan: Plan) -> float:
    """Return about how wide the range of a mean's values is, if they spread evenly over it."""
    outlook = _Outlooks(plan, Fraction(1, 2), None)
    counting = outlook.vector(output.release).rows
    distance = 0.0 if counting is None else outlook.distance(output.release, counting)
    return 4 * distance * float(plan.measured[output.column].step)


def nothing_is_believed(plan: Plan) -> bool:
    """Whether facts were learned, but from too few people to tell anything."""
    known = [each.outlook for each in (plan.scaling.vectors if plan.scaling else ()) if each.outlook is not None]
    return bool(known) and all(each.mass <= 0 for each in known)


@dataclass(frozen=True)
class _Outlooks:
    """The predicted vectors of a plan, in groups of one size."""

    plan: Plan
    confidence: Fraction
    rows: float | None

    def vector(self, index: int) -> Vector:
        """The vector of a release."""
        if self.plan.scaling is None:
            raise ValueError("this plan does not down-weight and lacks vectors")
        return self.plan.scaling.vectors[index]

    def count(self, index: int, step: float) -> ForeseenError:
        """A count, or a sum about 0."""
        size, outlook, noise = self.mass(index), self.vector(index).outlook, self.noise(index)
        kept = self._kept(index) if self._is_put_back(index) else 1.0
        put_back = 0.0 if outlook is None or kept == 1.0 else outlook.lost / self._groups
        scaling = max(self._lacked(index) - put_back, 0.0)
        total = self._off(index, kept) * (size or 0.0)
        whole = None if size is None else size * step
        return ForeseenError(noise / kept * step, total * step, scaling * step, whole)

    def mean(self, output: Mean) -> ForeseenError:
        """A mean: from the noise of its sums and rows, and the part beyond people's caps."""
        index, counting, step = output.release, self._counting(output.release), float(self._step(output))
        size, distance = self.mass(counting), self.distance(index, counting)
        if size is None or size <= 0:
            return ForeseenError(math.inf)
        rows = size * self._kept(counting)
        noise = self._pair(index, counting, distance) / rows * step
        missing = self._lacked(index, PART_OF_MEAN) + distance / 2 * self._lacked(counting, PART_OF_MEAN)
        column = self.plan.measured[output.column]
        number = (abs(column.low + self.vector(index).centre) + distance) * step
        return ForeseenError(noise, 0.0, missing / rows * step, size, number)

    def noise(self, index: int) -> float:
        """A bound on the noise of one vector in a group, in steps."""
        return law_bound(self.plan.releases[index].law, self.confidence) * self._fine(index)

    def part_of_noise(self, index: int) -> float:
        """The noise of a vector as a part of a group's content; 0 if that is not known."""
        mass = self.mass(index) or 0.0
        return self.noise(index) / mass if mass > 0 else 0.0

    def sum_beside_mean(self, output: Sum) -> ForeseenError:
        """A count times a mean."""
        index, counting, step = output.release, self._counting(output.release), float(self._step(output))
        column = self.plan.measured[output.column]
        about = abs(column.low + self.vector(index).centre)
        rows, of_mean = self.count(counting, 1.0), self.mean(Mean(output.name, index, output.column))
        times = rows.noise / (law_bound(self.plan.releases[counting].law, self.confidence) * self._fine(counting))
        size = rows.size or 0.0
        return ForeseenError(
            times * self._pair(index, counting, about) * step,
            math.hypot(rows.total * about * step, size * of_mean.total),
            math.hypot(rows.scaling * about * step, size * of_mean.scaling),
            None if rows.size is None else size * (about + self.distance(index, counting)) * step,
        )

    def _step(self, output: Mean | Sum) -> Fraction:
        return self.plan.measured[output.column].step

    def _counting(self, index: int) -> int:
        counting = self.vector(index).rows
        if counting is None:
            raise ValueError("a mean needs a vector that counts its rows")
        return counting

    def _fine(self, index: int) -> float:
        return float(Fraction(2) ** -self.vector(index).shift)

    def _kept(self, index: int) -> float:
        outlook = self.vector(index).outlook
        return 1.0 if outlook is None else min(max(outlook.kept, 1e-9), 1.0)

    @property
    def _groups(self) -> int:
        return max(len(self.plan.public_keys or ()), 1)

    def _lacked(self, index: int, part: float = 1.0) -> float:
        """How much of a vector a group of mean size may lack."""
        vector, shares = self.vector(index), np.full(self._groups, 1 / self._groups)
        return float(foreseen_missing(vector).of_groups(shares, part)[0])

    def _is_put_back(self, index: int) -> bool:
        """Whether groups are scaled up to a measured or public total."""
        return self.vector(index).totals is not None or (self.plan.public_rows is not None and bool(self.plan.keys))

    def mass(self, index: int) -> float | None:
        """How much a group has, in steps; None if neither a size is given nor the number of groups is public."""
        outlook, listed = self.vector(index).outlook, self.plan.public_keys
        if self.rows is not None:
            first = next((v.outlook for v in self._vectors if v.kind in ("rows", "counted") and v.outlook), None)
            if self.vector(index).kind in ("rows", "counted"):
                return self.rows
            # the same number of rows, with the same values
            if outlook is not None and first is not None and first.mass > 0:
                return self.rows * outlook.mass / first.mass
        if outlook is None or listed is None:
            return None
        return outlook.mass / max(len(listed), 1)

    @property
    def _vectors(self) -> tuple[Vector, ...]:
        return () if self.plan.scaling is None else self.plan.scaling.vectors

    def distance(self, index: int, counting: int) -> float:
        """How far from the centre rows are on average, in steps."""
        sums, rows = self.vector(index).outlook, self.vector(counting).outlook
        return 0.0 if sums is None or rows is None or rows.mass <= 0 else sums.mass / rows.mass

    def _off(self, index: int, kept: float) -> float:
        """How far off the measured total is, as a share of it."""
        found = self._totals(index)
        outlook = self.vector(index).outlook
        if found is None or outlook is None or outlook.mass <= 0:
            return 0.0
        release, unit = found
        ratio = (1 - kept) / kept
        return weighted_bound(release.summed, release.scale, (1.0, ratio), self.confidence) * unit / outlook.mass

    def _totals(self, index: int) -> tuple[NoisyRelease, float] | None:
        """The release of a vector's totals, and the size of their unit in steps."""
        vector = self.vector(index)
        for release in self.plan.totals:
            if release.parts[0].index == (index,):
                return release, float(Fraction(2) ** vector.tail_shift) * self._fine(index)
        return None

    def _pair(self, one: int, two: int, weight: float) -> float:
        """A bound on the noise of one vector plus a weight times that of another, in steps."""
        noises = [(self.plan.releases[index], Fraction(2) ** self.vector(index).shift) for index in (one, two)]
        return float(noise_bounds(noises, np.array([[1.0, weight]]), self.confidence)[0])
