"""The blocks that a question's WHERE allows, by its constants only: a superset, whatever the rows are.

A condition that is not understood allows all blocks. Rows whose block column is NULL are in no block; only a condition
that is not understood, or that has no bound, can allow them, so only questions charged to all blocks count them.
"""

from datetime import date, datetime, timedelta

from tacit.query.nodes import Call, Column, Expression, Value
from tacit.tables import RowBlocks, blocks_between

# Moments from the first to the second, both included; None is without end.
Span = tuple[datetime | None, datetime | None]
ALL: tuple[Span, ...] = ((None, None),)
SPANS_MOST = 400


def blocks_allowed(where: Expression | None, blocks: RowBlocks) -> tuple[str, ...] | None:
    """Return the names of the blocks that a condition allows; None means all blocks."""
    found: set[str] = set()
    for low, high in ALL if where is None else _spans(where, blocks.column):
        named = None if low is None or high is None else blocks_between(blocks, low, high)
        if named is None:
            return None
        found.update(named)
    return tuple(sorted(found)) or None  # a condition that allows no moment is charged as one that allows all


def _spans(condition: Expression, column: str) -> tuple[Span, ...]:
    """Return spans that hold every moment of the rows that a condition keeps."""
    if not isinstance(condition, Call):
        return ALL
    parts = condition.arguments
    if condition.function in ("and", "or"):
        each = [_spans(part, column) for part in parts]
        if condition.function == "or":
            found = tuple(span for spans in each for span in spans)
        else:
            found = ALL
            for spans in each:
                found = tuple(both for one in found for other in spans if (both := _both(one, other)) is not None)
                if len(found) > SPANS_MOST:
                    return ALL
        return found if len(found) <= SPANS_MOST else ALL
    constants = [part.value if isinstance(part, Value) else None for part in parts[1:]]
    moments = [value if isinstance(value, date) else None for value in constants]
    if not moments or None in moments or parts[0] != Column(column):
        return ALL
    if condition.function == "in":
        return tuple((_instant(each), _instant(each)) for each in moments)
    return _span_compared(condition.function, moments[0]) if len(moments) == 1 else ALL


def _span_compared(function: str, moment: date | None) -> tuple[Span, ...]:
    tick = timedelta(microseconds=1) if isinstance(moment, datetime) else timedelta(days=1)
    if moment is None:
        return ALL
    try:
        if function == "=":
            return ((_instant(moment), _instant(moment)),)
        if function in ("<", "<="):
            return ((None, _instant(moment - tick if function == "<" else moment)),)
        if function in (">", ">="):
            return ((_instant(moment + tick if function == ">" else moment), None),)
    except OverflowError:
        return ALL
    return ALL


def _instant(moment: date | None) -> datetime | None:
    """Return a date as its first moment, so that dates and times of one condition compare."""
    if moment is None or isinstance(moment, datetime):
        return moment
    return datetime(moment.year, moment.month, moment.day)  # noqa: DTZ001 - as the column shows it


def _both(one: Span, other: Span) -> Span | None:
    """Return the moments that are in two spans; None if no moment is in both."""
    lows = [low for low in (one[0], other[0]) if low is not None]
    highs = [high for high in (one[1], other[1]) if high is not None]
    low, high = max(lows, default=None), min(highs, default=None)
    return None if low is not None and high is not None and low > high else (low, high)
