"""The figures of the bench of answers, each with its limit, from the lines that runs.py wrote.

A task is one number of one question of one table at one epsilon. Its error is the mean absolute error over the groups
that are shown and over runs, and is divided by the mean of a baseline's expected errors of the same groups. An interval
holds if the number of the table as it is, with all rows, lies within it. Tables whose missing rows are those of a few
people (`aside`) are in no mean and have no limit of their own.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from bench.measure import Figure
from bench.questions.tables import BY_NAME, DEAR

TASK = ["table", "question", "number", "epsilon"]
LISTED = ("count by key, listed", "count by second key, listed")
FOUND = ("count by key, found", "count by second key, found")
TWO_KEYS = "count by two keys, found"
# The other questions with found keys, by question and number.
OTHERS = (
    ("sum by key, found", "sum"),
    ("mean by key, found", "mean"),
    ("count and mean by key, found", "count"),
    ("count and mean by key, found", "mean"),
    ("count by key where, found", "count"),
    (TWO_KEYS, "count"),
)
LISTED_MEAN, LISTED_WORST, FOUND_MEAN, FOUND_WORST, OTHERS_MEAN = 1.3, 2.2, 1.6, 3.2, 2.0
LARGE_GROUP, LARGE_SHOWN = 100, 0.9
STEADY_RUNS, STEADY_MOST = 5, 1.6
DEMO = {
    "count by key, found": ("count by ward", 0.01, 0.025),
    "count and mean by key, found": ("count and mean by ward", 0.02, 0.06),
}
HELD, HELD_TABLE, HELD_DEAR, ENOUGH_INTERVALS = 0.94, 0.90, 0.90, 100
WIDTH_MOST = 4.2
PERSON_MOST, VARIANCES_HELD = 1.0, 0.93


def read(path: Path) -> pd.DataFrame:
    """Return the lines of a file, with the error, half the interval's width and whether the interval holds."""
    lines = pd.DataFrame(map(json.loads, path.read_text().splitlines()))
    for column in ("truth", "value", "low", "high", "oracle", "person"):
        lines[column] = lines[column].astype(float)
    lines["shown"] = lines["value"].notna()
    lines["error"] = (lines["value"] - lines["truth"]).abs()
    lines["half"] = (lines["high"] - lines["low"]) / 2
    slack = 1e-9 * (1 + lines["truth"].abs())
    low, high = lines["low"].fillna(-np.inf), lines["high"].fillna(np.inf)
    inside = (low <= lines["truth"] + slack) & (lines["truth"] - slack <= high)
    has_interval = lines["shown"] & (lines["low"].notna() | lines["high"].notna())
    lines["held"] = inside.astype(float).where(has_interval)
    return lines


def tasks_of(lines: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each task."""
    shown = lines[lines["shown"]]
    sums = shown.groupby(TASK)[["error", "oracle", "person", "half", "held"]].mean()
    size = shown["truth"].abs().groupby([shown[each] for each in TASK]).mean()
    sums["relative"], sums["relative_half"] = sums["error"] / size, sums["half"] / size
    for baseline in ("oracle", "person"):
        sums[f"to_{baseline}"] = sums["error"] / sums[baseline]
    sums["width"] = sums["half"] / sums["error"]
    sums["steadiness"] = steadiness(shown)
    found = lines.groupby(TASK).agg(shown=("shown", "mean"), runs=("run", "nunique"), groups=("group", "nunique"))
    found = found.join(sums).reset_index()
    found["by_row"] = [BY_NAME[name].unit is None for name in found["table"]]
    found["aside"] = [bool(BY_NAME[name].aside) for name in found["table"]]
    return found


def steadiness(shown: pd.DataFrame) -> pd.Series:
    """Return for each task the 90th percentile of half-widths over runs by their median, averaged over groups."""
    by_group = shown.groupby([*TASK, "group"])["half"]
    found = (by_group.quantile(0.9) / by_group.median())[by_group.count() >= STEADY_RUNS]
    return found.groupby(TASK).mean()


def geometric_mean(values: pd.Series) -> float:
    """Return the geometric mean of what is above 0.

    >>> round(geometric_mean(pd.Series([1.0, 4.0, float("nan")])), 6)
    2.0
    """
    some = values[np.isfinite(values) & (values > 0)]
    return float(np.exp(np.log(some).mean())) if len(some) else float("nan")


def figures_of(lines: pd.DataFrame) -> Iterator[Figure]:
    """Yield every figure that the lines have numbers for."""
    for figure in _figures(lines):
        yield replace(figure, value=float(figure.value))


def _figures(lines: pd.DataFrame) -> Iterator[Figure]:
    tasks = tasks_of(lines)
    judged = tasks[~tasks["aside"]]
    one = judged[(judged["epsilon"] == 1) & ~judged["by_row"]]
    yield from _counts("listed keys", one[one["question"].isin(LISTED)], LISTED_MEAN, LISTED_WORST)
    yield from _counts("found keys", one[one["question"].isin(FOUND)], FOUND_MEAN, FOUND_WORST)
    yield from _large_groups(lines)
    for question, number in OTHERS:
        some = one[(one["question"] == question) & (one["number"] == number)]
        if len(some):
            name = f"{question}: {number} / oracle, mean of {len(some)} tasks"
            yield Figure(name, geometric_mean(some["to_oracle"]), most=OTHERS_MEAN)
    steady = judged[judged["epsilon"] == 1].dropna(subset=["steadiness"])
    if len(steady):
        worst = steady.loc[steady["steadiness"].idxmax()]
        name = f"90th percentile / median half-width, worst ({worst['table']}, {worst['question']}, {worst['number']})"
        yield Figure(name, worst["steadiness"], most=STEADY_MOST)
        above = (steady["steadiness"] > STEADY_MOST).mean()
        yield Figure(f"share of tasks with a 90th percentile above {STEADY_MOST:g} medians", above)
    yield from _demo(lines)
    yield from _held(lines)
    yield Figure("half-width / mean error, geometric mean", geometric_mean(judged["width"]), most=WIDTH_MOST)
    by_row = judged[judged["by_row"] & (judged["epsilon"] == 1)]
    if len(by_row):
        name = f"one row a person: error / sensible person, mean of {len(by_row)} tasks"
        yield Figure(name, geometric_mean(by_row["to_person"]), most=PERSON_MOST)
    rows = lines["table"].isin([name for name, table in BY_NAME.items() if table.unit is None])
    variances = lines[rows & (lines["number"] == "variance")]["held"].dropna()
    if len(variances):
        yield Figure("one row a person: intervals of variances that hold", variances.mean(), least=VARIANCES_HELD)


def _counts(name: str, some: pd.DataFrame, mean: float, worst: float) -> Iterator[Figure]:
    if len(some):
        of = f"{name}, counts / oracle"
        yield Figure(f"{of}, mean of {len(some)} tasks", geometric_mean(some["to_oracle"]), most=mean)
        far = some.loc[some["to_oracle"].idxmax()]
        yield Figure(f"{of}, worst ({far['table']}, {far['question']})", far["to_oracle"], most=worst)


def _large_groups(lines: pd.DataFrame) -> Iterator[Figure]:
    """Yield which share of large groups is shown; by two keys people have many groups, so there is no limit."""
    name = f"groups of {LARGE_GROUP} people or more that a first question shows"
    large = lines[(lines["epsilon"] == 1) & (lines["people"] >= LARGE_GROUP)]
    some = large[large["question"].isin(FOUND)]
    if len(some):
        yield Figure(name, some["shown"].mean(), least=LARGE_SHOWN)
        by_task = some.groupby(["table", "question"])["shown"].mean()
        yield Figure(f"{name}, worst ({', '.join(by_task.idxmin())})", by_task.min())
    pairs = large[large["question"] == TWO_KEYS]
    if len(pairs):
        yield Figure(f"{name}, two keys", pairs["shown"].mean())


def _demo(lines: pd.DataFrame) -> Iterator[Figure]:
    """Yield the worst run's mean error and half-width over wards, and those of the worst single ward."""
    shown = lines[(lines["table"] == "visits") & (lines["epsilon"] == 1) & lines["shown"]]
    for question, (name, *limits) in DEMO.items():
        some = shown[(shown["question"] == question) & (shown["number"] == "count")]
        runs = some.groupby("run")[["error", "half", "truth"]].mean()
        for what, words, most in zip(("error", "half"), ("error", "half-width"), limits, strict=True):
            if len(some):
                yield Figure(
                    f"demo, {name}: {words} of the worst of {len(runs)} runs",
                    (runs[what] / runs["truth"]).max(),
                    most=most,
                )
                yield Figure(f"demo, {name}: {words} of the worst single ward", (some[what] / some["truth"]).max())


def _held(lines: pd.DataFrame) -> Iterator[Figure]:
    aside = {name for name, table in BY_NAME.items() if table.aside}
    some = lines.dropna(subset=["held"])
    yield Figure(f"intervals that hold the table as it is, all {len(some)}", some["held"].mean(), least=HELD)
    by_table = some[(some["epsilon"] >= 1) & ~some["table"].isin(aside)].groupby("table")["held"].agg(["mean", "count"])
    by_table = by_table[by_table["count"] >= ENOUGH_INTERVALS]["mean"]
    if len(by_table):
        yield Figure(f"intervals that hold, worst table ({by_table.idxmin()})", by_table.min(), least=HELD_TABLE)
    dear = some[some["table"].str.startswith("claims") & (some["group"] == DEAR)]
    if len(dear):
        yield Figure("intervals that hold, dear group of claims", dear["held"].mean(), least=HELD_DEAR)
