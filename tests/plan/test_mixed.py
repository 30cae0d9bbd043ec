"""Quantiles of people beside counts, sums and means: two plans in one, each with its own part of epsilon."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.accounting import charge_of
from tacit.errors import QueryRefused
from tacit.plan import make_plan, make_spend, planner
from tacit.plan.bounds.scaled import Halves, halves_of
from tests.plan.learned import learned, rows

BUDGET = tacit.epsilon(10, delta=1e-6)
ROWS = pd.DataFrame({"id": [1, 1, 2], "g": ["a", "b", "a"], "x": [1.0, 2.0, 3.0], "y": [1, 2, 3]})
PEOPLE = rows({2: 5_000})


def table(rows=ROWS, **declared):
    return tacit.table(rows, name="t", unit="id", budget=BUDGET, ledger=tacit.TRYOUT, version=1, **declared)


def asked_of(question, epsilon=1, **options):
    return question.query, question.session.declaration, make_spend(epsilon, None, options.get("noise"), BUDGET)


def both(epsilon=1, **outputs):
    outputs = outputs or {"n": tacit.count(), "m": tacit.median("x")}
    return asked_of(table().group_by("g", keys=["a", "b"]).agg(**outputs), epsilon)


def planned(asked):
    return make_plan(*asked, learned(*asked, PEOPLE))


def test_counts_beside_a_median_are_planned_as_if_asked_at_their_part_of_epsilon():
    plan = planned(both())
    alone = planned(asked_of(table().group_by("g", keys=["a", "b"]).agg(n=tacit.count()), Fraction(1, 2)))
    assert plan.is_mixed
    assert [each.event for each in plan.releases] == [each.event for each in alone.releases]
    assert plan.scaling == alone.scaling
    assert all(draw.of == "people" for draw in plan.quantiles)


@pytest.mark.parametrize("epsilon", [Fraction(1, 100), 1, 30])
def test_both_parts_together_cost_no_more_than_the_call(epsilon):
    outputs = {"q": tacit.median("y"), "n": tacit.count(), "s": tacit.sum("x"), "m": tacit.median("x")}
    plan = planned(both(epsilon, **outputs))
    assert charge_of(plan.events).epsilon <= epsilon
    assert [output.name for output in plan.outputs] == list(outputs)
    assert sum(each.share for each in (*plan.releases, *plan.totals, *plan.quantiles)) == 1


def test_the_columns_of_quantiles_come_last_and_the_halves_have_their_own():
    plan = planned(both(n=tacit.count(), s=tacit.sum("x"), m=tacit.median("x"), q=tacit.median("y")))
    scaled, drawn = plan.halves()
    assert not scaled.quantiles
    assert (drawn.releases, drawn.scaling) == ((), None)
    assert scaled.measured + drawn.measured == plan.measured
    assert [drawn.measured[draw.column] for draw in drawn.quantiles] == [
        plan.measured[draw.column] for draw in plan.quantiles
    ]


def test_gaussian_noise_beside_quantiles_of_people_is_refused_in_words():
    asked = asked_of(table().group_by("g", keys=["a", "b"]).agg(n=tacit.count(), m=tacit.median("x")), noise="gaussian")
    with pytest.raises(QueryRefused, match="Laplace noise only"):
        make_plan(*asked, {})


def rows_of(people):
    rng = np.random.default_rng(4)
    ids = np.repeat(np.arange(people), rng.integers(1, 6, people)) if people else np.zeros(0, dtype=int)
    made = {"id": ids, "g": rng.choice(["a", "b"], len(ids)), "x": rng.integers(0, 100, len(ids)) / 2}
    return pd.DataFrame(made | {"y": rng.integers(0, 50, len(ids))}).astype({"g": "string", "x": float})


@pytest.mark.filterwarnings("ignore::tacit.LargeEpsilonWarning")
@pytest.mark.parametrize("path", ["sql", "kernel", "patient"])
def test_every_path_reads_both_halves_of_the_same_rows(path):
    """At an epsilon at which noise does not show: counts are those of the table, medians those of people."""
    frame, ledger = rows_of(2_000), tacit.TRYOUT
    opened = tacit.table(frame, name="u", unit="id", budget=tacit.epsilon(10**9), ledger=ledger, version=1)
    opened.session.engine._path = path
    by_group = opened.group_by("g", keys=["b", "a", "z"])
    answer = by_group.agg(n=tacit.count(), m=tacit.median("x", between=(0, 50))).answer(epsilon=10**8)
    assert [row["g"] for row in answer.to_dicts()] == ["b", "a", "z"]
    assert [row["n"] for row in answer.to_dicts()] == [int((frame["g"] == key).sum()) for key in ("b", "a", "z")]
    for row in answer.to_dicts()[:2]:
        weight = 1 / frame.groupby("id")["x"].transform("size")
        of_group = frame[frame["g"] == row["g"]].assign(weight=weight).sort_values("x")
        below = of_group["weight"].cumsum() <= of_group["weight"].sum() / 2
        assert abs(row["m"] - of_group["x"][below].max()) <= 1


@pytest.mark.parametrize("people", [0, 1])
def test_nobody_and_one_person_have_answers_of_one_shape(people):
    question = table(rows_of(people)).group_by("g", keys=["a", "b"]).agg(n=tacit.count(), m=tacit.median("x"))
    answer = question.answer(epsilon=1, accept_noise=True)
    assert [row["g"] for row in answer.to_dicts()] == ["a", "b"]


def test_both_parts_at_the_whole_epsilon_would_be_noticed(monkeypatch):
    """The planted bug that the claim about the cost kills."""
    asked = both(1)
    facts = learned(*asked, PEOPLE)

    def whole(query, declaration, spend):
        found = halves_of(query, declaration, spend)
        parts = (
            replace(half, spend=replace(half.spend, epsilon=spend.epsilon)) for half in (found.scaled, found.drawn)
        )
        return Halves(*parts)

    monkeypatch.setattr(planner, "halves_of", whole)
    assert charge_of(make_plan(*asked, facts).events).epsilon > 1
