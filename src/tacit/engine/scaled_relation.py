"""Translates plans that scale or that learn into SQL relations: rows into cells, cells into sums, totals or bins.

A cell is what one unit has in one group: a whole number for each vector, in fine steps. What a unit adds, or its bin,
follows from all of its cells and from no other row. The integers are those of docs/proofs/scaling.md on every path.
Sums, which DuckDB makes in 128 bits, are cut to a public limit before they are stored in 64 (`narrowed`), and limits
are applied before a product is made: nothing raises on any row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, assert_never

import pyarrow as pa

from tacit import typed_sql as sql
from tacit.engine.relation import UNIT, as_text, counted_rows, first_groups
from tacit.exact import UNITS, ExactTable, cut_name, kept_name, people_name, scaled_name, value_name
from tacit.plan import BINS, CELL_MOST, LARGEST_LEAST, UNBOUNDED, WEIGHT_BITS, Plan, Scaling, Vector
from tacit.query import Kind

ONE = 1 << WEIGHT_BITS
# A longer vector has the weight 0 under any cap, as this one has.
LENGTH_MOST = (CELL_MOST << WEIGHT_BITS) + 1
# The squares of a long vector are those of its sizes in this many binary digits, rounded up.
SQUARED_BITS = 20
WIDE = "decimal(38, 0)"
# A shift by more is the same for every number that occurs here.
_SHIFT_MOST = 120

# An integer in binary digits.
_in_binary = sql.function("bin", "string")


def whole(value: int) -> sql.Typed:
    """Return a public number as a 64-bit integer."""
    return sql.literal(value, "int64")


def narrowed(value: sql.Typed) -> sql.Typed:
    """Return a number that is known to fit 64 bits as a 64-bit integer."""
    return value.cast("int64")


def signed_as(size: sql.Typed, value: sql.Typed) -> sql.Typed:
    return sql.cases((value < 0, -size), else_=size)


def fine_steps(steps: sql.Typed, shift: int) -> sql.Typed:
    """Return a sum of steps in fine steps, towards 0, within CELL_MOST; the sum may have 128 bits."""
    size = steps.abs()
    if shift < 0:
        size = narrowed(sql.least(size >> min(-shift, _SHIFT_MOST), whole(CELL_MOST)))
    else:
        most = max(1, CELL_MOST >> shift)  # from here on, shifting gives CELL_MOST or more
        size = narrowed(sql.least(size, whole(most)))
        size = size * whole(CELL_MOST // most)
    return signed_as(size, steps)


def coarse_bits(top: sql.Typed) -> sql.Typed:
    """Return how many binary digits of a vector's sizes are left out before they are squared, from the largest one."""
    return sql.greatest(bit_length(top) - whole(SQUARED_BITS), whole(0))


def square(size: sql.Typed, coarse: sql.Typed) -> sql.Typed:
    """Return the square of a size without its last digits, rounded up: at most 2^40."""
    up = (whole(1) << coarse) - whole(1)
    short = (size + up) >> coarse
    return short * short


def root_length(squares: sql.Typed, coarse: sql.Typed) -> sql.Typed:
    """Return the least whole number with a square of at least a sum of squares, its last digits put back; a float is
    within 1."""
    wide, near = squares.cast(WIDE), squares.cast("float64").sqrt().floor().cast("int64")
    tries = [near - whole(1), near, near + whole(1)]
    enough = [(each.cast(WIDE) * each.cast(WIDE) >= wide, each) for each in tries]
    root = sql.cases((squares == 0, whole(0)), *enough, else_=near + whole(2))
    return root << coarse


def sum_length(sizes: sql.Typed) -> sql.Typed:
    return narrowed(sql.least(sizes, whole(LENGTH_MOST)))


def weight_within(length: sql.Typed, cap: int) -> sql.Typed:
    """Return the weight of a vector of this length: in full up to the cap."""
    return sql.cases((length > whole(cap), whole(cap << WEIGHT_BITS) // length), else_=whole(ONE))


def scaled(fine: sql.Typed, weight: sql.Typed) -> sql.Typed:
    """Return what a unit adds, towards 0: a size of 2^38 times a weight of 2^24 is within 64 bits."""
    return signed_as((fine.abs() * weight) >> WEIGHT_BITS, fine)


def kept_and_cut(kept: sql.Typed, rest: sql.Typed, vector: Vector) -> tuple[sql.Typed, sql.Typed]:
    """Return what a unit adds to the two totals, from what was left of its vector and what was taken."""
    most = whole(vector.total_most)
    within = narrowed(_clipped(kept, most))
    taken = _clipped(narrowed(_clipped(rest, most)), most - within.abs())
    shift = min(vector.tail_shift, 63)  # a shift by more leaves nothing either
    return signed_as(within.abs() >> shift, within), signed_as(taken.abs() >> shift, taken)


def _clipped(value: sql.Typed, most: sql.Typed) -> sql.Typed:
    return sql.cases((value > most, most), (value < -most, -most), else_=value)


def bit_length(size: sql.Typed) -> sql.Typed:
    """Return how many binary digits a whole number has: none for 0."""
    return sql.cases((size == 0, whole(0)), else_=_in_binary(size).length().cast("int64"))


def length_bin(length: sql.Typed) -> sql.Typed:
    """Return the bin of a length in a profile of two bins an octave; NULL for 0."""
    below = sql.greatest(length - whole(1), whole(0))
    place = bit_length(below) + bit_length(below // whole(3))
    return sql.cases((length > 0, sql.least(place, whole(BINS - 1))))


def octave(size: sql.Typed) -> sql.Typed:
    """Return floor(log2 size) of a float above 0, counted from LARGEST_LEAST and within the bins: exact, by digits."""
    reach = -LARGEST_LEAST
    small = bit_length((size * float(1 << reach)).floor().cast("int64")) - whole(1)
    large = bit_length((size * 2.0).floor().cast("int64")) + whole(reach - 2)
    ends = (size >= 2.0 ** (reach - 1), whole(2 * reach - 1)), (size >= 2.0 ** (reach - 2), whole(2 * reach - 2))
    return sql.cases(*ends, (size >= 0.5, large), (size * float(1 << reach) >= 1.0, small), else_=whole(0))


def fine_name(index: int) -> str:
    return f"fine_{index}"


def length_name(index: int) -> str:
    return f"length_{index}"


class OverUnit:
    """Adds up over all cells of a unit; where every row is a unit, its only cell is all of it."""

    def __init__(self, plan: Plan) -> None:
        self.is_row: bool = plan.unit is None
        self._window = sql.window(group_by=[UNIT])

    def total(self, value: sql.Typed) -> sql.Typed:
        return value if self.is_row else value.sum().over(self._window)

    def top(self, value: sql.Typed) -> sql.Typed:
        return value if self.is_row else value.max().over(self._window)

    def is_first(self) -> sql.Typed:
        """Return whether a cell is the one that was picked of its unit."""
        return sql.literal(True) if self.is_row else sql.row_number().over(self._window) == 0


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


def with_lengths(cells: sql.Relation, norms: Mapping[int, Literal[1, 2]], over: OverUnit) -> sql.Relation:
    """Return cells with the length of each of their unit's vectors: its norm, rounded up."""
    sums = {
        length_name(index): sum_length(over.total(cells[fine_name(index)].abs()))
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
        length_name(index): root_length(cells[f"squares_{index}"], cells[coarse_name(index)]) for index in by_squares
    }
    return cells.mutate(**lengths)


def coarse_name(index: int) -> str:
    return f"coarse_{index}"


def with_coarse(cells: sql.Relation, indexes: Sequence[int], over: OverUnit) -> sql.Relation:
    """Return cells with how many binary digits are left out of some vectors before they are squared."""
    tops = {f"top_{index}": over.top(cells[fine_name(index)].abs()) for index in indexes}
    cells = cells.mutate(**tops)
    return cells.mutate(**{coarse_name(index): coarse_bits(cells[f"top_{index}"]) for index in indexes})


def squared(cells: sql.Relation, index: int) -> sql.Typed:
    """Return the square of a cell's number, without the digits that are left out."""
    return square(cells[fine_name(index)].abs(), cells[coarse_name(index)])


# --- sums and totals ---


# Whether a cell is the one that holds its unit's totals.
FIRST = "first"


def scaled_names(plan: Plan) -> list[str]:
    """Return the names of a scaled plan's sums over groups."""
    return [UNITS, *(scaled_name(index) for index in range(len(plan.scaling.vectors) if plan.scaling else 0))]


def total_names(plan: Plan) -> list[str]:
    vectors = plan.scaling.vectors if plan.scaling else ()
    return [name(index) for index, _ in _with_totals(vectors) for name in (kept_name, cut_name)]


def _with_totals(vectors: tuple[Vector, ...]) -> list[tuple[int, Vector]]:
    return [(index, vector) for index, vector in enumerate(vectors) if vector.totals is not None]


def scaled_relation(
    plan: Plan, table: sql.Relation, kinds: Mapping[str, Kind], salt: str, listed: sql.Relation | None
) -> sql.Relation:
    """Return one row for each group: its units, its sum of every vector, and the totals that it holds; a unit's are
    held by one of its cells."""
    rows, keys = counted_rows(plan, table, kinds, listed)
    each = _added_cells(plan, rows, keys, salt)
    sums = {name: each[name].sum() for name in (*scaled_names(plan)[1:], *total_names(plan))}
    sums[UNITS] = each.count()
    return as_text(each.group_by(keys).agg(**sums) if keys else each.agg(**sums), keys)


def _added_cells(plan: Plan, rows: sql.Relation, keys: list[str], salt: str) -> sql.Relation:
    """Return cells with what each adds to its group, and what it holds of its unit's totals."""
    if plan.scaling is None:
        raise ValueError("this plan has no vectors: it scales nothing")
    vectors, over = plan.scaling.vectors, OverUnit(plan)
    cells = _scaled_cells(bounded_cells(plan, rows, keys, vectors, salt), plan.scaling, over)
    return _with_kept_and_cut(cells, vectors, over) if _with_totals(vectors) else cells


def _scaled_cells(cells: sql.Relation, scaling: Scaling, over: OverUnit) -> sql.Relation:
    cells = with_lengths(cells, dict.fromkeys(range(len(scaling.vectors)), scaling.norm), over)
    weights = {}
    for at, together in enumerate(scaling.together):
        each = [weight_within(cells[length_name(index)], scaling.vectors[index].cap) for index in together]
        weights[f"weight_{at}"] = each[0] if len(each) == 1 else sql.least(*each)
    cells = cells.mutate(**weights)
    weight_of = {index: cells[f"weight_{at}"] for at, together in enumerate(scaling.together) for index in together}
    added = {scaled_name(index): scaled(cells[fine_name(index)], weight) for index, weight in weight_of.items()}
    return cells.mutate(**added)


def _with_kept_and_cut(cells: sql.Relation, vectors: tuple[Vector, ...], over: OverUnit) -> sql.Relation:
    sums: dict[str, sql.Typed] = {FIRST: over.is_first()}
    for index, vector in _with_totals(vectors):
        before: sql.Typed = cells[fine_name(index)]
        added: sql.Typed = cells[scaled_name(index)]
        if vector.totals == "absolute":
            before, added = before.abs(), added.abs()
        sums |= {f"left_{index}": over.total(added), f"rest_{index}": over.total(before - added)}
    cells = cells.mutate(**sums)
    totals = {}
    for index, vector in _with_totals(vectors):
        both = kept_and_cut(cells[f"left_{index}"], cells[f"rest_{index}"], vector)
        for name, total in zip((kept_name, cut_name), both, strict=True):
            totals[name(index)] = sql.cases((cells[FIRST], total), else_=whole(0))
    return cells.mutate(**totals)


def with_totals_apart(exact_table: ExactTable, plan: Plan) -> ExactTable:
    """Return the table with the totals that its groups held, added up."""
    names = total_names(plan)
    exact_sums = {name: sums for name, sums in exact_table.sums.items() if name not in names}
    totals = {name: sum(exact_table.sums[name]) for name in names}
    return replace(exact_table, sums=exact_sums, totals=totals)


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


def profile_relation(
    plan: Plan, table: sql.Relation, kinds: Mapping[str, Kind], listed: sql.Relation | None
) -> sql.Relation:
    """Return how many units are in which bins of all profiles: NULL where a unit is in none."""
    bins = (
        _largest_bins(plan, table, kinds, listed) if is_of_largest(plan) else _length_bins(plan, table, kinds, listed)
    )
    names = [people_name(index) for index in range(len(plan.profiles))]
    return as_text(bins.group_by(names).agg(**{UNITS: bins.count()}), names)


def _length_bins(
    plan: Plan, table: sql.Relation, kinds: Mapping[str, Kind], listed: sql.Relation | None
) -> sql.Relation:
    rows, keys = counted_rows(asked := question_of_profiles(plan), table, kinds, listed)
    over, norms = OverUnit(plan), [profile.norm for profile in plan.profiles]
    cells = unbounded_cells(asked, rows, keys, [profile.vector for profile in plan.profiles])
    by_squares = [index for index, norm in enumerate(norms) if norm == 2]
    cells = with_coarse(cells, by_squares, over) if by_squares else cells
    sizes = {
        fine_name(index): squared(cells, index) if norm == 2 else cells[fine_name(index)].abs()
        for index, norm in enumerate(norms)
    }
    coarse = {coarse_name(index): cells[coarse_name(index)] for index in by_squares}
    each = cells.select(*([] if over.is_row else [UNIT]), **sizes, **coarse)
    if not over.is_row:
        sums = {name: each[name].sum() for name in sizes} | {name: each[name].max() for name in coarse}
        each = each.group_by(UNIT).agg(**sums)
    lengths = {
        length_name(index): root_length(each[fine_name(index)], each[coarse_name(index)])
        if norm == 2
        else each[fine_name(index)]
        for index, norm in enumerate(norms)
    }
    each = each.select(**lengths)
    found = {people_name(index): length_bin(each[length_name(index)]) for index in range(len(norms))}
    return each.select(**found)


def largest_rows(
    plan: Plan, index: int, table: sql.Relation, kinds: Mapping[str, Kind], listed: sql.Relation | None
) -> tuple[sql.Relation, str]:
    """Return the rows of units with the values of one profile as floats, NaN as NULL, and the name of that column."""
    rows, (name, *_) = _rows_with_values(plan, [index], table, kinds, listed)
    return rows, name


def _rows_with_values(
    plan: Plan, indexes: Sequence[int], table: sql.Relation, kinds: Mapping[str, Kind], listed: sql.Relation | None
) -> tuple[sql.Relation, list[str]]:
    columns = {f"value_{index}": plan.measured[plan.profiles[index].vector.column or 0] for index in indexes}
    more = {name: column.expression for name, column in columns.items()}
    rows, _keys = counted_rows(question_of_profiles(plan), table, kinds, listed, more)
    values = {name: rows[name].cast("float64") for name in columns}
    return rows.select(*([] if plan.unit is None else [UNIT]), **values), list(columns)


def _largest_bins(
    plan: Plan, table: sql.Relation, kinds: Mapping[str, Kind], listed: sql.Relation | None
) -> sql.Relation:
    rows, columns = _rows_with_values(plan, range(len(plan.profiles)), table, kinds, listed)
    names = dict(enumerate(columns))
    above = {f"above_{index}": rows[name] for index, name in names.items()}
    below = {f"below_{index}": -rows[name] for index, name in names.items()}
    if plan.unit is None:
        ends = rows.select(**above, **below)
    else:
        ends = rows.group_by(UNIT).agg(**{name: each.max() for name, each in (above | below).items()})
    found = {}
    for index in names:
        up, down = ends[f"above_{index}"], ends[f"below_{index}"]
        found[people_name(index)] = sql.cases(
            ((up >= down) & (up > 0), octave(up)),
            (down > 0, octave(down) + whole(-2 * LARGEST_LEAST)),
        )
    return ends.select(**found)


def profile_table(found: pa.Table, plan: Plan) -> ExactTable:
    """Return how many units are in each bin of each profile, in the order of the public list of bins."""
    bins = plan.public_keys or ()
    place_of = {key: place for place, (key,) in enumerate(bins)}
    exact_sums = {people_name(index): [0] * len(bins) for index in range(len(plan.profiles))}
    exact_people = [int(text) for text in found.column(UNITS).to_pylist()]
    for name, exact_counts in exact_sums.items():
        for at, people in zip(found.column(name).to_pylist(), exact_people, strict=True):
            if at is not None:
                exact_counts[place_of[at]] += people
    return ExactTable(bins, exact_sums)
