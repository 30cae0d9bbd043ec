"""`PlanReport`: the steps, cost and result of answering a question, as data and as text."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.answer import html_lines
from tacit.errors import printable
from tacit.forecast import Solved, learning_in_words, plan_in_words
from tacit.ledger import Fit
from tacit.plan import Plan, WantedFact
from tacit.privacy import Loss, PureLoss, show


@dataclass(frozen=True)
class PlanReport:
    """A plan that prints as text; `plan` holds the data."""

    plan: Plan
    confidence: Any
    solved: Solved | None = None
    path: str | None = None  # how the engine would run it now
    fit: Fit | None = None  # whether the budgets have room for it now
    wanted: tuple[WantedFact, ...] = ()  # the facts that the call would learn first; `plan` is then not the one to come
    joins: tuple[str, ...] = ()  # the effect of each join on one unit's rows, a line each
    ends: tuple[tuple[int, Plan], ...] = ()  # plans from made-up facts, by the rows that each person has in them
    advice: tuple[str, ...] = ()  # that it will be refused, and a closer question

    @property
    def only_plan(self) -> Plan:
        """The plan, of a question that has one: used by audits."""
        return self.plan

    @property
    def loss(self) -> Loss:
        """The cost of the call."""
        return self.plan.loss_with(each.cost for each in self.wanted)

    def __str__(self) -> str:
        if self.wanted:
            text = learning_in_words(self.plan, self.wanted, self.loss, {"": self.ends}, self.confidence)
        else:
            text = plan_in_words(self.plan, self.confidence, path=self.path)
        if self.joins:
            first, _, rest = text.partition("\n")
            text = "\n".join([first, *self.joins, rest])
        text = "\n".join([text, *self.advice])
        if self.fit is not None:
            text += f"\nBudget: {self.fit}."
        solved = "" if self.solved is None else f"\nε = {show(self.solved.epsilon)} is {self.solved.words}."
        return printable(text + solved, keeping="\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_lines(str(self))


@dataclass(frozen=True, repr=False)
class FreeReport:
    """The plan of a free question, printed as text."""

    text: str

    @property
    def loss(self) -> Loss:
        """The cost of the call, which is zero."""
        return PureLoss(Fraction(0))

    def __str__(self) -> str:
        return printable(self.text, keeping="\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_lines(str(self))
