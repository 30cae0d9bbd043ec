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


def with_hidden(**declared: Any) -> Any:
    """Return a table of two large groups and a few rows of others, which stay hidden."""
    names = ["u"] * 900 + ["v"] * 700 + ["rare"] * 20 + ["alone"]
    rows = pa.table({"a": [each[0] for each in names], "b": names, "x": [len(each) for each in names]})
    return tacit.table(
        rows,
        unit=tacit.ROW,
        name="t",
        version=1,
        budget=tacit.epsilon(9, delta=1e-6),
        ledger=tacit.TRYOUT,
        **declared,
    )


def hidden_in_totals(runs: int) -> int:
    """Return in how many answers the totals of found groups differ from the sums of what is shown."""
    found = 0
    for _ in range(runs):
        answer = with_hidden().group_by("b", totals=True).count().answer(epsilon=1)
        total = next(row["count"] for at, row in enumerate(answer.to_dicts()) if answer.rolled["b"][at])
        found += total != sum(row["count"] for at, row in enumerate(answer.to_dicts()) if not answer.rolled["b"][at])
    return found


def others_plan() -> tuple[Plan, Any]:
    """Return the plan of listed groups and others, and its question."""
    question = with_hidden(columns={"b": {"keys": ["u", "v"]}}).group_by("b", other=True).count()
    return question.plan(epsilon=1).plan, question


def others_are_noisy(runs: int) -> bool:
    """Whether the others differ from the exact number of their rows in any of so many runs."""
    plan, question = others_plan()
    rows = pa.table({"a": ["u", "x"], "b": ["u", "x"], "x": [1, 1]})
    for _ in range(runs):
        trace = run_plan(plan, question.session.declaration, rows)
        if trace.exact is None or trace.noisy is None:
            return False
        if trace.noisy.parts[0][0][-1] != list(trace.exact.part(plan.releases[0].parts[0], plan))[-1]:
            return True
    return False


def workload_plans(weights: Any = None) -> tuple[Any, Any]:
    """Return the plans of a workload of three questions at an epsilon of 1, together, and its question."""
    table = with_hidden(columns={"b": {"keys": ["u", "v"]}, "a": {"keys": ["u", "v", "r"]}, "x": {"between": (0, 9)}})
    by = {"by_a": table.group_by("a").count(), "by_b": table.group_by("b").count()}
    question = table.workload(**by, sum=table.sum("x"))
    return question.plan(epsilon=1, weights=weights).planned, question


def is_fitted(question: Any) -> bool:
    """Whether tables of a workload were fitted together."""
    return any("fitted together" in note for note in question.answer(epsilon=1).facts.notes)
