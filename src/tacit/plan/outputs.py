"""The outputs of a plan: one record for each kind of aggregate. `planned` turns a question's kinds into records.

A record has its name in the answer, the index of its release and the indices of its measured columns; all fields are
present. Code that treats outputs by kind is a `match` that ends in assert_never, so that mypy finds each `match`
without a case for a new record.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, assert_never

from tacit.query import AggregateKind, Output

# The layout of an aggregate: from counts that the whole question shares, with the other outputs of its column or its
# two columns, or by itself.
Family = Literal["rows", "units", "values", "distinct", "column", "pair", "quantile", "ranking"]
FAMILIES: Mapping[AggregateKind, Family] = {
    "count": "values",  # without an expression: rows
    "count_units": "units",
    "count_distinct": "distinct",
    "sum": "column",
    "mean": "column",
    "variance": "column",
    "std": "column",
    "covariance": "pair",
    "correlation": "pair",
    "quantile": "quantile",
    "top": "ranking",
}
# The degrees of the moments that an aggregate of one column or two is made of; counts, of degree 0, come with any.
DEGREES: Mapping[AggregateKind, tuple[int, ...]] = {
    "sum": (1,),
    "mean": (1,),
    "variance": (2,),
    "std": (2,),
    "covariance": (1, 1),
    "correlation": (2, 2),
}


@dataclass(frozen=True)
class CountRows:
    """COUNT(*): the rows of a group."""

    name: str
    release: int
    kind: ClassVar[AggregateKind] = "count"


@dataclass(frozen=True)
class CountUnits:
    """The units of a group."""

    name: str
    release: int
    kind: ClassVar[AggregateKind] = "count_units"


@dataclass(frozen=True)
class CountValues:
    """COUNT(x): the rows with a column that is not NULL."""

    name: str
    release: int
    column: int
    kind: ClassVar[AggregateKind] = "count"


@dataclass(frozen=True)
class CountDistinct:
    """COUNT(DISTINCT x): the different values of an expression."""

    name: str
    release: int
    kind: ClassVar[AggregateKind] = "count_distinct"


@dataclass(frozen=True)
class Sum:
    """The sum of a column."""

    name: str
    release: int
    column: int
    kind: ClassVar[AggregateKind] = "sum"


@dataclass(frozen=True)
class Mean:
    """The mean of a column."""

    name: str
    release: int
    column: int
    kind: ClassVar[AggregateKind] = "mean"


@dataclass(frozen=True)
class Variance:
    """The variance of a column."""

    name: str
    release: int
    column: int
    kind: ClassVar[AggregateKind] = "variance"


@dataclass(frozen=True)
class StandardDeviation:
    """The standard deviation of a column."""

    name: str
    release: int
    column: int
    kind: ClassVar[AggregateKind] = "std"


@dataclass(frozen=True)
class Covariance:
    """The covariance of two columns."""

    name: str
    release: int
    column: int
    other: int
    kind: ClassVar[AggregateKind] = "covariance"


@dataclass(frozen=True)
class Correlation:
    """The correlation of two columns."""

    name: str
    release: int
    column: int
    other: int
    kind: ClassVar[AggregateKind] = "correlation"


@dataclass(frozen=True)
class Quantile:
    """A quantile of a column."""

    name: str
    draw: int  # the index of its draw among the plan's quantiles
    column: int
    fraction: int  # the index of its fraction among those of the draw
    kind: ClassVar[AggregateKind] = "quantile"

    @property
    def targets(self) -> tuple[int, int, int]:
        """The indices of its low end, itself and its high end among the drawn numbers."""
        return (3 * self.fraction, 3 * self.fraction + 1, 3 * self.fraction + 2)


@dataclass(frozen=True)
class Ranking:
    """The order of the keys that were chosen; it shares the release of the choice."""

    name: str
    kind: ClassVar[AggregateKind] = "top"


# Outputs made of Bernstein parts, or of parts that are their first degree.
Moment = Sum | Mean | Variance | StandardDeviation | Covariance | Correlation
# Outputs made of noisy sums.
Released = CountRows | CountUnits | CountValues | CountDistinct | Moment
PlannedOutput = Released | Quantile | Ranking


def planned(output: Output, release: int, *columns: int) -> PlannedOutput:
    """Return the record of an aggregate that comes from this release, or draw, and these indices.

    No other function turns a question's kinds of aggregates into a plan's records.
    """
    name, kind = output.name, output.aggregate.kind
    match kind:
        case "count":
            return CountValues(name, release, *columns) if columns else CountRows(name, release)
        case "count_units":
            return CountUnits(name, release)
        case "count_distinct":
            return CountDistinct(name, release)
        case "sum":
            return Sum(name, release, *columns)
        case "mean":
            return Mean(name, release, *columns)
        case "variance":
            return Variance(name, release, *columns)
        case "std":
            return StandardDeviation(name, release, *columns)
        case "covariance":
            return Covariance(name, release, *columns)
        case "correlation":
            return Correlation(name, release, *columns)
        case "quantile":
            return Quantile(name, release, *columns)
        case "top":
            return Ranking(name)
        case _:
            assert_never(kind)
