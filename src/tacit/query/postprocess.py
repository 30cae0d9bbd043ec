"""Evaluates HAVING, ORDER BY and LIMIT on the noisy answer, in Python: post-processing.

Functions mean the same here as on rows; the meaning is in each function's record. Nothing here sees an exact number.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from tacit.errors import QueryRefused
from tacit.query.catalogue import FUNCTIONS
from tacit.query.functions import comparable
from tacit.query.nodes import Column, Expression, PostProcessing, Value, columns_of

Row = Mapping[str, Any]


def apply_postprocessing(rows: Sequence[Row], after: PostProcessing) -> list[dict[str, Any]]:
    """Return the rows that HAVING keeps, sorted (NULL last, ties as they were), at most LIMIT of them."""
    having = after.having
    kept = [dict(row) for row in rows if having is None or evaluate(having, row) is True]
    for ordering in reversed(after.order):
        known = [row for row in kept if row[ordering.name] is not None]
        unknown = [row for row in kept if row[ordering.name] is None]
        known.sort(key=lambda row: comparable(row[ordering.name]), reverse=ordering.descending)
        kept = known + unknown
    return kept if after.limit is None else kept[: after.limit]


def picks_by_noise(after: PostProcessing, outputs: Collection[str]) -> bool:
    """Return whether noisy numbers, and not only keys, decide which rows of the answer are kept."""
    by_having = not columns_of(after.having).isdisjoint(outputs)
    return by_having or (after.limit is not None and any(ordering.name in outputs for ordering in after.order))


def evaluate(expression: Expression, row: Row) -> Any:
    """Return an expression's value on one noisy row; None is NULL."""
    if isinstance(expression, Value):
        return expression.value
    if isinstance(expression, Column):
        value = row[expression.name]
        return None if isinstance(value, float) and value != value else value
    record = FUNCTIONS.get(expression.function)
    if record is None or record.evaluate is None:
        raise QueryRefused(
            f"HAVING cannot use {expression.function}\nhint: use it in a key, or compute it from the answer"
        )
    return record.evaluate(*(evaluate(argument, row) for argument in expression.arguments))
