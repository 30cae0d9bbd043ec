"""Audit a question by its plan, on made-up neighbouring tables. No row is read and the audit is free.

First the plan is replayed without noise, which is deterministic; then the real release is drawn many times from the
pair of tables that is farthest apart, and the loss that can be demonstrated is held against the one it would cost.
"""

import os
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.auditing.drawing import draw_releases, more_people, only_groups
from tacit.auditing.function_audit import Claim, judge
from tacit.auditing.neighbours import make_tables
from tacit.auditing.replay import (
    Replay,
    Trace,
    cells_of,
    compare_traces,
    pair_name,
    pairs_of,
    share_used,
    trace_all_and_alone,
)
from tacit.auditing.result import AuditResult
from tacit.errors import InvalidParameter, json_text
from tacit.exact import ExactTable
from tacit.plan import Plan
from tacit.privacy import Number, confidence_meaning, whole
from tacit.query import Query
from tacit.tables import Declaration

if TYPE_CHECKING:
    from tacit.asking import Question

DRAWS = 40_000
DRAWS_OF_SLOW = 2_000
GROUPS_MOST = 4


@dataclass(frozen=True)
class QuestionAudit:
    """The findings about a question: the replay of its plan, and the loss that its noisy answers demonstrate."""

    replay: Replay
    result: AuditResult
    pair: str  # which made-up newcomer the draws are about

    @property
    def violated(self) -> bool:
        """Whether the replay broke or the answers showed more than the loss they would cost."""
        return self.result.violated or not self.replay.passed

    def lines(self) -> list[str]:
        """Return the finding as lines to print."""
        findings = [*self.replay.lines(), *self.result.lines()]
        return [
            *findings,
            f"The tables are made up from the declaration and the question; the draws are about: {self.pair}.",
            "No row was read and no charge was made.",
        ]

    def to_json(self) -> str:
        """Return the finding as JSON."""
        found = {"pairs": self.replay.pairs, "broken": list(self.replay.broken), "moved": self.replay.moved}
        record = {"violated": self.violated, "replay": found, "pair": self.pair, "draws": self.result.to_dict()}
        return json_text(record)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Return the picture of the draws, written to `path` if one is given."""
        return self.result.plot(path)

    def __str__(self) -> str:
        return "\n".join(self.lines())

    __repr__ = __str__


def audit_question(
    question: "Question",
    *,
    epsilon: Number,
    delta: Number | None = None,
    noise: str | None = None,
    draws: int | None = None,
    confidence: Number = "0.999999",
) -> QuestionAudit:
    """Return what replay and sampling find about a question, on made-up neighbouring tables; free, and no row is read.

    >>> import pandas as pd, tacit
    >>> people = pd.DataFrame({"person": [1, 2], "city": ["A", "B"]})
    >>> table = tacit.table(people, unit="person", rows_per_unit=1, budget=tacit.epsilon(1), ledger=":memory:")
    >>> tacit.audit_question(table.count(), epsilon=1, draws=2_000).violated
    False
    """
    if not (hasattr(question, "plan") and hasattr(question, "query")):
        raise InvalidParameter(
            f"an audit is of a question, not of a {type(question).__name__}"
            "\nhint: tacit.audit_question(table.count(), epsilon=1)"
        )
    plan = question.plan(epsilon, delta, noise=noise).only_plan
    return audit_plan(
        plan, question.session.declaration, question.query, draws=draws, confidence=confidence_meaning(confidence)
    )


def audit_plan(
    plan: Plan, declaration: Declaration, query: Query, *, draws: int | None, confidence: Fraction
) -> QuestionAudit:
    """Return what replay and sampling find about a plan."""
    made = make_tables(declaration, query)
    traces, alone = trace_all_and_alone(plan, declaration, made)
    replayed = compare_traces(plan, traces, alone)
    one, other = max(pairs_of(plan, traces), key=lambda pair: share_used(plan, traces[pair[0]], traces[pair[1]]))
    usual = DRAWS_OF_SLOW if plan.quantiles or plan.choice else DRAWS
    count = usual if draws is None else whole(draws, name="draws", least=100)
    claim = Claim(plan.spend.epsilon, getattr(plan.loss, "delta", Fraction(0)), confidence)
    gaussian = plan.noise == "gaussian" and not plan.quantiles and plan.threshold is None and plan.choice is None
    sides = _telling_tables(plan, traces[one], traces[other])
    outputs = [["the question failed"] * count if side is None else draw_releases(plan, side, count) for side in sides]
    result = judge(outputs[0], outputs[1], claim, noise="gaussian" if gaussian else None)
    return QuestionAudit(replayed, result, pair_name(one, other))


def _telling_tables(plan: Plan, before: Trace, after: Trace) -> tuple[ExactTable | None, ExactTable | None]:
    """Return the two exact tables to draw from: only groups in which they differ, and enough people to be shown."""
    if before.exact is None or after.exact is None or plan.choice is not None:
        return before.exact, after.exact
    groups = _moved_groups(plan, before, after)
    one, other = only_groups(before.exact, groups), only_groups(after.exact, groups)
    if plan.threshold is None or plan.quantiles or plan.distincts:
        return one, other
    return more_people(one, other, 2 * plan.threshold.least)


def _moved_groups(plan: Plan, before: Trace, after: Trace) -> list[tuple[Any, ...]]:
    """Return a few groups in which the two tables differ; the others have the same law on both."""
    if before.exact is None or after.exact is None:
        return []
    moved: dict[tuple[Any, ...], int] = {}
    for place in range(len(plan.releases)):
        sides = [cells_of(plan, trace.exact, place) for trace in (before, after) if trace.exact is not None]
        for cell in sides[0].keys() | sides[1].keys():
            change = abs(sides[0].get(cell, 0) - sides[1].get(cell, 0))
            if change:
                moved[cell[:-1]] = moved.get(cell[:-1], 0) + change
    listed = sorted(moved, key=lambda key: -moved[key])
    keys = [tuple(key) for key in [*before.exact.keys, *after.exact.keys]]
    return list(dict.fromkeys(listed or keys))[:GROUPS_MOST]
