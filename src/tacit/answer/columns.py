"""The answer's columns, from noisy integers: each aggregate X as X, X_low and X_high.

All of it is post-processing of noisy integers by public facts. Counts are whole, sums are on their public step, and a
mean is None if a group has too few people for its noise.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Literal, assert_never

import numpy as np

from tacit.answer.anchors import Anchor, anchors
from tacit.answer.error_bars import (
    mean_bounds,
    mean_intervals,
    on_grid,
    shown_count_reach,
    sum_levels,
    unrounded_means,
    unrounded_quantiles,
)
from tacit.answer.learned_ranges import widened
from tacit.answer.moments import NoisyColumn, Number, is_scaled_moment, moment_column
from tacit.answer.noise_sums import law_bound, nearest_bound, weighted_bound
from tacit.answer.possible import cut_to_possible
from tacit.answer.scaled_columns import at_least, is_scaled, scaled_column
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
from tacit.privacy import FITS, Wholes, combined, nearest_quotients, wholes
from tacit.release import NoisyTable


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
            found[output.name] = tuple(max(end or 0, 0) for end in kept.low)
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
    ends = wholes([bound + int(each) for each in moved.tolist()])
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
