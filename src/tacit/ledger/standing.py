"""Where the budgets stand: spent, left, and whether a charge fits. One comparison serves charges, plans and words.

What is spent and left is said as it was asked, in epsilon and delta by addition; where the sum of rho leaves more to
Gaussian noise, that stands beside it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from tacit.accounting.filter import FOR_KEYS, FOR_NOISE, Charge, Rule
from tacit.accounting.room import Room, questions_left, room
from tacit.ledger.budget import Budget
from tacit.ledger.draft import Draft
from tacit.ledger.entry import charge_from, scope_of
from tacit.privacy.loss import Loss
from tacit.privacy.number import show


@dataclass(frozen=True)
class Standing:
    """Where one budget stands: what was spent against it in how many charges, and what it leaves.

    `questions` is how many more like the last it admits: None before there was one, or where that one was free.
    """

    budget: Budget
    spent: Charge
    charges: int
    room: Room
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
        """What was spent, as it was asked, with the sum of rho where that is what counts, or counts too."""
        return spent_words(self.spent, self.budget.rule)

    @property
    def words_left(self) -> str:
        """What this budget leaves to one more question; one in rho says it in rho."""
        if self.budget.rule.epsilon is None:
            return f"ρ = {show(self.room.rho or Fraction(0), up=False)}"
        return smallest([self]).amounts


@dataclass(frozen=True)
class Left:
    """What every budget leaves for one more question: the smallest wins. It prints as words.

    With Laplace noise up to `laplace`, and `delta` for keys nobody listed; with Gaussian noise up to `gaussian` and
    `delta_gaussian`. Whoever leaves the noise open may ask for `epsilon`, the larger.
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
        """Return what has no room for what, and what all budgets leave."""
        left = smallest(standings(draft, self.budget.people, analyst=self.analyst))
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


def first_without_room(draft: Draft, people: str, *, analyst: str, charge: Charge) -> Shortfall | None:
    """Return the first budget that does not admit one more charge, or None where all of them do."""
    for budget in draft.book.applying(people, analyst):
        scope = budget.scope(analyst=analyst, time=draft.time)
        if not budget.rule.admits(draft.account(scope).spent + charge):
            return Shortfall(budget, scope, analyst, charge)
    return None


def standings(draft: Draft, people: str, *, analyst: str, charge: Charge | None = None) -> tuple[Standing, ...]:
    """Return where each budget that applies to an analyst's charge stands, or would stand after one more `charge`."""
    budgets = draft.book.applying(people, analyst)
    asking = _asking(budgets)
    by_all = draft.account(scope_of(people)).last
    found = []
    for budget in budgets:
        account = draft.account(budget.scope(analyst=analyst, time=draft.time))
        # where nothing was charged yet, the last one is anybody's: each budget must have room for those said to be left
        last = draft.entry(account.last or by_all) if charge is None else None
        like = charge if last is None else charge_from(last.record)
        spent = account.spent if charge is None else account.spent + charge
        questions = None if like is None else questions_left(budget.rule, spent, like)
        charges = account.charges + (charge is not None)
        found.append(Standing(budget, spent, charges, room(budget.rule, spent, asking), questions))
    return tuple(found)


def smallest(found: Iterable[Standing]) -> Left:
    """Return what is left when every one of the budgets must have room."""
    rooms = [standing.room for standing in found]
    rhos = [one.rho for one in rooms if one.rho is not None]
    questions = [standing.questions for standing in found if standing.questions is not None]
    return Left(
        laplace=min(one.laplace for one in rooms),
        gaussian=min(one.gaussian for one in rooms),
        delta=min(one.delta for one in rooms),
        delta_gaussian=min(one.delta_gaussian for one in rooms),
        rho=min(rhos, default=None),
        questions=min(questions, default=None),
    )


def spent_words(spent: Charge, rule: Rule) -> str:
    """Return what was spent as it was asked: epsilon and delta by addition, and the sum of rho where it counts."""
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
    """The budget whose delta a question takes its share of: everyone's, for life."""
    return next(budget.loss for budget in budgets if budget.analyst is None and budget.period is None)
