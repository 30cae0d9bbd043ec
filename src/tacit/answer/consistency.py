"""Numbers made possible ones, as post-processing: counts not negative, values inside their ranges.

Totals add up within a row: COUNT(x) is at most COUNT(*), and a sum lies between its count at the two ends of the range.
Quantiles of one call rise already, as they are drawn. It costs nothing, since only released numbers and public facts
are used; it errs less on what was impossible, and means of many such answers are no longer unbiased.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tacit.answer.moments import NoisyColumn, Number
from tacit.plan import Plan, PlannedOutput

CONSISTENT = "Made consistent: counts are not negative, parts are at most their wholes, values are in their ranges."


def made_consistent(plan: Plan, columns: Sequence[NoisyColumn]) -> list[NoisyColumn]:
    """Return the columns with impossible numbers replaced by the nearest possible ones.

    Privacy: post-processing of what is released and public.
    """
    found = {output.name: column for output, column in zip(plan.outputs, columns, strict=True)}
    for output in plan.outputs:
        if output.kind in ("count", "count_units", "count_distinct"):
            found[output.name] = _each(found[output.name], lambda value: max(value, 0))
    _counts_add_up(plan, found)
    for output in plan.outputs:
        if output.kind == "sum":
            found[output.name] = _sum_fits(output, plan, found)
        if output.kind == "quantile":
            found[output.name] = _in_range(output, plan, found[output.name])
    return [found[output.name] for output in plan.outputs]


def _counts_add_up(plan: Plan, found: dict[str, NoisyColumn]) -> None:
    """COUNT(x) is at most COUNT(*), and there are at most as many units as rows."""
    rows = next((output for output in plan.outputs if output.kind == "count" and output.column is None), None)
    if rows is None:
        return
    for output in plan.outputs:
        part = (output.kind == "count" and output.column is not None) or output.kind == "count_units"
        if part:
            found[output.name] = _at_most(found[output.name], found[rows.name])


def _at_most(part: NoisyColumn, whole: NoisyColumn) -> NoisyColumn:
    capped = tuple(_lesser(one, two) for one, two in zip(part.values, whole.values, strict=True))
    low = tuple(_lesser(one, two) for one, two in zip(part.low, capped, strict=True))
    return replace(part, values=capped, low=low)


def _sum_fits(output: PlannedOutput, plan: Plan, found: dict[str, NoisyColumn]) -> NoisyColumn:
    """A sum over n rows lies between n times the ends of the range, where n is asked too."""
    column, sums = plan.measured[output.column or 0], found[output.name]
    counts = next(
        (
            each
            for each in plan.outputs
            if each.kind == "count" and (each.column, each.release) == (output.column, output.release)
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


def _in_range(output: PlannedOutput, plan: Plan, column: NoisyColumn) -> NoisyColumn:
    measured = plan.measured[output.column or 0]
    low, high = measured.low * measured.step, measured.high * measured.step
    if measured.step.denominator == 1:
        return _each(column, lambda value: min(max(value, int(low)), int(high)))
    return _each(column, lambda value: min(max(value, float(low)), float(high)))


def _each(column: NoisyColumn, possible: Callable[[float], float]) -> NoisyColumn:
    def made(values: tuple[Number, ...]) -> tuple[Number, ...]:
        return tuple(None if value is None else possible(value) for value in values)

    return replace(column, values=made(column.values), low=made(column.low), high=made(column.high))


def _around(column: NoisyColumn) -> NoisyColumn:
    """An interval holds its own value."""
    low = tuple(_lesser(one, two) for one, two in zip(column.low, column.values, strict=True))
    high = tuple(_greater(one, two) for one, two in zip(column.high, column.values, strict=True))
    return replace(column, low=low, high=high)


def _lesser(one: Number, two: Number) -> Number:
    return one if two is None else two if one is None else min(one, two)


def _greater(one: Number, two: Number) -> Number:
    return one if two is None else two if one is None else max(one, two)
