"""Who pays for a model: clones, searches, pickles and refused fits, each beside what the ledger and the engine hear."""

import pickle
import warnings
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

import tacit
from tacit.errors import TacitError
from tacit.learning import AdditiveClassifier, Holdout, tune
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.engine import heard_steps
from tacit_gauntlet.stage.models import EPSILON, FEATURES, MODELS, SCORES, charged, people_table

ROWS = np.column_stack([np.arange(80) % 10, np.arange(80) % 7])
# So many would be no budget at all.
FITS_MOST = 6
LABELS = np.arange(80) % 2


@case("M08", title="clones, searches and copies spend from one budget, and searches are refused", feature="learning")
def one_budget(_: Size) -> Evidence:
    wrong = []
    usual = _fits_until_refused(lambda model: model)[0]  # Gaussian noise adds up to less than the sum of epsilons
    for name, copied in COPIES.items():
        fits, why = _fits_until_refused(copied)
        if not 0 < fits <= usual < FITS_MOST:
            wrong.append(f"{name}: {fits} fits of ε = 1 out of a budget of 2, and {usual} without copies ({why})")
    for name, search in SEARCHES.items():
        steps, refusal = _heard(search)
        if steps or not isinstance(refusal, TacitError):
            wrong.append(f"{name}: {'read or charged' if steps else 'not refused'}")
    wrong += _choices()
    return Evidence(not wrong, {"copies": list(COPIES), "searches": list(SEARCHES), "wrong": wrong})


def _told(number: int, **more: Any) -> AdditiveClassifier:
    """Return an estimator of arrays with a budget of its own by its delta: other cases of this process have others."""
    budget = tacit.epsilon(2, delta=f"{number}e-9")
    return AdditiveClassifier(
        1, rounds=1, ranges=(0, 9), keys={"y": [0, 1]}, budget=budget, ledger=tacit.TRYOUT, **more
    )


def _cloned(model: Any) -> Any:
    from sklearn.base import clone

    return clone(model)


COPIES: dict[str, Callable[[Any], Any]] = {
    "clone": _cloned,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "made again": lambda model: AdditiveClassifier(**model.get_params()),
    "set_params": lambda model: _cloned(model).set_params(rounds=1),
}
_numbers = iter(range(100, 10**6))


def _fits_until_refused(copied: Callable[[Any], Any]) -> tuple[int, str]:
    """Return how often a fit was paid for, each time by another copy, before the budget ended."""
    model, fits = _told(next(_numbers)), 0
    while fits < FITS_MOST:
        model = copied(model)
        try:
            model.fit(ROWS, LABELS)
        except TacitError as refused:
            return fits, type(refused).__name__
        fits += 1
    return fits, "never refused"


def _grid(model: Any) -> Any:
    from sklearn.model_selection import GridSearchCV

    return GridSearchCV(model, {"rounds": [1, 2]}, cv=2, scoring="accuracy", error_score="raise").fit(ROWS, LABELS)


def _crossed(model: Any) -> Any:
    from sklearn.model_selection import cross_val_score

    return cross_val_score(model, ROWS, LABELS, cv=2, scoring="accuracy", error_score="raise")


def _bagged(model: Any) -> Any:
    from sklearn.model_selection import cross_val_predict

    return cross_val_predict(model, ROWS, LABELS, cv=2)


SEARCHES: dict[str, Callable[[Any], Any]] = {
    "GridSearchCV": _grid,
    "cross_val_score": _crossed,
    "cross_val_predict": _bagged,
}


def _heard(search: Callable[[Any], Any]) -> tuple[list[str], object]:
    with warnings.catch_warnings(), heard_steps() as steps:
        warnings.simplefilter("ignore")
        try:
            search(_told(next(_numbers)))
        except Exception as problem:  # what it is, is told apart above
            return steps, problem
    return steps, None


def _choices() -> list[str]:
    """Return what is wrong with the charges of a choice among models that are not fitted yet: two fits, one choice."""
    table = people_table()
    models = [AdditiveClassifier(epsilon=1, rounds=rounds) for rounds in (1, 2)]
    tune(models, Holdout(table, share="0.5"), epsilon="0.25", target="buys", features=FEATURES)
    costs = [Fraction(each["epsilon"]) for each in charged(table)]
    return [] if costs == [1, 1, Fraction(1, 4)] else [f"two fits and a choice cost {[float(each) for each in costs]}"]


@case("M09", title="a model is charged before a row is read, and a refused one reads nothing", feature="learning")
def charged_first(size: Size) -> Evidence:
    wrong, asked = [], {**MODELS, **SCORES}
    some = list(asked) if size == "full" else ["two classes", "a line", "votes", "a score of numbers"]
    for name in some:
        table = people_table()
        with heard_steps() as steps:
            asked[name](table)
        plain = [step.split(":")[0] for step in steps]
        order = [step for place, step in enumerate(plain) if place == 0 or plain[place - 1] != step]
        if order[:2] != ["charge", "read"] or order[-1] != "record" or plain.count("charge") != 1:
            wrong.append(f"{name}: the order is {order[:6]}")
        with heard_steps() as steps:
            asked[name](table)
        if "read" in steps or any(step.startswith("noise") for step in steps):
            wrong.append(f"{name}: asked again, rows were read")
        wrong += _refused(name, asked[name])
    return Evidence(not wrong, {"asked": some, "wrong": wrong})


def _refused(name: str, ask: Callable[[Any], Any]) -> list[str]:
    """Return what a fit did that its budget has no room for."""
    table = people_table(budget=tacit.epsilon(EPSILON - 1, delta="1e-6"))
    with heard_steps() as steps:
        try:
            ask(table)
        except tacit.BudgetExceeded:
            return [] if not steps and not charged(table) else [f"{name}: refused, and did {steps[:4]}"]
    return [f"{name}: not refused"]
