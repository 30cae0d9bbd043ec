"""`answer.plot()`: a picture of an answer that needs no tuning, as PNG, SVG or HTML. Needs the `plots` extra.

The only home of altair in this room. A picture is post-processing: it shows what the answer already says, and costs
nothing.
"""

from __future__ import annotations

import os
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from tacit.errors import InvalidParameter
from tacit.release.chart import chart
from tacit.release.panel import Sheet, sheet

if TYPE_CHECKING:
    from tacit.release.answer import Answer

ENDINGS = (".png", ".svg", ".html")
TITLE_LETTERS, SUBTITLE_LETTERS = 64, 110
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


def picture(answer: Answer) -> Any:
    """Return the picture of an answer as an altair chart, which a notebook shows."""
    altair = _altair()
    drawn = sheet(answer)
    return offline(
        altair.Chart.from_dict(
            chart(drawn) | {"title": _title(answer, drawn), "config": CONFIG, "autosize": {"type": "pad"}}
        )
    )


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


def write_picture(answer: Answer, path: Path) -> Path:
    """Write the picture of an answer in the form its name asks for, and return the path."""
    check_path(path)
    shown = picture(answer)
    if path.suffix.lower() == ".html":
        path.write_text(html_page(shown), encoding="utf-8")
    else:
        shown.save(str(path), format=path.suffix.lower()[1:], scale_factor=2 if path.suffix.lower() == ".png" else 1)
    return path


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


def _title(answer: Answer, drawn: Sheet) -> dict[str, Any]:
    """Return what is drawn, how sure it is and what it cost."""
    keys = [name for name in answer.columns if name not in answer.aggregates]
    what = ", ".join(panel.name for panel in drawn.panels) + (f" by {', '.join(keys)}" if keys else "")
    facts = answer.facts
    lines = [f"± at {float(facts.confidence) * 100:g} %; {facts.loss['text']}; protected: {facts.unit}"]
    if any(panel.kind == "fan" for panel in drawn.panels) and drawn.axis is not None:
        lines.append(
            "shaded: between quantiles; thin or palest: where the outermost may be; dark: where the middle may be"
        )
    lines += [*([drawn.cut] if drawn.cut else []), *facts.notes]
    return {
        "text": wrap(what, TITLE_LETTERS) or [""],
        "subtitle": [part for line in lines for part in wrap(line, SUBTITLE_LETTERS)],
        "anchor": "start",
        "frame": "bounds",
        "offset": 14,
    }
