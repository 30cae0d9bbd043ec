"""How far the chosen score falls short: the stated worst case is the law's own, to the step."""

from fractions import Fraction

import pytest
from flint import arb

import tacit
from tacit.numbers import working_precision
from tacit.selection import selection
from tacit_gauntlet.stage.selection import exponential_law, noisy_max_law, permute_and_flip_law

CASES = [
    (tacit.NoisyMax, noisy_max_law, selection.noisy_max_lost),
    (tacit.Exponential, exponential_law, selection.exponential_lost),
    (tacit.PermuteAndFlip, permute_and_flip_law, selection.permute_and_flip_lost),
]


@pytest.mark.parametrize(("kind", "law", "lost"), CASES)
def test_the_worst_case_is_one_best_and_all_others_just_too_low(kind, law, lost):
    rate = kind(epsilon=1).terms.rate
    with working_precision(128):
        for count, steps in ((2, 0), (2, 3), (4, 2), (5, 6)):
            exact = 1 - law((0, *[-(steps + 1)] * (count - 1)), rate)[0]
            assert abs(lost(rate, count)(steps) - exact) < arb(10) ** -25
            for kinder in ((0, *[-(steps + 2)] * (count - 1)), (0, 0, *[-(steps + 1)] * (count - 2))):
                chances = law(kinder, rate)
                bad = sum((p for p, s in zip(chances, kinder, strict=True) if -s > steps), arb(0))
                assert bad <= exact


@pytest.mark.parametrize(("kind", "_law", "lost"), CASES)
@pytest.mark.parametrize("candidates", [2, 1000])
def test_the_error_is_the_least_that_holds(kind, _law, lost, candidates):
    mechanism = kind(epsilon=Fraction(1, 2))
    error = mechanism.error(confidence=0.9, candidates=candidates)
    with working_precision(256):
        chance = lost(mechanism.terms.rate, candidates)
        assert chance(error) <= 0.1
        assert error == 0 or chance(error - 1) > 0.1


def test_taking_terms_together_errs_on_the_safe_side(monkeypatch):
    rate = Fraction(1, 50)
    with working_precision(128):
        exact = selection.noisy_max_lost(rate, 100)(400)
        monkeypatch.setattr(selection, "BLOCKS_MOST", 100)
        rough = selection.noisy_max_lost(rate, 100)(400)
    assert exact < rough < exact * 2


def test_an_error_needs_a_confidence_and_candidates():
    for arguments in ({"confidence": 1, "candidates": 5}, {"confidence": 0, "candidates": 5}, {"candidates": 1}):
        with pytest.raises(tacit.InvalidParameter):
            tacit.NoisyMax(epsilon=1).error(**arguments)
