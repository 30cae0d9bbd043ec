"""The story in its order: the charge is durable before a row is read, and stands whatever happens after."""

import json
from fractions import Fraction

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.asking import Payment
from tacit.engine.engine import FAILED, EmbeddedEngine
from tacit.errors import (
    NO_RANDOMNESS,
    BudgetExceeded,
    DeadRequest,
    EngineError,
    InvalidParameter,
    LedgerError,
    NoRandomness,
    TacitError,
)
from tacit.learning.rounds import paid_for
from tacit.ledger.home import open_ledger
from tacit.noise import threshold
from tacit.privacy.loss import PureChoice, epsilon
from tacit.release import noisy
from tacit_gauntlet.stage.table import BUDGET, protected

ROWS = pa.table({"id": range(50), "g": ["ab"[n % 2] for n in range(50)], "x": range(50)})


@pytest.fixture
def ledger_file(tmp_path):
    return tmp_path / "ledger.db"


def spent_elsewhere(path):
    """What another process that opens the ledger now would see as spent on the table."""
    with open_ledger(path) as other:
        (table,) = other.tables()
        return other.spent(table).epsilon


def test_the_charge_is_durable_before_the_engine_is_called(ledger_file, monkeypatch):
    table = protected(ROWS, ledger=ledger_file)
    seen, parts = [], EmbeddedEngine.parts

    def spy(self, plan, salt):
        seen.append(spent_elsewhere(ledger_file))
        return parts(self, plan, salt)

    monkeypatch.setattr(EmbeddedEngine, "parts", spy)
    table.count().answer(epsilon=1)
    assert seen == [1]


def test_the_answer_is_stored_before_it_leaves(ledger_file, tmp_path):
    source = str(tmp_path / "rows.parquet")
    pq.write_table(ROWS, source)
    table = protected(source, ledger=ledger_file)
    answer = table.count().answer(epsilon=1)
    with open_ledger(ledger_file) as other:
        kinds = [entry.kind for entry in other.entries()]
    assert kinds[-2:] == ["charge", "answer"]
    again = protected(source, ledger=ledger_file, budget=None).count().answer(epsilon=1)
    assert again.facts.free
    assert again.to_dicts() == answer.to_dicts()


@pytest.mark.parametrize("broken", ["engine", "noise", "randomness"])
def test_whatever_fails_after_the_charge_leaves_it(broken, monkeypatch):
    table = protected(ROWS, budget=epsilon(10))
    expected: type[Exception] = EngineError
    if broken == "engine":
        monkeypatch.setattr(EmbeddedEngine, "_aggregate", lambda *_: 1 / 0)
    elif broken == "noise":
        monkeypatch.setattr(noisy, "_add_noise", lambda *_: 1 / 0)
    else:
        expected = NoRandomness

        def none():
            raise NoRandomness("no randomness")

        monkeypatch.setattr(threshold, "Keystream", none)
    with pytest.raises(expected) as failed:
        table.count().answer(epsilon=1, request_id="r1")
    assert str(failed.value) == (NO_RANDOMNESS if broken == "randomness" else FAILED)
    assert failed.value.__context__ is None
    monkeypatch.undo()
    assert table.session.ledger.spent(table.session.registered).epsilon == 1
    with pytest.raises(DeadRequest):
        table.count().answer(epsilon=1, request_id="r1")


def test_a_refused_question_reads_nothing(monkeypatch):
    table = protected(ROWS, budget=epsilon(1))
    monkeypatch.setattr(EmbeddedEngine, "parts", lambda *_: pytest.fail("a row was read"))
    with pytest.raises(BudgetExceeded):
        table.count().answer(epsilon=2)
    assert table.session.ledger.spent(table.session.registered).epsilon == 0


def test_planning_reads_and_charges_nothing(monkeypatch):
    table = protected(ROWS)
    monkeypatch.setattr(EmbeddedEngine, "parts", lambda *_: pytest.fail("a row was read"))
    text = str(table.group_by("g").mean("x", between=(0, 50)).plan(epsilon=1))
    assert "L1 200" in text or "L1 " in text
    assert table.session.ledger.spent(table.session.registered).epsilon == 0


def test_every_answer_draws_a_salt_of_its_own(monkeypatch):
    table = protected(ROWS)
    salts, parts = [], EmbeddedEngine.parts

    def spy(self, plan, salt):
        salts.append(salt)
        return parts(self, plan, salt)

    monkeypatch.setattr(EmbeddedEngine, "parts", spy)
    for spend in (1, 2, 3):
        table.count().answer(epsilon=spend)
    assert len(set(salts)) == 3
    assert all(len(salt) >= 32 for salt in salts)


def test_names_order_and_confidence_are_post_processing():
    table = protected(ROWS, columns={"g": {"keys": ["a", "b"]}}, budget=epsilon(1))
    first = table.sql("SELECT g, COUNT(*) AS n FROM t GROUP BY g").answer(epsilon=1)
    second = table.sql("SELECT g, COUNT(*) AS people FROM t GROUP BY g ORDER BY people LIMIT 1").answer(
        1, confidence=0.5
    )
    assert second.facts.free
    assert second.rows[0]["people"] == min(row["n"] for row in first.rows)


def test_a_budget_said_again_differently_is_refused_with_the_command(ledger_file):
    protected(ROWS, ledger=ledger_file)
    with pytest.raises(Exception, match="tacit budget grant t"):
        protected(ROWS, ledger=ledger_file, budget=epsilon(5))
    assert protected(ROWS, ledger=ledger_file, budget=None).session.registered.budget == BUDGET


# ---- spend: the one way to pay ---------------------------------------------------------------------------------------

EVENTS = (PureChoice(Fraction(1, 2)),)


class Step:
    """A step to pay for, which notes what was spent when it ran."""

    def __init__(self, ledger_file, *, fails: Exception | None = None):
        self.ledger_file, self.fails, self.seen = ledger_file, fails, []

    def __call__(self):
        self.seen.append(spent_elsewhere(self.ledger_file))
        if self.fails is not None:
            raise self.fails
        return [len(self.seen), 4]


def paid(session, run, key="a model", **words):
    return paid_for(session, Payment(EVENTS, key, **words), run, json.dumps, json.loads)


def test_any_step_is_charged_then_run_then_stored_and_then_free(ledger_file):
    session, step = protected(ROWS, ledger=ledger_file, budget=epsilon(2)).session, Step(ledger_file)
    first, again = paid(session, step), paid(session, step)
    assert (first.value, first.free) == ([1, 4], False)
    assert (again.value, again.free, again.receipt) == ([1, 4], True, first.receipt)
    assert step.seen == [Fraction(1, 2)]  # once, and after the charge was durable
    assert [entry.kind for entry in session.ledger.entries()][-2:] == ["charge", "answer"]
    assert paid(session, step, key="another").value == [2, 4]
    assert spent_elsewhere(ledger_file) == 1


def test_a_step_under_one_key_of_two_sources_is_paid_for_twice(ledger_file):
    one = protected(ROWS, ledger=ledger_file, budget=epsilon(2), name="one").session
    other = protected(ROWS, ledger=ledger_file, budget=epsilon(2), name="two").session
    assert not paid(one, lambda: 1).free
    assert paid(other, lambda: 2).value == 2


def test_a_step_that_has_no_room_is_not_run(ledger_file):
    session, step = protected(ROWS, ledger=ledger_file, budget=epsilon("0.4")).session, Step(ledger_file)
    with pytest.raises(BudgetExceeded):
        paid(session, step)
    assert step.seen == []


@pytest.mark.parametrize("fails", [ValueError, InvalidParameter, LedgerError, EngineError])
def test_a_step_that_fails_says_one_fixed_sentence_and_stays_charged(ledger_file, fails):
    session = protected(ROWS, ledger=ledger_file, budget=epsilon(2)).session
    with pytest.raises(EngineError) as failed:
        paid(session, Step(ledger_file, fails=fails("row 4711")), request_id="r")
    assert str(failed.value) == FAILED
    assert failed.value.__context__ is None
    assert spent_elsewhere(ledger_file) == Fraction(1, 2)
    with pytest.raises(DeadRequest):
        paid(session, lambda: 1, request_id="r")


def test_a_step_without_randomness_says_so_in_fixed_words(ledger_file):
    session = protected(ROWS, ledger=ledger_file, budget=epsilon(2)).session
    with pytest.raises(NoRandomness) as failed:
        paid(session, Step(ledger_file, fails=NoRandomness("row 4711")))
    assert str(failed.value) == NO_RANDOMNESS
    assert failed.value.__context__ is None
    assert spent_elsewhere(ledger_file) == Fraction(1, 2)


def test_a_step_about_a_file_that_is_gone_is_not_charged(ledger_file, tmp_path):
    source = tmp_path / "rows.parquet"
    pq.write_table(ROWS, source)
    session = protected(str(source), ledger=ledger_file, budget=epsilon(2)).session
    source.unlink()
    with pytest.raises(TacitError):
        paid(session, lambda: 1)
    assert spent_elsewhere(ledger_file) == 0


def test_who_interrupts_a_step_hears_what_it_cost(ledger_file):
    session = protected(ROWS, ledger=ledger_file, budget=epsilon(2)).session

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=r"ε = 0\.5 is spent"):
        paid(session, interrupted, loss=epsilon("0.5"))
    assert spent_elsewhere(ledger_file) == Fraction(1, 2)
