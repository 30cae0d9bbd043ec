"""The exact distributions of the noise: mass, tails, quantiles and hockey-stick divergence, as balls around the truth.

All live on the integers, the steps of a public grid, symmetric about 0. Each gives its mass and its upper tail as balls
at the working precision; from those two follow its distribution function, its certain quantiles and bounds, and its
exact hockey-stick divergence. None is truncated. Drawing noise is left to `noise/`.

- Discrete Laplace: mass proportional to exp(-|x|/scale), all in closed form.
- Discrete Gaussian: mass proportional to exp(-x²/(2 sigma²)). Its sums are certain: the tail that a series omits is
  bounded and added to the ball's radius (docs/proofs/gaussian-law.md).
- Discrete staircase: flat steps that fall by e^epsilon, the least noise for one number at a large epsilon. With a step
  down after `width` and then every `sensitivity`, a move by up to `sensitivity` passes at most one edge. All of it is
  in closed form (docs/proofs/staircase.md).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from flint import arb, ctx, fmpq

from tacit.errors import InvalidParameter
from tacit.numbers import ball, positive, whole, working_precision

# Two numbers that agree to this many bits are taken as equal; the callers then take the safe side.
TIE_BITS = 8192


class SymmetricLaw(ABC):
    """A law on the integers, symmetric about 0, with a mass that never rises away from it.

    `delta` is for masses that are log-concave; a law with another mass has its own method.
    """

    @abstractmethod
    def pmf(self, x: int) -> arb:
        """Return Pr[Z = x]."""

    @abstractmethod
    def upper_tail(self, x: int) -> arb:
        """Return Pr[Z >= x]."""

    @abstractmethod
    def variance(self) -> arb:
        """Return the variance of Z, which is that of the discrete law and not of the continuous one."""

    @abstractmethod
    def _cut(self, shift: int, epsilon: Fraction) -> int | None:
        """Return the least x with a log-ratio against the law shifted by `shift` above epsilon, or None."""

    @abstractmethod
    def _guess(self, chance: arb) -> arb:
        """Return about how far out the two-sided tail falls to `chance`: only where to begin a search."""

    def cdf(self, x: int) -> arb:
        """Return Pr[Z <= x]."""
        return self.upper_tail(-x)

    def tail(self, x: int) -> arb:
        """Return Pr[|Z| > x]; for a negative x it is 1."""
        return 2 * self.upper_tail(x + 1) if x >= 0 else arb(1)

    def smallest_bound(self, chance: Fraction, coordinates: int = 1) -> int:
        """Return the least a that `coordinates` independent draws all stay within, on either side, except with
        probability `chance`."""
        if not 0 < chance < 1:
            raise InvalidParameter(f"chance must be above 0 and below 1, not {chance}\nhint: e.g. 0.05 for 95%")
        whole(coordinates, name="coordinates")

        def allowed() -> arb:
            return -((-ball(chance)).log1p() / coordinates).expm1()

        return self._first_with(lambda a: not _exceeds(lambda: self.tail(a), allowed), allowed)

    def quantile(self, p: Fraction) -> int:
        """Return the least x with Pr[Z <= x] >= p, with certainty."""
        if not 0 < p < 1:
            raise InvalidParameter(f"p must be above 0 and below 1, not {p}\nhint: e.g. 0.975")
        lower = p <= Fraction(1, 2)
        chance = 2 * p if lower else 2 * (1 - p)

        def allowed() -> arb:
            return ball(chance)

        if lower:  # the least x is minus the first a at which less than p is left beyond it
            return -self._first_with(lambda a: _exceeds(allowed, lambda: self.tail(a)), allowed)
        return self._first_with(lambda a: not _exceeds(lambda: self.tail(a), allowed), allowed)

    def delta(self, shift: int, epsilon: Fraction) -> arb:
        """Return the hockey-stick divergence at epsilon >= 0 between this law and itself moved by `shift`.

        The divergence is the least delta at which one draw of this noise hides a move of `shift` at epsilon. The
        divergence grows with |shift|, so the worst move within a sensitivity is its whole part (docs/proofs/losses.md).
        """
        size = abs(shift)
        cut = self._cut(size, epsilon) if size else None
        if cut is None:
            return arb(0)
        likelier = self.upper_tail(cut - size)
        less_likely = ball(epsilon).exp() * self.upper_tail(cut)
        if not less_likely.is_finite():  # e^epsilon is too large for a ball
            return arb(0).union(likelier)
        return likelier - less_likely

    def _first_with(self, holds: Callable[[int], bool], chance: Callable[[], arb]) -> int:
        with working_precision(128):
            guess = self._guess(chance())
            begin = guess.mid().floor().unique_fmpz() if guess.is_finite() else None
        return least_integer(holds, max(int(begin), 0) if begin is not None else 0)


def least_integer(holds: Callable[[int], bool], begin: int) -> int:
    """Return the least a >= 0 at which `holds`, which once true stays true; quick when `begin` is near it."""
    if holds(begin):
        high = begin
        for step in _doubling():
            low = high - step
            if low < 0:
                low = -1
                break
            if not holds(low):
                break
            high = low
    else:
        low = begin
        for step in _doubling():
            high = low + step
            if holds(high):
                break
            low = high
    while high - low > 1:  # holds(high), and not holds(low)
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def _doubling() -> Iterator[int]:
    step = 1
    while True:
        yield step
        step *= 2


def _exceeds(left: Callable[[], arb], right: Callable[[], arb]) -> bool:
    """Return whether left > right. A tie to `TIE_BITS` counts as above, which widens a bound and never narrows it."""
    bits = 128
    while bits <= TIE_BITS:
        with working_precision(bits):
            difference = left() - right()
        if difference > 0:
            return True
        if difference < 0:
            return False
        bits *= 2
    return True


@dataclass(frozen=True)
class LaplaceLaw(SymmetricLaw):
    """The law with mass proportional to exp(-|x|/scale).

    >>> LaplaceLaw(Fraction(1)).smallest_bound(Fraction(1, 20))
    3
    """

    scale: Fraction

    def __post_init__(self) -> None:
        positive(self.scale, name="scale")

    def pmf(self, x: int) -> arb:
        return (ball(1 / self.scale) / 2).tanh() * self._power(abs(x))

    def upper_tail(self, x: int) -> arb:
        if x <= 0:
            return 1 - self.upper_tail(1 - x)
        return self._power(x) / (1 + self._power(1))

    def variance(self) -> arb:
        return 1 / (2 * (ball(1 / self.scale) / 2).sinh() ** 2)

    def _power(self, x: int) -> arb:
        return (-ball(x / self.scale)).exp()

    def _cut(self, shift: int, epsilon: Fraction) -> int | None:
        # the log-ratio (|x| - |x - shift|)/scale is (2x - shift)/scale for 0 <= x <= shift, and constant beyond
        reach = epsilon * self.scale
        return None if reach >= shift else (reach + shift) // 2 + 1

    def _guess(self, chance: arb) -> arb:
        return (ball(self.scale) * (2 / ((1 + self._power(1)) * chance)).log()).ceil() - 1


# Term by term up to this many terms; beyond, Euler–Maclaurin, with a few terms that replace the whole sum.
TERMS_QUICK = 160
# Where Euler–Maclaurin cannot reach the precision, sum up to this many terms; beyond, the ball is honestly wide.
TERMS_MOST = 1 << 22


@dataclass(frozen=True)
class GaussianLaw(SymmetricLaw):
    """The law with mass proportional to exp(-x²/(2 sigma²)).

    >>> GaussianLaw(Fraction(10)).smallest_bound(Fraction(1, 20))
    20
    """

    sigma: Fraction

    def __post_init__(self) -> None:
        positive(self.sigma, name="sigma")

    def pmf(self, x: int) -> arb:
        return _mass(self.sigma, x) / _normaliser(self.sigma, ctx.prec)

    def upper_tail(self, x: int) -> arb:
        if x <= 0:
            return 1 - self.upper_tail(1 - x)
        return _tail_sum(self.sigma, x) / _normaliser(self.sigma, ctx.prec)

    def variance(self) -> arb:
        exponent, spread = _series_exponent(self.sigma)
        plain, squared = _square_series(exponent, 0), _square_series(exponent, 2)
        if spread is not None:  # Poisson summation
            return spread**2 * (1 - 8 * arb.pi() ** 2 * spread**2 * squared / (1 + 2 * plain))
        return 2 * squared / (1 + 2 * plain)

    def _cut(self, shift: int, epsilon: Fraction) -> int | None:
        # the log-ratio (x² - (x - shift)²)/(2 sigma²) exceeds epsilon iff x > epsilon·sigma²/shift + shift/2
        return math.floor(epsilon * self.sigma**2 / shift + Fraction(shift, 2)) + 1

    def _guess(self, chance: arb) -> arb:
        return (ball(2 * self.sigma**2).sqrt() * chance.erfcinv() - arb(0.5)).ceil()


def _mass(sigma: Fraction, x: int) -> arb:
    return (-ball(x * x / (2 * sigma**2))).exp()


@lru_cache(maxsize=512)
def _normaliser(sigma: Fraction, bits: int) -> arb:
    """Return the sum of exp(-x²/(2 sigma²)) over all integers, to `bits` of precision."""
    with working_precision(bits):
        exponent, spread = _series_exponent(sigma)
        total = 1 + 2 * _square_series(exponent, 0)
        return total if spread is None else (2 * arb.pi()).sqrt() * spread * total


def _series_exponent(sigma: Fraction) -> tuple[arb, arb | None]:
    """Return a in the fast series of exp(-a·k²), and sigma if that series is the Poisson dual, else None."""
    if sigma >= 1:
        return 2 * arb.pi() ** 2 * ball(sigma**2), ball(sigma)
    return ball(1 / (2 * sigma**2)), None


def _square_series(exponent: arb, power: int) -> arb:
    """Return the sum over k >= 1 of k^power·exp(-exponent·k²), for an exponent of at least 1/2."""
    total, k = arb(0), 1
    small = arb(2) ** -(ctx.prec + 8)
    while True:
        term = k**power * (-exponent * (k * k)).exp()
        ratio = (arb(k + 1) / k) ** power * (-exponent * (2 * k + 1)).exp()
        if ratio < arb(0.5) and (term < small * total or term < small):
            return total + _between_zero_and(2 * term)  # every later ratio is below this one, so below 1/2
        total += term
        k += 1


def _tail_sum(sigma: Fraction, x: int) -> arb:
    """Return the sum of exp(-j²/(2 sigma²)) over j >= x, for x >= 1."""
    first = _mass(sigma, x)
    if not first > 0:  # too small for a ball; the sum is at most first·(1 + the integral of the mass from 0)
        return _between_zero_and(first * ball(1 + 2 * sigma))
    terms = _terms_needed(sigma, x)
    if terms <= TERMS_QUICK:
        return _summed(sigma, x, terms)
    value, reached = _euler_maclaurin(sigma, x)
    return value if reached or terms > TERMS_MOST else _summed(sigma, x, terms)


def _terms_needed(sigma: Fraction, x: int) -> int:
    """Return about how many terms fall by 2^-precision from the first: n with n² + 2nx >= precision·ln2·2sigma²."""
    depth, far = 2 * (ctx.prec + 8) * math.log(2), x / sigma
    if far > 10**6:  # then n is at most depth·sigma²/(2x), and far may be past a float
        return math.ceil(Fraction(depth) * sigma / (2 * far)) + 2
    away = float(far)
    return math.ceil(sigma * Fraction(depth / (math.sqrt(away * away + depth) + away))) + 2


def _summed(sigma: Fraction, x: int, terms: int) -> arb:
    """Return the tail's sum term by term, with the geometric bound of the rest in its radius."""
    rate = 1 / (2 * sigma**2)
    term, ratio, step = _mass(sigma, x), (-ball(rate * (2 * x + 1))).exp(), (-ball(2 * rate)).exp()
    total = arb(0)
    for _ in range(terms):
        total += term
        term = term * ratio
        ratio = ratio * step
    return total + _between_zero_and(term / (1 - ratio))


def _euler_maclaurin(sigma: Fraction, x: int) -> tuple[arb, bool]:
    """Return the tail's sum by Euler–Maclaurin with its remainder in the radius, and whether that is small enough.

    In units of exp(-u²/2), u = x/sigma: the integral, half the first term, then Bernoulli numbers times Hermite
    polynomials; the remainder after order n is at most 3.3/(2 pi sigma)^n · sigma · bound_n (the proof page).
    """
    u, spread = ball(x / sigma), ball(sigma)
    mass = _mass(sigma, x)
    integral = (arb.pi() / 2).sqrt() * scaled_erfc(ball(x * x / (2 * sigma**2)))
    value = spread * integral + arb(0.5)
    goal = arb(2) ** -ctx.prec * value
    hermite = [arb(1), u]  # He_{n-2}, He_{n-1}
    absolute = [arb(1), u]  # the same with every coefficient positive
    bound, scale, best = integral, arb(1), None
    two_pi_squared, factorial = 4 * arb.pi() ** 2, 1
    for n in range(2, 2 * ctx.prec, 2):
        factorial *= n * (n - 1)
        bound = absolute[1] + 2 * (n - 1) * bound
        value += arb(fmpq.bernoulli(n)) / factorial * hermite[1] * scale / spread
        scale = scale / spread**2
        remainder = (arb(3.3) * bound * spread * scale / two_pi_squared ** (n // 2)).abs_upper()
        if remainder < goal or not (best is None or remainder < best):
            break
        best = remainder
        for row, sign in ((hermite, -1), (absolute, 1)):
            even = u * row[1] + sign * (n - 1) * row[0]
            row[:] = [even, u * even + sign * n * row[1]]
    return mass * (value + (-remainder).union(remainder)), bool(remainder < goal)


def scaled_erfc(square: arb) -> arb:
    """Return e^w·erfc(√w) for w >= 0: erfc itself is given far too wide a ball where w is large and not exact."""
    if square < 100:
        return square.exp() * square.sqrt().erfc()
    return square.hypgeom_u(arb(0.5), arb(0.5)) / arb.pi().sqrt()


def _between_zero_and(bound: arb) -> arb:
    """Return a ball that holds every number from 0 to `bound`."""
    return arb(0).union(bound.abs_upper())


# How much above the least a mean error may be, for a shorter interval; the share of draws outside that interval; how
# many widths are tried.
ERROR_MOST = 1.15
MISSED = 0.05
TRIED = 64


@dataclass(frozen=True)
class StaircaseLaw(SymmetricLaw):
    """The law with mass proportional to exp(-epsilon·level), level = (|x| + sensitivity - width) // sensitivity.

    >>> StaircaseLaw(Fraction(2), sensitivity=100, width=27).smallest_bound(Fraction(1, 20))
    127
    """

    epsilon: Fraction
    sensitivity: int
    width: int

    def __post_init__(self) -> None:
        positive(self.epsilon, name="epsilon")
        whole(self.sensitivity, name="sensitivity")
        if not 1 <= self.width <= self.sensitivity:
            raise InvalidParameter("width must be a whole number from 1 to the sensitivity")

    def pmf(self, x: int) -> arb:
        return self._top() * self._fall(self._level(abs(x)))

    def upper_tail(self, x: int) -> arb:
        if x <= 0:
            return 1 - self.upper_tail(1 - x)
        level = self._level(x)
        here = self.width + level * self.sensitivity - x  # how many are left on this level
        below = self.sensitivity * self._fall(1) / (1 - self._fall(1))
        return self._top() * self._fall(level) * (here + below)

    def beyond(self, level: int) -> arb:
        """Return the chance of a level above this one."""
        return 2 * self._top() * self.sensitivity * self._fall(level + 1) / (1 - self._fall(1))

    def mean_size(self) -> arb:
        """Return E|Z|."""
        size, width, b = self.sensitivity, self.width, self._fall(1)
        inner = ball(Fraction(width * (width - 1), 2))
        outer = b * ball(Fraction(size * (2 * width + size - 1), 2)) / (1 - b) + size**2 * b**2 / (1 - b) ** 2
        return 2 * self._top() * (inner + outer)

    def variance(self) -> arb:
        size, width, b = self.sensitivity, self.width, self._fall(1)
        inner = ball(Fraction((width - 1) * width * (2 * width - 1), 6))
        # the sum of squares on the m-th level below the first is constant + linear·m + size³·m²
        constant = size * width**2 + width * size * (size - 1) + Fraction((size - 1) * size * (2 * size - 1), 6)
        linear = 2 * size**2 * width + size**2 * (size - 1)
        outer = ball(constant) / (1 - b) + linear * b / (1 - b) ** 2 + size**3 * b * (1 + b) / (1 - b) ** 3
        return 2 * self._top() * (inner + b * outer)

    def delta(self, shift: int, epsilon: Fraction) -> arb:
        """Return the most that every event of this pure loss can have: no tighter claim is made."""
        loss = self.epsilon * -(-abs(shift) // self.sensitivity)
        if epsilon >= loss:
            return arb(0)
        return (1 - ball(epsilon - loss).exp()) / (1 + ball(-loss).exp())

    def _level(self, size: int) -> int:
        return (size + self.sensitivity - self.width) // self.sensitivity

    def _fall(self, levels: int) -> arb:
        return (-ball(self.epsilon * levels)).exp()

    def _top(self) -> arb:
        """Return the mass of 0: all masses add up to 1."""
        b = self._fall(1)
        return (1 - b) / (2 * self.width + 2 * b * (self.sensitivity - self.width) - (1 - b))

    def _cut(self, shift: int, epsilon: Fraction) -> int | None:
        raise NotImplementedError(
            "masses on a level are equal, so no single point separates the likelier outputs from the others"
        )

    def _guess(self, chance: arb) -> arb:
        return (self.width + self.sensitivity * (self.beyond(0) / chance).log() / ball(self.epsilon)).ceil()


def staircase_for(sensitivity: int, epsilon: Fraction) -> StaircaseLaw:
    """Return the law with the shortest interval of 95 % among those with a mean error near the least.

    Any width is as private; floating point only chooses among them.
    """
    size, loss = sensitivity, min(float(epsilon), 700.0)
    b, gap = math.exp(-loss), -math.expm1(-loss)  # gap is 1 - b, and not 0 however small the loss

    def top(width: int) -> float:
        return gap / (2 * width + 2 * b * (size - width) - gap)

    def error(width: int) -> float:
        outer = b * size * (2 * width + size - 1) / 2 / gap + (size * b / gap) ** 2
        return 2 * top(width) * (width * (width - 1) / 2 + outer)

    def reach(width: int) -> int:
        """Return how far from 0 95 % of draws are, rounded up to a whole number."""
        left = 1 - top(width) * (2 * width - 1)  # beyond the first level; each further level leaves b times the mass
        if left <= MISSED:
            return math.ceil(((1 - MISSED) / top(width) - 1) / 2)
        level = math.ceil(math.log(left / MISSED) / loss)
        before = left * math.exp(-loss * (level - 1))
        return width - 1 + size * (level - 1) + math.ceil(size * (before - MISSED) / (before * gap))

    best = min(max(1, round(size / (1 + math.exp(loss / 2)))), size)
    low, high = best, size + 1
    while high - low > 1:  # the largest width from here on with an error near enough
        middle = (low + high) // 2
        low, high = (middle, high) if error(middle) <= ERROR_MOST * error(best) else (low, middle)
    widths = {best + (low - best) * part // TRIED for part in range(TRIED + 1)}
    return StaircaseLaw(epsilon, size, min(sorted(widths), key=lambda width: (reach(width), error(width))))


Law = LaplaceLaw | GaussianLaw | StaircaseLaw

# The scales and sigmas that can be drawn.
SCALE_MIN = Fraction(1, 10**6)
SCALE_MAX = Fraction(2**56)

__all__ = ["SCALE_MAX", "SCALE_MIN", "GaussianLaw", "LaplaceLaw", "Law", "StaircaseLaw"]
