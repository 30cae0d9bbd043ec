"""A fitted additive model: public facts, noisy shapes, predictions for unprotected rows, and itself as public tables.

From the training rows it holds only released numbers, so it may be saved, sent and published.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.asking import Table
from tacit.errors import InvalidParameter
from tacit.learning.features import Feature, class_target, target_of
from tacit.learning.scorable import RowsUsed, Scoring
from tacit.learning.shapes import Shape, Shapes, chance_of
from tacit.learning.undeclared import with_target
from tacit.numbers import Floats, Integers
from tacit.plan import SCORE_BITS, UNIT, PairedBins, Scores, ValueTarget

MARGIN = 1.959963984540054  # of 95 %
# Scores are held within this, which no probability can tell from more.
SCORE_MOST = 1 << 30
LOSSES = {"logistic": "classes", "softmax": "classes", "identity": "squared", "log": "poisson"}


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

    def scores(self, rows: Mapping[str, Any]) -> Floats:
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

    def chances(self, rows: Mapping[str, Any]) -> Floats:
        """Return the probability of each class: (rows, classes)."""
        return self.chances_at(self.scores(rows))

    def chances_at(self, scores: Floats) -> Floats:
        if self.link == "softmax":
            powers = np.exp(scores - scores.max(axis=1, keepdims=True))
            shares: Floats = powers / powers.sum(axis=1, keepdims=True)
            return shares
        first = chance_of(1 / (1 + np.exp(-scores[:, 0])), self.shapes.clip / UNIT)
        return np.column_stack([1 - first, first])

    def numbers(self, rows: Mapping[str, Any]) -> Floats:
        """Return the number that is predicted for each row, inside the target's range."""
        score = self.scores(rows)[:, 0]
        part = np.exp(np.minimum(score, 0.0)) if self.link == "log" else np.clip(score, 0.0, 1.0)
        predicted: Floats = self.low + self.width * part
        return predicted

    def cells_of(self, rows: Mapping[str, Any]) -> list[Integers]:
        """Return the cells of each feature, from columns by name; all must have the same length."""
        cells = [feature.cells_of(rows[feature.name]) for feature in self.features]
        if len({len(each) for each in cells}) > 1:
            raise InvalidParameter("the columns to predict from have different lengths\nhint: one value for each row")
        return cells

    @property
    def names(self) -> list[str]:
        return [feature.name for feature in self.features]

    @property
    def term_names(self) -> list[str]:
        """The names of the features, then of the interactions."""
        return self.names + [f"{self.names[first]} x {self.names[second]}" for first, second in self.pairs]

    def scoring(self, table: Table, fitted_on: RowsUsed | None) -> Scoring:
        """Return the model as public tables in steps of 2^-SCORE_BITS, for the columns of a table."""
        ends = (self.low, self.low + self.width)
        table = with_target(table, self.target, keys=self.classes, between=None if self.classes else ends)
        column, classes, number = target_of(table, self.target, LOSSES[self.link])
        shapes, count = self.shapes.shapes, len(self.features)
        bins = [np.array(shape.bins, dtype=np.int64) for shape in shapes]
        effects = [np.array(shape.effects, dtype=np.float64) for shape in shapes]
        pairs = [
            PairedBins(first, second, of_cells.reshape(self.features[first].cells, self.features[second].cells))
            for (first, second), of_cells in zip(self.pairs, bins[count:], strict=True)
        ]
        scores = Scores(
            (
                *(_in_score_steps(each[:, bins[at]]) for at, each in enumerate(effects[:count])),
                None,
                *map(_in_score_steps, effects[count:]),
            ),
            _in_score_steps(np.array(self.shapes.intercept, dtype=np.float64)),
            self.link,  # type: ignore[arg-type]
            ValueTarget(0) if number is not None else class_target(column, classes, count),
            UNIT,
        )
        return Scoring(
            columns=(*(feature.column for feature in self.features), column),
            scores=scores,
            values=() if number is None else (number,),
            pairs=tuple(pairs),
            classes=classes,
            fitted_on=fitted_on,
            chances=None if self.link != "logistic" else lambda logits: self.chances_at(logits[:, None])[:, 1],
            words=f"an additive model of {self.target}",
        )


def _in_score_steps(scores: Floats) -> Integers:
    steps: Integers = np.clip(np.rint(scores * (1 << SCORE_BITS)), -SCORE_MOST, SCORE_MOST).astype(np.int64)
    return steps
