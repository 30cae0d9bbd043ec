"""Races for a budget on any store: threads and processes at once, their history, and processes that are killed."""

import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import tacit
from tacit.errors import TacitError
from tacit.ledger.draft import LedgerDraft
from tacit.ledger.entry import Entry
from tacit_gauntlet.stage.ledger import (
    TENTH,
    Ledger,
    RegisteredTable,
    again,
    ask,
    in_children,
    open_at,
    register,
)

FITS = 3


CALLERS = 24


# Those who race and have not come by then are not waited for.
# On a slow disk a client still asks this often.
TURNS_MIN = 4


# Python hands the lock over this often, in seconds: each finds other interleavings.
SWITCHES = (1e-6, 1e-5, 5e-3)


def race_threads(where: str | Path, *, switch: float, callers: int = CALLERS, gathered: bool = False) -> int:
    """Return how many of many threads on one ledger were charged; the totals must say the same."""
    ledger = open_at(where)
    table = register(ledger, tacit.epsilon(FITS * TENTH))
    gate = threading.Barrier(callers)
    winners: list[int] = []

    def one(caller: int) -> None:
        gate.wait()
        if ask(ledger, table, f"q{caller}") is not None:
            winners.append(caller)

    before = sys.getswitchinterval()
    sys.setswitchinterval(switch)
    leader = gather(ledger, callers) if gathered else None
    try:
        run_together([lambda caller=caller: one(caller) for caller in range(callers)])  # type: ignore[misc]
    finally:
        sys.setswitchinterval(before)
        if leader is not None:
            leader.join()
        ledger.close()
    return _settled(where, len(winners))


def race_processes(where: str | Path, *, processes: int, tries: int = 4) -> int:
    """Return how many charges many processes won, each with a connection and threads of its own."""
    with open_at(where) as ledger:
        register(ledger, tacit.epsilon(FITS * TENTH))

    def one(process: int) -> int:
        ledger = open_at(where)
        table = again(ledger)
        won = [ask(ledger, table, f"q{process} {turn}") for turn in range(tries)]
        return sum(receipt is not None for receipt in won)

    wins = in_children([lambda process=process: one(process) for process in range(processes)])  # type: ignore[misc]
    return _settled(where, sum(wins))


def _settled(where: str | Path, winners: int) -> int:
    """Return the winners if the ledger, opened afresh, has charged just that much; otherwise what it has charged."""
    with open_at(where) as ledger:
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


def history_faults(
    where: str | Path, *, seconds: float, processes: int, clients: int, budget: int = 400
) -> tuple[list[str], int]:
    """Return what is wrong with a recorded history, and how many operations it had."""
    with open_at(where) as ledger:
        register(ledger, tacit.epsilon(Fraction(budget)))
    in_turn = _take_turns(where)
    with tempfile.TemporaryDirectory() as notes:

        def one(process: int) -> int:
            ledger = open_at(where)
            table = again(ledger)
            seen: list[Operation] = []
            until = time.monotonic() + seconds

            def client(client: int) -> None:
                turn = 0
                while turn < TURNS_MIN or time.monotonic() < until:
                    turn += 1
                    seen.append(_watched(ledger, table, f"{process} {client} {turn}", (turn * 7 + client) % 5 + 1))

            run_together([lambda number=number: client(number) for number in range(clients)])  # type: ignore[misc]
            lines = "".join(f"{o.began} {o.ended} {o.amount} {o.number or 0}\n" for o in seen)
            Path(notes, str(process)).write_text(lines)
            return 0

        codes = in_children([lambda process=process: one(process) for process in range(processes)])  # type: ignore[misc]
        operations = in_turn + [
            _operation(line) for note in os.listdir(notes) for line in Path(notes, note).read_text().splitlines()
        ]
    faults = ["a client failed"] if any(codes) else []
    return faults + order_faults(operations, budget, _charges(where)), len(operations)


def _take_turns(where: str | Path) -> list[Operation]:
    """Return what two ledgers opened on one place see that ask in turn."""
    with open_at(where) as one, open_at(where) as two:
        clients = [("one", one, again(one)), ("two", two, again(two))]
        return [
            _watched(ledger, table, f"{name} in turn {turn}", 1)
            for turn in range(TURNS_MIN)
            for name, ledger, table in clients
        ]


def _watched(ledger: Ledger, table: RegisteredTable, question: str, amount: int) -> Operation:
    """Ask, and return the call as its caller saw it."""
    began = time.monotonic()
    receipt = ask(ledger, table, question, epsilon=Fraction(amount))
    return Operation(began, time.monotonic(), amount, None if receipt is None else receipt.charge)


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
        could_be_before = sum(o.amount for o in admitted if o.began <= refused.ended)
        if could_be_before + refused.amount <= budget:
            faults.append("a charge was refused while there was room")
    return faults


def _charges(where: str | Path) -> dict[int, Fraction]:
    with open_at(where) as ledger:
        ledger.verify()
        return {e.number: Fraction(e.record["epsilon"]) for e in ledger.entries() if e.kind == "charge"}


def _operation(line: str) -> Operation:
    began, ended, amount, number = line.split()
    return Operation(float(began), float(ended), int(amount), int(number) or None)


NEVER = 10**9


def invariant_faults(path: Path | str, handed_out: Sequence[str], spent_before: int) -> tuple[list[str], int]:
    """Return what a kill broke, and how many charges there are: it must open whole, keep what left it, and go on."""
    try:
        with open_at(path) as ledger:
            return _invariant_faults(ledger, handed_out, spent_before)
    except TacitError as error:
        return [f"the ledger did not restart: {error}"], spent_before


def _invariant_faults(ledger: Ledger, handed_out: Sequence[str], spent_before: int) -> tuple[list[str], int]:
    table = again(ledger)
    ledger.verify()
    entries, spent = _entries_and_spent(ledger, table)
    charges = [entry for entry in entries.values() if entry.kind == "charge"]
    faults = []
    for line in handed_out:
        number, paid = map(int, line.split())
        kept = entries.get(number)
        if kept is None or kept.kind != "answer" or kept.record["charge"] != paid or paid not in entries:
            faults.append(f"the answer in entry {number} left without a charge that lasts")
    if spent != len(charges) * TENTH or len(charges) < spent_before + len(handed_out):
        faults.append("what was spent fell")
    if ask(ledger, table, f"after {len(charges)}") is None:
        faults.append("the ledger did not go on")
    return faults, len(charges) + 1


def _entries_and_spent(ledger: Ledger, table: RegisteredTable) -> tuple[dict[int, Entry], Fraction | None]:
    """Return the entries by number and what was spent, both of one moment.

    A server writes the last statement of a killed client whenever it comes to it, perhaps between our two readings.
    """
    while True:
        length = ledger.length()
        entries = {entry.number: entry for entry in ledger.entries()}
        spent = ledger.spent(table).epsilon
        if ledger.length() == length:
            return entries, spent


def answer_until_killed(path: Path | str, turn: int, pipe: int) -> None:
    """Answer questions as fast as possible until this process is killed, by a child of its own, at no step at all."""
    victim = os.getpid()
    if os.fork() == 0:
        time.sleep(0.002 + 0.0017 * (turn % 20))
        os.kill(victim, signal.SIGKILL)
        os._exit(0)
    ledger = open_at(path)
    table = again(ledger)
    for question in range(NEVER):
        receipt = ask(ledger, table, f"random {turn} {question}", request_id=f"random {turn} {question}")
        if receipt is not None:
            os.write(pipe, f"{receipt.number} {receipt.charge}\n".encode())


GATHERING_SECONDS = 60.0


def gather(ledger: Ledger, callers: int) -> threading.Thread:
    """Return a thread that is being written by the ledger's group commit, until so many wait behind it."""
    leading = threading.Event()

    def hold(_: LedgerDraft) -> None:
        leading.set()
        until = time.monotonic() + GATHERING_SECONDS
        while len(ledger._group_commit._waiting) < callers and time.monotonic() < until:
            time.sleep(0.001)

    thread = threading.Thread(target=lambda: ledger._group_commit.submit(hold))
    thread.start()
    leading.wait()
    return thread


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
