"""Races for a budget: threads and processes at once, and whether their history fits one order (L01, L12)."""

import os
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from tacit.errors import BudgetExceeded, LedgerError
from tacit.ledger import Ledger, RegisteredTable, open_ledger
from tacit.ledger.draft import Draft
from tacit.ledger.sqlite import Connection
from tacit.privacy.loss import PureLoss
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.ledger import TENTH, again, ask, charge, in_children, private_home, register

FITS = 3
CALLERS = 24
# More than a charge sends to SQLite.
STATEMENTS = 16
# Those who race and have not come by then are not waited for.
GATHERING_SECONDS = 60.0
# On a slow disk a client still asks this often.
TURNS_MIN = 4
# Python hands the lock over this often, in seconds: each finds other interleavings.
SWITCHES = (1e-6, 1e-5, 5e-3)


@case("L01b", title="threads race for a budget that fits three", feature="ledger")
def race(size: Size) -> Evidence:
    """Many threads at once for a budget of three: exactly three are charged, every time.

    In every other round they all wait at the turnstile before the first is served.
    """
    return _race(
        6 if size == "quick" else 140,
        lambda path, turn: race_threads(path, switch=SWITCHES[turn % len(SWITCHES)], gathered=turn % 2 == 0),
    )


@case("L01", title="processes race for a budget that fits three", feature="ledger")
def race_apart(size: Size) -> Evidence:
    """Several processes at once for a budget of three: exactly three charges are admitted, every time.

    What a race meets by chance is also met by rule: one comes between every two statements of another.
    """
    with private_home() as home:
        met = {cut_in(home / f"cut{place}.db", place) for place in range(STATEMENTS)}
    raced = _race(4 if size == "quick" else 60, lambda path, _: race_processes(path, processes=6))
    return Evidence(raced.passed and met == {FITS}, {**raced.details, "one between two of another": sorted(met)})


def _race(rounds: int, run: Callable[[Path, int], int]) -> Evidence:
    with private_home() as home:
        won = {run(home / f"{turn}.db", turn) for turn in range(rounds)}
    return Evidence(won == {FITS}, {"rounds": rounds, "charged in each": sorted(won), "should be": FITS})


class CutConnection:
    """A connection that lets another do something before one of its statements."""

    def __init__(self, inner: Connection) -> None:
        self._inner = inner
        self.left = -1
        self.another: Callable[[], None] = lambda: None

    def _step(self) -> None:
        self.left -= 1
        if self.left == -1:
            self.another()

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Any:
        """Run a statement, which another may come before."""
        self._step()
        return iter(list(self._inner.execute(statement, values)))

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]], /) -> Any:
        """Run a statement on many rows, which another may come before."""
        self._step()
        return self._inner.executemany(statement, rows)

    def close(self) -> None:
        """Close the connection."""
        self._inner.close()


def cut_in(where: Path, place: int) -> int:
    """Return how many charges two ledgers on one file won, the second asking before statement `place` of the first."""
    cut = CutConnection(_impatient(str(where)))
    won: list[object] = []
    with open_ledger(where, connect=lambda _: cut) as first, open_ledger(where, connect=_impatient) as second:
        table, known = register(first, PureLoss(FITS * TENTH)), again(second)
        won += [ask(first, table, "first"), ask(second, known, "second")]

        def another() -> None:
            with suppress(LedgerError):  # where the first holds the file, as it may
                won.append(ask(second, known, "cuts in"))

        cut.left, cut.another = place, another
        with suppress(BudgetExceeded):
            won.append(charge(first, table, "last"))
        cut.left = -1
        won += [ask(second, known, f"after {turn}") for turn in range(FITS)]
    return _settled(where, sum(one is not None for one in won))


def _impatient(name: str) -> Connection:
    return sqlite3.connect(name, timeout=0, isolation_level=None, check_same_thread=False)


def gather(ledger: Ledger, callers: int) -> threading.Thread:
    """Return a thread that is being served by the turnstile, until so many wait behind it."""
    leading = threading.Event()

    def hold(_: Draft) -> None:
        leading.set()
        until = time.monotonic() + GATHERING_SECONDS
        while len(ledger._turnstile._waiting) < callers and time.monotonic() < until:
            time.sleep(0.001)

    thread = threading.Thread(target=lambda: ledger._turnstile.take(hold))
    thread.start()
    leading.wait()
    return thread


def race_threads(where: str | Path, *, switch: float, callers: int = CALLERS, gathered: bool = False) -> int:
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
    """Clients in threads of several processes record what they saw; some order of the calls must explain it all.

    Before they begin, two of them take turns, so that each has been overtaken by the other.
    """
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
    in_turn = _take_turns(where)
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
    with open_ledger(where) as one, open_ledger(where) as two:
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
