"""Print what a run measured: `python -m bench.questions.summary [FILE [BEFORE]]`, by question, and its figures.

By question and number at each epsilon, over tables: the geometric mean and the worst of error / oracle, half-width /
error, the share of intervals that hold, of groups that are shown, and the worst steadiness. With a second file, the
error and the half-width of each task are compared with those of the same task there; the tasks that changed most and
those that show less than half of the groups of before are listed. `--tables` prints a line for each task.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from bench.questions.figures import TASK, figures_of, geometric_mean, read, tasks_of
from bench.questions.runs import FILE
from bench.run import line

CHANGED = 12


def by_question(tasks: pd.DataFrame) -> Iterator[str]:
    """Yield a table of questions, tables with a unit and those of one row a person apart."""
    for by_row, of_unit in tasks[~tasks["aside"]].groupby("by_row"):
        head = "one row a person" if by_row else "a person has several rows"
        columns = "tasks  /oracle   worst  /person  half/error   held  shown  steady"
        yield f"\n{head:50} {'ε':>4}  {columns}"
        for (question, number, epsilon), some in of_unit.groupby(["question", "number", "epsilon"], sort=False):
            numbers = (
                f"{len(some):5d} {geometric_mean(some['to_oracle']):8.2f} {some['to_oracle'].max():7.2f}"
                f" {geometric_mean(some['to_person']):8.2f} {geometric_mean(some['width']):11.2f}"
                f" {some['held'].mean():6.3f} {some['shown'].mean():6.3f} {some['steadiness'].max():7.2f}"
            )
            yield f"{question + ': ' + number:50} {epsilon:>4g}  {numbers}"


def by_task(tasks: pd.DataFrame) -> Iterator[str]:
    """Yield a line for each task."""
    columns = ["runs", "groups", "shown", "relative", "relative_half", "to_oracle", "to_person", "width", "held"]
    yield tasks[[*TASK, *columns, "steadiness"]].round(4).to_string(index=False)


def compared(tasks: pd.DataFrame, before: pd.DataFrame) -> Iterator[str]:
    """Yield how errors and half-widths changed, by question, and the tasks that changed most."""
    both = tasks.merge(before, on=TASK, suffixes=("", "_before"))
    for what in ("error", "half"):
        both[what] = both[what] / both[f"{what}_before"]
    yield f"\n{'against the other file':50} tasks   error    half    held      shown"
    for (question, number), some in both.groupby(["question", "number"], sort=False):
        numbers = f"{len(some):5d} {geometric_mean(some['error']):7.2f} {geometric_mean(some['half']):7.2f}"
        held = (some["held"] - some["held_before"]).mean()
        shown = (some["shown"] - some["shown_before"]).mean()
        yield f"{question + ': ' + number:50} {numbers} {held:+7.3f}    {shown:+7.3f}"
    order = both.sort_values("error", key=lambda each: -(each.clip(1e-3, 1e3) - 1).abs())
    yield "\nmost changed: error and half-width over those before\n"
    yield order[[*TASK, "error", "half", "to_oracle", "to_oracle_before"]].head(CHANGED).round(2).to_string(index=False)
    fewer = both[both["shown"] < both["shown_before"] / 2]
    yield f"\nless than half of the groups of before are shown: {len(fewer)} tasks"
    if len(fewer):
        yield fewer[[*TASK, "shown", "shown_before"]].round(2).to_string(index=False)


def main(given: list[str]) -> None:
    """Print the summary of a file, beside another one if it is named."""
    files = [Path(each) for each in given if not each.startswith("--")]
    lines = read(files[0] if files else FILE)
    tasks = tasks_of(lines)
    for text in by_task(tasks) if "--tables" in given else by_question(tasks):
        print(text)
    if len(files) > 1:
        for text in compared(tasks, tasks_of(read(files[1]))):
            print(text)
    print()
    for figure in figures_of(lines):
        print(line("answers", figure))


if __name__ == "__main__":
    main(sys.argv[1:])
