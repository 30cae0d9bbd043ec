"""The course: cases and planted bugs, each in a process of its own, a few at a time.

A case that crashes or hangs fails alone. Nothing it does reaches this process, the user's ledger or the user's files:
it has a folder of its own as its home, its working folder and its place for temporary files.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tacit.errors import InvalidParameter
from tacit_gauntlet.frame.case import SECONDS_MAX, Case, Size
from tacit_gauntlet.frame.mutant import Mutant
from tacit_gauntlet.frame.place import ROWS_AT

# A case this late is taken to hang. The promise is SECONDS_MAX; a loaded machine may need more, and is told it did.
HANG_SECONDS = 6 * SECONDS_MAX
# Settings of each path through which rows may be read.
ENGINES: Mapping[str, Mapping[str, str]] = {
    "duckdb": {"TACIT_KERNEL": "off"},
    "kernel": {"TACIT_KERNEL": ""},
    "postgres": {"TACIT_KERNEL": "off"},  # frames of cases are stored in a server of the course's own
    "spark": {"TACIT_KERNEL": "off"},  # and here in a session of the course's own, which cases share
}
# A case may take so many times longer than it should where its rows are: every question of Spark is two jobs.
PATIENCE: Mapping[str, float] = {"spark": 10}
_STDERR_KEPT = 600


@dataclass(frozen=True)
class Job:
    """One thing to run: a case by its id or a bug by its name, its size, and the modules that register it."""

    kind: Literal["case", "mutant"]
    name: str
    size: Size
    modules: tuple[str, ...]


@dataclass(frozen=True)
class Finding:
    """What became of a job: survived (a case) or killed (a bug), its figures, how it ended, and the seconds it took."""

    job: Job
    passed: bool
    seconds: float
    figures: Mapping[str, Any] = field(default_factory=dict)
    how: str = ""

    @property
    def is_late(self) -> bool:
        """Whether it took longer than a case should."""
        return self.seconds > SECONDS_MAX


def job_of_case(chosen: Case, size: Size) -> Job:
    """Return the job that runs a case."""
    return Job("case", chosen.id, size, (chosen.attack.__module__,))


def job_of_mutant(bug: Mutant, killer: Case) -> Job:
    """Return the job that plants a bug and runs its case, at the quick size."""
    return Job("mutant", bug.name, "quick", (bug.plant.__module__, killer.attack.__module__))


def run_course(
    jobs: Sequence[Job], *, workers: int, engine: str = "duckdb", patience: float = HANG_SECONDS
) -> Iterator[Finding]:
    """Yield each job's finding as it ends; `workers` run at a time. Stopping early stops them."""
    if workers < 1:
        raise InvalidParameter(f"workers must be at least 1, not {workers}")
    check_engine(engine)
    queue = iter(jobs)
    running: set[Future[Finding]] = set()
    with settings_of(engine) as settings, ThreadPoolExecutor(workers) as pool:
        lanes = Lanes(settings=settings, patience=patience * PATIENCE.get(engine, 1))
        try:
            while True:
                while len(running) < workers and (job := next(queue, None)) is not None:
                    running.add(pool.submit(lanes.run, job))
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            lanes.stop()


@contextmanager
def settings_of(engine: str) -> Iterator[Mapping[str, str]]:
    """Lend the settings of an engine; a server that it needs runs while they are lent."""
    if engine == "postgres":
        from tacit_gauntlet.stage.postgres_rows import rows_in_postgres

        lent = rows_in_postgres()
    elif engine == "spark":
        from tacit_gauntlet.stage.spark_rows import rows_in_spark

        lent = rows_in_spark()
    else:
        yield ENGINES[engine]
        return
    with lent as address:
        yield {**ENGINES[engine], ROWS_AT: address}


def check_engine(engine: str) -> None:
    """Refuse an engine that is not built."""
    if engine not in ENGINES:
        raise InvalidParameter(f"there is no engine '{engine}' yet\nhint: the engines are: {', '.join(ENGINES)}")


class Lanes:
    """Where jobs run: starts their processes, waits for them, and can end them all."""

    def __init__(self, *, settings: Mapping[str, str], patience: float) -> None:
        self._settings = settings
        self._patience = patience
        self._live: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def stop(self) -> None:
        """End whatever is still running."""
        self._stopped = True
        for process in list(self._live):
            end_group(process)

    def run(self, job: Job) -> Finding:
        """Run a job in a fresh process and return what became of it."""
        with tempfile.TemporaryDirectory(prefix="tacit-gauntlet-", ignore_cleanup_errors=True) as folder:
            result, errors = Path(folder, "result.json"), Path(folder, "errors.txt")
            words = [sys.executable, "-m", "tacit_gauntlet.frame.worker", str(result), job.kind, job.name, job.size]
            start = time.perf_counter()
            with errors.open("wb") as stream:
                process = subprocess.Popen(
                    [*words, *job.modules],
                    stdin=subprocess.DEVNULL,
                    stdout=stream,
                    stderr=stream,
                    cwd=folder,
                    env=self._environment(folder),
                    start_new_session=True,
                )
            self._live.add(process)
            hung = not self._waited(process)
            self._live.discard(process)
            seconds = time.perf_counter() - start
            if hung:
                return Finding(job, passed=False, seconds=seconds, how=f"hung: ended after {self._patience:g} s")
            return judged(job, seconds, result, errors, process.returncode)

    def _waited(self, process: subprocess.Popen[bytes]) -> bool:
        """Wait for a process, end what it left behind, and return whether it ended by itself."""
        if self._stopped:
            end_group(process)
        try:
            process.wait(self._patience)
        except subprocess.TimeoutExpired:
            return False
        finally:
            end_group(process)
        return True

    def _environment(self, folder: str) -> dict[str, str]:
        path = os.pathsep.join(os.path.abspath(entry) for entry in sys.path if entry)
        own = {"TACIT_HOME": os.path.join(folder, "home"), "TMPDIR": folder, "PYTHONPATH": path}
        return os.environ | own | dict(self._settings)


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and every process it started that is still there."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
    process.wait()


def judged(job: Job, seconds: float, result: Path, errors: Path, code: int) -> Finding:
    """Return the finding a process wrote; one that wrote none has crashed."""
    try:
        found = json.loads(result.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        said = errors.read_text(encoding="utf-8", errors="replace")[-_STDERR_KEPT:].strip()
        ended = f"signal {-code}" if code < 0 else f"exit code {code}"
        return Finding(job, passed=False, seconds=seconds, how=f"crashed ({ended}) {said}".rstrip())
    return Finding(job, passed=bool(found["passed"]), seconds=seconds, figures=found["figures"], how=found["how"])


def workers_by_default() -> int:
    """Return how many jobs run at a time unless said otherwise: two, or one on a single core."""
    return min(2, os.cpu_count() or 1)
