"""Attacks on keys that are shown by weights: people with very many keys that nobody else has."""

from fractions import Fraction

from tacit import epsilon
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.facts import Numbers, WantedFact, finds_groups, numbers_in, spend_of, told, unbounded
from tacit_gauntlet.stage.found_keys import (
    KEYS_OF_A_UNIT_MOST,
    people_shown,
    shows_more_than,
    threshold_of,
    weights_given,
)
from tacit_gauntlet.stage.scaling import NEIGHBOURS, Plan, ways_of
from tacit_gauntlet.stage.statistic import clopper_pearson_lower

KEYS_OF_ONE = (1, 2, 3, 5, 16, 60, KEYS_OF_A_UNIT_MOST, KEYS_OF_A_UNIT_MOST + 40)
DRAWN = KEYS_OF_A_UNIT_MOST  # of each person whose release is drawn
FALSE_ALARM = Fraction(1, 10**9)


@case(
    "S37", title="however many keys one unit alone has, one of them is shown with chance at most delta", feature="plan"
)
def lone_keys(size: Size) -> Evidence:
    """By the exact law, for what each path gives such keys; and by drawing, with a false alarm in 1e9 runs."""
    broken, shown, ways = [], {}, set[str]()
    people = 500 if size == "quick" else 5_000
    for neighbours in NEIGHBOURS[: 1 if size == "quick" else 2]:
        plan = _plan(neighbours)
        charged = threshold_of(plan).delta
        for way in ways_of(plan):
            ways.add(way)
            given = weights_given(plan, KEYS_OF_ONE, way)
            for keys, weights in given.items():
                if len(weights) != min(keys, KEYS_OF_A_UNIT_MOST):
                    broken.append(f"{way}: {len(weights)} of {keys} keys count")
                if shows_more_than(plan, weights, charged):
                    broken.append(f"{way}: one of {keys} keys is shown more often than was charged for")
        seen = people_shown(plan, given[DRAWN], people=people)
        shown[f"{neighbours}: share shown"] = f"{seen / people:.4f}, charged {float(charged):.4f}"
        if clopper_pearson_lower(seen, people, alpha=FALSE_ALARM) > charged:
            broken.append(f"{neighbours}: drawn more often than was charged for")
    return Evidence(not broken, {"paths": sorted(ways), **shown, "broken": broken[:5]})


def _plan(neighbours: str) -> Plan:
    """Return the plan of a round that finds groups, with a delta so large that drawing shows it."""
    question = unbounded([], neighbours=neighbours).group_by("g").count_units()
    _, asked = told(question, spend_of(budget=epsilon(1, delta="0.9")), _many_alike)
    return next(wanted.plan for wanted in asked if finds_groups(wanted))


def _many_alike(wanted: WantedFact) -> Numbers:
    """Ten thousand people whose vectors are of one length."""
    return tuple(tuple(10**4 * (place == min(9, size - 1)) for place in range(size)) for size in numbers_in(wanted))
