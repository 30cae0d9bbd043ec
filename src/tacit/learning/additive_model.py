"""A fitted additive model: public facts, noisy shapes, and predictions for unprotected rows.

From the training rows it holds only released numbers, so it may be saved, sent and published.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.asking import Table
from tacit.errors import InvalidParameter, did_you_mean
from tacit.learning.features import Feature
from tacit.learning.shapes import Shape, Shapes
from tacit.learning.starting import chance_of
from tacit.plan import UNIT
from tacit.privacy import Floats, Integers

MARGIN = 1.959963984540054  # of 95 %


@dataclass(frozen=True)
class AdditiveModel:
    """Features, interactions, the target's public facts and the shapes that were learned."""

    target: str
    features: tuple[Feature, ...]
    pairs: tuple[tuple[int, int], ...]
    link: str
    classes: tuple[Any, ...]  # of a classifier; empty for a regressor
    low: float  # a number's target: where its range starts, and how wide it is
    width: float
    shapes: Shapes

    def scores(self, rows: Any) -> Floats:
        """Return the score of each row for each class: (rows, score vectors)."""
        cells = self.cells_of(rows)
        total = np.repeat(np.array([self.shapes.intercept]), len(cells[0]), axis=0)
        for place, shape in enumerate(self.shapes.shapes):
            total += np.array(shape.effects).T[self._bins(place, shape, cells)]
        return total

    def _bins(self, place: int, shape: Shape, cells: Sequence[Integers]) -> Integers:
        table = np.array(shape.bins, dtype=np.int64)
        if place < len(self.features):
            of_one: Integers = table[cells[place]]
            return of_one
        first, second = self.pairs[place - len(self.features)]
        found: Integers = table[cells[first] * self.features[second].cells + cells[second]]
        return found

    def chances(self, rows: Any) -> Floats:
        """Return the probability of each class: (rows, classes)."""
        return self.chances_at(self.scores(rows))

    def chances_at(self, scores: Floats) -> Floats:
        """Return the probabilities that scores stand for."""
        if self.link == "softmax":
            powers = np.exp(scores - scores.max(axis=1, keepdims=True))
            shares: Floats = powers / powers.sum(axis=1, keepdims=True)
            return shares
        first = chance_of(1 / (1 + np.exp(-scores[:, 0])), self.shapes.clip / UNIT)
        return np.column_stack([1 - first, first])

    def numbers(self, rows: Any) -> Floats:
        """Return the number that is predicted for each row, inside the target's range."""
        score = self.scores(rows)[:, 0]
        part = np.exp(np.minimum(score, 0.0)) if self.link == "log" else np.clip(score, 0.0, 1.0)
        predicted: Floats = self.low + self.width * part
        return predicted

    def cells_of(self, rows: Any) -> list[Integers]:
        """Return the cells of each feature; all columns must have the same length."""
        columns = [column_in(rows, feature.name, place) for place, feature in enumerate(self.features)]
        cells = [feature.cells_of(column) for feature, column in zip(self.features, columns, strict=True)]
        if len({len(each) for each in cells}) > 1:
            raise InvalidParameter("the columns to predict from have different lengths\nhint: one value for each row")
        return cells

    def index_of(self, term: str) -> int:
        """Return the place of a term by its name."""
        names = self.term_names
        if term not in names:
            raise InvalidParameter(f"the model has no term '{term}'{did_you_mean(term, names)}")
        return names.index(term)

    @property
    def term_names(self) -> list[str]:
        """The names of the features, then of the interactions."""
        names = [feature.name for feature in self.features]
        return names + [f"{names[first]} x {names[second]}" for first, second in self.pairs]


def column_in(rows: Any, name: str, place: int) -> Any:
    """Return a column of rows: of a pandas, Polars or Arrow frame, of a dict of lists, or of an array by its place."""
    if isinstance(rows, Table):
        raise InvalidParameter(
            "a protected table has no rows to predict for\nhint: Holdout(table).score(model, epsilon=...) scores "
            "a model on protected rows; predict is for rows that you may see"
        )
    if isinstance(rows, np.ndarray):
        if rows.ndim != 2 or place >= rows.shape[1]:
            raise InvalidParameter("an array to predict for has a column for each feature, in the order of the fit")
        return rows[:, place]
    names = list(rows) if isinstance(rows, Mapping) else getattr(rows, "column_names", getattr(rows, "columns", None))
    if names is None:
        raise InvalidParameter(
            f"rows to predict for cannot be a {type(rows).__name__}\nhint: pass a pandas, Polars or Arrow frame, or a"
            " dict of lists"
        )
    if name not in list(names):
        raise InvalidParameter(f"the rows have no column '{name}'{did_you_mean(name, [str(each) for each in names])}")
    return rows[name]
