"""Other people's accountants agree with ours where they answer the same question."""

import math
from fractions import Fraction

import pytest

from tacit.accounting import convert, cost
from tacit.accounting.cost import gaussian_sigma
from tacit.privacy.loss import GaussianNoise, LaplaceNoise, PureChoice, RenyiLoss

distribution = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
rdp = pytest.importorskip("dp_accounting.rdp.rdp_privacy_accountant")
normal = pytest.importorskip("scipy.stats").norm


@pytest.mark.parametrize(("sigma", "shift"), [(2, 1), (3, 2), (10, 7)])
def test_dp_accounting_gives_the_same_discrete_gaussian_delta(sigma: int, shift: int) -> None:
    theirs = distribution.from_discrete_gaussian_mechanism(sigma, sensitivity=shift, value_discretization_interval=1e-5)
    for epsilon in (0.1, 0.5, 1.0):
        ours = cost.delta_at(GaussianNoise(Fraction(sigma), Fraction(shift**2), scalar=True), Fraction(epsilon))
        assert float(ours) == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=1e-4)
        assert float(ours) <= theirs.get_delta_for_epsilon(epsilon) * (1 + 1e-9)  # theirs is rounded up more coarsely


@pytest.mark.parametrize(("rate", "shift"), [(0.5, 3), (1.0, 1), (0.125, 9)])
def test_dp_accounting_gives_the_same_discrete_laplace_delta(rate: float, shift: int) -> None:
    theirs = distribution.from_discrete_laplace_mechanism(rate, sensitivity=shift, value_discretization_interval=1e-5)
    for epsilon in (0.1, 0.5, 1.0):
        ours = cost.delta_at(LaplaceNoise(1 / Fraction(rate), Fraction(shift)), Fraction(epsilon))
        assert float(ours) == pytest.approx(theirs.get_delta_for_epsilon(epsilon), rel=1e-4, abs=1e-9)


def test_dp_accounting_converts_renyi_curves_to_the_same_epsilon_or_a_larger_one() -> None:
    orders = [1.5, 2, 3, 5, 9, 17, 33, 65]
    costs = [order * 0.02 for order in orders]
    curve = RenyiLoss(tuple((Fraction(order), Fraction(paid)) for order, paid in zip(orders, costs, strict=True)))
    for delta in (1e-9, 1e-6, 1e-2):
        theirs, _ = rdp.compute_epsilon(orders, costs, delta)
        assert float(convert.renyi_to_epsilon(curve, Fraction(delta))) == pytest.approx(theirs, rel=1e-9)
    for epsilon in (0.5, 1.0, 2.0):
        theirs, _ = rdp.compute_delta(orders, costs, epsilon)
        ours = float(convert.renyi_to_delta(curve, Fraction(epsilon)))
        assert ours == pytest.approx(theirs, rel=1e-9)


def test_dp_accounting_gives_the_same_renyi_curve_for_fine_laplace_noise() -> None:
    event = __import__("dp_accounting").LaplaceDpEvent(1.0)
    accountant = rdp.RdpAccountant([2, 4, 8])
    accountant.compose(event)
    fine = cost.renyi(LaplaceNoise(Fraction(2**20), Fraction(2**20)), [Fraction(2), Fraction(4), Fraction(8)])
    for (_, ours), theirs in zip(fine.curve, accountant._rdp, strict=True):
        assert float(ours) == pytest.approx(theirs, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_scipy_gives_the_same_delta_for_a_wide_gaussian(epsilon: float) -> None:
    """Where sigma is wide the discrete law is the continuous one to a few parts in sigma²."""
    shift = 2**30
    for move in (0.05, 0.3, 2.0):
        sigma = Fraction(shift) / Fraction(move)
        theirs = normal.cdf(move / 2 - epsilon / move) - math.exp(epsilon) * normal.cdf(-move / 2 - epsilon / move)
        ours = cost.delta_at(GaussianNoise(sigma, Fraction(shift**2), scalar=True), Fraction(epsilon))
        assert float(ours) == pytest.approx(theirs, rel=1e-6, abs=1e-14)


def test_scipy_agrees_with_the_least_sigma_of_a_wide_gaussian() -> None:
    sigma = float(gaussian_sigma(Fraction(2**30), Fraction(1), Fraction(1, 10**6))) / 2**30
    delta = normal.cdf(0.5 / sigma - sigma) - math.e * normal.cdf(-0.5 / sigma - sigma)
    assert delta == pytest.approx(1e-6, rel=1e-6)


def test_dp_accounting_agrees_that_randomized_response_is_worst() -> None:
    theirs = distribution.from_randomized_response(2 / (1 + math.e), 2)  # keeps with e/(1 + e): epsilon = 1
    ours = cost.delta_at(PureChoice(Fraction(1)), Fraction(1, 2))
    assert float(ours) == pytest.approx(theirs.get_delta_for_epsilon(0.5), rel=1e-3)
