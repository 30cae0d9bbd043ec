"""Counts and sums under bounds by hand, scaled back to what was measured of the whole table.

A bound by hand drops rows. Where the plan has totals of what was kept and cut, or the number of rows is public, every
group's count and sum is multiplied by one factor, and its interval allows for the error of the factor and for a group
that lost none of its rows, or twice as many as the others (docs/proofs/corrected.md). Means are of what was kept:
their intervals allow for rows left out that differ from those. Counts of units are not corrected: the totals are of
rows.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from tacit.answer.anchors import Anchor, measured_anchor, sum_of_many
from tacit.answer.error_bars import on_grid
from tacit.answer.moments import NoisyColumn, Number
from tacit.plan import CountRows, CountValues, Mean, Plan, PlannedOutput, Sum, whole_of
from tacit.privacy import FLOAT_EXACT, Floats, wholes
from tacit.release import NoisyTable

# The mean of the rows that were left out is taken to differ from that of those kept by no more than this part of the
# way to the nearer end of the range: a convention that held on tables with heavy people (docs/decisions.md).
LEFT_OUT_DIFFERS = 0.5
# By how much more than the average a group may have lost: at least so much, and more where little is cut.
LOST_MORE, LOST_UNEVENLY = 0.5, 1.25
# Errors that are off together are tried in this many proportions: the largest product is met within 1 part in 5,000.
ANGLES = 49


def anchor_by_hand(
    plan: Plan, noisy: NoisyTable, counts: tuple[CountRows, NoisyColumn] | None, confidence: Fraction
) -> Anchor | None:
    """Return by which factor counts and sums are scaled back; None where nothing was measured.

    `counts` is the count of rows as it was released, if one was asked for.
    """
    if plan.measured_totals:
        kept, cut = noisy.totals[0]
        return measured_anchor(plan.measured_totals[0], plan.totals[0], kept, cut, confidence)
    if plan.unit is None or plan.public_rows is None or plan.threshold is not None or counts is None:
        return None
    return _of_public_rows(plan.public_rows, *counts, plan, confidence)


def _of_public_rows(rows: int, output: CountRows, column: NoisyColumn, plan: Plan, confidence: Fraction) -> Anchor:
    release = plan.releases[output.release]
    kept, numbers = sum(int(value or 0) for value in column.values), len(column.values) * len(release.parts)
    off = sum_of_many(release, numbers, confidence) / whole_of(release.parts[-1], plan.measured) + len(column.values)
    if kept <= 2 * off:
        return Anchor(high=math.inf, public_total=rows)
    factor = max(Fraction(1), Fraction(rows, kept))
    low, high = max(1.0, rows / (kept + off)), max(1.0, rows / (kept - off))
    return Anchor(factor, min(low, float(factor)), max(high, float(factor)), None, rows)


def corrected(output: PlannedOutput, column: NoisyColumn, plan: Plan, anchor: Anchor) -> NoisyColumn:
    """Return a count or a sum scaled back, and a mean whose bar has what the rows left out may do; others as is."""
    if isinstance(output, Mean):
        return _with_left_out(output, column, plan, anchor)
    if not isinstance(output, CountRows | CountValues | Sum):
        return column
    values, low, high = (np.array(ends, dtype=np.float64) for ends in (column.values, column.low, column.high))
    noise, one_row = (values - low, high - values), _row_size(output, plan)
    if math.isinf(anchor.high):  # the totals are too small for a factor: what they still allow
        if anchor.totals is None:
            return column
        most = anchor.cut_most * one_row
        ends = values - noise[0] - most, values + noise[1] + most
    else:
        ends = corrected_ends(values, noise, anchor, is_whole=not plan.keys)
    # dropping only lowers a count, so that its lower end holds as it is
    bottom = low if not isinstance(output, Sum) and (plan.keys or math.isinf(anchor.high)) else ends[0]
    return _ended(column, output, plan, values * float(anchor.factor), bottom, ends[1])


def _with_left_out(output: Mean, column: NoisyColumn, plan: Plan, anchor: Anchor) -> NoisyColumn:
    """Return a mean of what was kept, its interval widened by what as many rows as were left out may move it."""
    measured = plan.measured[output.column]
    share = 1.0 if math.isinf(anchor.high) else 1 - 1 / anchor.high
    least, most = float(measured.low * measured.step), float(measured.high * measured.step)
    # None becomes NaN, which stays what it is
    values, low, high = (np.array(each, dtype=np.float64) for each in (column.values, column.low, column.high))
    near = np.where(np.isnan(values), 0.0, np.maximum(np.minimum(values - least, most - values), 0.0))
    moved = LEFT_OUT_DIFFERS * share * near
    low, high = np.minimum(low, np.maximum(low - moved, least)), np.maximum(high, np.minimum(high + moved, most))
    return replace(column, low=_known(low, column.low), high=_known(high, column.high))


def _known(ends: Floats, before: Sequence[Number]) -> tuple[Number, ...]:
    """Return ends as numbers, None where they were None before."""
    found = ends.tolist()
    if np.isnan(ends).any():
        found = [None if old is None else end for end, old in zip(found, before, strict=True)]
    return tuple(found)


def _row_size(output: CountRows | CountValues | Sum, plan: Plan) -> float:
    """Return how much one row adds at most."""
    if not isinstance(output, Sum):
        return 1.0
    column = plan.measured[output.column]
    return float(max(abs(column.low), abs(column.high)) * column.step)


def _ended(
    column: NoisyColumn, output: PlannedOutput, plan: Plan, values: Floats, low: Floats, high: Floats
) -> NoisyColumn:
    """Return numbers with these ends, on the column's own grid."""
    step = plan.measured[output.column].step if isinstance(output, Sum) else Fraction(1)
    size = float(step)

    def steps(numbers: Floats) -> tuple[int | float, ...]:
        fits = np.abs(numbers).max(initial=0.0) < FLOAT_EXACT
        return on_grid(numbers.astype(np.int64) if fits else wholes([int(each) for each in numbers.tolist()]), step)

    middle = np.rint(values / size)
    bottom, top = np.floor(low / size + 1e-9), np.ceil(high / size - 1e-9)
    return replace(
        column, values=steps(middle), low=steps(np.minimum(bottom, middle)), high=steps(np.maximum(top, middle))
    )


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
    factor = float(anchor.factor)
    lost = 0.0 if is_whole else factor - 1
    more = math.hypot(anchor.high - float(anchor.factor), lost_more(1 / factor) * lost)
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


def left_out_error(kept: float, near: float | None = None) -> float:
    """Return how far off a group may be where this share of all rows was kept, as a part of its count or sum.

    Of a mean, it is in the column's unit, `near` being how far the mean is from the nearer end of the range.
    """
    return (1 - kept) * (lost_more(kept) if near is None else LEFT_OUT_DIFFERS * near)


def lost_more(kept: float) -> float:
    """Return by how much more than the average a group may have lost, as a part of it, where this share was kept."""
    return LOST_MORE + LOST_UNEVENLY * min(max(kept, 0.0), 1.0)
