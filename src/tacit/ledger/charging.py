"""Charging: the two steps every answer takes, reserve before a row is read and commit before it leaves.

A reserve charges everything or refuses; nothing gives a charge back, whatever happens after it. A request id that
was charged and not answered is dead, since answering it again would be a second noise for one charge.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.accounting.filter import Charge, charge_of
from tacit.errors import BudgetExceeded, DeadRequest, InvalidParameter, LedgerError
from tacit.ledger.budget import EACH
from tacit.ledger.chain import digest
from tacit.ledger.draft import Draft
from tacit.ledger.entry import Entry, Record, account_name, charge_record, scope_of
from tacit.ledger.naming import RegisteredTable
from tacit.ledger.rows import Likely, looks_for
from tacit.ledger.rulebook import TABLE, budgets_of
from tacit.ledger.standing import first_without_room
from tacit.privacy.event import KINDS, Event, event_to_dict
from tacit.privacy.loss import ApproximateLoss

TEXT_MAX = 1000


@dataclass(frozen=True)
class Receipt:
    """Proof that an answer is in the ledger: its entry's number and hash, and the charge that paid for it."""

    ledger: str
    number: int
    hash: str
    charge: int
    time: str
    durable: bool


@dataclass(frozen=True)
class StoredAnswer:
    """An answer the ledger already holds, free, with the same numbers, and its receipt."""

    answer: str
    receipt: Receipt


@dataclass(frozen=True)
class Keys:
    """How a question is found again: as asked of a table, as asked of this version of it, and by one request's id.

    `own` is the question of one analyst alone, for whom what others asked counts as not asked.
    """

    asked: str
    question: str
    own: str
    request: str | None


@dataclass(frozen=True)
class Request:
    """What an analyst asks to be charged for, checked and ready, before the ledger is looked at."""

    table: RegisteredTable
    analyst: str
    charge: Charge
    record: Record
    keys: "Keys"

    def likely(self) -> Likely:
        """Return what charging will probably read."""
        people, analyst = self.table.people, self.analyst
        names = [account_name(scope_of(people)), account_name(scope_of(people, analyst=analyst)), TABLE + self.table.id]
        names += [budgets_of(people, who) for who in (None, analyst, EACH)]
        absent = looks_for(request=self.keys.request, questions=(self.keys.question, self.keys.own))
        return Likely(absent, tuple(names))


def new_request(
    table: RegisteredTable,
    events: Sequence[Event],
    *,
    asked: ApproximateLoss | None,
    question_key: str,
    request_id: str | None,
    analyst: str | None,
    ledger: str,
) -> Request:
    """Return the request, its cost computed; what is no event or no text is refused."""
    charge = cost_of(events, asked)
    keys = keys_of(table, question_key=question_key, request_id=request_id, analyst=analyst, ledger=ledger)
    record = {
        "table": table.id,
        "declared": table.entry,
        "people": table.people,
        "analyst": analyst,
        "events": [event_to_dict(event) for event in events],
        **charge_record(charge),
        "asked": keys.asked,
        "request": keys.request,
    }
    return Request(table, analyst or "", charge, record, keys)


def cost_of(events: Sequence[Event], asked: ApproximateLoss | None) -> Charge:
    """Return what a question is charged; what is no event is refused."""
    for event in events:
        if type(event).__name__ not in KINDS:
            raise InvalidParameter(f"events must be privacy events, not {type(event).__name__}")
    if not events:
        raise InvalidParameter("a question without events would be answered without a charge\nhint: give its events")
    return charge_of(events, asked=asked)


def keys_of(
    table: RegisteredTable, *, question_key: str, request_id: str | None, analyst: str | None, ledger: str
) -> Keys:
    """Return the names by which a question and one analyst's request are found again."""
    for name, text in (("question_key", question_key), ("request_id", request_id), ("analyst", analyst)):
        if text is None and name != "question_key":
            continue
        if not isinstance(text, str) or not 0 < len(text) <= TEXT_MAX:
            raise InvalidParameter(f"{name} must be a text of 1 to {TEXT_MAX} characters")
    return Keys(
        asked=digest("asked", table.id, question_key),
        question=digest("question", table.id, table.version, table.source, question_key),
        own=digest("question", table.id, table.version, table.source, question_key, analyst),
        request=None if request_id is None else digest("request", ledger, analyst, request_id),
    )


def question_of(view: Draft, keys: Keys, people: str, analyst: str) -> str:
    """Return what an analyst's question is kept under: with everyone's, or apart where they have a budget.

    An answer that somebody else paid for is as much learned as one of their own, and would not count against it.
    """
    limited = any(budget.analyst is not None for budget in view.book.applying(people, analyst))
    return keys.own if limited else keys.question


def find_stored(view: Draft, keys: Keys, *, question: str, ledger: str, durable: bool) -> StoredAnswer | None:
    """Return the answer already given to this request, or to this question; a dead request is refused."""
    charge = None if keys.request is None else view.charge_for(keys.request)
    if charge is None:
        answer = view.answer_to(question)
    else:
        if charge.record["asked"] != keys.asked:
            raise InvalidParameter("request_id was used for another question\nhint: give each question its own id")
        answer = view.answer_paid_by(charge.number)
        if answer is None:
            raise DeadRequest(
                f"this request id was charged (entry {charge.number}) and has no answer: its process stopped, or is "
                "still at it. Answering it again would be a second noise for one charge"
                "\nhint: ask again under a new request id, which is a new charge"
            )
    return None if answer is None else _stored(answer, ledger=ledger, durable=durable)


def reserve(draft: Draft, request: Request, *, durable: bool) -> StoredAnswer | Entry:
    """Charge a request and return the entry, or return the answer it already has; no room is a refusal entry."""
    table = request.table
    if draft.book.table(table.id) is None:
        raise LedgerError(f"this ledger does not know the table '{table.name}'\nhint: register it in this ledger")
    ledger = draft.head.ledger
    question = question_of(draft, request.keys, table.people, request.analyst)
    stored = find_stored(draft, request.keys, question=question, ledger=ledger, durable=durable)
    if stored is not None:
        return stored
    record = {**request.record, "question": question}
    short = first_without_room(draft, table.people, analyst=request.analyst, charge=request.charge)
    if short is not None:
        why = short.words(draft)
        draft.append({"kind": "refusal", **record, "budget": short.scope})
        raise _no_room(request, why)
    entry = draft.append({"kind": "charge", **record}, request=request.keys.request)
    budgets = draft.book.applying(table.people, request.analyst)
    scopes = [budget.scope(analyst=request.analyst, time=draft.time) for budget in budgets]
    for scope in {scope_of(table.people), scope_of(table.people, analyst=request.analyst), *scopes}:
        draft.charge(scope, request.charge, number=entry.number)
    return entry


def commit(draft: Draft, charge: Entry, answer: str, *, durable: bool) -> Receipt:
    """Store the answer a charge paid for, once, and return the receipt."""
    if not draft.holds(charge):
        raise LedgerError(
            f"the charge (entry {charge.number}) is not in this ledger any more; nothing was answered"
            "\nhint: tacit ledger verify"
        )
    if draft.answer_paid_by(charge.number) is not None:
        raise LedgerError(f"the charge (entry {charge.number}) has already paid for an answer\nhint: reserve again")
    record = charge.record
    question = record["question"]
    entry = draft.append(
        {"kind": "answer", "charge": charge.number, "table": record["table"], "question": question, "answer": answer},
        question=question,
        answers=charge.number,
    )
    return Receipt(draft.head.ledger, entry.number, entry.hash, charge.number, entry.record["time"], durable)


def _stored(answer: Entry, *, ledger: str, durable: bool) -> StoredAnswer:
    record = answer.record
    receipt = Receipt(ledger, answer.number, answer.hash, record["charge"], record["time"], durable)
    return StoredAnswer(record["answer"], receipt)


def _no_room(request: Request, why: str) -> BudgetExceeded:
    name = request.table.name
    less = (
        "" if why.endswith("left: nothing") else "ask for what is left or less ('tacit plan' says whether it fits), or "
    )
    return BudgetExceeded(
        f"the budget of '{name}', {why}; nothing was charged or read"
        f"\nhint: {less}have the curator grant more: tacit budget grant {name} ..."
    )
