"""Values of rows: pieces of SQL with a type, which become one text when a relation is written.

Every operation stands in parentheses. Every cast is a TRY_CAST, which gives NULL where a cell does not fit. Every text
and every name is quoted here, by `text_of` and `quoted`, and nowhere else.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from tacit.typed_sql.types import (
    BOOLEAN,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    INT128,
    INTERVAL,
    NULL,
    STRING,
    STRUCT,
    TIMESTAMP,
    Type,
    decimal,
    operated,
    parsed,
    product_of,
    sum_of,
    total_of,
    widest,
)

if TYPE_CHECKING:
    from tacit.typed_sql.selects import Relation

Constant = bool | int | float | str | None


def _method(name: str, dtype: Type | None = None, *constants: Constant) -> "Callable[..., Typed]":
    """Return a function of DuckDB's as a method of values, with the value's own type if it gives no other."""
    return lambda value, *given: call(name, value.dtype if dtype is None else dtype, value, *given, *constants)


def _rounding(name: str) -> "Callable[[Typed], Typed]":
    """Return a function that leaves no digits after the point, but the type; NaN and infinities stay."""

    def method(value: "Typed") -> "Typed":
        if value.dtype.is_whole():
            return value  # DuckDB would make a float of it
        return call(name, decimal(value.dtype.digits, 0) if value.dtype.is_decimal() else value.dtype, value)

    return method


def _of_whole(operator: str) -> "Callable[[Typed, Typed | Constant], Typed]":
    def method(left: "Typed", other: "Typed | Constant") -> "Typed":
        right = _beside(left, other)
        if not (left.dtype.is_whole() and right.dtype.is_whole()):
            raise TypeError(f"{operator} needs whole numbers, not {left.dtype} and {right.dtype}")
        return binary(left, operator, right, operated(left.dtype, right.dtype))

    return method


def _comparison(operator: str) -> "Callable[[Typed, Typed | Constant], Typed]":
    """Return a comparison; a constant in it has the same meaning whatever its width."""
    return lambda left, right: binary(_plain_text(left), operator, _plain_text(right), BOOLEAN)


class Typed:
    """A value of each row: pieces of SQL and the type of what they give; a label, if it is to be a column."""

    __slots__ = ("dtype", "label", "pieces")

    def __init__(self, pieces: "tuple[str | Typed, ...]", dtype: Type, label: str | None = None) -> None:
        self.pieces: tuple[str | Typed, ...] = pieces
        self.dtype: Type = dtype
        self.label: str | None = label

    def type(self) -> Type:
        return self.dtype

    def name(self, label: str) -> "Typed":
        return Typed((self,), self.dtype, label)

    def cast(self, to: Type | str) -> "Typed":
        """Return the value as another type, NULL where it does not fit; it never raises."""
        to = as_type(to)
        return self if self.dtype == to else Typed(("TRY_CAST(", self, f" AS {to.sql})"), to)

    # --- arithmetic ---

    def __add__(self, other: "Typed | Constant") -> "Typed":
        if self.dtype.is_string():
            return binary(self, "||", as_value(other), STRING)
        if isinstance(other, Typed) and other.dtype == INTERVAL:
            return binary(self, "+", other, TIMESTAMP)
        right = _beside(self, other)
        return binary(self, "+", right, total_of(self.dtype, right.dtype))

    def __sub__(self, other: "Typed | Constant") -> "Typed":
        right = _beside(self, other)
        return binary(self, "-", right, total_of(self.dtype, right.dtype))

    def __mul__(self, other: "Typed | Constant") -> "Typed":
        right = _beside(self, other)
        return binary(self, "*", right, product_of(self.dtype, right.dtype))

    def __truediv__(self, other: "Typed | Constant") -> "Typed":
        right = _beside(self, other)
        is_short = widest(self.dtype, right.dtype) == FLOAT32
        return binary(self, "/", right, FLOAT32 if is_short else FLOAT64)

    # towards 0; NULL where the divisor is 0
    __floordiv__: ClassVar["Method"] = _of_whole("//")
    __mod__: ClassVar["Method"] = _of_whole("%")
    __rshift__: ClassVar["Method"] = _of_whole(">>")
    __lshift__: ClassVar["Method"] = _of_whole("<<")

    def __and__(self, other: "Typed | Constant") -> "Typed":
        return binary(self, "AND", as_value(other), BOOLEAN) if self.dtype == BOOLEAN else _of_whole("&")(self, other)

    def __or__(self, other: "Typed | Constant") -> "Typed":
        return binary(self, "OR", as_value(other), BOOLEAN)

    def __invert__(self) -> "Typed":
        return Typed(("(NOT ", self, ")"), BOOLEAN)

    def __neg__(self) -> "Typed":
        return Typed(("(- ", self, ")"), self.dtype)

    # --- comparisons ---

    __eq__: ClassVar["Method"] = _comparison("=")  # type: ignore[assignment]  # comparisons in SQL
    __ne__: ClassVar["Method"] = _comparison("<>")  # type: ignore[assignment]
    __lt__: ClassVar["Method"] = _comparison("<")
    __le__: ClassVar["Method"] = _comparison("<=")
    __gt__: ClassVar["Method"] = _comparison(">")
    __ge__: ClassVar["Method"] = _comparison(">=")
    identical_to: ClassVar["Method"] = _comparison("IS NOT DISTINCT FROM")

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise TypeError("a value of SQL is neither true nor false in Python")

    def between(self, low: "Typed | Constant", high: "Typed | Constant") -> "Typed":
        return Typed(("(", self, " BETWEEN ", _plain_text(low), " AND ", _plain_text(high), ")"), BOOLEAN)

    def isin(self, listed: "Iterable[Typed | Constant]") -> "Typed":
        """Return whether it is one of those listed; FALSE if there are none."""
        values = [_plain_text(each) for each in listed]
        return Typed(("(", self, " IN (", *commas(values), "))"), BOOLEAN) if values else literal(False)

    def isnull(self) -> "Typed":
        return Typed(("(", self, " IS NULL)"), BOOLEAN)

    def notnull(self) -> "Typed":
        return Typed(("(", self, " IS NOT NULL)"), BOOLEAN)

    isnan: ClassVar["Method"] = _method("ISNAN", BOOLEAN)
    isinf: ClassVar["Method"] = _method("ISINF", BOOLEAN)
    nullif: ClassVar["Method"] = _method("NULLIF")

    def fill_null(self, other: "Typed | Constant") -> "Typed":
        """Return another value where it is NULL."""
        right = _beside(self, other)
        return call("COALESCE", widest(self.dtype, right.dtype), self, right)

    # --- numbers ---

    abs: ClassVar["Method"] = _method("ABS")  # the least whole number of a type has none, and raises
    sign: ClassVar["Method"] = _method("SIGN", INT8)
    sqrt: ClassVar["Method"] = _method("SQRT", FLOAT64)
    floor: ClassVar["Method"] = _rounding("FLOOR")
    ceil: ClassVar["Method"] = _rounding("CEIL")
    trunc: ClassVar["Method"] = _rounding("TRUNC")

    # --- texts ---

    length: ClassVar["Method"] = _method("LENGTH", INT64)

    def byte_length(self) -> "Typed":
        return call("STRLEN" if self.dtype.is_string() else "OCTET_LENGTH", INT64, self)

    upper: ClassVar["Method"] = _method("UPPER", STRING)
    lower: ClassVar["Method"] = _method("LOWER", STRING)
    strip: ClassVar["Method"] = _method("TRIM", STRING, " \t\n\r\x0b\x0c")
    translate: ClassVar["Method"] = _method(
        "TRANSLATE", STRING
    )  # each character of one text becomes that of another at the same index
    replace: ClassVar["Method"] = _method("REPLACE", STRING)
    re_search: ClassVar["Method"] = _method("REGEXP_MATCHES", BOOLEAN)
    re_extract: ClassVar["Method"] = _method("REGEXP_EXTRACT", STRING)  # '' if there is no match
    re_replace: ClassVar["Method"] = _method("REGEXP_REPLACE", STRING, "g")

    def like(self, pattern: str) -> "Typed":
        return binary(self, "LIKE", literal(pattern), BOOLEAN)

    def substr(self, start: int, length: int) -> "Typed":
        """Return `length` characters from the index `start` on, which is 0 or more."""
        if start < 0:
            raise ValueError("an index below 0 would count from the end")
        return call("SUBSTRING", STRING, self, start + 1, length)

    sha256: ClassVar["Method"] = _method("SHA256", STRING)
    in_hex: ClassVar["Method"] = _method("HEX", STRING)

    # --- times ---

    def part(self, part: str) -> "Typed":
        """Return a part of a time: year, quarter, month, week, day, doy, isodow, hour, minute or second."""
        return Typed((f"EXTRACT({part} FROM ", self, ")"), INT64)

    def truncate(self, unit: str) -> "Typed":
        """Return the beginning of the time's year, quarter, month, week, day, hour, minute or second."""
        return call("DATE_TRUNC", self.dtype, unit, self)

    def days_since(self, earlier: "Typed") -> "Typed":
        """Return how many midnights are between two times."""
        return call("DATE_DIFF", INT64, "day", earlier, self)

    # --- of several rows ---

    def hash(self) -> "Typed":
        """Return DuckDB's hash as a number with a sign: NULL has one too."""
        return Typed(("TRY_CAST(TRY_CAST(HASH(", self, ") AS BIT) AS BIGINT)"), INT64)

    def sum(self) -> "Typed":
        """Return the sum of all rows; of truth values, how many are true."""
        added = self.cast(INT32) if self.dtype == BOOLEAN else self
        return call("SUM", sum_of(added.dtype), added)

    mean: ClassVar["Method"] = _method("AVG", FLOAT64)
    count: ClassVar["Method"] = _method("COUNT", INT64)
    min: ClassVar["Method"] = _method("MIN")
    max: ClassVar["Method"] = _method("MAX")
    arbitrary: ClassVar["Method"] = _method("ANY_VALUE")  # of some row, not NULL if there is one
    before: ClassVar["Method"] = _method("LAG")  # of the row before in a window, NULL in the first

    def nunique(self) -> "Typed":
        return Typed(("COUNT(DISTINCT ", self, ")"), INT64)

    def over(self, window: "WindowValue") -> "Typed":
        """Return an aggregate of the rows of a window, in every row."""
        return Typed((self, *window.pieces), self.dtype)

    def ordered(self, *, descending: bool, nulls_first: bool) -> "Typed":
        """Return this value for the order of a window."""
        direction = f" {'DESC' if descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"
        return Ordered((self, direction), self.dtype)


Method = Callable[..., Typed]


class ColumnValue(Typed):
    """A column of a table; without a table, the column of this name in whatever is read."""

    __slots__ = ("column", "table")

    def __init__(self, table: "Relation | None", column: str, dtype: Type) -> None:
        super().__init__((), dtype, column)
        self.table: Relation | None = table
        self.column: str = column


class Literal(Typed):
    """A whole number that is public: where it is only compared, it is written without a cast to its type."""

    __slots__ = ("plain",)

    def __init__(self, number: int, dtype: Type) -> None:
        super().__init__((f"TRY_CAST({number} AS {dtype.sql})",), dtype)
        self.plain: Typed = Typed((str(number),), dtype)


# --- constants ---


def literal(value: Constant, dtype: Type | str | None = None) -> Typed:
    """Return a public value as SQL; a whole number without a type has the narrowest one from 32 bits on.

    A float is written as text and cast: DuckDB would read a plain 0.1 as a decimal.
    """
    if value is None:
        return null(dtype)
    kind = None if dtype is None else as_type(dtype)
    if isinstance(value, bool):
        return Typed(("TRUE" if value else "FALSE",), BOOLEAN)
    if isinstance(value, str):
        return Typed((text_of(value),), STRING)
    if isinstance(value, int) and (kind is None or kind.is_whole() or kind.is_decimal()):
        return Literal(value, kind or _narrowest(value))
    if kind not in (None, FLOAT64):
        raise TypeError(f"a float is not written as the type {kind}")
    number = float(value)
    written = repr(number) if math.isfinite(number) else str(number)
    return Typed((f"TRY_CAST('{written}' AS DOUBLE)",), FLOAT64)


def _narrowest(number: int) -> Type:
    bits = (number if number >= 0 else ~number).bit_length()
    if bits > 127:
        raise OverflowError("no whole number of DuckDB is as wide")
    return INT32 if bits < 32 else INT64 if bits < 64 else INT128


def null(dtype: Type | str | None = None) -> Typed:
    return _NULL if dtype is None else _null(as_type(dtype))


_NULL = Typed(("NULL",), NULL)


@cache
def _null(kind: Type) -> Typed:
    return Typed((f"TRY_CAST(NULL AS {kind.sql})",), kind)


# --- pieces ---


def quoted(name: str) -> str:
    """Return a name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def text_of(text: str) -> str:
    """Return a text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"


def as_type(given: Type | str) -> Type:
    return parsed(given) if isinstance(given, str) else given


def as_value(given: "Typed | Constant") -> Typed:
    return given if isinstance(given, Typed) else literal(given)


def call(name: str, dtype: Type, *arguments: "Typed | Constant") -> Typed:
    """Return a function of DuckDB's; constants of Python's are written plainly."""
    values = [each if isinstance(each, Typed) else _plain_text(each) for each in arguments]
    return Typed((f"{name}(", *commas(values), ")"), dtype)


def binary(left: Typed, operator: str, right: Typed, dtype: Type) -> Typed:
    return Typed(("(", left, f" {operator} ", right, ")"), dtype)


def commas(values: "Iterable[Typed]") -> "list[str | Typed]":
    """Return values with commas between them."""
    pieces: list[str | Typed] = []
    for each in values:
        pieces += [", ", each]
    return pieces[1:]


def _plain_text(given: "Typed | Constant") -> Typed:
    value = as_value(given)
    return value.plain if isinstance(value, Literal) else value


def _beside(left: Typed, given: "Typed | Constant") -> Typed:
    """Return what stands beside a value: a constant of Python's has the value's type if it fits."""
    if not isinstance(given, int) or isinstance(given, (bool, Typed)):
        return as_value(given)
    if left.dtype.is_floating():
        return literal(float(given))
    if left.dtype.is_integer() and _fits_type(given, left.dtype):
        return literal(given, left.dtype)
    return literal(given)


def _fits_type(number: int, kind: Type) -> bool:
    bits = int(kind.kind.removeprefix("u").removeprefix("int"))
    return 0 <= number < 1 << bits if kind.kind.startswith("u") else -(1 << bits - 1) <= number < 1 << bits - 1


def _by_name(given: "str | Typed") -> Typed:
    return ColumnValue(None, given, NULL) if isinstance(given, str) else given


# --- of several values ---


def cases(*branches: "tuple[Typed, Typed | Constant]", else_: "Typed | Constant" = None) -> Typed:
    """Return the result of the first condition that holds, else the last value."""
    dtype = NULL
    pieces: list[str | Typed] = ["CASE"]
    for condition, given in branches:
        result = as_value(given)
        dtype = widest(dtype, result.dtype)
        pieces += [" WHEN ", condition, " THEN ", result]
    last = as_value(else_)
    return Typed((*pieces, " ELSE ", last, " END"), widest(dtype, last.dtype))


def least(*given: "Typed | Constant") -> Typed:
    """Return the least of several values; NULL is left out."""
    return _of_all("LEAST", given)


def greatest(*given: "Typed | Constant") -> Typed:
    """Return the greatest of several values; NULL is left out."""
    return _of_all("GREATEST", given)


def coalesce(*given: "Typed | Constant") -> Typed:
    """Return the first of several values that is not NULL."""
    return _of_all("COALESCE", given)


def _of_all(name: str, given: "Sequence[Typed | Constant]") -> Typed:
    first, *rest = (as_value(each) for each in given)
    dtype = first.dtype
    for each in rest:
        dtype = widest(dtype, each.dtype)
    return call(name, dtype, first, *rest)


def function(name: str, result: str) -> Callable[..., Typed]:
    """Return DuckDB's own function of this name, and the type that it gives."""
    kind = parsed(result)
    return lambda *arguments: call(name, kind, *arguments)


def interval(**given: int) -> Typed:
    """Return a length of time, such as days=3; it is added to a time."""
    ((unit, number),) = given.items()
    return Typed((f"INTERVAL '{number}' {unit.removesuffix('s').upper()}",), INTERVAL)


def struct(fields: "Mapping[str, Typed]") -> Typed:
    """Return several values as one, to be hashed."""
    pieces = [piece for name, value in fields.items() for piece in (", ", text_of(name), ": ", value)]
    return Typed(("{", *pieces[1:], "}"), STRUCT)


# --- windows ---


class Ranked(Typed):
    """An index in a window, from 0; without a window, among all rows."""

    __slots__ = ("function",)

    def __init__(self, function: str) -> None:
        super().__init__((f"({function}() OVER () - 1)",), INT64)
        self.function: str = function

    def over(self, window: "WindowValue") -> Typed:
        """Return the row's index in its window."""
        return Typed((f"({self.function}()", *window.pieces, " - 1)"), INT64)


class Ordered(Typed):
    """A value in the order of a window, with its direction, and the end at which NULL is."""

    __slots__ = ()


class WindowValue:
    """The rows that are seen together, and their order: NULL comes last, whatever a connection is set to."""

    __slots__ = ("pieces",)

    def __init__(self, group_by: "Sequence[str | Typed]", order_by: "Sequence[str | Typed]") -> None:
        pieces: list[str | Typed] = [" OVER ("]
        if group_by:
            pieces += ["PARTITION BY ", *commas([_by_name(each) for each in group_by])]
        for index, each in enumerate(order_by):
            written = each.pieces if isinstance(each, Ordered) else (_by_name(each), " ASC NULLS LAST")
            pieces += [", " if index else " ORDER BY ", *written]
        self.pieces: tuple[str | Typed, ...] = (*pieces, ")")


def window(
    *, group_by: "str | Sequence[str | Typed]" = (), order_by: "Typed | Sequence[str | Typed]" = ()
) -> WindowValue:
    """Return the rows with equal values of `group_by`, in the order of `order_by`."""
    return WindowValue(
        [group_by] if isinstance(group_by, str) else group_by, [order_by] if isinstance(order_by, Typed) else order_by
    )


def row_number() -> Ranked:
    """Return each row's index in its window."""
    return Ranked("ROW_NUMBER")


def dense_rank() -> Ranked:
    """Return the index of each row's value among the different values of its window."""
    return Ranked("DENSE_RANK")


def columns_in(values: "Iterable[Any]") -> "Iterable[ColumnValue]":
    """Yield the columns that values are made of; a value that occurs twice is looked at once."""
    waiting, seen = list(values), set[int]()
    while waiting:
        each = waiting.pop()
        if type(each) is str or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, ColumnValue):
            yield each
        else:
            waiting += each.pieces
