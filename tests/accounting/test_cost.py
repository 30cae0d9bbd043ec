"""What one event costs: exact where the law is known, never below the truth."""

import math
from fractions import Fraction
from functools import cache

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.accounting import cost
from tacit.accounting.convert import pure_to_zcdp
from tacit.errors import InvalidParameter
from tacit.numbers import downward
from tacit.privacy.loss import Event, ExponentialChoice, GaussianNoise, KeyThreshold, LaplaceNoise, PureChoice, ZcdpLoss
from tests.accounting import oracle

MILLIONTH = Fraction(1, 10**6)
SLIGHTLY = 1 + mpmath.mpf(2) ** -60

small_scales = st.fractions(min_value=Fraction(1, 3), max_value=12, max_denominator=8)
small_shifts = st.integers(1, 6)


@cache
def laplace(scale: Fraction) -> dict[int, mpmath.mpf]:
    return oracle.laplace_masses(scale, int(80 * scale) + 40)


def test_L1_noise_of_scale_sensitivity_over_epsilon_is_epsilon_dp() -> None:
    for sensitivity, epsilon in [(1, Fraction(1)), (3, Fraction(1, 2)), (10, Fraction(7, 3))]:
        event = LaplaceNoise(sensitivity / epsilon, Fraction(sensitivity))
        assert cost.pure_epsilon(event) == epsilon
        masses = laplace(event.scale)
        worst = max(abs(mpmath.log(masses[x] / masses[x + sensitivity])) for x in range(-20, 20))
        assert abs(worst - oracle.real(epsilon)) < mpmath.mpf(10) ** -30


def test_D1_delta_is_zero_from_the_pure_epsilon_on_and_above_zero_below_it() -> None:
    event = LaplaceNoise(Fraction(10), Fraction(3))
    assert cost.delta_at(event, Fraction(3, 10)) == 0
    assert cost.delta_at(event, Fraction(3, 10) - Fraction(1, 10**12)) > 0
    assert cost.epsilon_at(event, Fraction(0)) == Fraction(3, 10)


def test_D1_no_set_of_outputs_shows_more_than_epsilon_and_delta() -> None:
    """For every set, Pr[M(D) in S] <= e^epsilon Pr[M(D') in S] + delta; the bad set meets it."""
    sigma, epsilon = Fraction(2), Fraction(1)
    masses = oracle.gaussian_masses(sigma, 60)
    delta = cost.delta_at(GaussianNoise(sigma, Fraction(1), scalar=True), epsilon)
    gains = [masses[x - 1] - mpmath.e * masses[x] for x in range(-50, 50)]
    worst = mpmath.fsum(gain for gain in gains if gain > 0)  # any other set gains less
    assert worst <= oracle.real(delta) <= worst * SLIGHTLY


def test_D4_a_sensitivity_below_one_step_moves_no_whole_number() -> None:
    assert cost.delta_at(GaussianNoise(Fraction(1), Fraction(1, 2), scalar=True), Fraction(0)) == 0
    assert cost.delta_at(GaussianNoise(Fraction(1), Fraction(9, 4), scalar=True), Fraction(1)) == cost.delta_at(
        GaussianNoise(Fraction(1), Fraction(1), scalar=True), Fraction(1)
    )


def test_D4_k_counts_that_one_unit_touches_cost_k_under_laplace_and_its_root_under_gaussian() -> None:
    k = 16
    assert cost.pure_epsilon(LaplaceNoise(Fraction(10), Fraction(k))) == k * Fraction(1, 10)
    one, many = GaussianNoise(Fraction(10), Fraction(1)), GaussianNoise(Fraction(10 * 4), Fraction(k))
    assert cost.zcdp(one) == cost.zcdp(many)


@settings(max_examples=20)
@given(scale=small_scales, shift=small_shifts)
def test_laplace_is_zcdp_at_its_relative_entropy_and_at_no_less(scale: Fraction, shift: int) -> None:
    rho = oracle.real(cost.zcdp(LaplaceNoise(scale, Fraction(shift))).rho)
    masses = laplace(scale)
    assert rho >= oracle.relative_entropy(masses, shift) * (1 - mpmath.mpf(10) ** -12)
    for order in (Fraction(1001, 1000), Fraction(3, 2), Fraction(2), Fraction(5), Fraction(40)):
        divergence = oracle.renyi(masses, shift, order)
        assert divergence <= rho * oracle.real(order) * (1 + mpmath.mpf(10) ** -12)
    near_one = oracle.renyi(masses, shift, Fraction(1_000_001, 1_000_000)) / (1 + mpmath.mpf(10) ** -6)
    assert near_one >= rho * (1 - mpmath.mpf(10) ** -4)


def test_laplace_is_charged_less_rho_than_its_epsilon_alone_would_say() -> None:
    fine = LaplaceNoise(Fraction(2**20), Fraction(2**20))  # epsilon = 1 on a fine grid
    assert float(cost.zcdp(fine).rho) == pytest.approx(math.exp(-1), rel=1e-9)
    assert cost.zcdp(fine).rho < pure_to_zcdp(Fraction(1)) < Fraction(1, 2)


@settings(max_examples=40)
@given(
    scale=small_scales,
    shift=small_shifts,
    order=st.fractions(min_value=Fraction(5, 4), max_value=30, max_denominator=4),
)
def test_laplace_renyi_is_the_exact_divergence_rounded_up(scale: Fraction, shift: int, order: Fraction) -> None:
    [(_, claimed)] = cost.renyi(LaplaceNoise(scale, Fraction(shift)), [order]).curve
    true = oracle.renyi(laplace(scale), shift, order)
    assert true * (1 - mpmath.mpf(10) ** -12) <= oracle.real(claimed) <= true * (1 + mpmath.mpf(10) ** -12)


@settings(max_examples=25)
@given(
    scale=st.fractions(min_value=Fraction(1, 2), max_value=3, max_denominator=4),
    moves=st.lists(st.integers(1, 3), min_size=2, max_size=3),
    share=st.fractions(min_value=0, max_value=1, max_denominator=16),
)
def test_no_laplace_vector_is_worse_than_all_of_its_move_in_one_coordinate(
    scale: Fraction, moves: list[int], share: Fraction
) -> None:
    epsilon = share * sum(moves) / scale
    claimed = cost.delta_at(LaplaceNoise(scale, Fraction(sum(moves))), epsilon)
    spread = _vector_delta([float_losses(scale, move) for move in moves], float(epsilon))
    assert spread <= float(claimed) + 1e-12


def float_losses(scale: Fraction, shift: int) -> dict[float, float]:
    """Return the chances of each log-ratio of one coordinate, in floats."""
    losses: dict[float, float] = {}
    decay = math.exp(-1 / float(scale))
    for x in range(-60, 61 + shift):
        mass = (1 - decay) / (1 + decay) * decay ** abs(x - shift)
        loss = (abs(x) - abs(x - shift)) / float(scale)
        losses[loss] = losses.get(loss, 0.0) + mass
    return losses


def _vector_delta(coordinates: list[dict[float, float]], epsilon: float) -> float:
    together = {0.0: 1.0}
    for losses in coordinates:
        merged: dict[float, float] = {}
        for one, chance in together.items():
            for two, other in losses.items():
                merged[one + two] = merged.get(one + two, 0.0) + chance * other
        together = merged
    return sum(chance * (1 - math.exp(epsilon - loss)) for loss, chance in together.items() if loss > epsilon)


def test_G3_gaussian_costs_are_exact_rationals_in_zcdp_and_renyi() -> None:
    event = GaussianNoise(Fraction(7, 2), Fraction(3))
    assert cost.zcdp(event) == ZcdpLoss(Fraction(3) / (2 * Fraction(49, 4)))
    assert cost.renyi(event, [Fraction(5)]).curve == ((Fraction(5), 5 * Fraction(3) / (2 * Fraction(49, 4))),)


@settings(max_examples=30)
@given(
    sigma=small_scales, shift=small_shifts, order=st.fractions(min_value=Fraction(5, 4), max_value=9, max_denominator=4)
)
def test_G3_no_whole_move_of_the_discrete_gaussian_diverges_more_than_the_continuous_formula(
    sigma: Fraction, shift: int, order: Fraction
) -> None:
    masses = oracle.gaussian_masses(sigma, int(20 * sigma + 12 * shift) + 40)
    formula = order * shift**2 / (2 * sigma**2)
    assert oracle.renyi(masses, shift, order) <= oracle.real(formula) * (1 + mpmath.mpf(10) ** -9)


@pytest.mark.parametrize(
    "event",
    [
        LaplaceNoise(Fraction(5), Fraction(4)),
        GaussianNoise(Fraction(3), Fraction(4), scalar=True),
        GaussianNoise(Fraction(3), Fraction(4)),
        GaussianNoise(Fraction(2**40), Fraction(2**76)),
        GaussianNoise(Fraction(1, 2), Fraction(1)),
        PureChoice(Fraction(2)),
        ExponentialChoice(Fraction(2)),
    ],
    ids=str,
)
def test_the_two_directions_agree(event: Event) -> None:
    """epsilon_at is the least: it meets its delta, and a billionth less does not."""
    for delta in (Fraction(1, 10), MILLIONTH, Fraction(1, 10**30)):
        epsilon = cost.epsilon_at(event, delta)
        assert cost.delta_at(event, epsilon) <= delta
        if epsilon > 0:
            assert cost.delta_at(event, epsilon * (1 - Fraction(1, 10**8))) > delta


def test_a_mutant_that_rounds_down_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    event, epsilon = GaussianNoise(Fraction(7, 3), Fraction(1), scalar=True), Fraction(1)
    true = oracle.gaussian_delta(Fraction(7, 3), 1, epsilon)
    assert oracle.real(cost.delta_at.__wrapped__(event, epsilon)) >= true
    monkeypatch.setattr(cost, "upward", downward)
    assert oracle.real(cost.delta_at.__wrapped__(event, epsilon)) < true


def test_randomized_response_is_the_worst_of_everything_pure() -> None:
    epsilon = Fraction(3, 2)
    keep = 1 / (1 + math.exp(-1.5))
    assert float(cost.delta_at(PureChoice(epsilon), Fraction(1, 2))) == pytest.approx(keep - math.exp(0.5) * (1 - keep))
    [(_, two)] = cost.renyi(PureChoice(epsilon), [Fraction(2)]).curve
    assert float(two) == pytest.approx(math.log(keep * math.exp(1.5) + (1 - keep) * math.exp(-1.5)))
    assert cost.delta_at(PureChoice(epsilon), epsilon) == 0


@given(
    st.fractions(min_value=Fraction(1, 10), max_value=8, max_denominator=10),
    st.floats(min_value=0.01, max_value=0.99),
    st.floats(min_value=0, max_value=0.99),
)
def test_no_two_outcomes_within_a_range_of_epsilon_beat_the_exponential_choice(
    width: Fraction, place: float, share: float
) -> None:
    """Two outcomes with log-ratios top and top - width: their delta and relative entropy stay inside the claims."""
    top = place * float(width)
    chance = (math.exp(-top) - math.exp(-float(width))) / (1 - math.exp(-float(width)))  # under the other data
    epsilon = Fraction(share) * width
    delta = max(0.0, chance * (math.exp(top) - math.exp(float(epsilon))))
    assert delta <= float(cost.delta_at(ExponentialChoice(width), epsilon)) * (1 + 1e-9) + 1e-15
    likely = chance * math.exp(top)
    entropy = likely * top + (1 - likely) * (top - float(width))
    assert entropy <= float(cost.zcdp(ExponentialChoice(width)).rho) * (1 + 1e-9)


def test_a_threshold_costs_its_delta_and_nothing_else() -> None:
    event = KeyThreshold(MILLIONTH)
    assert cost.pure_epsilon(event) is None
    assert cost.zcdp(event) == ZcdpLoss(Fraction(0), MILLIONTH)
    assert cost.delta_at(event, Fraction(5)) == MILLIONTH
    assert cost.epsilon_at(event, MILLIONTH) == 0
    assert cost.renyi(event, [Fraction(2)]).delta == MILLIONTH
    with pytest.raises(InvalidParameter, match="probability that this threshold fails"):
        cost.epsilon_at(event, MILLIONTH / 2)


def test_a_gaussian_has_no_pure_epsilon() -> None:
    assert cost.pure_epsilon(GaussianNoise(Fraction(10), Fraction(1))) is None
    with pytest.raises(InvalidParameter, match="delta must be above 0"):
        cost.epsilon_at(GaussianNoise(Fraction(10), Fraction(1)), Fraction(0))


def test_costs_refuse_what_has_no_meaning() -> None:
    with pytest.raises(InvalidParameter, match="epsilon must be at least 0"):
        cost.delta_at(PureChoice(Fraction(1)), Fraction(-1))
    for orders in ([], [Fraction(1)], [Fraction(1, 2), Fraction(2)]):
        with pytest.raises(InvalidParameter, match="orders"):
            cost.renyi(PureChoice(Fraction(1)), orders)


@pytest.mark.parametrize("epsilon", [Fraction(10**400), Fraction(10**6), Fraction(1, 10**400)])
def test_extreme_losses_are_answered_quickly_and_above_the_truth(epsilon: Fraction) -> None:
    assert 0 < cost.delta_at(GaussianNoise(Fraction(2**50), Fraction(1), scalar=True), epsilon) < 1
    assert 0 < cost.delta_at(GaussianNoise(Fraction(2**50), Fraction(9)), epsilon) < 1
    assert cost.zcdp(PureChoice(epsilon)).rho > 0
