"""Bounds that nobody gave: read off profiles of people's rows, groups and different values, and only where needed."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.plan import UNBOUNDED, make_plan, missing_facts
from tests.plan.learned import learned, planted, rows
from tests.plan.test_filled import asked_of, table

KEYS = ["a", "b"]


def words_learned(question):
    """What a question learns, in words."""
    asked, facts, words = asked_of(question), {}, []
    while wanted := missing_facts(*asked, facts):
        words += [each.words for each in wanted]
        facts |= {each.key: planted(each, rows({3: 5000})) for each in wanted if not each.plan.quantiles}
        if any(each.plan.quantiles for each in wanted):
            break
    return words


def test_quantiles_of_people_learn_a_range_at_most():
    ranged = {"between": (0, 9)}
    assert words_learned(table().median("y", **ranged)) == []
    assert words_learned(table().group_by("g", keys=KEYS).median("y", **ranged)) == []
    assert words_learned(table().group_by("g").median("y", **ranged)) == ["how many groups an id has, in all and by g"]
    assert words_learned(table().median("y"))[0] == "how large y is"
    assert words_learned(table().median("y", of="rows", **ranged)) == ["how many rows an id has"]


def test_quantiles_of_people_stay_so_when_bounds_for_others_are_filled_in():
    question = table().agg(m=tacit.median("y", between=(0, 9)), v=tacit.variance("y", between=(0, 9)))
    asked = asked_of(question)
    plan = make_plan(*asked, learned(*asked, rows({3: 5000})))
    assert [draw.of for draw in plan.quantiles] == ["people"]
    assert plan.is_mixed
    assert plan.rows_per_unit == UNBOUNDED, "neither part needs a bound"


def test_a_count_of_different_values_learns_how_many_a_unit_has():
    question = table().agg(d=tacit.count_distinct("g"))
    assert words_learned(question) == ["how many different values of g an id has"]
    asked = asked_of(question)
    (wanted,) = missing_facts(*asked, {})
    assert [key.expression.name for key in wanted.plan.cells.keys] == ["g"]
    assert wanted.plan.profiles[0].vector.kind == "units"
    bounds = []
    for most in (1, 4, 64):
        plan = make_plan(*asked, {wanted.key: planted(wanted, rows({1: 900, most: 9000}))})
        bounds.append(plan.distincts[0].per_unit)
    assert bounds == sorted(set(bounds))
    assert bounds[-1] <= 128


def test_a_bound_on_values_that_is_given_by_hand_wins():
    assert words_learned(table().agg(d=tacit.count_distinct("g", per_unit=2))) == []
    assert words_learned(table(rows_per_unit=3).agg(d=tacit.count_distinct("g"))) == []


def test_the_bound_on_values_is_shared_by_the_groups():
    question = table().group_by("g", keys=KEYS).agg(d=tacit.count_distinct("x"))
    asked, facts = asked_of(question), {}
    while wanted := missing_facts(*asked, facts):
        for each in wanted:
            facts[each.key] = planted(each, rows({2: 5000} if "groups" in each.words else {40: 5000}))
    plan = make_plan(*asked, facts)
    assert plan.groups_per_unit == 2
    assert 10 <= plan.distincts[0].per_unit <= 32


@pytest.fixture(scope="module")
def visits():
    rng = np.random.default_rng(3)
    person = np.repeat(np.arange(2000), rng.geometric(0.3, 2000))
    data = {"person": person, "ward": rng.choice(list("abcdef"), len(person)), "days": rng.gamma(2, 3, len(person))}
    budget = tacit.epsilon(100, delta=1e-6)
    return tacit.table(pa.table(data), name="visits", unit="person", budget=budget, ledger=tacit.TRYOUT)


def test_with_unit_and_budget_alone_every_kind_of_question_is_answered(visits):
    """The ranges are so much wider than the noise that a false alarm has a chance below 1e-9."""
    for asked, columns in (
        (visits.median("days"), {"median_days": (4, 7)}),
        (visits.group_by("ward").median("days"), {"median_days": (2, 11)}),
        (visits.agg(kinds=tacit.count_distinct("ward")), {"kinds": (-60, 70)}),
        (visits.top("ward", 2), {}),
        (visits.mode("ward"), {}),
        (visits.mode("ward", keys=list("abcdef")), {}),
    ):
        answer = asked.answer(epsilon=3)
        assert len(answer.rows) >= 1
        for name, (low, high) in columns.items():
            assert all(low <= row[name] <= high for row in answer.rows)


def test_what_is_bounded_by_learned_numbers_is_said(visits):
    assert "different values of ward" in str(visits.agg(kinds=tacit.count_distinct("ward")).answer(epsilon=2))
    by_ward = visits.group_by("ward").median("days").answer(epsilon=2).details()
    assert "The intervals leave out groups beyond" in by_ward
    assert "median_days is of people: each person counts once, shared evenly by its groups and rows." in by_ward


@pytest.mark.parametrize("bounds", [{"rows_per_unit": 1, "groups_per_unit": 1}, {"most_rows_per_unit": 1}])
def test_a_count_of_one_row_a_unit_learns_nothing_and_has_all_of_epsilon(bounds):
    """The Laplace mechanism of every lecture: noise of scale 1/ε, in one number and in listed groups."""
    people = table(**bounds)
    for question in (people.count(), people.count_units(), people.group_by("g", keys=KEYS).count()):
        assert words_learned(question) == []
        plan = make_plan(*asked_of(question), {})
        (vector,) = plan.scaling.vectors
        assert [release.scale / Fraction(2) ** vector.shift for release in plan.releases] == [
            1 / asked_of(question)[2].epsilon
        ]
        assert plan.totals == ()


def test_sums_of_one_row_a_unit_learn_nothing():
    assert words_learned(table(rows_per_unit=1).sum("y", between=(0, 9))) == []
    assert words_learned(table(most_rows_per_unit=1).sum("y", between=(0, 9))) == []
