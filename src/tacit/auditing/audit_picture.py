"""The picture of an audit: the two histograms with the event marked, and the demonstrated loss beside the claim.

Needs the `plots` extra. The right panel shows, for every epsilon, the delta that the claim allows and the one that the
tested events prove to be exceeded: if the second rises above the first, the claim is false.
"""

import math
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from tacit.auditing.result import AuditResult, Bar, Figure
from tacit.pictures import (
    BLUE,
    GREEN,
    INK,
    RED,
    Axis,
    Look,
    Spec,
    as_chart,
    line_panel,
    mark_at,
    nominal,
    page,
    quantity,
    write,
)

WIDTH, HEIGHT = 420, 280
POINTS = 120
SIDES = ("d0", "d1")


def picture(result: AuditResult) -> Any:
    """Return the picture as an altair chart, which a notebook shows."""
    return as_chart(_audit_page(result))


def write_picture(result: AuditResult, path: Path) -> Path:
    """Write the picture in the form its name asks for, and return the path."""
    return write(_audit_page(result), path)


def _audit_page(result: AuditResult) -> Spec:
    parts = [] if result.figure is None else [_histograms(result.figure)]
    body = {"hconcat": [*parts, _delta_curve(result)], "spacing": 40, "resolve": {"scale": {"color": "independent"}}}
    return page(body, title=result.verdict, notes=[f"event: {result.event}"], letters=(100, 120))


def _histograms(figure: Figure) -> Spec:
    """Return how often each input gave what, one line or bar for each input; the event's part is shaded."""
    values = [row for bar in figure.bars for row in _bar_rows(bar)]
    colour = nominal("input", title=None, scale={"domain": list(SIDES), "range": [BLUE, RED]})
    share = quantity("share", title="share of draws", axis={"format": ".2~%"})
    titled: Spec = {"text": "The outputs for each input (filled: the event)", "anchor": "start", "fontSize": 13}
    chart: Spec = {"width": WIDTH, "height": HEIGHT, "data": {"values": _draw_shares(values)}, "title": titled}
    if figure.bars and figure.bars[0].left is None:
        x: Spec = nominal("label", title=figure.title, sort=None)
        return chart | {
            "mark": {"type": "bar", "strokeWidth": 1.5},
            "encoding": {
                "x": x,
                "xOffset": nominal("input"),
                "y": share,
                "stroke": colour | {"legend": None},
                "color": colour,
                "fillOpacity": quantity("inside", scale={"range": [0.15, 0.9]}, legend=None),
            },
        }
    x = quantity("left", title=figure.title, axis={"grid": False}, scale={"zero": False})
    bars = {
        "mark": {"type": "bar", "binSpacing": 0},
        "encoding": {
            "x": x,
            "x2": {"field": "right"},
            "y": share | {"stack": None},
            "y2": {"datum": 0},
            "color": colour,
            "fillOpacity": quantity("inside", scale={"domain": [0, 1], "range": [0.08, 0.5]}, legend=None),
        },
    }
    line = {
        "mark": {"type": "line", "interpolate": "step-after", "strokeWidth": 1.8},
        "encoding": {"x": x, "y": share, "color": colour},
    }
    return chart | {"layer": [bars, line]}


def _bar_rows(bar: Bar) -> list[Spec]:
    return [
        {"label": bar.label, "left": bar.left, "right": bar.right, "input": side, "count": count, "inside": bar.inside}
        for side, count in zip(SIDES, (bar.first, bar.second), strict=True)
    ]


def _draw_shares(rows: list[Spec]) -> list[Spec]:
    totals = {side: max(1, sum(row["count"] for row in rows if row["input"] == side)) for side in SIDES}
    return [row | {"share": row["count"] / totals[row["input"]]} for row in rows]


def _delta_curve(result: AuditResult) -> Spec:
    """Return delta as a function of epsilon: the claimed one, and the demonstrated one."""
    most = max(1.5 * result.claimed, 1.15 * result.demonstrated, 0.5)
    points = []
    for place in range(POINTS + 1):
        epsilon = most * place / POINTS
        points.append(("claimed", epsilon, _claimed_delta(result, epsilon)))
        if result.tested:
            proved = max(each.proved.delta(Fraction(epsilon)) for each in result.tested)
            points.append(("demonstrated", epsilon, proved))
    looks = {
        "claimed": Look("claimed: at most", GREEN, dash=(6, 4), size=1),
        "demonstrated": Look("demonstrated: at least", INK, size=1),
    }
    x, y = Axis("ε", domain=(0, most)), Axis("δ", zero=True)
    # the label of the larger of the two is on its right, if there is room
    sides: dict[bool, Literal["left", "right"]] = {True: "right", False: "left"}
    claimed_left = result.claimed < result.demonstrated and result.claimed > most / 3
    demonstrated_left = result.demonstrated > 0.75 * most
    marks = [
        *mark_at(result.claimed, f"claimed ε = {result.claimed:g}", axis=x, side=sides[claimed_left]),
        *mark_at(
            result.demonstrated,
            f"demonstrated ε ≥ {result.demonstrated:.3g}",
            axis=x,
            side=sides[demonstrated_left],
            down=28,
        ),
    ]
    title = "The loss: δ as a function of ε"
    return line_panel(points, looks, x=x, y=y, title=title, more=marks, width=WIDTH, height=HEIGHT)


def _claimed_delta(result: AuditResult, epsilon: float) -> float:
    """Return the largest delta at `epsilon` of anything within the claim."""
    if epsilon >= result.claimed:
        return result.delta
    return 1 - (1 - result.delta) * (1 + math.exp(epsilon)) / (1 + math.exp(result.claimed))
