"""Reading profiles: which bins are believed at which false-alarm rate, and what is foreseen above them."""

from math import exp, log

import numpy as np
import pytest

from tacit.plan.bounds.caps import (
    MISMATCH,
    Terms,
    Told,
    best_cap,
    by_rank,
    in_fine_steps,
    outlook_of,
    tail_in_fine_steps,
)
from tacit.plan.bounds.profiles import (
    CLEAR,
    FALSE_BIN,
    FALSE_SLOPE,
    believed_top,
    combined_rounds,
    read_profile,
    span_of,
    spread_top,
    stretched,
)
from tacit.plan.bounds.scaling import LARGEST_BINS, LARGEST_LEAST

SCALE = 10.0


def bins(people, count=64):
    return tuple(people.get(place, 0) for place in range(count))


def threshold(distance):
    return SCALE * (log(1 / (2 * FALSE_BIN)) + FALSE_SLOPE * log(2) * distance)


def test_a_false_bin_is_believed_at_the_stated_rate():
    for distance in range(1, 12):
        chance = exp(-threshold(distance) / SCALE) / 2  # the tail of Laplace noise
        assert chance == pytest.approx(FALSE_BIN * 2 ** (-FALSE_SLOPE * distance))
    grown = sum(2**d * FALSE_BIN * 2 ** (-FALSE_SLOPE * d) for d in range(1, 56))
    assert grown < 0.04  # what false bins add to a cap on average
    assert 64 * exp(-CLEAR) / 2 < 1e-4  # a fullest bin of noise alone


@pytest.mark.parametrize("distance", [1, 2, 5, 20])
def test_a_bin_is_believed_from_its_threshold_on(distance):
    least = threshold(distance)
    assert believed_top(bins({8: 10_000, 8 + distance: least + 0.01}), SCALE, start=8) == 8 + distance
    assert believed_top(bins({8: 10_000, 8 + distance: least - 0.01}), SCALE, start=8) == 8


def test_nothing_is_believed_of_noise_alone_and_negative_bins_do_no_harm():
    assert believed_top(bins({}), SCALE) is None
    assert believed_top([-1e9] * 64, SCALE) is None
    assert read_profile((((-5,) * 64, SCALE),), shift=8, whole=True).top is None


def test_the_first_bins_are_believed_without_a_clear_one():
    assert believed_top(bins({9: threshold(1) + 1}), SCALE, start=8) == 9
    assert believed_top(bins({40: threshold(1) + 1}), SCALE, start=8) is None


def test_of_sums_the_first_bins_are_those_of_one_large_value():
    noise = bins({0: threshold(1)})
    assert read_profile(((noise, SCALE),), shift=4, whole=False, safe=2.0**20).top is None, "far below any sum: noise"
    some = bins({24: 60, 25: 60, 26: 55})  # 175 people, of whom no bin is clear
    assert read_profile(((some, SCALE),), shift=4, whole=False, safe=2.0**20).top == 26
    assert read_profile(((some, SCALE),), shift=4, whole=False, safe=1.0).top is None
    assert read_profile(((some, SCALE),), shift=4, whole=False, safe=2.0**100).top is None


FEW = {8: 5, 10: 14, 11: 18, 12: 17, 13: 19, 14: 16, 15: 15, 16: 4}  # about as customers of one country have rows


def test_few_people_are_believed_together_where_no_bin_is_by_itself():
    assert believed_top(bins(FEW), 5.0, start=8) is None
    assert spread_top(bins(FEW), 5.0, 8) == 14
    reading = read_profile(((bins(FEW), 5.0),), shift=8, whole=True, is_total=True)
    assert reading.tail_cap == 511, "four times the upper edge of what is seen, less one row"
    assert reading.unseen > 19, "as many as are above it"
    assert spread_top(bins(FEW), 10.0, 8) is None


def test_of_people_who_are_not_seen_as_many_may_be_as_noise_hides():
    reading = read_profile(((bins(FEW), 10.0),), shift=8, whole=True)
    assert reading.top is None
    assert reading.unseen >= sum(FEW.values())
    clear = read_profile(((bins({8: 1000, 9: 500}), 5.0),), shift=8, whole=True)
    assert clear.unseen == 15


def test_noise_alone_is_seldom_believed_together():
    """The chance is about 0.003. Of 5,000 profiles 50 or more are believed less than once in 10^9 times."""
    draw = np.random.default_rng(20261116)
    found = [spread_top(list(draw.laplace(0, 1, 64)), 1.0, 8) for _ in range(5000)]
    assert 0 < sum(top is not None for top in found) < 50


def test_a_second_round_makes_the_first_more_precise():
    counts, scale = combined_rounds([([100], 30.0), ([40], 10.0)])
    assert counts == [pytest.approx((100 / 9 + 40) / (1 / 9 + 1))]
    assert scale < 10


# people in the two octaves above the top, and how many times its upper edge the tail is taken to reach
ABOVE = [((0, 0), 1.5), ((12, 0), 2.0), ((5, 9), 2.0), ((25, 20), 3.0), ((-30, -30), 1.5)]


@pytest.mark.parametrize(("above", "times"), ABOVE)
def test_a_tail_that_falls_slowly_goes_on_by_what_is_found_above_it(above, times):
    people = {8: 900, 9: 300, 10: 100, 11: above[0], 12: above[1]}
    slow = read_profile(((bins(people), SCALE),), shift=8, whole=True)
    assert (slow.top, slow.tail_cap) == (10, 8.0 * times)
    assert slow.count > 900 + 300 + 100  # some are foreseen beyond


def test_a_tail_that_falls_fast_or_rises_before_ends_at_the_edge():
    for people in ({8: 9000, 9: 3000, 10: 200}, {8: 100, 9: 3000, 10: 1400}, {8: 900, 9: 100, 10: 300}):
        assert read_profile(((bins(people), SCALE),), shift=8, whole=True).tail_cap == 8.0


def test_a_tail_that_would_have_been_seen_further_up_has_ended():
    flights = {8: 1000, 9: 800, 10: 500}  # the next octave would have 300 or so
    assert read_profile(((bins(flights), SCALE),), shift=8, whole=True).tail_cap == 8.0
    # the same fall, with so few people that the next octave's are within the noise
    fewer = {place: count // 5 for place, count in flights.items()}
    assert read_profile(((bins(fewer), SCALE),), shift=8, whole=True).tail_cap == 12.0
    # a tail that falls ever faster brings fewer than its last ratio says: none would have been seen
    bent = {8: 1000, 9: 900, 10: 250}
    assert read_profile(((bins(bent), SCALE),), shift=8, whole=True).tail_cap == 12.0


@pytest.mark.parametrize(("top", "most"), [(8, 1.0), (9, 3.0), (10, 7.0)])
def test_of_whole_numbers_the_tail_cap_is_the_last_one_in_the_bin(top, most):
    reading = read_profile(((bins({top: 9000}), SCALE),), shift=8, whole=True, is_total=True)
    assert reading.tail_cap == most
    assert reading.points()[0].max() <= most


def test_of_a_tail_hardly_more_is_foreseen_than_was_found():
    found = [
        read_profile(((bins({8: 9000, 9: 3000, 10: 1400, 11: beyond}), SCALE),), shift=8, whole=True).people[-1]
        for beyond in (-30, 0, 25)
    ]
    assert found == [SCALE, SCALE, 25 + SCALE]


def test_all_equal_people_keep_all_they_have_and_need_no_totals():
    reading = read_profile(((bins({11: 100_000}), SCALE),), shift=8, whole=True)
    (sizes,) = by_rank([Told(reading)])
    cap = best_cap(sizes, Terms("laplace", 1.0), cells=1000)
    assert sizes.kept(sizes.weights(cap.size)) > 0.95
    assert cap.size <= 16


def test_no_length_is_believed_that_so_few_groups_cannot_have():
    total = read_profile(((bins({27: 2000, 28: 1500}), SCALE),), shift=0, whole=False)
    noise = read_profile(((bins({0: threshold(1)}), SCALE),), shift=0, whole=False)  # a false bin, and no true one
    assert noise.top == 0
    (alone,), (sizes,) = by_rank([Told(total, noise)]), by_rank([Told(total, noise, cells=100)])
    assert alone.length.max() <= 2  # of sums of hundreds of millions: a cap of 2 would have left nothing
    assert (sizes.length >= sizes.total / 10.001).all()
    cap = best_cap(sizes, Terms("gaussian", 0.02), cells=100)
    assert sizes.kept(sizes.weights(cap.size)) > 0.1


def test_what_is_cut_is_of_people_in_one_group_where_their_two_norms_are_alike():
    total = read_profile(((bins({12: 9000, 16: 3000}), SCALE),), shift=0, whole=False)
    (sizes,) = by_rank([Told(total)])
    alone = {}
    for down in (0, 1, 2):  # in the L2 norm a person in 4^down groups is 2^down times shorter
        length = read_profile(((bins({12 - down: 9000, 16 - down: 3000}), SCALE),), shift=0, whole=False)
        alone[down] = outlook_of(sizes, sizes.weights(2.0**14), None, Told(total, length)).alone
    assert alone == {down: pytest.approx(4.0**-down, rel=0.1) for down in alone}
    for unknown in (Told(total), None):
        assert outlook_of(sizes, sizes.weights(2.0**14), None, unknown).alone == 0
    uncut = outlook_of(sizes, sizes.weights(2.0**30), None, Told(total, total))
    assert uncut.alone == 0


def test_more_cells_mean_a_lower_cap_and_more_epsilon_a_higher_one():
    people = {8: 40_000, 9: 20_000, 10: 10_000, 11: 5000, 12: 2500, 13: 1200, 14: 600, 15: 300}
    (sizes,) = by_rank([Told(read_profile(((bins(people), SCALE),), shift=8, whole=True))])
    by_cells = [best_cap(sizes, Terms("laplace", 1.0), cells=cells).size for cells in (10, 1000, 100_000)]
    assert by_cells == sorted(by_cells, reverse=True)
    assert by_cells[0] > by_cells[-1]
    by_epsilon = [best_cap(sizes, Terms("laplace", epsilon), cells=1000).size for epsilon in (0.1, 1.0, 10.0)]
    assert by_epsilon == sorted(by_epsilon)
    assert best_cap(sizes, Terms("laplace", 1.0), cells=1).size == sizes.tail_cap
    assert 0 < MISMATCH < 1


@pytest.mark.parametrize("size", [1e-9, 0.3, 1.0, 1.5, 33.0, 2.0**40, 3e15])
def test_a_cap_in_fine_steps_is_never_above_the_size_and_has_twenty_digits(size):
    shift, cap = in_fine_steps(size)
    assert 1 << 19 <= cap <= 1 << 20
    assert cap <= size * 2.0**shift < cap + 1
    tail, tail_shift = tail_in_fine_steps(size * 1000, shift)
    assert tail << tail_shift <= size * 1000 * 2.0**shift


def _largest(*up, down=()):
    """Return a profile of largest values: so many people in the octaves from 2^0 on, above 0 and below."""
    bins = [0] * LARGEST_BINS
    half = LARGEST_BINS // 2
    for place, people in enumerate(up):
        bins[place - LARGEST_LEAST] = people
    for place, people in enumerate(down):
        bins[half + place - LARGEST_LEAST] = people
    return tuple(bins)


def test_a_range_goes_on_where_its_tail_does_and_noise_is_cheap():
    rounds = ((_largest(3000, 2000, 1000, 300, 100, 35), 3.0),)
    span = span_of(rounds)
    assert span.range == (0, 64)
    wide = stretched(rounds, span, width=1.0, cells=1)
    assert wide.range == (0, 128), "about 12 people are expected from 64 to 128, and 1 or 2 beyond"
    assert stretched(rounds, span, width=20.0, cells=1) == span, (
        "noise on a range twice as wide costs more than 12 people"
    )
    assert stretched(rounds, span, width=1.0, cells=100) == span, "a hundred groups share what is lost"


def test_a_range_ends_where_its_tail_does():
    full = ((_largest(10, 100, 1000, 10_000), 1.0),)
    assert stretched(full, span_of(full), width=0.01, cells=1).range == (0, 16), "a tail that rises to its end"
    seen = ((_largest(3000, 2000, 1000, 300, 100, 35), 1.0),)
    assert stretched(seen, span_of(seen), width=1.0, cells=1).range == (0, 64), "12 people would have been seen"
    steep = ((_largest(10_000, 10_000, 60), 1.0),)
    assert stretched(steep, span_of(steep), width=1.0, cells=1).range == (0, 8), "one that falls by 200 in an octave"


def test_each_side_of_a_range_goes_on_by_itself():
    rounds = ((_largest(3000, 2000, 1000, 300, 100, 35, down=(10, 100, 1000)), 3.0),)
    low, high = stretched(rounds, span_of(rounds), width=1.0, cells=1).range
    assert (low, high) == (-8, 128)


def octaves(people):
    bins = [0] * LARGEST_BINS
    for octave, count in people.items():
        bins[octave - LARGEST_LEAST] = count
    return ((tuple(bins), 100.0),)


def test_of_whole_numbers_few_people_with_a_one_are_believed():
    """Of 16 columns each is learned with little: 400 people with a 1, and all others with 0."""
    rounds = octaves({0: 400})
    assert span_of(rounds).top is None
    span = span_of(rounds, whole=True, from_one=True)
    assert span.range == (0, 1)
    assert span_of(octaves({}), whole=True, from_one=True).top is None


def test_whole_numbers_that_spread_over_octaves_are_believed_one_from_the_other():
    rounds = octaves(dict.fromkeys(range(6), 600))
    assert span_of(rounds, whole=True, from_one=True).range == (0, 63)


def test_the_last_whole_number_of_an_octave_is_its_end_less_one():
    rounds = octaves({6: 9000})
    assert (span_of(rounds).range, span_of(rounds, whole=True).range) == ((0, 128), (0, 127))


def test_where_few_people_with_a_value_may_have_more_than_all_others_together_the_tail_cap_is_one_value():
    """Everyone is seen near 0, as of a column that is nearly always its middle; values up to 2^20 are known."""
    near = bins({10: 900})
    read = read_profile(((near, SCALE),), shift=0, whole=False, safe=2.0**20)
    assert read.top == 10, "whom one sees is near 0"
    assert read.tail_cap == 2.0**20
    surely = read_profile(((near, SCALE / 2**16),), shift=0, whole=False, safe=2.0**20)
    assert surely.tail_cap == 2.0**11, "nobody has a value who is not seen"
    many = read_profile(((bins({18: 900}), SCALE),), shift=0, whole=False, safe=2.0**20)
    assert many.tail_cap == 2.0**19, "what is seen is more than a few values"
    assert read_profile(((near, SCALE),), shift=0, whole=True, safe=2.0**20).tail_cap == 2.0**11, "of counts"
