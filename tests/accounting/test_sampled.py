"""What noise on a sample is charged: never less than what it shows, in either arm of the filter."""

import math
from fractions import Fraction

import mpmath
import pytest

from tacit.accounting import cost
from tacit.accounting.composition import compose
from tacit.accounting.convert import zcdp_to_delta
from tacit.accounting.filter import charge_of, covers, rule_of
from tacit.errors import InvalidParameter
from tacit.privacy.loss import (
    ApproximateLoss,
    FailureChance,
    GaussianNoise,
    KeyThreshold,
    PureChoice,
    SubsampledGaussian,
)

BUDGET = ApproximateLoss(Fraction(1), Fraction(1, 10**4))
CASES = [(Fraction(1, 2), Fraction(1, 10), 1), (Fraction(2), Fraction(1, 20), 1), (Fraction(2), Fraction(1, 4), 2)]


def truth(sigma: Fraction, rate: Fraction, times: int, epsilon: Fraction) -> mpmath.mpf:
    """Return the larger delta of removing and adding a unit, by enumerating all outcomes of `times` samples of a count.

    Without the unit an answer is discrete Gaussian noise; with it, it is moved by one with chance `rate`.
    """
    with mpmath.workdps(60):
        spread, chance, factor = (mpmath.mpf(n.numerator) / n.denominator for n in (sigma, rate, epsilon))
        reach, factor = math.ceil(16 * sigma), mpmath.exp(factor)
        weights = {x: mpmath.exp(-(x**2) / (2 * spread**2)) for x in range(-reach, reach + 1)}
        total = mpmath.fsum(weights.values())
        without = {x: weights.get(x, 0) / total for x in range(-reach, reach + 2)}
        with_it = {x: (1 - chance) * p + chance * without.get(x - 1, 0) for x, p in without.items()}
        pairs = [(mpmath.mpf(1), mpmath.mpf(1))]
        for _ in range(times):
            pairs = [(p * with_it[x], q * without[x]) for p, q in pairs for x in without]
        removing = mpmath.fsum(max(0, p - factor * q) for p, q in pairs)
        return max(removing, mpmath.fsum(max(0, q - factor * p) for p, q in pairs))


def above(claimed: Fraction, shown: mpmath.mpf) -> bool:
    with mpmath.workdps(60):
        return bool(mpmath.mpf(claimed.numerator) / claimed.denominator >= shown)


def event_of(sigma: Fraction, rate: Fraction) -> SubsampledGaussian:
    return SubsampledGaussian(sigma, Fraction(1), rate)


@pytest.mark.parametrize(("sigma", "rate", "times"), CASES)
@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(3)])
def test_the_delta_that_is_charged_is_at_least_the_true_one(sigma, rate, times, epsilon):
    event = event_of(sigma, rate)
    shown = truth(sigma, rate, times, epsilon)
    assert above(cost.noise_delta((event,) * times, epsilon), shown)
    if times == 1:
        assert above(cost.delta_at(event, epsilon), shown)
        assert float(cost.delta_at(event, epsilon)) == pytest.approx(float(shown), rel=1e-9)
    # the mutants: an epsilon that the rate divides, and a rho that its square lowers, claim less than is shown
    noise = GaussianNoise(sigma, Fraction(1))
    by_rate = rate * cost.delta_at(noise, epsilon / rate)
    by_square = zcdp_to_delta(times * rate**2 * cost.zcdp(noise).rho, epsilon)
    assert not above(min(by_rate, by_square), shown)


@pytest.mark.parametrize(("sigma", "rate", "times"), CASES)
def test_what_the_rule_admits_keeps_the_promise(sigma, rate, times):
    """Of these three one is admitted, by addition; one breaks the promise; one is refused though it would keep it."""
    rule, event = rule_of(BUDGET), event_of(sigma, rate)
    shown = truth(sigma, rate, times, BUDGET.epsilon)
    by_rho = charge_of([event] * times)
    asked = charge_of([event] * times, asked=ApproximateLoss(Fraction(1), Fraction(0)))
    admitted = rule.admits(by_rho) or rule.admits(asked)
    assert admitted == (sigma == 2 and times == 1)
    assert above(BUDGET.delta, shown) == (sigma == 2)


def test_sampling_lowers_no_rho():
    event, noise = event_of(Fraction(2), Fraction(1, 100)), GaussianNoise(Fraction(2), Fraction(1))
    assert cost.zcdp(event) == cost.zcdp(noise)
    assert cost.pure_epsilon(event) is None
    # at large orders the divergence per order comes as near to the whole rho as one likes
    order = Fraction(1025)
    assert cost.renyi(event, [order]).curve[0][1] / order > cost.zcdp(noise).rho * Fraction(9, 10)


def test_many_samples_are_charged_far_less_than_without_sampling():
    steps, asked = 200, ApproximateLoss(Fraction(1, 10), Fraction(0))
    sampled = charge_of([SubsampledGaussian(Fraction(2), Fraction(1), Fraction(1, 200))] * steps, asked=asked)
    whole = charge_of([GaussianNoise(Fraction(2), Fraction(1))] * steps, asked=asked)
    assert whole.delta_noise > Fraction(99, 100)
    assert sampled.delta_noise < Fraction(1, 10**2)
    numerical = compose(
        {SubsampledGaussian(Fraction(2 * 2**20), Fraction(2**40), Fraction(1, 200)): steps}, epsilon=0.1
    ).loss
    assert numerical.delta < sampled.delta_noise < 10 * numerical.delta


def test_samples_beside_other_noise_are_charged_together():
    sampled, pure = event_of(Fraction(4), Fraction(1, 50)), PureChoice(Fraction(1, 10))
    alone = cost.noise_delta((sampled,), Fraction(1, 2))
    together = cost.noise_delta((sampled, pure), Fraction(1, 2))
    assert alone < together < 1


def test_a_charge_of_samples_covers_them_and_no_smaller_one_does():
    events = [event_of(Fraction(3), Fraction(1, 20))] * 10
    charged = charge_of(events, asked=ApproximateLoss(Fraction(1), Fraction(0)))
    assert covers(charged, events)
    assert not covers(charged, events + events)


def test_a_rate_too_small_to_be_told_from_one_still_costs_something():
    event = event_of(Fraction(1), Fraction(1, 10**30))
    ((_, divergence),) = cost.renyi(event, [Fraction(2)]).curve
    assert float(divergence) == pytest.approx(1e-60 * math.expm1(1), rel=1e-9)


@pytest.mark.parametrize("delta", [Fraction(1, 10**3), Fraction(1, 10**6)])
def test_the_epsilon_at_a_delta_is_where_the_delta_is(delta):
    event = event_of(Fraction(2), Fraction(1, 20))
    epsilon = cost.epsilon_at(event, delta)
    assert cost.delta_at(event, epsilon) <= delta * (1 + Fraction(1, 10**9))
    assert cost.delta_at(event, epsilon * Fraction(999, 1000)) > delta
    assert cost.epsilon_at(event, Fraction(1, 20)) == 0


@pytest.mark.parametrize("rate", [Fraction(0), Fraction(3, 2)])
def test_a_rate_that_is_no_chance_is_not_charged(rate):
    with pytest.raises(InvalidParameter, match="rate must be above 0"):
        charge_of([event_of(Fraction(1), rate)])


def test_a_failing_promise_costs_what_a_failing_threshold_does():
    delta = Fraction(1, 10**7)
    promise, threshold = ([PureChoice(Fraction(1, 4)), kind(delta)] for kind in (FailureChance, KeyThreshold))
    assert charge_of(promise) == charge_of(threshold)
    assert compose(promise, delta=1e-6).loss == compose(threshold, delta=1e-6).loss
    for kind, word in ((FailureChance, "promise"), (KeyThreshold, "threshold")):
        assert cost.epsilon_at(kind(delta), delta) == 0
        with pytest.raises(InvalidParameter, match=f"this {word} fails"):
            cost.epsilon_at(kind(delta), delta / 2)
