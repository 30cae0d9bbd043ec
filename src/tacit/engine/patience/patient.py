"""Contribution bounding and summing over sorted records, in memory that does not grow with the rows.

The patient path uses it. All records are sorted by (unit, order of the group, key, order of the row, values) and read
once. So bounding a unit needs two numbers: how many of its groups, and how many rows of the group, came before. The
kept records are sorted by key and added up as they come. Every step needs a fixed share of the memory limit, and space
in a file. Reading rows and building the exact table is left to `patient_path.py`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.engine.external_sort import SortedRecords, as_bytes
from tacit.engine.spill_file import SpillFile
from tacit.exact import GroupedSteps
from tacit.privacy import Flags, Words

NO_VALUE = np.uint64((1 << 64) - 1)
# A value below 2^63 is added up in three limbs of 21 bits, each summed in 64 bits: enough for 2^42 rows.
LIMBS, LIMB_BITS = 3, 21
_LIMB = np.uint64((1 << LIMB_BITS) - 1)
SLICE_BYTES = 1 << 23


@dataclass(frozen=True)
class Layout:
    """The number of words of each field of a record: unit | order of the group | key | order of the row | values.

    The two orders take one word each.
    """

    unit: int
    key: int
    values: int

    @property
    def group_end(self) -> int:
        """The number of leading words that identify a record's unit and group."""
        return self.unit + 1 + self.key

    @property
    def words(self) -> int:
        """The number of words of a record."""
        return self.group_end + 1 + self.values


class Beginnings:
    """Finds where runs of equal records begin, across blocks."""

    def __init__(self) -> None:
        self._last: Words | None = None

    def of(self, block: Words, widths: Sequence[int]) -> list[Flags]:
        """Return, for each width w, whether each record differs from the one before in its first w words."""
        before = np.vstack([block[:1] if self._last is None else self._last, block[:-1]])
        differs = block != before
        found = [differs[:, :width].any(axis=1) for width in widths]
        if self._last is None:
            for each in found:
                each[0] = True
        self._last = block[-1:].copy()
        return found


def numbered(inner: Flags, outer: Flags, carried: int) -> NDArray[np.int64]:
    """Return how often `inner` began since `outer` last did, for each record; `carried` is the number before these."""
    count = np.cumsum(inner)
    start = np.maximum.accumulate(np.where(outer, np.arange(len(outer)), -1))
    return np.where(start >= 0, count - count[np.maximum(start, 0)], carried + count)


@dataclass(frozen=True)
class RankedRows:
    """Some rows in the order in which they are kept: their unit's number, and their places in their unit and group."""

    unit: NDArray[np.int64]  # (row,), rising
    group: NDArray[np.int64]  # (row,), which of its unit's groups it is in
    place: NDArray[np.int64]  # (row,), which of its unit's rows of that group it is
    keys: Words  # (row, word)
    values: Words  # (row, value)


def ranked_rows(blocks: Iterable[Words], layout: Layout) -> Iterator[RankedRows]:
    """Yield all rows of sorted records, with their places."""
    beginnings, unit, group, row = Beginnings(), -1, 0, 0
    for whole in blocks:
        for some in slices(len(whole), 4 * layout.words):
            block = whole[some]
            new_unit, new_group = beginnings.of(block, (layout.unit, layout.group_end))
            units = unit + np.cumsum(new_unit)
            groups = numbered(new_group, new_unit, group)
            rows = numbered(np.ones(len(block), dtype=bool), new_group, row)
            unit, group, row = int(units[-1]), int(groups[-1]), int(rows[-1])
            keys, values = block[:, layout.unit + 1 : layout.group_end], block[:, layout.group_end + 1 :]
            yield RankedRows(units, groups, rows, keys, values)


def kept_values(
    blocks: Iterable[Words], layout: Layout, *, values_most: int, groups_most: int
) -> Iterator[tuple[Words, Words]]:
    """Yield the keys and the distinct values that are kept of each unit; NULL is never kept.

    A record is as for rows, but a value takes several words, and the first of them says whether it is NULL. NULL comes
    last in the order of a unit's values.
    """
    beginnings, group, value = Beginnings(), 0, 0
    for block in blocks:
        new_unit, new_group, new_value = beginnings.of(block, (layout.unit, layout.group_end, layout.words))
        groups, values = numbered(new_group, new_unit, group), numbered(new_value, new_group, value)
        group, value = int(groups[-1]), int(values[-1])
        kept = new_value & (groups < groups_most) & (values < values_most) & (block[:, layout.group_end + 1] == 0)
        yield block[kept, layout.unit + 1 : layout.group_end], block[kept, layout.group_end + 1 :]


def parts_of(values: Words, first: Flags) -> Words:
    """Return what each row adds, as (row, part): 1, whether it is its unit's first, and for each value 1 and its limbs.

    A NULL value adds 0 in place of its 1 and its limbs.
    """
    known = values != NO_VALUE
    inside = np.where(known, values, 0)
    columns = [np.ones(len(values), dtype=np.uint64), first.astype(np.uint64)]
    for index in range(values.shape[1]):
        columns.append(known[:, index].astype(np.uint64))
        columns += [(inside[:, index] >> np.uint64(LIMB_BITS * limb)) & _LIMB for limb in range(LIMBS)]
    return np.column_stack(columns)


def sums_of(parts: Words) -> list[list[int]]:
    """Return rows, units, and counted and total of each value, from the added sums."""
    found = [parts[:, 0].tolist(), parts[:, 1].tolist()]
    for at in range(2, parts.shape[1], 1 + LIMBS):
        limbs = [parts[:, at + 1 + limb].tolist() for limb in range(LIMBS)]
        totals = [
            low + (middle << LIMB_BITS) + (high << 2 * LIMB_BITS) for low, middle, high in zip(*limbs, strict=True)
        ]
        found += [parts[:, at].tolist(), totals]
    return found


def slices(rows: int, words: int) -> Iterator[slice]:
    """Yield slices of rows that are small enough to take little memory."""
    step = max(1, SLICE_BYTES // (8 * max(1, words)))
    for start in range(0, rows, step):
        yield slice(start, start + step)


class KeySums:
    """Adds up words by key, in the order of keys."""

    def __init__(self, *, key: int, parts: int, memory: int, folder: Path | None) -> None:
        self._key = key
        self._sorted = SortedRecords(words=key + parts, memory=memory, folder=folder)

    def add(self, keys: Words, parts: Words) -> None:
        """Take the parts of some rows; parts of one key are added up at once."""
        order = np.argsort(as_bytes(keys))
        for some, added in added_up([(keys[order], parts[order])]):
            self._sorted.add(np.hstack([some, added]))

    def groups(self) -> Iterator[tuple[Words, Words]]:
        """Yield the keys and their sums, in the order of keys."""
        blocks = self._sorted.blocks()
        return added_up((block[:, : self._key], block[:, self._key :]) for block in blocks)

    def close(self) -> None:
        """Free the memory and close the file."""
        self._sorted.close()


def added_up(pairs: Iterable[tuple[Words, Words]], combine: np.ufunc = np.add) -> Iterator[tuple[Words, Words]]:
    """Yield each key once with the sum of its parts; equal keys come one after another, also from pair to pair.

    Sums are of 64 bits and wrap around; `combine` puts another operation in place of adding.
    """
    open_key, open_parts = None, None
    for keys, parts in pairs:
        if not len(keys):
            continue
        if open_key is not None and open_parts is not None:
            keys, parts = np.vstack([open_key, keys]), np.vstack([open_parts, parts])
        (begins,) = Beginnings().of(keys, (keys.shape[1],))
        starts = np.flatnonzero(begins)
        sums = combine.reduceat(parts, starts, axis=0)
        open_key, open_parts = keys[starts[-1:]], sums[-1:]
        if len(starts) > 1:
            yield keys[starts[:-1]], sums[:-1]
    if open_key is not None and open_parts is not None:
        yield open_key, open_parts


class KeyedFile:
    """A number for each key, in a private file; numbers are read when they are looked up."""

    def __init__(self, *, key: int, folder: Path | None) -> None:
        self._key = key
        self._keys, self._numbers = SpillFile(folder), SpillFile(folder)

    def add(self, keys: Words, numbers: Words) -> None:
        """Take keys in increasing order, with a number each."""
        self._keys.append(as_bytes(keys))
        self._numbers.append(numbers)

    def find(self, keys: Words) -> tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64]]:
        """Return each key's index (-1 for an unknown key), its number, and the number of the key before it."""
        known, numbers = self._keys.mapped(f"V{8 * self._key}"), self._numbers.mapped(np.uint64)
        wanted = as_bytes(keys)
        places = np.searchsorted(known, wanted) if len(known) else np.zeros(len(keys), dtype=np.int64)
        inside = np.minimum(places, max(0, len(known) - 1))
        there = (known[inside] == wanted) & (places < len(known)) if len(known) else np.zeros(len(keys), dtype=bool)
        if not there.any():
            nothing = np.zeros(len(keys), dtype=np.uint64)
            return np.full(len(keys), -1), nothing, nothing
        here = np.where(there, numbers[inside], 0).astype(np.uint64)
        before = np.where(there & (inside > 0), numbers[np.maximum(inside - 1, 0)], 0).astype(np.uint64)
        return np.where(there, inside, -1), here, before

    def close(self) -> None:
        """Close the files."""
        self._keys.close()
        self._numbers.close()


class ValuesByKey:
    """The values of each key in increasing order, each with a weight or none, in private files mapped into memory."""

    def __init__(self, *, key: int, memory: int, folder: Path | None, weights: bool = False) -> None:
        self._key = key
        self._sorted = SortedRecords(words=key + 1 + weights, memory=memory, folder=folder)
        self._ends = KeyedFile(key=key, folder=folder)
        self._values = SpillFile(folder)
        self._weights = SpillFile(folder) if weights else None
        self._is_written = False

    def add(self, keys: Words, values: Words, *weights: Words) -> None:
        """Take values, and their weights if they have any; missing values are left out."""
        known = values != NO_VALUE
        self._sorted.add(np.column_stack([keys[known], *(each[known] for each in (values, *weights))]))

    def of(self, keys: Words) -> GroupedSteps:
        """Return the values of each of some keys."""
        if not self._is_written:
            self._write()
        values = self._values.mapped(np.int64)
        weights = None if self._weights is None else self._weights.mapped(np.int64)
        _, ends, starts = self._ends.find(keys)
        return GroupedSteps(values, starts.astype(np.int64), ends.astype(np.int64), weights)

    def close(self) -> None:
        """Free the memory and close the files; a mapped array stays readable while it is used."""
        self._sorted.close()
        self._ends.close()
        for file in (self._values, self._weights):
            if file is not None:
                file.close()

    def _write(self) -> None:
        def counted() -> Iterator[tuple[Words, Words]]:
            for block in self._sorted.blocks():
                self._values.append(block[:, self._key])
                if self._weights is not None:
                    self._weights.append(block[:, self._key + 1])
                yield block[:, : self._key], np.ones((len(block), 1), dtype=np.uint64)

        end = np.uint64(0)
        for keys, counts in added_up(counted()):
            ends = end + np.cumsum(counts[:, 0])
            self._ends.add(keys, ends)
            end = ends[-1]
        self._is_written = True
