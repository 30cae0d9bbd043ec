"""A model's score on protected rows: planned in words, charged, drawn once, and the same on a repeated request.

All that is read of rows is counts in cells of the score, by outcome, in two rounds of one batch: a tenth of the loss
finds cells that hold enough people, and the rest counts outcomes in them. The noisy integers are stored; the
measures are computed from them (`measures.py`).
"""

from dataclasses import dataclass, field
from fractions import Fraction

from tacit.asking import Table, noise_for
from tacit.errors import InvalidParameter
from tacit.learning.rounds import Rounds, train
from tacit.learning.scoring.measures import (
    CHANCE_EDGES,
    FINE_EDGES,
    Measure,
    MeasuredModel,
    cells_for,
    numbers,
    several_classes,
    two_classes,
)
from tacit.learning.scoring.scorable import Freshness, Scoring
from tacit.ledger import Receipt
from tacit.plan import UNIT, ChanceCells, CodedPlan, ErrorSums, ScoreCells
from tacit.privacy import ApproximateLoss, GaussianNoise, Number, decimal_meaning, show

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
