"""Every path gives the integers of docs/proofs/scaling.md: scaled sums, totals of what was left and taken, profiles."""

import math
import random
from bisect import bisect_left

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.engine.patience import patient_cells
from tacit.plan import CELL_MOST, UNBOUNDED, Profile, Scaling, Vector
from tests.engine import scaling_reference as reference
from tests.engine.exact import as_table
from tests.engine.scaled_plans import (
    KEYS,
    engine_of,
    expected,
    expected_people,
    found_people,
    found_sums,
    profile_plan,
    scaled_plan,
    start_plan,
)

PATHS = ["sql", "patient"]
MIDDLE = 1 << 30  # 0, in steps above the low end of X and Y

IDS = st.sampled_from([None, 1, 2, 3, 4])
GROUPS = st.sampled_from([None, "a", "b", "c", "d" * 70])
WHOLES = st.one_of(st.sampled_from([None, 0, 1, -1, 1 << 30, -(1 << 30), 2**63 - 1, -(2**63)]), st.integers(-99, 99))
FLOATS = st.one_of(
    st.sampled_from([None, math.nan, math.inf, -math.inf, 0.125, -0.0, 5e-324, 1e300]), st.floats(-50, 50)
)
ROWS = st.lists(st.tuples(IDS, GROUPS, WHOLES, FLOATS), max_size=40)
# one unit has nearly all rows
HEAVY = ROWS.map(lambda rows: rows + [(1, group, x, y) for _, group, x, y in rows] * 3)
BOUNDS = st.sampled_from([UNBOUNDED, UNBOUNDED, 1, 2])


TOTALS = ["absolute", "signed"]


@st.composite
def vectors(draw):
    kind = draw(st.sampled_from(["rows", "units", "counted", "centred", "centred"]))
    near = st.integers(MIDDLE - 5, MIDDLE + 5)
    return Vector(
        kind,
        column=None if kind in ("rows", "units") else draw(st.integers(0, 1)),
        centre=draw(st.one_of(near, st.just(0))) if kind == "centred" else 0,
        shift=draw(st.sampled_from([0, 3, 15, 19, 37, 38, 39, 70, -1, -9, -33, -200])),
        cap=draw(st.sampled_from([0, 1, 1000, 1024, 1 << 20, (1 << 20) + 1, CELL_MOST])),
        totals=draw(st.sampled_from((None, *TOTALS))),
        tail=draw(st.sampled_from([0, 1, 7, 1 << 20])),
        tail_shift=draw(st.sampled_from([0, 3, 18, 80])),
    )


@st.composite
def scalings(draw):
    some = draw(st.lists(vectors(), min_size=1, max_size=4))
    places = [draw(st.integers(0, 1)) for _ in some]
    together = [tuple(at for at, place in enumerate(places) if place == each) for each in (0, 1)]
    return Scaling(draw(st.sampled_from([1, 2])), tuple(some), tuple(filter(None, together)))


@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=12)
@given(HEAVY, scalings(), st.sampled_from([*KEYS]), BOUNDS)
def test_scaled_sums_and_totals_are_the_references(path, rows, scaling, keys, groups_most):
    engine = engine_of(rows, path)
    plan = scaled_plan(start_plan(keys), scaling, groups=groups_most)
    assert found_sums(engine, plan) == expected(engine, plan)


@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=6)
@given(HEAVY, st.lists(vectors(), min_size=1, max_size=3), st.sampled_from([*KEYS]), st.sampled_from(["id", "row"]))
def test_everyone_is_in_the_references_bin(path, rows, some, keys, unit):
    engine = engine_of(rows, path)
    plan = profile_plan(start_plan(keys, unit), [Profile(1 + at % 2, vector) for at, vector in enumerate(some)])
    assert found_people(engine, plan) == expected_people(engine, plan)


LENGTHS = sorted(
    {*range(1, 4097)}
    | {2**power + more for power in range(2, 36) for more in (-1, 0, 1)}
    | {3 * 2**power + more for power in range(1, 34) for more in (-1, 0, 1)}
)


@pytest.mark.parametrize("path", [*PATHS, "kernel"])
@pytest.mark.parametrize("norm", [1, 2])
def test_every_length_is_in_its_own_bin_and_the_ends_are_in_the_lower_one(path, norm):
    assert_in_own_bins(path, norm, LENGTHS)


def assert_in_own_bins(path, norm, lengths):
    """Each length is that of one unit in one group; 2^k and 3·2^k, and the whole numbers next to them, among them."""
    rows = []
    for length in lengths:
        many, rest = divmod(length, 1 << 30)  # the largest value that the column's range has
        rows += [(length, "a", value, None) for value in [1 << 30] * many + [rest] * (rest > 0)]
    profile = Profile(norm, Vector("centred", column=0, centre=MIDDLE))
    engine = engine_of(rows, path, memory=1 << 22)
    plan = profile_plan(start_plan("none"), [profile])
    ends = sorted([2**power for power in range(40)] + [3 * 2**power for power in range(40)])
    bins = {}
    for length in lengths:
        if norm == 2 and length >= 1 << 20:  # of a long vector the squares are of its 20 first digits, rounded up
            coarse = length.bit_length() - 20
            length = -(-length >> coarse) << coarse
        at = bisect_left(ends, length)
        bins[at] = bins.get(at, 0) + 1
    assert found_people(engine, plan) == [bins]


def bin_of_the_length_itself(patched):
    joined = patient_cells.joined_limbs
    patched.setattr(patient_cells, "joined_limbs", lambda sums: (joined(sums)[0], joined(sums)[1] + 1))


def bins_in_upper_halves_of_octaves(patched):
    """2b + 1 for every length, b being the octave: of a third there are one or two binary digits less."""
    right = patient_cells.bit_length
    patched.setattr(patient_cells, "bit_length", lambda numbers: right(numbers) + (numbers > 0))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("mutant", [bin_of_the_length_itself, bins_in_upper_halves_of_octaves])
def test_a_mutant_of_bins_puts_a_length_elsewhere(monkeypatch, mutant, path):
    few = [1, 2, 3, 4, 5, 6, 7, 8, 9]
    assert_in_own_bins(path, 1, few)
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        assert_in_own_bins(path, 1, few)


LARGEST = [*[math.ldexp(1.0, at) for at in (-1074, -70, -65, -64, -63, -1, 0, 1, 10, 61, 62, 63, 64, 1000)], 1e308]
NEAR = [
    *LARGEST,
    *[math.nextafter(each, 0) for each in LARGEST],
    *[math.nextafter(each, 1e309) for each in LARGEST[1:]],
]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("unit", ["id", "row"])
def test_the_bin_of_the_largest_value_is_exact(path, unit):
    cells = [each for size in NEAR for each in (size, -size)] + [0.0, -0.0, math.inf, -math.inf, math.nan, None]
    each_alone = [(at, "a", 1, cell) for at, cell in enumerate(cells)]
    source = random.Random(1)
    mixed = [(1000 + at % 30, "b", 1, source.choice(cells)) for at in range(120)]
    ties = [(2000, "a", 1, -3.0), (2000, "a", 1, 3.0), (2001, "a", 1, -3.5), (2001, "a", 1, 3.0)]
    rows = each_alone + mixed + ties
    engine = engine_of(rows, path)
    plan = profile_plan(start_plan("none", unit), [Profile("largest", Vector("centred", column=1))])
    of_unit = {}
    for at, (owner, _, _, cell) in enumerate(rows):
        of_unit.setdefault(owner if unit == "id" else at, []).append(cell)
    bins = [reference.largest_bin(values) for values in of_unit.values()]
    assert found_people(engine, plan) == [{at: bins.count(at) for at in bins if at is not None}]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("keys", KEYS)
def test_nobody_and_one_person(path, keys):
    some = Vector("rows", shift=4, totals="absolute", tail=9, tail_shift=1)
    plan = scaled_plan(start_plan(keys), Scaling(2, (some,), ((0,),)))
    for rows, totals in (([], (0, 0)), ([(None, "a", 1, 1.0)], (0, 0)), ([(1, "a", 1, 1.0)], (8, 0))):
        engine = engine_of(rows, path)
        found = found_sums(engine, plan)
        assert found == expected(engine, plan)
        assert found[1] == dict(zip(("kept_0", "cut_0"), totals, strict=True))


@pytest.mark.parametrize("path", PATHS)
def test_where_every_row_is_a_unit_it_is_scaled_by_itself(path):
    some = (Vector("rows", shift=10, cap=700, totals="absolute", tail=900), Vector("centred", 0, centre=MIDDLE, cap=9))
    engine = engine_of([(1, "a", 4, 1.0), (1, "b", -40, 1.0), (None, "b", None, 1.0)], path)
    for keys in KEYS:
        plan = scaled_plan(start_plan(keys, "row"), Scaling(2, some, ((0, 1),)))
        assert found_sums(engine, plan) == expected(engine, plan)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("norm", [1, 2])
def test_one_unit_in_thousands_of_cells_at_the_largest_number(path, norm):
    count = 1 << 12
    rows = pa.table({"id": [1] * count, "g": [str(at) for at in range(count)], "x": [1] * count, "y": [0.0] * count})
    some = tuple(Vector("rows", shift=38, cap=cap, totals="absolute", tail=1 << 51) for cap in (1 << 20, CELL_MOST))
    plan = scaled_plan(start_plan("found"), Scaling(norm, some, ((0,), (1,))))
    sums, totals = found_sums(engine_of(rows, path), plan)
    long = reference.length([CELL_MOST] * count, norm)
    each = [reference.scaled(CELL_MOST, (vector.cap << 24) // long) for vector in some]
    assert len(sums) == count
    assert set(map(tuple, sums.values())) == {tuple(each)}
    assert totals == {
        "kept_0": count * each[0],
        "cut_0": count * (CELL_MOST - each[0]),
        "kept_1": count * each[1],
        "cut_1": count * (CELL_MOST - each[1]),
    }


@pytest.mark.parametrize("path", PATHS)
def test_cells_have_the_same_integers_whatever_the_order_of_rows(path):
    source = random.Random(3)
    rows = [(source.randrange(5), source.choice("abc"), source.randrange(99), 0.5 * at) for at in range(200)]
    some = tuple(
        Vector("centred", at, centre=MIDDLE + 3, shift=9, totals="signed", tail=99, tail_shift=9) for at in (0, 1)
    )
    plan = scaled_plan(start_plan("found"), Scaling(2, some, ((0, 1),)), groups=2)
    found = []
    for _ in range(3):
        source.shuffle(rows)
        found.append(found_sums(engine_of(as_table(rows), path), plan))
    assert found[0] == found[1] == found[2]


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("keys", ["found", "listed"])
def test_where_the_kernel_stops_the_patient_path_goes_on_with_its_integers(keys):
    """Groups beyond a bound too: what is dropped is what the kernel would have dropped."""
    source = random.Random(4)
    rows = [(source.randrange(9), source.choice(["a", "b", "c", None]), at % 50, 0.5 * at) for at in range(300)]
    some = tuple(
        Vector("centred", at, centre=MIDDLE + 9, shift=9, totals="signed", tail=99, tail_shift=9) for at in (0, 1)
    )
    scaled = scaled_plan(start_plan(keys), Scaling(2, some, ((0, 1),)), groups=2)
    learned = profile_plan(start_plan(keys), [Profile(1, some[0]), Profile(2, some[1])])
    kernel, stopped = (engine_of(rows, "kernel") for _ in range(2))
    stopped._quick = lambda *_: None
    stopped._memory = 1 << 16
    assert found_sums(kernel, scaled) == found_sums(stopped, scaled)
    assert found_people(kernel, learned) == found_people(stopped, learned)


def limbs_of(numbers):
    """Return numbers of any size as the limbs that the patient path adds up, one column."""
    low, high = zip(*((number & ((1 << 20) - 1), number >> 20) for number in numbers), strict=True)
    return np.array([low, high]).T.view(np.uint64)


def test_sums_beyond_64_bits_are_exact_or_known_to_be_beyond():
    roots = [
        0,
        1,
        2,
        3,
        (1 << 26) - 1,
        94906265,
        94906266,
        94906267,
        (1 << 31) - 1,
        (1 << 31) + 1,
        (1 << 40) - 1,
        (1 << 41) - 3,
    ]
    squares = [max(0, root * root + more) for root in roots for more in (-1, 0, 1)]
    assert patient_cells._roots(limbs_of(squares))[:, 0].tolist() == [
        math.isqrt(each - 1) + 1 if each else 0 for each in squares
    ]
    sums = [0, 5, -5, 1 << 61, 1 << 62, -(1 << 62), (1 << 62) + 1, -(1 << 62) - 1, 1 << 79, -(1 << 79)]
    found = patient_cells.saturated(limbs_of(sums))[:, 0].tolist()
    assert [max(-(1 << 62) - 1, min(each, (1 << 62) + 1)) for each in found] == [
        max(-(1 << 62) - 1, min(each, (1 << 62) + 1)) for each in sums
    ]
    numbers = np.array([0, 1, *[(1 << bits) + more for bits in range(1, 63) for more in (-1, 0)]])
    assert patient_cells.bit_length(numbers).tolist() == [int(number).bit_length() for number in numbers]


@settings(max_examples=60)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=5), st.integers(-140, 80), st.integers(0, 40))
def test_a_cell_of_any_sum_is_put_in_fine_steps_exactly_on_the_patient_path(values, shift, times):
    limbs = patient_cells._row_limbs(np.array(values)[:, None]).astype(np.uint64)
    total = (limbs << np.uint64(times)).sum(axis=0, keepdims=True)  # as if 2^times rows had each of them
    cell = reference.Cell(0, ((0, sum(values) << times),))
    vector = Vector("centred", 0, shift=shift)
    assert patient_cells._fine_steps(total, 0, vector).tolist() == [reference.fine(vector, cell)]
