"""Make totals agree with their parts: weighted least squares over the levels of one answer.

The levels of a ROLLUP have independent noise. A total can be read off its own level, or added up from the cells below
it, and the best estimate weighs the two by the variances of their noise (docs/proofs/totals.md). The result has a
smaller error than either. Every pair of levels is made to agree on their common margins. All of it is post-processing.

If a number has only noise, the new interval is that of the weighted sum of noises. If a number may also lack rows
beyond a cap, errors of one level may all go the same way: a level's variances are then multiplied by its number of
groups, so that its sum is trusted less, and an interval is its own and reaches to the new number.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor
from typing import Any

import numpy as np

from tacit.answer.columns import column_type
from tacit.answer.moments import NoisyColumn
from tacit.answer.noise_sums import weighted_bounds
from tacit.answer.scaled_columns import is_scaled
from tacit.plan import CountRows, CountValues, NoiseKind, Plan, PlannedOutput, Sum, whole_of
from tacit.privacy import Floats
from tacit.query import ADDED_UP_MOST
from tacit.release import NoisyTable

ADDED_UP = (
    "Totals of {names} and the rows below them are made to agree: each is estimated from all levels, and cut at what"
    " is possible. Rows with other keys than the listed ones are in none of them."
)
LEFT_ALONE = "Totals have noise of their own and do not add up: groups that are not listed may be missing below them."


@dataclass(frozen=True)
class Level:
    """A level of an answer: its keys among all keys, its plan, and its release."""

    kept: tuple[int, ...]
    plan: Plan
    noisy: NoisyTable


@dataclass(frozen=True)
class _Noise:
    """The noise of one number: independent equal noises, each times a weight."""

    kind: NoiseKind
    scale: Fraction
    weights: tuple[float, ...]

    @property
    def variance(self) -> float:
        each = float(self.scale) ** 2 * (2.0 if self.kind == "laplace" else 1.0)
        return each * sum(weight**2 for weight in self.weights)


def can_add_up(levels: Sequence[Level]) -> bool:
    """Return whether numbers of these levels are of the same rows: all keys are public, and no level has too many."""
    rows = sum(len(level.noisy.keys) for level in levels)
    return len(levels) > 1 and rows <= ADDED_UP_MOST and all(level.plan.public_keys is not None for level in levels)


def added_up(
    levels: Sequence[Level], columns: Sequence[Sequence[NoisyColumn]], confidence: Fraction
) -> tuple[list[list[NoisyColumn]], list[str]]:
    """Return the columns of each level with counts and sums that agree, and the names of those that do."""
    found = [list(each) for each in columns]
    if not can_add_up(levels):
        return found, []
    margins = _margins(levels)
    names = []
    for place, output in enumerate(levels[0].plan.outputs):
        if not isinstance(output, CountRows | CountValues | Sum):
            continue
        asked = [column[place] for column in columns]
        if any(value is None for column in asked for value in (*column.values, *column.low, *column.high)):
            continue
        fitted = _fitted(levels, place, asked, margins, confidence)
        if fitted is not None:
            names.append(output.name)
            for level, column in zip(found, fitted, strict=True):
                level[place] = column
    return found, names


def _margins(levels: Sequence[Level]) -> Floats:
    """Return what must be 0 of all numbers, level after level: one row for each group that two levels have a sum of."""
    starts = np.cumsum([0, *(len(level.noisy.keys) for level in levels)])
    top = next((each for each in levels if all(set(other.kept) <= set(each.kept) for other in levels)), None)
    rows: list[Floats] = []
    for first, one in enumerate(levels):
        for second, two in enumerate(levels):
            if (top is not None and one is not top) or (top is None and first >= second) or first == second:
                continue
            shared = [key for key in one.kept if key in two.kept]
            sums: dict[Any, Floats] = {}
            for at, level, sign in ((first, one, 1.0), (second, two, -1.0)):
                places = [level.kept.index(key) for key in shared]
                for group, key in enumerate(level.noisy.keys):
                    row = sums.setdefault(tuple(key[each] for each in places), np.zeros(int(starts[-1])))
                    row[starts[at] + group] += sign
            rows += sums.values()
    return np.array(rows).reshape(len(rows), int(starts[-1]))


def _fitted(
    levels: Sequence[Level], place: int, asked: Sequence[NoisyColumn], margins: Floats, confidence: Fraction
) -> list[NoisyColumn] | None:
    """Return one output of all levels as least squares has it; None if its levels are not of the same rows."""
    noises = [_noise_of(level, place) for level in levels]
    values = np.array([value for column in asked for value in column.values], dtype=np.float64)
    sizes = [len(column.values) for column in asked]
    known = [noise for noise in noises if noise is not None]
    if len(known) == len(levels):
        variances = [noise.variance for noise in known]
    elif all(noise or _is_scaled(level, place) for noise, level in zip(noises, levels, strict=True)):
        variances = [_widest(column) ** 2 * len(column.values) for column in asked]
    else:
        return None
    spread = np.repeat(variances, sizes)
    if not spread.all():
        return None
    weighed = margins * spread
    hat = np.eye(len(values)) - weighed.T @ np.linalg.lstsq(weighed @ margins.T, margins, rcond=None)[0]
    fitted = hat @ values
    bounds = _bounds(hat, known, sizes, confidence) if len(known) == len(levels) else None
    return _columns(levels, place, asked, fitted, bounds)


def _is_scaled(level: Level, place: int) -> bool:
    """Whether people count with one weight each, so that levels are of the same rows."""
    return is_scaled(level.plan.outputs[place], level.plan)


def _widest(column: NoisyColumn) -> float:
    return max((float(high) - float(low) for low, high in zip(column.low, column.high, strict=True)), default=0.0) / 2  # type: ignore[arg-type]


def _noise_of(level: Level, place: int) -> _Noise | None:
    """Return the noise of a count or a sum; None if people may have lost rows, or its noise is of another kind."""
    plan = level.plan
    output = plan.outputs[place]
    if plan.scaling is not None or not isinstance(output, CountRows | CountValues | Sum):
        return None
    if plan.unit is not None and plan.groups_per_unit > 1:
        return None
    release = plan.releases[output.release]
    if release.noise == "staircase":
        return None
    weights = _weights_of(output, plan)
    return None if weights is None else _Noise(release.summed, release.scale, weights)


def _weights_of(output: PlannedOutput, plan: Plan) -> tuple[float, ...] | None:
    """Return what each part counts for in the number, in its own unit."""
    if not isinstance(output, CountRows | CountValues | Sum):
        return None
    parts = plan.releases[output.release].parts
    if any(part.kind == "moment" for part in parts):
        return None
    if not isinstance(output, Sum):
        if len(parts) == 1:
            return (1.0,)
        height = float(whole_of(parts[-1], plan.measured))
        counted = [part for part in parts if part.kind != "missing" or isinstance(output, CountRows)]
        return (1 / height,) * len(counted)
    column = plan.measured[output.column]
    if column.off:
        return None  # rounding to the grid may add up
    if any(part.kind == "total" for part in parts):
        return (float(column.step),)
    ends = (column.low, column.high)
    return tuple(float(end * column.step / column.height) for end in ends)


def _bounds(hat: Floats, noises: Sequence[_Noise], sizes: Sequence[int], confidence: Fraction) -> Floats | None:
    """Return the error of each fitted number; None if levels have noises of two kinds."""
    kinds = {noise.kind for noise in noises}
    if len(kinds) > 1:
        return None
    least = min(noise.scale for noise in noises)
    columns = []
    start = 0
    for noise, size in zip(noises, sizes, strict=True):
        of_level = hat[:, start : start + size]
        columns += [of_level * (weight * float(noise.scale / least)) for weight in noise.weights]
        start += size
    return weighted_bounds(noises[0].kind, least, np.hstack(columns), confidence)


def _columns(
    levels: Sequence[Level], place: int, asked: Sequence[NoisyColumn], fitted: Floats, bounds: Floats | None
) -> list[NoisyColumn]:
    starts = np.cumsum([0, *(len(column.values) for column in asked)])
    by_level = [fitted[start:end] for start, end in pairwise(starts)]
    whole = column_type(levels[0].plan.outputs[place], levels[0].plan) == "int"
    rounded = _whole(levels, by_level) if whole else [each.tolist() for each in by_level]
    found = []
    for at, column in enumerate(asked):
        values = tuple(rounded[at])
        low, high = column.low, column.high
        if bounds is not None:
            low, high = _narrower(column, by_level[at], bounds[starts[at] : starts[at + 1]], whole=whole)
        low = tuple(min(end, value) for end, value in zip(low, values, strict=True))
        high = tuple(max(end, value) for end, value in zip(high, values, strict=True))
        found.append(replace(column, values=values, low=low, high=high))
    return found


def _narrower(column: NoisyColumn, fitted: Floats, reach: Floats, *, whole: bool) -> tuple[Any, Any]:
    """Return the interval around each fitted number, or its own if that is not wider: widths depend on no row."""
    low: list[Any] = []
    high: list[Any] = []
    for one, far, down, up in zip(fitted.tolist(), reach.tolist(), column.low, column.high, strict=True):
        ends = (ceil(one - far), floor(one + far)) if whole else (one - far, one + far)
        is_narrower = 2 * far < float(up) - float(down)  # type: ignore[arg-type]
        low.append(ends[0] if is_narrower else down)
        high.append(ends[1] if is_narrower else up)
    return low, high


def _whole(levels: Sequence[Level], fitted: Sequence[Floats]) -> list[list[int]]:
    """Return whole numbers that still add up where each level is below another one, as in a ROLLUP."""
    order = sorted(range(len(levels)), key=lambda at: len(levels[at].kept))
    is_chain = all(set(levels[one].kept) < set(levels[two].kept) for one, two in pairwise(order))
    found: list[list[int]] = [[round(value) for value in each.tolist()] for each in fitted]
    if not is_chain:
        return found
    for above, below in pairwise(order):
        totals = dict(zip(levels[above].noisy.keys, found[above], strict=True))
        places = [levels[below].kept.index(key) for key in levels[above].kept]
        children: dict[Any, list[int]] = {}
        for at, key in enumerate(levels[below].noisy.keys):
            children.setdefault(tuple(key[each] for each in places), []).append(at)
        for parent, group in children.items():
            if parent in totals:
                shares = _apportioned([float(fitted[below][at]) for at in group], totals[parent])
                for at, share in zip(group, shares, strict=True):
                    found[below][at] = share
    return found


def _apportioned(values: Sequence[float], total: int) -> list[int]:
    """Return whole numbers near the values that add up to the total: the largest remainders are rounded up."""
    low = [floor(value) for value in values]
    missing = total - sum(low)
    order = sorted(range(len(values)), key=lambda at: (low[at] - values[at], at))
    each, more = divmod(missing, len(values)) if values else (0, 0)
    extra: Mapping[int, int] = dict.fromkeys(order[:more], 1)
    return [down + each + extra.get(at, 0) for at, down in enumerate(low)]
