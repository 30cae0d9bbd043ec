"""The record of one SQL function, and the rules that many records share.

To add a function, write one record, one spelling (`expressions.py`) and one translation (`engine/translations.py`).
Tests name the table that lacks it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tacit.errors import QueryRefused
from tacit.query.literal import adapted
from tacit.query.nodes import (
    DATE,
    FLOAT,
    INT,
    TEXT,
    TIMESTAMP,
    Call,
    Expression,
    Kind,
    Scalar,
    Value,
    common,
    decimal,
    kind_of_value,
)


@dataclass(frozen=True)
class CheckedCall:
    """A call while its types are checked: its constants, and its text, written out only where an error needs it."""

    call: Call
    show: Callable[[Expression], str]

    def __str__(self) -> str:
        return self.show(self.call)

    def constant(self, index: int) -> Scalar:
        """Return the constant argument at this index, from 0; None if the argument is not a constant."""
        argument = self.call.arguments[index]
        return argument.value if isinstance(argument, Value) else None


@dataclass(frozen=True)
class Pen:
    """The text of a call's arguments: unchanged, or in brackets if they need them beside an operator."""

    plain: Callable[[Expression], str]
    bracketed: Callable[[Expression], str]


Kinds = tuple[Kind, ...]
TypeRule = Callable[[Kinds, CheckedCall], Kind]
KindOf = Callable[[Expression], Kind]
Adapt = Callable[[CheckedCall, KindOf], Call]
Rewrite = Callable[[CheckedCall, KindOf], Expression]
Evaluate = Callable[..., Any]
Write = Callable[[Call, Pen], str]
# the most bytes of text that an argument can have
BytesOf = Callable[[Expression], int]
# an upper bound on the length of a text: (times the longest text of the row, plus this number of characters)
Length = tuple[int, int]


def by_name(call: Call, pen: Pen) -> str:
    return f"{call.function.upper()}({', '.join(map(pen.plain, call.arguments))})"


@dataclass(frozen=True)
class Notation:
    """How a call is written as SQL; an operator gets brackets if it is an argument of another operator."""

    write: Write = by_name
    is_operator: bool = False


def infix(sign: str) -> Notation:
    """Return the notation of an operator that stands between its arguments."""

    def write(call: Call, pen: Pen) -> str:
        return f" {sign} ".join(map(pen.bracketed, call.arguments))

    return Notation(write, is_operator=True)


def longest(parts: list[Length]) -> Length:
    """Return the length of a text that is one of its arguments."""
    return max(times for times, _ in parts), max(more for _, more in parts)


def no_bytes(_call: Call, _bytes_of: BytesOf) -> int:
    """Return 0: the function makes no text, or reads no text."""
    return 0


def same_bytes(call: Call, bytes_of: BytesOf) -> int:
    """Return the bytes of a text that is one of the arguments."""
    return max(map(bytes_of, call.arguments), default=0)


def looks(times: int) -> Callable[[Call, BytesOf], int]:
    """Return the cost of a function that reads every byte of its arguments `times` times."""
    return lambda call, bytes_of: times * sum(map(bytes_of, call.arguments))


@dataclass(frozen=True)
class Cost:
    """The largest cost of a call for any row. `mentions` is the number of times that its translation mentions each
    argument, `mentions_by_constant` the same if the last argument is a constant."""

    mentions: int = 1
    mentions_by_constant: int | None = None
    bytes_read: Callable[[Call, BytesOf], int] = no_bytes
    text_bytes: Callable[[Call, BytesOf], int] = no_bytes
    text_length: Callable[[list[Length]], Length] = longest


@dataclass(frozen=True)
class Function:
    """A function or operator, with all facts about it in the question language.

    `kind` takes the kinds of the arguments and returns the result's, or refuses. Before it, `adapt` turns constants
    into the type they meet; after it, `rewrite` returns the one tree for all ways of writing the same. `evaluate` is
    its value in Python, None for NULL; `limit` refuses a call that is too large.
    """

    name: str
    form: str
    meaning: str
    kind: TypeRule
    evaluate: Evaluate
    adapt: Adapt | None = None
    rewrite: Rewrite | None = None
    notation: Notation = Notation()
    cost: Cost = Cost()
    limit: Callable[[Call], None] | None = None
    counts: tuple[int, ...] | None = None

    def kind_of_call(self, kinds: Kinds, where: CheckedCall) -> Kind:
        """Return the kind of a call's result, or refuse the call."""
        if self.counts is not None and len(kinds) not in self.counts:
            raise QueryRefused(f"{where} has {len(kinds)} argument(s)\nhint: write {self.form}")
        return self.kind(kinds, where)


def gives(result: Kind, rule: TypeRule) -> TypeRule:
    """Return the rule of a function that takes the arguments of another rule, and gives this kind."""

    def kind(kinds: Kinds, where: CheckedCall) -> Kind:
        rule(kinds, where)
        return result

    return kind


def one_kind(kinds: Kinds, where: object) -> Kind:
    """Return the kind that all arguments share, at least one of which is not NULL."""
    result = Kind("null")
    for kind in kinds:
        result = common(result, kind, where=where)
    if result.type == "null":
        raise QueryRefused(f"{where} is NULL for every row\nhint: leave it out, or give one result that is not NULL")
    return INT if result.type == "int" else result


def text(kinds: Kinds, where: object) -> Kind:
    """Return text, if all arguments are."""
    for kind in kinds:
        if kind.type != "text":
            raise QueryRefused(f"{where} needs text, but has {kind.phrase}\nhint: CAST(x AS TEXT) first")
    return TEXT


def any_numbers(kinds: Kinds, where: object) -> Kind:
    """Return whether numbers are together int, decimal or float."""
    refuse_null(kinds, where)
    for kind in kinds:
        if not kind.is_number:
            raise QueryRefused(f"{where} needs numbers, but has {kind.phrase}\nhint: {_way_to_number(kind)}")
    types = {kind.type for kind in kinds}
    return FLOAT if "float" in types else decimal(1, 0) if "decimal" in types else INT


def numbers(kinds: Kinds, where: object) -> Kind:
    """Return the kind that two numbers share."""
    any_numbers(kinds, where)
    return common(kinds[0], kinds[1], where=where)


def whole_numbers(kinds: Kinds, where: object) -> Kind:
    """Return int, if all arguments are whole numbers."""
    if any_numbers(kinds, where) != INT:
        raise QueryRefused(f"{where} needs whole numbers\nhint: CAST(x AS INT) % 10, or FLOOR(a / b) for a // b")
    return INT


def number(kinds: Kinds, where: object) -> Kind:
    """Return the kind of the first argument, a number."""
    kind = numbers((kinds[0], kinds[0]), where)
    return INT if kind.type == "int" else kind


def refuse_null(kinds: Kinds, where: object) -> None:
    if any(kind.type == "null" for kind in kinds):
        raise QueryRefused(f"{where} is NULL for every row\nhint: write x IS NULL or x IS NOT NULL")


def _way_to_number(kind: Kind) -> str:
    if kind.is_time:
        return (
            "DATE_DIFF('day', a, b) is a time difference, x + INTERVAL 3 DAY another day, EXTRACT(YEAR FROM x) a number"
        )
    return "CAST(x AS INT) or CAST(x AS FLOAT) first" if kind.type in ("text", "bool") else "use a number"


def all_adapted(checked: CheckedCall, kind_of: KindOf) -> Call:
    """Return the call with its constants as the type of the columns they meet: '2011-01-31' beside a date is that."""
    call = checked.call
    return Call(call.function, adapted_together(call.arguments, kind_of, checked))


def adapted_together(arguments: tuple[Expression, ...], kind_of: KindOf, where: object) -> tuple[Expression, ...]:
    """Return arguments that meet each other, with each constant as the type that the others share."""
    kinds = [kind_of(argument) for argument in arguments if not isinstance(argument, Value)]
    target = Kind("null")
    for kind in kinds:
        target = common(target, kind, where=where)
    constants = [kind_of_value(argument).type for argument in arguments if isinstance(argument, Value)]
    if target == DATE and "timestamp" in constants:
        target = TIMESTAMP
    if target.is_number and "float" in constants:
        target = FLOAT
    return tuple(adapted_one(argument, target) for argument in arguments)


def as_floats(checked: CheckedCall, _kind_of: KindOf) -> Call:
    call = checked.call
    return Call(call.function, tuple(adapted_one(argument, FLOAT) for argument in call.arguments))


def flat_parts(call: Call) -> tuple[Expression, ...]:
    """Return the arguments of a call, with those of calls of the same function in their place."""
    parts: list[Expression] = []
    for argument in call.arguments:
        is_same = isinstance(argument, Call) and argument.function == call.function
        parts += argument.arguments if isinstance(argument, Call) and is_same else (argument,)
    return tuple(parts)


def each_once(arguments: Iterable[Expression]) -> tuple[Expression, ...]:
    parts = {repr(argument): argument for argument in arguments}
    return tuple(parts[text] for text in sorted(parts))


def only_one(function: str, arguments: tuple[Expression, ...]) -> Expression:
    return arguments[0] if len(arguments) == 1 else Call(function, arguments)


def adapted_one(argument: Expression, kind: Kind) -> Expression:
    return adapted(argument, kind) if isinstance(argument, Value) else argument


def strict(run: Callable[..., Any]) -> Evaluate:
    return lambda *values: None if any(value is None for value in values) else run(*values)


def aligned(left: Any, right: Any) -> tuple[Any, Any]:
    """Return two values as one type: with a float both are floats, other numbers are exact, a date is its midnight."""
    if isinstance(left, float) or isinstance(right, float):
        return as_float(left), as_float(right)
    return comparable(left), comparable(right)


def comparable(value: Any) -> Any:
    """Return a value as it is compared with others of its type."""
    if isinstance(value, Decimal):
        return Fraction(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - timestamps are without a zone
    return value


def as_float(value: Any) -> float:
    """Return a number as the nearest float, infinite beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def settled(value: Any) -> Any:
    """Return a result with NaN as NULL and −0.0 as 0.0."""
    if isinstance(value, float):
        return None if value != value else value + 0.0
    return value
