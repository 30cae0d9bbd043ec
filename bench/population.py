"""Intervals about the population and tests: how often they hold, and how often a test rejects what is true.

Samples are drawn from known laws, with the plan and the noise of a real question of one row a person, and read by the
product's own code. A simulated sample is a group, so that one reading has thousands. The levels: 95 % intervals hold
the population's number in 94 to 97.5 %, and true hypotheses have p <= 0.05 in at most 5.5 % and p <= 0.01 in at most
1.3 %.
"""

import math
import time
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

import tacit
from bench.measure import Figure, Result, Seconds
from tacit.answer.columns import noisy_columns
from tacit.answer.population import NoiseLaw, estimates, population
from tacit.answer.significance import CountsByTwo, chi_square, kruskal_wallis, two_means, two_shares
from tacit.plan import Plan
from tacit.release import NoisyTable

EPSILONS = ("0.1", "0.3", "1", "3")
SIZES = (200, 2_000, 50_000, 1_000_000)
SAMPLES = 1_000
TABLES = 2_000
DRAWS = 99
GRID = (np.arange(64) + 0.5) / 64


def _lognormal(centre: float) -> Any:
    edges = np.linspace(0, 1, 65)[1:]
    law = np.array([0.5 * (1 + math.erf(math.log(edge / centre) / math.sqrt(2))) for edge in edges])
    masses = np.diff([0.0, *law])
    masses[-1] += 1 - law[-1]
    return masses


LAWS = {"even": np.full(64, 1 / 64), "skewed": _lognormal(0.05)}
TABLES_OF = {
    "chi-square, 3 x 4": (np.outer([0.4, 0.3, 0.3], [0.25] * 4), chi_square),
    "chi-square, cells down to 0.3 %": (np.outer([0.6, 0.3, 0.1], [0.7, 0.2, 0.07, 0.03]), chi_square),
    "ranks, 3 groups, 8 bins": (np.outer([0.4, 0.3, 0.3], [0.125] * 8), kruskal_wallis),
    "ranks, 2 groups, 8 bins": (np.outer([0.5, 0.5], [0.125] * 8), kruskal_wallis),
}


def results() -> Iterator[Result]:
    """Yield the lowest and the highest coverage of each kind of interval, and the highest levels of each test."""
    rng = np.random.default_rng(20261119)
    started = time.process_time()
    for name, found in _intervals(rng):
        yield Figure(f"{name}: 95 % intervals that hold, lowest", min(found), least=0.94)
        yield Figure(f"{name}: 95 % intervals that hold, highest", max(found), most=0.975)
    for name, fives, ones in (*_pairs(rng), *_crosstabs(rng)):
        yield Figure(f"{name}: true, and p <= 0.05, highest", max(fives), most=0.055)
        yield Figure(f"{name}: true, and p <= 0.01, highest", max(ones), most=0.013)
    yield Seconds("all of it", time.process_time() - started)


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


def _columns_at(plan: Plan, noisy: NoisyTable) -> Any:
    found: dict[Fraction, Any] = {}

    def columns_at(level: Fraction) -> Any:
        if level not in found:
            found[level] = noisy_columns(plan, noisy, level)
        return found[level]

    return columns_at


def _intervals(rng: Any) -> Iterator[tuple[str, list[float]]]:
    cases = [(f"mean, {name}", masses, GRID, True) for name, masses in LAWS.items()]
    cases += [(f"share {p}", np.array([1 - p, p]), np.array([0.0, 1.0]), False) for p in (0.5, 0.05)]
    for name, masses, values, with_spread in cases:
        held = []
        for epsilon in EPSILONS:
            plan = _plan(epsilon, with_spread=with_spread)
            for size in SIZES:
                noisy = _drawn(rng, plan, masses, values, np.full(SAMPLES, size))
                rows = population(plan, noisy, _columns_at(plan, noisy), 0.95).to_dicts()
                truth = float(masses @ values)
                held.append(float(np.mean([row["mean_low"] <= truth <= row["mean_high"] for row in rows])))
                print(f"  {name:14} n {size:9,} ε {epsilon:4} {held[-1]:.4f}", flush=True)
        yield name, held


def _pairs(rng: Any) -> Iterator[tuple[str, list[float], list[float]]]:
    binary = np.array([0.0, 1.0])
    cases = [(f"two means, {name}", masses, GRID, two_means, True, 0.5) for name, masses in LAWS.items()]
    cases += [("two means, skewed, 1:4", LAWS["skewed"], GRID, two_means, True, 0.2)]
    cases += [(f"two shares of {p}", np.array([1 - p, p]), binary, two_shares, False, 0.5) for p in (0.3, 0.05)]
    for name, masses, values, test, with_spread, part in cases:
        fives, ones = [], []
        for epsilon in EPSILONS:
            plan = _plan(epsilon, with_spread=with_spread)
            for size in SIZES[:3]:
                sizes = np.tile([round(size * part), size - round(size * part)], SAMPLES)
                noisy = _drawn(rng, plan, masses, values, sizes)
                (estimate,) = estimates(plan, noisy, _columns_at(plan, noisy))
                p = np.array([test(estimate, at, at + 1, "").pvalue for at in range(0, len(sizes), 2)])
                fives.append(float(np.mean(p <= 0.05)))
                ones.append(float(np.mean(p <= 0.01)))
                print(f"  {name:24} n {size:7,} ε {epsilon:4} {fives[-1]:.4f} {ones[-1]:.4f}", flush=True)
        yield name, fives, ones


def _crosstabs(rng: Any) -> Iterator[tuple[str, list[float], list[float]]]:
    for name, (masses, statistic) in TABLES_OF.items():
        fives, ones = [], []
        for epsilon in EPSILONS:
            scale = 1 / float(epsilon)
            law = _laplace(scale)
            for size in SIZES[:3]:
                counts = rng.multinomial(size, masses.ravel(), size=TABLES).reshape(TABLES, *masses.shape)
                noisy = np.maximum(counts + np.rint(rng.laplace(0.0, scale, counts.shape)), 0.0)
                p = np.array(
                    [CountsByTwo(("a", "b"), each, law).tested("", "", statistic, DRAWS).pvalue for each in noisy]
                )
                fives.append(float(np.mean(p <= 0.05)))
                ones.append(float(np.mean(p <= 0.01)))
                print(f"  {name:32} n {size:7,} ε {epsilon:4} {fives[-1]:.4f} {ones[-1]:.4f}", flush=True)
        yield name, fives, ones


def _laplace(scale: float) -> NoiseLaw:
    """Return the law of one cell's noise as an answer's intervals give it."""
    from tacit.answer.population import MISSES, law_of_reaches

    reaches = [np.array([max(0.0, math.ceil(scale * math.log(1 / float(miss)) - 0.5))]) for miss in MISSES]
    return law_of_reaches(reaches)
