"""What leaves with a model: files, pickles, words, plans and refusals, on tables that differ by one person."""

import pickle
from collections.abc import Callable
from typing import Any

from tacit.errors import TacitError
from tacit.learning import PCA, AdditiveClassifier, AdditiveRegressor, Holdout, KMeans, LinearRegression, Teachers
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.models import (
    FEATURES,
    MODELS,
    NEWCOMERS,
    ODD,
    PUBLIC_ROWS,
    Spots,
    heard_rounds,
    people_table,
    public_text,
)

# What is refused, or free: none of it may depend on rows.
FREE: dict[str, Callable[[Any], Any]] = {
    "a plan": lambda table: AdditiveClassifier(epsilon=1).plan(table, target="buys", features=FEATURES),
    "a plan of a number": lambda table: AdditiveRegressor(epsilon=1).plan(table, target="hours", features=FEATURES),
    "a plan of a line": lambda table: LinearRegression(epsilon=1).plan(table, target="hours", features=FEATURES),
    "a plan of components": lambda table: PCA(epsilon=1).plan(table, features=["age", "pay"]),
    "a plan of clusters": lambda table: KMeans(2, epsilon=1).plan(table, features=["age", "pay"]),
    "a plan of votes": lambda table: (
        Teachers(Spots(), count=5).fit(table, target="buys", features=FEATURES).plan(PUBLIC_ROWS, epsilon=1)
    ),
    "no such column": lambda table: AdditiveClassifier(epsilon=1).fit(table, target="buyz"),
    "a target of numbers": lambda table: AdditiveClassifier(epsilon=1).fit(table, target="hours", features=FEATURES),
    "a unit as a target": lambda table: AdditiveRegressor(epsilon=1).fit(table, target="id"),
    "over budget": lambda table: AdditiveClassifier(epsilon=10**7).fit(table, target="buys", features=FEATURES),
    "rows to predict": lambda table: AdditiveClassifier(epsilon=1).predict(table),
    "sides": lambda table: (repr(Holdout(table)), repr(Holdout(table).training), repr(Holdout(table).rest)),
    "what is left": lambda table: str(table.left),
}


@case("M10", title="what leaves with a model is noisy integers and public facts alone", feature="learning")
def nothing_else_leaves(size: Size) -> Evidence:
    newcomers = {**NEWCOMERS, **{name: ODD[name] for name in ("infinite", "missing throughout")}}
    if size == "quick":
        newcomers = {name: newcomers[name] for name in ("rows of every kind", "infinite")}
    unlike = []
    free = {name: _said(ask, people_table()) for name, ask in FREE.items()}
    for who, rows in newcomers.items():
        table = people_table(rows)
        unlike += [f"{name}, {who}" for name, ask in FREE.items() if _said(ask, table) != free[name]]
    for name in ("two classes", "a line", "components", "made-up rows") if size == "quick" else MODELS:
        fit = MODELS[name]
        with heard_rounds() as told:
            first = _all_that_leaves(fit(people_table()))
        for who, rows in newcomers.items():
            with heard_rounds(told):
                second = _all_that_leaves(fit(people_table(rows)))
            unlike += [f"{name}, {who}: {what}" for what in first if first[what] != second.get(what)]
    return Evidence(not unlike, {"newcomers": len(newcomers), "free or refused": len(FREE), "unlike": unlike[:5]})


def _said(ask: Callable[[Any], Any], table: Any) -> str:
    try:
        return str(ask(table))
    except TacitError as problem:
        return f"{type(problem).__name__}: {problem}"


def _all_that_leaves(model: Any) -> dict[str, object]:
    """Return what a fitted model gives away: its texts, its attributes, and its pickle without the receipt."""
    found: dict[str, object] = {"texts": public_text(model)}
    for name in ("receipt_", "fitted_on_"):
        if hasattr(model, name):
            setattr(model, name, None)  # a clock, and a mark that is drawn anew for each frame
    found["pickle"] = pickle.dumps(model)
    found["attributes"] = sorted(vars(pickle.loads(pickle.dumps(model))))
    return found
