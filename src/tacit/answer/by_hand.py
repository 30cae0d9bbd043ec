"""Counts and sums under bounds by hand, scaled back to what was measured of the whole table.

A bound by hand drops rows. Where the plan has totals of what was kept and cut, or the number of rows is public, every
group's count and sum is multiplied by one factor, and its interval allows for the error of the factor and for a group
that lost none of its rows, or twice as many as the others (docs/proofs/corrected.md).
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np

from tacit.answer.anchors import Anchor, measured_anchor, sum_of_many
from tacit.answer.error_bars import on_grid
from tacit.answer.moments import NoisyColumn
from tacit.plan import CountRows, CountValues, Plan, PlannedOutput, Sum, whole_of
from tacit.privacy import Floats, wholes
from tacit.release import NoisyTable


def anchor_by_hand(plan: Plan, noisy: NoisyTable, columns: list[NoisyColumn], confidence: Fraction) -> Anchor | None:
    """Return by which factor counts and sums are scaled back; None where nothing was measured."""
    if plan.measured_totals:
        kept, cut = noisy.totals[0]
        return measured_anchor(plan.measured_totals[0], plan.totals[0], kept, cut, confidence)
    if plan.unit is None or plan.scaling is not None or plan.public_rows is None or plan.threshold is not None:
        return None
    for output, column in zip(plan.outputs, columns, strict=True):
        if isinstance(output, CountRows):
            return _of_public_rows(plan.public_rows, output, column, plan, confidence)
    return None


def _of_public_rows(rows: int, output: CountRows, column: NoisyColumn, plan: Plan, confidence: Fraction) -> Anchor:
    release = plan.releases[output.release]
    kept, numbers = sum(int(value or 0) for value in column.values), len(column.values) * len(release.parts)
    off = sum_of_many(release, numbers, confidence) / whole_of(release.parts[-1], plan.measured) + len(column.values)
    if kept <= 2 * off:
        return Anchor(high=math.inf, public_total=rows)
    factor = max(Fraction(1), Fraction(rows, kept))
    low, high = max(1.0, rows / (kept + off)), max(1.0, rows / (kept - off))
    return Anchor(factor, min(low, float(factor)), max(high, float(factor)), float(factor), None, rows)


def corrected(output: PlannedOutput, column: NoisyColumn, plan: Plan, anchor: Anchor) -> NoisyColumn:
    """Return a count of rows or a sum, scaled back; any other column as it is."""
    if not isinstance(output, CountRows | CountValues | Sum):
        return column
    values, low, high = (np.array(ends, dtype=np.float64) for ends in (column.values, column.low, column.high))
    factor, down, up = float(anchor.factor), values - low, high - values
    cut = (anchor.foreseen - 1) * np.abs(values)
    if math.isinf(anchor.high):  # the totals are too small for a factor: what they still allow
        if anchor.totals is None:
            return column
        one_row = _row_size(output, plan)
        most = anchor.cut_most * one_row
        return _ended(column, output, plan, values * factor, down + (most if one_row != 1 else 0.0), up + most)
    off = anchor.error * np.abs(values)
    below = np.maximum(down + cut, np.sqrt((factor * down) ** 2 + off**2 + cut**2))
    above = np.maximum(up + cut, np.sqrt((factor * up) ** 2 + off**2 + cut**2))
    return _ended(column, output, plan, values * factor, below, above)


def _row_size(output: CountRows | CountValues | Sum, plan: Plan) -> float:
    """Return how much one row adds at most."""
    if not isinstance(output, Sum):
        return 1.0
    column = plan.measured[output.column]
    return float(max(abs(column.low), abs(column.high)) * column.step)


def _ended(
    column: NoisyColumn, output: PlannedOutput, plan: Plan, values: Floats, below: Floats, above: Floats
) -> NoisyColumn:
    """Return numbers with ends this far away, on the column's own grid."""
    step = plan.measured[output.column].step if isinstance(output, Sum) else Fraction(1)
    size = float(step)

    def steps(numbers: Floats) -> tuple[int | float, ...]:
        return on_grid(wholes([int(each) for each in numbers.tolist()]), step)

    middle = np.rint(values / size)
    low, high = np.floor((values - below) / size + 1e-9), np.ceil((values + above) / size - 1e-9)
    return replace(
        column, values=steps(middle), low=steps(np.minimum(low, middle)), high=steps(np.maximum(high, middle))
    )
