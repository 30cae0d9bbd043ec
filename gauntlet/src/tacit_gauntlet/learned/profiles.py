"""Attacks on what is learned: profiles of people's sizes, and plans that rest on facts, true or absurd."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Literal

from tacit import count, count_distinct, count_units, mean, median, variance
from tacit import sum as sum_of
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.engine import Way
from tacit_gauntlet.stage.facts import (
    Numbers,
    Tell,
    WantedFact,
    drawn_most,
    has_learned,
    is_profile,
    noise_faults,
    numbers_in,
    plan_on,
    spend_of,
    told,
    truth_of,
    unbounded,
    wanted_next,
)
from tacit_gauntlet.stage.neighbours import Row, crowd
from tacit_gauntlet.stage.scaled_people import PEOPLE, rows_of
from tacit_gauntlet.stage.scaling import (
    NEIGHBOURS,
    ExactTable,
    Plan,
    cells_too_far,
    exact_of,
    released_cells,
    released_totals,
    totals_too_far,
    ways_of,
)
from tacit_gauntlet.stage.table import Question, Table

KEYS = [*"abcdef", None, "nowhere", *(f"g{n}" for n in range(90))]
NEWCOMER = 10**6
# The path whose plans take the least time to make.
QUICK: Way = "patient"
NOISES: tuple[Literal["laplace"], Literal["gaussian"]] = ("laplace", "gaussian")
NEWCOMERS = ("many rows in many cells", "huge, of both signs")


def counts(table: Table) -> Question:
    """Return a question of rows by listed keys."""
    return table.group_by("g", keys=KEYS).count()


def means(table: Table) -> Question:
    """Return a question of rows, of a sum and of a mean by listed keys."""
    return table.group_by("g", keys=KEYS).agg(n=count(), s=sum_of("y"), m=mean("x"))


def found_keys(table: Table) -> Question:
    """Return a question whose keys nobody listed."""
    return table.group_by("g").agg(n=count(), u=count_units(), s=sum_of("x"))


def whole(table: Table) -> Question:
    """Return a question without groups."""
    return table.where("y > -1000").agg(n=count("x"), s=sum_of("z"), u=count_units())


def filled(table: Table) -> Question:
    """Return a question of aggregates that drop rows beyond learned bounds."""
    return table.group_by("g", keys=KEYS).agg(v=variance("y"), q=median("x"), d=count_distinct("x"))


QUESTIONS = (counts, means, found_keys, whole, filled)


def tables() -> dict[str, list[Row]]:
    """Return a crowd, and the crowd with one person more."""
    return {"nobody": crowd(), **{name: crowd() + rows_of(PEOPLE[name], NEWCOMER) for name in NEWCOMERS}}


@case("S35", title="one unit is in one bin of a profile at most, and a profile's noise is for that", feature="plan")
def one_bin(size: Size) -> Evidence:
    tries, broken, ways = 0, [], set[Way]()
    people = tables()
    for ask, neighbours in product(QUESTIONS if size == "full" else (counts, means), NEIGHBOURS):
        if size == "quick" and (ask, neighbours) == (means, "replace"):
            continue
        question, where = ask(unbounded([], neighbours=neighbours)), f"{ask.__name__}, {neighbours}"
        few = dict(list(people.items())[:2]) if size == "quick" and ask is means else people
        asked, found = _walk(question, few, quick=(ask, neighbours) != (counts, "add-remove"))
        for wanted in asked:
            broken += [f"{where}: {what}" for what in noise_faults(wanted.plan, wanted.plan.spend)]
        broken += [f"{where}: {what}" for what in _costs_too_much(question, asked)]
        for wanted, way in found:
            tries, ways = tries + 1, {*ways, way}
            bins = {name: released_cells(wanted.plan, exact) for name, exact in found[wanted, way].items()}
            for one, other in pairs_of(bins, neighbours):
                far = cells_too_far(wanted.plan, bins[one], bins[other])
                broken += [f"{where}, {way}, {one} becomes {other}: {what}" for what in far]
            units = len({row[0] for row in people["nobody"]})
            if any(sum(each.values()) > units for each in bins["nobody"]):
                broken.append(f"{where}, {way}: more people in bins than there are")
    return Evidence(not broken, {"profiles": tries, "paths": sorted(ways), "broken": broken[:5]})


def pairs_of(names: Iterable[str], neighbours: str) -> list[tuple[str, str]]:
    """Return the pairs of tables that are neighbours: one person more, or one in the place of another."""
    found = list(names)
    before = found if neighbours == "replace" else found[:1]
    return [(one, other) for one in before for other in found]


Found = dict[tuple[WantedFact, Way], dict[str, ExactTable]]


def _walk(question: Question, people: Mapping[str, list[Row]], *, quick: bool) -> tuple[list[WantedFact], Found]:
    """Return all that a question learns if it is told the truth, and the exact bins of every profile, on every path."""
    found: Found = {}

    def tell(wanted: WantedFact) -> Numbers:
        if not is_profile(wanted):
            return truth_of(wanted, exact_of(wanted.plan, people["nobody"], QUICK))
        ways = [way for way in ways_of(wanted.plan) if way == QUICK or not quick]
        found.update(
            {(wanted, way): {name: exact_of(wanted.plan, rows, way) for name, rows in people.items()} for way in ways}
        )
        return truth_of(wanted, found[wanted, QUICK]["nobody"])

    _, asked = told(question, spend_of(), tell)
    return asked, found


def _costs_too_much(question: Question, asked: Sequence[WantedFact]) -> list[str]:
    """What a call learns is a part of its own epsilon: of the share it states, if it states one."""
    spend, share = spend_of(), Fraction(1, 50)
    all_of_it = sum((wanted.plan.spend.epsilon for wanted in asked), Fraction(0))
    first = sum((each.plan.spend.epsilon for each in wanted_next(question, spend, {}, learn=share)), Fraction(0))
    return [
        *(["learning leaves nothing for the answer"] if all_of_it >= spend.epsilon else []),
        *(["learning costs more than the share that was given"] if first > share * spend.epsilon else []),
    ]


# ---- Absurd facts.


def _same(number: int) -> Tell:
    """So many people in every bin; of numbers that are drawn, an end of the range, or its middle."""

    def tell(wanted: WantedFact) -> Numbers:
        end = 0 if number < 0 else drawn_most(wanted) // (1 if number else 2)
        return tuple((end if drawn_most(wanted) else number,) * size for size in numbers_in(wanted))

    return tell


def _at(place: int) -> Tell:
    """A million people in one bin; of numbers that are drawn, an end of the range."""

    def tell(wanted: WantedFact) -> Numbers:
        if drawn_most(wanted):
            return ((drawn_most(wanted) if place else 0,),) * len(numbers_in(wanted))
        return tuple(tuple(10**6 * (each == place % size) for each in range(size)) for size in numbers_in(wanted))

    return tell


ABSURD: Mapping[str, Tell] = {
    "nobody": _same(0),
    "fewer than nobody": _same(-(1 << 40)),
    "everybody everywhere": _same(1 << 62),
    "all in the first bin": _at(0),
    "all in the last bin": _at(-1),
    "all in the middle": _at(37),
}
SOME_ABSURD = ("fewer than nobody", "all in the first bin", "all in the last bin")


@case(
    "S36", title="absurd facts spoil an answer, and never let one unit move more than its noise is for", feature="plan"
)
def absurd_facts(size: Size) -> Evidence:
    tries, broken, kinds = 0, [], set[str]()
    people = tables()
    quick = product(QUESTIONS, SOME_ABSURD, [None])
    combinations = enumerate(quick if size == "quick" else product(QUESTIONS, ABSURD, NEIGHBOURS))
    for place, (ask, name, either) in combinations:
        neighbours, noise = either or NEIGHBOURS[place % 2], NOISES[place // 2 % 2]
        spend = spend_of(noise=noise)
        question = ask(unbounded([], neighbours=neighbours))
        facts, _ = told(question, spend, ABSURD[name])
        plan = plan_on(question, facts, spend)
        where = f"{ask.__name__}, {name}, {neighbours}, {noise}"
        kinds.add("scaled" if plan.scaling is not None else "dropped")
        broken += [f"{where}: {what}" for what in noise_faults(plan, spend)]
        if not has_learned(plan):
            broken.append(f"{where}: the plan rests on no fact")
        for way in ways_of(plan) if size == "full" and place % 6 == 0 else (QUICK,):
            tries += 1
            some = list(people)[place % 2 : place % 2 + 2]
            found = {name: exact_of(plan, people[name], way) for name in some}
            broken += [f"{where}, {way}: {what}" for what in differences(plan, found, neighbours)]
    return Evidence(not broken and len(kinds) == 2, {"plans": tries, "bounded by": sorted(kinds), "broken": broken[:5]})


def differences(plan: Plan, found: Mapping[str, ExactTable], neighbours: str) -> Iterator[str]:
    """Yield what one person moves too far in the sums and the totals of a plan."""
    cells = {name: released_cells(plan, exact) for name, exact in found.items()}
    totals = {name: released_totals(plan, exact) for name, exact in found.items()}
    for one, other in pairs_of(found, neighbours):
        far = cells_too_far(plan, cells[one], cells[other]) + totals_too_far(plan, totals[one], totals[other])
        yield from (f"{one} becomes {other}: {what}" for what in far)
