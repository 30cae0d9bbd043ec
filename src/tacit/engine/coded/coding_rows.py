"""Reads rows as cells of public grids: DuckDB computes expressions and whole steps, and an array gives each its cell.

A row's cells are a function of that row and of public facts. Its unit's number of rows, which its weight is divided by,
is a function of that unit's own rows. No row can make it fail: what has no cell has the last one.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import IO, Any

import ibis
import ibis.expr.types as ir
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.engine.expression import constant, to_ibis, to_raw_ibis
from tacit.engine.fixed_point import steps_above_low
from tacit.engine.kernel.coding import as_words, cells_of
from tacit.engine.relation import UNIT, belongs_to_someone, unit_value
from tacit.plan import CodedColumn, CodedPlan, Measured
from tacit.privacy import Integers
from tacit.query import Expression, Kind, Value, columns_of, kind_of
from tacit.tables import Source, keys_to_arrow

BATCH_ROWS = 1 << 18
ROWS_OF_UNIT, LISTED, PLACE = "rows_of_unit", "listed", "place"
# Every row's number is below this, so that a division by this, or by any more rows, gives 0.
ROWS_MOST = (1 << 31) - 1
# Values are compared with those of a list one by one; a longer list is joined.
COMPARED_MOST = 64
# Up to so many steps have their cells in an array; beyond, edges are searched.
LOOKUP_MOST = 1 << 22

# While units are counted here, a row takes so many bytes beside its cells.
SORT_BYTES = 32
NO_UNITS = np.empty(0, dtype=np.int64)

Cells = NDArray[Any]  # of 8 or 16 bits
Values = NDArray[Any]  # of 32 or 64 bits, -1 where there is none


@dataclass(frozen=True, repr=False)
class Block:
    """Some rows: the cell of each column, the steps of each value, and how many rows the row's unit has."""

    cells: tuple[Cells, ...]
    values: tuple[Values, ...]
    rows_of_unit: NDArray[np.int32] | None  # None: every row is its own unit
    length: int
    units: Integers = field(default_factory=lambda: NO_UNITS)  # each row's, until they are counted

    def __repr__(self) -> str:
        return "Block(withheld)"

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        alike = 0 if self.rows_of_unit is None else self.rows_of_unit.nbytes
        return alike + sum(each.nbytes for each in (*self.cells, *self.values))

    def stored(self, file: IO[bytes]) -> "Block":
        """Return the same rows, kept in a file and read from there."""
        return Block(
            tuple(_stored(each, file) for each in self.cells),
            tuple(_stored(each, file) for each in self.values),
            None if self.rows_of_unit is None else _stored(self.rows_of_unit, file),
            self.length,
        )

    def piece(self, start: int, end: int) -> "Block":
        """Return the rows from one place up to another, or to the end; nothing is copied."""
        alike = None if self.rows_of_unit is None else self.rows_of_unit[start:end]
        cells, values = (tuple(each[start:end] for each in some) for some in (self.cells, self.values))
        return Block(cells, values, alike, min(end, self.length) - start)


def _stored(column: NDArray[Any], file: IO[bytes]) -> NDArray[Any]:
    start = file.seek(0, os.SEEK_END)
    file.write(column.tobytes())
    file.flush()
    found: NDArray[Any] = np.memmap(file, column.dtype, "r", start, column.shape)
    return np.asarray(found)


def columns_read(plan: CodedPlan) -> frozenset[str]:
    """Return the columns that a plan's expressions name."""
    read = [plan.where, *(each.expression for each in plan.columns), *(each.expression for each in plan.values)]
    return frozenset().union(*map(columns_of, read))


def cell_type(cells: int) -> Any:
    """Return the narrowest type of so many cells."""
    return np.uint8 if cells <= 1 << 8 else np.uint16


def read_blocks(plan: CodedPlan, source: Source, kinds: Mapping[str, Kind], *, memory: int) -> Iterator[Block]:
    """Yield the rows that count, in no order that matters.

    Units that are whole numbers are counted here, in a few bytes a row; other units, and more rows than a share of the
    memory holds, by the engine, which has files for it.
    """
    is_whole = plan.unit is not None and unit_value(source.table, plan.unit, kinds).type().is_integer()
    if not is_whole:
        yield from _stream(plan, source, kinds, sorts=False)
        return
    waiting: list[Block] = []
    units: list[Integers] = []
    taken = 0
    for block in _stream(plan, source, kinds, sorts=True):
        units.append(block.units)
        waiting.append(replace(block, units=NO_UNITS))
        taken += block.nbytes + SORT_BYTES * block.length
        if taken > memory // 2:
            waiting.clear()
            units.clear()
            yield from _stream(plan, source, kinds, sorts=False)
            return
    together = np.concatenate([NO_UNITS, *units])
    units.clear()
    alike = rows_alike(together)
    for block, start in zip(waiting, np.cumsum([0, *(each.length for each in waiting)]), strict=False):
        yield replace(block, rows_of_unit=alike[start : start + block.length])


def rows_alike(units: Integers) -> NDArray[np.int32]:
    """Return for each row how many rows have its unit, up to ROWS_MOST; the array of units is overwritten."""
    if not len(units):
        return np.empty(0, dtype=np.int32)
    least, most = int(units.min()), int(units.max())
    if most - least < 4 * len(units):
        units -= least
        places, counts = units, np.bincount(units)
    else:
        _, places, counts = np.unique(units, return_inverse=True, return_counts=True)
    return np.minimum(counts, ROWS_MOST, out=counts).astype(np.int32)[places]


def _stream(plan: CodedPlan, source: Source, kinds: Mapping[str, Kind], *, sorts: bool) -> Iterator[Block]:
    lookups = [_lookup(column) for column in plan.columns]
    with ExitStack() as lent:
        lists = {
            at: lent.enter_context(source.with_table(_list_of(column, kinds)))
            for at, column in enumerate(plan.columns)
            if len(column.listed) > COMPARED_MOST
        }
        relation = coded_relation(plan, source.table, kinds, lists, sorts=sorts)
        for batch in lent.enter_context(source.stream(relation, BATCH_ROWS)):
            if len(batch):
                yield _block(plan, batch, lookups, sorts=sorts)


def coded_relation(
    plan: CodedPlan, table: ir.Table, kinds: Mapping[str, Kind], lists: Mapping[int, ir.Table], *, sorts: bool
) -> ir.Table:
    """Return the rows that count: places in lists, whole steps above low ends, and the rows of each row's unit.

    Long lists come as tables, by column, and are joined. Where units are sorted here, a row has its unit instead.
    """
    conditions = []
    if plan.unit is not None:
        conditions.append(belongs_to_someone(unit_value(table, plan.unit, kinds)))
    if plan.where is not None:
        conditions.append(to_ibis(plan.where, table, kinds))
    kept = table.filter(conditions) if conditions else table
    columns = {
        _column_name(at): to_ibis(column.expression, kept, kinds) if at in lists else _coded(column, kept, kinds)
        for at, column in enumerate(plan.columns)
    }
    columns |= {_kept_name(at): _steps(value.expression, value, kept, kinds) for at, value in enumerate(plan.values)}
    if plan.unit is not None:
        columns[UNIT] = unit_value(kept, plan.unit, kinds)
    rows = kept.select(**columns)
    for at, listed in lists.items():
        rows = _joined(rows, _column_name(at), listed, len(plan.columns[at].listed))
    if plan.unit is None or sorts:
        return rows
    alike = ibis.least(rows.count().over(ibis.window(group_by=[UNIT])), ibis.literal(ROWS_MOST, "int64"))
    return rows.mutate(**{ROWS_OF_UNIT: alike.cast("int32")}).drop(UNIT)


def _list_of(column: CodedColumn, kinds: Mapping[str, Kind]) -> pa.Table:
    """Return a column's list as a table, each value with its place."""
    kind = kind_of(column.expression, kinds).type
    return keys_to_arrow([(each,) for each in column.listed], {LISTED: kind}, place=PLACE)


def _joined(rows: ir.Table, name: str, listed: ir.Table, last: int) -> ir.Table:
    """Return rows with the place of a value in its list instead of the value: each value is there at most once."""
    found = rows.left_join(listed, rows[name] == listed[LISTED])
    place = found[PLACE].fill_null(ibis.literal(last, "int64")).cast("uint16")
    return found.select(*(each for each in rows.columns if each != name), **{name: place})


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


def _block(plan: CodedPlan, batch: pa.RecordBatch, lookups: list[Cells | None], *, sorts: bool) -> Block:
    cells = tuple(
        _cells(column, cells_of(batch.column(_column_name(at))), lookup)
        for at, (column, lookup) in enumerate(zip(plan.columns, lookups, strict=True))
    )
    values = tuple(np.array(cells_of(batch.column(_kept_name(at)))) for at in range(len(plan.values)))
    if plan.unit is None:
        return Block(cells, values, None, len(batch))
    if sorts:
        return Block(cells, values, None, len(batch), np.array(as_words(batch.column(UNIT))))
    return Block(cells, values, np.array(cells_of(batch.column(ROWS_OF_UNIT))), len(batch))


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
