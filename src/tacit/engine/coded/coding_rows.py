"""Reads rows as cells of public grids: DuckDB computes expressions and whole steps, and an array gives each its cell.

A row's cells are a function of that row and of public facts. Its unit's number of rows, which its weight is divided by,
is a function of that unit's own rows. No row can make it fail: what has no cell has the last one.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.engine.expression import constant, to_ibis, to_raw_ibis
from tacit.engine.fixed_point import steps_above_low
from tacit.engine.kernel.coding import cells_of
from tacit.engine.relation import UNIT, belongs_to_someone, unit_value
from tacit.plan import CodedColumn, CodedPlan, Measured
from tacit.privacy import Integers
from tacit.query import Expression, Kind, Value, columns_of, kind_of
from tacit.tables import Source

BATCH_ROWS = 1 << 18
ROWS_OF_UNIT = "rows_of_unit"
# Up to so many steps have their cells in an array; beyond, edges are searched.
LOOKUP_MOST = 1 << 22

Cells = NDArray[Any]  # of 8 or 16 bits
Values = NDArray[Any]  # of 32 or 64 bits, -1 where there is none


@dataclass(frozen=True, repr=False)
class Block:
    """Some rows: the cell of each column, the steps of each value, and how many rows the row's unit has."""

    cells: tuple[Cells, ...]
    values: tuple[Values, ...]
    rows_of_unit: Integers | None  # None: every row is its own unit
    length: int

    def __repr__(self) -> str:
        return "Block(withheld)"


def columns_read(plan: CodedPlan) -> frozenset[str]:
    """Return the columns that a plan's expressions name."""
    read = [plan.where, *(each.expression for each in plan.columns), *(each.expression for each in plan.values)]
    return frozenset().union(*map(columns_of, read))


def cell_type(cells: int) -> Any:
    """Return the narrowest type of so many cells."""
    return np.uint8 if cells <= 1 << 8 else np.uint16


def read_blocks(plan: CodedPlan, source: Source, kinds: Mapping[str, Kind]) -> Iterator[Block]:
    """Yield the rows that count, in no order that matters."""
    relation = coded_relation(plan, source.table, kinds)
    lookups = [_lookup(column) for column in plan.columns]
    with source.stream(relation, BATCH_ROWS) as batches:
        for batch in batches:
            if len(batch):
                yield _block(plan, batch, lookups)


def coded_relation(plan: CodedPlan, table: ir.Table, kinds: Mapping[str, Kind]) -> ir.Table:
    """Return the rows that count: places in lists, whole steps above low ends, and the rows of each row's unit."""
    conditions = []
    if plan.unit is not None:
        conditions.append(belongs_to_someone(unit_value(table, plan.unit, kinds)))
    if plan.where is not None:
        conditions.append(to_ibis(plan.where, table, kinds))
    kept = table.filter(conditions) if conditions else table
    columns = {_column_name(at): _coded(column, kept, kinds) for at, column in enumerate(plan.columns)}
    columns |= {_kept_name(at): _steps(value.expression, value, kept, kinds) for at, value in enumerate(plan.values)}
    if plan.unit is None:
        return kept.select(**columns)
    rows = kept.select(**columns, **{UNIT: unit_value(kept, plan.unit, kinds)})
    alike = rows.count().over(ibis.window(group_by=[UNIT])).cast("int64")
    return rows.select(*columns, **{ROWS_OF_UNIT: alike})


def _column_name(index: int) -> str:
    return f"column_{index}"


def _kept_name(index: int) -> str:
    return f"number_{index}"


def _coded(column: CodedColumn, table: ir.Table, kinds: Mapping[str, Kind]) -> ir.Value:
    """Return the place of a value in its list, or its whole steps above the low end."""
    if column.measured is not None:
        return _steps(column.expression, column.measured, table, kinds)
    value = to_ibis(column.expression, table, kinds)
    kind = kind_of(column.expression, kinds).type
    places = [(value == constant(Value(each, kind)).value, _place(at)) for at, each in enumerate(column.listed)]
    return ibis.cases(*places, else_=_place(len(column.listed))).cast("uint16")


def _place(index: int) -> ir.IntegerScalar:
    return ibis.literal(index, "uint16")


def _steps(expression: Expression, grid: Measured, table: ir.Table, kinds: Mapping[str, Kind]) -> ir.Value:
    """Return whole steps above the low end, -1 where there is no number."""
    steps = steps_above_low(to_raw_ibis(expression, table, kinds), grid).fill_null(ibis.literal(-1, "int64"))
    return steps.cast("int32") if grid.height < 1 << 31 else steps


def _block(plan: CodedPlan, batch: pa.RecordBatch, lookups: list[Cells | None]) -> Block:
    cells = tuple(
        _cells(column, cells_of(batch.column(_column_name(at))), lookup)
        for at, (column, lookup) in enumerate(zip(plan.columns, lookups, strict=True))
    )
    values = tuple(np.array(cells_of(batch.column(_kept_name(at)))) for at in range(len(plan.values)))
    alike = None if plan.unit is None else np.array(cells_of(batch.column(ROWS_OF_UNIT)))
    return Block(cells, values, alike, len(batch))


def _lookup(column: CodedColumn) -> Cells | None:
    """Return the cell of each number of steps, and last the cell of none; None where there would be too many."""
    if column.measured is None or column.measured.height > LOOKUP_MOST:
        return None
    steps = np.append(np.arange(column.measured.height + 1), -1)
    return _searched(column, steps)


def _cells(column: CodedColumn, found: NDArray[Any], lookup: Cells | None) -> Cells:
    if column.measured is None:
        return found.astype(cell_type(column.cells))
    return _searched(column, found) if lookup is None else lookup[found]  # -1 is the last


def _searched(column: CodedColumn, steps: NDArray[Any]) -> Cells:
    places = np.searchsorted(np.array(column.edges, dtype=np.int64), steps, side="right") - 1
    places[steps < 0] = column.cells - 1
    return places.astype(cell_type(column.cells))
