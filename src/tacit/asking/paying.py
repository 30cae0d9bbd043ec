"""`spend`, the one way to pay: reserve, run, keep. Any failure after the charge raises one fixed sentence."""

import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Protocol

import numpy as np

from tacit.engine import FAILED
from tacit.errors import NO_RANDOMNESS, DeadRequest, EngineError, NoRandomness, SelfTestFailed, TacitError
from tacit.hold import past_the_charge, wait_to_write
from tacit.ledger import Asker, Learning, Ledger, Receipt, RegisteredTable, Reservation, StoredAnswer
from tacit.privacy import ApproximateLoss, Event, Loss

log: logging.Logger = logging.getLogger("tacit.curator")  # engine/engine.py says who hears it

# What an answer is computed and printed with, and what some of them load only when they need it.
NEEDED = (
    *("numpy", "flint", "cryptography", "duckdb", "sqlglot", "rich"),
    *("pyarrow", "pyarrow._compute", "pyarrow.dataset", "pyarrow._dataset", "pyarrow.parquet", "pyarrow._parquet"),
)


@dataclass(frozen=True)
class Payment:
    """A release to pay for out of a table's budget.

    `events` is all that the release draws, and `asked` the (epsilon, delta) that its noise was made for
    (`Ledger.reserve`). `key` identifies the release: everything that its value depends on except the rows and the
    noise. `loss` is the charge to print if the user interrupts. `learning` makes the value a fact of the table. `words`
    is the question, kept for people to read. `asker` has the analyst's limits, if they were read already.
    """

    events: Sequence[Event]
    key: str
    asked: ApproximateLoss | None = None
    loss: Loss | None = None
    request_id: str | None = None
    analyst: str | None = None
    asker: Asker | None = None
    learning: Learning | None = None
    words: str | None = None


class Release(Protocol):
    """What is read and drawn after a charge."""

    is_released: bool  # whether a noisy value is drawn: from then on a refusal by the ledger is public


class OpenCharge:
    """A payment that was charged: its value is released and kept once. One that was paid for before is `stored`."""

    def __init__(self, reserved: Reservation | StoredAnswer) -> None:
        self._reserved = reserved
        self.stored: str | None = reserved.answer if isinstance(reserved, StoredAnswer) else None
        # the fact of someone who died is carried out again here, and was charged to them
        self.free: bool = isinstance(reserved, StoredAnswer) or (
            reserved.is_again and "learns" in reserved.charge.record
        )
        self._receipt = reserved.receipt if isinstance(reserved, StoredAnswer) else None
        self.is_released: bool = False

    @property
    def receipt(self) -> Receipt:
        """Where the value is kept in the ledger."""
        if self._receipt is None:
            raise ValueError("a receipt exists only after the value is kept")
        return self._receipt

    def keep(self, text: str, show: Callable[[], str] | None = None) -> None:
        """Write a released value into the ledger before it leaves: its text, and the text for people; both only from
        that value."""
        self.is_released = True
        wait_to_write()  # the entry has a time, which is public
        if isinstance(self._reserved, StoredAnswer):
            raise TypeError("a value that is stored is not kept again")
        self._receipt = self._reserved.commit(text, _text_shown(show))


def _text_shown(show: Callable[[], str] | None) -> str | None:
    """Return the text for people; None if making it fails, since the charge is made and the value is kept."""
    try:
        return None if show is None else show()
    except Exception as problem:  # noqa: BLE001 - whatever it is, the answer must be stored
        log.error("answer not shown in the record: %s", type(problem).__name__)  # noqa: TRY400
        return None


_SENT: ContextVar[str | None] = ContextVar("tacit_sent", default=None)


@contextmanager
def sent_as(request: str) -> Iterator[None]:
    """Keep the asker's own text with the charge that is made for it inside, so that the request can be asked again."""
    before = _SENT.set(request)
    try:
        yield
    finally:
        _SENT.reset(before)


@contextmanager
def spend(ledger: Ledger, table: RegisteredTable, payment: Payment) -> Iterator[OpenCharge]:
    """Charge a payment to a table's budget, and yield the charge. Nothing else spends a budget.

    Unless the charge is `stored`, the block reads secret values, releases a noisy one, and keeps its text. The charge
    is durable by then, and stands whatever happens: a failure in the block raises one fixed sentence. A stored value
    is free, with the same numbers, on every thread, process and day. While another thread or process pays for the same
    key, this one waits.
    """
    refuse_incomplete()
    is_fact, analyst = payment.learning is not None, payment.analyst
    with ledger.alone(table, question_key=payment.key, analyst=analyst, is_fact=is_fact, asker=payment.asker):
        try:
            reserved = ledger.reserve(  # refuses here, before a row is read
                table,
                payment.events,
                asked=payment.asked,
                question_key=payment.key,
                request_id=payment.request_id,
                analyst=analyst,
                learning=payment.learning,
                words=payment.words,
                sent=None if is_fact else _SENT.get(),
            )
        except DeadRequest:
            past_the_charge()  # it was charged before, and its fate may depend on rows
            raise
        # a stored answer too leaves on the public clock: that it was stored is not to be seen
        past_the_charge(is_new=not isinstance(reserved, StoredAnswer))
        charge = OpenCharge(reserved)
        if isinstance(reserved, StoredAnswer):
            yield charge
            return
        with _explain_if_interrupted(payment, reserved), _noting_failure(reserved), failing_alike(charge):
            yield charge


@contextmanager
def failing_alike(charge: "Release") -> Iterator[None]:
    """Raise one of two fixed messages for any failure before the value is released, never the failure's own."""
    failure: TacitError = EngineError(FAILED)
    try:
        with np.errstate(all="ignore"):  # by np.seterr, a user's process may raise on a number that a row has
            yield
    except BaseException as problem:
        if charge.is_released:  # a refusal by the ledger is public
            raise
        wait_to_write()
        if not isinstance(problem, Exception):
            raise
        if isinstance(problem, NoRandomness):
            failure = NoRandomness(NO_RANDOMNESS)
        elif not isinstance(problem, EngineError):  # the engine has logged its own
            # its text, and that it failed here, may depend on rows; a traceback may quote a sum
            log.error("release failed: %s", type(problem).__name__)  # noqa: TRY400
    else:
        if charge.is_released:
            return
        wait_to_write()
        log.error("release not kept")
    try:
        raise failure
    finally:
        failure.__context__ = None  # a chained exception would show the original failure


@cache
def refuse_incomplete() -> None:
    """Refuse, before any charge, an installation that lacks a package or a part of one that answers are made with."""
    missing = [name for name in NEEDED if not _is_there(name)]
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


@contextmanager
def _noting_failure(reserved: Reservation) -> Iterator[None]:
    """Note in the ledger that there will be no answer; without that note the charge is carried out again, if ever."""
    try:
        yield
    except (EngineError, NoRandomness):
        try:
            reserved.fail()
        except TacitError as problem:
            log.error("failure not noted: %s", type(problem).__name__)  # noqa: TRY400
        raise


@contextmanager
def _explain_if_interrupted(payment: Payment, reserved: Reservation) -> Iterator[None]:
    """Explain to a user who presses Ctrl-C after the charge that it stands; values read by then stay secret."""
    try:
        yield
    except KeyboardInterrupt:
        dead = "" if payment.request_id is None else ", under another request id"
        charged = "what it cost" if payment.loss is None else str(payment.loss)
        raise KeyboardInterrupt(
            f"interrupted after the charge: {charged} is spent (entry {reserved.number}) and stays spent."
            f"\nhint: ask again{dead}; it is free if the answer was stored already, and another charge if not"
        ) from None
