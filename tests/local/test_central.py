"""A collection used centrally is charged: by its own loss, or by the smaller one of shuffled, unlinkable reports."""

from fractions import Fraction

import pytest

import tacit
from tacit import local
from tacit.engine.engine import FAILED
from tacit.errors import BudgetExceeded, InvalidParameter, QueryRefused
from tacit.ledger import open_ledger
from tacit.privacy.loss import FailureChance, PureChoice
from tacit_gauntlet.stage.ledger import DECLARATION


@pytest.fixture
def ledger():
    with open_ledger(":memory:") as opened:
        yield opened


def collected(count: int = 2000, **words):
    client = local.Randomizer(["yes", "no"], epsilon=1, **words)
    collector = local.Collector(client.survey, reports_per_person=1 if words.get("tokens") else None)
    tokens = [str(place) for place in range(count)] if words.get("tokens") else None
    collector.add_all(client.reports(["yes"] * count, tokens=tokens))
    return collector


def test_shuffled_reports_cost_less_and_more_people_less_still():
    survey = local.make_survey(2, epsilon=1)
    losses = [
        local.central_guarantee(survey, reports=count, delta=1e-6, unlinkable=True).loss.epsilon
        for count in (1000, 100_000)
    ]
    assert 1 > losses[0] > losses[1] > 0


def test_linkable_reports_have_no_smaller_loss():
    for words in ({"tokens": True}, {"epsilon_first": Fraction(1, 2)}):
        with pytest.raises(QueryRefused, match="linked"):
            local.central_guarantee(local.make_survey(2, epsilon=1, **words), reports=1000, delta=1e-6, unlinkable=True)
    with pytest.raises(InvalidParameter, match="linked"):
        local.central_guarantee(local.make_survey(2, epsilon=1), reports=1000, delta=1e-6, unlinkable=False)


def test_a_collection_and_central_answers_about_the_same_people_add_up(ledger):
    table = ledger.register(name="people", declaration=DECLARATION, budget=tacit.epsilon(2))
    ledger.reserve(table, [PureChoice(Fraction(1, 2))], question_key="central").commit("{}")
    answer = tacit.release_estimate(collected(), ledger, table)
    assert answer["used"] == 2000
    assert ledger.spent(table).epsilon == Fraction(3, 2)
    assert tacit.release_estimate(collected(), ledger, table) == answer  # the same question again: free, same numbers
    with pytest.raises(BudgetExceeded):
        tacit.release_estimate(collected(3000), ledger, table)
    assert ledger.spent(table).epsilon == Fraction(3, 2)


def test_shuffled_reports_are_charged_the_smaller_loss_and_its_delta(ledger):
    table = ledger.register(name="people", declaration=DECLARATION, budget=tacit.epsilon(2, delta=1e-6))
    guarantee = local.central_guarantee(collected().survey, reports=2000, delta=1e-7, unlinkable=True)
    assert guarantee.events == (PureChoice(guarantee.loss.epsilon), FailureChance(Fraction(1, 10**7)))
    tacit.release_estimate(collected(), ledger, table, delta=1e-7, unlinkable=True)
    assert ledger.spent(table).delta == Fraction(1, 10**7)
    with pytest.raises(QueryRefused):
        tacit.release_estimate(collected(tokens=True), ledger, table, delta=1e-7, unlinkable=True)


def test_reports_with_tokens_are_charged_for_as_many_as_the_cap_lets_in(ledger):
    table = ledger.register(name="people", declaration=DECLARATION, budget=tacit.epsilon(5))
    client = local.Randomizer(2, epsilon=1, tokens=True)
    free = local.Collector(client.survey)
    with pytest.raises(InvalidParameter, match="any number"):
        tacit.release_estimate(free, ledger, table)
    capped = local.Collector(client.survey, reports_per_person=3)
    capped.add_all(client.reports([0], tokens=["ann"]))
    tacit.release_estimate(capped, ledger, table)
    assert ledger.spent(table).epsilon == 3


def test_an_estimate_that_fails_after_the_charge_says_what_a_failed_engine_says(ledger, monkeypatch):
    table = ledger.register(name="people", declaration=DECLARATION, budget=tacit.epsilon(2))
    collector = collected()
    monkeypatch.setattr(collector, "estimate", lambda: 1 / 0)
    with pytest.raises(tacit.EngineError) as failed:
        tacit.release_estimate(collector, ledger, table)
    assert str(failed.value) == FAILED
    assert ledger.spent(table).epsilon == 1
