"""The noise of many sampled rounds, and what it is charged (docs/proofs/sampled-rounds.md)."""

from fractions import Fraction

import pytest

from tacit.accounting import charge_of, covers, sampled_rounds
from tacit.accounting.composition import compose
from tacit.accounting.cost import noise_delta, zcdp
from tacit.accounting.sampled import MARGIN
from tacit.errors import InvalidParameter
from tacit.privacy import ApproximateLoss, SubsampledGaussian, event_from_dict, event_to_dict

STEP = 2**30
LOSS = ApproximateLoss(Fraction(2), Fraction(1, 10**6))
ROUNDS = 60


@pytest.fixture(scope="module")
def events():
    return sampled_rounds(LOSS, Fraction(1, 16), ROUNDS, STEP)


def test_the_noise_is_within_the_loss_and_less_is_not(events):
    count, event = events
    goal = LOSS.delta * (1 - MARGIN)
    assert noise_delta(events, LOSS.epsilon) <= goal
    less = SubsampledGaussian(event.sigma * Fraction(99, 100), event.sensitivity_squared, event.rate, event.rounds)
    assert noise_delta((count, less), LOSS.epsilon) > goal


def test_it_is_charged_within_a_tenth_of_its_numerical_epsilon(events):
    count, event = events
    one = SubsampledGaussian(event.sigma, event.sensitivity_squared, event.rate)
    numerical = compose({count: 1, one: ROUNDS}, delta=LOSS.delta).loss
    charged = charge_of(events, asked=LOSS)
    assert charged.delta_noise == charge_of((), asked=LOSS).delta_noise or charged.delta_noise >= LOSS.delta
    assert numerical.epsilon <= LOSS.epsilon <= numerical.epsilon * Fraction(110, 100)


def test_rounds_cost_as_that_many_events_do(events):
    count, event = events
    one = SubsampledGaussian(event.sigma, event.sensitivity_squared, event.rate)
    assert compose({event: 1}, delta=1e-6).loss == compose({one: ROUNDS}, delta=1e-6).loss
    assert zcdp(event).rho == ROUNDS * zcdp(one).rho
    charged = charge_of(events, asked=LOSS)
    assert covers(charged, events)
    more = SubsampledGaussian(event.sigma, event.sensitivity_squared, event.rate, event.rounds + 3)
    assert not covers(charged, (count, more))


def test_one_round_is_stored_as_before_and_several_with_their_number(events):
    _, event = events
    one = SubsampledGaussian(event.sigma, event.sensitivity_squared, event.rate)
    assert "rounds" not in event_to_dict(one)
    assert event_to_dict(event)["rounds"] == str(ROUNDS)
    assert [event_from_dict(event_to_dict(each)) for each in (one, event)] == [one, event]
    with pytest.raises(InvalidParameter, match="damaged"):
        event_from_dict({**event_to_dict(event), "rounds": "3/2"})


@pytest.mark.parametrize(("rate", "rounds"), [(Fraction(0), 1), (Fraction(2), 1), (Fraction(1, 2), 0)])
def test_what_is_no_run_is_refused(rate, rounds):
    with pytest.raises(InvalidParameter):
        sampled_rounds(LOSS, rate, rounds, STEP)
