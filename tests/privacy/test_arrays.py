"""Whole numbers of many groups: exact whatever their size, in 64 bits or out of them."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from tacit import numbers
from tacit.numbers import combined, nearest_quotients, wholes

EDGES = st.sampled_from([0, 1, -1, 2**31, 2**62, -(2**62), 2**63 - 1, -(2**63), 2**63, 2**64 - 1, 2**200])
WHOLES = st.one_of(st.integers(-(2**70), 2**70), EDGES)
PAIRS = st.integers(1, 5).flatmap(lambda n: st.tuples(*[st.lists(WHOLES, min_size=n, max_size=n)] * 2))


@given(PAIRS, WHOLES, WHOLES)
@example(([2**62], [2**62]), 1, 1)
@example(([-(2**63)], [-(2**63)]), 1, -1)
@example(([0], [0]), 2**70, 1)
def test_weighted_sums_are_those_of_pythons_integers(pair, one, two):
    left, right = pair
    wanted = [one * a + two * b for a, b in zip(left, right, strict=True)]
    assert combined((one, left), (two, right)).tolist() == wanted


@given(st.lists(WHOLES, min_size=1, max_size=5), st.one_of(st.integers(1, 2**66), st.just(2**62), st.just(2**63 - 1)))
def test_quotients_are_the_nearest_with_halves_upwards(tops, bottom):
    assert nearest_quotients(wholes(tops), bottom).tolist() == [(2 * top + bottom) // (2 * bottom) for top in tops]


def test_what_fits_64_bits_is_added_in_64_bits():
    assert combined((1, [2**61]), (1, [2**61])).dtype == np.int64
    assert combined((1, [2**62]), (1, [2**62])).dtype == object


def test_adding_in_64_bits_without_looking_would_be_caught(monkeypatch):
    monkeypatch.setattr(numbers, "largest", lambda values: 0)
    assert combined((1, [2**62]), (1, [2**62])).tolist() != [2**63]
