"""The story of every answer, in one function: plan, charge, read, add noise, record, answer."""

from dataclasses import dataclass

from tacit.engine.engine import Engine
from tacit.ledger.charging import Receipt, StoredAnswer
from tacit.ledger.ledger import Ledger
from tacit.ledger.naming import RegisteredTable
from tacit.noise.bits import fresh_bytes
from tacit.plan.identity import question_key
from tacit.plan.plan import Plan, Spend
from tacit.plan.planner import make_plan
from tacit.query.nodes import Query
from tacit.release.noisy import NoisyTable, release
from tacit.tables.schema import Declaration

SALT_BYTES = 16


@dataclass(frozen=True)
class Answered:
    """What a session hands back: the plan, the noisy integers, and the ledger's receipt."""

    plan: Plan
    noisy: NoisyTable
    receipt: Receipt
    free: bool


@dataclass(frozen=True)
class Session:
    """A protected table with its engine and its ledger: the only way from a question to an answer."""

    declaration: Declaration
    registered: RegisteredTable
    engine: Engine
    ledger: Ledger
    # what tells this source from another of its name: a frame has no identity, so only this handle knows it again
    source_mark: str = ""

    def answer(self, query: Query, *, spend: Spend, request_id: str | None, analyst: str | None) -> Answered:
        """Return a private answer; nothing is read before the charge is durable, and no charge is ever given back."""
        plan = make_plan(query, self.declaration, spend)  # public facts only
        reservation = self.ledger.reserve(  # refuses here, before rows are read
            self.registered, plan.events, question_key=self._key(plan), request_id=request_id, analyst=analyst
        )
        if isinstance(reservation, StoredAnswer):
            return Answered(plan, NoisyTable.from_json(reservation.answer), reservation.receipt, free=True)
        exact = self.engine.aggregate(plan, fresh_bytes(SALT_BYTES).hex())  # bounded, still secret
        noisy = release(plan, exact)  # noise enters here and nowhere else
        receipt = reservation.commit(noisy.to_json())  # stores the answer; no refund, even on failure
        return Answered(plan, noisy, receipt, free=False)

    def _key(self, plan: Plan) -> str:
        """Return what an answer is kept under: the plan, all that is declared (types too), and the source."""
        return f"{question_key(plan)}:{self.registered.declaration_hash}:{self.source_mark}"
