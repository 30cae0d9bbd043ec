"""What integer noise tells of its law, whichever it is."""

from tacit.privacy.law import GaussianLaw, LaplaceLaw
from tacit.privacy.number import Number, binary_meaning
from tacit.privacy.rounding import nearest_float


class IntegerNoise:
    """Noise on the integers, with the exact law it is drawn from."""

    law: LaplaceLaw | GaussianLaw

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
