"""What samples prove: bounds hold as often as they say, are as tight as they can be, and Gaussian noise has its own."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.accounting.cost import gaussian_sigma
from tacit.auditing.lower_bound import (
    Proved,
    Tally,
    chance_lower,
    chance_upper,
    chernoff_lower,
    gaussian_draws,
    gaussian_epsilon,
    gaussian_exceeds,
    gaussian_mu,
    mu_lower,
    prove,
)
from tacit.errors import InvalidParameter

ALPHA = Fraction(1, 10**6)


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 5000), st.data())
def test_a_chance_is_bounded_by_clopper_and_pearson_on_the_safe_side(draws: int, data: st.DataObject):
    happened = data.draw(st.integers(0, draws))
    low, high = (float(bound(happened, draws, alpha=ALPHA)) for bound in (chance_lower, chance_upper))
    right_low = stats.beta.ppf(1e-6, happened, draws - happened + 1) if happened else 0.0
    right_high = stats.beta.ppf(1 - 1e-6, happened + 1, draws - happened) if happened < draws else 1.0
    gap = happened / draws - right_low, right_high - happened / draws
    assert right_low - 2e-3 * gap[0] - 1e-9 <= low <= right_low + 1e-12
    assert right_high - 1e-12 <= high <= right_high + 2e-3 * gap[1] + 1e-9


def test_the_quick_bounds_that_choose_are_wider_than_the_exact_ones():
    counts = np.array([0, 1, 7, 500, 999, 1000])
    exact = [float(chance_lower(int(count), 1000, alpha=ALPHA)) for count in counts]
    assert np.all(chernoff_lower(counts, 1000, 1e-6) <= np.array(exact) + 1e-6)


def test_a_loss_is_proved_only_where_both_bounds_allow_it():
    proved = prove(Tally(30_000, 60_000, 9_876, 60_000), alpha=ALPHA)
    assert 1.04 < proved.epsilon(Fraction(0)) < math.log(30_000 / 9_876)
    assert proved.exceeds(Fraction(1), Fraction(0))
    assert not proved.exceeds(Fraction(11, 10), Fraction(0))
    assert proved.epsilon(Fraction(1, 10)) < proved.epsilon(Fraction(0))


def test_nothing_is_proved_by_events_as_likely_on_both_sides_or_within_delta():
    same = prove(Tally(500, 1000, 500, 1000), alpha=ALPHA)
    assert same.epsilon(Fraction(0)) == 0
    assert not same.exceeds(Fraction(0), Fraction(0))
    rare = prove(Tally(30, 1000, 0, 1000), alpha=ALPHA)
    assert not rare.exceeds(Fraction(0), Fraction(1, 20))


@settings(max_examples=40, deadline=None)
@given(st.fractions(0, 1), st.fractions(0, 1), st.fractions(0, 3), st.fractions(0, "1/2"))
def test_the_epsilon_and_the_delta_of_a_proof_agree_with_what_it_exceeds(low, high, epsilon, delta):
    proved = Proved(low, high)
    if high > 0 and proved.exceeds(epsilon, delta):
        assert proved.epsilon(delta) >= float(epsilon) - 1e-9
        assert proved.delta(epsilon) >= float(delta) - 1e-9


def test_the_two_bounds_fail_together_at_most_as_often_as_alpha():
    """At alpha = 2/3, so that failures can be seen; the false-alarm rate of this test is 1e-6."""
    rng = np.random.default_rng(1)
    p, q, draws = 0.3, 0.12, 60
    wrong = 0
    for one, other in zip(rng.binomial(draws, p, 200), rng.binomial(draws, q, 200), strict=True):
        proved = prove(Tally(int(one), draws, int(other), draws), alpha=Fraction(2, 3))
        wrong += proved.epsilon(Fraction(0)) > math.log(p / q)
    assert 0 < wrong <= stats.binom.ppf(1 - 1e-6, 200, 2 / 3)


# ---- Gaussian ------------------------------------------------------------------------------------------------------


def test_mu_is_the_move_that_the_two_chances_are_apart_as_normal_quantiles():
    low, high = stats.norm.cdf(1.25), stats.norm.cdf(0.25)
    found = mu_lower(Proved(Fraction(low), Fraction(high)))
    assert found <= 1
    assert float(found) == pytest.approx(1, abs=1e-9)


def test_no_move_is_shown_where_the_bounds_do_not_separate():
    assert mu_lower(Proved(Fraction(1, 3), Fraction(1, 2))) == 0
    assert gaussian_epsilon(Fraction(0), ALPHA) == 0


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), ("1/2", "1e-3"), (3, "1e-5")])
def test_the_allowed_move_is_the_one_that_exact_calibration_finds(epsilon, delta):
    wide = 1000  # steps, so that the discrete law is as good as the continuous one
    sigma = gaussian_sigma(Fraction(wide), Fraction(epsilon), Fraction(delta))
    mu = gaussian_mu(Fraction(epsilon), Fraction(delta))
    assert mu == pytest.approx(float(wide / sigma), rel=1e-4)
    assert not gaussian_exceeds(Fraction(mu * 0.999), Fraction(epsilon), Fraction(delta))
    assert gaussian_exceeds(Fraction(mu * 1.001), Fraction(epsilon), Fraction(delta))
    assert gaussian_epsilon(Fraction(mu), Fraction(delta)) == pytest.approx(float(Fraction(epsilon)), rel=1e-3)


def test_the_draws_a_gaussian_needs_are_stated_and_fall_with_the_shortage():
    at_ten, at_half = (gaussian_draws(Fraction(1), ALPHA, shortage=shortage) for shortage in (0.1, 0.5))
    assert 900_000 < at_ten < 1_000_000
    assert at_half < 20_000


def test_an_event_cannot_happen_more_often_than_it_was_tried():
    with pytest.raises(InvalidParameter, match="between 0 and 5"):
        chance_lower(6, 5, alpha=ALPHA)
