"""`Question`: a checked question that can be planned for free, and answered for its cost.

Every answer goes through the session, which charges before it reads a row.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, NoReturn

from tacit.answer import Answer, AnswerInfo, html_lines, kept_text, loss_record, make_answer
from tacit.errors import InvalidParameter, LargeEpsilonWarning, QueryRefused, printable
from tacit.forecast import Solved, Wanted, group_rows, learning_in_words, plan_in_words, solve_epsilon
from tacit.hold import Hold, holding, read_hold
from tacit.learned import Learn, LearnChoice, read_learn
from tacit.ledger import Fit, Left
from tacit.plan import Plan, Spend, WantedFact, make_plan, make_spend, read_weights
from tacit.privacy import ApproximateLoss, Loss, Number, PureLoss, confidence_meaning, float_below, large_words, show
from tacit.query import Column, Moves, Query, columns_of, moves_of, question_text, relation_lines
from tacit.release import NoisyTable
from tacit.session import Answered, Session
from tacit.together import AnsweredTogether

# What a solved epsilon says where bounds by hand drop rows and nobody has learned how many rows people have.
NOISE_ALONE = "of the noise alone: what the bounds leave out is not known before it is learned (table.learn)"


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
    joins: tuple[str, ...] = ()  # what each join does to one unit's rows, a line each

    @property
    def only_plan(self) -> Plan:
        """The plan, of a question that has one: what audits take."""
        return self.plan

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
        if self.joins:
            first, _, rest = text.partition("\n")
            text = "\n".join([first, *self.joins, rest])
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
    is_free: ClassVar[bool] = False  # answering reads nothing and costs nothing, so that no epsilon is needed

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
        spend, solved = self._spend(epsilon, delta, error, for_groups_of, weights, noise, level, analyst)
        return self._report(spend, solved, level, analyst, read_learn(learn, allowed=solved is None))

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
        hold: Hold | None = None,
    ) -> Answer:
        """Return the private answer, after charging for it: what `plan` with the same words shows.

        The same question asked again is answered from the record, with the same numbers, for free. `consistent` makes
        the numbers possible ones, at no cost: counts not negative, quantiles rising, values inside their ranges.
        Bounds that nobody gave or learned yet are learned first, once, for a part of epsilon: `learn` is another share
        (0.1), "reuse" or "fresh" for a question with a filter, or False, which refuses instead.
        `hold` is when it may leave: "2s" after asking, whatever happens after the charge, or 4 s, 8 s and so on, so
        that the time it takes tells nothing of the rows.
        """
        if not isinstance(consistent, bool):  # all words are read before the charge
            raise InvalidParameter(f"consistent must be True or False, not {type(consistent).__name__}")
        level = confidence_meaning(confidence)
        spend, solved = self._spend(epsilon, delta, error, for_groups_of, weights, noise, level, analyst)
        warn_if_large(spend.epsilon)
        notes = () if solved is None else (f"ε = {show(solved.epsilon)} is {solved.words}.",)
        # an error was solved for from what is known: to learn more would leave less for it
        choice = read_learn(learn, allowed=solved is None)
        with holding(read_hold(hold) or self.session.hold):
            return self._answered(spend, level, request_id, analyst, choice, notes, consistent=consistent)

    def _report(
        self, spend: Spend, solved: Solved | None, level: Fraction, analyst: str | None, learn: LearnChoice
    ) -> PlanReport:
        session = self.session
        foreseen = session.plan(self.query, spend=spend, analyst=analyst, learn=learn)
        path = session.engine.path_of(foreseen.plan)
        fit = session.fit(foreseen, analyst)
        joins = () if session.relation is None else relation_lines(session.relation)
        return PlanReport(foreseen.plan, level, solved, path, fit, foreseen.wanted, foreseen.by_hand, joins)

    def _answered(
        self,
        spend: Spend,
        level: Fraction,
        request_id: str | None,
        analyst: str | None,
        learn: LearnChoice,
        notes: tuple[str, ...],
        *,
        consistent: bool,
    ) -> Answer:
        answered = self.session.answer(
            self.query,
            spend=spend,
            request_id=request_id,
            analyst=analyst,
            learn=learn,
            show=partial(self._kept, level, consistent=consistent),
        )
        loss = _loss_with(answered.plan, (fact.epsilon for fact in answered.learned))
        facts = answer_info(self.session, answered.plan, answered, loss, level, analyst, notes)
        return make_answer(
            answered.plan,
            answered.noisy,
            self.query.after,
            facts,
            consistent=consistent,
            notices=() if answered.free else self.session.notices,
            certify=partial(self.session.ledger.certificate, answered.receipt.number),
        )

    def _kept(self, level: Fraction, plan: Plan, noisy: NoisyTable, *, consistent: bool) -> str:
        """Return the numbers with their error bars as the ledger keeps them, for people to read."""
        return kept_text(make_answer(plan, noisy, self.query.after, info_of_record(plan, level), consistent=consistent))

    def _spend(
        self,
        epsilon: Number | None,
        delta: Number | None,
        error: Wanted | None,
        for_groups_of: int | None,
        weights: Mapping[str, Number] | None,
        noise: str | None,
        level: Fraction,
        analyst: str | None,
    ) -> tuple[Spend, Solved | None]:
        """Return what the call may spend, and how it was solved for where an error is given."""
        budget = self.session.registered.budget if delta is not None else _budget_for(self.session, analyst)
        spend_at = partial(self._spend_at, delta=delta, noise=noise, level=level, weights=weights, budget=budget)
        solved = self._solve(epsilon, error, for_groups_of, spend_at, level, analyst)
        return spend_at(solved.epsilon if solved else epsilon), solved

    def _spend_at(
        self,
        epsilon: Number | None,
        *,
        delta: Number | None,
        noise: str | None,
        level: Fraction,
        weights: Mapping[str, Number] | None,
        budget: Loss,
    ) -> Spend:
        if epsilon is None:
            raise InvalidParameter(
                "give epsilon (the cost) or error (the error to stay within)\nhint: epsilon=1, or error='2%'"
            )
        named = self._of_outputs(weights) if isinstance(weights, Mapping) else weights
        read = read_weights(
            named, list(dict.fromkeys(output.name for each in self._queries for output in each.outputs))
        )
        return make_spend(epsilon, delta, noise, budget, confidence=level, weights=read)

    @property
    def _queries(self) -> list[Query]:
        """What is asked: a part of a compound question has one of its own."""
        return [self.query]

    def _foreseen_plans(self, spend: Spend, analyst: str | None) -> tuple[Sequence[Plan], bool]:
        """Return the plans that an epsilon gives, and whether the price includes what is learned beside them."""
        foreseen = self.session.plan(self.query, spend=spend, analyst=analyst)
        if foreseen.by_hand:  # what is learned beside it is a part of the price
            left = spend.epsilon - sum((each.plan.spend.epsilon for each in foreseen.wanted), Fraction(0))
            spend = replace(spend, epsilon=left)
        try:
            plan = make_plan(self.query, self.session.declaration, spend, foreseen.facts)
        except QueryRefused:
            if not foreseen.wanted:
                raise
            refuse_unlearned(foreseen.wanted[0])
        return [plan], foreseen.by_hand

    def _solve(
        self,
        epsilon: Number | None,
        error: Wanted | None,
        for_groups_of: int | None,
        spend_at: Callable[[Number], Spend],
        level: Fraction,
        analyst: str | None,
    ) -> Solved | None:
        if error is None:
            return None
        if epsilon is not None:
            raise InvalidParameter("give epsilon or error, not both: one follows from the other")
        population = self.session.declaration.population
        wanted = self._of_outputs(error) if isinstance(error, Mapping) else error
        solved = solve_epsilon(
            wanted,
            lambda tried: self._foreseen_plans(spend_at(tried), analyst)[0],
            level,
            lambda plan: group_rows(plan, population, for_groups_of),
            self._computed(wanted),
        )
        by_hand = self._foreseen_plans(spend_at(solved.epsilon), analyst)[1]
        return replace(solved, words=f"{solved.words}; {NOISE_ALONE}") if by_hand else solved

    def _computed(self, error: Wanted) -> dict[str, Moves]:
        """Return how far the computed columns that have an error move with what they are computed from."""
        found: dict[str, Moves] = {}
        for query in self._queries:
            outputs = [output.name for output in query.outputs]
            for each in query.after.shown:
                parts = sorted(columns_of(each.expression) & set(outputs))
                is_asked = not isinstance(error, Mapping) or each.name in error
                if isinstance(each.expression, Column) or each.name in outputs or not parts or not is_asked:
                    continue
                moves = moves_of(each.expression, outputs)
                if moves is None:
                    raise InvalidParameter(
                        f"how far off '{each.name}' is depends on the values of {' and '.join(parts)}, which are not "
                        f"public\nhint: give epsilon, or an error of what it is computed from, e.g. "
                        f"error={{'{parts[0]}': {show(Fraction(1))}}}"
                    )
                found[each.name] = moves
        return found

    def _of_outputs(self, given: Mapping[str, Number]) -> dict[str, Number]:
        """Return what is given for shown columns as given for the aggregates that they are."""
        same = {
            each.name: each.expression.name
            for query in self._queries
            for each in query.after.shown
            if isinstance(each.expression, Column)
        }
        outputs = {output.name for query in self._queries for output in query.outputs}
        return {name if name in outputs else same.get(name, name): wanted for name, wanted in given.items()}

    def __dir__(self) -> list[str]:  # what Tab offers
        return ["answer", "plan"]

    def __repr__(self) -> str:
        unit = self.session.declaration.unit
        asked = question_text(self.query, unit if isinstance(unit, str) else None)
        return printable(f"<question: {asked}; .plan(epsilon=1) is free, .answer(epsilon=1) is charged>")


def _budget_for(session: Session, analyst: str | None) -> Loss:
    """Return the budget by which a call that states no delta gets its share of one: the least that applies.

    That of the table, or an analyst's own: a share of the table's could be more than an analyst ever has.
    """
    declared = session.registered.budget
    if not isinstance(declared, ApproximateLoss):
        return declared
    budgets = [status.budget for status in session.ledger.budget_status(session.registered, analyst)]
    own = [each.loss for each in budgets if each.analyst is not None]
    found = [loss for loss in own if isinstance(loss, PureLoss | ApproximateLoss)]
    return min([declared, *found], key=lambda loss: 0 if isinstance(loss, PureLoss) else loss.delta / loss.epsilon)


def refuse_unlearned(wanted: WantedFact) -> NoReturn:
    """Refuse to solve for an error that is not known before a fact is learned."""
    raise QueryRefused(
        f"the error of this question is not known before it is learned {wanted.words}"
        "\nhint: learn it ahead of time with table.learn(epsilon=0.2, ...) (tacit learn), or give epsilon"
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


def answer_info(
    session: Session,
    plan: Plan,
    answered: Answered | AnsweredTogether,
    loss: Loss,
    confidence: Fraction,
    analyst: str | None,
    notes: tuple[str, ...] = (),
) -> AnswerInfo:
    """Return what an answer says about itself beside its numbers: all public, or read from the ledger."""
    receipt = answered.receipt
    return AnswerInfo(
        loss=loss_record(loss),
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


def info_of_record(plan: Plan, confidence: Fraction) -> AnswerInfo:
    """Return what an answer says about itself before it is stored: the record has the rest beside it."""
    return AnswerInfo(
        loss={}, left={}, unit="", neighbours=plan.neighbours, confidence=confidence, durable=True, free=False
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
