"""The reads of a model's judgement, in public: the cell that each row counts in, or the bounded numbers that it adds.

The records are functions of one row's cells, its outcome and a public model, in whole numbers. The largest move of the
sums by one unit is `moves_squared`: a unit with k rows gives each of them 1/k of its weight, so it moves at most one
row's move, for any model (docs/proofs/holdout.md).
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from tacit.errors import InvalidParameter
from tacit.plan.coded import UNIT, ClassTarget, Scores, ValueTarget

MeritName = Literal["accuracy", "log loss", "squared error", "absolute error"]

# Weights of one row's count, |e|, e², e⁴, outcome and squared outcome: UNIT shifted right by these. The squared error
# is used most; e⁴ only gives its variance, and the others are larger numbers than it is.
ERROR_SHIFTS = (2, 1, 0, 1, 2, 1)
# A log loss beyond this counts as this: of a probability below 1.8 %.
LOSS_MOST = 4


@dataclass(frozen=True, eq=False)
class ScoreCells:
    """How many units have a score in each cell of a public grid, by class or in all: (cells, classes or 1).

    Cell 0 is below edges[0], and cell i holds edges[i - 1] <= score < edges[i].
    """

    scores: Scores
    edges: tuple[int, ...]
    by_class: bool

    def __post_init__(self) -> None:
        if self.scores.link != "logistic":
            raise InvalidParameter("cells of one score are for models of two classes")
        _refuse_falling(self.edges)

    @property
    def size(self) -> int:
        """How many sums there are."""
        return (len(self.edges) + 1) * (2 if self.by_class else 1)

    @property
    def moves_squared(self) -> int:
        """The square of how far one unit can move the sums: a row counts in one of them."""
        return UNIT**2


@dataclass(frozen=True, eq=False)
class ChanceCells:
    """For several classes, two tables: (cells of the largest probability, wrong or right), cells of the true class's.

    Edges are in steps of UNIT; cell 0 is below edges[0].
    """

    scores: Scores
    edges: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.scores.link != "softmax":
            raise InvalidParameter("cells of probabilities are for models of several classes")
        _refuse_falling(self.edges)

    @property
    def size(self) -> int:
        """How many sums there are."""
        return 3 * (len(self.edges) + 1)

    @property
    def moves_squared(self) -> int:
        """The square of how far one unit can move the sums: a row counts once in each table."""
        return 2 * UNIT**2


@dataclass(frozen=True, eq=False)
class ErrorSums:
    """For numbers: the sums of 1, |e|, e², e⁴, y and y², each with its weight (ERROR_SHIFTS).

    e is the error in parts of `largest`, and an error beyond it counts as it; `largest` is in steps of UNIT, which is
    the whole range. y runs from -1 to 1 over the range.
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
        """How many sums there are."""
        return len(ERROR_SHIFTS)

    @property
    def moves_squared(self) -> int:
        """The square of how far one unit can move the sums: each by its weight at most."""
        return sum((UNIT >> shift) ** 2 for shift in ERROR_SHIFTS)


@dataclass(frozen=True, eq=False)
class Merit:
    """How well a model does, as one sum to choose by: each unit adds between 0 and UNIT, more for a better model.

    "accuracy": a right class. "log loss": LOSS_MOST less the loss, held within 0 and LOSS_MOST. "squared error" and
    "absolute error": one less the error in parts of `largest`.
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
        """A sum."""
        return 1

    @property
    def moves_squared(self) -> int:
        """The square of how far one unit can move the sum."""
        return UNIT**2


Judgement = ScoreCells | ChanceCells | ErrorSums | Merit


def _refuse_falling(edges: tuple[int, ...]) -> None:
    if not edges or any(low >= high for low, high in pairwise(edges)):
        raise InvalidParameter("the edges of cells must rise")
