"""People, error, epsilon: any one from the other two, and what they promise happens."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import tacit
from tacit.errors import InvalidParameter
from tacit.local.randomized_response import epsilon_for, error_for, people_for, spread

EPSILONS = st.floats(0.05, 8)


def test_R3_the_error_is_the_normal_quantile_times_the_deviation():
    gamma = math.tanh(0.5) / 2
    deviation = math.sqrt(0.25 - gamma**2) / (2 * gamma * math.sqrt(10_000))
    assert error_for(people=10_000, epsilon=1, confidence=0.95) == pytest.approx(stats.norm.ppf(0.975) * deviation)


@given(EPSILONS, st.integers(50, 10**7), st.sampled_from([2, 3, 20]))
def test_R3_each_is_the_inverse_of_the_others(epsilon, people, categories):
    error = error_for(people=people, epsilon=epsilon, categories=categories)
    if not 0 < error < 1:
        return
    assert epsilon_for(people=people, error=error, categories=categories) == pytest.approx(epsilon, rel=1e-6)
    found = people_for(error=error, epsilon=epsilon, categories=categories)
    assert found == pytest.approx(people, rel=1e-9, abs=1)


@given(EPSILONS, st.floats(0.001, 0.2))
def test_R3_the_people_found_are_enough_and_one_fewer_is_not(epsilon, error):
    people = people_for(error=error, epsilon=epsilon)
    assert error_for(people=people, epsilon=epsilon) <= error * (1 + 1e-12)
    assert people == 1 or error_for(people=people - 1, epsilon=epsilon) > error * (1 - 1e-12)


def test_R3_four_times_the_people_halve_the_error():
    assert error_for(people=400, epsilon=1) == pytest.approx(error_for(people=100, epsilon=1) / 2)


@pytest.mark.parametrize(("people", "epsilon"), [(200, 1), (1000, 2), (2000, 0.5)])
def test_R3_the_promised_error_is_kept_as_often_as_promised(people, epsilon):
    response = tacit.RandomizedResponse(epsilon=epsilon)
    law, error = response.report_law(people), response.error(people=people, confidence=0.95)
    for holders in (0, people // 3, people):
        kept = stats.binom.pmf(np.arange(holders + 1), holders, law.keep)
        strayed = stats.binom.pmf(np.arange(people - holders + 1), people - holders, law.stray)
        estimates = np.array([law.unbiased(count) for count in range(people + 1)])
        within = np.abs(estimates - holders) <= error * people
        assert np.convolve(kept, strayed) @ within == pytest.approx(0.95, abs=0.012)


def test_R3_mutant_the_order_of_magnitude_alone_is_far_off():
    gamma = math.tanh(0.5) / 2
    assert people_for(error=0.02, epsilon=1) < 0.25 * (1 / (gamma * 0.02) ** 2)


@pytest.mark.parametrize("categories", [2, 3, 100])
def test_R3_the_spread_is_the_largest_over_all_true_fractions(categories):
    keep = math.e / (math.e + categories - 1)
    stray = (1 - keep) / (categories - 1)
    spreads = [
        math.sqrt(share * keep * (1 - keep) + (1 - share) * stray * (1 - stray)) / (keep - stray)
        for share in np.linspace(0, 1, 11)
    ]
    assert spread(1.0, categories) == pytest.approx(max(spreads))


@pytest.mark.parametrize(
    ("function", "arguments", "rule"),
    [
        (error_for, {"people": 0, "epsilon": 1}, "people must be"),
        (error_for, {"people": 10, "epsilon": 0}, "epsilon must be above 0"),
        (error_for, {"people": 10, "epsilon": 50}, "epsilon must be above 0 and below"),
        (people_for, {"error": 0, "epsilon": 1}, "error must be a fraction"),
        (people_for, {"error": 2, "epsilon": 1}, "error must be a fraction"),
        (people_for, {"error": 1e-9, "epsilon": 1e-9}, "more people than there can be"),
        (epsilon_for, {"people": 1, "error": 1e-9}, "no epsilon gives"),
        (epsilon_for, {"people": 1, "error": 1e-9, "categories": 5}, "no epsilon gives"),
        (error_for, {"people": 10, "epsilon": 1, "categories": 1}, "categories must be"),
        (error_for, {"people": 10, "epsilon": 1, "confidence": 1}, "confidence must lie"),
    ],
)
def test_R3_questions_without_an_answer_are_refused(function, arguments, rule):
    with pytest.raises(InvalidParameter, match=rule):
        function(**arguments)
