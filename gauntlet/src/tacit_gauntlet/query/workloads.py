"""Attacks on tables to publish: hidden groups in totals, others without noise, workloads that are charged for less."""

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.totals import (
    broken_neighbours,
    cost_of,
    hidden_in_totals,
    is_fitted,
    others_are_noisy,
    others_plan,
    workload_plans,
)

RUNS = {"quick": 40, "full": 200}
ANSWERS = {"quick": 6, "full": 30}
WEIGHTS = {"by_a": 1000, "sum": 30}


@case("Q56", title="no total gives a hidden group away, and others are a group with noise of its own", feature="query")
def hidden_groups(size: Size) -> Evidence:
    """Subtract what is shown from every total, and compare others with their rows and with a neighbour's.

    All of 40 draws of others are 0 with a probability below 1e-9: noise of scale 1 is 0 with one of 0.47.
    """
    plan, question = others_plan()
    checks = {
        "totals are of what is shown": hidden_in_totals(ANSWERS[size]) == 0,
        "others are one group more": len(plan.public_keys or ()) == 3,
        "others are noisy": others_are_noisy(RUNS[size]),
        "neighbours are as near as declared": not broken_neighbours(plan, question),
    }
    wrong = [what for what, holds in checks.items() if not holds]
    return Evidence(not wrong, {"checks": len(checks), "wrong": wrong})


@case(
    "Q57",
    title="a workload is charged for all of its questions, and fitted only where its tables agree",
    feature="query",
)
def workloads_charged(size: Size) -> Evidence:  # noqa: ARG001 - nothing is drawn that a larger size would draw more of
    """Compare the charge with all noise of a workload, evenly and by weights; look for a fit of tables that differ.

    A table by `a` has rows that one by `b` leaves out, since another value of `b` is not listed: to make them agree
    would move both.
    """
    wrong = []
    for weights in (None, WEIGHTS):
        planned, question = workload_plans(weights)
        noise = tuple(release.event for plan in planned.plans for release in plan.releases)
        checks = {
            "charged for every question": sorted(map(repr, planned.events)) == sorted(map(repr, noise)),
            "noise for all of epsilon": sum(map(cost_of, planned.plans)) <= 1,
            "tables that leave rows out are not fitted": not is_fitted(question),
        }
        wrong += [f"{'by weights' if weights else 'evenly'}: {what}" for what, holds in checks.items() if not holds]
    return Evidence(not wrong, {"workloads": 2, "wrong": wrong})
