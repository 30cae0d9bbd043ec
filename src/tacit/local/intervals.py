"""Intervals for counts behind perturbed reports, all answers of a domain at once, and totals that fit together.

Of n reports, each speaking for one of N people, S support an answer that m of the N hold: n·(q + (p - q)·m/N) on
average. For few reports an interval is exact, by trying every m; for many it holds every m from which S is within a
normal quantile of standard deviations, half a report allowed for whole numbers (docs/proofs/local.md).
"""

from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tacit.local.estimate import ReportLaw, intervals
from tacit.noise.threshold import Integers

Floats = NDArray[np.float64]
# Up to here every number of holders is tried with its exact law.
EXACT_MOST = 400


@dataclass(frozen=True)
class Counting:
    """How supports become counts: p and q for a holder and another, n reports that speak for N people."""

    keep: Fraction
    stray: Fraction
    reports: int
    people: int

    def unbiased(self, supports: Integers) -> Floats:
        """Return the estimated count of each answer, right on average; it may lie below 0 or above N."""
        if not self.reports:
            return np.zeros(len(supports))
        gain = float(self.keep - self.stray)
        centred = supports - self.reports * float(self.stray)
        return np.asarray(centred / gain * (self.people / self.reports), dtype=np.float64)

    def bounds(self, supports: Integers, confidence: float) -> tuple[Floats, Floats]:
        """Return the lower and the upper end of the interval of each answer."""
        if not self.reports:
            return np.zeros(len(supports)), np.full(len(supports), float(self.people))
        if self.reports == self.people <= EXACT_MOST:
            law = ReportLaw(self.reports, float(self.keep), float(self.stray))
            lows, highs = intervals(law, supports, confidence)
            estimates = self.unbiased(supports)
            return np.minimum(lows, estimates), np.maximum(highs, estimates)
        z = NormalDist().inv_cdf(0.5 + confidence / 2)
        low = self._root(supports.astype(np.float64) - 0.5, z, -1.0)
        high = self._root(supports.astype(np.float64) + 0.5, z, 1.0)
        return low * self.people, high * self.people

    def _root(self, supports: Floats, z: float, side: float) -> Floats:
        """Return the share m/N at which these supports are z standard deviations off: a root of a quadratic."""
        n, p, q = float(self.reports), float(self.keep), float(self.stray)
        gain, excess = p - q, supports - n * q
        drawn = gain**2 * n * (1 - self.reports / self.people)  # who of the people speak is random too
        slope = n * (p * (1 - p) - q * (1 - q)) + drawn
        a = (gain * n) ** 2 + z**2 * drawn
        b = 2 * excess * gain * n + z**2 * slope
        c = excess**2 - z**2 * n * q * (1 - q)
        return np.asarray((b + side * np.sqrt(np.maximum(b**2 - 4 * a * c, 0.0))) / (2 * a), dtype=np.float64)


def norm_sub(counts: Floats, total: float) -> Floats:
    """Return the nearest counts that are at least 0 and add up to the total: what is left after a common shift.

    >>> norm_sub(np.array([7.0, 5.0, -2.0]), 10.0).tolist()
    [6.0, 4.0, 0.0]
    """
    if total <= 0 or not len(counts):
        return np.zeros(len(counts))
    falling = np.sort(counts)[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    shift = shifts[np.flatnonzero(falling > shifts)[-1]]
    return np.asarray(np.maximum(counts - shift, 0.0), dtype=np.float64)
