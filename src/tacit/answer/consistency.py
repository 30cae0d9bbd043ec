"""Replace numbers that are impossible beside each other by the nearest possible ones.

The limits of a single number are in `possible.py`. Within a row, COUNT(x) is at most COUNT(*), and a sum lies between
its count times the two ends of the range. Quantiles of one call are drawn in order already. This is post-processing of
released numbers by public facts, so it is free. The error of impossible numbers gets smaller; in return, averages over
many such answers are no longer unbiased.
"""

from collections.abc import Sequence
from dataclasses import replace

from tacit.answer.moments import NoisyColumn, Number
from tacit.plan import CountRows, CountUnits, CountValues, Plan, Sum

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
