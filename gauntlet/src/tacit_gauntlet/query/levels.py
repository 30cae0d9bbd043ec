"""Attacks on tables with totals: every level is charged, has noise of its own, and moves by no more than is hidden."""

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.totals import (
    DECLARED,
    broken_neighbours,
    cost_of,
    is_noisy,
    uncharged_levels,
    with_totals,
)

RUNS = {"quick": 40, "full": 200}


@case("Q55", title="every level of totals is charged, hidden and noisy, whatever a person has in it", feature="query")
def levels_hidden(size: Size) -> Evidence:
    """Compare neighbours at every level, the cost of all noise with the charge, and totals with the exact ones.

    All of 40 draws at a level are 0 with a probability below 1e-9: its noise is 0 with a probability of at most 0.55.
    """
    wrong: list[str] = []
    for name, declared in DECLARED.items():
        plan, question = with_totals(declared)
        broken = broken_neighbours(plan, question)
        checks = {
            "levels have noise of their own": bool(plan.levels),
            "charged for every level": uncharged_levels(plan) == 0,
            "noise for all of epsilon": cost_of(plan) <= 1,
            "neighbours are as near as declared": not broken,
            "totals are noisy": all(is_noisy(plan, question, index, RUNS[size]) for index in range(len(plan.levels))),
        }
        wrong += [f"{name}: {what}" for what, holds in checks.items() if not holds]
        wrong += broken[:2]
    return Evidence(not wrong, {"tables": len(DECLARED), "wrong": wrong[:6]})
