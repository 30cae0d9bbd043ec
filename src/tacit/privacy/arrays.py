"""Whole numbers of many groups at once: int64 arrays if they provably fit, otherwise Python integers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


Flags = NDArray[np.bool_]


Words = NDArray[np.uint64]


Integers = NDArray[np.int64]


Wholes = NDArray[Any]  # int64, or Python's integers as objects
FITS = 2**63 - 1
# Whole numbers up to here are floats without rounding.
FLOAT_EXACT = 2**53


def wholes(values: Sequence[int] | Wholes) -> Wholes:
    """Return whole numbers as an array that holds each of them exactly."""
    if isinstance(values, np.ndarray) and values.dtype in (np.int64, object):
        return values
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError:
        return np.array(values, dtype=object)


def combined(*terms: tuple[int, Sequence[int] | Wholes]) -> Wholes:
    """Return the sum of weight · values over the terms, exactly.

    >>> combined((2, [1, 2]), (-1, [5, 2**62])).tolist()
    [-3, -4611686018427387900]
    """
    arrays = [(weight, wholes(values)) for weight, values in terms]
    # no weight, no product and no sum on the way is larger than this
    if sum(abs(weight) * max(largest(values), 1) for weight, values in arrays) > FITS:
        arrays = [(weight, values.astype(object)) for weight, values in arrays]
    weight, values = arrays[0]
    total = values * weight
    for weight, values in arrays[1:]:
        total = total + (values if weight == 1 else values * weight)
    return total


def nearest_quotients(tops: Wholes, bottom: int) -> Wholes:
    """Return each top / bottom to the nearest whole number, halves upwards."""
    if 2 * (largest(tops) + bottom) > FITS:
        tops = tops.astype(object)
    return (2 * tops + bottom) // (2 * bottom)


def largest(values: Wholes) -> int:
    """Return the largest size among some whole numbers, 0 for an empty list."""
    return max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0
