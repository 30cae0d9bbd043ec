"""Secret, fresh sampling and shuffling lower a loss, by as much as is true and no more; elsewhere they are refused."""

import itertools
import math
from fractions import Fraction

import mpmath
import pytest

from tacit.accounting import amplify, cost
from tacit.accounting.amplify import amplified, poisson_sample, sampled_pair, shuffled
from tacit.accounting.composition import compose
from tacit.accounting.pld import Total
from tacit.errors import InvalidParameter
from tacit.numbers import working_precision
from tacit.privacy.loss import ApproximateLoss, PureLoss, SubsampledGaussian, ZcdpLoss
from tests.accounting import oracle

STEPS = 2**20
MILLION = Fraction(1, 10**6)
SAMPLE = poisson_sample(0.01, secret=True, fresh=True)
SAMPLED = SubsampledGaussian(Fraction(STEPS), Fraction(STEPS**2), SAMPLE.rate)


def test_sampling_amplifies_randomized_response_by_exactly_the_formula() -> None:
    """One unit's bit, reported by randomized response if sampled and as a fair coin's answer to nothing if not.

    The pair is (1 - q)·Q + q·P against Q with P and Q at ratio e^epsilon: no bound can be lower.
    """
    epsilon, rate = Fraction(1), Fraction(1, 20)
    flip = 1 / (1 + mpmath.e)
    ratio = ((1 - mpmath.mpf(1) / 20) * flip + (1 - flip) / 20) / flip
    claimed = amplified(PureLoss(epsilon), poisson_sample(rate, secret=True, fresh=True))
    truth = mpmath.log(ratio)
    assert float(claimed.epsilon) == pytest.approx(float(truth), rel=1e-12)
    assert mpmath.mpf(claimed.epsilon.numerator) / claimed.epsilon.denominator >= truth
    # the mutant: rate·epsilon, the small-epsilon rule of thumb, claims less than is true
    assert float(rate * epsilon) < float(truth)


def test_sampling_lowers_delta_in_proportion() -> None:
    found = amplified(ApproximateLoss(Fraction(1), MILLION), SAMPLE)
    assert isinstance(found, ApproximateLoss)
    assert found.delta == MILLION / 100
    whole = amplified(PureLoss(Fraction(1)), poisson_sample(1, secret=True, fresh=True))
    assert whole.epsilon == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rate": 0}, "rate must be"),
        ({"rate": 1.5}, "rate must be"),
        ({"secret": False}, "known"),
        ({"fresh": False}, "several releases"),
        ({"neighbours": "replace"}, "add or remove"),
    ],
)
def test_what_does_not_amplify_is_refused(options: dict[str, object], says: str) -> None:
    conditions: dict[str, object] = {"rate": 0.1, "secret": True, "fresh": True} | options
    with pytest.raises(InvalidParameter, match=says):
        poisson_sample(**conditions)  # type: ignore[arg-type]


def test_other_notions_are_refused() -> None:
    with pytest.raises(InvalidParameter, match="pure and"):
        amplified(ZcdpLoss(Fraction(1)), SAMPLE)  # type: ignore[arg-type]


def test_a_reused_sample_would_break_the_amplified_promise() -> None:
    """Why `fresh` is asked for: two releases from one sample are not two amplified releases."""
    epsilon, rate = 1.0, 0.1
    flip = 1 / (1 + math.e)
    together = 0.0
    for first, second in itertools.product((0, 1), repeat=2):
        p = math.prod(1 - flip if bit else flip for bit in (first, second))
        q = math.prod(flip if bit else 1 - flip for bit in (first, second))
        together = max(together, math.log(((1 - rate) * q + rate * p) / q))
    claimed = 2 * math.log1p(rate * math.expm1(epsilon))
    assert together > claimed


@pytest.mark.parametrize("order", [2, 5, 16])
def test_sampled_noise_has_the_renyi_divergence_of_the_mixture(order: int) -> None:
    """Against a plain integral over the real line: on a grid this fine the two agree."""
    rate, sigma = mpmath.mpf("0.01"), 1

    def mixture(z: mpmath.mpf) -> mpmath.mpf:
        return (1 - rate) + rate * mpmath.exp((2 * z - 1) / (2 * sigma**2))

    with mpmath.workprec(80):
        moment = mpmath.quad(lambda z: mpmath.npdf(z) * mixture(z) ** order, [-12, 0, order / 2, order, order + 12])
        truth = mpmath.log(moment) / (order - 1)
    ours = cost.renyi(SAMPLED, [Fraction(order)]).curve[0][1]
    assert float(ours) == pytest.approx(float(truth), rel=1e-9)


def test_sampled_noise_needs_whole_orders() -> None:
    for orders in ([], [Fraction(3, 2)], [Fraction(1)], [Fraction(5000)]):
        with pytest.raises(InvalidParameter, match="orders"):
            cost.renyi(SAMPLED, orders)


def test_the_numerical_total_of_sampled_noise_is_dp_accountings_or_less() -> None:
    accounting = pytest.importorskip("dp_accounting")
    peer = pytest.importorskip("dp_accounting.pld.pld_privacy_accountant").PLDAccountant()
    peer.compose(accounting.PoissonSampledDpEvent(0.01, accounting.GaussianDpEvent(1.0)), 300)
    found = compose({SAMPLED: 300}, delta=1e-6)
    theirs = peer.get_epsilon(1e-6)
    assert found.way == "numerical"
    assert theirs * (1 - 1e-3) <= float(found.loss.epsilon) <= theirs * (1 + 1e-6)


def test_the_direction_of_adding_a_unit_is_looked_at_too() -> None:
    with working_precision(128):
        removing, adding = (sampled_pair(SAMPLED, adding=adding) for adding in (False, True))
    assert removing is not None
    assert adding is not None
    answers = [Total([(found, 50)]).delta(Fraction(1, 10)) for found in (removing, adding)]
    both = compose({SAMPLED: 50}, epsilon=0.1)
    numerical = next(way.loss for way in both.ways if way.name == "numerical")
    assert isinstance(numerical, ApproximateLoss)
    assert numerical.delta == max(answers)
    assert answers[0] != answers[1]


def test_noise_too_narrow_for_the_numerical_total_has_a_renyi_one() -> None:
    narrow = SubsampledGaussian(Fraction(1), Fraction(1), SAMPLE.rate)
    found = compose({narrow: 10}, delta=1e-6)
    assert found.way == "Rényi"


# ---- shuffling -------------------------------------------------------------------------------------------------------


def truth_of_shuffling(reports: int, local: float, epsilon: float) -> float:
    """The exact delta of shuffled binary randomized response: everyone answers 0 but one person, who may answer 1."""
    keep = math.exp(local) / (1 + math.exp(local))
    others = [math.comb(reports - 1, j) * (1 - keep) ** j * keep ** (reports - 1 - j) for j in range(reports)]

    def counts(one: float) -> list[float]:
        padded = [0.0, *others, 0.0]
        return [one * padded[j] + (1 - one) * padded[j + 1] for j in range(reports + 1)]

    with_one, without = counts(keep), counts(1 - keep)
    there = sum(max(0.0, p - math.exp(epsilon) * q) for p, q in zip(with_one, without, strict=True))
    back = sum(max(0.0, q - math.exp(epsilon) * p) for p, q in zip(with_one, without, strict=True))
    return max(there, back)


@pytest.mark.parametrize(("reports", "local"), [(20, 1.0), (200, 1.0), (500, 2.0)])
def test_the_bound_is_above_what_shuffled_randomized_response_shows(reports: int, local: float) -> None:
    for randomizer in ("any", "randomized response"):
        clones = amplify._clones(Fraction(local), reports, randomizer, blocks=64)
        for epsilon in (0.1, 0.3, 0.8):
            bound = float(clones.delta(Fraction(epsilon)))
            assert bound >= truth_of_shuffling(reports, local, epsilon) * (1 - 1e-12)
    # the mutant: as many clones as reports; it claims less than is shown
    all_clones = amplify._Clones(Fraction(local), (reports - 1,), (1.0,), Fraction(0))
    assert float(all_clones.delta(Fraction(3, 10))) < truth_of_shuffling(reports, local, 0.3)


def test_the_bound_is_the_sum_over_clones_by_brute_force() -> None:
    reports, local, epsilon = 60, 1, 0.3
    w = math.e / (math.e + 1)
    total = 0.0
    for clones in range(reports):
        chance = (
            math.comb(reports - 1, clones) * math.exp(-local * clones) * (-math.expm1(-local)) ** (reports - 1 - clones)
        )
        coins = [0.0, *(math.comb(clones, a) / 2**clones for a in range(clones + 1)), 0.0]
        for a in range(clones + 2):
            p, q = w * coins[a] + (1 - w) * coins[a + 1], (1 - w) * coins[a] + w * coins[a + 1]
            total += chance * max(0.0, p - math.exp(epsilon) * q)
    ours = float(
        amplify._clones(Fraction(local), reports, "any", blocks=10**6).delta(Fraction(epsilon).limit_denominator(100))
    )
    assert ours == pytest.approx(total, rel=1e-7)


def test_the_numerical_bound_is_below_the_closed_form() -> None:
    numerical = shuffled(1, reports=2000, delta=1e-6, unlinkable=True)
    closed = oracle.shuffled_closed_form(Fraction(1), 2000, MILLION)
    assert numerical.epsilon < closed / 2
    assert (
        shuffled(1, reports=2000, delta=1e-6, unlinkable=True, randomizer="randomized response").epsilon
        < numerical.epsilon
    )
    assert shuffled(1, reports=2, delta=1e-12, unlinkable=True).epsilon == 1  # two people hide nothing at this delta


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"unlinkable": False}, "linked"),
        ({"reports": 1}, "reports"),
        ({"reports": 10**10}, "at most"),
        ({"epsilon": 30}, "at most 20"),
        ({"epsilon": 0}, "epsilon must be above 0"),
        ({"delta": 0}, "delta must be"),
        ({"randomizer": "mine"}, "randomizer"),
    ],
)
def test_what_shuffling_does_not_cover_is_refused(options: dict[str, object], says: str) -> None:
    given: dict[str, object] = {"epsilon": 1, "reports": 1000, "delta": 1e-6, "unlinkable": True} | options
    with pytest.raises(InvalidParameter, match=says):
        shuffled(given.pop("epsilon"), **given)  # type: ignore[arg-type]


def test_amplification_is_private_to_units() -> None:
    assert amplify.PoissonSample(rate=Fraction(1, 2), secret=True, fresh=True).neighbours == "add-remove"
