"""The integers of scaling, in plain Python: what every execution path must give (docs/proofs/scaling.md).

A unit is given by its cells: for each group its rows, and for each measured column (counted, total), total being in
steps above the column's low end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp, isinf, isnan, isqrt

from tacit.plan.bounds.scaling import BINS, CELL_MOST, LARGEST_LEAST, WEIGHT_BITS, Profile, Scaling, Vector

ONE = 1 << WEIGHT_BITS


@dataclass(frozen=True)
class Cell:
    """One unit's rows in one group."""

    rows: int
    values: tuple[tuple[int, int], ...] = ()  # (counted, total) of each measured column


def fine(vector: Vector, cell: Cell) -> int:
    """Return a cell's number in fine steps, towards 0, within CELL_MOST."""
    steps = _steps(vector, cell)
    size = abs(steps) << vector.shift if vector.shift >= 0 else abs(steps) >> -vector.shift
    return min(size, CELL_MOST) * (1 if steps >= 0 else -1)


def _steps(vector: Vector, cell: Cell) -> int:
    if vector.kind == "rows":
        return cell.rows
    if vector.kind == "units":
        return 1
    assert vector.column is not None
    counted, total = cell.values[vector.column]
    if vector.kind == "counted":
        return counted
    return total - vector.centre * counted


def length(values: Sequence[int], norm: int) -> int:
    """Return the L1 norm, or a whole number at or just above the L2 norm: squares of at most 21 binary digits each."""
    sizes = [abs(value) for value in values]
    if norm == 1:
        return sum(sizes)
    coarse = max(0, max(sizes, default=0).bit_length() - 20)
    squares = sum((-(-size >> coarse)) ** 2 for size in sizes)
    root = 0 if squares == 0 else isqrt(squares - 1) + 1
    return root << coarse


def weight(scaling: Scaling, together: Sequence[int], cells: Sequence[Cell]) -> int:
    """Return the one weight of vectors that are scaled together: the largest for which none is longer than its cap."""
    found = ONE
    for index in together:
        vector = scaling.vectors[index]
        long = length([fine(vector, cell) for cell in cells], scaling.norm)
        if long > vector.cap:
            found = min(found, (vector.cap << WEIGHT_BITS) // long)
    return found


def scaled(value: int, weight: int) -> int:
    """Return what a unit adds to a group."""
    return (abs(value) * weight >> WEIGHT_BITS) * (1 if value >= 0 else -1)


def contributions(scaling: Scaling, cells: Sequence[Cell]) -> list[list[int]]:
    """Return what a unit adds to each of its groups: [vector][cell]."""
    added: list[list[int]] = [[] for _ in scaling.vectors]
    for together in scaling.together:
        found = weight(scaling, together, cells)
        for index in together:
            added[index] = [scaled(fine(scaling.vectors[index], cell), found) for cell in cells]
    return added


def kept_and_cut(vector: Vector, cells: Sequence[Cell], added: Sequence[int]) -> tuple[int, int]:
    """Return what a unit adds to the two totals of a vector: together never more than its tail.

    `cells` are all of the unit's cells, and `added` what was left of them by scaling.
    """
    before = [fine(vector, cell) for cell in cells]
    if vector.totals == "absolute":
        before, added = [abs(value) for value in before], [abs(value) for value in added]
    most = min(vector.tail << vector.tail_shift, 1 << 62)
    kept = _clipped(sum(added), most)
    cut = _clipped(sum(before) - sum(added), most - abs(kept))
    return _towards_zero(kept, vector.tail_shift), _towards_zero(cut, vector.tail_shift)


def _clipped(value: int, most: int) -> int:
    return max(-most, min(value, most))


def _towards_zero(value: int, shift: int) -> int:
    return (abs(value) >> shift) * (1 if value >= 0 else -1)


def bin_of(profile: Profile, cells: Sequence[Cell]) -> int | None:
    """Return the one bin of a profile by length that a unit is in; None where its vector is 0."""
    values = [fine(profile.vector, cell) for cell in cells]
    assert profile.norm in (1, 2)
    long = length(values, int(profile.norm))
    ends = sorted(2**power for power in range(70)) + sorted(3 * 2**power for power in range(70))
    return None if long == 0 else min(sum(end < long for end in ends), BINS - 1)


def largest_bin(values: Sequence[float | None]) -> int | None:
    """Return the bin of the value farthest from 0, the positive one of two; None where all are 0, NULL or NaN."""
    known = [value for value in values if value is not None and not isnan(value)]
    far = max(known, key=lambda value: (abs(value), value), default=0.0)
    if far == 0:
        return None
    octave = 1 << 10 if isinf(far) else frexp(far)[1] - 1  # floor(log2 |far|)
    at = max(LARGEST_LEAST, min(octave, -LARGEST_LEAST - 1)) - LARGEST_LEAST
    return at if far > 0 else at - 2 * LARGEST_LEAST
