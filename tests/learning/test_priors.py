"""Equations of three diagonals: solved as numpy solves whole matrices, whatever their length and rows by themselves."""

from types import SimpleNamespace

import numpy as np
import pytest

from tacit.learning.priors import FALSE_ALARM, BandSolver, Seen, Term, TermBins, signals


@pytest.mark.parametrize(("links", "rows"), [(0, 1), (0, 3), (1, 2), (1, 4), (2, 3), (3, 5), (6, 7), (7, 9)])
def test_equations_of_three_diagonals_are_solved(links, rows):
    rng = np.random.default_rng(rows)
    diagonal, beside = 3 + rng.random((rows, 2, 4)), -rng.random((links, 2, 4))
    right = rng.random((rows, 1, 4))
    found = BandSolver(diagonal, beside, right)
    for place in np.ndindex(2, 4):
        matrix = np.diag(diagonal[:, *place])
        matrix[np.arange(links), np.arange(links) + 1] = matrix[np.arange(links) + 1, np.arange(links)] = beside[
            :, *place
        ]
        inverse = np.linalg.inv(matrix)
        np.testing.assert_allclose(found.solution[:, *place], inverse @ right[:, 0, place[1]], rtol=1e-10)
        np.testing.assert_allclose(found.variances()[:, *place], np.diag(inverse), rtol=1e-10)
        np.testing.assert_allclose(found.log_determinant()[place], np.linalg.slogdet(matrix)[1], rtol=1e-10)


def signal_of(rng, counts, effects, *, noise=0.0, learned=None):
    """The signal of one term whose sums have noise of their own in each bin, and no common level."""
    counts = np.array(counts, dtype=float)
    variance = noise**2 + 0.25 * counts
    sums = counts * 0.25 * np.array(effects) + rng.normal(0, np.sqrt(variance))
    centred = sums - counts * sums.sum() / counts.sum()
    term = TermBins([Term(counts, np.ones(len(counts), dtype=bool) if learned is None else np.array(learned), 0)])
    told, info, spread = (each[:, None, None] for each in (centred, 0.25 * counts, variance))
    return float(signals(term, Seen(told, info, spread), counts.sum(), np.zeros((1, 1)))[0, 0])


UNEVEN = [7000, 500, 300, 100, 60, 40]


@pytest.mark.parametrize("noise", [0.0, 60.0])
@pytest.mark.parametrize("counts", [[500, 500], [100] * 30, UNEVEN])
def test_of_terms_without_an_effect_one_in_a_hundred_is_taken_for_one(counts, noise):
    """Seeded. Centring makes sums dependent: without their covariance the uneven counts are alarmed far more often."""
    rng = np.random.default_rng(7)
    alarms = np.mean([signal_of(rng, counts, np.zeros(len(counts)), noise=noise) > 1 for _ in range(4000)])
    assert 0.5 * FALSE_ALARM < alarms < 1.6 * FALSE_ALARM


def test_many_bins_that_are_each_within_their_noise_are_an_effect_together():
    rng = np.random.default_rng(3)
    effects = 0.9 * np.linspace(-1, 1, 20)
    each = 0.25 * 100 * np.abs(effects).max() / np.sqrt(30**2 + 25)
    assert each < 1  # no bin by itself is beyond one deviation of its noise
    found = [signal_of(rng, [100] * 20, effects, noise=30.0) for _ in range(200)]
    none = [signal_of(rng, [100] * 20, 0 * effects, noise=30.0) for _ in range(200)]
    assert np.mean(found) > 1.2 * np.mean(none)
    strong = [signal_of(rng, [400] * 20, effects, noise=30.0) > 1 for _ in range(200)]
    assert np.mean(strong) == 1.0  # each bin within two to three deviations, as in a fit of few people


def test_a_strong_term_is_no_noise_if_its_two_extreme_bins_are_within_theirs():
    """Without luck: the sums have no noise, and are compared with that of 30 people a bin."""
    exact = SimpleNamespace(normal=lambda middle, spread: np.full_like(spread, middle))
    counts, effects = [3, *[400] * 18, 3], [-2.0, *[-0.6] * 9, *[0.6] * 9, 2.0]
    assert 0.25 * 3 * 2.0 < 0.1 * 30, "the largest effects are those of a few people"
    assert signal_of(exact, counts, effects, noise=30.0) > 1.5
    assert signal_of(exact, counts, np.zeros(20), noise=30.0) == 0


def test_bins_that_are_not_learned_tell_nothing():
    rng = np.random.default_rng(1)
    assert signal_of(rng, [900, 50], [5, -5], learned=[True, False]) == 0.0
