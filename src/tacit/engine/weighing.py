"""Weights of rows for quantiles of people: the rows of one unit weigh at most UNIT_WEIGHT together, in all its groups.

A unit with values in m groups weighs f = ⌊UNIT_WEIGHT/m⌋ in each of them. Its n values there share f: in the order of
the values, the first i of them weigh ⌊i·f/n⌋ together. So a unit's weights depend on its own rows alone, and however
many rows it has, they are spread evenly over its values (docs/proofs/quantiles.md). `weighed` says it in SQL,
`weighed_blocks` for the patient path, in memory that does not grow with the rows.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tacit import typed_sql as sql
from tacit.engine.patience.patient import NO_VALUE, Beginnings, added_up, numbered
from tacit.plan import UNIT_WEIGHT
from tacit.privacy import Flags, Integers, Words

WEIGHT = "weight"
# On the patient path the records are sorted so many times, and read together.
COPIES = 3


def weighed(known: sql.Table, unit: str, keys: list[str], value: str) -> sql.Table:
    """Return rows, none of whose values is NULL, with their weights."""
    cell = sql.window(group_by=[unit, *keys], order_by=[known[value]])
    known = known.mutate(turn=sql.row_number().over(cell))
    whole = sql.window(group_by=[unit, *keys])
    groups = (known["turn"] == 0).cast("int64").sum().over(sql.window(group_by=[unit]))
    known = known.mutate(rows_of_cell=known.count().over(whole).cast("int64"), groups_of_unit=groups.cast("int64"))
    share = sql.literal(UNIT_WEIGHT, "int64") // known["groups_of_unit"]
    turn, rows = known["turn"].cast("int64"), known["rows_of_cell"]
    return known.mutate(**{WEIGHT: (turn + 1) * share // rows - turn * share // rows})


@dataclass(frozen=True)
class WeighedLayout:
    """The number of words of a record's unit and key; a record is unit | order of the group | key | value."""

    unit: int
    key: int

    @property
    def cell(self) -> int:
        """The number of leading words that identify a unit and a group."""
        return self.unit + 1 + self.key


def weighed_blocks(
    copies: tuple[Iterable[Words], Iterable[Words], Iterable[Words]], layout: WeighedLayout, *, groups_most: int
) -> Iterator[tuple[Words, Words, Words]]:
    """Yield the keys, values and weights of the rows of the first `groups_most` groups of each unit.

    The same sorted records are read three times at once: a row's weight needs the number of its cell's rows and of its
    unit's cells, which are known when the last of them has been read.
    """
    rows_of_cells = _Ahead(
        added_up((cells, np.ones((len(cells), 1), np.uint64)) for cells, _, _ in _kept(copies[0], layout, groups_most))
    )
    cells_of_units = _Ahead(
        added_up(
            (cells[:, : layout.unit], new.astype(np.uint64)[:, None])
            for cells, _, (_, new) in _kept(copies[1], layout, groups_most)
        )
    )
    turn = 0
    for cells, values, (new_unit, new_cell) in _kept(copies[2], layout, groups_most):
        turns = numbered(np.ones(len(cells), dtype=bool), new_cell, turn)
        turn = int(turns[-1])
        rows, groups = rows_of_cells.of(new_cell), cells_of_units.of(new_unit)
        share = UNIT_WEIGHT // groups
        weights = (turns + 1) * share // rows - turns * share // rows
        yield cells[:, layout.unit + 1 :], values, weights.astype(np.uint64)


class _Ahead:
    """The numbers of runs, one for each, which come from a reader that is ahead."""

    def __init__(self, counted: Iterator[tuple[Words, Words]]) -> None:
        self._counted = counted
        self._waiting = np.empty(0, dtype=np.int64)  # of the open run, then of those after it

    def of(self, begins: Flags) -> Integers:
        """Return the number of each record's run; `begins` says where runs begin, the first of all included."""
        places: Integers = np.cumsum(begins, dtype=np.int64)
        if not len(self._waiting):  # the first record of all begins a run
            places -= 1
        while len(self._waiting) <= places[-1]:
            _, numbers = next(self._counted)
            self._waiting = np.append(self._waiting, numbers[:, 0].astype(np.int64))
        found: Integers = self._waiting[places]
        self._waiting = self._waiting[places[-1] :]
        return found


def _kept(
    blocks: Iterable[Words], layout: WeighedLayout, groups_most: int
) -> Iterator[tuple[Words, Words, tuple[Flags, Flags]]]:
    """Yield the cells and values that count, and where units and cells begin among them."""
    bounds, kept_ones, group = Beginnings(), Beginnings(), 0
    for block in blocks:
        new_unit, new_cell = bounds.of(block, (layout.unit, layout.cell))
        groups = numbered(new_cell, new_unit, group)
        group = int(groups[-1])
        kept = block[(groups < groups_most) & (block[:, layout.cell] != NO_VALUE)]
        if len(kept):
            begins = kept_ones.of(kept, (layout.unit, layout.cell))
            yield kept[:, : layout.cell], kept[:, layout.cell], (begins[0], begins[1])
