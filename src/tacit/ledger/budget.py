"""Budgets: how much may be spent, by whom and in which period, with the rule that each fixes when it is declared.

A charge must fit every budget that applies to it; the filter (`tacit.accounting`) decides whether it does.
"""

import json
from dataclasses import dataclass
from fractions import Fraction

from tacit.accounting import BudgetRule, rule_of
from tacit.errors import InvalidParameter
from tacit.ledger.entry import Record, amounts_from, amounts_record, scope_of
from tacit.privacy import ApproximateLoss, Loss, PureLoss, ZcdpLoss, from_text, show, to_text, whole

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
        "showing every row in the clear with that probability would keep it"
        f"\nhint: give delta={show(most)} or less"
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
