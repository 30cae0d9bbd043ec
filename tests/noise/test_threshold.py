"""Thresholds are floor(2^w·F(i)) with certainty, and what one word does not decide, more of the same bits do."""

from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from tacit.errors import TacitError
from tacit.noise.gaussian import DiscreteGaussian, WideGaussian, gaussian_sampler, gaussian_table
from tacit.noise.laplace import DigitTables, DiscreteLaplace, _digit_table, _top_table, laplace_tables
from tacit.noise.threshold import ThresholdTable, certain_thresholds, floors_one_by_one
from tacit.numbers import ball
from tacit_gauntlet.stage.enumeration import GivenBits, OutOfBits
from tests.noise import oracle

ONES = 2**64 - 1

small_scales = st.fractions(min_value=Fraction(1, 50), max_value=12, max_denominator=10**6)
wide_scales = st.fractions(min_value=65, max_value=2**56, max_denominator=10**4)
widths = st.sampled_from([4, 11, 64])


def listed(table: ThresholdTable) -> range:
    return range(table.first, table.first + len(table.thresholds))


@settings(max_examples=20)
@given(small_scales, widths)
def test_laplace_thresholds_are_certain(scale, width):
    table = laplace_tables(scale, width)
    assert table.thresholds == oracle.floors(oracle.laplace_cdf(scale), listed(table), width)


@settings(max_examples=20)
@given(small_scales, widths)
def test_gaussian_thresholds_are_certain(sigma, width):
    table = gaussian_table(sigma, width)
    assert table.thresholds == oracle.floors(oracle.gaussian_cdf(sigma), listed(table), width)


@settings(max_examples=10)
@given(wide_scales, widths, st.integers(0, 46))
def test_digit_thresholds_are_certain(scale, width, exponent):
    table = _digit_table(scale, 1 << exponent, 32, width)
    assert table.thresholds == oracle.floors(oracle.digit_cdf(scale, 1 << exponent, 32), listed(table), width)


@settings(max_examples=10)
@given(wide_scales, widths)
def test_top_thresholds_are_certain(scale, width):
    place = 1 << int(scale).bit_length() - 1
    table = _top_table(scale, place, width)
    assert table.thresholds == oracle.floors(oracle.top_cdf(scale, place), listed(table), width)


@pytest.mark.parametrize("sigma", [Fraction(100), Fraction(1023, 2)], ids=str)
def test_wide_gaussian_tables_are_certain(sigma):
    table = gaussian_table(sigma, 64)
    assert table.thresholds == oracle.floors(oracle.gaussian_cdf(sigma), listed(table), 64)


@pytest.mark.parametrize("true", ["1e-400", "0.3", "0.9999999999999999999999999999"])
def test_a_floor_by_balls_is_certain_at_either_end(true):
    exact = Fraction(true)
    found = floors_one_by_one(lambda _: ball(exact), range(1), width=64)
    assert found == [exact * 2**64 // 1]


def test_thresholds_that_bounds_never_settle_are_an_error_not_a_guess():
    def never(guard):
        yield (1 << guard + 3) - 1, 1 << guard + 3  # the true value may be the integer itself

    with pytest.raises(TacitError, match="certainty"):
        certain_thresholds(never, width=4)


@settings(max_examples=15)
@given(st.sampled_from(["1", "7/3", "40"]), st.data())
def test_a_word_equal_to_a_threshold_is_decided_by_the_bits_that_follow(scale, data):
    for table, cdf in (
        (laplace_tables(Fraction(scale), 64), oracle.laplace_cdf(Fraction(scale))),
        (gaussian_table(Fraction(scale), 64), oracle.gaussian_cdf(Fraction(scale))),
    ):
        word = data.draw(st.sampled_from(table.thresholds))
        with pytest.raises(OutOfBits):
            table.draw(1, GivenBits([word]))
        following = data.draw(st.lists(st.integers(1, ONES - 1), min_size=1, max_size=2))  # never all zeros or ones
        bits = GivenBits([word, *following], then=following[-1])
        drawn = int(table.draw(1, bits)[0])
        assert drawn == value_of([word, *following, *[following[-1]] * 2], cdf, around=drawn)
        for n in (2, 3000):  # searched, and looked up
            together = table.draw(n, GivenBits([word] + [2**63] * (n - 1), then=following[-1]))
            assert together[0] == int(table.draw(1, GivenBits([word], then=following[-1]))[0])


def value_of(words: list[int], cdf, around: int) -> int:
    """The value whose interval holds the real number these words begin, looked for near `around`."""
    with mp.workdps(oracle.DIGITS):
        u = sum(mpf(word) / mpf(2) ** (64 * (place + 1)) for place, word in enumerate(words))
        return next(x for x in range(around - 2, around + 3) if cdf(x - 1) <= u < cdf(x))


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(64)], ids=str)
@pytest.mark.parametrize("more", [1, 2, 3])
def test_draws_go_past_the_end_of_the_table_on_both_sides(scale, more):
    table = laplace_tables(scale, 64)
    cdf = oracle.laplace_cdf(scale)
    far = int(table.draw(1, GivenBits([ONES] * (1 + more) + [5], then=5))[0])
    assert far > listed(table)[-1] or more == 1
    assert far == value_of([ONES] * (1 + more) + [5] * 2, cdf, around=far)
    low = int(table.draw(1, GivenBits([0] * (1 + more) + [5], then=5))[0])
    assert low < table.first or more == 1
    assert low == value_of([0] * (1 + more) + [5] * 2, cdf, around=low)


def test_gaussian_draws_go_past_the_end_of_the_table():
    table = gaussian_table(Fraction(5), 64)
    cdf = oracle.gaussian_cdf(Fraction(5))
    far = int(table.draw(1, GivenBits([ONES, ONES, 5], then=5))[0])
    assert far > listed(table)[-1]
    assert far == value_of([ONES, ONES, 5, 5], cdf, around=far)


def test_runs_of_equal_thresholds_are_told_apart():
    table = laplace_tables(Fraction(64), 64)
    run = [i for i, threshold in enumerate(table.thresholds) if threshold == 1]
    assert len(run) > 10
    cdf = oracle.laplace_cdf(Fraction(64))
    seen = set()
    for following in (1, 1 << 61, 1 << 62, 1 << 63, ONES - 1):
        drawn = int(table.draw(1, GivenBits([1], then=following))[0])
        assert drawn == value_of([1, following, following, following], cdf, around=drawn)
        seen.add(drawn)
    assert len(seen) == 5


def test_digits_put_together_are_the_law_exactly():
    """Pr[top, sign]·∏ Pr[digit] is the discrete Laplace mass, for every value, to 100 digits."""
    scale, sizes = Fraction(1000, 7), (3, 4)
    with mp.workdps(oracle.DIGITS):
        top, whole = oracle.top_cdf(scale, 128), oracle.laplace_cdf(scale)
        low, high = oracle.digit_cdf(scale, 1, 8), oracle.digit_cdf(scale, 8, 16)
        for x in [*range(-400, 400), 5000, -5001]:
            size, sign = (x, 0) if x >= 0 else (-1 - x, 1)
            parts = [(top, 2 * (size >> 7) + sign), (low, size & 7), (high, size >> 3 & 15)]
            product = mp.fprod(cdf(i) - (cdf(i - 1) if i else 0) for cdf, i in parts)
            mass = whole(x) - whole(x - 1)
            assert abs(product - mass) < mpf(10) ** -100
    assert sum(sizes) == 7


@settings(max_examples=25)
@given(wide_scales, st.integers(-(2**60), 2**60))
def test_digits_are_put_together_in_their_places(scale, x):
    """Words in the middle of chosen digits' intervals come out as the number with those digits."""
    tables = laplace_tables(scale, 64)
    assert isinstance(tables, DigitTables)
    x %= 1 << tables.low_bits + 2
    for value in (x, -1 - x):
        words = words_for(tables, value)
        assert tables.draw(1, GivenBits(words)).tolist() == [value]
        doubled = [word for word in words for _ in range(2)]
        assert tables.draw(2, GivenBits(doubled)).tolist() == [value, value]


def words_for(tables: DigitTables, value: int) -> list[int]:
    size, sign = (value, 0) if value >= 0 else (-1 - value, 1)
    words = [middle_of(tables.top, 2 * (size >> tables.low_bits) + sign)]
    for bits, table in zip(tables.digit_bits, tables.digits, strict=True):
        words.append(middle_of(table, size & (1 << bits) - 1))
        size >>= bits
    return words


def middle_of(table: ThresholdTable, value: int) -> int:
    place = value - table.first
    low = table.thresholds[place - 1] if place else 0
    high = table.thresholds[place] if place < len(table.thresholds) else 1 << 64
    return (low + high) // 2


@pytest.mark.parametrize("n", [1, 2, 3000])
def test_a_draw_beyond_int64_is_kept_whole(n):
    noise = DiscreteLaplace(2**56)
    tables = laplace_tables(Fraction(2**56), 64)
    digits = len(tables.digits)
    source = GivenBits([ONES] + [0] * digits + [ONES] * 3, then=7) if n == 1 else TopOnes(n)
    drawn = noise._draw(n, source)
    assert drawn.dtype == object
    assert max(abs(value) for value in drawn) >= 2**63
    assert all(type(value) is int for value in drawn)


class TopOnes:
    """All-one words for the first request of n and whatever settles the first of them; zeros for the rest."""

    def __init__(self, n: int) -> None:
        self.requests, self.n = 0, n

    def words(self, n: int, width: int = 64):
        self.requests += 1
        words = np.zeros(n, dtype=np.uint64)
        if self.requests == 1:
            words[0] = ONES
        elif self.requests in (2, 3, 4):
            words[:] = ONES
        return words


@pytest.mark.parametrize("kind", [DiscreteLaplace, DiscreteGaussian])
@pytest.mark.parametrize("scale", ["1/1000000", 2**56])
def test_the_least_and_the_widest_noise_are_drawn(kind, scale):
    noise = kind(scale)
    for n in (0, 1, 5, 5000):
        drawn = noise.sample(n)
        assert drawn.shape == (n,)
        assert drawn.dtype == np.int64
    if scale == 2**56:
        assert 0.9 < np.abs(drawn.astype(float)).mean() / 2**56 / (1 if kind is DiscreteLaplace else 0.798) < 1.1
    else:
        assert not drawn.any()


def test_tables_are_cached_across_instances():
    assert laplace_tables(DiscreteLaplace("5/2").scale, 64) is laplace_tables(DiscreteLaplace(2.5).scale, 64)
    assert gaussian_table(DiscreteGaussian("5/2").sigma, 64) is gaussian_table(DiscreteGaussian(2.5).sigma, 64)


# ---- the wide Gaussian's float filter ------------------------------------------------------------------------------


WIDE = st.fractions(min_value=129, max_value=2**56, max_denominator=10**4)


def placed(wide, ratio):
    """A distance of about so many sigmas, and its block, as arrays of one."""
    distance = int(wide.sigma * Fraction(ratio))
    return np.array([distance >> wide.shift]), np.array([distance])


def exact_chance(wide, blocks, distances):
    start = int(blocks[0]) << wide.shift
    return mp.exp(-oracle.exact((int(distances[0]) ** 2 - start**2) / (2 * wide.sigma**2)))


@settings(max_examples=60)
@given(WIDE, st.floats(0, 9))
def test_the_float_filter_is_within_its_proved_error(sigma, ratio):
    wide = WideGaussian(sigma)
    candidate = placed(wide, ratio)
    with mp.workdps(60):
        assert abs(mpf(float(wide._chance(*candidate)[0])) - exact_chance(wide, *candidate)) < mpf(2) ** -44


@settings(max_examples=60)
@given(
    WIDE,
    st.floats(0, 4),
    st.sampled_from([0, 1, 2, 2**10, 2**20, 2**23, 2**24, 2**25, 2**30, 2**40]),
    st.booleans(),
)
def test_words_near_the_chance_are_decided_as_the_exact_chance_says(sigma, ratio, offset, above):
    wide = WideGaussian(sigma)
    candidate = placed(wide, ratio)
    with mp.workdps(60):
        floor = int(mp.floor(exact_chance(wide, *candidate) * mpf(2) ** 64))
    word = min(max(floor + (offset if above else -offset), 0), ONES)
    if word == floor:
        with pytest.raises(OutOfBits):
            wide._keep(*candidate, GivenBits([word]))
    else:
        assert bool(wide._keep(*candidate, GivenBits([word]))[0]) == (word < floor)


@settings(max_examples=20)
@given(WIDE)
def test_what_a_mark_keeps_is_kept_wherever_it_lies_in_its_block(sigma):
    """The last place of a block is the least likely to be kept; a mark for its first place would be above it."""
    wide = WideGaussian(sigma)
    with mp.workdps(60):
        for block in (0, 1, 31, 64, 150):
            last = np.array([block]), np.array([(block + 1 << wide.shift) - 1])
            chance = exact_chance(wide, *last) * mpf(2) ** 64
            assert int(wide._always[block]) <= chance < mpf(2) ** 64
    assert wide._always[-1] == 0


def test_the_first_place_of_a_block_is_always_kept():
    wide = WideGaussian(Fraction(1001, 7))
    for block in (0, 1, 100, 900):
        assert wide._keep(np.array([block]), np.array([block << wide.shift]), GivenBits([ONES])).all()


def test_long_arrays_decide_candidates_as_single_draws_do():
    wide = WideGaussian(Fraction(1001, 7), 8)
    words = [word for word in range(256) for _ in range(20)]
    distances = np.array([place * 37 % 1200 for place in range(len(words))])
    blocks = distances >> wide.shift
    together = wide._keep(blocks, distances, GivenBits(words, then=85))
    alone = [
        wide._keep(blocks[[place]], distances[[place]], GivenBits([word], then=85))[0]
        for place, word in enumerate(words)
    ]
    assert together.tolist() == [bool(kept) for kept in alone]
    assert 0 < together.sum() < len(words)


def test_rejection_leaves_the_gaussian_law():
    """A block's mass times the chance to keep a place in it is the Gaussian mass, up to one constant."""
    wide = WideGaussian(Fraction(1001, 7))
    with mp.workdps(60):
        ratios = set()
        for distance in (0, 1, 3, 57, 300, 1003):
            block = distance >> wide.shift
            candidate = mp.exp(-oracle.exact((block << wide.shift) ** 2 / (2 * wide.sigma**2)))
            kept = candidate * exact_chance(wide, np.array([block]), np.array([distance]))
            ratios.add(mp.nstr(kept / mp.exp(-oracle.exact(distance**2 / (2 * wide.sigma**2))), 50))
    assert len(ratios) == 1


def test_of_two_zeros_one_is_kept_and_every_other_distance_has_both_signs():
    wide = WideGaussian(Fraction(1001, 7))  # blocks of 4
    first_block, surely = 0, 0
    for place in range(4):
        for minus in (0, 1):
            found = wide._try(1, GivenBits([first_block, 2 * place + minus, surely]))
            assert found.tolist() == ([] if (place, minus) == (0, 1) else [-place if minus else place])


def test_wide_gaussians_of_many_draws_use_the_exact_table():
    assert isinstance(gaussian_sampler(Fraction(1000), many=True), ThresholdTable)
    assert isinstance(gaussian_sampler(Fraction(1000), many=False), WideGaussian)
    assert isinstance(gaussian_sampler(Fraction(1025), many=True), WideGaussian)


def test_words_beside_thresholds_fall_on_their_side():
    table = laplace_tables(Fraction(40), 64)
    near = [word for threshold in table.thresholds[::50] for word in (threshold - 1, threshold + 1)]
    words = [word for word in near if 0 <= word <= ONES and word not in set(table.thresholds)]
    expected = [table.first + bisect_right(table.thresholds, word) for word in words]
    assert table.draw(len(words), GivenBits(words)).tolist() == expected
    assert table.draw(30 * len(words), GivenBits(words * 30)).tolist() == expected * 30
