"""`LinearRegression`: least squares from noisy moments, with intervals that include the noise."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any, Self

import numpy as np

from tacit.asking import Learn, Table
from tacit.errors import InvalidParameter
from tacit.learning.estimator import Estimator, know_features, rows_for, table_of
from tacit.learning.features import as_list
from tacit.learning.linear_design import LinearDesign, columns_in, design_of, filtered
from tacit.learning.linear_state import LinearState, asked_of, wanted_of
from tacit.learning.linear_words import Coefficient, LinearPlan, LinearSummary, model_sql
from tacit.learning.price import noise_for
from tacit.learning.rounds import train
from tacit.learning.scoring.scorable import Scoring, SqlModel
from tacit.learning.scoring.sides import rows_used
from tacit.learning.undeclared import known_columns, one_call, with_target
from tacit.privacy import Floats, Loss, Number, show
from tacit.query import Col

# Changed whenever the arithmetic is: a stored model is found by it.
VERSION = "linear 1"


class LinearRegression(Estimator):
    """A linear model of a protected table, charged once; its summary has intervals that include the noise.

    `epsilon` and `delta` are the cost of fitting; without a delta it is the budget's. Columns with a public range are
    numbers, columns with public keys are lists. `coef_` is for predicting: each coefficient is drawn to 0 by the noise
    it has. `summary()` is for reading: coefficients of the terms that the noise leaves readable, with intervals.
    `ranges`, `keys`, `unit`, `budget` and `ledger` are only for `fit(X, y)` of arrays and frames.

        model = LinearRegression(epsilon=1).fit(adult, target="hours_per_week")
        print(model.summary())
    """

    _kind = "regressor"

    def __init__(
        self,
        epsilon: Number = 1,
        *,
        delta: Number | None = None,
        confidence: float = 0.95,
        ranges: Mapping[str, Any] | Sequence[Any] | None = None,
        keys: Mapping[str, Sequence[Any]] | None = None,
        unit: str | None = None,
        budget: Loss | None = None,
        ledger: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.confidence = confidence
        self.ranges = ranges
        self.keys = keys
        self.unit = unit
        self.budget = budget
        self.ledger = ledger

    def plan(
        self,
        table: Table,
        *,
        target: str,
        features: Iterable[str] | None = None,
        where: str | Col | None = None,
        learn: Learn = None,
        analyst: str | None = None,
    ) -> LinearPlan:
        """Return the columns and the cost of a fit, from public facts: free.

        Undeclared ranges and keys are learned first, for a part of epsilon; with `learn=False` refused.
        """
        known = known_columns(table, features, target, self.epsilon, learn=learn, analyst=analyst)
        rows = filtered(known.table, where)
        design = design_of(rows, target, known.features)
        events, asked = noise_for(rows.session, known.epsilon, self.delta, wanted_of(design))
        return LinearPlan(design, events, asked, rows, known)

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
        """Return the model, fitted to a table's rows: charged first, then read. The same fit again is free.

        Or `fit(X, y)` of an array or a frame, with the estimator's own declarations: `ranges`, `keys`, `budget`,
        `ledger`. Undeclared facts of a table are learned first (`learned_`), unless `learn=False`.
        """
        self._refuse_other_confidence()
        protected, target = table_of(self, rows, y, target)
        learn = learn if isinstance(rows, Table) else False  # of arrays, everything is declared

        def planned() -> LinearPlan:
            return self.plan(protected, target=target, features=features, where=where, learn=learn, analyst=analyst)

        with one_call(planned, analyst) as plan:
            table = plan.table
            paid = train(
                table,
                plan.design.coded(table),
                plan.events,
                asked=plan.asked,
                key=repr((VERSION, plan.design)),
                words=f"a linear model of {target} from {', '.join(plan.design.features)}",
                steps=lambda rounds: asked_of(rounds, plan.design, plan.events),
                encode=json.dumps,
                decode=json.loads,
                analyst=analyst,
                request_id=request_id,
            )
        self.receipt_, self.loss_ = paid.receipt, plan.loss
        self.fitted_on_ = rows_used(table)
        self.learned_ = plan.known.words
        self._set_state(LinearState(plan.design, plan.events, paid.value))
        know_features(self, plan.design.features, rows)
        return self

    def _refuse_other_confidence(self) -> None:
        is_number = isinstance(self.confidence, int | float) and not isinstance(self.confidence, bool)
        if not is_number or not 0 < self.confidence < 1:
            raise InvalidParameter("confidence must be between 0 and 1\nhint: confidence=0.95")

    def _set_state(self, state: LinearState) -> None:
        """Set what scikit-learn's users look for; all of it follows from noisy integers."""
        design = state.design
        self.state_ = state
        self.feature_names_in_ = np.array(design.features, dtype=object)
        self.n_features_in_ = len(design.features)
        places = [place for place in range(1, len(state.weights)) if place not in state.bases]
        compared = state.weights.copy()
        for cells, base in zip(state.gram.columns, state.bases, strict=True):
            compared[0] += state.weights[base]
            compared[cells] -= state.weights[base]
        self.terms_ = [state.name_of(place) for place in places]
        coefficients = raw_map(design, [0, *places]) @ compared[[0, *places]]
        self.coef_: Floats = coefficients[1:]
        self.intercept_ = float(coefficients[0] + _middle(design))

    def predict(self, rows: Any) -> Floats:
        """Return predictions for unprotected rows, a frame or a dict of columns; NaN if a number is missing."""
        state = self._fitted()
        columns = columns_in(rows_for(self, state.design.features, rows), state.design.features)
        total: Floats = np.full(len(as_list(columns[state.design.features[0]])), state.weights[0])
        for place, number in enumerate(state.design.numbers, 1):
            total = total + state.weights[place] * number.scaled(columns[number.name])
        for feature, bins, cells in zip(state.design.listed, state.bins, state.gram.columns, strict=True):
            found = np.array(bins)[feature.cells_of(columns[feature.name])]
            total = total + state.weights[cells][found]
        target = state.design.target
        return total if target is None else target.middle + target.half * total

    def scoring(self, table: Table) -> Scoring:
        """Return the model as the engine reads it, to be scored on protected rows (`Holdout`)."""
        target = self._fitted().design.target
        if target is None:
            raise InvalidParameter("this model cannot predict\nhint: fit it with a target")
        known = with_target(table, target.name, between=target.ends)
        return replace(SqlModel(self.to_sql(), target.name).scoring(known), fitted_on=self.fitted_on_)

    def summary(self) -> LinearSummary:
        """Return the terms that the noise leaves readable, with intervals of the sample and the noise together."""
        state, found = self._fitted(), self._fitted().inference
        change = raw_map(state.design, found.places)
        estimate = change @ found.estimate
        estimate[0] += _middle(state.design)
        variances = np.diag(change @ found.covariance @ change.T)
        noise = np.diag(change @ found.noise @ change.T)
        width = NormalDist().inv_cdf((1 + self.confidence) / 2)
        coefficients = tuple(
            Coefficient(state.name_of(place), value, error, value - width * error, value + width * error, part)
            for place, value, error, part in zip(
                found.places,
                estimate.tolist(),
                np.sqrt(variances).tolist(),
                (noise / variances).tolist(),
                strict=True,
            )
        )
        names = [state.name_of(place) for place in range(len(state.weights))]
        bases = tuple(tuple(names[base].split(": ", 1)) for base in state.bases)
        left_out = [name for at, name in enumerate(names) if at not in {*found.places, *state.bases}]
        return LinearSummary(
            state.design.target.name if state.design.target else "",
            (state.gram.rows, state.gram.sigma),
            (found.explained, found.explained_error),
            self.confidence,
            width,
            coefficients,
            tuple(left_out),
            bases,
            f"epsilon {show(self.loss_.epsilon)}, entry {self.receipt_.number} of the ledger",
        )

    def to_sql(self, *, dialect: str | None = None) -> str:
        """Return the prediction as a SQL expression over the features' columns, escaped for a database.

        The tests run it in DuckDB, PostgreSQL ("postgres"), SQLite and Spark. For "snowflake", "bigquery" and "mysql"
        it is only read by their grammars.
        """
        state = self._fitted()
        target = state.design.target
        scale = 1.0 if target is None else target.half
        weights, numbers = state.weights, state.design.numbers
        slopes = [scale * float(weights[at]) / number.half for at, number in enumerate(numbers, 1)]
        start = _middle(state.design) + scale * float(weights[0])
        start -= sum(slope * number.middle for slope, number in zip(slopes, numbers, strict=True))
        listed = []
        for cells in state.gram.columns:
            inside = range(cells.start, cells.stop)
            listed.append([(state.cells[at - 1 - len(numbers)], scale * float(weights[at])) for at in inside])
        named = [(number.name, number.ends, slope) for number, slope in zip(numbers, slopes, strict=True)]
        return model_sql(start, named, listed, dialect)

    def _fitted(self) -> LinearState:
        state: LinearState | None = getattr(self, "state_", None)
        if state is None:
            raise InvalidParameter("this model is not fitted yet\nhint: model.fit(table, target='hours')")
        return state


def raw_map(design: LinearDesign, places: Iterable[int]) -> Floats:
    """Return the matrix from coefficients in half ranges to the columns' own units; the target's middle is not in it.

    A number's coefficient is per unit of the number, and the intercept is where every number is 0.
    """
    at = list(places)
    scale = 1.0 if design.target is None else design.target.half
    change = np.eye(len(at)) * scale
    for column, place in enumerate(at):
        if 1 <= place <= len(design.numbers):
            number = design.numbers[place - 1]
            change[column, column] = scale / number.half
            change[0, column] = -scale * number.middle / number.half
    return change


def _middle(design: LinearDesign) -> float:
    return 0.0 if design.target is None else design.target.middle
