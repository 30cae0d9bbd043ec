"""Quantiles of people: asked without any bound per unit, they say so, cover, and move with one unit as declared."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.auditing.replay import replay
from tacit.errors import QueryRefused
from tacit.plan.plan import question_key
from tacit.privacy.loss import ExponentialChoice, PureChoice
from tacit_gauntlet.stage.statistic import binomial_at_least


def table_of(rows, **declared):
    usual = {"unit": "id", "budget": tacit.epsilon(10_000, delta=1e-6), "columns": {"x": {"between": (0, 100)}}}
    return tacit.table(rows, name="t", ledger=tacit.TRYOUT, **(usual | declared))


def heavy_people(people=400, seed=1):
    """Half of the people have one row of 20, the others 40 rows of 80."""
    rng = np.random.default_rng(seed)
    ids = np.concatenate([np.arange(people // 2), np.repeat(np.arange(people // 2, people), 40)])
    x = np.where(ids < people // 2, 20, 80) + rng.integers(-5, 6, len(ids))
    return pa.table({"id": ids, "x": x, "g": np.array(list("abcd"))[(ids + np.arange(len(ids))) % 4]})


def test_without_bounds_a_quantile_is_of_people_and_says_so():
    table = table_of(heavy_people())
    asked = table.quantile("x", [0.4, 0.6])
    answer = asked.answer(epsilon=4)
    assert "x_p40, x_p60 are of people: each id counts once, shared evenly by its rows." in answer.details()
    assert "of people" in str(asked.plan(epsilon=4))
    low, high = answer.rows[0]["x_p40"], answer.rows[0]["x_p60"]
    # 40 of 400 people off has a chance below e^-40 at epsilon 3/2 a level: half of them have 20, and half of them 80
    assert low <= 26
    assert high >= 74


def test_of_rows_the_same_quantile_is_where_most_rows_are():
    table = table_of(heavy_people(), rows_per_unit=40)
    assert table.quantile("x", 0.4).answer(epsilon=400).rows[0]["x_p40"] >= 74
    assert table.quantile("x", 0.4, of="people").answer(epsilon=4).rows[0]["x_p40"] <= 26


def test_people_or_rows_is_part_of_the_question():
    table = table_of(heavy_people(), rows_per_unit=1, groups_per_unit=1)
    keys = {question_key(table.median("x", of=of).plan(epsilon=1).plan) for of in ("people", "rows", None)}
    assert len(keys) == 2


def test_the_default_is_of_rows_where_the_bounds_that_it_takes_are_declared():
    rows = heavy_people()
    for declared, by, of in (
        ({}, (), "people"),
        ({"rows_per_unit": 2}, (), "rows"),
        ({"rows_per_unit": 2}, ("g",), "people"),
        ({"rows_per_unit": 2, "groups_per_unit": 2}, ("g",), "rows"),
        ({"unit": tacit.ROW}, ("g",), "rows"),
    ):
        table = table_of(rows, **declared)
        asked = table.group_by(*by, keys=list("abcd")) if by else table
        assert [draw.of for draw in asked.median("x").plan(epsilon=1).plan.quantiles] == [of]


def test_each_row_its_own_unit_makes_people_and_rows_one():
    table = table_of(heavy_people(), unit=tacit.ROW)
    plans = [table.median("x", of=of).plan(epsilon=1).plan for of in ("people", "rows")]
    assert question_key(plans[0]) == question_key(plans[1])


def test_other_words_are_refused_before_anything_is_charged():
    with pytest.raises(QueryRefused, match="of must be 'people' or 'rows'"):
        table_of(heavy_people()).median("x", of="units")


def test_all_groups_together_cost_what_one_costs():
    table = table_of(heavy_people())
    one = table.median("x").plan(epsilon=1).plan
    many = table.group_by("g", keys=list("abcd")).median("x").plan(epsilon=1).plan
    assert one.events == many.events == (PureChoice(Fraction(1)),)
    three = table.group_by("g", keys=list("abcd")).quantile("x", [0.1, 0.5, 0.9])
    gaussian = three.plan(epsilon=1, noise="gaussian").plan
    assert [type(event) for event in gaussian.events] == [ExponentialChoice] * (2 + 3)
    assert sum(event.epsilon**2 / 8 for event in gaussian.events) < Fraction(1, 20)


@pytest.mark.parametrize(("neighbours", "fractions"), [("add-remove", [0, 0.25, 1]), ("replace", [0.5])])
def test_no_newcomer_moves_ranks_by_more_than_declared(neighbours, fractions):
    columns = {"x": {"between": (0, 100)}, "g": {"keys": list("abcd")}}
    table = table_of(heavy_people(), neighbours=neighbours, columns=columns)
    asked = table.group_by("g").quantile("x", fractions)
    plan = asked.plan(epsilon=1).plan
    found = replay(plan, table.frame.declaration, asked.query)
    assert found.passed, found
    assert found.moved > 0.9


def weighted_quantile(rows, group, fraction):
    """The least value up to which a fraction of the votes lies, a vote being shared by a person's groups and rows."""
    votes = {}
    for person in {each["id"] for each in rows}:
        own = [each for each in rows if each["id"] == person]
        groups = {each["g"] for each in own}
        for each in own:
            share = Fraction(1, len(groups) * sum(other["g"] == each["g"] for other in own))
            if each["g"] == group:
                votes[each["x"]] = votes.get(each["x"], 0) + share
    total, running = sum(votes.values()), Fraction(0)
    for value in sorted(votes):
        running += votes[value]
        if running >= total * fraction:
            return value
    return None


def test_intervals_hold_the_quantile_of_people_at_the_stated_rate():
    """The chance of fewer than are allowed is below 1e-9 if each interval of 160 holds with 80 %."""
    rng = np.random.default_rng(8)
    ids = np.repeat(np.arange(60), rng.integers(1, 12, 60))
    rows = pa.table({"id": ids, "x": rng.integers(0, 101, len(ids)), "g": rng.choice(list("abcd"), len(ids))})
    table = table_of(rows)
    truth = {(g, q): weighted_quantile(rows.to_pylist(), g, Fraction(q)) for g in "abcd" for q in ("1/2", "3/4")}
    held = 0
    for run in range(20):
        asked = table.group_by("g", keys=list("abcd")).quantile("x", [0.5, 0.75])
        answer = asked.answer(epsilon=3 + Fraction(run, 10**6), confidence=0.8)
        for row in answer.rows:
            held += row["x_p50_low"] <= truth[row["g"], "1/2"] <= row["x_p50_high"]
            held += row["x_p75_low"] <= truth[row["g"], "3/4"] <= row["x_p75_high"]
    assert binomial_at_least(160 - held, 160, 0.2) > 1e-9
