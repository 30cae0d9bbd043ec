"""Squares and products are sums like any other: every path gives the reference's integers, and nobody exceeds a cap."""

import math
import random

import pytest

import tacit
from tacit.plan import LARGEST_LEAST, make_plan, make_spend, missing_facts
from tacit_gauntlet.stage.table import protected
from tests.engine import scaling_reference as reference
from tests.engine.exact import as_table
from tests.engine.scaled_plans import engine_of, expected, found_sums
from tests.plan.learned import planted, rows

KEYS = ["a", "b", None]
PEOPLE = rows({1: 2_000, 5: 500, 40: 100})
ODD = [None, math.nan, math.inf, -math.inf, 0.0, -0.0, 5e-324, 1e300, -1e300, 1e17, 3.0, -2.5]
WHOLE = [None, 0, 1, -1, 63, 2**53 + 1, 2**63 - 1, -(2**63)]


def moment_plan(noise, neighbours="add-remove"):
    """Return a plan of a variance, a covariance and a correlation, values being of about 64."""
    table = protected(
        as_table([(1, "a", 1, 1.0)]),
        rows_per_unit=None,
        groups_per_unit=None,
        most_rows_per_unit=None,
        neighbours=neighbours,
        columns={},
    )
    question = table.group_by("g", keys=KEYS).agg(
        v=tacit.variance("y"), s=tacit.std("x", between=(-5, 50)), r=tacit.correlation("x", "y")
    )
    spend = make_spend(1, None, noise, question.session.registered.budget)
    asked, facts = (question.query, question.session.declaration, spend), {}
    while wanted := missing_facts(*asked, facts):
        for each in wanted:
            sized = each.plan.profiles and each.plan.profiles[0].norm == "largest"
            some = {6 - LARGEST_LEAST: 5_000, 6 - 3 * LARGEST_LEAST: 5_000} if sized else PEOPLE
            facts[each.key] = planted(each, some)
    return make_plan(*asked, facts)


def odd_rows():
    """Return rows of odd values; the first unit has most of them, the last has the same value in every row."""
    source = random.Random(5)
    some = [
        (
            source.choice([1, 1, 1, 2, 3, None]),
            source.choice(["a", "b", None, "z"]),
            source.choice(WHOLE),
            source.choice(ODD),
        )
        for _ in range(300)
    ]
    return some + [(9, "a", 7, 0.25)] * 40 + [(10, "b", 1, 1.0)]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("path", ["sql", "patient"])
def test_moments_are_the_references_integers(path, noise):
    plan, engine = moment_plan(noise), engine_of(odd_rows(), path)
    found = found_sums(engine, plan)
    assert found == expected(engine, plan)
    assert all(any(sums[place] for sums in found[0].values()) for place in range(len(plan.scaling.vectors)))


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_moments_are_the_same_integers_in_the_kernel(noise):
    plan = moment_plan(noise)
    assert found_sums(engine_of(odd_rows(), "kernel"), plan) == found_sums(engine_of(odd_rows(), "sql"), plan)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("value", [1e300, -math.inf, 1e9, 700.0])
def test_one_unit_of_huge_squares_in_all_groups_moves_no_release_by_more_than_its_cap(noise, value):
    plan = moment_plan(noise)
    crowd = [(5, "a", 3, 2.0), (5, "b", 4, -2.0), (6, "a", 1, 30.0)]
    newcomer = [(77, key, 2**62, each) for key in KEYS for each in (value, -value, value) for _ in range(50)]
    before, _ = found_sums(engine_of(crowd, "sql"), plan)
    after, _ = found_sums(engine_of(crowd + newcomer, "sql"), plan)
    for place, vector in enumerate(plan.scaling.vectors):
        moved = [after[key][place] - before.get(key, [0] * 99)[place] for key in after]
        assert reference.length(moved, 1 if noise == "laplace" else 2) <= vector.cap + 1
        exact = sum(map(abs, moved)) if noise == "laplace" else sum(each * each for each in moved)
        assert exact <= (vector.cap if noise == "laplace" else vector.cap**2)
    assert any(after[key] != before.get(key) for key in after)
