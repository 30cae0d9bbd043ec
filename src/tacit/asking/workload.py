"""`Workload`: several questions by name, planned, charged and answered as one: their shares, and the least epsilon for
errors.

Numbers that share cells are fitted in `answer/workloads.py`.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.answer import Answer, answer_of_parts, fitted_together, shown_as_possible
from tacit.asking.request import info_of_record
from tacit.asking.request_parts import RequestParts
from tacit.asking.verbs import QuestionCall
from tacit.errors import InvalidParameter, QueryRefused
from tacit.forecast import Goal, Solved, Wanted, least_epsilon
from tacit.numbers import Number
from tacit.plan import Plan, read_weights, rounded_shares
from tacit.query import Query
from tacit.release import NoisyTable

if TYPE_CHECKING:
    from tacit.asking.question import Question

NAME_LENGTH_MAX = 100
ROOT = 1 / 3  # of a weight, in a share: the shares for which weighted squared errors are least in all


@dataclass(frozen=True, repr=False)
class Workload:
    """Several questions by name, which are charged as one."""

    questions: "Mapping[str, Question]"

    @property
    def parts(self) -> RequestParts:
        """All parts of all questions; equal ones are asked once."""
        return RequestParts(tuple(part for each in self.questions.values() for part in each.parts.questions))

    @property
    def queries(self) -> list[Query]:
        return [query for each in self.questions.values() for query in each.parts.queries]

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the different parts."""
        found = {place: name for name, places in reversed([*self._places()]) for place in places}
        return tuple(found[place] for place in range(len(found)))

    def _places(self) -> Iterator[tuple[str, list[int]]]:
        """Yield the name of each question, and which of the different parts are its own."""
        at, places = 0, self.parts.places
        for name, each in self.questions.items():
            count = len(each.parts.questions)
            yield name, [*places[at : at + count]]
            at += count

    # ---- Shares.

    def weighed(self, weights: Mapping[str, Number] | None) -> tuple[Fraction, ...]:
        """Return the share of each part by the weights of questions; nothing if they are even."""
        given = dict(read_weights(weights, list(self.questions)))
        return self._shares({name: float(given.get(name, 1)) ** ROOT for name in self.questions}) if given else ()

    def _shares(self, sizes: Mapping[str, float]) -> tuple[Fraction, ...]:
        found = [0.0] * len(self.parts.different)
        for name, places in self._places():
            for place in places:
                found[place] = max(found[place], sizes[name])
        return tuple(rounded_shares(found))

    def solve(
        self,
        call: QuestionCall,
        goals: "Callable[[Question, Wanted, Sequence[Plan], int, str], list[Goal]]",
        alone: "Callable[[Question, Wanted], Solved]",
        plans_at: Callable[[Fraction, tuple[Fraction, ...]], Sequence[Plan]],
    ) -> tuple[Solved, tuple[Fraction, ...]]:
        """Return the least epsilon that meets all errors, and its shares; `alone` solves for one, to name an error that
        fails."""
        wanted = self._wanted(call.error)
        least: dict[str, float] = {}
        for name, error in wanted.items():
            try:
                least[name] = float(alone(self.questions[name], error).epsilon)
            except (QueryRefused, InvalidParameter) as refused:
                raise type(refused)(f"of '{name}': {refused}") from None
        rest = min(least.values())
        found: list[tuple[Fraction, Solved, tuple[Fraction, ...]]] = []
        for power in (1, 2):  # of pure noise, and of noise that is charged in rho
            shares = self._shares({name: least.get(name, rest) ** power for name in self.questions})
            first = plans_at(Fraction(1), shares)
            each: list[Goal] = []
            at = 0
            for name, question in self.questions.items():
                count = len(question.parts.questions)
                if name in wanted:
                    each += goals(question, wanted[name], first[at : at + count], at, f"{name}.")
                at += count
            solved = least_epsilon(each, lambda epsilon: plans_at(epsilon, shares), call.level)  # noqa: B023
            found.append((solved.epsilon, solved, shares))
        _, solved, shares = min(found, key=lambda each: each[0])
        return solved, shares

    def _wanted(self, error: Wanted | None) -> dict[str, Wanted]:
        if not isinstance(error, Mapping):
            return {} if error is None else dict.fromkeys(self.questions, error)
        unknown = [name for name in error if name not in self.questions]
        if unknown or not error:
            raise InvalidParameter(
                f"error names {unknown or 'nothing'}, but the questions are {', '.join(self.questions)}"
                f"\nhint: error={{'{next(iter(self.questions))}': '2%'}}"
            )
        return dict(error)

    # ---- Answers.

    def draft(
        self,
        level: Fraction,
        plans: Sequence[Plan],
        noisy: Sequence[NoisyTable],
        drawn: Callable[..., Answer],
        *,
        consistent: bool,
    ) -> Answer:
        """Return the numbers with their intervals, fitted together if they share cells."""
        fitted = fitted_together(plans, noisy, level, [session.source_mark for session, _ in self.parts.questions])
        made: dict[str, Answer] = {}
        at = 0
        for name, question in self.questions.items():
            own = slice(at, at + len(question.parts.questions))
            at = own.stop
            answer = drawn(question, level, fitted.plans[own], fitted.noisy[own], consistent=consistent)
            made[name] = shown_as_possible(answer, fitted, own.start) if consistent else answer
        return answer_of_parts(made, info_of_record(plans[0], plans[0].loss, level, ()), fitted.notes)


def workload_of(questions: "Mapping[str, Question]") -> Workload:
    """Return several questions as one; refuse names and questions that cannot be."""
    if not questions:
        raise InvalidParameter(
            "a workload needs a question\nhint: visits.workload(by_ward=visits.group_by('ward').count())"
        )
    for name, each in questions.items():
        if not isinstance(name, str) or not name.strip() or len(name) > NAME_LENGTH_MAX:
            raise InvalidParameter(f"a question's name must be text of 1 to {NAME_LENGTH_MAX} characters")
        if not hasattr(each, "parts") or each.is_free:
            raise InvalidParameter(
                f"'{name}' must be a question that is charged, not a {type(each).__name__}"
                "\nhint: workload(by_ward=visits.group_by('ward').count())"
            )
        if isinstance(each.several, Workload):
            raise QueryRefused("a workload has questions, and no workload\nhint: give the questions of both")
    found = Workload(dict(questions))
    found.parts.queries  # noqa: B018 - refuses here what cannot be charged together
    return found
