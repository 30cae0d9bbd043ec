"""How a picture is written, as PNG, SVG or HTML, and shown in a notebook: no network. Needs the `plots` extra."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tacit.errors import InvalidParameter

Spec = dict[str, Any]

ENDINGS = (".png", ".svg", ".html")
CONFIG: dict[str, Any] = {
    "background": "white",
    "padding": 18,
    "view": {"stroke": None},
    "axis": {
        "gridColor": "#e6e6e6",
        "domainColor": "#888888",
        "tickColor": "#888888",
        "labelColor": "#222222",
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


def as_chart(spec: Spec) -> Any:
    """Return a spec as an altair chart, which a notebook shows."""
    return offline(_altair().Chart.from_dict(spec))


def write(spec: Spec, path: Path) -> Path:
    """Write a spec in the form the path's ending asks for, and return the path."""
    shown, form = as_chart(spec), path.suffix.lower()
    if form == ".html":
        path.write_text(html_page(shown), encoding="utf-8")
    else:
        shown.save(str(path), format=form[1:], scale_factor=2 if form == ".png" else 1)
    return path


def offline(shown: Any) -> Any:
    """Return the chart, which a notebook now shows as SVG: altair's own way fetches scripts, and is blank offline."""

    def bundle(**_: Any) -> dict[str, str]:
        from vl_convert import vegalite_to_svg

        return {
            "image/svg+xml": vegalite_to_svg(shown.to_dict()),
            "text/plain": "a picture; plot('answer.png') writes it",
        }

    object.__setattr__(shown, "_repr_mimebundle_", bundle)  # altair takes what is set as a part of the chart
    return shown


def check_path(path: Path) -> None:
    """Refuse a picture that could not be written: its ending, its folder, or the extra that is missing."""
    if path.suffix.lower() not in ENDINGS:
        raise InvalidParameter(f"a picture ends in {', '.join(ENDINGS)}\nhint: e.g. plot('answer.png')")
    if path.is_dir() or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise InvalidParameter("a picture cannot be written there\nhint: name a file in a folder you may write to")
    _altair()


def _altair() -> Any:
    try:
        import altair as alt
        import vl_convert  # noqa: F401 (altair finds it by itself)
    except ImportError as missing:
        raise InvalidParameter("a picture needs the plots extra\nhint: pip install 'tacit[plots]'") from missing
    return alt


def html_page(shown: Any) -> str:
    """Return a page that needs no network; a key that looks like markup stays a text."""
    import json

    from vl_convert import vegalite_to_html

    # the page holds the chart as a script, which no key may end
    safe = json.loads(json.dumps(shown.to_dict()).replace("</", "<\\u200b/").replace("<!--", "<\\u200b!--"))
    page: str = vegalite_to_html(safe, bundle=True)
    return page
