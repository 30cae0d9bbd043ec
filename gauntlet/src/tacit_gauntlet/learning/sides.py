"""Who is on which side: teachers of disjoint people, holdouts by a hash of the unit, scores that say who was seen."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tacit.errors import QueryRefused
from tacit.learning import AdditiveClassifier, Holdout
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.models import (
    EPSILON,
    FAR,
    FEATURES,
    NEWCOMERS,
    Person,
    choice_moves,
    crowd,
    dealt_units,
    people_table,
    sides_of,
    table_of,
)


@case("M11", title="every person has one teacher, whoever else is there and in whatever order", feature="learning")
def disjoint_teachers(size: Size) -> Evidence:
    wrong = []
    people = 150 if size == "quick" else 3000
    usual = dealt_units(table_of(_twice(people)))
    if any(len(hands) != 1 for hands in usual.values()):
        wrong.append("somebody has several teachers")
    for name, rows in _others(people).items():
        found = dealt_units(table_of(rows))
        if any(found[who] != hands for who, hands in usual.items()):
            wrong.append(f"{name}: somebody's teacher is another")
    teachers = {hand for hands in usual.values() for hand in hands}
    return Evidence(not wrong and len(teachers) > 1, {"people": len(usual), "teachers": len(teachers), "wrong": wrong})


@case("M12", title="a holdout has whole people, the same ones whatever the rows and their order", feature="learning")
def whole_people(size: Size) -> Evidence:
    wrong = []
    people = 150 if size == "quick" else 3000
    training, rest = sides_of(table_of(_twice(people)))
    if training & rest or len(training | rest) != people:
        wrong.append(f"{len(training & rest)} people are on both sides")
    for name, rows in _others(people).items():
        again, others = sides_of(table_of(rows))
        known = training | rest
        if (again & known, others & known) != (training, rest):
            wrong.append(f"{name}: {len((again & known) ^ training)} people have changed sides")
    return Evidence(not wrong and len(rest) > 0, {"training": len(training), "rest": len(rest), "wrong": wrong})


def _twice(people: int) -> list[tuple[int, Person]]:
    """Return a crowd with two rows each, the second of them unlike the first."""
    first = crowd(people)
    return [*first, *((who, FAR) for who, _ in first)]


def _others(people: int) -> dict[str, list[tuple[int, Person]]]:
    """Return the crowd in another order, and with others among them."""
    rows = _twice(people)
    order = np.argsort(np.array([who * 7919 % 1009 for who, _ in rows]), kind="stable")
    found = {"another order": [rows[at] for at in order]}
    for name, newcomer in NEWCOMERS.items():
        found[f"first came {name}"] = [*((10**6, row) for row in newcomer), *rows]
    return found


@case("M13", title="a score on people whom a model has seen is refused, or says so", feature="learning")
def told_as_seen(_: Size) -> Evidence:
    wrong = []
    for name, side in SEEN.items():
        table = people_table()
        model = AdditiveClassifier(epsilon=EPSILON, rounds=2).fit(side(table), target="buys", features=FEATURES)
        holdout = Holdout(table, share="0.5")
        try:
            holdout.score(model, epsilon=EPSILON)
        except QueryRefused:
            score = holdout.score(model, epsilon=EPSILON, even_if_seen=True)
            wrong += [f"{name}: told as fresh"] if score.is_fresh or "NOT FRESH" not in repr(score) else []
        else:
            wrong.append(f"{name}: scored as if nobody had been seen")
    table = people_table()
    holdout = Holdout(table, share="0.5")
    model = AdditiveClassifier(epsilon=EPSILON, rounds=2).fit(holdout.training, target="buys", features=FEATURES)
    if not holdout.score(model, epsilon=EPSILON).is_fresh:
        wrong.append("the other side's people are told as seen")
    return Evidence(not wrong, {"fitted on": list(SEEN), "wrong": wrong})


SEEN: dict[str, Callable[[Any], Any]] = {
    "the whole table": lambda table: table,
    "a filter of it": lambda table: table.where("age < 5"),
    "the rest itself": lambda table: Holdout(table, share="0.5").rest,
    "the training side of a smaller share": lambda table: Holdout(table, share="0.1").training,
    "the training side of another seed": lambda table: Holdout(table, share="0.5", seed=1).training,
    "a part of the rest": lambda table: Holdout(Holdout(table, share="0.5").rest).training,
}


@case("M14", title="in a choice among models one person has one vote, whatever their rows", feature="learning")
def one_vote_in_a_choice(_: Size) -> Evidence:
    broken, farthest = [], 0.0
    newcomers: dict[str, Sequence[Person]] = {**NEWCOMERS, "far and many": [FAR] * 50}
    for who, rows in newcomers.items():
        moves, allowed = choice_moves(rows)
        farthest = max(farthest, *(abs(each) / allowed for each in moves))
        if any(abs(each) > allowed for each in moves):
            broken.append(f"{who}: {max(map(abs, moves)) / allowed:.4g} votes")
        if min(moves) < 0 < max(moves):
            broken.append(f"{who}: one merit rises and another falls, so that noise is too small by half")
    return Evidence(not broken and farthest > 0.9, {"most votes": farthest, "broken": broken})
