"""Counts that run on: their largest error beside the least that any factorisation has, and the time of a step.

The lower bound is the nuclear norm of the running sum over the number of days. The binary tree estimates
each node from below. Errors are in units of the noise that hides one row. Time is processor time.
"""

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import ceil, log2, pi, sqrt
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tacit
from bench.measure import Figure, Ratio, Result, Seconds
from tacit.answer import RunningTotals
from tacit.ledger import open_ledger
from tacit.plan import RunningPlan
from tacit.query import Column

DAYS, YEAR = 10_000, 365
ROWS, PEOPLE = 2_000_000, 200_000
FIRST = datetime(2026, 1, 1, tzinfo=UTC)


def results() -> Iterator[Result]:
    """Yield the errors of the factorisation, of a stream that is drawn, and the time of its steps."""
    for days in (YEAR, DAYS):
        least = lower_bound(days)
        yield Figure(f"{days} days: largest error / least of any", largest_error(days) / least, most=1.15)
        yield Figure(f"{days} days: binary tree / least of any", tree_error(days) / least)
    yield from _drawn()


def largest_error(days: int) -> float:
    """Return the largest deviation of a total, by the coefficients and the move that are charged."""
    plan = RunningPlan("id", None, Column("day"), FIRST.date(), days, 1)
    totals = RunningTotals(plan.coefficients, Fraction(10**12))
    deviations = totals.errors(days, Fraction(95, 100)) / 1.959963984540054 / 1e12
    return float(sqrt(plan.moves_squared) * deviations.max())


def lower_bound(days: int) -> float:
    """Return what no factorisation is below: the nuclear norm of the running sum over the days."""
    odd = 2 * np.arange(1, days + 1) - 1
    return float((1 / (2 * np.sin(odd * pi / (4 * days + 2)))).sum() / days)


def tree_error(days: int) -> float:
    """Return the largest deviation of a binary tree whose nodes are estimated from below."""
    height = ceil(log2(days)) + 1
    node = [2**each / (2 ** (each + 1) - 1) for each in range(height)]
    return sqrt(
        height * max(sum(node[each] for each in range(height) if day >> each & 1) for day in range(1, days + 1))
    )


def _drawn() -> Iterator[Result]:
    rng = np.random.default_rng(1)
    ids, days = rng.integers(0, PEOPLE, ROWS), rng.integers(0, DAYS, ROWS)
    dates = np.datetime64(FIRST.date()) + days
    now = [FIRST]
    with TemporaryDirectory() as folder, open_ledger(str(Path(folder) / "l.db"), clock=lambda: now[0]) as ledger:
        pq.write_table(pa.table({"id": ids, "day": dates}), Path(folder) / "rows.parquet")
        table = tacit.table(
            str(Path(folder) / "rows.parquet"), unit="id", budget=tacit.epsilon(1, delta=1e-6), ledger=ledger
        )
        until = (FIRST + timedelta(days=DAYS)).date()
        running = table.running("day", until=until, since=FIRST.date(), zone="UTC").count_units()
        planned, _ = _processor(lambda: running.start(epsilon=1))
        yield Seconds("start of 10^4 days", planned)
        for _ in range(DAYS // 300):  # a clock that leaps by more than a year is refused
            now[0] += timedelta(days=300)
            ledger.register(
                name=f"t{now[0]:%Y%m%d}", declaration=table.frame.declaration.record(), budget=tacit.epsilon(1)
            )
        now[0] = FIRST + timedelta(days=DAYS - 1)
        many, _ = _processor(running.step)
        now[0] += timedelta(days=1)
        one, answer = _processor(running.step)
        query = (
            f"SELECT day, COUNT(*) FROM (SELECT MIN(day) AS day FROM '{folder}/rows.parquet' GROUP BY id) GROUP BY 1"
        )
        connection = duckdb.connect()
        base, _ = min(
            (_processor(lambda: connection.execute(query).fetchall()) for _ in range(3)), key=lambda each: each[0]
        )
        yield Ratio("step of 9,999 days / DuckDB's first days", many, base)
        yield Ratio("step of one day / DuckDB's first days", one, base)
    first = np.full(PEOPLE, DAYS)
    np.minimum.at(first, ids, days)
    truth = np.cumsum(np.bincount(first[first < DAYS], minlength=DAYS))
    rows = answer.to_dicts()
    errors = np.array([row["total_units"] for row in rows]) - truth
    held = np.mean(
        [row["total_units_low"] <= each <= row["total_units_high"] for row, each in zip(rows, truth, strict=True)]
    )
    yield Figure("10^4 days, ε 1, δ 1e-6 / 8: mean |error|", float(np.abs(errors).mean()))
    yield Figure("10^4 days: largest |error|", float(np.abs(errors).max()))
    yield Figure("10^4 days: intervals that hold at 95 % (one run)", float(held))


def _processor(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found
