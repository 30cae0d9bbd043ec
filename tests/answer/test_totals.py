"""Totals agree with what they are totals of, and err less than asked alone or added up."""

from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.answer.columns import noisy_columns
from tacit.answer.totals import Level, added_up
from tacit.plan import make_plan, make_spend
from tacit.plan.planner import hand_set_plan
from tacit.release import NoisyTable

A, B = ["u", "v", "w"], list(range(8))
LEVELS = ((0, 1), (0,), ())
CUBE = ((0, 1), (0,), (1,), ())
CONFIDENCE = Fraction(95, 100)


@pytest.fixture(scope="module")
def table():
    rows = pa.table({"a": ["u"], "b": [1], "x": [1]})
    columns = {"a": {"keys": A}, "b": {"keys": B}, "x": {"between": (0, 10)}}
    return tacit.table(
        rows, unit=tacit.ROW, name="t", budget=tacit.epsilon(9, delta=1e-6), columns=columns, ledger=tacit.TRYOUT
    )


def plans(table, sets, noise, asked="count"):
    """The plan of each level, as `asked`, at a third of 1."""
    spend = make_spend(Fraction(1, 3), None, noise, table.session.registered.budget)
    found = []
    for kept in sets:
        grouped = table.group_by(*("ab"[key] for key in kept)) if kept else table
        question = grouped.count() if asked == "count" else grouped.sum("x")
        found.append(make_plan(question.query, table.session.declaration, spend))
    return found


def drawn(table_of_plans, sets, random, noise):
    """Every level of a table whose cells are 1, 2, 3 …, with noise of the plan's scale, and the truth."""
    cells = {key: 100 + at for at, key in enumerate(product(A, B))}
    levels, truth = [], []
    for kept, plan in zip(sets, table_of_plans, strict=True):
        sums: dict = {}
        for key, count in cells.items():
            part = tuple(key[each] for each in kept)
            sums[part] = sums.get(part, 0) + count
        scale = float(plan.releases[0].scale)
        draw = random.laplace if noise == "laplace" else random.normal
        noisy = [value + round(draw(0, scale)) for value in sums.values()]
        levels.append(Level(kept, plan, NoisyTable(tuple(sums), ((tuple(noisy),),))))
        truth.append(list(sums.values()))
    return levels, truth


def fitted(levels):
    columns = [noisy_columns(level.plan, level.noisy, CONFIDENCE) for level in levels]
    found, names = added_up(levels, columns, CONFIDENCE)
    return [each[0] for each in columns], [each[0] for each in found], names


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_totals_err_less_than_asked_alone_and_than_cells_added_up(table, noise):
    """200 tables at a fixed seed, so it always comes out alike; the shares below are what it measures, with room."""
    random = np.random.default_rng(17)
    made = plans(table, LEVELS, noise)
    errors = np.zeros((3, 3))  # by level: alone, added up from cells, fitted
    for _ in range(200):
        levels, truth = drawn(made, LEVELS, random, noise)
        alone, best, _ = fitted(levels)
        cells = dict(zip(levels[0].noisy.keys, alone[0].values, strict=True))
        for at, (level, wanted) in enumerate(zip(levels, truth, strict=True)):
            sums = [
                sum(value for key, value in cells.items() if tuple(key[each] for each in level.kept) == group)
                for group in level.noisy.keys
            ]
            for way, values in enumerate((alone[at].values, sums, best[at].values)):
                errors[at, way] += np.mean((np.array(values) - np.array(wanted)) ** 2)
    for level in range(3):
        assert errors[level, 2] < errors[level, 0]
        assert errors[level, 2] <= errors[level, 1]
    # the total: one number of its own and 24 cells, of which it takes 1/(1 + 1/24 + …)
    assert errors[2, 2] < 0.9 * errors[2, 0]
    assert errors[1, 2] < 0.95 * errors[1, 0]


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("sets", [LEVELS, CUBE])
def test_their_intervals_cover_at_the_stated_rate(table, sets, noise):
    """Of 60 tables at a fixed seed, so it always comes out alike; some 1,700 numbers or more."""
    random = np.random.default_rng(18)
    made = plans(table, sets, noise)
    inside = widths = all_of = 0.0
    for _ in range(60):
        levels, truth = drawn(made, sets, random, noise)
        alone, best, _ = fitted(levels)
        for one, two, wanted in zip(alone, best, truth, strict=True):
            for low, high, value in zip(two.low, two.high, wanted, strict=True):
                inside += low <= value <= high
                all_of += 1
            widths += sum(two.high) - sum(two.low) < sum(one.high) - sum(one.low)
    assert inside / all_of > 0.92
    if noise == "gaussian":  # and they are narrower; of Laplace noise of a few steps, what whole steps add undoes it
        assert widths == 60 * len(sets)


def test_a_rollup_adds_up_to_the_last_one_and_a_cube_to_within_rounding(table):
    random = np.random.default_rng(19)
    levels, _ = drawn(plans(table, LEVELS, "laplace"), LEVELS, random, "laplace")
    _, (cells, by_a, total), names = fitted(levels)
    assert names == ["count"]
    assert sum(cells.values) == sum(by_a.values) == total.values[0]
    for at, a in enumerate(levels[1].noisy.keys):
        inside = [value for key, value in zip(levels[0].noisy.keys, cells.values, strict=True) if key[:1] == a]
        assert sum(inside) == by_a.values[at]
    levels, _ = drawn(plans(table, CUBE, "laplace"), CUBE, random, "laplace")
    _, (cells, by_a, by_b, total), _ = fitted(levels)
    for sums in (by_a, by_b):
        assert abs(sum(sums.values) - total.values[0]) <= len(sums.values) / 2 + 1
    assert abs(sum(cells.values) - total.values[0]) <= len(cells.values) / 2 + 1


def test_levels_without_a_finest_one_agree_on_what_both_are_margins_of(table):
    random, sets = np.random.default_rng(20), ((0,), (1,), ())
    levels, _ = drawn(plans(table, sets, "gaussian"), sets, random, "gaussian")
    _, (by_a, by_b, total), _ = fitted(levels)
    for sums in (by_a, by_b):
        assert abs(sum(sums.values) - total.values[0]) <= len(sums.values) / 2 + 1


def test_a_level_with_less_noise_counts_for_more(table):
    random = np.random.default_rng(21)
    made = plans(table, LEVELS, "laplace")
    spend = make_spend(9, None, "laplace", table.session.registered.budget)
    made[2] = make_plan(table.count().query, table.session.declaration, spend)
    levels, truth = drawn(made, LEVELS, random, "laplace")
    alone, best, _ = fitted(levels)
    assert abs(best[2].values[0] - alone[2].values[0]) <= 1
    assert truth[2][0] == pytest.approx(best[2].values[0], abs=3)


def test_counts_of_units_are_not_added_up():
    rows = pa.table({"who": [1], "a": ["u"]})
    table = tacit.table(
        rows,
        unit="who",
        name="t",
        budget=tacit.epsilon(9),
        columns={"a": {"keys": A}},
        groups_per_unit=1,
        ledger=tacit.TRYOUT,
    )
    spend = make_spend(1, None, None, table.session.registered.budget)
    levels = []
    for kept, question in (((0,), table.group_by("a").count_units()), ((), table.count_units())):
        plan = make_plan(question.query, table.session.declaration, spend)
        keys = tuple((a,) for a in A) if kept else ((),)
        levels.append(Level(kept, plan, NoisyTable(keys, ((tuple(range(len(keys))),),))))
    assert fitted(levels)[2] == []


def test_bounds_that_leave_out_more_of_a_total_than_of_its_cells_are_not_added_up():
    """Of a person with a row in each of three groups, one counts in the total: cells must not be pulled down to it."""
    rows = pa.table({"who": [1], "a": ["u"]})
    declared = {"unit": "who", "name": "t", "budget": tacit.epsilon(9), "columns": {"a": {"keys": A}}}
    table = tacit.table(rows, **declared, rows_per_unit=1, groups_per_unit=3, ledger=tacit.TRYOUT)
    spend = make_spend(1, None, None, table.session.registered.budget)
    levels = []
    for kept, question in (((0,), table.group_by("a").count()), ((), table.count())):
        plan = hand_set_plan(question.query, table.session.declaration, spend)
        keys = tuple((a,) for a in A) if kept else ((),)
        levels.append(Level(kept, plan, NoisyTable(keys, (((500,) * len(keys),),))))
    alone, best, names = fitted(levels)
    assert names == []
    assert alone == best
