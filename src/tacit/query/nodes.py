"""The question as frozen records: the one tree that both doors, SQL and Python, make. An operator is a call too."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise
from typing import Literal as OneOf

# The nodes of a row expression. A decimal is an exact base-ten number; an int or decimal never becomes a float unasked.
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


def with_parts(expression: Expression, put: Callable[[Expression], Expression | None]) -> Expression:
    """Return an expression with the result of `put` in place of each part for which it is not None, from outside."""
    found = put(expression)
    if found is not None or not isinstance(expression, Call):
        return expression if found is None else found
    return Call(expression.function, tuple(with_parts(each, put) for each in expression.arguments))


def renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    """Return an expression with its columns renamed."""
    return with_parts(
        expression, lambda each: Column(names.get(each.name, each.name)) if isinstance(each, Column) else None
    )


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
    """An aggregate over the rows of each group.

    `count` without an expression counts rows, with one the rows in which it is not NULL. Ranges may be in the
    declaration instead. A quantile's fraction is 0 for the least value and 1 for the greatest; `of` None leaves it to
    the declared bounds. One unit brings at most `per_unit` different values to a group; `top` ranks the `best` of the
    public keys.
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
    """A column of the answer that rows are grouped by."""

    name: str
    expression: Expression


@dataclass(frozen=True)
class Output:
    """A named aggregate of the answer."""

    name: str
    aggregate: Aggregate


@dataclass(frozen=True)
class Ordering:
    """Sort the noisy answer by an expression over its columns; NULL comes last, unless it is to be first."""

    expression: Expression
    descending: bool = False
    nulls_first: bool = False


def reordered(order: tuple[Ordering, ...], change: Callable[[Expression], Expression]) -> tuple[Ordering, ...]:
    return tuple(replace(each, expression=change(each.expression)) for each in order)


# The rows of a window's frame, counted from its own row: (-2, 0) is the two before it and itself; None means unbounded.
RowsAround = tuple[int | None, int | None]


@dataclass(frozen=True)
class Window:
    """A function over the rows of the noisy answer that HAVING keeps: RANK() OVER (...), SUM(n) OVER (...).

    Its result is a column of that name, which other expressions use. Without a frame it is over the whole partition, or
    with an order up to its row and those that are equal to it, as SQL has it.
    """

    name: str
    function: str
    arguments: tuple[Expression, ...] = ()
    partition: tuple[Expression, ...] = ()
    order: tuple[Ordering, ...] = ()
    frame: RowsAround | None = None

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (*self.arguments, *self.partition, *(each.expression for each in self.order))

    def changed(self, change: Callable[[Expression], Expression]) -> "Window":
        arguments, partition = tuple(map(change, self.arguments)), tuple(map(change, self.partition))
        return replace(self, arguments=arguments, partition=partition, order=reordered(self.order, change))


@dataclass(frozen=True)
class Shown:
    """A column of the answer, computed from its keys, outputs and windows; `check` finds its type."""

    name: str
    expression: Expression
    type: Type = "null"


@dataclass(frozen=True)
class PostProcessing:
    """All steps on the noisy answer, in their order: post-processing, so they are free.

    `having` reads keys and outputs, `windows` the rows that it keeps, and `qualify` the windows too. Without `shown`
    all keys and outputs are. `distinct` keeps the first of rows that show the same.
    """

    having: Expression | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    windows: tuple[Window, ...] = ()
    qualify: Expression | None = None
    shown: tuple[Shown, ...] = ()
    distinct: bool = False
    offset: int = 0

    @property
    def parts(self) -> tuple[Expression, ...]:
        """All of its expressions."""
        listed: tuple[Shown | Ordering, ...] = (*self.shown, *self.order)
        given = (*(each.expression for each in listed), self.having, self.qualify)
        windows = (part for window in self.windows for part in window.parts)
        return (*(each for each in given if each is not None), *windows)

    def shown_outputs(self, outputs: Collection[str]) -> frozenset[str]:
        """Return which outputs are shown as they are, and not only as parts of computed columns."""
        named = {each.expression.name for each in self.shown if isinstance(each.expression, Column)}
        return frozenset(outputs) & named if self.shown else frozenset(outputs)

    def picks_by_noise(self, outputs: Collection[str]) -> bool:
        """Return whether noisy numbers, and not only keys, decide which rows of the answer are kept."""
        deciding = [each for each in (self.having, self.qualify) if each is not None]
        if self.limit is not None or self.offset > 0:
            deciding += [each.expression for each in self.order]
        noisy = self.noisy_columns(outputs)
        return any(not columns_of(each).isdisjoint(noisy) for each in deciding)

    def noisy_columns(self, outputs: Collection[str]) -> frozenset[str]:
        """Return the names of outputs and of the windows with values that depend on them."""
        noisy = set(outputs)
        for window in self.windows:
            counted = self.having is not None and not columns_of(self.having).isdisjoint(noisy)
            if counted or any(not columns_of(part).isdisjoint(noisy) for part in window.parts):
                noisy.add(window.name)
        return frozenset(noisy)

    def with_intervals(self, outputs: Collection[str]) -> tuple[str, ...]:
        """Return the shown columns that are noisy numbers, so that each has a low and a high end."""
        noisy = self.noisy_columns(outputs)
        numbers = [each for each in self.shown if each.type in ("int", "decimal", "float")]
        return tuple(each.name for each in numbers if not columns_of(each.expression).isdisjoint(noisy))


# --- what a question is about ---

UnitAggregateKind = OneOf["count", "count_distinct", "sum", "mean", "min", "max", "all", "any"]


@dataclass(frozen=True)
class UnitAggregate:
    """An exact and secret aggregate over one unit's rows: a pure function of them, in any order."""

    kind: UnitAggregateKind
    expression: Expression | None = None


@dataclass(frozen=True)
class UnitOutput:
    """A column of the aggregates of a unit's rows."""

    name: str
    aggregate: UnitAggregate


@dataclass(frozen=True)
class TableRows:
    """The rows of a declared table."""

    name: str


@dataclass(frozen=True)
class PerUnit:
    """A row for each unit and key of `source`, with the unit, the keys and the outputs: GROUP BY unit, keys."""

    source: "Relation"
    where: Expression | None = None
    keys: tuple[Key, ...] = ()
    outputs: tuple[UnitOutput, ...] = ()


@dataclass(frozen=True)
class PublicRows:
    """The rows of a public table, known by its content. They are public and belong to no unit."""

    name: str
    digest: str


@dataclass(frozen=True)
class RowWise:
    """The rows of `source` that satisfy a condition, as the unit and these columns."""

    source: "Relation"
    columns: tuple[Key, ...]
    where: Expression | None = None


JoinKind = OneOf["inner", "left"]
# Expressions of either side's columns that must be equal; NULL equals nothing.
Matches = tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True)
class JoinedColumn:
    """A column of a join: its name there, the side it comes from, and its name on that side."""

    name: str
    side: OneOf["left", "right"]
    column: str


@dataclass(frozen=True)
class Join:
    """The rows of `left`, each beside the rows of `right` that match it, and of the same unit.

    A private `right` matches on the unit, always, and on `on` besides. A public one matches only on `on`, and at most
    `most` of its rows match a row. `how` "left" keeps rows without a match too, with NULL beside them.
    """

    left: "Relation"
    right: "Relation"
    how: JoinKind
    on: Matches
    columns: tuple[JoinedColumn, ...]
    most: int | None = None


@dataclass(frozen=True)
class Marked:
    """The rows of `source`, with a column for whether any row of `others` matches: EXISTS, or IN.

    Private `others` match on the unit, always. `is_in`: NULL where SQL's IN is, for a value or among `others`.
    """

    source: "Relation"
    others: "Relation"
    on: Matches
    name: str
    is_in: bool = False
    columns: tuple[str, ...] | None = field(default=None, repr=False)  # the needed columns of `source`; None: all


# A salted hash puts every unit at one of this many places.
PLACES = 1 << 32


@dataclass(frozen=True)
class SomeUnits:
    """All rows of the units of `source` with a place from `first` up to `end`.

    A unit's place is a number below PLACES: a hash of only the salt and the unit, or if rows are units, of the salt and
    the row's values in `columns`. `hand` is a column with one of `hands` numbers, by the unit's place.
    """

    source: "Relation"
    salt: str
    first: int
    end: int
    columns: tuple[str, ...] = ()
    hands: int = 0
    hand: str = ""
    needed: tuple[str, ...] | None = field(default=None, repr=False)  # columns of `source` that go on; None: all


Relation = TableRows | PerUnit | PublicRows | RowWise | Join | Marked | SomeUnits


def sources_of(relation: Relation) -> "tuple[Relation, ...]":
    """Return the relations that a relation is made of, the one with its units first."""
    if isinstance(relation, TableRows | PublicRows):
        return ()
    if isinstance(relation, Join):
        return relation.left, relation.right
    return (relation.source, relation.others) if isinstance(relation, Marked) else (relation.source,)


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken, with a number if needed; case is ignored, since engines ignore it."""
    known, made, number = {each.lower() for each in taken}, name, 2
    while made.lower() in known:
        made, number = f"{name}_{number}", number + 1
    return made


TOTAL = "total"  # what the level of all groups together is called


def level_word(names: Sequence[str], levels: Sequence[tuple[int, ...]], kept: tuple[int, ...]) -> str:
    """Return what a level is called: by its last key in a ROLLUP, otherwise by all of its keys."""
    order = sorted(levels, key=len)
    is_chain = all(set(one) < set(two) for one, two in pairwise(order))
    own = [names[each] for each in kept]
    return (own[-1] if is_chain else ", ".join(own)) if own else TOTAL


# A level, by the places of its keys, and the public number of each of its groups.
PublicTotals = tuple[tuple[int, ...], tuple[tuple[tuple[Scalar, ...], Fraction], ...]]


@dataclass(frozen=True)
class Query:
    """A whole question about one protected table."""

    table: str
    outputs: tuple[Output, ...]
    where: Expression | None = None
    keys: tuple[Key, ...] = ()
    # the public list of keys, each a tuple in the order of `keys`; None: declared per column, or by partition selection
    public_keys: tuple[tuple[Scalar, ...], ...] | None = None
    # down to how many people groups should be found; None: the usual number
    smallest: int | None = None
    after: PostProcessing = PostProcessing()
    # the order of the answer's columns, by name
    columns: tuple[str, ...] = ()
    # the rows of the question, if they are not the table's own; expressions then read this relation's columns
    relation: Relation | None = None
    # the totals that are asked with the groups: the places of the keys of each level, the groups' own first
    levels: tuple[tuple[int, ...], ...] = field(default=(), repr=False)
    # totals that are public, by the places of their level's keys: each group's keys, and its number
    public_totals: tuple[PublicTotals, ...] = field(default=(), repr=False)
    # whether the rows of groups that are not shown are one more group, in each parent of a tree of keys
    other: bool = field(default=False, repr=False)
    # the text's names for columns of that relation, if they differ
    names: tuple[tuple[str, str], ...] = field(default=(), compare=False, repr=False)

    def level_name(self, kept: tuple[int, ...]) -> str:
        """Return what `weights` and `error` call a level."""
        return level_word([key.name for key in self.keys], self.levels, kept)
