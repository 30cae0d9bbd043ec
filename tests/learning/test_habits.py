"""scikit-learn's habits: its own checks of estimators, clones, pipelines, names, arrays, and what is refused."""

import pickle
import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

import tacit
from tacit.learning import AdditiveClassifier, AdditiveRegressor
from tacit.learning.shapes import start_of
from tacit.plan import ClassTarget, ValueTarget

# The checks are about shapes, types and names: at this epsilon there is no noise to speak of.
HUGE = 10**18
TOLD = {"ranges": (-10, 10), "budget": tacit.epsilon(1000 * HUGE, delta=1e-6), "ledger": tacit.TRYOUT}
# What a private estimator must not do, and why.
A_ROW_WOULD_TELL = "an error that depends on rows, or on how many there are, would tell of them"
DECLARED = "classes are declared, and never read off y"
REFUSED = {
    "check_supervised_y_no_nan": A_ROW_WOULD_TELL,
    "check_estimators_empty_data_messages": A_ROW_WOULD_TELL,
}
REFUSED_BY_CLASSIFIERS = {
    **REFUSED,
    "check_classifiers_classes": DECLARED,
    "check_classifiers_train": DECLARED,
    "check_classifiers_regression_target": DECLARED,
    "check_decision_proba_consistency": DECLARED,
}


def checked(estimator, refused):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, expected_failed_checks=refused, on_skip=None)
    assert {each["check_name"] for each in results if each["status"] == "xfail"} == set(refused)
    return [each for each in results if each["status"] == "passed"]


def test_a_classifier_passes_the_checks_of_scikit_learn():
    model = AdditiveClassifier(HUGE, rounds=1, keys={"y": [0, 1, 2]}, **TOLD)
    assert len(checked(model, REFUSED_BY_CLASSIFIERS)) > 40


def test_a_regressor_passes_the_checks_of_scikit_learn():
    assert len(checked(AdditiveRegressor(HUGE, rounds=1, **TOLD), REFUSED)) > 40


class KnowsTheClasses(AdditiveClassifier):
    """The checks' rows are public, so that their curator may look which classes there are."""

    def fit(self, rows, y):
        self.keys = {"y": np.unique(np.asarray(y)).tolist()}
        return super().fit(rows, y)


@pytest.mark.parametrize("check", ["check_classifiers_train", "check_decision_proba_consistency"])
def test_a_classifier_that_is_told_the_classes_passes_these_too(check):
    getattr(estimator_checks, check)("KnowsTheClasses", KnowsTheClasses(HUGE, rounds=1, **TOLD))


# --- what arrays and frames need ---

AGES = np.arange(200) % 60 + 20
ROWS = pd.DataFrame({"age": AGES, "sex": np.where(np.arange(200) % 2, "f", "m"), "who": np.arange(200) // 4})
BUYS = pd.Series(np.where(AGES > 50, "yes", "no"), name="buys")
PUBLIC = {"ranges": {"age": (0, 100)}, "keys": {"sex": ["f", "m"], "buys": ["no", "yes"]}}


def told(ledger=tacit.TRYOUT, epsilon=1, budget=None, **more):
    budget = tacit.epsilon(2, delta=1e-6) if budget is None else budget
    return AdditiveClassifier(epsilon, budget=budget, ledger=ledger, **PUBLIC, **more)


@pytest.mark.parametrize("missing", ["budget", "ledger", "public"])
def test_rows_are_refused_without_public_facts_a_budget_and_a_ledger(missing):
    given = {"budget": tacit.epsilon(2, delta=1e-6), "ledger": tacit.TRYOUT, **PUBLIC}
    for name in ("ranges", "keys") if missing == "public" else (missing,):
        del given[name]
    with pytest.raises(ValueError, match=rf"without .*{missing}.*\nhint: .*ledger='study.db'"):
        AdditiveClassifier(**given).fit(ROWS[["age", "sex"]], BUYS)


def test_a_frame_is_fitted_with_what_is_declared_of_it():
    model = told(epsilon=50, budget=tacit.epsilon(101, delta=1e-6)).fit(ROWS[["age", "sex"]], BUYS)
    assert model.feature_names_in_.tolist() == ["age", "sex"]
    assert model.classes_.tolist() == ["no", "yes"]
    assert not model.receipt_.durable
    chances = model.predict_proba(ROWS)
    for same in (pl.from_pandas(ROWS), ROWS.to_dict("list"), ROWS[["sex", "age"]]):
        assert np.array_equal(model.predict_proba(same), chances)


def test_a_column_of_a_frame_may_be_the_unit_and_another_the_target():
    frame = ROWS.assign(buys=BUYS)
    model = told(epsilon=50, budget=tacit.epsilon(102, delta=1e-6), unit="who").fit(frame, target="buys")
    assert model.feature_names_in_.tolist() == ["age", "sex"]
    assert model.n_features_in_ == 2


def test_an_undeclared_column_is_refused():
    with pytest.raises(tacit.QueryRefused, match="'who' needs a public range"):
        told(budget=tacit.epsilon(3, delta=1e-6)).fit(ROWS, BUYS)
    with pytest.raises(ValueError, match=r"keys names 'sexx', which is not a column\n?.*'sex'"):
        AdditiveClassifier(keys={"sexx": ["f"]}, budget=tacit.epsilon(1, delta=1e-6), ledger=tacit.TRYOUT).fit(
            ROWS[["age", "sex"]], BUYS
        )


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (AGES, "Expected 2D array"),
        (np.zeros((200, 0)), r"0 feature\(s\)"),
        (np.zeros((200, 2), dtype=complex), "Complex data"),
        (sparse.csr_array(np.zeros((200, 2))), "sparse"),
        (np.zeros((199, 2)), "inconsistent"),
    ],
)
def test_rows_of_other_shapes_are_refused(rows, words):
    with pytest.raises(ValueError, match=words):
        told().fit(rows, BUYS)


def test_cells_that_are_no_numbers_are_missing_and_tell_nothing():
    odd = np.array([[20, "f"], ["x", "m"], [None, object()], [float("inf"), 3]], dtype=object)
    budget = tacit.epsilon(4, delta=1e-6)
    model = AdditiveClassifier(ranges={"x0": (0, 100)}, keys={"x1": ["f", "m"], "y": [0, 1]}, budget=budget,
                               ledger=tacit.TRYOUT).fit(odd, [0, 1, float("nan"), 7])  # fmt: skip
    assert model.predict_proba(odd[:1]).shape == (1, 2)


# --- clones spend from one budget, and nobody spends in folds ---


@pytest.mark.parametrize("place", ["file", "memory"])
def test_a_clone_spends_from_the_same_budget_and_is_refused_at_its_end(place, tmp_path):
    ledger = str(tmp_path / "study.db") if place == "file" else tacit.TRYOUT
    first = told(ledger, budget=tacit.epsilon(1, delta=9e-7)).fit(ROWS[["age", "sex"]], BUYS)
    with pytest.raises(tacit.BudgetExceeded):
        clone(first).fit(ROWS[["age", "sex"]], BUYS)
    with pytest.raises(tacit.BudgetExceeded):  # other parameters of the model are no other budget
        clone(first).set_params(rounds=3).fit(ROWS[["age", "sex"]].head(50), BUYS.head(50))


def test_a_clone_has_the_parameters_and_nothing_that_was_fitted():
    model = told(epsilon=0.5, budget=tacit.epsilon(5, delta=1e-6)).fit(ROWS[["age", "sex"]], BUYS)
    copy = clone(model)
    assert repr(copy) == repr(model)
    assert copy.get_params().keys() == model.get_params().keys()
    with pytest.raises(NotFittedError, match="not fitted yet"):
        copy.predict(ROWS)
    with pytest.raises(tacit.InvalidParameter, match="not fitted yet"):
        copy.predict(ROWS)


@pytest.mark.parametrize("folds", ["search", "scores"])
def test_model_selection_is_refused_before_anything_is_charged(folds, tmp_path):
    model = told(str(tmp_path / "study.db"))
    asked = {
        "search": GridSearchCV(model, {"rounds": [2, 4]}, scoring="accuracy", error_score="raise").fit,
        "scores": lambda rows, y: cross_val_score(model, rows, y, scoring="accuracy", error_score="raise"),
    }
    with pytest.raises(tacit.TacitError, match=r"model selection.*\nhint: tacit.learning.tune"):
        asked[folds](ROWS[["age", "sex"]], BUYS)
    assert not (tmp_path / "study.db").exists()


# --- pipelines, pickles, names ---


def in_tens(rows):
    return rows.assign(age=rows["age"] // 10 * 10)


def test_a_pipeline_ends_in_a_private_model():
    budget = tacit.epsilon(60, delta=1e-6)
    pipeline = make_pipeline(FunctionTransformer(in_tens), told(epsilon=50, budget=budget))
    pipeline.fit(ROWS[["age", "sex"]], BUYS)
    assert pipeline.predict(ROWS[["age", "sex"]]).shape == (200,)
    model = pickle.loads(pickle.dumps(pipeline[-1]))
    assert np.array_equal(model.predict_proba(ROWS), pipeline[-1].predict_proba(ROWS))


def test_a_pipeline_takes_a_protected_table():
    table = tacit.table(
        ROWS.assign(buys=BUYS),
        unit="who",
        columns={"age": {"between": (0, 100)}, "sex": {"keys": ["f", "m"]}, "buys": {"keys": ["no", "yes"]}},
        budget=tacit.epsilon(2, delta=1e-6),
        ledger=tacit.TRYOUT,
    )
    pipeline = Pipeline([("model", AdditiveClassifier(1))]).fit(table, model__target="buys")
    assert pipeline.feature_names_in_.tolist() == ["age", "sex"]


def test_parameters_are_set_by_name_and_shown():
    model = AdditiveRegressor(2).set_params(loss="poisson", rounds=4)
    assert repr(model) == "AdditiveRegressor(epsilon=2, rounds=4, loss='poisson')"
    with pytest.raises(tacit.InvalidParameter, match="no parameter 'round'"):
        model.set_params(round=3)


def test_scikit_learn_is_imported_only_where_it_asks():
    code = "import sys, tacit, tacit.learning as l; l.AdditiveClassifier(1); assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_halves_of_two_classes_have_a_curvature_to_divide_by():
    """At a half, with residuals clipped to a half, nothing is cut; a zero here was a warning that depended on noise."""
    start = start_of(np.array([30.0, 30.0, 0.0]), "logistic", ClassTarget(0, (0, 1, -1)), (), 0.5, 60.0, 1.0)
    assert start.curvature[0] > 0.05


def test_noise_in_empty_cells_does_not_make_a_narrow_target_look_wide():
    """Counts above 0 taken as they are would put thousands of people all over an empty range: a scale above 0.15."""
    middles = (np.arange(64) + 0.5) / 64
    people = 5_000 * np.exp(-np.arange(64) / 1.5) / np.exp(-np.arange(64) / 1.5).sum()
    for seed in range(20):
        noisy = np.append(people, 0.0) + np.random.default_rng(seed).normal(0.0, 78.0, 65)
        start = start_of(noisy, "identity", ValueTarget(0), tuple(middles), 0.5, 5_000.0, 78.0)
        assert 0.01 < start.scale < 0.05  # 0.024 without noise
        assert abs(start.intercept[0] - 0.025) < 0.02
