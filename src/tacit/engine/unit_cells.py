"""Translates rows into cells, in SQL: what each unit has in each group, and how long a unit's vectors of cells are.

A cell has one whole number for each vector of a plan, in fine steps. The integers are those of docs/proofs/scaling.md.
What is added up from cells is left to `scaled_relation.py`.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, assert_never

from tacit import typed_sql as sql
from tacit.engine import arithmetic
from tacit.engine.arithmetic import whole
from tacit.engine.relation import UNIT, group_order
from tacit.exact import value_name
from tacit.plan import UNBOUNDED, Plan, Vector


def fine_name(index: int) -> str:
    """Return the name of a cell's number of vector `index`."""
    return f"fine_{index}"


def length_name(index: int) -> str:
    """Return the name of the length of vector `index`, of the whole unit."""
    return f"length_{index}"


class OverUnit:
    """Adds up over all cells of a unit; where every row is a unit, its only cell is all of it."""

    def __init__(self, plan: Plan) -> None:
        self.is_row = plan.unit is None
        self._window = sql.window(group_by=[UNIT])

    def total(self, value: sql.Value) -> sql.Value:
        """Return the sum over the unit's cells."""
        return value if self.is_row else value.sum().over(self._window)

    def top(self, value: sql.Value) -> sql.Value:
        """Return the largest of the unit's cells."""
        return value if self.is_row else value.max().over(self._window)

    def is_first(self) -> sql.Value:
        """Return whether a cell is the one that was picked of its unit."""
        return sql.literal(True) if self.is_row else sql.row_number().over(self._window) == 0


def bounded_cells(plan: Plan, rows: sql.Table, keys: list[str], vectors: Sequence[Vector], salt: str) -> sql.Table:
    """Return the cells of every unit, in at most as many groups as the plan says."""
    cells = unbounded_cells(plan, rows, keys, vectors)
    if plan.unit is None or not keys or plan.groups_per_unit >= UNBOUNDED:
        return cells
    order = [group_order(cells, keys, salt), *[cells[key] for key in keys]]
    cells = cells.mutate(group_place=sql.row_number().over(sql.window(group_by=[UNIT], order_by=order)))
    return cells.filter(cells["group_place"] < plan.groups_per_unit)


def unbounded_cells(plan: Plan, rows: sql.Table, keys: list[str], vectors: Sequence[Vector]) -> sql.Table:
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
    fine = {
        fine_name(index): arithmetic.fine_steps(rows[fine_name(index)], vector.shift)
        for index, vector in enumerate(vectors)
    }
    return rows.select(*who, *keys, **fine)


def _row_steps(vector: Vector, rows: sql.Table) -> sql.Value:
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


def with_lengths(cells: sql.Table, norms: Mapping[int, Literal[1, 2]], over: OverUnit) -> sql.Table:
    """Return cells with the length of each of their unit's vectors: its norm, rounded up."""
    sums = {
        length_name(index): arithmetic.sum_length(over.total(cells[fine_name(index)].abs()))
        for index, norm in norms.items()
        if norm == 1
    }
    cells = cells.mutate(**sums) if sums else cells
    by_squares = [index for index, norm in norms.items() if norm == 2]
    if not by_squares:
        return cells
    cells = with_coarse(cells, by_squares, over)
    squares = {f"squares_{index}": over.total(squared(cells, index)) for index in by_squares}
    cells = cells.mutate(**squares)
    lengths = {
        length_name(index): arithmetic.root_length(cells[f"squares_{index}"], cells[coarse_name(index)])
        for index in by_squares
    }
    return cells.mutate(**lengths)


def coarse_name(index: int) -> str:
    """Return the name of how many digits are left out of vector `index` before it is squared."""
    return f"coarse_{index}"


def with_coarse(cells: sql.Table, indexes: Sequence[int], over: OverUnit) -> sql.Table:
    """Return cells with how many binary digits are left out of some vectors before they are squared."""
    tops = {f"top_{index}": over.top(cells[fine_name(index)].abs()) for index in indexes}
    cells = cells.mutate(**tops)
    return cells.mutate(**{coarse_name(index): arithmetic.coarse_bits(cells[f"top_{index}"]) for index in indexes})


def squared(cells: sql.Table, index: int) -> sql.Value:
    """Return the square of a cell's number, without the digits that are left out."""
    return arithmetic.square(cells[fine_name(index)].abs(), cells[coarse_name(index)])
