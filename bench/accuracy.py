"""How far off one number about a million people is: the mean absolute error at epsilon 1, values in 0 … 1000.

The exact table goes through the engine once; noise is then added to it many times by the release itself. The noise is
all that differs between two answers, so this is the error of the answers, without the wait.
"""

import math
from collections.abc import Iterator
from statistics import fmean

import numpy as np
import pyarrow as pa

import tacit
from bench.measure import Figure, Result
from tacit.answer.columns import noisy_columns
from tacit.asking import Question
from tacit.exact import ExactTable
from tacit.numbers import decimal_meaning
from tacit.plan.plan import Plan
from tacit.release.noisy import release

PEOPLE = 1_000_000
# 500 runs would miss a 5 % mark by bad luck every third time; so many miss it once in 10^7.
RUNS = 20_000


def results() -> Iterator[Result]:
    """Yield the mean absolute error of a count, a sum and a mean."""
    values = np.random.default_rng(7).lognormal(mean=4, sigma=1, size=PEOPLE).clip(0, 1000)
    people = tacit.table(
        pa.table({"person": np.arange(PEOPLE), "value": values}),
        unit="person",
        rows_per_unit=1,
        columns={"value": {"between": (0, 1000)}},
        budget=tacit.epsilon(5),
        ledger=":memory:",
    )
    yield Figure("count", error(people.count(), PEOPLE), least=0.85 * 0.95, most=0.85 * 1.05)
    yield Figure("sum", error(people.sum("value"), float(values.sum())), least=900, most=1100)
    yield Figure("mean", error(people.mean("value"), float(values.mean())), most=0.0011)
    for epsilon in (1, 2, 3, 5):
        ours = error(people.sum("value"), float(values.sum()), epsilon)
        yield Figure(f"sum at ε {epsilon} / the best of one number", ours / (1000 * staircase(epsilon)), most=1.2)


def staircase(epsilon: float) -> float:
    """Return the mean absolute error of the best noise that hides a move by 1."""
    return math.exp(epsilon / 2) / math.expm1(epsilon)


def error(question: Question, truth: float, epsilon: float = 1) -> float:
    """Return the mean absolute error of a question."""
    plan = question.plan(epsilon=epsilon).plan
    exact = question.session.engine.aggregate(plan, "a salt that bounds nothing away")
    (column,) = noisy_columns(plan, release(plan, repeated(exact, plan)), decimal_meaning(0.95, name="confidence"))
    return fmean(abs(value - truth) for value in column.values if value is not None)


def repeated(exact: ExactTable, plan: Plan) -> ExactTable:
    """Return the one group many times over: the release draws noise for each on its own."""
    if len(exact) != 1 or plan.threshold is not None:
        raise ValueError("this bench asks about the whole table")
    return ExactTable(list(exact.keys) * RUNS, {name: list(sums) * RUNS for name, sums in exact.sums.items()})
