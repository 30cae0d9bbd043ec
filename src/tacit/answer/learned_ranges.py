"""The possible loss of a group beyond a learned range: the predicted part of an interval, beside the noise.

A value beyond the range counts as its end. People's values beyond both ends are predicted from the profile of the
range, and a group may lack the same part of them as of the rows beyond a cap (`missing.py`): a convention.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tacit.answer.missing import most_of_groups
from tacit.answer.moments import NoisyColumn
from tacit.plan import Mean, Plan, PlannedOutput, StandardDeviation, Sum, Variance, whole_of
from tacit.privacy import Floats
from tacit.release import NoisyTable


def widened(column: NoisyColumn, output: PlannedOutput, plan: Plan, noisy: NoisyTable) -> NoisyColumn:
    """Return a sum, mean or variance with an interval that allows for values beyond a learned range."""
    if not isinstance(output, Sum | Mean | Variance | StandardDeviation):
        return column
    beyond = plan.learned_ranges.get(plan.measured[output.column].expression)
    groups = len(noisy.keys)
    if beyond is None or not groups:
        return column
    part = float(most_of_groups(np.full(groups, 1 / groups))[0])
    each = np.ones(groups) if isinstance(output, Sum) else np.maximum(_rows_of_groups(output, plan, noisy), 1.0)
    if isinstance(output, Sum | Mean):
        down, up = part * beyond.down / each, part * beyond.up / each
        return _with_more(column, down, up)
    squares = part * beyond.squares / each
    if isinstance(output, Variance):
        return _with_more(column, np.zeros(groups), squares)
    ends = [None if end is None else math.sqrt(end**2 + more) for end, more in zip(column.high, squares, strict=True)]
    return replace(column, high=tuple(ends))


def _rows_of_groups(output: Mean | Variance | StandardDeviation, plan: Plan, noisy: NoisyTable) -> Floats:
    """Return about how many rows with a value each group has."""
    release = plan.releases[output.release]
    both = zip(release.parts, noisy.parts[output.release], strict=True)
    some = np.array([values for part, values in both if part.kind != "missing"], dtype=np.float64)
    return np.asarray(some.sum(axis=0) / float(whole_of(release.parts[-1], plan.measured)))


def _with_more(column: NoisyColumn, down: Floats, up: Floats) -> NoisyColumn:
    """Return a column with its ends farther out, noise and loss joined as squares."""

    def ends(given: Sequence[int | float | None], more: Floats, sign: int) -> tuple[int | float | None, ...]:
        found: list[int | float | None] = []
        for value, end, far in zip(column.values, given, more.tolist(), strict=True):
            if value is None or end is None or not far:
                found.append(end)
                continue
            off = math.hypot(float(end) - float(value), far)
            found.append(value + sign * (math.ceil(off) if isinstance(end, int) else off))
        return tuple(found)

    return replace(column, low=ends(column.low, down, -1), high=ends(column.high, up, 1))
