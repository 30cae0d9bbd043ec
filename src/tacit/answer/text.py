"""Print an answer: a table in the terminal or a notebook, ± where the interval is symmetric, and what it cost."""

from __future__ import annotations

import html
import io
import json
from collections.abc import Callable
from datetime import date, datetime
from fractions import Fraction
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from tacit.errors import printable

if TYPE_CHECKING:
    from tacit.answer.answer import Answer, AnswerInfo

ROWS_SHOWN = 60


def text_table(answer: Answer) -> str:
    """Return the answer as a plain-text table with its closing lines."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    head, body = cells(answer)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name, right in head:
        table.add_column(Text(name), justify="right" if right else "left", no_wrap=True)
    for row in body[:ROWS_SHOWN]:
        table.add_row(*[Text(cell) for cell in row])
    out = io.StringIO()
    width = sum(
        max([len(name), *[len(row[place]) for row in body[:ROWS_SHOWN]]]) + 3 for place, (name, _) in enumerate(head)
    )
    # in a notebook too the text is returned, not pushed to the screen
    Console(file=out, width=max(80, width), color_system=None, force_jupyter=False).print(table)
    lines = [line.rstrip() for line in out.getvalue().splitlines()]
    if len(body) > ROWS_SHOWN:
        lines.append(f"… and {len(body) - ROWS_SHOWN} more rows")
    return "\n".join([*lines, *closing_lines(answer)]).strip("\n")


# What a ledger keeps of an answer for people to read: so many rows, and so much of a cell.
ROWS_KEPT = 1000
CELL_KEPT = 200


def kept_text(answer: Answer) -> str:
    """Return the shown columns and cells of an answer, the ± among them, as a text that `kept_lines` reads."""
    head, body = cells(answer)
    rows = [[cell[:CELL_KEPT] for cell in row] for row in body[:ROWS_KEPT]]
    columns = [[name[:CELL_KEPT], right] for name, right in head]
    more = max(0, len(body) - ROWS_KEPT)
    return json.dumps({"columns": columns, "rows": rows, "more": more}, ensure_ascii=False, separators=(",", ":"))


def kept_lines(text: str) -> list[str]:
    """Return a table, line by line, from what `kept_text` wrote; a text of anyone else's may be refused."""
    kept = json.loads(text)
    columns, rows = [(str(name), bool(right)) for name, right in kept["columns"]], kept["rows"]
    cut = [[printable(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, [name, *column])) for (name, _), *column in zip(columns, *cut, strict=True)]

    def line(row: list[str]) -> str:
        placed = zip(row, widths, columns, strict=True)
        return "   ".join(cell.rjust(width) if right else cell.ljust(width) for cell, width, (_, right) in placed)

    lines = [line([printable(name) for name, _ in columns]), *map(line, cut)]
    more = [f"… and {int(kept['more']):,} more rows"] if kept["more"] else []
    return [*(each.rstrip() for each in lines), *more]


def html_table(answer: Answer) -> str:
    """Return the answer as an HTML table, every cell escaped."""
    head, body = cells(answer)
    sides = [f' style="text-align: {"right" if right else "left"}"' for _, right in head]
    names = "".join(f"<th{side}>{html.escape(name)}</th>" for (name, _), side in zip(head, sides, strict=True))
    rows = "".join(
        "<tr>" + "".join(f"<td{side}>{html.escape(cell)}</td>" for cell, side in zip(row, sides, strict=True)) + "</tr>"
        for row in body[:ROWS_SHOWN]
    )
    hidden = [f"… and {len(body) - ROWS_SHOWN} more rows"] if len(body) > ROWS_SHOWN else []
    closing = "<br>".join(html.escape(line) for line in (*hidden, *closing_lines(answer)))
    return f"<table><thead><tr>{names}</tr></thead><tbody>{rows}</tbody></table><p>{closing}</p>"


def html_lines(text: str) -> str:
    """Return lines of text for a notebook, escaped, and broken where the page is too narrow for them."""
    return f'<pre style="white-space: pre-wrap">{html.escape(text)}</pre>'


def closing_lines(answer: Answer) -> list[str]:
    """Return what the answer cost and promises."""
    facts = answer.facts
    spent = f"free: {_answered(facts)}" if facts.free else f"spent {facts.loss['text']}"
    lines = [f"{spent}; left: {facts.left['text']}", f"protected: {facts.unit}; neighbours: {facts.neighbours}"]
    if facts.free and facts.has_changed:
        later = facts.version + 1
        lines.append(
            f"The source was written since, and this is from before: declare version={later} (--version {later}, or in "
            "the tacit.toml) to ask the new rows."
        )
    if not facts.durable:
        lines.append("trying out: nothing is kept, so the budget protects nobody once this process ends.")
    return [printable(line) for line in (*lines, *facts.notes)]


def _answered(facts: AnswerInfo) -> str:
    """Return when it was answered and from which version of the table; an answer without a receipt has no time."""
    if facts.is_public:
        return "all of it is public"
    time = str(facts.receipt.get("time", ""))[:16].replace("T", " ")
    return f"answered {time} UTC, from version {facts.version}" if time else "this question was already answered"


def cells(answer: Answer) -> tuple[list[tuple[str, bool]], list[list[str]]]:
    """Return the shown columns (name, whether right-aligned) and every row's cells as text."""
    percent = f"{float(answer.facts.confidence) * 100:g} %"
    head: list[tuple[str, bool]] = []
    columns: list[list[str]] = []
    for name in answer.columns:
        if name not in answer.aggregates:
            head.append((key_text(name), False))
            columns.append([key_text(row[name]) for row in answer.rows])
            continue
        head.append((key_text(name), True))
        head.append((f"± {percent}", True))
        shown = [_value_and_bar(row[name], row[f"{name}_low"], row[f"{name}_high"]) for row in answer.rows]
        if answer.kinds.get(name) == "computed":  # NULL as the expression says, and no want of people
            shown = [(value, "" if value == "–" else bar) for value, bar in shown]
        columns.append([value for value, _ in shown])
        columns.append([bar for _, bar in shown])
    return head, [list(row) for row in zip(*columns, strict=True)]


def key_text(value: Any) -> str:
    """Return a key for people; NULL is written as NULL."""
    if value is None:
        return "NULL"
    if isinstance(value, datetime | date):
        return value.isoformat(sep=" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, Fraction):
        return f"{float(value):g}"
    return printable(str(value).replace("\r\n", "⏎").replace("\n", "⏎").replace("\r", "⏎"))


def _value_and_bar(value: Any, low: Any, high: Any) -> tuple[str, str]:
    if value is None:
        return "–", "not enough people"
    if low is None or high is None:
        return _number_text(value, _digits(abs(value) / 100)), "not known"
    digits = _digits(max(high - value, value - low))
    number = _number_text(value, digits)
    if abs((high - value) - (value - low)) <= 1e-9 * max(abs(high - low), 1e-300):
        return number, _number_text(_outwards(high - value, digits, ceil), digits)
    ends = _outwards(low, digits, floor), _outwards(high, digits, ceil)
    return number, " … ".join(_number_text(end, digits) for end in ends)


def _outwards(end: Any, digits: int, to_whole: Callable[[float], int]) -> Any:
    """Return an end rounded outwards to this many decimals; an excess of a float's last bits is ignored."""
    if isinstance(end, int) or abs(end) >= 2.0**53:
        return end
    scaled = end * 10.0**digits
    nearest = round(scaled)
    return (nearest if abs(scaled - nearest) <= 1e-9 * max(abs(scaled), 1.0) else to_whole(scaled)) / 10.0**digits


def cell_text(value: Any, low: Any, high: Any) -> str:
    """Return a number and its interval on one line."""
    number, bar = _value_and_bar(value, low, high)
    if value is None:
        return bar
    return f"{number}  ({bar})" if "…" in bar else f"{number} ± {bar}"


def _digits(bar: float) -> int:
    """Return how many decimals to show so that the bar has two digits that count."""
    if bar <= 0:
        return 6
    return min(max(1 - floor(log10(bar)), 0), 12)


def _number_text(value: Any, digits: int) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"
