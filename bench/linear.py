"""`LinearRegression` on Adult: hours a week from 12 columns beside least squares, and how often intervals hold.

Errors are of rows that were set aside, means of ten splits; the whole delta of the budget is 1e-5. Least squares has
the same columns, with a coefficient for each value of a list. For intervals all of Adult is the population: samples
with replacement go through the whole product, and an interval should hold what least squares on its terms finds there.
"""

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import tacit
from bench.measure import Absent, Figure, Result
from bench.peers import environments
from bench.peers.learning.tables import UNIT, Declared, NoTable, write_table
from tacit.learning import LinearRegression
from tacit.privacy import Floats

TARGET = "hours_per_week"
LEFT_OUT = ("fnlwgt",)
DELTA = 1e-5
# What is promised of the error over that of least squares.
MOST = {0.1: 1.06, 0.5: 1.025, 1: 1.015, 3: 1.007, 8: 1.003}
RUNS = 10
SHARE = 0.8
SAMPLES = 150
SIX = ("workclass", "marital_status", "race", "sex", "age", "education_num")


def results() -> Iterator[Result]:
    """Yield the error at each epsilon over that of least squares, and the share of intervals that hold."""
    import pandas as pd

    folder = environments.HOME / "tables"
    (folder / "given").mkdir(parents=True, exist_ok=True)
    try:
        path, declared = write_table("adult", folder)
    except NoTable as missing:
        yield Absent("adult", str(missing))
        return
    frame = pd.read_parquet(path)
    features = [name for name in declared.columns if name not in (TARGET, *LEFT_OUT)]
    splits = [_split(len(frame), run) for run in range(RUNS)]
    baselines = [least_squares(frame, declared, features, *split) for split in splits]
    for epsilon, most in MOST.items():
        found = []
        for (inside, beside), baseline in zip(splits, baselines, strict=True):
            model = LinearRegression(epsilon).fit(opened(frame.iloc[inside], declared, epsilon), **asked(features))
            found.append(_error(model.predict(frame.iloc[beside]), frame.iloc[beside]) / baseline)
        yield Figure(f"error over least squares', epsilon {epsilon}", float(np.mean(found)), most=most)
    for names, limits in ((SIX, (0.93, 0.97)), (features, (0.0, float("inf")))):
        for epsilon in MOST:
            share = coverage(frame, declared, list(names), epsilon)
            yield Figure(f"95 % intervals that hold, {len(names)} columns, epsilon {epsilon}", share, *limits)


def opened(frame: Any, declared: Declared, epsilon: float) -> Any:
    """Return people as a protected table with a budget for one model."""
    columns: dict[str, Any] = {name: {"between": ends} for name, ends in declared.ranges.items()}
    columns |= {name: {"keys": keys} for name, keys in declared.keys.items()}
    return tacit.table(
        frame,
        unit=UNIT,
        budget=tacit.epsilon(epsilon, delta=DELTA),
        accept_large_delta=True,
        ledger=":memory:",
        name="adult",
        columns=columns,
    )


def asked(features: list[str]) -> dict[str, Any]:
    """Return what a model is asked for."""
    return {"target": TARGET, "features": features}


def least_squares(frame: Any, declared: Declared, features: list[str], inside: Any, beside: Any) -> float:
    """Return the error of least squares without privacy."""
    parts = [np.ones(len(frame))]
    for name in features:
        values = frame[name].to_numpy()
        parts += [values == key for key in declared.keys[name]] if name in declared.keys else [values]
    table = np.column_stack(parts).astype(float)
    solved = np.linalg.lstsq(table[inside], frame[TARGET].to_numpy()[inside].astype(float), rcond=None)[0]
    return _error(table[beside] @ solved, frame.iloc[beside])


def coverage(frame: Any, declared: Declared, features: list[str], epsilon: float) -> float:
    """Return the share of intervals that hold the population's coefficient of the same terms."""
    held: list[bool] = []
    for run in range(SAMPLES):
        places = np.random.default_rng(run).integers(0, len(frame), int(SHARE * len(frame)))
        sample = frame.iloc[places].assign(**{UNIT: np.arange(len(places))})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = LinearRegression(epsilon).fit(opened(sample, declared, epsilon), **asked(features))
        found = model.state_.inference
        table = in_places(model, frame)[:, list(found.places)]
        hours = (frame[TARGET].to_numpy() - model.state_.design.target.middle) / model.state_.design.target.half
        truth = np.linalg.lstsq(table, hours, rcond=None)[0]
        held += (np.abs(found.estimate - truth) <= 1.96 * np.sqrt(np.diag(found.covariance))).tolist()
    return float(np.mean(held))


def in_places(model: LinearRegression, frame: Any) -> Floats:
    """Return the whole population as a model's terms, in half ranges: the constant, numbers, and every cell."""
    design = model.state_.design
    parts: list[Any] = [np.ones(len(frame)), *(number.scaled(frame[number.name]) for number in design.numbers)]
    for feature, bins in zip(design.listed, model.state_.bins, strict=True):
        places = np.array(bins)[feature.cells_of(frame[feature.name])]
        parts += [places == place for place in range(max(bins) + 1)]
    return np.column_stack(parts).astype(float)


def _split(rows: int, run: int) -> tuple[Any, Any]:
    order = np.random.default_rng(1000 + run).permutation(rows)
    inside, beside = np.split(order, [int(SHARE * rows)])
    return inside, beside


def _error(predicted: Any, frame: Any) -> float:
    return float(np.sqrt(np.mean((predicted - frame[TARGET].to_numpy()) ** 2)))
