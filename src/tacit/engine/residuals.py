"""A model's residuals, and sums of products, in whole numbers: lookups, a clip, and a division towards zero; no floats.

A row's residual vector, a number for each class, is clipped to a length of at most `clip` for any tables of the model:
a longer one is multiplied by clip and divided by its length, rounded up, towards zero (docs/proofs/rounds.md). All is
divided by the rows of the unit towards zero (docs/proofs/linear.md).

The performance of a public model on rows, in whole numbers: a row's cell or bounded number is a function of only
that row and the model, with probabilities and losses from public tables.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from tacit.engine.coding_rows import Block
from tacit.numbers import Integers
from tacit.plan import (
    ERROR_SHIFTS,
    LINK_REACH,
    LINK_SHIFT,
    LOSS_MOST,
    NUMBER_ONE,
    SCORE_BITS,
    UNIT,
    CentreSums,
    ChanceCells,
    ClassTarget,
    CodedPlan,
    ErrorSums,
    GridCounts,
    Judgement,
    Merit,
    MomentBlock,
    Moments,
    ScoreCells,
    Scores,
    SquaredErrors,
    ValueTarget,
    link_table,
)
from tacit.query import INT_MOST

FIRST_SCORE = -(LINK_REACH << SCORE_BITS)
# From steps of a score to steps of UNIT.
FINER = UNIT.bit_length() - 1 - SCORE_BITS
# Rows with scores that stay in cache.
PIECE = 1 << 15


def add_residuals(block: Block, scores: Scores, plan: CodedPlan, exact_sums: list[Integers]) -> None:
    """Add a block's residuals, by class and bin."""
    for start in range(0, block.length, PIECE):
        piece = block.piece(start, start + PIECE)
        observed = observed_of(piece, scores, plan)
        exact_residuals = clipped(residuals_of(predicted(piece, scores), observed, scores), scores.clip)
        if piece.rows_of_unit is not None:
            exact_residuals = divided(exact_residuals, piece.rows_of_unit)
        exact_residuals[:, observed < 0] = 0
        for sums, index in zip(exact_sums, scores.columns, strict=False):
            for total, each in zip(sums, exact_residuals, strict=True):
                total += by_cell(piece.cells[index], each, len(total))
        exact_sums[-1][:, 0] += exact_residuals.sum(axis=1)


def observed_of(block: Block, scores: Scores, plan: CodedPlan) -> Integers:
    """Return each row's class, or its number as a part of its range in steps of UNIT; -1 if there is none."""
    target = scores.target
    if isinstance(target, ClassTarget):
        return np.array(target.classes, dtype=np.int64)[block.cells[target.column]]
    if isinstance(target, ValueTarget):
        steps = block.values[target.index].astype(np.int64)
        return np.where(steps < 0, -1, steps * UNIT // plan.values[target.index].height)
    assert_never(target)


def scores_of(block: Block, scores: Scores) -> Integers:
    """Return the scores of each row in steps of 2^-SCORE_BITS: (classes, rows)."""
    total: Integers = np.repeat(scores.intercept[:, None], block.length, axis=1)
    for index in scores.columns:
        table = scores.tables[index]
        if table is not None:
            total += table[:, block.cells[index]]
    return total


def predicted(block: Block, scores: Scores) -> Integers:
    """Return what the model predicts, in steps of UNIT: (classes, rows)."""
    total = scores_of(block, scores)
    if scores.link == "identity":
        return total << FINER
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
    """Return the least whole numbers with squares of at least these, which are below 2^52."""
    near = np.sqrt(squares.astype(np.float64)).astype(np.int64)  # within 1; whole numbers decide
    near -= near * near > squares
    near += near * near < squares
    return near


def divided(residuals: Integers, rows_of_unit: NDArray[np.int32]) -> Integers:
    """Return numbers divided by the rows of the row's unit, towards zero."""
    parts: Integers = np.sign(residuals) * (np.abs(residuals) // rows_of_unit.astype(np.int64))
    return parts


def by_cell(cells: NDArray[Any], weights: Integers, size: int) -> Integers:
    """Return the sum of whole numbers by cell: a float holds it exactly, since a block's sum is far below 2^53."""
    sums: Integers = np.bincount(cells, weights=weights, minlength=size).astype(np.int64)
    return sums


def _looked_up(table: Integers, scores: Integers) -> Integers:
    places = (scores - FIRST_SCORE) >> LINK_SHIFT
    found: Integers = table[np.clip(places, 0, len(table) - 1)]
    return found


# --- counts by pairs of columns ---


def add_pairs(
    block: Block, pairs: Sequence[tuple[int, int]], sizes: Sequence[int], exact_tables: Sequence[Integers]
) -> None:
    """Add a block of rows to the counts by pairs of columns, each row with its part of UNIT."""
    for start in range(0, block.length, PIECE):
        piece = block.piece(start, start + PIECE)
        alike = piece.rows_of_unit
        weights = None if alike is None else (UNIT // alike).astype(np.float64)
        cells = {
            at: np.asarray(piece.cells[at], dtype=np.int64) for at in sorted({at for pair in pairs for at in pair})
        }
        for (first, second), total in zip(pairs, exact_tables, strict=True):
            places = cells[first] * sizes[second] + cells[second]
            if weights is None:
                total += np.bincount(places, minlength=len(total)) * UNIT
            else:
                total += np.bincount(places, weights=weights, minlength=len(total)).astype(np.int64)


# --- sums of products ---


# Errors beyond this are far above any cap, and their squares fit 64 bits.
ERROR_MOST = 1 << 20
# Numbers are rounded by at most half a step.
HALF = NUMBER_ONE // 2


def add_moments(block: Block, moments: Moments, plan: CodedPlan, sizes: Sequence[int], exact_sums: Integers) -> None:
    """Add a block of rows to the sums of all products, one block of sums after the other."""
    known = _known(block, moments.known)
    numbers = {value: _number_steps(block, value, plan) for value in moments.known}
    start = 0
    for each in moments.blocks:
        stop = start + each.length(sizes)
        exact_products = np.where(known, _row_product(each, numbers, block.length), 0)
        exact_sums[start:stop] += _by_cell(block, each.columns, _weighed(exact_products, block), sizes)
        start = stop


def add_squared_errors(
    block: Block, model: SquaredErrors, plan: CodedPlan, sizes: Sequence[int], exact_sums: Integers
) -> None:
    """Add a block's squared errors: in all, then times each squared number, then by the cells of each column."""
    known = _known(block, (*model.values, model.target))
    numbers = [_number_steps(block, value, plan) for value in model.values]
    predicted = np.full(block.length, model.intercept, dtype=np.int64)
    for slope, number in zip(model.slopes, numbers, strict=True):
        predicted += (slope * number + HALF) // NUMBER_ONE
    for column, table in zip(model.columns, model.tables, strict=True):
        predicted += table[block.cells[column]]
    error = np.clip(_number_steps(block, model.target, plan) - predicted, -ERROR_MOST, ERROR_MOST)
    exact_squares = np.where(known, np.minimum(error * error, model.cap), 0)
    exact_sums[0] += _weighed(exact_squares, block).sum()
    start = 1
    for number in numbers:
        exact_sums[start] += _weighed(number * number * exact_squares // UNIT, block).sum()
        start += 1
    for column in model.columns:
        stop = start + sizes[column]
        exact_sums[start:stop] += _by_cell(block, (column,), _weighed(exact_squares, block), sizes)
        start = stop


def _known(block: Block, values: Sequence[int]) -> NDArray[np.bool_]:
    known = np.ones(block.length, dtype=np.bool_)
    for value in values:
        known &= block.values[value] >= 0
    return known


def _number_steps(block: Block, value: int, plan: CodedPlan) -> Integers:
    """Return each row's number as a part of its half range, from -NUMBER_ONE to NUMBER_ONE, rounded to a whole step."""
    height = plan.values[value].height
    steps = np.clip(block.values[value].astype(np.int64), 0, height)
    return ((2 * steps - height) * NUMBER_ONE * 2 + height) // (2 * height)


def _row_product(each: MomentBlock, numbers: dict[int, Integers], length: int) -> Integers:
    """Return each row's product in steps of UNIT; a square less half of UNIT."""
    if not each.values:
        return np.full(length, UNIT, dtype=np.int64)
    if len(each.values) == 1:
        return numbers[each.values[0]] * NUMBER_ONE
    product: Integers = numbers[each.values[0]] * numbers[each.values[1]]
    return product - UNIT // 2 if each.is_square else product


def _weighed(exact_products: Integers, block: Block) -> Integers:
    return exact_products if block.rows_of_unit is None else divided(exact_products, block.rows_of_unit)


def _by_cell(block: Block, columns: tuple[int, ...], exact_products: Integers, sizes: Sequence[int]) -> Integers:
    """Return the sums of products by cell, or by pair of cells."""
    if not columns:
        return np.asarray(exact_products.sum(keepdims=True))
    cells = block.cells[columns[0]].astype(np.int64)
    for column in columns[1:]:
        cells = cells * sizes[column] + block.cells[column]
    length = int(np.prod([sizes[column] for column in columns]))
    return by_cell(cells, exact_products, length)


# --- numbers on a public grid, and about public centres ---


def add_grid_counts(block: Block, asked: GridCounts, plan: CodedPlan, exact_counts: Integers) -> None:
    """Add a block's rows to the cells of a grid, each row with its part of UNIT."""
    for start in range(0, block.length, PIECE):
        piece = block.piece(start, start + PIECE)
        known, numbers = _all_numbers(piece, asked.values, plan)
        cells = np.zeros(piece.length, dtype=np.int64)
        for direction in asked.directions:
            places = direction @ numbers + asked.reach
            cells = cells * asked.bins + np.clip(places * asked.bins // (2 * asked.reach), 0, asked.bins - 1)
        weights = _weighed(np.where(known, UNIT, 0), piece)
        exact_counts += by_cell(cells, weights, len(exact_counts))


def add_centre_sums(block: Block, asked: CentreSums, plan: CodedPlan, exact_sums: Integers) -> None:
    """Add a block's rows to the sums of their nearest centre: its count, squares, and what each number is off."""
    many = len(asked.centres)
    for start in range(0, block.length, PIECE):
        piece = block.piece(start, start + PIECE)
        known, numbers = _all_numbers(piece, asked.values, plan)
        nearest, least = np.zeros(piece.length, dtype=np.int64), np.full(piece.length, INT_MOST)
        for at, centre in enumerate(asked.centres):
            squares = ((numbers - centre[:, None]) ** 2).sum(axis=0)
            nearest = np.where(squares < least, at, nearest)  # the first of those that tie
            least = np.minimum(squares, least)
        lengths = np.minimum(root_above(least), asked.cut)
        off = clipped(numbers - asked.centres[nearest].T, asked.cut)
        each = (
            np.full(piece.length, asked.weight, dtype=np.int64),
            lengths * lengths * asked.weight // asked.cut**2,
            *(np.sign(off) * (np.abs(off) * UNIT // asked.cut)),
        )
        for place, exact_numbers in enumerate(each):
            weighed = _weighed(np.where(known, exact_numbers, 0), piece)
            exact_sums[place * many : (place + 1) * many] += by_cell(nearest, weighed, many)


def _all_numbers(piece: Block, values: Sequence[int], plan: CodedPlan) -> tuple[NDArray[np.bool_], Integers]:
    """Return which rows have all numbers, and the numbers: (values, rows)."""
    return _known(piece, values), np.stack([_number_steps(piece, value, plan) for value in values])


UNIT_BITS = UNIT.bit_length() - 1
# Losses of probabilities are looked up by this many leading bits.
CHANCE_BITS = 14


def add_judgement(block: Block, judged: Judgement, plan: CodedPlan, exact_sums: Integers) -> None:
    """Add what a block's rows count to a judgement's sums; a row without an outcome is not counted."""
    observed = observed_of(block, judged.scores, plan)
    known = observed >= 0
    weights = np.where(known, UNIT if block.rows_of_unit is None else UNIT // block.rows_of_unit, 0)
    observed = np.where(known, observed, 0)
    if isinstance(judged, ScoreCells):
        cells = np.searchsorted(np.array(judged.edges, dtype=np.int64), scores_of(block, judged.scores)[0], "right")
        exact_sums += by_cell(2 * cells + observed if judged.by_class else cells, weights, judged.size)
    elif isinstance(judged, ChanceCells):
        exact_sums += _chance_cells(block, judged, observed, weights)
    elif isinstance(judged, ErrorSums):
        exact_sums += _errors(block, judged, observed, known)
    elif isinstance(judged, Merit):
        merit = np.where(known, _merit(block, judged, observed), 0)
        exact_sums += (merit if block.rows_of_unit is None else divided(merit, block.rows_of_unit)).sum()
    else:
        assert_never(judged)


def _chance_cells(block: Block, judged: ChanceCells, observed: Integers, weights: Integers) -> Integers:
    chances = predicted(block, judged.scores)
    edges = np.array(judged.edges, dtype=np.int64)
    guessed = chances.argmax(axis=0)  # the first of those that tie
    sure = np.searchsorted(edges, chances.max(axis=0), "right")
    true = np.searchsorted(edges, np.take_along_axis(chances, observed[None, :], axis=0)[0], "right")
    cells = len(edges) + 1
    return np.concatenate(
        [by_cell(2 * sure + (guessed == observed), weights, 2 * cells), by_cell(true, weights, cells)]
    )


def _errors(block: Block, judged: ErrorSums, observed: Integers, known: NDArray[np.bool_]) -> Integers:
    """Return the sums of a block's errors and outcomes, each row's numbers divided by the rows of its unit."""
    size = _error_size(block, judged, observed)
    outcome = 2 * observed - UNIT  # -1 to 1 over the range
    square = (size * size) >> UNIT_BITS
    each = (
        np.full_like(size, UNIT),
        size,
        square,
        (square * square) >> UNIT_BITS,
        outcome,
        (outcome * outcome) >> UNIT_BITS,
    )
    numbers = np.stack([np.sign(one) * (np.abs(one) >> shift) for one, shift in zip(each, ERROR_SHIFTS, strict=True)])
    numbers[:, ~known] = 0
    sums: Integers = (numbers if block.rows_of_unit is None else divided(numbers, block.rows_of_unit)).sum(axis=1)
    return sums


def _error_size(block: Block, judged: ErrorSums | Merit, observed: Integers) -> Integers:
    """Return |error| in parts of the largest that counts, from 0 to UNIT; a prediction is held within the range."""
    error = np.abs(observed - np.clip(predicted(block, judged.scores)[0], 0, UNIT))
    sizes: Integers = np.minimum(error, judged.largest) * UNIT // judged.largest
    return sizes


def _merit(block: Block, judged: Merit, observed: Integers) -> Integers:
    """Return how well the model does on each row, from 0 to UNIT."""
    scores = judged.scores
    if judged.measure in ("squared error", "absolute error"):
        size = _error_size(block, judged, observed)
        return UNIT - (size if judged.measure == "absolute error" else (size * size) >> UNIT_BITS)
    if scores.link == "softmax":
        chances = predicted(block, scores)
        if judged.measure == "accuracy":
            return np.where(chances.argmax(axis=0) == observed, UNIT, 0)
        true = np.take_along_axis(chances, observed[None, :], axis=0)[0]
        merits: Integers = _chance_merits()[true >> (UNIT_BITS - CHANCE_BITS)]
        return merits
    score = scores_of(block, scores)[0]
    if judged.measure == "accuracy":
        return np.where((score >= 0) == (observed == 1), UNIT, 0)
    towards = np.where(observed == 1, score, -score)
    table = _score_merits()
    found: Integers = table[np.clip((towards - FIRST_SCORE) >> LINK_SHIFT, 0, len(table) - 1)]
    return found


@lru_cache(maxsize=1)
def _score_merits() -> Integers:
    """Return the merit of each score towards the true class. Privacy rests only on its range, which is enforced."""
    step = 2.0 ** (LINK_SHIFT - SCORE_BITS)
    middles = -LINK_REACH + (np.arange(int(2 * LINK_REACH / step)) + 0.5) * step
    return _of_losses(np.logaddexp(0, -middles))


@lru_cache(maxsize=1)
def _chance_merits() -> Integers:
    """Return the merit of each probability of the true class, in steps of 2^-CHANCE_BITS."""
    middles = (np.arange((1 << CHANCE_BITS) + 1) + 0.5) / (1 << CHANCE_BITS)
    return _of_losses(-np.log(np.minimum(middles, 1)))


def _of_losses(losses: NDArray[np.float64]) -> Integers:
    merits: Integers = np.clip(np.rint(UNIT * (1 - losses / LOSS_MOST)), 0, UNIT).astype(np.int64)
    merits.flags.writeable = False
    return merits
