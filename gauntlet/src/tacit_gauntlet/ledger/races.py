"""Races for a budget: threads and processes at once, and whether their history fits one order (L01, L12)."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import tacit
from tacit.errors import BudgetExceeded, LedgerError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.ledger import (
    TENTH,
    Connection,
    again,
    ask,
    charge,
    open_at,
    private_home,
    register,
)
from tacit_gauntlet.stage.racing import FITS, SWITCHES, _settled, history_faults, race_processes, race_threads

# More than a charge sends to SQLite.
STATEMENTS = 16


@case("L01b", title="threads race for a budget that fits three", feature="ledger")
def race(size: Size) -> Evidence:
    """Many threads at once for a budget of three: exactly three are charged, every time.

    In every other round they all wait for the group commit before the first is written.
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
    with open_at(where, connect=lambda _: cut) as first, open_at(where, connect=_impatient) as second:
        table, known = register(first, tacit.epsilon(FITS * TENTH)), again(second)
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


@case("L12", title="what many clients saw fits one order in time", feature="ledger")
def history(size: Size) -> Evidence:
    """Clients in threads of several processes record what they saw; some order of the calls must explain it all.

    Before they begin, two of them take turns, so that each has been overtaken by the other.
    """
    seconds, processes = (0.4, 3) if size == "quick" else (8.0, 8)
    with private_home() as home:
        faults, operations = history_faults(home / "ledger.db", seconds=seconds, processes=processes, clients=4)
    return Evidence(not faults, {"operations": operations, "faults": "; ".join(faults[:5]) or "none"})
