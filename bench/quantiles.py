"""Quantiles beside the best known mechanism: one exponential mechanism, well aimed, with the whole epsilon.

That baseline has no interval and knows where to aim: at the quantile's own rank, and for the least and the greatest so
many rows inside as errs least on these very data, found by trying. Ours pays for its interval out of the same epsilon
and aims by public facts alone. Both draw many times from the same rows, as the release does.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bench.measure import Figure, Result
from tacit.plan.layout import WantedQuantiles
from tacit.plan.plan import Spend
from tacit.plan.split import UnitBounds, draw_of
from tacit.selection.quantile import Aim, GroupRows, Rate, Stretches, Target, draw_quantiles

RUNS = 600
FRACTIONS = {"median": Fraction(1, 2), "q90": Fraction(9, 10), "min": Fraction(0), "max": Fraction(1)}
# How many rows inside the baseline tries for the least and the greatest, times rows per unit / epsilon.
AIMS = (0, 0.5, 1, 2, 4, 6, 8, 12, 16, 24, 32, 40, 50)
ERROR_MOST = {"median": 1.5, "q90": 1.5, "min": 2.0, "max": 2.0}
WIDTH_MOST = 4.0
COVERAGE_LEAST = 0.95


@dataclass(frozen=True)
class Table:
    """Rows in steps of a public range, and what one unit may have of them."""

    name: str
    steps: np.ndarray
    height: int
    epsilon: Fraction
    rows_per_unit: int = 1


def results() -> Iterator[Result]:
    """Yield for each table and quantile: error beside the baseline's, half the interval beside the error, coverage."""
    for table in tables():
        for name in FRACTIONS:
            found = measure(table, name)
            label = f"{table.name}, {name}"
            yield Figure(f"{label}: error / baseline's", found.error / found.baseline, most=ERROR_MOST[name])
            if name in ("median", "q90"):
                yield Figure(f"{label}: half-width / error", found.half_width / found.error, most=WIDTH_MOST)
            yield Figure(f"{label}: coverage", found.coverage, least=COVERAGE_LEAST)


def tables() -> Iterator[Table]:
    """Yield made-up tables: long tails, many rows a person, ties, a range that is tight, small groups."""
    rng = np.random.default_rng(7)
    fine = 2**30 - 1
    lognormal = rng.lognormal(4, 1, 100_000).clip(0, 1000)
    delays = rng.gamma(0.6, 40, 50_000) + rng.normal(0, 8, 50_000) - 5
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(5)):
        yield Table(f"lognormal 10^5, ε {float(epsilon):g}", on_grid(lognormal, 0, 1000, fine), fine, epsilon)
    yield Table("lognormal 300, ε 1", on_grid(lognormal[:300], 0, 1000, fine), fine, Fraction(1))
    yield Table("delays, 50 rows a person, ε 1", on_grid(delays, -60, 1500, fine), fine, Fraction(1), 50)
    yield Table("tight uniform 10^4, ε 1", on_grid(rng.random(10_000), 0, 1, fine), fine, Fraction(1))
    ages = np.round(rng.gamma(9, 4.4, 30_000)).clip(17, 90)
    yield Table("ages in years, ε 1", on_grid(ages, 0, 120, 120), 120, Fraction(1))


def on_grid(values: np.ndarray, low: float, high: float, height: int) -> np.ndarray:
    """Return values as whole steps, rising."""
    return np.sort(np.rint((np.clip(values, low, high) - low) / (high - low) * height).astype(np.int64))


@dataclass(frozen=True)
class Found:
    """Mean absolute errors and half-widths in steps, and how often the interval holds the quantile."""

    error: float
    baseline: float
    half_width: float
    coverage: float


def measure(table: Table, name: str, runs: int = RUNS) -> Found:
    """Return how far off we and the baseline are on one table."""
    fraction = FRACTIONS[name]
    truth = float(np.quantile(table.steps, float(fraction), method="inverted_cdf"))
    unit = UnitBounds(table.rows_per_unit, 1, replace=False)
    plan = draw_of(WantedQuantiles(0, (fraction,)), (table.height,), Spend(table.epsilon), Fraction(1), unit, rho=None)
    starts, ends = np.zeros(runs, np.int64), np.full(runs, len(table.steps))
    low, middle, high = draw_quantiles(
        table.steps,
        tuple(Target(*target) for target in plan.targets),
        starts=starts,
        ends=ends,
        height=table.height,
        rate=Rate(plan.epsilon, table.rows_per_unit),
        ends_rate=Rate(plan.ends_epsilon, table.rows_per_unit),
    )[0]
    # half a step is no error: where nearly every draw is the quantile itself, the two are alike
    return Found(
        float(np.abs(middle - truth).mean()) + 0.5,
        min(baseline_errors(table, fraction, truth)) + 0.5,
        float((high - low).mean()) / 2,
        float(((low <= truth) & (truth <= high)).mean()),
    )


def baseline_errors(table: Table, fraction: Fraction, truth: float) -> Iterator[float]:
    """Yield the mean absolute error of the exponential mechanism with the whole epsilon, by its law, for each aim."""
    up, down, slope = Rate(table.epsilon, table.rows_per_unit).for_fraction(fraction)
    group = np.zeros(1, np.int64)
    parts = GroupRows(table.steps, group, group + len(table.steps), group, group + table.height)
    for aim in AIMS if fraction in (0, 1) else (0,):
        inside = round(aim * table.rows_per_unit / float(table.epsilon)) * (1 if fraction == 0 else -1)
        law = Aim(up, down, inside * (up + down), 1, 1, slope)
        found = Stretches.of(parts, law, law.reach(table.height + 1))
        weights = np.exp(found.scores * -float(slope)) * found.lengths
        first, last = found.begins - truth, found.begins + found.lengths - 1 - truth
        off = np.where(
            first * last >= 0, np.abs(first + last) / 2, (first**2 + last**2) / 2 / np.maximum(last - first, 1)
        )
        yield float((weights * off).sum() / weights.sum())
