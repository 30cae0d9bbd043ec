"""The columns of a plan that scales: noisy cells, corrected to the measured totals, with intervals that allow for it.

Where totals are measured, counts and sums are multiplied by one factor for all groups (`anchors.py`). An interval is
about the table as it is: it has the noise, the error of the factor, and what a group may lack because people count with
at most the cap (`anchors.py`). docs/proofs/corrected.md says which terms are theorems, and which are conventions.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeGuard

import numpy as np

from tacit.answer.anchors import Anchor, fine_per_step, most_missing, most_of_groups, shares_of, vectors_of
from tacit.answer.error_bars import on_grid
from tacit.answer.moments import NoisyColumn
from tacit.answer.noise_sums import law_bound, noise_bounds
from tacit.numbers import Flags, Floats, Wholes, combined, nearest_quotients, wholes
from tacit.plan import (
    PART_OF_MEAN,
    CountRows,
    CountUnits,
    CountValues,
    Mean,
    Measured,
    NoisyRelease,
    Plan,
    PlannedOutput,
    Sum,
    Vector,
)
from tacit.release import NoisyTable

ScaledOutput = CountRows | CountValues | CountUnits | Sum | Mean
# A cell of these kinds is never negative, whatever the rows.
NEVER_NEGATIVE = ("rows", "units", "counted")
NARROWINGS = 4


def is_scaled(output: PlannedOutput, plan: Plan) -> TypeGuard[ScaledOutput]:
    """Whether an output is made of the plan's vectors."""
    if plan.scaling is None or not isinstance(output, ScaledOutput):
        return False
    return output.release < len(plan.scaling.vectors)


def scaled_column(
    output: ScaledOutput, plan: Plan, noisy: NoisyTable, found: tuple[Anchor, ...], confidence: Fraction
) -> NoisyColumn:
    """Return one output for every group, with its interval."""
    cells = _Cells(plan, noisy, found, confidence)
    if isinstance(output, Mean):
        return _scaled_mean(output, cells)
    if isinstance(output, Sum) and cells.vector(output.release).rows is not None:
        return _sum_beside_mean(output, cells)
    column = plan.measured[output.column] if isinstance(output, Sum) else None
    return _scaled_total(output.name, output.release, cells, column)


def at_least(output: ScaledOutput, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> tuple[float, ...] | None:
    """Return for every group a number that the whole table's own is not below; None where cells may be negative.

    Scaling only lowers what is never negative, so this holds whatever the rows, with the tail of the noise on one side
    as its probability to miss.
    """
    if isinstance(output, Mean) or not never_negative(plan, output.release):
        return None
    cells = _Cells(plan, noisy, (), confidence)
    low = np.maximum(cells.steps(output.release) - cells.noise(output.release)[0], 0.0)
    step = plan.measured[output.column].step if isinstance(output, Sum) else Fraction(1)
    # the table's own number is whole, so what it is not below may be rounded up; floats are rounded down first
    return on_grid(wholes([int(end) for end in np.ceil(low * (1 - 1e-12) - 1e-9).tolist()]), step)


def never_negative(plan: Plan, index: int) -> bool:
    """Whether no cell of a vector is negative, whatever the rows: counts, and sums of a range from 0 up."""
    vector = vectors_of(plan)[index]
    if vector.kind in NEVER_NEGATIVE:
        return True
    if vector.kind != "centred" or vector.column is None or vector.rows is not None:
        return False
    column = plan.measured[vector.column]
    return column.low >= 0 and column.low + vector.centre == 0


def has_no_negative(plan: Plan, index: int) -> bool:
    """Whether no cell of a vector is negative for all that is known: by its kind or range, or by learned sizes."""
    outlook = vectors_of(plan)[index].outlook
    return never_negative(plan, index) or (outlook is not None and outlook.one_sign)


@dataclass(frozen=True)
class _Cells:
    """The noisy cells of a plan's vectors, and how far their noise reaches."""

    plan: Plan
    noisy: NoisyTable
    anchors: tuple[Anchor, ...]
    confidence: Fraction

    def vector(self, index: int) -> Vector:
        return vectors_of(self.plan)[index]

    def release(self, index: int) -> NoisyRelease:
        return self.plan.releases[index]

    def fine(self, index: int) -> Wholes:
        """Every group's noisy number in fine steps."""
        return wholes(self.noisy.parts[index][0])

    def steps(self, index: int) -> Floats:
        """Every group's noisy number in steps."""
        return self.fine(index).astype(np.float64) / float(fine_per_step(self.vector(index)))

    def noise(self, index: int) -> tuple[Floats, Floats]:
        """How far below and above a group's noisy number the kept one may be, in steps."""
        release, fine = self.release(index), float(fine_per_step(self.vector(index)))
        reach = np.full(len(self.noisy.keys), law_bound(release.law, self.confidence) / fine)
        return reach, reach

    def shares(self, index: int) -> Floats:
        """Every group's share of what all groups have."""
        return shares_of(self.steps(index), float(self.release(index).scale / fine_per_step(self.vector(index))))

    def lacked(self, index: int, counting: int, part: float = 1.0) -> tuple[Floats, Floats]:
        """Return how much every group may lack of the sums and of the rows of a mean, by its share of the rows."""
        shares = self.shares(counting)
        of_sums, of_rows = (most_missing(self.vector(each), self.anchors[each]) for each in (index, counting))
        parts = most_of_groups(shares, part)
        return parts * of_sums, parts * of_rows

    def pair_bounds(self, one: int, two: int, weights: Floats) -> Floats:
        """Return bounds on |Z1 + weight·Z2| for each weight, Z1 and Z2 the noises of two vectors in steps."""
        noises = [(self.release(index), fine_per_step(self.vector(index))) for index in (one, two)]
        return noise_bounds(noises, np.stack([np.ones_like(weights), np.abs(weights)], axis=1), self.confidence)


def _scaled_total(name: str, index: int, cells: _Cells, column: Measured | None) -> NoisyColumn:
    """Return counts, or sums about 0: the noisy cells times the factor."""
    anchor, vector = cells.anchors[index], cells.vector(index)
    times = anchor.factor / fine_per_step(vector)
    values = nearest_quotients(combined((times.numerator, cells.fine(index))), times.denominator)
    kept, (noise, _) = cells.steps(index), cells.noise(index)
    lacks, has_one_sign = (
        most_of_groups(cells.shares(index)) * most_missing(vector, anchor),
        has_no_negative(cells.plan, index),
    )
    ends = corrected_ends(kept, noise, anchor, lacks, is_signed=not has_one_sign)
    return _between(name, values, *ends, column)


def corrected_ends(
    kept: Floats, noise: Floats, anchor: Anchor, most_lacked: Floats, *, is_signed: bool
) -> tuple[Floats, Floats]:
    """Return the ends of what groups have, from what was kept of them and how far off that may be.

    Of numbers that are never negative the lower end is a theorem: a group lost nothing. Above the number are what a
    group lacks at most, noise, and the factor's own error, joined as squares. Signed numbers may lack as much on either
    side.
    """
    factor = float(anchor.factor)
    off = np.abs(kept) * (anchor.high - factor) if math.isfinite(anchor.high) else 0.0
    put_back = np.abs(kept) * (factor - 1)
    lacks = np.maximum(most_lacked - put_back, 0.0)
    far = np.sqrt((factor * noise) ** 2 + off**2 + lacks**2)
    low = np.minimum(kept - noise, factor * kept - (far if is_signed else 0.0))
    return low, np.maximum(factor * kept + far, kept + noise)


def _between(name: str, values: Wholes, low: Floats, high: Floats, column: Measured | None) -> NoisyColumn:
    """Return whole numbers of steps between these ends, in the column's own unit.

    What they are about is whole steps too, so an end is rounded to the nearest whole one inside half a step of it.
    """
    step = Fraction(1) if column is None else column.step
    middle = values.astype(np.float64)
    down, up = np.maximum(middle - low, 0.0), np.maximum(high - middle, 0.0)
    is_even = np.abs(down - up) <= 1.0  # but for the rounding of the value both are the same, and stay so
    half = (down + up) / 2
    below, above = (_to_whole(np.where(is_even, half, each)) for each in (down, up))
    ends = combined((1, values), (-1, below)), combined((1, values), (1, above))
    return NoisyColumn(name, on_grid(values, step), *(on_grid(end, step) for end in ends))


def _to_whole(far: Floats) -> Wholes:
    return wholes([int(each) for each in np.floor(np.minimum(far, 1e300) + 0.5).tolist()])


# ---- Means, and sums beside a mean.


@dataclass(frozen=True)
class _Means:
    """The means of every group about the column's centre, in steps, and how far off they may be."""

    rows: Floats  # noisy, as kept
    kept: Floats  # the mean of what was kept; 0 where there are too few rows
    known: Flags  # whether there are enough rows for their noise
    noise: Floats
    missing: Floats  # how far off it may be because of what is missing


def _means(index: int, cells: _Cells) -> _Means:
    """Return every group's mean: at the true one, m, the noisy sum less m times the noisy rows is noise (Fieller)."""
    counting = _counting(index, cells)
    sums, rows = cells.steps(index), cells.steps(counting)
    reach = law_bound(cells.release(counting).law, cells.confidence) / float(fine_per_step(cells.vector(counting)))
    known: Flags = np.asarray(rows > 2 * reach)
    safe = np.where(known, rows, 1.0)
    kept = np.where(known, sums / safe, 0.0)
    alone = law_bound(cells.release(index).law, cells.confidence) / float(fine_per_step(cells.vector(index)))
    # no mean that the noise allows is further from 0 than this; narrowing from there loses none
    size = np.where(known, (np.abs(sums) + alone) / np.maximum(safe - reach, reach), 0.0)
    for _ in range(NARROWINGS):
        noise = cells.pair_bounds(index, counting, size) / safe
        size = np.minimum(size, np.abs(kept) + noise)
    of_sums, of_rows = cells.lacked(index, counting, PART_OF_MEAN)
    lacks = of_sums + np.abs(kept) * of_rows
    return _Means(rows, kept, known, noise, lacks / np.maximum(safe, reach))


def _counting(index: int, cells: _Cells) -> int:
    counting = cells.vector(index).rows
    if counting is None:
        raise ValueError("a mean needs a vector that counts its rows")
    return counting


def _scaled_mean(output: Mean, cells: _Cells) -> NoisyColumn:
    column, found = cells.plan.measured[output.column], _means(output.release, cells)
    step, centre = float(column.step), _centre(cells.vector(output.release), column)
    middle = (centre + found.kept) * step
    half = np.hypot(found.noise, found.missing) * step + float(column.off)
    low, high = middle - half, middle + half
    least, most = _declared(column)
    if least is not None and most is not None:
        low, middle, high = (np.clip(each, least, most) for each in (low, middle, high))
    known = found.known.tolist()

    def shown(ends: Floats, instead: float | None) -> tuple[float | None, ...]:
        return tuple(end if some else instead for end, some in zip(ends.tolist(), known, strict=True))

    return NoisyColumn(output.name, shown(middle, None), shown(low, least), shown(high, most))


def _centre(vector: Vector, column: Measured) -> int:
    """Return the centre in steps above 0."""
    return column.low + vector.centre


def _declared(column: Measured) -> tuple[float | None, float | None]:
    """Return the range that was declared; what was learned limits no mean."""
    return (None, None) if column.between is None else (float(column.between[0]), float(column.between[1]))


def _sum_beside_mean(output: Sum, cells: _Cells) -> NoisyColumn:
    """Return count times mean: the factor times the centre times the rows, and the factor times the sums."""
    index, column = output.release, cells.plan.measured[output.column]
    counting = _counting(index, cells)
    anchor, about = cells.anchors[counting], _centre(cells.vector(index), column)
    rows = cells.steps(counting)
    kept = cells.steps(index) + about * rows
    noise = cells.pair_bounds(index, counting, np.full(len(kept), float(abs(about))))
    of_sums, of_rows = cells.lacked(index, counting)
    rounded = float(anchor.factor) * np.maximum(rows, 0.0) * float(column.off / column.step)
    is_signed = column.low < 0 and not has_no_negative(cells.plan, index)
    low, high = corrected_ends(kept, noise, anchor, of_sums + abs(about) * of_rows, is_signed=is_signed)
    values = wholes([int(each) for each in np.rint(float(anchor.factor) * kept).tolist()])
    return _between(output.name, values, low - rounded, high + rounded, column)
