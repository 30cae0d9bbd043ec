"""The discrete Laplace law: mass proportional to exp(-|x|/scale) on the integers. All of it is in closed form."""

from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from tacit.privacy.number import positive
from tacit.privacy.rounding import ball
from tacit.privacy.symmetric import SymmetricLaw


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

    def upper_tails(self, start: int, stop: int) -> list[arb]:
        ratio, total = self._power(1), 1 + self._power(1)
        first = max(start, 1)
        positive_side, tail = [], self._power(first) / total
        for _ in range(first, max(stop, 2 - start)):
            positive_side.append(tail)
            tail = tail * ratio
        return [positive_side[x - first] if x >= 1 else 1 - positive_side[1 - x - first] for x in range(start, stop)]

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
