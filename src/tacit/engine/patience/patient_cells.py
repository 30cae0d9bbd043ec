"""Cells of units from sorted rows, in memory that does not grow with the rows.

A cell is a run of rows and a unit a run of cells, in limbs if it may have more than 64 bits. A unit may have the cells
of the whole table: they are written to a private file, read once for the length of each unit's vectors, and again to be
scaled. The integers are those of docs/proofs/scaling.md.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import Protocol, assert_never

import numpy as np
from numpy.typing import NDArray

from tacit.engine.external_sort import Held, SpillFile
from tacit.engine.patience.patient import NO_VALUE, SLICE_BYTES, RankedRows, added_up
from tacit.exact import cut_name, kept_name
from tacit.numbers import Words
from tacit.plan import BINS, CELL_MOST, LARGEST_LEAST, WEIGHT_BITS, Scaling, Vector

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
        head = [self.unit.view(np.uint64), self.kept.astype(np.uint64), self.keys]
        return np.column_stack([*head, self.fine.view(np.uint64)])


def cell_blocks(ranked: Iterable[RankedRows], vectors: Sequence[Vector], *, groups_most: int) -> Iterator[CellBlock]:
    """Yield the cells of ranked rows, with at most this number of groups of a unit."""

    def of_rows() -> Iterator[tuple[Words, Words]]:
        for rows in ranked:
            if not len(rows.unit):
                continue
            steps = np.column_stack([_row_steps(vector, rows.values) for vector in vectors])
            kept = (rows.group < groups_most).astype(np.uint64)
            yield np.column_stack([rows.unit.view(np.uint64), kept, rows.keys]), _row_limbs(steps)

    for head, sums in added_up(of_rows()):
        kept = head[:, 1] != 0
        fine = np.column_stack([_fine_steps(sums, at, vector) for at, vector in enumerate(vectors)])
        unit = np.ascontiguousarray(head[:, 0]).view(np.int64)
        yield CellBlock(unit, kept, head[:, 2:], np.where(kept[:, None], fine, 0))


def _row_steps(vector: Vector, values: Words) -> Whole:
    """Return what each row adds to its cell, in steps."""
    if vector.kind == "rows" or vector.kind == "units":
        return np.ones(len(values), dtype=np.int64)
    column = values[:, vector.column or 0]
    known: NDArray[np.bool_] = column != NO_VALUE
    if vector.kind == "counted":
        return known.astype(np.int64)
    if vector.kind == "centred":
        return np.where(known, np.where(known, column, 0).astype(np.int64) - vector.centre, np.int64(0))
    assert_never(vector.kind)


def _row_limbs(steps: Whole) -> Words:
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


class UnitCells(Protocol):
    """Cells in the order of units, which can be read several times."""

    def blocks(self) -> Iterator[CellBlock]:
        """Yield all cells, some at a time."""


class CellFile(Held):
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


class UnitNumbers(Protocol):
    """Some whole numbers of each unit, in the order of units."""

    def add(self, numbers: Whole) -> None:
        """Take the numbers of the next units."""

    def of(self, units: Whole) -> Whole:
        """Return the numbers of units, which come in rising order."""


class UnitFile(Held):
    """The same in a private file."""

    def __init__(self, *, columns: int, folder: Path | None) -> None:
        self._columns = columns
        self._file = SpillFile(folder)

    def add(self, numbers: Whole) -> None:
        self._file.append(numbers)

    def of(self, units: Whole) -> Whole:
        first, last = (int(units[0]), int(units[-1])) if len(units) else (0, -1)
        return _records(self._file, self._columns, first, last + 1 - first)[units - first]


def _records(file: SpillFile, width: int, start: int, count: int) -> Whole:
    """Return some records of this number of words; no more than these take memory."""
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


# --- lengths, weights, sums, totals and bins ---


# Makes room for this many numbers of each unit.
Room = Callable[[int], UnitNumbers]
ONE = 1 << WEIGHT_BITS
SQUARED_BITS = 20


def unit_lengths(cells: UnitCells, indexes: Sequence[int], norm: int, held: Room) -> UnitNumbers:
    """Return how long some vectors of each unit are; above 2^62 they are some number above 2^62."""
    lengths = held(len(indexes))
    for _, sums, coarse in _added_sizes(cells, indexes, norm, held):
        lengths.add(saturated(sums) if coarse is None else _roots(sums) << coarse)
    return lengths


def _added_sizes(
    cells: UnitCells, indexes: Sequence[int], norm: int, held: Room
) -> Iterator[tuple[Whole, Words, Whole | None]]:
    """Yield units, the limbs of the sums of their sizes or squares, and how many digits were left out of those."""
    places = list(indexes)
    if norm == 1:
        for units, sums in _by_unit(cells, lambda block: split(np.abs(block.fine[:, places]))):
            yield units, sums, None
        return
    tops = held(len(places))
    sizes = _by_unit(cells, lambda block: np.abs(block.fine[:, places]).view(np.uint64), np.maximum)
    for _, top in sizes:
        tops.add(top.view(np.int64))

    def squares(block: CellBlock) -> Words:
        coarse = _coarse(tops.of(block.unit))
        return split(squared(np.abs(block.fine[:, places]), coarse))

    for units, sums in _by_unit(cells, squares):
        yield units, sums, _coarse(tops.of(units))


def squared(sizes: Whole, coarse: Whole) -> Whole:
    """Return the squares of sizes without their last binary digits, rounded up."""
    short = (sizes + (np.int64(1) << coarse) - 1) >> coarse
    return short * short


def _by_unit(
    cells: UnitCells, of_cells: Callable[[CellBlock], Words], combine: np.ufunc = np.add
) -> Iterator[tuple[Whole, Words]]:
    pairs = ((block.unit.view(np.uint64)[:, None], of_cells(block)) for block in cells.blocks())
    for units, combined in added_up(pairs, combine):
        yield np.ascontiguousarray(units[:, 0]).view(np.int64), combined


def _coarse(tops: Whole) -> Whole:
    return np.maximum(bit_length(tops) - SQUARED_BITS, 0)


def _roots(sums: Words) -> Whole:
    """Return the least whole numbers with squares of at least these sums."""
    high, low = joined_limbs(sums)
    large = high >= 1 << (62 - LIMB)
    squares = np.where(large, 0, (high << LIMB) + low)
    roots = np.maximum(np.sqrt(squares.astype(np.float64)).astype(np.int64) - 1, 0)
    for _ in range(3):  # the float is off by 1 at most
        roots += roots * roots < squares
    for at in zip(*np.nonzero(large), strict=True):  # a unit of millions of cells
        roots[at] = isqrt((int(high[at]) << LIMB) + int(low[at]) - 1) + 1
    return roots


def scaled_blocks(cells: UnitCells, scaling: Scaling, lengths: UnitNumbers) -> Iterator[tuple[CellBlock, Whole]]:
    """Yield cells, and their contributions to their groups: (cell, vector)."""
    for block in cells.blocks():
        weights = _weights(scaling, lengths.of(block.unit))
        added = (np.abs(block.fine) * weights) >> WEIGHT_BITS
        yield block, np.where(block.fine < 0, -added, added)


def _weights(scaling: Scaling, lengths: Whole) -> Whole:
    caps = np.array([vector.cap for vector in scaling.vectors], dtype=np.int64)
    alone = np.where(lengths > caps, (caps << WEIGHT_BITS) // np.maximum(lengths, 1), ONE)
    weights = alone.copy()
    for together in scaling.together:
        weights[:, list(together)] = alone[:, list(together)].min(axis=1, keepdims=True)
    return weights


class UnitTotals:
    """The kept and the cut part of some vectors, over all units; cells come in the order of units."""

    def __init__(self, vectors: Sequence[Vector]) -> None:
        self._vectors = vectors
        self._kept, self._cut = [0] * len(vectors), [0] * len(vectors)
        self._open: tuple[Whole, Words] | None = None  # the last unit, which may go on

    def add(self, block: CellBlock, added: Whole) -> None:
        """Take some cells and the kept part of each; a unit may go on in the next ones."""
        units, parts = block.unit, split(self._left_and_rest(block, added))
        if self._open is not None:
            units, parts = np.append(self._open[0], units), np.vstack([self._open[1], parts])
        starts = np.flatnonzero(np.append(True, units[1:] != units[:-1]))
        sums = np.add.reduceat(parts, starts, axis=0)
        self._open = units[-1:], sums[-1:]
        self._take(saturated(sums[:-1]))

    def totals(self) -> tuple[list[int], list[int]]:
        """Return kept and cut of every vector, once all cells have come."""
        if self._open is not None:
            self._take(saturated(self._open[1]))
            self._open = None
        return self._kept, self._cut

    def named(self) -> dict[str, int]:
        """Return them by the names that an exact table has for them, of the vectors that have totals."""
        kept, cut = self.totals()
        wanted = [index for index, vector in enumerate(self._vectors) if vector.totals]
        return {name(at): each[at] for at in wanted for name, each in ((kept_name, kept), (cut_name, cut))}

    def _left_and_rest(self, block: CellBlock, added: Whole) -> Whole:
        absolute = np.array([vector.totals == "absolute" for vector in self._vectors])
        before = np.where(absolute, np.abs(block.fine), block.fine)
        left = np.where(absolute, np.abs(added), added)
        return np.hstack([left, before - left])

    def _take(self, sums: Whole) -> None:
        for index, vector in enumerate(self._vectors):
            kept, cut = kept_and_cut(sums[:, index], sums[:, len(self._vectors) + index], vector)
            self._kept[index] += sum(kept.tolist())
            self._cut[index] += sum(cut.tolist())


def kept_and_cut(left: Whole, taken: Whole, vector: Vector) -> tuple[Whole, Whole]:
    """Return what units add to the two totals of a vector: together never more than its tail."""
    most = vector.total_most
    kept = np.clip(left, -most, most)
    room = most - np.abs(kept)
    return towards_zero(kept, vector.tail_shift), towards_zero(np.clip(taken, -room, room), vector.tail_shift)


def towards_zero(numbers: Whole, shift: int) -> Whole:
    sizes = np.abs(numbers) >> min(shift, 63)
    return np.where(numbers < 0, -sizes, sizes)


def length_bins(cells: UnitCells, index: int, norm: int, held: Room) -> list[int]:
    """Return how many units are in each bin of a profile by length."""
    people = np.zeros(BINS, dtype=np.int64)
    for _, sums, coarse in _added_sizes(cells, [index], norm, held):
        if coarse is None:
            high, low = joined_limbs(sums)
        else:
            roots = _roots(sums) << coarse
            high, low = roots >> LIMB, roots & ((1 << LIMB) - 1)
        some = (high > 0) | (low > 0)
        high, low = high[some] - (low[some] == 0), (low[some] - 1) & ((1 << LIMB) - 1)  # less 1
        thirds = high // 3, ((high % 3 << LIMB) + low) // 3
        bins = sum(np.where(top > 0, LIMB + bit_length(top), bit_length(rest)) for top, rest in ((high, low), thirds))
        people += np.bincount(np.minimum(bins, BINS - 1), minlength=BINS)
    return [int(count) for count in people]


def largest_bins(values: NDArray[np.float64]) -> Whole:
    """Return the bin of each value, -1 for 0 and NaN."""
    octaves = np.where(np.isinf(values), -LARGEST_LEAST, np.frexp(values)[1] - 1)
    bins = np.clip(octaves, LARGEST_LEAST, -LARGEST_LEAST - 1) - LARGEST_LEAST
    bins = np.where(values < 0, bins - 2 * LARGEST_LEAST, bins)
    return np.where((values == 0) | np.isnan(values), -1, bins).astype(np.int64)


def group_parts(block: CellBlock, added: Whole) -> tuple[Words, Words]:
    """Return the keys of kept cells, and what they add to their groups as words: 1, and limbs."""
    kept = block.kept
    ones = np.ones((int(kept.sum()), 1), dtype=np.uint64)
    return block.keys[kept], np.hstack([ones, split(added[kept])])


def group_sums(parts: Words) -> list[list[int]]:
    """Return units, and the sum of every vector, from the added sums."""
    high, low = joined_limbs(parts[:, 1:])
    sums = [
        [(above << LIMB) + below for above, below in zip(high[:, at].tolist(), low[:, at].tolist(), strict=True)]
        for at in range(high.shape[1])
    ]
    return [parts[:, 0].tolist(), *sums]


def last_of_units(blocks: Iterable[Words]) -> Iterator[Words]:
    """Yield the last record of each unit; a record is its unit's words and two more."""
    waiting: Words | None = None
    for block in blocks:
        records = block if waiting is None else np.vstack([waiting, block])
        ends = (records[1:, :-2] != records[:-1, :-2]).any(axis=1)
        yield records[:-1][ends]
        waiting = records[-1:]
    if waiting is not None:
        yield waiting
