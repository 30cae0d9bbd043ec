"""`tune`: one noisy choice among models, charged once, never by people a model has seen."""

import numpy as np
import pytest

import tacit
from tacit.exact import ExactIntegers
from tacit.learning import AdditiveClassifier, Holdout, SqlModel, rows_used, tune
from tacit.plan import UNIT
from tacit.release import release_choice
from tacit.selection import NoisyMax
from tests.learning.sided_people import MODEL, NUMBERS, Fitted, people_table, rows_of

WORSE = SqlModel("1 / (1 + EXP(0.08 * age - 4))", target="buys", positive="yes")


@pytest.mark.parametrize("measure", [None, "accuracy", "log loss"])
def test_the_better_model_is_chosen_for_one_charge_and_asked_again_for_none(measure):
    holdout = Holdout(people_table(rows_of(2000)), share=0.5)
    # of 1,000 people some 750 are predicted right, and some 250 by the worse one: noise of scale 1 does not reach it
    tuned = tune([WORSE, MODEL], holdout, 1, measure=measure)
    assert (tuned.index, tuned.model, tuned.free) == (1, MODEL, False)
    assert holdout.table.left.epsilon == 7
    assert tune([WORSE, MODEL], holdout, 1, measure=measure).free
    assert holdout.table.left.epsilon == 7
    assert "model 1 of 2" in str(tuned)


def test_numbers_are_chosen_by_their_errors():
    holdout = Holdout(people_table(rows_of(2000)), share=0.5)
    assert tune([NUMBERS, SqlModel("90 - age", target="hours")], holdout, 1).index == 0


def test_a_model_is_not_chosen_by_people_it_has_seen():
    table = people_table()
    holdout = Holdout(table)
    with pytest.raises(tacit.QueryRefused, match="would seem better than it is"):
        tune([MODEL, Fitted(MODEL, rows_used(table))], holdout, 1)
    assert table.left.epsilon == 8


def test_models_that_are_not_fitted_are_fitted_on_the_training_side_or_nothing_is_charged():
    table = people_table(rows_of(600))
    holdout = Holdout(table)
    models = [AdditiveClassifier(epsilon=1), AdditiveClassifier(epsilon=2)]
    tuned = tune(models, holdout, 1, target="buys", features=["age"])
    assert rows_used(holdout.training) == tuned.model.fitted_on_
    poor = Holdout(people_table(rows_of(600), budget=tacit.epsilon(2, delta=1e-6)))
    with pytest.raises(tacit.BudgetExceeded):
        tune([AdditiveClassifier(epsilon=1), AdditiveClassifier(epsilon=2)], poor, 1, target="buys", features=["age"])
    assert poor.table.left.epsilon == 2


def test_a_choice_that_hides_less_than_a_unit_moves_is_refused():
    sums = ExactIntegers(np.array([5, 9]), 2 * UNIT**2)
    assert release_choice(sums, NoisyMax(epsilon=1, sensitivity=UNIT)) in (0, 1)
    with pytest.raises(tacit.InvalidParameter, match="farther than the choice hides"):
        release_choice(sums, NoisyMax(epsilon=1, sensitivity=UNIT - 1))


def test_an_auc_is_no_sum_and_chooses_nothing():
    with pytest.raises(tacit.InvalidParameter, match="not a sum over people"):
        tune([MODEL, WORSE], Holdout(people_table()), 1, measure="AUC")
