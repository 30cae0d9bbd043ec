"""Losses are exact values: they add, compare and print; what is outside its rule is refused (S06)."""

from decimal import Decimal
from fractions import Fraction

import pytest

from tacit.errors import InvalidParameter
from tacit.privacy.loss import ApproximateLoss, PureLoss, RenyiLoss, ZcdpLoss, epsilon, renyi, rho

BAD_LOSSES = [
    float("nan"),
    float("inf"),
    -float("inf"),
    -1,
    0,
    -0.0,
    "no",
    "",
    "nan",
    True,
    None,
    [],
    "1e999999999",
    1j,
]
BAD_DELTAS = [float("nan"), float("inf"), -1e-9, 1, 1.0, 2, "1", "one", True, None, "1e999999999", Decimal("NaN")]


@pytest.mark.parametrize("value", BAD_LOSSES, ids=repr)
def test_S06_epsilon_and_rho_refuse_what_is_not_finite_and_positive(value: object) -> None:
    with pytest.raises(InvalidParameter, match="epsilon"):
        epsilon(value)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="rho"):
        rho(value)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="epsilon"):
        renyi([(2, value)])  # type: ignore[list-item]


@pytest.mark.parametrize("value", BAD_DELTAS, ids=repr)
def test_S06_delta_is_a_chance_below_one(value: object) -> None:
    with pytest.raises(InvalidParameter, match="delta"):
        epsilon(1, delta=value)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="delta"):
        rho(1, delta=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("order", [1, 0, -2, "1", float("nan"), True])
def test_S06_a_renyi_order_is_above_one(order: object) -> None:
    with pytest.raises(InvalidParameter, match="order"):
        renyi([(order, 1)])  # type: ignore[list-item]


def test_a_renyi_curve_has_at_least_one_point() -> None:
    with pytest.raises(InvalidParameter, match="at least one"):
        renyi([])


@pytest.mark.parametrize("value", ["1e-300", "1e-4000", 11, 10**30, "1e4000", Fraction(1, 3)])
def test_any_finite_positive_epsilon_is_accepted(value: float) -> None:
    assert epsilon(value).epsilon == Fraction(value)


def test_a_float_loss_is_its_shortest_decimal() -> None:
    assert epsilon(0.1) == PureLoss(Fraction(1, 10))
    assert epsilon(0.1) + epsilon(0.2) == epsilon(0.3)
    assert epsilon(1, delta=1e-6) == ApproximateLoss(Fraction(1), Fraction(1, 10**6))
    assert epsilon(1, delta=0) == PureLoss(Fraction(1))


def test_losses_of_one_notion_add() -> None:
    assert epsilon(1) + epsilon(2, delta=1e-6) == epsilon(3, delta=1e-6)
    assert epsilon(2, delta=1e-6) + epsilon(1) == epsilon(3, delta=1e-6)
    assert epsilon(1, delta=1e-6) + epsilon(1, delta=1e-6) == epsilon(2, delta=2e-6)
    assert rho(0.5) + rho(0.25, delta=1e-9) == ZcdpLoss(Fraction(3, 4), Fraction(1, 10**9))
    assert renyi([(2, 1), (3, 2)]) + renyi([(2, 1), (4, 2)]) == renyi([(2, 2)])
    with pytest.raises(InvalidParameter, match="do not share an order"):
        renyi([(2, 1)]) + renyi([(3, 1)])


def test_losses_compare_within_a_notion_and_across_pure_and_approximate() -> None:
    assert epsilon(1) <= epsilon(1, delta=1e-6) <= epsilon(2, delta=1e-6)
    assert not epsilon(1, delta=1e-6) <= epsilon(2)
    assert epsilon(2) >= epsilon(1)
    assert rho(1) <= rho(1, delta=1e-6)
    assert not rho(1, delta=1e-6) <= rho(2)
    assert renyi([(2, 1), (3, 2)]) <= renyi([(2, 1)])
    assert not renyi([(2, 1)]) <= renyi([(2, 2), (3, 9)])


@pytest.mark.parametrize("other", [rho(1), renyi([(2, 1)])], ids=str)
def test_losses_of_different_notions_neither_add_nor_compare(other: ZcdpLoss | RenyiLoss) -> None:
    for mixed in (lambda: epsilon(1) + other, lambda: other + epsilon(1), lambda: epsilon(1) <= other):
        with pytest.raises(InvalidParameter, match="different notions"):
            mixed()


def test_losses_print_in_symbols_and_never_too_small() -> None:
    assert str(epsilon(1, delta=1e-6)) == "ε = 1, δ = 1e-6"
    assert str(rho(0.5)) == "ρ = 0.5"
    assert str(PureLoss(Fraction(1, 3))) == "ε = 0.333334"
    assert str(renyi([(2, 1), (3, 2), (4, 3), (5, 4)])) == "Rényi ε(α) {2: 1, 3: 2, 4: 3, …}"
