"""Charging: the two steps of every answer, reserve before a row is read and commit before the answer leaves.

A reserve charges everything or refuses. A charge is never given back, whatever happens after it. A request id that was
charged and not answered is dead, unless its charge was made in hand (`locks.py`) by a process that has died: then the
same charge is carried out again, a few times at most. An answer is taken only from the newest attempt, and untaken
answers never leave: one noisy value for one charge (docs/proofs/attempts.md).

A fact is an answer that later versions of its table start from. Facts are charged like other answers, and an entry
after the answer names the fact, by its table. The charge of a fact that is learned in hand has a name that does not
depend on the analyst: if the process dies, the next one that needs the fact carries the charge out.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tacit.accounting import Charge
from tacit.errors import NOTHING_CHARGED, BeingAnswered, BudgetExceeded, DeadRequest, InvalidParameter, LedgerError
from tacit.ledger.budget import BLOCK, EACH, CallInProgress, aside_name, block_of, is_some, set_aside
from tacit.ledger.chain import digest
from tacit.ledger.draft import (
    PEOPLE,
    TABLE,
    LedgerDraft,
    attempt_name,
    budgets_of,
    fact_name,
    facts_of,
    person_name,
    written,
)
from tacit.ledger.entry import CHARGE_NAMES, Entry, Record, account_name, amounts_record, charge_from, scope_of
from tacit.ledger.locks import ATTEMPTS
from tacit.ledger.registry import RegisteredTable
from tacit.ledger.roles import find_person, not_allowed, why_not
from tacit.ledger.spelling import name_key
from tacit.ledger.status import cost_of, first_shortfall
from tacit.ledger.store import BY_CHARGE, Likely, looks_for
from tacit.privacy import ApproximateLoss, Event, SubsampledGaussian, event_to_dict

TEXT_MAX = 1000
WORDS_MAX = 10_000
SENT_MAX = 20_000


# ---- how a question, a fact and a request are found again ------------------------------------------------------------


@dataclass(frozen=True)
class Keys:
    """The keys by which a question is found again: as asked of a table, as asked of this version of it, and by one
    request's id.

    `own` identifies the question of one analyst: answers that others asked for do not count for it. Facts are found at
    every version of their table, and also after its rows have moved. An analyst goes by the name's key.
    """

    table: str
    asked: str
    question: str
    own: str
    request: str | None
    analyst: str | None
    is_fact: bool = False


def keys_of(
    table: RegisteredTable,
    *,
    question_key: str,
    request_id: str | None,
    analyst: str | None,
    ledger: str,
    is_fact: bool = False,
) -> Keys:
    """Return the names by which a question and one analyst's request are found again."""
    for name, text in (("question_key", question_key), ("request_id", request_id), ("analyst", analyst)):
        if text is None and name != "question_key":
            continue
        if not isinstance(text, str) or not 0 < len(text) <= TEXT_MAX:
            raise InvalidParameter(f"{name} must be a text of 1 to {TEXT_MAX} characters")
    kind = ("fact", table.id) if is_fact else ("question", table.id, table.version, table.source)
    about, who = (*kind, question_key), None if analyst is None else name_key(analyst)
    return Keys(
        table=table.id,
        asked=digest("asked", table.id, question_key),
        question=digest(*about),
        own=digest(*about, who),
        request=None if request_id is None else request_name(ledger, request_id=request_id, analyst=analyst),
        analyst=who,
        is_fact=is_fact,
    )


def request_name(ledger: str, *, request_id: str, analyst: str | None) -> str:
    """Return the name under which one analyst's request is found again."""
    return digest("request", ledger, None if analyst is None else name_key(analyst), request_id)


# ---- charges and answers ---------------------------------------------------------------------------------------------


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
class Learning:
    """The mark that makes an answer a fact: its words, and whether it replaces a known one."""

    words: str
    again: bool = False


@dataclass(frozen=True)
class StoredFact:
    """A learned fact of a table: in words, with the answer that holds it, its receipt, and its cost."""

    words: str
    stored: StoredAnswer
    charge: Charge
    version: int


@dataclass(frozen=True)
class Attempt:
    """The charge that pays for an answer, and how often it was set about, this time included."""

    charge: Entry
    number: int = 1
    rest: Charge | None = None  # the rest of its call's charges, if it is a part of one

    def likely(self) -> Likely:
        """Return the rows that storing the answer will probably read."""
        names = (attempt_name(self.charge.number),) if "attempts" in self.charge.record else ()
        return Likely(absent=((BY_CHARGE, (self.charge.number,)),), names=names)


@dataclass(frozen=True)
class ChargeRequest:
    """A checked request to be charged, ready before the ledger is read."""

    table: RegisteredTable
    analyst: str
    charge: Charge
    record: Record
    keys: Keys
    events: tuple[Event, ...]
    learning: Learning | None = None
    call: CallInProgress | None = None
    is_alone: bool = False  # whether no other process can be at work on the same question or fact

    def likely(self) -> Likely:
        """Return the rows that charging will probably read, so that a store can fetch them at once."""
        cohort, analyst = self.table.cohort, self.analyst
        names = [account_name(scope_of(cohort)), account_name(scope_of(cohort, analyst=analyst)), TABLE + self.table.id]
        names += [budgets_of(cohort, who) for who in (None, analyst, EACH)]
        names += [PEOPLE, person_name(self.keys.analyst), aside_name(cohort)]
        questions = (self.keys.question, self.keys.own)
        if self.keys.is_fact:
            names += [fact_name(self.table.id, question) for question in questions]
        absent = looks_for(request=self.keys.request, questions=() if self.keys.is_fact else questions)
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
    learning: Learning | None = None,
    beside: Sequence[Event] = (),
    words: str | None = None,
    sent: str | None = None,
    is_in_hand: bool = False,
    is_alone: bool = False,
    call: CallInProgress | None = None,
) -> ChargeRequest:
    """Return the request, with its cost; anything that is not an event, or not a text, is refused.

    `beside` is pure, and charged by itself. The charge of one that is in hand has the number of times it may be carried
    out. A fact learned under the lock of all that need it has a name of its own, and notes the request.
    """
    charge = cost_of(events, asked, beside)
    learns_alone = is_alone and learning is not None and not learning.again
    keys = keys_of(
        table,
        question_key=question_key,
        request_id=request_id,
        analyst=analyst,
        ledger=ledger,
        is_fact=learning is not None,
    )
    if learns_alone:
        keys, learned_for, request_id = replace(keys, request=None), keys.request, None
    else:
        learned_for = None
    record = {
        "table": table.id,
        "declared": table.entry,
        "people": table.cohort,
        "analyst": analyst,
        "events": [event_to_dict(event) for event in (*events, *beside)],
        **amounts_record(charge),
        "asked": keys.asked,
        "request": keys.request,
        **({"beside": list(table.beside)} if table.beside else {}),
        **({} if table.blocks is None else {"blocks": list(table.blocks)}),
        **({} if table.stamp is None else {"stamp": table.stamp}),
        **({} if words is None else {"about": words[:WORDS_MAX]}),
        **({"attempts": ATTEMPTS} if learns_alone or (is_in_hand and request_id is not None) else {}),
        **({} if learned_for is None else {"for": learned_for}),
        **({} if sent is None or request_id is None or len(sent) > SENT_MAX else {"sent": sent}),
    }
    return ChargeRequest(table, keys.analyst or "", charge, record, keys, tuple(events), learning, call, learns_alone)


def question_of(view: LedgerDraft, keys: Keys, cohort: str, analyst: str) -> str:
    """Return the key of an analyst's question: shared, or their own if their own budget must count it."""
    return keys.own if is_limited(view, cohort, analyst) else keys.question


def is_limited(view: LedgerDraft, cohort: str, analyst: str) -> bool:
    return any(budget.analyst is not None for budget in view.book.applying(cohort, analyst))


def find_stored(
    view: LedgerDraft,
    keys: Keys,
    *,
    question: str,
    again: bool = False,
    is_in_hand: bool = False,
) -> StoredAnswer | None:
    """Return the answer already given to this request, or to this question; a dead request is refused.

    None for a charged request without an answer, if it is in hand here and may be carried out again.
    """
    charge = charge_made_for(view, keys)
    if charge is None:
        if again:
            return None
        answer = _learned(view, keys.table, question) if keys.is_fact else view.answer_to(question)
    else:
        if charge.record["asked"] != keys.asked:
            raise InvalidParameter("request_id was used for another question\nhint: give each question its own id")
        answer = view.answer_paid_by(charge.number)
        if answer is None and not (is_in_hand and _attempts_left(view, charge)):
            raise _dead(charge)
    return None if answer is None else _stored_answer(view, answer)


def standing_for(view: LedgerDraft, keys: Keys) -> Entry | None:
    """Return the unanswered charge of a request, or None."""
    charge = charge_made_for(view, keys)
    return None if charge is None or view.answer_paid_by(charge.number) is not None else charge


def _newest(view: LedgerDraft, charge: Entry) -> tuple[int, bool]:
    """Return the number of the newest attempt at a charge, and whether it failed."""
    entry = view.attempt(charge.number) if "attempts" in charge.record else None
    return (1, False) if entry is None else (entry.record["number"], entry.record["failed"])


def _attempts_left(view: LedgerDraft, charge: Entry) -> bool:
    """Return whether an unanswered charge may be carried out again: after a failure it may not."""
    number, has_failed = _newest(view, charge)
    return not has_failed and number < min(charge.record.get("attempts", 1), ATTEMPTS)


def _dead(charge: Entry) -> DeadRequest:
    return DeadRequest(
        f"this request id was charged (entry {charge.number}) but not answered: its process crashed, failed or is "
        "still running. Answering it again would release a second noisy value for one charge"
        "\nhint: ask again under a new request id, which is a new charge"
    )


# The common parts of two attempts at one charge: the rows read, the noise drawn, the cost and the key.
_SAME = ("table", "declared", "people", "events", "asked", "beside", "blocks", "learns", *CHARGE_NAMES)


def _is_same(standing: Entry, record: Record) -> bool:
    return all(record.get(name) == standing.record.get(name) for name in _SAME)


def _carry_on(
    draft: LedgerDraft, standing: Entry, record: Record, of_call: dict[str, Record], rest: Charge | None
) -> Attempt:
    """Begin a charge again, for the record: the process before has died, and may not answer any more."""
    if not _is_same(standing, record):
        raise _dead(standing)  # something was declared or learned since, and the noise would not be what was paid for
    number = _newest(draft, standing)[0] + 1
    draft.append({"kind": "attempt", "charge": standing.number, "number": number, "failed": False, **of_call})
    return Attempt(standing, number, rest)


def fail(draft: LedgerDraft, attempt: Attempt) -> None:
    """Note that an attempt has failed, so that its charge stays without an answer: a failure may depend on rows."""
    number, has_failed = _newest(draft, attempt.charge)
    if number == attempt.number and not has_failed and draft.answer_paid_by(attempt.charge.number) is None:
        draft.append({"kind": "attempt", "charge": attempt.charge.number, "number": number, "failed": True})


def sent_with(view: LedgerDraft, *, request_id: str, analyst: str | None) -> tuple[str, str | None] | None:
    """Return the table that an analyst's request was charged for, and what was sent; None without a charge."""
    charge = view.charge_for(request_name(view.head.ledger, request_id=request_id, analyst=analyst))
    table = None if charge is None else view.book.table(charge.record["table"])
    return None if charge is None or table is None else (table.name, charge.record.get("sent"))


def charge_made_for(view: LedgerDraft, keys: Keys) -> Entry | None:
    """Return the charge that was made for a request."""
    return None if keys.request is None else view.charge_for(keys.request)


def _learned(view: LedgerDraft, table: str, question: str) -> Entry | None:
    """Return the answer that holds what was learned last."""
    fact = view.fact(fact_name(table, question))
    return None if fact is None else view.entry(fact.record["answer"])


def facts(view: LedgerDraft, table: RegisteredTable, analyst: str) -> tuple[StoredFact, ...]:
    """Return what was learned of a table, in the order of its entries: everyone's, or an analyst's own if limited."""
    whose = analyst if is_limited(view, table.cohort, analyst) else None
    found = [view.fact(name) for name in view.rows.names(facts_of(table.id))]
    shown = []
    for fact in sorted((each for each in found if each is not None), key=lambda each: each.number):
        record = fact.record
        answer = view.entry(record["answer"])
        paid = None if answer is None else view.entry(answer.record["charge"])
        only = record["analyst"]
        if answer is None or paid is None or (only if only is None else name_key(only)) != whose:
            continue
        stored, cost = _stored_answer(view, answer), charge_from(paid.record)
        shown.append(StoredFact(record["words"], stored, cost, record["version"]))
    return tuple(shown)


def deny(draft: LedgerDraft, table: RegisteredTable, analyst: str | None, why: str) -> None:
    """Refuse, for the record, someone who may not ask."""
    draft.append({"kind": "refusal", "table": table.id, "people": table.cohort, "analyst": analyst, "denied": why})
    raise not_allowed(why)


def as_asked(view: LedgerDraft, request: ChargeRequest) -> Record:
    """Return what the record has of a request, charged or refused; its analyst is named as in the ledger."""
    question = question_of(view, request.keys, request.table.cohort, request.analyst)
    person = None if request.keys.analyst is None else find_person(view, request.keys.analyst)
    return {**request.record, **({} if person is None else {"analyst": person.name}), "question": question}


def require_room(draft: LedgerDraft, request: ChargeRequest, whole: Charge) -> None:
    """Refuse, for the record, a call if the budgets lack room for all of it; charge nothing."""
    refuse_misuse(draft, request.table, request.events)
    record = as_asked(draft, request)
    _refuse_if_not_allowed(draft, request, record)
    _refuse_if_short(draft, request, record, whole)


def decide(draft: LedgerDraft, request: ChargeRequest) -> StoredAnswer | Attempt:
    """Charge a request, or return the answer it already has; without room, refuse for the record.

    The decision is made on one draft, which is signed and written as a whole (`Ledger._flush`).
    """
    table, analyst = request.table, request.analyst
    refuse_misuse(draft, table, request.events)
    record = as_asked(draft, request)
    question = record["question"]
    _refuse_if_not_allowed(draft, request, record)
    learning = request.learning
    again = learning is not None and learning.again
    stored = find_stored(draft, request.keys, question=question, again=again, is_in_hand="attempts" in record)
    if stored is not None:
        return stored

    _refuse_if_closed(draft, request)
    if learning is not None:
        only = analyst if question == request.keys.own else None
        version = request.table.version
        record["learns"] = {"words": learning.words, "again": again, "analyst": only, "version": version}
    if request.is_alone:
        record["request"], standing = _named_for(draft, question, record)
    else:
        standing = charge_made_for(draft, request.keys) if "attempts" in record else None
    rest, of_call = _set_aside(draft, request, record, standing)
    if standing is not None:
        return _carry_on(draft, standing, record, of_call, rest)

    entry = draft.append({"kind": "charge", **record, **of_call}, request=record["request"])
    budgets = draft.book.applying(table.cohort, analyst)
    scopes = dict.fromkeys((scope_of(table.cohort), scope_of(table.cohort, analyst=analyst)), 1)
    for budget in budgets:
        scopes |= draft.book.charged(budget, analyst=analyst, time=draft.time, blocks=table.blocks)
    for scope, times in scopes.items():
        draft.charge(scope, request.charge.times(times), number=entry.number)
    for name, value in written(record["analyst"], draft.state.get).items():
        draft.state.put(name, value)
    return Attempt(entry, rest=rest)


def _named_for(draft: LedgerDraft, question: str, record: Record) -> tuple[str, Entry | None]:
    """Return the name under which a fact is charged, and a charge that stands without an answer, to be carried out."""
    number, request = 0, record.get("for")
    while (charge := draft.charge_for(name := digest("learned", question, number))) is not None:
        is_open = draft.answer_paid_by(charge.number) is None and _attempts_left(draft, charge)
        if is_open and _is_same(charge, record):
            break
        if request is not None and charge.record.get("for") == request:
            raise _dead(charge)  # each request pays at most once for a fact
        number += 1
    return name, charge


def _set_aside(
    draft: LedgerDraft, request: ChargeRequest, record: Record, standing: Entry | None
) -> tuple[Charge | None, dict[str, Record]]:
    """Refuse a charge if its whole call does not fit; return the rest of the call, and how the entry sets it aside."""
    call, new = request.call, request.charge if standing is None else Charge()
    if call is None:
        if standing is None:
            _refuse_if_short(draft, request, record)
        return None, {}
    is_own = standing is None or standing.record.get("for", "") == record.get("for")
    rest = call.rest_after(request.charge if is_own else Charge(), is_last=request.learning is None)
    if is_some(new + rest):
        _refuse_if_short(draft, request, call.record if is_some(rest) else record, new + rest)
    is_noted = is_some(rest) or set_aside(draft.state.get, call.cohort)
    return rest, {"call": call.entry(rest, over=draft.over(call.cohort))} if is_noted else {}


def _refuse_if_not_allowed(draft: LedgerDraft, request: ChargeRequest, record: Record) -> None:
    why = why_not(draft, request.record["analyst"], request.table)
    if why is not None:
        draft.append({"kind": "refusal", **record, "budget": None, "denied": why})
        raise not_allowed(why)


def _refuse_if_closed(draft: LedgerDraft, request: ChargeRequest) -> None:
    """Refuse a block that is over and was charged before, if the source was written since under the same version.

    Late rows could put one person in more blocks than its budgets were given for.
    """
    table, budget = request.table, draft.book.declared(request.table.cohort)
    if budget.period != BLOCK or table.stamp is None:
        return
    # midnight is at most 14 hours from UTC's: a block before this day is over in every zone
    day = (datetime.fromisoformat(draft.time) - timedelta(hours=14)).isoformat()
    limited = draft.book.limited(budget, draft.account, analyst="", time=draft.time, blocks=table.blocks)
    for scope, account, _ in limited:
        block = block_of(scope)
        last = draft.entry(account.last)
        if last is None or (block is not None and block >= day[: len(block)]) or last.record["table"] != table.id:
            continue
        declared = draft.entry(last.record["declared"])
        is_same_version = declared is not None and declared.record["version"] == table.version
        if is_same_version and last.record.get("stamp") not in (None, table.stamp):
            raise InvalidParameter(
                f"{'block ' + block if block else 'a block'} of '{table.name}' is closed: it was asked about at "
                f"version {table.version}, and the source was written since; {NOTHING_CHARGED}"
                f"\nhint: declare the new rows: version={table.version + 1}"
            )


def _refuse_if_short(draft: LedgerDraft, request: ChargeRequest, record: Record, whole: Charge | None = None) -> None:
    charge, call = whole or request.charge, None if request.call is None else request.call.id
    short = first_shortfall(draft, request.table, analyst=request.analyst, charge=charge, call=call)
    if short is not None:
        why = short.words(draft)
        draft.append({"kind": "refusal", **record, "budget": short.scope})
        raise _no_room(request, why)


def refuse_misuse(draft: LedgerDraft, table: RegisteredTable, events: Iterable[Event]) -> None:
    """Refuse a table of another ledger, and events that do not mean anything for this table."""
    declared = draft.book.table(table.id)
    if declared is None:
        raise LedgerError(f"this ledger does not know the table '{table.name}'\nhint: register it in this ledger")
    samples = any(isinstance(event, SubsampledGaussian) for event in events)
    if samples and declared.declaration.get("neighbours") == "replace":
        raise InvalidParameter(
            f"sampling amplifies for neighbours that add or remove a unit, and those of '{table.name}' replace one; "
            "no charge was made\nhint: charge the noise without the sampling, as GaussianNoise"
        )


def commit(draft: LedgerDraft, attempt: Attempt, answer: str, shown: str | None) -> Receipt:
    """Store the answer a charge paid for, once, from the newest attempt at it, and return the receipt."""
    charge = attempt.charge
    if not draft.holds(charge):
        raise LedgerError(
            f"the charge (entry {charge.number}) is missing from this ledger; no answer was given"
            "\nhint: run tacit ledger verify"
        )
    if _newest(draft, charge) != (attempt.number, False):
        raise BeingAnswered(
            f"another process has taken over the charge (entry {charge.number}), and answers it; this answer is dropped"
            "\nhint: ask again under the same request id: it is charged once"
        )
    if draft.answer_paid_by(charge.number) is not None:
        raise LedgerError(f"the charge (entry {charge.number}) has already paid for an answer\nhint: reserve again")
    record = charge.record
    question = record["question"]
    as_shown = {} if shown is None else {"as_shown": shown}
    named = {"kind": "answer", "charge": charge.number, "table": record["table"], "question": question}
    entry = draft.append(
        {**named, "answer": answer, **as_shown},
        question=question,
        answers=charge.number,
    )
    learns = record.get("learns")
    # of two that were learned at the same time, the first is the fact: both callers then go on from the same numbers
    if learns is not None and (learns["again"] or draft.fact(fact_name(record["table"], question)) is None):
        named = {name: learns[name] for name in ("words", "analyst", "version")}
        draft.append({"kind": "fact", "table": record["table"], "question": question, "answer": entry.number, **named})
    return _receipt(draft, entry)


def _receipt(view: LedgerDraft, answer: Entry) -> Receipt:
    record = answer.record
    return Receipt(view.head.ledger, answer.number, answer.hash, record["charge"], record["time"], view.durable)


def _stored_answer(view: LedgerDraft, answer: Entry) -> StoredAnswer:
    return StoredAnswer(answer.record["answer"], _receipt(view, answer))


def stored_at(view: LedgerDraft, number: int) -> StoredAnswer | None:
    entry = view.entry(number)
    return None if entry is None or entry.kind != "answer" else _stored_answer(view, entry)


def _no_room(request: ChargeRequest, why: str) -> BudgetExceeded:
    name = request.table.name
    less = (
        "" if why.endswith("left: nothing") else "ask for at most what is left ('tacit plan' says whether it fits), or "
    )
    return BudgetExceeded(
        f"the budget of '{name}', {why}; {NOTHING_CHARGED}"
        f"\nhint: {less}have the curator grant more: tacit budget grant {name} ..."
    )
