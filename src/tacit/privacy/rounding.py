"""Certain digits: evaluates a formula in ball arithmetic until its floor, its sign or its rounding is beyond doubt.

A formula is a function without arguments that is evaluated at the current working precision (python-flint's `arb`). The
precision is one global of that library, so every evaluation here holds one lock. The last part rounds a formula to a
short rational, up or down with certainty.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction

from flint import arb, ctx, fmpq

from tacit.errors import TacitError
from tacit.system import at_fork

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
