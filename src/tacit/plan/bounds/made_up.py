"""Made-up facts, in the place of those that are not known yet: a plan foresees with them what else will be learned.

Made-up facts are never kept, and never become a part of an answer. Before a question is charged, made-up facts show
what the question would want next, if the facts that it learns first told of very many people who are all alike, and of
a few groups with very many people each.
"""

from datetime import datetime
from fractions import Fraction

from tacit.plan.bounds.facts import Fact, WantedFact
from tacit.plan.bounds.found_keys import MADE_OF
from tacit.plan.bounds.profiles import bin_of
from tacit.plan.groups import UNIT_SHIFT
from tacit.plan.plan import Plan
from tacit.query import Scalar, Type

# The number of people, all in one bin, that planning assumes for an unknown fact.
PEOPLE_STANDING_IN = 10**6
BIN_STANDING_IN = 10
LARGEST_STANDING_IN = 64 + 3
GROUPS_STANDING_IN = 8
DISTANCE_STANDING_IN = Fraction(4)  # a quarter of the largest values that stand in


def standing_in(wanted: WantedFact, rows: int | None = None) -> Fact:
    """Return a made-up fact, to predict further facts and charges, and errors if each person has this many rows.

    Of a profile everyone is in one bin; of groups there are a few; a number that is drawn is the middle of its range.
    """
    plan = wanted.plan
    if plan.threshold is not None:
        return made_up_groups(wanted, groups=GROUPS_STANDING_IN, people=PEOPLE_STANDING_IN)
    parts: list[tuple[int, ...]] = []
    for place, _ in enumerate(plan.releases):
        largest = bool(plan.profiles) and plan.profiles[place].norm == "largest"
        full = LARGEST_STANDING_IN if largest else BIN_STANDING_IN
        if rows is not None and plan.profiles and not largest:
            full = _made_up_bin(plan, place, rows=rows)
        bins = range(len(plan.public_keys or ()))
        parts.append(tuple(PEOPLE_STANDING_IN if each == full else 0 for each in bins))
    for draw in plan.quantiles:
        middle = plan.measured[draw.column].height // 2
        parts += [(middle,)] * (3 * len(draw.targets))
    scales = tuple(release.scale for release in plan.releases)
    return Fact(wanted.key, wanted.words, tuple(parts), scales, plan.spend.epsilon)


def _made_up_bin(plan: Plan, place: int, *, rows: int) -> int:
    """Return the bin of one unit in a plan's profile, given its rows or its groups.

    Values of a column with a declared range are a quarter of it away from the centre.
    """
    vector = plan.profiles[place].vector
    if vector.kind != "centred" or vector.column is None:
        groups = len(plan.cells.public_keys or ()) if plan.cells is not None else 0
        return bin_of((min(rows, groups or rows) if vector.kind == "units" else rows) * 2.0**vector.shift)
    column = plan.measured[vector.column]
    steps = Fraction(column.height, 4) if column.between is not None else DISTANCE_STANDING_IN / column.step
    return bin_of(float(rows * steps) * 2.0**vector.shift)


def made_up_groups(wanted: WantedFact, *, groups: int, people: int) -> Fact:
    """Return a made-up fact in the place of a round that was not run, with this many groups and people each."""
    plan = wanted.plan
    if plan.threshold is None:
        raise ValueError("this fact is not about which groups there are")
    some = {kind: [_made_up(kind, place) for place in range(groups)] for kind in MADE_OF}
    keys = tuple(dict.fromkeys(zip(*(some[key.type] for key in plan.keys), strict=True)))
    parts = ((people << UNIT_SHIFT,) * len(keys), (plan.threshold.least,))
    scales = (plan.releases[0].scale,)
    return Fact(wanted.key, wanted.words, parts, scales, *wanted.cost[:1], keys=keys, delta=wanted.cost[1])


def _made_up(kind: Type, place: int) -> Scalar:
    if kind in ("date", "timestamp"):
        day = datetime(2000, 1, 1 + place % 28)  # noqa: DTZ001 - a key is without a time zone
        return day if kind == "timestamp" else day.date()
    made: Scalar = MADE_OF[kind](place)
    return made
