"""Budgets: how much may be spent, by whom and in which period, with the rule that each fixes when it is declared.

A charge must fit every budget that applies to it; the filter (`tacit.accounting`) decides whether it does.

Room that is set aside: the rest of a call's amount, kept free while the call learns facts and then asks.

The first charge of a call needs room for all of it. Its entry names the call and the rest, and the signed state has the
rests of a cohort's calls, which other charges leave free. Room counts while the lock of its call is held; no clock is
read. Privacy rests only on the charges: a lost lock can never exceed a budget.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction

from tacit.accounting import BudgetRule, Charge, rule_of
from tacit.errors import InvalidParameter
from tacit.ledger.chain import canonical
from tacit.ledger.entry import Record, amounts_from, amounts_record, charge_from, scope_of
from tacit.numbers import from_text, show, to_text, whole
from tacit.privacy import ApproximateLoss, Loss, PureLoss, ZcdpLoss

# The period of a budget that holds in each block of the rows, in place of a time of the charge.
BLOCK = "block"
# The budget under this name applies to each analyst without a personal budget.
EACH = "*"
# How much of a time's text names the period it lies in: 2026-11-15T08:00:00.000000Z
_PERIODS = {"day": 10, "month": 7, "year": 4}

# The rule of a budget that is revoked: no arm of it admits anything.
ADMITS_NOTHING = BudgetRule(None, None, Fraction(0))

DELTA_MAX = Fraction(1, 10**6)
POPULATION_SHARE = 100

_KINDS: dict[str, type[PureLoss | ApproximateLoss | ZcdpLoss]] = {
    "pure": PureLoss,
    "approximate": ApproximateLoss,
    "zcdp": ZcdpLoss,
}


@dataclass(frozen=True)
class Budget:
    """The most that the units of a cohort may lose: for life or per period, to everyone together or to one analyst."""

    cohort: str
    loss: Loss
    rule: BudgetRule
    analyst: str | None = None
    period: str | None = None
    population: int | None = None

    def scope(self, *, analyst: str, time: str, block: str | None = None) -> str:
        """Return the account this budget limits, for a charge by `analyst` at `time`; of a block, or of all blocks."""
        if self.period == BLOCK:
            period: str | None = BLOCK if block is None else f"{BLOCK} {block}"
        else:
            period = None if self.period is None else period_of(time, self.period)
        return scope_of(self.cohort, analyst=None if self.analyst is None else analyst, period=period)

    @property
    def is_revoked(self) -> bool:
        """Whether all further spending under it is refused."""
        return self.rule.epsilon is None and self.rule.rho is None

    def __str__(self) -> str:
        who = {None: "", EACH: " for each analyst"}.get(self.analyst, f" for {self.analyst}")
        return f"{self.loss}{who}{f' per {self.period}' if self.period else ''}{', revoked' if self.is_revoked else ''}"


def block_of(scope: str) -> str | None:
    """Return the block of the account of a budget per block; None for all blocks."""
    return str(json.loads(scope)[2]).removeprefix(BLOCK).strip() or None


def period_of(time: str, period: str) -> str:
    """Return the calendar period (UTC) that a time lies in.

    >>> period_of("2026-11-15T08:00:00.000000Z", "month")
    'month 2026-11'
    """
    return f"{period} {time[: _PERIODS[period]]}"


def new_budget(
    cohort: str,
    loss: Loss,
    *,
    analyst: str | None = None,
    period: str | None = None,
    population: int | None = None,
    accept_large_delta: bool = False,
) -> Budget:
    """Return a budget with its rule fixed, after the checks a budget must pass."""
    if period is not None and period not in (*_PERIODS, BLOCK):
        raise InvalidParameter(f"period must be one of {', '.join((*_PERIODS, BLOCK))}, not {period!r}")
    if not isinstance(loss, PureLoss | ApproximateLoss | ZcdpLoss):
        raise InvalidParameter(
            f"budget must be a loss, not {type(loss).__name__}\nhint: budget=tacit.epsilon(3, delta=1e-6)"
        )
    check_delta(loss, population=population, accept_large_delta=accept_large_delta)
    return Budget(cohort, loss, rule_of(loss), analyst, period, population)


def check_delta(loss: Loss, *, population: int | None, accept_large_delta: bool) -> None:
    """Refuse a delta so large that publishing a few people's rows would satisfy the promise."""
    delta = Fraction(0) if isinstance(loss, PureLoss) else loss.delta
    most = DELTA_MAX if population is None else Fraction(1, POPULATION_SHARE * whole(population, name="population"))
    if delta <= most or accept_large_delta:
        return
    why = "without a declared population" if population is None else f"for a population of {population}"
    raise InvalidParameter(
        f"delta = {show(delta)} is above {show(most)} {why}: it is the probability that the promise fails, and "
        f"showing every row in the clear with that probability would keep it\nhint: give delta={show(most)} or less"
        + (", or population= if it is small" if population is None else "")
        + ", or accept it: accept_large_delta=True"
    )


def budget_record(budget: Budget) -> Record:
    """Return a budget as exact text for an entry, its rule included, so that a later version keeps the same one."""
    return {
        "people": budget.cohort,
        "analyst": budget.analyst,
        "period": budget.period,
        "population": budget.population,
        "budget": loss_record(budget.loss),
        "rule": amounts_record(budget.rule),
    }


def budget_from(record: Record) -> Budget:
    named = {name: record[name] for name in ("analyst", "period", "population")}
    return Budget(record["people"], loss_from(record["budget"]), BudgetRule(**amounts_from(record["rule"])), **named)


def loss_record(loss: Loss) -> Record:
    for kind, of_kind in _KINDS.items():
        if isinstance(loss, of_kind):
            return {"kind": kind, **{name: to_text(value) for name, value in vars(loss).items()}}
    raise InvalidParameter(f"a {type(loss).__name__} cannot be a budget\nhint: budget=tacit.epsilon(3, delta=1e-6)")


def loss_from(record: Record) -> Loss:
    amounts = {name: from_text(value) for name, value in record.items() if name != "kind"}
    return _KINDS[record["kind"]](**amounts)


SET_ASIDE = "set aside "  # the prefix of names in the state

Get = Callable[[str], str | None]


@dataclass
class CallInProgress:
    """A call in progress: its analyst, its request for the record, and the rest of its charges."""

    id: str  # the name of its lock
    ledger: str
    cohort: str
    analyst: str
    record: Record
    rest: Charge
    is_one_question: bool = True  # then a charge that learns no fact is the last

    def rest_after(self, charge: Charge, *, is_last: bool) -> Charge:
        """Return the amount that is left to charge after one more charge of this call."""
        return Charge() if is_last and self.is_one_question else less(self.rest, charge)

    def entry(self, rest: Charge, *, over: list[str]) -> Record:
        """Return the part of an entry that sets the rest aside, and drops the rests of calls that are over."""
        kept = amounts_record(rest) if is_some(rest) else None
        return {"id": self.id, "people": self.cohort, "analyst": self.analyst, "rest": kept, "over": over}


_NOW: ContextVar[CallInProgress | None] = ContextVar("tacit_call", default=None)


def call_in_progress(ledger: str, cohort: str, analyst: str) -> CallInProgress | None:
    """Return the call that this thread is in, if it is about these people and by this analyst."""
    now = _NOW.get()
    return now if now is not None and (now.ledger, now.cohort, now.analyst) == (ledger, cohort, analyst) else None


@contextmanager
def within(call: CallInProgress) -> Iterator[None]:
    """Make all charges inside charges of a call."""
    before = _NOW.set(call)
    try:
        yield
    finally:
        _NOW.reset(before)


def aside_name(cohort: str) -> str:
    """Return the key in the state for the room that is set aside of a cohort's budgets."""
    return SET_ASIDE + cohort


def aside_changes(record: Record, get: Get) -> dict[str, str]:
    """Return the change that an entry of a call makes in the state."""
    call = record.get("call")
    if call is None:
        return {}
    name = aside_name(call["people"])
    kept = {id: rest for id, rest in _stored_rests(get, name).items() if id != call["id"] and id not in call["over"]}
    own = {} if call["rest"] is None else {call["id"]: {"analyst": call["analyst"], **call["rest"]}}
    return {name: canonical(kept | own)}


def set_aside(get: Get, cohort: str) -> dict[str, tuple[str, Charge]]:
    """Return the analyst and the rest of each call that the state names, over or not, by the names of their locks."""
    return {
        id: (str(each["analyst"]), charge_from(each)) for id, each in _stored_rests(get, aside_name(cohort)).items()
    }


def is_some(charge: Charge) -> bool:
    """Return whether an amount is above zero."""
    return bool(charge.epsilon or charge.rho or charge.delta or charge.delta_noise)


def _stored_rests(get: Get, name: str) -> Record:
    text = get(name)
    return {} if text is None else dict(json.loads(text))


def less(whole: Charge, charge: Charge) -> Charge:
    """Return the rest of an amount after a charge, at least zero."""
    stated = whole.epsilon is not None and charge.epsilon is not None
    return Charge(
        max(whole.epsilon - charge.epsilon, Fraction(0)) if stated else None,  # type: ignore[operator]
        max(whole.rho - charge.rho, Fraction(0)),
        max(whole.delta - charge.delta, Fraction(0)),
        max(whole.delta_noise - charge.delta_noise, Fraction(0)),
    )
