"""Round a formula to a short rational, up or down with certainty. Ball arithmetic itself is `privacy.rounding`'s."""

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from tacit.errors import TacitError
from tacit.privacy.rounding import exact_rational, working_precision

Formula = Callable[[], arb]

# Losses are kept to this many significant bits: a ledger adds millions of them.
BITS = 64
# Below this a chance is not told apart from it: some have more zeros than a memory can hold.
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
        return shortened(exact_rational(value.upper()), up=True)


def downward(formula: Formula) -> Fraction:
    """Return a rational of 64 significant bits at or below a number that is not negative."""
    value = _settled(formula)
    if _below_tiny(value) or not value > 0:
        return Fraction(0)
    with working_precision(2 * BITS):
        return shortened(exact_rational(value.lower()), up=False)


def upper_end(value: arb) -> Fraction:
    """Return a rational at or above a ball, and at least 0; never between 0 and 2^-2048."""
    if value.is_zero() or value < 0:
        return Fraction(0)
    return TINY if _below_tiny(value) else max(exact_rational(value.upper()), Fraction(0))


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
