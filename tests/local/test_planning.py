"""People and error: one from the other, by the exact law, and what they promise happens."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import tacit
from tacit.errors import InvalidParameter


def missed(response, people: int, holders: int, error: float) -> float:
    """The exact chance that the estimated share is farther off than the error, by an oracle."""
    law = response.report_law(people)
    kept = stats.binom.pmf(np.arange(holders + 1), holders, law.keep)
    strayed = stats.binom.pmf(np.arange(people - holders + 1), people - holders, law.stray)
    estimates = np.array([law.unbiased(count) for count in range(people + 1)])
    return float(np.convolve(kept, strayed) @ (np.abs(estimates - holders) > error * people * (1 + 1e-12)))


@pytest.mark.parametrize(("people", "epsilon"), [(30, 1), (200, 1), (1000, 2), (2000, 0.5)])
def test_R3_the_promised_error_is_kept_as_often_as_promised_and_two_reports_less_is_not(people, epsilon):
    response = tacit.RandomizedResponse(epsilon=epsilon)
    error, law = response.error(people=people), response.report_law(people)
    assert missed(response, people, people // 2, error) <= 0.05
    assert missed(response, people, people // 2, error - 2 / (people * (law.keep - law.stray))) > 0.05
    for holders in (0, people // 3, people):  # where the reports' law has another shape, the chance is about the same
        assert missed(response, people, holders, error) == pytest.approx(0.05, abs=0.03)


@pytest.mark.parametrize("kinds", [3, 20])
def test_R3_of_more_answers_the_error_holds_where_reports_vary_most(kinds):
    response, people = tacit.RandomizedResponse(epsilon=1, categories=range(kinds)), 500
    error = response.error(people=people)
    assert max(missed(response, people, holders, error) for holders in (0, 100, 250, 400, 500)) <= 0.06


@settings(max_examples=15)
@given(st.floats(0.2, 5), st.floats(0.02, 0.2))
def test_R3_the_people_found_are_enough_and_one_fewer_is_not(epsilon, error):
    response = tacit.RandomizedResponse(epsilon=epsilon)
    people = response.people(error=error)
    assert response.error(people=people) <= error
    assert people == 1 or response.error(people=people - 1) > error


@pytest.mark.parametrize(("error", "epsilon"), [(0.02, 1), (0.05, 0.5), (0.01, 3)])
def test_R3_people_and_error_are_those_of_the_tradeoff(error, epsilon):
    response = tacit.RandomizedResponse(epsilon=epsilon)
    row = tacit.tradeoff("fraction", error=error, epsilon=epsilon).row("local randomized response")
    assert response.people(error=error) == row.people
    row = tacit.tradeoff("fraction", people=1234, epsilon=epsilon).row("local randomized response")
    assert response.error(people=1234) == row.error


def test_R3_the_error_is_near_the_normal_rule_for_many_people():
    gamma = math.tanh(0.5) / 2
    deviation = math.sqrt(0.25 - gamma**2) / (2 * gamma * math.sqrt(10**6))
    error = tacit.RandomizedResponse(epsilon=1).error(people=10**6)
    assert error == pytest.approx(stats.norm.ppf(0.975) * deviation, rel=1e-3)


def test_R3_mutant_the_order_of_magnitude_alone_is_far_off():
    gamma = math.tanh(0.5) / 2
    assert tacit.RandomizedResponse(epsilon=1).people(error=0.02) < 0.25 * (1 / (gamma * 0.02) ** 2)


@pytest.mark.parametrize(
    ("method", "epsilon", "arguments", "rule"),
    [
        ("error", 1, {"people": 0}, "people must be"),
        ("error", 1, {"people": 10, "confidence": 1}, "confidence must lie"),
        ("people", 1, {"error": 0}, "error must be a fraction"),
        ("people", 1, {"error": 2}, "error must be a fraction"),
        ("people", 1e-9, {"error": 1e-9}, "more than 10,000,000,000 people"),
    ],
)
def test_R3_questions_without_an_answer_are_refused(method, epsilon, arguments, rule):
    with pytest.raises(InvalidParameter, match=rule):
        getattr(tacit.RandomizedResponse(epsilon=epsilon), method)(**arguments)
