"""The parts of an answer's picture: keys become positions on an axis or groups, and aggregates become panels.

This file decides values only; `tacit.pictures` decides how a panel looks. A picture is post-processing: it shows the
numbers of the answer, and is free.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.answer.text import TOTAL, added_decimals, amounts, cell_text, key_text, special_label
from tacit.pictures import (
    NARROW,
    Order,
    Panel,
    Sheet,
    SheetCell,
    Spec,
    as_chart,
    as_svg,
    chart,
    page,
    themed,
    write,
)

if TYPE_CHECKING:
    from tacit.answer.answer import Answer

LETTERS_MOST = 44
LABELS_MOST = 120  # positions along an axis; further ones are left out, and a note states it
FACETS_MOST = 24
# Keys further apart than this many of their smallest gaps are separate positions, not points on a scale.
SPARSE = 4
# Aggregates drawn as bars from zero; every kind of aggregate that an answer has numbers of is here.
STARTS_AT_ZERO: Mapping[str, bool] = {
    "count": True,
    "count_units": True,
    "count_distinct": True,
    "sum": True,
    "mean": False,
    "variance": False,
    "std": False,
    "covariance": False,
    "correlation": False,
    "quantile": False,
    "computed": False,
    "running": True,
}
QUANTILE = re.compile(r"(?P<stem>.+)_p(?P<percent>\d+(?:_\d+)?)")


def picture(answer: Answer) -> Any:
    """Return the picture of an answer as an altair chart, which a notebook shows."""
    return as_chart(_panels_of(answer))


def write_picture(answer: Answer, path: Path) -> Path:
    """Write the picture of an answer in the format of the path's ending, and return the path."""
    return write(_panels_of(answer), path)


def svg_for_page(answer: Answer, *, narrow: bool) -> str:
    """Return the picture of an answer for a web page: as dark as the page, and narrow enough for a phone if asked."""
    return themed(as_svg(_panels_of(answer, narrow=narrow)))


def _panels_of(answer: Answer, *, narrow: bool = False) -> Spec:
    """Return the panels under a title with their content, confidence and cost."""
    drawn = sheet(answer)
    drawn = replace(drawn, size=NARROW) if narrow else drawn
    keys = [name for name in answer.columns if name not in answer.aggregates]
    what = ", ".join(name for name, _ in _panels(answer)) + (f" by {', '.join(keys)}" if keys else "")
    facts = answer.facts
    parts = [f"± at {float(facts.confidence) * 100:g} %", amounts(facts), f"protects {facts.unit}"]
    if any(panel.kind == "band" for panel in drawn.panels):
        parts.append("shaded: the interval of each day")
    if any(panel.kind == "fan" for panel in drawn.panels) and drawn.axis is not None:
        parts.append("shaded: between quantiles, palest or thin: intervals of the outermost, dark: of the middle")
    notes = ["; ".join([*parts, *([drawn.cut] if drawn.cut else [])])]
    size = drawn.size
    letters = size.title_letters, size.note_letters
    look: dict[str, Any] = {"legend": {"columns": 2, "labelLimit": size.labels}, "padding": 14, "between_labels": 14}
    return page(chart(drawn), title=what, notes=notes, letters=letters, **(look if narrow else {}))


def sheet(answer: Answer) -> Sheet:
    """Return what is drawn of an answer; with totals, a panel for each group with its total above it."""
    keys = [name for name in answer.columns if name not in answer.aggregates]
    answer = _with_labels(answer, keys)
    axis, group = _roles(answer, keys)
    labels = _keys_in_order(answer.rows, axis, group)
    groups = _keys_in_order(answer.rows, group, axis)
    order = _order(answer, axis)
    label_of, group_of = _labels(labels), _labels(groups)
    places = {key: _place(key[0]) if order != "none" else None for key in labels}
    shown_labels = set(labels[:LABELS_MOST]) if order == "none" else set(labels)
    shown_groups = set(groups[:FACETS_MOST])
    kept: list[tuple[Mapping[str, Any], str, Any, str]] = []
    for row in answer.rows:
        label, whose = _joined_names(row, axis), _joined_names(row, group)
        if label in shown_labels and whose in shown_groups:
            kept.append((row, label_of[label], places[label], group_of[whose]))
    if order != "none":
        kept.sort(key=lambda each: each[2])
    panels = tuple(_panel(answer, name, members, kept) for name, members in _panels(answer))
    if answer.rolled and group and order == "none" and all(panel.kind != "fan" for panel in panels):
        whole = " · ".join([TOTAL] * len(axis))
        found = [_panel_of_group(panel, each, whole) for panel in panels for each in group_of.values()]
        alone = [each.name.partition(", ")[2] for each in found if not each.cells]  # all of it is in the title
        return Sheet(
            panels=tuple(each for each in found if each.cells)[:FACETS_MOST],
            axis=", ".join(axis),
            order=order,
            group=None,
            labels=tuple(label_of[label] for label in labels if label in shown_labels and label_of[label] != whole),
            groups=(),
            cut="; ".join([*alone, *filter(None, [_words_of_cut(axis, len(labels), len(shown_labels))])]) or None,
        )
    return Sheet(
        panels=panels,
        axis=", ".join(axis) or None,
        order=order,
        group=", ".join(group) or None,
        labels=tuple(label_of[label] for label in labels if label in shown_labels),
        groups=tuple(group_of[each] for each in groups[:FACETS_MOST]) if group else (),
        cut=_words_of_cut(axis, len(labels), len(shown_labels)) or _words_of_cut(group, len(groups), len(shown_groups)),
    )


def _with_labels(answer: Answer, keys: Sequence[str]) -> Answer:
    """Return an answer whose totals and other groups have their labels as keys."""
    if not (answer.rolled or answer.others):
        return answer
    named = [
        {**row, **{name: special_label(answer, name, at, row[name]) or row[name] for name in keys}}
        for at, row in enumerate(map(dict, answer.rows))
    ]
    return replace(answer, rows=named)


def _panel_of_group(panel: Panel, group: str, whole: str) -> Panel:
    """Return the panel of one group, with its total in the title instead of among the rows."""
    cells = [cell for cell in panel.cells if cell.group == group]
    total = next((f": {cell.text} in all" for cell in cells if cell.label == whole), "")
    return Panel(f"{panel.name}, {group}{total}", panel.kind, tuple(cell for cell in cells if cell.label != whole))


def _roles(answer: Answer, keys: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return which keys go along the axis and which one tells groups apart: of two, the one with fewer values."""
    if len(keys) < 2:
        return list(keys), []
    sizes = {name: len({row[name] for row in answer.rows}) for name in keys}
    for name in keys:
        rest = [other for other in keys if other != name]
        if len(keys) == 2 and _order(answer, rest) != "none" and sizes[name] <= FACETS_MOST:
            return rest, [name]
    group = min(reversed(keys), key=lambda name: sizes[name])
    return [name for name in keys if name != group], [group]


def _order(answer: Answer, axis: Sequence[str]) -> Order:
    """Return whether the axis is a scale: one key of numbers or times, all present, without too wide a gap."""
    if len(axis) != 1:
        return "none"
    values = {row[axis[0]] for row in answer.rows}
    if not values or any(isinstance(value, bool) or value is None for value in values):
        return "none"
    if len(values) > 1 and all(isinstance(value, date) for value in values):
        return "time"
    if len(values) < 2 or not all(_is_number(value) for value in values):
        return "none"
    numbers = sorted(float(value) for value in values)
    gap = min(after - before for before, after in pairwise(numbers))
    fits = gap > 0 and (numbers[-1] - numbers[0]) / gap <= SPARSE * len(numbers) + 20
    return "number" if fits else "none"


def _is_number(value: Any) -> bool:
    return not isinstance(value, str | date) and math.isfinite(value) and abs(value) < 2**53


def _place(value: Any) -> int | float:
    if isinstance(value, datetime):
        return round((value.replace(tzinfo=None) - datetime(1970, 1, 1)).total_seconds() * 1000)  # noqa: DTZ001
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days * 86_400_000
    return value if isinstance(value, int) else float(value)


def _joined_names(row: Mapping[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def _keys_in_order(
    rows: Sequence[Mapping[str, Any]], names: Sequence[str], others: Sequence[str]
) -> list[tuple[Any, ...]]:
    """Return the distinct keys as the answer has them; by value where each of the other keys' rows are."""
    found = list(dict.fromkeys(_joined_names(row, names) for row in rows))
    if not others:
        return found
    runs: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    for row in rows:
        runs.setdefault(_joined_names(row, others), []).append(_joined_names(row, names))
    return sorted(found, key=_rank) if all(run == sorted(run, key=_rank) for run in runs.values()) else found


def _rank(key: tuple[Any, ...]) -> tuple[tuple[bool, bool, Any], ...]:
    # a label of a total is text beside keys that may be numbers
    return tuple((part is not None, isinstance(part, str), 0 if part is None else part) for part in key)


def _labels(keys: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], str]:
    """Return every key as a different text: NULL and the text 'NULL' have two positions."""
    found: dict[tuple[Any, ...], str] = {}
    taken: set[str] = set()
    for key in keys:
        label = _shortened(" · ".join(key_text(part) for part in key)) or "(empty)" * bool(key)
        alike = next(n for n in count(1) if (label if n == 1 else f"{label} ({n})") not in taken)
        found[key] = label if alike == 1 else f"{label} ({alike})"
        taken.add(found[key])
    return found


def _shortened(label: str) -> str:
    """Return a long label by its two ends, since labels that begin alike often end differently."""
    return label if len(label) <= LETTERS_MOST else f"{label[: LETTERS_MOST - 17]}…{label[-16:]}"


def _panels(answer: Answer) -> list[tuple[str, list[str]]]:
    """Return the panels in the answer's order: quantiles of one stem together, other aggregates separately."""
    stems: dict[str, list[str]] = {}
    for name in answer.columns:
        if name in answer.aggregates:
            found = QUANTILE.fullmatch(name)
            stems.setdefault(found["stem"] if found else name, []).append(name)
    panels: list[tuple[str, list[str]]] = []
    for stem, names in stems.items():
        if len(names) > 1 and all(QUANTILE.fullmatch(name) for name in names):
            panels.append((stem, sorted(names, key=_quantile_percent)))
        else:
            panels.extend((name, [name]) for name in names)
    return panels


def _panel(
    answer: Answer, name: str, members: Sequence[str], kept: Sequence[tuple[Mapping[str, Any], str, Any, str]]
) -> Panel:
    cells = []
    for row, label, place, group in kept:
        for member in members:
            value, low, high = (row[member + end] for end in ("", "_low", "_high"))
            at, start, end = (None if number is None else float(number) for number in (value, low, high))
            percent = _quantile_percent(member) if len(members) > 1 else 50.0
            text = cell_text(value, low, high, decimals=added_decimals(answer, value))
            cells.append(SheetCell(label, place, group, at, start, end, text, percent))
    if len(members) > 1:
        return Panel(name, "fan", tuple(cells))
    if answer.kinds.get(name) == "running":
        return Panel(name, "band", tuple(cells))
    return Panel(name, "bar" if _starts_at_zero(answer, members[0]) else "point", tuple(cells))


def _starts_at_zero(answer: Answer, name: str) -> bool:
    kind = answer.kinds.get(name)
    return answer.types.get(name) == "int" if kind is None else STARTS_AT_ZERO[kind]


def _quantile_percent(name: str) -> float:
    found = QUANTILE.fullmatch(name)
    return float(found["percent"].replace("_", ".")) if found else 50.0


def _words_of_cut(names: Sequence[str], all_of_them: int, shown: int) -> str | None:
    return f"drawn: the first {shown} of {all_of_them:,} {', '.join(names)}" if shown < all_of_them else None
