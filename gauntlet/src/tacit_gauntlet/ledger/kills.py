"""Kills: the process ends without warning at every step of an answer, and at random (L02, L15).

The steps are every statement sent to SQLite and every write and sync of the anchor, each before and after. Whatever
was handed out must be in the ledger and paid for, and what was paid for once must never be answered twice.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import tacit
from tacit.errors import DeadRequest
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.ledger import (
    TENTH,
    Connection,
    again,
    answered,
    ask,
    charge,
    connected,
    in_child,
    kill_self,
    open_at,
    private_home,
    refused,
    register,
)
from tacit_gauntlet.stage.racing import NEVER, answer_until_killed, invariant_faults

# Room for whatever a fast disk answers before it is killed.
BUDGET = tacit.epsilon(Fraction(10**6))


@dataclass
class Fuse:
    """Counts steps and kills the process at one of them: even numbers before a step, odd ones after it."""

    at: int
    steps: int = 0

    def before(self) -> None:
        """Note that a step is about to happen."""
        if self.at == 2 * self.steps:
            kill_self()

    def after(self) -> None:
        """Note that a step has happened."""
        if self.at == 2 * self.steps + 1:
            kill_self()
        self.steps += 1


class FusedConnection:
    """A connection whose every statement is a step."""

    def __init__(self, inner: Connection, fuse: Fuse) -> None:
        self._inner = inner
        self._fuse = fuse

    def execute(self, statement: str, values: Sequence[Any] = (), /) -> Any:
        """Run a statement as a step."""
        self._fuse.before()
        rows = list(self._inner.execute(statement, values))
        self._fuse.after()
        return iter(rows)

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]], /) -> Any:
        """Run a statement on many rows as one step."""
        self._fuse.before()
        result = self._inner.executemany(statement, rows)
        self._fuse.after()
        return result

    def close(self) -> None:
        """Close the connection."""
        self._inner.close()


@case("L02", title="the process is killed at every step of an answer", feature="ledger")
def kill_at_every_step(size: Size) -> Evidence:
    """Kill before and after each step of opening, charging and answering; after each, check four invariants."""
    with private_home() as home:
        path = home / "ledger.db"
        with open_at(path) as ledger:
            register(ledger, BUDGET)
        steps = _steps(path)
        kills = range(0, 2 * steps, 3 if size == "quick" else 1)
        faults, spent = [], 0
        for kill in kills:
            lines, code = in_child(lambda pipe, kill=kill: _answer(path, kill, pipe))  # type: ignore[misc]
            found, spent = invariant_faults(path, lines, spent)
            faults += [f"kill {kill}: {fault}" for fault in ([] if code == -9 else [f"exit {code}"]) + found]
        random_kills = 6 if size == "quick" else 150
        for turn in range(random_kills):
            lines, _ = in_child(lambda pipe, turn=turn: answer_until_killed(path, turn, pipe))  # type: ignore[misc]
            found, spent = invariant_faults(path, lines, spent)
            faults += [f"random kill {turn}: {fault}" for fault in found]
    details = {"steps": steps, "kills": len(kills) + random_kills, "faults": "; ".join(faults[:5]) or "none"}
    return Evidence(not faults, details)


def _answer(path: Path, kill: int, pipe: int) -> None:
    """Answer two questions, telling the pipe of each once it may leave, and die at step `kill`."""
    fuse = Fuse(kill)
    _fuse_anchor(fuse)
    with open_at(path, connect=lambda name: FusedConnection(connected(name), fuse)) as ledger:
        table = again(ledger)
        for question in (f"{kill} a", f"{kill} b"):
            receipt = ask(ledger, table, question, request_id=question)
            if receipt is not None:
                os.write(pipe, f"{receipt.number} {receipt.charge}\n".encode())
    if kill == NEVER:
        os.write(pipe, f"steps {fuse.steps} 0\n".encode())
    kill_self()


def _fuse_anchor(fuse: Fuse) -> None:
    """Make the anchor's write and sync steps too; this process is about to die, so nothing is put back."""
    pwrite, fdatasync = os.pwrite, os.fdatasync

    def fused_pwrite(descriptor: int, content: bytes, offset: int) -> int:
        fuse.before()
        written = pwrite(descriptor, content, offset)
        fuse.after()
        return written

    def fused_sync(descriptor: int) -> None:
        fuse.before()
        fdatasync(descriptor)
        fuse.after()

    os.pwrite, os.fdatasync = fused_pwrite, fused_sync  # type: ignore[assignment]


def _steps(path: Path) -> int:
    lines, _ = in_child(lambda pipe: _answer(path, NEVER, pipe))
    return int(lines[-1].split()[1])


@case("L15", title="a request that was charged and never answered is tried again", feature="ledger")
def retry_the_dead(size: Size) -> Evidence:
    """Kill between charge and answer, then ask with the same id: it is dead, charged once and never answered."""
    kills = 6 if size == "quick" else 200
    faults = []
    with private_home() as home:
        path = home / "ledger.db"
        with open_at(path) as ledger:
            register(ledger, BUDGET)
        for turn in range(kills):
            request = f"request {turn}"
            in_child(lambda _, request=request: _charge_and_die(path, request))  # type: ignore[misc]
            faults += _dead_faults(path, request, charges=turn + 1)
    return Evidence(not faults, {"kills": kills, "faults": "; ".join(faults[:5]) or "none"})


def _charge_and_die(path: Path, request: str) -> None:
    ledger = open_at(path)
    charge(ledger, again(ledger), request, request_id=request)
    kill_self()


def _dead_faults(path: Path, request: str, *, charges: int) -> list[str]:
    faults = []
    with open_at(path) as ledger:
        table = again(ledger)

        def retry() -> None:
            answered(ledger, table, request, epsilon=TENTH, request_id=request)

        if not refused(retry, DeadRequest):
            faults.append(f"{request} was answered from a charge that had been drawn on")
        if not refused(lambda: ledger.recall(table, question_key=request, request_id=request), DeadRequest):
            faults.append(f"{request} was not said to be dead")
        made = [entry for entry in ledger.entries() if entry.kind == "charge"]
        if len(made) != charges:
            faults.append(f"{request} was charged {len(made) - charges + 1} times")
        if any(entry.kind == "answer" for entry in ledger.entries()):
            faults.append(f"{request} has an answer")
    return faults
