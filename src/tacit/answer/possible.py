"""Cut numbers and their intervals at possible values, only by public facts.

A count is at least 0, a group with a found key has at least one unit, a mean is inside the range that its values were
clamped to, a correlation is between -1 and 1. The true number lies in that set, so a cut interval covers it with the
same probability. An interval that is wholly outside becomes the nearest possible number. This is post-processing of
released numbers, and free.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from tacit.answer.moments import NoisyColumn, Number
from tacit.plan import (
    Correlation,
    CountDistinct,
    CountRows,
    CountUnits,
    CountValues,
    Covariance,
    Mean,
    Measured,
    Plan,
    PlannedOutput,
    Quantile,
    Ranking,
    StandardDeviation,
    Sum,
    Variance,
)
from tacit.query import Column, Parts

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
    least, most = limits
    if least is None and most is None:
        return column

    def inside(values: Sequence[Number]) -> tuple[Number, ...]:  # no call for each number: there may be 100,000
        if least is not None:
            values = [least if value is not None and value < least else value for value in values]
        if most is not None:
            values = [most if value is not None and value > most else value for value in values]
        return tuple(values)

    values, low, high = map(inside, (column.values, column.low, column.high))
    return replace(column, values=values, low=low, high=high)
