"""An additive model as the engine reads it: a table of whole scores for the cells of each feature, and of each pair."""

import numpy as np

from tacit.asking import Table
from tacit.learning.additive_asked import class_target, target_of
from tacit.learning.additive_model import AdditiveModel
from tacit.learning.scoring.scorable import Scoring
from tacit.learning.scoring.sides import RowsUsed
from tacit.learning.shapes import Shape
from tacit.learning.undeclared import with_target
from tacit.plan import SCORE_BITS, UNIT, PairedBins, Scores, ValueTarget
from tacit.privacy import Floats, Integers

# Scores are held within this, which no probability can tell from more.
SCORE_MOST = 1 << 30
LOSSES = {"logistic": "classes", "softmax": "classes", "identity": "squared", "log": "poisson"}


def additive_scoring(model: AdditiveModel, table: Table, fitted_on: RowsUsed | None) -> Scoring:
    """Return a model as public tables in steps of 2^-SCORE_BITS, for the columns of a table."""
    ends = (model.low, model.low + model.width)
    table = with_target(table, model.target, keys=model.classes, between=None if model.classes else ends)
    column, classes, number = target_of(table, model.target, LOSSES[model.link])
    columns = (*(feature.column for feature in model.features), column)
    shapes = model.shapes.shapes
    count = len(model.features)
    alone = [_steps(_effects(shape)[:, np.array(shape.bins, dtype=np.int64)]) for shape in shapes[:count]]
    pairs = [
        PairedBins(
            first,
            second,
            np.array(shape.bins, dtype=np.int64).reshape(model.features[first].cells, model.features[second].cells),
        )
        for (first, second), shape in zip(model.pairs, shapes[count:], strict=True)
    ]
    paired = [_steps(_effects(shape)) for shape in shapes[count:]]
    target = ValueTarget(0) if number is not None else class_target(column, classes, count)
    scores = Scores(
        (*alone, None, *paired),
        _steps(np.array(model.shapes.intercept, dtype=np.float64)),
        model.link,  # type: ignore[arg-type]
        target,
        UNIT,
    )
    return Scoring(
        columns=columns,
        scores=scores,
        values=() if number is None else (number,),
        pairs=tuple(pairs),
        classes=classes,
        fitted_on=fitted_on,
        chances=None if model.link != "logistic" else lambda logits: model.chances_at(logits[:, None])[:, 1],
        words=f"an additive model of {model.target}",
    )


def _effects(shape: Shape) -> Floats:
    return np.array(shape.effects, dtype=np.float64)


def _steps(scores: Floats) -> Integers:
    steps: Integers = np.clip(np.rint(scores * (1 << SCORE_BITS)), -SCORE_MOST, SCORE_MOST).astype(np.int64)
    return steps
