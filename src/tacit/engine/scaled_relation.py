"""Plans that scale or that learn, on the path in SQL: DuckDB gathers the cells of units, and arrays do the rest.

A cell is a unit's part of one group: a whole number for each vector, in fine steps. The numbers that a unit adds, or
its bin, follow from all of its cells and from no other row. The arrays are those of the patient path
(`patience/patient_cells.py`), and the integers those of docs/proofs/scaling.md on every path. Sums of rows, which
DuckDB makes in 128 bits, are cut to a public limit before they are stored in 64 (`narrowed`): nothing raises on any
row. Cells that take more than their share of memory stop it with `OverMemory`, and the patient path takes over.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import assert_never

import numpy as np
import pyarrow as pa

from tacit import typed_sql as sql
from tacit.engine.kernel.coding import OverMemory
from tacit.engine.patience.patient import slices
from tacit.engine.patience.patient_cells import (
    CellBlock,
    UnitTotals,
    group_sums,
    largest_bins,
    length_bins,
    scaled_blocks,
    split,
    unit_lengths,
)
from tacit.engine.relation import KEY_PLACE, UNIT, counted_rows, first_groups, with_plain_units
from tacit.exact import UNITS, ExactTable, people_name, scaled_name, value_name
from tacit.numbers import Integers
from tacit.plan import CELL_MOST, LARGEST_BINS, UNBOUNDED, Plan, Vector
from tacit.query import Kind, Scalar
from tacit.tables import Source, to_scalar

# A shift by more is the same for every number that occurs here.
_SHIFT_MOST = 120
BATCH_ROWS = 1 << 17
# Cells may take this fraction (1 / HELD_SHARE) of the memory limit; there are a few copies of them.
HELD_SHARE = 8


def whole(value: int) -> sql.Typed:
    """Return a public number as a 64-bit integer."""
    return sql.literal(value, "int64")


def narrowed(value: sql.Typed) -> sql.Typed:
    """Return a number that is known to fit 64 bits as a 64-bit integer."""
    return value.cast("int64")


def fine_steps(steps: sql.Typed, shift: int) -> sql.Typed:
    """Return a sum of steps in fine steps, towards 0, within CELL_MOST; the sum may have 128 bits."""
    size = steps.abs()
    if shift < 0:
        size = narrowed(sql.least(size >> min(-shift, _SHIFT_MOST), whole(CELL_MOST)))
    else:
        most = max(1, CELL_MOST >> shift)  # from here on, shifting gives CELL_MOST or more
        size = narrowed(sql.least(size, whole(most)))
        size = size * whole(CELL_MOST // most)
    return sql.cases((steps < 0, -size), else_=size)


def fine_name(index: int) -> str:
    return f"fine_{index}"


def bounded_cells(
    plan: Plan, rows: sql.Relation, keys: list[str], vectors: Sequence[Vector], salt: str
) -> sql.Relation:
    """Return the cells of every unit, in at most as many groups as the plan says."""
    cells = unbounded_cells(plan, rows, keys, vectors)
    if plan.unit is None or not keys or plan.groups_per_unit >= UNBOUNDED:
        return cells
    return first_groups(cells, keys, plan, salt, sql.row_number)


def unbounded_cells(plan: Plan, rows: sql.Relation, keys: list[str], vectors: Sequence[Vector]) -> sql.Relation:
    """Return one row for each unit and group, with its number of every vector."""
    who = [] if plan.unit is None else [UNIT]
    steps = {
        fine_name(index): whole(1) if vector.kind == "units" else _row_steps(vector, rows)
        for index, vector in enumerate(vectors)
    }
    rows = rows.select(*who, *keys, **steps)
    if plan.unit is not None:
        of_units = {fine_name(index) for index, each in enumerate(vectors) if each.kind == "units"}
        summed = {name: rows[name].max() if name in of_units else rows[name].sum() for name in steps}
        rows = rows.group_by([*who, *keys]).agg(**summed)
    fine = {fine_name(index): fine_steps(rows[fine_name(index)], vector.shift) for index, vector in enumerate(vectors)}
    return rows.select(*who, *keys, **fine)


def _row_steps(vector: Vector, rows: sql.Relation) -> sql.Typed:
    """Return what one row adds to its cell, in steps: a number of 64 bits."""
    if vector.kind == "rows":
        return whole(1)
    value = rows[value_name(vector.column or 0)]
    if vector.kind == "counted":
        return sql.cases((value.notnull(), whole(1)), else_=whole(0))
    about = value - whole(vector.centre)
    if vector.kind == "centred":
        return about.fill_null(whole(0))
    if vector.kind == "units":
        raise ValueError("a unit counts once in a cell, whatever its rows")
    assert_never(vector.kind)


class GatheredCells:
    """The cells of units, in memory and in the order of units."""

    def __init__(self, cells: pa.Table, groups: Integers, vectors: int) -> None:
        units = _codes(cells, [UNIT]) if UNIT in cells.column_names else np.arange(len(cells))
        order = np.argsort(units, kind="stable")
        fine = [cells.column(fine_name(index)).to_numpy() for index in range(vectors)]
        self._units, self._groups = units[order], groups[order].astype(np.uint64)[:, None]
        self._fine = np.column_stack([np.empty((len(cells), 0), dtype=np.int64), *fine])[order]

    def blocks(self) -> Iterator[CellBlock]:
        """Yield all cells, some at a time."""
        for some in slices(len(self._units), 2 + self._fine.shape[1]):
            kept = np.ones(len(self._units[some]), dtype=np.bool_)
            yield CellBlock(self._units[some], kept, self._groups[some], self._fine[some])


class HeldNumbers:
    """Some whole numbers of each unit, in memory."""

    def __init__(self, columns: int) -> None:
        self._numbers = np.empty((0, columns), dtype=np.int64)

    def add(self, numbers: Integers) -> None:
        self._numbers = np.vstack([self._numbers, numbers])

    def of(self, units: Integers) -> Integers:
        found: Integers = self._numbers[units]
        return found


def _cells_held(source: Source, cells: sql.Relation, memory: int) -> pa.Table:
    """Return cells, or stop if they take more than their share of memory."""
    held, size = [], 0
    with source.stream(with_plain_units(cells) if UNIT in cells.columns else cells, BATCH_ROWS) as batches:
        for batch in batches:
            held.append(batch)
            size += batch.nbytes
            if size > memory // HELD_SHARE:
                raise OverMemory
    return pa.Table.from_batches(held, batches.schema)


def _codes(cells: pa.Table, names: Sequence[str]) -> Integers:
    """Return a number for each row, from 0 on and equal for rows that are equal; NULL is a value like others."""
    codes: Integers = np.zeros(len(cells), dtype=np.int64)
    for place, name in enumerate(names):
        column = cells.column(name).combine_chunks().dictionary_encode("encode")
        more = codes * max(1, len(column.dictionary)) + column.indices.to_numpy()
        codes = np.unique(more, return_inverse=True)[1] if place else more
    return codes


# --- sums and totals ---


def scaled_names(plan: Plan) -> list[str]:
    """Return the names of a scaled plan's sums over groups."""
    return [UNITS, *(scaled_name(index) for index in range(len(plan.scaling.vectors) if plan.scaling else 0))]


def scaled_table(
    plan: Plan, source: Source, kinds: Mapping[str, Kind], salt: str, listed: sql.Relation | None, memory: int
) -> ExactTable:
    """Return each group's units and its sum of every vector, every unit scaled, with the totals."""
    if plan.scaling is None:
        raise ValueError("this plan has no vectors: it scales nothing")
    vectors = plan.scaling.vectors
    rows, keys = counted_rows(plan, source.table, kinds, listed)
    held = _cells_held(source, bounded_cells(plan, rows, keys, vectors, salt), memory)
    if plan.public_keys is None:
        groups = _codes(held, keys)
        columns = [held.column(key).take(pa.array(np.unique(groups, return_index=True)[1])) for key in keys]
        found: Sequence[tuple[Scalar, ...]] = [
            tuple(map(to_scalar, key)) for key in zip(*(each.to_pylist() for each in columns), strict=True)
        ]
    else:
        found = plan.public_keys
        groups = held.column(KEY_PLACE).to_numpy().astype(np.int64) if keys else np.zeros(len(held), dtype=np.int64)
    cells, totals = GatheredCells(held, groups, len(vectors)), UnitTotals(vectors)
    exact_parts = np.zeros((len(found), 1 + 2 * len(vectors)), dtype=np.int64)
    lengths = unit_lengths(cells, range(len(vectors)), plan.scaling.norm, HeldNumbers)
    for block, added in scaled_blocks(cells, plan.scaling, lengths):
        totals.add(block, added)
        places = block.keys[:, 0].astype(np.int64)
        exact_parts[:, 0] += np.bincount(places, minlength=len(found))
        for limb, column in zip(split(added).view(np.int64).T, exact_parts.T[1:], strict=True):
            # a float holds the sum of a block's limbs exactly
            column += np.bincount(places, weights=limb, minlength=len(found)).astype(np.int64)
    exact_sums = dict(zip(scaled_names(plan), group_sums(exact_parts.view(np.uint64)), strict=True))
    return ExactTable(found, exact_sums, totals=totals.named())


# --- profiles ---


def question_of_profiles(plan: Plan) -> Plan:
    """Return the plan whose rows and keys are those of the units' cells."""
    if plan.cells is None:
        raise ValueError("a plan of profiles says which cells a unit has")
    of_cells = replace(plan, keys=plan.cells.keys, public_keys=plan.cells.public_keys)
    return replace(of_cells, measured=(), products=()) if is_of_largest(plan) else of_cells


def is_of_largest(plan: Plan) -> bool:
    """Whether the profiles are of largest values: all of a plan are, or none."""
    return any(profile.norm == "largest" for profile in plan.profiles)


def profile_table(
    plan: Plan, source: Source, kinds: Mapping[str, Kind], listed: sql.Relation | None, memory: int
) -> ExactTable:
    """Return how many units are in each bin of each profile."""
    if is_of_largest(plan):
        return people_table(plan, _people_by_largest(plan, source, kinds, listed, memory))
    rows, keys = counted_rows(asked := question_of_profiles(plan), source.table, kinds, listed)
    vectors = [profile.vector for profile in plan.profiles]
    held = _cells_held(source, unbounded_cells(asked, rows, keys, vectors), memory)
    cells = GatheredCells(held, np.zeros(len(held), dtype=np.int64), len(vectors))
    norms = [int(profile.norm) for profile in plan.profiles]
    return people_table(plan, [length_bins(cells, index, norm, HeldNumbers) for index, norm in enumerate(norms)])


def people_table(plan: Plan, people: Sequence[Sequence[int]]) -> ExactTable:
    """Return how many units are in each bin of each profile, in the order of the public list of bins."""
    bins = plan.public_keys or ()
    exact_sums = {people_name(index): [each[int(key)] for (key,) in bins] for index, each in enumerate(people)}  # type: ignore[arg-type]
    return ExactTable(bins, exact_sums)


def largest_rows(
    plan: Plan, indexes: Sequence[int], table: sql.Relation, kinds: Mapping[str, Kind], listed: sql.Relation | None
) -> tuple[sql.Relation, list[str]]:
    """Return the rows of units with the values of some profiles as floats, NaN as NULL, and the names of these."""
    columns = {f"value_{index}": plan.measured[plan.profiles[index].vector.column or 0] for index in indexes}
    more = {name: column.expression for name, column in columns.items()}
    rows, _keys = counted_rows(question_of_profiles(plan), table, kinds, listed, more)
    values = {name: rows[name].cast("float64") for name in columns}
    return rows.select(*([] if plan.unit is None else [UNIT]), **values), list(columns)


def _people_by_largest(
    plan: Plan, source: Source, kinds: Mapping[str, Kind], listed: sql.Relation | None, memory: int
) -> list[list[int]]:
    """Return how many units have their largest value, of two of one size the positive one, in each bin."""
    rows, names = largest_rows(plan, range(len(plan.profiles)), source.table, kinds, listed)
    ends = {name: rows[name] for name in names} | {f"minus {name}": -rows[name] for name in names}
    if plan.unit is None:
        found = _cells_held(source, rows.select(**ends), memory)
    else:
        found = _cells_held(
            source, rows.group_by(UNIT).agg(**{name: each.max() for name, each in ends.items()}).drop(UNIT), memory
        )
    people = []
    for name in names:
        up, down = (found.column(end).fill_null(np.nan).to_numpy() for end in (name, f"minus {name}"))
        bins = largest_bins(np.where(up >= down, up, -down))
        people.append(np.bincount(bins[bins >= 0], minlength=LARGEST_BINS).tolist())
    return people
