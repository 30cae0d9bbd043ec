"""The discrete staircase law: flat steps that fall by e^epsilon, the least noise for one number at a large epsilon.

With a step down after `width` and then every `sensitivity`, a move by up to `sensitivity` passes one edge at most.
All of it is in closed form (docs/proofs/staircase.md).
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from flint import arb

from tacit.errors import InvalidParameter
from tacit.privacy.number import positive, whole
from tacit.privacy.rounding import ball
from tacit.privacy.symmetric import SymmetricLaw

# How much above the least a mean error may be, for a shorter interval; what that misses; how many widths are tried.
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

    def upper_tails(self, start: int, stop: int) -> list[arb]:
        return [self.upper_tail(x) for x in range(start, stop)]

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
        """Return what everything of this pure loss has at most: nothing tighter is claimed."""
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
        raise NotImplementedError("masses on a level are equal, so no one place parts the likelier from the others")

    def _guess(self, chance: arb) -> arb:
        return (self.width + self.sensitivity * (self.beyond(0) / chance).log() / ball(self.epsilon)).ceil()


def staircase_for(sensitivity: int, epsilon: Fraction) -> StaircaseLaw:
    """Return the law with the shortest interval of 95 % among those whose mean error is near the least.

    Any width is as private; floating point only chooses among them.
    """
    size, loss = sensitivity, min(float(epsilon), 700.0)
    b = math.exp(-loss)

    def top(width: int) -> float:
        return (1 - b) / (2 * width + 2 * b * (size - width) - (1 - b))

    def error(width: int) -> float:
        outer = b * size * (2 * width + size - 1) / 2 / (1 - b) + (size * b / (1 - b)) ** 2
        return 2 * top(width) * (width * (width - 1) / 2 + outer)

    def reach(width: int) -> int:
        """How far 95 % of draws stray: the places that it takes, in whole numbers."""
        left = 1 - top(width) * (2 * width - 1)  # beyond the first level; each level further leaves b times as much
        if left <= MISSED:
            return math.ceil(((1 - MISSED) / top(width) - 1) / 2)
        level = math.ceil(math.log(left / MISSED) / loss)
        before = left * math.exp(-loss * (level - 1))
        return width - 1 + size * (level - 1) + math.ceil(size * (before - MISSED) / (before * (1 - b)))

    best = min(max(1, round(size / (1 + math.exp(loss / 2)))), size)
    low, high = best, size + 1
    while high - low > 1:  # the largest width from here on whose error is near enough
        middle = (low + high) // 2
        low, high = (middle, high) if error(middle) <= ERROR_MOST * error(best) else (low, middle)
    widths = {best + (low - best) * place // TRIED for place in range(TRIED + 1)}
    return StaircaseLaw(epsilon, size, min(sorted(widths), key=lambda width: (reach(width), error(width))))
