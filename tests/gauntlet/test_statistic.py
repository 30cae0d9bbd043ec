"""The bounds that judge samples agree with scipy, and err on the safe side only."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import InvalidParameter
from tacit_gauntlet.stage import statistic

COUNTS = [(0, 10), (1, 10), (10, 10), (37, 60_000), (20_000, 60_000), (500_000, 1_000_000)]


@pytest.mark.parametrize(("successes", "trials"), COUNTS)
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_clopper_pearson_is_scipys_beta_quantile(successes, trials, alpha):
    lower = statistic.clopper_pearson_lower(successes, trials, alpha=alpha)
    upper = statistic.clopper_pearson_upper(successes, trials, alpha=alpha)
    expected_lower = 0.0 if successes == 0 else stats.beta.ppf(alpha, successes, trials - successes + 1)
    expected_upper = 1.0 if successes == trials else stats.beta.isf(alpha, successes + 1, trials - successes)
    assert lower == pytest.approx(expected_lower, rel=1e-9, abs=1e-15)
    assert upper == pytest.approx(expected_upper, rel=1e-9)


@given(trials=st.integers(1, 300), data=st.data())
def test_a_bound_is_on_the_safe_side_and_tight(trials, data):
    successes = data.draw(st.integers(1, trials))
    lower = statistic.clopper_pearson_lower(successes, trials, alpha=1e-6)
    assert statistic.binomial_at_least(successes, trials, lower) <= 1e-6 * (1 + 1e-12)
    assert statistic.binomial_at_least(successes, trials, lower * (1 + 1e-9)) > 1e-6


@given(trials=st.integers(1, 2000), share=st.floats(0, 1), probability=st.floats(0.001, 0.999))
def test_binomial_tails_are_scipys_and_meet_in_one(trials, share, probability):
    successes = round(share * trials)
    at_least = statistic.binomial_at_least(successes, trials, probability)
    assert at_least == pytest.approx(stats.binom.sf(successes - 1, trials, probability), rel=1e-8, abs=1e-290)
    if successes:
        assert at_least + statistic.binomial_at_most(successes - 1, trials, probability) == pytest.approx(1)


@given(degrees=st.integers(1, 5000), factor=st.floats(0.2, 4))
def test_chi_square_tail_is_scipys(degrees, factor):
    expected = stats.chi2.sf(degrees * factor, degrees)
    assert statistic.chi_square_tail(degrees * factor, degrees) == pytest.approx(expected, rel=1e-6, abs=1e-290)


def test_a_fair_die_fits_and_a_loaded_one_does_not():
    fair, loaded = [995, 1003, 1010, 990, 1001, 1001], [900, 1000, 1000, 1000, 1000, 1100]
    assert statistic.chi_square_fit(fair, [1000.0] * 6) > 0.9
    assert statistic.chi_square_fit(loaded, [1000.0] * 6) < 0.01
    assert statistic.chi_square_fit(loaded, [1000.0] * 6) == pytest.approx(stats.chisquare(loaded).pvalue)


def test_the_ratio_bound_proves_a_loss_only_where_the_samples_do():
    assert statistic.log_ratio_lower((9_000, 1_000), (10_000, 10_000)) > math.log(7)
    assert statistic.log_ratio_lower((1_000, 1_000), (10_000, 10_000)) < 0
    assert statistic.log_ratio_lower((0, 10), (10_000, 10_000)) == -math.inf


def test_the_correlation_bound_is_above_what_was_seen_and_shrinks_with_samples():
    few, many = (statistic.correlation_upper(0.01, n) for n in (1_000, 100_000))
    assert 0.01 < many < few < 0.2
    # a sample's z of 5.998 standard errors is the quantile of one in 10^9
    assert math.atanh(many) - math.atanh(0.01) == pytest.approx(5.997807 / math.sqrt(100_000 - 3), rel=1e-5)


@pytest.mark.parametrize(("successes", "trials"), [(-1, 10), (11, 10), (0, 0)])
def test_impossible_counts_are_refused(successes, trials):
    with pytest.raises(InvalidParameter, match="between 0 and trials"):
        statistic.clopper_pearson_upper(successes, trials)
