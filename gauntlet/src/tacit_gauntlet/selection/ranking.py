"""Rankings under attack: what is ranked is moved by one unit by at most one for each key, and by nobody's rows.

The published bug is planted beside the case that kills it.
"""

from typing import Any

import pyarrow as pa

from tacit.release import noisy
from tacit.selection.top_k import TopK
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.table import SALT, plan_of, protected
from tacit_gauntlet.targets import replaced

KEYS = ["a", "b", "c", "d", "e"]
# Of one unit: how many rows of which key.
NEWCOMERS = {"many of one": "a" * 40, "many of all": "abcde" * 9, "keys nobody listed": "axyz" * 9}


@case("S31", title="one unit moves every count behind a ranking by at most one, all the same way", feature="release")
def rankings_count_units(size: Size) -> Evidence:
    """Let a unit with many rows and keys come, and see what the choice is made from."""
    people = 40 if size == "quick" else 400
    rows = [(place, KEYS[place % 4]) for place in range(people)]
    before, found = _ranked(rows), []
    for name, brought in NEWCOMERS.items():
        after = _ranked(rows + [(people, key) for key in brought])
        moves = [int(new - old) for old, new in zip(before, after, strict=True)]
        if not set(moves) <= {0, 1}:
            found.append(f"{name}: {moves}")
    return Evidence(passed=not found, details={"moves beyond one": found})


def _ranked(rows: list[tuple[int, str]]) -> list[int]:
    """Return the scores that the choice is given, as it is given them."""
    table = protected(pa.table({"id": [unit for unit, _ in rows], "k": [key for _, key in rows]}), groups_per_unit=1)
    question = table.top("k", 2, keys=KEYS)
    plan, seen = plan_of(question), []

    def watched(_: TopK, scores: Any) -> list[int]:
        seen.append(list(scores))
        return [0, 1]

    with replaced(TopK, "release", watched):
        noisy.release(plan, question.session.engine.aggregate(plan, SALT))
    (scores,) = seen
    return scores
