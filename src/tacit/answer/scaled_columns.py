"""The columns of a plan that scales: noisy cells, corrected to the measured totals, with intervals that allow for it.

Counts and sums are multiplied by one factor, means are shifted by one number, for all groups (`anchors.py`). An
interval holds noise, the error of that factor or shift, and what a group may have lost more or less than the others. It
is about the table in which no unit counts for more than the tail cap. Which of its terms are theorems, and which one is
a convention, is in docs/proofs/corrected.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeGuard

import numpy as np

from tacit.answer.anchors import (
    FACTOR_MOST,
    FLOOR_SCALES,
    Anchor,
    Totals,
    anchors,
    fine_per_step,
    lost_more,
    totals_index,
    vectors_of,
)
from tacit.answer.error_bars import on_grid, shown_count_reach
from tacit.answer.moments import NoisyColumn
from tacit.answer.moved_means import moved_by_scaling
from tacit.answer.noise_sums import law_bound, weighted_bounds
from tacit.plan import (
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
from tacit.privacy import Flags, Floats, Wholes, combined, nearest_quotients, wholes
from tacit.release import NoisyTable

ScaledOutput = CountRows | CountValues | CountUnits | Sum | Mean
# A cell of these kinds is never negative, whatever the rows.
NEVER_NEGATIVE = ("rows", "units", "counted", "missing")
NARROWINGS = 4
# A shift from totals that do not have all of what was cut is made where it is so many times as large as it may be off.
SURELY = 2.0
# By which part of it the share of rows that facts foretell to be cut may be wrong: a convention too.
FORETOLD_OFF = 1 / 4
# Errors that are off together are tried in this many proportions: the largest product is met within 1 part in 5,000.
ANGLES = 49
# Distances from a threshold are told apart by this share of a unit, so that few of them are computed.
UNIT_PARTS = 8


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
        return _mean(output, cells)
    if isinstance(output, Sum) and cells.vector(output.release).rows is not None:
        return _sum_beside_mean(output, cells)
    column = plan.measured[output.column] if isinstance(output, Sum) else None
    return _total(output.name, output.release, cells, column)


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


def mean_shift(output: Mean, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> tuple[float, float]:
    """Return what a mean is shifted by in all groups, and how far off that may be, in the column's own unit."""
    cells = _Cells(plan, noisy, anchors(plan, noisy, confidence), confidence)
    step = float(plan.measured[output.column].step)
    shift = _shift(output.release, _counting(output.release, cells), cells)
    return shift.made * step, shift.off * step


@dataclass(frozen=True)
class _Cells:
    """The noisy cells of a plan's vectors, and how far their noise reaches."""

    plan: Plan
    noisy: NoisyTable
    anchors: tuple[Anchor, ...]
    confidence: Fraction

    def vector(self, index: int) -> Vector:
        """The vector of a release."""
        return vectors_of(self.plan)[index]

    def release(self, index: int) -> NoisyRelease:
        """The release of a vector."""
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
        threshold = self.plan.threshold
        if threshold is None or threshold.release != index:
            reach = np.full(len(self.noisy.keys), law_bound(release.law, self.confidence) / fine)
            return reach, reach
        part = max(1, int(fine / UNIT_PARTS))
        downs, ups = [], []
        for count in self.fine(index).tolist():  # shown because it is large: the noise is not symmetric then
            near, far = (count - threshold.least) // part * part, -(-(count - threshold.least) // part) * part
            down = shown_count_reach(release.summed, release.scale, self.confidence, near)[0]
            downs.append(count if down is None else min(down, count))
            ups.append(shown_count_reach(release.summed, release.scale, self.confidence, far)[1])
        return np.array(downs, dtype=np.float64) / fine, np.array(ups, dtype=np.float64) / fine

    def pair_bounds(self, one: int, two: int, weights: Floats) -> Floats:
        """Return bounds on |Z1 + weight·Z2| for each weight, Z1 and Z2 the noises of two vectors in steps."""
        noises = [(self.release(index), fine_per_step(self.vector(index))) for index in (one, two)]
        return noise_bounds(noises, np.stack([np.ones_like(weights), np.abs(weights)], axis=1), self.confidence)


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


def _total(name: str, index: int, cells: _Cells, column: Measured | None) -> NoisyColumn:
    """Return counts, or sums about 0: the noisy cells times the factor."""
    anchor, vector = cells.anchors[index], cells.vector(index)
    times = anchor.factor / fine_per_step(vector)
    values = nearest_quotients(combined((times.numerator, cells.fine(index))), times.denominator)
    kept = cells.steps(index)
    luck = 0.0 if vector.outlook is None else vector.outlook.luck
    low, high = corrected_ends(
        kept,
        cells.noise(index),
        anchor,
        hidden=_hidden(index, cells, kept),
        other=luck * np.sqrt(anchor.foreseen * np.abs(kept)),
    )
    if never_negative(cells.plan, index):  # the lower end is a theorem
        low = np.minimum(kept - cells.noise(index)[0], values.astype(np.float64))
    return _between(name, values, low, high, column)


def corrected_ends(
    kept: Floats,
    noise: tuple[Floats, Floats],
    anchor: Anchor,
    *,
    hidden: float = 0.0,
    other: Floats | float = 0.0,
    is_whole: bool = False,
) -> tuple[Floats, Floats]:
    """Return the ends of what groups have, from what was kept of them and how far below and above it may be.

    Towards 0 the interval ends where a group lost nothing. Away from 0 it ends where a group lost as much more than the
    average as `lost_more` says; noise and the errors of the factor are off together, as squares. `hidden` is what
    cancels in a group on average, of which any share may have been cut; `other` is any further error of the corrected
    number. The one group that `is_whole` lost what was measured, and neither less nor more.
    """
    if math.isinf(anchor.high):  # the totals are too small for a factor: any group may have lost all that was cut
        most = anchor.cut_most if math.isfinite(anchor.cut_most) else np.abs(kept)
        return kept - noise[0] - most - other, kept + noise[1] + most + other
    # where no factor was measured, a group may still have lost what is foreseen
    factor, lost = anchor.foreseen, 0.0 if is_whole else anchor.foreseen - 1
    more = math.hypot(anchor.high - float(anchor.factor), lost_more(1 / factor, anchor.alone) * lost)
    aside = np.hypot(lost * hidden, other)

    def outer(sign: int, reach: Floats) -> Floats:
        ahead = sign * kept
        far = largest_products(ahead, reach, factor, more)
        if is_whole:
            middle, near = factor * ahead, largest_products(ahead, reach, factor, anchor.low - factor)
        else:
            middle, near = np.where(ahead > 0, factor * ahead, ahead), ahead + reach
        return np.asarray(sign * (middle + np.hypot(np.maximum(far, near) - middle, aside)))

    return outer(-1, noise[0]), outer(1, noise[1])


def largest_products(kept: Floats, reach: Floats, factor: float, off: float) -> Floats:
    """Return the largest (kept + a·reach)·(factor + b·off) of all a and b that are not negative, with a² + b² = 1."""
    found = np.full_like(kept, -math.inf)
    for angle in np.linspace(0.0, math.pi / 2, ANGLES).tolist():
        found = np.maximum(found, (kept + math.cos(angle) * reach) * (factor + math.sin(angle) * off))
    return found


def _hidden(index: int, cells: _Cells, kept: Floats) -> float:
    """Return how much more the groups have in absolute steps than in sum, on average: 0 where signs never differ."""
    totals = cells.anchors[index].totals
    if never_negative(cells.plan, index) or totals is None or cells.plan.threshold is not None or not len(kept):
        return 0.0
    return max(0.0, totals.kept - float(np.abs(kept).sum())) / len(kept)


def _between(name: str, values: Wholes, low: Floats, high: Floats, column: Measured | None) -> NoisyColumn:
    """Return whole numbers of steps between these ends, in the column's own unit.

    What they are about is whole steps too, so an end is rounded to the nearest whole one inside half a step of it.
    """
    step = Fraction(1) if column is None else column.step
    middle = values.astype(np.float64)
    down, up = np.maximum(middle - low, 0.0), np.maximum(high - middle, 0.0)
    is_even = np.abs(down - up) <= 1.0  # but for the rounding of the value both are the same, and stay so
    half = (down + up) / 2
    below, above = (_whole(np.where(is_even, half, each)) for each in (down, up))
    ends = combined((1, values), (-1, below)), combined((1, values), (1, above))
    return NoisyColumn(name, on_grid(values, step), *(on_grid(end, step) for end in ends))


def _whole(far: Floats) -> Wholes:
    return wholes([int(each) for each in np.floor(np.minimum(far, 1e300) + 0.5).tolist()])


# ---- Means, and sums beside a mean.


@dataclass(frozen=True)
class _Means:
    """The means of every group about the column's centre, in steps, and how far off they may be."""

    rows: Floats  # noisy, as kept
    kept: Floats  # the mean of what was kept; 0 where there are too few rows
    known: Flags  # whether there are enough rows for their noise
    noise: Floats
    shift: float  # what is added to every group's mean
    other: Floats  # how far off it may be beside the noise: shift and spread


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
    shift = _shift(index, counting, cells)
    moved = _moved(index, counting, cells, np.maximum(safe, reach), shift)
    return _Means(rows, kept, known, noise, shift.made, np.hypot(shift.most, moved))


def _counting(index: int, cells: _Cells) -> int:
    counting = cells.vector(index).rows
    if counting is None:
        raise ValueError("a mean needs a vector that counts its rows")
    return counting


@dataclass(frozen=True)
class _Shift:
    """How far the mean of the whole table is from that of what was kept of it, in steps."""

    made: float = 0.0  # what all means are shifted by
    measured: float = 0.0
    off: float = 0.0  # how far off the measured one may be

    @property
    def most(self) -> float:
        """How far a group may be off where it is shifted as all are, though it should be not at all, or by twice."""
        return math.hypot(self.measured, self.off)


def _shift(index: int, counting: int, cells: _Cells) -> _Shift:
    """Return the mean of the whole table less the mean of what was kept of it, and how far off that may be."""
    sums, rows = cells.anchors[index].totals, cells.anchors[counting].totals
    if sums is None:
        return _Shift()
    if rows is None:
        return _shift_by_facts(sums, index, counting, cells)
    release, per_step = _totals_noise(counting, cells)
    least = FLOOR_SCALES * float(release.scale / per_step)
    kept_rows = max(rows.kept, least)
    all_rows = kept_rows + max(rows.cut, 0.0)
    whole, kept = (sums.kept + sums.cut) / all_rows, sums.kept / kept_rows
    # what each of the four noises moves it by, to first order
    slopes = [1 / all_rows - 1 / kept_rows, 1 / all_rows, kept / kept_rows - whole / all_rows, whole / all_rows]
    noises = [_totals_noise(each, cells) for each in (index, index, counting, counting)]
    off = noise_bounds(noises, np.abs(np.array([slopes])), cells.confidence)
    return _Shift(whole - kept, whole - kept, float(off[0]))


def _shift_by_facts(sums: Totals, index: int, counting: int, cells: _Cells) -> _Shift:
    """Return the shift where the sums have totals and the rows have none: which share of them was cut, facts foretell.

    A shift that may as well be none is not made, and neither is one from totals whose tail is below the tail cap: what
    people have beyond it is missing from what was cut, always on one side. It is in the bars either way.
    """
    of_sums, of_rows = cells.vector(index).outlook, cells.vector(counting).outlook
    if of_sums is None or of_rows is None or of_rows.mass <= 0:
        return _Shift()
    share = 1 - min(max(of_rows.kept, 0.0), 1.0)
    seen = float(np.sum(cells.steps(counting)))
    kept = float(np.sum(cells.steps(index))) / max(seen, 1.0)
    # where all groups are shown, they tell how many rows there are, better than facts do
    listed = cells.plan.threshold is None and 0 < share < 1 and seen > 0
    all_rows = max(seen / (1 - share), 1.0) if listed else of_rows.mass
    measured = sums.cut / all_rows - share * kept
    off = math.hypot(sums.error / all_rows, of_sums.beyond_totals / all_rows, FORETOLD_OFF * share * kept)
    is_made = abs(measured) > off
    if of_sums.beyond_totals > 0:
        is_made = abs(measured) > SURELY * off and sums.cut * measured > 0
    return _Shift(measured if is_made else 0.0, measured, off)


def _totals_noise(index: int, cells: _Cells) -> tuple[NoisyRelease, Fraction]:
    """Return the release of a vector's totals, and how many of its units a step is."""
    place = totals_index(cells.plan, index)
    if place is None:
        raise ValueError("this vector has no totals")
    vector = cells.vector(index)
    return cells.plan.totals[place], fine_per_step(vector) / 2**vector.tail_shift


def _moved(index: int, counting: int, cells: _Cells, rows: Floats, shift: _Shift) -> Floats:
    """Return how far from the others a group's mean may have been moved, from what was kept of its rows."""
    of_rows = cells.vector(counting).outlook
    if of_rows is None:
        return np.zeros_like(rows)
    all_rows = rows / min(max(of_rows.kept, 1 / FACTOR_MOST), 1.0)
    measured = None if cells.anchors[index].totals is None else shift.most
    return moved_by_scaling(
        cells.vector(index), cells.vector(counting), all_rows, measured, by_luck=bool(cells.plan.keys)
    )


def _mean(output: Mean, cells: _Cells) -> NoisyColumn:
    column, found = cells.plan.measured[output.column], _means(output.release, cells)
    step, centre = float(column.step), _centre(cells.vector(output.release), column)
    middle = (centre + found.kept + found.shift) * step
    half = np.sqrt(found.noise**2 + found.other**2) * step + float(column.off)
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
    """Return count times mean: the factor times (centre + shift) times the rows, and the factor times the sums."""
    index, column = output.release, cells.plan.measured[output.column]
    counting = _counting(index, cells)
    anchor, found = cells.anchors[counting], _means(index, cells)
    factor, about = float(anchor.factor), _centre(cells.vector(index), column) + found.shift
    kept = cells.steps(index) + about * found.rows
    noise = cells.pair_bounds(index, counting, np.full(len(kept), abs(about)))
    rows = factor * np.maximum(found.rows, 0.0)
    rounded = rows * float(column.off / column.step)
    low, high = corrected_ends(kept, (noise, noise), anchor, other=rows * found.other)
    values = wholes([int(each) for each in np.rint(factor * kept).tolist()])
    return _between(output.name, values, low - rounded, high + rounded, column)
