"""Coins are exact: a chance is a whole number of 2^-64, never more revealing than asked, and words give it exactly."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InvalidParameter
from tacit.local.protocols.protocol import kept_chance
from tacit.noise import coins
from tacit.noise.bits import Keystream
from tacit.numbers import ball, certainly_less
from tacit_gauntlet.stage.local import EveryWord
from tacit_gauntlet.stage.statistic import FALSE_ALARM, binomial_at_least, binomial_at_most

CHANCES = st.integers(1, 2**64 - 1).map(lambda top: Fraction(top, 2**64))


@given(
    epsilon=st.fractions(Fraction(1, 1000), 20),
    inside=st.integers(1, 1000),
    outside=st.integers(1, 10**6),
)
def test_a_favoured_output_is_at_most_e_to_the_epsilon_times_as_likely(epsilon, inside, outside):
    chance = kept_chance(epsilon, inside=inside, outside=outside)
    ratio = (chance / inside) / ((1 - chance) / outside)
    assert certainly_less(lambda: ball(ratio).log(), lambda: ball(epsilon))
    # one step of the grid more would be too much
    more = chance + Fraction(1, 2**64)
    assert certainly_less(lambda: ball(epsilon), lambda: ball((more / inside) / ((1 - more) / outside)).log())


@pytest.mark.parametrize(
    ("epsilon", "words"),
    [(40, "gives no protection"), (10**9, "gives no protection"), (Fraction(1, 10**18), "no information")],
)
def test_an_epsilon_that_hides_nothing_or_says_nothing_is_refused(epsilon, words):
    with pytest.raises(InvalidParameter, match=words):
        kept_chance(Fraction(epsilon), outside=1)


@settings(max_examples=30)
@given(chance=CHANCES)
def test_a_coin_is_heads_for_exactly_its_share_of_all_16_bit_words(chance):
    every = np.arange(1 << 16, dtype=np.uint16).view(np.uint64)
    heads = np.count_nonzero(coins.draw_heads(chance, 1 << 16, EveryWord(every)))
    # the one word that ties goes on with the next bits, zeros here, which are below unless nothing is left
    ties = 1 if chance * 2**16 % 1 else 0
    assert heads == chance * 2**16 // 1 + ties


@settings(max_examples=20)
@given(chance=CHANCES)
def test_a_tie_is_decided_by_the_chance_s_other_48_bits(chance):
    top, rest = divmod(int(chance * 2**64), 1 << 48)
    for low, heads in ((rest - 1, True), (rest, False), (rest + 1, False)):
        if 0 <= low < 1 << 48:
            bits = EveryWord(np.array([top, low << 16], dtype=np.uint64))
            assert bool(coins.draw_heads(chance, 1, bits)[0]) is heads


@settings(max_examples=20)
@given(digits=st.integers(0, 255))
def test_a_packed_coin_is_heads_for_exactly_its_share_of_all_8_bit_words(digits):
    lanes = np.arange(1 << 8, dtype=np.uint64)
    levels = [np.where(lanes >> np.uint64(7 - level) & np.uint64(1), ~np.uint64(0), np.uint64(0)) for level in range(8)]
    heads, undecided = coins._toss_levels(digits, np.full(1 << 8, ~np.uint64(0)), EveryWord(np.concatenate(levels)))
    assert set(heads.tolist()) <= {0, 2**64 - 1}
    assert np.count_nonzero(heads) == digits
    assert np.count_nonzero(undecided) == 1


@pytest.mark.parametrize("top", [1, 2**63, 3 * 2**40, 2**64 - 1, 0x8000_4000_2000_1001])
def test_packed_coins_have_their_chance_on_average(top):
    chance = Fraction(top, 2**64)
    heads = int(np.bitwise_count(coins.draw_packed_heads(chance, 1 << 15, Keystream())).sum())
    assert min(binomial_at_least(heads, 2**21, chance), binomial_at_most(heads, 2**21, chance)) > FALSE_ALARM / 10


def test_a_chance_off_the_grid_is_refused():
    with pytest.raises(InvalidParameter, match="2\\^-64"):
        coins.draw_heads(Fraction(1, 3), 1, Keystream())


@settings(max_examples=30)
@given(shares=st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=20))
def test_a_coin_for_each_share_says_yes_below_it_and_nowhere_else(shares):
    array = np.array(shares, dtype=np.uint64)
    at = coins.draw_heads_each(array, EveryWord(array))
    below = coins.draw_heads_each(array, EveryWord(np.maximum(array, 1) - np.uint64(1)))
    assert not at.any()
    assert below.tolist() == [share > 0 for share in shares]
