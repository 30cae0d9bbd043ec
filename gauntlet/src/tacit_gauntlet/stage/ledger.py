"""The stage for attacks on the ledger: a home of its own, a table with a budget, and processes to race or kill.

A new store passes the ledger's cases when `open_at` opens it.
"""

import os
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from tacit import ledger as room
from tacit.accounting.filter import Charge
from tacit.engine.kernel import compiled
from tacit.errors import BudgetExceeded, TacitError
from tacit.ledger import entry, sqlite
from tacit.ledger.draft import PAGE, LedgerDraft
from tacit.ledger.store import StoreRows
from tacit.privacy.loss import LaplaceNoise, Loss, PureChoice, PureLoss
from tacit_gauntlet.targets import original, planted

# what the functions below take and give
Ledger = room.Ledger
RegisteredTable = room.RegisteredTable
Reservation = room.Reservation
Receipt = room.Receipt
Connection = sqlite.SqliteConnection

DECLARATION = {"unit": "person_id", "neighbours": "add or remove", "columns": ["income"], "version": 1}
TENTH = Fraction(1, 10)
# Charges and answers that fill one page of the chain.
CHARGES_A_PAGE = PAGE // 2


def forget_installation() -> None:
    """Forget that this installation was found to be complete."""
    original("whole installation").cache_clear()
    compiled._has_numba.cache_clear()


def open_at(
    where: str | Path,
    *,
    create: bool = True,
    accept: str | None = None,
    clock: Callable[[], datetime] | None = None,
    connect: Callable[[str], Any] | None = None,
) -> Ledger:
    """Return the ledger at a place, by the clock and through the connection given, or by the usual ones."""
    given = {name: value for name, value in (("clock", clock), ("connect", connect)) if value is not None}
    return room.open_ledger(where, create=create, accept=accept, **given)  # type: ignore[arg-type]


def connected(name: str) -> Connection:
    """Return a connection to a ledger's file, as a ledger makes it."""
    return sqlite.connect_to_file(name)


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
    return reserved.receipt if isinstance(reserved, room.StoredAnswer) else reserved.commit(f'"answer to {question}"')


def charge(
    ledger: Ledger, table: RegisteredTable, question: str, *, epsilon: Fraction = TENTH, request_id: str | None = None
) -> Reservation:
    """Reserve a question that was not asked before."""
    reserved = ledger.reserve(table, [PureChoice(epsilon)], question_key=question, request_id=request_id)
    if isinstance(reserved, room.StoredAnswer):
        raise TypeError("the question had an answer")
    return reserved


def answered(ledger: Ledger, table: RegisteredTable, question: str, *, epsilon: Fraction, **words: Any) -> None:
    """Reserve a question, and commit an answer where none is stored; whatever is refused is the caller's to see."""
    reserved = ledger.reserve(table, [PureChoice(epsilon)], question_key=question, **words)
    if not isinstance(reserved, room.StoredAnswer):
        reserved.commit('"an answer"')


@contextmanager
def stating(charge: Charge) -> Iterator[None]:
    """Let whatever is charged while open state this charge."""
    with planted("charge_of in charging", lambda *_, **__: charge):
        yield


@contextmanager
def quick_real_disk() -> Iterator[None]:
    """Let what syncs the real disk return at once while open: for a ledger that is on a disk in memory."""
    with planted("fsync", lambda _: None), planted("fdatasync", lambda _: None):
        yield


def lose_connection(ledger: Ledger) -> None:
    """Take a ledger's connection away, as the end of its process would: nothing more reaches the disk."""
    store: Any = ledger._store
    store._connection = None


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
            _fail_child()
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
                _fail_child()
        children.append(child)
    os.close(gate_reader)
    os.close(gate_writer)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def _fail_child() -> None:
    """End a child that failed, and say why: its exit code alone does not."""
    os.write(2, traceback.format_exc().encode())
    os._exit(70)


def kill_self() -> None:
    """End this process as a power cut would: at once, with nothing flushed."""
    os.kill(os.getpid(), signal.SIGKILL)


def reopened(path: Path | str) -> tuple[Ledger, RegisteredTable]:
    """Return the ledger as a process that starts now would find it."""
    ledger = open_at(path)
    return ledger, again(ledger)


# ---- callers at once -----------------------------------------------------------------------------------------------


# ---- a long ledger -------------------------------------------------------------------------------------------------


def noon() -> datetime:
    """Return a time that stands still, so that copies of an entry are in order."""
    return datetime(2026, 6, 15, 12, tzinfo=UTC)


def fill(ledger: Ledger, table: RegisteredTable, charges: int) -> None:
    """Write many charges and their answers, copied from a real pair; verifying says whether they are right."""
    event = LaplaceNoise(scale=Fraction(1000), sensitivity=Fraction(1))
    reserved = ledger.reserve(table, [event], question_key="pattern", request_id="pattern", analyst="ann")
    if isinstance(reserved, room.StoredAnswer):
        raise TypeError("the ledger has been filled before")
    answer = reserved.commit("[1, 2, 3]")
    paid = reserved.charge
    pattern = next(each for each in ledger.entries(answer.number)).body
    for first in range(1, charges, 5000):
        copies = range(first, min(first + 5000, charges))
        ledger._store.transact((), partial(_copied, ledger, paid, pattern, copies))


def _copied(ledger: Ledger, paid: entry.Entry, pattern: str, copies: range, rows: StoreRows) -> entry.Writes | None:
    """Return a transaction of copies of a charge and its answer, each with names of its own."""
    before = rows.head()
    if before is None:
        raise TypeError("the ledger has no head")
    record, draft = paid.record, LedgerDraft(rows, before, time=before.time)
    names = [record[name] for name in ("asked", "question", "request")]
    for copy in copies:
        asked, question, request = (f"{name[:-8]}{copy:08x}" for name in names)
        body = paid.body.replace(names[0], asked).replace(names[1], question).replace(names[2], request)
        charged = draft.add(body, request, None, None).number
        body = pattern.replace(names[1], question).replace(f'"charge":{paid.number}', f'"charge":{charged}')
        draft.add(body, None, question, charged)
    cost = entry.charge_from(record).times(len(copies))
    for scope in (entry.scope_of(record["people"]), entry.scope_of(record["people"], analyst=record["analyst"])):
        old = draft.account(scope)
        new = entry.Account(old.spent + cost, old.charges + len(copies), charged)
        draft.state.put(entry.account_name(scope), entry.account_text(new))
    return draft.seal(ledger._signing_key())
