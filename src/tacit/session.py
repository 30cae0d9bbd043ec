"""The story of every answer, in one function: plan, charge, read, add noise, record, answer."""

import hashlib
import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from tacit.engine import FAILED, Engine
from tacit.errors import DeadRequest, EngineError, InvalidParameter, NoRandomness
from tacit.exact import ExactTable
from tacit.ledger import Fit, Ledger, Receipt, RegisteredTable, Reservation, StoredAnswer
from tacit.noise import fresh_bytes
from tacit.plan import Plan, Spend, plan_of_other_noise, plan_with_room, question_key
from tacit.query import Query
from tacit.release import NoisyTable, joined, release, stamp_in
from tacit.tables import Declaration

log = logging.getLogger("tacit.curator")  # engine.engine says who hears it

SALT_BYTES = 16


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
    """A protected table with its engine and its ledger: the only way from a question to an answer."""

    declaration: Declaration
    registered: RegisteredTable
    engine: Engine
    ledger: Ledger
    # what tells this source from another of its name: a frame has no identity, so only this handle knows it again
    source_mark: str = ""
    notices: tuple[str, ...] = ()  # what every answer says about this table and its ledger

    def answer(self, query: Query, *, spend: Spend, request_id: str | None, analyst: str | None) -> Answered:
        """Return a private answer; nothing is read before the charge is durable, and no charge is ever given back."""
        plan = self._plan_to_answer(query, spend, request_id, analyst)  # public facts, and what is left
        self.engine.refuse_changes()  # a file that is gone is not charged for
        stamp = self._stamp()
        reservation = self.ledger.reserve(  # refuses here, before rows are read
            self.registered,
            plan.events,
            asked=plan.asked,
            question_key=self._key(plan),
            request_id=request_id,
            analyst=analyst,
        )
        if isinstance(reservation, StoredAnswer):
            return _stored(plan, reservation, stamp)
        with _said_if_interrupted(plan, reservation, request_id):
            with closing(self.engine.parts(plan, fresh_bytes(SALT_BYTES).hex())) as exact:  # bounded, still secret
                noisy = joined([_released(plan, part) for part in exact])  # noise enters here and nowhere else
            noisy = noisy.with_texts(self.engine.texts(plan, noisy.keys))
            receipt = reservation.commit(noisy.to_json(stamp=stamp))  # stores the answer; no refund, even on failure
        return Answered(plan, noisy, receipt, free=False)

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
        key = self._key(plan)
        stored = self.ledger.recall(self.registered, question_key=key, request_id=request_id, analyst=analyst)
        return stored is not None

    def _stamp(self) -> str | None:
        """Return what tells, later, whether the source's files were written since; nothing can be read off it."""
        stamp = self.engine.stamp()
        return None if stamp is None else hashlib.sha256(f"{self.ledger.id} {stamp}".encode()).hexdigest()

    def _key(self, plan: Plan) -> str:
        """Return what an answer is kept under: the plan, all that is declared (types too), and the source."""
        return f"{question_key(plan)}:{self.registered.declaration_hash}:{self.source_mark}"


def _stored(plan: Plan, found: StoredAnswer, stamp: str | None) -> Answered:
    before = stamp_in(found.answer)
    has_changed = None if before is None or stamp is None else before != stamp
    return Answered(plan, NoisyTable.from_json(found.answer), found.receipt, free=True, has_changed=has_changed)


@contextmanager
def _said_if_interrupted(plan: Plan, reservation: Reservation, request_id: str | None) -> Iterator[None]:
    """Say to whoever presses Ctrl-C after the charge that it stands; what was read by then stays secret."""
    try:
        yield
    except KeyboardInterrupt:
        dead = "" if request_id is None else ", under another request id"
        raise KeyboardInterrupt(
            f"interrupted after the charge: {plan.loss} is spent (entry {reservation.number}) and stays spent."
            f"\nhint: ask again{dead}; it is free if the answer was stored already, and another charge if not"
        ) from None


def _released(plan: Plan, exact: ExactTable) -> NoisyTable:
    """Return the noisy integers; what fails on exact ones says what a failed engine says, and nothing else."""
    try:
        return release(plan, exact)
    except NoRandomness:
        raise
    except Exception as problem:  # noqa: BLE001 - its text, and that it failed here, may depend on rows
        log.error("release failed: %s", type(problem).__name__)  # noqa: TRY400 - a traceback may quote a sum
    raise EngineError(FAILED)  # out here, where the failure is not its context
