"""Private quantiles: the exact law, ranks, ties, splitting, intervals, and what a unit can move."""

from collections.abc import Callable
from fractions import Fraction
from math import exp

import numpy as np
import pytest

from tacit.auditing.gauntlet.statistic import FALSE_ALARM, chi_square_fit
from tacit.noise.bits import Keystream
from tacit.plan.layout import WantedQuantiles
from tacit.plan.plan import Spend
from tacit.plan.ranks import UnitBounds, draw_of
from tacit.selection import quantile
from tacit.selection.quantile import Aim, Rate, Target, draw_quantiles, levels_of, rank_errors

ONE = Rate(Fraction(1), 1)
NONE = np.array([], dtype=np.int64)
HALF = Fraction(1, 2)


def drawn(values: list[int], targets: tuple[Target, ...], height: int, rate: Rate = ONE) -> list[int]:
    return [middle for _, middle, _ in with_ends(values, targets, height, rate)]


def with_ends(
    values: list[int], targets: tuple[Target, ...], height: int, rate: Rate = ONE
) -> list[tuple[int, int, int]]:
    return draw_quantiles(np.sort(np.array(values, dtype=np.int64)), targets, height=height, rate=rate, ends_rate=rate)


def low_end(reach: int, rate: Rate) -> Aim:
    return Aim(0, 1, -reach, quantile.WRONG_SIDE, 1, rate.for_end())


def exact_law(rows: list[int], aim: Aim, high: int) -> np.ndarray:
    """The law by its definition, point by point; the last two are below and above every row."""
    n, scores = len(rows), []
    for c in range(high + 1):
        leads = [aim.up * below - aim.down * (n - below) - aim.at for below in range(n + 1)]
        below, upto = sum(row < c for row in rows), sum(row <= c for row in rows)
        scores.append(min(aim.over * max(lead, 0) + aim.under * max(-lead, 0) for lead in leads[below : upto + 1]))
        if leads[below] <= 0 <= leads[upto]:
            scores[-1] = 0
    scores.append(aim.under * max(aim.down * n + aim.at, 0))
    scores.append(aim.over * max(aim.up * n - aim.at, 0))
    weights = np.array([exp(-float(aim.slope) * score) for score in scores])
    return weights / weights.sum()


# So many draws are expected in each cell of a chi-square where there are so many; with few it is no chi-square.
RARE_MOST = 50
AIMS = [quantile._aim(Target(Fraction(*pair)), ONE) for pair in ((1, 2), (1, 10), (0, 1), (1, 1))]


@pytest.mark.parametrize("aim", [*AIMS, low_end(2, ONE), quantile._aim(Target(HALF, Fraction(-9)), ONE)])
def test_one_draw_follows_the_law_of_the_exponential_mechanism(aim: Aim) -> None:
    """Chi-square at a false-alarm rate of 1e-6; values that hardly ever come are counted together."""
    rows, high, runs = [2, 2, 3, 9, 14], 15, 6_000
    bits = Keystream()
    array = np.array(rows, dtype=np.int64)
    got = np.zeros(high + 3)
    for _ in range(runs):
        found = quantile._draw_one(array, aim, 0, high, bits)
        got[{-1: high + 1, 1: high + 2}.get(found.outside, found.value)] += 1
    expected = exact_law(rows, aim, high) * runs
    order = np.argsort(expected)
    rare = order[:-1][: np.searchsorted(np.cumsum(expected[order]), RARE_MOST) + 1]
    often = np.setdiff1d(order, rare)
    seen, awaited = ([*each[often], each[rare].sum()] for each in (got, expected))
    assert chi_square_fit([int(count) for count in seen], awaited) > FALSE_ALARM / 10  # approximate with two cells


def largest_log_ratio(rows: list[int], other: list[int], aim: Aim) -> float:
    one, two = (exact_law(each, aim, 9) for each in (rows, other))
    return float(np.abs(np.log(one / two)).max())


def aims(rate: Rate) -> list[Aim]:
    fractions = (HALF, Fraction(1, 10), Fraction(9, 10), Fraction(0), Fraction(1))
    found = [quantile._aim(Target(fraction, Fraction(shift)), rate) for fraction in fractions for shift in (0, -2, 2)]
    high_end = Aim(1, 0, 2, 1, quantile.WRONG_SIDE, rate.for_end())
    return [*found, low_end(2, rate), low_end(9, rate), high_end]


ADDED = ([0, 0, 0], [9, 9, 9], [0, 5, 9], [4], [5, 5, 5])


def test_a_unit_with_r_rows_moves_the_law_by_at_most_epsilon() -> None:
    for aim in aims(Rate(Fraction(1), rows_per_unit=3)):
        for added in ADDED:
            assert largest_log_ratio([3, 5, 7], [3, 5, 7, *added], aim) <= 1 + 1e-12


def test_a_score_sensitivity_of_one_with_r_rows_would_break_the_promise() -> None:
    """The mutant: the row bound left out of the sensitivity, of a quantile and of an interval's end."""
    one_row = Rate(Fraction(1), 1)
    aim = quantile._aim(Target(HALF), one_row)
    assert largest_log_ratio([3, 5, 7], [3, 5, 7, 0, 0, 0], aim) > 1.5
    assert largest_log_ratio([3, 5, 7], [3, 5, 7, 9, 9, 9], low_end(2, one_row)) > 1.5


def test_replacing_a_unit_costs_epsilon_only_if_the_rate_says_so() -> None:
    rows, other = [0, 6, 6, 0], [0, 6, 6, 9]
    for aim in aims(Rate(Fraction(1), 1, replace=True)):
        assert largest_log_ratio(rows, other, aim) <= 1 + 1e-12
    assert largest_log_ratio(rows, other, quantile._aim(Target(HALF), Rate(Fraction(1), 1))) > 1.4


def test_a_level_of_splitting_costs_what_one_quantile_costs() -> None:
    """The parts of a level: a unit with rows in both moves the product of their laws by at most epsilon."""
    aim = quantile._aim(Target(HALF), Rate(Fraction(1), rows_per_unit=2))
    below = largest_log_ratio([1, 2], [1, 2, 0], aim)
    above = largest_log_ratio([6, 7], [6, 7, 9], aim)
    assert below + above <= 1 + 1e-12


def test_many_quantiles_rise_and_fall_near_their_ranks() -> None:
    values = list(range(100_000))
    targets = tuple(Target(Fraction(tenth, 10)) for tenth in range(1, 10))
    found = drawn(values, targets, 2**20, Rate(Fraction(1), 1))
    assert found == sorted(found)
    # rank error above 60·4 rows has a chance below 1e-6 (docs/proofs/quantiles.md), over four levels
    assert all(abs(value - tenth * 10_000) < 400 for tenth, value in enumerate(found, 1))


def test_a_million_ties_give_the_tied_value() -> None:
    steps = np.full(1_000_000, 5)
    targets = tuple(Target(Fraction(tenth, 10), reach=500) for tenth in range(1, 10))
    found = draw_quantiles(steps, targets, height=1000, rate=ONE, ends_rate=ONE)
    assert found == [(5, 5, 5)] * 9


def test_no_rows_give_points_of_the_range() -> None:
    targets = tuple(Target(Fraction(quarter, 4), reach=3) for quarter in range(5))
    for low, middle, high in draw_quantiles(NONE, targets, height=7, rate=ONE, ends_rate=ONE):
        assert 0 <= low <= middle <= high <= 7


def test_a_shift_moves_the_rank_by_so_many_rows() -> None:
    (value,) = drawn(list(range(100_000)), (Target(Fraction(1), Fraction(-5_000)),), 2**20, Rate(Fraction(1), 1))
    assert abs(value - 95_000) < 200


def test_levels() -> None:
    assert [levels_of(count) for count in range(1, 9)] == [1, 2, 2, 3, 3, 3, 3, 4]


def test_errors_add_up_along_the_way_to_a_quantile() -> None:
    quarters = (Fraction(1, 4), HALF, Fraction(3, 4))
    assert rank_errors(quarters, lambda _: 10) == [20, 10, 20]
    assert rank_errors(quarters, lambda fraction: 10 if fraction == HALF else 999) == [20, 10, 20]
    assert rank_errors((Fraction(0), HALF, Fraction(1)), lambda _: 1) == [2, 1, 2]


CLOSE = (Fraction(49, 100), HALF, Fraction(51, 100))
DATA = {
    "spread": [value * 10 for value in range(2_000)],
    "from the range's low end": list(range(300)),
    "few, far apart": [0, 1, 2, 19_000, 20_000],
    "one": [12_345],
    "a gap at the median": [*range(500), *range(19_500, 20_000)],
    "ties beside the median": [*range(400), *([7_000] * 200), *range(10_000, 10_400)],
}


@pytest.mark.parametrize("fractions", [(HALF,), CLOSE, (Fraction(0), Fraction(1, 10), Fraction(1))])
@pytest.mark.parametrize("values", DATA.values(), ids=DATA.keys())
def test_intervals_hold_the_true_quantile_at_least_as_often_as_they_say(
    values: list[int], fractions: tuple[Fraction, ...]
) -> None:
    """A right 95 % interval has 25 or more misses in 150 runs with a chance below 1e-6."""
    assert misses(values, fractions, reach_of=lambda reach: reach) < 25


def test_intervals_that_reach_inwards_miss_too_often() -> None:
    """The mutant: the ends' shift with its sign the wrong way round."""
    assert misses(DATA["spread"], (HALF,), reach_of=lambda reach: -reach) >= 25


def misses(values: list[int], fractions: tuple[Fraction, ...], *, reach_of: Callable[[int], int]) -> int:
    spend = Spend(Fraction(1))
    draw = draw_of(
        WantedQuantiles(0, fractions), (20_000,), spend, Fraction(1), UnitBounds(1, 1, replace=False), rho=None
    )
    targets = tuple(Target(fraction, Fraction(shift), reach_of(planned)) for fraction, shift, planned in draw.targets)
    steps = np.sort(np.array(values, dtype=np.int64))
    rates = {"rate": Rate(draw.epsilon, 1), "ends_rate": Rate(draw.ends_epsilon, 1)}
    truth = np.quantile(values, [float(fraction) for fraction in fractions], method="inverted_cdf")
    worst = [0] * len(fractions)
    for _ in range(150):
        found = draw_quantiles(steps, targets, height=20_000, **rates)
        assert [middle for _, middle, _ in found] == sorted(middle for _, middle, _ in found)
        assert all(low <= middle <= high for low, middle, high in found)
        for at, (low, _, high) in enumerate(found):
            worst[at] += not low <= truth[at] <= high
    return max(worst)
