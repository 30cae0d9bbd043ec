"""One unit moves scaled sums by at most the cap, totals by at most the tail, and a profile by one in one bin.

Tables are made to break this: ties, cells at the largest number, vectors just longer than a cap, values of both signs.
What a unit adds is seen apart from others' where it has groups of its own, so one question looks at hundreds of units.
Each claim comes with mutants of the code that must break it.
"""

import random
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from tacit import typed_sql as sql
from tacit.engine import scaled_relation
from tacit.engine.patience import patient_cells
from tacit.engine.relation import UNIT
from tacit.plan import CELL_MOST, Profile, Scaling, Vector
from tests.engine.exact import UNITS, as_table
from tests.engine.scaled_plans import (
    engine_of,
    expected,
    found_people,
    found_sums,
    profile_plan,
    scaled_plan,
    start_plan,
)

PATHS = ["sql", "patient"]
MIDDLE = 1 << 30
CAPS = (1, 1000, 1 << 20, (1 << 30) + 7)
# 2^30 steps are CELL_MOST fine steps
SHIFT = CELL_MOST.bit_length() - 1 - 30


def odd_units(count):
    """Return {unit: its numbers}, one in each of its groups, in steps within 2^30."""
    source = random.Random(5)
    found = [[1 << 30], [-(1 << 30)] * 3, [1, 1], [1] * 40, [1 << 12, 3], [(1 << 30) - 1, 1 << 10, -5], [0], [-1]]
    found += [[(1 << 30) - 1] * size for size in (2, 3, 5, 7)]
    found += [[sign * (cap >> SHIFT) + more] for cap in CAPS for sign in (-1, 1) for more in (-1, 0, 1)]
    while len(found) < count:
        top = 1 << source.randrange(1, 31)
        found.append([source.randrange(-top, top + 1) for _ in range(source.randrange(1, 12))])
    return dict(enumerate(found))


def rows_of(units, own_groups=True):
    """Return rows, each a cell; groups are of one unit alone, or shared."""
    return [
        (unit, f"{unit}-{at}" if own_groups else str(at), number, 0.0)
        for unit, numbers in units.items()
        for at, number in enumerate(numbers)
    ]


def scaling(norm, *, together=False):
    """Return several vectors of the same cells with different caps."""
    vectors = [Vector("centred", 0, centre=MIDDLE, shift=SHIFT, cap=cap) for cap in CAPS]
    vectors = [Vector("rows", shift=3, cap=17), *vectors[::-1]]  # the one that is cut most is last
    apart = tuple((at,) for at in range(len(vectors)))
    return Scaling(norm, tuple(vectors), (tuple(range(len(vectors))),) if together else apart)


def moved(path, units, asked):
    """Return {unit: [what it adds to each group of each vector]}."""
    sums, _ = found_sums(engine_of(rows_of(units), path), scaled_plan(start_plan("found"), asked))
    each = defaultdict(lambda: [[] for _ in asked.vectors])
    for (key,), numbers in sorted(sums.items()):
        for index, number in enumerate(numbers):
            each[int(key.split("-")[0])][index].append(number)
    return each


def assert_within_caps(path, norm, *, count=90, together=False):
    asked = scaling(norm, together=together)
    units = odd_units(count)
    found = moved(path, units, asked)
    assert set(found) == set(units)
    for numbers in found.values():
        for vector, added in zip(asked.vectors, numbers, strict=True):
            assert sum(abs(number) ** norm for number in added) <= vector.cap**norm


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("norm", [1, 2])
def test_no_unit_adds_more_than_the_cap_in_the_norm(path, norm):
    assert_within_caps(path, norm)
    assert_within_caps(path, norm, together=True)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("norm", [1, 2])
def test_a_unit_that_is_removed_leaves_what_others_add_as_it_was(path, norm):
    units, asked = odd_units(60), scaling(norm)
    others = {unit: numbers for unit, numbers in units.items() if unit != 3}
    both = moved(path, units, asked)
    assert {unit: each for unit, each in both.items() if unit != 3} == moved(path, others, asked)


def weight_rounded_up(patched):
    right = patient_cells._weights
    patched.setattr(patient_cells, "_weights", lambda *words: right(*words) + 1)


def weight_of_each_cell_alone(patched):
    right = scaled_relation._codes

    def each_its_own(cells, names):
        return np.arange(len(cells)) if names == [UNIT] else right(cells, names)

    patched.setattr(scaled_relation, "_codes", each_its_own)


def weight_of_the_first_vector_alone(patched):
    right = patient_cells._weights

    def first(scaling, lengths):
        alone = right(replace(scaling, together=()), lengths)
        for together in scaling.together:
            alone[:, list(together)] = alone[:, together[:1]]
        return alone

    patched.setattr(patient_cells, "_weights", first)


def scaled_away_from_zero(patched):
    right = scaled_relation.scaled_blocks

    def up(cells, scaling, lengths):
        for block, _ in right(cells, scaling, lengths):
            weights = patient_cells._weights(scaling, lengths.of(block.unit))
            yield block, np.sign(block.fine) * ((np.abs(block.fine) * weights + (1 << 24) - 1) >> 24)

    patched.setattr(scaled_relation, "scaled_blocks", up)


def root_rounded_down(patched):
    right = patient_cells._roots
    patched.setattr(patient_cells, "_roots", lambda sums: right(sums) - 1)


def squares_rounded_down(patched):
    patched.setattr(patient_cells, "squared", lambda sizes, coarse: (sizes >> coarse) * (sizes >> coarse))


MUTANTS = {
    weight_rounded_up: (1, 2),
    weight_of_each_cell_alone: (1, 2),
    weight_of_the_first_vector_alone: (1, 2),
    scaled_away_from_zero: (1, 2),
    root_rounded_down: (2,),
    squares_rounded_down: (2,),
}
OF_BOTH = [weight_rounded_up, root_rounded_down, squares_rounded_down]


@pytest.mark.parametrize(("mutant", "norm"), [(mutant, norm) for mutant, norms in MUTANTS.items() for norm in norms])
def test_a_mutant_of_scaling_in_sql_goes_beyond_a_cap(monkeypatch, mutant, norm):
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        assert_within_caps("sql", norm, together=mutant is weight_of_the_first_vector_alone)


@pytest.mark.parametrize("mutant", OF_BOTH)
def test_a_mutant_of_scaling_on_the_patient_path_goes_beyond_a_cap(monkeypatch, mutant):
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        assert_within_caps("patient", 2)


def patient_lengths_of_blocks(patched):
    """A unit that goes on in the next block has the length of what it has there."""

    def last_of_each(cells, of_cells, combine=np.add):
        found = {}
        for block in cells.blocks():
            pair = block.unit.view(np.uint64)[:, None], of_cells(block)
            for units, parts in patient_cells.added_up([pair], combine):
                found |= {int(unit): parts[at : at + 1] for at, (unit,) in enumerate(units)}
        return ((np.array([unit]), parts) for unit, parts in found.items())

    patched.setattr(patient_cells, "_by_unit", last_of_each)


@pytest.mark.parametrize("norm", [1, 2])
def test_a_unit_whose_cells_go_on_over_many_blocks_has_one_length(monkeypatch, norm):
    monkeypatch.setattr(patient_cells, "SLICE_BYTES", 1 << 9)  # a block of a few cells
    assert_within_caps("patient", norm, count=60)
    patient_lengths_of_blocks(monkeypatch)
    with pytest.raises(AssertionError):
        assert_within_caps("patient", norm, count=60)


# --- totals ---

TAILS = ((5, 12), (1 << 14, 4))


def totalled():
    vectors = [
        Vector("centred", 0, centre=MIDDLE, shift=SHIFT, cap=1 << 16, totals=totals, tail=tail, tail_shift=shift)
        for totals in ("absolute", "signed")
        for tail, shift in TAILS
    ]
    return Scaling(1, tuple(vectors), tuple((at,) for at in range(len(vectors))))


def assert_within_tails(path, numbers):
    """One unit by itself is what removing it takes away: others' totals do not depend on it."""
    asked = totalled()
    _, totals = found_sums(engine_of(rows_of({7: numbers}), path), scaled_plan(start_plan("found"), asked))
    for index, vector in enumerate(asked.vectors):
        assert abs(totals[f"kept_{index}"]) + abs(totals[f"cut_{index}"]) <= vector.tail


ODD_TOTALS = [[1 << 30, -(1 << 30), 1 << 29], [1 << 5] * 40, [-900, 100, 70], [3]]


@pytest.mark.parametrize("path", PATHS)
def test_no_unit_adds_more_than_the_tail_to_kept_and_cut_together(path):
    for numbers in ODD_TOTALS:
        assert_within_tails(path, numbers)


@pytest.mark.parametrize("path", PATHS)
def test_totals_are_the_sum_of_what_each_unit_adds_by_itself(path):
    asked, units = totalled(), dict(enumerate(ODD_TOTALS))
    plan = scaled_plan(start_plan("found"), asked)
    alone = [found_sums(engine_of(rows_of({unit: each}), path), plan)[1] for unit, each in units.items()]
    _, together = found_sums(engine_of(rows_of(units, own_groups=False), path), plan)
    assert together == {name: sum(each[name] for each in alone) for name in together}


def cut_not_clipped(patched):
    def both(left, taken, vector):
        return right(left, taken, vector)[0], taken

    right = patient_cells.kept_and_cut
    patched.setattr(patient_cells, "kept_and_cut", both)


def cut_clipped_at_the_whole_tail(patched):
    def both(left, taken, vector):
        return right(left, taken, vector)[0], right(taken, left, vector)[0]

    right = patient_cells.kept_and_cut
    patched.setattr(patient_cells, "kept_and_cut", both)


def totals_held_by_every_cell(patched):
    def of_cells(totals, block, added):
        right(totals, replace(block, unit=np.arange(len(block.unit))), added)

    right = patient_cells.UnitTotals.add
    patched.setattr(patient_cells.UnitTotals, "add", of_cells)


@pytest.mark.parametrize("mutant", [cut_not_clipped, cut_clipped_at_the_whole_tail, totals_held_by_every_cell])
def test_a_mutant_of_totals_goes_beyond_a_tail(monkeypatch, mutant):
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        assert_within_tails("sql", ODD_TOTALS[1])


# --- profiles ---


def assert_one_bin_moves_by_one(path):
    units = odd_units(40)
    plan = profile_plan(
        start_plan("found"), [Profile(norm, Vector("centred", 0, centre=MIDDLE, shift=SHIFT)) for norm in (1, 2)]
    )
    everyone = found_people(engine_of(rows_of(units, own_groups=False), path), plan)
    for removed in (1, 6):
        others = {unit: numbers for unit, numbers in units.items() if unit != removed}
        without = found_people(engine_of(rows_of(others, own_groups=False), path), plan)
        for before, after in zip(everyone, without, strict=True):
            moves = [before.get(at, 0) - after.get(at, 0) for at in range(64)]
            assert sorted(filter(None, moves)) in ([1], [])
            assert sum(before.values()) == sum(any(numbers) for numbers in units.values())


@pytest.mark.parametrize("path", PATHS)
def test_a_unit_moves_one_bin_of_a_profile_by_one(path):
    assert_one_bin_moves_by_one(path)


def test_a_mutant_that_puts_each_cell_in_a_bin_moves_more(monkeypatch):
    right = scaled_relation.unbounded_cells
    monkeypatch.setattr(scaled_relation, "unbounded_cells", lambda *words: right(*words).mutate(unit=sql.row_number()))
    with pytest.raises(AssertionError):
        assert_one_bin_moves_by_one("sql")


@pytest.mark.parametrize("kind", UNITS)
def test_a_unit_of_every_type_has_one_weight(kind):
    """0.0 and -0.0 are one unit, NULL and NaN are nobody's, and long texts are told apart by their digests."""
    type_of, ids = UNITS[kind]
    rows = [(ids[at % len(ids)], "abc"[at % 3], at, 0.0) for at in range(8 * len(ids))]
    asked = Scaling(2, (Vector("rows", shift=4, cap=40, totals="absolute", tail=50, tail_shift=1),), ((0,),))
    plan = scaled_plan(start_plan("found"), asked)
    engines = [engine_of(as_table(rows, unit=type_of), path) for path in PATHS]
    assert found_sums(engines[0], plan) == found_sums(engines[1], plan) == expected(engines[0], plan)


def test_limbs_are_those_that_are_joined():
    numbers = np.array([[0, -1, 1 << 38, -(1 << 38), 12345]])
    high, low = patient_cells.joined_limbs(patient_cells.split(numbers))
    assert ((high << patient_cells.LIMB) + low == numbers).all()
