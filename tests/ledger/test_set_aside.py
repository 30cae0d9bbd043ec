"""One fact, one charge; and the room of a call is kept for it while it runs, and no longer. On every store."""

import os
import signal
import threading
from contextlib import contextmanager
from contextvars import Context
from fractions import Fraction

import pytest

from tacit.errors import BudgetExceeded, DeadRequest
from tacit.ledger import Learning, Reservation, StoredAnswer, locks, open_ledger
from tacit.privacy.loss import PureChoice, epsilon
from tacit_gauntlet.stage.ledger import TENTH, ask

SIZES = Learning("how many rows a unit has")


def outside(asks, *given, **words):
    """What somebody else is told, who is not in the call of this thread."""
    return Context().run(asks, *given, **words)


def events(tenths):
    return [PureChoice(tenths * TENTH)]


def call(ledger, table, *, answer=7, fact=1, analyst=None, **words):
    """A call that learns a fact and then asks: 0.8 of a budget of 1."""
    return ledger.call(table, events(answer), beside=events(fact), question_key="a call", analyst=analyst, **words)


@contextmanager
def learning(ledger, table, *, tenths=1, key="sizes", analyst=None, request_id=None, again=False):
    """The charge for a fact, in hand; or what is known."""
    with ledger.alone(table, question_key=key, analyst=analyst, is_fact=True):
        yield ledger.reserve(
            table,
            events(tenths),
            question_key=key,
            analyst=analyst,
            request_id=request_id,
            learning=Learning(SIZES.words, again=again),
        )


def learn(ledger, table, text="one", **words):
    with learning(ledger, table, **words) as reserved:
        if isinstance(reserved, Reservation):
            reserved.commit(text)
    return reserved


def kinds(ledger):
    return [
        entry.kind for entry in ledger.entries() if entry.kind in ("charge", "attempt", "answer", "fact", "refusal")
    ]


def test_the_rest_of_a_call_is_kept_for_it(ledger, table, where):
    with open_ledger(where) as other, call(ledger, table):
        assert outside(ask, other, table, "before the first charge", epsilon=TENTH) is not None
        learn(ledger, table)
        assert outside(ask, other, table, "more", epsilon=2 * TENTH) is None
        assert outside(other.left, table).laplace == TENTH
        assert ledger.left(table).laplace == 8 * TENTH  # its own room is not taken from it
        assert not outside(other.fit, table, events(2))
        assert outside(ask, other, table, "what is left", epsilon=TENTH) is not None
        assert ask(ledger, table, "the call's own", epsilon=7 * TENTH) is not None
        assert ledger.left(table).laplace == 0
    assert ledger.spent(table).epsilon == 1
    ledger.verify()


def test_a_call_that_does_not_fit_as_a_whole_is_refused_before_its_first_charge(ledger, table, where):
    """Also if the room was taken between the look at the budget and the charge."""
    with open_ledger(where) as other, call(ledger, table):
        assert outside(ask, other, table, "in between", epsilon=3 * TENTH) is not None
        with pytest.raises(
            BudgetExceeded, match=r"no room for ε = 0\.8; left: ε = 0\.7.*; no charge was made and no row was read"
        ):
            learn(ledger, table)
    assert ledger.spent(table).epsilon == 3 * TENTH
    refusal = next(entry.record for entry in ledger.entries() if entry.kind == "refusal")
    assert Fraction(refusal["epsilon"]) == 8 * TENTH
    assert "learns" not in refusal
    ledger.verify()


def test_room_is_free_again_when_a_call_ends_without_its_answer(ledger, table, where):
    with open_ledger(where) as other:
        with call(ledger, table):
            learn(ledger, table)
            assert not outside(other.fit, table, events(9))
        assert outside(other.fit, table, events(9))
        assert outside(ask, other, table, "all the rest", epsilon=9 * TENTH) is not None
        other.verify()


def test_a_call_that_was_killed_gives_its_room_back_and_its_fact_is_carried_out(ledger, table, where):
    read, write = os.pipe()
    child = os.fork()
    if not child:
        with open_ledger(where) as own, call(own, table, analyst="ann"), learning(own, table, analyst="ann"):
            os.write(write, b"!")
            signal.pause()
    assert os.read(read, 1) == b"!"
    assert not ledger.fit(table, events(9))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(read)
    os.close(write)
    over = threading.Event()
    while not ledger.fit(table, events(9)):  # PostgreSQL's server sees a moment later that its client is gone
        over.wait(0.01)
    with learning(ledger, table, analyst="ben") as taken_over:
        assert isinstance(taken_over, Reservation)
        assert taken_over.is_again
        taken_over.commit("one")
    assert kinds(ledger) == ["charge", "attempt", "answer", "fact"]
    assert ask(ledger, table, "all the rest", epsilon=9 * TENTH) is not None
    ledger.verify()


def test_calls_that_are_over_are_dropped_by_the_next_charge_of_a_call(ledger, table):
    with call(ledger, table):
        learn(ledger, table)
    with call(ledger, table, answer=6):
        learn(ledger, table, key="another fact")
        with ledger._view() as draft:
            assert len(draft.over(table.cohort)) == 0
            assert draft.set_aside(table.cohort, by=None, but=None).epsilon == 6 * TENTH
    ledger.verify()


def test_room_is_set_aside_in_every_budget_that_the_call_will_be_charged_to(ledger, table):
    for who in ("ann", "ben"):
        ledger.grant("pay", epsilon("0.5"), analyst=who)
    ledger.grant("pay", epsilon("0.9"), period="day")
    with call(ledger, table, answer=2, analyst="ann"):
        learn(ledger, table, analyst="ann")
        assert outside(ledger.left, table, "ben").laplace == 5 * TENTH
        assert outside(ledger.left, table, "cy").laplace == 6 * TENTH  # of the day
        ask(ledger, table, "ben's", epsilon=4 * TENTH, analyst="ben")
        assert outside(ledger.left, table, "cy").laplace == 2 * TENTH
        assert ask(ledger, table, "ann's", epsilon=2 * TENTH, analyst="ann") is not None
    ledger.verify()


def test_several_charges_of_one_call_each_lower_what_is_set_aside(ledger, table, where):
    with open_ledger(where) as other, call(ledger, table, answer=6, fact=2, is_one_question=False):
        learn(ledger, table)
        for turn in range(6):
            assert outside(other.left, table).laplace == 2 * TENTH
            assert ask(ledger, table, f"part {turn}") is not None
        assert outside(other.left, table).laplace == 2 * TENTH
    assert ledger.left(table).laplace == 3 * TENTH


def test_a_fact_that_others_learn_at_once_is_waited_for_and_charged_once(ledger, table, where, monkeypatch):
    """The second one looks at the lock while the first is at work, and then finds the fact."""
    waits, found = threading.Event(), []
    monkeypatch.setattr(locks.time, "sleep", lambda _: waits.set())

    def second():
        with open_ledger(where) as other:
            found.append(learn(other, table, "two", analyst="ben"))

    with learning(ledger, table, analyst="ann") as first:
        thread = threading.Thread(target=second)
        thread.start()
        waits.wait()
        assert not found
        first.commit("one")
    thread.join()
    assert isinstance(found[0], StoredAnswer)
    assert found[0].answer == "one"
    assert kinds(ledger) == ["charge", "answer", "fact"]


def test_an_analyst_with_a_budget_waits_for_nobody_and_is_given_nothing(ledger, table):
    """What others pay for is not theirs, and neither is a charge that others left behind."""
    ledger.grant("pay", epsilon("0.5"), analyst="cy")
    with learning(ledger, table, analyst="ann") as first:
        with learning(ledger, table, analyst="cy") as own:
            own.commit("cy's")
        first.commit("one")
    with learning(ledger, table, key="left behind", analyst="ann"):
        pass
    with learning(ledger, table, key="left behind", analyst="cy") as own:
        assert not own.is_again
    assert kinds(ledger).count("attempt") == 0


def test_a_charge_left_behind_is_carried_out_only_as_it_was_made(ledger, table):
    """Another epsilon is another release: it is charged by itself."""
    with learning(ledger, table):
        pass
    with learning(ledger, table, tenths=2) as other:
        assert not other.is_again
    with learning(ledger, table) as same:
        assert same.is_again
        same.commit("one")
    assert ledger.spent(table).epsilon == 3 * TENTH
    ledger.verify()


def test_a_fact_that_failed_is_charged_anew_for_another_and_dead_for_its_request(ledger, table):
    with learning(ledger, table, request_id="r") as first:
        first.fail()
    with pytest.raises(DeadRequest), learning(ledger, table, request_id="r"):
        pass
    with learning(ledger, table, request_id="s") as other:
        assert not other.is_again
        other.commit("one")
    assert ledger.spent(table).epsilon == 2 * TENTH
    ledger.verify()


def test_a_retried_request_does_not_set_aside_what_it_has_paid(ledger, table):
    """Budget 1: the fact and the answer fit exactly, also for the second attempt at the request."""
    whole = {"answer": 9, "fact": 1, "request_id": "r"}
    with call(ledger, table, **whole):
        learn(ledger, table, request_id="r")
    (known,) = ledger.facts(table)
    entry = known.stored.receipt.number
    assert ledger.paid_within(entry, "r", None)
    assert not ledger.paid_within(entry, "s", None)
    with pytest.raises(BudgetExceeded), call(ledger, table, **whole):
        pass
    with call(ledger, table, **whole, known=[entry]):
        assert ask(ledger, table, "q", epsilon=9 * TENTH, request_id="r") is not None
    assert ledger.spent(table).epsilon == 1


def test_what_is_set_aside_is_a_part_of_what_is_verified(ledger, table):
    with call(ledger, table):
        learn(ledger, table)
        ledger.verify()
    with call(ledger, table, answer=6):
        learn(ledger, table, key="another fact")
        ask(ledger, table, "its answer", epsilon=6 * TENTH)
    ledger.verify()
