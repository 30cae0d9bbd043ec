"""`tune`: of several models, the one that does about best on people who were set aside, by one noisy choice.

Only which one leaves; how well each does stays secret. So the charge is one choice, however many models there are
(docs/proofs/holdout.md). Models that are not fitted yet are fitted on the training side first, for their own epsilon.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.accounting import NoiseLoss
from tacit.asking import events_of
from tacit.errors import InvalidParameter, QueryRefused
from tacit.learning.rounds import choose
from tacit.learning.scorable import Holdout, Scoring, freshness, rows_used, scoring_of
from tacit.ledger import Receipt
from tacit.numbers import Number, decimal_meaning, show
from tacit.plan import UNIT, BinMaps, ClassTarget, CodedColumn, CodedPlan, Measured, Merit, MeritName, Scores
from tacit.selection import NoisyMax

# The loss of a choice is given in such parts of a person.
PARTS_OF_ONE = 64
MEASURES: tuple[MeritName, ...] = ("accuracy", "log loss", "squared error", "absolute error")


@dataclass(frozen=True, repr=False)
class Tuned:
    """The chosen model. `short_by`: with 95 % confidence its merit is within this many people of the best's."""

    model: Any
    index: int
    measure: MeritName
    candidates: int
    short_by: float
    epsilon: Number
    receipt: Receipt
    free: bool

    def __repr__(self) -> str:
        paid = "free: asked before" if self.free else f"spent ε = {show(decimal_meaning(self.epsilon, name='epsilon'))}"
        return (
            f"model {self.index} of {self.candidates} (counted from 0), by {self.measure}: {self.model!r}\n"
            f"95 %: no other is better by more than {self.short_by:,.3g} people who are predicted right\n"
            f"{paid}; how well each does was not released: holdout.score(tuned.model, epsilon=...)"
        ).replace("\\\n", "\n")


def tune(
    models: Sequence[Any],
    holdout: Holdout,
    epsilon: Number,
    *,
    target: str | None = None,
    measure: MeritName | None = None,
    features: Sequence[str] | None = None,
    analyst: str | None = None,
    request_id: str | None = None,
) -> Tuned:
    """Return the model that does about best on the rest of a holdout, for one epsilon.

    `measure` is "accuracy" (the usual one for classes), "log loss", "squared error" (the usual one for numbers) or
    "absolute error". A model that is not fitted is fitted on holdout.training, with `target`, for its own epsilon.
    """
    if not isinstance(models, list | tuple) or len(models) < 2:
        raise InvalidParameter("models must be a list of two or more\nhint: tune([one, other], holdout, epsilon=0.5)")
    adds = holdout.rest.session.declaration.neighbours == "add-remove"
    mechanism = NoisyMax(epsilon=epsilon, sensitivity=UNIT, monotone=adds)
    if measure is not None and measure not in MEASURES:
        raise InvalidParameter(
            f"measure must be one of {', '.join(MEASURES)}\nhint: an AUC is not a sum over people, so no choice is made"
            " by it; score the chosen model for its AUC"
        )
    with _one_call(models, holdout, mechanism, target, features, analyst):
        fitted = [
            model.fit(holdout.training, target=target, features=features, analyst=analyst)
            if _is_unfitted(model)
            else model
            for model in models
        ]
        scorings = [scoring_of(each, holdout.rest, target) for each in fitted]
        usual = _usual_measure(scorings, holdout)
        chosen_by = measure or usual
        coded, judged = _coded_together(scorings, holdout, chosen_by)
        paid = choose(
            holdout.rest,
            coded,
            judged,
            mechanism,
            key=repr((chosen_by, [each.key for each in scorings])),
            words=f"which of {len(models)} models does best, by {chosen_by}",
            analyst=analyst,
            request_id=request_id,
        )
    short_by = _short_by(mechanism, len(models))
    return Tuned(fitted[paid.value], paid.value, chosen_by, len(models), short_by, epsilon, paid.receipt, paid.free)


def _usual_measure(scorings: Sequence[Scoring], holdout: Holdout) -> MeritName:
    """Return the usual measure of models; refuse those that saw the people they are judged on, and different kinds."""
    for place, each in enumerate(scorings):
        if freshness(each.fitted_on, rows_used(holdout.rest)) == "seen":
            raise QueryRefused(
                f"model {place} was fitted on people that it would be judged on, so it would seem better than it is"
                "\nhint: fit every model on holdout.training of this holdout"
            )
    kinds = {isinstance(each.scores.target, ClassTarget) for each in scorings}
    if len(kinds) > 1:
        raise InvalidParameter("some models predict classes and others numbers\nhint: tune one kind at a time")
    return "accuracy" if kinds == {True} else "squared error"


def _short_by(mechanism: NoisyMax, candidates: int) -> float:
    """Return how many people the choice may be short by, at 95 %: on a coarse grid, where tails are added up soon."""
    terms = mechanism.terms
    coarse = NoisyMax(epsilon=terms.epsilon, sensitivity=PARTS_OF_ONE, monotone=terms.monotone)
    return (float(coarse.error(candidates=candidates)) + 1) / PARTS_OF_ONE


def _one_call(
    models: Sequence[Any],
    holdout: Holdout,
    mechanism: NoisyMax,
    target: str | None,
    features: Sequence[str] | None,
    analyst: str | None,
) -> AbstractContextManager[None]:
    """Return the call that fits models, learns missing facts, and chooses: refused as a whole."""
    session = holdout.training.session
    session.ledger.require_may_ask(session.registered, session.asker(analyst))
    unfitted = [each for each in models if _is_unfitted(each)]
    if unfitted and target is None:
        raise InvalidParameter("models that are not fitted yet need a target\nhint: tune(models, ..., target='income')")
    plans = [each.plan(holdout.training, target=target, features=features) for each in unfitted]
    events = [event for plan in plans for event in plan.events]
    if not plans:
        return nullcontext()
    asks = [plan.known.ask for plan in plans if plan.known.ask is not None]
    wanted = {each.key: each for ask in asks for each in ask.wanted}
    return session.ledger.call(
        session.registered,
        events,
        beside=(mechanism.event, *events_of([*wanted.values()])),
        asked=NoiseLoss(
            sum(plan.asked.epsilon for plan in plans),
            sum(plan.asked.delta for plan in plans),
            sum(plan.asked.of_keys for plan in plans),
        ),
        question_key="tune",
        analyst=analyst,
        is_one_question=False,
    )


def _is_unfitted(model: Any) -> bool:
    return hasattr(model, "fit") and hasattr(model, "plan") and not hasattr(model, "fitted_on_")


def _coded_together(
    scorings: Sequence[Scoring], holdout: Holdout, measure: MeritName
) -> tuple[CodedPlan, list[tuple[BinMaps, Merit]]]:
    """Return one coding of all models' columns, and each model's merit in it."""
    columns: list[CodedColumn] = list(dict.fromkeys(column for each in scorings for column in each.columns))
    values: list[Measured] = list(dict.fromkeys(value for each in scorings for value in each.values))
    unit = holdout.rest.session.declaration.unit_column
    judged: list[tuple[BinMaps, Merit]] = []
    for each in scorings:
        places = [columns.index(column) for column in each.columns]
        tables: list[Any] = [None] * len(columns)
        for place, table in zip(places, each.scores.tables, strict=False):
            tables[place] = table
        tables += each.scores.tables[len(places) :]
        target: Any = each.scores.target
        if isinstance(target, ClassTarget):
            target = replace(target, column=places[target.column])
        else:
            target = replace(target, index=values.index(each.values[target.index]))
        pairs = [replace(pair, first=places[pair.first], second=places[pair.second]) for pair in each.pairs]
        scores = Scores(tuple(tables), np.array(each.scores.intercept), each.scores.link, target, each.scores.clip)
        judged.append(([*(None for _ in columns), *pairs], Merit(scores, measure)))
    return CodedPlan(unit, None, tuple(columns), tuple(values)), judged
