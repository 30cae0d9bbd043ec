"""`PCA`: the covariance's own components where noise is small, and variances whose ± holds the table's."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.learning import PCA
from tacit.learning.linear_fit import LinearState, design_of
from tacit.plan import UNIT, Moments
from tacit.privacy import GaussianNoise
from tests.learning.linear_people import drawn, frame
from tests.learning.test_linear import table

NUMBERS = ("age", "score", "hours")


def test_components_are_those_of_the_covariance_where_noise_is_small():
    rows = frame(3000)
    people = table(rows, budget=tacit.epsilon(10**6, delta=1e-6))
    model = PCA(epsilon=10**5, scale=None).fit(people)
    assert list(model.feature_names_in_) == list(NUMBERS)
    values = np.column_stack([rows[name].to_numpy() for name in NUMBERS])
    person = rows["person"].to_numpy()
    weights = 1 / np.bincount(person)[person]  # each person counts once
    variances, vectors = np.linalg.eigh(np.cov(values.T, aweights=weights, ddof=0))
    assert model.explained_variance_ == pytest.approx(variances[::-1], rel=1e-3)
    assert np.abs(np.sum(model.components_ * vectors.T[::-1], axis=1)) == pytest.approx(1, abs=1e-4)
    assert model.mean_ == pytest.approx(np.average(values, axis=0, weights=weights), rel=1e-3, abs=1e-3)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1)
    found = model.transform(rows)
    assert found.shape == (3000, 3)
    assert np.allclose(found, (values - model.mean_) @ model.components_.T, atol=1e-5)


def test_standard_scale_makes_every_column_alike():
    people = table(budget=tacit.epsilon(10**6, delta=1e-6))
    model = PCA(2, epsilon=10**5, scale="standard").fit(people)
    values = np.column_stack([frame(3000)[name].to_numpy() for name in NUMBERS])
    assert model.scale_ == pytest.approx(values.std(axis=0), rel=5e-2)  # there each row counts, here each person
    assert model.transform(frame(7)).shape == (7, 2)
    assert list(model.get_feature_names_out()) == ["pca0", "pca1"]


def test_the_same_components_again_are_free():
    people = table(budget=tacit.epsilon(1, delta=1e-6))
    first = PCA(epsilon=1).fit(people)
    again = PCA(1, epsilon=1, scale="standard").fit(people)  # from the same noisy sums
    assert first.receipt_.charge == again.receipt_.charge
    with pytest.raises(tacit.BudgetExceeded):
        PCA(epsilon=1).fit(people, where="age > 30")


@pytest.mark.parametrize(
    ("model", "asked", "words"),
    [
        (PCA(9), {}, "from 1 to 3"),
        (PCA(scale="none"), {}, "scale must be"),
        (PCA(), {"features": ["age", "ward"]}, "'ward' is a list"),
        (PCA(), {"y": "hours"}, "does not have a target"),
    ],
)
def test_what_has_no_components_is_refused_before_the_charge(model, asked, words):
    with pytest.raises(tacit.TacitError, match=words):
        model.fit(table(), **asked)


@pytest.mark.parametrize("sigma", [1.0, 20.0, 120.0])
def test_the_variances_hold_within_their_errors(sigma):
    """At 95 % with seeds that are fixed: the table's own variances, at little noise and at much."""
    people = drawn(np.random.default_rng(0), 12_000)
    values = np.column_stack([np.ones(12_000), (people["age"] - 50) / 30, people["score"], people["hours"] / 50 - 1])
    exact = values.T @ values
    truth = np.linalg.eigvalsh(np.cov(values[:, 1:].T, ddof=0))[::-1]
    moments = Moments((), (0, 1, 2), (0, 1, 2))
    design = design_of(table(), None, NUMBERS)
    rng = np.random.default_rng(1)
    held: list[Any] = []
    for _ in range(300):
        sums = []
        for block in moments.blocks:
            first, second = [*(1 + value for value in block.values), 0, 0][:2]
            sums.append(exact[first, second] - (6000 if block.is_square else 0) + rng.normal(0, sigma))
        noisy = np.rint(np.array(sums) * UNIT).astype(np.int64)
        model = PCA()
        event = GaussianNoise(Fraction(sigma) * UNIT, Fraction(1))
        model._set_state(LinearState(design, (event,), {"counts": [], "products": noisy.tolist()}))
        held.append(np.abs(model.explained_variance_ - truth) <= model.explained_variance_error_)
    assert np.mean(held) >= 0.93
    assert sigma > 100 or np.mean(held) <= 0.985  # and they are no wider than that, where noise is small
