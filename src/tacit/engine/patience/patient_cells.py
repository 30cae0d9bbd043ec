"""Cells of units from sorted rows, in memory that does not grow with the rows: what `unit_cells.py` does in SQL.

The patient path uses it. Rows come sorted by unit and group, so that a cell is a run of rows and a unit a run of cells.
A number that may have more than 64 bits is added up in limbs. Cells are written to a private file, since a unit's
weight needs all of its cells before the first of them can be scaled. What follows is left to `patient_scaling.py`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from tacit.engine.patience.patient import NO_VALUE, SLICE_BYTES, RankedRows, added_up
from tacit.engine.spill_file import SpillFile
from tacit.plan import CELL_MOST, Vector
from tacit.privacy import Words

Whole = NDArray[np.int64]

# A row's steps are added up in three limbs, the highest of which has a sign: enough for 2^41 rows.
ROW_LIMB = 21
_ROW_MASK = (1 << ROW_LIMB) - 1
# A cell's fine steps, and their squares, are added up in two: enough for 2^42 cells.
LIMB = 20
_MASK = (1 << LIMB) - 1
_CELL_BITS = CELL_MOST.bit_length() - 1


@dataclass(frozen=True)
class CellBlock:
    """Some cells in the order of units: their unit's number, whether their group is kept, their key, their numbers."""

    unit: Whole  # (cell,), rising
    kept: NDArray[np.bool_]  # (cell,)
    keys: Words  # (cell, word)
    fine: Whole  # (cell, vector)

    @property
    def words(self) -> Words:
        """The cells as records."""
        head = [self.unit.view(np.uint64), self.kept.astype(np.uint64), self.keys]
        return np.column_stack([*head, self.fine.view(np.uint64)])


def cell_blocks(ranked: Iterable[RankedRows], vectors: Sequence[Vector], *, groups_most: int) -> Iterator[CellBlock]:
    """Yield the cells of ranked rows, with at most so many groups of a unit kept."""

    def of_rows() -> Iterator[tuple[Words, Words]]:
        for rows in ranked:
            if not len(rows.unit):
                continue
            steps = np.column_stack([_row_steps(vector, rows.values) for vector in vectors])
            kept = (rows.group < groups_most).astype(np.uint64)
            yield np.column_stack([rows.unit.view(np.uint64), kept, rows.keys]), _limbs(steps)

    for head, sums in added_up(of_rows()):
        kept = head[:, 1] != 0
        fine = np.column_stack([_fine_steps(sums, at, vector) for at, vector in enumerate(vectors)])
        unit = np.ascontiguousarray(head[:, 0]).view(np.int64)
        yield CellBlock(unit, kept, head[:, 2:], np.where(kept[:, None], fine, 0))


def _row_steps(vector: Vector, values: Words) -> Whole:
    """Return what each row adds to its cell, in steps."""
    if vector.kind == "rows" or vector.kind == "units":
        return np.ones(len(values), dtype=np.int64)
    known: NDArray[np.bool_] = values[:, vector.column or 0] != NO_VALUE
    if vector.kind == "counted":
        return known.astype(np.int64)
    if vector.kind == "centred":
        return _about(values[:, vector.column or 0], vector.centre)
    assert_never(vector.kind)


def _about(values: Words, centre: int) -> Whole:
    """Return values about a centre, 0 where there is none."""
    known = values != NO_VALUE
    return np.where(known, np.where(known, values, 0).astype(np.int64) - centre, np.int64(0))


def _limbs(steps: Whole) -> Words:
    """Return the limbs of some columns: all lowest ones, then all middle ones, then all highest ones."""
    return np.hstack([steps & _ROW_MASK, (steps >> ROW_LIMB) & _ROW_MASK, steps >> 2 * ROW_LIMB]).view(np.uint64)


def _fine_steps(sums: Words, column: int, vector: Vector) -> Whole:
    """Return added-up limbs in fine steps, towards 0, within CELL_MOST."""
    if vector.kind == "units":
        return np.full(len(sums), min(1 << vector.shift if vector.shift >= 0 else 0, CELL_MOST), dtype=np.int64)
    width = sums.shape[1] // 3
    low, middle, high = (np.ascontiguousarray(sums[:, column + at * width]).view(np.int64) for at in range(3))
    low, high = low + ((middle & _ROW_MASK) << ROW_LIMB), high + (middle >> ROW_LIMB)
    negative = high + (low >> 2 * ROW_LIMB) < 0
    low, high = np.where(negative, -low, low), np.where(negative, -high, high)
    high, low = (
        high + (low >> 2 * ROW_LIMB),
        low & ((1 << 2 * ROW_LIMB) - 1),
    )  # now low is below 2^42, high not negative
    size = _shifted(high, low, vector.shift)
    return np.where(negative, -size, size)


def _shifted(high: Whole, low: Whole, shift: int) -> Whole:
    """Return (high·2^42 + low)·2^shift, towards 0, or CELL_MOST if it is larger: no number on the way has 64 bits."""
    bits = 2 * ROW_LIMB
    if shift >= 0:
        most = max(1, CELL_MOST >> shift)
        small: Whole = np.minimum(low, most) * (CELL_MOST // most)
        return np.where(high > 0, np.int64(CELL_MOST), small)
    down = min(-shift, bits + 63)
    if down > bits:
        upper: Whole = high >> (down - bits)
        return np.minimum(upper, CELL_MOST)
    enough = np.minimum(high, 1 << max(0, _CELL_BITS - bits + down))  # from here on it is CELL_MOST or more
    return np.minimum((enough << (bits - down)) + (low >> down), CELL_MOST)


class CellFile:
    """Cells in a private file, in the order in which they were added; they can be read several times."""

    def __init__(self, *, vectors: int, folder: Path | None) -> None:
        self._key, self._vectors = 1, vectors
        self._file = SpillFile(folder)

    def add(self, block: CellBlock) -> None:
        """Take more cells, all with keys of one type."""
        self._key = block.keys.shape[1]
        self._file.append(block.words)

    def blocks(self) -> Iterator[CellBlock]:
        """Yield all cells, some at a time."""
        width = 2 + self._key + self._vectors
        step = max(1, SLICE_BYTES // (8 * width))
        for start in range(0, self._file.size // (8 * width), step):
            some = _records(self._file, width, start, step).view(np.uint64)
            fine = np.ascontiguousarray(some[:, 2 + self._key :]).view(np.int64)
            unit = np.ascontiguousarray(some[:, 0]).view(np.int64)
            yield CellBlock(unit, some[:, 1] != 0, some[:, 2 : 2 + self._key], fine)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class UnitFile:
    """Some whole numbers of each unit, in a private file, in the order of units."""

    def __init__(self, *, columns: int, folder: Path | None) -> None:
        self._columns = columns
        self._file = SpillFile(folder)

    def add(self, numbers: Whole) -> None:
        """Take the numbers of the next units."""
        self._file.append(numbers)

    def of(self, units: Whole) -> Whole:
        """Return the numbers of units, which come in rising order."""
        first, last = (int(units[0]), int(units[-1])) if len(units) else (0, -1)
        return _records(self._file, self._columns, first, last + 1 - first)[units - first]

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _records(file: SpillFile, width: int, start: int, count: int) -> Whole:
    """Return some records of so many words; no more than these take memory."""
    found = np.empty((max(0, min(count, file.size // (8 * width) - start)), width), dtype=np.int64)
    file.fill(found, 8 * width * start)
    return found


def split(numbers: Whole) -> Words:
    """Return columns of signed numbers as two limbs each, to be added up: all low ones, then all high ones."""
    return np.hstack([numbers & _MASK, numbers >> LIMB]).view(np.uint64)


def joined_limbs(sums: Words) -> tuple[Whole, Whole]:
    """Return added-up limbs as (high, low), low in 0 … 2^LIMB - 1: a number is high·2^LIMB + low."""
    width = sums.shape[1] // 2
    low, high = (np.ascontiguousarray(sums[:, at * width : (at + 1) * width]).view(np.int64) for at in range(2))
    return high + (low >> LIMB), low & _MASK


def saturated(sums: Words) -> Whole:
    """Return added-up limbs as numbers; one whose size is above 2^62 is some number whose size is above 2^62."""
    high, low = joined_limbs(sums)
    most = (1 << (62 - LIMB)) + 1
    return (np.clip(high, -most, most) << LIMB) + low


def bit_length(sizes: Whole) -> Whole:
    """Return how many binary digits whole numbers have: exact, since a float holds 32 of them."""
    upper = sizes >> 32
    digits = np.where(upper > 0, 32 + np.frexp(upper.astype(np.float64))[1], np.frexp(sizes.astype(np.float64))[1])
    return digits.astype(np.int64)
