"""A model's residuals in whole numbers: lookups, a clip, and a division towards zero; no float decides anything.

`add_residuals` is the meaning, in arrays. A row's residual vector q, one number for each class, is clipped to a length
of at most `clip`: where its length is larger, every number is multiplied by clip and divided by the length, rounded up,
towards zero. So the clipped vector is no longer than clip, whatever the tables of the model hold.
"""

from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from tacit.engine.coded.coding_rows import Block
from tacit.plan import (
    LINK_REACH,
    LINK_SHIFT,
    SCORE_BITS,
    UNIT,
    ClassTarget,
    CodedPlan,
    Scores,
    ValueTarget,
    link_table,
)
from tacit.privacy import Integers

FIRST_SCORE = -(LINK_REACH << SCORE_BITS)
# A sum of this many rows' numbers, each at most 2 UNIT, is exact in a float.
ROWS_AT_ONCE = 1 << 24


def add_residuals(block: Block, scores: Scores, plan: CodedPlan, exact_sums: list[Integers]) -> None:
    """Add a block's residuals to the sums of each column of the model, and last to the intercept's."""
    observed = observed_of(block, scores, plan)
    known = observed >= 0
    exact_residuals = clipped(residuals_of(predicted(block, scores), observed, scores), scores.clip)
    if block.rows_of_unit is not None:
        exact_residuals = divided(exact_residuals, block.rows_of_unit)
    exact_residuals[:, ~known] = 0
    for sums, index in zip(exact_sums, scores.columns, strict=False):
        bins = len(sums) // scores.classes
        for place, each in enumerate(exact_residuals):
            found = np.bincount(block.cells[index], weights=each, minlength=bins)  # exact: below 2^53
            sums[place * bins : (place + 1) * bins] += found.astype(np.int64)
    exact_sums[-1] += exact_residuals.sum(axis=1)


def observed_of(block: Block, scores: Scores, plan: CodedPlan) -> Integers:
    """Return each row's class, or its number as a part of its range in steps of UNIT; -1 where there is none."""
    target = scores.target
    if isinstance(target, ClassTarget):
        return np.array(target.classes, dtype=np.int64)[block.cells[target.column]]
    if isinstance(target, ValueTarget):
        steps = block.values[target.index].astype(np.int64)
        return np.where(steps < 0, -1, steps * UNIT // plan.values[target.index].height)
    assert_never(target)


def predicted(block: Block, scores: Scores) -> Integers:
    """Return what the model predicts, in steps of UNIT: (classes, rows)."""
    total: Integers = np.repeat(scores.intercept[:, None], block.length, axis=1)
    for index in scores.columns:
        table = scores.tables[index]
        if table is not None:
            total += table[:, block.cells[index]]
    if scores.link == "identity":
        return total << (UNIT.bit_length() - 1 - SCORE_BITS)
    table = link_table(scores.link)
    if scores.link == "softmax":
        total = total - total.max(axis=0)
        weights = _looked_up(table, total)
        shares: Integers = weights * UNIT // weights.sum(axis=0)
        return shares
    return _looked_up(table, total)


def residuals_of(expected: Integers, observed: Integers, scores: Scores) -> Integers:
    """Return what is observed less what is expected, for each class."""
    if isinstance(scores.target, ValueTarget):
        return observed - expected
    classes: NDArray[np.int64] = np.arange(scores.classes)[:, None] + (0 if scores.link == "softmax" else 1)
    return np.where(observed == classes, UNIT, 0) - expected


def clipped(residuals: Integers, clip: int) -> Integers:
    """Return residual vectors of length at most `clip`: shorter ones stay as they are."""
    if len(residuals) == 1:
        return np.clip(residuals, -clip, clip)
    length = root_above((residuals * residuals).sum(axis=0))
    long = length > clip
    shorter = np.sign(residuals) * (np.abs(residuals) * clip // np.maximum(length, 1))
    return np.where(long, shorter, residuals)


def root_above(squares: Integers) -> Integers:
    """Return the least whole numbers whose squares are at least these, which are below 2^52."""
    near = np.sqrt(squares.astype(np.float64)).astype(np.int64)  # within 1; whole numbers decide
    near -= near * near > squares
    near += near * near < squares
    return near


def divided(residuals: Integers, rows_of_unit: Integers) -> Integers:
    """Return numbers divided by the rows of the row's unit, towards zero."""
    parts: Integers = np.sign(residuals) * (np.abs(residuals) // rows_of_unit)
    return parts


def _looked_up(table: Integers, scores: Integers) -> Integers:
    places = (scores - FIRST_SCORE) >> LINK_SHIFT
    found: Integers = table[np.clip(places, 0, len(table) - 1)]
    return found
