"""What integer noise does, whichever its law is: it is drawn, and it tells of its law."""

from abc import ABC, abstractmethod

from tacit.memory import reuse_freed_memory
from tacit.noise.bits import Bits, Keystream
from tacit.noise.threshold import Integers
from tacit.privacy.law import Law
from tacit.privacy.number import Number, binary_meaning, whole
from tacit.privacy.rounding import nearest_float


class IntegerNoise(ABC):
    """Noise on the integers, with the exact law it is drawn from."""

    law: Law

    def sample(self, n: int) -> Integers:
        """Return `n` independent draws as int64, or Python integers where one does not fit (1 in 2^184 at scale 2^56).

        Privacy: exactly the law, from a key used for this call alone.
        """
        count = whole(n, name="n", least=0)
        reuse_freed_memory()
        return self._draw(count, Keystream())

    @abstractmethod
    def _draw(self, n: int, bits: Bits) -> Integers: ...

    def pmf(self, x: int) -> float:
        """Return Pr[Z = x], to the nearest float."""
        return nearest_float(lambda: self.law.pmf(x))

    def tail(self, x: int) -> float:
        """Return Pr[|Z| > x], to the nearest float."""
        return nearest_float(lambda: self.law.tail(x))

    def quantile(self, p: Number) -> int:
        """Return the least integer x with Pr[Z <= x] >= p, exactly."""
        return self.law.quantile(binary_meaning(p, name="p"))

    @property
    def variance(self) -> float:
        """The law's variance, to the nearest float."""
        return nearest_float(self.law.variance)
