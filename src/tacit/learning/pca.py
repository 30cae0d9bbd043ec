"""`PCA`: principal components from noisy sums of products, and the variance that each explains with its error."""

import json
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Any, Literal, Self

import numpy as np

from tacit.asking import Learn, Table
from tacit.errors import InvalidParameter, QueryRefused
from tacit.learning.declared_rows import protected_rows
from tacit.learning.estimator import Estimator, know_features, rows_for
from tacit.learning.linear_design import LinearDesign, columns_in, design_of, filtered, numbers_named
from tacit.learning.linear_state import LinearState, asked_of, wanted_of
from tacit.learning.linear_words import LinearPlan
from tacit.learning.noisy_gram import NoisyGram
from tacit.learning.price import noise_for
from tacit.learning.rounds import train
from tacit.learning.undeclared import KnownColumns, known_columns, one_call
from tacit.privacy import Floats, Loss, Number
from tacit.query import Col

# Changed whenever the arithmetic is: a stored model is found by it.
VERSION = "principal components 1"


class PCA(Estimator):
    """Principal components of the ranged numbers of a protected table, charged once.

    `epsilon` and `delta` are the cost of fitting. `scale` is the divisor of a column: "range" is half its declared
    range, "standard" its noisy standard deviation, None is 1. `explained_variance_` is in these units;
    `explained_variance_error_` is its ± for the noise: the interval holds the table's value with 95 % probability.

        model = PCA(n_components=2, epsilon=1).fit(adult)
        model.transform(anybodys_rows)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        epsilon: Number = 1,
        delta: Number | None = None,
        scale: Literal["range", "standard"] | None = "range",
        ranges: Mapping[str, Any] | Sequence[Any] | None = None,
        keys: Mapping[str, Sequence[Any]] | None = None,
        unit: str | None = None,
        budget: Loss | None = None,
        ledger: Any = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.scale = scale
        self.ranges = ranges
        self.keys = keys
        self.unit = unit
        self.budget = budget
        self.ledger = ledger

    def plan(
        self,
        table: Table,
        *,
        features: Iterable[str] | None = None,
        where: str | Col | None = None,
        learn: Learn = None,
        analyst: str | None = None,
    ) -> LinearPlan:
        """Return the columns and the cost of a fit, from public facts: free.

        Undeclared ranges are learned first, for a part of epsilon; with `learn=False` they are refused, and without
        named features, columns without a range are left out.
        """
        known = known_columns(table, features, None, self.epsilon, numbers_only=True, learn=learn, analyst=analyst)
        rows = filtered(known.table, where)
        return self._planned(rows, numbers_named(rows) if known.features is None else known.features, known)

    def fit(
        self,
        rows: Any,
        y: Any = None,
        *,
        features: Iterable[str] | None = None,
        where: str | Col | None = None,
        learn: Learn = None,
        analyst: str | None = None,
        request_id: str | None = None,
    ) -> Self:
        """Return the components, learned from a table's rows: charged first, then read. The same fit again is free.

        Or `fit(X)` of an array or a frame, with the estimator's own declarations: `ranges`, `budget`, `ledger`. Like
        scikit-learn's, it takes a `y` beside an array and ignores it.
        """
        if y is not None and isinstance(rows, Table):
            raise InvalidParameter(
                "principal components do not have a target\nhint: fit(table, features=['age', 'hours'])"
            )
        protected = rows if isinstance(rows, Table) else protected_rows(self, rows, None, None, has_target=False)[0]
        learn = learn if isinstance(rows, Table) else False  # of arrays, everything is declared

        def planned() -> LinearPlan:
            return self.plan(protected, features=features, where=where, learn=learn, analyst=analyst)

        with one_call(planned, analyst) as plan:
            table = plan.table
            paid = train(
                table,
                plan.design.coded(table),
                plan.events,
                asked=plan.asked,
                key=repr((VERSION, plan.design)),
                words=f"principal components of {', '.join(plan.design.features)}",
                steps=lambda rounds: asked_of(rounds, plan.design, plan.events),
                encode=json.dumps,
                decode=json.loads,
                analyst=analyst,
                request_id=request_id,
            )
        self.receipt_, self.loss_ = paid.receipt, plan.loss
        self.learned_ = plan.known.words
        self._set_state(LinearState(plan.design, plan.events, paid.value))
        know_features(self, plan.design.features, rows)
        return self

    def fit_transform(self, rows: Any, y: Any = None, **words: Any) -> Floats:
        """Return the components of an array's or a frame's own rows, which are as secret as those rows."""
        return self.fit(rows, y, **words).transform(rows)

    def _planned(self, table: Table, features: Iterable[str] | None, known: KnownColumns) -> LinearPlan:
        design = design_of(table, None, features)
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
        events, asked = noise_for(table.session, known.epsilon, self.delta, wanted_of(design))
        return LinearPlan(design, events, asked, table, known)

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
        self.feature_names_in_ = np.array(design.features, dtype=object)
        self.n_features_in_ = len(design.features)

    def transform(self, rows: Any) -> Floats:
        """Return the components of unprotected rows, (rows, components); NaN if a number is missing."""
        design = self._fitted()
        columns = columns_in(rows_for(self, design.features, rows), design.features)
        values = np.column_stack(
            [number.middle + number.half * number.scaled(columns[number.name]) for number in design.numbers]
        )
        found: Floats = ((values - self.mean_) / self.scale_) @ self.components_.T
        return found

    def get_feature_names_out(self, _names: Any = None) -> Any:
        """Return what the columns of `transform` are called."""
        self._fitted()
        return np.array([f"pca{place}" for place in range(self.n_components_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Return the tags for scikit-learn: it transforms, without a target."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(allow_nan=True),
            non_deterministic=True,  # the noise is never the same twice
        )

    def _fitted(self) -> LinearDesign:
        state: LinearState | None = getattr(self, "state_", None)
        if state is None:
            raise InvalidParameter("these components are not fitted yet\nhint: model.fit(table)")
        return state.design


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
