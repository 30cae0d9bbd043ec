"""The performance of a public model on rows, in whole numbers: a row's cell or bounded number is a function of only
that row and the model, with probabilities and losses from public tables."""

from functools import lru_cache
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from tacit.engine.coded.coding_rows import Block
from tacit.engine.coded.residuals import by_cell, divided, observed_of, predicted, scores_of
from tacit.plan import (
    ERROR_SHIFTS,
    LINK_REACH,
    LINK_SHIFT,
    LOSS_MOST,
    SCORE_BITS,
    UNIT,
    ChanceCells,
    CodedPlan,
    ErrorSums,
    Judgement,
    Merit,
    ScoreCells,
)
from tacit.privacy import Integers

UNIT_BITS = UNIT.bit_length() - 1
FIRST_SCORE = -(LINK_REACH << SCORE_BITS)
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
