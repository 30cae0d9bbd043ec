"""A published table's layout, the same in a workbook, CSV and HTML: groups down, one key's values across.

Numbers stay numbers. `[x]` stands for one that is hidden, `[z]` for a total that was not asked for, and `[low]` beside
one that is uncertain.
"""

import csv
import html
import io
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tacit.answer.text import OTHER, TOTAL, closing_lines, decimals_of, key_labels, special_label
from tacit.errors import InvalidParameter, QueryRefused, printable

if TYPE_CHECKING:
    from tacit.answer.answer import Answer

HIDDEN, UNASKED, UNSURE = "[x]", "[z]", "[low]"
LEGEND = (
    (HIDDEN, "The number is not shown: there are too few people for it."),
    (UNASKED, "The table does not have this number."),
    (UNSURE, "The number is uncertain: half of its interval is more than {limit} of it."),
)
_RUN_BY_SPREADSHEETS = "=+-@\t\r\n＝＋－＠"  # the last four are the wide forms, which some read as the others

Labels = tuple[str, ...]
CrossedCell = Mapping[str, Any] | str  # a row of the answer, or a mark
CrossedRow = tuple[Labels, Sequence[CrossedCell]]


def keys_down(answer: "Answer", columns: str | None, unsure_from: float) -> list[str]:
    """Return the keys that go down, if `columns` goes across; refuse a wrong name or limit."""
    keys = [name for name in answer.columns if name not in answer.aggregates]
    if columns is not None and columns not in keys:
        named = f"its keys are {', '.join(keys)}" if keys else "leave columns= out"
        raise QueryRefused(f"'{columns}' is not a key of this answer\nhint: {named}")
    if isinstance(unsure_from, bool) or not isinstance(unsure_from, int | float) or not unsure_from > 0:
        raise InvalidParameter("unsure_from must be above 0\nhint: 0.3 marks numbers that may be off by 30 % or more")
    return [key for key in keys if key != columns]


def crossed(answer: "Answer", down: Sequence[str], across: str | None) -> tuple[list[str], list[CrossedRow]]:
    """Return the labels of columns, totals last, and each row with its labels and a row of the answer in each column.

    Groups are told apart by their values, and not by their labels. A place without a row has its mark: too few people,
    or a level of totals that was not asked for.
    """
    beside = list(zip(*(_labelled_keys(answer, key) for key in down), strict=True)) or [()] * len(answer.rows)
    above = [(0, "", None)] * len(answer.rows) if across is None else _labelled_keys(answer, across)
    found = {(keys, head): row for keys, head, row in zip(beside, above, answer.rows, strict=True)}
    columns = sorted(dict.fromkeys(above), key=lambda key: key[0])
    levels = {_level(keys, head) for keys, head in found}
    rows: list[CrossedRow] = []
    for keys in dict.fromkeys(beside):
        empty = {head: HIDDEN if _is_asked(keys, head, levels) else UNASKED for head in columns}
        rows.append((tuple(label for _, label, _ in keys), [found.get((keys, each), empty[each]) for each in columns]))
    return [label for _, label, _ in columns], rows


_Key = tuple[int, str, Any]  # 2 for a total, 1 for other groups; its label; its value


def _labelled_keys(answer: "Answer", name: str) -> list[_Key]:
    labels = key_labels(answer, name)
    values = [row[name] for row in answer.rows]
    ranks = [{TOTAL: 2, OTHER: 1}.get(special_label(answer, name, at, value), 0) for at, value in enumerate(values)]
    return list(zip(ranks, labels, values, strict=True))


def _is_asked(keys: Sequence[_Key], head: _Key, levels: Collection[tuple[bool, ...]]) -> bool:
    """Whether a place could have a number: its level was asked for, and other groups are not divided further."""
    return _level(keys, head) in levels and all(rank != 1 for rank, _, _ in (*keys, head))


def _level(keys: Sequence[_Key], head: _Key) -> tuple[bool, ...]:
    return tuple(rank == 2 for rank, _, _ in (*keys, head))


def cell_of(found: Mapping[str, Any] | str, name: str) -> Any:
    return found if isinstance(found, str) else HIDDEN if found[name] is None else found[name]


def ends_of(found: Mapping[str, Any] | str, name: str) -> tuple[Any, Any]:
    """Return the interval of a number of a crossed cell; None for its ends if it has none."""
    return (None, None) if isinstance(found, str) else (found[f"{name}_low"], found[f"{name}_high"])


def is_unsure(value: Any, ends: tuple[Any, Any], unsure_from: float) -> bool:
    """Return whether half of a number's interval is more than a part of it."""
    return not isinstance(value, str) and None not in ends and bool((ends[1] - ends[0]) / 2 > unsure_from * abs(value))


def defused(value: Any) -> Any:
    """Return a text that a spreadsheet would run with a quote before it."""
    return "'" + value if isinstance(value, str) and value[:1] in _RUN_BY_SPREADSHEETS and value else value


def wide_csv(answer: "Answer", columns: str, unsure_from: float) -> str:
    """Return a row for each number and group: its numbers across, then their low and high ends, then what is "
    "uncertain."""
    down = keys_down(answer, columns, unsure_from)
    across, rows = crossed(answer, down, columns)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = [f"{label}, {end}" for label in across for end in ("low", "high")]
    writer.writerow([defused(printable(name)) for name in ("number", *down, *across, *heads, UNSURE)])
    for name in answer.aggregates:
        for labels, found in rows:
            values = [cell_of(each, name) for each in found]
            spans = [ends_of(each, name) for each in found]
            known = zip(across, values, spans, strict=True)
            unsure = [label for label, value, span in known if is_unsure(value, span, unsure_from)]
            ends = [cell_of(each, f"{name}_{end}") for each in found for end in ("low", "high")]
            numbers = [each if isinstance(each, str) else _plain_number(each) for each in (*values, *ends)]
            writer.writerow([*(defused(each) for each in (name, *labels)), *numbers, defused(" ".join(unsure))])
    return out.getvalue()


def html_page(answer: "Answer", columns: str | None, title: str | None, unsure_from: float) -> str:
    """Return a table of HTML for each number, with ± beside it and notes below; every text is escaped."""
    down = keys_down(answer, columns, unsure_from)
    across, rows = crossed(answer, down, columns)
    tables = []
    for name in answer.aggregates:
        head = "".join(f'<th scope="col">{_escaped(each)}</th>' for each in (*down, *(each or name for each in across)))
        body = "".join(
            "<tr>"
            + "".join(f'<th scope="row">{_escaped(label)}</th>' for label in labels)
            + "".join(f"<td>{_html_cell(found, name, unsure_from)}</td>" for found in cells)
            + "</tr>\n"
            for labels, cells in rows
        )
        caption = f"{title}: {name}" if title else name
        inner = f"<caption>{_escaped(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}</tbody>"
        tables.append(f"<table>{inner}</table>")
    marks = [f"{mark} {text.format(limit=f'{unsure_from:.0%}')}" for mark, text in LEGEND]
    notes = [*closing_lines(answer, more=""), *marks]
    below = "".join(f"<p>{_escaped(line)}</p>\n" for line in (*notes, *certificate_lines(answer)))
    return "\n".join([*tables, below])


def map_json(answer: "Answer", areas: str) -> dict[str, Any]:
    """Return the numbers by the label of an area, to be joined with shapes that have the same names."""
    down = keys_down(answer, areas, 1.0)
    found: dict[str, list[dict[str, Any]]] = {}
    beside = [key_labels(answer, key) for key in down]
    for at, (label, row) in enumerate(zip(key_labels(answer, areas), answer.rows, strict=True)):
        numbers = {
            f"{name}{end}": None if row[f"{name}{end}"] is None else _plain_number(row[f"{name}{end}"])
            for name in answer.aggregates
            for end in ("", "_low", "_high")
        }
        found.setdefault(label, []).append(dict(zip(down, (each[at] for each in beside), strict=True)) | numbers)
    return {
        "key": areas,
        "confidence": float(answer.facts.confidence),
        "areas": found,
        "notes": certificate_lines(answer),
    }


def certificate_lines(answer: "Answer") -> list[str]:
    receipt = answer.facts.receipt
    return [f"Certificate: entry {receipt['entry']} of ledger {receipt['ledger']}."] if "entry" in receipt else []


def _html_cell(found: Mapping[str, Any] | str, name: str, unsure_from: float) -> str:
    value, ends = cell_of(found, name), ends_of(found, name)
    if isinstance(value, str):
        return value
    mark = f" {UNSURE}" if is_unsure(value, ends, unsure_from) else ""
    low, high = (None if end is None else f"{_plain_number(end):,}" for end in ends)
    return f"{_plain_number(value):,}{mark}" + (f" <small>{low} … {high}</small>" if low and high else "")


def _plain_number(value: Any) -> int | float:
    decimals = decimals_of(value)
    return int(value) if decimals == 0 else value if decimals is not None else float(f"{float(value):.6g}")


def _escaped(text: str) -> str:
    return html.escape(printable(text))
