"""The public side of learning: columns as cells of public grids, and a model with residuals that are added up.

No part of it comes from rows. A `CodedPlan` says which cells each row falls into. `Scores` is a model in whole numbers:
its prediction for a row is a sum of table entries and a lookup, so an engine needs neither exponentials nor floats. How
far one unit can move what is added up is a property here; docs/proofs/rounds.md proves it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.plan.plan import Measured
from tacit.privacy import Integers
from tacit.query import Expression, Scalar

# The weight of one unit in whole steps: a unit with k rows gives each of them 1/k of it, towards zero.
UNIT = 1 << 24
# Scores count steps of 2^-SCORE_BITS.
SCORE_BITS = 12
# An entry of a score table fits 32 bits, so that a sum over all columns fits 64.
SCORE_MOST = (1 << 31) - 1
COLUMNS_MOST = 1 << 12
CELLS_MOST = 1 << 16
# Entries of lookup tables are this many steps of a score apart, and reach this far from zero.
LINK_SHIFT = 2
LINK_REACH = 16
# The weights of softmax are whole parts of this, the largest being 1.
SOFTMAX_ONE = 1 << 20

LinkName = Literal["identity", "logistic", "log", "softmax"]


@dataclass(frozen=True)
class CodedColumn:
    """A column as cells of a public grid; the last cell is for NULL, unlisted values and other types.

    Either `listed`, where cell i holds listed[i]; or `measured` with `edges`, where cell i holds the values of
    edges[i] <= steps above the range's low end < edges[i + 1]. Values beyond the range are clamped into it.
    """

    name: str
    expression: Expression
    listed: tuple[Scalar, ...] = ()
    measured: Measured | None = None
    edges: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if (self.measured is None) == (not self.listed):
            raise InvalidParameter(
                f"column '{self.name}' must have either listed values or a range\nhint: declare its keys or its range"
            )
        if self.measured is None:
            if any(each is None for each in self.listed) or len(set(self.listed)) != len(self.listed):
                raise InvalidParameter(f"the values of '{self.name}' must be different, and none may be NULL")
        elif not self._has_edges(self.measured.height):
            raise InvalidParameter(
                f"the edges of '{self.name}' must rise from 0 to one above its range"
                "\nhint: edges=(0, 10, 20) for a range of 19 steps"
            )
        if self.cells > CELLS_MOST:
            raise InvalidParameter(
                f"'{self.name}' has more than {CELLS_MOST - 1} cells\nhint: list fewer values, or give fewer edges"
            )

    def _has_edges(self, height: int) -> bool:
        """Whether the edges rise and cover the whole range."""
        rising = all(low < high for low, high in zip(self.edges, self.edges[1:], strict=False))
        return len(self.edges) >= 2 and rising and self.edges[0] == 0 and self.edges[-1] == height + 1

    @property
    def cells(self) -> int:
        """How many cells it has, the last one included."""
        return len(self.listed) + 1 if self.measured is None else len(self.edges)


@dataclass(frozen=True)
class CodedPlan:
    """The rows and columns that a model is learned from; `values` are ranged numbers kept in whole steps."""

    unit: str | None  # None: every row is a unit
    where: Expression | None
    columns: tuple[CodedColumn, ...]
    values: tuple[Measured, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= len(self.columns) + len(self.values) <= COLUMNS_MOST:
            raise InvalidParameter(f"a model has between 1 and {COLUMNS_MOST} columns\nhint: name fewer features")


@dataclass(frozen=True)
class PairedBins:
    """A public map from the cells of two columns to the bins of one: table[cell of first][cell of second]."""

    first: int
    second: int
    table: NDArray[Any]


# For each column: the bin of each of its cells, or None if its cells stay; then pairs of columns.
BinMaps = Sequence[NDArray[Any] | PairedBins | None]


@dataclass(frozen=True)
class ClassTarget:
    """The target: the class of a coded column's cell; a row with class -1 is not counted."""

    column: int
    classes: tuple[int, ...]  # the class of each cell; the last is the cell of missing values


@dataclass(frozen=True)
class ValueTarget:
    """The target: a number of `values`, as a part of its range in steps of UNIT; missing ones are not counted."""

    index: int


@dataclass(frozen=True, eq=False)
class Scores:
    """A public additive model: tables of scores for the bins of columns, an intercept, a link, a target and a clip.

    `tables` has an entry per column: (classes, bins) whole numbers in steps of 2^-SCORE_BITS, or None for a column that
    is not in the model. All links but softmax have one class. Residuals are in steps of UNIT: the observed value, a
    class as 0 or UNIT and a number as a part of its range, less the link's prediction. A row's residuals, all classes
    together, are clipped to a length of `clip`.
    """

    tables: tuple[Integers | None, ...]
    intercept: Integers
    link: LinkName
    target: ClassTarget | ValueTarget
    clip: int

    def __post_init__(self) -> None:
        if self.link not in ("identity", "logistic", "log", "softmax"):
            raise InvalidParameter("link must be 'identity', 'logistic', 'log' or 'softmax'")
        if isinstance(self.target, ClassTarget) != (self.link in ("logistic", "softmax")):
            raise InvalidParameter(f"the link '{self.link}' is for another kind of target")
        if isinstance(self.clip, bool) or not isinstance(self.clip, int) or not 1 <= self.clip <= 2 * UNIT:
            raise InvalidParameter("clip must be a whole number of steps from 1 to twice UNIT")
        if len(self.tables) > COLUMNS_MOST:
            raise InvalidParameter(f"a model has at most {COLUMNS_MOST} columns\nhint: name fewer features")
        classes = len(self.intercept)
        if (classes < 2) if self.link == "softmax" else (classes != 1):
            raise InvalidParameter(f"the link '{self.link}' does not have {classes} classes")
        for table in (self.intercept, *(each for each in self.tables if each is not None)):
            if table.dtype != np.int64 or len(table) != classes or np.abs(table).max(initial=0) > SCORE_MOST:
                raise InvalidParameter("scores must be whole numbers of 64 bits, within 2^31, a row for each class")

    @property
    def classes(self) -> int:
        """How many residuals a row has."""
        return len(self.intercept)

    @property
    def columns(self) -> tuple[int, ...]:
        """The columns that are in the model."""
        return tuple(index for index, table in enumerate(self.tables) if table is not None)

    @property
    def moves_squared(self) -> int:
        """The square of how far one unit can move all residual sums in L2: each block by `clip`, and the intercept's.

        A unit's k rows have residual vectors of length at most clip, each divided by k towards zero. In one block they
        add up to at most clip, wherever they fall.
        """
        return (len(self.columns) + 1) * self.clip**2


def count_moves_squared(columns: int) -> int:
    """Return the square of the largest move of the counts by one unit, given the number of columns: each block by
    UNIT."""
    return columns * UNIT**2


@lru_cache(maxsize=8)
def link_table(link: LinkName) -> Integers:
    """Return the public table of a link: entry i is for the scores with floor((score - first) / 2^LINK_SHIFT) = i.

    `first` is -LINK_REACH for all links; softmax has scores up to 0. Entries are in steps of UNIT, of softmax in parts
    of SOFTMAX_ONE. Privacy does not rest on the entries: residuals are clipped after the lookup.
    """
    step = 2.0 ** (LINK_SHIFT - SCORE_BITS)
    middles = -LINK_REACH + (np.arange(int(2 * LINK_REACH / step)) + 0.5) * step
    if link == "logistic":
        table = UNIT / (1 + np.exp(-middles))
    elif link == "log":  # of a part of the range; beyond twice the range every residual is clipped
        table = UNIT * np.minimum(np.exp(middles), 4.0)
    elif link == "softmax":
        below = -LINK_REACH + (np.arange(int(LINK_REACH / step) + 1)) * step
        table = SOFTMAX_ONE * np.exp(below)
    else:
        raise InvalidParameter(f"the link '{link}' needs no table")
    found: Integers = np.rint(table).astype(np.int64)
    found.flags.writeable = False
    return found
