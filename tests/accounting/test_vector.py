"""The bound for Gaussian vectors holds whatever the shape of the move, checked by plain sums over small lattices."""

import itertools
import math
from fractions import Fraction

import pytest
from flint import arb

from tacit.accounting import cost
from tacit.accounting.cost import Smoothing
from tacit.numbers import working_precision
from tacit.privacy.loss import ExponentialChoice, GaussianNoise, KeyThreshold

SHAPES = [(2,), (1, 1), (1, 1, 1), (2, 1), (1, 1, 1, 1), (2, 2), (3,), (3, 1), (2, 2, 1)]


def vector_delta(move: tuple[int, ...], sigma: float, epsilon: float) -> float:
    """Return the delta of one move of several coordinates: the law of its log-ratio by convolution, in floats."""
    chances = {0: 1.0}  # of the sum of move·x over the coordinates, whole
    reach = int(9 * sigma) + 3
    raw = {x: math.exp(-x * x / (2 * sigma * sigma)) for x in range(-reach, reach + 1)}
    total = sum(raw.values())
    for step in move:
        after: dict[int, float] = {}
        for value, chance in chances.items():
            for x, mass in raw.items():
                after[value + step * x] = after.get(value + step * x, 0.0) + chance * mass / total
        chances = after
    square = sum(step * step for step in move)
    losses = ((2 * value + square) / (2 * sigma * sigma) for value in chances)
    return sum(
        chance * -math.expm1(epsilon - loss)
        for loss, chance in zip(losses, chances.values(), strict=True)
        if loss > epsilon
    )


def test_the_shape_of_a_move_matters_not_only_its_length() -> None:
    """Both moves have length 2, at sigma 2 and epsilon 4; a mutant that takes the scalar's delta promises too much."""
    one, four = vector_delta((2,), 2.0, 4.0), vector_delta((1, 1, 1, 1), 2.0, 4.0)
    assert one == pytest.approx(3.2e-5, rel=0.01)
    assert four == pytest.approx(4.3e-5, rel=0.01)
    scalar = cost.delta_at(GaussianNoise(Fraction(2), Fraction(4), scalar=True), Fraction(4))
    vector = cost.delta_at(GaussianNoise(Fraction(2), Fraction(4)), Fraction(4))
    assert float(scalar) < four <= float(vector)


@pytest.mark.parametrize("move", SHAPES, ids=str)
@pytest.mark.parametrize("sigma", [Fraction(1), Fraction(5, 2), Fraction(8)], ids=str)
def test_no_shape_shows_more_than_the_bound(move: tuple[int, ...], sigma: Fraction) -> None:
    event = GaussianNoise(sigma, Fraction(sum(step * step for step in move)))
    for epsilon in (Fraction(1, 10), Fraction(1), Fraction(3)):
        claimed = float(cost.delta_at(event, epsilon))
        assert vector_delta(move, float(sigma), float(epsilon)) <= claimed * (1 + 1e-9) + 1e-14


@pytest.mark.parametrize("blur", [Fraction(1, 20), Fraction(1, 5), Fraction(1), Fraction(2)], ids=str)
def test_the_bound_holds_at_every_blur_with_its_ripple_paid_for(blur: Fraction) -> None:
    for move, epsilon in itertools.product(((1, 1), (2,), (1, 1, 1)), (Fraction(1, 4), Fraction(1), Fraction(3))):
        for sigma in (Fraction(3, 4), Fraction(3, 2), Fraction(2)):
            true = vector_delta(move, float(sigma), float(epsilon))
            with working_precision(128):
                bound = Smoothing(blur, len(move)).delta(Fraction(sum(s * s for s in move)), sigma, epsilon)
                assert float(bound.upper()) >= true


def test_the_continuous_formula_alone_would_promise_too_much() -> None:
    """The mutant: the analytic Gaussian's delta taken as it is, for noise on whole steps."""
    true = vector_delta((1, 1), 1.5, 3.0)
    with working_precision(128):
        continuous = float(cost.continuous_gaussian_delta(arb(2).sqrt() / arb(1.5), arb(3)))
    assert continuous < 0.95 * true
    assert true <= float(cost.delta_at(GaussianNoise(Fraction(3, 2), Fraction(2)), Fraction(3)))


def test_the_ripple_bounds_the_true_sum_at_every_blur() -> None:
    for blur in (Fraction(1, 10), Fraction(1, 2), Fraction(2)):
        with working_precision(128):
            rate = -2 * arb.pi() ** 2 * arb(blur.numerator) / blur.denominator
            true = sum((2 * (rate * k * k).exp() for k in range(1, 30)), arb(0))
            assert Smoothing(blur, 1).ripple() >= true


def test_noise_narrower_than_the_blur_is_left_to_zcdp() -> None:
    with working_precision(128):
        assert Smoothing(Fraction(2), 4).delta(Fraction(4), Fraction(1), Fraction(1)) == 1
    for sigma in (Fraction(1, 2), Fraction(1)):
        assert 0 < cost.delta_at(GaussianNoise(sigma, Fraction(4)), Fraction(8)) < 1


def test_the_ripple_allowed_is_far_below_epsilon_at_every_size() -> None:
    for squared, epsilon in itertools.product(
        (2, 1000, 2**60, 2**120), (Fraction(1, 10**9), Fraction(1), Fraction(100))
    ):
        chosen = cost.smoothing(Fraction(squared), epsilon)
        with working_precision(128):
            small = 3 * chosen.moved * chosen.ripple()
            assert small < arb(2) ** -40 * min(float(epsilon), 1.0)
        assert chosen.blur_squared < 12


@pytest.mark.parametrize("sigmas", [(2, 3), (1, 4), (3, 3, 5)], ids=str)
def test_vectors_released_together_show_no_more_than_their_joint_bound(sigmas: tuple[int, ...]) -> None:
    """Each moves by one; the law of all of them by plain sums over their lattice."""
    events = tuple(GaussianNoise(Fraction(sigma), Fraction(1)) for sigma in sigmas)
    chances = {0.0: 1.0}
    for sigma in sigmas:
        raw = {x: math.exp(-x * x / (2 * sigma * sigma)) for x in range(-9 * sigma, 9 * sigma + 1)}
        total = sum(raw.values())
        after: dict[float, float] = {}
        for loss, chance in chances.items():
            for x, mass in raw.items():
                key = round(loss + (2 * x + 1) / (2 * sigma * sigma), 12)
                after[key] = after.get(key, 0.0) + chance * mass / total
        chances = after
    for epsilon in (Fraction(1, 2), Fraction(2)):
        true = sum(chance * -math.expm1(float(epsilon) - loss) for loss, chance in chances.items() if loss > epsilon)
        bound = cost.noise_delta(events, epsilon)
        assert true * (1 - 1e-9) <= float(bound)
        assert bound <= cost.zcdp_to_delta(sum(cost.zcdp(event).rho for event in events), epsilon)


def test_what_is_drawn_with_other_noise_is_bounded_by_its_rho() -> None:
    events = (GaussianNoise(Fraction(10), Fraction(1)), ExponentialChoice(Fraction(1, 10)))
    rho = sum(cost.zcdp(event).rho for event in events)
    assert cost.noise_delta(events, Fraction(1)) == cost.zcdp_to_delta(rho, Fraction(1))
    assert cost.noise_delta((*events, KeyThreshold(Fraction(1, 10))), Fraction(1)) == cost.noise_delta(
        events, Fraction(1)
    )
