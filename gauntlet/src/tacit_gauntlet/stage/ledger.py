"""The stage for attacks on the ledger: a home of its own, a table with a budget, and processes to race or kill."""

import os
import signal
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

from tacit.errors import BudgetExceeded, TacitError
from tacit.ledger import Ledger, RegisteredTable, Reservation, StoredAnswer, open_ledger
from tacit.ledger.charging import Receipt
from tacit.privacy.event import PureChoice
from tacit.privacy.loss import Loss, PureLoss

DECLARATION = {"unit": "person_id", "neighbours": "add or remove", "columns": ["income"], "version": 1}
TENTH = Fraction(1, 10)


@contextmanager
def private_home() -> Iterator[Path]:
    """Yield a fresh folder that is $TACIT_HOME while open."""
    before = os.environ.get("TACIT_HOME")
    with tempfile.TemporaryDirectory(prefix="tacit-gauntlet-") as folder:
        os.environ["TACIT_HOME"] = folder
        try:
            yield Path(folder)
        finally:
            if before is None:
                del os.environ["TACIT_HOME"]
            else:
                os.environ["TACIT_HOME"] = before


def register(ledger: Ledger, budget: Loss | None = None, *, name: str = "pay") -> RegisteredTable:
    """Return a table with a budget of epsilon 1, unless another is given."""
    return ledger.register(name=name, declaration=DECLARATION, source=name, budget=budget or PureLoss(Fraction(1)))


def again(ledger: Ledger, *, name: str = "pay") -> RegisteredTable:
    """Return a table that was registered before."""
    return ledger.register(name=name, declaration=DECLARATION, source=name)


def ask(
    ledger: Ledger,
    table: RegisteredTable,
    question: str,
    *,
    epsilon: Fraction = TENTH,
    request_id: str | None = None,
    analyst: str | None = None,
) -> Receipt | None:
    """Reserve and commit a question, and return its receipt; None where the budget has no room."""
    try:
        reserved = ledger.reserve(
            table, [PureChoice(epsilon)], question_key=question, request_id=request_id, analyst=analyst
        )
    except BudgetExceeded:
        return None
    return reserved.receipt if isinstance(reserved, StoredAnswer) else reserved.commit(f'"answer to {question}"')


def charge(
    ledger: Ledger, table: RegisteredTable, question: str, *, epsilon: Fraction = TENTH, request_id: str | None = None
) -> Reservation:
    """Reserve a question that was not asked before."""
    reserved = ledger.reserve(table, [PureChoice(epsilon)], question_key=question, request_id=request_id)
    if isinstance(reserved, StoredAnswer):
        raise TypeError("the question had an answer")
    return reserved


def refused(action: Callable[[], object], *kinds: type[TacitError]) -> bool:
    """Return whether the action raises one of these errors of ours."""
    try:
        action()
    except kinds:
        return True
    return False


def in_child(work: Callable[[int], None]) -> tuple[list[str], int]:
    """Run `work` in a forked child with a pipe to write lines to; return the lines and how the child ended.

    The second value is the exit code, or minus the signal that killed it.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            work(writer)
        except BaseException:
            os._exit(70)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        lines = pipe.read().splitlines()
    return lines, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def in_children(works: Sequence[Callable[[], int]]) -> list[int]:
    """Run each of `works` in a forked child, all starting together, and return the numbers they give (0 to 69)."""
    gate_reader, gate_writer = os.pipe()
    children = []
    for work in works:
        child = os.fork()
        if child == 0:
            try:
                os.close(gate_writer)
                os.read(gate_reader, 1)
                os._exit(work())
            except BaseException:
                os._exit(70)
        children.append(child)
    os.close(gate_reader)
    os.close(gate_writer)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def kill_self() -> None:
    """End this process as a power cut would: at once, with nothing flushed."""
    os.kill(os.getpid(), signal.SIGKILL)


def reopened(path: Path | str) -> tuple[Ledger, RegisteredTable]:
    """Return the ledger as a process that starts now would find it."""
    ledger = open_ledger(path)
    return ledger, again(ledger)
