"""Calibration gives the least noise, and the noise it gives keeps the promise."""

import math
from fractions import Fraction

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.accounting import cost
from tacit.accounting.convert import rho_within
from tacit.accounting.cost import gaussian_sigma, gaussian_sigma_vector, laplace_scale
from tacit.errors import InvalidParameter
from tacit.privacy.law import SCALE_MIN, GaussianLaw, LaplaceLaw
from tacit.privacy.loss import GaussianNoise
from tests.accounting import oracle

MILLIONTH = Fraction(1, 10**6)
EPSILONS = [Fraction(1, 100), Fraction(1, 2), Fraction(1), Fraction(3), Fraction(12)]
DELTAS = [Fraction(1, 10**9), MILLIONTH, Fraction(1, 20)]
QUICK = [(shift, epsilon, delta) for shift in (1, 3) for epsilon in EPSILONS[1:] for delta in DELTAS[1:]]
FULL = [
    (shift, Fraction(epsilon, 8), Fraction(1, 10**digits))
    for shift in (1, 2, 3, 5, 8)
    for epsilon in (2, 3, 5, 8, 11, 16, 20, 27, 40, 64, 97, 128, 160, 200, 250, 300, 350, 400, 450, 500)
    for digits in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12)
]


def check_against_oracle(shift: int, epsilon: Fraction, delta: Fraction) -> None:
    chosen = gaussian_sigma(Fraction(shift), epsilon, delta)
    least = oracle.least_sigma(shift, epsilon, delta, most=float(chosen) * 1.05)
    ratio = oracle.real(chosen) / least
    assert 1 - 1e-9 <= ratio <= 1 + 1e-6, (shift, epsilon, delta, float(ratio))
    assert oracle.gaussian_delta(chosen, shift, epsilon) <= oracle.real(delta)


@pytest.mark.parametrize(("shift", "epsilon", "delta"), QUICK)
def test_L14_a_scalar_sigma_is_the_oracles_least(shift: int, epsilon: Fraction, delta: Fraction) -> None:
    check_against_oracle(shift, epsilon, delta)


@pytest.mark.slow
def test_L14_a_scalar_sigma_is_the_oracles_least_at_a_thousand_points() -> None:
    assert len(FULL) == 1000
    for shift, epsilon, delta in FULL:
        check_against_oracle(shift, epsilon, delta)


@pytest.mark.parametrize("shift", [1, 7, 1000, 2**30, 2**60])
@pytest.mark.parametrize("epsilon", EPSILONS, ids=str)
@pytest.mark.parametrize("delta", DELTAS, ids=str)
def test_the_noise_chosen_keeps_the_promise_and_a_millionth_less_does_not(
    shift: int, epsilon: Fraction, delta: Fraction
) -> None:
    sigma = gaussian_sigma(Fraction(shift), epsilon, delta)
    assert cost.delta_at(GaussianNoise(sigma, Fraction(shift) ** 2, scalar=True), epsilon) <= delta
    less = sigma * (1 - Fraction(1, 10**6))
    assert cost.delta_at(GaussianNoise(less, Fraction(shift) ** 2, scalar=True), epsilon) > delta


def test_delta_is_not_monotone_in_sigma_so_the_chosen_sigma_is_what_is_verified() -> None:
    """More noise can hide less: the least sigma may lie in a valley that a bisection over all sigmas steps over."""
    epsilon = Fraction(10)

    def delta(sigma: Fraction) -> Fraction:
        return cost.delta_at(GaussianNoise(sigma, Fraction(1), scalar=True), epsilon)

    valley = Fraction(2236067, 10**7)  # where a whole number has exactly the ratio e^epsilon
    assert delta(Fraction(23, 100)) > 1.4 * delta(valley)
    goal = delta(valley)
    assert gaussian_sigma(Fraction(1), epsilon, goal) <= valley * (1 + Fraction(1, 10**7))
    assert delta(gaussian_sigma(Fraction(1), epsilon, goal)) <= goal


@pytest.mark.parametrize(("epsilon", "delta"), [(Fraction(1), MILLIONTH), (Fraction(2), Fraction(1, 10))])
def test_the_continuous_laws_sigma_would_break_the_promise(epsilon: Fraction, delta: Fraction) -> None:
    """The mutant calibrates the analytic Gaussian and draws the discrete one."""
    continuous = Fraction(cost._continuous_sigma(lambda: arb(1), epsilon, delta))
    assert cost.delta_at(GaussianNoise(continuous, Fraction(1), scalar=True), epsilon) > delta
    assert continuous < gaussian_sigma(Fraction(1), epsilon, delta)


def test_L1_the_scale_is_sensitivity_over_epsilon() -> None:
    assert laplace_scale(Fraction(3), Fraction(1, 10)) == 30
    assert laplace_scale(Fraction(1), Fraction(10**9)) == SCALE_MIN


def test_G1_up_to_epsilon_one_the_textbook_formula_holds_and_is_loose() -> None:
    for constant in (Fraction(2), Fraction(5, 4)):
        for epsilon in (Fraction(1, 100), Fraction(1, 2), Fraction(1)):
            sigma = Fraction(float(oracle.textbook_sigma(Fraction(1), epsilon, MILLIONTH, constant)))
            assert cost.delta_at(GaussianNoise(sigma, Fraction(1), scalar=True), epsilon) <= MILLIONTH
            assert gaussian_sigma(Fraction(1), epsilon, MILLIONTH) < sigma  # loose


def test_G1_above_epsilon_one_the_classic_formula_would_not_be_private() -> None:
    """The published bug: at epsilon = 40 the classic sigma is too small for its delta."""
    epsilon, delta = Fraction(40), Fraction(1, 1000)
    classic = Fraction(math.sqrt(2 * math.log(1.25 / float(delta))) / float(epsilon) * 1000)
    shift = 1000  # a fine grid, where the discrete law is close to the continuous one
    assert cost.delta_at(GaussianNoise(classic, Fraction(shift**2), scalar=True), epsilon) > delta
    assert gaussian_sigma(Fraction(shift), epsilon, delta) > classic


def test_G2_laplace_wins_for_few_counts_and_gaussian_for_many() -> None:
    """k counts one unit may all touch, epsilon = 1, delta = 1e-6: they cross once, and the errors grow as k and √k."""
    chance, grid = Fraction(1, 20), 64

    def laplace_error(k: int) -> int:
        return LaplaceLaw(laplace_scale(Fraction(k * grid), Fraction(1))).smallest_bound(chance, k)

    def gaussian_error(k: int) -> int:
        sigma = gaussian_sigma_vector(Fraction(k * grid**2), Fraction(1), MILLIONTH)
        return GaussianLaw(sigma).smallest_bound(chance, k)

    better = [gaussian_error(k) < laplace_error(k) for k in range(1, 41)]
    crossing = better.index(True) + 1
    assert not any(better[: crossing - 1])
    assert all(better[crossing - 1 :])
    assert 5 < crossing < 20
    assert laplace_error(400) / laplace_error(100) > 4
    assert gaussian_error(400) / gaussian_error(100) < 2.5


@settings(max_examples=30)
@given(
    squared=st.integers(2, 10**8),
    epsilon=st.fractions(min_value=Fraction(1, 100), max_value=20, max_denominator=100),
    delta=st.sampled_from(DELTAS),
)
def test_a_vector_sigma_keeps_its_promise_and_never_needs_more_than_zcdp(
    squared: int, epsilon: Fraction, delta: Fraction
) -> None:
    sigma = gaussian_sigma_vector(Fraction(squared), epsilon, delta)
    assert cost.delta_at(GaussianNoise(sigma, Fraction(squared)), epsilon) <= delta
    by_zcdp = math.sqrt(squared / (2 * float(rho_within(epsilon, delta))))
    assert float(sigma) <= by_zcdp * (1 + 1e-8)


def test_on_a_fine_grid_a_vector_needs_no_more_noise_than_a_scalar() -> None:
    for shift in (1000, 2**20, 2**40):
        scalar = gaussian_sigma(Fraction(shift), Fraction(1), MILLIONTH)
        vector = gaussian_sigma_vector(Fraction(shift**2), Fraction(1), MILLIONTH)
        assert scalar <= vector <= scalar * (1 + Fraction(1, 10**6))


def test_a_move_of_one_step_is_calibrated_exactly_in_a_vector_too() -> None:
    exact = gaussian_sigma(Fraction(1), Fraction(1), MILLIONTH)
    assert gaussian_sigma_vector(Fraction(1), Fraction(1), MILLIONTH) == exact
    assert gaussian_sigma_vector(Fraction(3, 2), Fraction(1), MILLIONTH) == exact
    assert gaussian_sigma_vector(Fraction(1, 2), Fraction(1), MILLIONTH) == SCALE_MIN


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**9), Fraction(10**7), Fraction(10**14)])
def test_extreme_targets_get_a_drawable_sigma(epsilon: Fraction) -> None:
    for calibrated in (
        gaussian_sigma(Fraction(1), epsilon, MILLIONTH),
        gaussian_sigma_vector(Fraction(8), epsilon, MILLIONTH),
    ):
        assert calibrated >= SCALE_MIN
        assert calibrated.numerator.bit_length() < 200


@pytest.mark.parametrize("epsilon", [Fraction(1, 10**400), Fraction(1, 10**20), Fraction(10**13), Fraction(10**400)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**600), Fraction(1, 10**9), 1 - Fraction(1, 10**20)])
@pytest.mark.parametrize("shift", [1, 2**60])
def test_targets_past_what_floats_can_hold_are_met_or_refused_by_name(
    epsilon: Fraction, delta: Fraction, shift: int
) -> None:
    for calibrated, size in ((gaussian_sigma, Fraction(shift)), (gaussian_sigma_vector, Fraction(4 * shift**2))):
        if epsilon < Fraction(1, 10**300) and delta < Fraction(1, 10**300):
            with pytest.raises(InvalidParameter, match="wider than can be drawn"):
                calibrated(size, epsilon, delta)
            continue
        scalar = calibrated is gaussian_sigma
        event = GaussianNoise(calibrated(size, epsilon, delta), size**2 if scalar else size, scalar=scalar)
        assert cost.delta_at(event, epsilon) <= delta


@pytest.mark.parametrize("delta", [Fraction(0), Fraction(1), Fraction(-1)])
def test_gaussian_noise_needs_a_delta(delta: Fraction) -> None:
    for calibrated in (gaussian_sigma, gaussian_sigma_vector):
        with pytest.raises(InvalidParameter, match="delta must be above 0 and below 1"):
            calibrated(Fraction(1), Fraction(1), delta)


def test_calibration_refuses_what_is_not_positive() -> None:
    for calibrated in (gaussian_sigma, gaussian_sigma_vector):
        with pytest.raises(InvalidParameter, match="epsilon must be above 0"):
            calibrated(Fraction(1), Fraction(0), MILLIONTH)
        with pytest.raises(InvalidParameter, match="sensitivity"):
            calibrated(Fraction(0), Fraction(1), MILLIONTH)
    with pytest.raises(InvalidParameter, match="epsilon"):
        laplace_scale(Fraction(1), Fraction(0))
