"""Intervals of scaled answers hold what they are about, on whole tables with the noise drawn.

Each test counts misses among many noisy cells. It fails falsely at most once in 10^9 runs: the limit is the exact tail
of the binomial distribution at the stated rate, and the noises of cells are independent.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tacit.answer.anchors import anchors
from tacit.answer.columns import lower_ends, noisy_columns
from tacit.plan import CountRows, Mean, Measured, Sum, Vector
from tacit.plan.bounds.chosen import HIDDEN_SCALES
from tacit.plan.bounds.scaling import Outlook
from tacit.query import Column
from tests.answer.scaled_plans import noisy_of, scaled_plan
from tests.answer.scaled_tables import UnitTable, noise
from tests.engine.scaling_reference import Cell, contributions, kept_and_cut

CONFIDENCE = Fraction(95, 100)
FALSE_ALARM = 1e-9
ROWS = Vector("rows", shift=10, cap=8 << 10, totals="absolute", tail=256 << 10)


def misses_most(cells: int, rate: float) -> int:
    """The most misses in so many cells that are no alarm, if each misses at this rate."""
    chance, tail = 0.0, 1.0
    logs = [math.lgamma(cells + 1) - math.lgamma(k + 1) - math.lgamma(cells - k + 1) for k in range(cells + 1)]
    for k in range(cells + 1):
        chance = math.exp(logs[k] + k * math.log(rate) + (cells - k) * math.log1p(-rate))
        tail -= chance
        if k > rate * cells and tail <= FALSE_ALARM:
            return k
    return cells


def heavy_tailed(rng, groups=40):
    """Many people with few rows, some with hundreds; everybody in all groups alike."""
    sizes = np.minimum(np.ceil(rng.pareto(1.1, 3000)), 200).astype(int)
    unit = np.repeat(np.arange(3000), sizes)
    return UnitTable.of_rows(unit, rng.integers(0, groups, len(unit)))


def heavy_in_one(rng, groups=40):
    """As the same, but those with many rows have them all in the first group."""
    unit = np.concatenate([rng.integers(0, 3000, 9000), np.repeat(np.arange(60), 150)])
    group = np.concatenate([rng.integers(0, groups, 9000), np.zeros(9000, dtype=int)])
    return UnitTable.of_rows(unit, group)


def plan_for(table, norm):
    return scaled_plan(
        [CountRows("n", 0)],
        [ROWS],
        scales=[9 * 1024],
        totals_scales=[600 * 1024],
        groups=table.groups,
        noise="laplace" if norm == 1 else "gaussian",
    )


def released(plan, table, rng, centre=0):
    """What a plan releases of a table, with fresh noise."""
    added, totals = table.scaled(plan, centre)
    cells = [
        table.by_group(each).astype(np.int64) + noise(release, table.groups, rng)
        for each, release in zip(added, plan.releases, strict=True)
    ]
    noisy = [np.array(each) + noise(release, 2, rng) for each, release in zip(totals, plan.totals, strict=True)]
    return noisy_of(cells, [tuple(map(int, each)) for each in noisy])


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("made", [heavy_tailed, heavy_in_one])
def test_the_lower_end_holds_for_the_whole_table_whoever_is_heavy_where(made, norm):
    rng = np.random.default_rng(7)
    table, runs = made(rng), 40
    plan, truth = plan_for(table, norm), table.by_group(table.rows)
    misses = shown = 0
    for _ in range(runs):
        noisy = released(plan, table, rng)
        (column,) = noisy_columns(plan, noisy, CONFIDENCE)
        misses += int((np.array(lower_ends(plan, noisy, CONFIDENCE)["n"]) > truth).sum())
        shown += int((np.array(column.low) > truth).sum())
    cells = runs * table.groups
    assert misses <= misses_most(cells, 0.025)
    assert shown <= misses_most(cells, 0.025)


@pytest.mark.parametrize("norm", [1, 2])
def test_groups_that_lost_alike_are_covered_at_the_stated_rate(norm):
    rng = np.random.default_rng(8)
    table, runs = heavy_tailed(rng), 40
    plan = plan_for(table, norm)
    truth, misses, far = table.up_to(ROWS, table.rows), 0, []
    for _ in range(runs):
        (column,) = noisy_columns(plan, released(plan, table, rng), CONFIDENCE)
        misses += int(((np.array(column.low) > truth + 1) | (np.array(column.high) < truth - 1)).sum())
        far.append(np.abs(np.array(column.values) - truth).mean())
    assert misses <= misses_most(runs * table.groups, 0.05)
    # scaled back, what is left of the cut is a small part of it
    cut = truth - table.by_group(table.scaled(plan)[0][0]) / 1024
    assert np.mean(far) < cut.mean() / 2


def test_where_one_group_has_all_heavy_people_the_others_are_still_covered():
    rng = np.random.default_rng(9)
    table, runs = heavy_in_one(rng), 40
    plan, truth, misses = plan_for(table, 1), table.up_to(ROWS, table.rows), 0
    for _ in range(runs):
        (column,) = noisy_columns(plan, released(plan, table, rng), CONFIDENCE)
        outside = (np.array(column.low) > truth) | (np.array(column.high) < truth - 1)
        misses += int(outside[1:].sum())
    assert misses <= misses_most(runs * (table.groups - 1), 0.05)


def test_the_ends_of_the_factor_hold_the_true_one():
    rng = np.random.default_rng(10)
    table, runs, misses = heavy_tailed(rng), 120, 0
    plan = plan_for(table, 1)
    (kept, cut), *_ = table.scaled(plan)[1]
    for _ in range(runs):
        drawn = np.array([kept, cut]) + noise(plan.totals[0], 2, rng)
        (found,) = anchors(plan, noisy_of([[0] * table.groups], [tuple(map(int, drawn))]), CONFIDENCE)
        misses += not found.low <= 1 + cut / kept <= found.high
    assert misses <= misses_most(runs, 0.05)


def missing_of(table, plan, centre=0):
    """What all groups lack together by the caps of each vector, in steps: what a profile without noise would say."""
    added, _ = table.scaled(plan, centre)
    found = []
    for vector, left in zip(plan.scaling.vectors, added, strict=True):
        whole = table.fine(vector, centre)
        found.append(float(np.abs(whole - left).sum()) / 2.0**vector.shift)
    return found


def with_missing(plan, missing):
    """The plan where that is foreseen, with what a profile with noise of 10 people may hide."""
    vectors = [
        replace(
            vector,
            outlook=Outlook(
                1.0, 1.0, 1.0, 0.0, 0.0, 0.0, lost_most=each + HIDDEN_SCALES * 10 * vector.cap / 2.0**vector.shift
            ),
        )
        for vector, each in zip(plan.scaling.vectors, missing, strict=True)
    ]
    return replace(plan, scaling=replace(plan.scaling, vectors=tuple(vectors)))


def two_groups(rng, heavy_in):
    """Many people with few rows in both of two groups, and 40 with 200 rows each in some of them."""
    few, many = np.repeat(np.arange(3000), 3), np.repeat(np.arange(3000, 3040), 200)
    unit = np.concatenate([few, many])
    group = np.concatenate([rng.integers(0, 2, len(few)), rng.choice(heavy_in, len(many))])
    return UnitTable.of_rows(unit, group)


@pytest.mark.parametrize("heavy_in", [[0], [1], [0, 1]])
def test_of_two_groups_both_are_covered_whichever_has_the_heavy_people(heavy_in):
    """Where all that is missing is foreseen, a group may lack all of it: both ends then hold whoever is where."""
    rng = np.random.default_rng(21)
    table, runs, misses = two_groups(rng, heavy_in), 200, 0
    plan = scaled_plan([CountRows("n", 0)], [replace(ROWS, totals=None)], scales=[9 * 1024], groups=2)
    plan, truth = with_missing(plan, missing_of(table, plan)), table.by_group(table.rows)
    for _ in range(runs):
        (column,) = noisy_columns(plan, released(plan, table, rng), CONFIDENCE)
        misses += int(((np.array(column.low) > truth) | (np.array(column.high) < truth)).sum())
    assert misses <= misses_most(2 * runs, 0.05)


@pytest.mark.parametrize("people", [0, 1])
def test_of_nobody_and_of_one_person_the_interval_of_one_number_is_covered(people):
    """One person has 500 rows, of which the cap leaves 8: the interval holds them if they are foreseen."""
    rng = np.random.default_rng(22)
    unit = np.zeros(500 * people, dtype=int)
    exact, truth = min(people * 500, 8), people * 500
    plan = scaled_plan([CountRows("n", 0)], [replace(ROWS, totals=None)], scales=[9 * 1024], groups=0)
    plan = with_missing(plan, [float(len(unit) - exact)])
    runs, misses, low_misses = 400, 0, 0
    for _ in range(runs):
        cell = exact * 1024 + int(noise(plan.releases[0], 1, rng)[0])
        (column,) = noisy_columns(plan, replace(noisy_of([[cell]]), keys=((),)), CONFIDENCE)
        misses += not column.low[0] <= truth <= column.high[0]
        low_misses += column.low[0] > truth
    assert misses <= misses_most(runs, 0.05)
    assert low_misses <= misses_most(runs, 0.025)


def test_means_and_sums_are_covered_where_heavy_people_have_other_values():
    rng = np.random.default_rng(11)
    sizes = np.minimum(np.ceil(rng.pareto(1.1, 3000)), 200).astype(int)
    unit = np.repeat(np.arange(3000), sizes)
    value = np.rint(rng.normal(100 + 5 * np.log2(sizes[unit]), 10))  # the more rows, the larger
    table = UnitTable.of_rows(unit, rng.integers(0, 20, len(unit)), value)
    centre = 100
    column = Measured(Column("x"), "int", Fraction(1), centre - (1 << 30), centre + (1 << 30))
    rows = Vector("counted", 0, shift=10, cap=8 << 10)
    sums = Vector("centred", 0, centre=1 << 30, shift=8, cap=120 << 8, rows=0)
    plan = scaled_plan(
        [Mean("m", 1, 0), Sum("s", 1, 0)],
        [rows, sums],
        scales=[9 * 1024, 150 * 256],
        groups=table.groups,
        measured=(column,),
    )
    plan = replace(plan, scaling=replace(plan.scaling, together=((0, 1),)))
    plan = with_missing(plan, missing_of(table, plan, centre))
    truths = table.by_group(table.total) / table.by_group(table.rows), table.by_group(table.total)
    misses, runs = [0, 0], 40
    for _ in range(runs):
        noisy = released(plan, table, rng, centre)
        for at, (found, truth) in enumerate(zip(noisy_columns(plan, noisy, CONFIDENCE), truths, strict=True)):
            misses[at] += int(((np.array(found.low) > truth) | (np.array(found.high) < truth)).sum())
    assert max(misses) <= misses_most(runs * table.groups, 0.05)


@pytest.mark.parametrize("norm", [1, 2])
def test_the_tables_here_are_scaled_as_the_reference_says(norm):
    rng = np.random.default_rng(12)
    unit, group = rng.integers(0, 30, 900), rng.integers(0, 12, 900)
    table = UnitTable.of_rows(unit, group, rng.integers(0, 50, 900))
    column = Measured(Column("x"), "int", Fraction(1), 0, 100)
    sums = Vector("centred", 0, centre=25, shift=3, cap=700, totals="signed", tail=300, tail_shift=2, rows=0)
    rows = replace(ROWS, cap=7 << 10, tail=20 << 9, tail_shift=1)
    plan = scaled_plan(
        [CountRows("n", 0)],
        [rows, sums],
        scales=[1, 1],
        totals_scales=[1, 1],
        groups=table.groups,
        noise="laplace" if norm == 1 else "gaussian",
        measured=(column,),
    )
    plan = replace(plan, scaling=replace(plan.scaling, together=((0, 1),)))
    added, totals = table.scaled(plan, 25)
    expected = [[0, 0], [0, 0]]
    for each in range(30):
        mine = np.flatnonzero(table.unit == each)
        cells = [Cell(int(table.rows[at]), ((int(table.rows[at]), int(table.total[at])),)) for at in mine]
        scaled = contributions(plan.scaling, cells)
        for index, vector in enumerate(plan.scaling.vectors):
            assert added[index][mine].tolist() == scaled[index]
            for part, number in enumerate(kept_and_cut(vector, cells, scaled[index])):
                expected[index][part] += number
    assert [list(each) for each in totals] == expected
