"""Reads rows as cells of public grids: DuckDB computes expressions, and arrays give each value its cell.

A row's cells are a function of that row and of public facts. Its unit's number of rows, which its weight is divided by,
is a function of that unit's own rows. No row can make it fail: what has no cell has the last one. Numbers on a
grid, and types that arrays do not compare as the engine does (decimals, times), are placed by the engine.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tacit import typed_sql as sql
from tacit.engine.expression import constant, steps_above_low, to_raw_sql, to_sql
from tacit.engine.kernel.coding import cells_of
from tacit.engine.relation import UNIT, rows_of_units, unit_value
from tacit.plan import CodedColumn, CodedPlan, Measured
from tacit.query import INT_LEAST, INT_MOST, Expression, Kind, Value, columns_of, kind_of
from tacit.tables import Source, keys_to_arrow

BATCH_ROWS = 1 << 18
ROWS_OF_UNIT, LISTED, PLACE, INDEX = "rows_of_unit", "listed", "place", "index_in_unit"
PLACE_OF_UNIT = "place_of_unit"
# Every row's number is below this, so that a division by this, or by any more rows, gives 0.
ROWS_MOST = (1 << 31) - 1
# Values are compared with those of a list one by one; a longer list is joined.
COMPARED_MOST = 64
# Up to this number of steps have their cells in an array; beyond, edges are searched.
LOOKUP_MOST = 1 << 22

Cells = NDArray[Any]  # of 8 or 16 bits
Values = NDArray[Any]  # of 32 or 64 bits, -1 where there is none


@dataclass(frozen=True, repr=False)
class Block:
    """Some rows: the cell of each column, the steps of each value, and how many rows the row's unit has."""

    cells: tuple[Cells, ...]
    values: tuple[Values, ...]
    rows_of_unit: NDArray[np.int32] | None  # None: every row is its own unit
    length: int

    def __repr__(self) -> str:
        return "Block(withheld)"

    @property
    def nbytes(self) -> int:
        alike = 0 if self.rows_of_unit is None else self.rows_of_unit.nbytes
        return alike + sum(each.nbytes for each in (*self.cells, *self.values))

    def stored(self, file: IO[bytes]) -> "Block":
        """Return the same rows, kept in a file and read from there."""
        return Block(
            tuple(_stored_column(each, file) for each in self.cells),
            tuple(_stored_column(each, file) for each in self.values),
            None if self.rows_of_unit is None else _stored_column(self.rows_of_unit, file),
            self.length,
        )

    def piece(self, start: int, end: int) -> "Block":
        """Return the rows from one place up to another, or to the end; nothing is copied."""
        alike = None if self.rows_of_unit is None else self.rows_of_unit[start:end]
        cells, values = (tuple(each[start:end] for each in some) for some in (self.cells, self.values))
        return Block(cells, values, alike, min(end, self.length) - start)


def _stored_column(column: NDArray[Any], file: IO[bytes]) -> NDArray[Any]:
    start = file.seek(0, os.SEEK_END)
    file.write(column.tobytes())
    file.flush()
    found: NDArray[Any] = np.memmap(file, column.dtype, "r", start, column.shape)
    return np.asarray(found)


def columns_read(plan: CodedPlan) -> frozenset[str]:
    read = [plan.where, *(each.expression for each in plan.columns), *(each.expression for each in plan.values)]
    return frozenset().union(*map(columns_of, read))


def cell_type(cells: int) -> Any:
    return np.uint8 if cells <= 1 << 8 else np.uint16


def read_blocks(plan: CodedPlan, source: Source, kinds: Mapping[str, Kind]) -> Iterator[Block]:
    """Yield the rows that count, in any order."""
    plain = [is_plain(column, kinds) for column in plan.columns]
    readers = [_Reader(column, plain=each) for column, each in zip(plan.columns, plain, strict=True)]
    lists = {
        at: sql.Lent(
            keys_to_arrow(
                [(each,) for each in column.listed], {LISTED: kind_of(column.expression, kinds).type}, place=PLACE
            )
        )
        for at, column in enumerate(plan.columns)
        if len(column.listed) > COMPARED_MOST and not plain[at]
    }
    relation = coded_relation(plan, source.table, kinds, lists)
    with source.stream(relation, BATCH_ROWS) as batches:
        # a type that arrays do not read fails here, whether the table has any row or not
        _block(plan, pa.RecordBatch.from_pylist([], schema=batches.schema), readers)
        for batch in batches:
            if len(batch):
                yield _block(plan, batch, readers)


def is_plain(column: CodedColumn, kinds: Mapping[str, Kind]) -> bool:
    """Whether arrays place a column's listed values as the engine would; decided by public facts."""
    if column.listed == ():
        return False
    kind = kind_of(column.expression, kinds).type
    if kind == "int":
        return all(isinstance(each, int) and INT_LEAST <= each <= INT_MOST for each in column.listed)
    return kind in ("text", "bool")


def coded_relation(
    plan: CodedPlan, table: sql.Relation, kinds: Mapping[str, Kind], lists: Mapping[int, sql.Relation]
) -> sql.Relation:
    """Return the rows that count: values, places in lists (`lists` has the long ones, which are joined) or whole steps
    above low ends, and the rows of their unit."""
    kept = rows_of_units(table, plan.unit, plan.where, kinds)
    columns = {
        _column_name(plan, at): to_sql(column.expression, kept, kinds) if at in lists else _coded(column, kept, kinds)
        for at, column in enumerate(plan.columns)
        if _first_alike(plan, at) == at and column.of != "unit"
    }
    columns |= {_kept_name(at): _steps(value.expression, value, kept, kinds) for at, value in enumerate(plan.values)}
    if plan.unit is not None:
        columns[UNIT] = unit_value(kept, plan.unit, kinds)
    rows = kept.select(**columns)
    for at, listed in lists.items():
        if _first_alike(plan, at) == at:
            rows = _joined_blocks(rows, _column_name(plan, at), listed, len(plan.columns[at].listed))
    if plan.unit is None:
        return rows
    if plan.is_by_unit:
        rows = rows.mutate(**{PLACE_OF_UNIT: sql.dense_rank().over(sql.window(order_by=[rows[UNIT]])).cast("int64")})
    alike = sql.least(rows.count().over(sql.window(group_by=[UNIT])), sql.literal(ROWS_MOST, "int64"))
    return _beside_rows_before(plan, rows.mutate(**{ROWS_OF_UNIT: alike.cast("int32")})).drop(UNIT)


def _beside_rows_before(plan: CodedPlan, rows: sql.Relation) -> sql.Relation:
    """Return rows beside the values of the row before, of the same unit: its own values in the first row.

    Rows that are equal in the ordering column are in a mixed order, by a hash of the unit and of their values. Rows
    that are alike in all columns change places without effect: the values depend on the unit's own rows only.
    """
    before = {_column_name(plan, at) for at, column in enumerate(plan.columns) if column.of == "before"}
    if not before:
        return rows
    names = sorted({_column_name(plan, at) for at, column in enumerate(plan.columns) if column.of != "unit"})
    alike = rows.mutate(**{INDEX: sql.row_number().over(sql.window(group_by=[UNIT, *names]))})
    mixed = sql.struct({name: alike[name] for name in (UNIT, INDEX, *names)}).hash()
    first = [] if plan.order is None else [alike[_column_name(plan, plan.order)]]
    order = [*first, mixed, *(alike[name] for name in names)]
    rows = alike.mutate(**{INDEX: sql.row_number().over(sql.window(group_by=[UNIT], order_by=order))})
    is_first = rows[INDEX] == sql.literal(0, "int64")
    ordered = sql.window(group_by=[UNIT], order_by=[rows[INDEX]])
    found = {
        _before(name): sql.cases((is_first, rows[name]), else_=rows[name].before().over(ordered))
        for name in sorted(before)
    }
    return rows.mutate(**found)


def _before(name: str) -> str:
    return f"before_{name}"


def _joined_blocks(rows: sql.Relation, name: str, listed: sql.Relation, last: int) -> sql.Relation:
    """Return rows with the place of a value in its list instead of the value: each value is there at most once."""
    found = rows.left_join(listed, rows[name] == listed[LISTED])
    place = found[PLACE].fill_null(sql.literal(last, "int64")).cast("uint16")
    return found.select(*(each for each in rows.columns if each != name), **{name: place})


def _first_alike(plan: CodedPlan, index: int) -> int:
    """Return the first column with the same expression, list and grid, edges apart: it is read once."""
    wanted = plan.columns[index]
    return next(
        at
        for at, each in enumerate(plan.columns)
        if (each.expression, each.listed, each.measured) == (wanted.expression, wanted.listed, wanted.measured)
    )


def _column_name(plan: CodedPlan, index: int) -> str:
    return f"column_{_first_alike(plan, index)}"


def _kept_name(index: int) -> str:
    return f"number_{index}"


def _coded(column: CodedColumn, table: sql.Relation, kinds: Mapping[str, Kind]) -> sql.Typed:
    """Return the value where arrays place it; else its place in its list, or its whole steps above the low end."""
    if is_plain(column, kinds):
        return to_sql(column.expression, table, kinds)
    if column.measured is not None:
        return _steps(column.expression, column.measured, table, kinds)
    value = to_sql(column.expression, table, kinds)
    kind = kind_of(column.expression, kinds).type
    places = [(value == constant(Value(each, kind)).value, _place(at)) for at, each in enumerate(column.listed)]
    return sql.cases(*places, else_=_place(len(column.listed))).cast("uint16")


def _place(index: int) -> sql.Typed:
    return sql.literal(index, "uint16")


def _steps(expression: Expression, grid: Measured, table: sql.Relation, kinds: Mapping[str, Kind]) -> sql.Typed:
    """Return whole steps above the low end, -1 without a number."""
    steps = steps_above_low(to_raw_sql(expression, table, kinds), grid).fill_null(sql.literal(-1, "int64"))
    return steps.cast("int32") if grid.height < 1 << 31 else steps


def _block(plan: CodedPlan, batch: pa.RecordBatch, readers: "list[_Reader]") -> Block:
    steps: dict[str, NDArray[Any]] = {}  # of columns that are read once for several grids
    cells = []
    for at, reader in enumerate(readers):
        if reader.column.of == "unit":
            edges = np.array(reader.column.edges)
            rows = np.searchsorted(edges, cells_of(batch.column(ROWS_OF_UNIT)), side="right") - 1
            cells.append(rows.astype(reader.type))
            continue
        is_before = reader.column.of == "before"
        name = _before(_column_name(plan, at)) if is_before else _column_name(plan, at)
        if name not in steps:
            steps[name] = reader.steps(batch.column(name))
        found = reader.cells(steps[name])
        if is_before:
            found = np.where(cells_of(batch.column(INDEX)) == 0, reader.type(reader.column.cells - 1), found)
        cells.append(found)
    kept = [_kept_name(at) for at in range(len(plan.values))] + [PLACE_OF_UNIT] * plan.is_by_unit
    values = tuple(np.array(cells_of(batch.column(name))) for name in kept)
    if plan.unit is None:
        return Block(tuple(cells), values, None, len(batch))
    return Block(tuple(cells), values, np.array(cells_of(batch.column(ROWS_OF_UNIT))), len(batch))


class _Reader:
    """Gives the values of one column their cells."""

    def __init__(self, column: CodedColumn, *, plain: bool) -> None:
        self.column, self.plain = column, plain
        self.type = cell_type(column.cells)
        self.lookup: Cells | None = None  # the cell of each number of steps, and last the cell of none
        if column.measured is not None and column.measured.height <= LOOKUP_MOST:
            self.lookup = np.repeat(
                np.arange(len(column.edges), dtype=self.type), np.diff([*column.edges, column.edges[-1] + 1])
            )

    def steps(self, found: pa.Array) -> NDArray[Any]:
        """Return places in the list, or whole steps above the low end, -1 without a number."""
        if not self.plain:
            return cells_of(found)
        last = len(self.column.listed)
        places = pc.index_in(found, value_set=pa.array(self.column.listed, found.type))
        in_list: NDArray[Any] = cells_of(places.fill_null(last))
        return in_list

    def cells(self, steps: NDArray[Any]) -> Cells:
        """Return the cells of places or steps."""
        if self.column.measured is None:
            return steps.astype(self.type)
        if self.lookup is not None:
            looked_up: Cells = self.lookup[steps]  # -1 is the last
            return looked_up
        places = np.searchsorted(np.array(self.column.edges, dtype=np.int64), steps, side="right") - 1
        places[steps < 0] = len(self.column.edges) - 1
        return places.astype(self.type)
