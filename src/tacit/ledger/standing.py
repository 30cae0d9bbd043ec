"""Where the budgets stand: spent, left, and about how many more questions like the last. Shows; never decides."""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from tacit.accounting.filter import Charge
from tacit.accounting.room import Room, epsilon_spent, questions_left, room
from tacit.ledger.budget import Budget
from tacit.ledger.draft import Draft
from tacit.ledger.entry import charge_from


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
    def epsilon_spent(self) -> Fraction | None:
        """The epsilon that was spent, as this budget counts; None for a budget in rho."""
        return epsilon_spent(self.budget.rule, self.spent)


@dataclass(frozen=True)
class Left:
    """What every budget leaves for one more question: the smallest wins."""

    epsilon: Fraction
    rho: Fraction | None
    delta: Fraction
    questions: int | None


def standings(draft: Draft, people: str, *, analyst: str) -> tuple[Standing, ...]:
    """Return where each budget that applies to an analyst's charge stands."""
    found = []
    for budget in draft.book.applying(people, analyst):
        account = draft.account(budget.scope(analyst=analyst, time=draft.time))
        last = draft.entry(account.last) if account.charges else None
        like = None if last is None else charge_from(last.record)
        questions = None if like is None else questions_left(budget.rule, account.spent, like)
        found.append(Standing(budget, account.spent, account.charges, room(budget.rule, account.spent), questions))
    return tuple(found)


def smallest(found: Iterable[Standing]) -> Left:
    """Return what is left when every one of the budgets must have room."""
    rooms = [standing.room for standing in found]
    rhos = [one.rho for one in rooms if one.rho is not None]
    questions = [standing.questions for standing in found if standing.questions is not None]
    return Left(
        epsilon=min(one.epsilon for one in rooms),
        rho=min(rhos, default=None),
        delta=min(one.delta for one in rooms),
        questions=min(questions, default=None),
    )
