"""`LinearRegression`: charged once, least squares where noise is small, and intervals that hold at every epsilon."""

import pickle
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tacit
from tacit.learning import LinearRegression, Rounds
from tacit.learning.linear_fit import clear_terms, gram_of, inference, target_of
from tacit.plan import UNIT, Moments
from tacit_gauntlet.stage.table import protected
from tests.learning.linear_people import COLUMNS, drawn, frame, inferred, placed, together

BUDGET = tacit.epsilon(10, delta=1e-6)


def table(rows: pa.Table | None = None, **declared: Any) -> Any:
    usual = {"unit": "person", "columns": COLUMNS, "budget": BUDGET, "rows_per_unit": None}
    return protected(frame(3000) if rows is None else rows, **(usual | declared))


@pytest.fixture(scope="module")
def fitted():
    return LinearRegression(epsilon=5).fit(table(), target="hours")


def weighted_least_squares(rows: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Return least squares where each person counts once, compared with women in ward A, and what it predicts."""
    age, score = (rows[name].to_numpy().astype(float) for name in ("age", "score"))
    sex, ward = (rows[name].to_numpy(zero_copy_only=False) for name in ("sex", "ward"))
    features = np.column_stack([np.ones(len(age)), age, score, sex == "m", ward == "B", ward == "C", ward == "D"])
    person = rows["person"].to_numpy()
    weight = np.sqrt(1 / np.bincount(person)[person])
    solved = np.linalg.lstsq(features * weight[:, None], rows["hours"].to_numpy() * weight, rcond=None)[0]
    return solved, features @ solved


def test_a_model_is_least_squares_of_people_who_count_once_where_noise_is_small():
    rows = frame(3000)
    model = LinearRegression(epsilon=10**5).fit(table(rows, budget=tacit.epsilon(10**5, delta=1e-6)), target="hours")
    wanted, predicted = weighted_least_squares(rows)
    found = {each["term"]: each for each in model.summary().to_dicts()}
    # noise is below a thousandth of a person; numbers are rounded to 1/4096 of half their range
    assert found["age"]["coefficient"] == pytest.approx(wanted[1], abs=1e-3)
    assert found["score"]["coefficient"] == pytest.approx(wanted[2], abs=1e-2)
    assert found["age"]["noise"] < 0.01
    # what predicts is drawn to 0 by the sample's own error, by a tenth of an hour at most
    assert np.abs(model.predict(rows) - predicted).max() < 0.1


@pytest.mark.parametrize("units", [-7, 0, 1])
def test_a_noisy_number_of_units_below_one_leaves_every_variance_positive(units):
    sizes = [2, 3]
    moments, with_target = (Moments((0, 1), (0, 1), (0, 1, 2), target=target) for target in (None, 2))
    products, crossed = (
        np.zeros(sum(block.length(sizes) for block in each.blocks), np.int64) for each in (moments, with_target)
    )
    products[0] = units * UNIT
    gram = gram_of(products, moments, sizes, UNIT)
    found = inference(gram, target_of(crossed, gram, UNIT), clear_terms(gram, [3, 5]), np.zeros(8), 1.0)
    assert found.places == (0,)
    assert (np.diag(found.covariance) > 0).all()


def test_the_same_fit_again_is_free_and_the_same_model(fitted):
    people = table(budget=tacit.epsilon(1, delta=1e-6))
    first = LinearRegression(epsilon=1).fit(people, target="hours")
    again = LinearRegression(epsilon=1).fit(people, target="hours")
    assert np.array_equal(first.coef_, again.coef_)
    assert str(first.summary()) == str(again.summary()).replace(
        f"entry {again.receipt_.number}", f"entry {first.receipt_.number}"
    )
    with pytest.raises(tacit.BudgetExceeded):
        LinearRegression(epsilon=1).fit(people, target="hours", features=["age"])


def has_noise(models: list[LinearRegression]) -> bool:
    """Whether the number of people is no whole number: with noise two of them are by a chance of 2^-48."""
    return any(each.state_.noisy["products"][0] % UNIT for each in models)


def test_the_number_of_people_is_noisy_as_every_other_sum(fitted):
    assert has_noise([fitted, LinearRegression(epsilon=5).fit(table(), target="hours")])


def test_an_exact_number_of_people_is_found(monkeypatch):
    """The mutant of the test above: the number of people leaves without noise."""
    released = Rounds.moments

    def with_exact_rows(rounds: Rounds, moments: Any) -> Any:
        noisy = released(rounds, moments)
        if moments.target is None:
            noisy[0] = 2000 * UNIT
        return noisy

    monkeypatch.setattr(Rounds, "moments", with_exact_rows)
    assert not has_noise([LinearRegression(epsilon=5).fit(table(), target="hours") for _ in range(2)])


def test_a_summary_reads_as_people_know_it(fitted):
    text = str(fitted.summary())
    for words in (
        "Linear regression of hours",
        "coef  std err  P>|t|",
        "[0.025",
        "0.975]",
        "noise",
        "people: ",
        "R²: ",
        "ward: ",
    ):
        assert words in text
    ward = next(each for each in fitted.summary().to_dicts() if each["term"] == "age")
    assert ward["low"] < ward["coefficient"] < ward["high"]
    assert 0 < ward["noise"] < 1
    assert (ward["pvalue"] <= 0.05) == (not ward["low"] <= 0 <= ward["high"])  # the interval at 95 % is that test


def test_a_model_predicts_the_same_in_sql_and_for_frames_of_every_kind(fitted):
    rows = frame(50, seed=3)
    rows = rows.set_column(1, "age", pa.array([None, 5, 500, *rows["age"].to_pylist()[3:]]))
    rows = rows.set_column(4, "ward", pa.array([None, "Z", *rows["ward"].to_pylist()[2:]]))
    found = duckdb.sql(f"SELECT {fitted.to_sql()} AS hours FROM rows").fetchnumpy()["hours"]
    here = fitted.predict(rows)
    assert np.isnan(here[0])
    assert np.ma.getmaskarray(found)[0]
    assert np.allclose(here[1:], np.asarray(found[1:], dtype=float), atol=1e-9)
    assert np.allclose(fitted.predict(rows.to_pandas())[1:], here[1:], atol=1e-12)
    assert np.allclose(fitted.predict({name: rows[name].to_pylist() for name in rows.column_names})[1:], here[1:])


def test_coefficients_are_what_predicts(fitted):
    rows = frame(50, seed=4)
    terms = dict(zip(fitted.terms_, fitted.coef_, strict=True))
    by_hand = fitted.intercept_ + terms["age"] * rows["age"].to_numpy() + terms["score"] * rows["score"].to_numpy()
    for name in ("sex", "ward"):
        by_hand = by_hand + np.array([terms.get(f"{name}: {value}", 0.0) for value in rows[name].to_pylist()])
    assert np.allclose(by_hand, fitted.predict(rows), atol=1e-9)


def test_a_stored_model_has_noisy_integers_and_public_facts_alone(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    rows = frame(20, seed=5)
    assert np.array_equal(again.predict(rows), fitted.predict(rows))
    assert str(again.summary()) == str(fitted.summary())


def test_a_plan_is_free_and_says_what_a_fit_costs():
    people = table(budget=tacit.epsilon(1, delta=1e-6))
    text = str(LinearRegression(epsilon=1).plan(people, target="hours", where="age > 30"))
    LinearRegression(epsilon=1).fit(people, target="hours")  # the whole budget is there
    for words in ("linear model of hours", "age, score", "sex (2), ward (4)", "separate term", "epsilon 1"):
        assert words in text


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"target": "ward"}, "not a column of numbers"),
        ({"target": "height"}, "no column 'height'"),
        ({"target": "hours", "features": ["hours"]}, "what is predicted"),
        ({"target": None}, "name the column to predict"),
    ],
)
def test_what_has_no_linear_model_is_refused_before_the_charge(asked, words):
    with pytest.raises(tacit.TacitError, match=words):
        LinearRegression().fit(table(), **asked)


def test_a_pure_budget_is_refused_with_the_way_out():
    with pytest.raises(tacit.QueryRefused, match="needs a delta"):
        LinearRegression(epsilon=1).fit(table(budget=tacit.epsilon(3)), target="hours")


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 3.0, 8.0])
def test_intervals_cover_the_population_s_coefficients(epsilon):
    """Of 95 % intervals, 93 to 97 % hold what least squares finds in the population, of the same terms.

    The seeds are fixed, so this passes or fails whatever the day.
    """
    rng = np.random.default_rng(int(epsilon * 10))
    whole = [np.arange(3), np.arange(5)]
    features, hours = placed(drawn(np.random.default_rng(0), 200_000), whole)
    products, crossed = features.T @ features, features.T @ hours
    held, terms = [], []
    for _ in range(120):
        people = drawn(rng, 12_000)
        found, bins, _ = inferred(people, epsilon, rng)
        chosen = together(bins)[:, found.places]  # of cells with a place each
        truth = np.linalg.solve(chosen.T @ products @ chosen, chosen.T @ crossed)
        held += (np.abs(found.estimate - truth) < 1.96 * np.sqrt(np.diag(found.covariance))).tolist()
        terms.append(len(found.places))
    assert 0.93 <= np.mean(held) <= 0.97
    assert np.mean(terms) > (2 if epsilon < 0.5 else 4)
