"""Variance and quantiles: how far off they are about a million people, and what ten quantiles take beside DuckDB's.

Errors are those of the release itself, many times over the same exact table, as in `accuracy.py`.
"""

from collections.abc import Iterator
from fractions import Fraction
from statistics import fmean

import duckdb
import numpy as np
import pyarrow as pa

import tacit
from bench.measure import Figure, Result, median_ratio
from tacit.answer.columns import noisy_columns
from tacit.asking import Question, Table
from tacit.exact import ExactTable
from tacit.release.noisy import release

PEOPLE = 1_000_000
VARIANCE_RUNS, MEDIAN_RUNS = 2_000, 500
TENTHS = [place / 11 for place in range(1, 11)]


def results() -> Iterator[Result]:
    """Yield the mean absolute errors at epsilon 1, and the time of ten quantiles."""
    values = np.random.default_rng(7).lognormal(mean=4, sigma=1, size=PEOPLE).clip(0, 1000)
    people = table_of(values)
    yield Figure("variance", variance_error(people.variance("value"), float(values.var())), most=1.0)
    yield Figure("median", median_error(people.median("value"), float(np.median(values))), most=0.0002)
    rows = pa.table({"value": values})
    connection = duckdb.connect()
    connection.register("people", rows)
    exact = f"SELECT quantile_disc(value, {TENTHS}) FROM people"
    question = people.quantile("value", TENTHS)
    plan = question.plan(epsilon=1).plan
    yield median_ratio(
        "ten quantiles of 10^6 rows / DuckDB's exact ten",
        lambda: release(plan, question.session.engine.aggregate(plan, "a salt that bounds nothing away")),
        lambda: connection.execute(exact).fetchall(),
        limit=20,
    )


def table_of(values: np.ndarray) -> Table:
    """Return the values as a protected table, one row a person."""
    return tacit.table(
        pa.table({"person": np.arange(len(values)), "value": values}),
        unit="person",
        rows_per_unit=1,
        columns={"value": {"between": (0, 1000)}},
        budget=tacit.epsilon(1),
        ledger=":memory:",
    )


def variance_error(question: Question, truth: float) -> float:
    """Return the mean absolute error of a variance."""
    plan = question.plan(epsilon=1).plan
    exact = question.session.engine.aggregate(plan, "a salt that bounds nothing away")
    sums = {name: list(each) * VARIANCE_RUNS for name, each in exact.sums.items()}
    noisy = release(plan, ExactTable(list(exact.keys) * VARIANCE_RUNS, sums))
    (column,) = noisy_columns(plan, noisy, Fraction(95, 100))
    return fmean(abs(value - truth) for value in column.values if value is not None)


def median_error(question: Question, truth: float) -> float:
    """Return the mean absolute error of a median, its interval paid for in the same epsilon."""
    plan = question.plan(epsilon=1).plan
    exact = question.session.engine.aggregate(plan, "a salt that bounds nothing away")
    column = plan.measured[0]
    drawn = (release(plan, exact).parts[0][1][0] for _ in range(MEDIAN_RUNS))
    return fmean(abs(float((column.low + steps) * column.step) - truth) for steps in drawn)
