"""Write a picture as PNG, SVG or HTML, or show it in a notebook, without network. Needs the `plots` extra."""

import json
import os
from pathlib import Path
from typing import Any

from tacit.errors import InvalidParameter
from tacit.pictures.look import Spec

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
