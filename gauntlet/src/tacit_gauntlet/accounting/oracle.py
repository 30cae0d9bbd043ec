"""A slow accountant that shares nothing with the product's: plain sums over every outcome, in 60-digit decimals."""

from decimal import Decimal
from fractions import Fraction

DIGITS = 60

Masses = dict[int, Decimal]


def decimal(value: Fraction) -> Decimal:
    """Return a rational as a decimal."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def gaussian_masses(sigma: Fraction) -> Masses:
    """Return the discrete Gaussian's masses as far out as they matter, by products outward from the middle."""
    reach = int(17 * sigma) + 8
    step = (-1 / (2 * decimal(sigma) ** 2)).exp()  # exp(-1/(2 sigma²))
    raw, mass, ratio = {0: Decimal(1)}, Decimal(1), step
    for x in range(1, reach + 1):
        mass *= ratio
        ratio *= step * step
        raw[x] = raw[-x] = mass
    total = sum(raw.values())
    return {x: mass / total for x, mass in raw.items()}


def laplace_masses(scale: Fraction) -> Masses:
    """Return the discrete Laplace's masses as far out as they matter."""
    reach, step = int(100 * scale) + 8, (-1 / decimal(scale)).exp()
    raw = {0: Decimal(1)}
    for x in range(1, reach + 1):
        raw[x] = raw[-x] = raw[x - 1] * step
    total = sum(raw.values())
    return {x: mass / total for x, mass in raw.items()}


def delta(masses: Masses, shift: int, epsilon: Fraction) -> Decimal:
    """Return the hockey-stick divergence between the masses moved by `shift` and the masses: every term of it."""
    factor, zero = decimal(epsilon).exp(), Decimal(0)
    return sum((max(zero, mass - factor * masses.get(x + shift, zero)) for x, mass in masses.items()), zero)


def batch_delta(masses: Masses, shift: int, times: int, epsilon: Fraction) -> Decimal:
    """Return the delta of `times` releases: losses and chances convolved one release at a time."""
    zero = Decimal(0)
    single = _losses(masses, shift)
    total = {zero: Decimal(1)}
    for _ in range(times):
        grown: dict[Decimal, Decimal] = {}
        for loss, chance in total.items():
            for more, part in single.items():
                key = (loss + more).quantize(Decimal(10) ** -40)
                grown[key] = grown.get(key, zero) + chance * part
        total = grown
    goal = decimal(epsilon)
    return sum((chance * (1 - (goal - loss).exp()) for loss, chance in total.items() if loss > goal), zero)


def _losses(masses: Masses, shift: int) -> dict[Decimal, Decimal]:
    zero, single = Decimal(0), dict[Decimal, Decimal]()
    for x, mass in masses.items():
        other = masses.get(x + shift)
        if other is None:
            continue
        key = (mass / other).ln().quantize(Decimal(10) ** -40)
        single[key] = single.get(key, zero) + mass
    return single
