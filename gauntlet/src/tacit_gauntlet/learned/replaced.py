"""Attacks by replacing one unit by another whose groups are others: groups that nobody listed, few of them a unit.

Plans come through the ordinary door, from a declaration and facts, so that what is tried is what the planner makes of
a bound on groups.
"""

from itertools import product

from tacit import count, count_units, mean
from tacit import sum as sum_of
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.learned.profiles import NOISES, QUICK, differences
from tacit_gauntlet.stage.facts import (
    Numbers,
    WantedFact,
    finds_groups,
    noise_faults,
    numbers_in,
    plan_on,
    spend_of,
    told,
    unbounded,
)
from tacit_gauntlet.stage.neighbours import Row, crowd
from tacit_gauntlet.stage.scaling import exact_of, released_cells, ways_of
from tacit_gauntlet.stage.table import Question, Table

NEWCOMER = 10**6
# Each stands in the place of any other; what one adds is in groups where the other is not.
STRANGERS: dict[str, list[Row]] = {
    "in a": [(NEWCOMER, "a", 5, 1.0, None)],
    "in b": [(NEWCOMER, "b", -5, -1.0, None)],
    "often in c": [(NEWCOMER, "c", 7, 1e300, None)] * 200,
    "in groups of their own": [(NEWCOMER, f"own {n}", -7, -1e300, None) for n in range(40)],
}


def rows_and_keys(table: Table) -> Question:
    """Return a question of rows whose keys nobody listed."""
    return table.group_by("g").agg(n=count())


def values_and_keys(table: Table) -> Question:
    """Return a question of people, a sum and a mean whose keys nobody listed."""
    return table.group_by("g").agg(u=count_units(), s=sum_of("y"), m=mean("x"))


def _a_few_each(wanted: WantedFact) -> Numbers:
    """Ten thousand people with vectors of a few lengths."""
    return tuple(tuple(5_000 * (place in (9, 11)) for place in range(size)) for size in numbers_in(wanted))


@case(
    "S42",
    title="a unit bounded to few found groups may be replaced by one in others: sums and keys move within the noise",
    feature="plan",
)
def in_other_groups(size: Size) -> Evidence:
    tries, broken, ways, moved = 0, [], set[str](), 0
    bounds = (1,) if size == "quick" else (1, 2, None)
    for ask, groups, spend in product((rows_and_keys, values_and_keys), bounds, [spend_of(noise=n) for n in NOISES]):
        question = ask(unbounded([], neighbours="replace", groups_per_unit=groups))
        facts, asked = told(question, spend, _a_few_each)
        search = next(wanted.plan for wanted in asked if finds_groups(wanted))
        for plan in (search, plan_on(question, facts, spend)):
            where = f"{ask.__name__}, {groups} groups, {spend.noise}, {'search' if plan is search else 'answer'}"
            broken += [f"{where}: {what}" for what in noise_faults(plan, spend)]
            for way in ways_of(plan) if size == "full" else (QUICK,):
                tries, ways = tries + 1, {*ways, way}
                found = {name: exact_of(plan, crowd() + rows, way) for name, rows in STRANGERS.items()}
                broken += [f"{where}, {way}: {what}" for what in differences(plan, found, "replace")]
                moved += _keys_that_moved([released_cells(plan, exact) for exact in found.values()])
    figures = {"plans": tries, "paths": sorted(ways), "weights of keys that moved": moved, "broken": broken[:5]}
    return Evidence(not broken and moved >= tries, figures)


def _keys_that_moved(found: list[list[dict[tuple[object, ...], int]]]) -> int:
    """Return how many keys' numbers differ between two strangers: where none does, nothing was tried."""
    one, other = dict(found[0][0]), dict(found[1][0])
    return sum(one.get(key, 0) != other.get(key, 0) for key in one | other)
