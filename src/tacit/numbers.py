"""Reads a number that a person wrote as the exact rational they meant, and prints rationals back.

The use of the number is left to others. A float means its shortest decimal (0.1 is 1/10) if a person writes it as a
loss, and its exact binary value if it is a measurement or a scale. Text from outside is measured before it is read: a
few characters can name a number with an exact integer that would fill the memory. The grammar is the same in Python, a
command, JSON, a file or a form: a decimal (2, -0.5, 1e-6) or a quotient of two whole numbers (1/3), in ASCII digits,
without spaces or underscores.

Whole numbers of many groups at once: int64 arrays if they provably fit, otherwise Python integers.

Certain digits: evaluates a formula in ball arithmetic until its floor, its sign or its rounding is beyond doubt.

A formula is a function without arguments that is evaluated at the current working precision (python-flint's `arb`). The
precision is one global of that library, so every evaluation here holds one lock. The last part rounds a formula to a
short rational, up or down with certainty.
"""

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from math import inf, nextafter
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import NDArray

from tacit.errors import InvalidParameter, TacitError
from tacit.system import at_fork

# 1e999999999 is a number of a gigabyte. This many digits are enough for any loss, and quick to read.
DIGITS_MAX = 4000
# A quotient of two such numbers has at most this many digits above and below the line.
EXACT_DIGITS_MAX = 4 * DIGITS_MAX
_EXACT = re.compile(rf"(-?[0-9]{{1,{EXACT_DIGITS_MAX}}})(?:/([0-9]{{1,{EXACT_DIGITS_MAX}}}))?", re.ASCII)
_DECIMAL = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,9})?"
_WRITTEN = re.compile(rf"(?P<decimal>{_DECIMAL})|(?P<top>[+-]?[0-9]+)/(?P<bottom>[0-9]+)", re.ASCII)
WHOLE_MOST = 2**63 - 1
# The smallest float is 5e-324, a fraction of two numbers of up to 1075 bits; the largest is below 2^1024.
BITS_MOST = 1100

Number = int | float | str | Fraction | Decimal


def decimal_meaning(value: Number, *, name: str) -> Fraction:
    """Return the rational a person means by `value`: a float is its shortest decimal, so 0.1 is 1/10.

    >>> decimal_meaning(0.1, name="epsilon")
    Fraction(1, 10)
    """
    _refuse_what_is_no_number(value, name)
    if isinstance(value, Rational):
        return _within_digits(Fraction(int(value.numerator), int(value.denominator)), name)
    # str() of a float, numpy's float32 included, is its shortest decimal
    return _from_text(str(value), name)


def binary_meaning(value: Number, *, name: str) -> Fraction:
    """Return the exact value of `value`: a float is the binary fraction it holds.

    >>> binary_meaning(0.5, name="scale")
    Fraction(1, 2)
    """
    _refuse_what_is_no_number(value, name)
    if isinstance(value, Rational):
        return _within_digits(Fraction(int(value.numerator), int(value.denominator)), name)
    if isinstance(value, Real):
        as_float = float(value)
        if as_float != as_float or as_float in (float("inf"), float("-inf")):
            raise InvalidParameter(f"{name} must be a finite number, not {as_float}")
        return Fraction(as_float)
    return _from_text(str(value), name)


def positive(value: Fraction, *, name: str) -> Fraction:
    """Return `value` if it is above zero; otherwise refuse, naming the rule."""
    if value <= 0:
        raise InvalidParameter(
            f"{name} must be above 0, not {show(value)}\nhint: give a positive number, e.g. {name}=1"
        )
    return value


def within(value: Fraction, *, name: str, least: Fraction, most: Fraction) -> Fraction:
    """Return `value` if it lies between two ends, themselves included; otherwise refuse, naming both."""
    if not least <= value <= most:
        raise InvalidParameter(f"{name} must be from {show(least)} to {show(most)}, not {_shown_shortly(value)}")
    return value


def is_long(value: Fraction) -> bool:
    """Whether a number has more digits, before or after the point, than any float or stored decimal has."""
    return max(value.numerator.bit_length(), value.denominator.bit_length()) > BITS_MOST


def whole(value: object, *, name: str, least: int = 1) -> int:
    """Return `value` as an int of at least `least`; floats, text and bools are refused."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise InvalidParameter(f"{name} must be a whole number of at least {least}, not {type(value).__name__}")
    if value < least:
        raise InvalidParameter(f"{name} must be a whole number of at least {least}, not {int(value)}")
    if int(value) > WHOLE_MOST:
        raise InvalidParameter(f"{name} must be a whole number below 2^63\nhint: give a smaller one")
    return int(value)


def show(value: Fraction, *, up: bool = True) -> str:
    """Return `value` for people: its decimal if that is short and exact, otherwise six digits.

    The digits are rounded up, so that a loss never looks smaller than it is; the rest of a budget is rounded down.

    >>> show(Fraction(1, 10)), show(Fraction(1, 3)), show(Fraction(1, 3), up=False), show(Fraction(1, 10**6))
    ('0.1', '0.333334', '0.333333', '1e-6')
    """
    if value == 0:
        return "0"
    as_float = _finite_float(value)
    if as_float is not None:
        short = f"{as_float:.10g}"
        if Fraction(short) == value:
            return short.replace("e-0", "e-").replace("e+0", "e+")
    return _with_digits(value, 6, up=up)


def brief(value: Fraction | float, *, up: bool = True) -> str:
    """Return an amount of loss with two significant digits, rounded up; the rest of a budget is rounded down.

    An amount that has three digits is printed with all of them.

    >>> brief(Fraction(1, 3)), brief(0.125), brief(9.99986e-7), brief(8.88889e-7, up=False), brief(1)
    ('0.34', '0.125', '1e-6', '8.8e-7', '1')
    """
    exact = value if isinstance(value, Fraction) else Fraction(repr(value))
    if exact == 0:
        return "0"
    three = _with_digits(exact, 3, up=up)
    return three if Fraction(three) == exact else _with_digits(exact, 2, up=up)


def float_below(value: Fraction) -> float:
    """Return the largest float with a shortest decimal of at most `value`: a remaining budget can be asked for as
    shown.

    >>> float_below(Fraction(2, 3)), float_below(Fraction(1, 10))
    (0.6666666666666666, 0.1)
    """
    found = float(value)
    while Fraction(repr(found)) > value:
        found = nextafter(found, -inf)
    return found


def to_text(value: Fraction) -> str:
    """Return `value` as exact text that `from_text` reads back: 'p/q' or 'p'."""
    top = _digits_of(value.numerator)
    return top if value.denominator == 1 else f"{top}/{_digits_of(value.denominator)}"


def from_text(text: object) -> Fraction:
    """Return the rational that `to_text` wrote; any other text is refused, and so is one that is too long.

    >>> from_text("1/3")
    Fraction(1, 3)
    """
    found = _EXACT.fullmatch(text) if isinstance(text, str) and len(text) <= 2 * EXACT_DIGITS_MAX + 2 else None
    bottom = 1 if found is None or found[2] is None else _whole_from(found[2])
    if found is None or bottom == 0:
        raise InvalidParameter(
            "an exact number must be written as p/q or p in digits; this text is not, or it is too long"
        )
    return Fraction(_whole_from(found[1]), bottom)


def read_json(text: str | bytes) -> Any:
    """Return the value of JSON that others wrote; ValueError if it is not JSON, is nested too deep or holds NaN.

    A whole number in it may have at most the number of digits of our own numbers.
    """
    try:
        return json.loads(text, parse_int=_json_whole, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _shown_shortly(value: Fraction) -> str:
    return "a number of very many digits" if is_long(value) else show(value)


def _refuse_what_is_no_number(value: object, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (Real, Decimal, str)):
        raise InvalidParameter(
            f"{name} must be a number, not {type(value).__name__}"
            f"\nhint: write it as a number or a decimal, e.g. {name}=0.5"
        )


def _within_digits(value: Fraction, name: str) -> Fraction:
    if max(abs(value.numerator), value.denominator) > 10 ** (DIGITS_MAX + 1):
        raise InvalidParameter(f"{name} has more than {DIGITS_MAX} digits; give a shorter number")
    return value


def _digits_of(value: int) -> str:
    return str(Decimal(value))  # str(int) is limited to a length that the user can set


def _whole_from(digits: str) -> int:
    return int(Decimal(digits))


def _json_whole(digits: str) -> int:
    if len(digits) > DIGITS_MAX:
        raise ValueError("a number with too many digits")
    return int(digits)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _from_text(text: str, name: str) -> Fraction:
    if len(text) > 2 * DIGITS_MAX + 100:
        raise InvalidParameter(f"{name} has more than {DIGITS_MAX} digits; give a shorter number")
    if text.lower().lstrip("+-") in ("inf", "infinity", "nan"):
        raise InvalidParameter(f"{name} must be a finite number, not {text}")
    found = _WRITTEN.fullmatch(text)
    if found is None:
        raise InvalidParameter(
            f"{name} must be a number; this text is not one"
            f"\nhint: write digits and a point, without spaces, e.g. {name}='0.5', or a quotient, e.g. '1/3'"
        )
    parts = [Decimal(part) for part in (found["decimal"], found["top"], found["bottom"]) if part is not None]
    if any(abs(part.adjusted()) > DIGITS_MAX or len(part.as_tuple().digits) > DIGITS_MAX for part in parts):
        raise InvalidParameter(f"{name} has more than {DIGITS_MAX} digits; give a shorter number")
    if len(parts) == 2 and parts[1] == 0:
        raise InvalidParameter(f"{name} must be a finite number; it divides by zero")
    return Fraction(parts[0]) / Fraction(parts[1]) if len(parts) == 2 else Fraction(parts[0])


def _finite_float(value: Fraction) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _with_digits(value: Fraction, count: int, *, up: bool) -> str:
    """Return this many significant digits, rounded away from zero or towards it."""
    sign, size = ("-", -value) if value < 0 else ("", value)
    exponent = len(_digits_of(size.numerator)) - len(_digits_of(size.denominator))
    if size < Fraction(10) ** exponent:
        exponent -= 1
    scaled = size * Fraction(10) ** (count - 1 - exponent)
    digits = -(-scaled // 1) if up else scaled // 1
    shown = Decimal(int(digits)).scaleb(exponent - count + 1).normalize()
    power = shown.adjusted()
    return f"{sign}{shown:f}" if -4 <= power < 12 else f"{sign}{shown.scaleb(-power):f}e{power}"


def sensitivity_meaning(value: Number) -> Fraction:
    """Return a sensitivity as a rational at least as large as the float and the decimal that were written."""
    larger = max(decimal_meaning(value, name="sensitivity"), binary_meaning(value, name="sensitivity"))
    return positive(larger, name="sensitivity")


def confidence_meaning(value: Number) -> Fraction:
    exact = decimal_meaning(value, name="confidence")
    if is_long(exact):
        raise InvalidParameter("confidence has more than 300 digits\nhint: e.g. confidence=0.95")
    if not 0 < exact < 1:
        raise InvalidParameter(f"confidence must lie between 0 and 1, not {show(exact)}\nhint: e.g. confidence=0.95")
    return exact


Floats = NDArray[np.float64]


Flags = NDArray[np.bool_]


Words = NDArray[np.uint64]


Integers = NDArray[np.int64]


Wholes = NDArray[Any]  # int64, or Python's integers as objects
FITS = 2**63 - 1
# Whole numbers up to here are floats without rounding.
FLOAT_EXACT = 2**53


def wholes(values: Sequence[int] | Wholes) -> Wholes:
    """Return whole numbers as an array that holds each of them exactly."""
    if isinstance(values, np.ndarray) and values.dtype in (np.int64, object):
        return values
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return np.array(values, dtype=object)


def combined(*terms: tuple[int, Sequence[int] | Wholes]) -> Wholes:
    """Return the sum of weight · values over the terms, exactly.

    >>> combined((2, [1, 2]), (-1, [5, 2**62])).tolist()
    [-3, -4611686018427387900]
    """
    arrays = [(weight, wholes(values)) for weight, values in terms]
    # no weight, no product and no sum on the way is larger than this
    if sum(abs(weight) * max(largest(values), 1) for weight, values in arrays) > FITS:
        arrays = [(weight, values.astype(object)) for weight, values in arrays]
    weight, values = arrays[0]
    total = values * weight
    for weight, values in arrays[1:]:
        total = total + (values if weight == 1 else values * weight)
    return total


def nearest_quotients(tops: Wholes, bottom: int) -> Wholes:
    """Return each top / bottom to the nearest whole number, halves upwards."""
    if 2 * (largest(tops) + bottom) > FITS:
        tops = tops.astype(object)
    return (2 * tops + bottom) // (2 * bottom)


def largest(values: Wholes) -> int:
    """Return the largest size among some whole numbers, 0 for an empty list."""
    return max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0


Formula = Callable[[], arb]

PRECISION_FIRST = 128
# Formulas here settle within a few doublings unless they hit a boundary exactly, which the callers rule out.
PRECISION_LAST = 1 << 24

_precision_lock = threading.RLock()


def _renew_lock() -> None:
    """Give a forked child its own lock: a thread that held this one is not there to let go of it."""
    global _precision_lock
    _precision_lock = threading.RLock()


at_fork(after_in_child=_renew_lock)


@contextmanager
def working_precision(bits: int) -> Iterator[None]:
    """Evaluate the block with `bits` of precision, while other threads wait."""
    with _precision_lock:
        before = ctx.prec
        ctx.prec = bits
        try:
            yield
        finally:
            ctx.prec = before


def ball(value: Fraction | int) -> arb:
    """Return a ball around an exact rational, at the working precision."""
    return arb(fmpq(value.numerator, value.denominator))


def certain_floor(formula: Formula) -> int:
    """Return the floor of a real number that is not an integer, with certainty."""
    for bits in _precisions():
        with working_precision(bits):
            floor = formula().floor().unique_fmpz()
        if floor is not None:
            return int(floor)
    raise _undecided()


def close_below(formula: Formula, *, length: int) -> int:
    """Return an integer n with n <= x·2^length <= n + 2, for any real x: no boundary can hold it up."""
    for bits in _precisions():
        with working_precision(bits):
            scaled = formula() * arb(2) ** length
            if scaled.is_finite() and scaled.rad() < 0.5:
                return int(as_rational(scaled.lower()) // 1)
    raise _undecided()


def certainly_less(smaller: Formula, larger: Formula) -> bool:
    """Return whether one real number is below another, for two that are not equal."""
    for bits in _precisions():
        with working_precision(bits):
            left, right = smaller(), larger()
            if left < right:
                return True
            if left > right:
                return False
    raise _undecided()


def rounded_up(formula: Formula, *, digits: int = 64) -> Fraction:
    """Return a rational at or above the number, within a relative 2^-digits of it unless it is zero."""
    return _rounded_to(formula, digits, upward=True)


def rounded_down(formula: Formula, *, digits: int = 64) -> Fraction:
    """Return a rational at or below the number, within a relative 2^-digits of it unless it is zero."""
    return _rounded_to(formula, digits, upward=False)


def nearest_float(formula: Formula) -> float:
    """Return a float within one unit in the last place of the number: for showing, never for a privacy argument."""
    for bits in _precisions():
        with working_precision(bits):
            value = formula()
            if value.rel_accuracy_bits() >= 60 or (value.is_exact() and value.is_finite()):
                return float(value.mid())
            if value.is_finite() and value.abs_upper() < arb(2) ** -1200:
                return 0.0
    raise _undecided()


def as_rational(value: arb) -> Fraction:
    """Return the exact rational of a ball of radius zero."""
    mantissa, exponent = (int(part) for part in value.man_exp())
    return Fraction(mantissa * 2**exponent) if exponent >= 0 else Fraction(mantissa, 2**-exponent)


def _rounded_to(formula: Formula, digits: int, *, upward: bool) -> Fraction:
    for bits in _precisions():
        with working_precision(bits):
            value = formula()
            if value.is_finite() and (value.rel_accuracy_bits() >= digits or value.is_exact()):
                return as_rational(value.upper() if upward else value.lower())
    raise _undecided()


def _precisions() -> Iterator[int]:
    bits = PRECISION_FIRST
    while bits <= PRECISION_LAST:
        yield bits
        bits *= 2


def _undecided() -> TacitError:
    return TacitError(
        "a number could not be decided to enough digits; no release was made\nhint: please report the parameters used"
    )


# Losses are kept to this many significant bits: a ledger adds millions of them.
BITS = 64
# Smaller probabilities are rounded up to this: some have more zeros than the memory can hold.
TINY = Fraction(1, 2**2048)
# Formulas settle long before; at this many bits a ball's own end is the bound.
BITS_LAST = 1 << 14


def upward(formula: Formula) -> Fraction:
    """Return a rational of 64 significant bits at or above a number that is not negative; never less than 2^-2048.

    An exact zero stays zero.
    """
    value = _settled(formula)
    if value.is_zero():
        return Fraction(0)
    if _below_tiny(value):
        return TINY
    with working_precision(2 * BITS):
        return shortened(as_rational(value.upper()), up=True)


def downward(formula: Formula) -> Fraction:
    """Return a rational of 64 significant bits at or below a number that is not negative."""
    value = _settled(formula)
    if _below_tiny(value) or not value > 0:
        return Fraction(0)
    with working_precision(2 * BITS):
        return shortened(as_rational(value.lower()), up=False)


def upper_end(value: arb) -> Fraction:
    """Return a rational at or above a ball, and at least 0; never between 0 and 2^-2048."""
    if value.is_zero() or value < 0:
        return Fraction(0)
    return TINY if _below_tiny(value) else max(as_rational(value.upper()), Fraction(0))


def shortened(value: Fraction, *, up: bool, bits: int = BITS) -> Fraction:
    """Return a non-negative rational rounded to `bits` significant bits, unless it is already as short."""
    top, bottom = value.numerator, value.denominator
    if top.bit_length() <= bits and bottom.bit_length() <= bits:
        return value
    shift = bits - (top.bit_length() - bottom.bit_length())
    scaled_top, scaled_bottom = (top << shift, bottom) if shift >= 0 else (top, bottom << -shift)
    mantissa = -(-scaled_top // scaled_bottom) if up else scaled_top // scaled_bottom
    return Fraction(mantissa, 1 << shift) if shift >= 0 else Fraction(mantissa << -shift)


def _settled(formula: Formula) -> arb:
    """Return a ball known to 64 bits, or too near zero to matter, or as good as the last precision gives."""
    bits = 128
    while True:
        with working_precision(bits):
            value = formula()
        known = value.rel_accuracy_bits() >= BITS + 4 or value.is_exact() or _below_tiny(value)
        if value.is_finite() and (known or bits >= BITS_LAST):
            return value
        if bits >= BITS_LAST:
            raise TacitError("a loss could not be computed to any precision\nhint: please report the parameters used")
        bits *= 2


def _below_tiny(value: arb) -> bool:
    return bool(value.is_finite() and value.abs_upper() < arb(2) ** -2048)
