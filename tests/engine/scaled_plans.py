"""Plans that scale, total or learn, made by hand, and what the reference says about them."""

from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from functools import cache

import pyarrow as pa

import tacit
from tacit.engine.engine import EmbeddedEngine
from tacit.engine.relation import GROUP_ORDER, ROW_ORDER, UNIT, counted_rows, listed_keys, with_orders
from tacit.engine.scaled_relation import question_of_profiles
from tacit.exact import cut_name, kept_name, people_name, scaled_name, value_name
from tacit.plan import BINS, LARGEST_BINS, UNBOUNDED, Measured, Part
from tacit.plan.plan import Cells, KeyColumn
from tacit.query import Column
from tacit.query.frame import count
from tacit.tables import open_source
from tacit_gauntlet.stage.table import bounded_plan
from tests.engine import scaling_reference as reference
from tests.engine.exact import SALT, as_table, question

X = Measured(Column("x"), "int", Fraction(1), -(1 << 30), 1 << 30)
Y = Measured(Column("y"), "float", Fraction(1, 4), -(1 << 30), 1 << 30)


KEYS = {"found": {}, "listed": {"keys": ["b", None, "zz", "a"]}, "none": {"by": ()}}


@cache
def start_plan(keys, unit="id"):
    """Return a plan to start from: it depends on types alone, so that it serves every table of (id, g, x, y)."""
    unit = tacit.ROW if unit == "row" else unit
    return bounded_plan(question(as_table([]), {"n": count()}, unit=unit, **KEYS[keys]))


def engine_of(rows, path, memory=1 << 16):
    """Return an engine that takes this path and no other, with so little memory that the patient path writes runs."""
    engine = EmbeddedEngine(open_source(rows if isinstance(rows, pa.Table) else as_table(rows), {}), path=path)
    engine._memory = memory if path == "patient" else 1 << 28
    engine._quick = engine._on_path  # that the patient path would take over is not enough
    return engine


def scaled_plan(start, scaling, *, groups=UNBOUNDED, measured=(X, Y)):
    """Return a plan that scales; only what an engine reads is right about it."""
    release = start.releases[0]
    releases = [replace(release, parts=(Part("scaled", index=(at,)),)) for at in range(len(scaling.vectors))]
    totals = [
        replace(release, parts=(Part("kept", index=(at,)), Part("cut", index=(at,))))
        for at, vector in enumerate(scaling.vectors)
        if vector.totals
    ]
    return replace(
        start,
        scaling=scaling,
        releases=tuple(releases),
        totals=tuple(totals),
        measured=measured,
        products=(),
        rows_per_unit=UNBOUNDED,
        groups_per_unit=groups,
    )


def profile_plan(start, profiles, *, measured=(X, Y)):
    """Return a plan that learns profiles of the cells that a plan's keys make."""
    largest = profiles[0].norm == "largest"
    release = start.releases[0]
    return replace(
        start,
        profiles=tuple(profiles),
        cells=Cells((), ((),)) if largest else Cells(start.keys, start.public_keys),
        keys=(KeyColumn("bin", Column("bin"), "int"),),
        public_keys=tuple((at,) for at in range(LARGEST_BINS if largest else BINS)),
        releases=tuple(replace(release, parts=(Part("people", index=(at,)),)) for at in range(len(profiles))),
        measured=measured,
        products=(),
        threshold=None,
        rows_per_unit=UNBOUNDED,
        groups_per_unit=UNBOUNDED,
    )


def units_of(engine, plan, salt=SALT):
    """Return {unit: {key: rows}} in the order in which groups and rows are kept; a row has its values in steps."""
    source, kinds = engine._source, engine._kinds
    listed = listed_keys(plan)
    rows, keys = counted_rows(plan, source.table, kinds, listed)
    values = [value_name(at) for at in range(plan.value_count)]
    rows = with_orders(rows, keys, values, salt) if plan.unit is not None else rows
    found = source.fetch(rows).to_pylist()
    units = defaultdict(lambda: defaultdict(list))
    for at, row in enumerate(found):
        unit = at if plan.unit is None else row[UNIT]
        order = row.get(GROUP_ORDER, 0), tuple(row[key] for key in keys)
        units[unit][order].append((row.get(ROW_ORDER, 0), *(row[name] for name in values)))
    return {unit: _in_order(cells) for unit, cells in units.items()}


def _in_order(cells):
    return {
        key: [row[1:] for row in sorted(cells[order, key], key=_nulls_last)]
        for order, key in sorted(cells, key=_nulls_last)
    }


def _nulls_last(part):
    if isinstance(part, tuple):
        return tuple(_nulls_last(each) for each in part)
    return part is None, 0 if part is None else part


def cell_of(rows, vector):
    """Return a reference cell of rows of values in steps."""
    columns = list(zip(*rows, strict=True)) if rows and rows[0] else []
    known = [[value for value in column if value is not None] for column in columns]
    values = [(len(column), sum(column)) for column in known]
    return reference.Cell(len(rows), tuple(values))


def expected(engine, plan, salt=SALT):
    """Return ({key: [sum of each vector]}, {name: total}) as the reference has them."""
    vectors = plan.scaling.vectors
    sums, totals = defaultdict(lambda: [0] * len(vectors)), defaultdict(int)
    for cells in units_of(engine, plan, salt).values():
        kept = dict(list(cells.items())[: plan.groups_per_unit])
        added = _added(plan, vectors, kept)
        for index, vector in enumerate(vectors):
            for key, number in zip(kept, added[index], strict=True):
                sums[key][index] += number
            if vector.totals:
                before = [cell_of(rows, vector) for rows in kept.values()]
                both = reference.kept_and_cut(vector, before, added[index])
                for name, number in zip((kept_name, cut_name), both, strict=True):
                    totals[name(index)] += number
    names = {name(at) for at, vector in enumerate(vectors) if vector.totals for name in (kept_name, cut_name)}
    return dict(sums), {name: totals[name] for name in names}


def _added(plan, vectors, kept):
    fine = [[reference.fine(vector, cell_of(rows, vector)) for rows in kept.values()] for vector in vectors]
    added = [[] for _ in vectors]
    for together in plan.scaling.together:
        lengths = {index: reference.length(fine[index], plan.scaling.norm) for index in together}
        weight = min(
            (vectors[index].cap << 24) // long if long > vectors[index].cap else reference.ONE
            for index, long in lengths.items()
        )
        for index in together:
            added[index] = [reference.scaled(value, weight) for value in fine[index]]
    return added


def expected_people(engine, plan):
    """Return, for each profile, how many units are in which bin."""
    units, found = units_of(engine, question_of_profiles(plan)), []
    for profile in plan.profiles:
        people = defaultdict(int)
        for cells in units.values():
            at = reference.bin_of(profile, [cell_of(rows, profile.vector) for rows in cells.values()])
            if at is not None:
                people[at] += 1
        found.append(dict(people))
    return found


def found_sums(engine, plan, salt=SALT):
    """Return the same of an engine's exact table; listed keys by their place, and none that nobody is in."""
    exact = engine.aggregate(plan, salt)
    vectors = plan.scaling.vectors if plan.scaling else ()
    named = exact.keys if plan.public_keys is None else [(at,) if plan.keys else () for at in range(len(exact.keys))]
    sums = {
        key: [exact.sums[scaled_name(index)][at] for index in range(len(vectors))]
        for at, key in enumerate(named)
        if vectors and exact.sums["units"][at]
    }
    return sums, dict(exact.totals)


def found_people(engine, plan):
    """Return, for each profile, how many units are in which bin, as an engine has it."""
    exact = engine.aggregate(plan, SALT)
    columns = [exact.sums[people_name(at)] for at in range(len(plan.profiles))]
    return [{at: people for (at,), people in zip(exact.keys, column, strict=True) if people} for column in columns]
