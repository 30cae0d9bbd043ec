"""The catalogue's words about whole division, roots, powers, logarithms and times as text, as plain Python.

Roots are compared digit by digit. Powers and logarithms are computed to many digits and rounded; an engine may be one
unit of the last place away (`is_near`).
"""

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

from tacit.query.nodes import Kind

NEAR = frozenset(("exp", "ln", "log10", "log2", "power"))
_DIGITS = 60
_INFINITE = float("inf")


def is_near(found: Any, wanted: Any) -> bool:
    """Whether a float is at most one unit of the last place away from the one wanted."""
    if not isinstance(found, float) or not isinstance(wanted, float):
        return found is None and wanted is None
    if found == wanted:
        return True
    import math

    return found in (math.nextafter(wanted, _INFINITE), math.nextafter(wanted, -_INFINITE))


def _floats(arguments: list[Any]) -> list[float]:
    return [float(argument) for argument in arguments]


def _whole_quotient(arguments: list[Any], _kind: Kind) -> Any:
    top, bottom = arguments
    if bottom == 0:
        return None
    exact = Fraction(top, bottom)
    whole = int(exact)  # toward 0
    return whole if -(2**63) <= whole < 2**63 else None


def _sqrt(arguments: list[Any], _kind: Kind) -> Any:
    (value,) = _floats(arguments)
    if value < 0:
        return None
    if value in (0.0, _INFINITE):
        return value
    with localcontext() as context:
        context.prec = 400
        return float(Decimal(value).sqrt())


def _rounded(number: Decimal) -> float:
    try:
        return float(number)
    except OverflowError:
        return _INFINITE if number > 0 else -_INFINITE


def _exp(arguments: list[Any], _kind: Kind) -> Any:
    (value,) = _floats(arguments)
    if value > 800:
        return _INFINITE
    if value < -800:
        return 0.0
    with localcontext() as context:
        context.prec = _DIGITS
        return _rounded(Decimal(value).exp())


def _logarithm(base: int | None) -> Callable[[list[Any], Kind], Any]:
    def run(arguments: list[Any], _kind: Kind) -> Any:
        (value,) = _floats(arguments)
        if value <= 0 or value == _INFINITE:
            return None if value <= 0 else _INFINITE
        with localcontext() as context:
            context.prec = _DIGITS
            natural = Decimal(value).ln()
            return _rounded(natural if base is None else natural / Decimal(base).ln()) + 0.0

    return run


def _power(arguments: list[Any], _kind: Kind) -> Any:
    base, exponent = _floats(arguments)
    if exponent == 0 or base == 1:
        return 1.0
    special = _special_power(base, exponent)
    if special is not _ORDINARY:
        return special
    whole = exponent == int(exponent)
    if base < 0 and not whole:
        return None
    sign = -1.0 if base < 0 and int(exponent) % 2 else 1.0
    with localcontext() as context:
        context.prec = _DIGITS + 20
        size = Decimal(abs(base)).ln() * Decimal(exponent)
        if abs(size) > 800:
            return sign * _INFINITE if size > 0 else 0.0
        return sign * _rounded(size.exp()) + 0.0


_ORDINARY = object()


def _special_power(base: float, exponent: float) -> Any:
    """Return a power of 0 or of ±Inf, or to ±Inf, as IEEE 754 has it; −0.0 reads as 0.0."""
    if abs(exponent) == _INFINITE:
        if abs(base) == 1:
            return 1.0
        return _INFINITE if (abs(base) > 1) == (exponent > 0) else 0.0
    odd = exponent == int(exponent) and int(exponent) % 2 == 1
    if base == 0:
        return 0.0 if exponent > 0 else _INFINITE
    if abs(base) == _INFINITE:
        if exponent < 0:
            return 0.0
        return -_INFINITE if base < 0 and odd else _INFINITE
    return _ORDINARY


_MONTHS = "JanuaryFebruaryMarchAprilMayJuneJulyAugustSeptemberOctoberNovemberDecember"
_STARTS = (0, 7, 15, 20, 25, 28, 32, 36, 42, 51, 58, 66, 74)
_WEEK = ("Mon", "Tues", "Wednes", "Thurs", "Fri", "Satur", "Sun")


def _strftime(arguments: list[Any], _kind: Kind) -> Any:
    time, form = arguments
    text, place = "", 0
    while place < len(form):
        if form[place] != "%":
            text, place = text + form[place], place + 1
            continue
        text, place = text + _directive(form[place + 1], time), place + 2
    return text


def _directive(letter: str, time: date) -> str:
    month = _MONTHS[_STARTS[time.month - 1] : _STARTS[time.month]]
    day = _WEEK[(time.toordinal() - 1) % 7] + "day"
    clock = time if isinstance(time, datetime) else datetime(1, 1, 1)  # noqa: DTZ001 - no zones here
    first = date(time.year, 1, 1).toordinal()
    numbers = {"Y": (time.year, 4), "y": (time.year % 100, 2), "m": (time.month, 2), "d": (time.day, 2)}
    numbers |= {"H": (clock.hour, 2), "M": (clock.minute, 2), "S": (clock.second, 2)}
    numbers |= {"j": (time.toordinal() - first + 1, 3), "V": (time.isocalendar().week, 2)}
    numbers |= {"u": ((time.toordinal() - 1) % 7 + 1, 1), "w": (time.toordinal() % 7, 1)}
    if letter in numbers:
        number, digits = numbers[letter]
        return str(number).rjust(digits, "0")
    return {"b": month[:3], "B": month, "a": day[:3], "A": day, "%": "%"}[letter]


MATHS: dict[str, Callable[[list[Any], Kind], Any]] = {
    "//": _whole_quotient,
    "sqrt": _sqrt,
    "exp": _exp,
    "ln": _logarithm(None),
    "log10": _logarithm(10),
    "log2": _logarithm(2),
    "power": _power,
    "strftime": _strftime,
}
