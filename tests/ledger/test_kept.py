"""A ledger that an earlier version wrote still opens, verifies, gives its answers for free and is charged on."""

import json
from fractions import Fraction
from pathlib import Path

import pytest

import tacit
from tacit.errors import BudgetExceeded, DeadRequest
from tacit.ledger import open_ledger
from tacit.ledger.certificate import verify_certificate
from tacit.privacy import loss as event
from tests.ledger.kept_ledger import EVENTS, QUESTIONS, clock, restore, surveyed, visits, write

KEPT = sorted(path for path in (Path(__file__).parent / "kept").iterdir() if path.is_dir())


@pytest.fixture(params=KEPT, ids=lambda folder: folder.name)
def folder(request):
    return request.param


@pytest.fixture
def kept(folder):
    return json.loads((folder / "kept.json").read_text())


@pytest.fixture
def ledger(folder, tacit_home):
    with open_ledger(restore(folder, tacit_home), create=False, clock=clock) as opened:
        yield opened


def test_it_opens_and_verifies(ledger, kept):
    assert ledger.id == kept["ledger"]
    assert ledger.verify().entries == ledger.length() == kept["entries"]


def test_what_was_spent_is_still_spent(ledger, kept):
    for table in ledger.tables():
        spent, before = ledger.spent(table), kept["spent"][table.name]
        assert {name: None if text is None else Fraction(text) for name, text in before.items()} == vars(spent)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_asked_before_is_free_and_has_the_same_numbers(ledger, kept, question):
    ask, words = QUESTIONS[question]
    answer = ask(visits(ledger)).answer(**words, accept_noise=True)
    assert answer.facts.free
    assert answer.to_dicts() == kept["answers"][question]
    assert ledger.length() == kept["entries"]


def test_a_shuffled_survey_that_was_stored_is_free(ledger, kept):
    survey = ledger.table("survey")
    for name, words in (("shuffled", {"delta": 1e-7, "unlinkable": True}), ("not shuffled", {})):
        assert tacit.release_estimate(surveyed(), ledger, survey, **words) == kept["answers"][name]
    assert ledger.length() == kept["entries"]


def test_a_request_without_an_answer_stays_dead_and_a_refusal_a_refusal(ledger, kept):
    pay, events = ledger.table("pay"), [event.PureChoice(Fraction(2))]
    with pytest.raises(DeadRequest):
        ledger.reserve(pay, events, question_key="no answer", request_id="r-dead")
    with pytest.raises(BudgetExceeded) as refused:
        ledger.reserve(pay, events, question_key="too much")
    assert str(refused.value) == kept["answers"]["refused"]


def test_it_is_charged_on_and_every_budget_counts_from_where_it_was(ledger, kept):
    table = visits(ledger)
    before = ledger.spent(table.session.registered).epsilon
    table.count().answer(epsilon=0.25)
    assert ledger.spent(table.session.registered).epsilon == before + Fraction(1, 4)
    with pytest.raises(BudgetExceeded, match="for ann"):
        table.sum("pay").answer(epsilon=0.95, analyst="ann")
    with pytest.raises(BudgetExceeded, match="per month"):
        table.mean("pay").answer(epsilon=2, noise="laplace")
    events = [getattr(event, kind)(**fields) for kind, fields in EVENTS]
    ledger.reserve(ledger.table("pay"), events, question_key="each kind, again").commit("{}")
    ledger.verify()
    assert ledger.length() > kept["entries"]


def test_its_certificates_verify_and_it_signs_the_same_ones_again(folder, ledger):
    for certificate in json.loads((folder / "certificates.json").read_text()):
        found = verify_certificate(certificate)
        assert found["ledger"] == ledger.id
        again = ledger.certificate(certificate["number"])
        assert {**again, "software": certificate["software"], "signature": certificate["signature"]} == certificate


def test_an_older_copy_is_behind_the_anchor_that_was_kept(folder, tacit_home):
    where = restore(folder, tacit_home)
    with open_ledger(where, clock=clock) as ledger:
        visits(ledger).count().answer(epsilon=0.25)
    (mark,) = (tacit_home / "anchors").iterdir()
    ahead = mark.read_bytes()
    where.unlink()
    for more in ("-wal", "-shm"):
        where.with_name(where.name + more).unlink(missing_ok=True)
    mark.unlink()
    mark.parent.rmdir()
    restore(folder, tacit_home)
    mark.write_bytes(ahead)
    with pytest.raises(tacit.LedgerError, match="behind"):
        open_ledger(where, clock=clock)


def test_one_more_can_be_kept_in_the_same_way(tmp_path, tacit_home, monkeypatch):
    write(tmp_path / "kept", tacit_home)
    other = tmp_path / "other-home"
    monkeypatch.setenv("TACIT_HOME", str(other))
    with open_ledger(restore(tmp_path / "kept", other), create=False, clock=clock) as ledger:
        kinds = ledger.verify().kinds
        assert kinds["charge"] == len(QUESTIONS) + 5 + kinds.get("fact", 0)  # what is learned is charged too
