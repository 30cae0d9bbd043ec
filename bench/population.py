"""Intervals about the population and tests: how often they hold, and how often a test rejects what is true.

Samples are drawn from known laws, with the plan and the noise of a real question of one row a person, and read by the
product's own code. A simulated sample is a group, so that one reading has thousands. The levels: 95 % intervals hold
the population's number in 94 to 97.5 %, and true hypotheses have p <= 0.05 in at most 5.5 % and p <= 0.01 in at most
1.3 %.
"""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import tacit
from bench.measure import Figure, Result, Seconds
from tacit.answer.columns import noisy_columns
from tacit.answer.population import (
    MISSES,
    ONE_SIGMA,
    NoiseLaw,
    estimates,
    law_of_column,
    law_of_reaches,
    population,
)
from tacit.answer.significance import (
    chi_square,
    fitted,
    kruskal_wallis,
    spread_of_means,
    spread_of_shares,
    tail_of_correlation,
    tails,
)
from tacit.plan import Plan
from tacit.release import NoisyTable

EPSILONS = ("0.1", "0.3", "1", "3")
SIZES = (200, 2_000, 50_000, 1_000_000)
SAMPLES = 5_000  # of each interval, size and epsilon
NULLS = 10_000  # of each test, size and epsilon: 120,000 a test
NULL_TABLES = 50_000  # of each test of cross-tables, size and epsilon: 600,000 a test
DRAWS = 99
GRID = (np.arange(64) + 0.5) / 64


def _lognormal(centre: float) -> Any:
    edges = np.linspace(0, 1, 65)[1:]
    law = np.array([0.5 * (1 + math.erf(math.log(edge / centre) / math.sqrt(2))) for edge in edges])
    masses = np.diff([0.0, *law])
    masses[-1] += 1 - law[-1]
    return masses


LAWS = {"even": np.full(64, 1 / 64), "skewed": _lognormal(0.05)}
BINARY = np.array([0.0, 1.0])
INTERVALS = {f"mean, {name}": (masses, GRID, True) for name, masses in LAWS.items()}
INTERVALS |= {f"share {p}": (np.array([1 - p, p]), BINARY, False) for p in (0.5, 0.05)}
PAIRS = {f"two means, {name}": (masses, GRID, spread_of_means, True, 0.5) for name, masses in LAWS.items()}
PAIRS |= {"two means, skewed, 1:4": (LAWS["skewed"], GRID, spread_of_means, True, 0.2)}
PAIRS |= {f"two shares of {p}": (np.array([1 - p, p]), BINARY, spread_of_shares, False, 0.5) for p in (0.3, 0.05)}
CORRELATED = {f"correlation, {name}": masses for name, masses in LAWS.items()}
TABLES_OF = {
    "chi-square, 3 x 4": (np.outer([0.4, 0.3, 0.3], [0.25] * 4), chi_square),
    "chi-square, cells down to 0.3 %": (np.outer([0.6, 0.3, 0.1], [0.7, 0.2, 0.07, 0.03]), chi_square),
    "ranks, 3 groups, 8 bins": (np.outer([0.4, 0.3, 0.3], [0.125] * 8), kruskal_wallis),
    "ranks, 2 groups, 8 bins": (np.outer([0.5, 0.5], [0.125] * 8), kruskal_wallis),
}


def results() -> Iterator[Result]:
    """Yield the lowest and the highest coverage of each kind of interval, and the highest levels of each test."""
    started = time.process_time()
    cells = list(measured())
    for name in dict.fromkeys(cell.name for cell in cells):
        mine = [cell for cell in cells if cell.name == name]
        if mine[0].kind == "interval":
            yield Figure(f"{name}: 95 % intervals that hold, lowest", min(c.found[0] for c in mine), least=0.94)
            yield Figure(f"{name}: 95 % intervals that hold, highest", max(c.found[0] for c in mine), most=0.975)
        else:
            yield Figure(f"{name}: true, and p <= 0.05, highest", max(c.found[0] for c in mine), most=0.055)
            yield Figure(f"{name}: true, and p <= 0.01, highest", max(c.found[1] for c in mine), most=0.013)
    yield Seconds("all of it", time.process_time() - started)


@dataclass(frozen=True)
class Cell:
    """One kind of interval or test at one size and epsilon: the coverage, or the levels at 5 % and 1 %."""

    kind: str
    name: str
    size: int
    epsilon: str
    found: tuple[float, ...]
    many: int


def measured(only: str = "", epsilons: Sequence[str] = EPSILONS) -> Iterator[Cell]:
    """Yield every cell whose name has this text; each has luck of its own, so a part has the figures of the whole."""
    for kind, cases, sizes, measure in (
        ("interval", INTERVALS, SIZES, _coverage),
        ("test", PAIRS, SIZES[:3], _pair_levels),
        ("test", CORRELATED, SIZES[:3], _correlation_levels),
        ("test", TABLES_OF, SIZES[:3], _table_levels),
    ):
        for name, epsilon, size in product(cases, epsilons, sizes):
            if only in name:
                luck = np.random.default_rng(list(f"{name} {epsilon} {size}".encode()))
                found, many = measure(luck, cases[name], epsilon, size)
                print(f"  {name:32} n {size:9,} ε {epsilon:4}", *(f"{each:.4f}" for each in found), flush=True)
                yield Cell(kind, name, size, epsilon, found, many)


def _plan(epsilon: str, *, with_spread: bool) -> Plan:
    frame = pd.DataFrame({"g": ["a", "b"], "x": [0.5, 0.25]})
    table = tacit.table(
        frame,
        name="sample",
        unit=tacit.ROW,
        budget=tacit.epsilon(10),
        ledger=tacit.TRYOUT,
        columns={"x": {"between": (0, 1)}, "g": {"keys": ["a", "b"]}},
    )
    spread = {"spread": tacit.std("x")} if with_spread else {}
    return table.group_by("g").agg(mean=tacit.mean("x"), **spread).plan(epsilon=epsilon).plan


def _drawn(rng: Any, plan: Plan, masses: Any, values: Any, sizes: Any) -> NoisyTable:
    """Return noisy parts of samples: a group is a sample."""
    counts = np.array([rng.multinomial(size, masses) for size in sizes]).astype(float)
    (release,) = plan.releases
    height = plan.measured[0].height
    noisy = []
    for part in release.parts:
        if part.kind == "moment":
            (degree,), (index,) = part.degrees, part.index
            each = math.comb(degree, index) * values**index * (1 - values) ** (degree - index) * float(height) ** degree
        else:
            each = float(height) * (values if part.kind == "above" else 1 - values)
        noise = rng.laplace(0.0, float(release.scale), len(sizes))
        noisy.append([int(number) for number in np.rint(counts @ each + noise)])
    return NoisyTable(tuple((at,) for at in range(len(sizes))), (tuple(map(tuple, noisy)),))


def _columns_at(plan: Plan, noisy: NoisyTable, *, of_ladder: slice = slice(None)) -> Any:
    """Return the columns of a plan by confidence; of the ladder only those that a test reads, which is quicker."""
    found: dict[Fraction, Any] = {}
    short = replace(plan, outputs=plan.outputs[of_ladder])

    def columns_at(level: Fraction) -> Any:
        if level not in found:
            found[level] = noisy_columns(plan if level == ONE_SIGMA else short, noisy, level)
        return found[level]

    return columns_at


def _coverage(rng: Any, case: Any, epsilon: str, size: int) -> tuple[tuple[float, ...], int]:
    masses, values, with_spread = case
    plan = _plan(epsilon, with_spread=with_spread)
    noisy = _drawn(rng, plan, masses, values, np.full(SAMPLES, size))
    rows = population(plan, noisy, _columns_at(plan, noisy, of_ladder=slice(1)), 0.95).to_dicts()
    truth = float(masses @ values)
    return (float(np.mean([row["mean_low"] <= truth <= row["mean_high"] for row in rows])),), SAMPLES


def _levels(found: Sequence[Any]) -> tuple[tuple[float, ...], int]:
    """Return how many of these p-values are below 5 % and 1 %."""
    p = np.concatenate(found)
    return (float(np.mean(p <= 0.05)), float(np.mean(p <= 0.01))), len(p)


def _pair_levels(rng: Any, case: Any, epsilon: str, size: int) -> tuple[tuple[float, ...], int]:
    masses, values, spread_at, with_spread, part = case
    plan, found = _plan(epsilon, with_spread=with_spread), []
    for _ in range(NULLS // 2_000):
        sizes = np.tile([round(size * part), size - round(size * part)], 2_000)
        noisy = _drawn(rng, plan, masses, values, sizes)
        (estimate,) = estimates(plan, noisy, _columns_at(plan, noisy, of_ladder=slice(1)))
        one = np.arange(0, len(sizes), 2)
        found.append(tails(estimate, one, one + 1, spread_at))
    return _levels(found)


def _correlation_levels(rng: Any, case: Any, epsilon: str, size: int) -> tuple[tuple[float, ...], int]:
    """Return the levels of correlations of independent numbers, each on a grid of 64."""
    values = [each.ravel() for each in np.meshgrid(GRID, GRID, indexing="ij")]
    plan, found = _plan_of_two(epsilon), []
    for _ in range(NULLS // 2_000):
        noisy = _drawn_of_two(rng, plan, np.outer(case, case).ravel(), values, size, 2_000)
        columns_at = _columns_at(plan, noisy)
        column, law = law_of_column(columns_at, 1)
        rows = np.array([float(each or 0) for each in columns_at(ONE_SIGMA)[0].values])
        value = np.array([math.nan if each is None else each for each in column.values])
        known = (rows >= 4) & ~np.isnan(value)
        found.append(np.where(known, tail_of_correlation(np.nan_to_num(value), rows, law, 0.0), 1.0))
    return _levels(found)


def _table_levels(rng: Any, case: Any, epsilon: str, size: int) -> tuple[tuple[float, ...], int]:
    """Return the levels of cross-tables: the product's statistics and fits, with numpy's draws of Poisson's law."""
    masses, statistic = case
    law, found = _laplace(1 / float(epsilon)), []
    noise = float(law.variance()[0])
    for _ in range(NULL_TABLES // 1_000):
        counts = rng.multinomial(size, masses.ravel(), size=1_000).reshape(1_000, *masses.shape)
        noisy = np.maximum(counts + np.rint(rng.laplace(0.0, 1 / float(epsilon), counts.shape)), 0.0)
        total, down, across = fitted(noisy, noise)
        drawn = rng.poisson(total * down * across, (DRAWS, *noisy.shape)).astype(float)
        drawn += np.rint(law.drawn(rng.random(drawn.shape))) * rng.choice([-1.0, 1.0], drawn.shape)
        null = statistic(np.maximum(drawn, 0.0), noise)
        found.append((1 + (null >= statistic(noisy, noise) * (1 - 1e-12)).sum(0)) / (1 + DRAWS))
    return _levels(found)


def _plan_of_two(epsilon: str) -> Plan:
    frame = pd.DataFrame({"x": [0.5, 0.25], "y": [0.5, 0.25]})
    columns = {"x": {"between": (0, 1)}, "y": {"between": (0, 1)}}
    budget = tacit.epsilon(10)
    table = tacit.table(frame, name="two", unit=tacit.ROW, budget=budget, ledger=tacit.TRYOUT, columns=columns)
    return table.agg(n=tacit.count(), r=tacit.correlation("x", "y")).plan(epsilon=epsilon).plan


def _drawn_of_two(rng: Any, plan: Plan, masses: Any, values: Sequence[Any], size: int, samples: int) -> NoisyTable:
    """Return noisy parts of samples of two numbers: a group is a sample."""
    counts = rng.multinomial(size, masses, size=samples).astype(float)
    (release,) = plan.releases
    noisy = []
    for part in release.parts:
        each = np.zeros(len(masses))
        if part.kind == "moment":
            each += 1.0
            for value, degree, index, grid in zip(values, part.degrees, part.index, plan.measured, strict=True):
                bernstein = math.comb(degree, index) * value**index * (1 - value) ** (degree - index)
                each = each * bernstein * float(grid.height) ** degree
        noise = rng.laplace(0.0, float(release.scale), samples)
        noisy.append([int(number) for number in np.rint(counts @ each + noise)])
    return NoisyTable(tuple((at,) for at in range(samples)), (tuple(map(tuple, noisy)),))


def _laplace(scale: float) -> NoiseLaw:
    """Return the law of one cell's noise as an answer's intervals give it."""
    reaches = [np.array([max(0.0, math.ceil(scale * math.log(1 / float(miss)) - 0.5))]) for miss in MISSES]
    return law_of_reaches(reaches)
