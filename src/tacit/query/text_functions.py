"""LENGTH, SUBSTRING, CONCAT and REPLACE: their types, their words, and their one canonical form."""

from tacit.errors import QueryRefused
from tacit.query.kind import INT, TEXT, Kind
from tacit.query.nodes import Call, Expression
from tacit.query.rule import Function, Kinds, refuse_count, text
from tacit.query.show import Shown

POSITION_MAX = 1_000_000


def _length(kinds: Kinds, where: Shown) -> Kind:
    refuse_count(kinds, where, (1,), "LENGTH(x)")
    text(kinds, where)
    return INT


def _substring(kinds: Kinds, where: Shown) -> Kind:
    refuse_count(kinds, where, (2, 3), "SUBSTRING(x, 1, 3)")
    text(kinds[:1], where)
    for place, least in ((1, 1), (2, 0))[: len(kinds) - 1]:
        given = where.constant(place)
        if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= POSITION_MAX:
            raise QueryRefused(
                f"{where}: the start counts from 1, the length from 0, both whole constants up to {POSITION_MAX}"
                "\nhint: SUBSTRING(x, 1, 3) is the first three characters"
            )
    return TEXT


def _replace(kinds: Kinds, where: Shown) -> Kind:
    refuse_count(kinds, where, (3,), "REPLACE(x, 'a', 'b')")
    text(kinds, where)
    old, new = where.constant(1), where.constant(2)
    if not isinstance(old, str) or not isinstance(new, str) or not old:
        raise QueryRefused(
            f"{where}: what is replaced is a constant text that is not empty, and so is by what, which may be"
            "\nhint: REPLACE(x, '-', '') takes hyphens out"
        )
    return TEXT


def joined(call: Call) -> Expression:
    """Return CONCAT with what is nested in it as its own parts: any NULL makes NULL, so brackets do not matter."""
    parts: list[Expression] = []
    for argument in call.arguments:
        nested = isinstance(argument, Call) and argument.function == "concat"
        parts += argument.arguments if isinstance(argument, Call) and nested else (argument,)
    return parts[0] if len(parts) == 1 else Call("concat", tuple(parts))


ENTRIES = (
    Function("length", "LENGTH(a)", "how many code points a has; 0 for empty text", _length),
    Function(
        "substring",
        "SUBSTRING(a, start [, length])",
        "that many code points from the start on, counted from 1, or all of them; fewer where a ends before, empty"
        " text where it ends before the start; start and length are constants",
        _substring,
    ),
    Function("concat", "CONCAT(a, b) or a || b", "the texts one after the other; NULL if any is NULL", text),
    Function(
        "replace",
        "REPLACE(a, 'old', 'new')",
        "a with each old, found from left to right without overlap and code point by code point, become new; both are"
        " constants, and old is not empty",
        _replace,
    ),
)
