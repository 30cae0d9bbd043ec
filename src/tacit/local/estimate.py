"""What the reports say about the truth: unbiased estimates and intervals that cover at the stated rate.

Of n people m hold a category. The number S of reports of it is the sum of two binomials, of m at `keep` and of n - m
at `stray`. An interval holds every m that a test of size 1 - confidence, half on each side, does not reject: so it
covers the true m at least as often as stated, for any true answers (docs/proofs/randomized-response.md).
Floats here are for showing; the reports are already private.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tacit.privacy.symmetric import least_integer

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class FractionEstimate:
    """The estimated fraction of ones, unbiased (so it may lie outside 0 to 1), and an interval for the true one."""

    value: float
    low: float
    high: float
    confidence: float
    people: int

    def __str__(self) -> str:
        interval = f"{self.confidence:.4g} interval {self.low:.4g} to {self.high:.4g}"
        return f"{self.value:.4g} ({interval}, {self.people:,} people)"


@dataclass(frozen=True)
class CountEstimate:
    """The estimated count of each category, unbiased (so it may lie below 0), and an interval for each true one."""

    categories: tuple[object, ...]
    values: tuple[float, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    confidence: float
    people: int

    def __str__(self) -> str:
        rows = zip(self.categories, self.values, self.low, self.high, strict=True)
        return "\n".join(f"{name}: {value:.6g} ({low:,} to {high:,})" for name, value, low, high in rows)


@dataclass(frozen=True)
class ReportLaw:
    """The law of how many of `people` reports name a category: kept with chance `keep`, strayed to with `stray`."""

    people: int
    keep: float
    stray: float

    def unbiased(self, reports: int) -> float:
        """Return the estimate of how many hold the category, right on average."""
        return (reports - self.people * self.stray) / (self.keep - self.stray)

    def interval(self, reports: int, confidence: float) -> tuple[int, int]:
        """Return the fewest and the most holders that so many reports do not speak against."""
        side = (1 - confidence) / 2
        mirror = ReportLaw(self.people, 1 - self.stray, 1 - self.keep)
        low = self._fewest(reports, side)
        high = self.people - mirror._fewest(self.people - reports, side)
        return min(low, self.people), max(high, 0, min(low, self.people))

    def at_least(self, holders: int, reports: int) -> float:
        """Return the chance of at least so many reports, given how many hold the category."""
        first, kept = _binomial(holders, self.keep)
        start, strayed = _binomial(self.people - holders, self.stray)
        above = np.append(np.cumsum(strayed[::-1])[::-1], 0.0)  # Pr[strays >= start + i]
        wanted = np.clip(reports - first - start - np.arange(len(kept)), 0, len(strayed))
        return float(kept @ above[wanted])

    def _fewest(self, reports: int, side: float) -> int:
        """Return the least number of holders at which at least so many reports have more than this chance."""
        deviation = math.sqrt(self.people) * 0.5 / (self.keep - self.stray)
        guess = self.unbiased(reports) - NormalDist().inv_cdf(1 - side) * min(deviation, self._deviation(reports))

        def holds(holders: int) -> bool:
            return holders >= self.people or self.at_least(holders, reports) > side

        return least_integer(holds, min(max(0, round(guess)), self.people))

    def _deviation(self, reports: int) -> float:
        """About the standard deviation of the estimate: only where to begin a search."""
        holders = min(max(self.unbiased(reports), 0), self.people)
        variance = holders * self.keep * (1 - self.keep) + (self.people - holders) * self.stray * (1 - self.stray)
        return math.sqrt(variance) / (self.keep - self.stray)


def intervals(law: ReportLaw, counts: NDArray[np.int64], confidence: float) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the ends of the interval of each count of reports; equal counts are worked out once."""
    found = {count: law.interval(count, confidence) for count in set(counts.tolist())}
    ends = [found[count] for count in counts.tolist()]
    return tuple(low for low, _ in ends), tuple(high for _, high in ends)


def _binomial(trials: int, chance: float) -> tuple[int, Floats]:
    """Return the masses of a binomial and their first place; what is left out weighs less than 1e-18.

    Each mass comes from its neighbour's by their ratio, outward from the mode, and all are divided by their sum.
    """
    deviation = math.sqrt(trials * chance * (1 - chance))
    mode = min(int((trials + 1) * chance), trials)
    reach = int(10 * deviation) + 45
    low, high = max(0, mode - reach), min(trials, mode + reach)
    odds = chance / (1 - chance)
    up, down = np.arange(mode, high, dtype=np.float64), np.arange(mode, low, -1, dtype=np.float64)
    above = np.cumprod((trials - up) / (up + 1) * odds)
    below = np.cumprod(down / (trials - down + 1) / odds)
    masses = np.concatenate([below[::-1], [1.0], above])
    return low, masses / masses.sum()
