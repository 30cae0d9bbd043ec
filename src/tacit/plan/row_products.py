"""The products of a row's numbers and cells that are added up, in public, and the largest move of the sums by one unit.

A number is its place in its range, from -NUMBER_ONE at the low end to NUMBER_ONE at the high end; a cell is one for
the rows in it. A `Moments` names blocks of sums: a row adds to one place of each block, a product of at most UNIT. So
one unit, with a total weight of one over its rows, moves a block by at most UNIT (docs/proofs/linear.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np

from tacit.errors import InvalidParameter
from tacit.plan.coded import UNIT
from tacit.privacy import Integers

# A number counts steps of this many to half its range, so that a product of two counts steps of UNIT.
NUMBER_ONE = 1 << 12
# Scores of a linear model are within this many steps of 1 / NUMBER_ONE.
LINEAR_MOST = 1 << 24
# The most sums that rows are asked for.
SUMS_MOST = 1 << 22


@dataclass(frozen=True)
class MomentBlock:
    """A block of sums: the product of up to two numbers, by the cells of up to two columns."""

    columns: tuple[int, ...] = ()
    values: tuple[int, ...] = ()

    @property
    def is_square(self) -> bool:
        """Whether it is the square of a number: half of UNIT is taken off, so that it is within half of UNIT of 0."""
        return len(self.values) == 2 and self.values[0] == self.values[1]

    @property
    def most(self) -> int:
        """The largest product of a row, in steps of UNIT: one unit moves the block by at most that."""
        return UNIT // 2 if self.is_square else UNIT

    def length(self, sizes: Sequence[int]) -> int:
        """How many sums the block has."""
        return prod(sizes[column] for column in self.columns)


@dataclass(frozen=True)
class Moments:
    """The products of coded columns and of values with each other, or with a target; `known` are values a row needs.

    Rows with a missing one of `known` are not counted, which is a function of only the row.
    """

    columns: tuple[int, ...]
    values: tuple[int, ...]
    known: tuple[int, ...]
    target: int | None = None

    def __post_init__(self) -> None:
        needed = {*self.values} | (set() if self.target is None else {self.target})
        if not needed <= {*self.known} or len({*self.columns, *self.values}) == 0:
            raise InvalidParameter("moments are of one or more features, and of values that are known")

    @property
    def blocks(self) -> tuple[MomentBlock, ...]:
        """The blocks of sums, in the order in which they are asked."""
        if self.target is not None:
            return (
                MomentBlock((), (self.target,)),
                MomentBlock((), (self.target, self.target)),
                *(MomentBlock((), (value, self.target)) for value in self.values),
                *(MomentBlock((column,), (self.target,)) for column in self.columns),
            )
        return (
            MomentBlock(),
            *(MomentBlock((), (value,)) for value in self.values),
            *(MomentBlock((column,)) for column in self.columns),
            *(MomentBlock((), (value, value)) for value in self.values),
            *(MomentBlock((), pair) for pair in combinations(self.values, 2)),
            *(MomentBlock((column,), (value,)) for column in self.columns for value in self.values),
            *(MomentBlock(pair) for pair in combinations(self.columns, 2)),
        )

    @property
    def moves_squared(self) -> int:
        """The square of how far one unit can move all the sums in L2: each block by its largest product."""
        return sum(block.most**2 for block in self.blocks)

    def refuse_too_many(self, sizes: Sequence[int]) -> None:
        """Refuse more sums than rows may be asked for; how many there are is public."""
        if sum(block.length(sizes) for block in self.blocks) > SUMS_MOST:
            raise InvalidParameter(
                f"these features have more than {SUMS_MOST} pairs of cells\nhint: name fewer features, or list fewer"
                " keys"
            )


@dataclass(frozen=True, eq=False)
class SquaredErrors:
    """A public linear model with squared errors that are added up: by cell, by squared number, and in all.

    Its prediction counts steps of half the target's range over NUMBER_ONE: `intercept`, plus an entry of each column's
    table, plus each value times its slope. A squared error counts steps of UNIT, and `cap` at most.
    """

    columns: tuple[int, ...]
    values: tuple[int, ...]
    target: int
    tables: tuple[Integers, ...]
    slopes: Integers
    intercept: int
    cap: int

    def __post_init__(self) -> None:
        scores = np.concatenate([[self.intercept], self.slopes, *self.tables])
        if scores.dtype != np.int64 or np.abs(scores).max() > LINEAR_MOST:
            raise InvalidParameter("the scores of a linear model must be whole numbers of 64 bits, within 2^24")
        if len(self.tables) != len(self.columns) or len(self.slopes) != len(self.values):
            raise InvalidParameter("a linear model has a table for each column and a slope for each value")
        if isinstance(self.cap, bool) or not isinstance(self.cap, int) or not 1 <= self.cap <= 4 * UNIT:
            raise InvalidParameter("cap must be a whole number of steps from 1 to four times UNIT")

    @property
    def moves_squared(self) -> int:
        """The square of how far one unit can move all the sums in L2: each block by `cap`."""
        return (1 + len(self.values) + len(self.columns)) * self.cap**2
