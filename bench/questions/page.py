"""docs/benchmarks/answers.md, from the lines that `make bench ONLY=answers` wrote: `python -m bench.questions.page`."""

import platform
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd

from bench.learned.page import machine, row
from bench.questions.figures import FOUND, LISTED, STEADY_RUNS, figures_of, geometric_mean, read, tasks_of
from bench.questions.runs import FILE
from bench.questions.tables import BY_NAME, FRESH
from bench.run import record

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "benchmarks" / "answers.md"
INTRO = """\
# Everyday questions, with only the unit declared

`make bench ONLY=answers` asks counts, sums, means, shares and variances of {tables} tables: {real} real ones, the table
of `tacit demo`, and others made by a law. Only the unit is declared. Every run asks a table that was never asked
before, so ε pays for the bounds and the groups that are learned, and for the answer. The budget is 3 ε with δ = 1e-6.

- **Error**: the mean absolute error over the groups that are shown and over the runs, against all rows of the table.
- **Oracle**: the best cap, with the true error in view, at the whole ε: L1 with Laplace or L2 with Gaussian noise.
  Means and variances also have the best range and division of ε. The oracle is given all keys and learns nothing.
- **Sensible person**: a cap at the true 99th percentile of people's rows, rounded up to 1, 2 or 5 times a power of ten,
  a range that was looked up, and Laplace noise at the whole ε. The keys are given.
- **Held**: the share of 95 % intervals that hold the number of the whole table, with no rows left out.
- **Steadiness**: the 90th percentile of an interval's half-width over runs, divided by the median.

{aside}
"""


def page(lines: pd.DataFrame, measured: str) -> str:
    """Return the page's text."""
    tasks = tasks_of(lines)
    names = [name for name in BY_NAME if name in set(lines["table"])]
    aside = [f"{name} ({BY_NAME[name].aside})" for name in names if BY_NAME[name].aside]
    told = f"Tables that are in no mean and have no limit: {'; '.join(aside)}." if aside else ""
    real = sum(is_real(name) for name in names)
    records = [record("answers", figure) for figure in figures_of(lines)]
    missed = [each["name"] for each in records if not each["met"]]
    return "\n".join(
        [
            INTRO.format(tables=len(names), real=real, aside=told),
            f"Measured {measured}; {runs_of(tasks)}, {len(lines):,} numbers.\n",
            "## Figures and limits\n",
            "| line | measured | | | promised | met |",
            "|---|---|---|---|---|---|",
            *map(row, records),
            "",
            f"Missed: {'; '.join(missed)}." if missed else "No promise is missed.",
            "\n## Counts by key at ε = 1, keys listed and keys found\n",
            *side_by_side(tasks),
            *fresh(lines),
            "\n## By question\n",
            *by_question(tasks),
            "",
        ]
    )


def runs_of(tasks: pd.DataFrame) -> str:
    """Return how often questions were asked, and what few runs mean for the figures."""
    low, often, high = (int(tasks["runs"].quantile(each)) for each in (0, 0.5, 1))
    words = f"{often} runs of most questions, {low} to {high} of each"
    if often < STEADY_RUNS:
        words += f" (with fewer than {STEADY_RUNS} there is no steadiness, and the worst of many tasks is partly luck)"
    return words


def fresh(lines: pd.DataFrame) -> Iterator[str]:
    """Yield the figures of the tables that no rule was chosen with."""
    some = lines[lines["table"].isin(FRESH)]
    if len(some):
        yield "\n## Tables that no rule was chosen with\n"
        yield f"The figures of {', '.join(name for name in FRESH if name in set(some['table']))} by themselves.\n"
        yield "| line | measured | | | promised | met |"
        yield "|---|---|---|---|---|---|"
        yield from (row(record("answers", figure)) for figure in figures_of(some) if np.isfinite(figure.value))


def is_real(name: str) -> bool:
    """Return whether a table was published by others, rather than made by a law or by the demo."""
    made = getattr(BY_NAME[name].write, "func", None)
    return name != "visits" and getattr(made, "__name__", "") != "write_law"


def side_by_side(tasks: pd.DataFrame) -> Iterator[str]:
    """Yield a line for each table and key, listed beside found."""
    yield "| table | key | groups | listed: error | ± | / oracle | held | found: error | ± | / oracle | held | shown |"
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    one = tasks[tasks["epsilon"] == 1].set_index(["question", "table"])
    for place, (listed, found) in enumerate(zip(LISTED, FOUND, strict=True)):
        for name, table in BY_NAME.items():
            if (listed, name) in one.index and (found, name) in one.index:
                left, right = one.loc[(listed, name)], one.loc[(found, name)]
                both = f"{numbers(left)} | {numbers(right)} | {right['shown']:.0%}"
                yield f"| {name} | {table.keys[place]} | {left['groups']} | {both} |"


def numbers(task: pd.Series) -> str:
    """Return the cells of a task: error, half-width, error over the oracle's, intervals that hold."""
    return f"{task['relative']:.2%} | {task['relative_half']:.2%} | {task['to_oracle']:.2f} | {task['held']:.0%}"


def by_question(tasks: pd.DataFrame) -> Iterator[str]:
    """Yield a line for each question, number, and epsilon: geometric means over tables."""
    yield "| rows a person | question | number | ε | tasks | / oracle | worst | / person | ± / error | held | shown |"
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for at, some in tasks[~tasks["aside"]].groupby(["by_row", "question", "number", "epsilon"]):
        by_row, question, number, epsilon = at
        ratios = (geometric_mean(some["to_oracle"]), some["to_oracle"].max(), geometric_mean(some["to_person"]))
        cells = [*(f"{each:.2f}" for each in (*ratios, geometric_mean(some["width"])))]
        cells += [f"{some['held'].mean():.1%}", f"{some['shown'].mean():.1%}"]
        head = f"{'one' if by_row else 'several'} | {question} | {number} | {epsilon:g} | {len(some)}"
        yield f"| {head} | {' | '.join(cells)} |"


def main() -> int:
    """Write the page; 1 if nothing was measured."""
    if not FILE.exists():
        print("nothing is measured yet: make bench ONLY=answers", file=sys.stderr)
        return 1
    when = datetime.fromtimestamp(FILE.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M UTC")
    PAGE.write_text(page(read(FILE), f"{when}, Python {platform.python_version()}, {machine()}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
