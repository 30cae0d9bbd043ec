"""The outputs of a plan: one record for each kind of aggregate. `planned` turns a question's kinds into records.

Traits of a kind are class variables. Other code that treats outputs by kind is a `match` that ends in assert_never, so
that mypy finds each one without a case for a new record.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

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


# Whether an output's numbers are whole, floats, or whole where the step of its column is.
Numbers = Literal["int", "float", "grid"]
# What its error depends on, beside the noise: none, the rows of a group, or the data.
Dependence = Literal["noise", "rows", "data"]


@dataclass(frozen=True)
class OfRelease:
    """An output made of the noisy sums of one release."""

    name: str
    release: int
    kind: ClassVar[AggregateKind]
    numbers: ClassVar[Numbers]
    depends_on: ClassVar[Dependence]


@dataclass(frozen=True)
class OfColumn:
    """The same of one measured column."""

    name: str
    release: int
    column: int
    kind: ClassVar[AggregateKind]
    numbers: ClassVar[Numbers]
    depends_on: ClassVar[Dependence]


@dataclass(frozen=True)
class OfPair:
    """The same of two measured columns."""

    name: str
    release: int
    column: int
    other: int
    kind: ClassVar[AggregateKind]
    numbers: ClassVar[Numbers]
    depends_on: ClassVar[Dependence]


class CountRows(OfRelease):
    """COUNT(*): the rows of a group."""

    kind, numbers, depends_on = "count", "int", "noise"


class CountUnits(OfRelease):
    """The units of a group."""

    kind, numbers, depends_on = "count_units", "int", "noise"


class CountValues(OfColumn):
    """COUNT(x): the rows with a column that is not NULL."""

    kind, numbers, depends_on = "count", "int", "noise"


class CountDistinct(OfRelease):
    """COUNT(DISTINCT x): the different values of an expression."""

    kind, numbers, depends_on = "count_distinct", "int", "noise"


class Sum(OfColumn):
    """The sum of a column."""

    kind, numbers, depends_on = "sum", "grid", "noise"


class Mean(OfColumn):
    """The mean of a column."""

    kind, numbers, depends_on = "mean", "float", "rows"


class Variance(OfColumn):
    """The variance of a column."""

    kind, numbers, depends_on = "variance", "float", "rows"


class StandardDeviation(OfColumn):
    """The standard deviation of a column."""

    kind, numbers, depends_on = "std", "float", "data"


class Covariance(OfPair):
    """The covariance of two columns."""

    kind, numbers, depends_on = "covariance", "float", "rows"


class Correlation(OfPair):
    """The correlation of two columns."""

    kind, numbers, depends_on = "correlation", "float", "data"


@dataclass(frozen=True)
class Quantile:
    """A quantile of a column."""

    name: str
    draw: int  # the index of its draw among the plan's quantiles
    column: int
    fraction: int  # the index of its fraction among those of the draw
    kind: ClassVar[AggregateKind] = "quantile"
    numbers: ClassVar[Numbers] = "grid"
    depends_on: ClassVar[Dependence] = "rows"

    @property
    def targets(self) -> tuple[int, int, int]:
        """The indices of its low end, itself and its high end among the drawn numbers."""
        return (3 * self.fraction, 3 * self.fraction + 1, 3 * self.fraction + 2)


@dataclass(frozen=True)
class Ranking:
    """The order of the keys that were chosen; it shares the release of the choice."""

    name: str
    kind: ClassVar[AggregateKind] = "top"
    numbers: ClassVar[Numbers] = "int"
    depends_on: ClassVar[Dependence] = "data"


# Outputs made of Bernstein parts, or of parts that are their first degree.
Moment = Sum | Mean | Variance | StandardDeviation | Covariance | Correlation
MOMENTS = (Sum, Mean, Variance, StandardDeviation, Covariance, Correlation)
# Outputs made of noisy sums.
Released = CountRows | CountUnits | CountValues | CountDistinct | Moment
PlannedOutput = Released | Quantile | Ranking


RECORDS: Mapping[AggregateKind, Callable[..., PlannedOutput]] = {
    record.kind: record for record in (CountValues, CountUnits, CountDistinct, *MOMENTS, Quantile)
}


def planned(output: Output, release: int, *columns: int) -> PlannedOutput:
    """Return the record of an aggregate that comes from this release, or draw, and these indices of columns."""
    name, kind = output.name, output.aggregate.kind
    if kind == "top":
        return Ranking(name)
    return CountRows(name, release) if kind == "count" and not columns else RECORDS[kind](name, release, *columns)
