"""`Question`: a checked question that can be planned for free, and answered for its cost.

Every answer goes through the session, which charges before it reads a row.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from tacit.answer import Answer, AnswerInfo, html_lines, loss_record, make_answer
from tacit.errors import InvalidParameter, LargeEpsilonWarning, QueryRefused, printable
from tacit.forecast import Solved, Wanted, group_rows, learning_in_words, plan_in_words, solve_epsilon
from tacit.learned import Learn, read_learn
from tacit.ledger import Fit, Left
from tacit.plan import Plan, Spend, WantedFact, make_plan, make_spend, read_weights
from tacit.privacy import Loss, Number, confidence_meaning, float_below, large_words, show
from tacit.query import Query
from tacit.session import Answered, Session


@dataclass(frozen=True)
class PlanReport:
    """A plan that prints as text; `plan` holds the data."""

    plan: Plan
    confidence: Any
    solved: Solved | None = None
    path: str | None = None  # how the engine would run it now
    fit: Fit | None = None  # whether the budgets have room for it now
    wanted: tuple[WantedFact, ...] = ()  # what the call would learn first; `plan` is then not the one to come
    by_hand: bool = False  # but nearly: its bounds are given, and only what they cut is to be learned

    @property
    def loss(self) -> Loss:
        """What the call would cost."""
        return _loss_with(self.plan, [each.plan.spend.epsilon for each in self.wanted])

    def __str__(self) -> str:
        if self.wanted and not self.by_hand:
            text = learning_in_words(self.plan, self.wanted, self.loss)
        else:
            learned = [each.plan.spend.epsilon for each in self.wanted]
            text = plan_in_words(_spending_also(self.plan, learned), self.confidence, path=self.path)
            text += "".join(
                f"\nLearned first, and kept: {each.words}, for ε = {show(each.plan.spend.epsilon)} of it. What bounds"
                " cut is then measured, if anyone is beyond them."
                for each in self.wanted
            )
        if self.fit is not None:
            text += f"\nBudget: {self.fit}."
        solved = "" if self.solved is None else f"\nε = {show(self.solved.epsilon)} is {self.solved.words}."
        return printable(text + solved, keeping="\n")

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_lines(str(self))


@dataclass(frozen=True, repr=False)
class Question:
    """A checked question: `plan` it for free, `answer` it for what it costs."""

    session: Session
    query: Query

    def plan(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        error: Wanted | None = None,
        for_groups_of: int | None = None,
        weights: Mapping[str, Number] | None = None,
        analyst: str | None = None,
        noise: str | None = None,
        confidence: Number = 0.95,
        learn: Learn = None,
    ) -> PlanReport:
        """Return what answering would do, cost and give, and whether it fits: free, and no row is read.

        Give `epsilon`, for the whole call, or the `error` to stay within, from which it is solved: a percent ("2%"), a
        number, or a dict of them by aggregate. `weights` says which aggregates' errors matter more. Before bounds are
        known, it says what the call would learn and for how much.
        """
        level = confidence_meaning(confidence)
        spend_at = partial(self._spend_at, delta=delta, noise=noise, level=level, weights=weights)
        solved = self._solve(epsilon, error, for_groups_of, spend_at, level)
        exact = solved.epsilon if solved else epsilon
        session = self.session
        choice = read_learn(learn, allowed=solved is None)
        foreseen = session.plan(self.query, spend=spend_at(exact), analyst=analyst, learn=choice)
        path = session.engine.path_of(foreseen.plan)
        fit = session.fit(foreseen, analyst)
        return PlanReport(foreseen.plan, level, solved, path, fit, foreseen.wanted, foreseen.by_hand)

    def answer(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        error: Wanted | None = None,
        for_groups_of: int | None = None,
        weights: Mapping[str, Number] | None = None,
        consistent: bool = False,
        request_id: str | None = None,
        analyst: str | None = None,
        noise: str | None = None,
        confidence: Number = 0.95,
        learn: Learn = None,
    ) -> Answer:
        """Return the private answer, after charging for it: what `plan` with the same words shows.

        The same question asked again is answered from the record, with the same numbers, for free. `consistent` makes
        the numbers possible ones, at no cost: counts not negative, quantiles rising, values inside their ranges.
        Bounds that nobody gave or learned yet are learned first, once, for a part of epsilon: `learn` is another share
        (0.1), "reuse" or "fresh" for a question with a filter, or False, which refuses instead.
        """
        if not isinstance(consistent, bool):  # all words are read before the charge
            raise InvalidParameter(f"consistent must be True or False, not {type(consistent).__name__}")
        level = confidence_meaning(confidence)
        spend_at = partial(self._spend_at, delta=delta, noise=noise, level=level, weights=weights)
        solved = self._solve(epsilon, error, for_groups_of, spend_at, level)
        spend = spend_at(solved.epsilon if solved else epsilon)
        warn_if_large(spend.epsilon)
        # an error was solved for from what is known: to learn more would leave less for it
        choice = read_learn(learn, allowed=solved is None)
        answered = self.session.answer(self.query, spend=spend, request_id=request_id, analyst=analyst, learn=choice)
        notes = () if solved is None else (f"ε = {show(solved.epsilon)} is {solved.words}.",)
        facts = _facts(self.session, answered, level, analyst, notes)
        return make_answer(
            answered.plan,
            answered.noisy,
            self.query.after,
            facts,
            consistent=consistent,
            notices=() if answered.free else self.session.notices,
            certify=partial(self.session.ledger.certificate, answered.receipt.number),
        )

    def _spend_at(
        self,
        epsilon: Number | None,
        *,
        delta: Number | None,
        noise: str | None,
        level: Fraction,
        weights: Mapping[str, Number] | None,
    ) -> Spend:
        if epsilon is None:
            raise InvalidParameter(
                "give epsilon (the cost) or error (the error to stay within)\nhint: epsilon=1, or error='2%'"
            )
        read = read_weights(weights, [output.name for output in self.query.outputs])
        budget = self.session.registered.budget
        return make_spend(epsilon, delta, noise, budget, confidence=level, weights=read)

    def _plan_at(self, spend: Spend) -> Plan:
        foreseen = self.session.plan(self.query, spend=spend, analyst=None)
        try:
            return make_plan(self.query, self.session.declaration, spend, foreseen.facts)
        except QueryRefused:
            if not foreseen.wanted:
                raise
        raise QueryRefused(
            f"the error of this question is not known before it is learned {foreseen.wanted[0].words}"
            "\nhint: learn it ahead of time with table.learn(epsilon=0.2, ...) (tacit learn), or give epsilon"
        )

    def _solve(
        self,
        epsilon: Number | None,
        error: Wanted | None,
        for_groups_of: int | None,
        spend_at: Callable[[Number], Spend],
        level: Fraction,
    ) -> Solved | None:
        if error is None:
            return None
        if epsilon is not None:
            raise InvalidParameter("give epsilon or error, not both: one follows from the other")
        population = self.session.declaration.population
        return solve_epsilon(
            error,
            lambda tried: self._plan_at(spend_at(tried)),
            level,
            lambda plan: group_rows(plan, population, for_groups_of),
        )

    def __dir__(self) -> list[str]:  # what Tab offers
        return ["answer", "plan"]

    def __repr__(self) -> str:
        asked = ", ".join(output.name for output in self.query.outputs)
        return printable(
            f"<question about '{self.query.table}': {asked}; .plan(epsilon=1) is free, .answer(epsilon=1) is charged>"
        )


def _loss_with(plan: Plan, learned: Iterable[Fraction]) -> Loss:
    """Return what a call costs with what it learns: all of the epsilon that was asked for."""
    return _spending_also(plan, learned).loss


def _spending_also(plan: Plan, learned: Iterable[Fraction]) -> Plan:
    """Return the plan as one that spends what is learned first too."""
    return replace(plan, spend=replace(plan.spend, epsilon=plan.spend.epsilon + sum(learned, Fraction(0))))


def warn_if_large(epsilon: Fraction | None) -> None:
    """Warn if an epsilon is so large that it gives little protection."""
    words = None if epsilon is None else large_words(epsilon)
    if words is not None:
        warnings.warn(words, LargeEpsilonWarning, stacklevel=3)


def _facts(
    session: Session, answered: Answered, confidence: Fraction, analyst: str | None, notes: tuple[str, ...]
) -> AnswerInfo:
    """Return what an answer says about itself beside its numbers: all public, or read from the ledger."""
    plan, receipt = answered.plan, answered.receipt
    return AnswerInfo(
        loss=loss_record(_loss_with(plan, (fact.epsilon for fact in answered.learned))),
        left=left_record(what_is_left(session, analyst)),
        unit="each row" if plan.unit is None else f"all rows of one {plan.unit}",
        neighbours="add or remove one" if plan.neighbours == "add-remove" else "replace one",
        confidence=confidence,
        durable=receipt.durable,
        free=answered.free,
        version=session.registered.version,
        has_changed=answered.has_changed,
        receipt={"ledger": receipt.ledger, "entry": receipt.number, "hash": receipt.hash, "time": receipt.time},
        notes=notes,
    )


def what_is_left(session: Session, analyst: str | None) -> Left:
    """Return what one more question may ask for; it prints as words."""
    return session.ledger.left(session.registered, analyst)


def left_record(left: Left) -> dict[str, Any]:
    """Return what is left as numbers that may be asked for as they are, and as text."""
    return {
        "epsilon": float_below(left.epsilon),
        "laplace": {"epsilon": float_below(left.laplace), "delta": float_below(left.delta)},
        "gaussian": {"epsilon": float_below(left.gaussian), "delta": float_below(left.delta_gaussian)},
        "rho": None if left.rho is None else float_below(left.rho),
        "questions": left.questions,
        "text": str(left),
    }
