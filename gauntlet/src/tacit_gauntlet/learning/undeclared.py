"""Ranges and keys that nobody declared: learned with noise, charged first, kept, and refused where that is wished."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tacit.errors import QueryRefused
from tacit.learning import PCA, AdditiveClassifier, AdditiveRegressor, KMeans, LinearRegression
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.engine import heard_steps
from tacit_gauntlet.stage.facts import noisy_numbers_kept
from tacit_gauntlet.stage.models import (
    NEWCOMERS,
    ODD,
    charged,
    heard_rounds,
    people_table,
    public_text,
)

# Far above what tells the size of a column in so few people: at a fiftieth of it a fit is refused by luck.
EPSILON = 1000

FITS: dict[str, Callable[..., Any]] = {
    "two classes": lambda table, **words: AdditiveClassifier(epsilon=EPSILON, rounds=2).fit(
        table, target="ward", features=["age", "pay"], **words
    ),
    "a number": lambda table, **words: AdditiveRegressor(epsilon=EPSILON, rounds=2).fit(
        table, target="age", features=["pay", "ward"], **words
    ),
    "a line": lambda table, **words: LinearRegression(epsilon=EPSILON).fit(
        table, target="age", features=["pay", "ward"], **words
    ),
    "components": lambda table, **words: PCA(epsilon=EPSILON).fit(table, features=["age", "pay"], **words),
    "clusters": lambda table, **words: KMeans(2, epsilon=EPSILON).fit(table, features=["age", "pay"], **words),
}


@case("M15", title="what nobody declared is learned with noise, charged first, and kept", feature="learning")
def learned_first(size: Size) -> Evidence:
    wrong = []
    names = ("two classes", "a line") if size == "quick" else tuple(FITS)
    others = {"unlike": NEWCOMERS["one who is unlike all"], "beyond": ODD["beyond every range"]}
    others |= {"a value of one's own": [(9, 1.0, "elsewhere", "perhaps", "d", 40.0, 10)]}
    for name in names:
        kept: list[Any] = []
        table = people_table(columns={})
        wrong += _refused(name, table)
        with heard_rounds() as told, noisy_numbers_kept(kept, again=False):
            first = public_text(FITS[name](table))
        wrong += _charges(name, table)
        for who, rows in others.items():
            with heard_rounds(told) as again, noisy_numbers_kept(kept, again=True):
                second = public_text(FITS[name](people_table(rows, columns={})))
            if second != first or again.unlike:
                wrong.append(f"{name}, {who}: the same noisy numbers give another model")
    return Evidence(not wrong, {"fits": names, "wrong": wrong})


def _refused(name: str, table: Any) -> list[str]:
    """Return what a fit did that may not learn."""
    with heard_steps() as steps:
        try:
            FITS[name](table, learn=False)
        except QueryRefused:
            return [] if not steps and not charged(table) else [f"{name}: refused, and did {steps[:3]}"]
    return [f"{name}: learn=False has learned"]


def _charges(name: str, table: Any) -> list[str]:
    """Return what is wrong with the charges: facts and rounds within epsilon, each before its rows, and once."""
    costs = [Fraction(each["epsilon"]) for each in charged(table)]
    wrong = [] if sum(costs) <= Fraction(EPSILON) * (1 + Fraction(1, 10**5)) else [f"{name}: costs {float(sum(costs))}"]
    wrong += [] if sum("learns" in each for each in charged(table)) == len(costs) - 1 else [f"{name}: no facts"]
    with heard_steps() as steps:
        FITS[name](table)
    if "read" in steps or len(charged(table)) != len(costs):
        wrong.append(f"{name}: asked again, it was read or charged")
    fresh = people_table(columns={})
    with heard_steps() as steps:
        FITS[name](fresh)
    plain = [step.split(":")[0] for step in steps]
    order = [step for place, step in enumerate(plain) if place == 0 or plain[place - 1] != step]
    many = len(charged(fresh))
    if [step for step in order if step != "noise"] != ["charge", "read", "record"] * many:
        wrong.append(f"{name}: the order is {order[:8]}")
    return wrong
