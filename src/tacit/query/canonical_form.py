"""One tree for every way of writing the same expression, with each constant as the type it meets.

Everything is total, so the parts of AND and OR can be sorted: their order cannot matter to any row.
"""

from collections.abc import Callable, Mapping

from tacit.errors import QueryRefused, did_you_mean
from tacit.query.catalogue import function
from tacit.query.functions import WHOLE, in_one_order, in_steps, joined, without_idle_rounding
from tacit.query.kind import (
    DATE,
    DIGITS_MAX,
    FLOAT,
    SCALE_MAX,
    TIMESTAMP,
    Kind,
    common,
    decimal,
    kind_of_column,
    kind_of_value,
    phrase,
    value_of,
)
from tacit.query.literal import adapted, pattern_parts
from tacit.query.nodes import Call, Column, Expression, Value
from tacit.query.sql_text import Shown, show
from tacit.tables.schema import Declaration

Kinds = Mapping[str, Kind]

_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_ARITHMETIC = ("+", "-", "*")


def column_kinds(declaration: Declaration) -> dict[str, Kind]:
    """Return what each usable column of a declared table yields; columns of other types are left out."""
    return {name: kind_of_column(name, facts) for name, facts in declaration.columns.items() if facts.type != "other"}


def columns_of(expression: Expression | None) -> frozenset[str]:
    """Return the names of all columns an expression reads."""
    if isinstance(expression, Column):
        return frozenset((expression.name,))
    if isinstance(expression, Call):
        return frozenset().union(*(columns_of(argument) for argument in expression.arguments))
    return frozenset()


def functions_of(expression: Expression) -> frozenset[str]:
    """Return the names of all functions an expression calls."""
    if not isinstance(expression, Call):
        return frozenset()
    return frozenset((expression.function,)).union(*(functions_of(argument) for argument in expression.arguments))


def kind_of(expression: Expression, kinds: Kinds) -> Kind:
    """Return what an expression yields; refuse unknown columns and functions and arguments of the wrong type."""
    if isinstance(expression, Value):
        return kind_of_value(expression)
    if isinstance(expression, Column):
        if expression.name not in kinds:
            raise QueryRefused(f"there is no column '{expression.name}'{did_you_mean(expression.name, kinds)}")
        return kinds[expression.name]
    arguments = tuple(kind_of(argument, kinds) for argument in expression.arguments)
    if expression.function == "cast_decimal":
        return _decimal_cast_kind(expression, arguments)
    return function(expression.function).rule(arguments, Shown(expression))


def canonical(expression: Expression, kinds: Kinds) -> Expression:
    """Return the one tree that stands for this expression; doing it twice changes nothing."""
    if isinstance(expression, Column):
        return expression
    if isinstance(expression, Value):
        return value_of(expression.value)
    call = Call(expression.function, tuple(canonical(argument, kinds) for argument in expression.arguments))
    call = _with_adapted_constants(_days_between(call, kinds), kinds)
    kind_of(call, kinds)
    rewrite = _REWRITES.get(call.function)
    if call.function.startswith("cast_"):
        return _without_idle_cast(call, kinds)
    if call.function in WHOLE:
        return without_idle_rounding(call, kind_of(call.arguments[0], kinds))
    return rewrite(call) if rewrite else call


def _days_between(call: Call, kinds: Kinds) -> Call:
    """b - a of two dates is DATE_DIFF('day', a, b)."""
    if call.function == "-" and all(kind_of(argument, kinds) == DATE for argument in call.arguments):
        return Call("date_diff", (value_of("day"), *reversed(call.arguments)))
    return call


def _with_adapted_constants(call: Call, kinds: Kinds) -> Call:
    """Turn constants into the type of the columns they meet: '2011-01-31' beside a date is that date."""
    name, arguments = call.function, call.arguments
    if name in _MIRRORED or name in ("in", "nullif", "coalesce", "least", "greatest"):
        return Call(name, _adapted_together(arguments, kinds, Shown(call)))
    if name == "case":
        results = _adapted_together((*arguments[1::2], arguments[-1]), kinds, Shown(call))
        pairs = zip(arguments[:-1:2], results[:-1], strict=True)
        return Call(name, (*(part for pair in pairs for part in pair), results[-1]))
    if name == "date_diff":
        return Call(name, (arguments[0], *_adapted_together(arguments[1:], kinds, Shown(call))))
    if name == "/":
        return Call(name, tuple(_adapted_one(argument, FLOAT) for argument in arguments))
    if name in _ARITHMETIC and any(kind_of(argument, kinds).type == "float" for argument in arguments):
        return Call(name, tuple(_adapted_one(argument, FLOAT) for argument in arguments))
    return call


def _adapted_together(arguments: tuple[Expression, ...], kinds: Kinds, where: object) -> tuple[Expression, ...]:
    found = [kind_of(argument, kinds) for argument in arguments if not isinstance(argument, Value)]
    target = Kind("null")
    for kind in found:
        target = common(target, kind, where=where)
    constants = [kind_of_value(argument).type for argument in arguments if isinstance(argument, Value)]
    if target == DATE and "timestamp" in constants:
        target = TIMESTAMP
    if target.is_number and "float" in constants:
        target = FLOAT
    return tuple(_adapted_one(argument, target) for argument in arguments)


def _adapted_one(argument: Expression, kind: Kind) -> Expression:
    return adapted(argument, kind) if isinstance(argument, Value) else argument


def _without_idle_cast(call: Call, kinds: Kinds) -> Expression:
    target = call.function.removeprefix("cast_")
    inner = call.arguments[0]
    if kind_of(inner, kinds).type == target and target != "decimal":
        return inner
    if target == "timestamp" and isinstance(inner, Value):
        return adapted(inner, TIMESTAMP)
    return call


def _compared(call: Call) -> Expression:
    left, right = call.arguments
    constant_first = isinstance(left, Value) and not isinstance(right, Value)
    two_columns = not isinstance(left, Value) and not isinstance(right, Value)
    by_text = call.function in ("=", "<>") and repr(right) < repr(left)
    if constant_first or (two_columns and (call.function in (">", ">=") or by_text)):
        return Call(_MIRRORED[call.function], (right, left))
    return call


def _joined(call: Call) -> Expression:
    """Nested ANDs (or ORs) as one, each part once, sorted."""
    parts: dict[str, Expression] = {}
    for argument in call.arguments:
        same = isinstance(argument, Call) and argument.function == call.function
        for part in argument.arguments if isinstance(argument, Call) and same else (argument,):
            parts[repr(part)] = part
    ordered = tuple(parts[text] for text in sorted(parts))
    return ordered[0] if len(ordered) == 1 else Call(call.function, ordered)


def _membership(call: Call) -> Expression:
    tested, *constants = call.arguments
    if not constants or not all(isinstance(constant, Value) for constant in constants):
        raise QueryRefused(f"{show(call)}: IN takes a list of constants\nhint: write x = a OR x = b for other values")
    each = {repr(constant): constant for constant in constants}
    ordered = tuple(each[text] for text in sorted(each))
    return _compared(Call("=", (tested, ordered[0]))) if len(ordered) == 1 else Call("in", (tested, *ordered))


def _negated(call: Call) -> Expression:
    inner = call.arguments[0]
    return inner.arguments[0] if isinstance(inner, Call) and inner.function == "not" else call


def _minus(call: Call) -> Expression:
    inner = call.arguments[0]
    if isinstance(inner, Value) and inner.type in ("int", "decimal", "float"):
        return value_of(-inner.value)  # type: ignore[operator]
    return call


def _like(call: Call) -> Expression:
    tested, pattern, *escape = call.arguments
    parts = pattern_parts(pattern, escape[0] if escape else None)
    if escape and parts.escape is None:
        return Call("like", (tested, pattern))
    return call


_REWRITES: dict[str, Callable[[Call], Expression]] = {
    **dict.fromkeys(_MIRRORED, _compared),
    "and": _joined,
    "or": _joined,
    "not": _negated,
    "in": _membership,
    "negate": _minus,
    "like": _like,
    "least": in_one_order,
    "greatest": in_one_order,
    "concat": joined,
    "add_interval": in_steps,
}


def _decimal_cast_kind(call: Call, arguments: tuple[Kind, ...]) -> Kind:
    if len(arguments) != 3:
        return function(call.function).rule(arguments, Shown(call))
    source, (digits, scale) = arguments[0], (_size(argument) for argument in call.arguments[1:])
    if source.type not in ("int", "decimal", "text"):
        raise QueryRefused(
            f"{show(call)}: {phrase(source)} cannot become a decimal\nhint: decimal is made from int, decimal, text"
        )
    if not (1 <= digits <= DIGITS_MAX and 0 <= scale <= min(digits, SCALE_MAX)):
        raise QueryRefused(f"{show(call)}: at most {DIGITS_MAX} digits\nhint: CAST(x AS DECIMAL(12, 2))")
    return decimal(digits, scale)


def _size(argument: Expression) -> int:
    if isinstance(argument, Value) and argument.type == "int" and isinstance(argument.value, int):
        return argument.value
    raise QueryRefused("the digits of a decimal are not whole numbers\nhint: CAST(x AS DECIMAL(12, 2))")
