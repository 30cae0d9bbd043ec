"""The public ranges of summed expressions: given by hand, or inferred from constants and declared ranges.

A range decides how far one unit can move a sum, and rows outside it are clipped to it. So a wrong range could cost
accuracy and never privacy; still, every rule here is meant to hold every value that the expression can have.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

from tacit.errors import QueryRefused, did_you_mean
from tacit.numbers import whole
from tacit.query.nodes import TEXT, Aggregate, Call, Column, Expression, Query, Value
from tacit.query.typecheck import ColumnKinds, column_kinds, kind_of
from tacit.tables import ColumnFacts, Declaration, is_auto, read_between

Range = tuple[Fraction, Fraction]
RangeOf = Callable[[Expression], Range]

# The aggregates that need a range.
_RANGED = ("sum", "mean", "variance", "std", "quantile", "covariance", "correlation")

# A range that goes further than this is not known: a learned one is better.
WIDEST = Fraction(2**62)
_INFINITE = Fraction(2**200)
_UNKNOWN = (-_INFINITE, _INFINITE)
# The values of the parts of a date or timestamp.
_PARTS = {
    "year": (1, 9999),
    "isoyear": (0, 9999),
    "quarter": (1, 4),
    "month": (1, 12),
    "week": (1, 53),
    "day": (1, 31),
    "doy": (1, 366),
    "dow": (0, 6),
    "isodow": (1, 7),
    "hour": (0, 23),
    "minute": (0, 59),
    "second": (0, 59),
}


def with_inferred_ranges(aggregate: Aggregate, columns: Mapping[str, ColumnFacts], kinds: ColumnKinds) -> Aggregate:
    """Return an aggregate with the ranges that public facts give its expressions, unless they are given by hand."""
    between, other = aggregate.between, aggregate.other_between
    if aggregate.kind in _RANGED:
        if between is None and isinstance(aggregate.expression, Call):
            between = range_of(aggregate.expression, columns, kinds)
        if other is None and isinstance(aggregate.other, Call):
            other = range_of(aggregate.other, columns, kinds)
    return replace(aggregate, between=between, other_between=other)


def with_ranges(query: Query, between: Mapping[str, object], declaration: Declaration) -> Query:
    """Return the question with public ranges of aggregates, by name, or of columns as if they were declared so."""
    if not isinstance(between, Mapping):
        raise QueryRefused("between must be a dict from a column or an aggregate to its range\nhint: {'age': (0, 120)}")
    outputs = {output.name: output for output in query.outputs}
    ranged = [name for name, output in outputs.items() if output.aggregate.kind in _RANGED]
    shown = _shown_again(query)
    meant = {name: name if name in ranged else dict(query.names).get(name, shown.get(name, name)) for name in between}
    given = {
        meant[name]: None if is_auto(written) else read_between(name, written) for name, written in between.items()
    }
    columns, kinds = dict(declaration.columns), column_kinds(declaration)
    for name, ends in given.items():
        if name in ranged:
            continue
        if name not in columns or name == declaration.unit or not kinds.get(name, TEXT).is_number:
            known = [*ranged, *(each for each, kind in kinds.items() if kind.is_number and each != declaration.unit)]
            raise QueryRefused(
                f"between names '{name}', which is not a column of numbers, nor a sum or mean of the question"
                f"{did_you_mean(name, known)}"
            )
        columns[name] = replace(columns[name], between=ends)
    for name in ranged:
        written = _without_inferred(outputs[name].aggregate, declaration)
        aggregate = with_inferred_ranges(_with_columns(written, columns, given), columns, kinds)
        if name in given:
            aggregate = replace(aggregate, between=given[name])
        outputs[name] = replace(outputs[name], aggregate=aggregate)
    return replace(query, outputs=tuple(outputs.values()))


def _without_inferred(aggregate: Aggregate, declaration: Declaration) -> Aggregate:
    """Return an aggregate without the ranges of its expressions that follow from the declaration."""
    bare = replace(aggregate, between=None, other_between=None)
    inferred = with_inferred_ranges(bare, declaration.columns, column_kinds(declaration))
    return replace(
        aggregate,
        between=None if aggregate.between == inferred.between else aggregate.between,
        other_between=None if aggregate.other_between == inferred.other_between else aggregate.other_between,
    )


def _with_columns(aggregate: Aggregate, columns: Mapping[str, ColumnFacts], given: Mapping[str, object]) -> Aggregate:
    """Return an aggregate of columns with the ranges that are given for these."""

    def ends(expression: Expression | None, before: tuple[Fraction, Fraction] | None) -> Any:
        named = isinstance(expression, Column) and expression.name in given
        return columns[expression.name].between if isinstance(expression, Column) and named else before

    return replace(
        aggregate,
        between=ends(aggregate.expression, aggregate.between),
        other_between=ends(aggregate.other, aggregate.other_between),
    )


def with_bounds(query: Query, per_unit: Mapping[str, int]) -> Query:
    """Return the question with a bound on one unit's distinct values for some of its COUNT(DISTINCT x), by name."""
    outputs = {output.name: output for output in query.outputs}
    if not isinstance(per_unit, Mapping):
        raise QueryRefused("per_unit must be a dict from an aggregate's name to its bound\nhint: {'kinds': 3}")
    shown = _shown_again(query)
    for written, bound in per_unit.items():
        name = shown.get(written, written)
        output = outputs.get(name)
        if output is not None and output.aggregate.kind == "count_units":
            raise QueryRefused(
                f"per_unit names '{written}', which counts units\nhint: leave it out: a unit counts once"
            )
        if output is None or output.aggregate.kind != "count_distinct":
            raise QueryRefused(
                f"per_unit names '{written}', but no COUNT(DISTINCT x) has that name{did_you_mean(written, outputs)}"
            )
        stated = whole(bound, name=f"per_unit of '{written}'")
        outputs[name] = replace(output, aggregate=replace(output.aggregate, per_unit=stated))
    return replace(query, outputs=tuple(outputs.values()))


def _shown_again(query: Query) -> dict[str, str]:
    """Return the columns that show an aggregate under a second name: equal aggregates are released once."""
    return {each.name: each.expression.name for each in query.after.shown if isinstance(each.expression, Column)}


def range_of(expression: Expression, columns: Mapping[str, ColumnFacts], kinds: ColumnKinds) -> Range | None:
    """Return a range for the sums of an expression, or None; a bool counts as 0 or 1, and a constant's goes to 0."""
    low, high = _range_of_tree(expression, columns, kinds)
    if -low > WIDEST or high > WIDEST:
        return None
    if low == high:
        return min(low, Fraction(0)), max(high, Fraction(0)) if low else Fraction(1)
    return low, high


def ends_of(expression: Expression, declaration: Declaration) -> tuple[Fraction | None, Fraction | None]:
    """Return a lower and an upper bound on the values of an expression; None if public facts do not give it."""
    low, high = _range_of_tree(expression, declaration.columns, column_kinds(declaration))
    return (None if -low > WIDEST else low), (None if high > WIDEST else high)


def _range_of_tree(expression: Expression, columns: Mapping[str, ColumnFacts], kinds: ColumnKinds) -> Range:
    if isinstance(expression, Value):
        constant = expression.value
        if not isinstance(constant, bool | int | float | Fraction):
            return _UNKNOWN
        return Fraction(constant), Fraction(constant)
    facts = columns.get(expression.name) if isinstance(expression, Column) else None
    if facts is not None and facts.between is not None:
        return facts.between
    if facts is not None and facts.least is not None:
        return facts.least, _INFINITE
    rule = _RULES.get(expression.function) if isinstance(expression, Call) else None
    if rule is None or not isinstance(expression, Call):
        is_bool = kind_of(expression, kinds).type == "bool"
        return (Fraction(0), Fraction(1)) if is_bool else _UNKNOWN
    low, high = rule(expression, lambda part: _range_of_tree(part, columns, kinds))
    return (-_INFINITE if -low > WIDEST else low), (_INFINITE if high > WIDEST else high)


def _ends_of(numbers: Iterable[Fraction]) -> Range:
    listed = list(numbers)
    return min(listed), max(listed)


def _chosen_range(parts: Iterable[Expression], inner: RangeOf) -> Range:
    """Return the range of a value that is one of several; NULL is outside every range."""
    ends = [end for part in parts if not _is_null(part) for end in inner(part)]
    return _ends_of(ends) if ends else _UNKNOWN


def _is_null(expression: Expression) -> bool:
    return isinstance(expression, Value) and expression.value is None


def _any(call: Call, inner: RangeOf) -> Range:
    return _chosen_range(call.arguments, inner)


def _sum_range(call: Call, inner: RangeOf) -> Range:
    (low, high), (other_low, other_high) = map(inner, call.arguments)
    return low + other_low, high + other_high


def _difference_range(call: Call, inner: RangeOf) -> Range:
    (low, high), (other_low, other_high) = map(inner, call.arguments)
    return low - other_high, high - other_low


def _product_range(call: Call, inner: RangeOf) -> Range:
    left, right = map(inner, call.arguments)
    if call.arguments[0] == call.arguments[1]:  # a square
        return _ends_of(end * end for end in _apart_from_zero(left))
    return _ends_of(one * other for one, other in product(left, right))


def _quotient_range(call: Call, inner: RangeOf) -> Range:
    top, bottom = map(inner, call.arguments)
    if bottom[0] <= 0 <= bottom[1]:
        return _UNKNOWN
    return _ends_of(one / other for one, other in product(top, bottom))


def _whole_quotient_range(call: Call, inner: RangeOf) -> Range:
    low, high = _quotient_range(call, inner)
    return Fraction(low // 1), Fraction(high // 1)


def _remainder(call: Call, inner: RangeOf) -> Range:
    """The remainder has the sign of the dividend, and is smaller than the divisor."""
    (low, high), bottom = map(inner, call.arguments)
    most = max(map(abs, bottom))
    return (Fraction(0) if low >= 0 else -most), (Fraction(0) if high <= 0 else most)


def _apart_from_zero(ends: Range) -> tuple[Fraction, ...]:
    """Return where an even function of a range has its least and greatest value."""
    return (*ends, Fraction(0)) if ends[0] < 0 < ends[1] else ends


def _least(call: Call, inner: RangeOf) -> Range:
    """LEAST leaves NULLs out, so that any argument may be the result; but none of them exceeds a constant."""
    low, high = _any(call, inner)
    return low, min([high, *_constants(call, inner)])


def _greatest(call: Call, inner: RangeOf) -> Range:
    low, high = _any(call, inner)
    return max([low, *_constants(call, inner)]), high


def _constants(call: Call, inner: RangeOf) -> list[Fraction]:
    return [inner(part)[0] for part in call.arguments if isinstance(part, Value) and not _is_null(part)]


def _rounded_range(call: Call, inner: RangeOf) -> Range:
    low, high = inner(call.arguments[0])
    places = call.arguments[1] if call.function == "round" and len(call.arguments) == 2 else Value(0, "int")
    given = places.value if isinstance(places, Value) and isinstance(places.value, int) else 0
    unit = Fraction(10) ** -given
    return low // unit * unit, -(-high // unit) * unit


def _part_range(call: Call, _inner: RangeOf) -> Range:
    part = call.arguments[0]
    low, high = _PARTS.get(str(part.value), _UNKNOWN) if isinstance(part, Value) else _UNKNOWN
    return Fraction(low), Fraction(high)


_RULES: dict[str, Callable[[Call, RangeOf], Range]] = {
    "+": _sum_range,
    "-": _difference_range,
    "*": _product_range,
    "/": _quotient_range,
    "//": _whole_quotient_range,
    "%": _remainder,
    "negate": lambda call, inner: _ends_of(-end for end in inner(call.arguments[0])),
    "abs": lambda call, inner: _ends_of(map(abs, _apart_from_zero(inner(call.arguments[0])))),
    "case": lambda call, inner: _chosen_range((*call.arguments[1:-1:2], call.arguments[-1]), inner),
    "coalesce": _any,
    "least": _least,
    "greatest": _greatest,
    "extract": _part_range,
    **dict.fromkeys(("nullif", "cast_float", "cast_decimal"), lambda call, inner: inner(call.arguments[0])),
    **dict.fromkeys(("round", "floor", "ceil", "cast_int"), _rounded_range),
    **dict.fromkeys(("length", "sqrt", "exp"), lambda _call, _inner: (Fraction(0), _INFINITE)),
}
