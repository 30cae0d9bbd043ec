"""Interval arithmetic: the range of an expression of noisy numbers, each within its interval; None if it is unknown."""

import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

from tacit.query.language.catalogue import FUNCTIONS
from tacit.query.language.functions import aligned, comparable
from tacit.query.nodes import Call, Column, Expression, Value, Window, columns_of
from tacit.query.windows import WINDOWS, values_of

INFINITE = float("inf")


@dataclass(frozen=True)
class AnswerSpan:
    """From `low` to `high`, both inside; a value that is known for sure, of any type, is both."""

    low: Any
    high: Any

    @property
    def is_known(self) -> bool:
        """Whether it is one value; NULL is one too."""
        return (self.low is None and self.high is None) or (
            self.low is not None and self.high is not None and bool(operator.eq(*aligned(self.low, self.high)))
        )

    def nearest(self, value: Any) -> Any:
        """Return the nearest number inside; a value that is not a number, or lacks such ends, is unchanged."""
        if not all(_is_number(each) for each in (value, self.low, self.high)):
            return value
        return min(max(value, self.low, key=comparable), self.high, key=comparable)


# None: any value is possible.
Spans = Mapping[str, AnswerSpan | None]
Rule = Callable[[Call, Sequence[AnswerSpan]], AnswerSpan | None]
# Pairs of which the first is never more than the second, if it is not negative.
Parts = frozenset[tuple[Expression, Expression]]


def span_of(expression: Expression, spans: Spans, wholes: Parts = frozenset()) -> AnswerSpan | None:
    """Return where an expression may be, given where each of its columns may be, and which are parts of which."""
    if isinstance(expression, Value):
        return AnswerSpan(expression.value, expression.value)
    if isinstance(expression, Column):
        return spans[expression.name]
    if expression.function == "case":
        return _case_span(expression, spans, wholes)
    found = [span_of(argument, spans, wholes) for argument in expression.arguments]
    parts = [span for span in found if span is not None]
    if len(parts) < len(found):
        return None
    if all(part.is_known for part in parts):
        value = _run(expression, [part.low for part in parts])
        return AnswerSpan(value, value)
    rule = _RULES.get(expression.function)
    image = None if rule is None else rule(expression, parts)
    share = _share_span(expression, spans, wholes) if expression.function == "/" else None
    if share is None or image is None:
        return image or share
    return AnswerSpan(share.nearest(image.low), share.nearest(image.high))


def parts_of_window(window: Window, spans: Sequence[Spans]) -> Parts:
    """Return the part of a window's sum that a row can be: if no addend is negative, no row has more than the sum."""
    if window.function != "sum" or window.frame is not None:
        return frozenset()
    (argument,) = window.arguments
    return frozenset({(argument, Column(window.name))} if all(_is_positive(argument, each) for each in spans) else ())


def _share_span(call: Call, spans: Spans, wholes: Parts) -> AnswerSpan | None:
    """Return the range from 0 to the whole, for a quotient of a part by its whole, each perhaps times a constant."""
    (times, part), (over, whole) = map(_without_factor, call.arguments)
    if not over or not _is_positive(part, spans) or not _is_part(part, whole, spans, wholes):
        return None
    end = float(times / over)
    return AnswerSpan(min(0.0, end), max(0.0, end))


def _without_factor(expression: Expression) -> tuple[Fraction, Expression]:
    """Return the constant that an expression is multiplied by, and the rest of it."""
    if isinstance(expression, Call) and expression.function in ("cast_float", "*"):
        for at, argument in enumerate(expression.arguments):
            factor = Fraction(1) if expression.function == "cast_float" else _constant(argument)
            if factor is not None:
                times, rest = _without_factor(expression.arguments[at if len(expression.arguments) == 1 else 1 - at])
                return factor * times, rest
    return Fraction(1), expression


def _is_part(part: Expression, whole: Expression, spans: Spans, wholes: Parts) -> bool:
    if part == whole or (part, whole) in wholes:
        return True
    if not isinstance(whole, Call) or whole.function != "+":
        return False
    one, other = whole.arguments
    return any(
        _is_part(part, addend, spans, wholes) and _is_positive(rest, spans)
        for addend, rest in ((one, other), (other, one))
    )


def _is_positive(expression: Expression, spans: Spans) -> bool:
    found = span_of(expression, spans)
    return found is not None and _is_number(found.low) and bool(found.low >= 0)


def window_span_of(
    window: Window, rows: Sequence[Mapping[str, Any]], spans: Sequence[Spans], noisy: Collection[str]
) -> list[AnswerSpan | None]:
    """Return the range of a window in each row: exact if its inputs are, unknown if its order or partition is noisy."""
    parts = (*window.partition, *(each.expression for each in window.order))
    if any(not columns_of(part).isdisjoint(noisy) for part in parts):
        return [None] * len(rows)
    if window.name not in noisy:
        return [AnswerSpan(value, value) for value in values_of(window, rows)]
    if WINDOWS[window.function].reads == "order":  # which rows there are is noisy, or which x of COUNT(x) are NULL
        return [None] * len(rows)
    found = [[span_of(argument, each) for each in spans] for argument in window.arguments]
    ends = []
    for end, unknown in (("low", -INFINITE), ("high", INFINITE)):
        arguments = [[unknown if span is None else getattr(span, end) for span in column] for column in found]
        ends.append(values_of(window, rows, arguments))
    return [
        None if low is None or high is None or low == -INFINITE or high == INFINITE else AnswerSpan(low, high)
        for low, high in zip(*ends, strict=True)
    ]


def rows_read(window: Window, rows: int) -> int:
    """Return how many rows' numbers a window's value can be made of."""
    if WINDOWS[window.function].reads == "one":
        return 1
    if window.frame is None or None in window.frame:
        return rows
    start, end = window.frame
    return rows if start is None or end is None else end - start + 1


def _run(call: Call, values: Sequence[Any]) -> Any:
    return FUNCTIONS[call.function].evaluate(*values)


def _case_span(call: Call, spans: Spans, wholes: Parts) -> AnswerSpan | None:
    """All results with a condition that may be the first true one."""
    possible: list[AnswerSpan | None] = []
    for condition, result in zip(call.arguments[:-1:2], call.arguments[1::2], strict=True):
        met = span_of(condition, spans, wholes)
        if met is not None and met.is_known and met.low is not True:
            continue
        possible.append(span_of(result, spans, wholes))
        if met is not None and met.is_known:
            return _around(possible)
    return _around([*possible, span_of(call.arguments[-1], spans, wholes)])


def _around(spans: Sequence[AnswerSpan | None]) -> AnswerSpan | None:
    """Return the span that holds all of these; NULL is left out, since it is outside every span."""
    if any(span is None for span in spans):
        return None
    found = [span for span in spans if span is not None and not (span.low is None and span.high is None)]
    if not found:
        return AnswerSpan(None, None)
    if any(not _is_number(end) for span in found for end in (span.low, span.high)):
        return found[0] if len(found) == 1 or all(span == found[0] for span in found) else None
    return AnswerSpan(
        min((span.low for span in found), key=comparable), max((span.high for span in found), key=comparable)
    )


def _is_number(value: Any) -> bool:
    return value is not None and not isinstance(value, bool | str | date)


def _corners(call: Call, parts: Sequence[AnswerSpan]) -> AnswerSpan | None:
    """A function of two numbers that is highest and lowest where each is at one of its ends."""
    left, right = parts
    if not all(_is_number(end) for part in parts for end in (part.low, part.high)):
        return None
    found = [_run(call, (one, two)) for one in (left.low, left.high) for two in (right.low, right.high)]
    return _from(found)


def _from(found: Sequence[Any]) -> AnswerSpan | None:
    if any(value is None for value in found):
        return None
    return AnswerSpan(min(found, key=comparable), max(found, key=comparable))


def _quotient_span(call: Call, parts: Sequence[AnswerSpan]) -> AnswerSpan | None:
    bottom = parts[1]
    if not _is_number(bottom.low) or not _is_number(bottom.high) or bottom.low <= 0 <= bottom.high:
        return None
    return _corners(call, parts)


def _rising(call: Call, parts: Sequence[AnswerSpan]) -> AnswerSpan | None:
    """A function that never falls in any number of it, or never rises in it; its constants are known."""
    moving = [part for part in parts if not part.is_known]
    if len(moving) != 1 or not (_is_number(moving[0].low) and _is_number(moving[0].high)):
        return None
    ends = [
        _run(call, [part.low if part.is_known else end for part in parts]) for end in (moving[0].low, moving[0].high)
    ]
    return _from(ends)


def _magnitude(call: Call, parts: Sequence[AnswerSpan]) -> AnswerSpan | None:
    image = _rising(call, parts)
    crosses = image is not None and parts[0].low < 0 < parts[0].high
    return image if image is None or not crosses else AnswerSpan(0 * image.high, image.high)


def _extreme_span(call: Call, parts: Sequence[AnswerSpan]) -> AnswerSpan | None:
    """LEAST and GREATEST rise in all of their numbers; NULLs among them are left out."""
    known = [part for part in parts if not (part.low is None and part.high is None)]
    if not all(_is_number(end) for part in known for end in (part.low, part.high)):
        return None
    return AnswerSpan(_run(call, [part.low for part in known]), _run(call, [part.high for part in known]))


def _compared_spans(call: Call, parts: Sequence[AnswerSpan]) -> AnswerSpan | None:
    """A comparison that comes out the same wherever its numbers are."""
    left, right = parts
    if not all(_is_number(end) for part in parts for end in (part.low, part.high)):
        return None
    (low, high), (other_low, other_high) = (
        (Fraction(comparable(part.low)), Fraction(comparable(part.high))) if _is_finite(part) else (None, None)
        for part in (left, right)
    )
    if low is None or high is None or other_low is None or other_high is None:
        return None
    apart = high < other_low or other_high < low
    if call.function in ("=", "<>"):
        return AnswerSpan(call.function == "<>", call.function == "<>") if apart else None
    strict = call.function in ("<", ">")
    if call.function in (">", ">="):
        low, high, other_low, other_high = other_low, other_high, low, high
    if high < other_low or (not strict and high <= other_low):
        return AnswerSpan(True, True)
    return AnswerSpan(False, False) if low > other_high or (strict and low >= other_high) else None


def _is_finite(part: AnswerSpan) -> bool:
    return all(not isinstance(end, float) or abs(end) < float("inf") for end in (part.low, part.high))


_RULES: dict[str, Rule] = {
    "+": _corners,
    "-": _corners,
    "*": _corners,
    "/": _quotient_span,
    **dict.fromkeys(("negate", "round", "floor", "ceil", "sqrt", "exp", "ln", "log2", "log10"), _rising),
    **dict.fromkeys(("cast_int", "cast_float", "cast_decimal"), _rising),
    "abs": _magnitude,
    "least": _extreme_span,
    "greatest": _extreme_span,
    "coalesce": lambda _call, parts: _around(parts),
    "nullif": lambda _call, parts: _around(parts[:1]),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _compared_spans),
}


# --- the effect of its inputs' noise on a computed number ---


@dataclass(frozen=True)
class Moves:
    """A number that moves by at most slope × distance for each column it is of, all together, plus `slack`."""

    slopes: Mapping[str, Fraction]
    slack: Fraction = Fraction(0)

    def times(self, factor: Fraction) -> "Moves":
        return Moves({name: slope * abs(factor) for name, slope in self.slopes.items()}, self.slack * abs(factor))


def moves_of(expression: Expression, noisy: Collection[str]) -> Moves | None:
    """Return how far an expression moves with the noisy columns in it, wherever they are; None if that depends."""
    if isinstance(expression, Column):
        return Moves({expression.name: Fraction(1)} if expression.name in noisy else {})
    if isinstance(expression, Value) or columns_of(expression).isdisjoint(noisy):
        return Moves({})
    moves = [moves_of(argument, noisy) for argument in expression.arguments]
    parts = [each for each in moves if each is not None]
    rule = _MOVES.get(expression.function)
    return None if rule is None or len(parts) < len(moves) else rule(expression.arguments, parts)


def _times_spans(arguments: Sequence[Expression], parts: Sequence[Moves]) -> Moves | None:
    factor = next((found for each in arguments if (found := _constant(each)) is not None), None)
    return None if factor is None else _added_spans(arguments, parts).times(factor)


def _divided_spans(arguments: Sequence[Expression], parts: Sequence[Moves]) -> Moves | None:
    divisor = _constant(arguments[1])
    return parts[0].times(1 / divisor) if divisor else None


def _rounded_span(arguments: Sequence[Expression], parts: Sequence[Moves]) -> Moves | None:
    places = _constant(arguments[1]) if len(arguments) > 1 else Fraction(0)
    return None if places is None else Moves(parts[0].slopes, parts[0].slack + Fraction(10) ** -int(places))


def _constant(expression: Expression) -> Fraction | None:
    value = expression.value if isinstance(expression, Value) else None
    is_finite = _is_number(value) and _is_finite(AnswerSpan(value, value))
    return Fraction(comparable(value)) if is_finite else None


def _added_spans(_arguments: Sequence[Expression], parts: Sequence[Moves]) -> Moves:
    slopes: dict[str, Fraction] = {}
    for part in parts:
        for name, slope in part.slopes.items():
            slopes[name] = slopes.get(name, Fraction(0)) + slope
    return Moves(slopes, sum((part.slack for part in parts), Fraction(0)))


def _widest(_arguments: Sequence[Expression], parts: Sequence[Moves]) -> Moves:
    """The least or the greatest of several moves no further than the one that moves most, in each column."""
    names = dict.fromkeys(name for part in parts for name in part.slopes)
    slopes = {name: max(part.slopes.get(name, Fraction(0)) for part in parts) for name in names}
    return Moves(slopes, max(part.slack for part in parts))


_MOVES: dict[str, Callable[[Sequence[Expression], Sequence[Moves]], Moves | None]] = {
    **dict.fromkeys(("+", "-"), _added_spans),
    "*": _times_spans,
    "/": _divided_spans,
    **dict.fromkeys(("negate", "abs", "cast_float", "cast_decimal"), lambda _arguments, parts: parts[0]),
    **dict.fromkeys(("floor", "ceil", "cast_int", "round"), _rounded_span),
    **dict.fromkeys(("least", "greatest"), _widest),
}
