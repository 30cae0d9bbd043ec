"""`LinearRegression`: least squares from noisy moments, with intervals that include the noise."""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np

from tacit.asking import Table
from tacit.errors import InvalidParameter, printable
from tacit.learning.estimator import Estimator
from tacit.learning.features import as_list
from tacit.learning.linear_state import LinearDesign, LinearState, design_of, plan_of
from tacit.learning.model_sql import linear_sql
from tacit.learning.scoring.scorable import Scoring, SqlModel
from tacit.learning.undeclared import FitPlan, Kind, KnownColumns, with_target
from tacit.privacy import Floats, Number, show

NOTE_WIDTH = 96


@dataclass(eq=False, repr=False)
class LinearRegression(Estimator[LinearState]):
    """A linear model of a protected table, charged once; its summary has intervals that include the noise.

    `epsilon` and `delta` are the cost of fitting; without a delta it is the budget's. Columns with a public range are
    numbers, columns with public keys are lists. `coef_` is for predicting: each coefficient is drawn to 0 by the noise
    it has. `summary()` is for reading: coefficients of the terms that the noise leaves readable, with intervals.
    `ranges`, `keys`, `unit`, `budget` and `ledger` are only for `fit(X, y)` of arrays and frames.

        model = LinearRegression(epsilon=1).fit(adult, target="hours_per_week")
        print(model.summary())
    """

    epsilon: Number = 1
    _: KW_ONLY
    confidence: float = 0.95

    _kind: ClassVar[Kind] = "regressor"
    _version: ClassVar[str] = "linear 1"
    _state: ClassVar[str] = "state_"

    def _planned(self, table: Table, target: str, known: KnownColumns) -> FitPlan:
        is_number = isinstance(self.confidence, int | float) and not isinstance(self.confidence, bool)
        if not is_number or not 0 < self.confidence < 1:
            raise InvalidParameter("confidence must be between 0 and 1\nhint: confidence=0.95")
        return plan_of(table, design_of(table, target, known.features), known, self.delta)

    def _set_state(self, state: LinearState) -> None:
        """Set what scikit-learn's users look for; all of it follows from noisy integers."""
        self.state_ = state
        places = [place for place in range(1, len(state.weights)) if place not in state.bases]
        compared = state.weights.copy()
        for cells, base in zip(state.gram.columns, state.bases, strict=True):
            compared[0] += state.weights[base]
            compared[cells] -= state.weights[base]
        self.terms_ = [state.name_of(place) for place in places]
        coefficients = raw_map(state.design, [0, *places]) @ compared[[0, *places]]
        self.coef_: Floats = coefficients[1:]
        self.intercept_ = float(coefficients[0] + state.design.middle)

    def predict(self, rows: Any) -> Floats:
        """Return predictions for unprotected rows, a frame or a dict of columns; NaN if a number is missing."""
        state = self._fitted()
        columns = self._columns_of(rows)
        total: Floats = np.full(len(as_list(columns[state.design.features[0]])), state.weights[0])
        for place, number in enumerate(state.design.numbers, 1):
            total = total + state.weights[place] * number.scaled(columns[number.name])
        for feature, bins, cells in zip(state.design.listed, state.bins, state.gram.columns, strict=True):
            found = np.array(bins)[feature.cells_of(columns[feature.name])]
            total = total + state.weights[cells][found]
        return state.design.middle + state.design.half * total

    def scoring(self, table: Table) -> Scoring:
        """Return the model as the engine reads it, to be scored on protected rows (`Holdout`)."""
        target = self._fitted().design.target
        if target is None:
            raise InvalidParameter("this model cannot predict\nhint: fit it with a target")
        known = with_target(table, target.name, between=target.ends)
        return replace(SqlModel(self.to_sql(), target.name).scoring(known), fitted_on=self.fitted_on_)

    def summary(self) -> "LinearSummary":
        """Return the terms that the noise leaves readable, with intervals of the sample and the noise together."""
        state, found = self._fitted(), self._fitted().inference
        change = raw_map(state.design, found.places)
        estimate = change @ found.estimate
        estimate[0] += state.design.middle
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
        scale = state.design.half
        weights, numbers = state.weights, state.design.numbers
        slopes = [scale * float(weights[at]) / number.half for at, number in enumerate(numbers, 1)]
        start = state.design.middle + scale * float(weights[0])
        start -= sum(slope * number.middle for slope, number in zip(slopes, numbers, strict=True))
        listed = []
        for cells in state.gram.columns:
            inside = range(cells.start, cells.stop)
            listed.append([(state.cells[at - 1 - len(numbers)], scale * float(weights[at])) for at in inside])
        named = [(number.name, number.ends, slope) for number, slope in zip(numbers, slopes, strict=True)]
        return linear_sql(start, named, listed, dialect)


def raw_map(design: LinearDesign, places: Iterable[int]) -> Floats:
    """Return the matrix from coefficients in half ranges to the columns' own units; the target's middle is not in it.

    A number's coefficient is per unit of the number, and the intercept is where every number is 0.
    """
    at = list(places)
    scale = design.half
    change = np.eye(len(at)) * scale
    for column, place in enumerate(at):
        if 1 <= place <= len(design.numbers):
            number = design.numbers[place - 1]
            change[column, column] = scale / number.half
            change[0, column] = -scale * number.middle / number.half
    return change


# --- the summary ---


@dataclass(frozen=True)
class Coefficient:
    """A term: its coefficient, standard error and interval; `noise` is the part of its variance that is noise."""

    term: str
    coefficient: float
    error: float
    low: float
    high: float
    noise: float


@dataclass(frozen=True, repr=False)
class LinearSummary:
    """The terms that noise leaves readable, with their intervals; `print` it, or take it `to_dicts`."""

    target: str
    rows: tuple[float, float]  # the number of units, and its standard error
    explained: tuple[float, float]  # R², and its standard error
    confidence: float
    width: float  # of the interval, in standard errors
    coefficients: tuple[Coefficient, ...]
    left_out: tuple[str, ...]
    bases: tuple[tuple[str, ...], ...]
    cost: str

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one dict for each term."""
        return [vars(each).copy() for each in self.coefficients]

    def __str__(self) -> str:
        below, above = (1 - self.confidence) / 2, (1 + self.confidence) / 2
        head = ("", "coef", "std err", f"[{below:.3g}", f"{above:.3g}]", "noise")
        rows = [
            (each.term, *map(_four_digits, (each.coefficient, each.error, each.low, each.high)), f"{each.noise:.0%}")
            for each in self.coefficients
        ]
        widths = [max(map(len, cells)) for cells in zip(head, *rows, strict=True)]
        table = [
            "  ".join(
                [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
            )
            for row in (head, *rows)
        ]
        rule = "=" * len(table[0])
        lines = [
            f"Linear regression of {self.target}",
            rule,
            f"people: {self.rows[0]:,.0f} ± {self.width * self.rows[1]:,.0f}",
            f"R²: {self.explained[0]:.3f} ± {self.width * self.explained[1]:.3f}",
            f"cost: {self.cost}",
            rule,
            table[0],
            "-" * len(table[0]),
            *table[1:],
            rule,
            *self._notes(),
        ]
        return printable("\n".join(lines), keeping="\n")

    __repr__ = __str__

    def _notes(self) -> list[str]:
        notes = [
            "Standard errors and intervals are of the sample and of the noise; 'noise' is its part of the variance."
            " The coefficients estimate least squares on these terms in the whole population, with numbers "
            "clamped to their ranges, and each person counted once."
        ]
        if self.bases:
            notes.append(f"Compared with: {'; '.join(f'{name}: {value}' for name, value in self.bases)}.")
        if self.left_out:
            notes.append(
                f"Left out, since the noise hides their effect: {', '.join(_by_column(self.left_out))}. Values "
                "left out of a list count with its base value. predict() uses all terms, drawn to 0 by the noise"
                " they have (coef_)."
            )
        return [line for note in notes for line in textwrap.wrap(note, NOTE_WIDTH)]


def _by_column(terms: Sequence[str]) -> list[str]:
    """Return terms with those of one column together: "race (Black, other)"."""
    found: dict[str, list[str]] = {}
    for term in terms:
        column, _, value = term.partition(": ")
        found.setdefault(column, []).extend([value] if value else [])
    return [f"{column} ({', '.join(values)})" if values else column for column, values in found.items()]


def _four_digits(value: float) -> str:
    """Return a number with four significant digits, without an exponent if possible."""
    if value != 0 and not 1e-4 <= abs(value) < 1e7:
        return f"{value:.3e}"
    places = max(0, 4 - len(f"{abs(value):.0f}")) if abs(value) >= 1 else 4
    return f"{value:,.{places}f}"
