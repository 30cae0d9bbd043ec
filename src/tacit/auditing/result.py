"""The result of an audit: the claim, the demonstrated loss and the event that shows it, in words and as JSON.

The last part computes the bars of its picture: how often each input gave each output, and how much of that belongs to
the event. `audit_picture.py` draws them.
"""

import os
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from tacit.auditing.distinguish import Event
from tacit.auditing.lower_bound import Proved, Tally
from tacit.auditing.outcome import Outcomes
from tacit.errors import json_text

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
        from tacit.auditing.audit_picture import picture, write_picture

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
