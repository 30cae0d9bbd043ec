"""The loops of learning, compiled by numba: add up scores, look up links, clip residuals, divide them, add by bin.

All numbers are whole, and equal to those that `coded/residuals.py` gives in arrays, which defines their meaning. The
loops run over a short piece of rows that stays in cache. Importing numba takes a while, so only `compiled` does it.
"""

from math import sqrt
from typing import Any

import numpy as np

from tacit.engine.kernel.coding_loops import loop


@loop
def add_scores(cells: Any, table: Any, scores: Any) -> None:
    """Add a column's table entries to the scores of one class."""
    for row in range(len(cells)):
        scores[row] += table[cells[row]]


@loop
def classify(cells: Any, class_of: Any, observed: Any) -> None:
    """Write the class of each row's cell, -1 if there is none."""
    for row in range(len(cells)):
        observed[row] = class_of[cells[row]]


@loop
def share_of_range(steps: Any, height: Any, unit: Any, observed: Any) -> None:
    """Write each row's number as a part of its range, -1 if there is none."""
    for row in range(len(steps)):
        observed[row] = np.int64(steps[row]) * unit // height if steps[row] >= 0 else -1


@loop
def looked_up(scores: Any, table: Any, first: Any, shift: Any) -> None:
    """Replace scores by the entries of a link's table."""
    last = len(table) - 1
    for row in range(len(scores)):
        scores[row] = table[min(max((scores[row] - first) >> shift, 0), last)]


@loop
def shifted(scores: Any, shift: Any) -> None:
    """Replace scores by themselves in finer steps: the identity."""
    for row in range(len(scores)):
        scores[row] <<= shift


@loop
def number_residuals(expected: Any, observed: Any, clip: Any) -> None:
    """Replace expected values by the observed ones less them, clipped; 0 for a missing outcome."""
    for row in range(len(expected)):
        known = observed[row] >= 0
        expected[row] = min(max(observed[row] - expected[row], -clip), clip) if known else 0


@loop
def class_residuals(expected: Any, observed: Any, unit: Any, clip: Any) -> None:
    """The same for one of two classes, which is observed as 0 or `unit`."""
    for row in range(len(expected)):
        known = observed[row] >= 0
        is_one = unit if observed[row] == 1 else 0
        expected[row] = min(max(is_one - expected[row], -clip), clip) if known else 0


@loop
def softmax_residuals(scores: Any, observed: Any, table: Any, place: Any, unit: Any, clip: Any) -> None:
    """Replace the scores of all classes by residuals with a vector of at most length `clip`.

    `place` has the score of the table's first entry, and how far its entries are apart as a shift.
    """
    classes, last = scores.shape[0], len(table) - 1
    first, shift = place[0], place[1]
    for row in range(scores.shape[1]):
        if observed[row] < 0:
            for each in range(classes):
                scores[each, row] = 0
            continue
        top = scores[0, row]
        for each in range(1, classes):
            top = max(top, scores[each, row])
        total = np.int64(0)
        for each in range(classes):
            weight = table[min(max((scores[each, row] - top - first) >> shift, 0), last)]
            scores[each, row] = weight
            total += weight
        squares = np.int64(0)
        for each in range(classes):
            found = (unit if observed[row] == each else 0) - scores[each, row] * unit // total
            scores[each, row] = found
            squares += found * found
        length = np.int64(sqrt(np.float64(squares)))  # within 1; whole numbers decide
        if length * length > squares:
            length -= 1
        if length * length < squares:
            length += 1
        if length > clip:
            for each in range(classes):
                found = scores[each, row]
                short = abs(found) * clip // length
                scores[each, row] = short if found > 0 else -short


@loop
def divide(residuals: Any, rows_of_unit: Any) -> None:
    """Divide numbers by the rows of their rows' units, towards zero."""
    for row in range(len(residuals)):
        found = residuals[row]
        part = abs(found) // rows_of_unit[row]
        residuals[row] = part if found > 0 else -part


@loop
def add_by_bin(cells: Any, numbers: Any, sums: Any) -> None:
    """Add numbers up by bin: (2, bins), one line for rows of even and one for rows of odd place, which add apart."""
    pairs = len(cells) // 2
    for pair in range(pairs):
        sums[0, cells[2 * pair]] += numbers[2 * pair]
        sums[1, cells[2 * pair + 1]] += numbers[2 * pair + 1]
    if len(cells) > 2 * pairs:
        sums[0, cells[2 * pairs]] += numbers[2 * pairs]
