"""The kernel's scaled sums, totals and profiles are the integers of tests/engine/scaling_reference.py."""

import sys
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tacit.engine.engine import EmbeddedEngine
from tacit.engine.kernel import coding, compiled, kernel_path, scaling_loops, summing
from tacit.exact import cut_name, kept_name, people_name, scaled_name
from tacit.plan import BINS, CELL_MOST, UNBOUNDED, WEIGHT_BITS, Cells, Measured, Profile, Scaling, Vector
from tacit.tables.source import Source
from tacit.typed_sql import sql_of
from tests.engine import scaled_plans
from tests.engine import scaling_reference as reference
from tests.engine.exact import SALT, as_table, on_path, question

pytestmark = pytest.mark.usefixtures("kernel")
odd = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

# Two columns: one word, and two limbs.
NARROW, WIDE = (1 << 32) - 2, (1 << 62) - 1
LIMB = (1 << summing.LIMB_BITS) - 1
COUNT = Vector("rows", shift=17, totals="absolute", tail=1 << 20)
ABOUT = Vector("centred", column=0, centre=2**30, shift=14, totals="signed", tail=1 << 20, rows=0)
SCHEMA = pa.schema(
    [("unit", pa.int64()), ("g", pa.string()), ("a", pa.uint32()), ("b", pa.uint32()), ("c", pa.uint32())]
)
COLUMNS = summing.Columns("unit", ["g"], [["a"], ["b", "c"]], None)


def batch_of(rows):
    """Return (unit, key, narrow value, wide value) tuples as a batch; None is NULL."""
    words = []
    for unit, key, narrow, wide in rows:
        limbs = (None, None) if wide is None else (wide >> summing.LIMB_BITS, wide & LIMB)
        words.append((unit, key, *(summing.NULL_WORD if word is None else word for word in (narrow, *limbs))))
    columns = list(zip(*words, strict=True)) or [[]] * len(SCHEMA.names)
    return pa.RecordBatch.from_pydict(dict(zip(SCHEMA.names, columns, strict=True)), schema=SCHEMA)


def cells_of(rows):
    """Return {unit: {key: Cell}}."""
    found = defaultdict(lambda: defaultdict(list))
    for unit, key, *values in rows:
        found[unit][key].append(values)
    return {
        unit: {
            key: reference.Cell(
                len(some),
                tuple(
                    (len(known), sum(known))
                    for known in ([v for v in each if v is not None] for each in zip(*some, strict=True))
                ),
            )
            for key, some in groups.items()
        }
        for unit, groups in found.items()
    }


def summed(rows, asked, *, groups_most=UNBOUNDED, **words):
    bounded = summing.Bounded(UNBOUNDED, groups_most, SALT)
    batch = batch_of(rows)
    return kernel_path.sum_vectors([batch], SCHEMA, COLUMNS, bounded, asked, memory=1 << 30, **words)


def by_key(found):
    """Return {key: sums} of the keys that any unit has."""
    table = {key[0]: [int(each[at]) for each in found.sums] for at, key in enumerate(found.keys)}
    return {key: sums for key, sums in table.items() if sums[0]}


def expected_of(scaling, cells):
    """Return the reference's sums by key and totals, given each unit's cells."""
    sums, totals = defaultdict(lambda: [0] * (1 + len(scaling.vectors))), [[0, 0] for _ in scaling.vectors]
    for groups in cells.values():
        added = reference.contributions(scaling, list(groups.values()))
        for at, key in enumerate(groups):
            sums[key][0] += 1
            for index, each in enumerate(added):
                sums[key][1 + index] += each[at]
        for index, vector in enumerate(scaling.vectors):
            if vector.totals is not None:
                both = reference.kept_and_cut(vector, list(groups.values()), added[index])
                totals[index] = [one + other for one, other in zip(totals[index], both, strict=True)]
    return dict(sums), totals


def value(most):
    near = [0, 1, most // 2, most - 1, most]
    return st.none() | st.sampled_from(near) | st.integers(0, most) | st.integers(0, min(most, 100))


people = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", "c", "d", None]), value(NARROW), value(WIDE)), max_size=24
)
numbers = st.integers(0, 1 << 31) | st.sampled_from([0, 1, 1 << 20, (1 << 20) + 1, 1 << 31])


@st.composite
def vectors(draw):
    kind = draw(st.sampled_from(["rows", "units", "counted", "centred", "centred"]))
    column = None if kind in ("rows", "units") else draw(st.integers(0, 1))
    return Vector(
        kind,
        column=column,
        centre=draw(st.integers(0, (NARROW, WIDE)[column]) | st.just(0)) if kind == "centred" else 0,
        shift=draw(st.integers(-70, 45) | st.integers(-2, 20)),
        cap=draw(numbers),
        totals=draw(st.sampled_from([None, "absolute", "signed"])),
        tail=draw(numbers),
        tail_shift=draw(st.integers(0, 70) | st.integers(0, 3)),
    )


@st.composite
def scalings(draw):
    some = tuple(draw(st.lists(vectors(), min_size=1, max_size=4)))
    together = defaultdict(list)
    for index in range(len(some)):
        together[draw(st.integers(0, 2))].append(index)
    return Scaling(draw(st.sampled_from([1, 2])), some, tuple(map(tuple, together.values())))


def scaled(scaling):
    assert all(kernel_path.fits(each, (NARROW, WIDE)[each.column or 0]) for each in scaling.vectors)
    norms = (scaling.norm,) * len(scaling.vectors)
    return kernel_path.Asked("scaled", scaling.vectors, norms, scaling.together)


@odd
@given(people, scalings())
def test_scaled_sums_and_totals_are_the_references(rows, scaling):
    found, cells = summed(rows, scaled(scaling)), cells_of(rows)
    sums, totals = expected_of(scaling, cells)
    assert by_key(found) == sums
    assert found.totals == totals


def kept_cells(rows, groups_most):
    """Return {unit: {key: Cell}} of the groups that the kernel keeps of each unit, taken by itself."""
    found = {}
    for unit in {row[0] for row in rows}:
        own = batch_of([row for row in rows if row[0] == unit])
        bounded = summing.Bounded(UNBOUNDED, groups_most, SALT)
        table = summing.sum_batches([own], SCHEMA, COLUMNS, bounded, memory=1 << 30)
        sums = [[int(number) for number in each] for each in table.sums]
        found[unit] = {
            key[0]: reference.Cell(sums[0][at], ((sums[2][at], sums[3][at]), (sums[4][at], sums[5][at])))
            for at, key in enumerate(table.keys)
            if sums[1][at]
        }
    return found


@settings(odd, max_examples=60)
@given(people, scalings(), st.sampled_from([1, 2, 3, 9]))
def test_groups_beyond_a_bound_are_dropped_first(rows, scaling, groups_most):
    found = summed(rows, scaled(scaling), groups_most=groups_most)
    sums, totals = expected_of(scaling, kept_cells(rows, groups_most))
    assert by_key(found) == sums
    assert found.totals == totals


@pytest.mark.parametrize("groups_most", [UNBOUNDED, 2])
def test_units_beyond_one_batch_of_cells_are_added_up_too(groups_most):
    source = np.random.default_rng(2)
    keys = [f"k{n}" for n in range(30)]
    rows = [(int(u), keys[int(k)], int(x), None) for u, k, x in source.integers(0, (700, 30, 99), (5000, 3))]
    rows += [(1000, f"only {n}", 1, 2**61) for n in range(scaling_loops.BATCH_CELLS + 7)]
    some = (COUNT, replace(ABOUT, centre=50, shift=9), Vector("counted", column=1, cap=3, totals="signed", tail=2))
    scaling = Scaling(2, some, ((0, 1), (2,)))
    found = summed(rows, scaled(scaling), groups_most=groups_most)
    cells = cells_of(rows) if groups_most == UNBOUNDED else kept_cells(rows, groups_most)
    assert (by_key(found), found.totals) == expected_of(scaling, cells)


def people_of(profiles, cells):
    """Return the reference's number of units in each bin of each profile."""
    expected = [[0] * BINS for _ in profiles]
    for groups in cells.values():
        for index, profile in enumerate(profiles):
            place = reference.bin_of(profile, list(groups.values()))
            if place is not None:
                expected[index][place] += 1
    return expected


@odd
@given(people, st.lists(st.builds(Profile, st.sampled_from([1, 2]), vectors()), min_size=1, max_size=4))
def test_profiles_are_the_references(rows, profiles):
    asked = kernel_path.Asked("profiled", tuple(each.vector for each in profiles), tuple(p.norm for p in profiles), ())
    assert summed(rows, asked).people == people_of(profiles, cells_of(rows))


@pytest.fixture
def as_python(monkeypatch):
    """The loops as plain Python, in which numbers beyond 64 bits are noticed."""
    monkeypatch.setattr(compiled, "_loaded", False)
    with compiled.interpreted_kernel():
        yield sys.modules[scaling_loops.__name__]


@settings(odd, max_examples=400)
@given(st.integers(-(2**61), 2**61), st.integers(-(2**61), 2**61), st.integers(-93, 62))
def test_two_limbs_of_any_size_become_fine_steps_within_64_bits(as_python, high, low, shift):
    with np.errstate(over="raise"):
        found = as_python._fine_of_limbs(np.int64(high), np.int64(low), shift)
    cell = reference.Cell(1, ((1, (high << summing.LIMB_BITS) + low),))
    assert found == reference.fine(Vector("centred", column=0, shift=shift), cell)


@settings(odd, max_examples=300)
@given(st.lists(st.integers(-CELL_MOST, CELL_MOST) | st.integers(-9, 9), max_size=40), st.sampled_from([1, 2]))
def test_lengths_are_the_references_and_roots_are_rounded_up(as_python, values, norm):
    fine = np.array(values, dtype=np.int64)
    with np.errstate(over="raise"):
        assert as_python._length(fine, 0, len(fine), norm) == reference.length(values, norm)


@pytest.mark.parametrize("square", [0, 1, 2, 2**62, 2**62 - 1, (2**31 - 1) ** 2, (2**31 - 1) ** 2 + 1, 2**52 + 1])
def test_a_root_is_the_least_whole_number_whose_square_is_no_less(as_python, square):
    root = int(as_python._root_above(np.int64(square)))
    assert (root - 1) ** 2 < square <= root**2 or root == square == 0


def test_the_most_cells_that_a_unit_may_have_add_up_within_64_bits():
    assert scaling_loops.CELLS_AT_ONCE * (1 << scaling_loops.ROOT_BITS) ** 2 <= 2**62
    assert scaling_loops.CELLS_AT_ONCE * CELL_MOST < 2**62
    assert CELL_MOST << WEIGHT_BITS <= 2**62
    assert (scaling_loops.CELL_MOST, scaling_loops.WEIGHT_BITS, scaling_loops.BINS) == (CELL_MOST, WEIGHT_BITS, BINS)


def test_a_unit_with_more_cells_than_that_is_left_to_the_patient_path():
    most = scaling_loops.CELLS_AT_ONCE
    rows = np.zeros((most + 1, 3), dtype=np.uint32)
    rows[:, 2] = np.arange(most + 1)
    for some, is_done in ((rows[:most], True), (rows, False)):
        assert sum_rows_of_one_unit(some, most + 1)[0] == is_done


def sum_rows_of_one_unit(rows, keys):
    """Return whether it was done, and the sums, of rows without values: count and units by L1, cap 2^20."""
    rule = kernel_path.summing.rule_of(
        type("Packed", (), {"first": 3}),
        np.zeros(keys, np.uint64),
        np.zeros(keys, np.int64),
        summing.Bounded(UNBOUNDED, UNBOUNDED, SALT),
    )
    asked = kernel_path.Asked("scaled", tuple(Vector(kind, shift=10) for kind in ("rows", "units")), (1, 1), ())
    vectors = kernel_path._as_array(asked, summing.Columns("unit", ["g"], [], None))
    sums = np.zeros((keys, 3), np.int64)
    out = scaling_loops.Result(sums, np.zeros((2, 2), np.int64), np.zeros((2, 0), np.int64))
    cell_of, base = np.full(keys, -1), np.zeros(1, np.int64)
    done = scaling_loops.sum_vectors(rows, 8, 0, rule, scaling_loops.SCALED, vectors, cell_of, base, out)
    return done, sums


@pytest.mark.parametrize("keys", [1, 200_000])
def test_one_unit_with_all_rows_is_added_up_whatever_its_size(keys):
    count = 400_000
    rows = np.zeros((count, 3), dtype=np.uint32)
    rows[:, 2] = np.random.default_rng(1).integers(0, keys, count)
    done, sums = sum_rows_of_one_unit(rows, keys)
    each = np.bincount(rows[:, 2], minlength=keys)
    weight = (1 << 20 << WEIGHT_BITS) // (count << 10)
    assert done
    assert sums[:, 1].tolist() == ((each << 10) * weight >> WEIGHT_BITS).tolist()


# --- through an engine ---


def plan_of(rows, scaling, **words):
    """Return a question's engine, and its plan with these vectors instead of bounds."""
    asked = question(as_table(rows), **words)
    plan = asked.plan(epsilon=1).plan
    measured = [Measured(column.expression, column.type, column.step, -(2**30), 2**30) for column in plan.measured]
    unbounded = {"rows_per_unit": UNBOUNDED, "groups_per_unit": UNBOUNDED}
    return asked.session.engine, replace(plan, scaling=scaling, measured=tuple(measured), **unbounded)


BOTH = ((0, 1),)
ROWS = [
    (1, "a", 3, 0.5),
    (1, "b", 100, 1.5),
    (1, "a", None, 0.5),
    (2, "a", -7, 0.0),
    (3, None, 9, 0.0),
    (None, "a", 1, 0),
]


def reference_of(rows, scaling):
    """Return the reference's sums and totals of column x, in steps above -2^30."""
    cells = cells_of([(unit, key, None if x is None else x + 2**30) for unit, key, x, _ in rows if unit is not None])
    return expected_of(scaling, cells)


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("keys", [None, ["b", None, "z"], ["a"]])
def test_an_engine_gives_the_references_integers(norm, keys):
    scaling = Scaling(norm, (COUNT, ABOUT), BOTH)
    engine, plan = plan_of(ROWS, scaling, keys=keys)
    with on_path("kernel"):
        assert engine.path_of(plan) == "kernel"
        exact = engine.aggregate(plan, SALT)
    counted = [row for row in ROWS if keys is None or row[1] in keys]
    sums, totals = reference_of(counted, scaling)
    found = {key[0]: [exact.sums[scaled_name(index)][at] for index in (0, 1)] for at, key in enumerate(exact.keys)}
    assert found == {key: sums[key][1:] if key in sums else [0, 0] for key in (keys if keys is not None else sums)}
    assert exact.totals == {
        name(index): totals[index][at] for index in (0, 1) for at, name in enumerate((kept_name, cut_name))
    }


def profile_plan(plan, profiles, cells):
    bins = tuple((place,) for place in range(BINS))
    return replace(plan, scaling=None, profiles=profiles, cells=cells, keys=plan.keys, public_keys=bins)


@pytest.mark.parametrize("keys", [None, ["b", None, "z"]])
@pytest.mark.parametrize("grouped", [True, False])
def test_an_engine_gives_the_references_profiles(keys, grouped):
    engine, plan = plan_of(ROWS, None, keys=keys)
    profiles = tuple(Profile(norm, vector) for norm in (1, 2) for vector in (COUNT, ABOUT))
    cells = Cells(plan.keys, plan.public_keys) if grouped else Cells((), None)
    asked = profile_plan(plan, profiles, cells)
    with on_path("kernel"):
        assert engine.path_of(asked) == "kernel"
        exact = engine.aggregate(asked, SALT)
    rows = [row for row in ROWS if row[0] is not None and (keys is None or not grouped or row[1] in keys)]
    by_cell = cells_of([(u, key if grouped else 0, None if x is None else x + 2**30) for u, key, x, _ in rows])
    expected = people_of(profiles, by_cell)
    assert {name: exact.sums[name] for name in exact.sums} == {people_name(i): each for i, each in enumerate(expected)}
    assert list(exact.keys) == [(place,) for place in range(BINS)]


INF, NAN = float("inf"), float("nan")
odd_rows = st.lists(
    st.tuples(
        st.sampled_from([None, 1, 2, 3]),
        st.sampled_from([None, "a", "b", "c", "d" * 70]),
        st.sampled_from([None, 0, 1 << 30, -(1 << 30), 2**63 - 1, -(2**63)]) | st.integers(-99, 99),
        st.sampled_from([None, NAN, INF, -INF, 0.125, -0.0, 1e300]) | st.floats(-50, 50),
    ),
    max_size=40,
)


def exact_by_kernel(engine, plan):
    assert kernel_path.supports(plan, engine._source)
    return engine._on_path(plan, SALT, "kernel")


@settings(odd, max_examples=12)
@given(odd_rows, scalings(), st.sampled_from([*scaled_plans.KEYS]))
def test_kernel_and_sql_scale_alike(rows, scaling, keys):
    some = tuple(replace(each, centre=each.centre & (2**31 - 1)) for each in scaling.vectors)
    plan = scaled_plans.scaled_plan(scaled_plans.start_plan(keys), replace(scaling, vectors=some))
    engine = scaled_plans.engine_of(rows, "sql", memory=1 << 28)
    by_kernel, by_sql = exact_by_kernel(engine, plan), engine.aggregate(plan, SALT)
    assert by_key_and_name(by_kernel) == by_key_and_name(by_sql)
    assert by_kernel.totals == by_sql.totals


def by_key_and_name(exact):
    return {(key, name): column[at] for name, column in exact.sums.items() for at, key in enumerate(exact.keys)}


@settings(odd, max_examples=12)
@given(odd_rows, st.lists(vectors(), min_size=1, max_size=3), st.sampled_from([*scaled_plans.KEYS]))
def test_kernel_and_sql_put_people_into_the_same_bins(rows, some, keys):
    profiles = [Profile(norm, replace(each, centre=each.centre & (2**31 - 1))) for each in some for norm in (1, 2)]
    plan = scaled_plans.profile_plan(scaled_plans.start_plan(keys), profiles)
    engine = scaled_plans.engine_of(rows, "sql", memory=1 << 28)
    assert by_key_and_name(exact_by_kernel(engine, plan)) == by_key_and_name(engine.aggregate(plan, SALT))


def test_what_the_loops_cannot_hold_is_left_to_sql():
    engine, plan = plan_of(ROWS, Scaling(1, (COUNT, ABOUT), BOTH))
    assert kernel_path.supports(plan, engine._source)
    for odd_one in (
        replace(COUNT, cap=1 << 32),
        replace(COUNT, tail=1 << 40),
        replace(ABOUT, centre=-1),
        replace(ABOUT, centre=2**32),
    ):
        assert not kernel_path.supports(replace(plan, scaling=Scaling(1, (odd_one, ABOUT), BOTH)), engine._source)
    largest = profile_plan(plan, (Profile("largest", ABOUT),), Cells((), None))
    assert not kernel_path.supports(largest, engine._source)


def test_a_question_and_its_profile_read_the_same_rows(monkeypatch):
    read, stream = [], Source.stream
    monkeypatch.setattr(Source, "stream", lambda *given: read.append(sql_of(given[1])) or stream(*given))
    engine, plan = plan_of(ROWS, Scaling(1, (COUNT, ABOUT), BOTH))
    asked = profile_plan(plan, (Profile(1, COUNT),), Cells(plan.keys, plan.public_keys))
    with on_path("kernel"):
        engine.aggregate(plan, SALT)
        engine.aggregate(asked, SALT)
    assert len(read) == 2
    assert read[0] == read[1]


def test_where_nothing_is_compiled_the_loops_give_the_same_as_python(monkeypatch):
    engine, plan = plan_of(ROWS * 3, Scaling(2, (COUNT, ABOUT), BOTH))
    bounded = replace(plan, groups_per_unit=1)
    profiled = profile_plan(plan, (Profile(2, ABOUT),), Cells(plan.keys, plan.public_keys))
    plans = (plan, bounded, profiled)
    with on_path("kernel"):
        compiled_ones = [engine.aggregate(each, SALT) for each in plans]
    monkeypatch.setattr(compiled, "_loaded", False)
    with compiled.interpreted_kernel():
        interpreted = EmbeddedEngine(engine._source, path="kernel")
        for each, before in zip(plans, compiled_ones, strict=True):
            after = interpreted._on_path(each, SALT, "kernel")
            assert (after.keys, after.sums, after.totals) == (before.keys, before.sums, before.totals)
    monkeypatch.setattr(compiled, "_loaded", True)


def test_a_unit_with_too_many_cells_stops_the_kernel(monkeypatch):
    rows = [(1, f"k{n}", 1, 0) for n in range(10)]
    monkeypatch.setattr(scaling_loops, "sum_vectors", lambda *_: False)
    with pytest.raises(coding.OverMemory):
        summed(rows, scaled(Scaling(1, (COUNT,), ((0,),))))


def test_nothing_was_compiled_for_any_of_this_in_use():
    assert len(scaling_loops.sum_vectors.signatures) == 1
