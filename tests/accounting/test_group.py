"""P3: what a promise to one unit is worth to a group of them; and P2: what several events cost together."""

import math
from fractions import Fraction

import pytest

from tacit.accounting.convert import for_group
from tacit.errors import InvalidParameter
from tacit.privacy.loss import ApproximateLoss, epsilon, renyi, rho
from tests.accounting import oracle

MILLIONTH = Fraction(1, 10**6)


def test_P3_a_group_of_k_loses_k_epsilon() -> None:
    assert for_group(epsilon(0.1), 5) == epsilon(0.5)
    assert for_group(rho(0.1), 3) == rho(0.9)
    assert for_group(epsilon(1, delta=1e-6), 1) == epsilon(1, delta=1e-6)


def test_P3_a_groups_delta_grows_with_e_to_the_k_epsilon() -> None:
    loss = for_group(epsilon(0.5, delta=1e-6), 4)
    assert isinstance(loss, ApproximateLoss)
    assert loss.epsilon == 2
    formula = 1e-6 * (math.exp(2) - 1) / (math.exp(0.5) - 1)
    assert float(loss.delta) == pytest.approx(formula)
    chain = sum(oracle.mpmath.exp(oracle.mpmath.mpf(i) / 2) for i in range(4)) / 10**6
    assert oracle.real(loss.delta) >= chain  # rounded up


def test_P3_a_real_release_stays_inside_its_groups_promise_and_the_naive_k_delta_does_not() -> None:
    """Discrete Gaussian: the delta of a move by k steps at k·epsilon, against delta for one step at epsilon."""
    sigma, one = Fraction(3), Fraction(1, 2)
    delta = oracle.gaussian_delta(sigma, 1, one)
    promise = for_group(ApproximateLoss(one, Fraction(str(delta))), 2)
    assert isinstance(promise, ApproximateLoss)
    assert oracle.gaussian_delta(sigma, 2, promise.epsilon) <= oracle.real(promise.delta)
    # a release that leaks each unit's own bit with chance delta, twice: the mutant without e^(k epsilon) has no room
    worst = _worst_chain(float(one), float(delta), units=3)
    promise = for_group(ApproximateLoss(one, Fraction(str(delta))), 3)
    assert isinstance(promise, ApproximateLoss)
    assert worst <= float(promise.delta) * (1 + 1e-12)
    assert worst > 3 * float(delta)


def _worst_chain(one: float, delta: float, units: int) -> float:
    """Return the delta at units·one of the pair whose trade-off repeats the (one, delta) step `units` times."""
    chance = 0.0  # Pr[S] at distance 0; each step maps p to min(1, e^one·p + delta)
    for _ in range(units):
        chance = min(1.0, math.exp(one) * chance + delta)
    return chance


def test_P3_where_nothing_is_left_to_promise_delta_is_one() -> None:
    loss = for_group(epsilon(1, delta=1e-6), 40)
    assert loss == ApproximateLoss(Fraction(40), Fraction(1))
    assert for_group(epsilon("1e6", delta=1e-6), 10**6) == ApproximateLoss(Fraction(10**12), Fraction(1))


def test_P3_a_group_loss_is_refused_where_none_is_proved() -> None:
    for loss in (rho(1, delta=1e-6), renyi([(2, 1)])):
        with pytest.raises(InvalidParameter, match="hint: convert"):
            for_group(loss, 2)
    for units in (0, -1, 1.5, True):
        with pytest.raises(InvalidParameter, match="units"):
            for_group(epsilon(1), units)  # type: ignore[arg-type]
