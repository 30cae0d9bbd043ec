"""Additive models: what they learn from a table, what they cost, what they refuse, and what they say of other rows."""

import pickle
from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import tacit
from tacit.learning import AdditiveClassifier, AdditiveRegressor
from tacit.learning.features import target_of
from tacit_gauntlet.stage.table import protected

PEOPLE = 4000
COLUMNS = {
    "age": {"between": (18, 90)},
    "pay": {"between": (0, 100_000)},
    "sex": {"keys": ["f", "m"]},
    "buys": {"keys": ["no", "yes"]},
    "visits": {"between": (0, 20)},
    "grade": {"keys": ["a", "b", "c"]},
}


def made_up(seed: int = 1) -> pa.Table:
    """People whose age and sex decide, nearly, whether they buy, how often they come and which grade they have."""
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 91, PEOPLE)
    sex = rng.choice(["f", "m"], PEOPLE)
    score = (age - 54) / 12 + 2 * (sex == "m") - 1
    visits = np.minimum(rng.poisson(np.exp(score / 3 + 1)), 20)
    return pa.table(
        {
            "person": np.arange(PEOPLE),
            "age": pa.array([None if each % 50 == 0 else int(each) for each in age]),
            "pay": np.where(rng.random(PEOPLE) < 0.5, 0, rng.integers(1, 100_000, PEOPLE)),
            "sex": sex,
            "is_new": rng.random(PEOPLE) < 0.5,
            "buys": np.where(rng.random(PEOPLE) < 1 / (1 + np.exp(-score)), "yes", "no"),
            "visits": visits,
            "grade": np.select([score < -1.5, score < 1.5], ["a", "b"], "c"),
        }
    )


ROWS = made_up()
FEATURES = ["age", "pay", "sex", "is_new"]


def table(**declared: object) -> tacit.Table:
    given = {"unit": "person", "columns": COLUMNS, "budget": tacit.epsilon(100, delta=1e-6)} | declared
    return protected(ROWS, **given)  # type: ignore[arg-type]


def test_a_classifier_learns_what_decides():
    model = AdditiveClassifier(epsilon=50).fit(table(), target="buys", features=FEATURES)
    right = (model.predict(ROWS) == np.array(ROWS["buys"])).mean()
    assert right > 0.75  # about 0.79 of them follow their score; the larger class is a half
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == FEATURES
    chances = model.predict_proba(ROWS)
    assert np.allclose(chances.sum(axis=1), 1)


def test_the_same_fit_again_is_free_and_the_same():
    asked = table(budget=tacit.epsilon(1, delta=1e-6))
    first = AdditiveClassifier(epsilon=1).fit(asked, target="buys", features=FEATURES)
    again = AdditiveClassifier(epsilon=1).fit(asked, target="buys", features=FEATURES)
    assert again.model_ == first.model_
    assert again.receipt_ == first.receipt_
    with pytest.raises(tacit.BudgetExceeded):
        AdditiveClassifier(epsilon=1, rounds=5).fit(asked, target="buys", features=FEATURES)


def test_a_plan_costs_nothing_and_says_what_a_fit_asks_for():
    asked = table(budget=tacit.epsilon(1, delta=1e-6))
    plan = AdditiveClassifier(epsilon=1).plan(asked, target="buys", features=FEATURES)
    assert "24 rounds" in str(plan)
    assert "pay" in str(plan)
    assert "this holds if classes are common" in str(plan)
    AdditiveClassifier(epsilon=1).fit(asked, target="buys", features=FEATURES)


def test_numbers_of_a_fraction_have_cells_that_end_at_round_ones():
    rows = pa.table({"who": [1, 2], "age": [20.0, None], "buys": ["no", "yes"]})
    declared = {"age": {"between": (18, 89)}, "buys": {"keys": ["no", "yes"]}}
    people = tacit.table(
        rows, name="few", unit="who", columns=declared, budget=tacit.epsilon(1, delta=1e-6), ledger=tacit.TRYOUT
    )
    plan = AdditiveClassifier(epsilon=1).plan
    (age,) = plan(people, target="buys", features=["age"]).features
    assert age.words([4]) == "20 to 20.5"
    assert age.words([4, 5, age.cells - 1]) == "20 to 21, missing"
    assert age.cells_of([20, 20.49, 20.5, 89, 100, 3]).tolist() == [4, 4, 5, age.cells - 2, age.cells - 2, 0]


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_a_regressor_predicts_numbers(loss):
    model = AdditiveRegressor(epsilon=50, loss=loss).fit(table(), target="visits", features=FEATURES)
    observed = np.array(ROWS["visits"], dtype=float)
    error = ((model.predict(ROWS) - observed) ** 2).mean()
    assert error < 0.6 * observed.var()


def test_several_classes_are_told_apart():
    model = AdditiveClassifier(epsilon=50).fit(table(), target="grade", features=FEATURES)
    assert model.predict_proba(ROWS).shape == (PEOPLE, 3)
    assert (model.predict(ROWS) == np.array(ROWS["grade"])).mean() > 0.8


def test_frames_and_dicts_of_rows_are_predicted_alike():
    model = AdditiveClassifier(epsilon=50).fit(table(), target="buys", features=FEATURES)
    some = ROWS.slice(0, 50)
    of_arrow = model.predict_proba(some)
    for rows in (some.to_pydict(), some.to_pandas(), pl.from_arrow(some)):
        assert np.array_equal(model.predict_proba(rows), of_arrow)


def test_values_that_nobody_declared_are_missing_ones():
    model = AdditiveClassifier(epsilon=50).fit(table(), target="buys", features=FEATURES)
    rows = {"age": [None, 40], "pay": [0, 0], "sex": [None, "x"], "is_new": [True, True]}
    unknown = {"age": [float("nan"), 40], "pay": [0, 0], "sex": ["y", None], "is_new": [True, True]}
    assert np.array_equal(model.predict_proba(rows), model.predict_proba(unknown))


def test_a_model_is_saved_without_its_table():
    model = AdditiveClassifier(epsilon=50).fit(table(), target="buys", features=FEATURES)
    read = pickle.loads(pickle.dumps(model))
    assert np.array_equal(read.predict_proba(ROWS), model.predict_proba(ROWS))


def test_texts_without_keys_and_numbers_without_ranges_are_refused_in_words():
    columns = {name: facts for name, facts in COLUMNS.items() if name not in ("sex", "pay")}
    with pytest.raises(tacit.QueryRefused, match=r"needs a public list of keys.*\n.*features="):
        AdditiveClassifier().plan(table(columns=columns), target="buys", features=["sex"], learn=False)
    with pytest.raises(tacit.QueryRefused, match=r"'pay' needs a public range"):
        AdditiveClassifier().plan(table(columns=columns), target="buys", features=["pay", "age"], learn=False)
    with pytest.raises(tacit.QueryRefused, match="needs a delta"):
        AdditiveClassifier().plan(table(budget=tacit.epsilon(1)), target="buys", features=FEATURES)


def test_classes_of_decimals_are_found_by_their_exact_values():
    rows = pa.table(
        {
            "id": list(range(22)),
            "age": [place % 10 for place in range(22)],
            "grade": pa.array([Decimal(place % 11) / 10 for place in range(22)], pa.decimal128(5, 1)),
        }
    )
    table = protected(rows, columns={"age": {"between": (0, 9)}, "grade": {"between": (0, 1)}})
    _, classes, _ = target_of(table, "grade", "classes")
    assert classes == tuple(place / 10 if place % 10 else place // 10 for place in range(11))
