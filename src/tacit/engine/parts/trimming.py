"""Leaves out, before rows move, those of a huge unit that cannot be kept: each task keeps the first that it has.

The kernel keeps of a unit the first groups in one order, and of each the first rows in another. Both orders depend only
on the salt, the unit and the row. A row that is not among the first of some rows is not among the first of more. So the
first of each task's firsts are the first of all (docs/proofs/parts.md), and however many rows a unit has, few of them
leave a task. This is done only if all other sums are absent: weights and profiles need all rows.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.engine.kernel import coding, compiled, summing
from tacit.privacy import Words

MANY = 1 << 12  # a unit is examined if its bucket has at least this many rows
BUCKET_BITS = 12
PLACE = "place of the row"
CODED = 4  # the word of a row's first value where units have codes, as in the loops' rule


@dataclass(frozen=True)
class Trim:
    """The trimming of rows that the kernel takes: the meaning of their columns, the bounds, and the least number of
    rows."""

    columns: summing.Columns
    bounded: summing.Bounded
    many: int


def trimmed(rows: pa.Table, words: Words, trim: Trim, memory: int) -> NDArray[np.int64] | None:
    """Return the places of rows that may be kept; None: all. Rows of one unit have one of the given words."""
    bucket = words >> np.uint64(64 - BUCKET_BITS)
    sizes = np.bincount(bucket.astype(np.int64), minlength=1 << BUCKET_BITS)
    if sizes.max(initial=0) < trim.many or not compiled.load():
        return None
    many = sizes[bucket.astype(np.int64)] >= trim.many
    looked_at, others = np.flatnonzero(many), np.flatnonzero(~many)
    try:
        first = _first(rows.take(pa.array(looked_at)), trim, memory)
    except (coding.OverMemory, MemoryError):
        return None
    return np.sort(np.concatenate([others, looked_at[first]]))


def _first(rows: pa.Table, trim: Trim, memory: int) -> NDArray[np.int64]:
    """Return the places of each unit's first rows in its first groups."""
    columns = replace(trim.columns, values=[*trim.columns.values, [PLACE]])
    placed = rows.append_column(PLACE, pa.array(np.arange(len(rows), dtype=np.uint32)))
    (batch,) = placed.combine_chunks().to_batches()
    packer = summing.Packer(batch.schema, columns, trim.bounded.salt, memory)
    packed, _ = packer.pack(batch)
    _, hashes, ranks = packer.keys()
    places: NDArray[np.int64] = packed[_kept(packed, packer.first, hashes, ranks, trim.bounded), -1].astype(np.int64)
    return places


def _kept(
    packed: NDArray[np.uint32], first: int, hashes: Words, ranks: NDArray[np.int64], bounded: summing.Bounded
) -> NDArray[np.int64]:
    """Return which packed rows are kept, by the rule of the kernel's loops; the last word of a row is its place."""
    words = packed[:, 0].astype(np.uint64) | packed[:, 1].astype(np.uint64) << np.uint64(32)
    keys = packed[:, 2]
    group_order = coding.mixed(words, hashes[keys])
    row_order = group_order
    values = [packed[:, at] for at in range(first, packed.shape[1] - 1)]
    for value in values:
        row_order = coding.mixed(row_order, value.astype(np.uint64))
    codes = [packed[:, 3]] if first == CODED else []
    by: list[NDArray[Any]] = [*reversed(values), row_order, ranks[keys], group_order, *codes, words]
    order = np.lexsort(by)  # the last one first
    new_unit = _changes([words, *codes], order)
    new_group = new_unit | _changes([keys], order)
    group = _counted_since(new_group, new_unit)
    row = _counted_since(np.ones(len(order), dtype=np.bool_), new_group)
    kept: NDArray[np.int64] = order[(group < bounded.groups_most) & (row < bounded.rows_most)]
    return kept


def _changes(columns: list[NDArray[np.uint32] | Words], order: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return for each row whether it differs from the one before."""
    new = np.zeros(len(order), dtype=np.bool_)
    new[:1] = True
    for column in columns:
        sorted_column = column[order]
        new[1:] |= sorted_column[1:] != sorted_column[:-1]
    return new


def _counted_since(counted: NDArray[np.bool_], begins: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many of the counted there were since the last beginning, without the first."""
    total = np.cumsum(counted)
    starts = np.flatnonzero(begins)
    lengths = np.diff(np.append(starts, len(total)))
    return total - np.repeat(total[starts], lengths)
