"""Scores become whole steps of a public grid without error, whatever they hold."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.selection.scores import HIGHEST, read_scores, read_terms

NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)
STEPS = st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(1, 10), Fraction(3, 7), Fraction(1, 1000)])


def test_whole_numbers_of_every_kind_are_taken_as_they_are():
    for scores in ([3, -1, 2], (3, -1, 2), np.array([3, -1, 2], dtype=np.int8), np.array([3, -1, 2], dtype=object)):
        assert read_scores(scores, None, least=2).tolist() == [3, -1, 2]
    assert read_scores(np.array([3, 200], dtype=np.uint8), None, least=2).tolist() == [3, 200]


def test_no_whole_number_is_too_large():
    assert read_scores([10**30, -(10**30), 1], None, least=2).tolist() == [HIGHEST, -HIGHEST, 1]
    assert read_scores(np.array([2**64 - 1, 5], dtype=np.uint64), None, least=2).tolist() == [HIGHEST, 5]
    assert read_scores(np.array([-(2**63), 5]), None, least=2).tolist() == [-HIGHEST, 5]
    assert tacit.NoisyMax(epsilon=1).release([10**30, 0]) == 0
    assert tacit.Exponential(epsilon=1).release([-(10**30), 10**30]) == 1


@pytest.mark.parametrize("as_list", [True, False])
def test_no_float_is_refused_for_what_it_holds(as_list):
    floats = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, 0.25])
    steps = read_scores(floats.tolist() if as_list else floats, Fraction(1, 2), least=2)
    assert steps.tolist() == [-HIGHEST, HIGHEST, -HIGHEST, HIGHEST, -HIGHEST, 0, 0, 1]
    assert tacit.PermuteAndFlip(epsilon=10, step=1).release([np.nan, 1000.0, -np.inf]) == 1


@given(st.lists(NUMBERS, min_size=2, max_size=20), STEPS)
def test_the_quick_rounding_is_the_exact_one(values, step):
    exact = [(2 * Fraction(value) / step + 1) // 2 for value in values]
    assert read_scores(np.array(values), step, least=2).tolist() == exact


@given(NUMBERS, st.floats(0, 100), STEPS)
def test_rounding_never_moves_a_score_farther_than_the_terms_say(value, move, step):
    moved = value + move
    sensitivity = Fraction(moved) - Fraction(value)
    if sensitivity == 0:
        return
    terms = read_terms(epsilon=1, sensitivity=sensitivity, monotone=True, step=step)
    before, after = read_scores([value, moved], step, least=2).tolist()
    assert 0 <= after - before <= terms.moves  # and never the other way


def test_mutant_a_sensitivity_without_rounding_is_too_small():
    before, after = read_scores([0.4, 0.6], Fraction(1), least=2).tolist()
    assert after - before == 1 > Fraction("0.2")


@pytest.mark.parametrize("half", [0.49999999999999994, 4503599627370495.5, 0.5, -0.5])
def test_halves_go_up_and_what_is_just_below_them_down(half):
    assert read_scores([half, 0.0], Fraction(1), least=2)[0] == (2 * Fraction(half) + 1) // 2


def test_a_grid_makes_floats_comparable():
    assert tacit.NoisyMax(epsilon=1, sensitivity="0.5", step="0.5").terms.moves == 1
    assert tacit.NoisyMax(epsilon=1, sensitivity=0.1, step="0.01").terms.moves == 11  # the float 0.1 is above 1/10
    assert tacit.NoisyMax(epsilon=1, sensitivity="0.1", step="0.01").terms.moves == 10
    assert tacit.NoisyMax(epsilon=1, step=0.01).release([1.5, 900.25, 3]) == 1
    whole_error, fine_error = (
        tacit.NoisyMax(epsilon=1).error(candidates=9),
        tacit.NoisyMax(epsilon=1, step=0.01).error(candidates=9),
    )
    assert fine_error == pytest.approx(whole_error, abs=0.6)
