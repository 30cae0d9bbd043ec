"""How far off answers are where nobody declares a bound: learned bounds against the best that could be set by hand.

Epsilon is 1 and delta 1e-6 for all that is learned and answered. Each run asks a table that nobody has asked before, so
learning is paid for in every one. Errors are against the whole table, nothing left out. The baseline is an oracle: the
best of a grid of hand-set bounds, picked with the true error in view, at the full epsilon. No analyst can do that.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any

import numpy as np

import tacit
from bench.learned import oracle
from bench.learned.asking import Asked, ask, ask_one, open_table
from bench.learned.intervals import Held, held_counts, held_lines, held_means, held_sums
from bench.learned.tables import NoTable, write
from bench.learned.tasks import (
    COUNTS,
    MEANS,
    NUMBERS,
    PAIRS,
    PEERS,
    SPREADS,
    SUMS,
    Cells,
    Task,
    correlations,
    totals,
)
from bench.measure import Absent, Error, Figure, Result
from tacit.engine.kernel import compiled

RUNS = 12
# One number has no groups to average over, so it takes more runs.
RUNS_OF_ONE_NUMBER = 72
# Means of one row a person are compared with the least of four errors, which is low by luck where runs are few.
RUNS_OF_RANGES = 24
# A spread takes more vectors, and so more time.
RUNS_OF_SPREADS = 6
# Ranges that might be declared, the best among them.
ADULT_GAIN = Task("adult", "person_id", "occupation", "capital_gain")
ADULT_HOURS = Task("adult", "person_id", "education", "hours_per_week")
GAINS = ((0, 99_999), (0, 20_000), (0, 50_000), (0, 131_072))
HOURS = ((0, 99), (1, 99), (10, 80), (0, 168))
# Of the peers' task: errors of count, sum and mean, and how many times those of 5 items and 2 rows in each.
COUNT_MOST, SUM_MOST = 70, 2_300
COUNT_OF_GUESS, SUM_OF_GUESS = 0.12, 0.13
TOGETHER_MOST = {"n": 80, "total": 2_400, "mean": 1.4}
# Times the oracle's error: the worst of all tasks, and their geometric mean.
EACH_MOST, COUNTS_MOST, SUMS_MOST = 1.2, 0.7, 0.55
NUMBER_EACH_MOST, NUMBERS_MOST = 3.5, 2.0
RANGE_MOST = 2.2
# Means against the best bounds and range for them; and, of the larger half of groups, how many have a mean, against the
# same bounds: a group whose rows may be noise alone has none.
MEAN_EACH_MOST, MEANS_KNOWN_LEAST = 2.2, 0.9


def results() -> Iterator[Result]:
    """Yield every line; one whose table is not here says so."""
    compiled.compile_now()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for lines in (together, counts, sums, means, spreads, one_number, one_row_a_person, everywhere):
            yield from lines(folder)


def together(folder: Path) -> Iterator[Result]:
    """Yield the errors of count, sum and mean in one question: the task that other libraries are compared by."""
    path = write(PEERS.table, folder)
    cells = Cells(PEERS, path)
    truths = {"n": cells.by_group(cells.rows), "total": cells.by_group(cells.sums()), "mean": cells.means()}
    asked = {"n": tacit.count(), "total": tacit.sum("amount"), "mean": tacit.mean("amount")}
    runs = [ask(path, PEERS, cells.keys, **asked) for _ in range(RUNS)]
    for name, most in TOGETHER_MOST.items():
        some = cells.large() if name == "mean" else None
        yield Figure(f"{name} by item, all three asked", _error(name, truths[name], runs, some), most=most)


def counts(folder: Path) -> Iterator[Result]:
    """Yield counts by group against the oracle's, and how often their intervals hold what they should."""
    held: dict[str, Held] = {}
    ratios: dict[bool, list[float]] = {False: [], True: []}
    for task, path in _here(COUNTS, folder):
        if isinstance(path, str):
            yield Absent(f"count, {task.name}", path)
            continue
        cells = Cells(task, path)
        truth = cells.by_group(cells.rows)
        runs = [ask(path, task, cells.keys, n=tacit.count()) for _ in range(RUNS)]
        ours = _error("n", truth, runs)
        if task is PEERS:
            yield Figure("count by item", ours, most=COUNT_MOST)
            yield Error(
                "count by item, against 5 × 2", ours, oracle.hand_set_count(cells, *oracle.GUESS), COUNT_OF_GUESS
            )
        yield (line := Error(f"count, {task.name}", ours, oracle.best_count(cells), _limit(task)))
        ratios[task.foreign].append(line.value)
        held[task.name] = held_counts(cells, runs, "n")
    yield from _means_of("counts", ratios, COUNTS_MOST)
    yield from held_lines("", held)


def sums(folder: Path) -> Iterator[Result]:
    """Yield sums by group against the oracle's, and how often their intervals hold what they should."""
    held: dict[str, Held] = {}
    ratios: dict[bool, list[float]] = {False: [], True: []}
    for task, path in _here(SUMS, folder):
        if isinstance(path, str):
            yield Absent(f"sum, {task.name}", path)
            continue
        cells = Cells(task, path)
        runs = [ask(path, task, cells.keys, s=tacit.sum(str(task.value))) for _ in range(RUNS)]
        ours = _error("s", cells.by_group(cells.sums()), runs)
        if task is PEERS:
            yield Figure("sum by item", ours, most=SUM_MOST)
            guess = oracle.hand_set_sum(cells, *oracle.GUESS, high=100.0)
            yield Error("sum by item, against 5 × 2", ours, guess, SUM_OF_GUESS)
        yield (line := Error(f"sum, {task.name}", ours, oracle.best_sum(cells), _limit(task)))
        ratios[task.foreign].append(line.value)
        held[task.name] = held_sums(cells, runs, "s")
    yield from _means_of("sums", ratios, SUMS_MOST)
    yield from held_lines(" of sums", held)


def means(folder: Path) -> Iterator[Result]:
    """Yield means of the larger half of the groups, asked alone, against the best bounds and range for them.

    How often intervals hold is of the means that are shown.
    """
    held: dict[str, Held] = {}
    for task, path in _here(MEANS, folder):
        if isinstance(path, str):
            yield Absent(f"mean, {task.name}", path)
            continue
        cells = Cells(task, path)
        runs = [ask(path, task, cells.keys, mean=tacit.mean(str(task.value))) for _ in range(RUNS)]
        large = cells.large()
        best = oracle.best_mean(cells)
        yield Error(f"mean, {task.name}", _error("mean", cells.means(), runs, large), best.error, MEAN_EACH_MOST)
        known = fmean(float(np.isfinite(run.values["mean"][large]).mean()) for run in runs)
        yield Figure(f"share of means that are known, {task.name}", known)
        yield Figure(f"share of means that are known, {task.name}, best bounds by hand", best.known)
        yield Figure(f"known means against the best bounds by hand, {task.name}", known / best.known, MEANS_KNOWN_LEAST)
        if (found := held_means(cells, runs, "mean")) is not None:
            held[task.name] = found
    yield from held_lines(" of means", held)


def spreads(folder: Path) -> Iterator[Result]:
    """Yield standard deviations of the larger half of the groups against the oracle's; and correlations alone."""
    for task, path in _here(SPREADS, folder):
        if isinstance(path, str):
            yield Absent(f"std, {task.name}", path)
            continue
        cells = Cells(task, path)
        runs = [ask(path, task, cells.keys, s=tacit.std(str(task.value))) for _ in range(RUNS_OF_SPREADS)]
        yield Error(f"std, {task.name}", _error("s", cells.deviations(), runs, cells.large()), oracle.best_std(cells))
    for task, other in PAIRS:
        try:
            path = write(task.table, folder)
        except NoTable as absent:
            yield Absent(f"correlation, {task.name}", str(absent))
            continue
        cells = Cells(task, path)
        asked = tacit.correlation(str(task.value), other)
        runs = [ask(path, task, cells.keys, r=asked) for _ in range(RUNS_OF_SPREADS)]
        found = np.stack([run.values["r"] for run in runs])[:, cells.large()]
        truth = correlations(task, other, path, cells.keys)[cells.large()]
        known = np.isfinite(found)  # in some runs no group is
        error = float(np.abs(found - truth)[known].mean()) if known.any() else 1.0
        yield Figure(f"correlation with {other}, {task.name}", error)
        yield Figure(f"share of correlations that are known, {task.name}", float(known.mean()))


def one_number(folder: Path) -> Iterator[Result]:
    """Yield one number of a whole table against clipping people at the best place."""
    ratios: dict[bool, list[float]] = {False: [], True: []}
    for number, path in _here(NUMBERS, folder):
        if isinstance(path, str):
            yield Absent(number.name, path)
            continue
        sizes = totals(number, path)
        aggregate = tacit.count() if number.value is None else tacit.sum(number.value)
        truth = float(sizes.sum())
        runs = [ask_one(open_table(path, number.unit), x=aggregate) for _ in range(RUNS_OF_ONE_NUMBER)]
        ours = fmean(abs(run - truth) for run in runs)
        limit = None if number.foreign else NUMBER_EACH_MOST
        yield (line := Error(f"one number, {number.name}", ours, oracle.best_clip(sizes), limit))
        ratios[number.foreign].append(line.value)
    yield from _means_of("one number", ratios, NUMBERS_MOST)


def one_row_a_person(folder: Path) -> Iterator[Result]:
    """Yield means by group where each row is a person, against the best range that could be declared."""
    for task, ends in (ADULT_GAIN, GAINS), (ADULT_HOURS, HOURS):
        name, value = f"mean {task.value} by {task.by}", str(task.value)
        try:
            path = write(task.table, folder)
        except NoTable as absent:
            yield Absent(name, str(absent))
            continue
        cells = Cells(task, path)
        by_row = replace(task, unit=tacit.ROW)
        declared = min(_mean_error(cells, path, by_row, tacit.mean(value, between=each)) for each in ends)
        for asked in (by_row, task):
            ours = _mean_error(cells, path, asked, tacit.mean(value))
            unit = "a row" if asked is by_row else task.unit
            yield Error(f"{name}, unit {unit}", ours, declared, RANGE_MOST)


def _mean_error(cells: Cells, path: Path, task: Task, mean: Any) -> float:
    runs = [ask(path, task, cells.keys, mean=mean) for _ in range(RUNS_OF_RANGES)]
    return _error("mean", cells.means(), runs, cells.large())


def everywhere(folder: Path) -> Iterator[Result]:
    """Yield counts where everyone is in every group."""
    task = Task("everywhere", "person", "cell")
    path = write(task.table, folder)
    cells = Cells(task, path)
    runs = [ask(path, task, cells.keys, n=tacit.count()) for _ in range(RUNS)]
    ours = _error("n", cells.by_group(cells.rows), runs)
    yield Error("count, everyone in every group", ours, oracle.best_count(cells))


def _here(tasks: Iterable[Any], folder: Path) -> Iterator[tuple[Any, Path | str]]:
    """Yield each task with its file, or with why it is not here."""
    for task in tasks:
        try:
            yield task, write(task.table, folder)
        except NoTable as absent:
            yield task, str(absent)


def _limit(task: Task) -> float | None:
    return None if task.foreign else EACH_MOST


def _error(name: str, truth: np.ndarray, runs: list[Asked], of: np.ndarray | None = None) -> float:
    """Return the mean absolute error of one aggregate over runs and groups, all or some, where it is known."""
    some = slice(None) if of is None else of
    return fmean(float(np.nanmean(np.abs(run.values[name] - truth)[some])) for run in runs)


def _means_of(what: str, ratios: Mapping[bool, list[float]], most: float) -> Iterator[Result]:
    """Yield the geometric means of ratios to the oracle, on known tables and on foreign ones."""
    for foreign, each in ratios.items():
        if each:
            name = f"{what}, geometric mean of {len(each)} tasks, {'foreign' if foreign else 'known'} tables"
            yield Figure(name, geometric_mean(each), most=float("inf") if foreign else most)
