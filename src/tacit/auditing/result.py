"""The result of an audit: the claim, the demonstrated loss and the event that shows it, in words and as JSON.

The last part computes the bars of its picture: how often each input gave each output, and how much of that belongs to
the event.

The picture of an audit: the two histograms with the event marked, and the demonstrated loss beside the claim.

Needs the `plots` extra. The right panel shows, for every epsilon, the delta that the claim allows and the one that the
tested events prove to be exceeded: if the second rises above the first, the claim is false.
"""

import math
import os
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tacit.auditing.distinguish import Event
from tacit.auditing.lower_bound import Proved, Tally
from tacit.auditing.outcome import Outcomes
from tacit.errors import json_text
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

CANNOT = "An audit can refute a claim on the inputs it was given; it cannot prove one."


@dataclass(frozen=True)
class Bar:
    """A bar of the two histograms: a label or a range, its frequency on each input, and the event's part."""

    label: str
    left: float | None
    right: float | None
    first: int
    second: int
    inside: float


@dataclass(frozen=True)
class Figure:
    """The subject of the histograms, and their bars."""

    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Finding:
    """A tested event: its description, its likelier input, its frequency, the loss it proves."""

    event: str
    likelier_first: bool
    tally: Tally
    proved: Proved

    def __str__(self) -> str:
        names = ("d0", "d1") if self.likelier_first else ("d1", "d0")
        seen = self.tally
        return (
            f"{self.event}: {seen.likelier:,} of {seen.likelier_draws:,} draws on {names[0]}, "
            f"{seen.rarer:,} of {seen.rarer_draws:,} on {names[1]}"
        )


@dataclass(frozen=True)
class AuditResult:
    """The findings of an audit. `violated` is wrong with probability at most 1 - confidence."""

    violated: bool
    claimed: float
    delta: float
    demonstrated: float
    event: str
    draws: int
    confidence: float
    method: str
    deterministic: bool = False
    notes: tuple[str, ...] = ()
    tested: tuple[Finding, ...] = field(default=(), repr=False)
    figure: Figure | None = field(default=None, repr=False)

    @property
    def verdict(self) -> str:
        """The finding in one sentence."""
        at = "" if self.delta == 0 else f" at δ = {self.delta:g}"
        sure = f"confidence {self.confidence:.10g}, {self.draws:,} draws of each input"
        if self.deterministic and not self.violated and self.demonstrated == 0:
            return (
                "NOT VIOLATED, BUT NO NOISE: every draw on both inputs gave the same output; this pair of inputs "
                f"is not evidence ({sure})"
            )
        if self.violated:
            return (
                f"VIOLATED: ε ≥ {self.demonstrated:.4g}{at} was demonstrated, and ε = {self.claimed:g} is claimed"
                f" ({sure})"
            )
        most = f"no more than ε ≥ {self.demonstrated:.4g}" if self.demonstrated > 0 else "nothing"
        return f"NOT VIOLATED: ε = {self.claimed:g}{at} is claimed, and {most} was demonstrated ({sure})"

    def lines(self) -> list[str]:
        """Return the finding as lines to print."""
        shown = [self.verdict]
        if self.demonstrated > 0:
            best = next((str(each) for each in self.tested if each.event == self.event), self.event)
            shown.append(f"event: {best}")
        if self.deterministic and self.demonstrated > 0:
            shown.append(
                "All draws on one input were equal: without noise, any difference between inputs means that no ε holds."
            )
        shown += list(self.notes)
        return shown if self.violated else [*shown, CANNOT]

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        return {
            "violated": self.violated,
            "claimed": {"epsilon": self.claimed, "delta": self.delta},
            "demonstrated": {"epsilon": self.demonstrated, "delta": self.delta},
            "event": self.event,
            "draws": self.draws,
            "confidence": self.confidence,
            "method": self.method,
            "deterministic": self.deterministic,
            "verdict": self.verdict,
            "notes": list(self.notes),
            "tested": [
                {
                    "event": each.event,
                    "likelier_on": "d0" if each.likelier_first else "d1",
                    "likelier": [each.tally.likelier, each.tally.likelier_draws],
                    "rarer": [each.tally.rarer, each.tally.rarer_draws],
                }
                for each in self.tested
            ],
        }

    def to_json(self) -> str:
        """Return the finding as JSON."""
        return json_text(self.to_dict())

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Return a picture of the two histograms and of the demonstrated loss beside the claimed one.

        With a path it is written there, as .png, .svg or .html by its ending. Needs the `plots` extra.
        """

        return picture(self) if path is None else write_picture(self, Path(path))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__

    def __rich__(self) -> str:
        from rich.markup import escape

        first, *others = self.lines()
        colour = "bold red" if self.violated else "bold green"
        word, _, rest = first.partition(":")
        return "\n".join([f"[{colour}]{escape(word)}[/]:{escape(rest)}", *map(escape, others)])


# ---- The bars of the picture.

BARS_MOST = 60
VALUES_MOST = 24


def make_figure(outcomes: Outcomes, event: Event | None) -> Figure:
    """Return two histograms over the same bars: of a number in the output, or of its commonest values."""
    inside = np.zeros(len(outcomes.kinds), dtype=bool) if event is None else event.inside
    values, counts = np.unique(outcomes.values, return_counts=True)
    place = _telling_column(outcomes, event)
    if len(values) <= VALUES_MOST or place is None:
        common = values[np.argsort(-counts, kind="stable")][:VALUES_MOST]
        labels = [outcomes.value_of(int(code)) for code in common]
        numbers = [_label_number(label) for label in labels]
        if all(number is not None for number in numbers):
            order = np.argsort(numbers)  # type: ignore[arg-type]
            common, labels = common[order], [labels[at] for at in order]
        bars = [
            _histogram_bar(label, None, None, outcomes.values == code, inside, outcomes.first)
            for label, code in zip(labels, common, strict=True)
        ]
        return Figure("output", tuple(bars))
    column = outcomes.numbers[:, place]
    finite = column[np.isfinite(column)]
    low, high = np.quantile(finite, [0.001, 0.999])
    edges = np.linspace(low, high, BARS_MOST + 1)
    if np.all(finite == np.floor(finite)) and high - low <= 4 * BARS_MOST:  # whole numbers have whole bars
        step = max(1, int(np.ceil((high - low + 1) / BARS_MOST)))
        edges = np.arange(low - 0.5, high + step + 0.5, step)
    bars = []
    for left, right in pairwise(edges.tolist()):
        here = (column >= left) & (column < right)
        bars.append(_histogram_bar("", left, right, here, inside, outcomes.first))
    return Figure(outcomes.names[place], tuple(bars))


def _telling_column(outcomes: Outcomes, event: Event | None) -> int | None:
    """Return the number that the event is about, if it names one, and the first otherwise."""
    usable = [place for place in range(len(outcomes.names)) if np.isfinite(outcomes.numbers[:, place]).any()]
    if not usable:
        return None
    words = "" if event is None else event.words
    return next((place for place in usable if words.startswith(f"{outcomes.names[place]} ")), usable[0])


def _histogram_bar(
    label: str,
    left: float | None,
    right: float | None,
    here: np.ndarray[tuple[int], np.dtype[np.bool_]],
    inside: np.ndarray[tuple[int], np.dtype[np.bool_]],
    first: int,
) -> Bar:
    total = max(1, int(here.sum()))
    return Bar(
        label, left, right, int(here[:first].sum()), int(here[first:].sum()), float((here & inside).sum()) / total
    )


def _label_number(label: str) -> float | None:
    try:
        return float(label)
    except ValueError:
        return None


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
