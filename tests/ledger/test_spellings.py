"""A ledger of the layout before, in which names that differ in case alone had an account each, goes on as one name."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

from tacit.errors import BudgetExceeded, DeadRequest
from tacit.ledger import StoredAnswer, open_ledger
from tacit.privacy.loss import PureChoice
from tests.ledger.kept_ledger import clock, restore

FOLDER = Path(__file__).parent / "kept_spellings" / "2026-11-15"
KEPT = json.loads((FOLDER / "kept.json").read_text())
GRAIN_OF_LOSS = [PureChoice(Fraction(1, 100))]


@pytest.fixture
def ledger(tacit_home):
    with open_ledger(restore(FOLDER, tacit_home), create=False, clock=clock) as opened:
        yield opened


def test_it_opens_verifies_and_is_only_read_until_it_is_written(ledger):
    assert ledger.verify().entries == ledger.length() == KEPT["entries"]
    assert ledger.spent(ledger.table("pay"), "BEN").epsilon == Fraction(9, 10)
    assert ledger.analysts(ledger.table("pay")) == ("Ben", "DORA")
    assert ledger.length() == KEPT["entries"]


@pytest.mark.parametrize("spelling", ["Ben", "ben", "BEN"])
def test_two_spellings_do_not_have_two_budgets(ledger, spelling):
    pay = ledger.table("pay")
    with pytest.raises(BudgetExceeded, match="for ben"):  # 0.9 is spent, of 1 and of 0.5: both hold
        ledger.reserve(pay, GRAIN_OF_LOSS, question_key="new", analyst=spelling)
    ledger.grant("pay", ledger.budget_status(pay, "Ben")[1].budget.loss, analyst="bEN")  # 1, for both spellings
    ledger.reserve(pay, [PureChoice(Fraction(1, 10))], question_key="new", analyst=spelling)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(pay, GRAIN_OF_LOSS, question_key="newer", analyst=spelling)
    assert ledger.verify().kinds["names"] == 1


def test_what_was_answered_is_free_under_every_spelling(ledger):
    pay = ledger.table("pay")
    for analyst, question, number in (("BEN", "q2", "ben q2"), ("ben", "q3", "Ben q3"), ("dora", "q1", "DORA q1")):
        again = ledger.reserve(pay, GRAIN_OF_LOSS, question_key=question, analyst=analyst)
        assert isinstance(again, StoredAnswer)
        assert again.receipt.number == KEPT["answers"][number]
        assert ledger.recall(pay, question_key=question, analyst=analyst) == again
    assert ledger.length() == KEPT["entries"]


def test_a_request_is_charged_once_under_every_spelling_and_a_dead_one_stays_dead(ledger):
    pay = ledger.table("pay")
    again = ledger.reserve(pay, GRAIN_OF_LOSS, question_key="q3", analyst="ben", request_id="r-1")
    assert isinstance(again, StoredAnswer)
    assert ledger.charged_for(pay, request_id="r-dead", analyst="bEN") == KEPT["entries"]
    with pytest.raises(DeadRequest):
        ledger.reserve(pay, GRAIN_OF_LOSS, question_key="q4", analyst="ben", request_id="r-dead")


def test_it_is_charged_on_and_verifies(ledger):
    pay = ledger.table("pay")
    ledger.reserve(pay, [PureChoice(Fraction(4, 5))], question_key="new", analyst="Dora").commit("4")
    assert ledger.spent(pay, "dora").epsilon == 1
    with pytest.raises(BudgetExceeded, match="for each analyst"):
        ledger.reserve(pay, GRAIN_OF_LOSS, question_key="newer", analyst="DORA")
    found = ledger.verify()
    assert (found.kinds["names"], found.entries) == (1, KEPT["entries"] + 4)
    assert ledger.analysts(pay) == ("Ben", "DORA")
