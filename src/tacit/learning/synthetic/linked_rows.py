"""Several rows of one made-up person: how many, each drawn given the row before, and held together by a made-up id.

A person's columns and number of rows are drawn first, as the field has them. Then the rows follow one after the other:
each is drawn given the person's columns, the number of rows and the cells of the row before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tacit.errors import InvalidParameter, QueryRefused, did_you_mean
from tacit.learning.priors import bins_of
from tacit.learning.synthetic.field import uniforms
from tacit.learning.synthetic.made_columns import BIN_NOISE, MadeColumn, cell_shares, cells_within
from tacit.learning.synthetic.row_rules import keeping_rules
from tacit.noise import Keystream
from tacit.numbers import Floats, Integers
from tacit.plan import CodedColumn
from tacit.query import Column
from tacit.tables import Declaration

if TYPE_CHECKING:
    from tacit.learning.synthetic.noisy_tables import RowsState

# The cells of a number of rows: each number up to 8, then wider ones; more than the last edge has its cell.
EDGES = (*range(1, 9), *(round(8 * 2 ** (step / 2)) for step in range(1, 15)))
ROW_BINS = 8
# People beyond a number of rows are seen if they are more than this many deviations of their noise, and more for each
# doubling: 2.5 beyond 16 rows and 4 beyond 1,024, since a few people with so many rows would have most rows.
TAIL_NOISE, TAIL_NOISE_OF_DOUBLING = 1.5, 0.25
# How often rows that break a rule are drawn again.
TRIES = 50


@dataclass(frozen=True)
class PeopleDesign:
    """What holds rows together: the unit's column, those that a person has once, and the one that orders the rows."""

    unit: str
    unit_type: str
    once: tuple[int, ...]
    order: int | None

    def rows_column(self) -> CodedColumn:
        """Return the number of rows of a person, as a coded column."""
        return CodedColumn(f"rows of one {self.unit}", Column(self.unit), edges=EDGES, of="unit")


def people_design(
    once: Sequence[str] | None, order: str | None, columns: Sequence[MadeColumn], declaration: Declaration
) -> PeopleDesign | None:
    """Return what holds rows of one person together, None without `once`; refuse other columns in words."""
    names, unit = [column.name for column in columns], declaration.unit_column
    if once is None:
        if order is not None:
            raise InvalidParameter("order is of several rows of one person\nhint: once=['age', 'sex'], order='day'")
        return None
    if unit is None or declaration.rows_per_unit == 1:
        raise QueryRefused(
            "each row of this table is a person of its own, so no rows are held together\nhint: leave once out"
        )
    if not isinstance(once, list | tuple) or not all(isinstance(name, str) for name in once):
        raise InvalidParameter("once must be a list of names\nhint: once=['age', 'sex']")
    if not isinstance(order, str | None):
        raise InvalidParameter(f"order must be the name of a column, not {type(order).__name__}\nhint: order='day'")
    for name in (*once, *([] if order is None else [order])):
        if name not in names:
            raise QueryRefused(
                f"'{name}' is not among the columns of made-up rows{did_you_mean(str(name), names)}"
                "\nhint: name it in columns too"
            )
    if order in once or len({*once}) == len(names):
        raise QueryRefused("a column that orders rows, and one more at least, must differ between rows\nhint: once=[]")
    kind = declaration.columns[unit].type if unit in declaration.columns else "int"
    places = tuple(at for at, name in enumerate(names) if name in once)
    return PeopleDesign(unit, kind, places, None if order is None else names.index(order))


def bins_of_rows(noisy: Floats, sigma: float) -> Integers:
    """Return the bin of each cell of a number of rows, by noisy counts of people."""
    last, counts = _with_tail(noisy, sigma)
    found = bins_of(np.append(counts, 0.0), ordered=True, least=BIN_NOISE * sigma, most=ROW_BINS, noise=sigma)
    return np.append(found.of_cells[:-1], np.full(len(noisy) - last - 1, found.of_cells[-2]))


def shares_of_rows(noisy: Floats, of_cells: Integers, sigma: float) -> Floats:
    """Return how likely each cell of a number of rows is in its bin: none beyond the people that noise leaves clear."""
    last, counts = _with_tail(noisy, sigma)
    beyond = np.zeros(len(noisy) - last - 1)
    widths = np.concatenate([np.ones(last + 1), beyond, [1.0]])
    alone = np.append(of_cells, of_cells.max() + 1)
    return cell_shares(np.concatenate([counts, beyond, [0.0]]), alone, widths, sigma)[:-1]


def _with_tail(noisy: Floats, sigma: float) -> tuple[int, Floats]:
    """Return the last cell that people clearly reach, and the counts up to it, with all beyond in the last."""
    tails = np.cumsum(noisy[::-1])[::-1]
    needed = TAIL_NOISE + TAIL_NOISE_OF_DOUBLING * np.log2(np.array(EDGES))
    clear = np.flatnonzero(tails > needed * sigma * np.sqrt(np.arange(len(noisy), 0, -1)))
    last = int(clear.max(initial=0))
    return last, np.append(noisy[:last], tails[last])


def first_share(noisy: Floats, sigma: float) -> float:
    """Return the part of all people's weight that first rows have: the mean of one over the number of rows."""
    last, counts = _with_tail(noisy, sigma)
    weights = np.maximum(counts, 0.0) + 1e-9
    return float(weights @ (1 / np.array(EDGES[: last + 1])) / weights.sum())


def linked_rows(state: "RowsState", people: int, rows: int | None = None) -> pa.Table:
    """Draw the rows of made-up people, each with the person's made-up id; `rows` of them, or all."""
    bits, design = Keystream(), state.design
    held = design.people
    if held is None:
        raise InvalidParameter("these rows are made one by one")
    persons = state.field.rows(people, bits)
    once = _kept_people(state, persons, bits)
    cells, owners = _cells_of_rows(state, persons, _numbers_of_rows(state, persons, bits), bits, rows)
    own = once.take(pa.array(owners))
    made = _table_of(state, cells, own, owners, bits)
    for _ in range(TRIES if design.rules else 0):
        broken = np.flatnonzero(~keeping_rules(made, design.rules))
        if not len(broken):
            break
        cells[broken] = state.field.completed(cells[broken], design.known, bits)
        again = _table_of(state, cells[broken], own.take(pa.array(broken)), owners[broken], bits)
        places = np.arange(len(owners))
        places[broken] = len(owners) + np.arange(len(broken))
        made = pa.concat_tables([made, again]).take(pa.array(places)).combine_chunks()
    kept = keeping_rules(made, design.rules)
    if 2 * int(kept.sum()) < len(kept):
        raise QueryRefused(
            "nearly all rows of the noisy tables break the rules, so no rows are shown\nhint: check the rules, or"
            " leave one out: rules=[...]"
        )
    ids = pa.array(owners + 1, pa.int64())
    made = made.add_column(0, held.unit, ids if held.unit_type == "int" else ids.cast(pa.string()))
    return made.filter(pa.array(kept))


def _kept_people(state: "RowsState", persons: Integers, bits: Keystream) -> pa.Table:
    """Return the values of columns that a person has once; people who break a rule are drawn again."""
    design = state.design
    once = () if design.people is None else design.people.once
    found = pa.table({"": pa.nulls(len(persons))})
    for at in once:
        found = found.append_column(design.columns[at].name, state.values(at, persons[:, at], bits))
    rules = [rule for rule in design.rules if {*rule.columns} <= {*once}]
    for _ in range(TRIES if rules else 0):
        broken = np.flatnonzero(~keeping_rules(found, rules))
        if not len(broken):
            break
        persons[broken] = state.field.rows(len(broken), bits)
        again = {"": pa.nulls(len(broken))}
        again |= {design.columns[at].name: state.values(at, persons[broken, at], bits) for at in once}
        places = np.arange(len(persons))
        places[broken] = len(persons) + np.arange(len(broken))
        found = pa.concat_tables([found, pa.table(again)]).take(pa.array(places)).combine_chunks()
    return found


def _numbers_of_rows(state: "RowsState", persons: Integers, bits: Keystream) -> Integers:
    """Draw the number of rows of each person, within the bin that the person has."""
    at = len(state.design.columns)
    cells = cells_within(persons[:, at], state.bins[at], state.shares[at], bits)
    edges = np.array([*EDGES, EDGES[-1] + 1])
    found: Integers = edges[cells] + np.floor(uniforms(len(cells), bits) * (edges[cells + 1] - edges[cells])).astype(
        np.int64
    )
    return found


def _cells_of_rows(
    state: "RowsState", persons: Integers, numbers: Integers, bits: Keystream, most: int | None
) -> tuple[Integers, Integers]:
    """Draw the cells of people's rows, person after person, and the place of the person of each."""
    design = state.design
    if most is not None:
        many = int(np.searchsorted(np.cumsum(numbers), most)) + 1
        persons, numbers = persons[:many], numbers[:many]
    cells, alive = persons.copy(), np.arange(len(persons))
    cells[:, design.before] = np.array(state.sizes)[list(design.before)] - 1
    found, owners, step = [cells[:0]], [alive[:0]], 0
    while len(alive):
        cells[alive] = state.field.completed(cells[alive], design.known, bits)
        found.append(cells[alive])
        owners.append(alive)
        step += 1
        alive = alive[numbers[alive] > step]
        for before, own in zip(design.before, design.varying, strict=True):
            cells[alive, before] = cells[alive, own]
    places = np.concatenate(owners)
    order = np.argsort(places, kind="stable")[:most]
    return np.concatenate(found)[order], places[order]


def _table_of(state: "RowsState", cells: Integers, own: pa.Table, owners: Integers, bits: Keystream) -> pa.Table:
    """Return rows as values, of which the ordering column's rise within each person."""
    design, made = state.design, {}
    for at, column in enumerate(design.columns):
        if at in design.varying:
            made[column.name] = state.values(at, cells[:, at], bits)
            if design.people is not None and design.people.order == at:
                each = pa.table({"owner": owners, "value": made[column.name]})
                order = pc.sort_indices(each, [("owner", "ascending"), ("value", "ascending")])
                made[column.name] = made[column.name].take(order)
        else:
            made[column.name] = own[column.name].combine_chunks()
    return pa.table(made)


def words_of_rows(of_cells: Integers) -> list[str]:
    """Return the numbers of rows in each bin, in words."""
    found = []
    for place in range(int(of_cells.max()) + 1):
        cells = np.flatnonzero(of_cells == place)
        first, last = EDGES[int(cells[0])], EDGES[int(cells[-1]) + 1] - 1 if int(cells[-1]) + 1 < len(EDGES) else None
        found.append(f"{first} or more" if last is None else str(first) if first == last else f"{first} to {last}")
    return found
