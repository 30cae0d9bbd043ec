"""Private quantiles: the exact law, ranks, ties, splitting, intervals, and what a unit can move."""

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from math import exp

import numpy as np
import pytest

from tacit.noise.bits import Keystream
from tacit.noise.coins import draw_below_each
from tacit.plan.layout import WantedQuantiles
from tacit.plan.plan import Spend
from tacit.plan.split import UnitBounds, draw_of
from tacit.selection import quantile, weights
from tacit.selection.quantile import (
    Aim,
    GroupRows,
    Rate,
    Reach,
    Stretches,
    Target,
    draw_intervals,
    draw_points,
    draw_quantiles,
    ladder,
    levels_of,
    prior_weights,
    rows_below,
    rows_for,
)
from tacit_gauntlet.stage.statistic import FALSE_ALARM, chi_square_fit

ONE = Rate(Fraction(1), 1)
HALF = Fraction(1, 2)


def in_groups(groups: list[list[int]]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    edges = np.cumsum([0, *map(len, groups)])
    rows = np.array([value for group in groups for value in sorted(group)], dtype=np.uint32)
    return rows, {"starts": edges[:-1], "ends": edges[1:]}


def copies(values: list[int], runs: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The same rows in many groups: each draws on its own."""
    starts = np.zeros(runs, dtype=np.int64)
    return np.sort(np.array(values, dtype=np.uint32)), {"starts": starts, "ends": starts + len(values)}


def parts_of(values: list[int], high: int, runs: int = 1) -> GroupRows:
    rows, places = copies(values, runs)
    return GroupRows(rows, places["starts"], places["ends"], np.zeros(runs, np.int64), np.full(runs, high))


def drawn(values: list[int], targets: tuple[Target, ...], height: int, runs: int = 1) -> np.ndarray:
    rows, places = copies(values, runs)
    return draw_quantiles(rows, targets, **places, height=height, rate=ONE, ends_rate=ONE)


def exact_law(rows: list[int], aim: Aim, high: int) -> np.ndarray:
    """The law by its definition, point by point."""
    n, scores = len(rows), []
    leads = [aim.up * below - aim.down * (n - below) - aim.at for below in range(n + 1)]
    for c in range(high + 1):
        least, most = leads[sum(row < c for row in rows)], leads[sum(row <= c for row in rows)]
        scores.append(aim.over * max(least, 0) + aim.under * max(-most, 0))
    found = np.array([exp(-float(aim.slope) * score) for score in scores])
    return found / found.sum()


def rung_law(rows: list[int], middle: int, reach: Reach, height: int) -> np.ndarray:
    """The law of the rungs, from the scores that are drawn by."""
    rungs = np.array(ladder(height))
    scores = quantile._scores(parts_of(rows, height), np.array([middle]), reach, rungs, height)[0]
    # a rung beyond the whole range has a score that no row moves, and next to no weight
    found = np.exp(-np.minimum(scores * float(reach.slope), 300)) * prior_weights(len(rungs))
    return found / found.sum()


def fits(got: np.ndarray, law: np.ndarray) -> bool:
    """Chi-square at a false-alarm rate of 1e-6; values that hardly ever come are counted together."""
    expected = law * got.sum()
    order = np.argsort(expected)
    rare = order[:-1][: np.searchsorted(np.cumsum(expected[order]), RARE_MOST) + 1]
    often = np.setdiff1d(order, rare)
    seen, awaited = ([*each[often], each[rare].sum()] for each in (got, expected))
    return chi_square_fit([int(count) for count in seen], awaited) > FALSE_ALARM / 10  # approximate with two cells


# So many draws are expected in each cell of a chi-square where there are so many; with few it is no chi-square.
RARE_MOST = 50
ROWS, HIGH, RUNS = [2, 2, 3, 9, 14], 15, 6_000
TARGETS = [Target(Fraction(*pair)) for pair in ((1, 2), (1, 10), (9, 10))]
EXTREMES = [Target(Fraction(end), inside) for end in (0, 1) for inside in (1, 2, 9)]


@pytest.mark.parametrize("target", [*TARGETS, *EXTREMES], ids=str)
def test_one_draw_follows_the_law_of_the_exponential_mechanism(target: Target) -> None:
    aim = quantile._aim(target, ONE)
    found = draw_points(parts_of(ROWS, HIGH, RUNS), aim, Keystream())
    assert fits(np.bincount(found, minlength=HIGH + 1), exact_law(ROWS, aim, HIGH))


@pytest.mark.parametrize("target", [TARGETS[0], TARGETS[2], Target(Fraction(0), 1), Target(Fraction(1), 1)], ids=str)
def test_a_width_follows_the_law_of_the_exponential_mechanism(target: Target) -> None:
    reach = quantile._scored_interval(target, ONE)
    low, high = draw_intervals(parts_of(ROWS, HIGH, RUNS), np.full(RUNS, 5), reach, HIGH, Keystream())
    law, rungs = rung_law(ROWS, 5, reach, HIGH), np.array(ladder(HIGH))
    ends = np.maximum(5 - rungs, 0) if target.fraction == 1 else np.minimum(5 + rungs, HIGH)
    by_end = np.bincount(ends, weights=law, minlength=HIGH + 1)
    assert fits(np.bincount(low if target.fraction == 1 else high, minlength=HIGH + 1), by_end)


def test_what_floats_cannot_decide_follows_the_same_law(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many draws are undecided: the same words are settled without floats."""
    monkeypatch.setattr(weights, "WEIGHT_MARGIN", 0.02)
    aim, reach = quantile._aim(TARGETS[0], ONE), quantile._scored_interval(TARGETS[0], ONE)
    found = draw_points(parts_of(ROWS, HIGH, 2_000), aim, Keystream())
    assert fits(np.bincount(found, minlength=HIGH + 1), exact_law(ROWS, aim, HIGH))
    _, high = draw_intervals(parts_of(ROWS, HIGH, 2_000), np.full(2_000, 5), reach, HIGH, Keystream())
    law, rungs = rung_law(ROWS, 5, reach, HIGH), np.array(ladder(HIGH))
    by_end = np.bincount(np.minimum(5 + rungs, HIGH), weights=law, minlength=HIGH + 1)
    assert fits(np.bincount(high, minlength=HIGH + 1), by_end)


def test_the_same_word_falls_to_the_same_place_with_and_without_floats() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        scores, times = rng.integers(0, 9, 12), rng.integers(1, 99, 12)
        words = rng.integers(0, 2**64, 1, dtype=np.uint64)
        found = np.exp(scores * -0.5) * times
        places, certain = weights.index_in_each(found, np.array([0, 12]), words)
        assert certain[0]
        assert places[0] == weights.settle(scores, HALF, int(words[0]), Keystream(), times=times)


@pytest.mark.parametrize("aim", [quantile._aim(TARGETS[1], ONE), quantile._aim(Target(Fraction(1), 40), ONE)], ids=str)
def test_rows_far_from_the_rank_aimed_at_are_left_out_only_where_they_weigh_nothing(aim: Aim) -> None:
    """What is looked at is the same as among all rows, and what is left out has less than 2^-41 of the weight."""
    rng = np.random.default_rng(1)
    rows = np.sort(np.concatenate([rng.integers(0, 2**20, 3_000), np.repeat(rng.integers(0, 2**20, 20), 90)])).tolist()
    parts = parts_of(rows, 2**20)
    near, every = (Stretches.of(parts, aim, reach) for reach in (aim.reach(2**20 + 1), len(rows)))
    assert len(near.begins) < len(every.begins) / 2
    kept = np.isin(every.begins * 2**22 + every.lengths, near.begins * 2**22 + near.lengths)
    assert kept.sum() == len(near.begins)
    assert np.array_equal(every.scores[kept], near.scores)
    mass = np.exp(every.scores * -float(aim.slope)) * every.lengths
    assert mass[~kept].sum() < quantile.LEFT_OUT * mass[kept].sum()


def test_stretches_of_many_groups_are_those_of_each() -> None:
    groups = [[3, 3, 5], [], [0], [9, 9, 9, 9], [1, 2, 3, 4, 5]]
    rows, places = in_groups(groups)
    aim = quantile._aim(TARGETS[0], ONE)
    together = Stretches.of(GroupRows(rows, *places.values(), np.zeros(5, np.int64), np.full(5, 9)), aim, 99)
    for at, group in enumerate(groups):
        alone = Stretches.of(parts_of(group, 9), aim, 99)
        here = slice(together.edges[at], together.edges[at + 1])
        assert together.begins[here].tolist() == alone.begins.tolist()
        assert together.scores[here].tolist() == alone.scores.tolist()
        points_of = [b + i for b, n in zip(alone.begins, alone.lengths, strict=True) for i in range(n)]
        assert points_of == list(range(10))


def largest_log_ratio(law: Callable[[list[int]], np.ndarray], rows: list[int], other: list[int]) -> float:
    return float(np.abs(np.log(law(rows) / law(other))).max())


def laws(rate: Rate) -> list[Callable[[list[int]], np.ndarray]]:
    """Every kind of draw: estimates, and widths around every point."""
    targets = [Target(Fraction(*pair), 0, reach) for pair in ((1, 2), (1, 10), (9, 10)) for reach in (1, 4)]
    targets += [Target(Fraction(end), inside, 2) for end in (0, 1) for inside in (1, 4)]
    found: list[Callable[[list[int]], np.ndarray]] = []
    for target in targets:
        aim, reach = quantile._aim(target, rate), quantile._scored_interval(target, rate)
        found.append(lambda rows, aim=aim: exact_law(rows, aim, 9))
        found += [lambda rows, at=at, reach=reach: rung_law(rows, at, reach, 9) for at in (0, 3, 5, 9)]
    return found


ADDED = ([0, 0, 0], [9, 9, 9], [0, 5, 9], [4], [5, 5, 5])


def test_a_unit_with_r_rows_moves_the_law_by_at_most_epsilon() -> None:
    for law in laws(Rate(Fraction(1), rows_per_unit=3)):
        for added in ADDED:
            assert largest_log_ratio(law, [3, 5, 7], [3, 5, 7, *added]) <= 1 + 1e-12


def test_a_score_sensitivity_of_one_with_r_rows_would_break_the_promise() -> None:
    """The mutant: the row bound left out of the sensitivity, of a quantile and of an interval."""
    aim, reach = (each(Target(HALF), ONE) for each in (quantile._aim, quantile._scored_interval))
    assert largest_log_ratio(lambda rows: exact_law(rows, aim, 9), [3, 5, 7], [3, 5, 7, 0, 0, 0]) > 1.5
    moved = [
        largest_log_ratio(lambda rows, at=at: rung_law(rows, at, reach, 9), [3, 5, 7, 8], [3, 5, 7, 8, *more])
        for at in range(10)
        for more in ADDED
    ]
    assert max(moved) > 1.5


def test_replacing_a_unit_costs_epsilon_only_if_the_rate_says_so() -> None:
    rows, other = [0, 6, 6, 0], [0, 6, 6, 9]
    for law in laws(Rate(Fraction(1), 1, replace=True)):
        assert largest_log_ratio(law, rows, other) <= 1 + 1e-12
    aim = quantile._aim(Target(HALF), ONE)
    assert largest_log_ratio(lambda rows: exact_law(rows, aim, 9), rows, other) > 1.4


def test_a_level_of_splitting_costs_what_one_quantile_costs() -> None:
    """The parts of a level: a unit with rows in both moves the product of their laws by at most epsilon."""
    aim = quantile._aim(Target(HALF), Rate(Fraction(1), rows_per_unit=2))

    def law(rows: list[int]) -> np.ndarray:
        return exact_law(rows, aim, 9)

    below = largest_log_ratio(law, [1, 2], [1, 2, 0])
    above = largest_log_ratio(law, [6, 7], [6, 7, 9])
    assert below + above <= 1 + 1e-12


def test_many_quantiles_rise_and_fall_near_their_ranks() -> None:
    targets = tuple(Target(Fraction(tenth, 10)) for tenth in range(1, 10))
    found = drawn(list(range(100_000)), targets, 2**20)[:, 1, 0].tolist()
    assert found == sorted(found)
    # rank error above 60·4 rows has a chance below 1e-6 (docs/proofs/quantiles.md), over four levels
    assert all(abs(value - tenth * 10_000) < 400 for tenth, value in enumerate(found, 1))


def test_a_million_ties_give_the_tied_value() -> None:
    targets = tuple(Target(Fraction(tenth, 10), reach=500) for tenth in range(1, 10))
    found = drawn([5] * 1_000_000, targets, 1000)
    assert found[:, :, 0].tolist() == [[5, 5, 5]] * 9


# of two equal rows: every pair and triple of these is that value, at an epsilon at which no draw errs
FRACTIONS = [Fraction(*pair) for pair in ((0, 1), (1, 20), (1, 10), (1, 3), (9, 10), (19, 20), (1, 1))]


def of_two_ties(targets: tuple[Target, ...]) -> set[int]:
    rows, places = copies([3, 3], 20)
    large = Rate(Fraction(10**4), 1)
    found = draw_quantiles(rows, targets, **places, height=32, rate=large, ends_rate=large)
    return set(found[:, 1].ravel().tolist())


@pytest.mark.parametrize("count", [2, 3])
def test_quantiles_drawn_one_inside_the_other_are_the_tied_value_however_few_rows_tie(count: int) -> None:
    """A draw misses the value only where another sub-step is drawn: at this epsilon with a chance below exp(-400)."""
    for fractions in combinations(FRACTIONS, count):
        targets = tuple(Target(each, int(each in (0, 1))) for each in fractions)
        assert of_two_ties(targets) == {3}, fractions


def test_rows_at_the_point_drawn_given_to_the_other_side_would_leave_none_for_the_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mutant. It shows a value in 20 draws but for a chance of (1/8)^20 or so."""
    cuts = quantile._cuts
    monkeypatch.setattr(quantile, "_cuts", lambda parts, at, *, own_below: cuts(parts, at, own_below=not own_below))
    assert of_two_ties((Target(Fraction(0), 1), Target(Fraction(1, 10)))) != {3}
    assert of_two_ties((Target(Fraction(9, 10)), Target(Fraction(1), 1))) != {3}


@pytest.mark.parametrize("own_below", [False, True])
def test_a_row_is_on_one_side_of_a_split(own_below: bool) -> None:
    """What a level may cost rests on it: a row on both sides would count twice (docs/proofs/quantiles.md)."""
    cut = quantile._cuts(parts_of([1, 3, 3, 5], 9), np.array([3]), own_below=own_below)
    assert cut.tolist() == [3 if own_below else 1]


def test_no_rows_give_points_of_the_range_and_intervals_of_all_of_it() -> None:
    targets = tuple(Target(Fraction(quarter, 4), int(quarter in (0, 4)), 3) for quarter in range(5))
    rows, places = in_groups([[], []])
    for low, middle, high in draw_quantiles(rows, targets, **places, height=7, rate=ONE, ends_rate=ONE):
        assert all(low <= middle)
        assert all(middle <= high)
        assert all(high <= 7)
    wide = draw_quantiles(rows, (Target(HALF, reach=50),), **places, height=7, rate=ONE, ends_rate=ONE)
    assert wide[0, 0].tolist() == [0, 0]
    assert wide[0, 2].tolist() == [7, 7]


def test_fewer_rows_than_are_aimed_inside_are_no_failure() -> None:
    """However large epsilon is: every point is then far from the rank aimed at, and the nearest are drawn."""
    rows, places = in_groups([[], [4]])
    large = Rate(Fraction(10**4), 1)
    for end, allowed in ((1, range(5)), (0, range(4, 8))):
        targets = (Target(Fraction(end), 3),)
        found = draw_quantiles(rows, targets, **places, height=7, rate=large, ends_rate=large)[0, 1]
        assert found[1] in allowed
        assert found[0] in range(8)


def test_whatever_the_rows_and_the_loss_results_rise_inside_the_range() -> None:
    """Ties, clusters, empty groups, ranges of one point, and losses from next to nothing to more than is of use."""
    rng = np.random.default_rng(17)
    for _ in range(150):
        height = int(rng.choice([0, 1, 5, 2**16, 2**30 - 1]))
        sizes = rng.integers(0, int(rng.choice([1, 3, 40])), int(rng.integers(1, 6)))
        groups = [np.minimum((height + 1) * rng.random(size) ** 5, height).astype(int).tolist() for size in sizes]
        rows, places = in_groups(groups)
        asked = tuple(sorted({Fraction(int(part), 20) for part in rng.choice(21, int(rng.integers(1, 7)))}))
        spend, unit = Spend(Fraction(float(10 ** rng.uniform(-4, 5)))), UnitBounds(3, 1, replace=bool(rng.integers(2)))
        plan = draw_of(WantedQuantiles(0, asked), (height,), spend, Fraction(1), unit, rho=None)
        rates = {
            name: Rate(each, 3, unit.replace)
            for name, each in (("rate", plan.epsilon), ("ends_rate", plan.ends_epsilon))
        }
        found = draw_quantiles(rows, tuple(Target(*each) for each in plan.targets), **places, height=height, **rates)
        assert (np.diff(found, axis=1) >= 0).all()
        assert (np.diff(found[:, 1], axis=0) >= 0).all()
        assert found.min() >= 0
        assert found.max() <= height


def test_no_groups_are_drawn_from_without_ado() -> None:
    rows, places = in_groups([])
    found = draw_quantiles(rows, (Target(HALF), Target(Fraction(1), 1)), **places, height=7, rate=ONE, ends_rate=ONE)
    assert found.shape == (2, 3, 0)


def test_the_greatest_is_aimed_so_many_rows_inside() -> None:
    found = drawn(list(range(100_000)), (Target(Fraction(1), 5_000),), 2**20)[0, 1, 0]
    assert abs(found - 95_000) < 200


@pytest.mark.parametrize("end", [0, 1])
def test_an_empty_stretch_of_the_range_does_not_draw_the_extremes_in(end: int) -> None:
    """Beyond the last row with a chance of at most 1/20: 40 or more of 300 have a chance below 1e-8."""
    height, fraction = 2**30 - 1, Fraction(end)
    values = np.random.default_rng(2).integers(0, height // 1000, 50_000)
    values = values if end else height - values
    unit = UnitBounds(1, 1, replace=False)
    draw = draw_of(WantedQuantiles(0, (fraction,)), (height,), Spend(Fraction(1)), Fraction(1), unit, rho=None)
    rows, places = copies(values.tolist(), 300)
    rates = {"rate": Rate(draw.epsilon, 1), "ends_rate": Rate(draw.ends_epsilon, 1)}
    found = draw_quantiles(rows, (Target(*draw.targets[0]),), **places, height=height, **rates)[0, 1]
    coarse = found >> (30 - quantile.EXTREME_BITS)
    last = (values.max() if end else values.min()) >> (30 - quantile.EXTREME_BITS)
    assert (coarse > last if end else coarse < last).sum() < 40
    assert abs(np.median(found) - (values.max() if end else values.min())) < height // 5_000


def test_points_of_a_coarser_grid_are_drawn_as_if_rows_had_been_put_on_it() -> None:
    aim = quantile._aim(Target(Fraction(1), 2), ONE)
    fine = parts_of([5, 9, 17, 18, 40, 41, 63], 63)
    coarse = GroupRows(fine.rows, fine.starts, fine.ends, fine.low >> 3, fine.high >> 3, 3)
    found, wanted = Stretches.of(coarse, aim, 99), Stretches.of(parts_of([0, 1, 2, 2, 5, 5, 7], 7), aim, 99)
    for name in ("begins", "lengths", "scores", "edges"):
        assert getattr(found, name).tolist() == getattr(wanted, name).tolist()
    for reach in (1, 2):
        assert set(Stretches.of(coarse, aim, reach).begins.tolist()) <= set(wanted.begins.tolist())


def test_levels() -> None:
    assert [levels_of(count) for count in range(1, 9)] == [1, 2, 2, 3, 3, 3, 3, 4]


def test_rows_below_counts_in_each_part() -> None:
    rows, places = in_groups([[1, 1, 4], [], [4, 4, 9]])
    for value, counts in ((0, [0, 0, 0]), (1, [0, 0, 0]), (2, [2, 0, 0]), (5, [3, 0, 2]), (99, [3, 0, 3])):
        assert rows_below(rows, **places, values=np.full(3, value)).tolist() == counts


def test_draw_below_each_gives_every_number_alike() -> None:
    found = draw_below_each(np.repeat([1, 3, 2**40], 30_000), Keystream())
    assert not found[:30_000].any()
    assert fits(np.bincount(found[30_000:60_000]), np.full(3, 1 / 3))
    assert fits(np.bincount(found[60_000:] >> 38), np.full(4, 1 / 4))


def test_narrower_rungs_weigh_at_most_twice_the_next() -> None:
    """What the proof of coverage rests on, up to the finest grid there is."""
    rungs = ladder(2**30 - 1)
    prior = prior_weights(len(rungs)).tolist()
    assert all(sum(prior[:at]) <= 2 * prior[at] for at in range(len(prior)))
    assert sum(prior) < 2**50  # so that running sums of floats decide
    assert rungs[-1] == 2**30 - 1
    assert list(rungs) == sorted(set(rungs))
    assert ladder(0) == (0,)


def test_a_bad_rung_is_drawn_with_at_most_the_stated_chance_whatever_the_rows() -> None:
    """By the law itself, around every point, of rows made to be hard: clusters, ties and gaps of every size."""
    rng = np.random.default_rng(11)
    rate = Rate(Fraction(2), 1)
    for trial in range(60):
        count = int(rng.integers(1, 60))
        rows = np.sort((2.0 ** rng.uniform(0, 12, count)).astype(int)).tolist() * int(rng.integers(1, 3))
        fraction = (HALF, Fraction(9, 10), Fraction(0), Fraction(1))[trial % 4]
        target = Target(fraction, 1, reach_for(rate, fraction))
        for middle in rng.integers(0, 4097, 6).tolist():
            law = rung_law(rows, middle, quantile._scored_interval(target, rate), 4096)
            rungs = np.array(ladder(4096))
            low = np.maximum(middle - rungs, 0) if fraction > 0 else 0 * rungs
            high = np.minimum(middle + rungs, 4096) if fraction < 1 else 0 * rungs + 4096
            for method in ("inverted_cdf", "linear"):
                truth = np.quantile(rows, float(fraction), method=method)
                assert law[(low > truth) | (truth > high)].sum() <= 0.05 + 1e-12


def reach_for(rate: Rate, fraction: Fraction) -> int:
    if fraction in (0, 1):
        return rows_for(Fraction(1, 20), per_row=rate.for_extreme() * quantile.BEYOND)
    up, down, slope = rate.for_fraction(fraction)
    return rows_for(Fraction(1, 20), per_row=slope * (up + down))


CLOSE = (Fraction(49, 100), HALF, Fraction(51, 100))
DATA = {
    "spread": [value * 10 for value in range(2_000)],
    "from the range's low end": list(range(300)),
    "few, far apart": [0, 1, 2, 19_000, 20_000],
    "one": [12_345],
    "a gap at the median": [*range(500), *range(19_500, 20_000)],
    "ties beside the median": [*range(400), *([7_000] * 200), *range(10_000, 10_400)],
    "a gap beside the median": [*([5] * 30), *([19_000] * 26)],
}


@pytest.mark.parametrize("fractions", [(HALF,), CLOSE, (Fraction(0), Fraction(1, 10), Fraction(1))])
@pytest.mark.parametrize("values", DATA.values(), ids=DATA.keys())
def test_intervals_hold_the_true_quantile_at_least_as_often_as_they_say(
    values: list[int], fractions: tuple[Fraction, ...]
) -> None:
    """A right 95 % interval has 40 or more misses in 300 runs with a chance below 1e-8."""
    assert misses(values, fractions, reach_of=lambda reach: reach) < 40


def test_intervals_that_reach_inwards_miss_too_often() -> None:
    """The mutant: the reach with its sign the wrong way round."""
    assert misses(DATA["a gap beside the median"], (HALF,), reach_of=lambda reach: -reach) >= 40


def misses(values: list[int], fractions: tuple[Fraction, ...], *, reach_of: Callable[[int], int]) -> int:
    unit = UnitBounds(1, 1, replace=False)
    draw = draw_of(WantedQuantiles(0, fractions), (20_000,), Spend(Fraction(1)), Fraction(1), unit, rho=None)
    targets = tuple(Target(fraction, inside, reach_of(planned)) for fraction, inside, planned in draw.targets)
    rows, places = copies(values, 300)
    rates = {"rate": Rate(draw.epsilon, 1), "ends_rate": Rate(draw.ends_epsilon, 1)}
    found = draw_quantiles(rows, targets, **places, height=20_000, **rates)
    assert (np.diff(found[:, 1], axis=0) >= 0).all()
    assert (found[:, 0] <= found[:, 1]).all()
    assert (found[:, 1] <= found[:, 2]).all()
    truth = np.quantile(values, [float(fraction) for fraction in fractions], method="inverted_cdf")[:, None]
    return int(((found[:, 0] > truth) | (truth > found[:, 2])).sum(axis=1).max())
