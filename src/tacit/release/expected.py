"""How far off to expect an answer, as a number, before anything is read: from the plan and a group's size alone."""

from fractions import Fraction
from math import prod

from tacit.plan.plan import NoisyRelease, Plan, PlannedOutput
from tacit.plan.sensitivity import whole_of
from tacit.release.error_bars import mean_bounds
from tacit.release.noise_sums import law_bound, nearest_bound, weighted_bound
from tacit.release.rounding import sum_levels

# What depends on more than the noise and the number of rows.
UNFORESEEN = ("std", "correlation", "top")
NEEDS_ROWS = ("mean", "variance", "covariance", "quantile")


def expected_error(
    output: PlannedOutput, plan: Plan, confidence: Fraction, *, rows: float | None = None
) -> float | None:
    """Return the error that so large a share of answers stays within, in the output's own unit; a quantile's in ranks.

    `rows` is the size of a group, which counts and sums do not need. None where it depends on the data.
    """
    if output.kind in UNFORESEEN or (output.kind in NEEDS_ROWS and rows is None):
        return None
    size = rows or 1.0
    if output.kind == "quantile":
        return quantile_reach(output, plan) / size
    release = plan.releases[output.release]
    if len(release.parts) == 1:
        step = 1 if output.column is None else plan.measured[output.column].step
        return float(law_bound(release.law, confidence) * step)
    if output.kind == "count":
        kept = [part for part in release.parts if part.kind != "missing" or output.column is None]
        height = whole_of(release.parts[-1], plan.measured)
        return float(nearest_bound(release.summed, release.scale, (1,) * len(kept), height, confidence))
    if release.parts[-1].kind == "moment":
        return _from_moments(output, release, plan, confidence, size)
    column = plan.measured[release.parts[0].column or 0]
    if output.kind == "sum":
        weights, level = (column.low, column.high), sum_levels(column, confidence)[0]
        bound = nearest_bound(release.summed, release.scale, weights, column.height, level)
        return bound * float(column.step) + (rows or 0.0) * float(column.off)
    return mean_bounds(release.summed, release.scale, confidence).usual[0] * float(column.step) / size


def quantile_reach(output: PlannedOutput, plan: Plan) -> int:
    """Return about how many rows on either side of its rank a quantile's interval reaches."""
    if output.targets is None:
        raise ValueError("a quantile has its targets")
    fraction, inside, reach = plan.quantiles[output.release].targets[output.targets[1] // 3]
    return inside + reach if fraction in (0, 1) else 2 * reach  # rungs are half as wide again, and the result is off


def _from_moments(
    output: PlannedOutput, release: NoisyRelease, plan: Plan, confidence: Fraction, size: float
) -> float | None:
    """A sum, mean, variance or covariance from Bernstein parts: at most, wherever in its range the mean lies."""
    last = release.parts[-1]
    columns = [plan.measured[place] for place in last.columns]
    whole = whole_of(last, plan.measured)
    kept = [part for part in release.parts if part.kind == "moment"]
    off = weighted_bound(release.summed, release.scale, [1 / whole] * len(kept), confidence)  # in rows
    ranges = [float(column.height * column.step) for column in columns]
    if output.kind == "sum":
        return off * max(abs(float(end * columns[0].step)) for end in (columns[0].low, columns[0].high))
    if output.kind == "mean":
        return off * ranges[0] / size
    across = ranges[0] ** 2 if output.kind == "variance" else prod(ranges)
    return across * (off / size + (off / size) ** 2)
