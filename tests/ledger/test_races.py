"""Many at once, on every store: nothing is spent twice, and one order explains what everyone saw."""

import os
import threading

import pytest

from tacit.errors import DeadRequest
from tacit.ledger import StoredAnswer, open_ledger
from tacit.privacy.loss import PureChoice, epsilon
from tacit_gauntlet.stage import racing as races
from tacit_gauntlet.stage.ledger import TENTH, again, ask, charge, in_child, in_children, register
from tacit_gauntlet.stage.postgres_server import fresh_schema
from tacit_gauntlet.stage.racing import answer_until_killed, invariant_faults


@pytest.mark.parametrize("switch", races.SWITCHES)
def test_fifty_threads_for_a_budget_of_three_give_exactly_three(where, switch):
    assert races.race_threads(where, switch=switch) == races.FITS


def test_processes_for_a_budget_of_three_give_exactly_three(where):
    assert races.race_processes(where, processes=5, tries=4) == races.FITS


@pytest.mark.slow
def test_two_hundred_races_give_exactly_three_each(postgres, tmp_path):
    for turn in range(100):
        place = fresh_schema(postgres) if turn % 2 else tmp_path / f"{turn}.db"
        assert races.race_threads(place, switch=races.SWITCHES[turn % 3]) == races.FITS
    for turn in range(100):
        place = fresh_schema(postgres) if turn % 2 else tmp_path / f"{turn}p.db"
        assert races.race_processes(place, processes=8) == races.FITS


def test_what_clients_saw_fits_one_order(where):
    faults, operations = races.history_faults(where, seconds=0.3, processes=2, clients=4, budget=100)
    assert faults == []
    assert operations > 20


@pytest.mark.slow
def test_what_many_clients_saw_for_long_fits_one_order(where):
    faults, _ = races.history_faults(where, seconds=10, processes=8, clients=4, budget=2000)
    assert faults == []


def test_one_request_asked_by_many_threads_at_once_is_charged_and_drawn_once(ledger, table):
    charged, answered, dead = [], [], []
    gate = threading.Barrier(16)

    def one():
        gate.wait()
        try:
            found = ledger.reserve(table, [PureChoice(TENTH)], question_key="q", request_id="r")
        except DeadRequest:
            dead.append(1)
        else:
            (answered if isinstance(found, StoredAnswer) else charged).append(found)

    races.run_together([one] * 16)
    assert (len(charged), len(answered), len(dead)) == (1, 0, 15)
    charged[0].commit("1")
    assert ledger.reserve(table, [PureChoice(TENTH)], question_key="q", request_id="r").answer == "1"
    assert ledger.spent(table).epsilon == TENTH


def test_a_fork_shares_the_budget_and_not_the_connection(where):
    ledger = open_ledger(where)
    table = register(ledger)
    ask(ledger, table, "before")

    def child() -> int:
        return sum(ask(ledger, table, f"{os.getpid()} {turn}") is not None for turn in range(4))

    wins = sum(in_children([child] * 3))
    wins += sum(ask(ledger, table, f"parent {turn}") is not None for turn in range(10))
    assert wins == 9
    assert ledger.spent(table).epsilon == 1
    ledger.verify()
    ledger.close()


def test_a_fork_during_a_transaction_neither_hangs_nor_takes_over_the_queue(where):
    ledger = open_ledger(where)
    table = register(ledger)
    stop = threading.Event()

    def spend() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            ask(ledger, table, f"{threading.get_ident()} {turn}", epsilon=TENTH / 10**6)

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        results = [in_children([lambda: int(ask(ledger, table, str(os.getpid())) is None)]) for _ in range(4)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert results == [[0]] * 4
    charges = [entry.record["question"] for entry in ledger.entries() if entry.kind == "charge"]
    assert len(charges) == len(set(charges))
    ledger.verify()
    ledger.close()


def test_a_ledger_in_memory_stays_in_its_process():
    with open_ledger(":memory:") as ledger:
        table = register(ledger)
        _, code = in_child(lambda pipe: charge(ledger, table, "q") and None)
        assert code == 70
        assert ledger.spent(table).epsilon == 0


def test_a_killed_process_leaves_its_charges_and_nothing_torn(where):
    with open_ledger(where) as ledger:
        register(ledger, epsilon(1000))
    spent = 0
    for turn in (2, 7, 12):
        lines, _ = in_child(lambda pipe, turn=turn: answer_until_killed(where, turn, pipe))
        faults, spent = invariant_faults(where, lines, spent)
        assert faults == []


def test_a_charge_that_arrives_while_the_ledger_is_checked_is_no_fault(where, monkeypatch):
    """As the last statement of a killed client does, where a busy server comes to it late."""
    with open_ledger(where) as ledger, open_ledger(where) as killed:
        register(ledger, epsilon(1000))
        late = iter(["late"])
        read = ledger.spent

        def spent(table):
            for question in late:
                charge(killed, again(killed), question)
            return read(table)

        monkeypatch.setattr(ledger, "spent", spent)
        assert races._invariant_faults(ledger, [], 0) == ([], 2)


def test_two_servers_with_the_same_key_share_one_ledger(where):
    with open_ledger(where) as one, open_ledger(where) as two:
        mine, theirs = register(one), again(two)
        for turn in range(5):
            assert ask(one, mine, f"one {turn}")
            assert ask(two, theirs, f"two {turn}")
        assert ask(one, mine, "more") is None
        assert ask(two, theirs, "more") is None
        assert one.recall(mine, question_key="two 3") is not None
