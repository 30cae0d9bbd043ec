"""How long one question takes from a fresh process on the command line, with everything there is to load."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

from bench.measure import Result, Seconds, best_of
from bench.orders import orders
from tacit.engine.kernel import compiled

ROWS = 10**6
LIMIT = 2.5
START = "from tacit.cli.app import main; main()"
epsilons = count(1)


def results() -> Iterator[Result]:
    """Yield the time of `tacit ask` on a million rows."""
    compiled.compile_now()
    with orders(ROWS, 1000) as path, tempfile.TemporaryDirectory() as home:
        ask(path, home)
        yield Seconds("tacit ask, 10^6 rows", best_of(lambda: ask(path, home), repeats=5), limit=LIMIT)


def ask(path: Path, home: str) -> None:
    """Ask once in a process of its own."""
    words = ["--unit", "user_id", "--rows-per-unit", "2", "--groups-per-unit", "5", "--between", "amount=0:100"]
    words += ["--budget", "1000", "--delta", "1e-6", "--epsilon", str(next(epsilons) / 100)]
    sql = "SELECT item, COUNT(*) AS n, SUM(amount) AS s, AVG(amount) AS m FROM orders GROUP BY item"
    subprocess.run(
        [sys.executable, "-c", START, "ask", str(path), sql, *words],
        check=True,
        capture_output=True,
        env=os.environ | {"TACIT_HOME": home},
    )
