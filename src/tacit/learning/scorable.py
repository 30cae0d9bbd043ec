"""The form of a model that can be scored on protected rows: public tables, and never code.

A model's own code would see rows, and could carry them out by an error, a file or its own state. So a model is scored
as `Scoring`: columns as cells and a table of whole numbers for each, which the engine adds up. A model of this room has
`scoring()`. `SqlModel` is any model that can be written as one SQL expression; linear models of scikit-learn are
written so by themselves. Other predictors are refused, with the way out.

Which rows a model has seen is a record that a fitted model carries: only public facts (the table, the salt and the
places of its units). So the record may be pickled and published with the model.

A model's score on protected rows: planned in words, charged, drawn once, and the same on a repeated request.

All that is read of rows is counts in cells of the score, by outcome, in two rounds of one batch: a tenth of the loss
finds cells that hold enough people, and the rest counts outcomes in them. The noisy integers are stored; the
measures are computed from them (`measures.py`).

`Holdout`: some units of a protected table are set aside, so that models are scored on people they have never seen.

Both sides are protected tables themselves: the same people, the same budget, questions in Python and SQL. A salted
hash of the unit decides the side, independent of the order of rows, and the same on every day and engine
(docs/proofs/holdout.md). A score is a release like any other: it is charged, noisy and has an error bar.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from math import log
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from tacit.asking import Table, noise_for
from tacit.errors import InvalidParameter, QueryRefused
from tacit.learning.measures import (
    CHANCE_EDGES,
    FINE_EDGES,
    Measure,
    MeasuredModel,
    cells_for,
    numbers,
    several_classes,
    two_classes,
)
from tacit.learning.rounds import Rounds, train
from tacit.ledger import Receipt
from tacit.numbers import Floats, Integers, Number, decimal_meaning, show
from tacit.plan import (
    SCORE_BITS,
    STEPS_MOST,
    UNIT,
    ChanceCells,
    ClassTarget,
    CodedColumn,
    CodedPlan,
    ErrorSums,
    Measured,
    PairedBins,
    ScoreCells,
    Scores,
    ValueTarget,
    measured_column,
)
from tacit.privacy import ApproximateLoss, GaussianNoise
from tacit.query import (
    PLACES,
    Column,
    Frame,
    Join,
    Relation,
    Scalar,
    SomeUnits,
    TableRows,
    mean,
    quoted_name,
    relation_mark,
)

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
        "* age))', target='income', positive='>50K'); or score it on public rows, with its own score"
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


FOR_CELLS = Fraction(1, 10)
CONFIDENCE = 0.95
FRESH_WORDS: dict[Freshness, str] = {
    "fresh": "fresh: the people scored on were not used to fit the model",
    "seen": "NOT FRESH: fitted on rows it is scored on, so the score is too good",
    "other table": "fitted on another table: whether these people were in it is not known here",
    "unknown": "the rows of the fit are not known here: if any of these people were in it, the score is too good",
}

Released = dict[str, list[int]]


@dataclass(frozen=True)
class ScorePlan:
    """The cost of a score and the error of its counts, before any row is read."""

    measures: tuple[str, ...]
    events: tuple[GaussianNoise, ...]
    asked: ApproximateLoss
    coded: CodedPlan = field(repr=False)
    largest: int | None  # the largest error that counts, of a number

    @property
    def sigma(self) -> float:
        """The spread of the noise of each count, in people."""
        return float(self.events[-1].sigma) / UNIT

    def __repr__(self) -> str:
        return "\n".join(
            [
                f"Score: {', '.join(self.measures)}; the plan is free and reads no row.",
                f"Loss: {self.asked}, charged once for all measures; asked again it is free and the same.",
                f"Noise: each count of people in a cell is off by about {self.sigma:.3g} (Gaussian); people with "
                "more rows count once.",
            ]
        )


@dataclass(frozen=True, repr=False, kw_only=True)
class Score(MeasuredModel):
    """How well a model does on people of a holdout; every measure has its ±, for noise and luck together."""

    freshness: Freshness
    receipt: Receipt
    free: bool
    loss: ApproximateLoss

    def __getitem__(self, name: str) -> Measure:
        """Return one measure by its name, such as score["AUC"]."""
        if name not in self.measures:
            raise KeyError(f"this score has {', '.join(self.measures) or 'no measures'}")
        return self.measures[name]

    @property
    def is_fresh(self) -> bool:
        """Whether the people scored on are certainly not among those the model was fitted on."""
        return self.freshness == "fresh"

    def __repr__(self) -> str:
        width = max(map(len, [*self.measures, "people"]))
        lines = [f" {name.ljust(width)}   {_with_margin(each)}" for name, each in self.measures.items()]
        if not self.measures:
            lines = [" too few people for this epsilon: the noise is as large as the measured value"]
        lines.append(f" {'people'.ljust(width)}   {self.people.value:,.0f} ± {self.people.margin:,.0f}")
        paid = "free: asked before" if self.free else f"spent {self.loss}"
        return "\n".join(
            [*lines, "", FRESH_WORDS[self.freshness], f"{paid}; ± {CONFIDENCE:.0%}, noise and luck together"]
        )


def plan_score(
    table: Table,
    scoring: Scoring,
    epsilon: Number,
    delta: Number | None = None,
    *,
    where: str | None = None,
    largest_error: Number | None = None,
) -> ScorePlan:
    """Return what a score would ask of rows and cost; nothing is read."""
    condition = None if where is None else table.where(where).frame.where
    coded = CodedPlan(table.session.declaration.unit_column, condition, scoring.columns, scoring.values)
    scores, largest = scoring.scores, None if scoring.classes else _largest_error(scoring, largest_error)
    if scores.link == "logistic":
        wanted = [(UNIT**2, FOR_CELLS), (UNIT**2, 1 - FOR_CELLS)]
        measures: tuple[str, ...] = ("accuracy", "log loss", "AUC", "calibration")
    elif scores.link == "softmax":
        wanted = [(ChanceCells(scores, CHANCE_EDGES).moves_squared, Fraction(1))]
        measures = ("accuracy", "log loss", "calibration")
    else:
        wanted = [(ErrorSums(scores, largest or UNIT).moves_squared, Fraction(1))]
        measures = ("RMSE", "MAE", "R²")
    events, asked = noise_for(table.session, epsilon, delta, wanted)
    return ScorePlan(measures, events, asked, coded, largest)


def score_model(
    table: Table,
    scoring: Scoring,
    plan: ScorePlan,
    is_fresh: Freshness,
    *,
    analyst: str | None = None,
    request_id: str | None = None,
) -> Score:
    """Return a model's score on a table's rows: charged first, then read."""
    paid = train(
        table,
        plan.coded,
        plan.events,
        asked=plan.asked,
        key=f"score {plan.largest} {scoring.key}",
        words=f"a score of {scoring.words}: {', '.join(plan.measures)}",
        steps=lambda rounds: _noisy_counts(rounds, scoring, plan.sigma, plan.largest),
        analyst=analyst,
        request_id=request_id,
    )
    found = _measured(paid.value, scoring, plan.sigma, plan.largest)
    return Score(**vars(found), freshness=is_fresh, receipt=paid.receipt, free=paid.free, loss=plan.asked)


def _noisy_counts(rounds: Rounds, scoring: Scoring, sigma: float, largest: int | None) -> Released:
    scores = scoring.scores
    if scoring.pairs:
        rounds.use_bins([*(None for _ in scoring.columns), *scoring.pairs])
    if scores.link == "softmax":
        return {"counts": rounds.judged(ChanceCells(scores, CHANCE_EDGES)).tolist()}
    if scores.link != "logistic":
        return {"sums": rounds.judged(ErrorSums(scores, largest or UNIT)).tolist()}
    noisy_fine = rounds.judged(ScoreCells(scores, FINE_EDGES, by_class=False)).tolist()
    edges = cells_for(noisy_fine, sigma)
    noisy_cells = rounds.judged(ScoreCells(scores, edges, by_class=True)).tolist()
    return {"edges": list(edges), "fine": noisy_fine, "cells": noisy_cells}


def _measured(noisy: Released, scoring: Scoring, sigma: float, largest: int | None) -> MeasuredModel:
    if scoring.scores.link == "softmax":
        return several_classes(noisy["counts"], sigma, CONFIDENCE)
    if scoring.scores.link == "logistic":
        return two_classes(noisy["edges"], noisy["fine"], noisy["cells"], sigma, CONFIDENCE, chances=scoring.chances)
    outcome = scoring.values[0]
    width = float(outcome.height * outcome.step)
    return numbers(noisy["sums"], sigma, CONFIDENCE, width=width, largest=width * (largest or UNIT) / UNIT)


def _largest_error(scoring: Scoring, given: Number | None) -> int:
    """Return the largest error that counts, in steps of UNIT, which is the outcome's whole range."""
    if given is None:
        return UNIT
    outcome = scoring.values[0]
    width = outcome.height * outcome.step
    found = decimal_meaning(given, name="largest_error")
    if not 0 < found <= width:
        raise InvalidParameter(
            f"largest_error must be above 0 and at most {show(width)}, the range of the outcome\nhint: leave it out"
        )
    return max(1, int(found * UNIT / width))


def _with_margin(measure: Measure) -> str:
    """Return a number and its ±, with the digits that the ± supports."""
    exponent = int(f"{measure.margin:.1e}".partition("e")[2])
    digits = 0 if measure.margin <= 0 else max(0, min(6, 1 - exponent))
    return f"{measure.value:,.{digits}f} ± {measure.margin:,.{digits}f}"


class Holdout:
    """A protected table in two: `training`, to learn from, and `rest`, to score on.

    `share` of the units, about, are in the rest. The same table, share and seed give the same two sides for ever; a
    larger share only moves units from training to the rest.

    >>> holdout = Holdout(people, share=0.2)                          # doctest: +SKIP
    >>> model = AdditiveClassifier(epsilon=1).fit(holdout.training, target="income")  # doctest: +SKIP
    >>> holdout.score(model, epsilon=0.5)                             # doctest: +SKIP
    """

    def __init__(self, table: Table, share: Number = 0.2, *, seed: int | str = 0) -> None:
        self.share: Fraction = decimal_meaning(share, name="share")
        self.table: Table = _whole_table(table)
        self.seed = seed
        cut = int(self.share * PLACES)
        if not 0 < cut < PLACES:
            raise InvalidParameter(
                "share must be between 0 and 1: the part of the units that is set aside\nhint: share=0.2"
            )
        self.training: Table = units_between(table, f"holdout {seed}", cut, PLACES)
        self.rest: Table = units_between(table, f"holdout {seed}", 0, cut)

    def __repr__(self) -> str:
        name = self.table.session.declaration.name
        return f"<holdout of '{name}': about {float(self.share):.4g} of its units are set aside, seed {self.seed!r}>"

    def plan(self, model: Any, epsilon: Number, delta: Number | None = None, **options: Any) -> ScorePlan:
        """Return what a score would cost and how far off it may be, for free."""
        return plan_score(self.rest, scoring_of(model, self.rest), epsilon, delta, **options)

    def score(
        self,
        model: Any,
        epsilon: Number,
        delta: Number | None = None,
        *,
        target: str | None = None,
        where: str | None = None,
        largest_error: Number | None = None,
        even_if_seen: bool = False,
        analyst: str | None = None,
        request_id: str | None = None,
    ) -> Score:
        """Return how well a model does on the people who were set aside, each measure with its ±: one charge.

        Of two classes: accuracy, log loss, AUC and calibration; of several: all but AUC; of numbers: RMSE, MAE and R².
        A model that has seen these people is refused; with `even_if_seen` it is scored, and the score says so.
        `largest_error` is for numbers: a larger error counts as this one, and the others are measured better.
        """
        scoring = scoring_of(model, self.rest, target)
        is_fresh = self._freshness(scoring, even_if_seen=even_if_seen)
        plan = plan_score(self.rest, scoring, epsilon, delta, where=where, largest_error=largest_error)
        return score_model(self.rest, scoring, plan, is_fresh, analyst=analyst, request_id=request_id)

    def _freshness(self, scoring: Scoring, *, even_if_seen: bool) -> Freshness:
        found = freshness(scoring.fitted_on, rows_used(self.rest))
        if found != "seen" or even_if_seen or scoring.fitted_on is None:
            return found
        raise QueryRefused(
            f"this model was fitted on {scoring.fitted_on.words}, and would be scored on people it was fitted on: the"
            " score would be too good"
            "\nhint: fit it on holdout.training of this holdout; or score it all the same, even_if_seen=True, and"
            " the score says that it is not fresh"
        )


def units_between(table: Table, purpose: str, first: int, end: int, **dealt: Any) -> Table:
    """Return the units of a table with a place in a range, as a table; they may be dealt to hands.

    The public salt is the same on every day, and another for each purpose and each relation of the table. If rows are
    units, all columns that can be read identify a row, in one order.
    """
    session, declaration = table.session, table.session.declaration
    columns: tuple[str, ...] = ()
    if declaration.unit_column is None:
        columns = tuple(sorted(name for name, facts in declaration.columns.items() if facts.type != "other"))
        if not columns:
            raise QueryRefused("no column of this table can be read\nhint: declare their types, columns={...}")
    mark = "" if session.relation is None else relation_mark(session.relation)
    salt = f"{purpose}\n{declaration.name}\n{declaration.version}\n{mark}"
    source = session.relation or TableRows(declaration.name)
    about = session.about(SomeUnits(source, salt, first, end, columns, **dealt))
    return Table(about, Frame(about.declaration))


def _whole_table(table: object) -> Table:
    """Return a local and whole table, or refuse with the right way."""
    if not isinstance(table, Table):
        raise InvalidParameter(
            f"a holdout is made of a protected table, not of a {type(table).__name__}"
            "\nhint: Holdout(tacit.table(...)); a table on a server is scored there"
        )
    if table.frame != Frame(table.session.declaration):
        raise QueryRefused(
            "a holdout is made of a whole table\nhint: Holdout(table) first, and filters in the question or the fit"
        )
    return table
