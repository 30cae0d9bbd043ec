"""The form of a model that can be scored on protected rows: public tables, and never code.

A model's own code would see rows, and could carry them out by an error, a file or its own state. So a model is scored
as `Scoring`: columns as cells and a table of whole numbers for each, which the engine adds up. A model of this room has
`scoring()`. `SqlModel` is any model that can be written as one SQL expression; linear models of scikit-learn are
written so by themselves. Other predictors are refused, with the way out.

Which rows a model has seen is a record that a fitted model carries: only public facts (the table, the salt and the
places of its units). So the record may be pickled and published with the model.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from tacit.asking import Table
from tacit.errors import InvalidParameter, QueryRefused
from tacit.plan import (
    SCORE_BITS,
    STEPS_MOST,
    UNIT,
    ClassTarget,
    CodedColumn,
    Measured,
    PairedBins,
    Scores,
    ValueTarget,
    measured_column,
)
from tacit.privacy import Floats, Integers
from tacit.query import Column, Frame, Join, Relation, Scalar, SomeUnits, TableRows, mean, quoted_name

# The width of the cells for probabilities, in log odds, and their limit.
LOGIT_CELLS_OF_ONE, LOGIT_REACH = 32, 8
# The number of cells for a predicted number's range.
VALUE_CELLS = 1 << SCORE_BITS

Freshness = Literal["fresh", "seen", "other table", "unknown"]


@dataclass(frozen=True)
class UnitRange:
    """Units with a salted hash at a place from `first` up to `end`."""

    salt: str
    first: int
    end: int
    columns: tuple[str, ...]  # the hashed columns, if rows are units

    def is_apart_from(self, other: "UnitRange") -> bool:
        """Return whether no unit can be in both: under one hash, and at other places."""
        is_same_hash = (self.salt, self.columns) == (other.salt, other.columns)
        return is_same_hash and (self.end <= other.first or other.end <= self.first)


@dataclass(frozen=True)
class RowsUsed:
    """The rows that a model was fitted on: of which table, and which of its units; no ranges are the whole table."""

    table: str
    table_id: str
    people: str  # the cohort that paid
    unit: str | None  # None: every row is a unit
    ranges: tuple[UnitRange, ...] = ()

    @property
    def words(self) -> str:
        return f"the whole of '{self.table}'" if not self.ranges else f"a part of '{self.table}'"


@dataclass(frozen=True, eq=False)
class Scoring:
    """A public model as the engine reads it: `scores` has a table for each cell of each column, then of each pair."""

    columns: tuple[CodedColumn, ...]
    scores: Scores
    values: tuple[Measured, ...] = ()
    pairs: tuple[PairedBins, ...] = ()
    classes: tuple[Scalar, ...] = ()  # the names of the classes; empty for a number
    # the rows that it has seen; None: not known here of two classes: the probabilities that scores stand for, if they
    # are not log odds; post-processing
    fitted_on: RowsUsed | None = None
    chances: Callable[[Floats], Floats] | None = None
    words: str = "a model"

    @property
    def key(self) -> str:
        """A text that two models have in common just when they say the same of every row."""
        scores = self.scores
        tables = [None if table is None else table.tolist() for table in scores.tables]
        pairs = [(each.first, each.second, np.asarray(each.table).tolist()) for each in self.pairs]
        return repr((self.columns, self.values, pairs, tables, scores.intercept.tolist(), scores.link, scores.target))


@runtime_checkable
class Scorable(Protocol):
    """A fitted model that says of itself what the engine needs to score it."""

    def scoring(self, table: Table) -> Scoring:
        """Return the model as public tables, for the columns of a table."""


@dataclass(frozen=True)
class SqlModel:
    """A model as one SQL expression of a table's columns: a probability, or with `positive=None` a number.

    >>> SqlModel("1 / (1 + EXP(4 - 0.08 * age))", target="income", positive=">50K")
    SqlModel(text='1 / (1 + EXP(4 - 0.08 * age))', target='income', positive='>50K')
    """

    text: str
    target: str
    positive: Scalar = None

    def scoring(self, table: Table) -> Scoring:
        """Return the model as public tables; if the expression is NULL, the score is one half or the middle."""
        if self.positive is None:
            return _number_scoring(self, table)
        listed = target_classes(table, self.target)
        if self.positive not in listed:
            raise InvalidParameter(f"'{self.positive}' is not among the declared keys of '{self.target}'")
        grid = _grid(table, self.text, (0, 1))
        ends = [
            1 / (1 + np.exp(-step / LOGIT_CELLS_OF_ONE))
            for step in range(-LOGIT_REACH * LOGIT_CELLS_OF_ONE, LOGIT_REACH * LOGIT_CELLS_OF_ONE + 1)
        ]
        inner = sorted({round(end * grid.height) for end in ends} - {0, grid.height})
        edges = (0, *inner, grid.height + 1)
        prediction = CodedColumn("prediction", grid.expression, measured=grid, edges=edges)
        middles = [(low + high) / 2 / grid.height for low, high in pairwise(edges)]
        logits = [log(p / (1 - p)) if 0 < p < 1 else LOGIT_REACH for p in middles]
        entries = [round(max(-LOGIT_REACH, min(LOGIT_REACH, each)) * (1 << SCORE_BITS)) for each in logits]
        outcome = CodedColumn(self.target, Column(self.target), listed=listed)
        classes = (*(int(each == self.positive) for each in listed), -1)
        return Scoring(
            columns=(prediction, outcome),
            scores=_scores_of_cells([*entries, 0], ClassTarget(1, classes)),
            classes=(tuple(each for each in listed if each != self.positive)[:1] or (None,)) + (self.positive,),
            words=f"the model {self.text[:60]}",
        )


def scoring_of(model: Any, table: Table, target: str | None = None) -> Scoring:
    """Return a model as the engine reads it, or refuse one that only its own code can read."""
    if isinstance(model, Scorable):
        return model.scoring(table)
    if hasattr(model, "coef_") and hasattr(model, "intercept_"):
        return linear_in_sql(model, target).scoring(table)
    raise QueryRefused(
        f"a {type(model).__name__} predicts by running its code, which is never run on protected rows: it could "
        "carry them out\nhint: fit a model of tacit.learning; or write it as SQL: SqlModel('1 / (1 + EXP(4 - 0.1 "
        "* age))',"
        " target='income', positive='>50K'); or score it on public rows, with its own score"
    )


def linear_in_sql(model: Any, target: str | None) -> SqlModel:
    """Return a fitted linear or logistic model of scikit-learn as an expression of its columns."""
    names = [str(each) for each in getattr(model, "feature_names_in_", ())]
    weights = np.atleast_2d(np.asarray(model.coef_, dtype=np.float64))
    if target is None or not names or weights.shape != (1, len(names)):
        raise QueryRefused(
            "a linear model needs a target, names of its columns and one row of weights"
            "\nhint: fit it on a frame with the table's columns, and name the target: score(model, target='income', …)"
        )
    start = float(np.ravel(model.intercept_)[0])
    terms = [f"{in_floats(weight)} * {quoted_name(name)}" for weight, name in zip(weights[0], names, strict=True)]
    total = " + ".join([in_floats(start), *terms])
    if not hasattr(model, "classes_"):
        return SqlModel(total, target)
    positive = model.classes_[1]
    return SqlModel(f"1 / (1 + EXP(-({total})))", target, positive.item() if hasattr(positive, "item") else positive)


def target_classes(table: Table, target: str) -> tuple[Scalar, ...]:
    """Return the public classes of a column: its declared keys, or false and true."""
    facts = table.session.declaration.columns.get(target)
    if facts is None:
        raise QueryRefused(f"there is no column '{target}' in '{table.session.declaration.name}'")
    if facts.keys is not None:
        return tuple(key for key in facts.keys if key is not None)
    if facts.type == "bool":
        return (False, True)
    raise QueryRefused(
        f"the classes of '{target}' are not public"
        f"\nhint: declare them: columns={{'{target}': {{'keys': ['no', 'yes']}}}}"
    )


def _number_scoring(model: SqlModel, table: Table) -> Scoring:
    outcome = _grid(table, model.target, None)
    between = outcome.between or (outcome.low * outcome.step, outcome.high * outcome.step)
    grid = _grid(table, model.text, between)
    cells = min(VALUE_CELLS, grid.height)
    edges = tuple(sorted({*(grid.height * at // cells for at in range(cells)), grid.height + 1}))
    prediction = CodedColumn("prediction", grid.expression, measured=grid, edges=edges)
    middles = [(low + high - 1) / 2 / grid.height for low, high in pairwise(edges)]
    entries = [round(each * (1 << SCORE_BITS)) for each in middles]
    scores = _scores_of_cells([*entries, 1 << (SCORE_BITS - 1)], ValueTarget(0))
    return Scoring(columns=(prediction,), scores=scores, values=(outcome,), words=f"the model {model.text[:60]}")


def _scores_of_cells(entries: Sequence[int], target: ClassTarget | ValueTarget) -> Scores:
    table: Integers = np.array([entries], dtype=np.int64)
    link = "logistic" if isinstance(target, ClassTarget) else "identity"
    tables = (table, None) if isinstance(target, ClassTarget) else (table,)
    return Scores(tables, np.zeros(1, dtype=np.int64), link, target, UNIT)  # type: ignore[arg-type]


def _grid(table: Table, text: str, between: Any) -> Measured:
    session = table.session
    query = Frame(session.declaration).query({"of": mean(text, between=between)})
    return measured_column(query.outputs[0].aggregate, session.declaration, steps_most=STEPS_MOST)


def in_floats(value: float) -> str:
    """Return a number as SQL computes with floats: written as a decimal, 16 digits times a column may be too many.

    >>> in_floats(-0.1171918148662402)
    '(-0.1171918148662402e0)'
    """
    text = repr(float(value))
    text = text if "e" in text else f"{text}e0"
    return f"({text})" if value < 0 else text


# --- the rows that a model has seen ---


def rows_used(table: Table) -> RowsUsed:
    """Return the rows that a model fitted on a table sees; a filter is left out, since it only makes them fewer."""
    session = table.session
    base = session.base or session
    return RowsUsed(
        table=base.declaration.name,
        table_id=f"{base.registered.id} {base.source_mark}",
        people=f"{base.ledger.id} {base.registered.cohort}",
        unit=base.declaration.unit_column,
        ranges=_ranges(session.relation),
    )


def freshness(fitted: RowsUsed | None, scored: RowsUsed) -> Freshness:
    """Return the relation between a model's rows and the rows to score it on.

    "fresh" only if no unit can be in both, by the hash alone. The rows of another table are unknown, unless it is
    about the same people: then they are taken as seen.
    """
    if fitted is None:
        return "unknown"
    if fitted.table_id != scored.table_id:
        return "seen" if fitted.people == scored.people else "other table"
    if fitted.unit != scored.unit:
        return "seen"
    apart = any(mine.is_apart_from(theirs) for mine in fitted.ranges for theirs in scored.ranges)
    return "fresh" if apart else "seen"


def _ranges(relation: Relation | None) -> tuple[UnitRange, ...]:
    """Return the ranges that every unit of a relation is in. A join's rows belong to the units of its left side."""
    if relation is None or isinstance(relation, TableRows):
        return ()
    if isinstance(relation, SomeUnits):
        own = UnitRange(relation.salt, relation.first, relation.end, relation.columns)
        return (own, *_ranges(relation.source))
    if isinstance(relation, Join):
        return _ranges(relation.left)
    source = getattr(relation, "source", None)
    return () if source is None else _ranges(source)
