"""A chart of estimated counts with their intervals, written as PNG or SVG."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import InvalidParameter

if TYPE_CHECKING:
    from tacit.local.estimating import FrequencyEstimate

BARS_MOST = 30


def plot_counts(estimate: "FrequencyEstimate", path: str) -> None:
    """Write the largest counts with their intervals to a file that ends in .png or .svg."""
    if Path(path).suffix not in (".png", ".svg"):
        raise InvalidParameter("a chart is written as .png or .svg\nhint: e.g. --plot counts.png")
    try:
        import altair as alt
    except ImportError:
        raise InvalidParameter("a chart needs altair\nhint: pip install 'tacit[plots]'") from None
    order = np.argsort(-estimate.counts, kind="stable")[:BARS_MOST]
    rows = [
        {
            "value": str(estimate.values[place]),
            "count": float(estimate.counts[place]),
            "low": float(estimate.low[place]),
            "high": float(estimate.high[place]),
        }
        for place in order
    ]
    names = [str(row["value"]) for row in rows]
    across = alt.Y("value:N", sort=names, title=None)
    data = alt.Chart(alt.Data(values=rows))  # type: ignore[no-untyped-call]
    bars = data.mark_bar(opacity=0.6).encode(x=alt.X("count:Q", title="estimated count"), y=across)
    rules = data.mark_rule().encode(x="low:Q", x2="high:Q", y=across)
    level = f"{estimate.basis.confidence * 100:g} % intervals, {estimate.used:,} reports, {estimate.basis.loss} each"
    (bars + rules).properties(title=level).save(path)
