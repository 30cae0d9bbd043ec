"""`spend`, the one way to pay: reserve, run, commit. Whatever fails after the charge says one fixed sentence."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from tacit.engine import FAILED
from tacit.errors import NO_RANDOMNESS, EngineError, NoRandomness, TacitError
from tacit.ledger import Learning, Ledger, Receipt, RegisteredTable, Reservation, StoredAnswer
from tacit.privacy import ApproximateLoss, Event, Loss

log = logging.getLogger("tacit.curator")  # engine.engine says who hears it

Value = TypeVar("Value")


@dataclass(frozen=True)
class Paid(Generic[Value]):
    """The result of a paid step: its value, the ledger's receipt, and whether it is free (paid for before)."""

    value: Value
    receipt: Receipt
    free: bool


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
) -> Paid[Value]:
    """Return what `run` releases, charged to a table's budget: reserve, run, commit. Nothing else spends a budget.

    `events` is all that `run` draws, and `asked` the (epsilon, delta) that its noise was made for (`Ledger.reserve`).
    `key` identifies the release: everything that the value depends on except the rows and the noise. A value stored
    under the same key comes back instead, free and with the same numbers, on every thread, process and day.
    `run` reads secret values and returns a noisy one. It is called at most once, after the charge is durable. Any
    failure in it raises one fixed sentence, and the charge stands.
    `encode` writes the value as the text that the ledger keeps, and `decode` reads that text again.
    `loss` is the charge to print if the user interrupts. `learning` makes the value a fact of the table.
    """
    reserved = ledger.reserve(  # refuses here, before a row is read
        table, events, asked=asked, question_key=key, request_id=request_id, analyst=analyst, learning=learning
    )
    if isinstance(reserved, StoredAnswer):
        return Paid(decode(reserved.answer), reserved.receipt, free=True)
    with _explain_if_interrupted(loss, reserved, request_id):
        value = _run_after_charge(run)
        receipt = reserved.commit(encode(value))  # stored before it leaves; no refund, even on failure
    return Paid(value, receipt, free=False)


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
        return run()
    except NoRandomness:
        failure = NoRandomness(NO_RANDOMNESS)
    except EngineError:
        pass  # the engine has logged it
    except Exception as problem:  # noqa: BLE001 - its text, and that it failed here, may depend on rows
        log.error("release failed: %s", type(problem).__name__)  # noqa: TRY400 - a traceback may quote a sum
    raise failure  # outside the except block: a chained exception would show the original failure
