"""Linear regression: what it errs by beside least squares on Adult, and how often its 95 % intervals hold the truth.

Errors are of hours a week from 12 columns, on the fifth of the rows that neither has seen, means of ten runs. Intervals
are of tables drawn from a known law whose columns are independent, so that a coefficient is the same whichever terms
noise leaves readable. Each fit is of a table with a ledger; delta is 1e-5.
"""

import warnings
from collections.abc import Iterator
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tacit
from bench.learned.tables import NoTable
from bench.measure import Absent, Error, Figure, Result
from bench.peers import environments
from bench.peers.learning.asked import DELTA, split
from bench.peers.learning.subject import EPSILONS
from bench.peers.learning.tables import Declared, write_table
from tacit.learning import LinearRegression

TARGET = "hours_per_week"
LEFT_OUT = (TARGET, "fnlwgt")
RUNS = 10
RMSE_MOST = (1.06, 1.025, 1.015, 1.007, 1.003)
DRAWN, PEOPLE = 150, 20_000
HELD_LEAST, HELD_MOST = 0.93, 0.97
# hours for each year, for each point, and of a key beside the other one: either may be what is compared with
LAW = {"age": 0.1, "score": 5.0, "sex: f": 3.0, "sex: m": -3.0, "smokes: no": -2.0, "smokes: yes": 2.0}
COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"between": (20, 80)},
    "score": {"between": (-1, 1)},
    "sex": {"keys": ["f", "m"]},
    "smokes": {"keys": ["no", "yes"]},
    "hours": {"between": (0, 100)},
}


def results() -> Iterator[Result]:
    """Yield errors beside least squares, then how many intervals hold."""
    warnings.simplefilter("ignore", tacit.LargeEpsilonWarning)
    yield from errors()
    yield from intervals()


def errors() -> Iterator[Result]:
    """Yield our root mean square error on rows not seen, beside that of least squares."""
    folder = environments.HOME / "tables"
    (folder / "given").mkdir(parents=True, exist_ok=True)
    try:
        path, declared = write_table("adult", folder)
    except NoTable as absent:
        yield Absent("hours a week, Adult", str(absent))
        return
    table = pq.read_table(path)
    features = [name for name in declared.columns if name not in LEFT_OUT]
    columns = {name: {"between": tuple(ends)} for name, ends in declared.ranges.items()}
    columns |= {name: {"keys": keys} for name, keys in declared.keys.items()}
    plain, hours = spread(table, declared, features), table[TARGET].to_numpy().astype(float)
    for epsilon, most in zip(EPSILONS, RMSE_MOST, strict=True):
        ours, squares = [], []
        for run in range(RUNS):
            places, judged = split(len(hours), run)
            protected = opened(table.take(places), f"adult{run}", "person_id", columns, epsilon)
            model = LinearRegression(epsilon=epsilon).fit(protected, target=TARGET, features=features)
            ours.append(rmse(hours[judged], model.predict(table.take(judged).select(features))))
            solved = np.linalg.lstsq(plain[places], hours[places], rcond=None)[0]
            squares.append(rmse(hours[judged], plain[judged] @ solved))
        yield Error(f"RMSE of hours a week, Adult, epsilon {epsilon:g}", fmean(ours), fmean(squares), most)


def spread(table: pa.Table, declared: Declared, features: list[str]) -> np.ndarray:
    """Return columns for least squares: a one, numbers as they are, and a column of 0 and 1 for each category."""
    parts = [np.ones(len(table))]
    for name in features:
        column = table[name].to_numpy(zero_copy_only=False)
        parts += [column == key for key in declared.keys[name]] if name in declared.keys else [column / 1000]
    return np.column_stack(parts).astype(float)


def rmse(truth: np.ndarray, found: np.ndarray) -> float:
    """Return the root mean square error."""
    return float(np.sqrt(np.mean((truth - found) ** 2)))


def intervals() -> Iterator[Result]:
    """Yield the share of 95 % intervals that hold the law's coefficient, and how many of four terms were readable."""
    for epsilon in EPSILONS:
        generator = np.random.default_rng(int(10 * epsilon))
        held, terms = [], 0
        for place in range(DRAWN):
            protected = opened(drawn(generator), f"drawn{place}", "person", COLUMNS, epsilon)
            model = LinearRegression(epsilon=epsilon).fit(protected, target="hours")
            shown = [each for each in model.summary().to_dicts() if each["term"] in LAW]
            held += [each["low"] <= LAW[each["term"]] <= each["high"] for each in shown]
            terms += len(shown)
        if held:
            yield Figure(f"95 % intervals hold, epsilon {epsilon:g}", fmean(held), HELD_LEAST, HELD_MOST)
        yield Figure(f"readable terms of 4, epsilon {epsilon:g}", terms / DRAWN)


def drawn(generator: np.random.Generator) -> pa.Table:
    """Return people whose hours follow the law; nobody is near an end of the range, so clamping changes none."""
    age, score = generator.integers(20, 81, PEOPLE), generator.uniform(-1, 1, PEOPLE)
    male, smokes = generator.integers(0, 2, (2, PEOPLE))
    hours = 40 + LAW["age"] * age + LAW["score"] * score + LAW["sex: m"] * male + LAW["smokes: yes"] * smokes
    return pa.table(
        {
            "person": np.arange(PEOPLE),
            "age": age,
            "score": score,
            "sex": np.array(["f", "m"])[male],
            "smokes": np.array(["no", "yes"])[smokes],
            "hours": hours + generator.normal(0, 5, PEOPLE),
        }
    )


def opened(rows: pa.Table, name: str, unit: str, columns: dict[str, dict[str, Any]], epsilon: float) -> Any:
    """Return a protected table with a ledger in memory that nobody has asked before."""
    return tacit.table(
        rows,
        name=name,
        unit=unit,
        most_rows_per_unit=1,
        budget=tacit.epsilon(epsilon, delta=DELTA),
        columns=columns,
        ledger=tacit.TRYOUT,
        accept_large_delta=True,  # the delta of all models that are compared
    )
