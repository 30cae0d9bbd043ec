"""How much memory a grouped question takes at its peak, against the columns it reads; measured in fresh processes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Figure, Result
from bench.orders import COLUMN_BYTES, orders

ROWS = 10**7
ITEMS = 1000
TIMES_MOST = 3

ASK = """
import json, sys
from pathlib import Path
from bench.measure import peak_bytes
from bench.orders import ask, protected, write_orders
from tacit.engine import compiled

folder, path = Path(sys.argv[1]), Path(sys.argv[2])
compiled.compile_now()
few = folder / "few.parquet"
write_orders(few, 1000, 10)
ask(protected(few, items=10, name="few"))  # loads everything there is to load
before = peak_bytes()
ask(protected(path, items=int(sys.argv[3])))
print(json.dumps(peak_bytes() - before))
"""


def results() -> Iterator[Result]:
    """Yield the peak above what a question about few rows takes, in times the columns' size."""
    with orders(ROWS, ITEMS) as path:
        taken = peak_of(path)
    yield Figure("peak for 10^7 rows / their columns", taken / (ROWS * COLUMN_BYTES), most=TIMES_MOST)


def peak_of(path: Path) -> int:
    """Return how many bytes one question takes at its peak."""
    command = [sys.executable, "-c", ASK, str(path.parent), str(path), str(ITEMS)]
    ran = subprocess.run(command, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    return int(json.loads(ran.stdout))
