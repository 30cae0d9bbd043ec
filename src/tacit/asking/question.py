"""`Question`: a checked question that can be planned for free, and answered for its cost.

Every answer goes through the session, which charges before it reads a row.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Never, NoReturn

from tacit.answer import Answer, AnswerInfo, advised, half_width, kept_text, loss_record, make_answer
from tacit.asking.foresight import Foresight, planned_as, rows_most
from tacit.asking.learned import Learn, read_learn
from tacit.asking.plan_report import PlanReport
from tacit.asking.request import Answered, Judge, Request
from tacit.asking.request_parts import OnePart, Parts
from tacit.asking.session import Session
from tacit.errors import (
    InvalidParameter,
    LargeEpsilonWarning,
    QueryRefused,
    frames_of_ours,
    printable,
    unknown_name,
)
from tacit.forecast import (
    Solved,
    Wanted,
    closer_words,
    group_rows,
    refuse_useless,
    solve_epsilon,
)
from tacit.hold import Hold, holding, longest, read_hold
from tacit.ledger import Asker, Left
from tacit.options import require_flags
from tacit.plan import (
    Fact,
    Plan,
    PlannedTogether,
    Spend,
    WantedFact,
    level_name,
    make_plan,
    make_spend,
    read_weights,
)
from tacit.privacy import ApproximateLoss, Loss, Number, PureLoss, confidence_meaning, float_below, large_words, show
from tacit.query import Column, Moves, Query, columns_of, moves_of, question_text, relation_lines, shown_outputs
from tacit.release import NoisyTable

# Names that other libraries have, and the words for them here.
WORDS = {
    **dict.fromkeys(("execute", "run", "collect", "show", "compute", "result"), "write answer(epsilon=1)"),
    **dict.fromkeys(("to_pandas", "to_polars", "to_dicts", "plot"), "answer it first: .answer(epsilon=1)"),
    **dict.fromkeys(("group_by", "groupby", "where", "filter"), "group and filter the table, before the aggregate"),
    **dict.fromkeys(("explain", "cost", "epsilon", "loss"), "write plan(epsilon=1): what the answer costs and gives"),
}


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
        asker = self._asker(analyst)
        spend, solved = self._spend(epsilon, delta, error, for_groups_of, weights, noise, level, asker)
        choice = read_learn(learn, allowed=solved is None)
        return self._report(Request(self.parts, spend, asker, None, choice), solved, level)

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
        accept_noise: bool = False,
        hold: Hold | None = None,
    ) -> Answer:
        """Return the private answer, after charging for it: what `plan` with the same words shows.

        The same question asked again is answered from the record, with the same numbers, for free. `consistent` makes
        the numbers possible ones, at no cost: counts not negative, quantiles rising, values inside their ranges.
        Bounds that nobody gave or learned yet are learned first, once, for a part of epsilon: `learn` is another share
        (0.1), "reuse" or "fresh" for a question with a filter, or False, which refuses instead.
        A question with a number that is foreseen to be mostly noise is refused before the rest is charged, unless
        `accept_noise`; the plan says so, and names what mends it.
        `hold` delays the outcome after a charge until "2s" after asking, or a later tick of that public clock (4 s,
        8 s ...), so that the time shows nothing of the rows. A table's declared hold is kept if it is longer.
        """
        require_flags(consistent=consistent, accept_noise=accept_noise)
        level = confidence_meaning(confidence)
        asker = self._asker(analyst)
        spend, solved = self._spend(epsilon, delta, error, for_groups_of, weights, noise, level, asker)
        warn_if_large(spend.epsilon)
        notes = () if solved is None else (f"ε = {show(solved.epsilon)} is {solved.words}.",)
        # an error was solved for from what is known: to learn more would leave less for it
        choice = read_learn(learn, allowed=solved is None)
        rows = rows_most(self.session.declaration)
        judge = None if accept_noise else partial(refuse_useless, rows=rows, confidence=level)
        request = Request(self.parts, spend, asker, request_id, choice)
        with holding(longest((read_hold(hold), self.session.hold))):
            return self._answered(request, level, notes, judge, consistent=consistent)

    @property
    def parts(self) -> Parts:
        """What is asked, with the session of its rows."""
        return OnePart(((self.session, self.query),))

    def _asker(self, analyst: str | None) -> Asker:
        return self.session.asker(analyst)

    def _report(self, request: Request, solved: Solved | None, level: Fraction) -> PlanReport:
        session = self.session
        foreseen = request.foresee()
        foresight = Foresight(session, self.query, request, level)
        ends = tuple(foresight.ends()) if foreseen.wanted else ()
        return PlanReport(
            foreseen.plan,
            level,
            solved,
            session.engine.path_of(foreseen.plan),
            request.fit(foreseen),
            foreseen.wanted,
            () if session.relation is None else relation_lines(session.relation),
            ends,
            foresight.advice(foreseen.plan, ends),
        )

    def _answered(
        self, request: Request, level: Fraction, notes: tuple[str, ...], judge: Judge | None, *, consistent: bool
    ) -> Answer:
        session, drafts = self.session, Drafts(partial(self._draft, level, consistent=consistent))

        def kept(
            planned: PlannedTogether, plans: Sequence[Plan], noisy: Sequence[NoisyTable], learned: Sequence[Fact]
        ) -> str:
            """Return the numbers with their intervals, the cost and the notes as the ledger keeps them, for people."""
            info = info_of_record(plans[0], planned.loss_with(fact.cost for fact in learned), level, notes)
            return kept_text(recorded(drafts.of(plans, noisy, learned), info, notices=session.notices))

        answered = request.answer(show=kept, judge=judge)
        return recorded(
            drafts.of(answered.plans, answered.noisy, answered.learned),
            answer_info(session, answered, level, request.asker.name, notes),
            notices=() if answered.free else session.notices,
            certify=partial(session.ledger.certificate, answered.receipt.number),
        )

    def _draft(
        self,
        level: Fraction,
        plans: Sequence[Plan],
        noisy: Sequence[NoisyTable],
        learned: Sequence[Fact],
        *,
        consistent: bool,
    ) -> Answer:
        """Return the numbers with their intervals, before the ledger has an entry for them."""
        (plan,), (table,) = plans, noisy
        info = info_of_record(plan, plan.loss, level, ())
        answer = make_answer(plan, table, self.query.after, info, consistent=consistent)
        shown = shown_outputs(plan.after, [output.name for output in plan.outputs])
        widths = {name: half_width(answer, name) for name in shown}
        planned = partial(planned_as, self.session, self.query, plan)
        return advised(answer, closer_words(plan, learned, planned, widths, level))

    def _spend(
        self,
        epsilon: Number | None,
        delta: Number | None,
        error: Wanted | None,
        for_groups_of: int | None,
        weights: Mapping[str, Number] | None,
        noise: str | None,
        level: Fraction,
        asker: Asker,
    ) -> tuple[Spend, Solved | None]:
        """Return what the call may spend, and how it was solved for where an error is given."""
        budget = self.session.registered.budget if delta is not None else _budget_for(self.session, asker)
        spend_at = partial(self._spend_at, delta=delta, noise=noise, level=level, weights=weights, budget=budget)
        solved = self._solve(epsilon, error, for_groups_of, spend_at, level, asker)
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
        outputs = dict.fromkeys(output.name for each in self._queries for output in each.outputs)
        levels = dict.fromkeys(level_name(each, kept) for each in self._queries for kept in each.levels)
        read = read_weights(named, list(outputs | levels))
        return make_spend(epsilon, delta, noise, budget, confidence=level, weights=read)

    @property
    def _queries(self) -> list[Query]:
        """What is asked: a part of a compound question has one of its own."""
        return [self.query]

    def _foreseen_plans(self, spend: Spend, asker: Asker) -> Sequence[Plan]:
        """Return the plans that an epsilon gives; what is learned beside them is a part of the price."""
        foreseen = Request(self.parts, spend, asker).foresee()
        left = spend.epsilon - sum((each.plan.spend.epsilon for each in foreseen.wanted), Fraction(0))
        try:
            plan = make_plan(self.query, self.session.declaration, replace(spend, epsilon=left), foreseen.facts[0])
        except QueryRefused:
            if not foreseen.wanted:
                raise
            refuse_unlearned(foreseen.wanted[0])
        return [plan]

    def _solve(
        self,
        epsilon: Number | None,
        error: Wanted | None,
        for_groups_of: int | None,
        spend_at: Callable[[Number], Spend],
        level: Fraction,
        asker: Asker,
    ) -> Solved | None:
        if error is None:
            return None
        if epsilon is not None:
            raise InvalidParameter("give epsilon or error, not both: one follows from the other")
        population = self.session.declaration.population
        wanted = self._of_outputs(error) if isinstance(error, Mapping) else error
        return solve_epsilon(
            wanted,
            lambda tried: self._foreseen_plans(spend_at(tried), asker),
            level,
            lambda plan: group_rows(plan, population, for_groups_of),
            self._computed(wanted),
        )

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

    if not TYPE_CHECKING:  # a checker should go on finding names that do not exist

        def __getattr__(self, name: str) -> Never:
            raise unknown_name(self, name, WORDS)

    def __dir__(self) -> list[str]:  # what Tab offers
        return ["answer", "plan"]

    def __repr__(self) -> str:
        unit = self.session.declaration.unit
        asked = question_text(self.query, unit if isinstance(unit, str) else None)
        return printable(f"<question: {asked}; .plan(epsilon=1) is free, .answer(epsilon=1) is charged>")


class Drafts:
    """The answer of a release, computed once: the ledger keeps its text before the asker gets its numbers."""

    def __init__(self, make: Callable[[Sequence[Plan], Sequence[NoisyTable], Sequence[Fact]], Answer]) -> None:
        self._make = make
        self._last: tuple[Sequence[NoisyTable], Answer] | None = None

    def of(self, plans: Sequence[Plan], noisy: Sequence[NoisyTable], learned: Sequence[Fact] = ()) -> Answer:
        """Return the answer made from noisy tables; the same tables, given again, are not computed again."""
        if self._last is None or [*map(id, self._last[0])] != [*map(id, noisy)]:
            self._last = noisy, self._make(plans, noisy, learned)
        return self._last[1]


def recorded(
    answer: Answer,
    facts: AnswerInfo,
    *,
    notices: tuple[str, ...],
    certify: Callable[[], Mapping[str, Any]] | None = None,
) -> Answer:
    """Return an answer, made before the ledger had its entry, with the entry's facts and certificate."""
    made = advised(answer, *notices).facts
    notes = (*made.notes, *facts.notes, *notices)
    stated = replace(facts, notes=notes, reading=made.reading, advice=made.advice, bounds=made.bounds)
    return replace(answer, facts=stated, certify=certify)


def _budget_for(session: Session, asker: Asker) -> Loss:
    """Return the budget by which a call that states no delta gets its share of one: the least that applies.

    That of the table, or an analyst's own: a share of the table's could be more than an analyst ever has.
    """
    declared = session.registered.budget
    if not isinstance(declared, ApproximateLoss):
        return declared
    own = [each.loss for each in asker.budgets if each.analyst is not None]
    found = [loss for loss in own if isinstance(loss, PureLoss | ApproximateLoss)]
    return min([declared, *found], key=lambda loss: 0 if isinstance(loss, PureLoss) else loss.delta / loss.epsilon)


def refuse_unlearned(wanted: WantedFact) -> NoReturn:
    """Refuse to solve for an error that is not known before a fact is learned."""
    raise QueryRefused(
        f"the error of this question is not known before it is learned {wanted.words}"
        "\nhint: learn it ahead of time with table.learn(epsilon=0.2, ...) (tacit learn), or give epsilon"
    )


def warn_if_large(epsilon: Fraction | None) -> None:
    """Warn if an epsilon is so large that it gives little protection; the warning names the line that gave it."""
    words = None if epsilon is None else large_words(epsilon)
    if words is not None:
        warnings.warn(words, LargeEpsilonWarning, stacklevel=frames_of_ours() + 1)


def answer_info(
    session: Session, answered: Answered, confidence: Fraction, analyst: str | None, notes: tuple[str, ...] = ()
) -> AnswerInfo:
    """Return what an answer says about itself beside its numbers: all public, or read from the ledger."""
    plan, receipt = answered.plans[0], answered.receipt
    return AnswerInfo(
        loss=loss_record(answered.loss),
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


def info_of_record(plan: Plan, loss: Loss, confidence: Fraction, notes: tuple[str, ...]) -> AnswerInfo:
    """Return what an answer says about itself before it is stored: the record has the rest beside it."""
    return AnswerInfo(
        loss=loss_record(loss),
        left={},
        unit="",
        neighbours=plan.neighbours,
        confidence=confidence,
        durable=True,
        free=False,
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
