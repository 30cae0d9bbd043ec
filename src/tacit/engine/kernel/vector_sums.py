"""Adds up vectors in the kernel: units scaled into caps, totals of what bounding left and took, and profiles.

Rows are packed and parted as in `summing.py`; a part then goes through the loops of `scaling_loops.py`. What they
cannot hold in 64 bits is told apart here: by public facts (`fits`), or by stopping with `OverMemory` where one unit has
very many cells, as the patient path gives the same integers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.engine.kernel import coding, summing
from tacit.plan import BINS, Vector

if TYPE_CHECKING:
    from tacit.engine.kernel import scaling_loops

Task = Literal["scaled", "dropped", "profiled"]

# Of a cap and a tail this is the most, so that as many units as there may be rows at once add up within 64 bits.
CAP_MOST = 1 << 31
# A value is below this, in its limbs together; and what is moved by as many digits is 0, or more than any cell.
VALUE_MOST, SHIFT_MOST = 1 << 62, 62
# A number of two limbs has fewer binary digits.
WIDE_BITS = 62 + summing.LIMB_BITS


@dataclass(frozen=True)
class Asked:
    """What is computed of each unit: its vectors, each with its norm, and those that have one weight."""

    task: Task
    vectors: tuple[Vector, ...]
    norms: tuple[int, ...]
    together: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class VectorSums:
    """What is found; totals and people are those of each vector."""

    keys: list[tuple[Any, ...]] | None  # None: the public list
    sums: list[NDArray[Any]]  # of each key: units, and each vector if scaled; if dropped, those of `summing.Summed`
    drawn: Mapping[int, summing.Drawn]
    totals: list[list[int]]  # kept and cut
    people: list[list[int]]  # of each bin


def fits(vector: Vector, height: int) -> bool:
    """Return whether the loops can compute a vector, given the greatest value of its column: by public facts alone."""
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
    """Return each key's exact sums, and the table's totals or profiles, every unit scaled or bounded."""
    packer = summing.Packer(schema, columns, bounded.salt, memory)
    with summing.packed(batches, packer, memory=memory, folder=folder) as runs:
        keys, hashes, order = packer.keys()
        kept = summing.Kept(memory)
        rule = summing.rule_of(packer, hashes, order, bounded)
        threads = summing.threads_for(
            int(runs.sizes.max(initial=0)),
            packer,
            (len(hashes), _width(asked, packer) + 1),  # and a word for the key's cell
            memory,
            cell_bytes=8 * (2 + 2 * (packer.width - packer.first) + len(asked.vectors)),
        )
        vectors = _as_arrays(asked, columns)

        def work(parts: Iterator[summing.Rows]) -> tuple[NDArray[Any], ...]:
            return _add_parts(parts, rule, vectors, (len(hashes), _width(asked, packer)), kept)

        tables, totals, people = zip(*summing.over_parts(runs, threads, work), strict=True)
        table = summing.added_up(tables, runs)
        sums = summing.joined_limbs(table, columns) if asked.task == "dropped" else list(table.T)
        drawn = summing.drawn_values(kept.joined(len(rule.drawn)), columns)
        exact_totals, exact_people = (summing.added_up(each, runs).tolist() for each in (totals, people))
        return VectorSums(keys, sums, drawn, exact_totals, exact_people)


def _width(asked: Asked, packer: summing.Packer) -> int:
    """Return how many sums a key has."""
    if asked.task == "dropped":
        return 2 + 2 * (packer.width - packer.first)
    return 1 + len(asked.vectors) if asked.task == "scaled" else 0


def _add_parts(
    parts: Iterator[summing.Rows],
    rule: Any,
    vectors: "scaling_loops.Vectors",
    shape: tuple[int, int],
    kept: summing.Kept,
) -> tuple[NDArray[Any], ...]:
    """Return one thread's sums by key, totals and people."""
    from tacit.engine.kernel import scaling_loops as loops

    count = len(vectors.kind)
    shapes = (shape, (count, 2), (count, BINS if vectors.task == loops.PROFILED else 0))
    whole: list[NDArray[Any]] = [np.zeros(each, dtype=np.int64) for each in shapes]
    now, added = [np.zeros(each, dtype=np.int64) for each in shapes], 0
    cell_of, base = np.full(shape[0], -1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for rows in parts:
        if added + len(rows) > summing.ROWS_AT_ONCE:
            whole, added = [one.astype(object) + other for one, other in zip(whole, now, strict=True)], 0
            for each in now:
                each[:] = 0
        added += len(rows)
        room, found = kept.room(len(rows), len(rule.drawn)), np.zeros(1, dtype=np.int64)
        out = loops.Result(now[0], room, found, now[1], now[2])
        bits = summing.bits_for(len(rows))
        if not loops.sum_vectors(rows, summing.PART_BITS, bits, rule, vectors, cell_of, base, out):
            raise coding.OverMemory
        kept.add(room[: found[0]])
    return tuple(one + other for one, other in zip(whole, now, strict=True))


def _as_arrays(asked: Asked, columns: summing.Columns) -> "scaling_loops.Vectors":
    from tacit.engine.kernel import scaling_loops as loops

    joint = {index: min(some) for some in asked.together for index in some}
    if asked.task == "profiled":
        joint = {index: asked.vectors.index(vector) for index, vector in enumerate(asked.vectors)}
    limbs = [len(value) for value in columns.values]
    kinds, at, centres, shifts = [], [], [], []
    for vector in asked.vectors:
        column = vector.column or 0
        wide = vector.kind == "centred" and limbs[column] > 1
        kinds.append(loops.WIDE if wide else getattr(loops, vector.kind.upper()))
        at.append(2 + 2 * sum(limbs[:column]))
        centres.append(divmod(vector.centre, 1 << summing.LIMB_BITS) if wide else (0, vector.centre))
        shifts.append(max(-WIDE_BITS if wide else -SHIFT_MOST, min(vector.shift, SHIFT_MOST)))
    totals = {None: loops.NO_TOTALS, "absolute": loops.ABSOLUTE, "signed": loops.SIGNED}
    return loops.Vectors(
        getattr(loops, asked.task.upper()),
        _words(kinds),
        _words(at),
        np.array(centres, dtype=np.int64).reshape(-1, 2),
        _words(shifts),
        _words(asked.norms),
        _words(vector.cap for vector in asked.vectors),
        _words(joint.get(index, index) for index in range(len(asked.vectors))),
        _words(totals[vector.totals] for vector in asked.vectors),
        _words(vector.total_most for vector in asked.vectors),
        _words(min(vector.tail_shift, SHIFT_MOST) for vector in asked.vectors),
    )


def _words(numbers: Iterable[int] | Sequence[int]) -> NDArray[np.int64]:
    return np.array(list(numbers), dtype=np.int64)
