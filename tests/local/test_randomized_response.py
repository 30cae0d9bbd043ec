"""Randomized response: each report's exact law, the domain in and out, and what is refused."""

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from flint import arb

import tacit
from tacit.errors import InvalidParameter
from tacit.numbers import ball, certainly_less, working_precision
from tacit.privacy.loss import PureChoice
from tacit_gauntlet.stage.local import wrong_reports
from tacit_gauntlet.stage.statistic import FALSE_ALARM, chi_square_fit


def test_R1_a_bit_is_kept_with_chance_half_plus_gamma_and_gamma_is_half_the_tangent():
    response = tacit.RandomizedResponse(epsilon=1)
    assert response.gamma == pytest.approx(math.tanh(0.5) / 2, rel=1e-15)
    assert response.keep == pytest.approx(0.5 + response.gamma, rel=1e-15)
    assert math.log((0.5 + response.gamma) / (0.5 - response.gamma)) == pytest.approx(1, rel=1e-14)


def test_R1_gamma_says_the_same_and_its_loss_is_rounded_up():
    response = tacit.RandomizedResponse(gamma=0.25)
    assert response.keep == 0.75
    with working_precision(256):
        assert ball(response.loss.epsilon) >= arb(3).log()
        assert ball(response.loss.epsilon) < arb(3).log() + arb(10) ** -15


@pytest.mark.parametrize("bit", [0, 1])
@pytest.mark.parametrize("kinds", [2, 3, 5])
def test_R1_an_answer_is_kept_on_exactly_the_words_below_its_chance(bit, kinds):
    epsilon = Fraction(1, 2)
    response = tacit.RandomizedResponse(epsilon=epsilon, categories=range(kinds)).survey.protocol
    assert not wrong_reports(response, bit, kinds, epsilon)


def test_R1_mutant_a_chance_one_part_in_a_thousand_too_high_is_noticed():
    response = tacit.RandomizedResponse(gamma="0.123").survey.protocol
    assert wrong_reports(response, 1, 2, Fraction(1, 2))  # gamma 0.12246


def test_R1_the_loss_of_the_law_that_is_drawn_is_at_most_the_loss_stated():
    for given in ({"gamma": "1/4"}, {"gamma": "0.4999"}, {"epsilon": "0.3"}, {"epsilon": 5, "categories": range(9)}):
        response = tacit.RandomizedResponse(**given)
        law = response.survey.protocol
        assert certainly_less(lambda law=law: ball(law.keep / law.stray).log(), lambda r=response: ball(r.epsilon))


def test_a_front_draws_by_the_protocol_that_a_survey_of_the_same_answers_uses():
    front = tacit.RandomizedResponse(epsilon=2, categories=["a", "b", "c"])
    assert front.survey.protocol == tacit.local.make_survey(["a", "b", "c"], epsilon=2, protocol="response").protocol


@pytest.mark.parametrize("kinds", [2, 3, 5])
def test_R4_reports_of_k_answers_follow_their_law(kinds):
    response, people = tacit.RandomizedResponse(epsilon=1, categories=range(kinds)), 50_000
    seen = np.bincount(response.release(np.full(people, 1)), minlength=kinds)
    keep = math.e / (math.e + kinds - 1)
    expected = [people * (keep if code == 1 else (1 - keep) / (kinds - 1)) for code in range(kinds)]
    assert response.keep == pytest.approx(keep, rel=1e-14)
    assert chi_square_fit(seen.tolist(), expected) > FALSE_ALARM


def test_one_report_costs_epsilon():
    response = tacit.RandomizedResponse(epsilon="0.3")
    assert response.loss == tacit.epsilon("0.3")
    assert response.event == PureChoice(Fraction(3, 10))


def test_bits_come_back_in_the_form_they_came():
    response = tacit.RandomizedResponse(epsilon=1)
    assert all(type(response.release(bit)) is int for bit in (0, 1, True, np.int8(1), np.bool_(False)))
    for answers in ([0, 1, 1], (True, False, True), np.array([0, 1, 1], dtype=np.uint8), pd.Series([0, 1, 1])):
        reports = response.release(answers)
        assert reports.dtype == np.int64
        assert set(reports.tolist()) <= {0, 1}
    assert response.release(np.zeros((2, 3), dtype=int)).shape == (2, 3)
    assert response.release([]).shape == (0,)


def test_categories_come_back_as_themselves():
    colours = tacit.RandomizedResponse(epsilon=20, categories=["red", "green", "blue"])
    assert colours.release("green") == "green"
    assert colours.release(["red", "blue"]).tolist() == ["red", "blue"]
    assert colours.release(np.array([["red"], ["blue"]])).tolist() == [["red"], ["blue"]]
    assert colours.release(pd.Series(["red", "blue"])).tolist() == ["red", "blue"]
    mixed = tacit.RandomizedResponse(epsilon=20, categories=[(1, 2), "x", None])
    assert mixed.release((1, 2)) == (1, 2)
    assert mixed.release([None, "x"]).tolist() == [None, "x"]
    years = tacit.RandomizedResponse(epsilon=20, categories=[1990, 1980])
    assert years.release(np.array([1980, 1990])).tolist() == [1980, 1990]


@pytest.mark.parametrize(
    "answer", [2, -1, 0.0, "1", None, [0, 2], [0.0, 1.0], np.array([0.5]), 10**30, [10**30], ["0"]]
)
def test_R4_an_answer_outside_the_domain_is_refused_and_not_quoted(answer):
    with pytest.raises(InvalidParameter, match=r"every answer must be (0 or 1|one of)") as refused:
        tacit.RandomizedResponse(epsilon=1).release(answer)
    assert "10000" not in str(refused.value)
    with pytest.raises(InvalidParameter, match="every answer must be one of the categories"):
        tacit.RandomizedResponse(epsilon=1, categories=["a", "b"]).release(answer)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"gamma": 0.5}, "gives no protection"),
        ({"gamma": 0}, "no information"),
        ({"gamma": -0.1}, "above 0 and below 1/2"),
        ({"epsilon": 40}, "gives no protection"),
        ({"epsilon": "1e-17"}, "no information"),
        ({"epsilon": 40, "categories": range(5)}, "gives no protection"),
        ({"epsilon": "1e-17", "categories": range(5)}, "no information"),
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"epsilon": float("inf")}, "finite"),
        ({}, "one of epsilon, gamma and truth"),
        ({"epsilon": 1, "gamma": 0.1}, "one of epsilon, gamma and truth"),
        ({"gamma": 0.1, "categories": ["a", "b"]}, "gamma is defined for answers of 0 or 1"),
        ({"epsilon": 1, "categories": ["a"]}, "at least two"),
        ({"epsilon": 1, "categories": ["a", "a"]}, "differ"),
        ({"epsilon": 1, "categories": "ab"}, "must be a list"),
        ({"epsilon": 1, "categories": [[1], [2]]}, "plain values"),
    ],
)
def test_R4_no_privacy_no_use_and_no_domain_are_refused_with_a_reason(arguments, reason):
    with pytest.raises(InvalidParameter, match=reason):
        tacit.RandomizedResponse(**arguments)


def test_it_says_what_it_does():
    words = tacit.RandomizedResponse(epsilon=11, categories=range(4)).explain()
    assert "4 answers: ε = 11" in words
    assert "1,000 people" in words
    assert "Warning" in words
    with pytest.raises(InvalidParameter, match="gamma is defined for two answers"):
        _ = tacit.RandomizedResponse(epsilon=1, categories=range(4)).gamma
