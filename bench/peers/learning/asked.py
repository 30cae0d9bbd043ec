"""What every model is asked: train on four fifths of a table, and be judged on the last fifth that it has not seen.

A script is started with one JSON argument and prints one JSON line: for each run the area under the curve, accuracy,
and the seconds that training took, by the clock and of processors. Reading the file and making columns ready is not
part of the time. Splits depend on the run's number alone, so that run 3 trains on the same rows everywhere.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parent.parent))
from processor import processor_seconds

DELTA = 1e-5
SHARE = 0.8


class Rows:
    """A table as numbers: each category is its place in the public list, -1 where it is missing."""

    def __init__(self, folder, name):
        with open(f"{folder}/{name}.json") as file:
            self.declared = json.load(file)
        self.path = f"{folder}/{name}.parquet"
        self.columns = dict(np.load(f"{folder}/{name}.npz"))
        self.target = self.columns.pop("target")

    def complete(self, name):
        """Return a number inside its public range, and the range's middle where it is missing."""
        low, high = self.declared["ranges"][name]
        return np.clip(np.nan_to_num(self.columns[name], nan=(low + high) / 2), low, high)

    def scaled(self):
        """Return numbers in [0, 1] by their public range, and a column of 0 and 1 for each category.

        This is what a linear model or a network takes; it uses public facts alone.
        """
        parts = []
        for name in self.declared["columns"]:
            if name in self.declared["ranges"]:
                low, high = self.declared["ranges"][name]
                parts.append((self.complete(name)[:, None] - low) / (high - low))
            else:
                parts.append(self.columns[name][:, None] == np.arange(len(self.declared["keys"][name]))[None, :])
        return np.hstack(parts).astype(np.float64)


def split(rows, run):
    """Return the places of the rows to train on and of those to judge by."""
    order = np.random.default_rng(1000 + run).permutation(rows)
    return np.split(order, [int(SHARE * rows)])


def score(target, probability):
    """Return the area under the curve, ties shared, and the accuracy of calling a probability of a half and more 1."""
    _, place, count = np.unique(probability, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    ones = int(target.sum())
    area = (rank[target == 1].sum() - ones * (ones + 1) / 2) / (ones * (len(target) - ones))
    return {"auc": float(area), "accuracy": float(np.mean((probability >= 0.5) == (target == 1)))}


def main(prepare):
    """Print the scores of the runs that are asked for.

    `prepare(rows)` returns `ready(places, target, epsilon, run)`. That returns `train()`, which alone is timed, and
    returns what gives probabilities at places.
    """
    asked = json.loads(sys.argv[1])
    rows = Rows(asked["folder"], asked["table"])
    ready = prepare(rows)
    found = []
    for run in asked["runs"]:
        places, judged = split(len(rows.target), run)
        train = ready(places, rows.target[places], asked["epsilon"], run)
        start, used = time.perf_counter(), processor_seconds()
        probabilities = train()
        seconds = time.perf_counter() - start
        processor = processor_seconds() - used
        scores = score(rows.target[judged], probabilities(judged))
        found.append({**scores, "seconds": seconds, "processor": processor})
    print(json.dumps({"runs": found}))
