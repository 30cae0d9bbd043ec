"""The story of every answer: plan, charge, read, add noise, record, answer; and `spend`, the one way to pay for it.

Whatever is paid for out of a budget goes through `spend`: answers, and estimates from reports that people have sent.
"""

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tacit.engine import FAILED, Engine
from tacit.errors import NO_RANDOMNESS, DeadRequest, EngineError, InvalidParameter, NoRandomness, TacitError
from tacit.ledger import Fit, Ledger, Receipt, RegisteredTable, Reservation, StoredAnswer
from tacit.local import Collector, estimate_key, guarantee_of
from tacit.noise import fresh_bytes
from tacit.plan import Plan, Spend, plan_of_other_noise, plan_with_room, question_key
from tacit.privacy import ApproximateLoss, Event, Loss, Number
from tacit.query import Query
from tacit.release import NoisyTable, joined, release, stamp_in
from tacit.tables import Declaration

log = logging.getLogger("tacit.curator")  # engine.engine says who hears it

SALT_BYTES = 16

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
) -> Paid[Value]:
    """Return what `run` releases, charged to a table's budget: reserve, run, commit. Nothing else spends a budget.

    `events` is all that `run` draws, and `asked` the (epsilon, delta) that its noise was made for (`Ledger.reserve`).
    `key` identifies the release: everything that the value depends on except the rows and the noise. A value stored
    under the same key comes back instead, free and with the same numbers, on every thread, process and day.
    `run` reads secret values and returns a noisy one. It is called at most once, after the charge is durable. Any
    failure in it raises one fixed sentence, and the charge stands.
    `encode` writes the value as the text that the ledger keeps, and `decode` reads that text again.
    `loss` is the charge to print if the user interrupts.
    """
    reserved = ledger.reserve(  # refuses here, before a row is read
        table, events, asked=asked, question_key=key, request_id=request_id, analyst=analyst
    )
    if isinstance(reserved, StoredAnswer):
        return Paid(decode(reserved.answer), reserved.receipt, free=True)
    with _explain_if_interrupted(loss, reserved, request_id):
        value = _run_after_charge(run)
        receipt = reserved.commit(encode(value))  # stored before it leaves; no refund, even on failure
    return Paid(value, receipt, free=False)


def release_estimate(
    collector: Collector,
    ledger: Ledger,
    table: RegisteredTable,
    *,
    delta: Number | None = None,
    unlinkable: bool = False,
    request_id: str | None = None,
    analyst: str | None = None,
) -> dict[str, Any]:
    """Charge a table's budget for an estimate from reports, store it, and return it as plain values.

    Privacy: charged the local epsilon of one person's reports, times their cap; with `delta` and `unlinkable` reports,
    the smaller loss that shuffling gives. It adds to whatever else the ledger holds about the same people.
    """
    guarantee = guarantee_of(collector, delta=delta, unlinkable=unlinkable)
    paid: Paid[dict[str, Any]] = spend(
        ledger,
        table,
        guarantee.events,
        key=estimate_key(collector, guarantee),
        run=lambda: collector.estimate().to_dict(),
        encode=json.dumps,
        decode=json.loads,
        request_id=request_id,
        analyst=analyst,
        loss=guarantee.loss,
    )
    return paid.value


@dataclass(frozen=True)
class Answered:
    """What a session hands back: the plan, the noisy integers, and the ledger's receipt."""

    plan: Plan
    noisy: NoisyTable
    receipt: Receipt
    free: bool
    has_changed: bool | None = None  # of a free one: whether the source's files were written since; None: not known


@dataclass(frozen=True)
class Session:
    """A protected table with its engine and its ledger: the only way from a question about rows to an answer."""

    declaration: Declaration
    registered: RegisteredTable
    engine: Engine
    ledger: Ledger
    # Frames have no stable identity: a random mark keeps answers about one frame from being reused for another.
    source_mark: str = ""
    notices: tuple[str, ...] = ()  # printed with every answer about this table

    def answer(self, query: Query, *, spend: Spend, request_id: str | None, analyst: str | None) -> Answered:
        """Return a private answer; nothing is read before the charge is durable, and no charge is ever given back."""
        plan = self._plan_to_answer(query, spend, request_id, analyst)  # public facts, and what is left
        stamp = self._stamp()
        paid = self.spend(
            plan.events,
            key=question_key(plan),
            run=lambda: (self._release(plan), stamp),
            encode=lambda released: released[0].to_json(stamp=released[1]),
            decode=lambda stored: (NoisyTable.from_json(stored), stamp_in(stored)),
            asked=plan.asked,
            request_id=request_id,
            analyst=analyst,
            loss=plan.loss,
        )
        noisy, before = paid.value
        has_changed = None if not paid.free or before is None or stamp is None else before != stamp
        return Answered(plan, noisy, paid.receipt, paid.free, has_changed)

    def spend(
        self,
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
    ) -> Paid[Value]:
        """Return what `run` releases of this table, charged to its budget: the function `spend` says what each is.

        `key` need not name the table, what is declared of it or its source: they are added here.
        """
        self.engine.refuse_changes()  # a file that is gone is not charged for
        return spend(
            self.ledger,
            self.registered,
            events,
            key=self._key(key),
            run=run,
            encode=encode,
            decode=decode,
            asked=asked,
            request_id=request_id,
            analyst=analyst,
            loss=loss,
        )

    def plan(self, query: Query, *, spend: Spend, analyst: str | None) -> Plan:
        """Return the plan of a question: where the noise is left open, that which the budgets have room for.

        It does not tell whether the question was asked before, which may be somebody else's to know.
        """
        return plan_with_room(query, self.declaration, spend, lambda plan: self._has_room(plan, analyst))

    def fit(self, plan: Plan, analyst: str | None) -> Fit:
        """Return whether the budgets have room for a plan now, and what it would leave."""
        return self.ledger.fit(self.registered, plan.events, asked=plan.asked, analyst=analyst)

    def _plan_to_answer(self, query: Query, spend: Spend, request_id: str | None, analyst: str | None) -> Plan:
        """Return the plan to answer by: a question, or a request, that has its answer keeps the noise of that."""

        def admits(plan: Plan) -> bool:
            return self._has_room(plan, analyst) or self._is_answered(plan, None, analyst)

        plan = plan_with_room(query, self.declaration, spend, admits)
        if request_id is None or spend.noise is not None:
            return plan
        try:
            self._is_answered(plan, request_id, analyst)
        except InvalidParameter:  # it was charged for another question: this one with the other noise, or no one's
            return plan_of_other_noise(query, self.declaration, plan) or plan
        except DeadRequest:  # refused when it is charged
            return plan
        return plan

    def _has_room(self, plan: Plan, analyst: str | None) -> bool:
        return self.ledger.admits(self.registered, plan.events, asked=plan.asked, analyst=analyst)

    def _is_answered(self, plan: Plan, request_id: str | None, analyst: str | None) -> bool:
        key = self._key(question_key(plan))
        stored = self.ledger.recall(self.registered, question_key=key, request_id=request_id, analyst=analyst)
        return stored is not None

    def _stamp(self) -> str | None:
        """Return what tells, later, whether the source's files were written since; nothing can be read off it."""
        stamp = self.engine.stamp()
        return None if stamp is None else hashlib.sha256(f"{self.ledger.id} {stamp}".encode()).hexdigest()

    def _release(self, plan: Plan) -> NoisyTable:
        with closing(self.engine.parts(plan, fresh_bytes(SALT_BYTES).hex())) as exact:  # bounded, still secret
            noisy = joined([release(plan, part) for part in exact])  # noise enters here and nowhere else
        return noisy.with_texts(self.engine.texts(plan, noisy.keys))

    def _key(self, asked: str) -> str:
        """Return the key of an answer: the question, the whole declaration (types too), and the source."""
        return f"{asked}:{self.registered.declaration_hash}:{self.source_mark}"


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
