"""A batch fixed in advance: every rule's total is valid, the smallest is used, and it says which."""

import math
from fractions import Fraction

import mpmath
import pytest

import tacit
from tacit.accounting import composition
from tacit.accounting.composition import compose, parallel
from tacit.errors import InvalidParameter
from tacit.privacy.loss import (
    ApproximateLoss,
    ExponentialChoice,
    GaussianNoise,
    KeyThreshold,
    LaplaceNoise,
    Loss,
    PureChoice,
    PureLoss,
    RenyiLoss,
    ZcdpLoss,
)
from tests.accounting import oracle

MILLION = Fraction(1, 10**6)
NOISE = GaussianNoise(Fraction(10), Fraction(1), scalar=True)


def named(found: composition.Batch) -> dict[str, float | None]:
    return {way.name: None if way.loss is None else float(way.loss.epsilon) for way in found.ways}


def test_P2_epsilons_and_deltas_add_in_basic_composition() -> None:
    found = compose([tacit.epsilon(1), tacit.epsilon(0.5, delta=1e-7)], delta=1e-6)
    assert named(found)["basic"] == 1.5
    assert compose([tacit.epsilon(0.1)] * 3, delta=0).loss == PureLoss(Fraction(3, 10))


def test_P2_the_smallest_valid_total_is_used_and_named() -> None:
    few, many = (
        compose({PureChoice(Fraction(1)): 2}, delta=1e-6),
        compose({PureChoice(Fraction(1, 10)): 200}, delta=1e-6),
    )
    for found in (few, many):
        known = [value for value in named(found).values() if value is not None]
        assert float(found.loss.epsilon) == min(known)
        assert named(found)[found.way] == min(known)
    # few large ones: adding is as good as anything; many small ones: it is not
    assert named(few)["basic"] == pytest.approx(2)
    assert float(few.loss.epsilon) == pytest.approx(2, rel=1e-4)
    assert float(many.loss.epsilon) < 0.5 * named(many)["basic"]  # type: ignore[operator]
    assert f"({many.way})" in str(many)


def test_P2_classical_advanced_composition_is_its_formula() -> None:
    epsilon, times, slack = 0.1, 100, 1e-6
    formula = epsilon * math.sqrt(2 * times * math.log(1 / slack)) + times * epsilon * math.expm1(epsilon)
    ours = composition.classical_epsilon([(Fraction(1, 10), times)], MILLION)
    assert float(ours) == pytest.approx(formula, rel=1e-12)
    assert float(composition.classical_delta([(Fraction(1, 10), times)], ours)) == pytest.approx(slack, rel=1e-9)
    assert composition.classical_delta([(Fraction(1), 10)], Fraction(1)) == 1


def kairouz_oh_viswanath(epsilon: Fraction, times: int, i: int) -> mpmath.mpf:
    """Their closed form: the delta at (times - 2i)·epsilon of as many epsilon-DP releases."""
    e = oracle.real(epsilon)
    terms = (
        mpmath.binomial(times, j) * (mpmath.exp((times - j) * e) - mpmath.exp((times - 2 * i + j) * e))
        for j in range(i)
    )
    return mpmath.fsum(terms) / (1 + mpmath.exp(e)) ** times


@pytest.mark.parametrize(("times", "i"), [(10, 2), (30, 9), (100, 30)])
def test_P2_optimal_advanced_composition_is_kairouz_oh_and_viswanaths(times: int, i: int) -> None:
    epsilon = Fraction(1, 4)
    truth = kairouz_oh_viswanath(epsilon, times, i)
    ours = oracle.real(composition.optimal_delta([(epsilon, times)], (times - 2 * i) * epsilon))
    assert truth <= ours <= truth * (1 + mpmath.mpf(10) ** -8)


def test_P2_optimal_composition_of_unequal_promises_lies_between_those_of_equal_ones() -> None:
    low, high = Fraction(1, 10), Fraction(1, 5)
    mixed = composition.optimal_epsilon([(low, 20), (high, 20)], MILLION)
    least, most = (composition.optimal_epsilon([(each, 40)], MILLION) for each in (low, high))
    assert mixed is not None
    assert least is not None
    assert most is not None
    assert least < mixed < most


def test_P2_every_rule_is_above_the_truth_for_one_gaussian_batch() -> None:
    """Ten scalars are one vector's worth of noise: the continuous law bounds all rules from below, nearly."""
    found = compose({GaussianNoise(Fraction(1000), Fraction(1), scalar=True): 10}, delta=1e-6)
    move = math.sqrt(10) / 1000
    goal = mpmath.mpf(10) ** -6

    def excess(e: mpmath.mpf) -> mpmath.mpf:
        return mpmath.ncdf(move / 2 - e / move) - mpmath.exp(e) * mpmath.ncdf(-move / 2 - e / move) - goal

    low, high = mpmath.mpf("0.001"), mpmath.mpf("0.1")
    for _ in range(80):
        low, high = ((low + high) / 2, high) if excess((low + high) / 2) > 0 else (low, (low + high) / 2)
    exact = high
    known = [value for value in named(found).values() if value is not None]
    assert min(known) >= float(exact) * (1 - 1e-6)
    assert min(known) <= float(exact) * (1 + 1e-4)
    assert found.way == "numerical"


def test_P2_delta_at_an_epsilon_is_the_other_direction() -> None:
    there = compose([tacit.Laplace(epsilon=0.1)] * 40, delta=1e-5)
    back = compose([tacit.Laplace(epsilon=0.1)] * 40, epsilon=str(there.loss.epsilon))
    assert isinstance(back.loss, ApproximateLoss)
    assert float(back.loss.delta) == pytest.approx(1e-5, rel=1e-6)
    assert compose([tacit.epsilon(1)] * 2, epsilon=2).loss == PureLoss(Fraction(2))


def test_P2_a_forgotten_delta_would_show() -> None:
    """The mutant: a batch whose thresholds' deltas are dropped claims less than with them."""
    with_it = compose([NOISE, KeyThreshold(Fraction(9, 10**7))], delta=1e-6)
    without = compose([NOISE], delta=1e-6)
    assert with_it.loss.epsilon > without.loss.epsilon * Fraction(11, 10)
    with pytest.raises(InvalidParameter, match="already fail with that probability"):
        compose([NOISE, KeyThreshold(Fraction(1, 10**6))], delta=1e-6)


def test_events_of_every_kind_compose_and_print() -> None:
    events = [
        NOISE,
        LaplaceNoise(Fraction(10), Fraction(2)),
        PureChoice(Fraction(1, 10)),
        ExponentialChoice(Fraction(1, 4)),
    ]
    found = compose(events, delta=1e-6)
    assert found.releases == 4
    assert all(value is not None for value in named(found).values())
    assert all(way.name in str(found) for way in found.ways)
    assert compose([LaplaceNoise(Fraction(10), Fraction(1, 2))], delta=1e-6).loss.epsilon == 0  # less than a step


@pytest.mark.parametrize(
    "events",
    [
        {PureChoice(Fraction(30)): 1000},
        {PureChoice(Fraction(1, 10**9)): 10},
        {GaussianNoise(Fraction(1, 1000), Fraction(1), scalar=True): 3},
        {GaussianNoise(Fraction(2**20), Fraction(2**50)): 5},
        {LaplaceNoise(Fraction(10**4), Fraction(1)): 10**6},
        {
            PureChoice(Fraction(5)): 2,
            PureChoice(Fraction(1, 1000)): 1000,
            GaussianNoise(Fraction(10**6), Fraction(1)): 10,
        },
    ],
)
def test_extreme_batches_have_a_total_no_larger_than_the_sum(events: dict[object, int]) -> None:
    for delta in (1e-12, 1e-6, 0.5):
        found = compose(events, delta=delta)
        basic = named(found)["basic"]
        assert basic is not None
        assert 0 <= found.loss.epsilon <= basic * (1 + 1e-12)


def test_a_mapping_says_how_often() -> None:
    assert compose({NOISE: 5}, delta=1e-6) == compose([NOISE] * 5, delta=1e-6)


@pytest.mark.parametrize(
    ("events", "options", "says"),
    [
        ([], {"delta": 1e-6}, "the batch is empty"),
        ([NOISE], {}, "give delta"),
        ([NOISE], {"delta": 1e-6, "epsilon": 1}, "give delta"),
        ([NOISE], {"delta": 0}, "not pure"),
        ([NOISE], {"delta": 1}, "delta must be"),
        ([NOISE], {"epsilon": -1}, "epsilon must be"),
        ([PureChoice(Fraction(100))], {"epsilon": 1}, "larger epsilon"),
        (["noise"], {"delta": 1e-6}, "cannot compose a str"),
        ([ZcdpLoss(Fraction(1))], {"delta": 1e-6}, "cannot compose a ZcdpLoss"),
        ({NOISE: 0}, {"delta": 1e-6}, "how often"),
        ({NOISE: 1.5}, {"delta": 1e-6}, "how often"),
    ],
)
def test_bad_batches_are_refused_with_the_rule(events: object, options: dict[str, float], says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        compose(events, **options)  # type: ignore[arg-type]


def pure(*epsilons: int) -> list[Loss]:
    return [PureLoss(Fraction(epsilon)) for epsilon in epsilons]


def test_P2_parts_disjoint_in_units_cost_the_largest() -> None:
    assert parallel(pure(1, 3, 2)) == PureLoss(Fraction(3))


def test_P2_where_a_unit_touches_g_parts_the_g_largest_add_and_2g_under_replace() -> None:
    assert parallel(pure(1, 3, 2), parts_per_unit=2) == PureLoss(Fraction(5))
    assert parallel(pure(1, 3, 2, 1), neighbours="replace") == PureLoss(Fraction(5))
    assert parallel(pure(1, 3, 2, 1), parts_per_unit=2, neighbours="replace") == PureLoss(Fraction(7))
    rho = [ZcdpLoss(Fraction(i), Fraction(i, 100)) for i in (1, 2, 3)]
    assert parallel(rho, parts_per_unit=2) == ZcdpLoss(Fraction(5), Fraction(5, 100))
    mixed: list[Loss] = [ApproximateLoss(Fraction(1), Fraction(1, 10)), ApproximateLoss(Fraction(2), Fraction(1, 100))]
    assert parallel(mixed) == ApproximateLoss(Fraction(2), Fraction(1, 10))


def test_P2_replacing_a_unit_really_touches_two_parts() -> None:
    """The mutant (g parts under replace): a unit that moves from one part to another shows in both counts."""
    scale = Fraction(1)
    masses = oracle.laplace_masses(scale, 200)
    # two parts, one count each, a unit moves from the first to the second: the loss reaches 2, not 1
    loss = mpmath.log(masses[5] / masses[4]) * -1 + mpmath.log(masses[4] / masses[5]) * 1
    claimed = parallel(pure(1, 1), neighbours="replace")
    assert isinstance(claimed, PureLoss)
    assert loss == pytest.approx(2)
    assert loss <= claimed.epsilon * (1 + 1e-12)
    assert loss > PureLoss(Fraction(1)).epsilon


@pytest.mark.parametrize(
    ("losses", "options"),
    [
        ([], {}),
        (pure(1), {"neighbours": "swap"}),
        (pure(1), {"parts_per_unit": 0}),
        ([PureLoss(Fraction(1)), ZcdpLoss(Fraction(1))], {}),
        ([RenyiLoss(((Fraction(2), Fraction(1)),))], {}),
    ],
)
def test_bad_parts_are_refused(losses: list[Loss], options: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        parallel(losses, **options)  # type: ignore[arg-type]
