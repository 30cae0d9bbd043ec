"""What a picture of an audit shows: how often each input gave what, and which part of it the event is."""

from itertools import pairwise

import numpy as np

from tacit.auditing.audit_result import Bar, Figure
from tacit.auditing.distinguish import Event
from tacit.auditing.outcome import Outcomes

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
        numbers = [_as_number(label) for label in labels]
        if all(number is not None for number in numbers):
            order = np.argsort(numbers)  # type: ignore[arg-type]
            common, labels = common[order], [labels[at] for at in order]
        bars = [
            _bar(label, None, None, outcomes.values == code, inside, outcomes.first)
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
        bars.append(_bar("", left, right, here, inside, outcomes.first))
    return Figure(outcomes.names[place], tuple(bars))


def _telling_column(outcomes: Outcomes, event: Event | None) -> int | None:
    """Return the number that the event is about, if it names one, and the first otherwise."""
    usable = [place for place in range(len(outcomes.names)) if np.isfinite(outcomes.numbers[:, place]).any()]
    if not usable:
        return None
    words = "" if event is None else event.words
    return next((place for place in usable if words.startswith(f"{outcomes.names[place]} ")), usable[0])


def _bar(
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


def _as_number(label: str) -> float | None:
    try:
        return float(label)
    except ValueError:
        return None
