"""The question as frozen records: the one tree that both doors, SQL and Python, make. An operator is a call too.

The kind of an expression: its type and the digits that an exact number can need. An operation with a result that
might not fit 38 digits is refused from the question, so rows cannot overflow it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from fractions import Fraction
from itertools import pairwise
from math import isfinite
from typing import TYPE_CHECKING
from typing import Literal as OneOf

from tacit.errors import QueryRefused
from tacit.tables import ColumnFacts

if TYPE_CHECKING:
    from tacit.query.relations import UnitWindow

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


@dataclass(frozen=True)
class Windowed:
    """The rows of `source` that satisfy a condition, with windows over each unit's own rows as columns."""

    source: "Relation"
    windows: "tuple[UnitWindow, ...]"
    where: Expression | None = None
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


Relation = TableRows | PerUnit | PublicRows | RowWise | Join | Marked | SomeUnits | Windowed


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


DIGITS_MAX = 38
SCALE_MAX = 37  # a digit stays before the point, which engines write as 0 or leave out
INT_DIGITS = 19
INT_LEAST, INT_MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Kind:
    """A type; for int and decimal also the digits in all and those after the point."""

    type: Type
    digits: int = 0
    scale: int = 0

    @property
    def is_number(self) -> bool:
        return self.type in ("int", "decimal", "float")

    @property
    def phrase(self) -> str:
        return f"{'an' if self.type == 'int' else 'a'} {self.type}"

    @property
    def is_time(self) -> bool:
        return self.type in ("date", "timestamp")


BOOL, INT, FLOAT, TEXT = Kind("bool"), Kind("int", INT_DIGITS), Kind("float"), Kind("text")
DATE, TIMESTAMP, NULL = Kind("date"), Kind("timestamp"), Kind("null")
_PLAIN: dict[str, Kind] = {kind.type: kind for kind in (BOOL, INT, FLOAT, TEXT, DATE, TIMESTAMP, NULL)}


def decimal(digits: int, scale: int) -> Kind:
    """Return the kind of exact numbers with `digits` digits, `scale` of them after the point."""
    return Kind("decimal", digits, scale)


def kind_of_type(name: Type) -> Kind:
    """Return the kind of every type but decimal, which needs its digits."""
    return _PLAIN[name]


def kind_of_column(name: str, facts: ColumnFacts) -> Kind:
    """Return what reading a declared column yields."""
    if facts.type == "other" or facts.scale > SCALE_MAX:
        raise QueryRefused(
            f"column '{name}' has a type that questions cannot use"
            "\nhint: convert it in the source, or declare a type that all its cells can be read as:"
            f" columns={{'{name}': {{'type': 'text'}}}}"
        )
    if facts.type == "decimal":
        return decimal(max(facts.digits, facts.scale), facts.scale)
    return kind_of_type(facts.type)


def kind_of_value(value: Value) -> Kind:
    """Return the kind of a constant; an exact number's kind has exactly the digits that it needs."""
    if value.type not in ("int", "decimal") or not isinstance(value.value, int | Fraction):
        return kind_of_type(value.type)
    return _decimal_kind(Fraction(value.value)) if value.type == "decimal" else Kind("int", len(str(abs(value.value))))


def common(left: Kind, right: Kind, *, where: object) -> Kind:
    """Return the kind that holds every value of both; refuse if there is none."""
    if left.type == "null" or right.type == "null":
        return right if left.type == "null" else left
    if left.is_number and right.is_number:
        return _common_number(left, right, where=where)
    if left.is_time and right.is_time:
        return left if left == right else TIMESTAMP
    if left.type == right.type:
        return left
    raise QueryRefused(f"{where} mixes {left.phrase} with {right.phrase}\nhint: {_way_out(left, right)}")


def fits(digits: int, scale: int, *, where: object) -> Kind:
    """Return decimal(digits, scale), or refuse it for needing more than 38 digits."""
    if digits > DIGITS_MAX or scale > SCALE_MAX:
        raise QueryRefused(
            f"{where} can need {digits} digits, {scale} after the point; the limits are {DIGITS_MAX} and {SCALE_MAX}"
            "\nhint: make an argument smaller first, e.g. CAST(x AS DECIMAL(12, 2)), or use CAST(x AS FLOAT)"
        )
    return decimal(digits, scale)


def _common_number(left: Kind, right: Kind, *, where: object) -> Kind:
    if "float" in (left.type, right.type):
        return FLOAT
    scale = max(left.scale, right.scale)
    digits = max(left.digits - left.scale, right.digits - right.scale) + scale
    if left.type == right.type == "int":
        return Kind("int", digits)
    return fits(digits, scale, where=where)


def _way_out(left: Kind, right: Kind) -> str:
    types = {left.type, right.type}
    if "text" in types:
        other = right.type if left.type == "text" else left.type
        if other in ("date", "timestamp"):
            word = other.upper()
            return f"write a constant as {word} '2011-01-31', or turn the text into one: CAST(x AS {word})"
        if other == "bool":
            return "compare a bool with TRUE or FALSE, without quotes"
        return "write numbers without quotes and text in single quotes, or read text as a number: CAST(x AS FLOAT)"
    if "bool" in types:
        return "turn the bool into a number: CAST(x AS INT)"
    return "compare values of one type; CAST(x AS INT), CAST(x AS TEXT) or CAST(x AS DATE) converts one of them"


def scale_of(value: Fraction, most: int | None = None) -> int:
    """Return the number of a decimal's digits after the point, up to `most`."""
    scale = 0
    while scale != most and (value * 10**scale).denominator != 1:
        scale += 1
    return scale


def _decimal_kind(value: Fraction) -> Kind:
    scale = scale_of(value, SCALE_MAX + 1)
    if scale > SCALE_MAX:
        raise QueryRefused("a constant has more than 37 digits after the point\nhint: write a shorter decimal")
    digits = max(len(str(abs(int(value * 10**scale)))), scale)
    if digits > DIGITS_MAX:
        raise QueryRefused("a constant has more than 38 digits\nhint: write a shorter number, or a float such as 1e40")
    return decimal(max(digits, 1), scale)


def value_of(constant: object) -> Value:
    """Return a Python constant as a node; whole numbers are ints, other exact ones decimals."""
    if constant is None:
        return Value(None, "null")
    if isinstance(constant, bool):
        return Value(constant, "bool")
    if isinstance(constant, int | Fraction):
        return _exact_value(Fraction(constant))
    if isinstance(constant, float):
        if not isfinite(constant):
            raise QueryRefused("a constant must be a finite number\nhint: write a number such as 1e300")
        return Value(constant + 0.0, "float")
    if isinstance(constant, str):
        return Value(constant, "text")
    if isinstance(constant, datetime):
        return Value(constant, "timestamp")
    if isinstance(constant, date):
        return Value(constant, "date")
    raise QueryRefused(
        f"a constant cannot be a {type(constant).__name__}\nhint: use a number, text, a date, a bool or None"
    )


def _exact_value(exact: Fraction) -> Value:
    if exact.denominator == 1 and INT_LEAST <= exact <= INT_MOST:
        return Value(int(exact), "int")
    value = Value(exact, "decimal")
    kind_of_value(value)
    return value
