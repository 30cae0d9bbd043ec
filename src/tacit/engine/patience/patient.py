"""Contribution bounding and summing over sorted records, in memory that does not grow with the rows.

All records are sorted by (unit, order of the group, key, order of the row, values) and read once, so that bounding a
unit needs two numbers. The kept records are sorted by key and added up as they come. The orders are those of the path
that stopped: the kernel's keyed hashes of the same cells, or the hash that SQL computed.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.engine import external_sort
from tacit.engine.external_sort import Held, SortedRecords, SpillFile, as_bytes
from tacit.engine.kernel import coding, summing
from tacit.engine.relation import GROUP_ORDER, ROW_ORDER, STEPS, UNIT, VALUE
from tacit.exact import GroupedSteps
from tacit.numbers import Flags, Integers, Words
from tacit.plan import UNIT_WEIGHT

NO_VALUE = np.uint64((1 << 64) - 1)
# A value below 2^63 is added up in three limbs of 21 bits, each summed in 64 bits: enough for 2^42 rows.
LIMBS, LIMB_BITS = 3, 21
_LIMB = np.uint64((1 << LIMB_BITS) - 1)
SLICE_BYTES = 1 << 23


@dataclass(frozen=True)
class RecordLayout:
    """The words of each field of a record: unit | order of the group (1) | key | order of the row (1) | values."""

    unit: int
    key: int
    values: int

    @property
    def group_end(self) -> int:
        """The number of leading words that identify a record's unit and group."""
        return self.unit + 1 + self.key

    @property
    def words(self) -> int:
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


def ranked_rows(blocks: Iterable[Words], layout: RecordLayout) -> Iterator[RankedRows]:
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
    blocks: Iterable[Words], layout: RecordLayout, *, values_most: int, groups_most: int
) -> Iterator[tuple[Words, Words]]:
    """Yield the keys and the distinct values that are kept of each unit. A value takes several words; the first says
    whether it is NULL, which comes last and is never kept."""
    beginnings, group, value = Beginnings(), 0, 0
    for block in blocks:
        new_unit, new_group, new_value = beginnings.of(block, (layout.unit, layout.group_end, layout.words))
        groups, values = numbered(new_group, new_unit, group), numbered(new_value, new_group, value)
        group, value = int(groups[-1]), int(values[-1])
        kept = new_value & (groups < groups_most) & (values < values_most) & (block[:, layout.group_end + 1] == 0)
        yield block[kept, layout.unit + 1 : layout.group_end], block[kept, layout.group_end + 1 :]


def parts_of(values: Words, first: Flags) -> Words:
    """Return what each row adds: 1, whether it is its unit's first, and for each value 1 and its limbs (NULL: 0)."""
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


class KeySums(Held):
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
        blocks = self._sorted.blocks()
        return added_up((block[:, : self._key], block[:, self._key :]) for block in blocks)


def added_up(pairs: Iterable[tuple[Words, Words]], combine: np.ufunc = np.add) -> Iterator[tuple[Words, Words]]:
    """Yield each key once with the sum of its parts, in 64 bits that wrap; equal keys come one after another."""
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


def counted_once(records: SortedRecords, key_words: int) -> Iterator[tuple[Words, Words]]:
    """Yield each key of some records, which begin with it, and how many of its records differ."""
    beginnings = Beginnings()

    def new_ones() -> Iterator[tuple[Words, Words]]:
        for block in records.blocks():
            (new,) = beginnings.of(block, (block.shape[1],))
            yield block[:, :key_words], new.astype(np.uint64)[:, None]

    return added_up(new_ones())


class KeyedFile(Held):
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


class ValuesByKey(Held):
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


# --- weights of rows, as `relation.weighed` gives them in SQL ---

# The records are sorted in this number of runs, and read together.
COPIES = 3


def weighed_blocks(
    copies: tuple[Iterable[Words], Iterable[Words], Iterable[Words]], layout: RecordLayout, *, groups_most: int
) -> Iterator[tuple[Words, Words, Words]]:
    """Yield the keys, values and weights of the rows of the first `groups_most` groups of each unit.

    The same records are read three times at once, for a cell's rows and a unit's cells, which are known at their ends.
    """
    rows_of_cells = _Ahead(
        added_up(
            (cells, np.ones((len(cells), 1), np.uint64))
            for cells, _, _ in _kept_weighed(copies[0], layout, groups_most)
        )
    )
    cells_of_units = _Ahead(
        added_up(
            (cells[:, : layout.unit], new.astype(np.uint64)[:, None])
            for cells, _, (_, new) in _kept_weighed(copies[1], layout, groups_most)
        )
    )
    turn = 0
    for cells, values, (new_unit, new_cell) in _kept_weighed(copies[2], layout, groups_most):
        turns = numbered(np.ones(len(cells), dtype=bool), new_cell, turn)
        turn = int(turns[-1])
        rows, groups = rows_of_cells.of(new_cell), cells_of_units.of(new_unit)
        share = UNIT_WEIGHT // groups
        weights = (turns + 1) * share // rows - turns * share // rows
        yield cells[:, layout.unit + 1 :], values, weights.astype(np.uint64)


class _Ahead:
    """The numbers of runs, one for each, which come from a reader that is ahead."""

    def __init__(self, counted: Iterator[tuple[Words, Words]]) -> None:
        self._counted = counted
        self._waiting = np.empty(0, dtype=np.int64)  # of the open run, then of those after it

    def of(self, begins: Flags) -> Integers:
        """Return the number of each record's run; `begins` says where runs begin, the first of all included."""
        places: Integers = np.cumsum(begins, dtype=np.int64)
        if not len(self._waiting):  # the first record of all begins a run
            places -= 1
        while len(self._waiting) <= places[-1]:
            _, numbers = next(self._counted)
            self._waiting = np.append(self._waiting, numbers[:, 0].astype(np.int64))
        found: Integers = self._waiting[places]
        self._waiting = self._waiting[places[-1] :]
        return found


def _kept_weighed(
    blocks: Iterable[Words], layout: RecordLayout, groups_most: int
) -> Iterator[tuple[Words, Words, tuple[Flags, Flags]]]:
    """Yield the cells and values that count, and where units and cells begin among them."""
    bounds, kept_ones, group = Beginnings(), Beginnings(), 0
    for block in blocks:
        new_unit, new_cell = bounds.of(block, (layout.unit, layout.group_end))
        groups = numbered(new_cell, new_unit, group)
        group = int(groups[-1])
        kept = block[(groups < groups_most) & (block[:, layout.group_end] != NO_VALUE)]
        if len(kept):
            begins = kept_ones.of(kept, (layout.unit, layout.group_end))
            yield kept[:, : layout.group_end], kept[:, layout.group_end], (begins[0], begins[1])


# --- batches of rows into records ---


Orders = Literal["kernel", "sql"]


def place_words(places: pa.Array | None, rows: int) -> Words:
    """Return the indexes of listed keys as words; without keys, the index 0 for every row."""
    if places is None:
        return np.zeros((rows, 1), dtype=np.uint64)
    return coding.as_words(places).astype(np.uint64)[:, None]


class RowRecords:
    """Turns batches into records, with the orders of the path that stopped."""

    def __init__(self, schema: pa.Schema, columns: summing.Columns, salt: str, orders: Orders) -> None:
        self._columns, self._salt, self._orders_of = columns, salt, orders
        self._places = summing.place_finder(columns, salt) if orders == "kernel" else None
        self.unit_words: int = external_sort.word_count(schema.field(UNIT).type) if UNIT in schema.names else 0

    def keys(self, batch: pa.RecordBatch) -> Words:
        """Return the rows' keys as words."""
        columns = [batch.column(key) for key in self._columns.keys]
        if self._columns.listed is None:
            return external_sort.encode_all(columns, len(batch))
        return place_words(columns[0] if columns else None, len(batch))

    def values(self, batch: pa.RecordBatch) -> Words:
        """Return the rows' values, each in one word."""
        values = np.empty((len(batch), len(self._columns.values)), dtype=np.uint64)
        for index, limbs in enumerate(self._columns.values):
            words = [coding.cells_of(batch.column(limb)).astype(np.uint64) for limb in limbs]
            whole = words[0] if len(words) == 1 else (words[0] << np.uint64(summing.LIMB_BITS)) | words[1]
            values[:, index] = np.where(words[-1] == summing.NULL_WORD, NO_VALUE, whole)
        return values

    def records(self, batch: pa.RecordBatch) -> Words:
        """Return unit, order of the group, key, order of the row and values of each row."""
        if self._places is not None:
            places = self._places.find(batch.column(self._columns.keys[0]))
            batch = batch.filter(pa.array(places >= 0))
            keys = places[places >= 0].astype(np.uint64)[:, None]
        else:
            keys = self.keys(batch)
        group_order, row_order = self._orders(batch, keys)
        units = external_sort.encode(batch.column(UNIT))
        return np.column_stack([units, group_order, keys, row_order, self.values(batch)])

    def _orders(self, batch: pa.RecordBatch, keys: Words) -> tuple[Words, Words]:
        if self._orders_of == "sql":
            return _order(batch, GROUP_ORDER), _order(batch, ROW_ORDER)
        salt, listed = self._salt, self._columns.listed is not None
        units = hashes_of(batch.column(UNIT), coding.make_secret(salt, "unit"))
        if listed:
            of_keys = coding.hashed(keys[:, 0].astype(np.int64), summing.place_secret(salt))
        else:
            of_keys = hashes_of(batch.column(self._columns.keys[0]), coding.key_secret(salt, 0))
            for index, key in enumerate(self._columns.keys[1:], 1):
                of_keys = coding.mixed(of_keys, hashes_of(batch.column(key), coding.key_secret(salt, index)))
        group_order = order = coding.mixed(units, of_keys)
        for limb in self._columns.limbs:
            order = coding.mixed(order, coding.cells_of(batch.column(limb)).astype(np.uint64))
        return group_order, order


def hashes_of(column: pa.Array, secret: coding.Secret) -> Words:
    """Return the keyed hash of each cell, equal to the hash of the kernel's coders."""
    from tacit.engine.kernel import coding_loops as loops

    if coding.is_number(column.type):
        hashes = coding.hashed(coding.as_words(column), secret)
    else:
        data, ends = coding.bytes_of(column)
        hashes = np.empty(len(column), dtype=np.uint64)
        loops.hash_texts(coding.as_input(data), coding.as_input(ends), secret, hashes)
    if column.null_count:
        hashes[coding.is_null(column)] = coding.null_hash(secret)
    return hashes


def _order(batch: pa.RecordBatch, name: str) -> Words:
    """Return the words of an order, which is never NULL."""
    return external_sort.encode(batch.column(name))[:, 1]


def value_records(batch: pa.RecordBatch, keys: Words) -> Words:
    """Return unit, order of the group, key, order of the value and the value of each row."""
    value = external_sort.encode(batch.column(VALUE))
    order = np.where(value[:, 0] == 0, _order(batch, ROW_ORDER), NO_VALUE)  # NULL is not a value, and comes last
    units = external_sort.encode(batch.column(UNIT))
    return np.column_stack([units, _order(batch, GROUP_ORDER), keys, order, value])


def weighed_records(batch: pa.RecordBatch, keys: Words) -> Words:
    """Return unit, order of the group, key and value of each row that gets a weight."""
    value = external_sort.encode(batch.column(STEPS))
    steps = np.where(value[:, 0] == 0, value[:, 1] ^ external_sort.SIGN, NO_VALUE)
    units = external_sort.encode(batch.column(UNIT))
    return np.column_stack([units, _order(batch, GROUP_ORDER), keys, steps])
