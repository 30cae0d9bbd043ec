"""What a lesson asks of a mechanism: its scale, its deviation, its probabilities, and the textbook sigma."""

import math
from fractions import Fraction
from itertools import product

import pytest

import tacit
from tacit.accounting.cost import delta_at
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
        textbook = tacit.Gaussian(sensitivity=3, epsilon=epsilon, delta=1e-6, textbook=True)
        wanted = math.sqrt(2 * math.log(2e6)) * 3 / float(Fraction(epsilon))
        assert float(textbook.sigma) == pytest.approx(wanted)
        assert textbook.sigma > tacit.Gaussian(sensitivity=3, epsilon=epsilon, delta=1e-6).sigma
        assert textbook.event.sigma == textbook.sigma
        assert delta_at(textbook.event, textbook.epsilon) <= textbook.delta
        assert "textbook=True" in repr(textbook)
    with pytest.raises(InvalidParameter, match="proved for epsilon up to 1"):
        tacit.Gaussian(sensitivity=1, epsilon=1.1, delta=1e-6, textbook=True)


def test_the_textbooks_noise_keeps_its_delta_for_vectors_floats_and_large_deltas():
    for epsilon, delta, size, kind in product(("1", "0.3"), (1e-6, 0.01, 0.4), (1, 2, 50), (int, float)):
        textbook = tacit.Gaussian(sensitivity=1, epsilon=epsilon, delta=delta, textbook=True)
        event = textbook.event_of(size=size, dtype=kind)
        assert delta_at(event, textbook.epsilon) <= textbook.delta
        assert (
            event.sigma
            >= tacit.Gaussian(sensitivity=1, epsilon=epsilon, delta=delta).event_of(size=size, dtype=kind).sigma
        )


def test_the_law_of_the_noise_is_drawn(tmp_path):
    for name, mechanism in {
        "laplace": tacit.Laplace(sensitivity=1, epsilon=1),
        "floats": tacit.Laplace(sensitivity=0.5, epsilon="0.1"),
        "gaussian": tacit.Gaussian(sensitivity=1, epsilon=1, delta=1e-6),
    }.items():
        written = mechanism.plot(tmp_path / f"{name}.svg")
        words = written.read_text(encoding="utf-8")
        assert type(mechanism).__name__ in words
        assert "95 % of draws are within" in words


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
