"""The layout of a sheet as plain Vega-Lite: labels from top to bottom, scales from left to right, small multiples.

Every number has its interval. No meaning rests on colour only: groups also have their own marks or rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from tacit.pictures.writer import BLUE, GREEN, GREY, INK, OLIVE, ORANGE, PALE, PINK, RED, SKY, Spec, nominal, quantity

Order = Literal["none", "number", "time"]

COLOURS = [BLUE, ORANGE, GREEN, PINK, SKY, RED, GREY, OLIVE]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left"]
COLOURS_MOST = 8  # groups distinguished by colour; more groups get a small picture each
TEXTS_MOST = 60  # labels with their number written beside them
SCALE_MARKS_MOST, FACET_MARKS_MOST = 12, 4  # labels along a scale


@dataclass(frozen=True)
class Size:
    """How wide the parts of a sheet are, in pixels, how many stand side by side, and whether numbers are written."""

    rows: int
    rows_of_several: int
    scale: tuple[int, int]  # width and height
    facet: tuple[int, int]
    labels: int
    panels_across: int
    facets_across: int
    has_words: bool
    title_letters: int
    note_letters: int


WIDE = Size(440, 300, (620, 300), (210, 150), 280, 3, 3, True, 64, 110)
# for a screen of 360 pixels, at the full size of its letters; the numbers are in the table beside it
NARROW = Size(170, 170, (220, 220), (170, 150), 100, 1, 1, False, 24, 32)


@dataclass(frozen=True)
class SheetCell:
    """A number with its interval: its position, and its group."""

    label: str
    place: int | float | None  # on an ordered axis: a number, or milliseconds since 1970
    group: str
    value: float | None
    low: float | None  # None for a suppressed number without an interval
    high: float | None
    text: str
    percent: float = 50.0  # which quantile it is, in a fan

    def record(self) -> dict[str, Any]:
        """Return it as a chart's data, under names that no column has a say in."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


@dataclass(frozen=True)
class Panel:
    """An aggregate, or the quantiles of one column together."""

    name: str
    kind: Literal["bar", "point", "fan", "band"]
    cells: tuple[SheetCell, ...]


@dataclass(frozen=True)
class Sheet:
    """All that is drawn: panels that share their keys."""

    panels: tuple[Panel, ...]
    axis: str | None  # the meaning of the labels or positions; None for an answer without keys
    order: Order
    group: str | None  # the title of the groups
    labels: tuple[str, ...]
    groups: tuple[str, ...]
    cut: str | None  # the parts left out, in words
    size: Size = WIDE


def chart(drawn: Sheet) -> Spec:
    """Return the picture of a sheet, without its title."""
    if not drawn.labels:
        return {"data": {"values": [{}]}, "mark": {"type": "text", "text": "no group was shown", "color": PALE}}
    if drawn.axis is None:
        parts = [
            _quantile_curve(panel, drawn) if panel.kind == "fan" else _strip(panel, drawn) for panel in drawn.panels
        ]
        return {"vconcat": parts, "spacing": 22}
    faceted = drawn.group is not None and (
        len(drawn.groups) > COLOURS_MOST or any(panel.kind == "fan" for panel in drawn.panels)
    )
    if drawn.order == "none":
        across = 1 if faceted else drawn.size.panels_across
        parts = [_label_rows(panel, drawn, first=place % across == 0) for place, panel in enumerate(drawn.panels)]
    else:
        across = 1
        parts = [_number_scale(panel, drawn) for panel in drawn.panels]
    if faceted:
        parts = [_facets(part, drawn) for part in parts]
    if len(parts) == 1:
        return parts[0]
    for part, panel in zip(parts, drawn.panels, strict=True):
        limit = drawn.size.rows_of_several  # a name that is longer ends in dots
        heading = {"text": panel.name, "anchor": "start", "fontSize": 13, "offset": 8, "frame": "group"}
        part["title"] = heading | ({"limit": limit} if drawn.size is NARROW else {})
    return {"concat": parts, "columns": across, "spacing": 26, "resolve": {"scale": {"color": "shared"}}}


def _strip(panel: Panel, drawn: Sheet) -> Spec:
    """Return one number without keys: a point and its interval on a separate scale, and in words."""
    return {
        "width": drawn.size.rows,
        "height": 34,
        "data": _data(panel, label=panel.name),
        "encoding": {"y": _labels_axis([panel.name], drawn.size)},
        "layer": [*_interval("x", cap=10), _point("x"), *_number_words(drawn.size, drawn.size.rows)],
    }


def _quantile_curve(panel: Panel, drawn: Sheet) -> Spec:
    x = quantity("percent", title="quantile, in percent", scale={"domain": [0, 100]}, axis={"grid": False})
    line = {
        "mark": {"type": "line", "color": BLUE, "strokeWidth": 2},
        "encoding": {"y": _number_channel("value", panel.name)},
    }
    return {
        "width": drawn.size.rows,
        "height": 240,
        "data": _data(panel),
        "encoding": {"x": x},
        "layer": [line, *_interval("y", cap=8), _point("y")],
    }


def _label_rows(panel: Panel, drawn: Sheet, *, first: bool) -> Spec:
    """Return a row for each label, from top to bottom; groups side by side in a row."""
    several = len(drawn.panels) > 1
    width = drawn.size.rows_of_several if several else drawn.size.rows
    coloured = drawn.group is not None and len(drawn.groups) <= COLOURS_MOST and panel.kind != "fan"
    rows = len(drawn.labels) * (len(drawn.groups) if coloured else 1)
    step = 24 if rows <= 30 else 17
    if drawn.group is not None and not coloured:
        step = 16
    encoding: Spec = {"y": _labels_axis(drawn.labels, drawn.size, shown=first)}
    height: Spec = {"step": step}
    if coloured:
        step = 16 if rows <= 40 else 11
        encoding |= {
            "yOffset": nominal("group", scale={"domain": list(drawn.groups), "paddingInner": 0.2}),
            "color": _colour(drawn),
        }
        height = {"step": step, "for": "offset"}
    layer = _row_marks(panel, coloured=coloured, step=step, title=None if several else panel.name)
    if rows <= TEXTS_MOST and panel.kind != "fan" and step > 11 and (coloured or drawn.group is None):
        layer += _number_words(drawn.size, width)
    return {"width": width, "height": height, "data": _data(panel), "encoding": encoding, "layer": layer}


def _row_marks(panel: Panel, *, coloured: bool, step: int, title: str | None) -> list[Spec]:
    missing = _missing()
    if panel.kind == "fan":
        reach = {
            "transform": _interval_reach(),
            "mark": {"type": "rule", "color": SKY, "strokeWidth": 1.2},
            "encoding": {"x": _number_channel("from", title), "x2": {"field": "to"}},
        }
        return [reach, *_bands(panel, step, title), *_middle_marks(panel, "x"), missing]
    if panel.kind == "point":
        lines = _interval("x", cap=step * 0.4, title=title, coloured=coloured)
        return [*lines, _point("x", coloured=coloured), missing]
    look: Spec = {} if coloured else {"height": {"band": 0.72}, "color": SKY}
    mark = {"type": "bar", "opacity": 0.85} | look
    shown = {"mark": mark, "encoding": {"x": _number_channel("value", title, zero=True)}}
    return [shown, *_interval("x", cap=step * 0.4, zero=True), missing]


def _bands(panel: Panel, step: int, title: str | None) -> list[Spec]:
    """Return bars from a low quantile to the high one opposite, the outer ones thin."""
    pairs = _quantile_pairs(panel)
    layers = []
    for place, (low, high) in enumerate(pairs):
        thick = step * (0.25 + 0.5 * (place + 1) / len(pairs))
        layers.append(
            {
                "transform": _paired(low, high),
                "mark": {"type": "bar", "color": SKY, "opacity": 0.35, "height": thick},
                "encoding": {"x": _number_channel("from", title), "x2": {"field": "to"}},
            }
        )
    return layers


def _number_scale(panel: Panel, drawn: Sheet) -> Spec:
    """Return numbers along a scale of numbers or times, from left to right."""
    several = len(drawn.panels) > 1
    coloured = drawn.group is not None and len(drawn.groups) <= COLOURS_MOST and panel.kind != "fan"
    faceted = drawn.group is not None and not coloured
    width, height = drawn.size.facet if faceted else drawn.size.scale
    height = min(height, 190) if several else height
    x, size = _places(panel, drawn, width)
    encoding: Spec = {"x": x}
    if coloured:
        encoding["color"] = _colour(drawn)
    title = panel.name if not several or faceted else None
    layer = _scale_marks(panel, coloured=coloured, size=size, title=title)
    return {"width": width, "height": height, "data": _data(panel), "encoding": encoding, "layer": layer}


def _scale_marks(panel: Panel, *, coloured: bool, size: float, title: str | None) -> list[Spec]:
    cap = min(10.0, size * 0.5)
    if panel.kind == "fan":
        shades = [(_interval_reach(), 0.12), *((_paired(low, high), 0.28) for low, high in _quantile_pairs(panel))]
        areas = [
            {
                "transform": ends,
                "mark": {"type": "area", "color": BLUE, "opacity": opacity},
                "encoding": {"y": _number_channel("from", title), "y2": {"field": "to"}},
            }
            for ends, opacity in shades
        ]
        return [*areas, *_middle_marks(panel, "y")]
    if panel.kind == "band":  # many days: a line in the area of its intervals
        area = {"y": _number_channel("low", title, zero=True), "y2": {"field": "high"}}
        middle = {"y": _number_channel("value", title, zero=True)}
        return [
            {"mark": {"type": "area", "color": BLUE, "opacity": 0.25}, "encoding": area},
            {"mark": {"type": "line", "color": BLUE, "strokeWidth": 1.5}, "encoding": middle},
        ]
    if panel.kind == "bar" and not coloured:
        mark = {"type": "bar", "color": SKY, "opacity": 0.85, "size": size}
        bars = {"mark": mark, "encoding": {"y": _number_channel("value", title, zero=True)}}
        return [bars, *_interval("y", cap=cap, zero=True)]
    line = {"mark": {"type": "line", "strokeWidth": 1.5, "opacity": 0.6} | ({} if coloured else {"color": BLUE})}
    zero = panel.kind == "bar"
    line["encoding"] = {"y": _number_channel("value", title, zero=zero)}
    lines = _interval("y", cap=cap, zero=zero, coloured=coloured)
    return [line, *lines, _point("y", size=30, zero=zero, coloured=coloured)]


def _places(panel: Panel, drawn: Sheet, width: int) -> tuple[Spec, float]:
    """Return the axis of a scale and how wide a bar on it is, so that neighbours nearly touch."""
    places = sorted({cell.place for cell in panel.cells if cell.place is not None})
    gap = min(after - before for before, after in pairwise(places))
    most = FACET_MARKS_MOST if width < WIDE.rows_of_several else SCALE_MARKS_MOST
    every = max(1, -(-len(places) // most))
    whole = all(float(place).is_integer() for place in places)
    words = "datum.label" if drawn.order == "number" else f"utcFormat(datum.value, '{_time_words(gap)}')"
    axis: Spec = {"grid": False, "labelExpr": words, "labelFlush": False, "labelOverlap": True, "tickCount": most}
    if drawn.order == "time" or every == 1:
        axis["values"] = places[::every]
    if whole:
        axis["format"] = "d"
    domain = [places[0] - gap / 2, places[-1] + gap / 2]
    size = max(1.0, 0.92 * width * gap / (domain[1] - domain[0]))
    scale = {"domain": domain, "nice": False, "zero": False}
    x = quantity("place", title=drawn.axis, axis=axis, scale=scale)
    return x, size


def _time_words(gap: float) -> str:
    """Return the time format for a smallest gap of this many milliseconds."""
    days = gap / 86_400_000
    return "%Y" if days > 364 else "%b %Y" if days > 27 else "%-d %b %Y" if days >= 1 else "%-d %b %H:%M"


def _facets(part: Spec, drawn: Sheet) -> Spec:
    """Return one small picture for each group, all on the same scales."""
    data = part.pop("data")
    if drawn.order == "none":
        part["width"] = min(drawn.size.facet[0], part["width"])
    header = {"title": None, "labelLimit": drawn.size.facet[0], "labelFontWeight": "bold", "labelAnchor": "start"}
    facet = nominal("group", sort=list(drawn.groups), header=header)
    return {"data": data, "facet": facet, "columns": drawn.size.facets_across, "spacing": 30, "spec": part}


def _data(panel: Panel, label: str | None = None) -> Spec:
    records = [cell.record() for cell in panel.cells]
    return {"values": [record | {"label": label} for record in records] if label else records}


def _labels_axis(labels: Sequence[str], size: Size, *, shown: bool = True) -> Spec:
    axis = {"labelLimit": size.labels, "ticks": False, "domain": False, "labelPadding": 8, "grid": False}
    axis = axis if shown else axis | {"labels": False}
    # the domain is stated: a layer that leaves out a number would otherwise move the rows of the others; the picture's
    # title explains the labels
    return nominal("label", scale={"domain": list(labels)}, title=None, axis=axis)


def _number_channel(field: str, title: str | None, *, zero: bool = False) -> Spec:
    # d3 says G for a billion, people say B
    words = "abs(datum.value) >= 1e7 ? replace(format(datum.value, '~s'), 'G', 'B') : datum.label"
    axis = {"tickCount": 5, "labelExpr": words, "labelOverlap": True, "labelFlush": False}
    return quantity(field, title=title, axis=axis, scale={"zero": zero} | ({} if zero else {"padding": 6}))


def _interval(
    along: str, *, cap: float, title: str | None = None, zero: bool = False, coloured: bool = False, only: str = "true"
) -> list[Spec]:
    """Return the line from the low to the high end, with caps; None if the number is missing."""
    chosen = [{"filter": f"isValid(datum.value) && {only}"}]
    ink: Spec = {} if coloured else {"color": {"value": INK}}
    scale = _number_channel("low", title, zero=zero)
    lines: list[Spec] = [
        {
            "transform": chosen,
            "mark": {"type": "rule", "strokeWidth": 1.4},
            "encoding": ink | {along: scale, f"{along}2": {"field": "high"}},
        }
    ]
    mark = {"type": "tick", "size": cap, "thickness": 1.4, "orient": "vertical" if along == "x" else "horizontal"}
    ends = ("low", "high") if cap > 0 else ()
    lines += [{"transform": chosen, "mark": mark, "encoding": ink | {along: scale | {"field": end}}} for end in ends]
    return lines


def _point(along: str, *, size: int = 46, zero: bool = False, coloured: bool = False) -> Spec:
    mark: Spec = {"type": "point", "filled": True, "size": size, "opacity": 1}
    encoding: Spec = {along: _number_channel("value", None, zero=zero)}
    if coloured:
        encoding["shape"] = nominal("group", legend=None, scale={"range": SHAPES}, sort=None)
    return {"mark": mark if coloured else mark | {"color": BLUE}, "encoding": encoding}


def _number_words(size: Size, width: int) -> list[Spec]:
    """Return each number and its interval in words, in a column at the right, if there is a place for it."""
    mark = {"type": "text", "align": "left", "fontSize": 11, "color": PALE}
    encoding = {"x": {"value": width + 10}, "text": nominal("text"), "color": {"value": PALE}}
    written = {"transform": [{"filter": "isValid(datum.value)"}], "mark": mark, "encoding": encoding}
    return [written] if size.has_words else []


def _missing() -> Spec:
    """Return words in the place of a number that has too few people to mean anything."""
    mark = {"type": "text", "align": "left", "fontSize": 11, "fontStyle": "italic", "color": PALE}
    encoding = {"x": {"value": 4}, "text": nominal("text"), "color": {"value": PALE}}
    return {"transform": [{"filter": "!isValid(datum.value)"}], "mark": mark, "encoding": encoding}


def _quantile_pairs(panel: Panel) -> list[tuple[float, float]]:
    percents = sorted({cell.percent for cell in panel.cells})
    return [(low, high) for low, high in zip(percents, reversed(percents), strict=True) if low < high]


def _middle_marks(panel: Panel, along: str) -> list[Spec]:
    """Return the middle quantile with its interval; a line through it on a scale."""
    percents = sorted({cell.percent for cell in panel.cells})
    if len(percents) % 2 == 0:
        return []
    only = f"datum.percent === {percents[len(percents) // 2]}"
    line = {"mark": {"type": "line", "color": BLUE}, "encoding": {"y": _number_channel("value", None)}}
    marks = [*([line] if along == "y" else []), _point(along, size=36)]
    chosen: list[Spec] = [{"transform": [{"filter": only}], **mark} for mark in marks]
    return [*chosen[:-1], *_interval(along, cap=0, only=only), chosen[-1]]


def _interval_reach() -> list[Spec]:
    """Return how far the intervals of the outermost quantiles go."""
    ends = [{"op": "min", "field": "low", "as": "from"}, {"op": "max", "field": "high", "as": "to"}]
    return [{"aggregate": ends, "groupby": ["label", "place", "group"]}]


def _paired(low: float, high: float) -> list[Spec]:
    """Return two quantiles of a place as the two ends of a band."""
    value_at = "datum.percent === {} ? datum.value : null"
    return [
        {"filter": f"datum.percent === {low} || datum.percent === {high}"},
        {"calculate": value_at.format(low), "as": "one"},
        {"calculate": value_at.format(high), "as": "two"},
        {
            "aggregate": [{"op": "max", "field": "one", "as": "from"}, {"op": "max", "field": "two", "as": "to"}],
            "groupby": ["label", "place", "group"],
        },
    ]


def _colour(drawn: Sheet) -> Spec:
    return nominal(
        "group",
        sort=list(drawn.groups),
        title=drawn.group,
        legend={"symbolOpacity": 1, "symbolStrokeWidth": 0},
        scale={"domain": list(drawn.groups), "range": COLOURS[: len(drawn.groups)]},
    )
