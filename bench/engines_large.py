"""Spark with a hundred million rows on three executors of 2 GiB each: that it finishes, and how its cost grows.

Processor seconds of the driver, its JVM, the executors and their Python workers, and the memory of an executor: of its
JVM, which has a heap of 2 GiB, and of its Python workers beside, which are told 1 GB. It takes several minutes and
about 3 GB of disk, so only who names it runs it: `make bench ONLY=engines_large`.
"""

import tempfile
from collections.abc import Iterator
from math import log10
from pathlib import Path

from bench import engines, engines_spark
from bench.measure import Absent, Figure, Result, Seconds, peak_bytes
from tacit.engine.kernel import compiled

SMALL, LARGE = 10**7, 10**8
EXECUTORS = "local-cluster[3,1,2048]"
EXPONENT_MOST = 1.1
PARTS = "12"


def results() -> Iterator[Result]:
    """Yield what a question about many rows takes, and the exponent of its growth."""
    why = engines_spark.missing()
    if why is not None:
        yield Absent("Spark, 10^8 rows", why)
        return
    compiled.compile_now()
    settings = {
        "spark.executor.memory": "2g",
        "spark.executorEnv.TACIT_MEMORY": "1GB",
        "spark.tacit.parts": PARTS,
        "spark.sql.shuffle.partitions": PARTS,
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        engines_spark.session(Path(folder), master=EXECUTORS, **settings) as session,
    ):
        taken = []
        for rows in (SMALL, LARGE):
            ask, _ = engines_spark.jobs(session, engines_spark.store(session, Path(folder), rows))
            taken.append(engines.least(ask, repeats=1 if rows == LARGE else 2))
            yield Seconds(f"Spark, 10^{len(str(rows)) - 1} rows on three executors", taken[-1])
        for who, each in executors_peak().items():
            yield Figure(f"Spark, memory of an executor's {who}, GiB", each / 2**30)
        exponent = log10(taken[1] / taken[0]) / log10(LARGE / SMALL)
        yield Figure("Spark, exponent of the cost", exponent, most=EXPONENT_MOST)


def executors_peak() -> dict[str, int]:
    """Return the most bytes that the JVM of an executor had so far, and its Python workers together."""
    live = engines.processes(())
    jvms = [pid for pid in live if b"CoarseGrainedExecutorBackend" in command_line(pid)]
    workers: dict[int, list[int]] = {pid: [] for pid in jvms}
    for pid in live:
        above = live[pid].parent
        while above in live and above not in workers:
            above = live[above].parent
        if above in workers:
            workers[above].append(pid)
    return {
        "JVM": max(map(peak_bytes, jvms), default=0),
        "Python": max((sum(map(peak_bytes, each)) for each in workers.values()), default=0),
    }


def command_line(pid: int) -> bytes:
    """Return how a process was started; nothing if it is gone."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
