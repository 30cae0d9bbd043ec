"""A score: bounded sums, one charge, the same numbers when asked again, intervals that hold, and no code on rows."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.asking import Table
from tacit.engine import residuals
from tacit.learning import AdditiveClassifier, AdditiveRegressor, Holdout, LinearRegression, Rounds, SqlModel, scorable
from tacit.learning.measures import FINE_EDGES, cells_for, numbers, two_classes
from tacit.learning.scorable import Score, plan_score, score_model
from tacit.plan import UNIT, ChanceCells, CodedPlan, ErrorSums, Judgement, Merit, ScoreCells
from tests.learning.coded_people import ROWS, people, plan_of, scores_of
from tests.learning.sided_people import MODEL, NUMBERS, people_table, rows_of

# A score is within so many times its ± of 95 %, six deviations, but for a chance below 1e-8.
SURELY = 3.1
EDGES = (-9000, -3000, 0, 4000, 8000)
JUDGEMENTS: dict[str, Judgement] = {
    "cells": ScoreCells(scores_of(), EDGES, by_class=True),
    "cells of all": ScoreCells(scores_of(), EDGES, by_class=False),
    "chances": ChanceCells(scores_of("softmax"), (UNIT // 4, UNIT // 2, UNIT * 3 // 4)),
    "errors": ErrorSums(scores_of("identity"), UNIT),
    "small errors": ErrorSums(scores_of("identity"), UNIT // 5),
    "accuracy": Merit(scores_of(), "accuracy"),
    "log loss": Merit(scores_of("softmax"), "log loss"),
    "squared error": Merit(scores_of("identity"), "squared error"),
}


def sums_of(table: Table, judgement: Judgement, plan: CodedPlan | None = None) -> np.ndarray[Any, Any]:
    """Return the exact sums of a judgement: what only a test may read."""
    with table.session.engine.coded(plan or plan_of(table)) as rows:
        return rows.judged(judgement).values.astype(object)


def farthest_move(name: str) -> float:
    """Return how far removing one person moves a judgement's sums, as a part of what it is said to move at most."""
    judgement = JUDGEMENTS[name]
    whole = sums_of(people(), judgement)
    moves = []
    for person in (1, 2, 3, 4):
        kept = [index for index, each in enumerate(ROWS.column("person").to_pylist()) if each != person]
        moved = whole - sums_of(people(ROWS.take(kept)), judgement)
        moves.append(int((moved**2).sum()))
    return max(moves) / judgement.moves_squared


@pytest.mark.parametrize("name", JUDGEMENTS)
def test_one_unit_moves_a_judgement_by_no_more_than_it_says(name: str):
    assert 0 < farthest_move(name) <= 1


def test_a_row_that_weighs_as_much_as_a_unit_is_found(monkeypatch: pytest.MonkeyPatch):
    rows = pa.table({name: ROWS.column(name).take([0, 0, 0, 2]) for name in ROWS.column_names})

    def move() -> float:
        judgement = JUDGEMENTS["cells"]
        moved = sums_of(people(rows), judgement) - sums_of(people(rows.slice(3)), judgement)
        return float((moved**2).sum()) / judgement.moves_squared

    assert move() <= 1
    weighed = residuals.by_cell
    monkeypatch.setattr(
        residuals, "by_cell", lambda cells, weights, size: weighed(cells, np.sign(weights) * UNIT, size)
    )
    assert move() > 1


def test_cells_count_what_a_plain_program_counts():
    table = people_table()
    scoring = MODEL.scoring(table)
    counted = sums_of(
        table, ScoreCells(scoring.scores, EDGES, by_class=True), CodedPlan("person", None, scoring.columns)
    )
    rows = rows_of()
    age, bought = (rows.column(name).to_numpy(zero_copy_only=False) for name in ("age", "buys"))
    cells = np.searchsorted(EDGES, np.rint((0.08 * age - 4) * 4096), "right")
    expected = np.bincount(2 * cells + (bought == "yes"), minlength=12) * (UNIT // 2)
    # a probability is read to 1/32 of the log odds, so rows near an edge may fall on its other side: at most one in 16
    assert np.abs(counted.astype(float) - expected).sum() <= expected.sum() / 8
    assert counted.sum() == expected.sum()


def test_a_score_is_near_the_truth_and_its_interval_holds_it():
    rows = rows_of(6000, seed=3)
    table = people_table(rows)
    scoring = MODEL.scoring(table)
    score = score_model(table, scoring, plan_score(table, scoring, 8), "unknown")
    age, bought = rows.column("age").to_numpy(), np.array(rows.column("buys").to_pylist()) == "yes"
    chance = 1 / (1 + np.exp(4 - 0.08 * age))
    # seen people are all there are, so only noise and cells are in the way: half of the ± is 1 s.d. of luck, and more
    assert abs(score["accuracy"].value - ((chance >= 0.5) == bought).mean()) < SURELY * score["accuracy"].margin
    loss = -np.log(np.where(bought, chance, 1 - chance)).mean()
    assert abs(score["log loss"].value - loss) < SURELY * score["log loss"].margin
    assert abs(score["AUC"].value - auc_of(chance, bought)) < SURELY * score["AUC"].margin
    assert abs(score["calibration"].value - (bought.mean() - chance.mean())) < SURELY * score["calibration"].margin
    assert all(each.margin < 0.04 for each in score.measures.values())


def test_errors_of_numbers_are_near_the_truth():
    rows = rows_of(6000, seed=4)
    table = people_table(rows)
    scoring = NUMBERS.scoring(table)
    score = score_model(table, scoring, plan_score(table, scoring, 4, largest_error=40), "unknown")
    hours, age = (rows.column(name).to_numpy() for name in ("hours", "age"))
    error = hours - (10 + 0.5 * age)
    truth = {"RMSE": math.sqrt((error**2).mean()), "MAE": abs(error).mean(), "R²": 1 - (error**2).mean() / hours.var()}
    for name, value in truth.items():
        assert abs(score[name].value - value) < SURELY * score[name].margin, name
        assert score[name].margin < 0.5, name


def auc_of(scores: np.ndarray[Any, Any], positive: np.ndarray[Any, Any]) -> float:
    """Return the share of pairs in which the positive has the higher score, ties counted half."""
    order = np.unique(scores, return_inverse=True)[1]
    no, yes = np.bincount(order[~positive], minlength=order.max() + 1), np.bincount(order[positive])
    yes = np.pad(yes, (0, len(no) - len(yes)))
    return float(yes @ (np.cumsum(no) - no / 2) / (no.sum() * yes.sum()))


# --- one charge ---


def second_scores_are_the_first(holdout: Holdout) -> bool:
    """Return whether a score that is asked again is free and the same, also of a second holdout like the first."""
    first = holdout.score(MODEL, epsilon=1)
    left = holdout.table.left.epsilon
    others = [holdout.score(MODEL, epsilon=1), Holdout(holdout.table).score(MODEL, epsilon=1)]
    same = all(each.free and each.measures == first.measures and each.people == first.people for each in others)
    return same and holdout.table.left.epsilon == left


def test_a_score_is_charged_once_and_is_the_same_when_asked_again():
    holdout = Holdout(people_table())
    assert second_scores_are_the_first(holdout)
    for model, epsilon in ((MODEL, 2), (replace(MODEL, text="1 / (1 + EXP(4 - 0.07 * age))"), 1)):
        left = holdout.table.left.epsilon
        assert not holdout.score(model, epsilon=epsilon).free
        assert holdout.table.left.epsilon < left


def test_a_free_second_score_with_other_noise_is_found(monkeypatch: pytest.MonkeyPatch):
    charged = scorable.train

    def drawn_again(table: Table, coded: CodedPlan, events: Any, *, steps: Any, **more: Any) -> Any:
        paid = charged(table, coded, events, steps=steps, **more)
        if not paid.free:
            return paid
        with table.session.engine.coded(coded) as rows:
            return replace(paid, value=steps(Rounds(rows, events)))

    monkeypatch.setattr(scorable, "train", drawn_again)
    assert not second_scores_are_the_first(Holdout(people_table()))


def test_a_score_beyond_the_budget_is_refused_before_a_row_is_read(monkeypatch: pytest.MonkeyPatch):
    holdout = Holdout(people_table(budget=tacit.epsilon(1, delta=1e-6)))
    monkeypatch.setattr(type(holdout.rest.session.engine), "coded", lambda *_: pytest.fail("rows were read"))
    with pytest.raises(tacit.BudgetExceeded):
        holdout.score(MODEL, epsilon=2)


def test_a_plan_is_free_and_says_what_the_score_will_cost():
    holdout = Holdout(people_table())
    plan = holdout.plan(MODEL, epsilon=1)
    assert "accuracy, log loss, AUC" in str(plan)
    assert "ε = 1" in str(plan)
    assert holdout.table.left.epsilon == 8


def test_a_pure_budget_is_told_that_a_delta_is_needed():
    with pytest.raises(tacit.QueryRefused, match="needs a delta"):
        Holdout(people_table(budget=tacit.epsilon(1))).score(MODEL, epsilon=1)


# --- no code on rows ---


class Spy:
    """A model whose code would see rows."""

    def predict_proba(self, rows: Any) -> Any:
        pytest.fail("a model's own code was run")

    predict = predict_proba


def test_a_model_that_predicts_by_its_own_code_is_refused_with_the_way_out():
    holdout = Holdout(people_table())
    with pytest.raises(tacit.QueryRefused, match="never run on protected rows"):
        holdout.score(Spy(), epsilon=1)
    assert holdout.table.left.epsilon == 8


class Linear:
    """A fitted logistic regression as scikit-learn leaves it."""

    coef_ = np.array([[0.08]])
    intercept_ = np.array([-4.0])
    feature_names_in_ = np.array(["age"])
    classes_ = np.array(["no", "yes"])


def test_a_linear_model_of_scikit_learn_is_scored_as_sql():
    holdout = Holdout(people_table())
    mine: Score = holdout.score(Linear(), epsilon=1, target="buys")
    assert set(mine.measures) == {"accuracy", "log loss", "AUC", "calibration"} or mine.people.value
    with pytest.raises(tacit.QueryRefused, match="needs a target"):
        holdout.score(Linear(), epsilon=1)


def test_an_outcome_must_have_public_classes_or_a_public_range():
    table = people_table(columns={"age": {"between": (0, 99)}})
    with pytest.raises(tacit.QueryRefused, match="are not public"):
        Holdout(table).score(MODEL, epsilon=1)
    with pytest.raises(tacit.QueryRefused, match="range"):
        Holdout(table).score(SqlModel("age", target="hours"), epsilon=1)


# --- intervals ---


def covered(base: float, spread: float, *, people: int, sigma: float, runs: int = 100) -> dict[str, float]:
    """Return how often the interval of each measure holds what the model does on everybody; seeded, so always alike."""
    rng = np.random.default_rng(0)
    everybody = rng.normal(base, spread, 400_000)
    bought = rng.random(len(everybody)) < 1 / (1 + np.exp(-everybody))
    truth = {
        "accuracy": ((everybody >= 0) == bought).mean(),
        "log loss": np.logaddexp(0, np.where(bought, -everybody, everybody)).mean(),
        "AUC": auc_of(np.round(everybody, 3), bought),
    }
    held = dict.fromkeys(truth, 0)
    for _ in range(runs):
        chosen = rng.integers(0, len(everybody), people)
        scores, yes = np.round(everybody[chosen] * 4096).astype(int), bought[chosen]
        fine = np.bincount(np.searchsorted(FINE_EDGES, scores, "right"), minlength=len(FINE_EDGES) + 1)
        noisy_fine = np.rint((fine + rng.normal(0, 3 * sigma, len(fine))) * UNIT).astype(int).tolist()
        edges = cells_for(noisy_fine, sigma)
        cells = np.bincount(2 * np.searchsorted(edges, scores, "right") + yes, minlength=2 * len(edges) + 2)
        noisy_cells = np.rint((cells + rng.normal(0, sigma, len(cells))) * UNIT).astype(int).tolist()
        found = two_classes(edges, noisy_fine, noisy_cells, sigma, 0.95)
        for name, value in truth.items():
            held[name] += abs(found.measures[name].value - value) <= found.measures[name].margin
    return {name: times / runs for name, times in held.items()}


@pytest.mark.parametrize(("base", "spread"), [(-2.0, 2.5), (0.0, 0.5)])
@pytest.mark.parametrize("sigma", [3.0, 30.0])
def test_intervals_hold_noise_and_luck_together(base: float, spread: float, sigma: float):
    assert all(share >= 0.9 for share in covered(base, spread, people=6000, sigma=sigma).values())


def test_too_few_people_give_no_measure_rather_than_a_wild_one():
    assert numbers([UNIT, 0, 0, 0, 0, 0], 50.0, 0.95, width=10, largest=10).measures == {}
    edges = cells_for([0] * (len(FINE_EDGES) + 1), 50.0)
    assert two_classes(edges, [0] * (len(FINE_EDGES) + 1), [0] * (2 * len(edges) + 2), 50.0, 0.95).measures == {}


# --- models of this room ---


def test_an_additive_model_is_scored_by_the_engine_as_it_predicts():
    rows = rows_of(3000, seed=5)
    holdout = Holdout(people_table(rows), share=0.4)
    features = ["age", "sex"]
    model = AdditiveClassifier(epsilon=2, interactions=[("age", "sex")])
    model.fit(holdout.training, target="buys", features=features)
    score = holdout.score(model, epsilon=4)
    assert score.is_fresh
    source = holdout.rest.session.engine.source
    rest = source.fetch(source.table)
    chance, bought = model.predict_proba(rest)[:, 1], np.array(rest.column("buys").to_pylist()) == "yes"
    assert abs(score["accuracy"].value - ((chance > 0.5) == bought).mean()) < SURELY * score["accuracy"].margin
    assert abs(score["AUC"].value - auc_of(chance, bought)) < SURELY * score["AUC"].margin
    loss = -np.log(np.where(bought, chance, 1 - chance)).mean()
    assert abs(score["log loss"].value - loss) < SURELY * score["log loss"].margin
    whole = AdditiveClassifier(epsilon=1).fit(holdout.table, target="buys", features=features)
    with pytest.raises(tacit.QueryRefused, match="the whole of 'people'"):
        holdout.score(whole, epsilon=1)


def test_numbers_of_an_additive_model_are_scored_as_it_predicts():
    holdout = Holdout(people_table(rows_of(3000, seed=6)), share=0.4)
    model = AdditiveRegressor(epsilon=2).fit(holdout.training, target="hours", features=["age", "sex"])
    score = holdout.score(model, epsilon=4, largest_error=50)
    source = holdout.rest.session.engine.source
    rest = source.fetch(source.table)
    error = rest.column("hours").to_numpy() - model.predict(rest)
    assert abs(score["RMSE"].value - math.sqrt((error**2).mean())) < SURELY * score["RMSE"].margin
    assert abs(score["MAE"].value - abs(error).mean()) < SURELY * score["MAE"].margin


def test_a_linear_regression_is_scored_as_it_predicts():
    holdout = Holdout(people_table(rows_of(3000, seed=7)), share=0.4)
    model = LinearRegression(epsilon=2).fit(holdout.training, target="hours", features=["age", "sex"])
    score = holdout.score(model, epsilon=4, largest_error=50)
    assert score.is_fresh
    source = holdout.rest.session.engine.source
    rest = source.fetch(source.table)
    error = rest.column("hours").to_numpy() - model.predict(rest)
    assert abs(score["RMSE"].value - math.sqrt((error**2).mean())) < SURELY * score["RMSE"].margin


def test_a_share_that_noise_leaves_beyond_its_ends_is_told():
    edges = cells_for([0] * (len(FINE_EDGES) + 1), 2.0)
    counts = [[150 * UNIT, -3 * UNIT]] + [[0, 0]] * len(edges)
    score = two_classes(edges, [UNIT] * (len(FINE_EDGES) + 1), np.ravel(counts).tolist(), 2.0, 0.95)
    assert set(score.measures) == {"accuracy", "log loss", "calibration"}
    assert all(math.isfinite(each.value) and each.margin > 0 for each in score.measures.values())
