"""Tests of what a released table says about the population: means, shares, independence, ranks, correlation.

Each test reads an answer, and is free. Its null law has the sampling error and the noise. The law of linear
statistics is a normal error joined with the noise; that of cross-tables is simulated at the fitted margins, noise
included (docs/proofs/population.md). The simulated draws follow from the answer, so a p-value is the same each time.
Given a table and an epsilon instead of an answer, a test asks the question first, which is charged as any other.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from tacit.answer.answer import Answer
from tacit.answer.population import (
    Estimate,
    NoiseLaw,
    estimates,
    law_of_cells,
    law_of_column,
    refuse_several_rows,
)
from tacit.answer.text import Printed
from tacit.errors import InvalidParameter, printable
from tacit.numbers import Floats, Integers, confidence_meaning
from tacit.plan import Correlation, CountRows, CountUnits, CountValues
from tacit.query import correlation as asked_correlation
from tacit.query import count, mean, std

DRAWS = 999
BISECTIONS = 60
# A margin of a cross-table below a quarter of its noise is raised to that.
MARGIN_LEAST = 0.25
# A cell that is simulated follows Poisson's law within this many standard deviations.
REACH = 12.0


@dataclass(frozen=True, repr=False)
class Significance(Printed):
    """A test's result, with scipy's names: `pvalue`, `statistic`, `estimate`, `confidence_interval()`."""

    name: str
    statistic: float
    pvalue: float
    estimate: float | None = None
    of: str = ""
    _tail: Callable[[float], float] | None = None
    _span: tuple[float, float] = (-np.inf, np.inf)
    adjusted: float | None = None  # by Holm's method, where several were compared at once

    def confidence_interval(self, confidence: Any = 0.95) -> tuple[float, float]:
        """Return the values of the estimated number that a test at this confidence does not reject."""
        if self._tail is None or self.estimate is None:
            raise InvalidParameter(f"a test of {self.name} estimates no number, so an interval is not defined")
        miss = 1 - float(confidence_meaning(confidence))
        low, high = (self._end(sign, miss) for sign in (-1.0, 1.0))
        return low, high

    def _end(self, sign: float, miss: float) -> float:
        tail, estimate = self._tail, self.estimate
        if tail is None or estimate is None:
            raise ValueError("this test has no law of an estimate")
        near, far = 0.0, abs(self._span[sign > 0] - estimate)
        for _ in range(BISECTIONS):
            middle = (near + far) / 2
            near, far = (middle, far) if tail(estimate + sign * middle) > miss else (near, middle)
        return estimate + sign * far

    def __str__(self) -> str:
        number = "" if self.estimate is None else f" {self.estimate:.4g}"
        if self._tail is not None and self.estimate is not None:
            low, high = self.confidence_interval()
            number += f" (95 %: {low:.4g} … {high:.4g})"
        compared = "" if self.adjusted is None else f", and {_p(self.adjusted)} by Holm's method"
        return printable(f"{self.name}{self.of}:{number}{',' if number else ''} p {_p(self.pvalue)}{compared}")


def means(source: Any, column: str | None = None, *, by: str | None = None, epsilon: Any = None) -> Any:
    """Test whether two groups of the population have the same mean; of more groups, each pair, by Holm's method.

    `source` is an answer with one mean by one key, or a table with the `column`, `by` and `epsilon` to ask it. As
    scipy's ttest_ind(equal_var=False) and R's t.test.
    """
    return _pairs(source, column, by, epsilon, two_means, with_spread=True)


def shares(source: Any, column: str | None = None, *, by: str | None = None, epsilon: Any = None) -> Any:
    """Test whether two groups have the same share: of a column of 0 and 1, or true and false.

    As statsmodels' proportions_ztest and R's prop.test.
    """
    return _pairs(source, column, by, epsilon, two_shares, with_spread=False)


def independence(source: Any, one: str | None = None, two: str | None = None, *, epsilon: Any = None) -> Significance:
    """Test whether two columns are independent, by chi-square: as scipy's chi2_contingency and R's chisq.test."""
    cells = _crosstab(_answered(source, lambda table: table.group_by(_named(one), _named(two)).count(), epsilon))
    return cells.tested(" and ".join(cells.names), "independence of ", chi_square)


def ranks(
    source: Any, column: str | None = None, *, by: str | None = None, bins: Any = 8, epsilon: Any = None
) -> Significance:
    """Test whether groups differ in the ranks of a number, from counts in its bins.

    As R's wilcox.test for two groups, and kruskal.test for more. The bins are public: a declared range in equal parts,
    or a list of edges. In an answer, the first key is the group and the second the bins.
    """

    def asked(table: Any) -> Any:
        return table.marginals([_named(by), _named(column)], bins={_named(column): bins})

    cells = _crosstab(_answered(source, asked, epsilon))
    return cells.tested(f"{cells.names[1]} by {cells.names[0]}", "ranks of ", kruskal_wallis)


def correlation(source: Any, one: str | None = None, two: str | None = None, *, epsilon: Any = None) -> Significance:
    """Test whether two numbers are uncorrelated: as scipy's pearsonr and R's cor.test."""
    answer = _answered(
        source, lambda table: table.agg(n=count(), r=asked_correlation(_named(one), _named(two))), epsilon
    )
    plan, noisy, columns_at = answer.released
    refuse_several_rows(plan)
    at = _only(plan.outputs, Correlation, "a correlation")
    counted = _only(plan.outputs, (CountRows, CountUnits, CountValues), "a count of rows")
    if len(noisy.keys) != 1:
        raise InvalidParameter("this test needs one correlation, without groups\nhint: filter with where(...)")
    (column, law), rows = law_of_column(columns_at, at), columns_at(answer.facts.confidence)[counted].values[0]
    value = column.values[0]
    if value is None or not rows or rows < 4:
        return Significance("correlation", 0.0, 1.0)
    found, size = np.array([float(value)]), np.array([float(rows)])

    def tail(rho: float) -> float:
        return float(tail_of_correlation(found, size, law, rho)[0])

    return Significance("correlation", found[0] * size[0] ** 0.5, tail(0.0), found[0], "", tail, (-1.0, 1.0))


def tail_of_correlation(values: Floats, rows: Floats, law: NoiseLaw, rho: float) -> Floats:
    """Return the probability that correlations are this distance from `rho` or more, if it is the true one."""
    spread = np.maximum(1 - rho * rho, 1e-9) / np.sqrt(np.maximum(rows - 3, 1.0))
    return law.tail(np.abs(values - rho), spread)


# ---- Means and shares of two groups.


def _pairs(
    source: Any,
    column: str | None,
    by: str | None,
    epsilon: Any,
    test: Callable[[Estimate, int, int, str], Significance],
    *,
    with_spread: bool,
) -> Any:
    def asked(table: Any) -> Any:
        spread = [std(_named(column))] if with_spread else []
        return table.group_by(_named(by)).agg(mean(_named(column)), *spread)

    answer = _answered(source, asked, epsilon)
    plan, noisy, columns_at = answer.released
    (estimate, *more) = estimates(plan, noisy, columns_at)
    if more or len(plan.keys) != 1 or len(noisy.keys) < 2:
        raise InvalidParameter(
            "this test compares one mean between groups of one key, at least two"
            "\nhint: group_by('sex').agg(mean=tacit.mean('x'), spread=tacit.std('x'))"
        )
    labels = [str(key[0]) for key in noisy.keys]
    found = [
        test(estimate, one, two, f", {estimate.name}, {labels[one]} − {labels[two]}")
        for one, two in combinations(range(len(labels)), 2)
    ]
    return found[0] if len(found) == 1 else holm(found)


def holm(tests: Sequence[Significance]) -> list[Significance]:
    """Return tests of one family with p-values adjusted for their number by Holm's method."""
    order = sorted(range(len(tests)), key=lambda at: tests[at].pvalue)
    adjusted, least = {}, 0.0
    for rank, at in enumerate(order):
        least = max(least, min(1.0, (len(tests) - rank) * tests[at].pvalue))
        adjusted[at] = least
    return [replace(test, adjusted=adjusted[at]) for at, test in enumerate(tests)]


def two_means(estimate: Estimate, one: int, two: int, of: str) -> Significance:
    span = (-np.inf, np.inf) if estimate.span is None else (estimate.span[0] - estimate.span[1],) * 2
    return _difference(estimate, one, two, "difference of means", of, spread_of_means, (span[0], -span[0]))


def two_shares(estimate: Estimate, one: int, two: int, of: str) -> Significance:
    if estimate.span is not None and estimate.span != (0.0, 1.0):
        raise InvalidParameter(
            "a share is the mean of a column of 0 and 1, and this one has another range"
            "\nhint: tacit.test.means compares means, or derive(high='CASE WHEN x > 10 THEN 1 ELSE 0 END')"
        )
    return _difference(estimate, one, two, "difference of shares", of, spread_of_shares, (-1.0, 1.0))


# The standard deviation that sampling gives a difference, of pairs of groups, if it is this one.
SpreadAt = Callable[[Estimate, Integers, Integers, float], Floats]


def spread_of_means(estimate: Estimate, one: Integers, two: Integers, _: float) -> Floats:
    """Return the standard deviation of differences of means."""
    variances = estimate.variance_at(np.nan_to_num(estimate.value)) / estimate.rows
    return np.sqrt(variances[one] + variances[two])


def spread_of_shares(estimate: Estimate, one: Integers, two: Integers, difference: float) -> Floats:
    """Return that of shares that differ by this much and fit best; never surer than one person's noise allows."""
    n, p = (np.nan_to_num(each[np.stack([one, two])]) for each in (estimate.rows, estimate.value))
    least, most = max(0.0, -difference), min(1.0, 1 - difference)
    second = np.clip(((n * p).sum(0) - difference * n[0]) / n.sum(0), least, most)
    both = np.clip(np.stack([second + difference, second]), 0.5 / n, 1 - 0.5 / n)
    return np.asarray(np.sqrt((both * (1 - both) / n).sum(0)))


def tails(estimate: Estimate, one: Integers, two: Integers, spread_at: SpreadAt, difference: float = 0.0) -> Floats:
    """Return, for pairs of groups, the probability of this distance from a true difference, or more."""
    sides = [estimate.below.at(each).wider(estimate.above.at(each)) for each in (one, two)]
    distance = np.abs(np.nan_to_num(estimate.value[one] - estimate.value[two]) - difference)
    found = sides[0].less(sides[1]).tail(distance, spread_at(estimate, one, two, difference))
    return np.where(estimate.is_known[one] & estimate.is_known[two], found, 1.0)


def _difference(
    estimate: Estimate, one: int, two: int, name: str, of: str, spread_at: SpreadAt, span: tuple[float, float]
) -> Significance:
    if not (estimate.is_known[one] and estimate.is_known[two]):
        return Significance(name, 0.0, 1.0, None, f"{of}: not enough people")
    value = float(estimate.value[one] - estimate.value[two])
    pair = np.array([one]), np.array([two])
    laws = [estimate.below.at(each).wider(estimate.above.at(each)) for each in pair]
    noise, spread = float(sum(law.variance()[0] for law in laws)) ** 0.5, float(spread_at(estimate, *pair, 0.0)[0])
    if span[0] == -np.inf:
        far = abs(value) + sum(float(law.distances.max()) for law in laws) + 12 * spread
        span = (-far, far)

    def tail(difference: float) -> float:
        return float(tails(estimate, *pair, spread_at, difference)[0])

    return Significance(name, value / max(np.hypot(spread, noise), 1e-300), tail(0.0), value, of, tail, span)


# ---- Cross-tables.


@dataclass(frozen=True)
class CountsByTwo:
    """The noisy counts of a cross-table, and the law of their noise."""

    names: tuple[str, ...]
    counts: Floats  # (first key, second key)
    law: NoiseLaw

    @property
    def noise(self) -> float:
        """The variance of the noise of a cell."""
        return float(self.law.variance()[0])

    def tested(
        self, of: str, name: str, statistic: Callable[[Floats, float], Floats], draws: int = DRAWS
    ) -> Significance:
        """Return how often tables of independent columns, with noise, have a statistic as large."""
        if min(self.counts.shape) < 2:
            raise InvalidParameter("this test needs two groups or more of each key\nhint: group_by('sex', 'ward')")
        found = float(statistic(self.counts[None], self.noise)[0])
        total, down, across = fitted(self.counts[None], self.noise)
        null = self._drawn((total * down * across)[0], draws)
        as_large = int((statistic(null, self.noise) >= found * (1 - 1e-12)).sum())
        return Significance(f"{name}{of}", found, (1 + as_large) / (1 + draws))

    def _drawn(self, expected: Floats, draws: int) -> Floats:
        """Return tables drawn at these expected counts, with noise, cut at 0 as released counts are."""
        words = _uniforms(self.counts, 3 * draws * expected.size).reshape(3, draws, *expected.shape)
        drawn = np.empty((draws, *expected.shape))
        for at in np.ndindex(expected.shape):
            drawn[(slice(None), *at)] = poisson_draws(float(expected[at]), words[(0, slice(None), *at)])
        noise = self.law.drawn(words[1]) * np.where(words[2] < 0.5, -1.0, 1.0)
        return np.asarray(np.maximum(drawn + np.rint(noise), 0.0))


def _crosstab(answer: Answer) -> CountsByTwo:
    plan, noisy, columns_at = answer.released
    refuse_several_rows(plan)
    if plan.threshold is not None:
        raise InvalidParameter(
            "this test needs all groups, also those that are small\nhint: list the keys of both columns"
        )
    if len(plan.keys) != 2:
        raise InvalidParameter("this test needs a count by two keys\nhint: group_by('sex', 'ward').count()")
    column, law = law_of_cells(columns_at, _only(plan.outputs, (CountRows, CountUnits, CountValues), "a count of rows"))
    labels = [sorted({key[place] for key in noisy.keys}, key=_label_order) for place in (0, 1)]
    places = [{label: at for at, label in enumerate(each)} for each in labels]
    counts = np.zeros((len(labels[0]), len(labels[1])))
    for key, value in zip(noisy.keys, column.values, strict=True):
        counts[places[0][key[0]], places[1][key[1]]] = float(value or 0)
    return CountsByTwo(tuple(key.name for key in plan.keys), counts, law)


def _label_order(label: Any) -> tuple[bool, str, Any]:
    return (label is None, "" if isinstance(label, int | float) else str(label), label if label is not None else 0)


def fitted(tables: Floats, noise: float) -> tuple[Floats, Floats, Floats]:
    """Return the total and the shares of both margins of each table, none below a part of its noise."""
    rows, columns = tables.shape[-2:]
    total = np.maximum(tables.sum((-1, -2), keepdims=True), np.sqrt(noise * rows * columns))
    down = np.maximum(tables.sum(-1, keepdims=True), MARGIN_LEAST * np.sqrt(noise * columns))
    across = np.maximum(tables.sum(-2, keepdims=True), MARGIN_LEAST * np.sqrt(noise * rows))
    return total, down / down.sum(-2, keepdims=True), across / across.sum(-1, keepdims=True)


def chi_square(tables: Floats, noise: float) -> Floats:
    """Return the squares of counts less expected ones, over the expected one and the noise."""
    total, down, across = fitted(tables, noise)
    expected = total * down * across
    found: Floats = ((tables - expected) ** 2 / (expected + noise)).sum((-1, -2))
    return found


def kruskal_wallis(tables: Floats, noise: float) -> Floats:
    """Return the squares between the groups' mean ranks; the second key is the bins, in order."""
    total, down, across = fitted(tables, noise)
    middle = np.cumsum(across, -1) - across / 2 - 0.5
    sums = (tables * middle).sum(-1)
    spread = (total * down)[..., 0] * (across * middle**2).sum(-1) + noise * (middle**2).sum(-1)
    found: Floats = (sums**2 / spread).sum(-1)
    return found


def poisson_draws(mean: float, words: Floats) -> Floats:
    """Return draws of Poisson's law from uniform numbers, by its cumulated masses."""
    if mean <= 0:
        return np.zeros_like(words)
    steps = np.arange(max(0, int(mean - REACH * mean**0.5 - REACH)), int(mean + REACH * mean**0.5 + 2 * REACH) + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(mean / steps[1:]))])
    masses = np.exp(logs - logs.max())
    found: Floats = steps[0] + np.searchsorted(np.cumsum(masses) / masses.sum(), words).astype(np.float64)
    return found


def _uniforms(counts: Floats, many: int) -> Floats:
    """Return numbers in 0 … 1 that follow from released counts: no noise, and the same at every reading."""
    stream = hashlib.shake_256(np.ascontiguousarray(counts).tobytes()).digest(8 * many)
    return (np.frombuffer(stream, np.uint64) >> np.uint64(11)).astype(np.float64) / 2.0**53


# ---- Answers to read.


def _answered(source: Any, asked: Callable[[Any], Any], epsilon: Any) -> Answer:
    """Return an answer as it is given, or that of a question to a table, which is charged."""
    if isinstance(source, Answer):
        return source
    if epsilon is None:
        raise InvalidParameter("testing a table needs epsilon=, the most it may cost; testing an answer is free")
    answer: Answer = asked(source).answer(epsilon=epsilon)
    return next(iter(answer.parts.values()), answer)


def _named(column: str | None) -> str:
    if column is None:
        raise InvalidParameter(
            "a test of a table needs the names of its columns, e.g. means(table, 'income', by='sex')"
        )
    return column


def _only(outputs: Sequence[Any], kind: Any, word: str) -> int:
    places = [at for at, output in enumerate(outputs) if isinstance(output, kind)]
    if len(places) != 1:
        raise InvalidParameter(f"this test reads {word}, once, and the answer has {len(places)}")
    return places[0]


def _p(value: float) -> str:
    return "< 0.0001" if value < 0.0001 else f"= {value:.2g}"
