"""The expected error of each output, from the plan and public facts: the basis for solving a wanted error.

If bounds were learned, it is complete: noise, total and weights (`foreseen.py`).
"""

from fractions import Fraction
from math import prod
from typing import Literal, assert_never

from tacit.answer import (
    is_scaled,
    is_scaled_moment,
    law_bound,
    mean_bounds,
    nearest_bound,
    sum_levels,
    weighted_bound,
)
from tacit.forecast.foreseen import foreseen_error
from tacit.plan import (
    UNIT_WEIGHT,
    Correlation,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Covariance,
    Mean,
    Plan,
    PlannedOutput,
    Quantile,
    Ranking,
    StandardDeviation,
    Sum,
    Variance,
    whole_of,
)


def depends_on(output: PlannedOutput, plan: Plan) -> Literal["noise", "rows", "data"]:
    """Return what the error of an output depends on; of a plan that scales, facts tell how many rows groups have."""
    if is_scaled(output, plan):
        return "noise" if plan.public_keys is not None else "rows"
    if is_scaled_moment(output, plan):
        return "data"
    return output.depends_on


def expected_error(
    output: PlannedOutput, plan: Plan, confidence: Fraction, *, rows: float | None = None
) -> float | None:
    """Return the error that answers stay within at this confidence, in the output's own unit; a quantile's in ranks.

    `rows` is the size of a group, which counts and sums do not need. None if it depends on the data.
    """
    if depends_on(output, plan) == "rows" and rows is None:
        return None
    if is_scaled(output, plan):
        return foreseen_error(output, plan, confidence, rows=rows).whole
    return noise_error(output, plan, confidence, rows=rows)


def rows_for_correlation(output: Correlation, plan: Plan, confidence: Fraction, *, spread: float) -> float | None:
    """Return the number of rows that give a correlation an interval of about ± 1; ± 0.1 takes ten times that.

    `spread` is the variance of both columns as a part of the square of their ranges: 1/4 at most, if all values are at
    the two ends, and 1/12 if they are spread evenly. None if units are down-weighted: caps are then learned.
    """
    if plan.scaling is not None:
        return None
    release = plan.releases[output.release]
    kept = [part for part in release.parts if part.kind == "moment"]
    whole = whole_of(release.parts[-1], plan.measured)
    if not whole:  # a range of one value
        return None
    return float(weighted_bound(release.summed, release.scale, [1 / whole] * len(kept), confidence) / spread)


def farther_end(output: Sum, plan: Plan) -> float:
    """Return the end of a sum's range that is farther from 0, as a distance."""
    column = plan.measured[output.column]
    return max(abs(float(end * column.step)) for end in (column.low, column.high))


def noise_error(output: PlannedOutput, plan: Plan, confidence: Fraction, *, rows: float | None = None) -> float | None:
    """Return the error of only the noise, on the part of a group of this size that bounds by hand keep."""
    size = rows or 1.0
    if depends_on(output, plan) == "data":
        return None
    match output:
        case StandardDeviation() | Correlation() | Ranking():
            return None
        case Quantile():
            return quantile_reach(output, plan) / size
        case CountUnits() | CountDistinct():
            return float(law_bound(plan.releases[output.release].law, confidence))
        case CountRows() | CountValues():
            return _count_error(output, plan, confidence)
        case Sum() | Mean() if plan.releases[output.release].parts[-1].kind != "moment":
            return _error_of_two_parts(output, plan, confidence, rows)
        case Sum() | Mean() | Variance() | Covariance():
            return _from_moments(output, plan, confidence, size)
        case _:
            assert_never(output)


def quantile_reach(output: Quantile, plan: Plan) -> int:
    """Return about how many rows, or people, on either side of its rank a quantile's interval reaches."""
    draw = plan.quantiles[output.draw]
    fraction, inside, reach = draw.targets[output.fraction]
    if draw.of == "people":
        inside, reach = (-(-each // UNIT_WEIGHT) for each in (inside, reach))
    return inside + reach if fraction in (0, 1) else 2 * reach  # rungs are half as wide again, and the result is off


def _count_error(output: CountRows | CountValues, plan: Plan, confidence: Fraction) -> float:
    release = plan.releases[output.release]
    if len(release.parts) == 1:
        return float(law_bound(release.law, confidence))
    kept = [part for part in release.parts if part.kind != "missing" or isinstance(output, CountRows)]
    height = whole_of(release.parts[-1], plan.measured)
    return float(nearest_bound(release.summed, release.scale, (1,) * len(kept), height, confidence))


def _error_of_two_parts(output: Sum | Mean, plan: Plan, confidence: Fraction, rows: float | None) -> float:
    """A sum or a mean from below and above its range, or a sum that is released as itself."""
    release, column = plan.releases[output.release], plan.measured[output.column]
    if len(release.parts) == 1:
        return float(law_bound(release.law, confidence) * column.step)
    if isinstance(output, Mean):
        return mean_bounds(release.summed, release.scale, confidence).usual[0] * float(column.step) / (rows or 1.0)
    weights, level = (column.low, column.high), sum_levels(column, confidence)[0]
    bound = nearest_bound(release.summed, release.scale, weights, column.height, level)
    return bound * float(column.step) + (rows or 0.0) * float(column.off)


def _from_moments(output: Sum | Mean | Variance | Covariance, plan: Plan, confidence: Fraction, size: float) -> float:
    """A sum, mean, variance or covariance from Bernstein parts: at most, wherever in its range the mean lies."""
    release = plan.releases[output.release]
    last = release.parts[-1]
    columns = [plan.measured[column] for column in last.columns]
    whole = whole_of(last, plan.measured)
    kept = [part for part in release.parts if part.kind == "moment"]
    off = weighted_bound(release.summed, release.scale, [1 / whole] * len(kept), confidence)  # in rows
    ranges = [float(column.height * column.step) for column in columns]
    match output:
        case Sum():
            return off * farther_end(output, plan)
        case Mean():
            return off * ranges[0] / size
        case Variance():
            return ranges[0] ** 2 * (off / size + (off / size) ** 2)
        case Covariance():
            return prod(ranges) * (off / size + (off / size) ** 2)
        case _:
            assert_never(output)
