"""`AdditiveClassifier` and `AdditiveRegressor`: private models with terms that can be read, drawn and exported.

A model adds up one effect for each feature. The fit reads only noisy counts and noisy sums of clipped residuals by
bin, charged as one batch before a row is read; the rest is arithmetic on released numbers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from tacit.asking import Learn, Table
from tacit.errors import InvalidParameter
from tacit.learning.additive_asked import Asked, Wanted, asked_of
from tacit.learning.additive_model import AdditiveModel
from tacit.learning.estimator import Estimator, know_features, not_fitted, rows_for, table_of
from tacit.learning.rounds import train
from tacit.learning.score_sql import score_sql
from tacit.learning.scoring.additive_scoring import additive_scoring
from tacit.learning.scoring.scorable import Scoring
from tacit.learning.scoring.sides import RowsUsed, rows_used
from tacit.learning.shapes import Shapes
from tacit.learning.terms import ModelTerms, explained, term_picture
from tacit.learning.undeclared import known_columns, one_call
from tacit.ledger import Receipt
from tacit.privacy import Floats, Loss, Number
from tacit.query import Col

# Changed whenever the arithmetic is: a stored model is found by it.
VERSION = "additive 7"


class Additive:
    """The common part of both estimators: plan, fit, and read the results."""

    epsilon: Number
    delta: Number | None
    rounds: int | None
    clip: Number | None
    interactions: Sequence[tuple[str, str]]
    monotone: Mapping[str, int] | None
    smooth: Number | None
    ranges: Mapping[str, Any] | Sequence[Any] | None
    keys: Mapping[str, Sequence[Any]] | None
    unit: str | None
    budget: Loss | None
    ledger: Any
    model_: AdditiveModel
    receipt_: Receipt
    learned_: str  # the learned facts of undeclared columns, in words
    _certify: Callable[[], Mapping[str, Any]] | None = None
    fitted_on_: RowsUsed  # so that no score on the same people is taken for a fresh one

    def _loss(self) -> str:
        raise NotImplementedError

    def plan(
        self,
        table: Table,
        *,
        target: str,
        features: Iterable[str] | None = None,
        where: str | Col | None = None,
        learn: Learn = None,
        analyst: str | None = None,
    ) -> Asked:
        """Return the columns and the cost of a fit; the plan is free, reads no row, and can be printed.

        Undeclared ranges and keys are learned first, for a part of epsilon; with `learn=False` refused.
        """
        known = known_columns(
            table,
            features,
            target,
            self.epsilon,
            classes=self._loss() == "classes",
            learn=learn,
            analyst=analyst,
        )
        wanted = Wanted(
            known.epsilon,
            self.delta,
            self.rounds,
            self.clip,
            self.interactions,
            self.monotone,
            self.smooth,
            self._loss(),
        )
        return replace(asked_of(known.table, target, known.features, where, wanted), known=known)

    def fit(
        self,
        rows: Any,
        y: Any = None,
        *,
        target: str | None = None,
        features: Iterable[str] | None = None,
        where: str | Col | None = None,
        learn: Learn = None,
        analyst: str | None = None,
        request_id: str | None = None,
    ) -> Self:
        """Learn from a protected table, charged once before a row is read; the same fit again is free and the same.

        Undeclared ranges and keys are learned first, for a part of epsilon (`learned_` lists them); with
        `learn=False` such columns are refused.
        Or `fit(X, y)` of an array or a frame, with the estimator's own declarations: `ranges`, `keys`, `budget`,
        `ledger`. Every row is then a unit, unless `unit` names a column; every such fit is charged.
        """
        protected, target = table_of(self, rows, y, target)
        learn = learn if isinstance(rows, Table) else False  # of arrays, everything is declared

        def planned() -> Asked:
            return self.plan(protected, target=target, features=features, where=where, learn=learn, analyst=analyst)

        with one_call(planned, analyst) as asked:
            paid = train(
                asked.table,
                asked.coded,
                asked.events,
                asked=asked.asked,
                key=repr((VERSION, asked.recipe)),
                words=asked.words,
                steps=asked.learn,
                encode=Shapes.to_json,
                decode=Shapes.from_json,
                analyst=analyst,
                request_id=request_id,
            )
        self.model_ = asked.model(paid.value)
        self.receipt_ = paid.receipt
        self.learned_ = "" if asked.known is None else asked.known.words
        self._certify = partial(asked.table.session.ledger.certificate, paid.receipt.number)
        know_features(self, [feature.name for feature in asked.features], rows)
        self.fitted_on_ = rows_used(asked.table)
        return self

    def scoring(self, table: Table) -> Scoring:
        """Return the model as public tables, to be scored on protected rows (`Holdout`)."""
        return additive_scoring(self._fitted(), table, self.fitted_on_)

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

    def certificate(self) -> Mapping[str, Any]:
        """Return the ledger's signed certificate of the fit; a model that was saved and read again does not have
        one."""
        self._fitted()
        if self._certify is None:
            raise InvalidParameter(
                "this model was read from a file and cannot reach its ledger to sign\nhint: tacit certificate "
                f"{self.receipt_.number}, on the machine with the ledger"
            )
        return self._certify()

    def _fitted(self) -> AdditiveModel:
        if not hasattr(self, "model_"):
            raise not_fitted("this model is not fitted yet\nhint: call fit(table, target='income') first")
        return self.model_

    def _own(self, rows: Any) -> Any:
        """Return rows to predict for, with the model's own columns."""
        return rows_for(self, [feature.name for feature in self._fitted().features], rows)


class AdditiveClassifier(Additive, Estimator):
    """A private classifier that adds up one effect for each feature.

    `epsilon` and `delta` are the cost of the fit: the model is (epsilon, delta)-DP. Without a delta it uses its share
    of the delta that the budget keeps for noise. `rounds` and `clip` are chosen from public facts unless given.
    `interactions` names pairs of features that have a term together. `monotone` makes terms rise (1) or fall (-1), and
    `smooth` fixes how smoothly ordered terms change; both are post-processing. `ranges`, `keys`, `unit`, `budget` and
    `ledger` are only for `fit(X, y)` of arrays and frames; a table has declared them.
    """

    _kind = "classifier"

    def __init__(
        self,
        epsilon: Number = 1,
        *,
        delta: Number | None = None,
        rounds: int | None = None,
        clip: Number | None = None,
        interactions: Sequence[tuple[str, str]] = (),
        monotone: Mapping[str, int] | None = None,
        smooth: Number | None = None,
        ranges: Mapping[str, Any] | Sequence[Any] | None = None,
        keys: Mapping[str, Sequence[Any]] | None = None,
        unit: str | None = None,
        budget: Loss | None = None,
        ledger: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.rounds = rounds
        self.clip = clip
        self.interactions = interactions
        self.monotone = monotone
        self.smooth = smooth
        self.ranges = ranges
        self.keys = keys
        self.unit = unit
        self.budget = budget
        self.ledger = ledger

    def _loss(self) -> str:
        return "classes"

    @property
    def classes_(self) -> Any:
        """The classes in order: columns of `predict_proba`."""
        return np.array(self._fitted().classes)

    def predict_proba(self, rows: Any) -> Floats:
        """Return the probability of each class for unprotected rows: (rows, classes)."""
        return self._fitted().chances(self._own(rows))

    def decision_function(self, rows: Any) -> Floats:
        """Return scores: above 0 means the second of two classes; of several, the largest is predicted."""
        scores = self._fitted().scores(self._own(rows))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, rows: Any) -> Any:
        """Return the most probable class of each row."""
        return self.classes_[self.predict_proba(rows).argmax(axis=1)]


class AdditiveRegressor(Additive, Estimator):
    """A private regression that adds up one effect for each feature.

    `loss` is "squared" for numbers of a public range, or "poisson" for counts with effects that multiply. The other
    parameters are those of `AdditiveClassifier`; a residual is a part of the target's range.
    """

    _kind = "regressor"

    def __init__(
        self,
        epsilon: Number = 1,
        *,
        delta: Number | None = None,
        loss: Literal["squared", "poisson"] = "squared",
        rounds: int | None = None,
        clip: Number | None = None,
        interactions: Sequence[tuple[str, str]] = (),
        monotone: Mapping[str, int] | None = None,
        smooth: Number | None = None,
        ranges: Mapping[str, Any] | Sequence[Any] | None = None,
        keys: Mapping[str, Sequence[Any]] | None = None,
        unit: str | None = None,
        budget: Loss | None = None,
        ledger: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.loss = loss
        self.rounds = rounds
        self.clip = clip
        self.interactions = interactions
        self.monotone = monotone
        self.smooth = smooth
        self.ranges = ranges
        self.keys = keys
        self.unit = unit
        self.budget = budget
        self.ledger = ledger

    def _loss(self) -> str:
        if self.loss not in ("squared", "poisson"):
            raise InvalidParameter("loss must be 'squared' or 'poisson'\nhint: 'poisson' is for counts")
        return self.loss

    def predict(self, rows: Any) -> Floats:
        """Return the number that is predicted for each row, inside the target's range."""
        return self._fitted().numbers(self._own(rows))
