"""The status of budgets: the spending, the rest, and whether one more charge fits; and entries in words.

Charges, plans and printed texts use the same comparison. Amounts are epsilon and delta by addition, and rho if that
leaves more.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.accounting import (
    FOR_KEYS,
    FOR_NOISE,
    BudgetRule,
    Charge,
    Remaining,
    charge_of,
    questions_left,
    remaining,
    rule_of,
)
from tacit.errors import InvalidParameter
from tacit.ledger.budget import BLOCK, EACH, Budget, block_of, budget_from
from tacit.ledger.draft import BUDGETS, LedgerDraft
from tacit.ledger.entry import ACCOUNT, Account, Entry, Record, account_name, charge_from, scope_of
from tacit.ledger.registry import RegisteredTable
from tacit.ledger.spelling import name_key
from tacit.numbers import brief, from_text, show
from tacit.privacy import KINDS, ApproximateLoss, Event, event_to_dict


@dataclass(frozen=True)
class BudgetStatus:
    """A budget's spending, its rest and the number of charges; `questions` counts further ones like the last."""

    budget: Budget
    spent: Charge
    charges: int
    remaining: Remaining
    questions: int | None
    block: str | None = None  # of a budget per block; None: all blocks that were not charged by name

    @property
    def share_spent(self) -> Fraction:
        """The part of the budget that is spent: by addition while that has room, and then by rho."""
        rule, spent = self.budget.rule, self.spent
        if rule.admits_by_addition(spent) and rule.epsilon and spent.epsilon is not None:
            return spent.epsilon / rule.epsilon
        return min(spent.rho / rule.rho, Fraction(1)) if rule.rho else Fraction(1)

    @property
    def words_spent(self) -> str:
        """The amount spent, by addition, with the sum of rho if the rule counts it."""
        return spent_words(self.spent, rule_of(self.budget.loss) if self.budget.is_revoked else self.budget.rule)

    @property
    def words_left(self) -> str:
        """The amount this budget leaves to one more question; a rho budget gives it in rho."""
        if self.budget.is_revoked:
            return "nothing"
        if self.budget.rule.epsilon is None:
            return f"ρ = {show(self.remaining.rho or Fraction(0), up=False)}"
        return smallest([self]).amounts


@dataclass(frozen=True)
class Left(Remaining):
    """What all budgets leave for one more question: with Laplace noise `laplace` and `delta`, or Gaussian noise."""

    questions: int | None

    def __str__(self) -> str:
        more = f"; or about {self.questions:,} more like the last" if self.questions else ""
        return self.amounts + more

    __repr__ = __str__  # what `table.left` shows of itself

    @property
    def amounts(self) -> str:
        """The most that one more question may ask for, in words."""
        if not self.epsilon:
            return "nothing"
        laplace = _epsilon_words(self.laplace, self.delta)
        gaussian = _epsilon_words(self.gaussian, self.delta_gaussian)
        rho = f" (ρ = {brief(self.rho, up=False)})" if self.rho and self.gaussian > self.laplace else ""
        if self.laplace == self.gaussian:
            return gaussian
        if not self.gaussian:
            return laplace
        by_rho = f"{gaussian} with Gaussian noise{rho}"
        return f"{laplace} with Laplace noise, or {by_rho}" if self.laplace else by_rho


@dataclass(frozen=True)
class Shortfall:
    """The first budget without room for a charge."""

    budget: Budget
    scope: str
    analyst: str
    charge: Charge
    table: RegisteredTable
    call: str | None = None  # the call that the charge is a part of

    def words(self, draft: LedgerDraft) -> str:
        """Return the budget, the charge that does not fit, and the amount that all budgets leave."""
        left = smallest(budget_status(draft, self.table, analyst=self.analyst, call=self.call))
        rule = rule_of(self.budget.loss) if self.budget.is_revoked else self.budget.rule
        return f"{self.budget}, has no room for {spent_words(self.charge, rule)}; left: {left}"


@dataclass(frozen=True)
class Fit:
    """Whether a question would be admitted: the reason why not, or the rest of the budget. Printed as words."""

    short: str | None
    after: Left | None

    def __bool__(self) -> bool:
        return self.short is None

    def __str__(self) -> str:
        return f"fits, and leaves {self.after}" if self.short is None else f"does not fit: the budget, {self.short}"

    __repr__ = __str__


@dataclass(frozen=True)
class BudgetRoom:
    """The room that an asker's budgets leave, as of one moment; a request in hand that was charged fits as it was."""

    # each budget's rule, what is spent or set aside of it, and how many times a charge counts
    limits: tuple[tuple[BudgetRule, Charge, int], ...]
    is_allowed: bool = True
    charged: list[Record] | None = None  # the events of a request in hand that was charged before

    def admits(self, events: Sequence[Event], asked: ApproximateLoss | None, beside: Sequence[Event] = ()) -> bool:
        """Return whether a question would be admitted, with what is learned `beside` it."""
        charge = cost_of(events, asked, beside)
        if not self.is_allowed:
            return False
        if self.charged is not None:
            return self.charged == [event_to_dict(event) for event in (*events, *beside)]
        return all(rule.admits(taken + charge.times(times)) for rule, taken, times in self.limits)


@dataclass(frozen=True)
class Asker:
    """Someone who asks about a table: their name, the budgets that limit them, and why they may not ask, if so."""

    name: str | None
    budgets: tuple[Budget, ...]
    why_not: str | None = None

    @property
    def is_limited(self) -> bool:
        """Whether they have a budget of their own: then their questions and facts are theirs only."""
        return any(budget.analyst is not None for budget in self.budgets)


def cost_of(events: Sequence[Event], asked: ApproximateLoss | None, beside: Sequence[Event] = ()) -> Charge:
    """Return the charge of a question, and of what is learned `beside` it; anything that is not an event is refused."""
    for event in (*events, *beside):
        if KINDS.get(type(event).__name__) is not type(event):
            raise InvalidParameter(f"events must be privacy events, not {type(event).__name__}")
    if not events:
        raise InvalidParameter("a question without events would be answered without a charge\nhint: give its events")
    charge = charge_of(events, asked=asked)
    return charge + charge_of(beside) if beside else charge


def first_shortfall(
    draft: LedgerDraft, table: RegisteredTable, *, analyst: str, charge: Charge, call: str | None = None
) -> Shortfall | None:
    """Return the first budget without room for one more charge; room set aside for other calls counts as spent."""
    for budget, scope, account, times in _limited(draft, table, analyst):
        taken = account.spent + _aside(draft, budget, analyst, call).times(times)
        if not budget.rule.admits(taken + charge.times(times)):
            return Shortfall(budget, scope, analyst, charge, table, call)
    return None


def limits_of(
    draft: LedgerDraft, table: RegisteredTable, *, analyst: str, call: str | None = None
) -> tuple[tuple[BudgetRule, Charge, int], ...]:
    """Return the rule of each budget that applies, what is spent or set aside of it, and how often a charge counts."""
    return tuple(
        (budget.rule, account.spent + _aside(draft, budget, analyst, call).times(times), times)
        for budget, _, account, times in _limited(draft, table, analyst)
    )


def _limited(draft: LedgerDraft, table: RegisteredTable, analyst: str) -> Iterator[tuple[Budget, str, Account, int]]:
    """Yield the totals that limit a charge about a table, each with its budget and how often the charge counts."""
    for budget in draft.book.applying(table.cohort, analyst):
        for scope, account, times in draft.book.limited(
            budget, draft.account, analyst=analyst, time=draft.time, blocks=table.blocks
        ):
            yield budget, scope, account, times


def _aside(draft: LedgerDraft, budget: Budget, analyst: str, call: str | None) -> Charge:
    """Return the room of a budget that is set aside for other calls in progress."""
    return draft.set_aside(budget.cohort, by=None if budget.analyst is None else analyst, but=call)


def budget_status(
    draft: LedgerDraft, table: RegisteredTable, *, analyst: str, charge: Charge | None = None, call: str | None = None
) -> tuple[BudgetStatus, ...]:
    """Return the status of each budget that applies, now or after one more `charge`; room set aside is not left."""
    asking = draft.book.declared(table.cohort).loss
    by_all = draft.account(scope_of(table.cohort)).last
    found = []
    for budget, scope, account, times in _limited(draft, table, analyst):
        # before its first charge, a budget is measured by the cohort's last charge: the smallest count is shown
        last = draft.entry(account.last or by_all) if charge is None else None
        like = charge if last is None else charge_from(last.record)
        spent = account.spent if charge is None else account.spent + charge.times(times)
        taken = spent + _aside(draft, budget, analyst, call).times(times)
        questions = None if like is None else questions_left(budget.rule, taken, like.times(times))
        left, charges = remaining(budget.rule, taken, asking), account.charges + (charge is not None)
        if times > 1:
            left = Remaining(**{name: each and each / times for name, each in vars(left).items()})
        block = block_of(scope) if budget.period == BLOCK else None
        found.append(BudgetStatus(budget, spent, charges, left, questions, block))
    return tuple(found)


def analysts(draft: LedgerDraft, cohort: str) -> tuple[str, ...]:
    """Return the named analysts who have a budget for a cohort or spent on it, as their names were first written."""
    beginning = scope_of(cohort).partition(",")[0] + ","
    spent = [json.loads(name.removeprefix(ACCOUNT)) for name in draft.rows.names(account_name(beginning))]
    granted = [json.loads(name.removeprefix(BUDGETS)) for name in draft.rows.names(BUDGETS + beginning)]
    keys = {name_key(who) for _, who, *_ in (*spent, *granted) if who and who != EACH}
    return tuple(draft.written(key) for key in sorted(keys))


def smallest(found: Iterable[BudgetStatus]) -> Left:
    statuses = list(found)
    left = [status.remaining for status in statuses]
    return Left(
        laplace=min(one.laplace for one in left),
        gaussian=min(one.gaussian for one in left),
        delta=min(one.delta for one in left),
        delta_gaussian=min(one.delta_gaussian for one in left),
        rho=min((one.rho for one in left if one.rho is not None), default=None),
        questions=min((one.questions for one in statuses if one.questions is not None), default=None),
    )


def spent_words(spent: Charge, rule: BudgetRule) -> str:
    """Return the amount spent in words: epsilon and delta by addition, and the sum of rho if the rule counts it."""
    delta = spent.delta
    if rule.delta_convert:  # a question's delta is divided as the budget's is
        delta = max(spent.delta / FOR_KEYS, spent.delta_noise / FOR_NOISE)
    if rule.epsilon is None or spent.epsilon is None:
        return f"ρ = {show(spent.rho)}" + (f", δ = {show(delta)}" if delta else "")
    beyond = not rule.admits_by_addition(spent) and rule.admits_by_rho(spent)
    return _epsilon_words(spent.epsilon, delta, up=True) + (f" (together ρ = {show(spent.rho)})" if beyond else "")


def _epsilon_words(epsilon: Fraction, delta: Fraction, *, up: bool = False) -> str:
    write = show if up else brief  # amounts spent as the ledger has them; what is left is there to be asked for
    return f"ε = {write(epsilon, up=up)}" + (f", δ = {write(delta, up=up)}" if delta else "")


# ---- entries in words ------------------------------------------------------------------------------------------------

# Of a question's words in a line.
WORDS_SHOWN = 100


def entry_line(entry: Entry, tables: Mapping[str, RegisteredTable]) -> str:
    """Return one entry as a line: number, time, kind, and subject."""
    try:
        about = _note_words(entry.record) if entry.kind == "note" else _subject_words(entry.kind, entry.record, tables)
    except (KeyError, TypeError, ValueError, AttributeError):  # a ledger from elsewhere may hold anything
        about = "(cannot be read)"
    kind = "learned" if entry.kind == "fact" else entry.kind
    return f"{entry.number:>7}  {entry.record['time'][:19]}  {kind:8}  {about}"


def _subject_words(kind: str, record: Record, tables: Mapping[str, RegisteredTable]) -> str:
    if kind in {"charge", "answer", "refusal"}:
        table = tables.get(record["table"])
        name = "?" if table is None else table.name
        if kind == "answer":
            return f"{name} for charge {record['charge']}"
        who = f" by {record['analyst']}" if record["analyst"] else ""
        if "denied" in record:
            return f"{name}{who}: {record['denied']}"
        why = f" to learn {record['learns']['words']}" if "learns" in record else ""
        if not why and "about" in record:
            words = record["about"].splitlines()[0]
            why = f": {words}" if len(words) <= WORDS_SHOWN else f": {words[: WORDS_SHOWN - 1]}…"
        return f"{name}{who} {cost_words(record, table)}{why}"
    if kind == "attempt":
        what = "has failed" if record["failed"] else "begins"
        return f"attempt {record['number']} at charge {record['charge']} {what}"
    if kind == "step":
        return f"of the stream of charge {record['charge']}: numbers {record['first'] + 1} to {record['end']}"
    if kind == "fact":
        table = tables.get(record["table"])
        only = f" (for {record['analyst']} alone)" if record["analyst"] else ""
        return f"{'?' if table is None else table.name} in answer {record['answer']}{only}: {record['words']}"
    if kind == "budget":
        whose = sorted(table.name for table in tables.values() if table.cohort == record["people"])
        return f"{', '.join(whose)} {budget_from(record)} {record['reason']}".strip()
    if kind == "person":
        who = record["name"] or "requests without a name"
        of = "every table" if record["tables"] is None else ", ".join(record["tables"]) or "no table"
        over = ", ended" if record["ended"] else "" if record["until"] is None else f", until {record['until'][:10]}"
        usual = f", ε {record['usual_epsilon']} by PostgreSQL's protocol" if record.get("usual_epsilon") else ""
        return f"{who}: {record['role']} of {of}{usual}{over} {record['reason']}".strip()
    if kind == "token":
        over = ", ended" if record["ended"] else "" if record["until"] is None else f", until {record['until'][:10]}"
        return f"{record['token']} of {record['name']}{over} {record['reason']}".strip()
    if kind == "table":
        return f"{record['name']} version {record['version']}"
    return str(record["ledger"] if kind == "ledger" else record["reason"])


def _note_words(record: Record) -> str:
    about, over = record["about"], "" if record["ended"] is None else f", ended by {record['ended']['by']}"
    what = {
        "saved": lambda: f"answer {about['answer']} saved as '{about['title']}'",
        "link": lambda: f"link to answer {about['answer']} until {record['until'][:10]}",
        "request": lambda: f"request for ε = {about['epsilon']} more",
    }[record["of"]]()
    return f"{record['table']} by {record['name']}: {what}{over} {record['reason']}".strip()


def cost_words(record: Record, table: RegisteredTable | None) -> str:
    """Return a charge in the words of its answer, as the table's budget counts; bare amounts without an answer."""
    if table is not None:
        return spent_words(charge_from(record), rule_of(table.budget))
    main = ("ε", record["epsilon"]) if record["epsilon"] is not None else ("ρ", record["rho"])
    parts = [main] + ([("δ", record["delta"])] if record["delta"] != "0" else [])
    return ", ".join(f"{sign} = {show(from_text(amount))}" for sign, amount in parts)
