"""What quantiles take beside a mean and a count: of 10^7 rows, of 10^5 groups, and of groups that stay hidden.

Each runs in a process of its own, which has answered a small question of the same kind before.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Figure, Ratio, Result

ROWS, GROUPS, FOUND = 10**7, 10**5, 80_000

ASK = """
import json, sys, time
import numpy as np, pyarrow as pa, tacit
from bench.measure import peak_bytes
from tacit.engine import compiled

def table(rows, **declared):
    rng = np.random.default_rng(3)
    made = pa.table({"id": np.arange(rows), "k": rng.integers(0, declared.pop("keys"), rows), "x": rng.random(rows)})
    usual = {"unit": "id", "rows_per_unit": 1, "groups_per_unit": 1, "columns": {"x": {"between": (0, 1)}}}
    return tacit.table(made, **usual, budget=tacit.epsilon(1000, delta="1e-6"), ledger=":memory:", name=f"t{rows}")

def grouped(one, kind, listed):
    return one if listed is None else one.group_by("k", keys=listed or None)

def ask(one, kind):
    question = one.count_units() if kind == "count" else getattr(one, kind)("x")
    start = time.perf_counter()
    question.answer(epsilon=1)
    return time.perf_counter() - start

compiled.compile_now()
kind, rows, keys, how = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
listed = {"all": None, "listed": list(range(keys)), "found": []}[how]
few = table(1000, keys=10)
ask(grouped(few, kind, None if how == "all" else list(range(10))), kind)
one = table(rows, keys=keys)
before = peak_bytes()
taken = ask(grouped(one, kind, listed), kind)
print(json.dumps([taken, peak_bytes() - before]))
"""


def results() -> Iterator[Result]:
    """Yield times beside those of a mean or a count in the same run, and the memory of a median of 10^7 rows."""
    median, mean = (best("all", kind, ROWS, 10) for kind in ("median", "mean"))
    yield Ratio("median of 10^7 rows / mean", median[0], mean[0], limit=6)
    yield Figure("median of 10^7 rows, gigabytes at the peak", median[1] / 2**30, most=1.5)
    many, means = (best("listed", kind, 10 * GROUPS, GROUPS) for kind in ("median", "mean"))
    yield Ratio("medians of 10^5 listed groups / means", many[0], means[0], limit=10)
    hidden, counts = (best("found", kind, 2 * FOUND, FOUND) for kind in ("median", "count"))
    yield Ratio("medians of 80,000 found groups, none shown / counts", hidden[0], counts[0], limit=10)


def best(how: str, kind: str, rows: int, keys: int) -> tuple[float, int]:
    """Return the shorter time of two runs, and the memory of it."""
    command = [sys.executable, "-c", ASK, kind, str(rows), str(keys), how]
    folder = Path(__file__).parents[1]
    runs = [subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder) for _ in range(2)]
    taken, memory = min(json.loads(run.stdout) for run in runs)
    return float(taken), int(memory)
