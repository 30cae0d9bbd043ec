"""Every round of every kind of model, asked of all tables of small made-up worlds, beside what was charged for it."""

import time

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.oracle import Found
from tacit_gauntlet.stage.oracle_models import ASKED, CHOICE, search_models
from tacit_gauntlet.stage.worlds import LARGE, SMALL

FULL_WORLDS = 6


@case("M21", title="no round of a model is farther apart on neighbours than was charged for it", feature="learning")
def no_round_farther_than_charged(size: Size) -> Evidence:
    """At the full size worlds are new in every run; what is broken names the seed that makes its world again."""
    found, start = Found(), time.time_ns()
    for turn in range(1 if size == "quick" else FULL_WORLDS):
        for place, name in enumerate((*ASKED, CHOICE)):
            seed = place if size == "quick" else f"{start}/{turn}/{place}"
            search_models(seed, found, asked=name, likes=LARGE if turn == 1 else SMALL)
            if found.is_enough:
                break
    return Evidence(passed=not found.broken and found.farthest > 0.9, details=found.figures())
