"""Charging: the two steps of every answer, reserve before a row is read and commit before the answer leaves.

A reserve charges everything or refuses. No charge is ever given back, whatever happens after it. A request id that was
charged and not answered is dead: answering it again would release a second noisy value for one charge.

The first part is the status of budgets: spent, left, and whether a charge fits. One comparison serves charges, plans
and printed texts. Amounts are shown as questions ask for them, in epsilon and delta by addition; where the sum of rho
leaves more to Gaussian noise, that amount is shown beside it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.accounting import FOR_KEYS, FOR_NOISE, Charge, Remaining, Rule, charge_of, questions_left, remaining
from tacit.errors import BudgetExceeded, DeadRequest, InvalidParameter, LedgerError
from tacit.ledger.budget import EACH, Budget
from tacit.ledger.chain import digest
from tacit.ledger.draft import TABLE, Draft, budgets_of
from tacit.ledger.entry import Entry, Record, account_name, charge_from, charge_record, scope_of
from tacit.ledger.registry import RegisteredTable
from tacit.ledger.store import Likely, looks_for
from tacit.privacy import KINDS, ApproximateLoss, Event, Loss, SubsampledGaussian, event_to_dict, show

# ---- the status of budgets -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BudgetStatus:
    """The status of one budget: what was spent against it in how many charges, and what it leaves.

    `questions` is how many more like the last it admits: None before there was one, or where that one was free.
    """

    budget: Budget
    spent: Charge
    charges: int
    remaining: Remaining
    questions: int | None

    @property
    def share_spent(self) -> Fraction:
        """The part of the budget that is spent: by addition while that has room, and then by rho."""
        rule, spent = self.budget.rule, self.spent
        if rule.admits_by_addition(spent) and rule.epsilon and spent.epsilon is not None:
            return spent.epsilon / rule.epsilon
        return min(spent.rho / rule.rho, Fraction(1)) if rule.rho else Fraction(1)

    @property
    def words_spent(self) -> str:
        """The amount spent, by addition, with the sum of rho where the rule counts it."""
        return spent_words(self.spent, self.budget.rule)

    @property
    def words_left(self) -> str:
        """The amount this budget leaves to one more question; a rho budget gives it in rho."""
        if self.budget.rule.epsilon is None:
            return f"ρ = {show(self.remaining.rho or Fraction(0), up=False)}"
        return smallest([self]).amounts


@dataclass(frozen=True)
class Left:
    """The amount that all budgets leave for one more question: the smallest wins. It prints as words.

    With Laplace noise up to `laplace`, and `delta` for private keys; with Gaussian noise up to `gaussian` and
    `delta_gaussian`. A question that leaves the noise open may ask for `epsilon`, the larger.
    """

    laplace: Fraction
    gaussian: Fraction
    delta: Fraction
    delta_gaussian: Fraction
    rho: Fraction | None
    questions: int | None

    @property
    def epsilon(self) -> Fraction:
        """The largest epsilon of any noise."""
        return max(self.laplace, self.gaussian)

    def __str__(self) -> str:
        more = f"; or about {self.questions:,} more like the last" if self.questions else ""
        return self.amounts + more

    __repr__ = __str__  # what `table.left` shows of itself

    @property
    def amounts(self) -> str:
        """What one more question may ask for, in words."""
        if not self.epsilon:
            return "nothing"
        laplace = _amounts(self.laplace, self.delta)
        gaussian = _amounts(self.gaussian, self.delta_gaussian)
        rho = f" (ρ = {show(self.rho, up=False)})" if self.rho and self.gaussian > self.laplace else ""
        if self.laplace == self.gaussian:
            return gaussian
        if not self.gaussian:
            return laplace
        by_rho = f"{gaussian} with Gaussian noise{rho}"
        return f"{laplace} with Laplace noise, or {by_rho}" if self.laplace else by_rho


@dataclass(frozen=True)
class Shortfall:
    """The first budget that has no room for a charge."""

    budget: Budget
    scope: str
    analyst: str
    charge: Charge

    def words(self, draft: Draft) -> str:
        """Return the budget, the charge it has no room for, and the amount that all budgets leave."""
        left = smallest(budget_status(draft, self.budget.cohort, analyst=self.analyst))
        return f"{self.budget}, has no room for {spent_words(self.charge, self.budget.rule)}; left: {left}"


@dataclass(frozen=True)
class Fit:
    """Whether a question would be admitted: why not, or what it would leave. It prints as words."""

    short: str | None
    after: Left | None

    def __bool__(self) -> bool:
        return self.short is None

    def __str__(self) -> str:
        return f"fits, and leaves {self.after}" if self.short is None else f"does not fit: the budget, {self.short}"

    __repr__ = __str__


def first_shortfall(draft: Draft, cohort: str, *, analyst: str, charge: Charge) -> Shortfall | None:
    """Return the first budget that does not admit one more charge, or None where all of them do."""
    for budget in draft.book.applying(cohort, analyst):
        scope = budget.scope(analyst=analyst, time=draft.time)
        if not budget.rule.admits(draft.account(scope).spent + charge):
            return Shortfall(budget, scope, analyst, charge)
    return None


def budget_status(draft: Draft, cohort: str, *, analyst: str, charge: Charge | None = None) -> tuple[BudgetStatus, ...]:
    """Return the status of each budget that applies to an analyst's charge, now or after one more `charge`."""
    budgets = draft.book.applying(cohort, analyst)
    asking = _asking(budgets)
    by_all = draft.account(scope_of(cohort)).last
    found = []
    for budget in budgets:
        account = draft.account(budget.scope(analyst=analyst, time=draft.time))
        # with no charge of its own yet, a budget is measured by the cohort's last charge: the smallest count is shown
        last = draft.entry(account.last or by_all) if charge is None else None
        like = charge if last is None else charge_from(last.record)
        spent = account.spent if charge is None else account.spent + charge
        questions = None if like is None else questions_left(budget.rule, spent, like)
        charges = account.charges + (charge is not None)
        found.append(BudgetStatus(budget, spent, charges, remaining(budget.rule, spent, asking), questions))
    return tuple(found)


def smallest(found: Iterable[BudgetStatus]) -> Left:
    """Return the amount left when every budget must have room."""
    remainders = [status.remaining for status in found]
    rhos = [one.rho for one in remainders if one.rho is not None]
    questions = [status.questions for status in found if status.questions is not None]
    return Left(
        laplace=min(one.laplace for one in remainders),
        gaussian=min(one.gaussian for one in remainders),
        delta=min(one.delta for one in remainders),
        delta_gaussian=min(one.delta_gaussian for one in remainders),
        rho=min(rhos, default=None),
        questions=min(questions, default=None),
    )


def spent_words(spent: Charge, rule: Rule) -> str:
    """Return the amount spent in words: epsilon and delta by addition, and the sum of rho where the rule counts it."""
    delta = spent.delta
    if rule.delta_convert:  # a question's delta is divided as the budget's is
        delta = max(spent.delta / FOR_KEYS, spent.delta_noise / FOR_NOISE)
    if rule.epsilon is None or spent.epsilon is None:
        return f"ρ = {show(spent.rho)}" + (f", δ = {show(delta)}" if delta else "")
    beyond = not rule.admits_by_addition(spent) and rule.admits_by_rho(spent)
    return _amounts(spent.epsilon, delta, up=True) + (f" (together ρ = {show(spent.rho)})" if beyond else "")


def _amounts(epsilon: Fraction, delta: Fraction, *, up: bool = False) -> str:
    return f"ε = {show(epsilon, up=up)}" + (f", δ = {show(delta, up=up)}" if delta else "")


def _asking(budgets: Iterable[Budget]) -> Loss:
    """Return the budget whose delta questions share: the lifetime budget of everyone together."""
    return next(budget.loss for budget in budgets if budget.analyst is None and budget.period is None)


# ---- reserve and commit ----------------------------------------------------------------------------------------------


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

    `own` identifies the question of one analyst: answers that others asked for do not count for it.
    """

    asked: str
    question: str
    own: str
    request: str | None


@dataclass(frozen=True)
class Request:
    """A checked request to be charged, ready before the ledger is read."""

    table: RegisteredTable
    analyst: str
    charge: Charge
    record: Record
    keys: "Keys"
    events: tuple[Event, ...]

    def likely(self) -> Likely:
        """Return the rows that charging will probably read, so that a store can fetch them at once."""
        cohort, analyst = self.table.cohort, self.analyst
        names = [account_name(scope_of(cohort)), account_name(scope_of(cohort, analyst=analyst)), TABLE + self.table.id]
        names += [budgets_of(cohort, who) for who in (None, analyst, EACH)]
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
    """Return the request, with its cost; anything that is not an event, or not a text, is refused."""
    charge = cost_of(events, asked)
    keys = keys_of(table, question_key=question_key, request_id=request_id, analyst=analyst, ledger=ledger)
    record = {
        "table": table.id,
        "declared": table.entry,
        "people": table.cohort,
        "analyst": analyst,
        "events": [event_to_dict(event) for event in events],
        **charge_record(charge),
        "asked": keys.asked,
        "request": keys.request,
    }
    return Request(table, analyst or "", charge, record, keys, tuple(events))


def cost_of(events: Sequence[Event], asked: ApproximateLoss | None) -> Charge:
    """Return the charge of a question; anything that is not an event is refused."""
    for event in events:
        if KINDS.get(type(event).__name__) is not type(event):
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


def question_of(view: Draft, keys: Keys, cohort: str, analyst: str) -> str:
    """Return the key of an analyst's question: shared with everyone, or their own if they have a budget.

    Why: an answer that another analyst paid for teaches as much as an own one, but would not count against the budget.
    """
    limited = any(budget.analyst is not None for budget in view.book.applying(cohort, analyst))
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
                f"this request id was charged (entry {charge.number}) and has no answer: its process crashed or is "
                "still running. Answering it again would release a second noisy value for one charge"
                "\nhint: ask again under a new request id, which is a new charge"
            )
    return None if answer is None else _stored(answer, ledger=ledger, durable=durable)


def decide(draft: Draft, request: Request, *, durable: bool) -> StoredAnswer | Entry:
    """Charge a request and return the entry, or return the answer it already has; without room, refuse for the record.

    One decision on one draft, whose head is signed: look the question up, read the totals, decide, append. The draft
    is then sealed (signed) and written as a whole, with the steps of other waiting callers (`Ledger._flush`).
    """
    table, analyst = request.table, request.analyst
    refuse_misuse(draft, table, request.events)

    question = question_of(draft, request.keys, table.cohort, analyst)
    stored = find_stored(draft, request.keys, question=question, ledger=draft.head.ledger, durable=durable)
    if stored is not None:
        return stored

    record = {**request.record, "question": question}
    short = first_shortfall(draft, table.cohort, analyst=analyst, charge=request.charge)  # reads the totals
    if short is not None:
        why = short.words(draft)
        draft.append({"kind": "refusal", **record, "budget": short.scope})
        raise _no_room(request, why)

    entry = draft.append({"kind": "charge", **record}, request=request.keys.request)
    budgets = draft.book.applying(table.cohort, analyst)
    scopes = [budget.scope(analyst=analyst, time=draft.time) for budget in budgets]
    for scope in {scope_of(table.cohort), scope_of(table.cohort, analyst=analyst), *scopes}:
        draft.charge(scope, request.charge, number=entry.number)
    return entry


def refuse_misuse(draft: Draft, table: RegisteredTable, events: Iterable[Event]) -> None:
    """Refuse a table of another ledger, and events that do not mean anything for this table."""
    declared = draft.book.table(table.id)
    if declared is None:
        raise LedgerError(f"this ledger does not know the table '{table.name}'\nhint: register it in this ledger")
    samples = any(isinstance(event, SubsampledGaussian) for event in events)
    if samples and declared.declaration.get("neighbours") == "replace":
        raise InvalidParameter(
            f"sampling amplifies for neighbours that add or remove a unit, and those of '{table.name}' replace one; "
            "nothing was charged\nhint: charge the noise without the sampling, as GaussianNoise"
        )


def commit(draft: Draft, charge: Entry, answer: str, *, durable: bool) -> Receipt:
    """Store the answer a charge paid for, once, and return the receipt."""
    if not draft.holds(charge):
        raise LedgerError(
            f"the charge (entry {charge.number}) is not in this ledger any more; nothing was answered"
            "\nhint: run tacit ledger verify"
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
