"""Quantiles of rows with weights: the law of repeated rows, and one unit moves all groups together by epsilon."""

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.selection import quantile
from tacit.selection.quantile import GroupRows, Rate, Stretches, Target, draw_quantiles, ladder, prior_weights

HIGH = 15
TARGETS = [
    Target(Fraction(1, 2), 0, 3),
    Target(Fraction(9, 10), 0, 2),
    Target(Fraction(0), 4, 3),
    Target(Fraction(1), 2, 3),
]
weighted_rows = st.lists(st.tuples(st.integers(0, HIGH), st.integers(0, 6)), max_size=8).map(sorted)


def weighed(groups, *, high=HIGH):
    """Return the groups' rows as parts with weights."""
    rows = np.array([value for group in groups for value, _ in group], dtype=np.uint32)
    before = np.append(0, np.cumsum([weight for group in groups for _, weight in group], dtype=np.int64))
    edges = np.cumsum([0, *map(len, groups)])
    count = len(groups)
    return GroupRows(rows, edges[:-1], edges[1:], np.zeros(count, np.int64), np.full(count, high), before=before)


def repeated(groups, *, high=HIGH):
    """Return the same groups with each row as often as it weighs."""
    each = [[value for value, weight in group for _ in range(weight)] for group in groups]
    rows, edges = (
        np.array([value for group in each for value in group], dtype=np.uint32),
        np.cumsum([0, *map(len, each)]),
    )
    return GroupRows(rows, edges[:-1], edges[1:], np.zeros(len(each), np.int64), np.full(len(each), high))


def scores_of_points(parts, aim, group, reach=10**6):
    found = Stretches.of(parts, aim, reach)
    here = slice(found.edges[group], found.edges[group + 1])
    points = [
        (begin + more, score)
        for begin, length, score in zip(found.begins[here], found.lengths[here], found.scores[here], strict=True)
        for more in range(length)
    ]
    return dict(points)


@settings(max_examples=60)
@given(groups=st.lists(weighted_rows, min_size=1, max_size=3), rate=st.integers(1, 6))
def test_a_row_that_weighs_w_counts_as_w_rows(groups, rate):
    for target in TARGETS:
        aim = quantile._aim(target, Rate(Fraction(1), rate))
        for at in range(len(groups)):
            assert scores_of_points(weighed(groups), aim, at) == scores_of_points(repeated(groups), aim, at)


@settings(max_examples=60)
@given(groups=st.lists(weighted_rows, min_size=1, max_size=3), middle=st.integers(0, HIGH))
def test_widths_are_scored_by_weights(groups, middle):
    rungs = np.array(ladder(HIGH))
    for target in TARGETS:
        reach = quantile._scored_interval(target, Rate(Fraction(1), 6))
        middles = np.full(len(groups), middle)
        ours, plain = (
            quantile._scores(parts, middles, reach, rungs, HIGH) for parts in (weighed(groups), repeated(groups))
        )
        assert ours.tolist() == plain.tolist()


@settings(max_examples=40)
@given(rows=st.lists(st.tuples(st.integers(0, 999), st.integers(0, 9)), min_size=30, max_size=60).map(sorted))
def test_rows_far_from_the_rank_are_left_out_only_beyond_the_reach(rows):
    aim = quantile._aim(TARGETS[0], Rate(Fraction(1), 1))
    every = scores_of_points(weighed([rows], high=999), aim, 0)
    for reach in (5, 20, 60):
        near = scores_of_points(weighed([rows], high=999), aim, 0, reach)
        assert near.items() <= every.items()
        left_out = [score for point, score in every.items() if point not in near]
        assert min(left_out, default=aim.up * reach * 2) >= (aim.up + aim.down) * reach - aim.up - aim.down


def log_chances(group, target, rate, *, ends=None):
    """Return the log-chance of each point, or of each width around a point, in one group."""
    if ends is None:
        scores = scores_of_points(weighed([group]), quantile._aim(target, rate), 0)
        slope = float(quantile._aim(target, rate).slope)
        logs = np.array([-slope * scores[point] for point in range(HIGH + 1)])
    else:
        reach = quantile._scored_interval(target, rate, rate.rows_per_unit)
        rungs = np.array(ladder(HIGH))
        scores = quantile._scores(weighed([group]), np.array([ends]), reach, rungs, HIGH)[0]
        logs = -np.minimum(scores * float(reach.slope), 300) + np.log(prior_weights(len(rungs)))
    return logs - log(sum(exp(each) for each in logs))


def most_told(groups, added, target, rate, ends):
    """Return the largest log-ratio of all groups' draws together that a unit makes, and the width of its range."""
    most, width = [0.0, 0.0], 0.0
    for group, more in zip(groups, added, strict=True):
        moved = log_chances(sorted([*group, *more]), target, rate, ends=ends) - log_chances(
            group, target, rate, ends=ends
        )
        most = [most[0] + float(moved.max()), most[1] - float(moved.min())]
        width += float(moved.max() - moved.min())
    return max(most), width


ONE = 12  # what a unit weighs in all groups together
# Units with one row, with rows in one group, in two groups and in three: all that each has, by group
UNITS = (
    ([(3, 12)], [], []),
    ([(0, 4), (3, 4), (15, 4)], [], []),
    ([(15, 6)], [(0, 3), (1, 3)], []),
    ([(15, 4)], [(15, 4)], [(15, 4)]),
    ([(0, 4)], [(0, 1), (9, 1), (15, 2)], [(0, 4)]),
)
CROWD = ([(2, 12), (3, 6), (9, 4)], [(5, 12)], [(1, 4), (14, 12)])


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("ends", [None, 4])
def test_one_unit_moves_all_groups_together_by_at_most_epsilon(target, ends):
    rate = Rate(Fraction(1), ONE)
    for added in UNITS:
        assert sum(weight for more in added for _, weight in more) <= ONE
        most, width = most_told(CROWD, added, target, rate, ends)
        assert most <= 1 + 1e-9
        assert width <= 1 + 1e-9


def test_a_unit_that_weighs_one_in_each_of_its_groups_would_break_the_promise():
    """The mutant: weights of 1 in each group, where the loss is divided over no groups."""
    added = ([(15, ONE)], [(15, ONE)], [(15, ONE)])
    found = [most_told(CROWD, added, target, Rate(Fraction(1), ONE), None)[0] for target in TARGETS]
    assert max(found) > 1.2


def test_a_unit_whose_every_row_weighs_one_would_break_the_promise():
    """The mutant: a row's weight is not divided by its unit's rows."""
    added = ([(15, ONE), (15, ONE), (14, ONE)], [], [])
    found = [most_told(CROWD, added, target, Rate(Fraction(1), ONE), None)[0] for target in TARGETS]
    assert max(found) > 1.2


def test_several_weighted_quantiles_are_near_the_true_ones_and_in_order():
    rng = np.random.default_rng(5)
    steps = np.sort(rng.integers(0, 1001, 4000)).astype(np.uint32)
    weights = np.where(steps < 500, 30, 10)  # the lower half weighs three quarters
    targets = tuple(Target(Fraction(*pair), 0, 20 * 30) for pair in ((1, 10), (1, 2), (3, 4), (9, 10)))
    rate = Rate(Fraction(2), 30)
    found = draw_quantiles(
        steps,
        targets,
        starts=np.array([0]),
        ends=np.array([4000]),
        height=1000,
        rate=rate,
        ends_rate=rate,
        exact_weights=weights,
    )
    low, middle, high = found[:, :, 0].T
    assert (np.diff(middle) >= 0).all()
    # a thousandth of the rows is some 3 units, and draws err by one or two: 30 off has a chance below 1e-9
    assert np.abs(middle - [67, 333, 500, 800]).max() <= 40
    assert (low <= middle).all()
    assert (middle <= high).all()


def test_equal_values_of_great_weight_are_split_by_their_rows():
    """All rows have one value: every quantile is that value, and none is drawn from an empty part."""
    rate = Rate(Fraction(4), 8)
    found = draw_quantiles(
        np.full(500, 77, dtype=np.uint32),
        tuple(Target(Fraction(place, 10), 0, 8) for place in range(1, 10)),
        starts=np.array([0]),
        ends=np.array([500]),
        height=1000,
        rate=rate,
        ends_rate=rate,
        exact_weights=np.full(500, 8),
    )
    assert (found[:, 1, 0] == 77).all()
