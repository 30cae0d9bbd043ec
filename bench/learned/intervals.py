"""How often intervals hold the table in which nobody counts for more than the tail cap, and how wide they are.

A tail cap is read off the plan that the answer's own facts lead to, so it is another one in each run.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from bench.learned.asking import Asked
from bench.learned.tasks import Cells
from bench.measure import Figure

# How often an interval holds the table up to the tail cap: in the mean over tasks, and in each; and its lower end.
COVERED_LEAST, COVERED_EACH_LEAST, LOWER_LEAST = 0.93, 0.90, 0.975


@dataclass(frozen=True)
class Held:
    """Of one task's groups: how many intervals hold the truth, how many lower ends, and how wide they are."""

    inside: float
    lower: float | None  # None: its numbers may be negative, so that no lower end is a theorem
    width: float  # half of the median interval, over the mean error


def held_counts(cells: Cells, runs: list[Asked], name: str) -> Held:
    """Return how often the intervals of counts hold."""
    truth = cells.by_group(cells.rows)
    lower = fmean(float((run.values[f"{name}_at_least"] <= truth).mean()) for run in runs)
    return _held(runs, name, lambda run: cells.up_to(cells.rows, run.tail_cap()), lower)


def held_sums(cells: Cells, runs: list[Asked], name: str) -> Held:
    """Return how often the intervals of sums hold."""
    return _held(runs, name, lambda run: cells.up_to(cells.sums(), run.tail_cap()))


def held_means(cells: Cells, runs: list[Asked], name: str) -> Held | None:
    """Return how often the intervals of the means that are shown hold, in the larger half of groups; None: none is."""
    large = cells.large()

    def truth(run: Asked) -> np.ndarray:
        return np.where(large, cells.means_up_to(*run.tail_caps_of_mean()), np.nan)

    shown = [run for run in runs if np.isfinite(run.values[name][large]).any()]
    return _held(shown, name, truth) if shown else None


def _held(runs: list[Asked], name: str, truth_of: Callable[[Asked], np.ndarray], lower: float | None = None) -> Held:
    inside, width, error = [], [], []
    for run in runs:
        truth, value = truth_of(run), run.values[name]
        low, high = run.values[f"{name}_low"], run.values[f"{name}_high"]
        some = np.isfinite(truth) & np.isfinite(value)
        inside.append(float(((low <= truth) & (truth <= high))[some].mean()))
        width.append(float(np.median((high - low)[some]) / 2))
        error.append(float(np.abs(value - truth)[some].mean()))
    return Held(fmean(inside), lower, fmean(width) / max(fmean(error), 1e-300))


def held_lines(of: str, held: dict[str, Held]) -> Iterator[Figure]:
    """Yield how often the intervals of each task hold, and of all of them in the mean."""
    if not held:
        return
    for task, each in held.items():
        yield Figure(f"95 % intervals{of} hold, {task}", each.inside, COVERED_EACH_LEAST)
    yield Figure(f"95 % intervals{of} hold, mean of tasks", fmean(each.inside for each in held.values()), COVERED_LEAST)
    lower = [each.lower for each in held.values() if each.lower is not None]
    if lower:
        yield Figure(f"lower ends{of} hold, mean of tasks", fmean(lower), LOWER_LEAST)
        yield Figure(f"lower ends{of} hold, worst task", min(lower))
    widths = [each.width for each in held.values()]
    yield Figure(f"half of the median interval{of} over the mean error, mean of tasks", fmean(widths))
