"""A row's number as a whole number of steps above the range's low end: clamped, exact, never failing.

NaN and NULL are NULL; infinities clamp. A float is scaled by its step, which is a power of two unless declared
otherwise, and rounded by floor(x + 1/2), since engines disagree about their own rounding; it is clamped again as an
integer. The plan keeps every number on the way well inside 64 bits, so that no row can make an engine fail.
"""

from math import floor

import ibis
import ibis.expr.types as ir

from tacit.plan.plan import Measured
from tacit.query.kind import INT_LEAST

# Differences below this are added and rounded in 64 bits without overflow.
INT_REACH = 2**62


def steps_above_low(value: ir.NumericValue, column: Measured) -> ir.IntegerValue:
    """Return the integer in 0 … height for each row, NULL where the value is."""
    if column.type == "int" and column.step.denominator == 1:
        start = column.low * column.step
        if start >= INT_LEAST and (column.height + 1) * column.step < INT_REACH:
            return _from_integer(value, column)
    return _from_float(value.cast("float64"), column)


def _from_integer(value: ir.NumericValue, column: Measured) -> ir.IntegerValue:
    step, start = int(column.step), column.low * int(column.step)
    inside = _above(_clamped(value, start, column.high * step).cast("int64"), start)
    if step == 1:
        return inside
    raised = inside + ibis.literal(step // 2, "int64")
    whole = (raised - raised % ibis.literal(step, "int64")).cast("float64")  # a multiple of the step, so exact enough
    return _clamped((whole / float(step) + 0.5).floor().cast("int64"), 0, column.height)


def _from_float(value: ir.FloatingValue, column: Measured) -> ir.IntegerValue:
    """Decimals come here too: below 2^50 steps from zero, their nearest step is found without doubt."""
    start, end, scale = float(column.low * column.step), float(column.high * column.step), float(1 / column.step)
    steps = (_clamped(value, start, end) * scale + 0.5).floor().cast("int64")
    # scaling and rounding keep the order of floats, so what lies between two ends that come out right does too
    if floor(start * scale + 0.5) < column.low or floor(end * scale + 0.5) > column.high:
        steps = _clamped(steps, column.low, column.high)
    return _above(steps, column.low)


def _clamped(value: ir.NumericValue, low: float, high: float) -> ir.NumericValue:
    """Return the value inside its range, NULL where it is NULL or NaN.

    Most rows are inside, and the first question settles them. Engines' own least and greatest disagree about NULL and
    take twice as long; Ibis's clip writes its argument four times in every clip.
    """
    ends = [ibis.literal(end, value.type()) for end in (low, high)]
    unknown = [(value.isnan(), ibis.null(value.type()))] if isinstance(value, ir.FloatingValue) else []
    return ibis.cases((value.between(*ends), value), *unknown, (value < ends[0], ends[0]), (value > ends[1], ends[1]))


def _above(steps: ir.IntegerValue, low: int) -> ir.IntegerValue:
    return steps - ibis.literal(low, "int64") if low else steps
