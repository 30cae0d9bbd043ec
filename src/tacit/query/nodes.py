"""The question as frozen records: the one tree that both doors, SQL and Python, make.

Three nodes are enough for row expressions: a column, a literal, and a call of a function from the catalogue
(`query/catalogue.py`); operators are calls too. Nothing here knows SQL, an engine or a table's contents.
"""

from dataclasses import dataclass
from datetime import date, datetime
from fractions import Fraction
from typing import Literal as OneOf

# What a row expression can be. A decimal is an exact base-ten number; an int or decimal never becomes a float unasked.
Type = OneOf["bool", "int", "float", "decimal", "text", "date", "timestamp", "null"]
Scalar = None | bool | int | float | Fraction | str | date | datetime


@dataclass(frozen=True)
class Column:
    """A column of the protected table."""

    name: str


@dataclass(frozen=True)
class Value:
    """A constant written in the question."""

    value: Scalar
    type: Type


@dataclass(frozen=True)
class Call:
    """A function or operator of the catalogue, on row expressions."""

    function: str
    arguments: "tuple[Expression, ...]"


Expression = Column | Value | Call


def columns_of(expression: Expression | None) -> frozenset[str]:
    """Return the names of all columns an expression reads."""
    if isinstance(expression, Column):
        return frozenset((expression.name,))
    if isinstance(expression, Call):
        return frozenset().union(*(columns_of(argument) for argument in expression.arguments))
    return frozenset()


def functions_of(expression: Expression) -> frozenset[str]:
    """Return the names of all functions an expression calls."""
    if not isinstance(expression, Call):
        return frozenset()
    return frozenset((expression.function,)).union(*(functions_of(argument) for argument in expression.arguments))


AggregateKind = OneOf[
    "count",
    "count_units",
    "count_distinct",
    "sum",
    "mean",
    "variance",
    "std",
    "quantile",
    "covariance",
    "correlation",
    "top",
]


QuantileOf = OneOf["people", "rows"]


@dataclass(frozen=True)
class Aggregate:
    """One aggregate over the rows of each group.

    `count` without an expression counts rows, with one the rows where it is not NULL; `count_units` counts units; the
    others need an expression, and a public range either here or in the table's declaration. A `quantile` has its
    fraction: 0 is the least value and 1 the greatest. `covariance` and `correlation` have an other expression.
    A quantile is `of` people, each of whom counts once, or of rows; None leaves it to the bounds that are declared.
    `count_distinct` counts an expression's values, of which one unit brings at most `per_unit` to a group; `top` ranks
    the `best` of the public keys by their units.
    """

    kind: AggregateKind
    expression: Expression | None = None
    between: tuple[Fraction, Fraction] | None = None
    step: Fraction | None = None
    fraction: Fraction | None = None
    other: Expression | None = None
    other_between: tuple[Fraction, Fraction] | None = None
    per_unit: int | None = None
    best: int | None = None
    of: QuantileOf | None = None


@dataclass(frozen=True)
class Key:
    """One column of the answer that rows are grouped by."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Output:
    """One named aggregate of the answer."""

    name: str
    aggregate: Aggregate


@dataclass(frozen=True)
class Ordering:
    """Sort the noisy answer by one of its columns."""

    name: str
    descending: bool = False


@dataclass(frozen=True)
class PostProcessing:
    """HAVING, ORDER BY and LIMIT on the noisy answer: post-processing, so it costs nothing.

    `having` is an expression over the answer's own columns (keys and outputs), given as `Column` nodes.
    """

    having: Expression | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None


@dataclass(frozen=True)
class Query:
    """A whole question about one protected table."""

    table: str
    outputs: tuple[Output, ...]
    where: Expression | None = None
    keys: tuple[Key, ...] = ()
    # the public list of keys, each a tuple in the order of `keys`; None: declared per column, or by partition selection
    public_keys: tuple[tuple[Scalar, ...], ...] | None = None
    after: PostProcessing = PostProcessing()
    # the order of the answer's columns, by name
    columns: tuple[str, ...] = ()
