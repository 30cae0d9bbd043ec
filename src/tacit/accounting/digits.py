"""Round a formula to a short rational, up or down with certainty. Ball arithmetic itself is `privacy.rounding`'s."""

from collections.abc import Callable
from fractions import Fraction

from flint import arb

from tacit.privacy.rounding import rounded_down, rounded_up, working_precision

Formula = Callable[[], arb]

# Losses are kept to this many significant bits: a ledger adds millions of them.
BITS = 64
# Below this a chance is not told apart from it: some have more zeros than a memory can hold.
TINY = Fraction(1, 2**2048)


def upward(formula: Formula) -> Fraction:
    """Return a rational of 64 significant bits at or above a number that is not negative; never less than 2^-2048.

    An exact zero stays zero.
    """
    if _below_tiny(formula):
        return TINY
    return shortened(rounded_up(formula, digits=BITS), up=True)


def downward(formula: Formula) -> Fraction:
    """Return a rational of 64 significant bits at or below a number that is not negative."""
    if _below_tiny(formula):
        return Fraction(0)
    return shortened(rounded_down(formula, digits=BITS), up=False)


def shortened(value: Fraction, *, up: bool, bits: int = BITS) -> Fraction:
    """Return a non-negative rational rounded to `bits` significant bits, unless it is already as short."""
    top, bottom = value.numerator, value.denominator
    if top.bit_length() <= bits and bottom.bit_length() <= bits:
        return value
    shift = bits - (top.bit_length() - bottom.bit_length())
    scaled_top, scaled_bottom = (top << shift, bottom) if shift >= 0 else (top, bottom << -shift)
    mantissa = -(-scaled_top // scaled_bottom) if up else scaled_top // scaled_bottom
    return Fraction(mantissa, 1 << shift) if shift >= 0 else Fraction(mantissa << -shift)


def _below_tiny(formula: Formula) -> bool:
    with working_precision(128):
        value = formula()
        if value.is_zero():
            return False
        return bool(value.is_finite() and value.abs_upper() < arb(2) ** -2048)
