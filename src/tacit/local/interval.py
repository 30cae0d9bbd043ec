"""Confidence intervals for counts and means behind perturbed reports, and counts that add up to their total.

Counts: of n reports, each standing for one of N people, S support an answer that m of the N hold. On average S is n·(q
+ (p - q)·m/N). An exact interval holds every m that a test of size 1 - confidence, half on each side, does not reject:
it covers the true m with at least the stated probability, for any true answers (docs/proofs/randomized-response.md). A
survey's interval is exact for few reports. For many it holds every m at which S is within a normal quantile of standard
deviations, with a continuity correction of half a report (docs/proofs/local.md).

Means, in fractions of the range: the probability that a one-bit report is 1 is linear in the value, and the variance
of their sum is at most that of a binomial with the same mean, so Wilson's interval covers. Other reports use their
sample variance, which is at least that of the noise; few reports use Hoeffding's inequality, which always holds.

Floats here are for display: the reports are already private.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting import binomial_ratios
from tacit.local.protocols.means import CELLS, ONE_BIT, ONES, PIECEWISE, SQUARES, MeanResponse
from tacit.privacy import Floats, Integers, least_integer

# ---- intervals for counts --------------------------------------------------------------------------------------------


# Up to this many reports, every number of holders is tested with the exact distribution.
EXACT_MOST = 400


@dataclass(frozen=True)
class Counting:
    """How supports become counts: p for a holder, q for any other person, n reports that stand for N people."""

    keep: Fraction
    stray: Fraction
    reports: int
    people: int

    def unbiased(self, supports: Integers) -> Floats:
        """Return the estimated count of each answer, right on average; an estimate may lie below 0 or above N."""
        if not self.reports:
            return np.zeros(len(supports))
        gain = float(self.keep - self.stray)
        centred = supports - self.reports * float(self.stray)
        return np.asarray(centred / gain * (self.people / self.reports), dtype=np.float64)

    def law(self) -> "ReportLaw":
        """Return the law of the supports of one answer, where every person reports."""
        return ReportLaw(self.reports, float(self.keep), float(self.stray))

    def bounds(self, supports: Integers, confidence: float) -> tuple[Floats, Floats]:
        """Return the lower and the upper end of the interval of each answer."""
        if not self.reports:
            return np.zeros(len(supports)), np.full(len(supports), float(self.people))
        if self.reports == self.people <= EXACT_MOST:
            lows, highs = self.certain_bounds(supports, confidence)
            estimates = self.unbiased(supports)
            return np.minimum(lows, estimates), np.maximum(highs, estimates)
        z = NormalDist().inv_cdf(0.5 + confidence / 2)
        low = self._root(supports.astype(np.float64) - 0.5, z, -1.0)
        high = self._root(supports.astype(np.float64) + 0.5, z, 1.0)
        return low * self.people, high * self.people

    def certain_bounds(self, supports: Integers, confidence: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return the fewest and the most holders of each answer, by the exact law, where every person reports.

        Equal supports are worked out once.
        """
        law = self.law()
        found = {count: law.interval(count, confidence) for count in set(supports.tolist())}
        ends = [found[count] for count in supports.tolist()]
        return tuple(low for low, _ in ends), tuple(high for _, high in ends)

    def _root(self, supports: Floats, z: float, side: float) -> Floats:
        """Return the share m/N at which these supports are z standard deviations off: a root of a quadratic."""
        n, p, q = float(self.reports), float(self.keep), float(self.stray)
        gain, excess = float(self.keep - self.stray), supports - n * q
        drawn = gain**2 * n * (1 - self.reports / self.people)  # which of the people report is random too
        slope = n * (p * (1 - p) - q * (1 - q)) + drawn
        a = (gain * n) ** 2 + z**2 * drawn
        b = 2 * excess * gain * n + z**2 * slope
        c = excess**2 - z**2 * n * q * (1 - q)
        return np.asarray((b + side * np.sqrt(np.maximum(b**2 - 4 * a * c, 0.0))) / (2 * a), dtype=np.float64)


@dataclass(frozen=True)
class ReportLaw:
    """The law of how many of `people` reports name a category: kept with chance `keep`, strayed to with `stray`."""

    people: int
    keep: float
    stray: float

    def unbiased(self, reports: int) -> float:
        """Return the estimate of how many hold the category, right on average."""
        return (reports - self.people * self.stray) / self._gain

    def interval(self, reports: int, confidence: float) -> tuple[int, int]:
        """Return the fewest and the most holders that this number of reports does not reject."""
        side = (1 - confidence) / 2
        mirror = ReportLaw(self.people, 1 - self.stray, 1 - self.keep)
        low = self._fewest(reports, side)
        high = self.people - mirror._fewest(self.people - reports, side)
        return min(low, self.people), max(high, 0, min(low, self.people))

    def at_least(self, holders: int, reports: int) -> float:
        """Return the probability of at least `reports` reports of the category, if `holders` people hold it."""
        first, kept = _binomial(holders, self.keep)
        start, strayed = _binomial(self.people - holders, self.stray)
        above = np.append(np.cumsum(strayed[::-1])[::-1], 0.0)  # Pr[strays >= start + i]
        wanted = np.clip(reports - first - start - np.arange(len(kept)), 0, len(strayed))
        return float(kept @ above[wanted])

    def within(self, holders: int, chance: float) -> int:
        """Return the least r such that reports are more than r from their mean with probability at most `chance`."""
        mean = holders * self.keep + (self.people - holders) * self.stray
        guess = NormalDist().inv_cdf(1 - chance / 2) * math.sqrt(self._variance(holders))

        def holds(r: int) -> bool:
            above = self.at_least(holders, math.floor(mean + r) + 1)
            below = 1 - self.at_least(holders, math.ceil(mean - r))
            return above + below <= chance

        return least_integer(holds, round(guess))

    @property
    def _gain(self) -> float:
        """The expected reports that a holder of the answer adds; not 0, even if two close floats have difference 0."""
        return self.keep - self.stray or math.ulp(self.keep)

    def _variance(self, holders: float) -> float:
        return holders * self.keep * (1 - self.keep) + (self.people - holders) * self.stray * (1 - self.stray)

    def _fewest(self, reports: int, side: float) -> int:
        """Return the least number of holders for which at least `reports` reports are likelier than `side`."""
        deviation = math.sqrt(self.people) * 0.5 / self._gain
        guess = self.unbiased(reports) - NormalDist().inv_cdf(1 - side) * min(deviation, self._deviation(reports))

        def holds(holders: int) -> bool:
            return holders >= self.people or self.at_least(holders, reports) > side

        return least_integer(holds, min(max(0, round(guess)), self.people))

    def _deviation(self, reports: int) -> float:
        """About the standard deviation of the estimate: only where to begin a search."""
        holders = min(max(self.unbiased(reports), 0), self.people)
        return math.sqrt(self._variance(holders)) / self._gain


def norm_sub(counts: Floats, total: float) -> Floats:
    """Return the nearest counts that are at least 0 and add up to the total: all shifted by one number, then cut at 0.

    >>> norm_sub(np.array([7.0, 5.0, -2.0]), 10.0).tolist()
    [6.0, 4.0, 0.0]
    """
    if total <= 0 or not len(counts):
        return np.zeros(len(counts))
    falling = np.sort(counts)[::-1]
    shifts = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    shift = shifts[np.flatnonzero(falling >= shifts)[-1]]  # never empty: the largest count always passes
    return np.asarray(np.maximum(counts - shift, 0.0), dtype=np.float64)


def _binomial(trials: int, chance: float) -> tuple[int, Floats]:
    """Return the masses of a binomial and the number of the first; the omitted tails weigh less than 1e-18.

    The masses are divided by their sum.
    """
    deviation = math.sqrt(trials * chance * (1 - chance))
    mode = min(int((trials + 1) * chance), trials)
    reach = int(10 * deviation) + 45
    low, high = max(0, mode - reach), min(trials, mode + reach)
    masses = binomial_ratios(trials, chance / (1 - chance), low, mode, high)
    return low, masses / masses.sum()


# ---- the interval of a mean ------------------------------------------------------------------------------------------


# With fewer reports the mean of bounded reports is not yet close to normal.
NORMAL_FROM = 100


def mean_interval(protocol: MeanResponse, tally: NDArray[Any], confidence: float) -> tuple[float, float, float] | None:
    """Return the unbiased mean and the ends of its interval; None without a report."""
    one_bit, ones, piecewise, cells, squares = (
        int(tally[index]) for index in (ONE_BIT, ONES, PIECEWISE, CELLS, SQUARES)
    )
    n = one_bit + piecewise
    if not n:
        return None
    slope, start = protocol.bit_line
    total = (ones - one_bit * start) / slope
    if not piecewise:
        low, high = _wilson(ones, n, confidence)
        return float(total / n), float((low - start) / slope), float((high - start) / slope)
    square = (ones * (1 - start) ** 2 + (one_bit - ones) * start**2) / slope**2
    slope, start = protocol.cell_line
    total += (cells - piecewise * start) / slope
    square += (squares - 2 * start * cells + piecewise * start**2) / slope**2
    mean = total / n
    if n < NORMAL_FROM:
        least, most = protocol.extremes()
        half = (most - least) * math.sqrt(math.log(2 / (1 - confidence)) / (2 * n))
    else:
        half = NormalDist().inv_cdf(0.5 + confidence / 2) * math.sqrt(float((square - n * mean**2) / (n - 1) / n))
    return float(mean), float(mean) - half, float(mean) + half


def _wilson(ones: int, n: int, confidence: float) -> tuple[Fraction, Fraction]:
    """Return Wilson's interval for a probability, with a continuity correction of half a report."""
    z = NormalDist().inv_cdf(0.5 + confidence / 2)

    def end(seen: float, side: float) -> Fraction:
        root = math.sqrt(max(z**2 / 4 + seen * (1 - seen / n), 0.0))
        return Fraction((seen + z**2 / 2 + side * z * root) / (n + z**2))

    return end(max(ones - 0.5, 0.0), -1.0), end(min(ones + 0.5, float(n)), 1.0)
