"""What the counters say: estimates with intervals, what was used and rejected, and what fakes could have done.

Everything here is computed from reports that are already private, so it costs nothing.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.local.intervals import Counting, Floats, norm_sub
from tacit.local.mean_interval import mean_interval
from tacit.local.means import MeanResponse
from tacit.local.questions import Label, Range
from tacit.noise.threshold import Integers
from tacit.printable import printable
from tacit.privacy.loss import PureLoss

SHOWN_ROWS = 20


@dataclass(frozen=True)
class Basis:
    """What an estimate rests on: the loss of one report, how many were used, and how many were rejected and why."""

    loss: PureLoss
    used: int
    rejected: Mapping[str, int] = field(default_factory=Counter)
    confidence: float = 0.95

    def line(self) -> str:
        """Return it as a line to print."""
        total = sum(self.rejected.values())
        why = ", ".join(f"{count:,} {reason}" for reason, count in self.rejected.items() if count)
        rejected = f"{total:,} rejected ({why})" if total else "none rejected"
        return f"{self.used:,} reports used, {rejected}; {self.loss} for each person's report."


@dataclass(frozen=True)
class Shift:
    """How far fakes can move one estimate, at most: below and above what the honest reports alone would give."""

    down: float
    up: float


class FromReports:
    """What every estimate can say of the reports it was made from."""

    basis: Basis

    @property
    def used(self) -> int:
        """How many reports were counted."""
        return self.basis.used

    @property
    def rejected(self) -> int:
        """How many reports were rejected, for whatever reason."""
        return sum(self.basis.rejected.values())


@dataclass(frozen=True)
class FrequencyEstimate(FromReports):
    """The count of each answer: unbiased with an interval, and beside it counts that are whole together.

    `consistent` are at least 0 and add up to everyone; they err less on small counts and are biased there.
    """

    values: tuple[Label, ...]
    counts: Floats
    low: Floats
    high: Floats
    consistent: Floats
    counting: Counting
    basis: Basis
    inspect: Callable[[Floats], tuple[str, ...]] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def flags(self) -> tuple[str, ...]:
        """Signs that fakes push some answers; looked for when first asked."""
        return () if self.inspect is None else self.inspect(self.consistent)

    def poisoning(self, fraction: float) -> Shift:
        """Return the worst shift of one answer's count if this fraction of the reports were sent to move it.

        A fake that supports an answer adds (1 - q)/(p - q) to its count, one that does not takes q/(p - q) away.
        """
        fakes = fraction * self.counting.people
        gain = float(self.counting.keep - self.counting.stray)
        return Shift(-fakes * float(self.counting.stray) / gain, fakes * float(1 - self.counting.stray) / gain)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        rows = [
            {"value": value, "count": count, "count_low": low, "count_high": high, "consistent": consistent}
            for value, count, low, high, consistent in zip(
                self.values,
                self.counts.tolist(),
                self.low.tolist(),
                self.high.tolist(),
                self.consistent.tolist(),
                strict=True,
            )
        ]
        return {"rows": rows, **_about(self.basis), "flags": list(self.flags)}

    def __str__(self) -> str:
        order = np.argsort(-self.counts, kind="stable")[:SHOWN_ROWS]
        names = {place: printable(str(self.values[place])) for place in order}
        width = max([5, *map(len, names.values())])
        level = f"{self.basis.confidence * 100:g} %"
        head = f"{'value':{width}} {'count':>12} {level + ' interval':>25}"
        rows = [
            f"{names[place]:{width}} {self.counts[place]:12,.0f} "
            f"{f'{self.low[place]:,.0f} to {self.high[place]:,.0f}':>25}"
            for place in order
        ]
        left = len(self.values) - len(rows)
        more = [f"… and {left:,} more"] if left else []
        return "\n".join([head, *rows, *more, self.basis.line(), *self.flags])

    __repr__ = __str__

    def plot(self, path: str) -> None:
        """Write a chart of the largest counts with their intervals, as PNG or SVG by the path's ending."""
        from tacit.local.plotting import plot_counts

        plot_counts(self, path)


@dataclass(frozen=True)
class MeanEstimate(FromReports):
    """The mean of a number: unbiased, with an interval; None where no report was used."""

    mean: float | None
    low: float | None
    high: float | None
    question: Range
    protocol: MeanResponse
    basis: Basis

    def poisoning(self, fraction: float) -> Shift:
        """Return the worst shift of the mean if this fraction of the reports were sent to move it."""
        least, most = self.protocol.extremes()
        width = float(self.question.high - self.question.low) * fraction
        # the honest mean is at least the one end and at most the other
        return Shift((least - 1) * width, most * width)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON."""
        row = {"mean": self.mean, "mean_low": self.low, "mean_high": self.high}
        return {"rows": [row] if self.mean is not None else [], **_about(self.basis)}

    def __str__(self) -> str:
        if self.mean is None:
            return f"no mean: there is no report to estimate it from\n{self.basis.line()}"
        level = f"{self.basis.confidence * 100:g} %"
        return f"mean {self.mean:,.6g}, {level} interval {self.low:,.6g} to {self.high:,.6g}\n{self.basis.line()}"

    __repr__ = __str__


@dataclass(frozen=True)
class AttributesEstimate(FromReports):
    """The counts of each attribute, by name."""

    attributes: Mapping[str, FrequencyEstimate]
    basis: Basis

    def __getitem__(self, name: str) -> FrequencyEstimate:
        return self.attributes[name]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values, for JSON: a row for each answer of each attribute."""
        rows = [{"attribute": name, **row} for name, each in self.attributes.items() for row in each.to_dict()["rows"]]
        return {"rows": rows, **_about(self.basis)}

    def __str__(self) -> str:
        parts = [f"{name}\n" + "\n".join(str(each).splitlines()[:-1]) for name, each in self.attributes.items()]
        return "\n\n".join([*parts, self.basis.line()])

    __repr__ = __str__


def estimate_counts(
    values: tuple[Label, ...],
    supports: Integers,
    counting: Counting,
    basis: Basis,
    inspect: Callable[[Floats], tuple[str, ...]] | None = None,
) -> FrequencyEstimate:
    """Return the estimate that supports give."""
    counts = counting.unbiased(supports)
    low, high = counting.bounds(supports, basis.confidence)
    consistent = norm_sub(counts, float(counting.people)) if counting.reports else np.zeros(len(counts))
    return FrequencyEstimate(values, counts, low, high, consistent, counting, basis, inspect)


def estimate_mean(question: Range, protocol: MeanResponse, tally: NDArray[Any], basis: Basis) -> MeanEstimate:
    """Return the estimate that a mean's counters give."""
    found = mean_interval(protocol, tally, basis.confidence)
    if found is None:
        return MeanEstimate(None, None, None, question, protocol, basis)
    low, width = float(question.low), float(question.high - question.low)
    mean, least, most = (low + width * part for part in found)
    return MeanEstimate(mean, least, most, question, protocol, basis)


def _about(basis: Basis) -> dict[str, Any]:
    return {
        "used": basis.used,
        "rejected": sum(basis.rejected.values()),
        "rejected_by_reason": {reason: count for reason, count in basis.rejected.items() if count},
        "epsilon": str(basis.loss.epsilon),
        "confidence": basis.confidence,
    }
