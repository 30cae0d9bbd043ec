"""The warm-up of a worker before it is ready, so that the first questions are not slower.

The worker compiles or loads the kernel's loops, opens the tables in every answering thread, and asks one question about
made-up rows, in a ledger in memory: parser, planner, engine and noise have then run once. No protected row
is read, and no budget is charged.
"""

import logging
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from tacit.asking import table
from tacit.engine import is_coming, warm_up
from tacit.ledger import TRYOUT
from tacit.privacy import epsilon

COMPILING_SECONDS = 180  # seconds that a worker waits for the loops; without them it answers by SQL
LOOK_SECONDS = 0.25
THREADS_MAX = 16  # threads beyond these open the tables when they are first used

MADE_UP = "made_up"
_SQL = "SELECT ward, COUNT(*) AS n, SUM(days) AS s, AVG(days) AS m FROM made_up WHERE days <> 7 GROUP BY ward"

log: logging.Logger = logging.getLogger("tacit.server")


class Warming:
    """Whether a worker is warm: from the start, but while `begin` has not ended."""

    def __init__(self) -> None:
        self._is_done = threading.Event()
        self._is_stopped = threading.Event()
        self._is_done.set()

    @property
    def is_done(self) -> bool:
        return self._is_done.is_set()

    def begin(self, threads: Executor, number: int, open_tables: Callable[[], None], then: Callable[[], None]) -> None:
        """Warm the worker in the background, and call `then` at the end; a question tries failed steps again."""
        self._is_done.clear()

        def run() -> None:
            try:
                waiting = [threads.submit(open_tables) for _ in range(min(number, THREADS_MAX))]
                load_loops(self._is_stopped)
                waiting.append(threads.submit(ask_made_up_rows))
                for each in waiting:
                    each.result()
            except Exception as error:  # noqa: BLE001 - the first question reports the error
                if not self._is_stopped.is_set():
                    log.warning("the server could not warm up: %s", type(error).__name__)
            finally:
                self._is_done.set()
                then()

        threading.Thread(target=run, daemon=True).start()

    def stop(self) -> None:
        self._is_stopped.set()


def load_loops(stop: threading.Event) -> None:
    """Load the kernel's compiled loops; wait until they are compiled if they can be."""
    warm_up()
    for _ in range(int(COMPILING_SECONDS / LOOK_SECONDS)):
        if not is_coming() or stop.wait(LOOK_SECONDS):
            break
    warm_up()


def ask_made_up_rows() -> None:
    """Answer a question about a few made-up people, as one about a table would be."""
    with tempfile.TemporaryDirectory(prefix="tacit-made-up-") as folder, suppress(OSError):
        path = Path(folder) / "rows.parquet"
        rows = {"patient": list(range(60)), "ward": ["A", "B", "C"] * 20, "days": [1, 2, 3, 4] * 15}
        pq.write_table(pa.table(rows), path)
        made_up = table(
            str(path),
            name=MADE_UP,
            unit="patient",
            budget=epsilon(9),
            ledger=TRYOUT,
            columns={"ward": {"keys": ["A", "B", "C"]}, "days": {"between": (0, 30)}},
            rows_per_unit=1,
            groups_per_unit=1,
            most_rows_per_unit=1,
        )
        for at in (1, 2):  # the second takes the path that a table which is asked often takes
            made_up.sql(_SQL).answer(epsilon=at, accept_noise=True)
