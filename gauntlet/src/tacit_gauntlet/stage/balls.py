"""Numbers with certainty, for oracles: balls of any precision (python-flint), and what is beyond doubt about them.

It shares with the product the lock around the library's one precision, and nothing else.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from fractions import Fraction

from flint import arb, fmpq

from tacit.numbers import working_precision

Formula = Callable[[], arb]

# Formulas settle within a few doublings.
_PRECISIONS = tuple(1 << power for power in range(7, 17))


def ball(value: Fraction | int) -> arb:
    """Return a ball around an exact rational, at the precision in force."""
    return arb(fmpq(value.numerator, value.denominator))


def at_precision(bits: int) -> AbstractContextManager[None]:
    """Evaluate what is inside with so many bits, alone among threads."""
    return working_precision(bits)


def floor_of(formula: Formula) -> int:
    """Return the floor of a number that is not whole."""
    for value in _ever_finer(lambda: formula().floor()):
        whole = value.unique_fmpz()
        if whole is not None:
            return int(whole)
    raise ArithmeticError("the number is whole, or too close to it")


def float_of(formula: Formula) -> float:
    """Return a float within one unit in the last place of a number."""
    for value in _ever_finer(formula):
        if value.rel_accuracy_bits() >= 60 or (value.is_exact() and value.is_finite()):
            return float(value.mid())
        if value.is_finite() and value.abs_upper() < arb(2) ** -1200:
            return 0.0
    raise ArithmeticError("the number has no certain digits")


def is_less(smaller: Formula, larger: Formula) -> bool:
    """Return whether one number is below another, for two that are not equal."""
    for difference in _ever_finer(lambda: larger() - smaller()):
        if difference > 0 or difference < 0:
            return bool(difference > 0)
    raise ArithmeticError("the numbers are equal, or too close to it")


def _ever_finer(formula: Formula) -> Iterator[arb]:
    for bits in _PRECISIONS:
        with working_precision(bits):
            yield formula()
