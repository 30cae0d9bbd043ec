"""Runs a plan on the kernel: builds the relation for DuckDB, and turns the kernel's sums into an exact table.

Rows leave DuckDB as Arrow, with values in unsigned 32-bit words, to `summing.py`, or to `scaling_loops.py` if units are
scaled or profiles counted. Whether a plan can run here depends on public facts (`supports`, `fits`); one unit with very
many cells stops it with `OverMemory`.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit import typed_sql as sql
from tacit.engine.kernel import coding, summing
from tacit.engine.relation import DIGEST_BYTES, UNIT, leaving, leaving_text
from tacit.exact import (
    UNITS,
    ExactTable,
    cut_name,
    kept_name,
    people_name,
    scaled_name,
    sum_names,
    value_name,
)
from tacit.memory import spill_folder
from tacit.plan import BINS, UNBOUNDED, Plan, Vector
from tacit.query import Scalar
from tacit.tables import Source, to_scalar

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
) -> summing.Summed:
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
        return summing.Summed(keys, sums, exact_totals, exact_people)


def _add_parts(
    parts: Iterator[summing.Rows], rule: Any, task: Task, vectors: NDArray[np.int64], shape: tuple[int, int]
) -> tuple[NDArray[Any], ...]:
    """Return one thread's sums by key, totals and people."""
    from tacit.engine.kernel import scaling_loops as loops

    count = vectors.shape[1]
    shapes = (shape, (count, 2), (count, BINS if task == "profiled" else 0))
    cell_of, base = np.full(shape[0], -1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    kind = getattr(loops, task.upper())

    def add(rows: summing.Rows, *now: NDArray[np.int64]) -> None:
        bits = summing.bits_for(len(rows))
        if not loops.sum_vectors(rows, summing.PART_BITS, bits, rule, kind, vectors, cell_of, base, loops.Result(*now)):
            raise coding.OverMemory

    return summing.sums_of(parts, shapes, add)


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


# --- plans ---


BATCH_ROWS = 1 << 20
# No text that leaves DuckDB is longer than a digest, so a batch of texts stays far below Arrow's limit of 2^31 bytes.
TEXT_BATCH_ROWS = 1 << 17
BATCH_ROWS_LEAST = 1 << 12
# A batch may take this fraction (1 / BATCH_SHARE) of the memory limit; there are a few copies of it.
BATCH_SHARE = 64


def supports(plan: Plan, source: Source) -> bool:
    """Return whether the kernel can run this plan once it is compiled; it depends on public facts alone."""
    if plan.unit is None or plan.distincts or plan.quantiles or not _vectors_fit(plan):
        return False
    return _is_codable(source.table[plan.unit].type()) and all(key.type != "null" for key in by_cells(plan).keys)


def by_cells(plan: Plan) -> Plan:
    """Return the plan whose rows are read: a profile's are grouped by its cells, and not by the bins they end up in."""
    if plan.cells is None:
        return plan
    return replace(plan, keys=plan.cells.keys, public_keys=plan.cells.public_keys if plan.cells.keys else ((),))


def looks_up_keys(plan: Plan) -> bool:
    """Return whether the kernel looks up the indexes of listed keys, twice as fast as a join: for one key of text."""
    if plan.public_keys is None or len(plan.keys) != 1 or plan.keys[0].type != "text":
        return False
    return len(set(plan.public_keys)) == len(plan.public_keys)


def relation_of(
    plan: Plan, rows: sql.Relation, keys: list[str], more: Sequence[str] = ()
) -> tuple[sql.Relation, summing.Columns, int]:
    """Return the relation that DuckDB runs, of the rows that count, as (unit, keys, values in steps), what its columns
    mean to the kernel, and in batches of how many rows it is read."""
    words = {
        value_name(place): _value_limbs(rows[value_name(place)], height) for place, height in enumerate(_heights(plan))
    }
    # the highest limb first
    named = {name: [f"{name}_{place}" for place in range(len(some))] for name, some in words.items()}
    unit = {UNIT: _as_unit(rows[UNIT])} if plan.unit is not None else {}
    limbs = {limb: word for name, some in named.items() for limb, word in zip(some, words[name], strict=True)}
    asked = rows.select(*keys, *more, **unit, **limbs) if keys or more or unit or limbs else rows
    texts = any(not _is_small(asked[name].type()) for name in asked.columns)
    listed = None if plan.public_keys is None else len(plan.public_keys)
    columns = summing.Columns(UNIT, keys, list(named.values()), listed, _listed_texts(plan))
    return asked, columns, TEXT_BATCH_ROWS if texts else BATCH_ROWS


def exact_sums(
    plan: Plan, source: Source, asked: tuple[sql.Relation, summing.Columns, int], salt: str, *, memory: int
) -> ExactTable:
    """Return each group's exact sums, every unit bounded."""
    relation, columns, rows_most = asked
    width = sum(8 if _is_small(kind) else DIGEST_BYTES for kind in relation.schema().values())
    vectors, folder = _vectors(plan), spill_folder()
    bounded = summing.Bounded(*_bounds_of_unit(plan, vectors), salt)
    with source.stream(relation, batch_rows(rows_most, width, memory)) as batches:
        read = batches, batches.schema, columns, bounded
        if vectors is None:
            summed = summing.sum_batches(*read, memory=memory, folder=folder)
            return _as_exact(summed.keys, summed.sums, plan, sum_names(plan))
        found = sum_vectors(*read, vectors, memory=memory, folder=folder)
    if plan.profiles:
        exact_people = {people_name(index): counts for index, counts in enumerate(found.people)}
        return ExactTable(plan.public_keys or (), exact_people)
    names = [UNITS, *(scaled_name(index) for index in range(len(vectors.vectors)))]
    return _with_totals(_as_exact(found.keys, found.sums, plan, names), vectors.vectors, found.totals)


def batch_rows(most: int, width: int, memory: int) -> int:
    """Return how many rows of `width` bytes are read at a time: a share of the memory limit, and at most `most`."""
    return max(BATCH_ROWS_LEAST, min(most, memory // BATCH_SHARE // width))


def _vectors_fit(plan: Plan) -> bool:
    """Whether the loops can compute the plan's vectors, if it has any."""
    vectors = _vectors(plan)
    if vectors is None:
        return True
    if any(profile.norm == "largest" for profile in plan.profiles):
        return False
    heights = _heights(plan)
    return all(fits(each, heights[each.column or 0] if heights else 0) for each in vectors.vectors)


def _bounds_of_unit(plan: Plan, vectors: Asked | None) -> tuple[int, int]:
    """Return how many rows in a group, and how many groups, a unit may have; a profile is of all of a unit's rows."""
    if plan.profiles:
        return UNBOUNDED, UNBOUNDED
    return plan.rows_per_unit if vectors is None and plan.needs_rows else UNBOUNDED, plan.groups_per_unit


def _vectors(plan: Plan) -> Asked | None:
    """Return what is computed of each unit's vectors, or None if kept rows are added up as they are."""
    if plan.profiles:
        norms = tuple(1 if profile.norm == 1 else 2 for profile in plan.profiles)
        return Asked("profiled", tuple(profile.vector for profile in plan.profiles), norms, ())
    if plan.scaling is None:
        return None
    vectors = plan.scaling.vectors
    return Asked("scaled", vectors, (plan.scaling.norm,) * len(vectors), plan.scaling.together)


def _with_totals(exact_table: ExactTable, vectors: Sequence[Vector], totals: Sequence[Sequence[int]]) -> ExactTable:
    exact_totals: dict[str, int] = {}
    for index, (vector, (kept, cut)) in enumerate(zip(vectors, totals, strict=True)):
        if vector.totals is not None:
            exact_totals |= {kept_name(index): kept, cut_name(index): cut}
    return replace(exact_table, totals=exact_totals)


def _as_exact(
    found: Sequence[tuple[Any, ...]] | None,
    sums: Sequence[NDArray[Any]],
    plan: Plan,
    names: Sequence[str],
) -> ExactTable:
    """Return sums of found keys, or of the public list, as an exact table."""
    exact_sums = dict(zip(names, sums, strict=True))
    if found is None:
        listed = ((),) if plan.public_keys is None else plan.public_keys
        return ExactTable(listed, {name: each.tolist() for name, each in exact_sums.items()})
    kept = exact_sums[UNITS] > 0  # a group without kept rows does not exist, as in SQL
    keys: Sequence[tuple[Scalar, ...]] = [
        tuple(to_scalar(part) for part in key) for key, some in zip(found, kept.tolist(), strict=True) if some
    ]
    return ExactTable(keys, {name: each[kept].tolist() for name, each in exact_sums.items()})


def _listed_texts(plan: Plan) -> list[str | None] | None:
    """Return the public list that the kernel looks keys up in, or None if DuckDB has joined it."""
    if not looks_up_keys(plan) or plan.public_keys is None:
        return None
    return [None if key is None else leaving_text(str(key)) for (key,) in plan.public_keys]


def _heights(plan: Plan) -> list[int]:
    """Return the greatest possible value of each column and product, in steps."""
    heights = [0 if column.counts_only else column.height for column in plan.measured]
    return heights + [prod(heights[column] ** exponent for column, exponent in product) for product in plan.products]


def _value_limbs(value: sql.Typed, height: int) -> list[sql.Typed]:
    """Return a value as unsigned words, the highest first; NULL is NULL_WORD, which no value has."""
    if height < summing.NULL_WORD:
        return [as_word(value)]
    return [as_word(value >> summing.LIMB_BITS), as_word(value & sql.literal((1 << summing.LIMB_BITS) - 1, "int64"))]


def as_word(value: sql.Typed) -> sql.Typed:
    """Return a value as an unsigned word of 32 bits; NULL is NULL_WORD, which no value has."""
    return value.fill_null(sql.literal(summing.NULL_WORD, "int64")).cast("uint32")


def _as_unit(unit: sql.Typed) -> sql.Typed:
    """Return the unit as it is if the kernel can compare its type, otherwise as text."""
    return unit if _is_codable(unit.type()) and not unit.type().is_uuid() else leaving(unit.cast("string"))


def _is_small(kind: Any) -> bool:
    return not (kind.is_string() or kind.is_decimal())


def _is_codable(kind: sql.Type) -> bool:
    return bool(
        kind.is_integer()
        or kind.is_floating()
        or kind.is_boolean()
        or kind.is_date()
        or kind.is_timestamp()
        or kind.is_string()
        or kind.is_decimal()
        or kind.is_uuid()
    )
