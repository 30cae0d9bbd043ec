"""People, error and epsilon: any one from the other two, exactly from the laws, central and local side by side."""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

import tacit
from tacit.accounting.amplify import local_epsilon, shuffled
from tacit.accounting.cost import gaussian_sigma
from tacit.errors import InvalidParameter
from tacit.local.tradeoffs import CENTRAL_GAUSSIAN, CENTRAL_LAPLACE, LOCAL, SHUFFLED, Accuracy, Kind, tradeoff
from tacit.privacy.law import GaussianLaw, LaplaceLaw

CHANCE = Fraction(1, 20)


def rule(mechanism: str, kind: Kind = "fraction", k: int = 1, touched: int = 1) -> Callable[[int, Fraction], float]:
    return Accuracy(mechanism, kind, k=k, touched=touched, delta=Fraction(1, 10**6), chance=CHANCE).error


def test_L3_two_over_epsilon_alpha_people_are_enough_centrally() -> None:
    """The textbook's n >= 2/(epsilon·alpha) is for three quarters of the time; the exact law needs fewer."""
    for epsilon, alpha in ((1, 0.01), (0.5, 0.02), (0.1, 0.005)):
        found = tradeoff("mean", error=alpha, epsilon=epsilon, confidence=0.75).row(CENTRAL_LAPLACE)
        assert found.people is not None
        assert found.people <= math.ceil(2 / (epsilon * alpha))
        assert found.people == pytest.approx(math.log(4) / (epsilon * alpha), rel=0.01)


def test_L3_locally_it_takes_the_square() -> None:
    found = tradeoff("fraction", error=0.01, epsilon=0.5)
    central, local = found.row(CENTRAL_LAPLACE).people, found.row(LOCAL).people
    assert central is not None
    assert local is not None
    spread = 1 / (2 * math.sinh(0.25))
    assert local == pytest.approx((1.96 * spread / 0.01) ** 2, rel=0.02)
    # half the error: twice the people centrally, four times locally
    finer = tradeoff("fraction", error=0.005, epsilon=0.5)
    assert finer.row(CENTRAL_LAPLACE).people == 2 * central
    assert finer.row(LOCAL).people == pytest.approx(4 * local, rel=0.01)


def test_R3_the_error_of_reports_is_that_of_their_exact_law() -> None:
    """Against a plain convolution of two binomials; the mutant without debiasing's gain is far below."""
    people, epsilon = 400, 1.0
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    half = people // 2
    ones = [math.comb(half, j) * keep**j * (1 - keep) ** (half - j) for j in range(half + 1)]
    reports = np.convolve(ones, ones[::-1])
    found = rule(LOCAL)(people, Fraction(1))
    allowed = found * (2 * keep - 1) * people  # reports off their mean
    off = np.abs(np.arange(people + 1) - half)
    assert reports[off > allowed + 1e-9].sum() <= 0.05
    assert reports[off > allowed - 1 + 1e-9].sum() > 0.05
    naive = found * (2 * keep - 1)
    assert naive < 0.6 * found


@pytest.mark.parametrize("mechanism", [CENTRAL_LAPLACE, CENTRAL_GAUSSIAN, LOCAL, SHUFFLED])
@pytest.mark.parametrize("kind", ["mean", "fraction"])
def test_R3_any_one_of_the_three_follows_from_the_other_two(kind: Kind, mechanism: str) -> None:
    people = tradeoff(kind, error=0.02, epsilon=1).row(mechanism).people
    assert people is not None
    assert tradeoff(kind, people=people, epsilon=1).row(mechanism).error <= 0.02  # type: ignore[operator]
    epsilon = tradeoff(kind, people=people, error=0.02).row(mechanism).epsilon
    assert epsilon is not None
    assert epsilon <= 1
    slack = 1.01 if mechanism == SHUFFLED else 1  # the largest local epsilon is searched for to three digits
    assert rule(mechanism, kind)(people, epsilon) <= 0.02 * slack
    assert rule(mechanism, kind)(people, epsilon * Fraction(98, 100)) > 0.02


def test_shuffled_reports_are_private_at_the_epsilon_of_their_row() -> None:
    """Against the bound for a given report; reports with 2 % more than the row's own would break it."""
    delta = Fraction(1, 10**6)
    for people, central in ((500, Fraction(1)), (20_000, Fraction(1, 2)), (10**6, Fraction(3))):
        each = local_epsilon(central, people, delta, "randomized response")
        bound = partial(shuffled, reports=people, delta=delta, unlinkable=True, randomizer="randomized response")
        assert each > central
        assert bound(each).epsilon <= central < bound(each * Fraction(102, 100)).epsilon


def test_a_shuffler_comes_between_local_and_central() -> None:
    found = tradeoff("fraction", people=10_000, epsilon=1)
    central, local, mixed = (found.row(name).error for name in (CENTRAL_LAPLACE, LOCAL, SHUFFLED))
    assert central < mixed < local / 5  # type: ignore[operator]


def test_without_others_a_shuffler_hides_nothing() -> None:
    assert rule(SHUFFLED)(1, Fraction(1)) == rule(LOCAL)(1, Fraction(1))


def test_central_errors_are_those_of_the_laws() -> None:
    found = tradeoff("fraction", people=1000, epsilon=1)
    assert found.row(CENTRAL_LAPLACE).error == LaplaceLaw(Fraction(1)).smallest_bound(CHANCE) / 1000
    sigma = gaussian_sigma(Fraction(1), Fraction(1), Fraction(1, 10**6))
    assert found.row(CENTRAL_GAUSSIAN).error == GaussianLaw(sigma).smallest_bound(CHANCE) / 1000


def test_L4_ten_thousand_names() -> None:
    """None of 10,000 counts is off by more than ln(200,000) = 12.2, and the exact bound is no larger."""
    found = tradeoff("counts", k=10_000, touched=1, people=10**6, epsilon=1).row(CENTRAL_LAPLACE)
    assert found.error is not None
    assert found.error * 10**6 <= math.log(10_000 / 0.05)
    assert found.error * 10**6 == tacit.Laplace(epsilon=1).error(coordinates=10_000)


def test_G2_laplace_grows_with_k_and_gaussian_with_its_root_and_they_cross() -> None:
    errors = {}
    for k in (1, 4, 16, 64, 256):
        found = tradeoff("counts", k=k, people=10**6, epsilon=1)
        errors[k] = (found.row(CENTRAL_LAPLACE).error or 0.0, found.row(CENTRAL_GAUSSIAN).error or 0.0)
    assert errors[1][0] < errors[1][1]
    assert errors[256][0] > errors[256][1]
    better = [k for k, (laplace, gaussian) in errors.items() if laplace < gaussian]
    assert better == sorted(better)
    assert better == list(errors)[: len(better)]  # once Gaussian is better it stays so
    laplace = errors[256][0] / errors[16][0] / (math.log(256 / 0.05) / math.log(16 / 0.05))
    assert laplace == pytest.approx(16, rel=0.05)
    gaussian = errors[256][1] / errors[16][1] / math.sqrt(math.log(256 / 0.05) / math.log(16 / 0.05))
    assert gaussian == pytest.approx(4, rel=0.1)


def test_S2_the_most_common_costs_far_less_than_all_the_counts() -> None:
    k = 1000
    largest = tradeoff("maximum", k=k, people=10**6, epsilon=1).row(CENTRAL_LAPLACE).error
    every = tradeoff("counts", k=k, people=10**6, epsilon=1).row(CENTRAL_LAPLACE).error
    assert largest is not None
    assert every is not None
    assert largest * 10**6 == tacit.NoisyMax(epsilon=1, monotone=True).error(candidates=k)
    assert every > 500 * largest


def test_what_no_number_reaches_is_said() -> None:
    found = tradeoff("counts", k=100, people=1000, error=0.001)
    assert found.row(LOCAL).epsilon is None
    assert "no ε up to 36 is enough" in str(found)
    assert "more people than there are" in str(tradeoff("maximum", k=10**5, error=1e-4, epsilon=0.1))


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("median", {"people": 10, "epsilon": 1}, "kind must be"),
        ("mean", {"people": 10}, "give exactly two"),
        ("mean", {"people": 10, "epsilon": 1, "error": 0.1}, "give exactly two"),
        ("mean", {"people": 0, "epsilon": 1}, "people"),
        ("mean", {"people": 10, "epsilon": 0}, "epsilon must be"),
        ("mean", {"people": 10, "error": 2}, "error must be"),
        ("counts", {"people": 10, "epsilon": 1, "k": 2, "touched": 3}, "touched"),
        ("maximum", {"people": 10, "epsilon": 1, "k": 1}, "k must be"),
        ("maximum", {"people": 10, "epsilon": 1, "k": 3, "touched": 2}, "one option"),
        ("mean", {"people": 10, "epsilon": 1, "delta": 0}, "delta"),
        ("mean", {"people": 10, "epsilon": 1, "confidence": 1}, "confidence"),
    ],
)
def test_bad_input_is_refused_with_the_rule(kind: Kind, options: dict[str, float], says: str) -> None:
    with pytest.raises(InvalidParameter, match=says):
        tradeoff(kind, **options)  # type: ignore[arg-type]


def test_the_command_reads_percent(capsys: pytest.CaptureFixture[str]) -> None:
    from tacit.cli.app import main

    with pytest.raises(SystemExit) as stopped:
        main(["tradeoff", "fraction", "--error", "1%", "--epsilon", "1"])
    assert stopped.value.code == 0
    assert str(tradeoff("fraction", error=0.01, epsilon=1)) in capsys.readouterr().out
