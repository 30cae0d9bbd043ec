"""Values made of several values: choices, functions and windows; and the columns that values name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tacit.typed_sql.types import INT64, INTERVAL, NULL, STRUCT, parsed, widest
from tacit.typed_sql.values import Column, Constant, Value, as_value, call, commas, text_of


def cases(*branches: "tuple[Value, Value | Constant]", else_: "Value | Constant" = None) -> Value:
    """Return the result of the first condition that holds, else the last value."""
    dtype = NULL
    pieces: list[str | Value] = ["CASE"]
    for condition, given in branches:
        result = as_value(given)
        dtype = widest(dtype, result.dtype)
        pieces += [" WHEN ", condition, " THEN ", result]
    last = as_value(else_)
    return Value((*pieces, " ELSE ", last, " END"), widest(dtype, last.dtype))


def least(*given: "Value | Constant") -> Value:
    """Return the least of several values; NULL is left out."""
    return _of_all("LEAST", given)


def greatest(*given: "Value | Constant") -> Value:
    """Return the greatest of several values; NULL is left out."""
    return _of_all("GREATEST", given)


def coalesce(*given: "Value | Constant") -> Value:
    """Return the first of several values that is not NULL."""
    return _of_all("COALESCE", given)


def _of_all(name: str, given: "Sequence[Value | Constant]") -> Value:
    first, *rest = (as_value(each) for each in given)
    dtype = first.dtype
    for each in rest:
        dtype = widest(dtype, each.dtype)
    return call(name, dtype, first, *rest)


def function(name: str, result: str) -> Callable[..., Value]:
    """Return DuckDB's own function of this name, and the type that it gives."""
    kind = parsed(result)
    return lambda *arguments: call(name, kind, *arguments)


def interval(**given: int) -> Value:
    """Return a length of time, such as days=3; it is added to a time."""
    ((unit, number),) = given.items()
    return Value((f"INTERVAL '{number}' {unit.removesuffix('s').upper()}",), INTERVAL)


def struct(fields: "Mapping[str, Value]") -> Value:
    """Return several values as one, to be hashed."""
    pieces = [piece for name, value in fields.items() for piece in (", ", text_of(name), ": ", value)]
    return Value(("{", *pieces[1:], "}"), STRUCT)


# --- windows ---


class Ranked(Value):
    """An index in a window, from 0; without a window, among all rows."""

    __slots__ = ("function",)

    def __init__(self, function: str) -> None:
        super().__init__((f"({function}() OVER () - 1)",), INT64)
        self.function = function

    def over(self, window: "Window") -> Value:
        """Return the row's index in its window."""
        return Value((f"({self.function}()", *window.pieces, " - 1)"), INT64)


class Window:
    """The rows that are seen together, and their order: NULL comes last, whatever a connection is set to."""

    __slots__ = ("pieces",)

    def __init__(self, group_by: "Sequence[str | Value]", order_by: "Sequence[str | Value]") -> None:
        pieces: list[str | Value] = [" OVER ("]
        if group_by:
            pieces += ["PARTITION BY ", *commas([_by_name(each) for each in group_by])]
        for index, each in enumerate(order_by):
            pieces += [", " if index else " ORDER BY ", _by_name(each), " ASC NULLS LAST"]
        self.pieces = (*pieces, ")")


def window(*, group_by: "str | Sequence[str | Value]" = (), order_by: "Value | Sequence[str | Value]" = ()) -> Window:
    """Return the rows with equal values of `group_by`, in the order of `order_by`."""
    return Window(
        [group_by] if isinstance(group_by, str) else group_by, [order_by] if isinstance(order_by, Value) else order_by
    )


def row_number() -> Ranked:
    """Return each row's index in its window."""
    return Ranked("ROW_NUMBER")


def dense_rank() -> Ranked:
    """Return the index of each row's value among the different values of its window."""
    return Ranked("DENSE_RANK")


def _by_name(given: "str | Value") -> Value:
    return Column(None, given, NULL) if isinstance(given, str) else given


def columns_in(values: "Iterable[Any]") -> "Iterable[Column]":
    """Yield the columns that values are made of; a value that occurs twice is looked at once."""
    waiting, seen = list(values), set[int]()
    while waiting:
        each = waiting.pop()
        if type(each) is str or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, Column):
            yield each
        else:
            waiting += each.pieces
