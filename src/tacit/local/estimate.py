"""Estimates from a collector's counters, with intervals, the reports used and rejected, and what fakes could change.

All is computed from reports that are already private, and is free.

Frequent strings are found from prefixes, level by level: the prefixes kept so far are extended by every symbol, and
those with most support kept. Other people's whole strings confirm the candidates: a string is shown only if its support
is too large to come from strings that no person holds.

Confidence intervals for counts and means behind perturbed reports, and counts that add up to their total.

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
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting import binomial_ratios
from tacit.errors import printable
from tacit.local.domain import Label, Range, Text
from tacit.local.protocols.hashing import PrefixHashing
from tacit.local.protocols.means import CELLS, ONE_BIT, ONES, PIECEWISE, SQUARES, MeanResponse
from tacit.numbers import Floats, Integers
from tacit.pictures import Panel, Sheet, SheetCell, chart, page, write
from tacit.privacy import PureLoss, least_integer

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


SHOWN_ROWS = 20


@dataclass(frozen=True)
class Basis:
    """The reports behind an estimate: the loss of one, how many were used, and how many were rejected and why."""

    loss: PureLoss
    used: int
    rejected: Mapping[str, int] = field(default_factory=Counter)
    confidence: float = 0.95

    def line(self) -> str:
        total = sum(self.rejected.values())
        why = ", ".join(f"{count:,} {reason}" for reason, count in self.rejected.items() if count)
        rejected = f"{total:,} rejected ({why})" if total else "none rejected"
        return f"{self.used:,} reports used, {rejected}; {self.loss} for each person's report."


@dataclass(frozen=True)
class Shift:
    """The most that fakes can move one estimate, down and up from the estimate of the honest reports only."""

    down: float
    up: float


class FromReports:
    """The part that all estimates share: counts of the reports they were made from."""

    basis: Basis

    @property
    def used(self) -> int:
        return self.basis.used

    @property
    def rejected(self) -> int:
        return sum(self.basis.rejected.values())


@dataclass(frozen=True)
class FrequencyEstimate(FromReports):
    """The count of each answer: unbiased with an interval, and beside it counts that are whole together.

    `consistent` are at least 0 and add up to everyone; their error is smaller on small counts, but biased there.
    """

    values: tuple[Label, ...]
    counts: Floats
    low: Floats
    high: Floats
    consistent: Floats
    counting: Counting
    basis: Basis
    inspect: Callable[[Floats], tuple[str, ...]] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def flags(self) -> tuple[str, ...]:
        """Signs that fakes push some answers; looked for when first asked."""
        return () if self.inspect is None else self.inspect(self.consistent)

    def poisoning(self, fraction: float) -> Shift:
        """Return the worst shift of one answer's count if this fraction of the reports were sent to move it.

        A fake that supports an answer adds (1 - q)/(p - q) to its count, one that does not takes q/(p - q) away.
        """
        fakes = fraction * self.counting.people
        gain = float(self.counting.keep - self.counting.stray)
        return Shift(-fakes * float(self.counting.stray) / gain, fakes * float(1 - self.counting.stray) / gain)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        rows = [
            {"value": value, "count": count, "count_low": low, "count_high": high, "consistent": consistent}
            for value, count, low, high, consistent in zip(
                self.values,
                self.counts.tolist(),
                self.low.tolist(),
                self.high.tolist(),
                self.consistent.tolist(),
                strict=True,
            )
        ]
        return {"rows": rows, **_basis_record(self.basis), "flags": list(self.flags)}

    def __str__(self) -> str:
        order = np.argsort(-self.counts, kind="stable")[:SHOWN_ROWS]
        names = {index: printable(str(self.values[index])) for index in order}
        width = max([5, *map(len, names.values())])
        level = f"{self.basis.confidence * 100:g} %"
        head = f"{'value':{width}} {'count':>12} {level + ' interval':>25}"
        rows = [
            f"{names[index]:{width}} {self.counts[index]:12,.0f} "
            f"{f'{self.low[index]:,.0f} to {self.high[index]:,.0f}':>25}"
            for index in order
        ]
        left = len(self.values) - len(rows)
        more = [f"… and {left:,} more"] if left else []
        return "\n".join([head, *rows, *more, self.basis.line(), *self.flags])

    __repr__ = __str__

    def plot(self, path: str) -> None:
        """Write a chart of the largest counts with their intervals, as PNG or SVG by the path's ending."""

        plot_counts(self, path)


@dataclass(frozen=True)
class MeanEstimate(FromReports):
    """The mean of a number: unbiased, with an interval; None if no report was used."""

    mean: float | None
    low: float | None
    high: float | None
    question: Range
    protocol: MeanResponse
    basis: Basis

    def poisoning(self, fraction: float) -> Shift:
        """Return the worst shift of the mean if this fraction of the reports were sent to move it."""
        least, most = self.protocol.extremes()
        width = float(self.question.high - self.question.low) * fraction
        # the honest mean is at least the one end and at most the other
        return Shift((least - 1) * width, most * width)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        row = {"mean": self.mean, "mean_low": self.low, "mean_high": self.high}
        return {"rows": [row] if self.mean is not None else [], **_basis_record(self.basis)}

    def __str__(self) -> str:
        if self.mean is None:
            return f"the mean cannot be estimated without reports\n{self.basis.line()}"
        level = f"{self.basis.confidence * 100:g} %"
        return f"mean {self.mean:,.6g}, {level} interval {self.low:,.6g} to {self.high:,.6g}\n{self.basis.line()}"

    __repr__ = __str__


@dataclass(frozen=True)
class AttributesEstimate(FromReports):
    """The counts of each attribute, by name."""

    attributes: Mapping[str, FrequencyEstimate]
    basis: Basis

    def __getitem__(self, name: str) -> FrequencyEstimate:
        return self.attributes[name]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON: a row for each answer of each attribute."""
        rows = [{"attribute": name, **row} for name, each in self.attributes.items() for row in each.to_dict()["rows"]]
        return {"rows": rows, **_basis_record(self.basis)}

    def __str__(self) -> str:
        parts = [f"{name}\n" + "\n".join(str(each).splitlines()[:-1]) for name, each in self.attributes.items()]
        return "\n\n".join([*parts, self.basis.line()])

    __repr__ = __str__


def estimate_counts(
    values: tuple[Label, ...],
    supports: Integers,
    counting: Counting,
    basis: Basis,
    inspect: Callable[[Floats], tuple[str, ...]] | None = None,
) -> FrequencyEstimate:
    counts = counting.unbiased(supports)
    low, high = counting.bounds(supports, basis.confidence)
    consistent = norm_sub(counts, float(counting.people)) if counting.reports else np.zeros(len(counts))
    return FrequencyEstimate(values, counts, low, high, consistent, counting, basis, inspect)


def estimate_mean(question: Range, protocol: MeanResponse, tally: NDArray[Any], basis: Basis) -> MeanEstimate:
    """Return the estimate that a mean's counters give."""
    found = mean_interval(protocol, tally, basis.confidence)
    if found is None:
        return MeanEstimate(None, None, None, question, protocol, basis)
    low, width = float(question.low), float(question.high - question.low)
    mean, least, most = (low + width * part for part in found)
    return MeanEstimate(mean, least, most, question, protocol, basis)


def _basis_record(basis: Basis) -> dict[str, Any]:
    return {
        "used": basis.used,
        "rejected": sum(basis.rejected.values()),
        "rejected_by_reason": {reason: count for reason, count in basis.rejected.items() if count},
        "epsilon": str(basis.loss.epsilon),
        "confidence": basis.confidence,
    }


# ---- frequent strings ------------------------------------------------------------------------------------------------


KEPT_MOST = 64
# A prefix is extended if its support is this many standard deviations above that of a prefix no person has.
DEVIATIONS_LEAST = 1.0
# The probability of showing any string that no person has.
FALSE_SHOWN = 0.01


@dataclass(frozen=True)
class StringsEstimate(FromReports):
    """The strings that many share, most frequent first, with counts and intervals."""

    found: FrequencyEstimate
    basis: Basis

    @property
    def strings(self) -> tuple[str, ...]:
        """The strings, most frequent first."""
        return tuple(str(value) for value in self.found.values)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        return self.found.to_dict()

    def __str__(self) -> str:
        return str(self.found) if self.found.values else f"no string is frequent enough to show\n{self.basis.line()}"

    __repr__ = __str__


def find_strings(question: Text, protocol: PrefixHashing, tally: NDArray[Any], basis: Basis) -> StringsEstimate:
    """Return the frequent strings that the reports show.

    Which strings are tried depends on other people's reports than those that confirm them.
    """
    prefixes = np.zeros((1, question.length), dtype=np.uint8)
    for level in range(protocol.levels - 1):
        candidates = _with_middle(prefixes, protocol, level)
        reports, counts = protocol.count_extensions(tally, level, candidates)
        prefixes = _kept_prefixes(candidates, counts, reports, protocol, level)
        if not len(prefixes):
            break
    reports, supports = protocol.count_strings(tally, prefixes)
    shown = np.flatnonzero(supports >= _threshold(reports, len(prefixes), protocol))
    shown = shown[np.argsort(-supports[shown], kind="stable")]
    values = tuple(question.string_of(row) for row in prefixes[shown])
    counting = Counting(protocol.keep, protocol.stray, reports, basis.used)
    return StringsEstimate(estimate_counts(values, supports[shown], counting, basis), basis)


def _threshold(reports: int, tried: int, protocol: PrefixHashing) -> int:
    """Return the least support that strings no person has reach with probability at most `FALSE_SHOWN`, together."""
    law, allowed = ReportLaw(reports, float(protocol.keep), float(protocol.stray)), FALSE_SHOWN / max(tried, 1)
    expected = reports * law.stray
    guess = expected + NormalDist().inv_cdf(1 - allowed) * math.sqrt(expected * (1 - law.stray))
    return least_integer(lambda support: support > reports or law.at_least(0, support) <= allowed, round(guess))


def _with_middle(prefixes: NDArray[np.uint8], protocol: PrefixHashing, level: int) -> NDArray[np.uint8]:
    """Return prefixes extended by every choice of a level's symbols but the last; no symbol follows a string's end."""
    first = protocol.ends[level - 1] if level else 0
    middle = protocol.ends[level] - 1 - first
    rows = []
    for prefix in prefixes:
        for symbols in product(range(protocol.symbols + 1), repeat=middle):
            row = prefix.copy()
            row[first : first + middle] = symbols
            if _ends_once(row, first + middle):
                rows.append(row)
    return np.array(rows, dtype=np.uint8).reshape(len(rows), protocol.length)


def _kept_prefixes(
    candidates: NDArray[np.uint8], counts: Integers, reports: int, protocol: PrefixHashing, level: int
) -> NDArray[np.uint8]:
    """Return the extended prefixes with the most support."""
    last = protocol.ends[level] - 1
    rows = np.repeat(candidates, protocol.symbols + 1, axis=0)
    rows[:, last] = np.tile(np.arange(protocol.symbols + 1, dtype=np.uint8), len(candidates))
    possible = np.array([_ends_once(row, last + 1) for row in rows], dtype=np.bool_)
    rows, supports = rows[possible], counts.ravel()[possible]
    stray = float(protocol.stray)
    least = reports * stray + DEVIATIONS_LEAST * math.sqrt(reports * stray * (1 - stray))
    order = np.argsort(-supports, kind="stable")[:KEPT_MOST]
    return rows[order[supports[order] > least]]


def _ends_once(row: NDArray[np.uint8], length: int) -> bool:
    """Whether no symbol follows a string's end within this length."""
    ended = np.flatnonzero(row[:length] == 0)
    return not ended.size or not row[ended[0] : length].any()


# ---- the picture -----------------------------------------------------------------------------------------------------


BARS_MOST = 30
LINE_LETTERS = (64, 110)


def plot_counts(estimate: "FrequencyEstimate", path: str) -> None:
    """Write the largest counts with their intervals, in the form the path's ending asks for."""
    cells = tuple(
        _count_cell(estimate, int(index)) for index in np.argsort(-estimate.counts, kind="stable")[:BARS_MOST]
    )
    drawn = Sheet(
        panels=(Panel("estimated count", "bar", cells),),
        axis="value",
        order="none",
        group=None,
        labels=tuple(cell.label for cell in cells),
        groups=(),
        cut=None if len(cells) == len(estimate.values) else f"drawn: the largest of {len(estimate.values):,}",
    )
    basis = estimate.basis
    level = f"{basis.confidence * 100:g} % intervals, {estimate.used:,} reports, {basis.loss} each"
    notes = [level, *([drawn.cut] if drawn.cut else [])]
    write(page(chart(drawn), title="Estimated counts", notes=notes, letters=LINE_LETTERS), Path(path))


def _count_cell(estimate: "FrequencyEstimate", index: int) -> SheetCell:
    count, low, high = (float(each[index]) for each in (estimate.counts, estimate.low, estimate.high))
    text = f"{count:,.0f}  ({low:,.0f} … {high:,.0f})"
    return SheetCell(str(estimate.values[index]), None, "", count, low, high, text)
