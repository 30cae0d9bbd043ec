"""Functions of floats (roots, powers, logarithms), whole division, and times as text, one record each.

The engine's translations of them are in `engine/translations.py`. Roots are the nearest float. Powers and logarithms
are as near as the machine's own library of such functions has them, which is within one unit of the last place.
"""

import math
from collections.abc import Callable
from datetime import date, datetime

from tacit.errors import QueryRefused
from tacit.query.language.functions import (
    BytesOf,
    CheckedCall,
    Cost,
    Function,
    Kinds,
    any_numbers,
    as_float,
    as_floats,
    gives,
    infix,
    settled,
    strict,
    whole_numbers,
)
from tacit.query.nodes import DATE, FLOAT, INT_MOST, TEXT, Call, Kind, Value

# --- whole division ---


def _whole_quotient(top: int, bottom: int) -> int | None:
    if bottom == 0:
        return None
    size = abs(top) // abs(bottom)
    found = size if (top < 0) == (bottom < 0) else -size
    return found if found <= INT_MOST else None


# --- roots, powers, logarithms ---


def _above_zero(run: Callable[[float], float]) -> Callable[[float], float | None]:
    return lambda value: None if value <= 0 else math.inf if value == math.inf else run(value)


def _exponential(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _power(base: float, exponent: float) -> float | None:
    try:
        return math.pow(base, exponent)
    except OverflowError:
        odd = math.fmod(exponent, 2) in (1, -1)
        return -math.inf if base < 0 and odd else math.inf
    except ValueError:  # 0 to a negative power, or a root of a negative number
        if base != 0:
            return None
        negative_zero = math.copysign(1, base) < 0 and math.fmod(exponent, 2) in (1, -1)
        return -math.inf if negative_zero else math.inf


def _real(name: str, form: str, meaning: str, evaluate: Callable[..., float | None], *, count: int = 1) -> Function:
    kind, run = gives(FLOAT, any_numbers), strict(lambda *values: settled(evaluate(*map(as_float, values))))
    return Function(name, form, meaning, kind, run, as_floats, cost=Cost(mentions=2), counts=(count,))


MATHS = (
    Function(
        "//",
        "a // b",
        "the quotient of whole numbers without its digits after the point (toward 0); NULL if b is 0, and beyond 64"
        " bits",
        whole_numbers,
        evaluate=strict(_whole_quotient),
        notation=infix("//"),
        cost=Cost(mentions=3, mentions_by_constant=1),
    ),
    _real(
        "sqrt",
        "SQRT(a)",
        "the root of a, the nearest float; NULL below 0",
        lambda value: None if value < 0 else math.sqrt(value),
    ),
    _real("exp", "EXP(a)", "e to the power a, within one unit of a float's last place", _exponential),
    _real(
        "ln",
        "LN(a)",
        "the natural logarithm, within one unit of a float's last place; NULL unless a is above 0",
        _above_zero(math.log),
    ),
    _real(
        "log10",
        "LOG10(a) or LOG(a)",
        "the logarithm to base 10, within one unit of a float's last place; NULL unless a is above 0. LOG(b, a), to"
        " base b, is LN(a) / LN(b)",
        _above_zero(math.log10),
    ),
    _real(
        "log2",
        "LOG2(a)",
        "the logarithm to base 2, within one unit of a float's last place; NULL unless a is above 0",
        _above_zero(math.log2),
    ),
    _real(
        "power",
        "POWER(a, b) or a ** b",
        "a to the power b, within one unit of a float's last place; NULL if a is negative and b is not whole",
        _power,
        count=2,
    ),
)

# --- times as text ---

_FORMAT_MAX = 40
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
Written = Callable[[date], str]


def _clock(part: str) -> Written:
    return lambda time: f"{getattr(time, part, 0):02}"


# the letters that may follow % in a format, and the text of each
DIRECTIVES: dict[str, Written] = {
    "Y": lambda time: f"{time.year:04}",
    "m": lambda time: f"{time.month:02}",
    "d": lambda time: f"{time.day:02}",
    "H": _clock("hour"),
    "M": _clock("minute"),
    "S": _clock("second"),
    "y": lambda time: f"{time.year % 100:02}",
    "j": lambda time: f"{time.timetuple().tm_yday:03}",
    "b": lambda time: _MONTHS[time.month - 1][:3],
    "B": lambda time: _MONTHS[time.month - 1],
    "a": lambda time: _DAYS[time.weekday()][:3],
    "A": lambda time: _DAYS[time.weekday()],
    "u": lambda time: str(time.isoweekday()),
    "w": lambda time: str(time.isoweekday() % 7),
    "V": lambda time: f"{time.isocalendar()[1]:02}",
    "%": lambda _time: "%",
}
_OF_CLOCKS = ("H", "M", "S")


def format_parts(written: str) -> list[str] | None:
    """Return a format in pieces, each one directive such as '%Y' or one other character; None if one is not known."""
    parts, rest = [], written
    while rest:
        length = 2 if rest[0] == "%" else 1
        piece, rest = rest[:length], rest[length:]
        if piece[0] == "%" and piece[1:] not in DIRECTIVES:
            return None
        parts.append(piece)
    return parts


def _text_kind(kinds: Kinds, where: CheckedCall) -> Kind:
    if not kinds[0].is_time:
        raise QueryRefused(
            f"{where} needs a date or timestamp, but has {kinds[0].phrase}\nhint: CAST(x AS DATE) reads text"
        )
    written = where.constant(1)
    parts = format_parts(written) if isinstance(written, str) and 0 < len(written) <= _FORMAT_MAX else None
    if parts is None:
        known = ", ".join(f"%{letter}" for letter in DIRECTIVES)
        raise QueryRefused(
            f"{where}: the format must be a constant of at most {_FORMAT_MAX} characters, with {known}"
            "\nhint: STRFTIME(x, '%Y-%m')"
        )
    if kinds[0] == DATE and any(part[1:] in _OF_CLOCKS for part in parts if part[0] == "%"):
        raise QueryRefused(
            f"{where}: a date does not have a time of day\nhint: use a timestamp, or a format of whole days"
        )
    return TEXT


def _time_as_text(time: date | datetime, written: str) -> str | None:
    parts = format_parts(written)
    if parts is None:
        return None
    return "".join(DIRECTIVES[part[1:]](time) if part[0] == "%" else part for part in parts)


def _text_bytes(call: Call, _bytes_of: BytesOf) -> int:
    written = call.arguments[1] if len(call.arguments) == 2 else None
    text = written.value if isinstance(written, Value) else None
    return 9 * len(text.encode("utf-8", "surrogatepass")) if isinstance(text, str) else 0


FORMATS = (
    Function(
        "strftime",
        "STRFTIME(a, '%Y-%m')",
        "a date or timestamp as text: %Y year in four digits, %m month, %d day, %H, %M, %S time of day, %y year in two"
        " digits, %j day of the year in three, %b and %B month, %a and %A day of the week in English, %u and %w its"
        " number (Monday is 1; Sunday is 7 or 0), %V the ISO week, %% a percent sign; the format is a constant",
        _text_kind,
        evaluate=strict(_time_as_text),
        counts=(2,),
        cost=Cost(text_bytes=_text_bytes, text_length=lambda _parts: (0, 9 * _FORMAT_MAX)),
    ),
)
