"""What the public grid does to an interval: the rows it holds were rounded, and the truth is of rows as they are.

Privacy: only public facts and noisy numbers are used, so it costs nothing (docs/proofs/error-bars.md).
"""

from fractions import Fraction
from math import ceil, floor

import numpy as np
from numpy.typing import NDArray

from tacit.plan.plan import Measured

# Of the chance to miss, what the number of rows gets where a sum's rounding depends on it.
ROWS_SHARE = Fraction(1, 100)


Floats = NDArray[np.float64]
Ends = tuple[int | float, ...]


def sum_levels(column: Measured, confidence: Fraction) -> tuple[Fraction, Fraction]:
    """Return the confidence of a sum's own noise, and that of the number of rows its rounding depends on."""
    if not column.off:
        return confidence, Fraction(0)
    miss = 1 - confidence
    return 1 - miss * (1 - ROWS_SHARE), 1 - miss * ROWS_SHARE


def declared_range(column: Measured) -> float:
    """Return how far apart two rows may be, before or after they were rounded."""
    grid = float(column.height * column.step)
    return grid if column.between is None else max(grid, float(column.between[1] - column.between[0]))


def unrounded_means(column: Measured, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the intervals of means of rows before they were rounded, inside the column's declared range."""
    if not column.off:
        return low, high
    off = float(column.off)
    least, most = (-np.inf, np.inf) if column.between is None else map(float, column.between)
    return np.maximum(low - off, np.minimum(least, low)), np.minimum(high + off, np.maximum(most, high))


def unrounded_variances(column: Measured, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Return the intervals of variances before rounding: a standard deviation is a norm, moved by at most that much."""
    low, high = np.maximum(low, 0.0), np.maximum(high, 0.0)
    if not column.off:
        return low, high
    off = float(column.off)
    return np.maximum(np.sqrt(low) - off, 0.0) ** 2, (np.sqrt(high) + off) ** 2


def unrounded_quantiles(column: Measured, low: Ends, high: Ends) -> tuple[Ends, Ends]:
    """Return the ends around quantiles of rows before they were rounded, inside the column's declared range.

    The grid's last step may lie before the range's end, and rows at that end count as that step.
    """
    if not column.off or column.between is None:
        return low, high
    off, least, most = (float(each) for each in (column.off, *column.between))
    if column.type == "int":
        off, least, most = ceil(column.off), ceil(column.between[0]), floor(column.between[1])
    lower = tuple(max(end - off, min(least, end)) for end in low)
    higher = tuple(min(end + off, max(most, end)) for end in high)
    return lower, higher
