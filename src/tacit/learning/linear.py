"""`LinearRegression`: least squares from noisy moments, with intervals that include the noise.

`PCA`: principal components from noisy sums of products, and the variance that each explains with its error.
"""

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from math import erfc, sqrt
from statistics import NormalDist
from typing import Any, ClassVar, Literal

import numpy as np

from tacit.asking import Table
from tacit.errors import InvalidParameter, printable
from tacit.learning.estimator import Estimator
from tacit.learning.features import as_list
from tacit.learning.linear_fit import LinearDesign, LinearState, NoisyGram, design_of, design_of_numbers, plan_of
from tacit.learning.scorable import Scoring, SqlModel
from tacit.learning.terms import linear_sql
from tacit.learning.undeclared import FitPlan, Kind, KnownColumns, with_target
from tacit.numbers import Floats, Number, show

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
        self.terms_: list[str] = [state.name_of(place) for place in places]
        coefficients = raw_map(state.design, [0, *places]) @ compared[[0, *places]]
        self.coef_: Floats = coefficients[1:]
        self.intercept_: float = float(coefficients[0] + state.design.middle)

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
            Coefficient(
                state.name_of(place),
                value,
                error,
                value - width * error,
                value + width * error,
                part,
                erfc(abs(value) / error / sqrt(2)) if error > 0 else 1.0,
            )
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
    """A term: its coefficient, standard error and interval; `noise` is the part of its variance that is noise.

    `pvalue` is the probability of a coefficient as far from 0 if the population's is 0, by the sample and the noise.
    """

    term: str
    coefficient: float
    error: float
    low: float
    high: float
    noise: float
    pvalue: float


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
        head = ("", "coef", "std err", "P>|t|", f"[{below:.3g}", f"{above:.3g}]", "noise")
        rows = [
            (
                each.term,
                *map(_four_digits, (each.coefficient, each.error)),
                f"{each.pvalue:.3f}",
                *map(_four_digits, (each.low, each.high)),
                f"{each.noise:.0%}",
            )
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


# ---- principal components --------------------------------------------------------------------------------------------


@dataclass(eq=False, repr=False)
class PCA(Estimator[LinearState]):
    """Principal components of the ranged numbers of a protected table, charged once.

    `epsilon` and `delta` are the cost of fitting. `scale` is the divisor of a column: "range" is half its declared
    range, "standard" its noisy standard deviation, None is 1. `explained_variance_` is in these units;
    `explained_variance_error_` is its ± for the noise: the interval holds the table's value with 95 % probability.

        model = PCA(n_components=2, epsilon=1).fit(adult)
        model.transform(anybodys_rows)
    """

    n_components: int | None = None
    _: KW_ONLY
    scale: Literal["range", "standard"] | None = "range"

    _kind: ClassVar[Kind] = "transformer"
    _version: ClassVar[str] = "principal components 1"
    _state: ClassVar[str] = "state_"

    def _planned(self, table: Table, target: str, known: KnownColumns) -> FitPlan:  # noqa: ARG002
        """Return the plan; if features are not named, columns without a range are left out."""
        design = design_of_numbers(table, known.features, "principal components are")
        most, wanted = len(design.numbers), self.n_components
        if wanted is not None and (isinstance(wanted, bool) or not isinstance(wanted, int) or not 1 <= wanted <= most):
            raise InvalidParameter(f"n_components must be a whole number from 1 to {most}\nhint: n_components=2")
        if self.scale not in ("range", "standard", None):
            raise InvalidParameter("scale must be 'range', 'standard' or None\nhint: scale='range'")
        return plan_of(table, design, known, self.delta)

    def fit_transform(self, rows: Any, y: Any = None, **words: Any) -> Floats:
        """Return the components of an array's or a frame's own rows, which are as secret as those rows."""
        return self.fit(rows, y, **words).transform(rows)

    def _set_state(self, state: LinearState) -> None:
        design, gram = state.design, state.gram
        middle = gram.matrix[0, 1:] / gram.rows
        covariance = gram.matrix[1:, 1:] / gram.rows - np.outer(middle, middle)
        half = np.array([number.half for number in design.numbers])
        if self.scale == "standard":
            least = np.sqrt(2) * gram.sigma / gram.rows
            self.scale_: Floats = np.sqrt(np.maximum(np.diag(covariance), least)) * half
        else:
            self.scale_ = half if self.scale == "range" else np.ones(len(half))
        unit = half / self.scale_
        values, vectors = np.linalg.eigh(covariance * np.outer(unit, unit))
        order = np.argsort(values)[::-1]
        vectors = vectors[:, order]
        vectors *= np.where(np.abs(vectors).max(axis=0) == vectors.max(axis=0), 1.0, -1.0)
        kept = len(half) if self.n_components is None else self.n_components
        variances = np.maximum(values[order], 0.0)
        errors = _errors(gram, middle, vectors * unit[:, None], values[order])
        self.state_ = state
        self.components_: Floats = vectors.T[:kept]
        self.explained_variance_: Floats = variances[:kept]
        self.explained_variance_error_: Floats = errors[:kept]
        self.explained_variance_ratio_: Floats = variances[:kept] / max(variances.sum(), 1e-300)
        self.mean_: Floats = np.array([number.middle for number in design.numbers]) + half * middle
        self.n_components_ = kept

    def transform(self, rows: Any) -> Floats:
        """Return the components of unprotected rows, (rows, components); NaN if a number is missing."""
        design = self._fitted().design
        columns = self._columns_of(rows)
        values = np.column_stack(
            [number.middle + number.half * number.scaled(columns[number.name]) for number in design.numbers]
        )
        found: Floats = ((values - self.mean_) / self.scale_) @ self.components_.T
        return found

    def get_feature_names_out(self, _names: Any = None) -> Any:
        """Return what the columns of `transform` are called."""
        self._fitted()
        return np.array([f"pca{place}" for place in range(self.n_components_)], dtype=object)


def _errors(gram: NoisyGram, middle: Floats, directions: Floats, values: Floats) -> Floats:
    """Return the 95 % half width of each variance for the noise: the direction's own noise, and the effect of noise in
    other directions.

    A direction's variance is wᵀAw / n with w = (-middle·v, v). Noise that mixes two directions moves their variances
    apart by its square over their distance, or by itself if they are nearer than that.
    """
    along = np.vstack([-middle @ directions, directions])
    width = NormalDist().inv_cdf(0.975)
    found = []
    for place, weights in enumerate(along.T):
        mixed = np.sqrt(np.maximum(np.diag(along.T @ gram.noise_of(weights) @ along), 0)) / gram.rows
        own = np.hypot(mixed[place], values[place] * gram.sigma / gram.rows)
        others = np.delete(mixed, place)
        apart = np.maximum(np.abs(np.delete(values, place) - values[place]), others)
        found.append(width * own + np.sum(others**2 / np.maximum(apart, 1e-300)))
    return np.array(found)
