"""Made-up rows: errors of all pairs of columns on seven tables, models trained on them, and the time they take.

Every method gets the same codes of public bins, so only the method differs. Four fifths of each table are protected,
the rest is held out. Beside ours are AIM's published rules on the same fit (`synthetic_aim.py`), with numpy's noise.
Slack, clique sizes and rare keys were chosen on Adult, and the end of the fit on the first five tables; the last two
were added when all was chosen. Time is
processor time, of the noisy tables, the fit and as many rows as are protected, with one thread for linear algebra:
opening a table is left out, and so is whatever AIM's rules would have to pay and to keep.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # threads that wait count as processor time

import resource
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tacit
from bench.learned.tables import NoTable, adult, published
from bench.measure import Absent, Error, Figure, Result, Seconds
from bench.synthetic_aim import aim_rows

EPSILONS = (0.3, 1, 3)
DELTA = 1e-6
SEEDS = 3
ADULT_MOST = {0.3: 0.055, 1: 0.031, 3: 0.024}
AUC_LEAST = 0.895
LARGE, LARGE_SECONDS, LARGE_MEGABYTES = 10**7, 20, 1000


@dataclass(frozen=True)
class Coded:
    """A table as codes of public bins: rows to protect, rows held out, and the target of models."""

    names: list[str]
    sizes: list[int]
    train: np.ndarray
    test: np.ndarray
    target: int


def results() -> Iterator[Result]:
    """Yield errors of pairs beside AIM's rules, of models, and the time of many rows."""
    for name, read in TABLES.items():
        try:
            coded = read()
        except NoTable as reason:
            yield Absent(f"made-up rows of {name}", str(reason))
            continue
        yield from _pairs(name, coded)
        if name == "adult":
            yield from _models(coded)
            yield from _many_rows(coded)


def _pairs(name: str, coded: Coded) -> Iterator[Result]:
    for epsilon in EPSILONS:
        ours, aim, times = [], [], [0.0, 0.0]
        for seed in range(SEEDS):
            took, made = _processor(partial(made_rows, coded, epsilon, table=protected(coded)))
            times[0] += took
            ours.append(pair_distance(coded, made))
            if seed < SEEDS - 1:
                took, made = _processor(partial(aim_rows, coded.train, coded.sizes, epsilon, DELTA, seed))
                times[1] += took * SEEDS / (SEEDS - 1)
                aim.append(pair_distance(coded, made))
        what = f"{name}, ε = {epsilon}: mean distance of all pairs"
        yield Figure(f"{what}, worst of {SEEDS}", max(ours), most=ADULT_MOST[epsilon] if name == "adult" else np.inf)
        yield Error(f"{what}, AIM's rules on the same fit", float(np.mean(ours)), float(np.mean(aim)), limit=1.0)
        yield Error(f"{name}, ε = {epsilon}: processor time, AIM's rules", times[0], times[1], limit=0.3)


def made_rows(
    coded: Coded, epsilon: float, rows: int | None = None, *, table: tacit.Table | None = None, target: bool = False
) -> np.ndarray:
    """Return made-up rows as codes, through the whole product."""
    named = coded.names[coded.target] if target else None
    made = (protected(coded) if table is None else table).synthesize(epsilon=epsilon, delta=DELTA, target=named)
    found = made.rows(len(coded.train) if rows is None else rows)
    columns = [found[name].fill_null(size - 1).to_numpy() for name, size in zip(coded.names, coded.sizes, strict=True)]
    return np.stack(columns, 1)


def protected(coded: Coded, source: Any = None) -> tacit.Table:
    """Return the rows as a protected table whose columns have listed keys."""
    keys = {name: {"keys": list(range(size))} for name, size in zip(coded.names, coded.sizes, strict=True)}
    rows = pa.table({name: coded.train[:, at] for at, name in enumerate(coded.names)}) if source is None else source
    return tacit.table(
        rows,
        name="rows",
        unit=tacit.ROW,
        budget=tacit.epsilon(3, delta=8 * DELTA),
        accept_large_delta=True,
        columns=keys,
        ledger=tacit.TRYOUT,
    )


def shares(rows: np.ndarray, sizes: list[int], pair: tuple[int, int]) -> np.ndarray:
    """Return the share of rows in each cell of a pair."""
    cells = rows[:, pair[0]] * sizes[pair[1]] + rows[:, pair[1]]
    return np.bincount(cells, minlength=sizes[pair[0]] * sizes[pair[1]]) / len(rows)


def pair_distance(coded: Coded, made: np.ndarray) -> float:
    """Return the mean total variation of all pairs between protected rows and made-up ones."""
    apart = [
        np.abs(shares(coded.train, coded.sizes, pair) - shares(made, coded.sizes, pair)).sum() / 2
        for pair in combinations(range(len(coded.sizes)), 2)
    ]
    return float(np.mean(apart))


def _models(coded: Coded) -> Iterator[Result]:
    found = [ranked(coded, made_rows(coded, 1)) for _ in range(SEEDS)]
    least = min(min(each) for each in found)
    yield Figure("adult, ε = 1: AUC on held-out rows, least of two models and 3 draws", least, least=AUC_LEAST)
    yield Figure("adult: AUC of real rows, the ceiling", min(ranked(coded, coded.train)))


def ranked(coded: Coded, rows: np.ndarray) -> tuple[float, float]:
    """Return the AUC on held-out rows of a logistic regression and of boosted trees that are trained on rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.preprocessing import OneHotEncoder

    features = [at for at in range(len(coded.sizes)) if at != coded.target]
    encoder = OneHotEncoder(categories=[np.arange(coded.sizes[at]) for at in features]).fit(rows[:2][:, features])
    linear = LogisticRegression(C=0.3, max_iter=120).fit(encoder.transform(rows[:, features]), rows[:, coded.target])
    trees = HistGradientBoostingClassifier(max_iter=60, random_state=0).fit(rows[:, features], rows[:, coded.target])
    truth = coded.test[:, coded.target]
    by_line = linear.predict_proba(encoder.transform(coded.test[:, features]))[:, 1]
    return float(roc_auc_score(truth, by_line)), float(
        roc_auc_score(truth, trees.predict_proba(coded.test[:, features])[:, 1])
    )


def _many_rows(coded: Coded) -> Iterator[Result]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        rng = np.random.default_rng(1)
        with pq.ParquetWriter(path, pa.schema([(name, pa.int64()) for name in coded.names])) as writer:
            for _ in range(10):
                rows = coded.train[rng.integers(0, len(coded.train), LARGE // 10)]
                writer.write_table(pa.table({name: rows[:, at] for at, name in enumerate(coded.names)}))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start, processor = time.perf_counter(), time.process_time()
        made = protected(coded, str(path)).synthesize(epsilon=1, delta=DELTA)
        made.rows(1000)
        took, processor = time.perf_counter() - start, time.process_time() - processor
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    yield Seconds(
        f"10^7 rows of {len(coded.sizes)} columns, processor time over two cores", processor / 2, LARGE_SECONDS
    )
    yield Seconds("10^7 rows, wall time", took)
    yield Figure("10^7 rows: megabytes beyond what was held before", grown, most=LARGE_MEGABYTES)


def _processor(work: Callable[[], np.ndarray]) -> tuple[float, np.ndarray]:
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


# --- tables as codes ---


def coded_table(frame: Any, bins: Mapping[str, Any], target: str) -> Coded:
    """Return a frame as codes: numbers by public edges, and all else by its published categories."""
    names, sizes, codes = [], [], []
    for name in frame.columns:
        if name in bins:
            edges = np.asarray(bins[name], dtype=float)
            numbers = np.asarray(frame[name], dtype=float)
            codes.append(np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2))
            sizes.append(len(edges) - 1)
        else:
            texts = frame[name].astype(str)
            keys = {key: place for place, key in enumerate(sorted(set(texts)))}
            codes.append(texts.map(keys).to_numpy())
            sizes.append(len(keys))
        names.append(name)
    rows = np.stack(codes, 1).astype(np.int64)
    held_out = np.random.default_rng(7).permutation(len(rows)) < len(rows) // 5
    return Coded(names, sizes, rows[~held_out], rows[held_out], names.index(target))


def _grown(low: float, most: float, count: int) -> list[float]:
    return list(np.geomspace(low, most, count))


def _adult() -> Coded:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "adult.parquet"
        adult(path)
        frame = pq.read_table(path).to_pandas().drop(columns="person_id")
    bins = {
        "age": range(15, 96, 5),
        "fnlwgt": [0, *_grown(20_000, 1.5e6, 16)],
        "capital_gain": [-1, 1, *_grown(100, 1e5, 12)],
        "capital_loss": [-1, 1, *_grown(100, 5000, 10)],
        "hours_per_week": [0, 10, 15, 20, 25, 30, 35, 38, 40, 41, 45, 46, 50, 51, 56, 61, 100],
    }
    return coded_table(frame, bins, "income")


def _visits_to_doctors() -> Coded:
    """Yearly interviews of people in Germany about doctors: `rwm5yr`."""
    frame = published("COUNT", "rwm5yr").drop(columns=["id", "rownames"], errors="ignore")
    bins = {
        "docvis": [0, 1, 2, 3, 4, 6, 8, 11, 16, 31, 200],
        "hospvis": [0, 1, 2, 3, 5, 100],
        "age": range(25, 66, 3),
        "hhninc": [0, *_grown(0.5, 30, 15)],
        "educ": [0, 8, 9, 10, 10.6, 11, 11.6, 12, 13, 14, 16, 20],
    }
    return coded_table(frame, bins, "outwork")


def _contacts_with_doctors() -> Coded:
    """Contacts with doctors in an experiment on insurance: `DoctorContacts`."""
    frame = published("Ecdat", "DoctorContacts").drop(columns=["rownames"], errors="ignore")
    bins = {
        "mdu": [0, 1, 2, 3, 4, 6, 8, 11, 16, 100],
        "lc": np.linspace(-0.01, 5, 7),
        "lpi": np.linspace(-0.01, 8, 11),
        "fmde": np.linspace(-0.01, 9, 11),
        "ndisease": np.linspace(0, 60, 13),
        "linc": np.linspace(0, 12, 13),
        "lfam": np.linspace(-0.01, 3, 7),
        "educdec": np.linspace(0, 26, 14),
        "age": np.linspace(0, 66, 12),
    }
    return coded_table(frame, bins, "sex")


def _insured_wives() -> Coded:
    """Wives, their hours of work and their health insurance: `HI`."""
    frame = published("Ecdat", "HI").drop(columns=["rownames"], errors="ignore")
    bins = {
        "whrswk": [0, 1, 10, 20, 30, 35, 40, 41, 50, 120],
        "experience": np.linspace(-1, 80, 14),
        "husby": [-1, 1, *_grown(3, 500, 14)],
        "wght": np.linspace(0, 1.2e6, 14),
    }
    return coded_table(frame, bins, "hhi")


def _car_crashes() -> Coded:
    """People in cars that crashed: `nassCDS`."""
    frame = published("DAAG", "nassCDS").drop(columns=["rownames", "caseid"], errors="ignore").dropna()
    bins = {
        "weight": [0, *_grown(5, 60_000, 12)],
        "ageOFocc": range(15, 101, 5),
        "yearVeh": [1900, *range(1980, 2006, 2)],
    }
    return coded_table(frame, bins, "dead")


def _insured_workers() -> Coded:
    """Workers, their families and whether they have health insurance: `HealthInsurance`."""
    frame = published("AER", "HealthInsurance").drop(columns=["rownames"], errors="ignore")
    return coded_table(frame, {"age": range(15, 70, 3), "family": [1, 2, 3, 4, 5, 6, 8, 20]}, "insurance")


def _diamonds() -> Coded:
    """Diamonds, of which size, weight and price nearly follow from each other."""
    frame = published("ggplot2", "diamonds").drop(columns=["rownames"], errors="ignore")
    bins = {
        "carat": [0, *_grown(0.2, 6, 14)],
        "depth": [0, 57, 59, 60, 61, 62, 63, 64, 66, 100],
        "table": [0, 53, 54, 55, 56, 57, 58, 59, 60, 62, 100],
        "price": _grown(200, 20_000, 16),
        "x": [0, *np.linspace(3.5, 9, 12), 100],
        "y": [0, *np.linspace(3.5, 9, 12), 100],
        "z": [0, *np.linspace(2, 6, 10), 100],
    }
    return coded_table(frame, bins, "cut")


TABLES: dict[str, Callable[[], Coded]] = {
    "adult": _adult,
    "visits to doctors": _visits_to_doctors,
    "contacts with doctors": _contacts_with_doctors,
    "insured wives": _insured_wives,
    "car crashes": _car_crashes,
    "insured workers": _insured_workers,
    "diamonds": _diamonds,
}
