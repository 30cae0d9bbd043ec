"""What a bench reports: a ratio against a baseline measured in the same run, and the limit it has to meet.

Machines differ and are noisy, so seconds are shown but ratios are judged. Each side is run several times in turn and
its best time is taken: the best is what the code needs, the rest is what else the machine was doing.
"""

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median


@dataclass(frozen=True)
class Ratio:
    """Our time against a baseline's; `limit` is what we promise, None where nothing is.

    If both times are of processors, `wall` is the ratio by the clock on the wall, which the machine's other work moves.
    """

    name: str
    ours: float
    baseline: float
    limit: float | None = None
    wall: float | None = None

    @property
    def value(self) -> float:
        """How many times the baseline's time we take."""
        return self.ours / self.baseline

    @property
    def met(self) -> bool:
        """Whether the promise was kept."""
        return self.limit is None or self.value <= self.limit


@dataclass(frozen=True)
class Seconds:
    """A time with a promise of its own, where no baseline makes sense (an import, a first draw)."""

    name: str
    ours: float
    limit: float | None = None

    @property
    def met(self) -> bool:
        """Whether the promise was kept."""
        return self.limit is None or self.ours <= self.limit


@dataclass(frozen=True)
class Figure:
    """A number that is no time, such as an error, with what it may be at least and at most."""

    name: str
    value: float
    least: float = 0.0
    most: float = float("inf")

    @property
    def met(self) -> bool:
        """Whether the promise was kept."""
        return self.least <= self.value <= self.most


@dataclass(frozen=True)
class Error:
    """Our error against a baseline's; `limit` is how many times it we promise at most, None where nothing is."""

    name: str
    ours: float
    baseline: float
    limit: float | None = None

    @property
    def value(self) -> float:
        """How many times the baseline's error ours is."""
        return self.ours / self.baseline

    @property
    def met(self) -> bool:
        """Whether the promise was kept."""
        return self.limit is None or self.value <= self.limit


@dataclass(frozen=True)
class Absent:
    """A line that could not be measured here, and why."""

    name: str
    why: str
    met: bool = True


Result = Ratio | Seconds | Figure | Error | Absent


def best_of(job: Callable[[], object], *, repeats: int = 7) -> float:
    """Return the shortest time the job took, in seconds."""
    return best_of_each(job, repeats=repeats)[0]


def best_of_each(*jobs: Callable[[], object], repeats: int = 7) -> list[float]:
    """Return the shortest time of each job; they take turns, so that a busy moment hits all of them."""
    return [min(times) for times in times_of_each(*jobs, repeats=repeats)]


def times_of_each(*jobs: Callable[[], object], repeats: int) -> list[list[float]]:
    """Return all times of each job; they take turns."""
    return [[wall for wall, _ in times] for times in both_times_of_each(*jobs, repeats=repeats)]


def both_times_of_each(*jobs: Callable[[], object], repeats: int) -> list[list[tuple[float, float]]]:
    """Return all times of each job, by the wall and of all processors; the jobs take turns."""
    times: list[list[tuple[float, float]]] = [[] for _ in jobs]
    collecting = gc.isenabled()
    gc.disable()
    try:
        for _ in range(repeats):
            for position, job in enumerate(jobs):
                start, used = time.perf_counter(), time.process_time()
                job()
                times[position].append((time.perf_counter() - start, time.process_time() - used))
    finally:
        if collecting:
            gc.enable()
    return times


def compare(
    name: str,
    ours: Callable[[], object],
    baseline: Callable[[], object],
    *,
    limit: float | None = None,
    repeats: int = 7,
) -> Ratio:
    """Time both jobs in turn and return their ratio."""
    ours()  # the first call builds tables and warms caches; what it costs is measured on its own
    baseline()
    best_ours, best_baseline = best_of_each(ours, baseline, repeats=repeats)
    return Ratio(name, best_ours, best_baseline, limit)


def median_ratio(
    name: str,
    ours: Callable[[], object],
    baseline: Callable[[], object],
    *,
    limit: float | None = None,
    repeats: int = 7,
) -> Ratio:
    """Run both jobs in turn and return the ratio of the medians of their processor times, and of those by the wall.

    For jobs on several cores of this process: other programs on these cores move the wall's ratio either way.
    """
    ours()
    baseline()
    both = both_times_of_each(ours, baseline, repeats=repeats)
    wall, used, wall_baseline, used_baseline = (median(each) for times in both for each in zip(*times, strict=True))
    return Ratio(name, used, used_baseline, limit, wall / wall_baseline)


def peak_bytes(pid: int | str = "self") -> int:
    """Return the most memory that a process has had so far: this one, unless another is named.

    Not ru_maxrss: a process begins with that of the one that started it, which may have had more.
    """
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
