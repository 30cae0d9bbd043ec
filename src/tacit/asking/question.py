"""`Question`: a checked question that can be planned for free, and answered for its cost.

Every answer goes through the session, which charges before it reads a row.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, NoReturn

from tacit.answer import Answer, Rehearsal, advised, half_width, kept_text, make_answer
from tacit.asking.describing import PlanReport
from tacit.asking.learned import read_learn
from tacit.asking.request import Drafts, Request, answer_info, info_of_record, recorded
from tacit.asking.request_parts import OnePart, RequestParts
from tacit.asking.session import Session
from tacit.asking.united_question import Several, compound_report, several_parts
from tacit.asking.verbs import Foresight, QuestionCall, QuestionVerbs, planned_as, rows_most
from tacit.asking.workload import Workload, workload_of
from tacit.errors import (
    InvalidParameter,
    LargeEpsilonWarning,
    QueryRefused,
    frames_of_ours,
    printable,
)
from tacit.forecast import (
    Goal,
    Solved,
    Wanted,
    closer_words,
    goals_of,
    goals_of_level,
    group_rows,
    least_epsilon,
    refuse_useless,
)
from tacit.hold import holding, longest, read_hold
from tacit.ledger import Asker
from tacit.numbers import Number, show
from tacit.plan import (
    Fact,
    Plan,
    PlannedTogether,
    Spend,
    WantedFact,
    make_plan,
    make_spend,
    read_weights,
)
from tacit.privacy import ApproximateLoss, Loss, PureLoss, large_words
from tacit.query import (
    Branch,
    Column,
    Compound,
    Moves,
    Output,
    Query,
    columns_of,
    moves_of,
    question_text,
    relation_lines,
)
from tacit.release import NoisyTable

LEVEL_WEIGHTS = (1, 4, 16, 64, 256)  # of levels with a wanted error: the one with the least epsilon is taken


@dataclass(frozen=True, repr=False)
class Question(QuestionVerbs[PlanReport]):
    """A checked question: `plan` it for free, `answer` it for what it costs."""

    session: Session
    query: Query
    several: Several | Workload | None = None  # parts that are charged as one: `query` is the first
    is_free: ClassVar[bool] = False  # answering reads nothing and costs nothing, so that no epsilon is needed

    def rehearse(self, *, epsilon: Sequence[Number], on: Any) -> Rehearsal:
        """Return how far answers at each ε would be from the truth: the whole release on rows that are public.

        `on` is a file or a frame with this table's columns: public data, made-up rows, or an old table that is not
        secret any more. It is treated as public: its exact numbers are computed and shown. Nothing is charged. A
        source that is protected in the ledger is refused.
        """
        from tacit.asking.rehearsal import rehearse

        return rehearse(self, epsilon, on)

    def _planned(self, call: QuestionCall) -> PlanReport:
        request, solved, level = self._request(call)
        return self._report(request, solved, level)

    def _answered(self, call: QuestionCall) -> Answer:
        request, solved, level = self._request(call, call.request_id)
        warn_if_large(request.spend.epsilon)
        notes = () if solved is None else (f"ε = {show(solved.epsilon)} is {solved.words}.",)
        rows = rows_most(self.session.declaration)
        judge = None if call.accept_noise else partial(refuse_useless, rows=rows, confidence=level)
        session, drafts = self.session, Drafts(partial(self._draft, level, consistent=call.consistent))

        def kept(
            planned: PlannedTogether, plans: Sequence[Plan], noisy: Sequence[NoisyTable], learned: Sequence[Fact]
        ) -> str:
            """Return the numbers with their intervals, the cost and the notes as the ledger keeps them, for people."""
            info = info_of_record(plans[0], planned.loss_with(fact.cost for fact in learned), level, notes)
            return kept_text(recorded(drafts.of(plans, noisy, learned), info, notices=session.notices))

        with holding(longest((read_hold(call.hold), session.hold))):
            answered = request.answer(show=kept, judge=judge)
            return recorded(
                drafts.of(answered.plans, answered.noisy, answered.learned),
                answer_info(request.payer, answered, level, request.asker.name, notes),
                notices=() if answered.free else session.notices,
                certify=partial(session.ledger.certificate, answered.receipt.number),
            )

    def _about_population(self) -> "Question":
        """Return the question with the standard deviation of each mean of a number; refuse several rows of a person."""
        declared, outputs = self.session.declaration, self.query.outputs
        means = [each.aggregate for each in outputs if each.aggregate.kind == "mean"]
        if self.several is not None or not means:
            return super()._about_population()  # type: ignore[return-value] # it refuses
        if declared.unit_column is not None and 1 not in (declared.rows_per_unit, declared.most_rows_per_unit):
            raise InvalidParameter(
                "numbers about a population need one row for each person: rows of the same person are not independent"
                "\nhint: declare rows_per_unit=1 if that is so, or ask about one number for each person"
            )
        known = [each.aggregate.expression for each in outputs if each.aggregate.kind in ("std", "variance")]
        wanted = {each.expression: each for each in means if each.expression not in known}
        spreads = [
            Output(f"spread_{at}", replace(each, kind="std"))
            for at, (of, each) in enumerate(wanted.items())
            if not (isinstance(of, Column) and declared.columns[of.name].type == "bool")  # a share has its own spread
        ]
        columns = (*self.query.columns, *(each.name for each in spreads)) if self.query.columns else ()
        return replace(self, query=replace(self.query, outputs=(*outputs, *spreads), columns=columns))

    def _request(self, call: QuestionCall, request_id: str | None = None) -> tuple[Request, Solved | None, Fraction]:
        """Return the request of a call, how its epsilon was solved for if an error is given, and the confidence."""
        level, asker = call.level, self.parts.payer.asker(call.analyst)
        spend, solved = self._spend(call, asker)
        # an error was solved for from what is known: to learn more would leave less for it
        choice = read_learn(call.learn)
        choice = choice if solved is None else replace(choice, allowed=False)
        return Request(self.parts, spend, asker, request_id, choice), solved, level

    @property
    def parts(self) -> RequestParts:
        """What is asked, with the session of its rows."""
        return OnePart(((self.session, self.query),)) if self.several is None else self.several.parts

    def _report(self, request: Request, solved: Solved | None, level: Fraction) -> PlanReport:
        session = self.session
        if self.several is not None:
            return compound_report(session, self.query, request, solved, level, self.several.labels)
        foreseen = request.foresee()
        foresight = Foresight(session, self.query, request, level)
        ends = tuple(foresight.ends()) if foreseen.wanted else ()
        return PlanReport(
            foreseen.planned,
            level,
            solved,
            session.engine.path_of(foreseen.plan),
            request.fit(foreseen),
            foreseen.wanted,
            () if session.relation is None else relation_lines(session.relation),
            ends,
            foresight.advice(foreseen.plan, ends),
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
        """Return the numbers with their intervals and advice, before the ledger has an entry for them."""
        answer = _drawn(self, level, plans, noisy, consistent=consistent)
        if self.several is not None:
            return answer
        (plan,) = plans
        shown = plan.after.shown_outputs([output.name for output in plan.outputs])
        widths = {name: half_width(answer, name) for name in shown}
        planned = partial(planned_as, self.session, self.query, plan)
        return advised(answer, closer_words(plan, learned, planned, widths, level))

    def _spend(self, call: QuestionCall, asker: Asker) -> tuple[Spend, Solved | None]:
        """Return what the call may spend, and how it was solved for where an error is given."""
        budget = self.session.registered.budget if call.delta is not None else _budget_for(self.session, asker)
        if call.error is None:
            return self._spend_at(call.epsilon, call, budget), None
        if call.epsilon is not None:
            raise InvalidParameter("give epsilon or error, not both: one follows from the other")
        if not isinstance(self.several, Workload):
            tried = [(each, self._solved_alone(each, call.error, budget, asker)) for each in self._with_weights(call)]
            chosen, solved = min(tried, key=lambda each: each[1].epsilon)
            return self._spend_at(solved.epsilon, chosen, budget), solved
        solved, shares = self.several.solve(
            call,
            lambda question, wanted, *rest: question._goals(call, wanted, *rest),
            lambda question, wanted: question._solved_alone(replace(call, weights=None), wanted, budget, asker),
            lambda tried, parts: self._foreseen_plans(self._spend_at(tried, call, budget, parts), asker),
        )
        return self._spend_at(solved.epsilon, call, budget, shares), solved

    def _spend_at(
        self, epsilon: Number | None, call: QuestionCall, budget: Loss, parts: tuple[Fraction, ...] = ()
    ) -> Spend:
        if epsilon is None:
            raise InvalidParameter(
                "give epsilon (the cost) or error (the error to stay within)\nhint: epsilon=1, or error='2%'"
            )
        if isinstance(self.several, Workload):
            spend = make_spend(epsilon, call.delta, call.noise, budget, confidence=call.level)
            return replace(spend, parts=parts or self.several.weighed(call.weights))
        named = self._of_outputs(call.weights) if isinstance(call.weights, Mapping) else call.weights
        outputs = dict.fromkeys(output.name for each in self._queries for output in each.outputs)
        levels = dict.fromkeys(each.level_name(kept) for each in self._queries for kept in each.levels)
        weights = read_weights(named, list(outputs | levels))
        return make_spend(epsilon, call.delta, call.noise, budget, confidence=call.level, weights=weights)

    @property
    def _queries(self) -> list[Query]:
        return [self.query] if self.several is None else self.several.queries

    def _foreseen_plans(self, spend: Spend, asker: Asker) -> Sequence[Plan]:
        """Return the plans that an epsilon gives; what is learned beside them is a part of the price."""
        foreseen = Request(self.parts, spend, asker).foresee()
        if self.several is not None:
            if foreseen.wanted:
                refuse_unlearned(foreseen.wanted[0])
            return self.parts.plans_in_places(foreseen.planned)
        left = spend.epsilon - sum((each.plan.spend.epsilon for each in foreseen.wanted), Fraction(0))
        try:
            plan = make_plan(self.query, self.session.declaration, replace(spend, epsilon=left), foreseen.facts[0])
        except QueryRefused:
            if not foreseen.wanted:
                raise
            refuse_unlearned(foreseen.wanted[0])
        return [plan]

    @property
    def _levels(self) -> dict[str, tuple[int, ...]]:
        return {each.level_name(kept): kept for each in self._queries for kept in each.levels}

    def _with_weights(self, call: QuestionCall) -> list[QuestionCall]:
        """Return a call as it is; if it gives levels an error, with several weights of theirs: the best is taken."""
        named = [name for name in call.error if name in self._levels] if isinstance(call.error, Mapping) else []
        if not named or call.weights is not None:
            return [call]
        return [replace(call, weights=dict.fromkeys(named, weight)) for weight in LEVEL_WEIGHTS]

    def _solved_alone(self, call: QuestionCall, error: Wanted, budget: Loss, asker: Asker) -> Solved:
        def plans_at(tried: Fraction) -> Sequence[Plan]:
            return self._foreseen_plans(self._spend_at(tried, call, budget), asker)

        return least_epsilon(self._goals(call, error, plans_at(Fraction(1))), plans_at, call.level)

    def _goals(
        self, call: QuestionCall, error: Wanted, plans: Sequence[Plan], start: int = 0, label: str = ""
    ) -> list[Goal]:
        """Return the error that is allowed for each column."""
        population = self.session.declaration.population

        sizes = partial(group_rows, population=population, for_groups_of=call.for_groups_of)
        levels = self._levels
        given = dict(error) if isinstance(error, Mapping) else {}
        named = {name: given.pop(name) for name in [*given] if name in levels}
        found = [goal for name, own in named.items() for goal in goals_of_level(own, levels[name], name, plans, sizes)]
        if named and not given:
            return [replace(goal, plan=goal.plan + start, name=label + goal.name) for goal in found]
        wanted = self._of_outputs(given) if isinstance(error, Mapping) else error
        return found + goals_of(wanted, plans, sizes, self._computed(wanted), start=start, label=label)

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
        given = self.several.of_branches(given) if isinstance(self.several, Several) else given
        same = {
            each.name: each.expression.name
            for query in self._queries
            for each in query.after.shown
            if isinstance(each.expression, Column)
        }
        outputs = {output.name for query in self._queries for output in query.outputs}
        return {name if name in outputs else same.get(name, name): wanted for name, wanted in given.items()}

    def __repr__(self) -> str:
        if self.several is not None:
            asked = f"{len(self.parts.different)} questions about '{self.query.table}' in one"
            return f"<{printable(asked)}; .plan(epsilon=1) is free, .answer(epsilon=1) is charged once>"
        unit = self.session.declaration.unit
        asked = question_text(self.query, unit if isinstance(unit, str) else None)
        return printable(f"<question: {asked}; .plan(epsilon=1) is free, .answer(epsilon=1) is charged>")


def question_of(session: Session, query: Query) -> Question:
    """Return the question of a checked query; one with totals is of several levels."""
    if not query.levels:
        return Question(session, query)
    names = [key.name for key in query.keys]
    levels = tuple(tuple(names[each] for each in level) for level in query.levels)
    compound = Compound((Branch(replace(query, levels=()), levels),))
    return Question(*several_parts(compound, lambda own: (session, own)))


def learn_ahead(question: Question, call: QuestionCall) -> tuple[Fact, ...]:
    """Charge for and learn the facts that the answer to a call would learn first; its plan then states its error."""
    request, _, _ = question._request(call)
    with holding(longest((read_hold(call.hold), question.session.hold))):
        return request.learn_ahead()


def _drawn(
    question: Question, level: Fraction, plans: Sequence[Plan], noisy: Sequence[NoisyTable], *, consistent: bool
) -> Answer:
    """Return the numbers of a question with their intervals."""
    if isinstance(question.several, Workload):
        return question.several.draft(level, plans, noisy, _drawn, consistent=consistent)
    if question.several is not None:
        return question.several.draft(level, plans, noisy, consistent=consistent)
    (plan,), (table,) = plans, noisy
    info = info_of_record(plan, plan.loss, level, ())
    return make_answer(plan, table, question.query.after, info, consistent=consistent)


def answer_columns(question: Question) -> dict[str, str]:
    """Return the columns of an answer with their types, the ends of intervals among them: free, and without a plan."""
    several = getattr(question, "several", None)  # a question for public keys has no parts
    if isinstance(several, Workload):
        raise QueryRefused("several questions have no common columns\nhint: ask one SELECT at a time")
    if several is not None:
        return dict[str, str](several.compound.answer_types([each.declaration for each in several.sessions]))
    branch = Branch(question.query, (tuple(key.name for key in question.query.keys),))
    return dict[str, str](Compound((branch,)).answer_types([question.session.declaration]))


def workload_question(questions: Mapping[str, Question]) -> Question:
    """Return several questions, by name, as one."""
    workload = workload_of(questions)
    first = next(iter(questions.values()))
    held = longest(each.session.hold for each in questions.values())
    return Question(replace(first.session.base or first.session, hold=held), first.query, workload)


def _budget_for(session: Session, asker: Asker) -> Loss:
    """Return the budget that a call without a delta has its share of: the table's, or an analyst's own if that allows
    less."""
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
