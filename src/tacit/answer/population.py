"""Numbers about the population that a table is a simple random sample of: sampling error and noise in one interval.

An interval of an answer is about the table. Here the law of a number's noise is read off its intervals at many
confidences, and joined with a normal sampling error. The interval keeps every value that this joint law does not
reject (docs/proofs/population.md). All of it is post-processing of released numbers, and free.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.answer.anchors import fine_per_step, vectors_of
from tacit.answer.computed import ColumnsAt
from tacit.answer.moments import NoisyColumn
from tacit.answer.scaled_columns import is_scaled
from tacit.answer.text import Printed, cell_text
from tacit.arrow_frames import as_pandas
from tacit.errors import InvalidParameter, printable
from tacit.numbers import Flags, Floats, Integers, combined, confidence_meaning, wholes
from tacit.plan import Mean, Plan, StandardDeviation, Variance, whole_of
from tacit.release import NoisyTable

# The probabilities to miss at which a number's intervals are read: a ladder down to one in 100,000.
MISSES = tuple(Fraction(*each) for each in ((9, 10), (4, 5), (7, 10), (3, 5), (1, 2), (2, 5), (3, 10), (1, 5), (3, 20)))
MISSES += tuple(Fraction(*each) for each in ((1, 10), (7, 100), (1, 20), (3, 100), (1, 50), (1, 100), (1, 200)))
MISSES += tuple(Fraction(1, each) for each in (500, 1_000, 3_000, 10_000, 100_000))
# Half a standard deviation of the noise of a variance is added to it: it may be too small by luck.
GUARD = 0.5
# The interval of two thirds is about a standard deviation of the noise to each side.
ONE_SIGMA = Fraction(68, 100)
BISECTIONS = 60
# The coefficients of erfc's fit by Chebyshev polynomials (Press and others, Numerical Recipes, section 6.2).
ERFC_POWERS: tuple[float, ...] = (
    -1.26551223,
    1.00002368,
    0.37409196,
    0.09678418,
    -0.18628806,
    0.27886807,
    -1.13520398,
    1.48851587,
)
ERFC_POWERS += (-0.82215223, 0.17087277)


@dataclass(frozen=True)
class NoiseLaw:
    """How far a released number may be from the table's own, in each group: distances, and their probabilities."""

    distances: Floats  # (node, group)
    chances: Floats  # (node,)

    def tail(self, distance: Floats, spread: Floats) -> Floats:
        """Return the probability that noise and a normal error of this spread are together further than `distance`."""
        scale = np.maximum(spread, 1e-300) * sqrt(2)
        both = [upper_normal((distance + sign * self.distances) / scale) for sign in (-1.0, 1.0)]
        found: Floats = self.chances @ (both[0] + both[1])
        return found

    def less(self, other: "NoiseLaw") -> "NoiseLaw":
        """Return the law of the difference of two numbers with separate noise."""
        pairs = [
            np.abs(mine + sign * theirs)
            for sign in (-1.0, 1.0)
            for mine in self.distances
            for theirs in other.distances
        ]
        chances = np.outer(self.chances, other.chances).ravel() / 2
        return NoiseLaw(np.array(pairs), np.concatenate([chances, chances]))

    def wider(self, other: "NoiseLaw") -> "NoiseLaw":
        """Return the law with the larger of two distances at each node: that of a number whose sides differ."""
        return NoiseLaw(np.maximum(self.distances, other.distances), self.chances)

    def variance(self) -> Floats:
        """Return the variance of each group's noise."""
        return np.asarray(self.chances @ self.distances**2)

    def drawn(self, words: Floats) -> Floats:
        """Return distances for uniform numbers, between nodes in proportion: the noise of one group."""
        cumulated = np.concatenate([[0.0], np.cumsum(self.chances)])
        middles = (cumulated[1:] + cumulated[:-1]) / 2
        found: Floats = np.interp(words, [0.0, *middles], [0.0, *self.distances[:, 0]])
        return found

    def at(self, places: Sequence[int] | Integers) -> "NoiseLaw":
        return NoiseLaw(self.distances[:, list(places)], self.chances)


@dataclass(frozen=True)
class Estimate:
    """A mean of every group, as tests and intervals read it."""

    name: str
    value: Floats  # NaN if a group has too few people
    rows: Floats  # noisy, at least 1
    variance: Floats  # of one row, as released; infinite if it was not asked
    span: tuple[float, float] | None  # the declared range: no variance is above (high - mean)(mean - low)
    below: NoiseLaw
    above: NoiseLaw

    @property
    def is_known(self) -> Flags:
        """Whether a group has enough rows for its noise."""
        return ~np.isnan(self.value)

    def variance_at(self, mean: Floats) -> Floats:
        """Return the variance of one row if this is the mean."""
        if self.span is None:
            return self.variance
        low, high = self.span
        return np.minimum(self.variance, np.maximum((high - mean) * (mean - low), 0.0))

    def spread_at(self, mean: Floats) -> Floats:
        """Return the standard deviation of a sample's mean if this is the mean."""
        return np.sqrt(self.variance_at(mean) / self.rows)


class Population(Printed):
    """Numbers with intervals about the population: `print` it, or take it `to_pandas`, `to_arrow`, `to_dicts`."""

    def __init__(
        self, keys: Mapping[str, Sequence[Any]], found: Mapping[str, tuple[NoisyColumn, Floats]], level: Fraction
    ) -> None:
        self._columns: dict[str, Sequence[Any]] = dict(keys)
        self.answer: Any = None  # the answer about the table
        self._keys, self._names = tuple(keys), tuple(found)
        self.confidence: Fraction = level
        for name, (column, noise) in found.items():
            ends = {"": column.values, "_low": column.low, "_high": column.high, "_noise": noise.tolist()}
            self._columns |= {f"{name}{end}": values for end, values in ends.items()}

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return a dict for each group: its keys, each number with its ends, and the noise's part of its width."""
        return [dict(zip(self._columns, cells, strict=True)) for cells in zip(*self._columns.values(), strict=True)]

    def to_arrow(self) -> pa.Table:
        """Return an Arrow table."""
        return pa.table({name: list(values) for name, values in self._columns.items()})

    def to_pandas(self) -> Any:
        """Return a pandas frame."""
        return as_pandas(self.to_arrow())

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    def __str__(self) -> str:
        rows = [(*self._keys, *(word for name in self._names for word in (name, "for privacy")))]
        for row in self.to_dicts():
            cells = [str(row[key]) for key in self._keys]
            for name in self._names:
                value, low, high, noise = (row[f"{name}{end}"] for end in ("", "_low", "_high", "_noise"))
                is_known = value is not None and low is not None and high is not None
                cells += [cell_text(value, low, high), f"{noise:.0%}"] if is_known else ["not enough people", ""]
            rows.append(tuple(cells))
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines = [
            "  ".join(
                cell.ljust(width) if at < len(self._keys) else cell.rjust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in rows
        ]
        level = f"{float(self.confidence) * 100:g} %"
        reading = (
            f"Each interval holds the population's number with {level} probability, if the table is a simple random "
            "sample of it: sampling error and noise together. Noise widens an interval by the part for privacy."
        )
        return printable("\n".join([*lines, "", reading]), keeping="\n")


def population(plan: Plan, noisy: NoisyTable, columns_at: ColumnsAt, confidence: Any) -> Population:
    """Return the means of an answer with intervals about the population."""
    level = confidence_meaning(confidence)
    found = {}
    for estimate in estimates(plan, noisy, columns_at):
        ends = [_end(estimate, law, sign, level) for law, sign in ((estimate.below, -1.0), (estimate.above, 1.0))]
        plain = [_end(estimate, _no_noise(law), 1.0, level) for law in (estimate.above,)][0] - estimate.value
        half = (ends[1] - ends[0]) / 2
        noise = np.where(half > 0, np.clip(1 - plain / np.where(half > 0, half, 1.0), 0.0, 1.0), 0.0)
        numbers = (estimate.value, *ends)
        values, low, high = (_shown(each, estimate.is_known) for each in numbers)
        if estimate.span is not None:
            low = tuple(estimate.span[0] if each is None else each for each in low)
            high = tuple(estimate.span[1] if each is None else each for each in high)
        found[estimate.name] = (NoisyColumn(estimate.name, values, low, high), noise)
    named = {key.name: [each[at] for each in noisy.keys] for at, key in enumerate(plan.keys)}
    return Population(named, found, level)


def estimates(plan: Plan, noisy: NoisyTable, columns_at: ColumnsAt) -> list[Estimate]:
    """Return the means of a plan as tests read them; refuse a plan without means, or with several rows of a person."""
    means = [(at, output) for at, output in enumerate(plan.outputs) if isinstance(output, Mean)]
    if not means:
        raise InvalidParameter(
            "this answer is without means, and only means and shares are about a population"
            "\nhint: agg(n=tacit.count('x'), mean=tacit.mean('x'), std=tacit.std('x')); a share is a mean of 0 and 1"
        )
    refuse_several_rows(plan)
    ladder = [columns_at(1 - miss) for miss in MISSES]
    sigma = columns_at(ONE_SIGMA)
    return [_estimate(plan, noisy, at, mean, ladder, sigma) for at, mean in means]


def refuse_several_rows(plan: Plan) -> None:
    """Refuse a plan in which a person may have several rows: they are not independent draws."""
    if plan.unit is not None and 1 not in (plan.rows_per_unit, plan.most_rows):
        raise InvalidParameter(
            "numbers about a population need one row for each person: rows of the same person are not independent"
            "\nhint: declare rows_per_unit=1 if that is so, or ask about one number for each person"
        )


def _estimate(
    plan: Plan,
    noisy: NoisyTable,
    at: int,
    mean: Mean,
    ladder: Sequence[Sequence[NoisyColumn]],
    sigma: Sequence[NoisyColumn],
) -> Estimate:
    measured = plan.measured[mean.column]
    same = {type(each): place for place, each in enumerate(plan.outputs) if getattr(each, "column", -1) == mean.column}
    between = None if measured.expression in plan.learned_ranges else measured.between
    span = None if between is None else (float(between[0]), float(between[1]))
    place = next((same[kind] for kind in (Variance, StandardDeviation) if kind in same), None)
    if place is None and span is None:
        raise InvalidParameter(
            f"the spread of '{mean.name}' is not known: neither its standard deviation was asked, nor is its range "
            f"declared\nhint: ask it in the same question: agg({mean.name}=..., spread=tacit.std('x'))"
        )
    value = _numbers(sigma[at].values)
    return Estimate(
        mean.name,
        value,
        np.maximum(rows_of(plan, noisy, mean), 1.0),
        np.full(len(value), np.inf)
        if place is None
        else _guarded_variance(sigma[place], is_root=StandardDeviation in same),
        span,
        *(_law(ladder, at, end) for end in ("low", "high")),
    )


def rows_of(plan: Plan, noisy: NoisyTable, mean: Mean) -> Floats:
    """Return how many rows each group's mean is of, as the mean's own release has it."""
    if is_scaled(mean, plan):
        counting = vectors_of(plan)[mean.release].rows
        if counting is None:
            raise ValueError("a mean needs a vector that counts its rows")
        per_row = fine_per_step(vectors_of(plan)[counting])
        return np.asarray(wholes(noisy.parts[counting][0]).astype(np.float64) / float(per_row))
    release = plan.releases[mean.release]
    both = zip(release.parts, noisy.parts[mean.release], strict=True)
    kept = [(1, values) for part, values in both if part.kind != "missing"]
    return np.asarray(combined(*kept).astype(np.float64) / whole_of(release.parts[-1], plan.measured))


def law_of_column(columns_at: ColumnsAt, at: int) -> tuple[NoisyColumn, NoiseLaw]:
    """Return a column and the law of each group's noise, that of the wider side."""
    ladder = [columns_at(1 - miss) for miss in MISSES]
    return ladder[0][at], _law(ladder, at, "low").wider(_law(ladder, at, "high"))


def law_of_cells(columns_at: ColumnsAt, at: int) -> tuple[NoisyColumn, NoiseLaw]:
    """Return a column whose groups have one law of noise, and that law: intervals that were cut are read past."""
    column, law = law_of_column(columns_at, at)
    return column, NoiseLaw(law.distances.max(axis=1, keepdims=True, initial=0.0), law.chances)


def upper_normal(z: Floats) -> Floats:
    """Return half of erfc(z), with a relative error below 1.2e-7: an approximation by Chebyshev's polynomials.

    A p-value and an interval need no more digits, and no loss depends on it.
    """
    size = np.minimum(np.abs(z), 26.0)  # beyond it the tail is below any float
    t = 1 / (1 + size / 2)
    powers = np.zeros_like(t)
    for each in ERFC_POWERS[::-1]:
        powers = powers * t + each
    tail = t * np.exp(powers - size * size) / 2
    return np.asarray(np.where(z >= 0, tail, 1 - tail))


def _guarded_variance(column: NoisyColumn, *, is_root: bool) -> Floats:
    """Return a variance as it was released, and half a standard deviation of its noise more."""
    value, high = _numbers(column.values), _numbers(column.high)
    value, high = (np.maximum(each, 0.0) ** (2 if is_root else 1) for each in (value, high))
    found: Floats = np.where(np.isnan(value), np.inf, value + GUARD * (high - value))
    return found


def _law(ladder: Sequence[Sequence[NoisyColumn]], at: int, end: str) -> NoiseLaw:
    """Return the law of a number's noise from the distances of its ends: between two of them its middle is taken."""
    values = _numbers(ladder[0][at].values)
    reaches = [np.abs(_numbers(getattr(columns[at], end)) - values) for columns in ladder]
    return law_of_reaches(reaches)


def law_of_reaches(reaches: Sequence[Floats]) -> NoiseLaw:
    """Return the law of noise that is further than each of these distances with each probability of MISSES."""
    edges = np.maximum.accumulate(np.nan_to_num(np.array([np.zeros_like(reaches[0]), *reaches])), axis=0)
    nodes = [*((edges[1:] + edges[:-1]) / 2), edges[-1] * 1.2]
    levels = np.array([1.0, *map(float, MISSES), 0.0])
    return NoiseLaw(np.array(nodes), levels[:-1] - levels[1:])


def _no_noise(law: NoiseLaw) -> NoiseLaw:
    return NoiseLaw(np.zeros_like(law.distances[:1]), np.ones(1))


def _end(estimate: Estimate, law: NoiseLaw, sign: float, level: Fraction) -> Floats:
    """Return the value furthest to one side that the joint law does not reject."""
    miss = float(1 - level)
    value = np.where(np.isnan(estimate.value), 0.0, estimate.value)
    if estimate.span is None:
        reach = law.distances[-1] + 12 * np.sqrt(np.where(np.isfinite(estimate.variance), estimate.variance, 0.0))
    else:
        reach = np.maximum(sign * (estimate.span[sign > 0] - value), 0.0)
    low, high = np.zeros_like(value), reach
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        is_kept = law.tail(middle, estimate.spread_at(value + sign * middle)) > miss
        low, high = np.where(is_kept, middle, low), np.where(is_kept, high, middle)
    return np.where(np.isnan(estimate.value), np.nan, value + sign * high)


def _numbers(values: Sequence[Any]) -> Floats:
    return np.array([np.nan if value is None else float(value) for value in values])


def _shown(values: Floats, known: Flags) -> tuple[float | None, ...]:
    return tuple(
        None if not is_known or value != value else value
        for value, is_known in zip(values.tolist(), known.tolist(), strict=True)
    )
