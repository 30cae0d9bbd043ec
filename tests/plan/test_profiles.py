"""Reading profiles: which bins are believed at which false-alarm rate, and what is foreseen above them."""

from math import exp, log

import pytest

from tacit.plan.caps import MISMATCH, Terms, Told, best_cap, by_rank, in_fine_steps, tail_in_fine_steps
from tacit.plan.profiles import CLEAR, FALSE_BIN, FALSE_SLOPE, believed_top, combined_rounds, read_profile

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
    assert grown < 0.1  # what false bins add to a cap on average
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


def test_a_second_round_makes_the_first_more_precise():
    counts, scale = combined_rounds([([100], 30.0), ([40], 10.0)])
    assert counts == [pytest.approx((100 / 9 + 40) / (1 / 9 + 1))]
    assert scale < 10


def test_a_tail_that_falls_slowly_doubles_the_tail_cap():
    steep = read_profile(((bins({8: 9000, 9: 3000, 10: 200}), SCALE),), shift=8, whole=True)
    slow = read_profile(((bins({8: 9000, 9: 3000, 10: 1400}), SCALE),), shift=8, whole=True)
    assert (steep.tail_cap, slow.tail_cap) == (8.0, 16.0)
    assert slow.count > 9000 + 3000 + 1400  # some are foreseen beyond


def test_all_equal_people_keep_all_they_have_and_need_no_totals():
    reading = read_profile(((bins({11: 100_000}), SCALE),), shift=8, whole=True)
    (sizes,) = by_rank([Told(reading)])
    cap = best_cap(sizes, Terms("laplace", 1.0), cells=1000)
    assert sizes.kept(sizes.weights(cap.size)) > 0.95
    assert cap.size <= 16


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
