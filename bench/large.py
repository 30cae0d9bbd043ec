"""A hundred million rows streamed from Parquet within 8 GiB, and how time grows from ten million."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from math import log10
from pathlib import Path

from bench.measure import Figure, Result, Seconds
from bench.orders import orders

ITEMS = 1000
SMALL, LARGE = 10**7, 10**8
GIB = 1 << 30
DISK_LEAST = 8 * GIB
EXPONENT_MOST = 1.1

ASK = """
import json, sys, time
from pathlib import Path
from bench.measure import peak_bytes
from bench.orders import ask, protected
from tacit.engine import compiled

compiled.compile_now()
table = protected(Path(sys.argv[1]), items=int(sys.argv[2]))
times, worked = [], []
for _ in range(int(sys.argv[3])):
    start, work = time.perf_counter(), time.process_time()
    ask(table)
    times.append(time.perf_counter() - start)
    worked.append(time.process_time() - work)
print(json.dumps([min(times), min(worked), peak_bytes()]))
"""


def results() -> Iterator[Result]:
    """Yield the time, the peak and the exponent; nothing where the disk has no room for the table."""
    if shutil.disk_usage(tempfile.gettempdir()).free < DISK_LEAST:
        return
    with orders(SMALL, ITEMS) as path:
        small_seconds, small, _ = ask(path, memory="8GiB", times=3)
    with orders(LARGE, ITEMS) as path:
        seconds, large, peak = ask(path, memory="8GiB", times=2)
        yield Seconds("10^8 rows", seconds)
        yield Figure("10^8 rows, peak in GiB", peak / GIB, most=8)
        yield Figure("exponent of time in rows", log10(seconds / small_seconds), most=EXPONENT_MOST)
        yield Figure("exponent of processor time in rows", log10(large / small), most=EXPONENT_MOST)
        spilled, _, peak = ask(path, memory="2GiB", times=1)
        yield Seconds("10^8 rows within 2 GiB, spilling", spilled)
        yield Figure("10^8 rows within 2 GiB, peak in GiB", peak / GIB, most=2)


def ask(path: Path, *, memory: str, times: int) -> tuple[float, float, int]:
    """Return the best time, the least processor time and the peak in bytes of a fresh process that asks so often."""
    ran = subprocess.run(
        [sys.executable, "-c", ASK, str(path), str(ITEMS), str(times)],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[1],
        env=os.environ | {"TACIT_MEMORY": memory},
    )
    seconds, worked, peak = json.loads(ran.stdout)
    return seconds, worked, peak
