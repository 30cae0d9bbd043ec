"""The part that every noise distribution on the integers shares: it is symmetric about 0 and falls away from it.

A distribution gives its mass and its upper tail as balls at the working precision. From those two follow here its
distribution function, its certain quantiles and bounds, and its exact hockey-stick divergence. None is truncated.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from fractions import Fraction

from flint import arb

from tacit.errors import InvalidParameter
from tacit.privacy.number import whole
from tacit.privacy.rounding import ball, working_precision

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
