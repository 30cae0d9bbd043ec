"""`PCA`: principal components from noisy sums of products, and the variance that each explains with its error."""

from dataclasses import KW_ONLY, dataclass
from statistics import NormalDist
from typing import Any, ClassVar, Literal

import numpy as np

from tacit.asking import Table
from tacit.errors import InvalidParameter, QueryRefused
from tacit.learning.estimator import Estimator
from tacit.learning.features import NUMBERS
from tacit.learning.linear_fit import NoisyGram
from tacit.learning.linear_state import LinearState, design_of, plan_of
from tacit.learning.undeclared import FitPlan, Kind, KnownColumns
from tacit.privacy import Floats


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

    def _planned(self, table: Table, target: str, known: KnownColumns) -> FitPlan:
        """Return the plan; if features are not named, columns without a range are left out."""
        declared = table.session.declaration
        ranged = [
            name
            for name, facts in declared.columns.items()
            if facts.between is not None and facts.keys is None and facts.type in NUMBERS and name != declared.unit
        ]
        design = design_of(table, target, ranged if known.features is None else known.features)
        if design.listed:
            raise QueryRefused(
                f"'{design.listed[0].name}' is a list, and principal components are of numbers"
                "\nhint: name columns with a public range: features=['age', 'hours']"
            )
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
        """Set what follows from the noisy sums."""
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
