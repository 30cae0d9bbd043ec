"""An audit of models stays below what is charged, and sees noise that is missing."""

from dataclasses import replace

import pytest

import tacit
from tacit.auditing import AuditResult
from tacit.exact import ExactIntegers
from tacit.learning import AdditiveClassifier, rounds
from tacit.privacy import GaussianNoise

# A false alarm of either test has a chance of at most 1e-9.
SURE = "0.999999999"


def audited(draws: int, epsilon: int = 8) -> AuditResult:
    model = AdditiveClassifier(epsilon=epsilon, delta="1e-5", rounds=1)
    return tacit.audit_model(model, draws=draws, people=60, confidence=SURE)


def test_a_planted_person_is_not_told_apart_by_more_than_is_charged():
    found = audited(120)
    assert not found.violated
    assert found.draws == 120
    assert "no charge was made" in str(found)


def test_missing_noise_is_seen(monkeypatch: pytest.MonkeyPatch):
    honest = rounds.release_integers

    def quieter(exact: ExactIntegers, event: GaussianNoise) -> list[int]:
        # the person then moves all rounds by 24 deviations: every training is told apart, but for a chance below 1e-30
        return honest(exact, replace(event, sigma=event.sigma / 16))

    monkeypatch.setattr(rounds, "release_integers", quieter)
    assert audited(120).violated


def test_what_is_no_estimator_is_refused():
    with pytest.raises(tacit.InvalidParameter, match="takes an estimator"):
        tacit.audit_model("a model")


@pytest.mark.slow
def test_ten_thousand_trainings_stay_below_what_is_charged():
    assert not audited(5_000).violated
