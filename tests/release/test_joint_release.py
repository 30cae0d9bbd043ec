"""Count, sum and mean from one joint release: the parts add up, and their noise has the variances of the proof page."""

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from tacit.answer.columns import noisy_columns, uncut_columns
from tacit.exact import ExactTable
from tacit.noise.gaussian import DiscreteGaussian
from tacit.noise.laplace import DiscreteLaplace
from tacit.query.frame import count, mean
from tacit.query.frame import sum as sum_of
from tacit.release import NoisyTable, release
from tacit_gauntlet.stage.table import bounded_plan, plan_of, protected

GROUPS = 40_000


def joint(noise, low=-20, high=100, **declared):
    rows = pa.table({"id": [1], "x": [1]})
    table = protected(rows, columns={"x": {"between": (low, high)}}, rows_per_unit=1, **declared)
    return plan_of(table.agg(n=count(), c=count("x"), s=sum_of("x"), m=mean("x")), noise=noise)


def test_without_noise_the_parts_give_every_aggregate_back_exactly():
    plan = joint("laplace")
    height, low = plan.measured[0].height, plan.measured[0].low
    rows, counted, total = 17, 11, 503
    parts = ((rows - counted) * height, counted * height - total, total)
    noisy = NoisyTable(((),), (tuple((part,) for part in parts),))
    n, c, s, m = noisy_columns(plan, noisy, Fraction(95, 100))
    assert (n.values[0], c.values[0], s.values[0]) == (rows, counted, total + counted * low)
    assert m.values[0] is None or m.values[0] == pytest.approx(low + total / counted)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_variances_are_those_of_the_proof(noise):
    """COUNT(*) has 3 noises, COUNT(x) 2, each over the height; SUM weighs the ends by low and high.

    A sample variance of 40,000 draws is within 8 % of the true one but with probability below 10^-9: 7 standard
    deviations of Laplace noise.
    """
    plan = joint(noise)
    (released,) = plan.releases
    column = plan.measured[0]
    exact = ExactTable(
        [(place,) for place in range(GROUPS)],
        {name: [0] * GROUPS for name in ("rows", "units", "counted_0", "total_0")},
    )
    n, c, s, _ = uncut_columns(plan, release(plan, exact), Fraction(95, 100))
    law = DiscreteLaplace(released.scale) if noise == "laplace" else DiscreteGaussian(released.scale)
    one = law.variance / column.height**2
    for found, noises in ((n, 3), (c, 2), (s, column.low**2 + column.high**2)):
        rounding = 1 / 12  # to the nearest whole number
        assert np.var(np.array(found.values, dtype=float)) == pytest.approx(noises * one + rounding, rel=0.08)


def test_one_joint_release_has_a_quarter_of_the_variance_of_an_even_split():
    """Half the epsilon for each of a count and a sum would double both scales."""
    joint_scale = joint("laplace", 0, 100).releases[0].scale / 100
    rows = pa.table({"id": [1], "x": [1]})
    count_alone = protected(rows, rows_per_unit=1).count()
    alone = bounded_plan(count_alone, epsilon=Fraction(1, 2), noise="laplace").releases[0].scale
    assert 2 * joint_scale == alone


@pytest.mark.parametrize("neighbours", ["add-remove", "replace"])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_noise_is_just_what_the_sensitivity_and_the_loss_ask_for(noise, neighbours):
    plan = joint(noise, neighbours=neighbours)
    (released,) = plan.releases
    twice = 2 if neighbours == "replace" else 1
    assert released.sensitivity.l1 == twice * 120
    assert released.sensitivity.l2_squared == twice * 120**2
    if noise == "laplace":
        assert released.scale == released.sensitivity.l1 / plan.spend.epsilon
    else:
        assert released.event.sensitivity_squared == released.sensitivity.l2_squared
