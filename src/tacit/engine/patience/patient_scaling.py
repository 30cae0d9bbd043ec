"""Lengths, weights, weighted sums, totals and bins from cells on disk: the same as `scaled_relation.py` in SQL.

The patient path uses it. A unit may have the cells of the whole table, so no unit is held in memory: one pass over the
cells finds the length of each unit's vectors, and a later one scales its cells. Between passes a unit takes a few
words in a private file. The integers are those of docs/proofs/scaling.md.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing
from math import isqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.engine.patience.patient import added_up
from tacit.engine.patience.patient_cells import (
    LIMB,
    CellBlock,
    CellFile,
    UnitFile,
    Whole,
    bit_length,
    joined_limbs,
    saturated,
    split,
)
from tacit.plan import BINS, LARGEST_LEAST, WEIGHT_BITS, Scaling, Vector
from tacit.privacy import Words

ONE = 1 << WEIGHT_BITS
SQUARED_BITS = 20


def unit_lengths(cells: CellFile, indexes: Sequence[int], norm: int, files: ExitStack, folder: Path | None) -> UnitFile:
    """Return how long some vectors of each unit are; above 2^62 they are some number above 2^62."""
    lengths = files.enter_context(closing(UnitFile(columns=len(indexes), folder=folder)))
    for _, sums, coarse in _added_sizes(cells, indexes, norm, files, folder):
        lengths.add(saturated(sums) if coarse is None else _roots(sums) << coarse)
    return lengths


def _added_sizes(
    cells: CellFile, indexes: Sequence[int], norm: int, files: ExitStack, folder: Path | None
) -> Iterator[tuple[Whole, Words, Whole | None]]:
    """Yield units, the limbs of the sums of their sizes or squares, and how many digits were left out of those."""
    places = list(indexes)
    if norm == 1:
        for units, sums in _by_unit(cells, lambda block: split(np.abs(block.fine[:, places]))):
            yield units, sums, None
        return
    tops = files.enter_context(closing(UnitFile(columns=len(places), folder=folder)))
    sizes = _by_unit(cells, lambda block: np.abs(block.fine[:, places]).view(np.uint64), np.maximum)
    for _, top in sizes:
        tops.add(top.view(np.int64))

    def squares(block: CellBlock) -> Words:
        coarse = _coarse(tops.of(block.unit))
        short = (np.abs(block.fine[:, places]) + (np.int64(1) << coarse) - 1) >> coarse
        return split(short * short)

    for units, sums in _by_unit(cells, squares):
        yield units, sums, _coarse(tops.of(units))


def _by_unit(
    cells: CellFile, of_cells: Callable[[CellBlock], Words], combine: np.ufunc = np.add
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


def scaled_blocks(cells: CellFile, scaling: Scaling, lengths: UnitFile) -> Iterator[tuple[CellBlock, Whole]]:
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

    def _left_and_rest(self, block: CellBlock, added: Whole) -> Whole:
        absolute = np.array([vector.totals == "absolute" for vector in self._vectors])
        before = np.where(absolute, np.abs(block.fine), block.fine)
        left = np.where(absolute, np.abs(added), added)
        return np.hstack([left, before - left])

    def _take(self, sums: Whole) -> None:
        for index, vector in enumerate(self._vectors):
            most = vector.total_most
            kept = np.clip(sums[:, index], -most, most)
            room = most - np.abs(kept)
            cut = np.clip(sums[:, len(self._vectors) + index], -room, room)
            self._kept[index] += sum(_towards_zero(kept, vector.tail_shift).tolist())
            self._cut[index] += sum(_towards_zero(cut, vector.tail_shift).tolist())


def _towards_zero(numbers: Whole, shift: int) -> Whole:
    sizes = np.abs(numbers) >> min(shift, 63)
    return np.where(numbers < 0, -sizes, sizes)


def length_bins(cells: CellFile, index: int, norm: int, files: ExitStack, folder: Path | None) -> list[int]:
    """Return how many units are in each bin of a profile by length."""
    people = np.zeros(BINS, dtype=np.int64)
    for _, sums, coarse in _added_sizes(cells, [index], norm, files, folder):
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
    """Return the keys of kept cells, and their contributions to their groups as words that are added up: 1, and
    limbs."""
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
