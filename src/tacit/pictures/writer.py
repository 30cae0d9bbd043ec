"""Write a picture as PNG, SVG or HTML, or show it in a notebook, without network. Needs the `plots` extra.

How every picture looks: one palette, one set of letters and lines, one kind of title.
"""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

from tacit.errors import InvalidParameter

Spec = dict[str, Any]  # plain Vega-Lite

# Okabe and Ito's colours, which the colour-blind tell apart; colours are never the only mark.
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


PAGE_FONT = "system-ui, Noto Sans, sans-serif"
# A colour of a light picture -> the same in a dark one: the paper, words and lines of the pages' dark theme.
DARK = {
    "white": "#1d2327",
    "#ffffff": "#1d2327",
    INK: "#e9ecec",
    PALE: "#a7b2b7",
    "#e6e6e6": "#364047",
    "#ddd": "#364047",
    "#888888": "#8b979d",
    "#888": "#8b979d",
    "#444444": "#c5cdd0",
    "#555555": "#a7b2b7",
    "#000": "#e9ecec",
    "black": "#e9ecec",
    BLUE: "#56a8e0",
}


def nominal(field: str, **more: Any) -> Spec:
    return {"field": field, "type": "nominal", **more}


def quantity(field: str, **more: Any) -> Spec:
    return {"field": field, "type": "quantitative", **more}


def themed(svg: str) -> str:
    """Return an SVG picture in its page's typeface, and dark wherever its page is, also inside of an <img>."""
    rules = "".join(
        f'[{name}="{light}" i]{{{name}:{dark}}}' for light, dark in DARK.items() for name in ("fill", "stroke")
    )
    # words without a colour are black
    style = f"<style>@media (prefers-color-scheme:dark){{text:not([fill]){{fill:{DARK['#000']}}}{rules}}}</style>"
    svg = re.sub(r'font-family="[^"]*"', f'font-family="{PAGE_FONT}"', svg)
    opened, end, rest = svg.partition(">")
    return f"{opened}{end}{style}{rest}"


def page(
    body: Spec,
    *,
    title: str,
    notes: Sequence[str],
    letters: tuple[int, int],
    offset: int = 14,
    legend: Spec | None = None,
    padding: int = CONFIG["padding"],
    between_labels: int = 0,
) -> Spec:
    """Return a body under its title and notes, in the look of every picture; `letters` is the length of their lines."""
    heading = {
        "text": wrap(title, letters[0]) or [""],
        "subtitle": [line for note in notes for line in wrap(note, letters[1])],
        "anchor": "start",
        "frame": "bounds",
        "offset": offset,
    }
    config = CONFIG | {"legend": CONFIG["legend"] | (legend or {}), "padding": padding}
    config["axis"] = CONFIG["axis"] | {"labelSeparation": between_labels}
    return body | {"title": heading, "config": config, "autosize": {"type": "pad"}}


ENDINGS = (".png", ".svg", ".html")
_EXTRA = "a picture needs the plots extra\nhint: pip install 'tacit[plots]'"


def as_chart(spec: Spec) -> Any:
    """Return a picture as an altair chart, which a notebook shows as SVG: altair's own way is blank offline."""
    shown = _altair().Chart.from_dict(spec)

    def bundle(**_: Any) -> dict[str, str]:
        from vl_convert import vegalite_to_svg

        return {
            "image/svg+xml": vegalite_to_svg(shown.to_dict()),
            "text/plain": "a picture; plot('picture.png') writes it",
        }

    object.__setattr__(shown, "_repr_mimebundle_", bundle)  # altair takes what is set as a part of the chart
    return shown


def as_svg(spec: Spec) -> str:
    """Return a picture as SVG, several times as quickly as by a file: without altair's check of every part."""
    try:
        from vl_convert import vegalite_to_svg
    except ImportError as missing:
        raise InvalidParameter(_EXTRA) from missing
    written: str = vegalite_to_svg(spec, allowed_base_urls=[])
    return written


def write(spec: Spec, path: Path) -> Path:
    """Write a picture in the format of the path's ending, and return the path."""
    check_path(path)
    shown, form = as_chart(spec), path.suffix.lower()
    if form == ".html":
        path.write_text(_html_page(shown.to_dict()), encoding="utf-8")
    else:
        shown.save(str(path), format=form[1:], scale_factor=2 if form == ".png" else 1)
    return path


def check_path(path: Path) -> None:
    """Refuse a picture that could not be written, because of its ending, its folder or a missing extra.

    Callers that draw after long work, or after a charge, call this first.
    """
    if path.suffix.lower() not in ENDINGS:
        raise InvalidParameter(
            f"the name of a picture must end in {', '.join(ENDINGS)}"
            "\nhint: e.g. plot('picture.png'), or --plot picture.png"
        )
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidParameter(
            "the picture cannot be written to this path\nhint: name a file in a folder that you may write to"
        )
    _altair()


def _altair() -> Any:
    try:
        import altair as alt
        import vl_convert  # noqa: F401 (altair finds it by itself)
    except ImportError as missing:
        raise InvalidParameter(_EXTRA) from missing
    return alt


def _html_page(spec: Spec) -> str:
    """Return a page that needs no network; a key that looks like markup stays a text."""
    from vl_convert import vegalite_to_html

    # the page holds the chart inside a <script>, and texts of the chart must not close it
    safe = json.loads(json.dumps(spec).replace("</", "<\\u200b/").replace("<!--", "<\\u200b!--"))
    page: str = vegalite_to_html(safe, bundle=True)
    return page
