"""Private quantiles: the exact law, ranks, ties, splitting, and what a unit can move."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest

from tacit.noise.bits import Keystream
from tacit.selection import quantile
from tacit.selection.quantile import Rate, Target, draw_quantiles, levels_of

ONE = Rate(Fraction(1), 1)
NONE = np.array([], dtype=np.int64)


def drawn(values: list[int], targets: tuple[Target, ...], height: int, rate: Rate = ONE) -> list[int]:
    steps, counts = np.unique(np.array(values, dtype=np.int64), return_counts=True)
    return draw_quantiles(steps, counts, targets, height=height, rate_of=rate)


def exact_law(rows: list[int], fraction: Fraction, high: int, rate: Rate) -> list[float]:
    """The law by its definition, point by point."""
    up, down, slope = rate.for_fraction(fraction)
    weights = [
        exp(-float(slope) * abs(up * sum(row < c for row in rows) - down * sum(row > c for row in rows)))
        for c in range(high + 1)
    ]
    return [weight / sum(weights) for weight in weights]


@pytest.mark.parametrize("fraction", [Fraction(1, 2), Fraction(1, 10), Fraction(0), Fraction(1)])
def test_one_quantile_follows_the_law_of_the_exponential_mechanism(fraction: Fraction) -> None:
    """Chi-square at a false-alarm rate of 1e-6 (99.9999 % of chi-square with 15 degrees is below 56)."""
    rows, high, runs = [2, 2, 3, 9, 14], 15, 6_000
    bits = Keystream()
    array = np.array(rows, dtype=np.int64)
    got = np.bincount(
        [quantile._draw_one(array, Target(fraction), 0, high, ONE, bits) for _ in range(runs)], minlength=high + 1
    )
    expected = np.array(exact_law(rows, fraction, high, ONE)) * runs
    assert ((got - expected) ** 2 / expected).sum() < 56


def largest_log_ratio(rows: list[int], other: list[int], fraction: Fraction, rate: Rate) -> float:
    one, two = (np.array(exact_law(each, fraction, 9, rate)) for each in (rows, other))
    return float(np.abs(np.log(one / two)).max())


@pytest.mark.parametrize("fraction", [Fraction(1, 2), Fraction(1, 10), Fraction(9, 10)])
def test_a_unit_with_r_rows_moves_the_law_by_at_most_epsilon(fraction: Fraction) -> None:
    rate = Rate(Fraction(1), rows_per_unit=3)
    for added in ([0, 0, 0], [9, 9, 9], [0, 5, 9], [4]):
        assert largest_log_ratio([3, 5, 7], [3, 5, 7, *added], fraction, rate) <= 1 + 1e-12


def test_a_score_sensitivity_of_one_with_r_rows_would_break_the_promise() -> None:
    """The mutant: the row bound left out of the sensitivity."""
    assert largest_log_ratio([3, 5, 7], [3, 5, 7, 0, 0, 0], Fraction(1, 2), Rate(Fraction(1), 1)) > 1.5


def test_replacing_a_unit_costs_epsilon_only_if_the_rate_says_so() -> None:
    rows, other = [0, 6, 6, 0], [0, 6, 6, 9]
    assert largest_log_ratio(rows, other, Fraction(1, 2), Rate(Fraction(1), 1, replace=True)) <= 1 + 1e-12
    assert largest_log_ratio(rows, other, Fraction(1, 2), Rate(Fraction(1), 1)) > 1.4


def test_a_level_of_splitting_costs_what_one_quantile_costs() -> None:
    """The parts of a level: a unit with rows in both moves the product of their laws by at most epsilon."""
    rate = Rate(Fraction(1), rows_per_unit=2)
    below = largest_log_ratio([1, 2], [1, 2, 0], Fraction(1, 2), rate)
    above = largest_log_ratio([6, 7], [6, 7, 9], Fraction(1, 2), rate)
    assert below + above <= 1 + 1e-12


def test_many_quantiles_rise_and_fall_near_their_ranks() -> None:
    values = list(range(100_000))
    targets = tuple(Target(Fraction(tenth, 10)) for tenth in range(1, 10))
    found = drawn(values, targets, 2**20, Rate(Fraction(1), 1))
    assert found == sorted(found)
    # rank error above 60·4 rows has a chance below 1e-6 (docs/proofs/quantiles.md), over four levels
    assert all(abs(value - tenth * 10_000) < 400 for tenth, value in enumerate(found, 1))


def test_a_million_ties_give_the_tied_value() -> None:
    steps, counts = np.array([5]), np.array([1_000_000])
    targets = tuple(Target(Fraction(tenth, 10)) for tenth in range(1, 10))
    assert draw_quantiles(steps, counts, targets, height=1000, rate_of=ONE) == [5] * 9


def test_no_rows_give_points_of_the_range() -> None:
    for value in draw_quantiles(NONE, NONE, (Target(Fraction(1, 2)),) * 3, height=7, rate_of=ONE):
        assert 0 <= value <= 7


def test_a_shift_moves_the_rank_by_so_many_rows() -> None:
    values = list(range(100_000))
    (value,) = drawn(values, (Target(Fraction(1, 2), Fraction(5_000)),), 2**20, Rate(Fraction(1), 1))
    assert abs(value - 55_000) < 100


def test_levels() -> None:
    assert [levels_of(count) for count in range(1, 9)] == [1, 2, 2, 3, 3, 3, 3, 4]
