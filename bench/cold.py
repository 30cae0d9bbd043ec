"""How long one question takes from a fresh process on the command line, with everything there is to load.

And how much processor time compiling the kernel takes, which a first question begins in the background.
"""

import os
import resource
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
LIMIT, COMPILE_LIMIT = 2.5, 15.0
START = "from tacit.cli.app import main; main()"
epsilons = count(1)


def results() -> Iterator[Result]:
    """Yield the processor time of compiling the kernel, and the time of `tacit ask` on a million rows."""
    yield Seconds("kernel compiled, processor time", compile_anew(), limit=COMPILE_LIMIT)
    compiled.compile_now()
    with orders(ROWS, 1000) as path, tempfile.TemporaryDirectory() as home:
        ask(path, home)
        yield Seconds("tacit ask, 10^6 rows", best_of(lambda: ask(path, home), repeats=5), limit=LIMIT)


def compile_anew() -> float:
    """Return the processor time of a process that compiles the kernel, with what it imports."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as folder:
        compiling = [sys.executable, "-c", f"from {compiled.__name__} import compile_now; compile_now()"]
        subprocess.run(compiling, check=True, env=os.environ | {"XDG_CACHE_HOME": folder})
        if not list(Path(folder).rglob(compiled.COMPLETE)):
            raise RuntimeError("the kernel was not compiled: its folder could be written by others")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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
