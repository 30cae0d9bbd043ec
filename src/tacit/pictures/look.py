"""How every picture looks: one palette, one set of letters and lines, one kind of title."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

Spec = dict[str, Any]  # plain Vega-Lite

# Okabe and Ito's colours, which the colour-blind tell apart; no colour speaks alone.
BLUE, SKY, GREEN, ORANGE, RED, PINK = "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00", "#CC79A7"
GREY, OLIVE = "#999999", "#B8A800"
INK, PALE = "#222222", "#666666"  # of words and thin lines
CONFIG: Spec = {
    "background": "white",
    "padding": 18,
    "view": {"stroke": None},
    "axis": {
        "gridColor": "#e6e6e6",
        "domainColor": "#888888",
        "tickColor": "#888888",
        "labelColor": INK,
        "titleColor": "#444444",
        "titleFontWeight": "normal",
        "labelFontSize": 12,
        "titleFontSize": 12,
    },
    "title": {"fontSize": 16, "subtitleFontSize": 12, "subtitleColor": "#555555", "subtitlePadding": 6},
    "header": {"labelFontSize": 12, "titleFontSize": 13},
    "legend": {
        "orient": "top",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 240,
        "titleFontWeight": "normal",
    },
}


def page(
    body: Spec,
    *,
    title: str,
    notes: Sequence[str],
    letters: tuple[int, int],
    offset: int = 14,
    legend: Spec | None = None,
) -> Spec:
    """Return a body under its title and notes, in the look of every picture; `letters` is the length of their lines."""
    heading = {
        "text": wrap(title, letters[0]) or [""],
        "subtitle": [line for note in notes for line in wrap(note, letters[1])],
        "anchor": "start",
        "frame": "bounds",
        "offset": offset,
    }
    config = CONFIG | {"legend": CONFIG["legend"] | (legend or {})}
    return body | {"title": heading, "config": config, "autosize": {"type": "pad"}}
