"""Panels of lines, with levels across them and one curve to read them against, as plain Vega-Lite.

Colours are Okabe and Ito's, and every line has its own mark and dashes too.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tacit.pictures.writer import INK, PALE, Spec, nominal, page, quantity

TITLE_LETTERS, NOTE_LETTERS = 90, 156
WIDTH, HEIGHT = 400, 290


@dataclass(frozen=True)
class Look:
    """How one line looks: its words in the legend, colour, mark, dashes, and how large the mark is."""

    words: str
    colour: str
    shape: str = "circle"
    dash: tuple[int, ...] = (1, 0)
    size: int = 60
    joined: bool = True  # a line through the marks


@dataclass(frozen=True)
class LevelLine:
    """A thin line across a panel, with words above or below it, at its right end or at a distance from its left."""

    height: float
    words: str
    below: bool = False
    left: int | None = None


@dataclass(frozen=True)
class Axis:
    """An axis in words; on a logarithmic one the values that are written."""

    words: str
    log: bool = False
    values: tuple[float, ...] | None = None
    form: str = "~g"
    domain: tuple[float, float] | None = None
    zero: bool = False

    def encoding(self, field: str) -> Spec:
        scale: Spec = {"type": "log"} if self.log else {"zero": self.zero}
        if self.domain is not None:
            scale |= {"domain": list(self.domain), "nice": False}
        else:
            scale |= {"nice": False, "padding": 10}
        axis: Spec = {"format": self.form, "labelFlush": False, "labelOverlap": True, "tickCount": 6}
        if self.values is not None:
            axis["values"] = list(self.values)
        return quantity(field, title=self.words, axis=axis, scale=scale)


def line_panel(
    points: Iterable[tuple[str, float, float]],
    looks: Mapping[str, Look],
    *,
    x: Axis,
    y: Axis,
    title: str | None = None,
    levels: Sequence[LevelLine] = (),
    curve: Sequence[tuple[float, float, str]] = (),
    more: Sequence[Spec] = (),
    legend: Literal["top", "bottom"] = "bottom",
    width: int = WIDTH,
    height: int = HEIGHT,
) -> Spec:
    """Return a panel of lines through (name, x, y), with named levels across it and one dashed curve."""
    values = [{"line": looks[name].words, "x": at, "y": up, "size": looks[name].size} for name, at, up in points]
    names = [look.words for look in looks.values()]
    place: Spec = {"x": x.encoding("x"), "y": y.encoding("y")}
    colour = _by_line(names, [look.colour for look in looks.values()], legend)
    joined = {look.words for look in looks.values() if look.joined}
    dashes = _by_line(names, [list(look.dash) for look in looks.values()], legend) | {"legend": None}
    through = {
        "data": {"values": [value for value in values if value["line"] in joined]},
        "mark": {"type": "line", "strokeWidth": 2.2},
        "encoding": place | {"color": colour, "strokeDash": dashes},
    }
    size = quantity("size", scale=None, legend=None)
    marks: Spec = {
        "data": {"values": values},
        "mark": {"type": "point", "filled": True, "opacity": 1},
        "encoding": place | {"color": colour, "size": size},
    }
    marks["encoding"]["shape"] = _by_line(names, [look.shape for look in looks.values()], legend)
    layer = [*_levels(levels, y, width), *_dashed_curve(curve, x, y), *([through] if joined else []), marks, *more]
    panel: Spec = {"width": width, "height": height, "layer": layer}
    return panel | ({"title": _panel_title(title)} if title else {})


def mark_at(x: float, words: str, *, axis: Axis, side: str = "left", down: int = 10) -> list[Spec]:
    """Return a line from top to bottom with words beside it."""
    data = {"values": [{"x": x, "words": words}]}
    place = axis.encoding("x")
    text = {"type": "text", "align": side, "dx": 6 if side == "left" else -6, "fontSize": 12, "color": PALE}
    return [
        {"data": data, "mark": {"type": "rule", "color": PALE, "strokeDash": [4, 3]}, "encoding": {"x": place}},
        {
            "data": data,
            "mark": text | {"baseline": "top", "lineBreak": "\n"},
            "encoding": {"x": place, "y": {"value": down}, "text": nominal("words")},
        },
    ]


def side_by_side(panels: Sequence[Spec], *, title: str, notes: Sequence[str]) -> Spec:
    """Return panels side by side under one title, each with its own legend."""
    body = panels[0] if len(panels) == 1 else {"hconcat": list(panels), "spacing": 46}
    if len(panels) > 1:
        own = dict.fromkeys(("color", "shape", "strokeDash"), "independent")
        body["resolve"] = {"scale": own, "legend": {"color": "independent", "shape": "independent"}}
    letters = (TITLE_LETTERS, NOTE_LETTERS) if len(panels) > 1 else (TITLE_LETTERS * 2 // 3, NOTE_LETTERS // 2)
    legend = {"labelLimit": 400, "columns": 1, "offset": 12}
    return page(body, title=title, notes=notes, letters=letters, offset=16, legend=legend)


def decades(low: float, high: float) -> tuple[float, ...]:
    """Return the powers of ten from below `low` to above `high`."""
    return tuple(10.0**power for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1))


def _by_line(names: list[str], looks: list[Any], legend: str) -> Spec:
    """Return how one property distinguishes the lines; properties with equal domains share one legend."""
    return nominal(
        "line",
        title=None,
        scale={"domain": names, "range": looks},
        legend={"orient": legend, "symbolStrokeWidth": 0, "symbolSize": 90},
    )


def _levels(levels: Sequence[LevelLine], y: Axis, width: int) -> list[Spec]:
    shown = []
    for level in levels:
        data = {"values": [{"y": level.height, "words": level.words}]}
        place = y.encoding("y")
        rule = {"type": "rule", "color": PALE, "strokeDash": [2, 2]}
        shown.append({"data": data, "mark": rule, "encoding": {"y": place}})
        text: Spec = {"type": "text", "dy": 17 if level.below else -8, "fontSize": 12, "color": PALE}
        text["align"] = "right" if level.left is None else "left"
        at = {"value": width - 2 if level.left is None else level.left}
        words = nominal("words")
        shown.append({"data": data, "mark": text, "encoding": {"x": at, "y": place, "text": words}})
    return shown


def _dashed_curve(curve: Sequence[tuple[float, float, str]], x: Axis, y: Axis) -> list[Spec]:
    """Return a dashed curve; the words stand at the points that have some."""
    if not curve:
        return []
    values = [{"x": at, "y": height, "words": words} for at, height, words in curve]
    encoding = {"x": x.encoding("x"), "y": y.encoding("y")}
    mark = {"type": "line", "color": INK, "strokeDash": [7, 4], "strokeWidth": 1.6}
    text = {"type": "text", "align": "right", "dx": -13, "dy": -6, "fontSize": 12, "color": INK, "lineBreak": "\n"}
    words = encoding | {"text": nominal("words")}
    return [
        {"data": {"values": values}, "mark": mark, "encoding": encoding},
        {"data": {"values": [value for value in values if value["words"]]}, "mark": text, "encoding": words},
    ]


def _panel_title(title: str) -> Spec:
    return {"text": title, "anchor": "start", "fontSize": 13, "fontWeight": "normal", "offset": 10}
