"""The picture of a trade-off: what more people buy, one line a mechanism. Needs the `plots` extra."""

import math
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.errors import InvalidParameter
from tacit.forecast.tradeoff import CENTRAL_GAUSSIAN, CENTRAL_LAPLACE, LOCAL, SHUFFLED, Accuracy

if TYPE_CHECKING:
    from tacit.forecast.tradeoff import Tradeoff

# Okabe and Ito's colours, which the colour-blind tell apart; each line has its own marks and dashes too.
LOOKS = {
    CENTRAL_LAPLACE: ("#0072B2", "circle", (1, 0)),
    CENTRAL_GAUSSIAN: ("#D55E00", "square", (6, 3)),
    LOCAL: ("#009E73", "triangle-up", (2, 2)),
    SHUFFLED: ("#CC79A7", "diamond", (8, 2, 2, 2)),
}
POINTS = 13
SUFFIXES = (".png", ".svg", ".html")


def draw(found: "Tradeoff", path: Path) -> Path:
    """Write the picture in the form its name asks for, and return the path."""
    if path.suffix.lower() not in SUFFIXES:
        raise InvalidParameter(f"a picture is written as {', '.join(SUFFIXES)}\nhint: e.g. plot('tradeoff.png')")
    chart = _chart(found, points(found))
    if path.suffix.lower() == ".png":
        chart.save(str(path), scale_factor=2)
    elif path.suffix.lower() == ".html":
        chart.save(str(path), inline=True)
    else:
        chart.save(str(path))
    return path


def points(found: "Tradeoff") -> list[dict[str, object]]:
    """Return what is drawn: for each mechanism, its error (or the epsilon it needs) for growing numbers of people."""
    from tacit.forecast.tradeoff import least_epsilon
    from tacit.local.randomized_response import PEOPLE_MOST

    known = [row.people for row in found.rows if row.people is not None]
    low, high = max(10, min(known, default=1000) // 10), min(max(known, default=10**6) * 10, PEOPLE_MOST)
    counts = sorted({round(low * (high / low) ** (i / (POINTS - 1))) for i in range(POINTS)})
    drawn: list[dict[str, object]] = []
    for row in found.rows:
        law = Accuracy(
            row.mechanism,
            found.kind,
            k=found.k,
            touched=found.touched,
            delta=found.delta,
            chance=1 - found.confidence,
        )
        for people in counts:
            if found.asked != "epsilon" and row.epsilon is not None:
                height: float | None = law.error(people, row.epsilon)
            else:
                needed = None if row.error is None else least_epsilon(law, Fraction(str(row.error)), people)
                height = None if needed is None else float(needed)
            if height is not None and 0 < height <= (1 if found.asked != "epsilon" else 36):
                drawn.append({"mechanism": row.mechanism, "people": people, "height": height})
    return drawn


def _chart(found: "Tradeoff", drawn: list[dict[str, object]]) -> Any:
    try:
        import altair as alt
    except ImportError as missing:
        raise InvalidParameter("a picture needs the plots extra\nhint: pip install 'tacit[plots]'") from missing
    names = [name for name in LOOKS if any(point["mechanism"] == name for point in drawn)]
    row = found.rows[0]
    if found.asked == "epsilon":
        title, name, form = f"The ε that an error of {_percent(row.error)} takes", "ε", "~g"
    else:
        epsilon = "" if row.epsilon is None else f" at ε = {float(row.epsilon):g}"
        title, name, form = f"What people buy{epsilon}", "error", "~%"
    base = alt.Chart({"values": drawn}).encode(
        x=alt.X(
            "people:Q",
            scale=alt.Scale(type="log", nice=False, padding=12),
            axis=alt.Axis(title="people", format="~s", values=_decades(drawn, "people")),
        ),
        y=alt.Y(
            "height:Q",
            scale=alt.Scale(type="log", nice=False, padding=12),
            axis=alt.Axis(title=name, format=form, values=_decades(drawn, "height")),
        ),
        color=alt.Color(
            "mechanism:N",
            scale=alt.Scale(domain=names, range=[LOOKS[name][0] for name in names]),
            legend=alt.Legend(title=None, orient="top", labelLimit=300, symbolStrokeWidth=0),
        ),
    )
    lines = base.mark_line(strokeWidth=2.5).encode(
        strokeDash=alt.StrokeDash(
            "mechanism:N", scale=alt.Scale(domain=names, range=[list(LOOKS[name][2]) for name in names]), legend=None
        )
    )
    marks = base.mark_point(size=60, filled=True, opacity=1, strokeWidth=0).encode(
        shape=alt.Shape("mechanism:N", scale=alt.Scale(domain=names, range=[LOOKS[name][1] for name in names]))
    )
    what = {"mean": "a mean", "fraction": "a fraction", "counts": f"{found.k:,} counts", "maximum": "a maximum"}
    note = f"{what[found.kind]}; {float(found.confidence) * 100:g} % of the time within; lower is better"
    return (
        alt.layer(lines, marks)
        .properties(width=560, height=340, title=alt.TitleParams(title, subtitle=note, anchor="start", offset=12))
        .configure_axis(grid=True, gridColor="#e6e6e6", labelFontSize=12, titleFontSize=13, domainColor="#888888")
        .configure_legend(labelFontSize=12)
        .configure_title(fontSize=16, subtitleFontSize=12, subtitleColor="#555555")
        .configure_view(stroke=None)
    )


def _decades(drawn: list[dict[str, object]], name: str) -> list[float]:
    """Return the powers of ten that the points span, one beyond on either side."""
    sizes = [math.log10(float(str(point[name]))) for point in drawn] or [0.0]
    return [10.0**power for power in range(math.floor(min(sizes)), math.ceil(max(sizes)) + 1)]


def _percent(error: float | None) -> str:
    return "" if error is None else f"{error * 100:g} %"
