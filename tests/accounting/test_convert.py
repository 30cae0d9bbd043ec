"""Conversions are upper bounds, rounded up, and as tight as the best known."""

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.accounting import convert
from tacit.errors import InvalidParameter
from tacit.numbers import downward
from tacit.privacy.loss import ApproximateLoss, PureLoss, RenyiLoss, ZcdpLoss, epsilon, renyi, rho
from tests.accounting.oracle import real

MILLIONTH = Fraction(1, 10**6)
RHOS = [Fraction(1, 10**8), Fraction(1, 200), Fraction(1, 3), Fraction(5), Fraction(300)]


def delta_by_scan(rho: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """Return the least exp((a-1)(a rho - epsilon))/(a-1)·(1 - 1/a)^a over a fine scan of orders a, then refined."""

    def log_delta(log_b: mpmath.mpf) -> mpmath.mpf:
        a = 1 + mpmath.exp(log_b)
        return (a - 1) * (a * real(rho) - real(epsilon)) - mpmath.log(a - 1) + a * mpmath.log(1 - 1 / a)

    points = [mpmath.mpf(i) / 4 for i in range(-60, 100)]
    best = min(points, key=log_delta)
    low, high = best - mpmath.mpf(1) / 4, best + mpmath.mpf(1) / 4
    for _ in range(60):  # the logarithm is convex in the order
        third = (high - low) / 3
        low, high = (low, high - third) if log_delta(low + third) < log_delta(high - third) else (low + third, high)
    return min(mpmath.mpf(1), mpmath.exp(log_delta((low + high) / 2)))


@pytest.mark.parametrize("value", RHOS, ids=str)
@pytest.mark.parametrize("at", [Fraction(1, 10), Fraction(1), Fraction(8), Fraction(400)], ids=str)
def test_G3_zcdp_to_delta_is_the_infimum_over_all_orders_rounded_up(value: Fraction, at: Fraction) -> None:
    true = delta_by_scan(value, at)
    claimed = real(convert.zcdp_to_delta(value, at))
    if true > mpmath.mpf(10) ** -600:
        assert true * (1 - mpmath.mpf(10) ** -20) <= claimed <= true * (1 + mpmath.mpf(10) ** -9)


@settings(max_examples=60)
@given(
    st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=1000),
    st.integers(1, 40).map(lambda digits: Fraction(1, 10**digits)),
)
def test_zcdp_conversions_agree_in_every_direction(value: Fraction, delta: Fraction) -> None:
    at = convert.zcdp_to_epsilon(value, delta)
    assert convert.zcdp_to_delta(value, at) <= delta * (1 + Fraction(1, 10**9))
    if at > 0:
        back = convert.rho_within(at, delta)
        assert convert.zcdp_to_epsilon(back, delta) <= at
        assert convert.zcdp_to_delta(back, at) <= delta
        assert value * (1 - Fraction(1, 10**8)) <= back <= value * (1 + Fraction(1, 10**9))


def test_the_conversion_beats_the_textbook_one() -> None:
    for value in RHOS:
        textbook = float(value) + 2 * math.sqrt(float(value) * math.log(1e6))
        assert float(convert.zcdp_to_epsilon(value, MILLIONTH)) < textbook


def test_pure_to_zcdp_is_at_most_both_textbook_bounds_and_meets_randomized_response() -> None:
    for value in (Fraction(1, 100), Fraction(1), Fraction(3), Fraction(50)):
        converted = convert.pure_to_zcdp(value)
        assert converted < value**2 / 2
        assert converted <= value
        # the relative entropy of randomized response, which no bound may go below
        assert real(converted) >= real(value) * mpmath.tanh(real(value) / 2)


def test_a_mutant_that_rounds_down_falls_below_the_true_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    true = mpmath.tanh(mpmath.mpf(1) / 2)
    assert real(convert.pure_to_zcdp(Fraction(1))) >= true
    monkeypatch.setattr(convert, "upward", downward)
    assert real(convert.pure_to_zcdp(Fraction(1))) < true


def test_a_mutant_that_reads_order_a_at_rho_times_a_minus_one_promises_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A Gaussian of that rho really shows more than the mutant's delta."""
    value, at = Fraction(5), Fraction(8)
    move = math.sqrt(2 * float(value))
    shows = 0.5 * math.erfc((8 / move - move / 2) / math.sqrt(2))
    shows -= math.exp(8) * 0.5 * math.erfc((8 / move + move / 2) / math.sqrt(2))
    assert float(convert.zcdp_to_delta(value, at)) > shows
    right = convert._delta_at_order
    monkeypatch.setattr(convert, "_delta_at_order", lambda b, paid, at: right(b, paid * b / (1 + b), at))
    assert float(convert.zcdp_to_delta(value, at)) < shows


def test_renyi_conversions_take_the_best_order_listed() -> None:
    curve = renyi([(order, order * Fraction(1, 50)) for order in (2, 8, 24, 60)])
    single = [convert.renyi_to_epsilon(RenyiLoss((point,)), MILLIONTH) for point in curve.curve]
    assert convert.renyi_to_epsilon(curve, MILLIONTH) == min(single)
    assert convert.zcdp_to_epsilon(Fraction(1, 50), MILLIONTH) <= min(single)
    at = convert.renyi_to_epsilon(curve, MILLIONTH)
    assert convert.renyi_to_delta(curve, at) <= MILLIONTH * (1 + Fraction(1, 10**9))
    assert convert.renyi_to_delta(RenyiLoss(curve.curve, MILLIONTH), at) > MILLIONTH


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1), Fraction(3, 2)])
def test_a_conversion_needs_a_delta_that_is_a_chance(delta: Fraction) -> None:
    for convert_at in (convert.zcdp_to_epsilon, convert.rho_within):
        with pytest.raises(InvalidParameter, match="delta must be above 0 and below 1"):
            convert_at(Fraction(1), delta)
    with pytest.raises(InvalidParameter, match="delta"):
        convert.renyi_to_epsilon(renyi([(2, 1)]), delta)


def test_a_delta_below_what_is_told_apart_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="at least 2\\^-2048"):
        convert.zcdp_to_epsilon(Fraction(1), Fraction(1, 2**2049))


def test_any_loss_can_be_read_as_epsilon_and_delta() -> None:
    assert convert.to_approximate(epsilon(1), MILLIONTH) == ApproximateLoss(Fraction(1), MILLIONTH)
    assert convert.to_approximate(epsilon(1, delta=1e-9), MILLIONTH) == ApproximateLoss(Fraction(1), MILLIONTH)
    read = convert.to_approximate(rho(0.02), MILLIONTH)
    assert read.epsilon == convert.zcdp_to_epsilon(Fraction(1, 50), MILLIONTH)
    spent = convert.to_approximate(ZcdpLoss(Fraction(1, 50), MILLIONTH / 2), MILLIONTH)
    assert spent.epsilon == convert.zcdp_to_epsilon(Fraction(1, 50), MILLIONTH / 2)
    assert convert.to_approximate(ZcdpLoss(Fraction(0), MILLIONTH), MILLIONTH).epsilon == 0
    for spender in (ZcdpLoss(Fraction(1), MILLIONTH), RenyiLoss(((Fraction(2), Fraction(1)),), MILLIONTH)):
        with pytest.raises(InvalidParameter, match="already spends"):
            convert.to_approximate(spender, MILLIONTH)


def test_no_loss_converts_to_no_loss() -> None:
    assert convert.zcdp_to_delta(Fraction(0), Fraction(1)) == 0
    assert convert.zcdp_to_epsilon(Fraction(0), MILLIONTH) == 0
    assert convert.to_approximate(PureLoss(Fraction(0)), Fraction(0)) == ApproximateLoss(Fraction(0), Fraction(0))


def test_a_rho_within_a_tiny_epsilon_is_found_in_a_few_steps(monkeypatch: pytest.MonkeyPatch):
    tried = []
    honest = convert.zcdp_to_epsilon

    def counted(rho: Fraction, delta: Fraction) -> Fraction:
        tried.append(rho)
        if len(tried) > 100:
            pytest.fail("the search goes on and on")
        return honest(rho, delta)

    monkeypatch.setattr(convert, "zcdp_to_epsilon", counted)
    at, delta = Fraction(1, 10**12), Fraction(1, 2 * 10**21)
    found = convert.rho_within(at, delta)
    assert found > 0
    assert honest(found, delta) <= at
