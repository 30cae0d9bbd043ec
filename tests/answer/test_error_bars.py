"""A mean's bounds, made all at once, are those of its weighted noises one by one."""

from fractions import Fraction

import pytest

from tacit.answer.error_bars import MEAN_CELLS, mean_bounds
from tacit.answer.noise_sums import weighted_bound


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7, 3), Fraction(1638400)])
def test_a_means_bounds_are_those_of_its_weighted_noises(noise, scale):
    level = Fraction(95, 100)
    cells = [cell / (2 * MEAN_CELLS) for cell in range(MEAN_CELLS + 1)]
    wanted = tuple(weighted_bound(noise, scale, (1 - cell, cell), level) for cell in cells)
    assert mean_bounds(noise, scale, level).usual == wanted
