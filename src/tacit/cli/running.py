"""`tacit running`: a count that runs on, charged once by `start`; `step` releases the days that are over, free.

`plan` shows the cost and the errors before; `show` prints the released days again. The words that say which count it is
are the same for all four.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from tacit.cli.options import ANSWER, TableOptions, flag, open_table, opening, option, required, with_options
from tacit.cli.screen import check_plot, say, working

if TYPE_CHECKING:
    from tacit.answer import Answer
    from tacit.asking import Running

app: typer.Typer = typer.Typer(rich_markup_mode="markdown", pretty_exceptions_enable=False, no_args_is_help=True)


@dataclass(frozen=True, kw_only=True)
class RunningOptions:
    """Which count a command line is about."""

    day: str = required("COLUMN", "The column of dates or times.")
    until: str = required("DAY", "The last day, as 2028-12-31: the charge is for all days up to it.")
    since: str | None = option("DAY", ANSWER, "The first day; the day of the start if left out.")
    zone: str | None = option("ZONE", ANSWER, "The time zone of the days, such as Europe/Berlin; times need one.")
    where: str | None = option("SQL", ANSWER, "Of which rows.")
    most: int | None = option("N", ANSWER, "Count rows, the first N of each unit; units if left out.")


@app.callback()
def running() -> None:
    """Count day after day: charged once, each day's number drawn once and kept.

    `tacit running plan visits --day day --until 2028-12-31 --epsilon 1` shows the cost, for free.

    `tacit running start visits --day day --until 2028-12-31 --epsilon 1` charges for all days.

    `tacit running step visits --day day --until 2028-12-31` releases the days that are over: run it every day.
    """


@app.command()
@with_options
def plan(
    options: TableOptions, wanted: RunningOptions, *, epsilon: str = required("E", "The cost of all days.")
) -> None:
    """Show the cost of a running count, and how far each total will be off: free, and no row is read."""
    say(str(_count(options, wanted, to_plan=True).plan(epsilon, analyst=options.analyst)))


@app.command()
@with_options
def start(
    options: TableOptions, wanted: RunningOptions, *, epsilon: str = required("E", "The cost of all days.")
) -> None:
    """Charge for all days at once, before a row is read; the same start again is free."""
    _count(options, wanted, to_plan=True).plan(epsilon, analyst=options.analyst)  # refused before a budget is declared
    count = _count(options, wanted, to_plan=False).start(epsilon, analyst=options.analyst)
    say(f"Started: {count.words}. Next, when a day is over: tacit running step, with the same words.")


@app.command()
@with_options
def step(
    options: TableOptions,
    wanted: RunningOptions,
    *,
    json: bool = flag(ANSWER, "Print JSON.", name="--json"),
    plot: str | None = option("FILE", ANSWER, "Draw the totals: .png, .svg or .html."),
) -> None:
    """Release the days that are over since the last step: free, each day's number drawn once and kept."""
    check_plot(plot)
    with working("counting"):
        answer = _count(options, wanted, to_plan=False).step(analyst=options.analyst)
    _write(answer, plot, as_json=json)


@app.command()
@with_options
def show(
    options: TableOptions,
    wanted: RunningOptions,
    *,
    json: bool = flag(ANSWER, "Print JSON.", name="--json"),
    plot: str | None = option("FILE", ANSWER, "Draw the totals: .png, .svg or .html."),
) -> None:
    """Print the totals of all released days again: free, and no row is read."""
    check_plot(plot)
    _write(_count(options, wanted, to_plan=False).show(analyst=options.analyst), plot, as_json=json)


def _count(options: TableOptions, wanted: RunningOptions, *, to_plan: bool) -> "Running":
    table, _ = open_table(options, opening(), to_plan=to_plan)
    rows = table if wanted.where is None else table.where(wanted.where)
    days = rows.running(wanted.day, until=wanted.until, since=wanted.since, zone=wanted.zone)
    return days.count_units() if wanted.most is None else days.count(rows_per_unit=wanted.most)


def _write(answer: "Answer", plot: str | None, *, as_json: bool) -> None:
    from tacit.answer import text_table

    if plot is not None:
        answer.plot(plot)
    say(answer.to_json() if as_json else text_table(answer, more=""))
