"""Variances, covariances and correlations of a scaled plan: their numbers, and intervals that hold what was kept.

A test that draws noise counts misses among many cells. It fails falsely at most once in 10^9 runs.
"""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tacit.answer.anchors import most_of_groups
from tacit.answer.columns import noisy_columns
from tacit.answer.disclosure import bounds_lines, bounds_record
from tacit.plan import Correlation, Covariance, Measured, StandardDeviation, Variance, Vector
from tacit.plan.bounds.scaling import Outlook
from tacit.query import Call, Column
from tests.answer.scaled_plans import noisy_of, scaled_plan
from tests.answer.scaled_tables import noise
from tests.answer.test_scaled_coverage import misses_most

CONFIDENCE = Fraction(95, 100)
GROUPS, SHIFT = 300, 10
CENTRE = 1 << 30
X, Z = (Measured(Column(name), "int", Fraction(1), -CENTRE, CENTRE) for name in "xz")
SQUARES = [
    Measured(Call("*", (Column(one), Column(two))), "float", Fraction(1), 0 if one == two else -(1 << 40), 1 << 40)
    for one, two in (("x", "z"), ("x", "x"), ("z", "z"))
]
FOUND = [
    (Variance("v", 4, 0), lambda x, z: x.var()),
    (StandardDeviation("s", 4, 0), lambda x, z: x.std()),
    (Covariance("c", 3, 0, 1), lambda x, z: float(np.cov(x, z, bias=True)[0, 1])),
    (Correlation("r", 3, 0, 1), lambda x, z: float(np.corrcoef(x, z)[0, 1])),
]


def vectors(outlook=None):
    """Rows, the sums of x and z about 0, and those of x·z, x² and z²."""
    sums = [Vector("centred", at, centre=CENTRE, shift=SHIFT, rows=0) for at in (0, 1)]
    products = [
        Vector("centred", 2 + at, centre=-column.low, shift=SHIFT, rows=0, factors=factors)
        for at, (column, factors) in enumerate(zip(SQUARES, ((1, 2), (1, 1), (2, 2)), strict=True))
    ]
    return [replace(each, outlook=outlook) for each in (Vector("counted", 0, shift=SHIFT), *sums, *products)]


def plan_of(scale, *, kind="laplace", groups=GROUPS, outlook=None):
    scales = [scale * times * 2**SHIFT for times in (1, 10, 10, 100, 100, 100)]
    outputs = [output for output, _ in FOUND]
    return scaled_plan(outputs, vectors(outlook), scales=scales, groups=groups, noise=kind, measured=(X, Z, *SQUARES))


def people(rng, groups=GROUPS):
    """Two columns of each group that go together, about middles of their own."""
    found = []
    for _ in range(groups):
        x = rng.integers(-20, 20, 2000) + rng.integers(-5, 5)
        found.append((x.astype(float), (x // 2 + rng.integers(-9, 9, 2000)).astype(float)))
    return found


def exact_cells(groups):
    sums = [[len(x), x.sum(), z.sum(), (x * z).sum(), (x * x).sum(), (z * z).sum()] for x, z in groups]
    return np.array(sums).T * 2**SHIFT


def columns_of(plan, groups, rng=None):
    cells = exact_cells(groups)
    if rng is not None:
        cells = [row + noise(release, len(groups), rng) for row, release in zip(cells, plan.releases, strict=True)]
    return noisy_columns(plan, noisy_of(cells), CONFIDENCE)


def test_without_noise_to_speak_of_they_are_the_groups_own():
    groups = people(np.random.default_rng(1), 5)
    for column, (_, truth) in zip(columns_of(plan_of(Fraction(1, 1000), groups=5), groups), FOUND, strict=True):
        assert column.values == pytest.approx([truth(x, z) for x, z in groups], abs=1e-6)
        assert all(
            low <= value <= high for low, value, high in zip(column.low, column.values, column.high, strict=True)
        )


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_intervals_hold_what_was_kept(kind):
    rng = np.random.default_rng(11)
    groups = people(rng)
    columns = columns_of(plan_of(20, kind=kind), groups, rng)
    for column, (_, truth) in zip(columns, FOUND, strict=True):
        inside = [
            (low is None or low <= truth(x, z)) and (high is None or truth(x, z) <= high)
            for low, high, (x, z) in zip(column.low, column.high, groups, strict=True)
        ]
        assert len(inside) - sum(inside) <= misses_most(GROUPS, 0.05)
    spans = columns[0]
    usual = np.median([high - low for low, high in zip(spans.low, spans.high, strict=True)])
    assert usual < 0.5 * np.median(spans.values)  # and they are not wide for nothing


def test_a_group_whose_rows_may_be_noise_has_no_spread():
    plan = plan_of(20, groups=1)
    columns = noisy_columns(plan, noisy_of([[30 << SHIFT], [0], [0], [0], [99 << SHIFT], [99 << SHIFT]]), CONFIDENCE)
    assert [column.values for column in columns] == [(None,)] * 4
    assert [(column.low, column.high) for column in columns] == [
        ((0.0,), (None,)),
        ((0.0,), (None,)),
        ((None,), (None,)),
        ((-1.0,), (1.0,)),
    ]


def test_noise_alone_makes_no_negative_variance_and_no_correlation_of_nothing():
    plan = plan_of(1, groups=1)
    cells = [[1000 << SHIFT], [0], [0], [50 << SHIFT], [-(20 << SHIFT)], [900 << SHIFT]]
    variance, deviation, _, correlation = noisy_columns(plan, noisy_of(cells), CONFIDENCE)
    assert variance.values == deviation.values == (0.0,)
    assert variance.high[0] > 0
    assert correlation.values == (None,)


def outlook_with(lost_most=0.0, kept=0.9):
    return Outlook(people=500.0, mass=8000.0, kept=kept, scaled=20.0, beyond_most=7.0, excess=0.0, lost_most=lost_most)


def lacking(groups, **lost):
    """The columns where so much may be missing of rows, the sums of x, or the squares and products."""
    plan = plan_of(Fraction(1, 1000), groups=len(groups), outlook=outlook_with())
    made = [
        replace(each, outlook=outlook_with(lost.get(name, 0.0)))
        for each, name in zip(plan.scaling.vectors, ("rows", "x", "z", "xz", "xx", "zz"), strict=True)
    ]
    plan = replace(plan, scaling=replace(plan.scaling, vectors=tuple(made)))
    return columns_of(plan, groups)


@pytest.mark.parametrize("many", [1, 2, 4])
def test_what_is_missing_of_squares_is_above_a_variance_and_what_is_missing_of_rows_or_sums_below_it(many):
    groups = people(np.random.default_rng(3), many)
    part = float(most_of_groups(np.full(many, 1 / many))[0])
    before = lacking(groups)[0]
    squares = lacking(groups, xx=8000.0)[0]
    for at, value in enumerate(before.values):
        off = part * 8000 / 2000
        assert squares.values[at] == value
        assert squares.high[at] - value == pytest.approx(math.hypot(before.high[at] - value, off), rel=0.02)
        assert squares.low[at] == pytest.approx(before.low[at])
    for name in ("rows", "x"):
        fewer = lacking(groups, **{name: 400.0})[0]
        assert all(new <= old for new, old in zip(fewer.low, before.low, strict=True))
        assert min(new - old for new, old in zip(fewer.low, before.low, strict=True)) < -1e-3
        assert fewer.high == pytest.approx(before.high)


def test_what_is_missing_of_products_is_on_both_sides_of_a_covariance():
    groups = people(np.random.default_rng(3), 4)
    before, after = lacking(groups)[2], lacking(groups, xz=8000.0)[2]
    assert after.values == before.values
    off = float(most_of_groups(np.full(4, 1 / 4))[0]) * 8000 / 2000
    for at, value in enumerate(before.values):
        assert after.high[at] - value == pytest.approx(math.hypot(before.high[at] - value, off), rel=0.02)
        assert value - after.low[at] == pytest.approx(math.hypot(value - before.low[at], off), rel=0.02)


def test_what_facts_foretell_to_be_scaled_away_of_a_variance_is_in_the_details():
    groups = people(np.random.default_rng(2), 4)
    plan = plan_of(Fraction(1, 1000), groups=4, outlook=outlook_with())
    made = list(plan.scaling.vectors)
    made[4] = replace(made[4], outlook=outlook_with(kept=0.45))
    plan = replace(plan, scaling=replace(plan.scaling, vectors=tuple(made)))
    lines = bounds_lines(plan, bounds_record(plan, noisy_of(exact_cells(groups)), CONFIDENCE))
    assert any(
        line.startswith("v was computed after down-weighting") and "10 % of the rows and 55 %" in line for line in lines
    )
