"""A row's number as a whole number of steps above the range's low end: clamped, exact, never failing.

NaN and NULL are NULL; infinities clamp. A float is scaled by a power of two, which is exact, and rounded by
floor(x + 1/2), since engines disagree about their own rounding; it is clamped again as an integer.
"""

from decimal import Decimal
from fractions import Fraction

import ibis
import ibis.expr.types as ir

from tacit.plan.plan import Measured


def steps_above_low(value: ir.NumericValue, column: Measured) -> ir.IntegerValue:
    """Return the integer in 0 … height for each row, NULL where the value is."""
    if column.type == "int" and column.step.denominator == 1:
        return _from_integer(value, column)
    if column.type == "decimal" and column.step.denominator != 1 and (1 / column.step).denominator == 1:
        return _from_decimal(value, column)
    return _from_float(value.cast("float64"), column)


def _from_integer(value: ir.NumericValue, column: Measured) -> ir.IntegerValue:
    step, start = int(column.step), column.low * int(column.step)
    inside = value.clip(start, column.high * step).cast("int64") - ibis.literal(start, "int64")
    if step == 1:
        return inside
    return ((inside + step // 2) // step).cast("int64").clip(0, column.height)


def _from_decimal(value: ir.NumericValue, column: Measured) -> ir.IntegerValue:
    start, end = column.low * column.step, column.high * column.step
    inside = value.clip(_decimal(start), _decimal(end)) - _decimal(start)
    return (inside.cast("decimal(38, 12)") * int(1 / column.step)).cast("int64").clip(0, column.height)


def _from_float(value: ir.FloatingValue, column: Measured) -> ir.IntegerValue:
    start, end = float(column.low * column.step), float(column.high * column.step)
    scaled = (value.clip(start, end) * float(1 / column.step) + 0.5).floor().cast("int64")
    inside = scaled.clip(column.low, column.high) - ibis.literal(column.low, "int64")
    return ibis.cases((value.isnan(), ibis.null("int64")), else_=inside)


def _decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)
