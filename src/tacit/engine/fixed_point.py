"""A row's number as a whole number of steps above the range's low end: clamped, exact, never failing.

NaN and NULL are NULL; infinities clamp. A float is scaled by its step, which is a power of two unless declared
otherwise, and rounded by floor(x + 1/2), since engines disagree about their own rounding; it is clamped again as an
integer. The plan keeps every number on the way well inside 64 bits, so that no row can make an engine fail.
"""

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
    inside = _clamped(value, start, column.high * step).cast("int64") - ibis.literal(start, "int64")
    if step == 1:
        return _known(inside, value.isnull())
    raised = inside + ibis.literal(step // 2, "int64")
    whole = (raised - raised % ibis.literal(step, "int64")).cast("float64")  # a multiple of the step, so exact enough
    steps = (whole / float(step) + 0.5).floor().cast("int64")
    return _known(_clamped(steps, 0, column.height), value.isnull())


def _from_float(value: ir.FloatingValue, column: Measured) -> ir.IntegerValue:
    """Decimals come here too: below 2^50 steps from zero, their nearest step is found without doubt."""
    start, end = float(column.low * column.step), float(column.high * column.step)
    scaled = (_clamped(value, start, end) * float(1 / column.step) + 0.5).floor().cast("int64")
    inside = _clamped(scaled, column.low, column.high) - ibis.literal(column.low, "int64")
    return _known(inside, value.isnull() | value.isnan())


def _clamped(value: ir.NumericValue, low: float, high: float) -> ir.NumericValue:
    """Return the value inside its range. Engines disagree about NULL here, so `_known` settles it.

    Ibis's own clip writes its argument four times; nested clips make a text that takes longer to read than to run.
    """
    return ibis.least(ibis.greatest(value, low), high)


def _known(steps: ir.IntegerValue, unknown: ir.BooleanValue) -> ir.IntegerValue:
    return ibis.cases((unknown, ibis.null("int64")), else_=steps)
