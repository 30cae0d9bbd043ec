"""From noisy integers to the answer's columns: each aggregate X as X, X_low and X_high.

All of it is post-processing of noisy integers by public facts. Counts are whole, sums are on their public step, and a
mean is None where too few people are left for it to mean anything.
"""

from collections.abc import Sequence
from fractions import Fraction

from tacit.plan.plan import Measured, NoisyRelease, Plan, PlannedOutput
from tacit.release.error_bars import mean_bounds, mean_interval, shown_count_reach, single_bound, weighted_bound
from tacit.release.moments import NoisyColumn, Number, moment_column
from tacit.release.noisy import NoisyTable


def noisy_columns(plan: Plan, noisy: NoisyTable, confidence: Fraction) -> list[NoisyColumn]:
    """Return every output of the plan, in its order."""
    return [_column(output, plan, noisy, confidence) for output in plan.outputs]


def _column(output: PlannedOutput, plan: Plan, noisy: NoisyTable, confidence: Fraction) -> NoisyColumn:
    if output.kind == "top":
        places = tuple(range(1, len(noisy.keys) + 1))
        return NoisyColumn(output.name, places, places, places)
    if output.kind == "quantile":
        return _quantile(output, plan, noisy)
    release = plan.releases[output.release]
    if any(part.kind == "moment" for part in release.parts):
        return moment_column(output, plan, noisy, confidence)
    kinds: list[str] = [part.kind for part in release.parts]
    parts = dict(zip(kinds, noisy.parts[output.release], strict=True))
    if output.kind == "count_distinct":
        off = single_bound(release.noise, release.scale, confidence)
        return _symmetric(output.name, parts["distinct"], off, Fraction(1))
    if output.kind == "count_units":
        return _units(output.name, parts["units"], plan, release, confidence)
    if output.kind == "count" and output.column is None and "rows" in parts:
        return _symmetric(
            output.name, parts["rows"], single_bound(release.noise, release.scale, confidence), Fraction(1)
        )
    column = plan.measured[release.parts[0].column or 0]
    if output.kind == "count":
        wanted = [part for kind, part in parts.items() if kind != "missing" or output.column is None]
        totals = _nearest([sum(each) for each in zip(*wanted, strict=True)], column.height)
        bound = weighted_bound(release.noise, release.scale, [1 / column.height] * len(wanted), confidence)
        return _symmetric(output.name, totals, _whole_up(bound + 0.5 * (column.height > 1)), Fraction(1))
    if output.kind == "sum":
        return _sum(output.name, parts, column, release, confidence)
    return _mean(output.name, parts, column, release, confidence)


def _symmetric(name: str, values: Sequence[int], bound: int, step: Fraction) -> NoisyColumn:
    return NoisyColumn(
        name,
        _on_grid(values, step),
        _on_grid([value - bound for value in values], step),
        _on_grid([value + bound for value in values], step),
    )


def _units(name: str, counts: Sequence[int], plan: Plan, release: NoisyRelease, confidence: Fraction) -> NoisyColumn:
    if plan.threshold is None:
        return _symmetric(name, counts, single_bound(release.noise, release.scale, confidence), Fraction(1))
    low, high = [], []
    for count in counts:
        down, up = shown_count_reach(release.noise, release.scale, confidence, count - plan.threshold.least)
        low.append(1 if down is None else max(1, count - down))
        high.append(count + up)
    return NoisyColumn(name, tuple(counts), tuple(low), tuple(high))


def _sum(
    name: str, parts: dict[str, tuple[int, ...]], column: Measured, release: NoisyRelease, confidence: Fraction
) -> NoisyColumn:
    if "total" in parts:
        bound = single_bound(release.noise, release.scale, confidence)
        return _symmetric(name, parts["total"], bound, column.step)
    height = column.height
    low, high = column.low, column.high
    weighted = [low * below + high * above for below, above in zip(parts["below"], parts["above"], strict=True)]
    sums = _nearest(weighted, height)
    weights = [column.low / height, column.high / height]
    bound = _whole_up(weighted_bound(release.noise, release.scale, weights, confidence) + 0.5)
    return _symmetric(name, sums, bound, column.step)


def _mean(
    name: str, parts: dict[str, tuple[int, ...]], column: Measured, release: NoisyRelease, confidence: Fraction
) -> NoisyColumn:
    bounds = mean_bounds(release.noise, release.scale, confidence)
    start, height = float(column.low * column.step), float(column.height * column.step)
    values: list[Number] = []
    low: list[Number] = []
    high: list[Number] = []
    for below, above in zip(parts["below"], parts["above"], strict=True):
        span = mean_interval(bounds, below, above)
        if span is None:
            values.append(None)  # not enough people; the range it is known to have still holds it
            low.append(start)
            high.append(start + height)
        else:
            place = min(max(above / (below + above), span[0]), span[1])
            values.append(start + height * place)
            low.append(start + height * span[0])
            high.append(start + height * span[1])
    return NoisyColumn(name, tuple(values), tuple(low), tuple(high))


def _quantile(output: PlannedOutput, plan: Plan, noisy: NoisyTable) -> NoisyColumn:
    if output.targets is None or output.column is None:
        raise ValueError("a quantile has its targets and its column")
    drawn = noisy.parts[len(plan.releases) + output.release]
    column = plan.measured[output.column]
    low, middle, high = (
        _on_grid([column.low + steps for steps in drawn[target]], column.step) for target in output.targets
    )
    if column.type == "int" and column.step == 1:
        return NoisyColumn(output.name, middle, low, high)
    # rows are on the nearest step, so the quantile itself is within half of one
    off = -(-column.step // 2) if column.type == "int" else float(column.step / 2)
    least, most = _on_grid((column.low, column.high), column.step)
    wide = tuple(max(end - off, least) for end in low), tuple(min(end + off, most) for end in high)
    return NoisyColumn(output.name, middle, *wide)


def _nearest(tops: Sequence[int], bottom: int) -> list[int]:
    return [(2 * top + bottom) // (2 * bottom) for top in tops]


def _whole_up(value: float) -> int:
    return int(value) + 1


def _on_grid(steps: Sequence[int], step: Fraction) -> tuple[int | float, ...]:
    """Return numbers on the public grid: whole where the step is, whatever the numbers."""
    top, bottom = step.numerator, step.denominator
    if bottom == 1:
        return tuple(steps) if top == 1 else tuple([each * top for each in steps])
    # whole numbers divide with one rounding, as a Fraction does, and much sooner
    return tuple([each * top / bottom for each in steps])
