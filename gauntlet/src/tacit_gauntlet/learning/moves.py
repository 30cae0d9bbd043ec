"""How far one person moves a model: every exact number of every round, beside what was charged for all of them."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from tacit.errors import TacitError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.models import (
    MODELS,
    NEWCOMERS,
    ODD,
    PEOPLE,
    SCORES,
    Person,
    heard_rounds,
    moved,
    paid_for,
    people_table,
    public_text,
)

Asked = Mapping[str, Callable[[Any], Any]]
# Somebody who moves a fit nearly as far as is paid for shows that the measure sees them.
SEEN = 0.9
# A newcomer joins a crowd, or a table of no rows.
CROWDS = (PEOPLE, 0)
QUICK = ("a thousand rows alike",)
QUICK_ODD = ("beyond every range", "not a number", "infinite", "missing throughout", "values that nobody declared")


@case("M02", title="one person more changes no bin, step, rate or weight but through noise", feature="learning")
def same_steps(size: Size) -> Evidence:
    unlike = []
    some = ("two classes", "a number", "a line", "made-up rows", "clusters") if size == "quick" else tuple(MODELS)
    for name, people in product(some, CROWDS):
        with heard_rounds() as told:
            first = public_text(MODELS[name](people_table(people=people)))
        for who in QUICK if size == "quick" else NEWCOMERS:
            rows = NEWCOMERS[who]
            with heard_rounds(told) as again:
                second = public_text(MODELS[name](people_table(rows, people=people)))
            unlike += [f"{name}, {who}: {each}" for each in again.unlike]
            if second != first:
                unlike.append(f"{name}, {who}: the same noisy numbers give another model")
    return Evidence(not unlike, {"models": len(some), "unlike": unlike[:5]})


@case("M03", title="one person moves all rounds together by no more than is charged", feature="learning")
def bounded_moves(size: Size) -> Evidence:
    asked = {**MODELS, **SCORES}
    declared: list[dict[str, Any]] = [{}] if size == "quick" else [{}, {"neighbours": "replace"}]
    newcomers = NEWCOMERS if size == "full" else {name: NEWCOMERS[name] for name in QUICK}
    farthest, broken = 0.0, list[str]()
    for words in declared:
        far, wrong = _moves(asked, newcomers, **words)
        farthest, broken = max(farthest, far), broken + wrong
    return Evidence(not broken and farthest > SEEN, {"farthest, of what is charged": farthest, "broken": broken[:5]})


@case("M07", title="no cell and no heavy person stops a fit, or moves it farther", feature="learning")
def odd_people(size: Size) -> Evidence:
    newcomers = ODD if size == "full" else {name: ODD[name] for name in QUICK_ODD}
    some = (
        {**MODELS, **SCORES}
        if size == "full"
        else {name: MODELS[name] for name in ("two classes", "a line", "clusters")}
    )
    farthest, broken = _moves(some, newcomers)
    return Evidence(
        not broken and farthest > SEEN,
        {"newcomers": len(newcomers), "farthest, of what is charged": farthest, "broken": broken[:5]},
    )


def _moves(asked: Asked, newcomers: Mapping[str, Sequence[Person]], **declared: Any) -> tuple[float, list[str]]:
    """Return the farthest anybody moves anything, as a part of what is charged, and who goes beyond or makes it fail.

    Where people are replaced, a newcomer alone moves half as far as two people would.
    """
    share = 4 if declared.get("neighbours") == "replace" else 1
    farthest, broken = 0.0, []
    for (name, ask), people in product(asked.items(), CROWDS):
        with heard_rounds() as told:
            ask(people_table(people=people, **declared))
        for who, rows in newcomers.items():
            table = people_table(rows, people=people, **declared)
            try:
                with heard_rounds(told) as again:
                    ask(table)
            except TacitError as problem:
                broken.append(f"{name}, {who}: {type(problem).__name__}")
                continue
            if again.unlike:
                broken.append(f"{name}, {who}: {again.unlike[0]}")
                continue
            part = moved(told, again) * share / paid_for(table)
            farthest = max(farthest, float(part))
            if part > 1:
                broken.append(f"{name}, {who}: {float(part):.4g} of what is charged")
    return farthest, broken
