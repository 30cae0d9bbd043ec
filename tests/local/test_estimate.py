"""Estimates from reports: unbiased, as spread as the theory says, with intervals that cover at the stated rate."""

import math

import numpy as np
import pytest
from scipy import stats

import tacit
from tacit.errors import InvalidParameter
from tacit.local.estimate import ReportLaw, _binomial
from tacit_gauntlet.stage.statistic import FALSE_ALARM, binomial_at_most


def law_of_reports(law: ReportLaw, holders: int) -> np.ndarray:
    """The exact law of the number of reports: two binomials added, by an oracle."""
    kept = stats.binom.pmf(np.arange(holders + 1), holders, law.keep)
    strayed = stats.binom.pmf(np.arange(law.people - holders + 1), law.people - holders, law.stray)
    return np.convolve(kept, strayed)


@pytest.mark.parametrize("epsilon", [0.5, 1, 4])
@pytest.mark.parametrize("holders", [0, 7, 20, 40])
def test_R2_the_estimate_is_unbiased_and_its_deviation_is_the_formulas(epsilon, holders):
    response, people = tacit.RandomizedResponse(epsilon=epsilon), 40
    law, gamma = response.report_law(people), response.gamma
    chances = law_of_reports(law, holders)
    estimates = np.array([law.unbiased(count) for count in range(people + 1)]) / people
    mean = chances @ estimates
    assert mean == pytest.approx(holders / people, abs=1e-12)
    assert chances @ np.arange(people + 1) / people == pytest.approx(2 * gamma * holders / people + 0.5 - gamma)
    deviation = math.sqrt(chances @ (estimates - mean) ** 2)
    assert deviation == pytest.approx(math.sqrt(0.25 - gamma**2) / (2 * gamma * math.sqrt(people)), rel=1e-9)


def test_R2_mutant_without_debiasing_the_mean_is_wrong():
    law = tacit.RandomizedResponse(epsilon=1).report_law(40)
    chances = law_of_reports(law, 40)
    assert chances @ np.arange(41) / 40 == pytest.approx(0.731, abs=1e-3)  # the truth is 1


def coverage(response, people: int, holders: int, confidence: float) -> float:
    law = response.report_law(people)
    ends = [law.interval(count, confidence) for count in range(people + 1)]
    covered = np.array([low <= holders <= high for low, high in ends])
    return float(law_of_reports(law, holders) @ covered)


@pytest.mark.parametrize("epsilon", [0.3, 2, 6])
@pytest.mark.parametrize("kinds", [2, 5])
def test_R2_intervals_cover_at_least_as_often_as_stated_whatever_the_truth(epsilon, kinds):
    response, people = tacit.RandomizedResponse(epsilon=epsilon, categories=range(kinds)), 60
    covers = [coverage(response, people, holders, 0.9) for holders in (0, 1, 13, 30, 59, 60)]
    assert min(covers) >= 0.9 - 1e-12


def test_R2_intervals_are_hardly_wider_than_they_need_be():
    response, people = tacit.RandomizedResponse(epsilon=1), 10_000
    estimate = response.estimate([1] * 5000 + [0] * 5000)
    assert estimate.high - estimate.low == pytest.approx(2 * response.error(people=people), rel=0.01)
    assert coverage(response, 400, 200, 0.95) < 0.97


def test_R2_mutant_an_interval_around_the_raw_mean_does_not_cover():
    law = tacit.RandomizedResponse(epsilon=1).report_law(400)
    raw = np.abs(np.arange(401) / 400 - 0.9) <= 0.05
    assert law_of_reports(law, 360) @ raw < 0.01


def test_R2_the_story_from_answers_to_estimate():
    response, truth = tacit.RandomizedResponse(epsilon=1), np.repeat([1, 0], [30_000, 70_000])
    estimate = response.estimate(response.release(truth), confidence=1 - FALSE_ALARM)
    assert estimate.low <= 0.3 <= estimate.high
    assert estimate.high - estimate.low < 0.04
    assert estimate.people == 100_000


def test_R4_counts_of_k_answers_are_unbiased_and_covered():
    response = tacit.RandomizedResponse(epsilon=2, categories=["a", "b", "c"])
    truth = np.repeat(["a", "b", "c"], [6000, 3000, 1000])
    estimate = response.estimate(response.release(truth), confidence=1 - FALSE_ALARM, simultaneous=True)
    assert all(
        low <= true <= high for low, true, high in zip(estimate.low, (6000, 3000, 1000), estimate.high, strict=True)
    )
    assert sum(estimate.values) == pytest.approx(10_000)
    assert str(estimate).startswith("a: ")
    alone = response.estimate(response.release(truth))
    assert alone.high[0] - alone.low[0] < estimate.high[0] - estimate.low[0]


def test_R4_k_intervals_cover_one_by_one_in_repeated_surveys():
    response, truth, rounds = (
        tacit.RandomizedResponse(epsilon=1, categories=range(3)),
        np.repeat([0, 1, 2], [50, 30, 20]),
        300,
    )
    estimates = [response.estimate(response.release(truth), 0.9) for _ in range(rounds)]
    covered = sum(estimate.low[1] <= 30 <= estimate.high[1] for estimate in estimates)
    assert binomial_at_most(covered, rounds, 0.9) > FALSE_ALARM


@pytest.mark.parametrize(("trials", "chance"), [(0, 0.3), (1, 0.5), (50, 0.02), (1000, 0.7), (10**6, 0.73)])
def test_binomial_masses_agree_with_an_oracle(trials, chance):
    first, masses = _binomial(trials, chance)
    places = first + np.arange(len(masses))
    assert masses == pytest.approx(stats.binom.pmf(places, trials, chance), rel=1e-7, abs=1e-18)
    assert masses.sum() == pytest.approx(1, abs=1e-12)


def test_impossible_numbers_of_reports_end_at_the_edge():
    response = tacit.RandomizedResponse(epsilon=3)
    assert response.estimate([0] * 1000).high == 0.0
    assert response.estimate([1] * 1000).low == 1.0
    assert response.estimate([0] * 1000).value < 0


@pytest.mark.parametrize("reports", [[2], [0.5], ["yes"], None, 3, [None]])
def test_R4_a_report_outside_the_domain_is_refused_with_the_rule(reports):
    with pytest.raises(InvalidParameter, match="every report must be"):
        tacit.RandomizedResponse(epsilon=1).estimate(reports)
    with pytest.raises(InvalidParameter, match="every report must be one of the categories"):
        tacit.RandomizedResponse(epsilon=1, categories=["a", "b"]).estimate(reports)


def test_no_reports_are_refused():
    with pytest.raises(InvalidParameter, match="at least one report"):
        tacit.RandomizedResponse(epsilon=1).estimate([])


@pytest.mark.parametrize("kinds", [2, 4, 5, 8, 100])
def test_reports_that_say_next_to_nothing_have_an_estimate_and_an_interval_of_everything(kinds):
    response = tacit.RandomizedResponse(epsilon="3e-16", categories=range(kinds))
    estimate = response.estimate([0, 1, 1])
    assert (min(estimate.low), max(estimate.high)) == (0, 3)
    assert response.error(people=10) > 10**14
