"""Does to the noisy answer what HAVING, OVER, QUALIFY, DISTINCT, ORDER BY, OFFSET and LIMIT say, in Python. Functions
mean the same as on rows, but whole numbers have no limit of 64 bits."""

from collections.abc import Mapping, Sequence
from typing import Any

from tacit.query.after.windows import in_order, window_values
from tacit.query.language.catalogue import function
from tacit.query.language.functions import comparable
from tacit.query.nodes import Column, Expression, PostProcessing, Value, Window

Row = Mapping[str, Any]


def apply_postprocessing(rows: Sequence[Row], after: PostProcessing) -> list[dict[str, Any]]:
    """Return the rows that are kept, in their order, with a column for each window; shown columns are not computed."""
    having = after.having
    kept = [dict(row) for row in rows if having is None or evaluate(having, row) is True]
    for window in after.windows:
        for row, value in zip(kept, values_of(window, kept), strict=True):
            row[window.name] = value
    if after.qualify is not None:
        kept = [row for row in kept if evaluate(after.qualify, row) is True]
    kept = _distinct(kept, after) if after.distinct else kept
    ordering = [[evaluate(each.expression, row) for row in kept] for each in after.order]
    kept = [kept[place] for place in in_order(range(len(kept)), after.order, ordering)]
    return kept[after.offset :] if after.limit is None else kept[after.offset : after.offset + after.limit]


def values_of(window: Window, rows: Sequence[Row], arguments: Sequence[Sequence[Any]] | None = None) -> list[Any]:
    """Return a window's value for each row; its arguments' values may be others than the rows give."""
    given = [[evaluate(argument, row) for row in rows] for argument in window.arguments]
    return window_values(
        window,
        [tuple(_same_names(evaluate(each, row)) for each in window.partition) for row in rows],
        [[evaluate(each.expression, row) for row in rows] for each in window.order],
        given if arguments is None else arguments,
    )


def _distinct(rows: list[dict[str, Any]], after: PostProcessing) -> list[dict[str, Any]]:
    """Return the first of rows that show the same."""
    found: dict[Any, dict[str, Any]] = {}
    for row in rows:
        found.setdefault(tuple(_same_names(evaluate(each.expression, row)) for each in after.shown), row)
    return list(found.values())


def _same_names(value: Any) -> Any:
    """Return a value that is equal for equal values and not for NULL and others; True is not 1."""
    return None if value is None else (isinstance(value, bool), comparable(value))


def evaluate(expression: Expression, row: Row) -> Any:
    """Return an expression's value on one noisy row; None is NULL."""
    if isinstance(expression, Value):
        return expression.value
    if isinstance(expression, Column):
        value = row[expression.name]
        return None if isinstance(value, float) and value != value else value
    return function(expression.function).evaluate(*(evaluate(argument, row) for argument in expression.arguments))
