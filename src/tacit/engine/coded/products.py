"""Sums of products in whole numbers: of cells and of numbers, of a row with itself; floats are not used.

A row's product is divided by the rows of its unit towards zero, as everything that learning adds up
(docs/proofs/linear.md). Rows with a missing number are not counted.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.engine.coded.coding_rows import Block
from tacit.engine.coded.residuals import by_cell, divided
from tacit.plan import NUMBER_ONE, UNIT, CodedPlan, MomentBlock, Moments, SquaredErrors
from tacit.privacy import Integers

# Errors beyond this are far above any cap, and their squares fit 64 bits.
ERROR_MOST = 1 << 20
# Numbers are rounded by at most half a step.
HALF = NUMBER_ONE // 2


def add_moments(block: Block, moments: Moments, plan: CodedPlan, sizes: Sequence[int], exact_sums: Integers) -> None:
    """Add a block of rows to the sums of all products, one block of sums after the other."""
    known = _known(block, moments.known)
    numbers = {value: _number(block, value, plan) for value in moments.known}
    start = 0
    for each in moments.blocks:
        stop = start + each.length(sizes)
        exact_products = np.where(known, _product(each, numbers, block.length), 0)
        exact_sums[start:stop] += _by_cell(block, each.columns, _weighed(exact_products, block), sizes)
        start = stop


def add_squared_errors(
    block: Block, model: SquaredErrors, plan: CodedPlan, sizes: Sequence[int], exact_sums: Integers
) -> None:
    """Add a block's squared errors: in all, then times each squared number, then by the cells of each column."""
    known = _known(block, (*model.values, model.target))
    numbers = [_number(block, value, plan) for value in model.values]
    predicted = np.full(block.length, model.intercept, dtype=np.int64)
    for slope, number in zip(model.slopes, numbers, strict=True):
        predicted += (slope * number + HALF) // NUMBER_ONE
    for column, table in zip(model.columns, model.tables, strict=True):
        predicted += table[block.cells[column]]
    error = np.clip(_number(block, model.target, plan) - predicted, -ERROR_MOST, ERROR_MOST)
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
    """Return which rows have all these numbers."""
    known = np.ones(block.length, dtype=np.bool_)
    for value in values:
        known &= block.values[value] >= 0
    return known


def _number(block: Block, value: int, plan: CodedPlan) -> Integers:
    """Return each row's number as a part of its half range, from -NUMBER_ONE to NUMBER_ONE, rounded to a whole step."""
    height = plan.values[value].height
    steps = np.clip(block.values[value].astype(np.int64), 0, height)
    return ((2 * steps - height) * NUMBER_ONE * 2 + height) // (2 * height)


def _product(each: MomentBlock, numbers: dict[int, Integers], length: int) -> Integers:
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
