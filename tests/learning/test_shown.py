"""What a fitted additive model shows: terms with ±, words, pictures, and SQL that scores as it does."""

from dataclasses import replace

import duckdb
import numpy as np
import psycopg
import pyarrow as pa
import pytest

import tacit
from tacit.learning import AdditiveClassifier, AdditiveRegressor
from tacit.learning.additive import Additive
from tacit.learning.priors import Coarse, bins_of
from tacit.learning.terms import explained
from tests.learning.test_additive import COLUMNS, FEATURES, ROWS, table


@pytest.fixture(scope="module")
def classifier() -> AdditiveClassifier:
    """A model with an interaction, and a term that may only rise."""
    model = AdditiveClassifier(50, rounds=12, interactions=[("age", "sex")], monotone={"age": 1})
    return model.fit(table(), target="buys", features=FEATURES)


@pytest.fixture(scope="module")
def others() -> list[Additive]:
    """A model of several classes, of a number, and of a count."""
    return [
        AdditiveClassifier(50, rounds=8).fit(table(), target="grade", features=FEATURES),
        AdditiveRegressor(50, rounds=8).fit(table(), target="visits", features=FEATURES),
        AdditiveRegressor(50, rounds=8, loss="poisson").fit(table(), target="visits", features=FEATURES),
    ]


# odd cells: what is missing, beyond a range, on the edge of a cell, or not listed
ODD = pa.table(
    {
        "age": pa.array([None, 17, 91, 18, 90, 54, 30]),
        "pay": pa.array([0, 1, -5, 200_000, 100_000, None, 3]),
        "sex": pa.array(["f", None, "x", "m", "f", "m", "'"]),
        "is_new": pa.array([True, False, None, True, True, False, False]),
    }
)


@pytest.mark.parametrize("rows", [ROWS.slice(0, 300), ODD], ids=["rows", "odd"])
def test_sql_scores_as_the_model_does(classifier, others, rows):
    connection = duckdb.connect()
    connection.register("people", rows.append_column("place", pa.array(range(len(rows)))))
    for model in (classifier, *others):
        scored = connection.sql(f"SELECT * FROM ({model.to_sql('people')}) ORDER BY place").fetchnumpy()
        if isinstance(model, AdditiveRegressor):
            expected = model.predict(rows)[:, None]
            found = [scored["prediction"]]
        else:
            expected = model.predict_proba(rows)[:, -1:]
            found = [scored[f"probability of {model.classes_[-1]}"]]
        assert np.abs(np.array(found).T - expected).max() < 1e-9


def test_postgresql_scores_as_the_model_does_and_computes_each_score_once(postgres, classifier, others):
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("CREATE TEMPORARY TABLE people (age float8, pay float8, sex text, is_new boolean)")
        connection.cursor().executemany(
            "INSERT INTO people VALUES (%s, %s, %s, %s)", list(zip(*ODD.to_pydict().values(), strict=True))
        )
        for model in (classifier, *others):
            sql = model.to_sql("people", dialect="postgres")
            found = [row[-1] for row in connection.execute(sql).fetchall()]
            expected = model.predict(ODD) if isinstance(model, AdditiveRegressor) else model.predict_proba(ODD)[:, -1]
            assert np.abs(np.array(found) - expected).max() < 1e-9
            # inlined, every CASE of a score would stand in every place that names it
            plan = "\n".join(row[0] for row in connection.execute(f"EXPLAIN VERBOSE {sql}").fetchall())
            assert plan.count("CASE") <= 2 * sql.count("CASE")


def test_every_bin_of_every_term_has_an_effect_and_its_error(classifier):
    terms = classifier.terms_
    assert list(terms) == [*FEATURES, "age x sex"]
    assert all(each.error > 0 for each in terms["sex"].bins if each.holds in ("f", "m"))
    effects = {each.holds: each.effect for each in terms["sex"].bins}
    assert effects["m"] - effects["f"] > 0.3  # 2 of the score, of which the interaction may take a part
    assert "missing" in str(terms["age"])
    assert "other or missing" in str(terms["sex"])
    assert "other" not in str(terms["age"])
    assert "±" in classifier.explain()


def test_words_call_a_term_noise_by_all_of_its_bins_and_not_by_the_two_extreme_ones(classifier):
    """The strongest term has extreme bins of a few people, whose effects could be anything."""
    model = classifier._fitted()
    age, others = model.shapes.shapes[0], model.shapes.shapes[1:]
    (effects,), (deviations,) = age.effects, age.deviations
    extremes = {int(np.argmin(effects)), int(np.argmax(effects))}
    wide = [99.0 if at in extremes else each for at, each in enumerate(deviations)]
    for signal, is_noise in ((1.01, False), (0.99, True)):
        changed = replace(age, deviations=[wide], signals=[signal])
        words = explained(replace(model, shapes=replace(model.shapes, shapes=[changed, *others])))
        assert ("\n- age: from" not in words) == is_noise
        assert ("all bins of a term together: age" in words) == is_noise


def test_a_monotone_term_never_falls(classifier):
    effects = [each.effect for each in classifier.terms_["age"].bins if each.place is not None]
    assert effects == sorted(effects)
    assert len(effects) > 5


def test_a_model_is_drawn(classifier, tmp_path):
    written = classifier.plot("age", tmp_path / "age.svg")
    assert "log-odds" in written.read_text(encoding="utf-8")
    assert classifier.plot() is not None
    with pytest.raises(tacit.InvalidParameter, match="no term 'agee'"):
        classifier.plot("agee")


def test_a_fit_has_a_certificate_that_a_saved_model_has_not(classifier):
    import pickle

    assert classifier.certificate()
    with pytest.raises(tacit.InvalidParameter, match="cannot reach its ledger to sign"):
        pickle.loads(pickle.dumps(classifier)).certificate()


def test_noise_on_empty_cells_makes_few_bins():
    rng = np.random.default_rng(3)
    people = np.zeros(257)
    people[0] = 30_000
    noisy = people + rng.normal(0, 300, 257)
    coarse = Coarse(
        np.array([30_000.0, *rng.normal(0, 300, 16)]), np.array([0, *np.repeat(np.arange(1, 17), 16)][:256])
    )
    bins = bins_of(noisy, ordered=True, least=600, most=32, noise=300, coarse=coarse)
    assert bins.size <= 6  # seeded; half of 256 empty cells are above 0, and could fill 30 bins
    assert bins.cells(0) == [0]


def test_an_atom_is_a_bin_of_its_own_and_a_small_run_joins_its_neighbour():
    counts = np.array([900.0, 10.0, 10.0, 500.0, 40.0, 60.0, 55.0, 45.0, 0.0])
    bins = bins_of(counts, ordered=True, least=90, most=4)
    groups = [bins.cells(place) for place in range(bins.size)]
    assert [0] in groups  # the atom
    assert all(group == sorted(group) for group in groups)
    assert bins.learned[-1] is False  # nobody is missing
    masses = [counts[group].sum() for group in groups[:-1]]
    assert min(masses) >= 90


def test_few_people_are_not_joined_to_more_than_half_of_all():
    counts = np.array([9_000.0, 30.0, -10.0, 40.0, 0.0])  # as few as noise leaves of those with any capital gain
    bins = bins_of(counts, ordered=True, least=90, most=4)
    assert [bins.cells(place) for place in range(bins.size)] == [[0], [1, 2, 3], [4]]
    assert bins.learned == (True, True, False)


def test_a_run_that_coarse_cells_count_is_learned_whatever_its_fine_cells_say():
    fine = np.full(257, -40.0)  # noise that adds up to less than nobody, over people that the coarse cells have seen
    fine[0] = 30_000
    coarse = Coarse(np.array([30_000.0, *([700.0] * 16)]), np.array([0, *np.repeat(np.arange(1, 17), 16)][:256]))
    bins = bins_of(fine, ordered=True, least=400, most=32, noise=150, coarse=coarse)
    assert bins.size > 4
    assert all(bins.learned[:-1])
    assert bins.counts[1:-1].min() >= 400


def test_a_list_that_matches_nobody_is_told_from_noisy_counts():
    wrong = {**COLUMNS, "sex": {"keys": [" f", " m"]}}
    model = AdditiveClassifier(5).fit(table(columns=wrong), target="buys", features=["age", "sex"])
    assert "Almost no listed value of sex was found" in model.explain()
    right = AdditiveClassifier(5).fit(table(), target="buys", features=["age", "sex"])
    assert "Almost no listed" not in right.explain()
