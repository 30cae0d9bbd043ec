"""Variances, covariances and correlations without bounds are vectors with one weight, and their caps are chosen so."""

from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest

import tacit
from tacit.plan import BINS, LARGEST_LEAST, make_plan, make_spend, missing_facts
from tacit.plan.bounds.caps import MomentPart, NoiseTerms, Told, by_rank, joint_weights, moment_caps
from tacit.plan.bounds.profiles import read_profile
from tacit.query import Call, Column
from tacit_gauntlet.stage.table import protected
from tests.plan.learned import planted, rows

DATA = pa.table({"id": [1, 2, 3], "g": ["a", "a", "b"], "x": [1, None, 3], "y": [1.0, 2.0, 3.0]})
PEOPLE = rows({1: 20_000, 2: 10_000, 5: 5_000, 40: 500, 300: 200})
KEYS = ["a", "b", "c"]


def table(**declared):
    return protected(DATA, **({"rows_per_unit": None, "groups_per_unit": None, "most_rows_per_unit": None} | declared))


def by(**declared):
    return table(**declared).group_by("g", keys=KEYS)


def planned(question, octave=6, people=PEOPLE):
    """Return the plan where values are known to be of this octave, above and below 0, and all facts that it took."""
    budget = question.session.registered.budget
    asked, facts = (question.query, question.session.declaration, make_spend(1, None, None, budget)), {}
    while wanted := missing_facts(*asked, facts):
        for each in wanted:
            sized = each.plan.profiles and each.plan.profiles[0].norm == "largest"
            some = {octave - LARGEST_LEAST: 10_000, octave - 3 * LARGEST_LEAST: 10_000} if sized else people
            facts[each.key] = planted(each, some)
    return make_plan(*asked, facts), facts


def test_a_variance_is_rows_sums_and_squares_with_one_weight_and_no_totals():
    plan, _ = planned(by().std("y"))
    _counted, sums, squares = plan.scaling.vectors
    assert [vector.kind for vector in plan.scaling.vectors] == ["counted", "centred", "centred"]
    assert plan.scaling.together == ((0, 1, 2),)
    assert squares.factors == (1, 1)
    assert (sums.rows, squares.rows) == (0, 0)
    assert plan.totals == ()
    square = plan.measured[squares.column]
    assert square.low == 0  # never negative
    assert square.height * square.step >= (1 << 12) * Fraction(2) ** 12  # what is 64 times as large is not cut off
    assert isinstance(square.expression, Call)


def test_a_mean_beside_a_variance_shares_its_vectors_and_nothing_of_it_is_measured():
    plan, _ = planned(by().agg(m=tacit.mean("y"), s=tacit.std("y"), v=tacit.variance("y")))
    assert len(plan.scaling.vectors) == 3
    assert [vector.totals for vector in plan.scaling.vectors] == [None, None, None]


def test_a_pair_is_of_the_rows_where_neither_is_missing():
    plan, _ = planned(by().agg(c=tacit.covariance("x", "y"), r=tacit.correlation("x", "y")))
    counted, x, y, product, of_x, of_y = plan.scaling.vectors
    assert plan.scaling.together == ((0, 1, 2, 3, 4, 5),)
    assert [each.factors for each in (product, of_x, of_y)] == [(1, 2), (1, 1), (2, 2)]
    assert plan.measured[counted.column].expression == plan.measured[x.column].expression
    for own, other, vector in (("x", "y", x), ("y", "x", y)):
        known = plan.measured[vector.column].expression
        assert known.function == "case"
        assert known.arguments[0] == Call("is_null", (Column(other),))
        assert known.arguments[-1] == Column(own)
    assert plan.measured[product.column].low < 0 <= plan.measured[of_x.column].low


def test_a_covariance_alone_needs_no_squares():
    plan, _ = planned(by().covariance("x", "y"))
    assert len(plan.scaling.vectors) == 4


def test_sizes_and_centres_are_those_that_means_learn():
    _, of_mean = planned(by().mean("y"))
    _, of_spread = planned(by().std("y"))
    _, of_pair = planned(by().covariance("x", "y"))
    assert set(of_mean) <= set(of_spread)
    assert len(set(of_mean) & set(of_pair)) == 2  # how large y is, and about its middle
    words = {fact.words for fact in of_spread.values()}
    assert any("squares" in each for each in words)


def test_all_that_is_learned_costs_its_share():
    question = by().std("y")
    _, facts = planned(question)
    assert sum(fact.epsilon for fact in facts.values()) <= Fraction(
        3125, 10_000
    )  # a fifth, and a quarter more for values and for squares
    assert sum(fact.epsilon for fact in facts.values()) > Fraction(299, 1000)


@pytest.mark.parametrize("octave", [-60, 0, 50, 63])
def test_a_grid_of_squares_is_fit_for_floats_whatever_the_size(octave):
    plan, _ = planned(by().agg(c=tacit.correlation("x", "y"), s=tacit.std("y")), octave=octave)
    for vector in plan.scaling.vectors:
        if vector.factors is not None:
            column = plan.measured[vector.column]
            assert column.step > 0
            assert column.height <= 1 << 49  # a float tells all steps apart


def test_a_range_by_hand_clamps_before_anything_is_squared():
    plan, _ = planned(by().agg(v=tacit.variance("x", between=(0, 9))))
    assert plan.measured[0].between == (0, 9)
    squared = plan.measured[plan.scaling.vectors[2].column].expression
    distance = squared.arguments[0]
    assert squared.function == "*"
    assert distance.arguments[0].function == "case"


def sizes_of(*profiles):
    """Return people by rank from profiles of {bin: people}, without noise."""
    read = [read_profile([([bins.get(at, 0) for at in range(BINS)], 1e-6)], shift=0, whole=False) for bins in profiles]
    return by_rank([Told(each) for each in read])


def moment_parts(*profiles, epsilon=1.0):
    terms = NoiseTerms("laplace", epsilon)
    return {
        place: MomentPart(sizes, terms, 1 / 3, is_product=place == 2, is_rows=place == 0)
        for place, sizes in enumerate(sizes_of(*profiles))
    }


def test_squares_of_few_people_are_kept_where_scaling_them_would_move_the_variance():
    even, uneven = {20: 10_000}, {20: 9_000, 28: 1_000}
    parts = moment_parts(even, even, uneven, epsilon=10.0)
    caps = {place: cap.size for place, cap in moment_caps(parts, cells=10).items()}
    kept = parts[2].sizes.kept(joint_weights(parts, caps))
    alone = {place: replace(part, is_product=False) for place, part in parts.items()}
    for_noise = {place: cap.size for place, cap in moment_caps(alone, cells=10).items()}
    assert kept > 0.9
    assert alone[2].sizes.kept(joint_weights(alone, for_noise)) < kept


def test_with_one_group_every_cap_is_the_tail_cap():
    parts = moment_parts({20: 1000}, {20: 1000}, {24: 1000})
    assert [cap.size for cap in moment_caps(parts, cells=1).values()] == [
        part.sizes.tail_cap for part in parts.values()
    ]
