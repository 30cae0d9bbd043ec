"""What a loss means: randomized response attains every figure, so none could be smaller, and none is exceeded."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.accounting.convert import explain, meaning_line
from tacit.errors import InvalidParameter
from tacit.privacy.loss import ApproximateLoss, PureLoss


def test_P4_randomized_response_attains_the_advantage_and_the_posterior() -> None:
    epsilon = 1.5
    keep = math.exp(epsilon) / (1 + math.exp(epsilon))
    one = explain(1.5).one
    assert float(one.advantage) == pytest.approx(keep - (1 - keep), rel=1e-12)
    assert float(one.accuracy) == pytest.approx(keep, rel=1e-12)
    prior = 0.1
    assert float(one.posterior(Fraction(1, 10))) == pytest.approx(
        prior * keep / (prior * keep + (1 - prior) * (1 - keep))
    )
    # the test "the report says in" has a false alarm rate of 1 - keep, and detects keep
    assert float(one.detection(Fraction(1 - keep))) == pytest.approx(keep, rel=1e-9)


def test_the_membership_advantage_with_a_delta_is_its_formula() -> None:
    found = float(explain(1, delta=0.01).one.advantage)
    assert found == pytest.approx((math.expm1(1) + 0.02) / (math.e + 1), rel=1e-12)
    # the mutant: tanh(epsilon/2), delta forgotten
    assert found > math.tanh(0.5) + 0.005


@settings(max_examples=60, deadline=None)
@given(st.fractions(Fraction(1, 100), 8), st.fractions(0, Fraction(1, 10)), st.fractions(0, 1))
def test_P4_no_test_between_the_worst_pair_beats_the_curve(epsilon: Fraction, delta: Fraction, share: Fraction) -> None:
    """The worst pair: with chance delta the truth is shown, otherwise randomized response. Every threshold test on it,
    randomized ones included, lies on or below the curve, and the curve never exceeds 1."""
    loss = ApproximateLoss(epsilon, delta) if delta else PureLoss(epsilon)
    one = explain(loss).one
    keep = math.exp(float(epsilon)) / (1 + math.exp(float(epsilon)))
    d = float(delta)
    # accuse on "shown", then on "report says in", then on "report says out"
    alarms = [0.0, (1 - d) * (1 - keep), 1 - d]
    found = [d, d + (1 - d) * keep, 1.0]
    for i in range(2):
        alarm = alarms[i] + float(share) * (alarms[i + 1] - alarms[i])
        detected = found[i] + float(share) * (found[i + 1] - found[i])
        assert float(one.detection(Fraction(alarm))) >= detected - 1e-12
    assert one.detection(Fraction(1)) == 1


def test_P3_groups_are_told_what_is_left_for_them() -> None:
    found = explain(1, delta=1e-6, groups=(2, 30))
    assert [attack.units for attack in found.attacks] == [1, 2, 30]
    assert found.attacks[1].epsilon == 2
    assert float(found.attacks[1].delta) == pytest.approx(1e-6 * (1 + math.e))
    assert found.attacks[2].delta == 1
    assert "nothing is promised to this group" in str(found)


def test_other_notions_are_read_at_a_small_delta() -> None:
    assert explain(tacit.rho(0.1)).loss.epsilon == pytest.approx(2.1419, rel=1e-4)
    assert "1e-6" in meaning_line(tacit.rho(0.1))


def test_numbers_are_rounded_up_and_never_above_certain() -> None:
    assert "73.2 %" in str(explain(1))  # 73.106
    assert "100.1" not in str(explain(200))
    assert "2.72 times" in meaning_line(PureLoss(Fraction(1)))


@pytest.mark.parametrize(
    "options",
    [{"epsilon": 0}, {"epsilon": 1, "delta": 1}, {"epsilon": 1, "priors": [2]}, {"epsilon": 1, "groups": [0]}],
)
def test_bad_input_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter):
        explain(options.pop("epsilon"), **options)  # type: ignore[arg-type]


def test_the_command_says_it(capsys: pytest.CaptureFixture[str]) -> None:
    from tacit.cli.app import main

    with pytest.raises(SystemExit) as stopped:
        main(["explain", "--epsilon", "1", "--delta", "1e-6", "--prior", "0.2", "--group", "3"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    assert "ε = 1, δ = 1e-6" in shown
    assert "20 %" in shown
    with pytest.raises(SystemExit) as stopped:
        main(["explain", "--epsilon", "-1"])
    assert stopped.value.code == 2


@pytest.mark.parametrize("epsilon", ["1e5", "1e9", "1e4000"])
def test_a_loss_beyond_all_sense_is_explained_at_once(epsilon):
    meaning = explain(epsilon)
    assert meaning.one.odds == math.inf
    assert (
        meaning.one.detection(Fraction(1, 1000)) == meaning.one.accuracy == meaning.one.posterior(Fraction(1, 9)) == 1
    )
    assert "inf times as likely" in str(meaning)
