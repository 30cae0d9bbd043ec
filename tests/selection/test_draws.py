"""What draws for a selection is exact: even choices, flips and weighted choices, on every string of bits."""

from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import InvalidParameter
from tacit.noise.bits import Keystream
from tacit.noise.coins import draw_below, draw_flips
from tacit.numbers import ball, certain_floor, working_precision
from tacit.selection import weights
from tacit.selection.weights import ExactSums, draw_weighted
from tacit_gauntlet.stage.enumeration import GivenBits, edges_of, wrong_paths


@pytest.mark.parametrize("most", [1, 2, 3, 5, 7, 16])
def test_every_number_below_has_as_many_words(most):
    usable = 16 // most * most
    seen = draw_below(most, usable, GivenBits(range(usable)), width=4)
    assert np.bincount(seen, minlength=most).tolist() == [usable // most] * most


def test_left_over_words_are_thrown_away():
    assert draw_below(3, 2, GivenBits([15, 4, 15, 2]), width=4).tolist() == [2, 1]


def test_mutant_folding_left_over_words_back_is_uneven():
    folded = np.bincount(np.arange(16) % 3)
    assert len(set(folded.tolist())) > 1


@pytest.mark.parametrize("most", [0, -1, 2**63 + 1])
def test_what_no_word_can_hold_is_refused(most):
    with pytest.raises(InvalidParameter, match="most must lie between"):
        draw_below(most, 1, Keystream())


@pytest.mark.parametrize("distance", [0, 1, 3])
def test_a_flip_says_yes_on_the_words_below_its_chance(distance):
    rate = Fraction(2, 3)
    edges = edges_of(
        lambda i: [ball(-rate * distance).exp(), 1 - ball(-rate * distance).exp()][i], range(2), depth=12, endless=False
    )
    if distance == 0:
        edges = {0: Fraction(1 << 12), 1: Fraction(1 << 12)}
    wrong, judged = wrong_paths(
        lambda bits: int(not draw_flips(np.array([distance]), rate, bits, width=4)[0]), edges, width=4, depth=12
    )
    assert not wrong
    assert judged == 1 << 12


def test_a_flip_of_a_chance_no_float_can_hold_is_still_possible():
    # e^-2000 is below the least float, and above 2^-3000
    yes = GivenBits([0] * 46, then=1)
    assert draw_flips(np.array([2000]), Fraction(1), yes).tolist() == [True]
    assert draw_flips(np.array([2000]), Fraction(1), GivenBits([0] * 44, then=1)).tolist() == [False]


def weighted_edges(distances: list[int], rate: Fraction, *, depth: int) -> dict[int, Fraction]:
    """Where each candidate's words end: a whole number where 512 bits see no difference, else its floor and a half."""
    edges = {}
    with working_precision(512):
        sums = list(accumulate(ball(-rate * distance).exp() for distance in distances))
        for place, part in enumerate(sums):
            edge = part / sums[-1] * (1 << depth)
            nearest = int((edge.mid() + arb(0.5)).floor().unique_fmpz())
            on_it = abs(edge - nearest) < arb(2) ** -400
            edges[place] = Fraction(nearest) if on_it else int(edge.floor().unique_fmpz()) + Fraction(1, 2)
    return edges


@settings(max_examples=25)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=6), st.fractions(Fraction(1, 3), Fraction(2), max_denominator=5)
)
def test_a_weighted_choice_follows_its_law_on_every_string_of_bits(above, rate):
    distances = np.array([*above, 0])
    edges = weighted_edges(distances.tolist(), rate, depth=10)
    wrong, judged = wrong_paths(lambda bits: draw_weighted(distances, rate, bits, width=5), edges, width=5, depth=10)
    assert not wrong
    assert judged == 1 << 10


@pytest.mark.parametrize("ties", [2, 3, 1000, 999_999])
def test_ties_share_the_words_evenly(ties):
    tied, rate = np.zeros(ties, dtype=np.int64), Fraction(5)
    for j in {1, ties // 2, ties - 1}:
        edge = (j << 64) // ties
        below = edge - 1
        above = edge + 1
        assert [draw_weighted(tied, rate, GivenBits([word], then=0)) for word in (below, above)] == [j - 1, j]


def test_a_word_on_an_edge_gets_more_bits():
    distances, rate = np.array([0, 1]), Fraction(1)
    edge = certain_floor(lambda: arb(2) ** 64 / (1 + ball(-rate).exp()))
    assert {draw_weighted(distances, rate, GivenBits([edge, word])) for word in (0, 2**64 - 1)} == {0, 1}


def test_halves_of_every_level_meet_the_middle_exactly():
    sums = ExactSums(np.array([0, 3, 7, 7, 3, 0]), Fraction(1, 7))
    assert sums.compare(3, 1, 1) == 0
    assert sums.compare(3, (1 << 99) + 1, 100) == -1
    assert sums.compare(3, (1 << 99) - 1, 100) == 1


def test_mutant_what_floats_say_is_wrong_at_an_edge(monkeypatch):
    monkeypatch.setattr(weights, "_settle", lambda *arguments: arguments[2])
    tied, edge = np.zeros(3, dtype=np.int64), (1 << 64) // 3
    assert draw_weighted(tied, Fraction(5), GivenBits([edge + 1])) != 1


def test_far_candidates_can_still_be_chosen():
    # the second's chance is about e^-1000; a u that begins with enough ones falls to it
    ones = 2**64 - 1
    far = np.array([0, 1000])
    assert draw_weighted(far, Fraction(1), GivenBits([ones] * 24, then=ones)) == 1
    assert draw_weighted(far, Fraction(1), GivenBits([ones] * 22, then=0)) == 0
