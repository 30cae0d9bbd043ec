"""Quantiles through the door: what is charged, what is shown, and how they keep company with other aggregates."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.accounting.cost import pure_epsilon, zcdp
from tacit.asking import Table
from tacit.plan.plan import Plan
from tacit.privacy.loss import ExponentialChoice, KeyThreshold, PureChoice
from tacit.release import noisy
from tacit.selection.quantile import draw_quantiles, levels_of

NAN = float("nan")


def people(count: int = 400, **declared: Any) -> Table:
    rng = np.random.default_rng(5)
    rows = pa.table(
        {
            "id": np.arange(count),
            "g": [("a", "b", "c")[i % 3] for i in range(count)],
            "x": rng.integers(0, 100, count),
            "y": pa.array([None if i % 7 == 0 else NAN if i % 11 == 0 else i / 3 for i in range(count)], pa.float64()),
        }
    )
    usual: dict[str, Any] = {"unit": "id", "budget": tacit.epsilon(10_000), "ledger": ":memory:", "name": "t"}
    usual |= {
        "rows_per_unit": 1,
        "groups_per_unit": 2,
        "most_rows_per_unit": 1,
        "columns": {"x": {"between": (0, 100)}, "y": {"between": (0, 200)}},
    }
    return tacit.table(rows, **(usual | declared))


def charged(plan: Plan) -> Fraction:
    return sum((pure_epsilon(event) or Fraction(0) for event in plan.events), Fraction(0))


@pytest.mark.parametrize("fractions", [[0.5], [0.1, 0.5, 0.9], [0], [0, 1], [i / 10 for i in range(1, 10)]])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
def test_a_pure_budget_is_charged_every_level_and_every_interval_in_every_group(
    fractions: list[float], neighbours: str
) -> None:
    asked = people(neighbours=neighbours).group_by("g", keys=["a", "b", "c"]).quantile("x", fractions)
    plan = asked.plan(epsilon=1).plan
    (draw,) = plan.quantiles
    exact = tuple(Fraction(str(fraction)) for fraction in fractions)
    assert (draw.levels, draw.ends) == (levels_of(len(exact)), len(exact))
    assert plan.events == (PureChoice(2 * (draw.levels * draw.epsilon + draw.ends * draw.ends_epsilon)),)
    assert charged(plan) == 1


@pytest.mark.parametrize("budget", [tacit.epsilon(10, delta="1e-6"), tacit.rho(3)])
def test_budgets_with_a_delta_or_in_rho_are_charged_each_choice_at_its_rho(budget: Any) -> None:
    table = people(budget=budget, rows_per_unit=2, groups_per_unit=9)
    keys = list("abcdefghij")
    plan = table.group_by("g", keys=keys).quantile("x", [0.25, 0.5, 0.75]).plan(epsilon=1, noise="gaussian").plan
    (draw,) = plan.quantiles
    choices = [ExponentialChoice(draw.epsilon)] * (2 * 9) + [ExponentialChoice(draw.ends_epsilon)] * (3 * 9)
    assert list(plan.events) == choices
    spent = sum(zcdp(event).rho for event in plan.events)
    assert 9 * (2 * draw.epsilon**2 + 3 * draw.ends_epsilon**2) / 8 == spent
    # and where it errs less, so many groups are charged in rho without being told to
    assert any(
        isinstance(event, ExponentialChoice)
        for event in table.group_by("g", keys=keys).median("x").plan(epsilon=1).plan.events
    )


def test_very_many_choices_are_one_event_that_is_not_cheaper() -> None:
    table = people(budget=tacit.epsilon(10, delta="1e-6"), groups_per_unit=1000)
    plan = table.group_by("x", keys=list(range(1000))).median("y").plan(epsilon=1, noise="gaussian").plan
    (draw,) = plan.quantiles
    (event,) = plan.events
    assert event == PureChoice(1000 * (draw.epsilon + draw.ends_epsilon))


def test_several_quantiles_in_one_call_cost_less_than_one_by_one() -> None:
    """At the same total, ten at once leave each level more epsilon than a tenth."""
    tenths = [i / 11 for i in range(1, 11)]
    (together,) = people().quantile("x", tenths).plan(epsilon=1).plan.quantiles
    (alone,) = people().quantile("x", 0.5).plan(epsilon="0.1").plan.quantiles
    assert together.epsilon > 2 * alone.epsilon


def test_quantiles_rise_and_lie_in_their_intervals() -> None:
    for _ in range(5):
        (row,) = people().quantile("y", [0, 0.1, 0.5, 0.51, 0.9, 1]).answer(epsilon=1).to_dicts()
        names = ["y_p0", "y_p10", "y_p50", "y_p51", "y_p90", "y_p100"]
        assert [row[name] for name in names] == sorted(row[name] for name in names)
        assert all(row[f"{name}_low"] <= row[name] <= row[f"{name}_high"] for name in names)


def test_quantiles_keep_company_with_counts_and_moments() -> None:
    question = (
        people()
        .group_by("g", keys=["a", "b", "c"])
        .agg(n=tacit.count(), known=tacit.count("y"), m=tacit.median("y"), v=tacit.variance("x"), lo=tacit.min("x"))
    )
    assert charged(question.plan(epsilon=3).plan) == 3
    for row in question.answer(epsilon=500).to_dicts():
        assert abs(row["n"] - 133) <= 2
        assert 60 <= row["m"] <= 74
        assert row["lo"] <= 20
        assert 600 <= row["v"] <= 1100


def test_missing_values_and_nan_are_no_rows_of_a_quantile() -> None:
    (row,) = people(4000).where("y IS NOT NULL").median("y").answer(epsilon=100).to_dicts()
    (same,) = people(4000).median("y").answer(epsilon=100).to_dicts()
    assert abs(row["median_y"] - same["median_y"]) < 2


def test_keys_that_are_found_privately_may_be_null_or_nan() -> None:
    """A key that differs from itself is still one group."""
    rows = pa.table({"id": range(900), "k": pa.array([NAN, None, 1.5] * 300, pa.float64()), "x": list(range(900))})
    table = tacit.table(
        rows, unit="id", budget=tacit.epsilon(50, delta="1e-6"), ledger=":memory:", rows_per_unit=1, groups_per_unit=1,
        most_rows_per_unit=1,
        columns={"x": {"between": (0, 900)}},
    )  # fmt: skip
    question = table.group_by("k").agg(m=tacit.median("x"), v=tacit.variance("x"))
    plan = question.plan(epsilon=10).plan
    assert any(isinstance(event, KeyThreshold) for event in plan.events)
    found = question.answer(epsilon=10).to_dicts()
    assert {str(row["k"]) for row in found} >= {"1.5", "None"}


def test_sql_and_python_ask_the_same() -> None:
    table = people()
    written = table.sql("SELECT MEDIAN(x) AS m, QUANTILE(x, 0.9) AS p, MIN(x) AS lo, MAX(x) AS hi FROM t")
    asked = table.agg(m=tacit.median("x"), p=tacit.quantile("x", "0.9"), lo=tacit.min("x"), hi=tacit.max("x"))
    assert written.query.outputs == asked.query.outputs
    covariance = table.sql("SELECT COVAR_POP(x, y) AS c, CORR(x, y) AS r, VAR_POP(x) AS v, STDDEV(x) AS s FROM t")
    assert covariance.query.outputs == table.agg(
        c=tacit.covariance("x", "y"), r=tacit.correlation("x", "y"), v=tacit.variance("x"), s=tacit.std("x")
    ).query.outputs  # fmt: skip


def test_a_quantile_without_a_range_or_of_text_is_refused_with_the_words_to_add() -> None:
    table = people(columns={})
    with pytest.raises(tacit.QueryRefused, match="between"):
        table.median("x").plan(epsilon=1, learn=False)
    with pytest.raises(tacit.QueryRefused, match="text"):
        table.median("g")
    with pytest.raises(tacit.QueryRefused, match="between 0 and 1"):
        table.quantile("x", 2)


def test_nothing_is_drawn_for_groups_that_stay_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Which groups are shown is decided by their noisy counts first; quantiles are drawn of those alone."""
    asked: list[int] = []

    def watched(steps: Any, targets: Any, *, starts: Any, **words: Any) -> Any:
        asked.append(len(starts))
        return draw_quantiles(steps, targets, starts=starts, **words)

    monkeypatch.setattr(noisy, "draw_quantiles", watched)
    rows = pa.table(
        {"id": range(3000), "k": [i if i < 1000 else -1 for i in range(3000)], "x": [i % 50 for i in range(3000)]}
    )
    table = tacit.table(
        rows, unit="id", budget=tacit.epsilon(50, delta="1e-6"), ledger=":memory:", rows_per_unit=1, groups_per_unit=1,
        most_rows_per_unit=1,
        columns={"x": {"between": (0, 50)}},
    )  # fmt: skip
    found = table.group_by("k").median("x").answer(epsilon=2).to_dicts()
    assert [row["k"] for row in found] == [-1]
    assert asked == [1]
    assert abs(found[0]["median_x"] - 24) < 10
