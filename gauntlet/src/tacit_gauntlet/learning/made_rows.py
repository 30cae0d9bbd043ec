"""Made-up rows: only public values, a noisy number of them, and no more of one person than was charged."""

from itertools import product
from math import exp
from typing import Any

import numpy as np

from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.models import (
    COLUMNS,
    FAR,
    NEWCOMERS,
    ODD,
    Person,
    crowd,
    heard_rounds,
    people_table,
    table_of,
)
from tacit_gauntlet.stage.statistic import clopper_pearson_lower

LISTED = {name: {*facts["keys"], None} for name, facts in COLUMNS.items() if "keys" in facts}
RANGED = {name: facts["between"] for name, facts in COLUMNS.items() if "between" in facts}
EPSILON, PEOPLE = 1, 1000
MADE = ("age", "ward", "buys", "kind")
# A person in whole steps, as noisy integers count them.
PERSON = 1 << 24
RUNS = {"quick": 45, "full": 400}


@case("M22", title="made-up rows hold public values only, and no exact number of people", feature="learning")
def public_values(size: Size) -> Evidence:
    newcomers = {**NEWCOMERS, **ODD}
    names = ("values that nobody declared", "beyond every range") if size == "quick" else tuple(newcomers)
    wrong = []
    tables = [(who, people, newcomers[who]) for who, people in product(names, (0, 2, 150))]
    for who, people, rows in tables:
        with heard_rounds() as told:
            first = people_table(people=people).synthesize(epsilon=EPSILON, columns=list(COLUMNS)).people
        with heard_rounds(told) as again:
            second = people_table(rows, people=people).synthesize(epsilon=EPSILON, columns=list(COLUMNS))
        if again.unlike or first != second.people:
            wrong.append(f"{who} among {people}: another number of people, of the same noisy numbers")
        wrong += [f"{who} among {people}: {each}" for each in _strange(second.rows(400).to_pydict())]
    return Evidence(not wrong, {"tables": len(tables), "wrong": wrong[:5]})


def _strange(made: dict[str, list[Any]]) -> list[str]:
    """Return the columns with values that are not public."""
    strange = [name for name, allowed in LISTED.items() if not {*made[name]} <= allowed]
    for name, (low, high) in RANGED.items():
        strange += [name for each in made[name] if each is not None and not low <= each <= high][:1]
    return strange


@case("M23", title="the distances of pairs show one person no better than epsilon allows", feature="learning")
def membership(size: Size) -> Evidence:
    """An attacker who knows all others decides from the noisy distances whether one unlike person is in the table."""
    right, runs = 0, RUNS[size]
    tables = [_counted(crowd(PEOPLE)), _counted([*crowd(PEOPLE), (10**6, FAR)])]
    for present in [False, True] * runs:
        rows = [*crowd(PEOPLE), *([(10**6, FAR)] if present else [])]
        state = table_of(rows).synthesize(epsilon=EPSILON, columns=list(MADE)).state_
        noisy = np.array(state.noisy["distances"], dtype=np.float64)
        guesses = [np.rint(np.maximum(state.guesses[pair], 0) * PERSON) for pair in state.design.pairs]
        off = []
        for counted in tables:
            exact = [_mapped(counted, pair, state.bins, state.sizes) for pair in state.design.pairs]
            distances = [np.abs(one - guess).sum() for one, guess in zip(exact, guesses, strict=True)]
            off.append(float(((noisy - np.array(distances)) ** 2).sum()))
        right += (off[1] < off[0]) == present
    most = exp(EPSILON) / (1 + exp(EPSILON)) + 1e-6
    least = clopper_pearson_lower(right, 2 * runs)
    return Evidence(least <= most, {"right": right, "of": 2 * runs, "by epsilon at most": most})


def _counted(rows: list[tuple[int, Person]]) -> Any:
    """Return the cells of the columns of `MADE`, as the declaration says: what only the attacker's knowledge gives."""
    wards, buys, kinds = (COLUMNS[name]["keys"] for name in ("ward", "buys", "kind"))
    return np.array([(each[0], wards.index(each[2]), buys.index(each[3]), kinds.index(each[4])) for _, each in rows])


def _mapped(counted: Any, pair: tuple[int, int], bins: Any, sizes: Any) -> Any:
    first, second = (np.asarray(bins[at])[counted[:, at]] for at in pair)
    table = np.zeros((sizes[pair[0]], sizes[pair[1]]))
    np.add.at(table, (first, second), float(PERSON))
    return table
