"""Reading profiles: which bins are believed at which false-alarm rate, and what is foreseen above them."""

from itertools import pairwise
from math import comb, exp, factorial, isfinite, log

import numpy as np
import pytest

from tacit.plan.bounds import profiles
from tacit.plan.bounds.chosen import FALSE_BIN, FALSE_SLOPE, HIDDEN_SCALES
from tacit.plan.bounds.profiles import (
    ENDS,
    WINDOWS,
    above_noise,
    at_most,
    believed_bin,
    below,
    beyond,
    bin_of,
    combined_rounds,
    people_above,
    read_profile,
    span_of,
    stretched,
)
from tacit.plan.bounds.scaling import BINS, LARGEST_BINS, LARGEST_LEAST, Profile, Vector
from tests.answer.test_scaled_coverage import misses_most
from tests.engine import scaling_reference
from tests.plan.learned import rows

SCALE = 10.0
CLEAR = above_noise(1, FALSE_BIN / BINS)
ROW = 15  # the bin of one row, in profiles of counts
# 20,000 people: a tail by Pareto's law with the exponent 1.6 that ends at 180 rows, and one that halves with every row.
PARETO = {size: round(20_000 * size**-1.6) - round(20_000 * (size + 1) ** -1.6) for size in range(1, 180)} | {180: 5}
HALVES = {size: round(20_000 * 0.5**size) for size in range(1, 15)}


def bins(people, count=BINS):
    return tuple(people.get(place, 0) for place in range(count))


# ---- Bins.


def _exact_bin(length):
    """The bin of a length, from what the bins are: the number of ends 2^k and 3·2^k that are below it."""
    return sum(end < length for power in range(70) for end in (2**power, 3 * 2**power))


LENGTHS = sorted(
    {*range(1, 4097)}
    | {2**power + more for power in range(2, 63) for more in (-1, 0, 1)}
    | {3 * 2**power + more for power in range(1, 61) for more in (-1, 0, 1)}
)


def test_the_bin_of_a_length_is_counted_in_binary_digits_and_ends_at_1_2_3_4_6_8_12_16_24():
    assert [int(end) for end in ENDS[:9]] == [1, 2, 3, 4, 6, 8, 12, 16, 24]
    for length in LENGTHS:
        below_it = length - 1
        assert below_it.bit_length() + (below_it // 3).bit_length() == _exact_bin(length)
        cell = scaling_reference.Cell(length)
        if length <= scaling_reference.CELL_MOST:
            assert scaling_reference.bin_of(Profile(1, Vector("rows")), [cell]) == min(_exact_bin(length), BINS - 1)
        if length < 2**29:  # a computed length is the end that it is within a part in 10^9 of
            assert bin_of(float(length)) == _exact_bin(length)


# ---- Believing bins.


def laplace_tail(count, more):
    """The probability that the sum of so many Laplace noises of scale 1 is above a number, exactly.

    The sum is the difference of two gamma variables of this shape.
    """
    return exp(-more) * sum(
        comb(k, j) * more ** (k - j) * factorial(count + j - 1) / factorial(count - 1) / 2 ** (count + j) / factorial(k)
        for k in range(count)
        for j in range(k + 1)
    )


def test_the_tail_of_a_sum_of_noises_is_the_one_that_is_drawn():
    assert laplace_tail(1, 3.0) == pytest.approx(exp(-3) / 2)
    draw = np.random.default_rng(3).laplace(0, 1, (200_000, 4)).sum(axis=1)
    # 7 standard deviations of the number drawn: a false alarm less than once in 10^9 times
    expected = laplace_tail(4, 6.0) * len(draw)
    assert abs((draw > 6).sum() - expected) < 7 * expected**0.5


@pytest.mark.parametrize("width", WINDOWS)
def test_a_threshold_is_exceeded_by_noise_with_its_probability(width):
    for probability in (0.3, FALSE_BIN, FALSE_BIN / BINS):
        assert laplace_tail(width, above_noise(width, probability)) == pytest.approx(probability, rel=1e-6)


def false_bins(probability, slope):
    """The rate, at most, at which noise makes a bin believed: a union over all windows above the top, and any bin."""
    above = sum(
        laplace_tail(width, above_noise(width, probability) + slope * log(2) * more / 2)
        for width in WINDOWS
        for more in range(1, BINS - ROW)
    )
    return above, BINS * laplace_tail(1, above_noise(1, probability / BINS))


def test_noise_alone_makes_a_bin_believed_in_about_one_of_ten_thousand_profiles_at_most():
    above, clear = false_bins(FALSE_BIN, FALSE_SLOPE)
    assert above < 1e-4, "above a top that is true, or from one row on if there is none"
    assert clear <= 1.001 * FALSE_BIN


def test_bins_are_believed_by_noise_alone_at_the_rate_of_their_thresholds(monkeypatch):
    """At a probability that is large enough to see. Counts beyond the rate are a false alarm once in 10^9 times."""
    monkeypatch.setattr(profiles, "FALSE_BIN", 1 / 500)
    above, clear = false_bins(1 / 500, FALSE_SLOPE)
    draw, runs = np.random.default_rng(20261116), 5_000
    found = {"none": 0, "higher": 0}
    for noise in draw.laplace(0, 1, (runs, BINS)):
        found["none"] += believed_bin(noise.tolist(), 1.0, ROW) is not None
        noise[24] += 1000
        found["higher"] += believed_bin(noise.tolist(), 1.0, ROW) > 24
    assert 0 < found["higher"] <= misses_most(runs, above)
    assert 0 < found["none"] <= misses_most(runs, above + clear)


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 11, 40])
def test_a_bin_is_believed_from_its_threshold_on_and_the_farther_the_more_people_it_needs(distance):
    least = SCALE * (above_noise(1, FALSE_BIN) + FALSE_SLOPE * log(2) * distance / 2)
    assert believed_bin(bins({20: 10_000, 20 + distance: least + 0.01}), SCALE, ROW) == 20 + distance
    assert believed_bin(bins({20: 10_000, 20 + distance: least - 0.01}), SCALE, ROW) == 20


@pytest.mark.parametrize("width", WINDOWS[1:])
def test_neighbouring_bins_are_believed_together_and_the_fullest_is_the_top(width):
    """So many bins begin four octaves above the top, none of them with enough people by itself."""
    fullest = 28 + width // 2
    each = SCALE * (above_noise(width, FALSE_BIN) + FALSE_SLOPE * log(2) * (28 - 20) / 2) / width
    people = {20: 10_000} | dict.fromkeys(range(28, 28 + width), each + 0.01)
    assert believed_bin(bins(people | {fullest: each + 0.02}), SCALE, ROW) == fullest
    fewer = {20: 10_000} | dict.fromkeys(range(28, 28 + width), 0.9 * each)
    assert believed_bin(bins(fewer), SCALE, ROW) == 20


def test_nothing_is_believed_of_noise_alone_and_negative_bins_do_no_harm():
    assert believed_bin(bins({}), SCALE, ROW) is None
    assert believed_bin([-1e9] * BINS, SCALE, ROW) is None
    assert read_profile((((-5,) * BINS, SCALE),), shift=8, whole=True).top is None


def test_the_first_bins_are_believed_without_a_clear_one():
    assert believed_bin(bins({ROW: 115}), SCALE, ROW) == ROW
    assert believed_bin(bins({ROW + 50: 115}), SCALE, ROW) is None
    assert believed_bin(bins(dict.fromkeys(range(18, 22), 56)), SCALE, ROW) in range(18, 22), "224 people"
    assert believed_bin(bins(dict.fromkeys(range(18, 22), 25)), SCALE, ROW) is None


def test_of_sums_the_first_bins_are_those_of_one_large_value():
    noise = bins({0: 60})
    assert read_profile(((noise, SCALE),), shift=4, whole=False, safe=2.0**20).top is None, "far below any sum: noise"
    some = bins({46: 80, 47: 80, 48: 75})  # 235 people, of whom no bin is clear
    assert read_profile(((some, SCALE),), shift=4, whole=False, safe=2.0**20).top == 47
    assert read_profile(((some, SCALE),), shift=4, whole=False, safe=1.0).top is None
    assert read_profile(((some, SCALE),), shift=4, whole=False, safe=2.0**100).top is None


FEW = rows(
    {1: 5, 2: 6, 3: 6, 4: 9, 5: 9, 8: 9, 12: 9, 16: 9, 24: 9, 32: 10, 48: 9, 64: 8, 96: 7, 128: 7, 256: 4}
)  # about as customers of one country have rows


def test_few_people_are_believed_together_where_no_bin_is_by_itself():
    reading = read_profile(((bins(FEW), 2.8),), shift=8, whole=True, is_total=True)
    assert max(FEW.values()) < CLEAR * 2.8
    assert ENDS[reading.top] / 256 >= 32
    assert reading.tail_cap >= 32
    assert read_profile(((bins(FEW), 10.0),), shift=8, whole=True).top is None


def test_of_people_who_are_not_seen_as_many_may_be_as_noise_hides():
    reading = read_profile(((bins(FEW), 20.0),), shift=8, whole=True)
    assert reading.top is None
    assert 59 < reading.unseen < 60
    clear = read_profile(((bins({ROW: 1000, ROW + 2: 500}), 5.0),), shift=8, whole=True)
    assert clear.unseen == reading.unseen / 4


def test_a_second_round_makes_the_first_more_precise():
    counts, scale = combined_rounds([([100], 30.0), ([40], 10.0)])
    assert counts == [pytest.approx((100 / 9 + 40) / (1 / 9 + 1))]
    assert scale < 10


# ---- The tail beyond the top.


def test_of_a_tail_no_fewer_are_foreseen_the_more_are_found_and_none_is_negative():
    found = []
    for above in (-10_000, -30, 0, 15, 30, 45):
        profile = rows({1: 9000, 2: 3000, 4: 1400}) | {ROW + 5: above}
        reading = read_profile(((bins(profile), SCALE),), shift=8, whole=True, is_total=True)
        assert reading.top == ROW + 4
        assert all(isfinite(each) and each >= 0 for each in reading.people)
        found.append(sum(reading.people[reading.top + 1 :]))
    assert all(more >= less - 0.01 for less, more in pairwise(found))
    assert found[0] < 1 < found[-1]


def test_of_a_tail_that_fell_fast_more_may_be_left_that_noise_hides():
    """Each table has 450 people at its top, and none that is seen above it: a tail that fell slowly has ended."""
    above, top = [], bin_of(64 * 256)
    for fell in (1.2, 1.4, 1.7, 2.0, 2.8, 4.0):
        people = {top - down: 450 * fell**down for down in range(7)}
        reading = read_profile(((bins(people), 40.0),), shift=8, whole=True, is_total=True)
        assert reading.top == top
        above.append(sum(reading.people[top + 1 :]))
    assert above == sorted(above)
    assert above[-1] > 2 * above[0]


@pytest.mark.parametrize("most", [1, 2, 3, 4, 6, 8, 12, 96])
def test_of_whole_numbers_the_tail_cap_is_the_last_one_in_the_bin(most):
    reading = read_profile(((bins(rows({most: 9000})), SCALE),), shift=8, whole=True, is_total=True)
    assert reading.tail_cap == most
    sizes, people = reading.points()
    assert (sizes == np.floor(sizes)).all()
    assert people[sizes > most].sum() < 1


@pytest.mark.parametrize("people", [{1: 1}, {1: 9, 40: 1}, {2: 3, 5: 1, 300: 1}])
def test_without_noise_no_tail_cap_loses_anything(people):
    reading = read_profile(((bins(rows(people)), 1e-9),), shift=8, whole=True, is_total=True)
    assert reading.tail_cap >= max(people)


def test_of_a_length_of_counts_the_sizes_are_roots_of_whole_numbers():
    lengths = {ROW: 9000, ROW + 1: 400, ROW + 2: 500}  # 1; up to 1.5; up to 2
    sizes, _ = read_profile(((bins(lengths), SCALE),), shift=8, whole=True).points()
    assert np.allclose(sizes**2, np.round(sizes**2))
    assert {1.0, 2**0.5, 3**0.5} == set(sizes[sizes < 2])


@pytest.mark.parametrize(("is_total", "size"), [(True, 1.0), (True, 3**0.5 * 3**0.5), (False, 1.0), (False, 3**0.5)])
def test_people_who_have_exactly_a_size_are_not_above_it(is_total, size):
    length = round((1 << 8) * size)  # as an engine has it: whole fine steps, at or just above
    rounds = ((bins({bin_of(length): 9000, 30: 500}), SCALE),)
    least, most = people_above(rounds, size, read_profile(rounds, shift=8, whole=True, is_total=is_total))
    assert least <= 500 <= most


def test_people_whose_sum_is_exactly_a_size_are_not_above_it():
    rounds = ((bins({ROW: 9000, 24: 500}), SCALE),)
    least, most = people_above(rounds, 1.0, read_profile(rounds, shift=8, whole=False))
    assert least <= 500 < most


def test_nobody_is_beyond_a_size_that_no_person_exceeds():
    reading = read_profile(((bins(rows(PARETO)), 7.0),), shift=8, whole=True, is_total=True)
    limited = at_most(reading, 20.0)
    assert limited.tail_cap == 20
    assert limited.unseen == 0
    assert limited.points()[0].max() == 20
    assert at_most(reading, 1e6) == reading
    narrow = read_profile(((bins(rows({3: 9000})), 7.0),), shift=8, whole=True, is_total=True)
    assert below(reading, narrow).tail_cap <= float(narrow.ends()[-1])


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
    rounds = ((_largest(3000, 2000, 1000, 300, 100, 35, 12), 3.0),)
    span = span_of(rounds)
    assert span.range == (0, 64)
    wide = stretched(rounds, span, width=1.0, cells=1)
    assert wide.range == (0, 256), "about 12 people are expected from 64 to 128, and 6 beyond that"
    assert stretched(rounds, span, width=20.0, cells=1) == span, (
        "noise on a range twice as wide costs more than these people"
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
    rounds = ((_largest(3000, 2000, 1000, 300, 100, 35, 12, down=(10, 100, 1000)), 3.0),)
    low, high = stretched(rounds, span_of(rounds), width=1.0, cells=1).range
    assert (low, high) == (-8, 256)


def test_people_of_the_last_believed_octave_are_not_beyond_a_range_that_ends_within_it():
    """Below the middle, 900 people are 8 away or a little more, and no value is further: the range ends there."""
    rounds = ((_largest(3000, 2000, 1000, 300, down=(3000, 2000, 1000, 900)), 1.0),)
    found = beyond(rounds, 8.0, 16.0)
    assert found.down == pytest.approx(HIDDEN_SCALES * 8, rel=0.02), "noise is 1: more would have been seen"
    assert found.up == pytest.approx(HIDDEN_SCALES * 16, rel=0.02), "100 people would have been seen"
    assert found.squares == pytest.approx(HIDDEN_SCALES * 7 * (8**2 + 16**2), rel=0.02)


def test_a_tail_with_more_people_than_noise_has_not_ended_though_more_were_foreseen():
    rounds = ((_largest(3000, 2000, 1500, 750, 35), 9.0),)
    span = span_of(rounds)
    assert span.range == (0, 16), "35 people are too few for the noise"
    assert stretched(rounds, span, width=0.1, cells=1).range[1] > 16
    none = ((_largest(3000, 2000, 1500, 750, 0), 9.0),)
    assert stretched(none, span_of(none), width=1.0, cells=1) == span


def test_a_range_of_a_tail_that_became_thin_allows_for_the_people_whom_noise_may_hide():
    """746 people are believed in the last octave; of the 40 above them noise of 19 people leaves doubt."""
    thin, ended = (((_largest(3000, 4000, 2400, 746, *more), 19.0),) for more in ((40, 13), (0, 0)))
    assert span_of(thin) == span_of(ended)
    allowed = {name: beyond(each, 1.0, 16.0).up for name, each in (("thin", thin), ("ended", ended))}
    assert allowed["thin"] > 1.5 * allowed["ended"], "40 people may have more than the end"
    assert allowed["ended"] < 1.2 * HIDDEN_SCALES * 19 * 16


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
    near = bins({21: 900})
    read = read_profile(((near, SCALE),), shift=0, whole=False, safe=2.0**20)
    assert read.top == 21, "people are seen near 0"
    assert read.tail_cap == 2.0**20
    surely = read_profile(((near, SCALE / 2**16),), shift=0, whole=False, safe=2.0**20)
    assert surely.tail_cap == 2.0**11, "all people with a value are seen"
    many = read_profile(((bins({37: 900}), SCALE),), shift=0, whole=False, safe=2.0**20)
    assert many.tail_cap == 2.0**19, "what is seen is more than a few values"
    assert read_profile(((near, SCALE),), shift=0, whole=True, safe=2.0**20).tail_cap == 2.0**11, "of counts"
