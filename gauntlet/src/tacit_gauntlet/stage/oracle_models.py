"""The oracle of models: every round of a fit, a score, votes or a choice, on all tables of a small world.

Each table is asked through the public doors, and is told the noisy numbers of the first one, so that all of them are
asked the same. Then each round's exact numbers are compared with what was charged for that round.
"""

from collections.abc import Callable, Mapping
from math import inf, nan
from typing import Any

from tacit import ROW
from tacit.errors import TacitError
from tacit_gauntlet.stage.fuzz import Chooser
from tacit_gauntlet.stage.models import (
    KINDS,
    MODELS,
    NAMES,
    SCORES,
    TYPES,
    WARDS,
    Heard,
    Merits,
    heard_rounds,
    merits_of,
    paid_for,
    table_of,
)
from tacit_gauntlet.stage.oracle import Found
from tacit_gauntlet.stage.table import Table
from tacit_gauntlet.stage.worlds import NEIGHBOURS, SMALL, Columns, Likes, Versions, World, world_of, world_of_rows

# Cells of each column: inside what is declared, at its ends, beyond it, odd and missing.
CELLS: Mapping[str, tuple[Any, ...]] = {
    "age": (0, 3, 9, 9, 10, -1, 2**63 - 1, -(2**63), None),
    "pay": (-1.0, 1.0, 1.0, 0.25, -0.0, nan, inf, -inf, 1e300, None),
    "ward": (*WARDS, "z", "elsewhere", "", None),
    "buys": ("no", "yes", "yes", "perhaps", None),
    "kind": (*KINDS, "c", "d", None),
    "hours": (0.0, 40.0, 40.0, 12.5, 41.0, -1e308, nan, inf, None),
    "visits": (0, 10, 10, 3, 11, -5, 2**62, None),
}
COLUMNS: Columns = {name: (kind, CELLS[name]) for name, kind in zip(NAMES, TYPES, strict=True)}
CHOICE = "a choice"
ASKED: Mapping[str, Callable[[Table], Any]] = {**MODELS, **SCORES}


def search_models(seed: object, found: Found, *, asked: str, likes: Likes = SMALL) -> None:
    """Ask for one model of one made-up world, and add what is found to `found`; a seed gives the same each time."""
    choose = Chooser(f"models {seed}")
    rows_are_units, neighbours = choose.number(5) == 0, choose.one(NEIGHBOURS)
    rows_are_units = rows_are_units and asked != "made-up rows of people"  # which need several rows of a person
    made = world_of_rows if rows_are_units else _world
    world = made(choose, likes, columns=COLUMNS)
    declared = {"neighbours": neighbours} | ({"unit": ROW} if rows_are_units else {})
    title = f"seed {seed}, {asked}, {neighbours}, {'rows' if rows_are_units else 'ids'}"

    def table(place: Versions) -> Table:
        return table_of([(row[0], row[1:]) for row in world.rows(place)["v"]], **declared)

    try:
        heard = _merits(world, table) if asked == CHOICE else _rounds(world, table, asked)
    except TacitError as problem:
        found.broken.append(f"{title}: {type(problem).__name__}")
        return
    found.questions[asked] += 1
    found.units["row" if rows_are_units else "int"] += 1
    for before, after in world.pairs(neighbours):
        found.pairs[asked] += 1
        used, wrong = _apart(heard[before], heard[after])
        found.moved += used > 0
        found.farthest = max(found.farthest, used)
        found.broken += [f"{title}, {before} and {after}: {what}" for what in wrong[:1]]
        if found.is_enough:
            return


def _world(choose: Chooser, likes: Likes, *, columns: Columns) -> World:
    return world_of(choose, "int", likes, tables={"v": columns})


def _rounds(world: World, table: Callable[[Versions], Table], asked: str) -> dict[Versions, Heard]:
    """Return the rounds on every table; all are told those of the table with the most rows."""
    places = world.places()[::-1]
    with heard_rounds() as told:
        first = table(places[0])
        ASKED[asked](first)
    spent = sum(each.moves_squared / each.sigma**2 for each in told.rounds)
    if spent > paid_for(first):
        told.unlike.append("all rounds together move farther than was charged")
    heard = {places[0]: told}
    for place in places[1:]:
        with heard_rounds(told) as heard[place]:
            ASKED[asked](table(place))
    return heard


def _merits(world: World, table: Callable[[Versions], Table]) -> dict[Versions, Merits]:
    return {place: merits_of(table(place)) for place in world.places()}


def _apart(before: Any, after: Any) -> tuple[float, list[str]]:
    """Return the largest part of a charge that two tables are apart, and what is wrong with them."""
    if isinstance(before, Merits):
        moves = [new - old for old, new in zip(before.exact, after.exact, strict=True)]
        used = max(map(abs, moves)) / before.moves
        both_ways = before.monotone and min(moves) < 0 < max(moves)
        return used, ["a merit moves too far"] * (used > 1) + ["merits move both ways"] * both_ways
    wrong = [*before.unlike, *after.unlike]
    if wrong:
        return 0.0, wrong
    farthest = 0.0
    for place, (one, other) in enumerate(zip(before.rounds, after.rounds, strict=True)):
        squares = sum((left - right) ** 2 for left, right in zip(one.exact, other.exact, strict=True))
        farthest = max(farthest, float(squares / one.moves_squared) if one.moves_squared else 0.0)
        least = min(one.moves_squared, other.moves_squared)
        wrong += [f"round {place} moves by {squares}, and {least} was charged"] if squares > least else []
    return farthest, wrong
