"""How wide intervals are beside the shortest valid ones: half the usual width over what 95 % of the errors stay within.

The exact table goes through the engine once; noise is then added to it many times by the release itself, and every
number and interval is made of it as an answer's are. An interval that covers and could not be shorter has a ratio of 1.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import tacit
from bench.measure import Figure, Result
from tacit.answer.columns import noisy_columns
from tacit.asking import Table
from tacit.exact import ExactTable
from tacit.numbers import decimal_meaning
from tacit.release.noisy import release

PEOPLE = 20_000
RUNS = 10_000
MOST = 1.3
MEAN = {"x": tacit.mean("x")}
VARIANCE = {"v": tacit.variance("x")}
COUNTS = {"n": tacit.count(), "u": tacit.count_units()}
QUESTIONS = {
    "alone": COUNTS,
    "beside a mean": COUNTS | MEAN,
    "beside a variance": COUNTS | VARIANCE,
    "beside a covariance": COUNTS | {"c": tacit.covariance("x", "y")},
    "beside a correlation": COUNTS | {"r": tacit.correlation("x", "y")},
    "beside COUNT(x)": COUNTS | {"k": tacit.count("x")},
}
NAMES = {
    "k": "COUNT(x)",
    "n": "COUNT(*)",
    "u": "units",
    "x": "mean",
    "v": "variance",
    "c": "covariance",
    "r": "correlation",
}


def results() -> Iterator[Result]:
    """Yield for each number, in each question, the widest of one and five rows a unit and epsilons 1 and 2."""
    rng = np.random.default_rng(3)
    x = rng.integers(0, 101, PEOPLE)
    y = np.clip(x // 2 + rng.integers(0, 51, PEOPLE), 0, 100)
    truths = {
        **dict.fromkeys("nuk", PEOPLE),
        "x": x.mean(),
        "v": x.var(),
        "c": np.cov(x, y, ddof=0)[0, 1],
        "r": np.corrcoef(x, y)[0, 1],
    }
    rows = pa.table({"id": np.arange(PEOPLE), "g": ["a"] * PEOPLE, "x": x, "y": y})
    tables = [
        tacit.table(
            rows,
            unit="id",
            rows_per_unit=rows_per_unit,
            groups_per_unit=1,
            budget=tacit.epsilon(10, delta=1e-6),
            ledger=":memory:",
            columns={"x": {"between": (0, 100)}, "y": {"between": (0, 100)}},
        )
        for rows_per_unit in (1, 5)
    ]
    least = 1.0
    for where, asked in QUESTIONS.items():
        found = [shortness(table, asked, epsilon, truths) for table in tables for epsilon in (1, 2)]
        for name in asked:
            yield Figure(f"{NAMES[name]} {where}", max(each[name][0] for each in found), most=MOST)
        least = min(least, *(covered for each in found for _, covered in each.values()))
    for epsilon in (1, 2, 4):
        found = shortness(tables[1].group_by("g"), {"u": tacit.count_units(), "x": tacit.mean("x")}, epsilon, truths)
        yield Figure(f"units of found keys, ε {epsilon}", found["u"][0], most=MOST)
        least = min(least, found["u"][1])
    yield Figure("least coverage at 95 %", least, least=0.94, most=1)


def shortness(
    table: Table, asked: dict[str, Any], epsilon: float, truths: dict[str, float]
) -> dict[str, tuple[float, float]]:
    """Return for each output how wide its interval is beside the shortest, and how often it covers."""
    question = table.agg(**asked)
    plan = question.plan(epsilon=epsilon).plan
    exact = question.session.engine.aggregate(plan, "a salt that bounds nothing away")
    many = ExactTable(list(exact.keys) * RUNS, {name: list(sums) * RUNS for name, sums in exact.sums.items()})
    found = {}
    for column in noisy_columns(plan, release(plan, many), decimal_meaning(0.95, name="confidence")):
        low, value, high = (np.array(each, dtype=float) for each in (column.low, column.values, column.high))
        truth = truths[column.name]
        shortest = np.sort(np.abs(value - truth))[int(0.95 * RUNS)]
        covered = ((low <= truth) & (truth <= high)).mean()
        found[column.name] = float(np.median(high - low) / 2 / shortest), float(covered)
    return found
