"""Noisy moments: the sums of products that one or two rounds released, as a matrix, with the variance of their noise.

All numbers are in half ranges: a number is -1 at the low end of its range and 1 at its high end, a cell is 1 for a row
in it. Index 0 is the constant, then come the numbers, then the cells of each column. Everything here is
arithmetic on released integers and public facts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tacit.plan import UNIT, Moments
from tacit.privacy import Floats, Integers


@dataclass(frozen=True, eq=False)
class NoisyGram:
    """The noisy sums of products of features with each other, and the standard deviation of the noise of each sum."""

    matrix: Floats
    sigma: float
    numbers: int
    cells: tuple[int, ...]  # how many of each column

    @property
    def rows(self) -> float:
        """About how many units there are, where each has one weight."""
        return float(self.matrix[0, 0])

    @property
    def columns(self) -> list[slice]:
        """Where each column's cells are."""
        starts = np.cumsum([1 + self.numbers, *self.cells])
        return [slice(int(start), int(stop)) for start, stop in pairwise(starts)]

    def noise_of(self, weights: Floats) -> Floats:
        """Return the covariance of (noise of the matrix) @ weights, from how each sum enters the matrix.

        A sum of a pair of places enters twice. A cell's sum is in the constant's row and on the diagonal. The number of
        units is the constant's square, and half of it is part of every number's square.
        """
        places = len(self.matrix)
        paired = np.ones((places, places))
        np.fill_diagonal(paired, 0)
        first_cell = 1 + self.numbers
        paired[0, first_cell:] = paired[first_cell:, 0] = 0
        for cells in self.columns:
            paired[cells, cells] = 0
        covariance = paired * np.outer(weights, weights) + np.diag(paired @ weights**2)
        at, with_constant = weights[first_cell:], weights[first_cell:] + weights[0]
        covariance[0, 0] += np.sum(at**2)
        covariance[0, first_cell:] += at * with_constant
        covariance[first_cell:, 0] += at * with_constant
        covariance[range(first_cell, places), range(first_cell, places)] += with_constant**2
        of_rows = np.zeros(places)
        of_rows[0], of_rows[1:first_cell] = weights[0], weights[1:first_cell] / 2
        squares = np.zeros(places)
        squares[1:first_cell] = weights[1:first_cell]
        covariance += np.outer(of_rows, of_rows) + np.diag(squares**2)
        return np.asarray(covariance * self.sigma**2)


@dataclass(frozen=True, eq=False)
class NoisyTarget:
    """The noisy sums of products with the target: with each feature, and with itself."""

    cross: Floats
    square: float
    sigma: float


def gram_of(noisy: Integers, moments: Moments, sizes: Sequence[int], sigma: float) -> NoisyGram:
    """Return the matrix of released products of features; `sigma` is in steps of UNIT.

    The noisy number of units is taken as 1 at least, so that a table without rows gives a matrix that can be inverted.
    """
    numbers, cells = len(moments.values), tuple(sizes[column] for column in moments.columns)
    place = {("value", value): slice(1 + at, 2 + at) for at, value in enumerate(moments.values)}
    starts = np.cumsum([1 + numbers, *cells])
    place |= {
        ("column", column): slice(int(starts[at]), int(starts[at + 1])) for at, column in enumerate(moments.columns)
    }
    matrix = np.zeros((int(starts[-1]), int(starts[-1])))
    start = 0
    for block in moments.blocks:
        stop = start + block.length(sizes)
        found = noisy[start:stop].astype(np.float64) / UNIT
        start = stop
        at = [place["column", column] for column in block.columns] + [place["value", value] for value in block.values]
        if block.is_square:
            matrix[at[0], at[0]] = found + matrix[0, 0] / 2
            continue
        rows, columns = [*at, slice(0, 1), slice(0, 1)][:2]
        shaped = found.reshape(rows.stop - rows.start, columns.stop - columns.start)
        matrix[rows, columns], matrix[columns, rows] = shaped, shaped.T
        matrix[0, 0] = max(float(matrix[0, 0]), 1.0)
        if len(block.columns) == 1 and not block.values:
            matrix[rows, rows] = np.diag(found)
    return NoisyGram(matrix, sigma / UNIT, numbers, cells)


def target_of(noisy: Integers, gram: NoisyGram, sigma: float) -> NoisyTarget:
    """Return the released products with the target; `sigma` is in steps of UNIT."""
    found = noisy.astype(np.float64) / UNIT
    cross = np.concatenate([found[:1], found[2:]])
    return NoisyTarget(cross, float(found[1]) + gram.rows / 2, sigma / UNIT)
