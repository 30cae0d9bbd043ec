"""The chain that a profile is read by: its two passes agree, and what it foresees moves smoothly with the noise."""

import numpy as np
import pytest

from tacit.plan.bounds.tails import _Chain, foreseen

SCALE = 6.0
SIZES = tuple(float(2 ** (place / 2)) for place in range(24))
FALLING = (9000.0, 5000.0, 2500.0, 1200.0, 600.0, 300.0, 120.0, 60.0, 25.0, 9.0, -4.0, 7.0, *([0.0] * 12))


def read(counts=FALLING, sizes=SIZES, scale=SCALE, **how):
    return foreseen(tuple(counts), tuple(sizes), scale, how.get("first", 0), how.get("start", 0))


def test_people_and_amounts_above_a_bin_are_the_sums_of_what_the_bins_have():
    """Sums come from the pass down, people of a bin from the pass up: each bin of both must agree."""
    noise = np.random.default_rng(4).laplace(0, SCALE, (5, len(SIZES)))
    for each in noise:
        people, above = read((np.array(FALLING) + each).tolist())
        for place in range(len(SIZES)):
            assert above.people[place] == pytest.approx(people[place + 1 :].sum(), rel=1e-9, abs=1e-9)
            amounts = (people * np.array(SIZES))[place + 1 :].sum()
            assert above.amounts[place] == pytest.approx(amounts, rel=1e-9, abs=1e-9)


def test_second_moments_are_those_of_people_where_everyone_has_one():
    _, above = read(sizes=(1.0,) * len(FALLING))
    assert above.amounts_squared == pytest.approx(above.people_squared)
    assert above.product == pytest.approx(above.people_squared)
    mean, off = above.beyond(5, 0.0)
    assert mean == pytest.approx(above.people[5])
    assert off**2 == pytest.approx(above.people_squared[5] - above.people[5] ** 2)
    assert above.beyond(5, 1.0) == (pytest.approx(0.0, abs=1e-6), pytest.approx(0.0, abs=1e-3)), "nobody has more"


def test_the_chances_of_what_follows_a_state_add_up_to_one():
    chain = _Chain(SCALE, 1000.0, 2)
    some = np.random.default_rng(2).random((len(chain.turns), len(chain.levels)))
    some /= 2 * some.sum()
    for alive in (1.0, 0.3):
        more, none, over = chain.after(some, 0.5, alive)
        assert float(more.sum()) + none + over == pytest.approx(1.0)
        assert min(float(more.min()), none, over) >= 0


@pytest.mark.parametrize("place", [8, 9, 10, 12, 16])
def test_a_bin_with_one_person_more_moves_what_is_foreseen_a_little_and_never_down(place):
    found = []
    for more in range(60):
        _, above = read([*FALLING[:place], FALLING[place] + more, *FALLING[place + 1 :]])
        found.append(above.beyond(7, SIZES[7])[0] + SIZES[7])
    steps = np.array(found[1:]) / np.array(found[:-1])
    assert (steps >= 1 - 1e-9).all()
    assert (steps <= 1.5).all(), "no bin is believed from one person on"


def test_nobody_is_foreseen_above_a_tail_that_clearly_ended_and_some_where_it_falls_on():
    ended, _ = read((9000.0,) * 8 + (0.0,) * 16, scale=1.0)
    assert ended[8:].sum() < 2
    people, _ = read()
    assert 2 < people[9:].sum() < 40
    assert (np.diff(people[9:]) <= 0).all()


def test_people_after_a_gap_are_seen_if_they_are_many_and_the_fewer_the_longer_the_gap():
    far = [read([9000.0] + [0.0] * gap + [30.0] + [0.0] * (22 - gap))[0][gap + 1] for gap in (2, 4, 8)]
    assert far == sorted(far, reverse=True)
    assert read([9000.0] + [0.0] * 8 + [300.0] + [0.0] * 14)[0][9] == pytest.approx(300, rel=0.05)


def test_bins_below_the_first_one_have_nobody_and_all_is_above_them():
    people, above = read(first=3)
    assert people[:3].tolist() == [0, 0, 0]
    assert set(above.people[:3].tolist()) == {above.people[3]}


def test_no_scale_and_no_count_breaks_it():
    for scale in (1e-9, 1.0, 1e6):
        for counts in ((0.0,) * 24, (-1e9,) * 24, (1e12,) * 24, FALLING):
            people, above = read(counts, scale=scale)
            assert np.isfinite(people).all()
            assert np.isfinite(above.amounts_squared).all()
            assert (people >= 0).all()
