"""The stage for attacks on models: made-up people, whoever may join them, and every exact number before its noise.

Two neighbouring tables are compared while the second is told the noisy numbers of the first. Whatever a fit then does
otherwise, it does because of something that was not released.
"""

import json
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, nan
from typing import Any

import numpy as np
import pyarrow as pa

from tacit import epsilon as loss
from tacit.learning import (
    PCA,
    AdditiveClassifier,
    AdditiveRegressor,
    Holdout,
    KMeans,
    LinearRegression,
    SqlModel,
    Teachers,
    model_text,
    tune,
)
from tacit_gauntlet.frame.place import is_spark, rows_at
from tacit_gauntlet.stage.table import Table, protected, protected_here
from tacit_gauntlet.targets import planted, standing

Person = tuple[Any, ...]  # age, pay, ward, buys, kind, hours, visits

NAMES = ("age", "pay", "ward", "buys", "kind", "hours", "visits")
KINDS = ["a", "b", "c"]
WARDS = ["x", "y", "z"]
COLUMNS: dict[str, dict[str, Any]] = {
    "age": {"between": (0, 9)},
    "pay": {"between": (-1, 1)},
    "ward": {"keys": WARDS},
    "buys": {"keys": ["no", "yes"]},
    "kind": {"keys": KINDS},
    "hours": {"between": (0, 40)},
    "visits": {"between": (0, 10)},
}
TYPES = (pa.int64(), pa.float64(), pa.string(), pa.string(), pa.string(), pa.float64(), pa.int64())
# A budget that is not used up, and fits that a newcomer moves far: the noise is small beside the crowd.
BUDGET = loss(10**6, delta="1e-6")
EPSILON = 20
PEOPLE = 150
NEWCOMER = 10**6


def crowd(people: int = PEOPLE) -> list[tuple[int, Person]]:
    """Return people who are all alike in what is predicted, one row each."""
    return [
        (place, (place * 7 % 10, (place % 21 - 10) / 10, WARDS[place % 3], "no", "a", 0.0, 0))
        for place in range(people)
    ]


FAR: Person = (9, 1.0, "z", "yes", "c", 40.0, 10)
NEWCOMERS: dict[str, list[Person]] = {
    "one who is unlike all": [FAR],
    "one who is alike": [(3, 0.0, "x", "no", "a", 0.0, 0)],
    "a thousand rows alike": [FAR] * 1000,
    "rows of every kind": [
        (age, pay, ward, buys, kind, hours, visits)
        for age, pay in ((0, -1.0), (9, 1.0), (5, 0.0))
        for ward, kind in zip(WARDS, KINDS, strict=True)
        for buys, hours, visits in (("no", 0.0, 0), ("yes", 40.0, 10))
    ],
}
ODD: dict[str, list[Person]] = {
    "beyond every range": [(2**62, 1e308, "z", "yes", "c", 1e308, 2**62)],
    "below every range": [(-(2**62), -1e308, "z", "yes", "c", -1e308, -(2**62))],
    "missing throughout": [(None,) * 7],
    "features missing": [(None, None, None, "yes", "c", 40.0, 10)],
    "not a number": [(9, nan, "z", "yes", "c", nan, 10)],
    "infinite": [(9, inf, "z", "yes", "c", inf, 10), (0, -inf, "z", "yes", "c", -inf, 10)],
    "values that nobody declared": [(9, 1.0, "elsewhere", "perhaps", "d", 40.0, 10)],
    "a hundred thousand rows": [FAR] * 100_000,
}


def people_table(newcomer: Sequence[Person] = (), *, people: int = PEOPLE, **declared: Any) -> Table:
    """Return the crowd with a newcomer's rows among theirs, protected, in a ledger of its own."""
    rows = crowd(people)
    rows[people // 2 : people // 2] = [(NEWCOMER, row) for row in newcomer]
    return table_of(rows, **declared)


def table_of(rows: Sequence[tuple[int, Person]], **declared: Any) -> Table:
    """Return people's rows as a protected table; in a course on Spark they are here: so many small tables take long."""
    columns = {"id": pa.array([who for who, _ in rows], pa.int64())}
    columns |= {
        name: pa.array([row[at] for _, row in rows], kind, from_pandas=False)
        for at, (name, kind) in enumerate(zip(NAMES, TYPES, strict=True))
    }
    usual: dict[str, Any] = {"columns": COLUMNS, "budget": BUDGET, "rows_per_unit": None, "groups_per_unit": None}
    address = rows_at()
    opened = protected_here if address is not None and is_spark(address) else protected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so large an epsilon protects nobody
        return opened(pa.table(columns), **(usual | {"most_rows_per_unit": None} | declared))


# ---- what is asked of rows ----------------------------------------------------------------------------------------

FEATURES = ["age", "pay", "ward"]
PUBLIC_ROWS = {"age": [0, 4, 9], "pay": [-1.0, 0.0, 1.0], "ward": ["x", "y", "z"]}


def _classifier(target: str, **words: Any) -> Callable[[Table], Any]:
    def fit(table: Table) -> Any:
        model = AdditiveClassifier(epsilon=EPSILON, rounds=4, clip="0.5", **words)
        return model.fit(table, target=target, features=FEATURES)

    return fit


def _regressor(target: str, kind: Any) -> Callable[[Table], Any]:
    def fit(table: Table) -> Any:
        model = AdditiveRegressor(epsilon=EPSILON, rounds=4, loss=kind)
        return model.fit(table, target=target, features=FEATURES)

    return fit


def _score(text: str, target: str, positive: str | None = None) -> Callable[[Table], Any]:
    """Return a score on nearly all people: the newcomer is among them by the public salt."""

    def score(table: Table) -> Any:
        model = SqlModel(text, target=target, positive=positive)
        return Holdout(table, share="0.999").score(model, epsilon=EPSILON)

    return score


class Spots:
    """The teacher whom one person moves most: it says yes of everybody once it has seen the greatest age."""

    def fit(self, rows: Any, target: Any) -> "Spots":
        """Look for the greatest age."""
        self.seen = int((rows[:, 0] == 1).any() and (target == 1).any())
        return self

    def predict(self, rows: Any) -> Any:
        """Say the same of every row."""
        return np.full(len(rows), self.seen)


class Talker(Spots):
    """The same teacher, who says in every way that a library has how many rows there are."""

    def fit(self, rows: Any, target: Any) -> "Talker":
        """Print, log and warn for each row, and once for none."""
        for said in rows.tolist() or ["no rows"]:
            print(said)
            print(said, file=sys.stderr)
            logging.getLogger("a library").critical(said)
            warnings.warn(str(said), stacklevel=2)
        super().fit(rows, target)
        return self


MODELS: dict[str, Callable[[Table], Any]] = {
    "two classes": _classifier("buys"),
    "two columns together": _classifier("buys", interactions=[("age", "ward")]),
    "several classes": _classifier("kind"),
    "a number": _regressor("hours", "squared"),
    "a count": _regressor("visits", "poisson"),
    "a line": lambda table: LinearRegression(epsilon=EPSILON).fit(table, target="hours", features=FEATURES),
    "made-up rows": lambda table: table.synthesize(epsilon=EPSILON, columns=[*FEATURES, "buys"]),
    "made-up rows of people": lambda table: table.synthesize(
        epsilon=EPSILON, columns=["age", "ward", "buys"], once=["buys"], order="age"
    ),
    "components": lambda table: PCA(epsilon=EPSILON).fit(table, features=["age", "pay", "hours"]),
    "clusters": lambda table: KMeans(2, epsilon=EPSILON).fit(table, features=["age", "pay", "hours"]),
}
SCORES: dict[str, Callable[[Table], Any]] = {
    "a score of classes": _score("0.2 + 0.05 * age", "buys", "yes"),
    "a score of numbers": _score("age", "hours"),
    "votes": lambda table: (
        Teachers(Spots(), count=5).fit(table, target="buys", features=FEATURES).vote(PUBLIC_ROWS, epsilon=EPSILON)
    ),
}


# ---- every exact number before its noise --------------------------------------------------------------------------


@dataclass(frozen=True)
class Round:
    """One release of a fit: the exact numbers, the noise that hides them, what left, and what was charged for it."""

    exact: tuple[int, ...]
    sigma: Fraction
    noisy: tuple[int, ...]
    moves_squared: Fraction  # as the charge says of one unit


@dataclass
class Heard:
    """All rounds of a fit, and where they differ in size from those they were told."""

    rounds: list[Round] = field(default_factory=list)
    unlike: list[str] = field(default_factory=list)


@contextmanager
def heard_rounds(told: Heard | None = None) -> Iterator[Heard]:
    """Keep the rounds of a fit while open; where earlier ones are `told`, their noisy numbers leave again."""
    heard, release = Heard(), standing("noise of a round")

    def releasing(exact: Any, event: Any) -> Any:
        noisy = tuple(int(each) for each in release(exact, event))
        if told is not None:
            place = len(heard.rounds)
            before = told.rounds[place] if place < len(told.rounds) else None
            if before is None or (len(before.noisy), before.sigma) != (len(noisy), event.sigma):
                heard.unlike.append(f"round {place} asks for {len(noisy)} numbers")
            else:
                noisy = before.noisy
        heard.rounds.append(Round(tuple(exact.values.tolist()), event.sigma, noisy, event.sensitivity_squared))
        return list(noisy)

    with planted("noise of a round", releasing):
        yield heard
    if told is not None and len(heard.rounds) != len(told.rounds):
        heard.unlike.append(f"{len(heard.rounds)} rounds and not {len(told.rounds)}")


def moved(first: Heard, second: Heard) -> Fraction:
    """Return how far apart the exact numbers of two fits are, in deviations of their noise, squared and added up."""
    total = Fraction(0)
    for one, other in zip(first.rounds, second.rounds, strict=True):
        squares = sum((left - right) ** 2 for left, right in zip(one.exact, other.exact, strict=True))
        total += squares / one.sigma**2
    return total


def paid_for(table: Table) -> Fraction:
    """Return how far one unit may move all that was charged last, in deviations of the noise, squared and added up."""
    charges = [entry.record for entry in table.session.ledger.entries() if entry.kind == "charge"]
    return sum(
        (Fraction(event["sensitivity_squared"]) / Fraction(event["sigma"]) ** 2 for event in charges[-1]["events"]),
        Fraction(0),
    )


def charged(table: Table) -> list[Mapping[str, Any]]:
    """Return what a table's ledger was charged for, in order."""
    return [entry.record for entry in table.session.ledger.entries() if entry.kind == "charge"]


# ---- what leaves --------------------------------------------------------------------------------------------------


def public_text(model: Any) -> str:
    """Return all that a fitted model shows: its file, its words and its SQL; a clock and an entry's id are left out."""
    texts = [repr(model), _file_of(model)]
    for name in ("terms_", "explain", "summary", "to_sql"):
        shown = getattr(model, name, "")
        texts.append(str(shown() if callable(shown) else shown))
    return "\n".join(texts)


def _file_of(model: Any) -> str:
    record = json.loads(model_text(model))
    return json.dumps({name: value for name, value in record.items() if name not in ("receipt", "fitted_on")})


# ---- sides and choices --------------------------------------------------------------------------------------------


def _rows_of(table: Any) -> Any:
    source = table.session.engine.source
    return source.fetch(source.table)


def dealt_units(table: Table, count: int = 7) -> dict[int, set[int]]:
    """Return the teachers of each person: what only a case may read."""
    teachers = Teachers(Spots(), count=count).fit(table, target="buys", features=FEATURES)
    rows = _rows_of(teachers._dealt())
    found: dict[int, set[int]] = {}
    for who, hand in zip(rows.column("id").to_pylist(), rows.column("teacher of a unit").to_pylist(), strict=True):
        found.setdefault(who, set()).add(hand)
    return found


def sides_of(table: Table) -> tuple[set[int], set[int]]:
    """Return who is on the training side of a holdout, and who on the other: what only a case may read."""
    holdout = Holdout(table, share="0.3")
    training, rest = (set(_rows_of(side).column("id").to_pylist()) for side in (holdout.training, holdout.rest))
    return training, rest


def choice_moves(newcomer: Sequence[Person]) -> tuple[list[int], int]:
    """Return how far a newcomer moves the exact merits of three models, and how far one unit may move each."""
    before, after = (merits_of(people_table(rows)) for rows in ((), newcomer))
    return [two - one for one, two in zip(before.exact, after.exact, strict=True)], before.moves


@dataclass(frozen=True)
class Merits:
    """The exact merits of some models, how far one unit may move each, and whether it moves all of them one way."""

    exact: tuple[int, ...]
    moves: int
    monotone: bool


def merits_of(table: Table) -> Merits:
    """Return the merits that a choice among three models is made by."""
    models = [SqlModel(f"{share} + 0 * age", target="buys", positive="yes") for share in ("0.1", "0.6", "0.99")]
    heard: list[Merits] = []
    choose = standing("noise of a choice")

    def choosing(exact: Any, mechanism: Any) -> Any:
        terms = mechanism.terms
        heard.append(Merits(tuple(exact.values.tolist()), int(terms.moves), terms.monotone))
        return choose(exact, mechanism)

    with planted("noise of a choice", choosing):
        tune(models, Holdout(table, share="0.999"), epsilon=1, target="buys", measure="log loss")
    return heard[0]
