"""The public side of learning: columns as cells of public grids, and a model with residuals that are added up.

A `CodedPlan` says which cells each row falls into. `Scores` is a model in whole numbers: sums of table entries and a
lookup, without floats. `moves_squared` is how far one unit can move what is added up: a unit with k rows gives each of
them 1/k of its weight, so it moves at most one row's move (docs/proofs/rounds.md, holdout.md). In products (`Moments`)
a number is its place in its range, from -NUMBER_ONE to NUMBER_ONE, and a row adds a product of at most UNIT to one
place of each block (docs/proofs/linear.md). Counts by pairs of columns are asked
as distances from public guesses, and as tables with whole weights (docs/proofs/pair-distances.md).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, pairwise
from math import prod
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter
from tacit.numbers import Integers
from tacit.plan.plan import Measured
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

    Cell i holds listed[i], or of `measured` edges[i] <= steps above the range's low end < edges[i + 1], clamped.
    With of="before" it is the cell of the row before, of the same unit; first rows have one more cell, after the last.
    With of="unit" it is the unit's number of rows: cell i holds edges[i] <= rows < edges[i + 1], the last cell more.
    """

    name: str
    expression: Expression
    listed: tuple[Scalar, ...] = ()
    measured: Measured | None = None
    edges: tuple[int, ...] = ()
    of: Literal["row", "before", "unit"] = "row"

    def __post_init__(self) -> None:
        if self.of == "unit":
            if self.edges[:1] != (1,) or any(low >= high for low, high in pairwise(self.edges)):
                raise InvalidParameter("the cells of a number of rows must rise from 1")
            return
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
        rising = all(low < high for low, high in zip(self.edges, self.edges[1:], strict=False))
        return len(self.edges) >= 2 and rising and self.edges[0] == 0 and self.edges[-1] == height + 1

    @property
    def cells(self) -> int:
        """How many cells it has, the last one included."""
        return (len(self.listed) + 1 if self.listed else len(self.edges)) + (self.of == "before")


@dataclass(frozen=True)
class CodedPlan:
    """The rows and columns that a model is learned from; `values` are ranged numbers kept in whole steps.

    A unit's rows are in the order of the column at `order`, and equal ones in that of all columns. With `is_by_unit`
    the place of each row's unit among all units is kept as the last of the values.
    """

    unit: str | None  # None: every row is a unit
    where: Expression | None
    columns: tuple[CodedColumn, ...]
    values: tuple[Measured, ...] = ()
    order: int | None = None
    is_by_unit: bool = False

    def __post_init__(self) -> None:
        if self.unit is None and (self.is_by_unit or any(column.of != "row" for column in self.columns)):
            raise InvalidParameter("only a unit with a column of its own has a row before, or a number of rows")
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

    `tables` has for each column (classes, bins) in steps of 2^-SCORE_BITS, or None. A row's residuals, the observed
    value (a class as 0 or UNIT, a number as a part of its range) less the prediction, are clipped together to a length
    of `clip`.
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
        return len(self.intercept)

    @property
    def columns(self) -> tuple[int, ...]:
        return tuple(index for index, table in enumerate(self.tables) if table is not None)

    @property
    def moves_squared(self) -> int:
        """The square of how far one unit can move all residual sums in L2: each block, and the intercept's, by `clip`,
        since its k rows' vectors are within clip and divided by k."""
        return (len(self.columns) + 1) * self.clip**2


def count_moves_squared(columns: int) -> int:
    """Return the square of the largest move of the counts of so many columns by one unit: each block by UNIT."""
    return columns * UNIT**2


@lru_cache(maxsize=8)
def link_table(link: LinkName) -> Integers:
    """Return the table of a link: entry i is for scores with floor((score - first) / 2^LINK_SHIFT) = i, first
    -LINK_REACH, in steps of UNIT, of softmax in parts of SOFTMAX_ONE. Privacy does not rest on it."""
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


# --- what a judgement reads ---


MeritName = Literal["accuracy", "log loss", "squared error", "absolute error"]

# Weights of one row's count, |e|, e², e⁴, outcome and squared outcome: UNIT shifted right by these. The squared error
# is used most; e⁴ only gives its variance, and the others are larger numbers than it is.
ERROR_SHIFTS = (2, 1, 0, 1, 2, 1)
# A log loss beyond this counts as this: of a probability below 1.8 %.
LOSS_MOST = 4


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """How many units have a score in each cell, by class or in all: edges[i - 1] <= score < edges[i] is cell i."""

    scores: Scores
    edges: tuple[int, ...]
    by_class: bool

    def __post_init__(self) -> None:
        if self.scores.link != "logistic":
            raise InvalidParameter("cells of one score are for models of two classes")
        _refuse_falling(self.edges)

    @property
    def size(self) -> int:
        return (len(self.edges) + 1) * (2 if self.by_class else 1)

    @property
    def moves_squared(self) -> int:
        """The square of how far one unit can move the sums: a row counts in one of them."""
        return UNIT**2


@dataclass(frozen=True, eq=False)
class ChanceCells:
    """For several classes: (cells of the largest probability, wrong or right), and cells of the true class's, in steps
    of UNIT."""

    scores: Scores
    edges: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.scores.link != "softmax":
            raise InvalidParameter("cells of probabilities are for models of several classes")
        _refuse_falling(self.edges)

    @property
    def size(self) -> int:
        return 3 * (len(self.edges) + 1)

    @property
    def moves_squared(self) -> int:
        """The square of how far one unit can move the sums: a row counts once in each table."""
        return 2 * UNIT**2


@dataclass(frozen=True, eq=False)
class ErrorSums:
    """For numbers: the sums of 1, |e|, e², e⁴, y and y², each with its weight (ERROR_SHIFTS).

    e is the error in parts of `largest`, at most 1; y runs from -1 to 1 over the range, which is UNIT.
    """

    scores: Scores
    largest: int

    def __post_init__(self) -> None:
        if not isinstance(self.scores.target, ValueTarget):
            raise InvalidParameter("errors are of models of numbers")
        if not 1 <= self.largest <= UNIT:
            raise InvalidParameter("the largest error is within the range")

    @property
    def size(self) -> int:
        return len(ERROR_SHIFTS)

    @property
    def moves_squared(self) -> int:
        """The square of how far one unit can move the sums: each by its weight at most."""
        return sum((UNIT >> shift) ** 2 for shift in ERROR_SHIFTS)


@dataclass(frozen=True, eq=False)
class Merit:
    """How well a model does, as one sum to choose by: each unit adds between 0 and UNIT, more for a better model.

    A log loss is taken from LOSS_MOST, an error in parts of `largest` from one.
    """

    scores: Scores
    measure: MeritName
    largest: int = UNIT

    def __post_init__(self) -> None:
        of_classes = self.measure in ("accuracy", "log loss")
        if of_classes != isinstance(self.scores.target, ClassTarget):
            raise InvalidParameter(f"'{self.measure}' is for another kind of model")

    @property
    def size(self) -> int:
        return 1

    @property
    def moves_squared(self) -> int:
        """The square of how far one unit can move the sum."""
        return UNIT**2


Judgement = ScoreCells | ChanceCells | ErrorSums | Merit


def _refuse_falling(edges: tuple[int, ...]) -> None:
    if not edges or any(low >= high for low, high in pairwise(edges)):
        raise InvalidParameter("the edges of cells must rise")


# --- products of numbers and cells ---


# A number counts steps of this many to half its range, so that a product of two counts steps of UNIT.
NUMBER_ONE = 1 << 12
# Scores of a linear model are within this many steps of 1 / NUMBER_ONE.
LINEAR_MOST = 1 << 24
# No two rows are as far apart in the numbers that fit here, and a squared length times UNIT fits 64 bits.
CUT_MOST = 1 << 18
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
        return prod(sizes[column] for column in self.columns)


@dataclass(frozen=True)
class Moments:
    """The products of coded columns and values with each other, or with a target, of rows with all `known` values."""

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

    Its prediction counts steps of half the target's range over NUMBER_ONE, a squared error steps of UNIT up to `cap`.
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


# --- numbers on a public grid, and about public centres ---


@dataclass(frozen=True, eq=False)
class GridCounts:
    """How many units are in each cell of a public grid: `bins` equal bins from -reach to reach of each direction.

    A row's place in a direction is the sum of its numbers, from -NUMBER_ONE to NUMBER_ONE, times the direction's. A row
    beyond the reach is in the outermost bin; one without all numbers is not counted.
    """

    values: tuple[int, ...]
    directions: Integers  # (directions, values), in parts of NUMBER_ONE
    reach: int
    bins: int
    moves_squared: ClassVar[int] = UNIT**2  # of one unit, in L2: each row counts in one cell

    def __post_init__(self) -> None:
        shape = (len(self.directions), len(self.values))
        if self.directions.shape != shape or np.abs(self.directions).max(initial=0) > NUMBER_ONE:
            raise InvalidParameter("a direction has a number for each value, within NUMBER_ONE")
        if not 1 <= self.reach <= UNIT * NUMBER_ONE or self.bins < 1 or self.size > SUMS_MOST:
            raise InvalidParameter(f"a grid has a reach, and {SUMS_MOST} cells at most\nhint: fewer bins")

    @property
    def size(self) -> int:
        return int(self.bins ** len(self.directions))


@dataclass(frozen=True, eq=False)
class CentreSums:
    """For each public centre: how many units are nearest to it, their squared distances, and the sums of what their
    numbers are off from it. A row that is further off than `cut` is drawn to that length, which is UNIT.
    """

    values: tuple[int, ...]
    centres: Integers  # (centres, values), in steps of NUMBER_ONE
    cut: int
    # A unit's weight in a count of its centre, and its largest square: the vector of length UNIT is harder to hide.
    weight: ClassVar[int] = UNIT // 2
    moves_squared: ClassVar[int] = UNIT**2 + 2 * weight**2  # of one unit, in L2

    def __post_init__(self) -> None:
        if self.centres.shape[1:] != (len(self.values),) or np.abs(self.centres).max(initial=0) > NUMBER_ONE:
            raise InvalidParameter("a centre has a number for each value, within NUMBER_ONE")
        if not 1 <= self.cut <= CUT_MOST or not 1 <= self.size <= SUMS_MOST:
            raise InvalidParameter(f"centres have a cut, and {SUMS_MOST} sums at most\nhint: fewer centres")

    @property
    def size(self) -> int:
        return len(self.centres) * (len(self.values) + 2)


# --- counts by pairs of columns ---


@dataclass(frozen=True, eq=False)
class PairDistances:
    """For each pair of columns a public table of guessed counts, in steps of UNIT: the sum of |count - guess| is asked.

    One unit moves the counts of a pair by UNIT at most in L1, and so the distance (docs/proofs/pair-distances.md).
    """

    guesses: Mapping[tuple[int, int], Integers]

    def __post_init__(self) -> None:
        for pair, guess in self.guesses.items():
            if pair[0] >= pair[1] or guess.dtype != np.int64 or guess.min() < 0 or int(guess.max()) * guess.size >> 61:
                raise InvalidParameter("a guess must be whole numbers from 0, of two different columns in order")

    @property
    def moves_squared(self) -> int:
        """The square of how far one unit can move all distances in L2: each by UNIT."""
        return len(self.guesses) * UNIT**2


@dataclass(frozen=True)
class PairTables:
    """Counts by pairs of columns, each table multiplied by a whole weight: the larger, the less noise beside it."""

    weights: Mapping[tuple[int, int], int]

    def __post_init__(self) -> None:
        if any(first >= second for first, second in self.weights) or any(each < 1 for each in self.weights.values()):
            raise InvalidParameter("the tables are of two different columns in order, with whole weights from 1")

    @property
    def moves_squared(self) -> int:
        """The square of how far one unit can move all tables in L2: each by its weight times UNIT."""
        return sum((weight * UNIT) ** 2 for weight in self.weights.values())
