"""The casts, one record for each target type."""

from collections.abc import Callable
from typing import Any

from tacit.errors import QueryRefused
from tacit.query.kind import (
    BOOL,
    DATE,
    DIGITS_MAX,
    FLOAT,
    INT,
    SCALE_MAX,
    TEXT,
    TIMESTAMP,
    Kind,
    decimal,
    phrase,
    value_of,
)
from tacit.query.language.evaluation import as_bool, as_date, as_int, as_timestamp, to_decimal, to_float, to_text
from tacit.query.language.functions import (
    CheckedCall,
    Cost,
    Function,
    KindOf,
    Kinds,
    Notation,
    Pen,
    Rewrite,
    TypeRule,
    longest,
    looks,
    strict,
)
from tacit.query.literal import adapted
from tacit.query.nodes import Call, Expression, Value

# an upper bound on the characters of a number or a date written as text
_NUMBER_CHARACTERS = 50
_FLOAT_PLACES = 15  # the digits after the point that ROUND gives a float
_READ_ONCE = Cost(bytes_read=looks(1))


def _cast(target: Kind, run: Callable[..., Any], meaning: str, *sources: str, cost: Cost = _READ_ONCE) -> Function:
    """Return the cast to every kind but decimal, which needs its digits."""
    name, form, kind = f"cast_{target.type}", f"CAST(a AS {target.type.upper()})", _cast_kind(target, sources)
    notation, rewrite = Notation(_write_cast(target.type)), _without_idle_cast(target)
    return Function(name, form, meaning, kind, strict(run), rewrite=rewrite, notation=notation, cost=cost)


def _cast_kind(target: Kind, sources: tuple[str, ...]) -> TypeRule:
    def kind(kinds: Kinds, where: CheckedCall) -> Kind:
        if kinds[0].type not in sources:
            raise QueryRefused(
                f"{where}: {phrase(kinds[0])} cannot become {phrase(target)}"
                f"\nhint: CAST to {target.type} takes {', '.join(sources)}"
            )
        return target

    return kind


def _without_idle_cast(target: Kind) -> Rewrite:
    def rewrite(checked: CheckedCall, kind_of: KindOf) -> Expression:
        inner = checked.call.arguments[0]
        if kind_of(inner).type == target.type:
            return inner
        if target == TIMESTAMP and isinstance(inner, Value):
            return adapted(inner, TIMESTAMP)
        return checked.call

    return rewrite


def _write_cast(target: str) -> Callable[[Call, Pen], str]:
    def write(call: Call, pen: Pen) -> str:
        inner, *sizes = map(pen.plain, call.arguments)
        size = f"({', '.join(sizes)})" if sizes else ""
        return f"CAST({inner} AS {target.upper()}{size})"

    return write


def _float_rounded(checked: CheckedCall, kind_of: KindOf) -> Call:
    """Floats lack exact decimal digits: as a DECIMAL(p, s) a float is rounded to s of them, and stays a float."""
    call = checked.call
    scale = call.arguments[2].value if len(call.arguments) == 3 and isinstance(call.arguments[2], Value) else None
    if not isinstance(scale, int) or not 0 <= scale <= _FLOAT_PLACES or kind_of(call.arguments[0]).type != "float":
        return call
    return Call("round", (call.arguments[0], value_of(scale)) if scale else (call.arguments[0],))


def _decimal_kind(kinds: Kinds, where: CheckedCall) -> Kind:
    if len(kinds) != 3:
        raise QueryRefused(f"{where} needs a number of digits and a scale\nhint: CAST(x AS DECIMAL(12, 2))")
    digits, scale = (_decimal_size(kinds, where, index) for index in (1, 2))
    if kinds[0].type not in ("int", "decimal", "text"):
        raise QueryRefused(
            f"{where}: {phrase(kinds[0])} cannot become a decimal"
            "\nhint: CAST to decimal takes int, decimal, text, and float with at most 15 decimals"
        )
    if not (1 <= digits <= DIGITS_MAX and 0 <= scale <= min(digits, SCALE_MAX)):
        raise QueryRefused(
            f"{where}: a decimal has 1 to {DIGITS_MAX} digits and a scale from 0 to {SCALE_MAX}, not above its digits"
            "\nhint: CAST(x AS DECIMAL(12, 2))"
        )
    return decimal(digits, scale)


def _decimal_size(kinds: Kinds, where: CheckedCall, index: int) -> int:
    constant = where.constant(index)
    if kinds[index].type == "int" and isinstance(constant, int):
        return constant
    raise QueryRefused("the digits and the scale of a decimal must be whole numbers\nhint: CAST(x AS DECIMAL(12, 2))")


CASTS = (
    _cast(
        BOOL,
        as_bool,
        "an int: whether it is not 0; text, trimmed, in any case: true or false, else NULL",
        *("bool", "int", "text"),
        cost=Cost(mentions=2, bytes_read=looks(1)),
    ),
    _cast(
        INT,
        as_int,
        "a decimal or float without its digits after the point (toward 0), NULL beyond 64 bits; true is 1; text,"
        " trimmed: an optional sign and at most 30 digits 0 to 9, else NULL",
        *("bool", "int", "decimal", "float", "text"),
    ),
    _cast(
        FLOAT,
        to_float,
        "the nearest float; text, trimmed: sign, at most 40 digits on each side of an optional point, an optional"
        " exponent (e or E, sign, at most 3 digits), else NULL; text beyond the largest float is NULL",
        *("int", "decimal", "float", "text"),
        cost=Cost(mentions=4, bytes_read=looks(1)),
    ),
    Function(
        "cast_decimal",
        "CAST(a AS DECIMAL(p, s))",
        "rounded to s digits after the point, halves away from 0; NULL if it needs over p digits; text, trimmed: sign,"
        " at most 40 digits on each side of an optional point, else NULL. A float is ROUND(a, s), and stays one."
        " Without sizes they are 18 and 3, without s it is 0",
        _decimal_kind,
        adapt=_float_rounded,
        evaluate=strict(to_decimal),
        notation=Notation(_write_cast("decimal")),
        cost=_READ_ONCE,
    ),
    _cast(
        TEXT,
        to_text,
        "an int in digits; a decimal with all its scale's digits, 0.50; true or false; a date as 2011-01-31",
        *("text", "int", "decimal", "bool", "date"),
        cost=Cost(
            bytes_read=looks(1),
            text_bytes=lambda _call, _bytes_of: _NUMBER_CHARACTERS,
            text_length=lambda parts: (longest(parts)[0], max(longest(parts)[1], _NUMBER_CHARACTERS)),
        ),
    ),
    _cast(
        DATE,
        as_date,
        "a timestamp's day; text: the day of CAST(a AS TIMESTAMP), so in UTC if it has an offset",
        *("date", "timestamp", "text"),
        cost=Cost(mentions=9, bytes_read=looks(1)),
    ),
    _cast(
        TIMESTAMP,
        as_timestamp,
        "a date's midnight; text, trimmed: YYYY-MM-DD, or with T or a space HH:MM or HH:MM:SS and at most 9 more digits"
        " after a point (rounded down to microseconds), then perhaps Z or an offset below 16 hours such as +02, +0200"
        " or +02:00, which is taken off so that it is in UTC; in the calendar and below 24:00:00, else NULL",
        *("timestamp", "date", "text"),
        cost=Cost(mentions=9, bytes_read=looks(1)),
    ),
)
