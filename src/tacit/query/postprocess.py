"""HAVING, ORDER BY and LIMIT on the noisy answer: post-processing, with the catalogue's meanings, in Python."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tacit.errors import QueryRefused
from tacit.query.canonical_form import columns_of
from tacit.query.literal import like, pattern_parts
from tacit.query.nodes import After, Call, Column, Expression, Value

Row = Mapping[str, Any]

_BLANKS = " \t\n\r\v\f"
_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"


def apply_after(rows: Sequence[Row], after: After) -> list[dict[str, Any]]:
    """Return the rows that HAVING keeps, sorted (NULL last, ties as they were), at most LIMIT of them."""
    having = after.having
    kept = [dict(row) for row in rows if having is None or evaluate(having, row) is True]
    for ordering in reversed(after.order):
        known = [row for row in kept if row[ordering.name] is not None]
        unknown = [row for row in kept if row[ordering.name] is None]
        known.sort(key=lambda row: _comparable(row[ordering.name]), reverse=ordering.descending)
        kept = known + unknown
    return kept if after.limit is None else kept[: after.limit]


def picks_by_noise(after: After, outputs: Collection[str]) -> bool:
    """Return whether which rows are left depends on noisy numbers, and not on keys alone."""
    by_having = not columns_of(after.having).isdisjoint(outputs)
    return by_having or (after.limit is not None and any(ordering.name in outputs for ordering in after.order))


def evaluate(expression: Expression, row: Row) -> Any:
    """Return an expression's value on one noisy row; None is NULL."""
    if isinstance(expression, Value):
        return expression.value
    if isinstance(expression, Column):
        value = row[expression.name]
        return None if isinstance(value, float) and value != value else value
    if expression.function not in EVALUATED:
        raise QueryRefused(f"HAVING has no {expression.function}\nhint: use it in a key, or compute it afterwards")
    return EVALUATED[expression.function](expression, row)


def _compared(compare: Callable[[Any, Any], bool]) -> Callable[[Call, Row], Any]:
    def run(call: Call, row: Row) -> Any:
        left, right = (evaluate(argument, row) for argument in call.arguments)
        return None if left is None or right is None else compare(*_aligned(left, right))

    return run


def _and(call: Call, row: Row) -> Any:
    parts = [evaluate(argument, row) for argument in call.arguments]
    return False if False in parts else None if None in parts else True


def _or(call: Call, row: Row) -> Any:
    parts = [evaluate(argument, row) for argument in call.arguments]
    return True if True in parts else None if None in parts else False


def _not(call: Call, row: Row) -> Any:
    value = evaluate(call.arguments[0], row)
    return None if value is None else not value


def _in(call: Call, row: Row) -> Any:
    tested, *listed = (evaluate(argument, row) for argument in call.arguments)
    return None if tested is None else any(_equal(*_aligned(tested, each)) for each in listed)


def _like(call: Call, row: Row) -> Any:
    tested = evaluate(call.arguments[0], row)
    escape = call.arguments[2] if len(call.arguments) == 3 else None
    return None if tested is None else like(tested, pattern_parts(call.arguments[1], escape))


def _arithmetic(operate: Callable[[Any, Any], Any]) -> Callable[[Call, Row], Any]:
    def run(call: Call, row: Row) -> Any:
        left, right = (evaluate(argument, row) for argument in call.arguments)
        if left is None or right is None:
            return None
        return _settled(operate(*_aligned(left, right)))

    return run


def _quotient(call: Call, row: Row) -> Any:
    top, bottom = (evaluate(argument, row) for argument in call.arguments)
    if top is None or bottom is None or bottom == 0:
        return None
    return _settled(_float(top) / _float(bottom))


def _negate(call: Call, row: Row) -> Any:
    value = evaluate(call.arguments[0], row)
    return None if value is None else _settled(-value)


def _case(call: Call, row: Row) -> Any:
    for condition, result in zip(call.arguments[:-1:2], call.arguments[1::2], strict=True):
        if evaluate(condition, row) is True:
            return evaluate(result, row)
    return evaluate(call.arguments[-1], row)


def _coalesce(call: Call, row: Row) -> Any:
    return next((value for each in call.arguments if (value := evaluate(each, row)) is not None), None)


def _nullif(call: Call, row: Row) -> Any:
    left, right = (evaluate(argument, row) for argument in call.arguments)
    same = left is not None and right is not None and _equal(*_aligned(left, right))
    return None if same else left


def _abs(call: Call, row: Row) -> Any:
    value = evaluate(call.arguments[0], row)
    return None if value is None else abs(value)


def _extreme(*, last: bool) -> Callable[[Call, Row], Any]:
    def run(call: Call, row: Row) -> Any:
        chosen = None
        for value in (evaluate(argument, row) for argument in call.arguments):
            if value is None:
                continue
            left, right = _aligned(value, value if chosen is None else chosen)
            if chosen is None or (left > right if last else left < right):
                chosen = value
        return chosen

    return run


def _of_text(change: Callable[[str], str | int]) -> Callable[[Call, Row], Any]:
    def run(call: Call, row: Row) -> Any:
        value = evaluate(call.arguments[0], row)
        return None if value is None else change(value)

    return run


def _equal(left: Any, right: Any) -> bool:
    return bool(left == right)


EVALUATED: dict[str, Callable[[Call, Row], Any]] = {
    "=": _compared(_equal),
    "<>": _compared(lambda left, right: left != right),
    "<": _compared(lambda left, right: left < right),
    "<=": _compared(lambda left, right: left <= right),
    ">": _compared(lambda left, right: left > right),
    ">=": _compared(lambda left, right: left >= right),
    "and": _and,
    "or": _or,
    "not": _not,
    "in": _in,
    "like": _like,
    "is_null": lambda call, row: evaluate(call.arguments[0], row) is None,
    "+": _arithmetic(lambda left, right: left + right),
    "-": _arithmetic(lambda left, right: left - right),
    "*": _arithmetic(lambda left, right: left * right),
    "/": _quotient,
    "negate": _negate,
    "case": _case,
    "coalesce": _coalesce,
    "nullif": _nullif,
    "lower": _of_text(lambda text: text.translate(str.maketrans(_UPPER, _LOWER))),
    "upper": _of_text(lambda text: text.translate(str.maketrans(_LOWER, _UPPER))),
    "trim": _of_text(lambda text: text.strip(_BLANKS)),
    "length": _of_text(len),
    "abs": _abs,
    "least": _extreme(last=False),
    "greatest": _extreme(last=True),
}


def _aligned(left: Any, right: Any) -> tuple[Any, Any]:
    """Two values as one type: with a float both are floats, other numbers are exact, a date is its midnight."""
    if isinstance(left, float) or isinstance(right, float):
        return _float(left), _float(right)
    return _comparable(left), _comparable(right)


def _comparable(value: Any) -> Any:
    if isinstance(value, Decimal):
        return Fraction(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day)  # noqa: DTZ001 - timestamps have no zone
    return value


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _settled(value: Any) -> Any:
    if isinstance(value, float):
        return None if value != value else value + 0.0
    return value
