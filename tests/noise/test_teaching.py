"""What a lesson asks of a mechanism: its scale, its deviation, its probabilities, and the textbook sigma."""

import math
from fractions import Fraction

import pytest

import tacit
from tacit.errors import InvalidParameter


def test_the_scale_and_the_deviation_are_those_of_the_noise():
    laplace, gaussian = tacit.Laplace(sensitivity=2, epsilon=1), tacit.Gaussian(sensitivity=1, epsilon=1, delta=1e-6)
    assert laplace.scale == laplace.event.scale == 2
    assert gaussian.sigma == gaussian.event.sigma
    p = math.exp(-1 / 2)
    assert laplace.std == pytest.approx(math.sqrt(2 * p) / (1 - p))
    assert gaussian.std == pytest.approx(float(gaussian.sigma), rel=1e-6)


def test_probabilities_are_the_laws():
    found = tacit.Laplace(sensitivity=1, epsilon=1).probabilities(40)
    assert sum(found.values()) == pytest.approx(1)
    assert found[1] / found[2] == pytest.approx(math.e)
    assert tacit.Gaussian(sensitivity=1, epsilon=1, delta=1e-6).probabilities(2)[2] < 0.1


def test_the_textbooks_sigma_is_looser_and_refused_above_one():
    for epsilon in ("1", "0.5", "0.01"):
        gaussian = tacit.Gaussian(sensitivity=3, epsilon=epsilon, delta=1e-6)
        wanted = math.sqrt(2 * math.log(2e6)) * 3 / float(Fraction(epsilon))
        assert float(gaussian.textbook_sigma) == pytest.approx(wanted)
        assert gaussian.textbook_sigma > gaussian.sigma
    with pytest.raises(InvalidParameter, match="proved for epsilon up to 1"):
        _ = tacit.Gaussian(sensitivity=1, epsilon=1.1, delta=1e-6).textbook_sigma


def test_randomized_response_takes_how_often_a_person_tells_the_truth():
    assert tacit.RandomizedResponse(truth=0.75).epsilon == tacit.RandomizedResponse(gamma=0.25).epsilon
    for words in ({}, {"truth": 0.75, "epsilon": 1}, {"truth": 0.5}, {"truth": 1}):
        with pytest.raises(InvalidParameter):
            tacit.RandomizedResponse(**words)


@pytest.mark.parametrize("mechanism", [tacit.NoisyMax, tacit.Exponential, tacit.PermuteAndFlip])
def test_a_choice_among_named_candidates_is_a_name(mechanism):
    chosen = mechanism(sensitivity=1, epsilon=1).release({"Anna": 0, "Berta": 1000, "Clara": 10})
    assert chosen == "Berta"  # a gap of 990 is lost less than once in 10^100
    assert mechanism(sensitivity=1, epsilon=1).terms.monotone is False  # safe unless one says otherwise
