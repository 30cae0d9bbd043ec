"""Runs a plan whose units are single rows, without contribution bounding: rows are added up as DuckDB reads them.

It takes plans whose public keys are small whole numbers. DuckDB's GROUP BY is so fast there that rounding floats to the
grid exactly, in SQL, would add half of its time. So rows leave as a narrow key and the float itself, and one compiled
loop does the rest. Every other plan of this kind is a GROUP BY. Which path is taken depends on public facts.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit import typed_sql as sql
from tacit.engine.fixed_point import FloatGrid, float_grid
from tacit.engine.kernel.coding import SPAN_MOST, as_input, cells_of
from tacit.engine.kernel.kernel_path import as_word, batch_rows
from tacit.engine.kernel.summing import NULL_WORD, ROWS_AT_ONCE, take_beside
from tacit.exact import ROWS, UNITS, ExactTable, counted_name, key_name, total_name, value_name
from tacit.plan import Plan
from tacit.tables import Source

BATCH_ROWS = 1 << 20
KEY, BITS = "key", (16, 32)
ALL_VALID = np.empty(0, dtype=np.uint8)


def supports(plan: Plan) -> bool:
    """Return whether rows of this plan can be added up as they come; it depends on public facts alone."""
    if plan.unit is not None or plan.products or plan.quantiles or plan.distincts or plan.sums_nothing:
        return False
    if plan.scaling or plan.totals or plan.profiles:
        return False
    return _listed(plan) is not None and all(
        column.counts_only or column.height < NULL_WORD for column in plan.measured
    )


@dataclass(frozen=True)
class RowColumns:
    """The meaning of a relation's columns: a narrow key, then floats, or words of values already on their grids."""

    least: int  # one below the least listed key; stands for every unlisted key
    start_of: NDArray[np.uint64]  # from `least` on, where a key's sums begin
    grids: tuple[FloatGrid | None, ...]


def relation_of(plan: Plan, rows: sql.Table) -> tuple[sql.Table, RowColumns]:
    """Return the relation that DuckDB runs; `rows` holds the rows that count, as (key, values), floats as they are."""
    listed = _listed(plan) or []
    least, most = _span(listed)
    bits = next(bits for bits in BITS if _fits(least, most, bits))
    # The loops look up keys unchecked, so the range is enforced here. No function is used: a user's macro could replace
    # it.
    inside = rows[key_name(0)].between(sql.literal(least, "int64"), sql.literal(most, "int64"))
    narrow = sql.cases((inside, rows[key_name(0)]), else_=sql.literal(least, "int64"))
    grids = tuple(None if column.counts_only else float_grid(column) for column in plan.measured)
    values = {
        value_name(place): rows[value_name(place)] if grid is not None else as_word(rows[value_name(place)])
        for place, grid in enumerate(grids)
    }
    place_of = np.full(most - least + 1, len(listed), dtype=np.uint64)
    place_of[np.array(listed) - least] = np.arange(len(listed))
    asked = RowColumns(least, place_of * np.uint64(1 + 2 * len(grids)), grids)
    return rows.select(**{KEY: narrow.cast(f"int{bits}")}, **values), asked


def exact_sums(plan: Plan, source: Source, relation: sql.Table, form: RowColumns, *, memory: int) -> ExactTable:
    """Return each listed group's exact sums."""
    listed = plan.public_keys or ()
    width = 1 + 2 * len(form.grids)
    exact_total: NDArray[Any] = np.zeros((len(listed) + 1) * width, dtype=np.int64)
    # the sums, and the number of rows, since `exact_total` was last updated
    exact_batches, added = np.zeros_like(exact_total), 0

    def add(batch: pa.RecordBatch) -> None:
        nonlocal exact_total, added
        if added + len(batch) > ROWS_AT_ONCE:
            exact_total, added = exact_total.astype(object) + exact_batches, 0
            exact_batches[:] = 0
        added += len(batch)
        _add(batch, form, exact_batches)

    with source.stream(relation, batch_rows(BATCH_ROWS, 8 * width, memory)) as batches:
        take_beside(batches, add)
    exact_columns = (exact_total + exact_batches).reshape(-1, width)[:-1].T
    exact_rows = exact_columns[0]
    exact_found = {ROWS: exact_rows, UNITS: exact_rows}
    for index in range(len(form.grids)):
        exact_missing, exact_steps = exact_columns[1 + 2 * index], exact_columns[2 + 2 * index]
        exact_found |= {counted_name(index): exact_rows - exact_missing, total_name(index): exact_steps}
    return ExactTable(listed, {name: each.tolist() for name, each in exact_found.items()})


def _add(batch: pa.RecordBatch, form: RowColumns, exact_sums: NDArray[np.int64]) -> None:
    from tacit.engine.kernel import loops

    groups = loops.Groups(as_input(cells_of(batch.column(KEY))), form.least, as_input(form.start_of))
    if not form.grids:
        loops.count_rows(groups, exact_sums)
    for place, grid in enumerate(form.grids):
        column, at = batch.column(value_name(place)), np.uint64(1 + 2 * place)
        cells = as_input(cells_of(column))
        if grid is None:
            loops.add_words(groups, cells, at, exact_sums)
        else:
            on = loops.Grid(grid.start, grid.end, grid.scale, grid.low, grid.high, grid.keeps_ends)
            loops.add_floats(groups, cells, as_input(_validity(column)), column.offset, on, at, exact_sums)


def _validity(column: pa.Array) -> NDArray[np.uint8]:
    bits = column.buffers()[0]
    return ALL_VALID if bits is None or not column.null_count else np.frombuffer(bits, dtype=np.uint8)


def _listed(plan: Plan) -> list[int] | None:
    """Return the public keys where they are whole numbers near each other and none of them is NULL, or None."""
    if not plan.public_keys or len(plan.keys) != 1 or plan.keys[0].type != "int":
        return None
    if len(set(plan.public_keys)) != len(plan.public_keys):
        return None
    listed = [key for (key,) in plan.public_keys if isinstance(key, int) and not isinstance(key, bool)]
    if len(listed) != len(plan.public_keys):
        return None
    least, most = _span(listed)
    return listed if most - least < SPAN_MOST and _fits(least, most, BITS[-1]) else None


def _span(listed: list[int]) -> tuple[int, int]:
    return min(listed) - 1, max(listed)


def _fits(least: int, most: int, bits: int) -> bool:
    return -(1 << (bits - 1)) <= least and most < 1 << (bits - 1)
