"""LEAST, GREATEST, ABS, ROUND, FLOOR and CEIL: their types, their words, and their one canonical form."""

from tacit.errors import QueryRefused
from tacit.query.kind import FLOAT, INT, Kind, decimal, fits
from tacit.query.nodes import Call, Expression, Value
from tacit.query.rule import Function, Kinds, number, one_kind, refuse_count
from tacit.query.show import Shown

PLACES_MAX = 15
WHOLE = ("round", "floor", "ceil")


def _choice(kinds: Kinds, where: Shown) -> Kind:
    if len(kinds) < 2:
        raise QueryRefused(f"{where} has one argument\nhint: LEAST(a, b) is the lower of two; MIN(x) is of many rows")
    return one_kind(kinds, where)


def _magnitude(kinds: Kinds, where: Shown) -> Kind:
    refuse_count(kinds, where, (1,), "ABS(x)")
    return number(kinds, where)


def _whole(kinds: Kinds, where: Shown) -> Kind:
    refuse_count(kinds, where, (1,), "FLOOR(x) or CEIL(x)")
    number(kinds, where)
    return INT


def _rounded(kinds: Kinds, where: Shown) -> Kind:
    refuse_count(kinds, where, (1, 2), "ROUND(x) or ROUND(x, 2)")
    kind = number(kinds, where)
    if len(kinds) == 1:
        return INT
    places = where.constant(1)
    if isinstance(places, bool) or not isinstance(places, int) or abs(places) > PLACES_MAX:
        raise QueryRefused(
            f"{where}: the places to round to are a whole number from -{PLACES_MAX} to {PLACES_MAX}"
            "\nhint: ROUND(x, 2), or ROUND(x, -3) for thousands"
        )
    if kind.type != "decimal":
        return FLOAT if kind.type == "float" else INT
    whole = kind.digits - kind.scale
    if places < 0:
        fits(max(kind.digits, whole + 2) - places, kind.scale - places, where=where)
        return decimal(max(whole, -places) + 1, 0)
    return kind if places >= kind.scale else decimal(whole + places + 1, places)


def without_idle_rounding(call: Call, kind: Kind) -> Expression:
    """Return the argument itself where it is whole already or has no more places than asked for.

    `kind` is the argument's.
    """
    inner, *given = call.arguments
    places = given[0].value if given and isinstance(given[0], Value) else 0
    if not isinstance(places, int):
        return call
    if kind.type == "int" and places >= 0:
        return inner
    if kind.type == "decimal" and given and places > 0 and places >= kind.scale:
        return inner
    return Call(call.function, (inner,)) if places == 0 else call


def in_one_order(call: Call) -> Expression:
    """Return LEAST or GREATEST with each argument once, sorted."""
    parts = {repr(argument): argument for argument in call.arguments}
    ordered = tuple(parts[text] for text in sorted(parts))
    return ordered[0] if len(ordered) == 1 else Call(call.function, ordered)


ENTRIES = (
    Function("least", "LEAST(a, b)", "the first in order of those that are not NULL; NULL if all are", _choice),
    Function("greatest", "GREATEST(a, b)", "the last in order of those that are not NULL; NULL if all are", _choice),
    Function("abs", "ABS(a)", "a without its sign; the least int has no opposite, so NULL", _magnitude),
    Function(
        "round",
        "ROUND(a [, places])",
        "the nearest whole number, halves away from 0, as an int: NULL beyond 64 bits and for ±Inf. With places, from"
        " -15 to 15 and not 0: an int or decimal exactly, halves away from 0, an int beyond 64 bits NULL; a float x is"
        " the whole number nearest x × 10^places, halves away from 0, divided by 10^places (for negative places"
        " divided first, then multiplied), each step rounded as floats are, or x itself where the scaled number is"
        " 2^53 or more",
        _rounded,
    ),
    Function("floor", "FLOOR(a)", "the last whole number up to a, as an int; NULL beyond 64 bits and for ±Inf", _whole),
    Function(
        "ceil", "CEIL(a)", "the first whole number from a on, as an int; NULL beyond 64 bits and for ±Inf", _whole
    ),
)
