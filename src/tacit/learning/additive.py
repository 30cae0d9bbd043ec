"""`AdditiveClassifier` and `AdditiveRegressor`: private models with terms that can be read, drawn and exported.

A model adds up one effect for each feature. The fit reads only noisy counts and noisy sums of clipped residuals by
bin, charged as one batch before a row is read; the rest is arithmetic on released numbers. The plan of a fit is made
only from public facts, and a fit does exactly what its plan shows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from tacit.asking import Table, noise_for
from tacit.errors import InvalidParameter
from tacit.learning.additive_model import MARGIN, AdditiveModel
from tacit.learning.estimator import Estimator
from tacit.learning.features import Feature, class_target, coarse_of, features_of, target_of
from tacit.learning.scorable import Scoring
from tacit.learning.shapes import BINS_MOST, Recipe, Shapes, learn_shapes
from tacit.learning.terms import ModelTerms, explained, score_sql, term_picture
from tacit.learning.undeclared import FitPlan, Kind, KnownColumns
from tacit.numbers import Floats, Number, decimal_meaning, show
from tacit.plan import UNIT, CodedPlan, Measured, ValueTarget, count_moves_squared

LinkName = Literal["identity", "logistic", "log", "softmax"]

# The share of the loss that pays for counts, and so for bins.
FOR_COUNTS = Fraction(1, 10)
ROUNDS = 24
ROUNDS_MOST = 500
# Below this epsilon noise is the largest error, and a clip of a half keeps it low.
CLIPS_UNTIL = 2
PAIRS_MOST = 10
# A plan gives the error of a bin with this number of people; numbers are taken to be off by this part of their range.
PEOPLE_SHOWN = (1_000, 10_000)
USUAL_ERROR = 0.1


@dataclass(eq=False, repr=False)
class Additive:
    """The common part of both estimators: the plan, and the results."""

    epsilon: Number = 1
    _: KW_ONLY
    delta: Number | None = None
    rounds: int | None = None
    clip: Number | None = None
    interactions: Sequence[tuple[str, str]] = ()
    monotone: Mapping[str, int] | None = None
    smooth: Number | None = None

    _version: ClassVar[str] = "additive 7"
    _state: ClassVar[str] = "model_"
    _codec: ClassVar[tuple[Callable[[Any], str], Callable[[str], Any]]] = (Shapes.to_json, Shapes.from_json)

    if TYPE_CHECKING:  # of the estimator that each is too

        def _fitted(self) -> AdditiveModel: ...

        def _columns_of(self, rows: Any) -> dict[str, Any]: ...

    def _loss(self) -> str:
        return "classes"

    def _planned(self, table: Table, target: str, known: KnownColumns) -> FitPlan:
        loss, found = self._loss(), features_of(table, target, known.features)
        column, classes, number = target_of(table, target, loss)
        pairs = _interactions(self.interactions, found)
        coarse = [(place, *each) for place, feature in enumerate(found) if (each := coarse_of(feature)) is not None]
        coded = CodedPlan(
            table.session.declaration.unit_column,
            table.frame.where,
            (*(feature.column for feature in found), column, *(each for _, each, _ in coarse)),
            () if number is None else (number,),
        )
        link = _link(loss, classes)
        clip, rounds = _clip(self.clip, known.epsilon, link), _rounds_wanted(self.rounds)
        terms = len(found) + len(pairs)
        moves = rounds * (terms + 1) * clip**2
        wanted = [(count_moves_squared(terms + 1 + len(coarse)), FOR_COUNTS), (moves, 1 - FOR_COUNTS)]
        events, asked = noise_for(table.session, known.epsilon, self.delta, wanted)
        recipe = Recipe(
            ordered=tuple(feature.ordered for feature in found),
            cells=tuple(feature.cells for feature in found),
            coarse=tuple((place, of_cells) for place, _, of_cells in coarse),
            pairs=pairs,
            link=link,
            classes=len(classes) if link == "softmax" else 1,
            target=ValueTarget(0) if number is not None else class_target(column, classes, len(found)),
            middles=() if number is None else _middles(column.edges, number),
            clip=clip,
            rounds=rounds,
            counts_noise=float(events[0].sigma) / UNIT,
            round_noise=float(events[1].sigma) / UNIT,
            monotone=_monotone(self.monotone, found),
            smooth=_smooth(self.smooth),
        )
        low, width = (0.0, 1.0) if number is None else (number.step * number.low, number.step * number.height)
        words = f"an additive model of {target} from {', '.join(feature.name for feature in found)}"
        return FitPlan(
            table, found, coded, events, asked, known, recipe, words,
            text=_plan_text(words, asked.epsilon, known, found, recipe, number),
            learn=partial(learn_shapes, recipe=recipe),
            model=partial(AdditiveModel, target, found, pairs, link, classes, float(low), float(width)),
        )  # fmt: skip

    def scoring(self, table: Table) -> Scoring:
        """Return the model as public tables, to be scored on protected rows (`Holdout`)."""
        return self._fitted().scoring(table, getattr(self, "fitted_on_", None))

    @property
    def terms_(self) -> ModelTerms:
        """The terms by name, each with its bins, their effects and the ± of those; it prints."""
        return ModelTerms(self._fitted())

    def explain(self) -> str:
        """Return the model in words: the largest effects, each with its ±."""
        return explained(self._fitted())

    def plot(self, term: str | None = None, path: str | Path | None = None) -> Any:
        """Return a picture of one term, or of all; with a path ending in .png, .svg or .html, write it there."""
        return term_picture(self._fitted(), term, path)

    def to_sql(self, table: str = "people", *, dialect: str | None = None) -> str:
        """Return a SELECT that scores a table's rows in a database, as `predict_proba` or `predict` would.

        Without a `dialect` the SELECT works in DuckDB, PostgreSQL, SQLite and Snowflake alike.

        The tests run it in DuckDB, PostgreSQL ("postgres"), SQLite and Spark. For "snowflake", "bigquery" and "mysql"
        it is only read by their grammars. Texts are compared as the database compares them: by default MySQL takes
        'f' and 'F' for the same text.
        """
        return score_sql(self._fitted(), table, dialect)


@dataclass(eq=False, repr=False)
class AdditiveClassifier(Additive, Estimator[AdditiveModel]):
    """A private classifier that adds up one effect for each feature.

    `epsilon` and `delta` are the cost of the fit: the model is (epsilon, delta)-DP. Without a delta it uses its share
    of the delta that the budget keeps for noise. `rounds` and `clip` are chosen from public facts unless given.
    `interactions` names pairs of features that have a term together. `monotone` makes terms rise (1) or fall (-1), and
    `smooth` fixes how smoothly ordered terms change; both are post-processing. `ranges`, `keys`, `unit`, `budget` and
    `ledger` are only for `fit(X, y)` of arrays and frames; a table has declared them.
    """

    @property
    def classes_(self) -> Any:
        """The classes in order: columns of `predict_proba`."""
        return np.array(self._fitted().classes)

    def predict_proba(self, rows: Any) -> Floats:
        """Return the probability of each class for unprotected rows: (rows, classes)."""
        return self._fitted().chances(self._columns_of(rows))

    def decision_function(self, rows: Any) -> Floats:
        """Return scores: above 0 means the second of two classes; of several, the largest is predicted."""
        scores = self._fitted().scores(self._columns_of(rows))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, rows: Any) -> Any:
        """Return the most probable class of each row."""
        return self.classes_[self.predict_proba(rows).argmax(axis=1)]


@dataclass(eq=False, repr=False)
class AdditiveRegressor(Additive, Estimator[AdditiveModel]):
    """A private regression that adds up one effect for each feature.

    `loss` is "squared" for numbers of a public range, or "poisson" for counts with effects that multiply. The other
    parameters are those of `AdditiveClassifier`; a residual is a part of the target's range.
    """

    _: KW_ONLY
    loss: Literal["squared", "poisson"] = "squared"

    _kind: ClassVar[Kind] = "regressor"

    def _loss(self) -> str:
        if self.loss not in ("squared", "poisson"):
            raise InvalidParameter("loss must be 'squared' or 'poisson'\nhint: 'poisson' is for counts")
        return self.loss

    def predict(self, rows: Any) -> Floats:
        """Return the number that is predicted for each row, inside the target's range."""
        return self._fitted().numbers(self._columns_of(rows))


def _plan_text(
    words: str,
    epsilon: Fraction,
    known: KnownColumns,
    features: Sequence[Feature],
    recipe: Recipe,
    number: Measured | None,
) -> str:
    """Return a plan in words: the columns, and the expected error of an effect."""
    names = [feature.name for feature in features]
    rows = [("feature", "cells", "bins at most")]
    rows += [(each.name, str(each.cells), str(min(each.cells, BINS_MOST + 1))) for each in features]
    rows += [(f"{names[first]} x {names[second]}", "", "81") for first, second in recipe.pairs]
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    assumed = "if classes are common; if one is rare, as along a steep term, it is larger: see terms_"
    if number is not None:
        assumed = "for errors of about a tenth of the target's range; terms_ has every bin's own ±"
    lines = [
        f"{words}: ε = {float(epsilon + known.cost):.6g}",
        *([known.words] if known.words else []),
        *("  " + "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows),
        f"{recipe.rounds} rounds; residuals are clipped to ±{recipe.clip / UNIT:g}",
        f"noise of counts ±{MARGIN * recipe.counts_noise:.4g} people; of all rounds together"
        f" ±{MARGIN * recipe.whole_noise:.4g} people a bin (95 %)",
        *(_expected(people, recipe, number) for people in PEOPLE_SHOWN),
        f"this holds {assumed}",
        "charged once, before a row is read; this plan is free",
    ]
    return "\n".join(lines)


def _expected(people: int, recipe: Recipe, number: Measured | None) -> str:
    """Return the expected error of a bin's effect: that of a class's log-odds, or of a number."""
    unit, curvature, spread = "", 1.0, USUAL_ERROR**2
    if number is None:
        unit, curvature, spread = " log-odds", 0.12, 0.12
    elif recipe.link == "log":
        unit, curvature = " of the logarithm", 0.1
    part = 1.0 if number is None or unit else float(number.step * number.height)
    # rounds weigh as their numbers do, so that their noise is that of three quarters of them
    error = MARGIN * sqrt(4 / 3 * recipe.whole_noise**2 + spread * people) / (curvature * people) * part
    shown = f"{float(f'{error:.2g}'):,g}"
    return f"the effect of a bin of {people:,} people: about ±{shown}{unit} of noise and luck"


def _middles(edges: Sequence[int], grid: Measured) -> tuple[float, ...]:
    """Return the middles of a number's cells as parts of its range."""
    return tuple((low + high - 1) / 2 / grid.height for low, high in pairwise(edges))


def _link(loss: str, classes: tuple[Any, ...]) -> LinkName:
    if loss == "classes":
        return "logistic" if len(classes) == 2 else "softmax"
    return "identity" if loss == "squared" else "log"


def _clip(given: Number | None, epsilon: Number, link: LinkName) -> int:
    """Return the clip in steps of UNIT, from epsilon if it is not given."""
    is_small = decimal_meaning(epsilon, name="epsilon") < CLIPS_UNTIL
    usual = {
        "logistic": Fraction(1, 2) if is_small else Fraction(4, 5),
        "softmax": Fraction(1) if is_small else Fraction(6, 5),
    }.get(link, Fraction(1, 2))
    clip = usual if given is None else decimal_meaning(given, name="clip")
    least = Fraction(1, 2) if link == "logistic" else Fraction(1, 1000)
    if not least <= clip <= 2:
        raise InvalidParameter(f"clip must be between {show(least)} and 2\nhint: leave it out for the usual one")
    return int(clip * UNIT)


def _rounds_wanted(rounds: int | None) -> int:
    if rounds is None:
        return ROUNDS
    if isinstance(rounds, bool) or not isinstance(rounds, int) or not 1 <= rounds <= ROUNDS_MOST:
        raise InvalidParameter(f"rounds must be a whole number from 1 to {ROUNDS_MOST}\nhint: leave it out")
    return rounds


def _interactions(
    interactions: Sequence[tuple[str, str]], features: tuple[Feature, ...]
) -> tuple[tuple[int, int], ...]:
    names = [feature.name for feature in features]
    found = []
    for pair in interactions or ():
        if isinstance(pair, str) or len(pair) != 2 or pair[0] == pair[1] or any(each not in names for each in pair):
            raise InvalidParameter(
                "interactions must be pairs of two different features\nhint: interactions=[('age', 'sex')]"
            )
        found.append((names.index(pair[0]), names.index(pair[1])))
    if len(found) > PAIRS_MOST:
        raise InvalidParameter(f"a model has at most {PAIRS_MOST} interactions\nhint: each one adds noise to all terms")
    return tuple(found)


def _monotone(wanted: Mapping[str, int] | None, features: tuple[Feature, ...]) -> tuple[int, ...]:
    given = dict(wanted or {})
    known = {feature.name: feature for feature in features}
    for name, direction in given.items():
        if name not in known or not known[name].ordered:
            raise InvalidParameter(
                f"monotone names '{name}', which is not a feature of ordered values\nhint: {{'age': 1}}"
            )
        if direction not in (1, -1):
            raise InvalidParameter(f"monotone['{name}'] must be 1 (rising) or -1 (falling)")
    return tuple(int(given.get(feature.name, 0)) for feature in features)


def _smooth(smooth: Number | None) -> float | None:
    if smooth is None:
        return None
    given = decimal_meaning(smooth, name="smooth")
    if not 0 <= given <= 10**6:
        raise InvalidParameter("smooth must be between 0 and 1e6\nhint: leave it out, and it is chosen for each term")
    return float(given)
