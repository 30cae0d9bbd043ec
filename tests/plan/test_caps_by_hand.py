"""Bounds given by hand are caps of counts and sums: nothing is learned for them, and no row is picked at random."""

from dataclasses import replace
from fractions import Fraction
from math import isclose, sqrt

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.answer.columns import noisy_columns
from tacit.plan import UNBOUNDED, Plan, make_plan, missing_facts
from tacit.release import release
from tacit_gauntlet.stage.table import exact_cells, exact_table, protected
from tests.plan.learned import learned, rows
from tests.plan.test_filled import asked_of

KEYS = ["a", "b", "c", "d"]
# one person with 9 rows in a and 3 in b, one with a row in each group, one with two rows in a
VISITS = [(1, "a")] * 9 + [(1, "b")] * 3 + [(2, key) for key in KEYS] + [(3, "a")] * 2
DATA = pa.table(
    {
        "id": [who for who, _ in VISITS],
        "g": [key for _, key in VISITS],
        "x": [4] * len(VISITS),
        "y": [1.5] * len(VISITS),
    }
)
KINDS = {
    "count": lambda by: by.count(),
    "units": lambda by: by.count_units(),
    "values": lambda by: by.count("x"),
    "sum": lambda by: by.sum("x", between=(-2, 10)),
    "several": lambda by: by.agg(n=tacit.count(), s=tacit.sum("x", between=(0, 10)), u=tacit.count_units()),
}


def table(**declared):
    return protected(DATA, **({"rows_per_unit": 3, "groups_per_unit": 2, "most_rows_per_unit": None} | declared))


def by_group(**declared):
    return table(**declared).group_by("g", keys=KEYS)


def caps(plan: Plan) -> list[float]:
    return [vector.cap / 2.0**vector.shift for vector in plan.scaling.vectors]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_learned_for_bounds_given_by_hand(kind):
    for question in (KINDS[kind](by_group()), KINDS[kind](table())):
        assert missing_facts(*asked_of(question), {}) == ()
        plan = make_plan(*asked_of(question), {})
        assert plan.spend.epsilon == 1
        assert plan.learned == plan.totals == ()
        assert (plan.rows_per_unit, plan.groups_per_unit) == (UNBOUNDED, UNBOUNDED)


def test_the_cap_is_what_somebody_has_who_is_at_both_bounds_in_the_norm_of_the_noise():
    for noise, times in (("laplace", 2.0), ("gaussian", sqrt(2))):
        plan = by_group().agg(n=tacit.count(), s=tacit.sum("x", between=(-2, 10)), u=tacit.count_units())
        found = caps(plan.plan(epsilon=1, noise=noise).plan)
        assert all(
            isclose(one, two, rel_tol=1e-5) for one, two in zip(found, [3 * times, 30 * times, times], strict=True)
        )
    assert caps(make_plan(*asked_of(table().count()), {})) == [3]
    assert caps(make_plan(*asked_of(by_group(groups_per_unit=9).count()), {})) == [12], "there are four groups"
    assert caps(make_plan(*asked_of(by_group(most_rows_per_unit=4).count()), {})) == [4]


def test_the_noise_is_that_of_the_bounds():
    """Scale r·g/ε in rows, as if rows beyond had been dropped."""
    for declared, size in (({"rows_per_unit": 1, "groups_per_unit": 1}, 1), ({}, 6), ({"neighbours": "replace"}, 12)):
        plan = make_plan(*asked_of(by_group(**declared).count(), Fraction(1, 2)), {})
        (made,), (vector,) = plan.releases, plan.scaling.vectors
        assert made.noise == "laplace"
        assert made.scale / Fraction(2) ** vector.shift == 2 * size


def added(question):
    """Return what each group's people add up to, in rows."""
    plan = make_plan(*asked_of(question), {})
    (vector,) = plan.scaling.vectors
    (cells,) = exact_cells(question)
    return {key: value / 2.0**vector.shift for (key, _), value in cells.items()}


def test_a_person_beyond_the_cap_counts_for_less_and_keeps_the_cap():
    """12 rows count for 6, in proportion; 4 rows of four groups and 2 rows of one count in full."""
    found = added(by_group().count())
    expected = {"a": 4.5 + 1 + 2, "b": 1.5 + 1, "c": 1, "d": 1}
    assert all(isclose(found[key], each, rel_tol=1e-4) for key, each in expected.items())
    assert all(
        isclose(each, 3.0 if key == "a" else 2.0 if key == "b" else 1.0) or each > 0 for key, each in found.items()
    )


@pytest.mark.parametrize("bounds", [(1, 1), (1, 3), (2, 2), (3, 1), (5, 4)])
def test_in_l1_at_least_as_much_is_kept_as_dropping_keeps(bounds):
    """Of every person: min(rows, r·g) is at least what is left of any g groups with at most r rows of each."""
    most, groups = bounds
    source = np.random.default_rng(1)
    for _ in range(20):
        cells = source.integers(0, 9, 6)
        dropped = np.sort(np.minimum(cells, most))[::-1][:groups].sum()
        assert min(cells.sum(), most * groups) >= dropped


def test_one_bound_by_hand_leaves_the_other_to_be_learned():
    people = rows({1: 20_000, 2: 10_000, 5: 5_000})
    question = by_group(groups_per_unit=None).count()
    (wanted,) = missing_facts(*asked_of(question), {})
    assert "how many groups" not in wanted.words
    plan = make_plan(*asked_of(question), learned(*asked_of(question), people))
    assert plan.scaling is not None
    assert caps(plan)[0] % 3 == 0, "so many groups with three rows in each"
    alone = by_group(rows_per_unit=None).count_units()
    assert missing_facts(*asked_of(alone), {}) == ()


def test_a_mean_and_a_moment_are_of_what_is_kept_and_learn_nothing_either():
    for asked in (
        {"m": tacit.mean("x", between=(0, 9))},
        {"n": tacit.count(), "v": tacit.variance("x", between=(0, 9))},
    ):
        question = by_group().agg(**asked)
        assert missing_facts(*asked_of(question), {}) == ()
        plan = make_plan(*asked_of(question), {})
        assert (plan.scaling, len(plan.releases)) == (None, 1)
        assert (plan.rows_per_unit, plan.groups_per_unit) == (3, 2)


def test_the_answer_says_what_is_not_counted_and_the_interval_is_the_noise():
    answer = by_group().count().answer(epsilon=1)
    assert "Not included: rows beyond 6 of one id." in answer.facts.reading
    gaussian = by_group().count().answer(epsilon=1, noise="gaussian")
    assert "rows beyond 3 in each of 2 groups of one id" in gaussian.facts.reading
    nobody = by_group(most_rows_per_unit=6).count().answer(epsilon=1)
    assert "rows beyond" not in nobody.facts.reading
    units = by_group().count_units().answer(epsilon=1)
    assert "groups beyond 2 of one id" in units.facts.reading
    assert (
        "rows beyond 3 in each of 2 groups of one id"
        in by_group().mean("x", between=(0, 9)).answer(epsilon=1).facts.reading
    )


def test_what_is_known_of_people_already_is_allowed_for_and_costs_nothing():
    free = table(rows_per_unit=None, groups_per_unit=None).group_by("g", keys=KEYS).count()
    facts = learned(*asked_of(free), rows({1: 20_000, 2: 10_000, 40: 500}))
    question = by_group().count()
    assert missing_facts(*asked_of(question), facts) == ()
    plan, plain = make_plan(*asked_of(question), facts), make_plan(*asked_of(question), {})
    (vector,) = plan.scaling.vectors
    assert vector.outlook is not None
    assert vector.outlook.lost > 500 * 30
    assert plan.releases == plain.releases, "no noise is different for it"
    exact = exact_table(question, plan=plan)
    (wide,), (narrow,) = (noisy_columns(each, release(each, exact), Fraction(95, 100)) for each in (plan, plain))
    assert wide.high[0] - wide.values[0] > 2 * (narrow.high[0] - narrow.values[0])


def test_a_public_number_of_rows_is_scaled_up_to():
    plan = make_plan(*asked_of(by_group(rows=len(VISITS)).count()), {})
    assert plan.public_rows == len(VISITS)
    full = 2.0 ** plan.scaling.vectors[0].shift
    from tacit.release import NoisyTable

    kept = tuple(int(each * full) for each in (7_500, 2_500, 1_000, 1_000))
    many = replace(plan, public_rows=15_000)
    (column,) = noisy_columns(many, NoisyTable(tuple((key,) for key in KEYS), ((kept,),)), Fraction(95, 100))
    assert sum(column.values) == 15_000
    assert column.low[0] < 7_500 <= column.values[0] < column.high[0]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("declared", [{"rows_per_unit": 2}, {"rows_per_unit": 2, "groups_per_unit": 3}])
def test_one_number_says_what_is_not_counted_whatever_its_noise(declared, noise):
    table = protected(DATA, **{"groups_per_unit": None, "most_rows_per_unit": None, **declared})
    answer = table.count().answer(epsilon=40, noise=noise, accept_noise=True)
    assert "rows beyond 2 of one id" in answer.facts.reading
