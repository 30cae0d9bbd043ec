"""Caps from profiles: exactly where sizes end, of least error in a tail, and what may be missing beyond them."""

from math import exp, hypot

import numpy as np
import pytest

from tacit.plan.bounds.caps import (
    NoiseTerms,
    Told,
    best_cap,
    by_rank,
    in_fine_steps,
    outlook_of,
    tail_in_fine_steps,
)
from tacit.plan.bounds.chosen import HIDDEN_SCALES, LOST_MORE
from tacit.plan.bounds.profiles import ENDS, UNSEEN, at_most, bin_of, read_profile
from tacit.plan.bounds.scaling import BINS
from tests.plan.learned import rows
from tests.plan.test_profiles import HALVES, PARETO, SCALE, bins

TABLES = {
    "five rows each": {5: 20_000},
    "up to 4": dict.fromkeys(range(1, 5), 5_000),
    "up to 12": dict.fromkeys(range(1, 13), 2_000),
    "up to 96": dict.fromkeys(range(1, 97), 300),
    "Pareto": PARETO,
    "halves": HALVES,
}


def sizes_of(profile, scale=7.0, **told):
    """The people of a profile of rows, by rank."""
    reading = read_profile(((tuple(profile), scale),), shift=8, whole=True, is_total=True)
    (sizes,) = by_rank([Told(reading, **told)])
    return sizes


def whole_cap(profile, cells, *, scale=7.0, epsilon=0.8):
    """The cap of least error in so many groups where nothing is scaled back to totals."""
    sizes = sizes_of(profile, scale)
    cap = best_cap(sizes, NoiseTerms("laplace", epsilon), cells=cells)
    return cap.size if not cap.anchor else None


GOLDEN = {"five rows each": 6, "up to 4": 4, "up to 12": 12, "up to 96": 96}


@pytest.mark.parametrize("cells", [1, 2, 5, 16, 100])
@pytest.mark.parametrize(("name", "cap"), GOLDEN.items())
def test_where_sizes_end_the_cap_is_the_end_of_the_last_bin_and_nothing_is_cut(name, cap, cells):
    profile = bins(rows(TABLES[name]))
    assert whole_cap(profile, cells) == cap
    sizes = sizes_of(profile)
    assert sizes.kept(sizes.weights(cap)) > 1 - 1e-6


def test_of_a_pareto_tail_the_cap_is_where_noise_and_what_is_missing_are_least():
    """Of 180 rows at most, by Pareto's law with the exponent 1.6: more than 24 are not seen, and foreseen."""
    profile = bins(rows(PARETO))
    reading = read_profile(((profile, 7.0),), shift=8, whole=True, is_total=True)
    assert ENDS[reading.top] / 256 == 24
    true = sum(people for size, people in PARETO.items() if size > 24)
    assert true / 2 < sum(reading.people[reading.top + 1 :]) < 2 * true
    caps = {cells: whole_cap(profile, cells) for cells in (1, 2, 5)}
    assert caps == {1: 192, 2: 128, 5: 96}
    for cells, cap in caps.items():  # against the truth, the error of no other end is smaller by more than a tenth
        errors = {}
        for end in (16, 24, 32, 48, 64, 96, 128, 192, 256):
            lost = sum(people * max(size - end, 0) for size, people in PARETO.items()) / cells
            errors[end] = lost + end / 0.8 * exp(-lost / (end / 0.8))
        assert errors[cap] <= 1.1 * min(errors.values())


@pytest.mark.parametrize("cells", [1, 2, 5, 1000])
def test_where_nobody_is_believed_to_be_the_cap_is_the_safe_one(cells):
    for safe in (1.0, 2.0**20):
        reading = read_profile(((bins({}), 7.0),), shift=8, whole=True, is_total=True, safe=safe)
        (sizes,) = by_rank([Told(reading)])
        cap = best_cap(sizes, NoiseTerms("laplace", 0.8), cells=cells)
        assert (cap.size, cap.anchor) == (safe, 0)


@pytest.mark.parametrize("name", TABLES)
def test_more_groups_never_have_a_larger_cap(name):
    """Of whole caps this is a theorem: what a group lacks falls with their number, the more so at a low cap."""
    caps = [whole_cap(bins(rows(TABLES[name])), cells) for cells in range(1, 200)]
    whole = caps[: caps.index(None)] if None in caps else caps
    assert len(whole) >= 6
    assert whole == sorted(whole, reverse=True)


@pytest.mark.parametrize("cells", [1, 2, 5, 16, 100])
@pytest.mark.parametrize("name", TABLES)
def test_a_bin_of_three_noise_scales_far_above_moves_a_cap_by_an_octave_at_most(name, cells):
    profile, scale = list(bins(rows(TABLES[name]))), 7.0
    ends = sorted({1, *(2**power for power in range(30)), *(3 * 2**power for power in range(30))})
    usual = whole_cap(profile, cells)
    top = max(place for place, people in enumerate(profile) if people)
    for place in range(top + 1, top + 60):
        moved = [*profile[:place], round(3 * scale), *profile[place + 1 :]]
        found = whole_cap(moved, cells)
        if name != "Pareto" or cells < 16:  # of 16 groups and more either kind of cap is foreseen to err as much
            assert (found is None) == (usual is None)
        assert found is None or usual is None or abs(ends.index(found) - ends.index(usual)) <= 2


def test_people_beyond_a_tail_that_goes_on_are_no_reason_for_a_cap_far_above_all_who_are_seen():
    for name, people in TABLES.items():
        for cells in (1, 2, 5):
            cap = whole_cap(bins(rows(people)), cells)
            assert cap <= 2 * max(people), name


def test_more_epsilon_has_a_higher_cap_and_many_groups_are_scaled_back_to_totals():
    sizes = sizes_of(bins(rows(PARETO)))
    by_cells = [best_cap(sizes, NoiseTerms("laplace", 1.0), cells=cells) for cells in (5, 50, 1000, 100_000)]
    assert [cap.size for cap in by_cells] == sorted((cap.size for cap in by_cells), reverse=True)
    assert [bool(cap.anchor) for cap in by_cells] == [False, True, True, False]
    assert all(cap.tail >= cap.size for cap in by_cells[1:3])
    by_epsilon = [best_cap(sizes, NoiseTerms("laplace", epsilon), cells=1000).size for epsilon in (0.1, 1.0, 10.0)]
    assert by_epsilon == sorted(by_epsilon)
    assert by_epsilon[0] < by_epsilon[-1]


def test_where_the_number_of_rows_is_public_no_totals_are_paid_for():
    cap = best_cap(sizes_of(bins(rows(PARETO))), NoiseTerms("laplace", 1.0), cells=100, is_public=True)
    assert cap.anchor == 0
    assert cap.size < 16


def test_a_panel_in_two_groups_each_is_not_cut():
    """Everyone has one row in each of two groups: 2 rows in all, and a vector of length √2."""
    total = read_profile(((bins(rows({2: 100_000})), SCALE),), shift=8, whole=True, is_total=True)
    length = read_profile(((bins({bin_of(2**0.5 * 256): 100_000}), SCALE),), shift=8, whole=True)
    (sizes,) = by_rank([Told(total, length, cells=50)])
    cap = best_cap(sizes, NoiseTerms("gaussian", 0.5), cells=50)
    assert min(1.0, cap.size / 2**0.5) > 0.95


def test_all_equal_people_keep_all_they_have_and_need_no_totals():
    sizes = sizes_of(bins(rows({8: 100_000})), SCALE)
    cap = best_cap(sizes, NoiseTerms("laplace", 1.0), cells=1000)
    assert (cap.size, cap.anchor) == (8, 0)
    assert sizes.kept(sizes.weights(cap.size)) > 1 - 1e-6


def test_no_length_is_believed_that_so_few_groups_cannot_have():
    total = read_profile(((bins({53: 2000, 55: 1500}), SCALE),), shift=0, whole=False)
    noise = read_profile(((bins({0: 115}), SCALE),), shift=0, whole=False)  # a false bin, and no true one
    assert noise.top == 0
    (alone,), (sizes,) = by_rank([Told(total, noise)]), by_rank([Told(total, noise, cells=100)])
    assert np.average(alone.length, weights=alone.people) <= 2  # of sums of hundreds of millions: nothing would be left
    assert (sizes.length >= sizes.total / 10.001).all()
    cap = best_cap(sizes, NoiseTerms("gaussian", 0.02), cells=100)
    assert sizes.kept(sizes.weights(cap.size)) > 0.1


# ---- What is missing beyond a cap at most.


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("cap", [1.0, 4.0, 32.0, 96.0, 400.0])
def test_what_is_missing_at_most_is_more_than_is_foreseen_and_what_noise_hides_as_squares(name, cap):
    sizes = sizes_of(bins(rows(TABLES[name])))
    lost, most = sizes.lost(sizes.weights(cap)), sizes.lost_most(sizes.weights(cap), cap)
    assert most == pytest.approx(hypot(LOST_MORE * lost, HIDDEN_SCALES * 7.0 * cap))
    outlook = outlook_of(sizes, sizes.weights(cap), None)
    assert outlook.lost == pytest.approx(lost)
    assert sizes.lost(sizes.weights(2 * cap)) <= lost


@pytest.mark.parametrize("cap", [16, 32, 64, 128])
def test_of_a_pareto_tail_what_is_missing_at_most_holds_what_is_missing_more_often_than_not(cap):
    """A convention, not a theorem: the tail is read by another law. The profiles are seeded, so no luck is in it."""
    draw, held = np.random.default_rng(5), 0
    truth = sum(people * max(size - cap, 0) for size, people in PARETO.items())
    for _ in range(100):
        noisy = np.rint(np.array(bins(rows(PARETO))) + draw.laplace(0, 7.0, BINS)).astype(int)
        sizes = sizes_of(noisy.tolist())
        held += sizes.lost_most(sizes.weights(float(cap)), float(cap)) >= truth
    assert held >= 55


def test_with_no_people_believed_what_is_missing_at_most_is_what_noise_hides():
    sizes = sizes_of(bins({}))
    assert sizes.lost_most(sizes.weights(1.0), 1.0) == UNSEEN * 7.0
    outlook = outlook_of(sizes, sizes.weights(1.0), None)
    assert (outlook.mass, outlook.lost, outlook.people, outlook.excess) == (0, 0, 0, 0)
    assert outlook.lost_most > 0


def test_a_declared_maximum_leaves_nothing_missing():
    reading = at_most(read_profile(((bins(rows(PARETO)), 7.0),), shift=8, whole=True, is_total=True), 20.0)
    (sizes,) = by_rank([Told(reading)])
    assert sizes.lost_most(sizes.weights(20.0), 20.0) == 0
    assert sizes.people_beyond(20.0) == 0


@pytest.mark.parametrize("size", [1e-9, 0.3, 1.0, 1.5, 33.0, 2.0**40, 3e15])
def test_a_cap_in_fine_steps_is_never_above_the_size_and_has_twenty_digits(size):
    shift, cap = in_fine_steps(size)
    assert 1 << 19 <= cap <= 1 << 20
    assert cap <= size * 2.0**shift < cap + 1
    tail, tail_shift = tail_in_fine_steps(size * 1000, shift)
    assert tail << tail_shift <= size * 1000 * 2.0**shift
