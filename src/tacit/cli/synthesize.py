"""`tacit synthesize` makes rows of a protected table, charged once, as a Parquet file and as the tables behind them.

Without a file the rows are only planned, which is free.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tacit.cli.options import (
    TableOptions,
    flag,
    open_table,
    opening,
    option,
    required,
    with_options,
)
from tacit.cli.screen import say, working
from tacit.errors import InvalidParameter

Repeated = list[str] | None


@with_options
def synthesize(
    options: TableOptions,
    *,
    epsilon: str = required("E", "The cost of the rows, however many are made."),
    columns: str | None = option("NAMES", help="The columns to make, with commas between them; all but the unit's."),
    dates: Repeated = option("COLUMN=A:B", help="The public range of a column of dates or times. Can be repeated."),
    target: str | None = option("COLUMN", help="A column that models predict: its pairs count four times."),
    rule: Repeated = option("CONDITION", help="A rule that made-up rows keep. Can be repeated."),
    once: str | None = option(
        "NAMES", help="Several rows for each person: the columns with one value per person, or ''."
    ),
    order: str | None = option("COLUMN", help="With --once: the column by which a person's rows are in order."),
    out: str | None = option("FILE", help="The Parquet file to write; without it the rows are planned, for free."),
    count: int | None = option("N", help="How many rows to write; the noisy number of people if left out."),
    save: str | None = option("FILE", help="A file of JSON for the noisy tables, from which more rows can be made."),
    report: bool = flag(help="Print the errors of the rows against the noisy tables.", name="--report"),
) -> None:
    """Make rows that resemble a protected table, charged once; rows and reports are then free.

    Example: `tacit synthesize visits --epsilon 1 --columns age,ward,days --out made.parquet`
    """
    with working("making rows"):
        table, _ = open_table(options, opening(), to_plan=out is None)
        words: dict[str, Any] = {
            "columns": _columns(columns, dates or ()),
            "target": target,
            "rules": rule or (),
            "once": None if once is None else [name.strip() for name in once.split(",") if name.strip()],
            "order": order,
            "analyst": options.analyst,
        }
        if out is None:
            shown = str(table.synthesize.plan(epsilon, **words))
        else:
            made = table.synthesize(epsilon, **words)
            made.to_parquet(out, count)
            if save is not None:
                made.save(save)
            shown = f"{made}\nwrote {Path(out).name}" + (f"\n\n{made.report()}" if report else "")
    say(shown)


def _columns(names: str | None, dates: Sequence[str]) -> dict[str, object] | None:
    """Return the named columns with the ranges of those that are dates or times; None for all."""
    ranges: dict[str, object] = {}
    for each in dates:
        name, _, ends = each.partition("=")
        first, _, last = ends.partition(":")
        if not last:
            raise InvalidParameter(f"'{each}' is not a range of dates\nhint: --dates day=2026-01-01:2026-12-31")
        ranges[name] = (first, last)
    if names is None and ranges:
        raise InvalidParameter("ranges of dates need the columns to be named\nhint: --columns age,ward,day")
    if names is None:
        return None
    return {name.strip(): ranges.get(name.strip()) for name in names.split(",")}
