"""The oracle at length: tens of thousands of neighbouring tables, on every path, from worlds that are new each time.

No failure is a matter of chance: one pair that is too far apart is a bug. Its line begins with the seed that makes the
same world again.
"""

import time

import pytest

from tacit_gauntlet.stage.oracle import Found, InParts, search
from tacit_gauntlet.stage.worlds import LARGE, NEIGHBOURS, SMALL, World

PAIRS_EACH = 1_000
# About one world in two is looked at on each path, with some 40 pairs: far fewer would do.
WORLDS_MOST = 400


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(20))
def test_no_pair_of_a_thousand_is_farther_apart_than_was_charged(turn):
    """A path that too few pairs have taken by then, since chance chose others, is waited for."""
    found, start, at = Found(), time.time_ns(), 0
    least = dict.fromkeys(("sql", "kernel", "patient"), PAIRS_EACH // 5)
    while found.pairs.total() < PAIRS_EACH or any(found.pairs[path] < pairs for path, pairs in least.items()):
        search(f"{start}/{turn}/{at}", found, likes=LARGE if at % 2 else SMALL)
        at += 1
        assert not found.broken
        assert at < WORLDS_MOST, "a path is hardly taken any more"


@pytest.mark.slow
@pytest.mark.parametrize("turn", range(4))
def test_no_pair_of_rows_in_parts_is_farther_apart_than_was_charged(turn):
    found, start, at = Found(), time.time_ns(), 0
    while found.pairs.total() < PAIRS_EACH // 4:
        search(f"{start}/{turn}/{at}", found, where=InParts)
        at += 1
        assert not found.broken


def test_a_world_has_the_empty_table_one_unit_and_two():
    one, two = ({"v": []}, {"v": [("a", 1)]}), ({"v": []}, {"v": [("b", 2)]}, {"v": [("b", 3), ("b", 4)]})
    world = World({"v": []}, (one, two))
    tables = {place: world.rows(place)["v"] for place in world.places()}
    assert tables[0, 0] == []
    assert sorted(tables[1, 2]) == [("a", 1), ("b", 3), ("b", 4)]
    comes, becomes = (set(world.pairs(neighbours)) for neighbours in NEIGHBOURS)
    assert comes == {((0, 0), (1, 0)), ((0, 1), (1, 1)), ((0, 2), (1, 2))} | {
        ((at, 0), (at, other)) for at in (0, 1) for other in (1, 2)
    }
    assert becomes - comes == {((0, 1), (0, 2)), ((1, 1), (1, 2))}
