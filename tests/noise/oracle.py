"""An independent oracle: the laws' distribution functions in mpmath, at 80 digits, straight from their definitions."""

from collections.abc import Callable
from fractions import Fraction

from mpmath import mp, mpf

DIGITS = 120

Cdf = Callable[[int], mpf]


def exact(value: Fraction) -> mpf:
    """The rational at the oracle's precision."""
    return mpf(value.numerator) / value.denominator


def laplace_cdf(scale: Fraction) -> Cdf:
    """Mass proportional to exp(-|x|/scale)."""
    with mp.workdps(DIGITS):
        q = mp.exp(-1 / exact(scale))
    return lambda x: 1 - q ** (x + 1) / (1 + q) if x >= 0 else q**-x / (1 + q)


def gaussian_cdf(sigma: Fraction) -> Cdf:
    """Mass proportional to exp(-x²/(2 sigma²)), by adding up masses."""
    with mp.workdps(DIGITS):
        reach = int(sigma * 30) + 5
        masses = [mp.exp(-exact(Fraction(x * x) / (2 * sigma**2))) for x in range(reach)]
        total = masses[0] + 2 * mp.fsum(masses[1:])
        above = [mpf(0)] * (reach + 1)  # above[x] = Pr[Z >= x] for x >= 1, what lies past the reach being nothing here
        for x in reversed(range(reach)):
            above[x] = above[x + 1] + masses[x] / total

    def cdf(x: int) -> mpf:
        return 1 - above[min(x + 1, reach)] if x >= 0 else above[min(-x, reach)]

    return cdf


def block_cdf(sigma: Fraction) -> Cdf:
    """Mass proportional to exp(-k²/(2 sigma²)) on 0, 1, …, by adding up masses."""
    with mp.workdps(DIGITS):
        reach = int(sigma * 30) + 5
        masses = [mp.exp(-exact(Fraction(k * k) / (2 * sigma**2))) for k in range(reach)]
        total, below = mp.fsum(masses), [mpf(0)]
        for mass in masses:
            below.append(below[-1] + mass / total)
    return lambda k: below[min(k + 1, reach)]


def digit_cdf(scale: Fraction, place: int, base: int) -> Cdf:
    """A digit of a geometric number: mass proportional to exp(-digit·place/scale) on 0 … base-1."""
    with mp.workdps(DIGITS):
        masses = [mp.exp(-exact(digit * place / scale)) for digit in range(base)]
        total = mp.fsum(masses)
    return lambda digit: mp.fsum(masses[: digit + 1]) / total


def top_cdf(scale: Fraction, place: int) -> Cdf:
    """2·top + sign: top geometric in exp(-place/scale), sign 1 with chance q/(1+q), q = exp(-1/scale)."""
    with mp.workdps(DIGITS):
        r, q = mp.exp(-exact(place / scale)), mp.exp(-1 / exact(scale))

    def cdf(index: int) -> mpf:
        k, sign = divmod(index, 2)
        below = 1 - r**k
        return below + r**k * (1 - r) * (1 if sign else 1 / (1 + q))

    return cdf


def floors(cdf: Cdf, values: range, width: int) -> list[int]:
    """floor(2^width·F(i)) for each value, which 120 digits settle unless F(i) is within 10^-80 of a boundary."""
    found = []
    with mp.workdps(DIGITS):
        for value in values:
            scaled = cdf(value) * mpf(2) ** width
            floor = int(mp.floor(scaled))
            if not mpf(10) ** -80 < scaled - floor < 1 - mpf(10) ** -80:
                # so near an end of [0, 2^width] that only which side of it is known
                nearest = int(mp.nint(scaled))
                assert nearest in (0, 1 << width), f"the oracle cannot settle F({value})"
                floor = 0 if nearest == 0 else (1 << width) - 1
            found.append(floor)
    return found


def edges(cdf: Cdf, values: range, depth: int, *, ends: bool = False) -> dict[int, Fraction]:
    """F(i)·2^depth for each value, put half-way between the two integers around it; the last is 1 where a law ends."""
    found = {value: floor + Fraction(1, 2) for value, floor in zip(values, floors(cdf, values, depth), strict=True)}
    if ends:
        found[values[-1]] = Fraction(1 << depth)
    return found
