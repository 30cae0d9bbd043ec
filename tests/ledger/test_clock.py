"""A clock that was wrong closes nothing for good, and setting it right re-opens nothing."""

from datetime import UTC, datetime, timedelta

import pytest

from tacit.errors import InvalidParameter, LedgerError
from tacit.ledger import open_ledger
from tacit.ledger.clock import FAR_AHEAD
from tacit.privacy.loss import epsilon
from tacit_gauntlet.stage.ledger import DECLARATION, ask, charge

TODAY = datetime(2026, 6, 15, 12, tzinfo=UTC)


@pytest.fixture
def now():
    return [TODAY]


@pytest.fixture
def opened(where, now):
    with open_ledger(where, clock=lambda: now[0]) as ledger:
        table = ledger.register(name="pay", declaration=DECLARATION, source="pay", budget=epsilon(9))
        ledger.grant("pay", epsilon(0.1), period="month")
        yield ledger, table


def test_a_clock_far_ahead_is_refused_before_anything_is_written(opened, now):
    ledger, table = opened
    length = ledger.length()
    now[0] = TODAY + FAR_AHEAD + timedelta(days=1)
    for step in (
        lambda: charge(ledger, table, "q"),
        lambda: ledger.grant("pay", epsilon(10)),
        lambda: ledger.register(name="other", declaration=DECLARATION, budget=epsilon(1)),
    ):
        with pytest.raises(LedgerError, match=r"the clock says 2027(.|\n)*tacit ledger clock --reason"):
            step()
    assert ledger.length() == length
    now[0] = TODAY
    assert ask(ledger, table, "q")


def test_a_ledger_that_rested_for_years_goes_on_once_the_curator_says_the_clock_is_right(opened, now):
    ledger, table = opened
    now[0] = TODAY + timedelta(days=2000)
    ledger.correct_clock("a long rest")
    assert ask(ledger, table, "q")
    assert ledger.verify().kinds["clock"] == 1


def test_what_a_wrong_clock_closed_is_opened_by_the_curators_word_with_what_was_spent(opened, now):
    ledger, table = opened
    assert ask(ledger, table, "this month", epsilon=epsilon(0.06).epsilon)
    now[0] = datetime(2099, 1, 1, tzinfo=UTC)
    ledger.correct_clock("believed by mistake")
    assert ask(ledger, table, "2099")
    now[0] = TODAY + timedelta(hours=1)
    assert ask(ledger, table, "frozen") is None
    ledger.correct_clock("the battery was empty")
    assert ask(ledger, table, "too much", epsilon=epsilon(0.05).epsilon) is None
    assert ask(ledger, table, "what is left", epsilon=epsilon(0.04).epsilon)
    ledger.verify()


@pytest.mark.parametrize("days", [0, 1, 31])
def test_a_ledger_a_little_ahead_is_not_set_back(opened, now, days):
    ledger, table = opened
    now[0] = TODAY + timedelta(days=days)
    assert ask(ledger, table, "q")
    now[0] = TODAY
    with pytest.raises(InvalidParameter, match=r"no correction is needed|could re-open a period"):
        ledger.correct_clock("please")


def test_a_time_that_falls_without_the_curators_word_does_not_verify(monkeypatch, now):
    from tacit.ledger import draft

    monkeypatch.setattr(draft, "never_earlier", lambda time, _: time)
    with open_ledger(":memory:", clock=lambda: now[0]) as ledger:
        ledger.register(name="pay", declaration=DECLARATION, source="pay", budget=epsilon(9))
        now[0] = TODAY - timedelta(days=1)
        ledger.grant("pay", epsilon(1))
        with pytest.raises(LedgerError, match="out of order"):
            ledger.verify()


def test_a_second_correction_re_opens_nothing_that_the_first_went_on_from(opened, now):
    ledger, table = opened
    now[0] = TODAY + 2 * FAR_AHEAD
    ledger.correct_clock("the curator believes it")
    now[0] = TODAY + timedelta(days=30)
    ledger.correct_clock("it was the battery")
    assert ask(ledger, table, "July")
    now[0] = TODAY + timedelta(days=1)
    with pytest.raises(InvalidParameter, match="could re-open a period"):
        ledger.correct_clock("back into June")
