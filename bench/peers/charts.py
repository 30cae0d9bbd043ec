"""The page's pictures: horizontal bars, one panel for a case, ours in colour; plain Vega-Lite, no browser."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OURS_COLOUR, PEER_COLOUR, BASELINE_COLOUR = "#0b7a75", "#b8b8b8", "#dddddd"
LOG_ROOM = 6.0  # so far past the longest bar, for its label


@dataclass(frozen=True)
class Bar:
    """One library's bar: its label, its value, what to write beside it, and its colour."""

    label: str
    value: float
    text: str
    colour: str


@dataclass(frozen=True)
class Panel:
    """One case's bars under its title."""

    title: str
    bars: tuple[Bar, ...]


def write_chart(path: Path, title: str, panels: Sequence[Panel], *, logarithmic: bool, columns: int = 2) -> None:
    """Write the panels as an SVG picture."""
    import vl_convert

    path.write_text(vl_convert.vegalite_to_svg(chart(title, panels, logarithmic=logarithmic, columns=columns)))


def chart(title: str, panels: Sequence[Panel], *, logarithmic: bool, columns: int) -> dict[str, Any]:
    """Return the chart as Vega-Lite."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "background": "white",
        "title": {"text": title, "anchor": "start", "fontSize": 15, "offset": 12},
        "columns": columns,
        "concat": [_panel(panel, logarithmic=logarithmic) for panel in panels if panel.bars],
        "config": {"view": {"stroke": None}, "font": "sans-serif", "concat": {"spacing": 28}},
    }


def _panel(panel: Panel, *, logarithmic: bool) -> dict[str, Any]:
    values = [bar.value for bar in panel.bars]
    low = min(values) / 2 if logarithmic else 0.0
    high = max(values) * (LOG_ROOM if logarithmic else 1.35)
    scale: dict[str, Any] = {"domain": [low, high], "nice": False}
    if logarithmic:
        scale["type"] = "log"
    rows = [
        {"label": bar.label, "value": bar.value, "low": low, "text": bar.text, "colour": bar.colour}
        for bar in panel.bars
    ]
    y = {
        "field": "label",
        "type": "nominal",
        "sort": [bar.label for bar in panel.bars],
        "scale": {"domain": [bar.label for bar in panel.bars]},
        "axis": {"title": None, "ticks": False, "domain": False, "labelLimit": 260, "labelFontSize": 12},
    }
    x = {"field": "value", "type": "quantitative", "scale": scale, "axis": None}
    colour = {"field": "colour", "type": "nominal", "scale": None}
    bars = {
        "mark": {"type": "bar", "height": {"band": 0.7}},
        "encoding": {"y": y, "x": x, "x2": {"field": "low"}, "color": colour},
    }
    texts = {
        "mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 12},
        "encoding": {"y": y, "x": x, "text": {"field": "text", "type": "nominal"}},
    }
    return {
        "title": {"text": panel.title, "anchor": "start", "fontSize": 12, "fontWeight": "normal"},
        "data": {"values": rows},
        "width": 330,
        "height": {"step": 22},
        "layer": [bars, texts],
    }
