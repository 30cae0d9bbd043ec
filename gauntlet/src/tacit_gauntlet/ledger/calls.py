"""Calls that learn and then ask: a fact is charged once, and the room of a call is kept while it lives (L36)."""

import threading
from contextlib import suppress
from pathlib import Path

import tacit
from tacit.errors import TacitError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.calls import Other, call, knows_fact, learn, notice_waits
from tacit_gauntlet.stage.ledger import TENTH, Ledger, again, ask, open_at, private_home, register

STORIES = 4


@case("L36", title="a fact is charged once, and the room of a call is kept while it lives", feature="ledger")
def whole_calls(size: Size) -> Evidence:
    """Each story has a ledger of its own, with a budget of 1, and another process that is stopped or killed in it."""
    turns = 1 if size == "quick" else 10
    faults = []
    with private_home() as home:
        for turn in range(turns):
            for story in (_learned_once, _taken_over, _kept, _given_back):
                path = home / f"{story.__name__}{turn}.db"
                with open_at(path) as ledger:
                    register(ledger, tacit.epsilon(1))
                    faults += [f"{story.__name__}: {fault}" for fault in story(path, ledger)]
                    ledger.verify()
    return Evidence(not faults, {"stories": STORIES * turns, "faults": "; ".join(faults[:5]) or "none"})


def _learned_once(path: Path, ledger: Ledger) -> list[str]:
    """One learns a fact while another analyst needs it: the other looks at its lock, and is given what was learned."""
    other = Other(path, lambda own, stop: learn(own, "ann", stop))
    met = threading.Event()
    notice_waits(ledger, met)

    def second() -> None:
        with suppress(TacitError):
            learn(ledger, "ben")
        met.set()

    thread = threading.Thread(target=second)
    thread.start()
    met.wait()
    other.go_on()
    thread.join()
    return [] if _charges(ledger) == 1 else [f"{_charges(ledger)} charges for one fact"]


def _taken_over(path: Path, ledger: Ledger) -> list[str]:
    """One is killed while it learns a fact; another analyst carries out the same charge."""
    Other(path, lambda own, stop: learn(own, "ann", stop)).kill()
    learn(ledger, "ben")
    return [] if _charges(ledger) == 1 and knows_fact(ledger) else [f"{_charges(ledger)} charges for one fact"]


def _kept(path: Path, ledger: Ledger) -> list[str]:
    """One has learned, and is about to ask: others have only what its call leaves."""
    other = Other(path, call)
    table = again(ledger)
    too_much = ask(ledger, table, "more than is left", epsilon=3 * TENTH)
    fits = ask(ledger, table, "what is left", epsilon=2 * TENTH)
    is_answered = other.go_on() == 0
    right = {
        "the room of a call was given to another": too_much is None,
        "more was kept than the call needs": fits is not None,
        "a call paid for a fact and was then refused": is_answered,
    }
    return [fault for fault, is_right in right.items() if not is_right]


def _given_back(path: Path, ledger: Ledger) -> list[str]:
    """The same one is killed: what it had not charged is there for others."""
    Other(path, call).kill()
    rest = ask(ledger, again(ledger), "all the rest", epsilon=9 * TENTH)
    return [] if rest is not None else ["the room of one who died is never free again"]


def _charges(ledger: Ledger) -> int:
    return sum(entry.kind == "charge" for entry in ledger.entries())
