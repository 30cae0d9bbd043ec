"""Before a question is paid, its plan gives the range of its errors, numbers that would be useless, and closer
questions.

All of it is planned from the question, public facts and facts that were paid for, without reading a row.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import nan

from tacit.asking.request import Request
from tacit.asking.request_parts import OnePart
from tacit.asking.session import Session
from tacit.errors import TacitError
from tacit.forecast import PEOPLE, ROWS_MOST, closer_words, expected_error, useless_line
from tacit.plan import CountRows, CountUnits, CountValues, Plan, Quantile, make_plan
from tacit.query import PostProcessing, Query
from tacit.tables import Declaration


@dataclass(frozen=True)
class Foresight:
    """A question as it is planned: how much it may spend, and who asks."""

    session: Session
    query: Query
    request: Request
    level: Fraction

    def ends(self) -> Iterator[tuple[int, Plan]]:
        """Yield the plans from made-up facts in which each person has one row, and in which each has many."""
        for rows in rows_of_people(self.session.declaration, self.query):
            yield rows, self.request.foresee(rows).plan

    def advice(self, plan: Plan, ends: Sequence[tuple[int, Plan]]) -> tuple[str, ...]:
        """Return that answering will be refused, if it will, and the closer questions; `ends` has plans from
        made-up facts."""
        useless = "" if ends else useless_line([plan], rows_most(self.session.declaration), self.level)
        return tuple(line for line in (useless, self._closer(plan, ends)) if line)

    def _closer(self, plan: Plan, ends: Sequence[tuple[int, Plan]]) -> str:
        """Return what would be closer than a plan: before anything is learned, as if each person had one row."""
        rows = float(PEOPLE) if ends else None
        plan = ends[0][1] if ends else plan
        widths: dict[str, float | None] = {}
        shown = plan.after.shown_outputs([output.name for output in plan.outputs])
        for each in (each for each in plan.outputs if each.name in shown):
            error = expected_error(each, plan, self.level, rows=rows)
            is_count = isinstance(each, CountRows | CountUnits | CountValues)
            is_known = error is None or is_count or (not ends and not isinstance(each, Quantile))
            widths[each.name] = error if is_known else nan

        def planned(epsilon: Fraction, output: str | None) -> Plan | None:
            if not ends or output is None:
                return planned_as(self.session, self.query, plan, epsilon, output)
            alone = OnePart(((self.session, _alone(self.query, output)),))
            request = replace(self.request, parts=alone, spend=replace(self.request.spend, weights=()))
            return request.foresee(ends[0][0]).plan

        learned = [fact for fact in plan.learned if not fact.entry]
        closer = closer_words(plan, learned, planned, widths, self.level, rows=rows, most=len(plan.outputs) + 2)
        return f"{closer[:-1]} (with one row each)." if closer and ends[1:] else closer


def planned_as(session: Session, query: Query, plan: Plan, epsilon: Fraction, output: str | None) -> Plan | None:
    """Return a question's plan at another epsilon from the same facts, of one output only if one is named."""
    weights = tuple(each for each in plan.spend.weights if output in (None, each[0]))
    spend = replace(plan.spend, epsilon=epsilon, weights=weights)
    asked = query if output is None else _alone(query, output)
    try:
        return make_plan(asked, session.declaration, spend, {fact.key: fact for fact in plan.learned})
    except TacitError:
        return None


def _alone(query: Query, output: str) -> Query:
    outputs = tuple(each for each in query.outputs if each.name == output)
    return replace(query, outputs=outputs, after=PostProcessing(), columns=())


def rows_of_people(declared: Declaration, query: Query) -> list[int]:
    """Return the fewest and the most rows that a person is taken to have before anything is learned."""
    if not isinstance(declared.unit, str):
        return [1]
    groups = min(declared.groups_per_unit or ROWS_MOST, ROWS_MOST) if query.keys else 1
    by_hand = ROWS_MOST if declared.rows_per_unit is None else declared.rows_per_unit * groups
    return sorted({1, min(ROWS_MOST, by_hand, declared.most_rows_per_unit or ROWS_MOST)})


def rows_most(declared: Declaration) -> int | None:
    """Return how many rows there are at most, if that is public."""
    most = declared.rows_per_unit if isinstance(declared.rows_per_unit, int) else None
    people = None if declared.population is None or most is None else declared.population * most
    return min((each for each in (declared.rows, people) if each is not None), default=None)
