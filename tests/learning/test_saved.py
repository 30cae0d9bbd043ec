"""A saved model loads again equal, says on whom it was fitted, and a file that is not one is refused in our words."""

import json

import numpy as np
import pytest

import tacit
from tacit.learning import PCA, AdditiveClassifier, AdditiveRegressor, LinearRegression, load, model_text
from tacit.learning.model_file import model_from
from tests.learning.test_additive import FEATURES, ROWS, table


@pytest.mark.parametrize(
    ("model", "target"),
    [
        (AdditiveClassifier(1, interactions=[("age", "sex")]), "buys"),
        (AdditiveClassifier(1), "grade"),
        (AdditiveRegressor(1, loss="poisson", monotone={"age": 1}), "visits"),
        (LinearRegression(1), "visits"),
    ],
    ids=["pair", "classes", "counts", "linear"],
)
def test_a_model_loads_again_equal(model, target, tmp_path):
    model.fit(table(), target=target, features=FEATURES).save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    for word in (type(model).__name__, *FEATURES, f"entry {model.receipt_.number} "):
        assert word in model.card()
        assert word in again.card()
    assert model_text(again) == model_text(model)
    assert np.array_equal(again.predict(ROWS).astype(str), model.predict(ROWS).astype(str))
    assert again.receipt_ == model.receipt_
    assert again.fitted_on_ == model.fitted_on_
    assert type(again) is type(model)


def test_components_load_again_equal(tmp_path):
    model = PCA(2, epsilon=1).fit(table(), features=["age", "pay"])
    model.save(tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert model_text(again) == model_text(model)
    assert np.array_equal(again.transform(ROWS), model.transform(ROWS), equal_nan=True)


def test_a_model_that_was_not_fitted_is_not_saved(tmp_path):
    with pytest.raises(tacit.InvalidParameter, match="not fitted yet"):
        AdditiveClassifier(1).save(tmp_path / "model.json")


@pytest.mark.parametrize("change", ["bins", "effects", "listed", "field"])
def test_a_changed_file_is_refused_in_our_words(change):
    record = json.loads(model_text(AdditiveClassifier(1).fit(table(), target="buys", features=FEATURES)))
    shape = record["model"]["shapes"]["shapes"][0]
    if change == "bins":
        shape["bins"][0] = 10**6
    elif change == "effects":
        shape["effects"][0].pop()
    elif change == "listed":
        record["model"]["features"][2]["column"]["listed"] = [{"$decimal": "x"}]
    else:
        record["model"]["surprise"] = 1
    with pytest.raises(tacit.InvalidParameter):
        model_from(json.dumps(record))
