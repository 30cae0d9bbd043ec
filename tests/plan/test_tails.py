"""The chain that a profile is read by: its two passes agree, and what it foresees moves smoothly with the noise."""

import numpy as np
import pytest

from tacit.plan.bounds.tails import _Chain, foreseen

SCALE = 6.0
SIZES = 2.0 ** (np.arange(24) / 2)
FALLING = (9000.0, 5000.0, 2500.0, 1200.0, 600.0, 300.0, 120.0, 60.0, 25.0, 9.0, -4.0, 7.0, *([0.0] * 12))


def read(counts=FALLING, scale=SCALE, **how):
    return foreseen(tuple(counts), scale, first=how.get("first", 0), start=how.get("start", 0))


def states_of(chain, seed, number=4):
    for place in np.random.default_rng(seed).random((number, len(chain.turns) * len(chain.levels) + 2)):
        yield place[2:].reshape(len(chain.turns), -1), float(place[0]), float(place[1])


def product(one, two):
    return float(np.sum(one[0] * two[0])) + one[1] * two[1] + one[2] * two[2]


@pytest.mark.parametrize("count", [-9.0, 0.0, 40.0, 900.0])
@pytest.mark.parametrize("alive", [1.0, 0.4])
def test_the_pass_down_is_the_pass_up_backwards(count, alive):
    """How likely a count and all above it are is the same number, whichever way it is added up."""
    chain = _Chain(SCALE, 1000.0, 2)
    likely, empty = chain.likely(count)
    for follows in states_of(chain, 4):
        back, ratios = chain.before(follows, count, alive), []
        for state in states_of(chain, 5):
            some, gap, over = chain.after(state, alive)
            ratios.append(product((some * likely, gap * empty, over * empty), follows) / product(state, back))
        assert ratios == pytest.approx([ratios[0]] * len(ratios))


def test_the_chances_of_what_follows_a_state_add_up_to_one():
    chain = _Chain(SCALE, 1000.0, 2)
    some = np.random.default_rng(2).random((len(chain.turns), len(chain.levels)))
    some /= 2 * some.sum()
    for alive in (1.0, 0.3):
        more, none, over = chain.after((some, 0.5, 0.0), alive)
        assert float(more.sum()) + none + over == pytest.approx(1.0)
        assert min(float(more.min()), none, over) >= 0


@pytest.mark.parametrize("place", [8, 9, 10, 12, 16])
def test_a_bin_with_one_person_more_moves_what_is_foreseen_a_little_and_hardly_down(place):
    found = []
    for more in range(60):
        people = read([*FALLING[:place], FALLING[place] + more, *FALLING[place + 1 :]])
        found.append(float(people[8:] @ (SIZES[8:] - SIZES[7])) + SIZES[7])
    steps = np.array(found[1:]) / np.array(found[:-1])
    assert (steps >= 0.99).all(), "more people in one bin are a steeper fall to the next"
    assert (steps <= 1.5).all(), "no bin is believed from one person on"


def test_nobody_is_foreseen_above_a_tail_that_clearly_ended_and_some_where_it_falls_on():
    ended = read((9000.0,) * 8 + (0.0,) * 16, scale=1.0)
    assert ended[8:].sum() < 2
    people = read()
    assert 2 < people[9:].sum() < 40
    assert (np.diff(people[9:]) <= 0).all()


def test_people_after_a_gap_are_seen_if_they_are_many_and_the_fewer_the_longer_the_gap():
    far = [read([9000.0] + [0.0] * gap + [30.0] + [0.0] * (22 - gap))[gap + 1] for gap in (2, 4, 8)]
    assert far == sorted(far, reverse=True)
    assert read([9000.0] + [0.0] * 8 + [300.0] + [0.0] * 14)[9] == pytest.approx(300, rel=0.05)


def test_bins_below_the_first_one_have_nobody():
    assert read(first=3)[:3].tolist() == [0, 0, 0]


def test_no_scale_and_no_count_breaks_it():
    for scale in (1e-9, 1.0, 1e6):
        for counts in ((0.0,) * 24, (-1e9,) * 24, (1e12,) * 24, FALLING):
            people = read(counts, scale=scale)
            assert np.isfinite(people).all()
            assert (people >= 0).all()
