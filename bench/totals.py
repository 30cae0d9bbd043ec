"""How far off the totals of a ROLLUP are, beside the same level asked alone at its share and cells added up.

The exact tables go through the engine once; noise is then added to them many times by the release itself, and every
number is made of it as an answer's is. Ratios of root mean square errors, at the same ε for each level.
"""

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pyarrow as pa

import tacit
from bench.measure import Figure, Result
from tacit.answer.columns import noisy_columns
from tacit.answer.totals import Level, added_up
from tacit.release.noisy import release

ROWS = 20_000
RUNS = 300
MONTHS, DAYS = 12, 7
LEVELS = ((0, 1), (0,), ())
CONFIDENCE = Fraction(95, 100)
# The variance of a fitted number is never above that of its own noise; so many draws may be.
MOST = 1.05


def results() -> Iterator[Result]:
    """Yield for each level: fitted beside asked alone, and beside cells added up; none is above 1 but by luck."""
    rng = np.random.default_rng(7)
    rows = pa.table({"month": rng.integers(0, MONTHS, ROWS), "day": rng.integers(0, DAYS, ROWS)})
    table = tacit.table(
        rows,
        unit=tacit.ROW,
        name="flights",
        budget=tacit.epsilon(3, delta=1e-6),
        ledger=":memory:",
        columns={"month": {"keys": list(range(MONTHS))}, "day": {"keys": list(range(DAYS))}},
    )
    for noise in ("laplace", "gaussian"):
        alone, cells, fitted = errors(table, noise)
        for at, name in ((1, "months"), (2, "whole")):
            yield Figure(f"{name}, {noise}: beside asked alone", fitted[at] / alone[at], most=MOST)
            yield Figure(f"{name}, {noise}: beside cells added up", fitted[at] / cells[at], most=1)
        yield Figure(f"cells, {noise}: beside asked alone", fitted[0] / alone[0], most=MOST)


def errors(table: tacit.Table, noise: str) -> tuple[list[float], list[float], list[float]]:
    """Return the error of each level asked alone, added up from cells, and fitted."""
    question = table.sql("SELECT month, day, COUNT(*) AS n FROM flights GROUP BY ROLLUP (month, day)")
    plans = question.plan(epsilon=1, noise=noise).foreseen.planned.plans  # type: ignore[attr-defined]
    tables = [table.session.engine.aggregate(plan, "a salt that bounds nothing away") for plan in plans]
    sums = [np.zeros(len(LEVELS)) for _ in range(3)]
    for _ in range(RUNS):
        levels = [
            Level(kept, plan, release(plan, exact)) for kept, plan, exact in zip(LEVELS, plans, tables, strict=True)
        ]
        columns = [noisy_columns(level.plan, level.noisy, CONFIDENCE) for level in levels]
        fitted, _ = added_up(levels, columns, CONFIDENCE)
        noisy_cells = np.array(columns[0][0].values, dtype=float).reshape(MONTHS, DAYS)
        from_cells = [noisy_cells.ravel(), noisy_cells.sum(axis=1), noisy_cells.sum(keepdims=True).ravel()]
        for at, exact in enumerate(tables):
            truth = np.array(next(iter(exact.sums.values())), dtype=float)
            for way, values in enumerate((columns[at][0].values, from_cells[at], fitted[at][0].values)):
                sums[way][at] += np.mean((np.array(values, dtype=float) - truth) ** 2)
    alone, cells, best = (list(np.sqrt(each / RUNS)) for each in sums)
    return alone, cells, best
