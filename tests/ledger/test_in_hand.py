"""A charge whose process has died is carried out again: by one at a time, a few times, and answered once."""

import os
import signal
import threading
from fractions import Fraction

import pytest

from tacit.errors import BeingAnswered, DeadRequest, LedgerError
from tacit.ledger import Ledger, RegisteredTable, Reservation, StoredAnswer, open_ledger
from tacit.ledger.locks import ATTEMPTS
from tacit.privacy import PureChoice

HALF = Fraction(1, 2)


def asked(ledger: Ledger, table: RegisteredTable, *, epsilon: Fraction = HALF) -> Reservation | StoredAnswer:
    """A question that costs half of the budget, under its request id."""
    return ledger.reserve(table, [PureChoice(epsilon)], question_key="q", request_id="r", analyst="ann")


def charged(ledger: Ledger, table: RegisteredTable) -> Reservation:
    """The same, to be answered."""
    reserved = asked(ledger, table)
    assert isinstance(reserved, Reservation)
    return reserved


def left_behind(ledger: Ledger, table: RegisteredTable) -> Reservation:
    """The charge of somebody who is gone without an answer and without a word."""
    with ledger.in_hand("r", "ann"):
        return charged(ledger, table)


def kinds(ledger: Ledger) -> list[str]:
    """What is in the ledger about questions."""
    return [entry.kind for entry in ledger.entries() if entry.kind in ("charge", "attempt", "answer", "refusal")]


def test_the_next_one_carries_out_the_same_charge(ledger: Ledger, table: RegisteredTable, where: str) -> None:
    first = left_behind(ledger, table)
    with open_ledger(where) as other, other.in_hand("r", "ann"):
        assert other.recall(table, question_key="q", request_id="r", analyst="ann") is None
        second = charged(other, table)
        assert second.number == first.number
        assert second.commit("second").charge == first.number
    assert kinds(ledger) == ["charge", "attempt", "answer"]
    assert ledger.spent(table).epsilon == HALF
    with pytest.raises(BeingAnswered):
        first.commit("first")
    with ledger.in_hand("r", "ann"):
        stored = asked(ledger, table)
    assert isinstance(stored, StoredAnswer)
    assert stored.answer == "second"
    ledger.verify()


def test_whoever_was_taken_over_does_not_answer_even_if_first(ledger: Ledger, table: RegisteredTable) -> None:
    first = left_behind(ledger, table)
    with ledger.in_hand("r", "ann"):
        second = charged(ledger, table)
        with pytest.raises(BeingAnswered, match="dropped"):
            first.commit("first")
        second.commit("second")
    assert kinds(ledger) == ["charge", "attempt", "answer"]


def test_of_two_commits_of_one_attempt_one_is_stored(ledger: Ledger, table: RegisteredTable) -> None:
    left_behind(ledger, table)
    with ledger.in_hand("r", "ann"):
        second = charged(ledger, table)
        second.commit("one")
        with pytest.raises(LedgerError, match="already paid"):
            second.commit("two")
    assert kinds(ledger).count("answer") == 1


def test_nobody_takes_over_from_the_living(ledger: Ledger, table: RegisteredTable, where: str) -> None:
    with open_ledger(where) as other, ledger.in_hand("r", "ann"):
        reserved = charged(ledger, table)
        for each in (ledger, other):  # a thread of the same worker, and another worker
            with pytest.raises(BeingAnswered), each.in_hand("r", "ann"):
                pass
        with other.in_hand("another", "ann"), other.in_hand("r", "bob"):
            pass
        reserved.commit("1")
    assert kinds(ledger) == ["charge", "answer"]


def test_a_process_that_is_killed_lets_go(ledger: Ledger, table: RegisteredTable, where: str) -> None:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        with open_ledger(where) as own, own.in_hand("r", "ann"):
            charged(own, table)
            os.write(write, b"charged")
            signal.pause()
    assert os.read(read, 7) == b"charged"
    with pytest.raises(BeingAnswered), ledger.in_hand("r", "ann"):
        pass
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read)
    os.close(write)
    answered = threading.Event()
    while not answered.is_set():  # PostgreSQL's server sees a moment later that its client is gone
        try:
            with ledger.in_hand("r", "ann"):
                charged(ledger, table).commit("1")
                answered.set()
        except BeingAnswered:
            answered.wait(0.01)
    assert kinds(ledger) == ["charge", "attempt", "answer"]
    assert ledger.spent(table).epsilon == HALF


def test_after_a_few_attempts_it_is_dead(ledger: Ledger, table: RegisteredTable) -> None:
    for _ in range(ATTEMPTS):
        left_behind(ledger, table)
    for _ in range(2):
        with ledger.in_hand("r", "ann"), pytest.raises(DeadRequest, match="new charge"):
            asked(ledger, table)
    assert kinds(ledger) == ["charge", *["attempt"] * (ATTEMPTS - 1)]
    assert ledger.spent(table).epsilon == HALF
    ledger.verify()


def test_what_has_failed_is_not_tried_again(ledger: Ledger, table: RegisteredTable) -> None:
    with ledger.in_hand("r", "ann"):
        reserved = charged(ledger, table)
        reserved.fail()
        reserved.fail()  # said twice, noted once
    with pytest.raises(BeingAnswered):
        reserved.commit("late")
    with ledger.in_hand("r", "ann"), pytest.raises(DeadRequest):
        asked(ledger, table)
    assert kinds(ledger) == ["charge", "attempt"]
    ledger.verify()


def test_another_plan_is_not_paid_for_by_the_charge(ledger: Ledger, table: RegisteredTable) -> None:
    left_behind(ledger, table)
    with ledger.in_hand("r", "ann"):
        assert ledger.room(table, "ann").admits([PureChoice(HALF)], None)
        assert not ledger.room(table, "ann").admits([PureChoice(HALF / 2)], None)
        with pytest.raises(DeadRequest):
            asked(ledger, table, epsilon=HALF / 2)
    assert ledger.room(table, "ann").admits([PureChoice(HALF / 2)], None)
    assert kinds(ledger) == ["charge"]


def test_a_charge_that_needs_no_room_now_is_carried_out_where_none_is_left(
    ledger: Ledger, table: RegisteredTable
) -> None:
    left_behind(ledger, table)
    ledger.reserve(table, [PureChoice(HALF)], question_key="the rest")
    with ledger.in_hand("r", "ann"):
        assert ledger.room(table, "ann").admits([PureChoice(HALF)], None)
        charged(ledger, table).commit("1")


def test_what_was_not_in_hand_when_it_was_charged_stays_dead(ledger: Ledger, table: RegisteredTable) -> None:
    charged(ledger, table)  # by a program whose life nobody sees
    with ledger.in_hand("r", "ann"), pytest.raises(DeadRequest):
        asked(ledger, table)
    left = kinds(ledger)
    assert left == ["charge"]


def test_outside_of_a_hand_it_is_dead_as_ever(ledger: Ledger, table: RegisteredTable) -> None:
    left_behind(ledger, table)
    with pytest.raises(DeadRequest):
        asked(ledger, table)
    with pytest.raises(DeadRequest):
        ledger.recall(table, question_key="q", request_id="r", analyst="ann")


def test_attempts_beyond_the_number_do_not_verify(
    ledger: Ledger, table: RegisteredTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("tacit.ledger.charging._attempts_left", lambda *_: True)
        for _ in range(ATTEMPTS + 1):
            left_behind(ledger, table)
    with pytest.raises(LedgerError, match="carries out again"):
        ledger.verify()


def test_an_answer_to_what_has_failed_does_not_verify(
    ledger: Ledger, table: RegisteredTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ledger.in_hand("r", "ann"):
        reserved = charged(ledger, table)
        reserved.fail()
        monkeypatch.setattr("tacit.ledger.charging._newest", lambda *_: (1, False))
        reserved.commit("after all")
    with pytest.raises(LedgerError, match="a charge that failed"):
        ledger.verify()
