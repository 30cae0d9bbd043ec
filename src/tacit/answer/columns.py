"""The answer's columns, from noisy integers: each aggregate X as X, X_low and X_high.

All of it is post-processing of noisy integers by public facts. Counts are whole, sums are on their public step, and a
mean is None if a group has too few people for its noise.

Cut numbers and their intervals at possible values, only by public facts.

A count is at least 0, a group with a found key has at least one unit, a mean is inside the range that its values were
clamped to, a correlation is between -1 and 1. The true number lies in that set, so a cut interval covers it with the
same probability. An interval that is wholly outside becomes the nearest possible number. This is post-processing of
released numbers, and free.

Replace numbers that are impossible beside each other by the nearest possible ones.

The limits of a single number come first. Within a row, COUNT(x) is at most COUNT(*), and a sum lies between
its count times the two ends of the range. Quantiles of one call are drawn in order already. This is post-processing of
released numbers by public facts, so it is free. The error of impossible numbers gets smaller; in return, averages over
many such answers are no longer unbiased.

The possible loss of a group beyond a learned range: the predicted part of an interval, beside the noise.

A value beyond the range counts as its end. People's values beyond both ends are predicted from the profile of the
range, and a group may lack the same part of them as of the rows beyond a cap (`anchors.py`): a convention.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal, assert_never

import numpy as np

from tacit.answer.anchors import Anchor, anchors, most_of_groups
from tacit.answer.error_bars import (
    mean_bounds,
    mean_intervals,
    on_grid,
    shown_count_reach,
    sum_levels,
    unrounded_means,
    unrounded_quantiles,
)
from tacit.answer.moments import NoisyColumn, Number, is_scaled_moment, moment_column
from tacit.answer.noise_sums import law_bound, nearest_bound, weighted_bound
from tacit.answer.scaled_columns import at_least, is_scaled, scaled_column
from tacit.numbers import FITS, FLOAT_EXACT, Floats, Wholes, combined, nearest_quotients, wholes
from tacit.plan import (
    Correlation,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Covariance,
    Mean,
    Measured,
    NoisyRelease,
    Plan,
    PlannedOutput,
    Quantile,
    Ranking,
    StandardDeviation,
    Sum,
    Variance,
    whole_of,
)
from tacit.query import Column, Parts
from tacit.release import NoisyTable

# The least and the most that a number can be; None: unlimited on that side.
Limits = tuple[int | float | None, int | float | None]


def cut_to_possible(plan: Plan, columns: Sequence[NoisyColumn]) -> list[NoisyColumn]:
    """Return the columns with every value and end cut at what is possible.

    Privacy: post-processing of released and public values.
    """
    return [_cut(column, limits_of(output, plan)) for output, column in zip(plan.outputs, columns, strict=True)]


def limits_of(output: PlannedOutput, plan: Plan) -> Limits:
    """Return the least and the most that an output can be in any group, for any rows."""
    match output:
        case CountRows() | CountUnits():
            return 0 if plan.threshold is None else 1, None  # a key that was found is in some row
        case CountValues() | CountDistinct():
            return 0, None
        case Sum():
            column = plan.measured[output.column]
            return 0 if column.low >= 0 else None, 0 if column.high <= 0 else None
        case Mean() | Quantile():
            return _clamped_range(plan.measured[output.column])
        case Variance() | StandardDeviation():
            return 0.0, None
        case Correlation():
            return -1.0, 1.0
        case Covariance() | Ranking():
            return None, None
        case _:
            assert_never(output)


def parts_of_outputs(plan: Plan) -> Parts:
    """Return which outputs are never more than which others in the same group: shares of them are at most 1."""
    rows = CountRows | CountUnits if plan.rows_per_unit == 1 else CountRows
    wholes = [output for output in plan.outputs if isinstance(output, rows)]
    parts = [
        output for output in plan.outputs if isinstance(output, CountValues | CountUnits) or _adds_up_ones(output, plan)
    ]
    return frozenset((Column(part.name), Column(whole.name)) for part in parts for whole in wholes)


def _adds_up_ones(output: PlannedOutput, plan: Plan) -> bool:
    """Whether an output is a sum of numbers from 0 to 1, as SUM(CASE WHEN … THEN 1 ELSE 0 END) is."""
    if not isinstance(output, Sum):
        return False
    column = plan.measured[output.column]
    return column.low >= 0 and column.high * column.step <= 1


def _clamped_range(column: Measured) -> Limits:
    """Return the range that values were clamped to: the declared one, or the one that was learned."""
    whole = column.step.denominator == 1 and column.type == "int"
    ends = column.between or (column.low * column.step, column.high * column.step)
    low, high = (int(end) if whole and end.denominator == 1 else float(end) for end in ends)
    return low, high


def _cut(column: NoisyColumn, limits: Limits) -> NoisyColumn:
    values, low, high = (_inside(each, limits) for each in (column.values, column.low, column.high))
    return replace(column, values=values, low=low, high=high)


def _inside(values: Sequence[Number], limits: Limits) -> tuple[Number, ...]:
    """Return numbers cut at their limits."""
    least, most = limits
    some = [value for value in values if value is not None] if None in values else values
    # no step for each number if all are inside, since there may be 100,000; a NaN in front is looked at below
    if least is not None and not min(some, default=least) >= least:  # type: ignore[type-var, operator]
        values = [least if value is not None and value < least else value for value in values]
    if most is not None and not max(some, default=most) <= most:  # type: ignore[type-var, operator]
        values = [most if value is not None and value > most else value for value in values]
    return tuple(values)


CONSISTENT = "Made consistent: counts are not negative, parts are at most their wholes, values are in their ranges."


def made_consistent(plan: Plan, columns: Sequence[NoisyColumn]) -> list[NoisyColumn]:
    """Return the columns with impossible numbers replaced by the nearest possible ones.

    Privacy: post-processing of released and public values.
    """
    found = {output.name: column for output, column in zip(plan.outputs, columns, strict=True)}
    _counts_add_up(plan, found)
    for output in plan.outputs:
        if isinstance(output, Sum):
            found[output.name] = _sum_fits(output, plan, found)
    return [found[output.name] for output in plan.outputs]


def _counts_add_up(plan: Plan, found: dict[str, NoisyColumn]) -> None:
    """COUNT(x) is at most COUNT(*), and the units are at most the rows."""
    rows = next((output for output in plan.outputs if isinstance(output, CountRows)), None)
    if rows is None:
        return
    for output in plan.outputs:
        if isinstance(output, CountValues | CountUnits):
            found[output.name] = _at_most(found[output.name], found[rows.name])


def _at_most(part: NoisyColumn, whole: NoisyColumn) -> NoisyColumn:
    capped = tuple(_lesser(one, two) for one, two in zip(part.values, whole.values, strict=True))
    low = tuple(_lesser(one, two) for one, two in zip(part.low, capped, strict=True))
    return replace(part, values=capped, low=low)


def _sum_fits(output: Sum, plan: Plan, found: dict[str, NoisyColumn]) -> NoisyColumn:
    """A sum over n rows lies between n times the ends of the range, where n is asked too."""
    column, sums = plan.measured[output.column], found[output.name]
    counts = next(
        (
            each
            for each in plan.outputs
            if isinstance(each, CountValues) and (each.column, each.release) == (output.column, output.release)
        ),
        None,
    )
    if counts is None:
        return sums
    ends = [end * column.step for end in (column.low, column.high)]
    exact = [int(end) if column.step.denominator == 1 else float(end) for end in ends]
    values = []
    for value, n in zip(sums.values, found[counts.name].values, strict=True):
        values.append(None if value is None or n is None else min(max(value, exact[0] * n), exact[1] * n))
    return _around(replace(sums, values=tuple(values)))


def _around(column: NoisyColumn) -> NoisyColumn:
    """Widen intervals so that they hold their own values."""
    low = tuple(_lesser(one, two) for one, two in zip(column.low, column.values, strict=True))
    high = tuple(_greater(one, two) for one, two in zip(column.high, column.values, strict=True))
    return replace(column, low=low, high=high)


def _lesser(one: Number, two: Number) -> Number:
    return one if two is None else two if one is None else min(one, two)


def _greater(one: Number, two: Number) -> Number:
    return one if two is None else two if one is None else max(one, two)


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


def noisy_columns(plan: Plan, noisy: NoisyTable, confidence: Fraction) -> list[NoisyColumn]:
    """Return every output of the plan, in its order, cut at what is possible."""
    return cut_to_possible(plan, uncut_columns(plan, noisy, confidence))


def uncut_columns(plan: Plan, noisy: NoisyTable, confidence: Fraction) -> list[NoisyColumn]:
    """Return the same as the noise left it, to compute with: cut numbers would add up to too much."""
    found = anchors(plan, noisy, confidence)
    return [_any_column(output, plan, noisy, found, confidence) for output in plan.outputs]


def _any_column(
    output: PlannedOutput, plan: Plan, noisy: NoisyTable, found: tuple[Anchor, ...], confidence: Fraction
) -> NoisyColumn:
    if is_scaled_moment(output, plan):
        return moment_column(output, plan, noisy, confidence)
    if is_scaled(output, plan):
        return scaled_column(output, plan, noisy, found, confidence)
    return widened(_output_column(output, plan, noisy, confidence), output, plan, noisy)


def lower_ends(plan: Plan, noisy: NoisyTable, confidence: Fraction) -> dict[str, tuple[Number, ...]]:
    """Return for outputs that bounding only lowers, by name, a lower bound of the table's number in each group.

    These are counts, and sums of columns that are declared not to be negative. The bound holds for any rows, at the
    probability of one tail of the noise (docs/proofs/corrected.md).
    """
    found: dict[str, tuple[Number, ...]] = {}
    for output in plan.outputs:
        if is_scaled(output, plan):
            least = at_least(output, plan, noisy, confidence)
            if least is not None:
                found[output.name] = least
        elif isinstance(output, CountRows | CountUnits | CountValues | CountDistinct) or (
            isinstance(output, Sum) and plan.measured[output.column].low >= 0
        ):
            kept = _output_column(output, plan, noisy, confidence)
            low = [end or 0 for end in kept.low] if None in kept.low else kept.low
            found[output.name] = _inside(low, (0, None))
    return found


def column_type(output: PlannedOutput, plan: Plan) -> Literal["int", "float"]:
    """Return whether an output's numbers are whole: counts, ranks, and sums and quantiles on a whole step."""
    if isinstance(output, Sum | Quantile):
        return "int" if plan.measured[output.column].step.denominator == 1 else "float"
    return "int" if output.numbers == "int" else "float"


def _output_column(output: PlannedOutput, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> NoisyColumn:
    match output:
        case Ranking():
            ranks = tuple(range(1, len(noisy.keys) + 1))
            return NoisyColumn(output.name, ranks, ranks, ranks)
        case Quantile():
            return _quantile_column(output, plan, noisy)
        case CountRows() | CountValues():
            return _count(output, plan, noisy, confidence)
        case CountUnits():
            return _units(output, plan, noisy, confidence)
        case CountDistinct():
            bound = law_bound(plan.releases[output.release].law, confidence)
            return _symmetric(output.name, noisy.parts[output.release][0], bound, Fraction(1))
        case Sum() | Mean() if not _has_moments(output, plan):
            return _of_two_parts(output, plan, noisy, confidence)
        case Sum() | Mean() | Variance() | StandardDeviation() | Covariance() | Correlation():
            return moment_column(output, plan, noisy, confidence)
        case _:
            assert_never(output)


def _has_moments(output: Sum | Mean, plan: Plan) -> bool:
    """Whether it comes with a variance, from the same Bernstein parts."""
    return any(part.kind == "moment" for part in plan.releases[output.release].parts)


def _of_two_parts(output: Sum | Mean, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> NoisyColumn:
    release, column = plan.releases[output.release], plan.measured[output.column]
    kinds: list[str] = [part.kind for part in release.parts]
    parts = dict(zip(kinds, noisy.parts[output.release], strict=True))
    made = _sum_column if isinstance(output, Sum) else _mean_column
    return made(output.name, parts, column, release, confidence)


def _count(output: CountRows | CountValues, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> NoisyColumn:
    """COUNT(x), or COUNT(*) with the rows with NULL x: the sum of the parts, over their sum for one row."""
    release = plan.releases[output.release]
    both = zip(release.parts, noisy.parts[output.release], strict=True)
    wanted = [values for part, values in both if part.kind != "missing" or isinstance(output, CountRows)]
    if len(release.parts) == 1:
        return _symmetric(output.name, wanted[0], law_bound(release.law, confidence), Fraction(1))
    height = whole_of(release.parts[-1], plan.measured)
    totals = nearest_quotients(combined(*((1, values) for values in wanted)), height)
    bound = nearest_bound(release.summed, release.scale, (1,) * len(wanted), height, confidence)
    return _symmetric(output.name, totals, bound, Fraction(1))


def _symmetric(name: str, values: Sequence[int] | Wholes, bound: int, step: Fraction) -> NoisyColumn:
    ends = np.full(len(values), bound, dtype=object if bound > FITS else np.int64)
    return NoisyColumn(
        name,
        on_grid(values, step),
        on_grid(combined((1, values), (-1, ends)), step),
        on_grid(combined((1, values), (1, ends)), step),
    )


def _units(output: CountUnits, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> NoisyColumn:
    name, release, (counts,) = output.name, plan.releases[output.release], noisy.parts[output.release]
    if plan.threshold is None:
        return _symmetric(name, counts, law_bound(release.law, confidence), Fraction(1))
    low, high = [], []
    for count in counts:
        down, up = shown_count_reach(release.summed, release.scale, confidence, count - plan.threshold.least)
        low.append(1 if down is None else max(1, count - down))
        high.append(count + up)
    return NoisyColumn(name, tuple(counts), tuple(low), tuple(high))


def _sum_column(
    name: str, parts: dict[str, tuple[int, ...]], column: Measured, release: NoisyRelease, confidence: Fraction
) -> NoisyColumn:
    if "total" in parts:
        bound = law_bound(release.law, confidence)
        return _symmetric(name, parts["total"], bound, column.step)
    height = column.height
    weighted = combined((column.low, parts["below"]), (column.high, parts["above"]))
    sums = nearest_quotients(weighted, height)
    weights = (column.low, column.high)
    sum_level, rows_level = sum_levels(column, confidence)
    bound = nearest_bound(release.summed, release.scale, weights, height, sum_level)
    if not column.off:
        return _symmetric(name, sums, bound, column.step)
    # rounding may have moved each row; the number of rows is known up to its own noise
    rows_bound = weighted_bound(release.summed, release.scale, [1 / height] * 2, rows_level)
    rows = combined((1, parts["below"]), (1, parts["above"])).astype(np.float64) / height + rows_bound
    moved = np.ceil(np.maximum(rows, 0.0) * float(column.off / column.step))
    few = max(bound, moved.max(initial=0.0)) < FLOAT_EXACT
    ends = bound + moved.astype(np.int64) if few else wholes([bound + int(each) for each in moved.tolist()])
    low, high = (on_grid(combined((1, sums), (sign, ends)), column.step) for sign in (-1, 1))
    return NoisyColumn(name, on_grid(sums, column.step), low, high)


def _mean_column(
    name: str, parts: dict[str, tuple[int, ...]], column: Measured, release: NoisyRelease, confidence: Fraction
) -> NoisyColumn:
    start, height = float(column.low * column.step), float(column.height * column.step)
    below, above = (wholes(parts[kind]) for kind in ("below", "above"))
    low, high, known = mean_intervals(mean_bounds(release.summed, release.scale, confidence), below, above)
    total = np.where(known, combined((1, below), (1, above)).astype(np.float64), 1.0)
    place = np.minimum(np.maximum(above.astype(np.float64) / total, low), high)
    values = (start + height * place).tolist()
    if not known.all():  # not enough people; the range it is known to have still holds it
        values = [value if some else None for value, some in zip(values, known.tolist(), strict=True)]
    low, high = unrounded_means(column, start + height * low, start + height * high)
    return NoisyColumn(name, tuple(values), tuple(low.tolist()), tuple(high.tolist()))


def _quantile_column(output: Quantile, plan: Plan, noisy: NoisyTable) -> NoisyColumn:
    drawn = noisy.parts[len(plan.releases) + output.draw]
    column = plan.measured[output.column]
    low, middle, high = (
        on_grid([column.low + steps for steps in drawn[target]], column.step) for target in output.targets
    )
    return NoisyColumn(output.name, middle, *unrounded_quantiles(column, low, high))
