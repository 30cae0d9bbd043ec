"""Adds up vectors in the kernel: units scaled into caps, totals of kept and cut parts, and profiles.

Rows are packed and parted as in `summing.py`; a part then goes through the loops of `scaling_loops.py`. Vectors that
do not fit 64 bits are detected here: by public facts (`fits`), or by stopping with `OverMemory` if one unit has very
many cells, as the patient path gives the same integers.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.engine.kernel import coding, summing
from tacit.plan import BINS, Vector

Task = Literal["scaled", "profiled"]

# The largest cap and tail, so that the largest number of units with rows at once add up within 64 bits.
CAP_MOST = 1 << 31
# A value is below this, in its limbs together.
VALUE_MOST = 1 << 62
# A number of two limbs has fewer binary digits.
WIDE_BITS = 62 + summing.LIMB_BITS


@dataclass(frozen=True)
class Asked:
    """The computed parts of each unit: its vectors, each with its norm, and those that have one weight."""

    task: Task
    vectors: tuple[Vector, ...]
    norms: tuple[int, ...]
    together: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class VectorSums:
    """What is found; totals and people are those of each vector."""

    keys: list[tuple[Any, ...]] | None  # None: the public list
    sums: list[NDArray[Any]]  # of each key: units, and each vector if scaled
    totals: list[list[int]]  # kept and cut
    people: list[list[int]]  # of each bin


def fits(vector: Vector, height: int) -> bool:
    """Return whether the loops can compute a vector, given the greatest value of its column: only by public facts."""
    if max(vector.cap, vector.tail) > CAP_MOST:
        return False
    return vector.kind != "centred" or 0 <= vector.centre <= height < VALUE_MOST


def sum_vectors(
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    columns: summing.Columns,
    bounded: summing.Bounded,
    asked: Asked,
    *,
    memory: int,
    folder: Path | None = None,
) -> VectorSums:
    """Return each key's exact sums and the table's totals, every unit scaled, or the table's profiles."""
    packer = summing.Packer(schema, columns, bounded.salt, memory)
    with summing.packed(batches, packer, memory=memory, folder=folder) as runs:
        keys, hashes, order = packer.keys()
        rule = summing.rule_of(packer, hashes, order, bounded)
        width = 1 + len(asked.vectors) if asked.task == "scaled" else 0  # how many sums a key has
        threads = summing.threads_for(
            int(runs.sizes.max(initial=0)),
            packer,
            (len(hashes), width + 1),  # and a word for the key's cell
            memory,
            cell_bytes=8 * (2 + 2 * (packer.width - packer.first) + len(asked.vectors)),
        )
        vectors = _as_array(asked, columns)

        def work(parts: Iterator[summing.Rows]) -> tuple[NDArray[Any], ...]:
            return _add_parts(parts, rule, asked.task, vectors, (len(hashes), width))

        tables, totals, people = zip(*summing.over_parts(runs, threads, work), strict=True)
        sums = list(summing.added_up(tables, runs).T)
        exact_totals, exact_people = (summing.added_up(each, runs).tolist() for each in (totals, people))
        return VectorSums(keys, sums, exact_totals, exact_people)


def _add_parts(
    parts: Iterator[summing.Rows], rule: Any, task: Task, vectors: NDArray[np.int64], shape: tuple[int, int]
) -> tuple[NDArray[Any], ...]:
    """Return one thread's sums by key, totals and people."""
    from tacit.engine.kernel import scaling_loops as loops

    count = vectors.shape[1]
    shapes = (shape, (count, 2), (count, BINS if task == "profiled" else 0))
    whole: list[NDArray[Any]] = [np.zeros(each, dtype=np.int64) for each in shapes]
    now, added = [np.zeros(each, dtype=np.int64) for each in shapes], 0
    cell_of, base = np.full(shape[0], -1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for rows in parts:
        if added + len(rows) > summing.ROWS_AT_ONCE:
            whole, added = [one.astype(object) + other for one, other in zip(whole, now, strict=True)], 0
            for each in now:
                each[:] = 0
        added += len(rows)
        bits, kind = summing.bits_for(len(rows)), getattr(loops, task.upper())
        if not loops.sum_vectors(rows, summing.PART_BITS, bits, rule, kind, vectors, cell_of, base, loops.Result(*now)):
            raise coding.OverMemory
    return tuple(one + other for one, other in zip(whole, now, strict=True))


def _as_array(asked: Asked, columns: summing.Columns) -> NDArray[np.int64]:
    """Return a column for each vector; the loops define its lines."""
    from tacit.engine.kernel import scaling_loops as loops

    joint = {index: min(some) for some in asked.together for index in some}
    if asked.task == "profiled":
        joint = {index: asked.vectors.index(vector) for index, vector in enumerate(asked.vectors)}
    limbs = [len(value) for value in columns.values]
    totals = {None: loops.NO_TOTALS, "absolute": loops.ABSOLUTE, "signed": loops.SIGNED}
    lines = np.zeros((loops.TAIL_SHIFT + 1, len(asked.vectors)), dtype=np.int64)
    for index, vector in enumerate(asked.vectors):
        column = vector.column or 0
        wide = vector.kind == "centred" and limbs[column] > 1
        lines[loops.KIND, index] = loops.WIDE if wide else getattr(loops, vector.kind.upper())
        lines[loops.AT, index] = 2 + 2 * sum(limbs[:column])
        centre = divmod(vector.centre, 1 << summing.LIMB_BITS) if wide else (0, vector.centre)
        lines[[loops.HIGH, loops.LOW], index] = centre
        lines[loops.SHIFT, index] = max(
            -WIDE_BITS if wide else -summing.SHIFT_MOST, min(vector.shift, summing.SHIFT_MOST)
        )
        lines[loops.NORM, index] = asked.norms[index]
        lines[loops.CAP, index] = vector.cap
        lines[loops.JOINT, index] = joint.get(index, index)
        lines[loops.TOTALS, index] = totals[vector.totals]
        lines[loops.TAIL, index] = vector.total_most
        lines[loops.TAIL_SHIFT, index] = min(vector.tail_shift, summing.SHIFT_MOST)
    return lines
