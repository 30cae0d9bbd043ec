"""Tables with totals, for attacks on them: a question whose levels have noise of their own, and its neighbours."""

from fractions import Fraction
from typing import Any

import pyarrow as pa

import tacit
from tacit.auditing.replay import replay, run_plan
from tacit.plan import Plan

# Weights under which totals get noise of their own.
WEIGHTS = {"a": 100, "total": 60}
DECLARED: dict[str, dict[str, Any]] = {
    "rows": {"unit": tacit.ROW},
    "people": {"unit": "id", "rows_per_unit": 3, "groups_per_unit": 2},
    "replaced people": {"unit": "id", "rows_per_unit": 2, "groups_per_unit": 2, "neighbours": "replace"},
}


def with_totals(declared: dict[str, Any]) -> tuple[Plan, Any]:
    """Return the plan of a table with totals at an epsilon of 1, and its question."""
    rows = pa.table({"id": [n % 9 for n in range(40)], "a": ["u", "v"] * 20, "b": [1, 2, 3, 4] * 10, "x": [1, 5] * 20})
    columns: dict[str, Any] = {"a": {"keys": ["u", "v"]}, "b": {"keys": [1, 2, 3, 4]}, "x": {"between": (0, 7)}}
    table = tacit.table(
        rows, name="t", budget=tacit.epsilon(4), columns=columns, ledger=tacit.TRYOUT, version=1, **declared
    )
    question = table.group_by("a", "b", totals=True).agg(n=tacit.count(), s=tacit.sum("x"))
    return question.plan(epsilon=1, weights=WEIGHTS).plan, question


def cost_of(plan: Plan) -> Fraction:
    """Return the epsilon of all Laplace noise that is charged."""
    return sum((Fraction(each.sensitivity) / each.scale for each in plan.events), Fraction(0))  # type: ignore[union-attr]


def uncharged_levels(plan: Plan) -> int:
    """Return how many releases of levels are not among the events that are charged."""
    return sum(each.event not in plan.events for level in plan.levels for each in level.releases)


def broken_neighbours(plan: Plan, question: Any) -> tuple[str, ...]:
    """Return where neighbours are farther apart than the plan declares, levels included."""
    return replay(plan, question.session.declaration, question.query).broken


def is_noisy(plan: Plan, question: Any, index: int, runs: int) -> bool:
    """Whether a level's totals differ from sums of the exact cells in any of so many runs."""
    rows = pa.table({"id": [1, 2], "a": ["u", "v"], "b": [1, 2], "x": [1, 5]})
    for _ in range(runs):
        trace = run_plan(plan, question.session.declaration, rows)
        if trace.exact is None or trace.noisy is None:
            return False
        exact = sum(trace.exact.part(plan.levels[index].releases[0].parts[0], plan))
        if sum(trace.noisy.levels[index].parts[0][0]) != exact:
            return True
    return False
