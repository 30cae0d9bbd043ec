"""Questions of every shape, asked through the public doors of small made-up worlds, and looked at without noise.

What a case does at its quick size is the same in every run. At its full size it looks at worlds that no run has seen
before, and what it finds names the seed that makes the world again.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.oracle import Found, InParts, search
from tacit_gauntlet.stage.worlds import LARGE

# (shape, units, seed): each shape of a question, each type of unit, both neighbour relations; none of them is refused.
QUICK = (
    *(("plain", "int", 0), ("plain", "int", 4), ("grouping sets", "text", 3), ("grouping sets", "int", 32)),
    *(("union", "float", 2), ("union", "int", 0)),
    *(("wards", "date", 2), ("per unit", "decimal", 0), ("nested", "bool", 1), ("joined to what a unit has", "int", 2)),
    *(("distinct", "text", 0), ("joined", "float", 0), ("some units", "decimal", 2), ("exists", "date", 1)),
    *(("plain", "row", 0), ("union", "row", 2)),
)
QUICK_PARTS = (
    ("plain", "int", 0),
    ("joined", "float", 0),
    ("wards", "date", 2),
    ("distinct", "text", 0),
    ("plain", "row", 0),
)
# On each of these some pair has to be about as far apart as was charged.
PATHS, PATHS_OF_PARTS = ("sql", "patient", "kernel"), ("parts, sql", "parts, kernel")
FULL_SECONDS = 20.0


@case("S70", title="whatever is asked, neighbours are no farther apart than what was charged", feature="engine")
def no_farther_than_charged(size: Size) -> Evidence:
    if size == "quick":
        return _searched(_same_seeds(QUICK), PATHS)
    return _searched(_new_seeds(likes=LARGE))


@case("S71", title="whatever is asked of rows in parts, neighbours are no farther apart than charged", feature="engine")
def no_farther_in_parts(size: Size) -> Evidence:
    if size == "quick":
        return _searched(_same_seeds(QUICK_PARTS, facts=False, where=InParts), PATHS_OF_PARTS)
    return _searched(_new_seeds(questions=1, where=InParts))


def _same_seeds(worlds: Sequence[tuple[str, str, int]], **words: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield one question of each of some worlds."""
    for shape, ids, seed in worlds:
        yield str(seed), {"shapes": [shape], "kinds": [ids], "questions": 1, **words}


def _new_seeds(**words: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield seeds that no run has had before, for some seconds."""
    start = time.time_ns()
    while time.time_ns() - start < FULL_SECONDS * 1e9:
        yield str(time.time_ns()), words


def _searched(worlds: Iterator[tuple[str, Mapping[str, Any]]], paths: Sequence[str] = ()) -> Evidence:
    found = Found()
    for seed, words in worlds:
        search(seed, found, **words)
        if found.is_enough:
            break
    farthest = [found.farthest, *(found.reached.get(path, 0.0) for path in paths)]
    return Evidence(passed=not found.broken and min(farthest) > 0.9, details=found.figures())
