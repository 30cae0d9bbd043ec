"""Callers who wait share one transaction, each gets its own outcome, and no failure leaves the group commit stuck."""

import threading
import time

import psycopg
import pytest

from tacit.errors import BudgetExceeded, LedgerError
from tacit.ledger import open_ledger
from tacit.ledger.group_commit import PendingWrite
from tacit_gauntlet.stage.ledger import TENTH, ask, charge, register
from tacit_gauntlet.stage.postgres_server import fresh_schema
from tacit_gauntlet.stage.racing import gather, run_together


def interrupted(draft):
    raise KeyboardInterrupt


def broken(draft):
    draft.append({"kind": "charge", "half": "done"})
    raise ZeroDivisionError


def test_callers_who_wait_share_a_transaction_and_each_gets_its_own_outcome(ledger, table, monkeypatch):
    groups = []
    serve = ledger._group_commit._flush
    monkeypatch.setattr(ledger._group_commit, "_flush", lambda tickets: (groups.append(len(tickets)), serve(tickets)))
    outcomes = []
    leader = gather(ledger, 24)

    def one(turn):
        try:
            outcomes.append(charge(ledger, table, str(turn)).number)
        except BudgetExceeded:
            outcomes.append(None)

    run_together([lambda turn=turn: one(turn) for turn in range(24)])
    leader.join()
    assert groups == [1, 24]
    assert len({number for number in outcomes if number is not None}) == 10
    assert outcomes.count(None) == 14
    ledger.verify()


def test_an_interrupted_leader_leaves_nothing_written_and_the_next_goes_on(ledger, table):
    with pytest.raises(KeyboardInterrupt):
        ledger._group_commit.submit(interrupted)
    assert ask(ledger, table, "q")
    ledger.verify()


def test_a_step_that_breaks_half_way_leaves_nothing_written(ledger, table):
    before = ledger.length()
    with pytest.raises(LedgerError, match="ZeroDivisionError"):
        ledger._group_commit.submit(broken)
    assert ledger.length() == before
    assert ask(ledger, table, "q")


def test_those_who_wait_behind_a_failed_leader_hear_of_it_or_are_served(ledger, table):
    heard, started = [], threading.Event()

    def slow(draft):
        started.set()
        time.sleep(0.05)
        raise KeyboardInterrupt

    def lead():
        with pytest.raises(KeyboardInterrupt):
            ledger._group_commit.submit(slow)

    def follow(turn):
        started.wait()
        heard.append(ask(ledger, table, str(turn)) is not None)

    run_together([lead, *(lambda turn=turn: follow(turn) for turn in range(5))])
    assert heard == [True] * 5
    assert ledger.spent(table).epsilon == 5 * TENTH


def test_a_caller_interrupted_while_it_waits_is_not_charged_and_holds_nobody_up(ledger, table, monkeypatch):
    leading, release = threading.Event(), threading.Event()

    def slow(draft):
        leading.set()
        release.wait()

    leader = threading.Thread(target=lambda: ledger._group_commit.submit(slow))
    leader.start()
    leading.wait()

    class Interrupted:
        def wait(self):
            raise KeyboardInterrupt

        def set(self): ...

    create = PendingWrite.__init__
    with monkeypatch.context() as patched:
        patched.setattr(
            PendingWrite,
            "__init__",
            lambda self, *a, **k: (create(self, *a, **k), setattr(self, "called", Interrupted()))[0],
        )
        with pytest.raises(KeyboardInterrupt):
            charge(ledger, table, "gone")
    release.set()
    leader.join()
    assert ledger.spent(table).epsilon == 0
    assert ask(ledger, table, "q")


def test_a_lost_connection_is_an_error_and_then_another_connection(postgres):
    with open_ledger(fresh_schema(postgres)) as ledger:
        table = register(ledger)
        ask(ledger, table, "before")
        with psycopg.connect(postgres, autocommit=True) as link:
            link.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tacit ledger'"
            )
        with pytest.raises(LedgerError, match="no answer was given"):
            ask(ledger, table, "during")
        assert ask(ledger, table, "after")
        ledger.verify()
        assert ledger.spent(table).epsilon == 2 * TENTH
