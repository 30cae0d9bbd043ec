"""Attacks on scaling: units with long, huge, tied and absurd vectors must stay within public caps, each by itself."""

from dataclasses import replace
from itertools import product

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.engine import Way
from tacit_gauntlet.stage.neighbours import Row, crowd
from tacit_gauntlet.stage.scaled_people import (
    BEYOND_THE_KERNEL,
    FEW,
    PEOPLE,
    TOGETHER,
    VECTORS,
    apart_from_each_other,
    own_cells,
    rows_of,
)
from tacit_gauntlet.stage.scaling import (
    NEIGHBOURS,
    Norm,
    Plan,
    Vector,
    cells_too_far,
    exact_of,
    released_cells,
    released_totals,
    scaled_plan,
    start_of,
    totals_too_far,
    ways_of,
)
from tacit_gauntlet.stage.table import SALT, Cells, added

KEYS = [*"abcdef", None, "nowhere", *(f"g{n}" for n in range(90))]
NEWCOMER = 10**6
NORMS: tuple[Norm, Norm] = (1, 2)
# Some of everybody, for quick runs that show one person at a time.
NUMEROUS = ("many rows in many cells",)
HUGE = ("huge, of both signs", "huge beside tiny")
OTHER_SALT = "0b5e"
# A vector whose totals nobody reaches the end of, and its row in fine steps.
OPEN_ROW = 1 << 2
OPEN_ENDED = Vector("rows", shift=2, cap=9 * OPEN_ROW, totals="absolute", tail=1 << 30)


@case(
    "S32",
    title="whatever a unit's cells hold, they are scaled into the cap, in the norm of the noise",
    feature="engine",
)
def within_the_cap(size: Size) -> Evidence:
    """Each person is in groups of their own, so that one run shows what each of them adds, and every pair replaced."""
    tries, broken, ways = 0, [], set[str]()
    for norm, (vectors, together) in product(NORMS, [(VECTORS, TOGETHER), (BEYOND_THE_KERNEL, None)]):
        if size == "quick" and norm == 1 and together is None:
            continue
        bare = [replace(vector, totals=None) for vector in vectors]
        comes, replaced = (scaled_plan(start_of(None, each), norm, bare, together) for each in NEIGHBOURS)
        nobody: list[Cells] = [{}] * len(vectors)
        for way in ways_of(comes):
            ways.add(way)
            found = released_cells(comes, exact_of(comes, apart_from_each_other(), way))
            people = {name: [own_cells(cells, name) for cells in found] for name in PEOPLE}
            if not all(added_up([cells[place] for cells in people.values()]) for place in range(len(vectors))):
                broken.append(f"norm {norm}, {way}: nobody adds anything to a vector")
            for name, cells in people.items():
                tries += 1
                broken += [f"{name}, norm {norm}, {way}: {what}" for what in cells_too_far(comes, nobody, cells)]
            for (name, cells), (other, others) in product(people.items(), repeat=2):
                tries += 1
                far = cells_too_far(replaced, cells, others)
                broken += [f"{name} becomes {other}, norm {norm}, {way}: {what}" for what in far]
    return Evidence(not broken, {"neighbours": tries, "paths": sorted(ways), "moved too far": broken[:5]})


def added_up(people: list[Cells]) -> int:
    """Return how much people add, whatever its sign."""
    return sum(abs(number) for cells in people for number in cells.values())


@case(
    "S33",
    title="what a unit adds once scaled depends on its own rows alone: no other unit, salt or order",
    feature="engine",
)
def scaled_by_itself(size: Size) -> Evidence:
    differ, tries = [], 0
    for norm in NORMS:
        asked = scaled_plan(start_of(KEYS), norm, *(FEW, None) if size == "quick" else (VECTORS, TOGETHER))
        for way in ways_of(asked):
            if size == "quick" and way == "sql" and norm == 2:
                continue  # S32 has it, and making its SQL takes the time of all the rest
            without = _all_numbers(asked, crowd(), way)
            for name in NUMEROUS if size == "quick" else NUMEROUS + HUGE:
                newcomer = rows_of(PEOPLE[name], NEWCOMER)
                alone = _all_numbers(asked, newcomer, way)
                mixed = sorted(crowd() + newcomer, key=lambda row: (str(row[2]), str(row[1]), -row[0]))
                both = _all_numbers(asked, mixed, way, salt=OTHER_SALT)
                tries += 1
                if [added(left, right) for left, right in zip(without, alone, strict=True)] != both:
                    differ.append(f"{name}, norm {norm}, {way}")
    differ += _not_in_full()
    return Evidence(not differ, {"tables": tries, "others' numbers that moved": differ[:5]})


def _all_numbers(asked: Plan, rows: list[Row], way: Way, *, salt: str = SALT) -> list[Cells]:
    exact = exact_of(asked, rows, way, salt=salt)
    return released_cells(asked, exact) + released_totals(asked, exact)


def _not_in_full() -> list[str]:
    """Return the paths on which a person counts for less than what a bound on groups left, though that is in the cap.

    Groups beyond the bound are dropped before anything is scaled.
    """
    row = 1 << 10
    vector = Vector("rows", shift=10, cap=100 * row, totals="absolute", tail=row, tail_shift=10)
    asked = scaled_plan(start_of(KEYS), 1, [vector], groups=2)
    heavy = rows_of([(g, 1, 1.0) for g in "abc" for _ in range(50)], NEWCOMER)
    found = {way: released_cells(asked, exact_of(asked, heavy, way))[0] for way in ways_of(asked)}
    return [f"not in full, {way}" for way, cells in found.items() if list(cells.values()) != [50 * row, 50 * row]]


@case("S34", title="one unit moves what was kept and what was cut by the tail cap, both together", feature="engine")
def kept_and_cut(size: Size) -> Evidence:
    tries, broken, ways = 0, [], set[str]()
    names = HUGE if size == "quick" else NUMEROUS + HUGE
    some = [
        OPEN_ENDED,
        *((*FEW, VECTORS[3]) if size == "quick" else (each for each in VECTORS if each.totals is not None)),
    ]
    for norm in NORMS[0 if size == "full" else 1 :]:
        comes, replaced = (scaled_plan(start_of(KEYS, neighbours), norm, some) for neighbours in NEIGHBOURS)
        for way in ways_of(comes):
            ways.add(way)
            tables = {"nobody": crowd(), **{name: crowd() + rows_of(PEOPLE[name], NEWCOMER) for name in names}}
            found = {name: released_totals(comes, exact_of(comes, rows, way)) for name, rows in tables.items()}
            where = f"norm {norm}, {way}"
            for name, totals in found.items():
                tries += 1
                broken += [f"{name}, {where}: {what}" for what in totals_too_far(comes, found["nobody"], totals)]
                if sum(totals[0].values()) != len(tables[name]) << some[0].shift:
                    broken.append(f"{name}, {where}: kept and cut are not all there is")
            for (name, totals), (other, others) in product(found.items(), repeat=2):
                tries += 1
                far = totals_too_far(replaced, totals, others)
                broken += [f"{name} becomes {other}, {where}: {what}" for what in far]
    return Evidence(not broken, {"neighbours": tries, "paths": sorted(ways), "moved too far": broken[:5]})
