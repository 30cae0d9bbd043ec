"""Loops that add up rows of which each is its own unit, compiled by numba: one pass over a batch for each value.

`sums` is a flat array with a stretch for each group: how many rows, then for each value how many rows lack it and the
total of the others, in steps above its low end. A row's stretch begins at start_of[key - base]; what is not listed has
one too, after the last. Places are unsigned: numba would look for negative ones at every step.
Importing numba takes a while, so only `compiled` imports this.
"""

from math import floor
from typing import Any, NamedTuple

import numba
import numpy as np

NOTHING = np.uint32(0xFFFFFFFF)
ONE = np.uint64(1)


class Groups(NamedTuple):
    """Where each row goes."""

    keys: Any  # (row,) int16 or int32
    base: Any
    start_of: Any  # (key - base,) uint64


class Grid(NamedTuple):
    """How a float is put on its grid; what SQL does with `fixed_point.FloatGrid`."""

    start: Any
    end: Any
    scale: Any
    low: Any
    high: Any
    keeps_ends: Any


@numba.njit(cache=True, nogil=True)
def count_rows(groups: Groups, sums: Any) -> None:
    """Count each group's rows."""
    for row in range(len(groups.keys)):
        sums[groups.start_of[np.uint64(groups.keys[row] - groups.base)]] += 1


@numba.njit(cache=True, nogil=True)
def add_floats(groups: Groups, cells: Any, valid: Any, skip: Any, grid: Grid, at: Any, sums: Any) -> None:
    """Put floats on their grid and add them up, from `at` on; with the first value rows are counted too.

    Where `valid` has any bytes, bit skip + i says whether row i has a value. NaN is none.
    """
    for row in range(len(groups.keys)):
        start = groups.start_of[np.uint64(groups.keys[row] - groups.base)]
        if at == ONE:
            sums[start] += 1
        cell = cells[row]
        known = cell == cell  # NaN is not
        if len(valid):
            bit = row + skip
            known = known and (valid[bit >> 3] >> (bit & 7)) & 1 == 1
        if known:
            inside = min(max(cell, grid.start), grid.end)
            steps = np.int64(floor(inside * grid.scale + 0.5))
            if not grid.keeps_ends:
                steps = min(max(steps, grid.low), grid.high)
            sums[start + at + ONE] += steps - grid.low
        else:
            sums[start + at] += 1


@numba.njit(cache=True, nogil=True)
def add_words(groups: Groups, words: Any, at: Any, sums: Any) -> None:
    """Add up values that are steps already, NOTHING being none; with the first value rows are counted too."""
    for row in range(len(groups.keys)):
        start = groups.start_of[np.uint64(groups.keys[row] - groups.base)]
        if at == ONE:
            sums[start] += 1
        word = words[row]
        if word == NOTHING:
            sums[start + at] += 1
        else:
            sums[start + at + ONE] += np.int64(word)
