"""Clamps a row's number to its public range and rounds it to a whole number of steps above the low end.

NaN and NULL are NULL; infinities clamp. A float is scaled by its step, which is a power of two unless declared
otherwise, and rounded by floor(x + 1/2), since engines disagree about their own rounding; it is clamped again as an
integer. The plan keeps every number on the way well inside 64 bits, so that no row can make an engine fail.
"""

from dataclasses import dataclass
from math import floor

from tacit import typed_sql as sql
from tacit.plan import Measured
from tacit.query import INT_LEAST

# Differences below this are added and rounded in 64 bits without overflow.
INT_REACH = 2**62


@dataclass(frozen=True)
class FloatGrid:
    """How a float is put on its grid: clamped between two floats, scaled, rounded, and clamped again as an integer."""

    start: float
    end: float
    scale: float
    low: int
    high: int

    @property
    def keeps_ends(self) -> bool:
        """Whether both ends come out inside. Scaling and rounding keep the order of floats, so all between does too."""
        return floor(self.start * self.scale + 0.5) >= self.low and floor(self.end * self.scale + 0.5) <= self.high


def float_grid(column: Measured) -> FloatGrid | None:
    """Return the grid of a column whose values are floats on their way to it; None where they are whole throughout."""
    if column.type == "int" and column.step.denominator == 1:
        start = column.low * column.step
        if start >= INT_LEAST and (column.height + 1) * column.step < INT_REACH:
            return None
    ends = float(column.low * column.step), float(column.high * column.step)
    return FloatGrid(*ends, float(1 / column.step), column.low, column.high)


def steps_above_low(value: sql.Typed, column: Measured) -> sql.Typed:
    """Return the integer in 0 … height for each row, NULL where the value is."""
    grid = float_grid(column)
    return _from_integer(value, column) if grid is None else _from_float(value.cast("float64"), grid)


def _from_integer(value: sql.Typed, column: Measured) -> sql.Typed:
    step, start = int(column.step), column.low * int(column.step)
    inside = _above(_clamped(value, start, column.high * step).cast("int64"), start)
    if step == 1:
        return inside
    raised = inside + sql.literal(step // 2, "int64")
    whole = (raised - raised % sql.literal(step, "int64")).cast("float64")  # a multiple of the step, so exact enough
    return _clamped((whole / float(step) + 0.5).floor().cast("int64"), 0, column.height)


def _from_float(value: sql.Typed, grid: FloatGrid) -> sql.Typed:
    """Decimals come here too: within 2^50 steps of zero, their nearest step is exact."""
    steps = (_clamped(value, grid.start, grid.end) * grid.scale + 0.5).floor().cast("int64")
    return _above(steps if grid.keeps_ends else _clamped(steps, grid.low, grid.high), grid.low)


def _clamped(value: sql.Typed, low: float, high: float) -> sql.Typed:
    """Return the value inside its range, NULL where it is NULL or NaN.

    Most rows are inside, so that is the first condition. The engines' LEAST and GREATEST disagree about NULL and take
    twice as long.
    """
    ends = [sql.literal(end, value.type()) for end in (low, high)]
    unknown = [(value.isnan(), sql.null(value.type()))] if value.type().is_floating() else []
    return sql.cases((value.between(*ends), value), *unknown, (value < ends[0], ends[0]), (value > ends[1], ends[1]))


def _above(steps: sql.Typed, low: int) -> sql.Typed:
    return steps - sql.literal(low, "int64") if low else steps
