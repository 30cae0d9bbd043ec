"""Workers that die with a charge in hand: another carries it out, a few times at most, and answers it once (L35)."""

import os
import signal
from fractions import Fraction
from pathlib import Path

import tacit
from tacit.errors import BeingAnswered, DeadRequest
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.ledger import (
    TENTH,
    Ledger,
    again,
    answered,
    charge,
    in_child,
    kill_self,
    open_at,
    private_home,
    refused,
    register,
)

BUDGET = tacit.epsilon(Fraction(10**6))
MOST = 3  # attempts at one charge


@case("L35", title="workers die with a charge in hand: it is carried out again, and answered once", feature="ledger")
def carried_out_again(size: Size) -> Evidence:
    """Each story is told of a request of its own: whatever happens, one charge and at most one answer."""
    turns = 2 if size == "quick" else 20
    faults = []
    with private_home() as home:
        path = home / "ledger.db"
        with open_at(path) as ledger:
            register(ledger, BUDGET)
        for turn in range(turns):
            for story in (_taken_over, _alive, _overtaken, _too_often, _failed, _another_plan):
                request = f"{story.__name__} {turn}"
                faults += [f"{request}: {fault}" for fault in (*story(path, request), *_counted(path, request))]
        with open_at(path) as ledger:
            ledger.verify()
            charges = sum(entry.kind == "charge" for entry in ledger.entries())
    if charges != 6 * turns:
        faults.append(f"{charges} charges for {6 * turns} requests")
    return Evidence(not faults, {"requests": 6 * turns, "faults": "; ".join(faults[:5]) or "none"})


def _taken_over(path: Path, request: str) -> list[str]:
    """One dies before its answer is stored; the next stores it and dies; what the third finds is what was stored."""
    _die(path, request)

    def store_and_die(_: int) -> None:
        ledger = open_at(path)
        with ledger.in_hand(request):
            charge(ledger, again(ledger), request, request_id=request).commit('"stored"')
            kill_self()

    in_child(store_and_die)
    with open_at(path) as ledger:
        stored = ledger.recall(again(ledger), question_key=request, request_id=request)
    return [] if stored is not None and stored.answer == '"stored"' else ["it is not as it was stored"]


def _alive(path: Path, request: str) -> list[str]:
    """One is slow, and alive: nobody else gets the request, until it is killed."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        own = open_at(path)
        with own.in_hand(request):
            charge(own, again(own), request, request_id=request)
            os.write(write, b"!")
            signal.alarm(60)  # should nobody kill it
            signal.pause()
    os.read(read, 1)
    with open_at(path) as ledger:
        kept = refused(lambda: _carry_out(ledger, request), BeingAnswered)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        _carry_out(ledger, request)
    os.close(read)
    os.close(write)
    return [] if kept else ["it was taken from one who lives"]


def _overtaken(path: Path, request: str) -> list[str]:
    """One is thought dead, as when its connection to PostgreSQL breaks: what it computed is not taken any more."""
    with open_at(path) as ledger:
        table = again(ledger)
        with ledger.in_hand(request):
            first = charge(ledger, table, request, request_id=request)
        with ledger.in_hand(request):
            second = charge(ledger, table, request, request_id=request)
            early = refused(lambda: first.commit('"first"'), BeingAnswered)
            second.commit('"second"')
        late = refused(lambda: first.commit('"first"'), BeingAnswered)
    return [] if early and late else ["two have answered"]


def _too_often(path: Path, request: str) -> list[str]:
    """Each who carries it out dies, as on a row that ends its process: after the last attempt it is dead."""
    for _ in range(MOST):
        _die(path, request)
    with open_at(path) as ledger:
        dead = refused(lambda: _carry_out(ledger, request), DeadRequest)
    return [] if dead else [f"it was carried out more than {MOST} times"]


def _failed(path: Path, request: str) -> list[str]:
    """One has failed and said so: that may depend on rows, and is said once."""
    with open_at(path) as ledger:
        with ledger.in_hand(request):
            charge(ledger, again(ledger), request, request_id=request).fail()
        dead = refused(lambda: _carry_out(ledger, request), DeadRequest)
    return [] if dead else ["what had failed was tried again"]


def _another_plan(path: Path, request: str) -> list[str]:
    """The question is planned in another way by now: its noise was not paid for."""
    _die(path, request)
    with open_at(path) as ledger:
        dead = refused(lambda: _carry_out(ledger, request, epsilon=3 * TENTH), DeadRequest)
    return [] if dead else ["more was drawn than was charged for"]


def _carry_out(ledger: Ledger, request: str, epsilon: Fraction = TENTH) -> None:
    with ledger.in_hand(request):
        answered(ledger, again(ledger), request, epsilon=epsilon, request_id=request)


def _die(path: Path, request: str) -> None:
    """Have a process take a request in hand, charge or find its charge, and die."""

    def charge_and_die(_: int) -> None:
        ledger = open_at(path)
        with ledger.in_hand(request):
            charge(ledger, again(ledger), request, request_id=request)
            kill_self()

    in_child(charge_and_die)


def _counted(path: Path, request: str) -> list[str]:
    """What is wrong with the number of charges and answers of a request."""
    with open_at(path) as ledger:
        number = ledger.charged_for(again(ledger), request_id=request)
        answers = [entry for entry in ledger.entries() if entry.kind == "answer" and entry.record["charge"] == number]
    return [] if number is not None and len(answers) <= 1 else [f"{len(answers)} answers"]
