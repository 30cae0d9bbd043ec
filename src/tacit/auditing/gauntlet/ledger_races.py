"""Races for a budget: threads and processes at once, and whether their history fits one order (L01, L12)."""

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from tacit.auditing.gauntlet.case import Evidence, Size, case
from tacit.auditing.gauntlet.ledger_stage import TENTH, again, ask, in_children, private_home, register
from tacit.ledger import open_ledger
from tacit.privacy.loss import PureLoss

FITS = 3
CALLERS = 24
# On a slow disk a client still asks this often.
TURNS_MIN = 4
# Python hands the lock over this often, in seconds: each finds other interleavings.
SWITCHES = (1e-6, 1e-5, 5e-3)


@case("L01b", title="threads race for a budget that fits three", feature="ledger")
def race(size: Size) -> Evidence:
    """Many threads at once for a budget of three: exactly three are charged, every time."""
    return _race(
        6 if size == "quick" else 140, lambda path, turn: race_threads(path, switch=SWITCHES[turn % len(SWITCHES)])
    )


@case("L01", title="processes race for a budget that fits three", feature="ledger")
def race_apart(size: Size) -> Evidence:
    """Several processes at once for a budget of three: exactly three charges are admitted, every time."""
    return _race(6 if size == "quick" else 60, lambda path, _: race_processes(path, processes=6))


def _race(rounds: int, run: Callable[[Path, int], int]) -> Evidence:
    with private_home() as home:
        won = {run(home / f"{turn}.db", turn) for turn in range(rounds)}
    return Evidence(won == {FITS}, {"rounds": rounds, "charged in each": sorted(won), "should be": FITS})


def race_threads(where: str | Path, *, switch: float, callers: int = CALLERS) -> int:
    """Return how many of many threads on one ledger were charged; the totals must say the same."""
    ledger = open_ledger(where)
    table = register(ledger, PureLoss(FITS * TENTH))
    gate = threading.Barrier(callers)
    winners: list[int] = []

    def one(caller: int) -> None:
        gate.wait()
        if ask(ledger, table, f"q{caller}") is not None:
            winners.append(caller)

    before = sys.getswitchinterval()
    sys.setswitchinterval(switch)
    try:
        run_together([lambda caller=caller: one(caller) for caller in range(callers)])  # type: ignore[misc]
    finally:
        sys.setswitchinterval(before)
        ledger.close()
    return _settled(where, len(winners))


def race_processes(where: str | Path, *, processes: int, tries: int = 4) -> int:
    """Return how many charges many processes won, each with a connection and threads of its own."""
    with open_ledger(where) as ledger:
        register(ledger, PureLoss(FITS * TENTH))

    def one(process: int) -> int:
        ledger = open_ledger(where)
        table = again(ledger)
        won = [ask(ledger, table, f"q{process} {turn}") for turn in range(tries)]
        return sum(receipt is not None for receipt in won)

    wins = in_children([lambda process=process: one(process) for process in range(processes)])  # type: ignore[misc]
    return _settled(where, sum(wins))


def _settled(where: str | Path, winners: int) -> int:
    """Return the winners if the ledger, opened afresh, has charged just that much; otherwise what it has charged."""
    with open_ledger(where) as ledger:
        ledger.verify()
        spent = ledger.spent(again(ledger)).epsilon
    charged = Fraction(-1) if spent is None else spent / TENTH
    return winners if charged == winners else 1000 + int(charged)


@dataclass(frozen=True)
class Operation:
    """One call as its caller saw it: when it began and ended, what it asked for, and the entry it was given."""

    began: float
    ended: float
    amount: int
    number: int | None


@case("L12", title="what many clients saw fits one order in time", feature="ledger")
def history(size: Size) -> Evidence:
    """Clients in threads of several processes record what they saw; some order of the calls must explain it all."""
    seconds, processes = (0.4, 3) if size == "quick" else (8.0, 8)
    with private_home() as home:
        faults, operations = history_faults(home / "ledger.db", seconds=seconds, processes=processes, clients=4)
    return Evidence(not faults, {"operations": operations, "faults": "; ".join(faults[:5]) or "none"})


def history_faults(
    where: str | Path, *, seconds: float, processes: int, clients: int, budget: int = 400
) -> tuple[list[str], int]:
    """Return what is wrong with a recorded history, and how many operations it had."""
    with open_ledger(where) as ledger:
        register(ledger, PureLoss(Fraction(budget)))
    with tempfile.TemporaryDirectory() as notes:

        def one(process: int) -> int:
            ledger = open_ledger(where)
            table = again(ledger)
            seen: list[Operation] = []
            until = time.monotonic() + seconds

            def client(client: int) -> None:
                turn = 0
                while turn < TURNS_MIN or time.monotonic() < until:
                    turn += 1
                    amount = (turn * 7 + client) % 5 + 1
                    began = time.monotonic()
                    receipt = ask(ledger, table, f"{process} {client} {turn}", epsilon=Fraction(amount))
                    charge = None if receipt is None else receipt.charge
                    seen.append(Operation(began, time.monotonic(), amount, charge))

            run_together([lambda number=number: client(number) for number in range(clients)])  # type: ignore[misc]
            lines = "".join(f"{o.began} {o.ended} {o.amount} {o.number or 0}\n" for o in seen)
            Path(notes, str(process)).write_text(lines)
            return 0

        codes = in_children([lambda process=process: one(process) for process in range(processes)])  # type: ignore[misc]
        operations = [
            _operation(line) for note in os.listdir(notes) for line in Path(notes, note).read_text().splitlines()
        ]
    faults = ["a client failed"] if any(codes) else []
    return faults + order_faults(operations, budget, _charges(where)), len(operations)


def order_faults(operations: list[Operation], budget: int, charges: dict[int, Fraction]) -> list[str]:
    """Return why no order explains the operations: the ledger's own numbers are the order that must."""
    faults = []
    admitted = sorted((o for o in operations if o.number is not None), key=lambda o: o.number or 0)
    if {o.number: Fraction(o.amount) for o in admitted} != charges:
        faults.append("the charges in the ledger are not the ones the clients were given")
    if sum(o.amount for o in admitted) > budget:
        faults.append("more was charged than the budget")
    latest_start = float("-inf")
    for operation in admitted:
        if operation.ended < latest_start:
            faults.append(f"charge {operation.number} came after one that began when it had ended")
        latest_start = max(latest_start, operation.began)
    for refused in (o for o in operations if o.number is None):
        could_be_before = sum(o.amount for o in admitted if o.began < refused.ended)
        if could_be_before + refused.amount <= budget:
            faults.append("a charge was refused while there was room")
    return faults


def _charges(where: str | Path) -> dict[int, Fraction]:
    with open_ledger(where) as ledger:
        ledger.verify()
        return {e.number: Fraction(e.record["epsilon"]) for e in ledger.entries() if e.kind == "charge"}


def _operation(line: str) -> Operation:
    began, ended, amount, number = line.split()
    return Operation(float(began), float(ended), int(amount), int(number) or None)


def run_together(works: list[Callable[[], None]]) -> None:
    """Run each of `works` in a thread of its own; an error in one is raised here."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
