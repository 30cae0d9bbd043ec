"""`spend`, the one way to pay: reserve, run, commit. Whatever fails after the charge says one fixed sentence."""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Generic, TypeVar

import numpy as np

from tacit.engine import FAILED
from tacit.errors import NO_RANDOMNESS, DeadRequest, EngineError, NoRandomness, SelfTestFailed, TacitError
from tacit.hold import past_the_charge, wait_to_write
from tacit.ledger import Learning, Ledger, Receipt, RegisteredTable, Reservation, StoredAnswer
from tacit.plan import Fact, Plan
from tacit.privacy import ApproximateLoss, Event, Loss
from tacit.release import NoisyTable

Judge = Callable[[Sequence[Plan]], None]  # refuses plans before they are charged
log = logging.getLogger("tacit.curator")  # engine/engine.py says who hears it

Value = TypeVar("Value")

# What an answer is computed and printed with, and what some of them load only when they need it.
NEEDED = (
    *("numpy", "flint", "cryptography", "duckdb", "sqlglot", "rich", "numba", "llvmlite"),
    *("pyarrow", "pyarrow._compute", "pyarrow.dataset", "pyarrow._dataset", "pyarrow.parquet", "pyarrow._parquet"),
)
# The compiled loops are kept under the versions of these.
VERSIONED = ("numba", "llvmlite", "numpy")


@dataclass(frozen=True)
class Paid(Generic[Value]):
    """The result of a paid step: its value, the ledger's receipt, and whether it is free (paid for before)."""

    value: Value
    receipt: Receipt
    free: bool


@dataclass(frozen=True)
class Answered:
    """What a session hands back: the plan, the noisy integers, and the ledger's receipt."""

    plan: Plan
    noisy: NoisyTable
    receipt: Receipt
    free: bool
    has_changed: bool | None = None  # of a free one: whether the source's files were written since; None: not known
    learned: tuple[Fact, ...] = ()  # what was paid for in the same call; `plan.learned` has all that it rests on


@dataclass(frozen=True)
class Said(Generic[Value]):
    """What the record says of a question for people to read: its words, and its numbers as they leave.

    Both are public: the words are the asker's own, and `show` makes its text of the released value alone.
    """

    words: str
    show: Callable[[Value], str] | None = None

    def shown(self, value: Value) -> str | None:
        """Return a value's numbers as text; None where that fails, since the charge is made and the value kept."""
        try:
            return None if self.show is None else self.show(value)
        except Exception as problem:  # noqa: BLE001 - whatever it is, the answer must be stored
            log.error("answer not shown in the record: %s", type(problem).__name__)  # noqa: TRY400
            return None


_SENT: ContextVar[str | None] = ContextVar("tacit_sent", default=None)


@contextmanager
def sent_as(request: str) -> Iterator[None]:
    """Keep a request as it was sent with the charge that is made for it inside, so that it can be asked again.

    It is the asker's own text. What is learned on the way is charged without it.
    """
    before = _SENT.set(request)
    try:
        yield
    finally:
        _SENT.reset(before)


def spend(
    ledger: Ledger,
    table: RegisteredTable,
    events: Sequence[Event],
    *,
    key: str,
    run: Callable[[], Value],
    encode: Callable[[Value], str],
    decode: Callable[[str], Value],
    asked: ApproximateLoss | None = None,
    request_id: str | None = None,
    analyst: str | None = None,
    loss: Loss | None = None,
    learning: Learning | None = None,
    said: Said[Value] | None = None,
) -> Paid[Value]:
    """Return what `run` releases, charged to a table's budget: reserve, run, commit. Nothing else spends a budget.

    `events` is all that `run` draws, and `asked` the (epsilon, delta) that its noise was made for (`Ledger.reserve`).
    `key` identifies the release: everything that the value depends on except the rows and the noise. A value stored
    under the same key comes back instead, free and with the same numbers, on every thread, process and day. While
    another thread or process pays for the same key, this one waits for it.
    `run` reads secret values and returns a noisy one. It is called at most once, after the charge is durable. Any
    failure in it raises one fixed sentence, and the charge stands.
    `encode` writes the value as the text that the ledger keeps, and `decode` reads that text again.
    `loss` is the charge to print if the user interrupts. `learning` makes the value a fact of the table. `said` is
    kept with both, for people to read.
    """
    refuse_incomplete()
    is_fact = learning is not None
    with ledger.alone(table, question_key=key, analyst=analyst, is_fact=is_fact):
        try:
            reserved = ledger.reserve(  # refuses here, before a row is read
                table,
                events,
                asked=asked,
                question_key=key,
                request_id=request_id,
                analyst=analyst,
                learning=learning,
                words=None if said is None else said.words,
                sent=None if is_fact else _SENT.get(),
            )
        except DeadRequest:
            past_the_charge()  # it was charged before, and what became of it may depend on rows
            raise
        paid = _released(reserved, run, encode, decode, request_id, loss, said)
    # the fact of one who died is carried out again here, and was charged to them
    return replace(paid, free=True) if is_fact and isinstance(reserved, Reservation) and reserved.is_again else paid


def _released(
    reserved: Reservation | StoredAnswer,
    run: Callable[[], Value],
    encode: Callable[[Value], str],
    decode: Callable[[str], Value],
    request_id: str | None,
    loss: Loss | None,
    said: Said[Value] | None,
) -> Paid[Value]:
    """Read rows, add noise and store the value that a charge pays for; or return the stored one."""
    # a stored answer too leaves on the public clock: that it was stored is not to be seen
    past_the_charge(is_new=not isinstance(reserved, StoredAnswer))
    if isinstance(reserved, StoredAnswer):
        return Paid(decode(reserved.answer), reserved.receipt, free=True)
    with _explain_if_interrupted(loss, reserved, request_id):
        try:
            try:
                value = _run_after_charge(run)
            finally:
                wait_to_write()  # the entry has a time, which is public
        except TacitError:
            _note_failure(reserved)
            raise
        shown = None if said is None else said.shown(value)
        receipt = reserved.commit(encode(value), shown)  # stored before it leaves; no refund, even on failure
    return Paid(value, receipt, free=False)


@cache
def refuse_incomplete() -> None:
    """Refuse, before any charge, an installation that lacks a package or a part of one that answers are made with."""
    missing = [name for name in NEEDED if not _is_there(name)]
    missing += [f"the version of {name}" for name in VERSIONED if name not in missing and not _has_version(name)]
    if missing:
        raise SelfTestFailed(
            f"this installation lacks {', '.join(missing)}, so it cannot answer; no budget was charged and no row read"
            "\nhint: install tacit again, with all packages that it depends on"
        )


def _is_there(name: str) -> bool:
    """Return whether a module can be found; it is not loaded for that."""
    if name in sys.modules:
        return sys.modules[name] is not None
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _has_version(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def _note_failure(reserved: Reservation) -> None:
    """Note in the ledger that there will be no answer; without that note the charge is carried out again, if ever."""
    try:
        reserved.fail()
    except TacitError as problem:
        log.error("failure not noted: %s", type(problem).__name__)  # noqa: TRY400


@contextmanager
def _explain_if_interrupted(loss: Loss | None, reservation: Reservation, request_id: str | None) -> Iterator[None]:
    """Tell a user who presses Ctrl-C after the charge that it stands; values read by then stay secret."""
    try:
        yield
    except KeyboardInterrupt:
        dead = "" if request_id is None else ", under another request id"
        charged = "what it cost" if loss is None else str(loss)
        raise KeyboardInterrupt(
            f"interrupted after the charge: {charged} is spent (entry {reservation.number}) and stays spent."
            f"\nhint: ask again{dead}; it is free if the answer was stored already, and another charge if not"
        ) from None


def _run_after_charge(run: Callable[[], Value]) -> Value:
    """Return the value of `run`; any failure in it raises one of two fixed messages, never its own."""
    failure: TacitError = EngineError(FAILED)
    try:
        with np.errstate(all="ignore"):  # by np.seterr, a user's process may raise on a number that a row has
            return run()
    except NoRandomness:
        failure = NoRandomness(NO_RANDOMNESS)
    except EngineError:
        pass  # the engine has logged it
    except Exception as problem:  # noqa: BLE001 - its text, and that it failed here, may depend on rows
        log.error("release failed: %s", type(problem).__name__)  # noqa: TRY400 - a traceback may quote a sum
    raise failure  # outside the except block: a chained exception would show the original failure
