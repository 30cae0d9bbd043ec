"""A question of several parts that are charged as one: a UNION ALL, the levels of a ROLLUP or CUBE, the asides of a
SELECT."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice

from tacit.answer import Answer, AsideRelease, BranchRelease, make_compound_answer
from tacit.asking.describing import PlanReport
from tacit.asking.request import Request, info_of_record
from tacit.asking.request_parts import RequestParts
from tacit.asking.session import Session
from tacit.asking.verbs import rows_most, rows_of_people
from tacit.errors import QueryRefused
from tacit.forecast import Solved, errors_in_words, learning_in_words, plan_in_words, useless_line
from tacit.hold import longest
from tacit.numbers import Number
from tacit.plan import Plan, PlannedTogether
from tacit.query import Branch, Compound, Query, adds_up
from tacit.release import NoisyTable

IN_FULL_MOST = 8  # plans; of more, only the errors are shown
_Parts = list[tuple[Session, Query]]


@dataclass(frozen=True, repr=False)
class CompoundReport(PlanReport):
    """The plans of all parts."""

    labels: tuple[str, ...] = ()
    made_up: tuple[tuple[int, PlannedTogether], ...] = ()  # from made-up facts, by the rows that each person has

    @property
    def parts(self) -> dict[str, list[tuple[int, Plan]]]:
        """The plans of each part from made-up facts."""
        return {label: [(rows, each.plans[at]) for rows, each in self.made_up] for at, label in enumerate(self.labels)}

    @property
    def only_plan(self) -> Plan:
        """Refused: there are several."""
        raise QueryRefused(
            "an audit is of a question of one part, and this has several"
            "\nhint: audit each SELECT of the UNION ALL, and each level, by itself"
        )

    def _plan_lines(self) -> list[str]:
        plans = self.planned.plans
        lines = [f"{len(plans)} questions, charged together: {self.loss}, all or nothing."] if len(plans) > 1 else []
        if self.wanted:
            whole = replace(plans[0], spend=replace(plans[0].spend, epsilon=self.planned.spend.epsilon))
            return [*lines, learning_in_words(whole, self.wanted, self.loss, self.parts, self.confidence)]
        for label, plan in zip(self.labels, plans, strict=True):
            if len(plans) > IN_FULL_MOST:
                lines.append(f"{label}: {errors_in_words(plan, self.confidence)}")
                continue
            lines += [*([f"--- {label}"] if len(plans) > 1 else []), plan_in_words(plan, self.confidence)]
        return lines


@dataclass(frozen=True, repr=False)
class Several:
    """The parts of a question that has several, which are charged as one."""

    compound: Compound
    sessions: tuple[Session, ...]  # of each branch
    aside_sessions: tuple[tuple[Session, ...], ...]  # of each aside of each branch

    @property
    def parts(self) -> RequestParts:
        return RequestParts(
            tuple(both for levels, asides in self._asked() for each in (levels, *asides) for both in each)
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """The different parts in words."""
        return tuple(_label(query) for query in self.parts.queries)

    def draft(self, level: Fraction, plans: Sequence[Plan], noisy: Sequence[NoisyTable], *, consistent: bool) -> Answer:
        """Return the numbers with their intervals, before the ledger has an entry for them."""
        info = info_of_record(plans[0], plans[0].loss, level, ())
        return make_compound_answer(self.compound, self._branches(plans, noisy), info, consistent=consistent)

    def _branches(self, plans: Sequence[Plan], noisy: Sequence[NoisyTable]) -> list[BranchRelease]:
        given = iter(zip(plans, noisy, strict=True))
        released = []
        for branch, (levels, asides) in zip(self.compound.branches, self._asked(), strict=True):
            own = list(islice(given, len(levels)))
            beside = [
                AsideRelease(aside, list(islice(given, len(parts))))
                for aside, parts in zip(branch.asides, asides, strict=True)
            ]
            released.append(
                BranchRelease(
                    tuple(key.name for key in branch.query.keys),
                    branch.levels,
                    tuple(plan for plan, _ in own),
                    tuple(noisy for _, noisy in own),
                    branch.query.after,
                    branch.is_plain,
                    adds_up(branch),
                    tuple(beside),
                )
            )
        return released

    def _asked(self) -> list[tuple[_Parts, list[_Parts]]]:
        """The question of each level of each branch, and those of its asides, with the sessions of their rows."""
        found = []
        for branch, session, of_asides in zip(self.compound.branches, self.sessions, self.aside_sessions, strict=True):
            levels = [(session, query) for query in branch.level_queries()]
            asides = [
                [(own, query) for query in branch.aside_queries(aside)]
                for aside, own in zip(branch.asides, of_asides, strict=True)
            ]
            found.append((levels, asides))
        return found

    @property
    def queries(self) -> list[Query]:
        """The question of each branch, and those of its totals and asides."""
        asked = self._asked()
        asides = [query for _, beside in asked for parts in beside for _, query in parts]
        totals = [query for levels, _ in asked for _, query in levels if query.levels]
        return [*(branch.query for branch in self.compound.branches), *totals, *asides]

    def of_branches(self, given: Mapping[str, Number]) -> dict[str, Number]:
        """Return what is given for columns; a column of a UNION ALL is of every SELECT, whatever they call it."""
        found = dict(given)
        for at, (name, _) in enumerate(self.compound.columns):
            for branch in self.compound.branches if name in given else ():
                found.setdefault(branch.query.after.shown[at].name, given[name])
        return found


def compound_report(
    session: Session, query: Query, request: Request, solved: Solved | None, level: Fraction, labels: tuple[str, ...]
) -> CompoundReport:
    """Return the plans of all parts of a request, and what is learned for them first."""
    foreseen, declared = request.foresee(), session.declaration
    advice = "" if foreseen.wanted else useless_line(foreseen.planned.plans, rows_most(declared), level)
    guesses = rows_of_people(declared, query) if foreseen.wanted else []
    return CompoundReport(
        foreseen.planned,
        level,
        solved,
        fit=request.fit(foreseen),
        wanted=foreseen.wanted,
        advice=(advice,) if advice else (),
        labels=labels,
        made_up=tuple((rows, request.foresee(rows).planned) for rows in guesses),
    )


def several_parts(
    compound: Compound, session_of: Callable[[Query], tuple[Session, Query]]
) -> tuple[Session, Query, Several]:
    """Return several parts, their session, and the first; `session_of` gives a SELECT's own session, and its query with
    ranges."""
    branches, sessions, of_asides = [], [], []
    for branch in compound.branches:
        session, query = session_of(branch.query)
        asides = [session_of(aside.query) for aside in branch.asides]
        named = zip(branch.asides, asides, strict=True)
        branches.append(Branch(query, branch.levels, tuple(replace(aside, query=own) for aside, (_, own) in named)))
        sessions.append(session)
        of_asides.append(tuple(own for own, _ in asides))
    whole = replace(compound, branches=tuple(branches))
    first = branches[0].level_queries()[0]
    held = longest(each.hold for each in (*sessions, *(own for asides in of_asides for own in asides)))
    base = replace(sessions[0].base or sessions[0], hold=held)
    several = Several(whole, tuple(sessions), tuple(of_asides))
    several.parts.queries  # noqa: B018 - refuses here what cannot be charged together
    return base, first, several


def _label(query: Query) -> str:
    by = ", ".join(key.name for key in query.keys)
    return f"by {by}" if by else "in all"
