"""The two mechanisms keep the theory's claims, by their exact laws and not by samples."""

from fractions import Fraction
from math import exp, inf, log, nan, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

import tacit
from tacit.accounting.cost import delta_at, pure_epsilon, zcdp
from tacit.errors import InvalidParameter, TacitError
from tacit.noise.laplace import DiscreteLaplace
from tacit.numbers import show
from tacit.privacy.law import SCALE_MAX, SCALE_MIN, GaussianLaw, LaplaceLaw
from tests.noise import oracle

epsilons = st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=1000)
sensitivities = st.fractions(min_value=Fraction(1, 1000), max_value=1000, max_denominator=1000)
sizes = st.integers(1, 10**6)


@settings(max_examples=50)
@given(sensitivities, epsilons, sizes, st.sampled_from([int, float]))
def test_L1_laplace_noise_of_scale_sensitivity_over_epsilon_is_epsilon_dp(sensitivity, epsilon, size, dtype):
    event = tacit.Laplace(sensitivity=sensitivity, epsilon=epsilon).event_of(size=size, dtype=dtype)
    assert pure_epsilon(event) <= epsilon
    if event.scale > SCALE_MIN:
        assert event.scale == event.sensitivity / epsilon


def test_L1_no_output_is_likelier_by_more_than_e_to_the_epsilon():
    mechanism = tacit.Laplace(sensitivity=3, epsilon=Fraction(1, 2))
    with mp.workdps(50):
        cdf = oracle.laplace_cdf(mechanism.event.scale)
        masses = {x: cdf(x) - cdf(x - 1) for x in range(-60, 61)}
        worst = max(masses[x] / masses[x - 3] for x in range(-50, 51))
        assert worst <= mp.exp(mpf(1) / 2) * (1 + mpf(10) ** -30)


def test_L2_the_tail_is_exact():
    for scale, x in ((1, 2), (10, 25), (Fraction(1, 3), 1)):
        with mp.workdps(50):
            q = mp.exp(-1 / oracle.exact(Fraction(scale)))
            expected = 2 * q ** (x + 1) / (1 + q)
        assert DiscreteLaplace(scale).tail(x) == pytest.approx(float(expected), rel=1e-15)


def test_L2_a_mean_of_n_values_is_off_by_more_than_two_over_epsilon_n_with_a_chance_of_at_most_a_quarter():
    n, epsilon = 1000, 0.5
    mechanism = tacit.Laplace(sensitivity=Fraction(1, n), epsilon=epsilon)
    assert mechanism.error(confidence=0.75, dtype=float) <= 2 / (epsilon * n)
    assert mechanism.error(confidence=1 - exp(-2), dtype=float) == pytest.approx(2 / (epsilon * n), rel=3e-3)


def test_L4_all_of_k_outputs_are_within_the_simultaneous_bound_which_is_exact_and_a_little_smaller():
    k, beta = 10_000, 0.05
    bound = tacit.Laplace(sensitivity=1, epsilon=1).error(confidence=1 - beta, coordinates=k)
    assert bound <= log(k / beta) < 12.21
    with mp.workdps(50):
        tail = oracle.laplace_cdf(Fraction(1))

        def all_within(a):
            return (1 - 2 * tail(-a - 1)) ** k

        assert all_within(bound) >= 1 - beta > all_within(bound - 1)


def test_G1_the_exact_delta_is_kept_and_the_textbook_needs_more_noise():
    for epsilon in (Fraction(1, 10), Fraction(1, 2), Fraction(1)):
        mechanism = tacit.Gaussian(sensitivity=1, epsilon=epsilon, delta="1e-6")
        sigma = mechanism.event.sigma
        assert Fraction(1, 10**6) * Fraction(99, 100) <= hockey_stick(sigma, 1, epsilon) <= Fraction(1, 10**6)
        for constant in (Fraction(2), Fraction(5, 4)):
            assert sigma < sqrt(2 * log(float(constant) * 10**6)) / epsilon


def hockey_stick(sigma: Fraction, shift: int, epsilon: Fraction) -> Fraction:
    """The least delta at epsilon, by adding up masses."""
    with mp.workdps(60):
        reach = int(sigma * 20) + 5
        masses = {x: mp.exp(-oracle.exact(Fraction(x * x) / (2 * sigma**2))) for x in range(-reach, reach + shift + 1)}
        total = mp.fsum(masses.values())
        grown = mp.exp(oracle.exact(epsilon))
        excess = mp.fsum(max(masses[x - shift] - grown * masses[x], mpf(0)) for x in range(-reach + shift, reach + 1))
        return Fraction(str(mp.nstr(excess / total, 40)))


@settings(max_examples=15)
@given(st.fractions(1, 30, max_denominator=20), epsilons, st.integers(2, 12))
def test_G1_every_scalar_gaussian_is_verified_at_the_sigma_it_draws(sensitivity, epsilon, digits):
    delta = Fraction(1, 10**digits)
    event = tacit.Gaussian(sensitivity=sensitivity, epsilon=epsilon, delta=delta).event
    assert delta_at(event, epsilon) <= delta


def test_G1_above_epsilon_one_where_the_textbook_ends_we_go_on():
    event = tacit.Gaussian(sensitivity=1, epsilon=8, delta="1e-6").event
    assert hockey_stick(event.sigma, 1, Fraction(8)) <= Fraction(1, 10**6)


def test_G2_for_k_counts_gaussian_error_grows_like_the_root_and_laplace_like_k():
    """One person may touch all k counts: L1 is k, L2 is the root of k. They cross between 1 and 1000."""

    def errors(k):
        laplace = tacit.Laplace(sensitivity=k, epsilon=1).error(coordinates=k)
        gaussian = tacit.Gaussian(sensitivity=Fraction(round(sqrt(k) * 10**6) + 1, 10**6), epsilon=1, delta="1e-6")
        return laplace, gaussian.error(coordinates=k)

    laplace_1, gaussian_1 = errors(1)
    laplace_1000, gaussian_1000 = errors(1000)
    assert laplace_1 < gaussian_1
    assert gaussian_1000 < laplace_1000 / 10
    assert laplace_1000 / laplace_1 > 1000
    assert gaussian_1000 / gaussian_1 < sqrt(1000) * 3


def test_G2_a_vector_gets_noise_on_each_coordinate_by_its_length_alone():
    mechanism = tacit.Gaussian(sensitivity=5, epsilon=1, delta="1e-6")
    assert mechanism.event_of(size=2).sigma == mechanism.event_of(size=1000).sigma
    assert not mechanism.event_of(size=2).scalar
    assert mechanism.event_of(size=1).scalar


@settings(max_examples=15)
@given(st.integers(2, 1000), epsilons, st.sampled_from([int, float]))
def test_G3_a_gaussian_costs_half_its_squared_sensitivity_over_variance_in_zcdp(size, epsilon, dtype):
    event = tacit.Gaussian(sensitivity=2, epsilon=epsilon, delta="1e-6").event_of(size=size, dtype=dtype)
    assert zcdp(event).rho == event.sensitivity_squared / (2 * event.sigma**2)
    assert delta_at(event, epsilon) <= Fraction(1, 10**6)


def test_D4_sensitivities_are_taken_as_given_in_each_norm():
    assert tacit.Laplace(sensitivity=1, epsilon=1).event.scale == 1  # one count
    assert tacit.Laplace(sensitivity=7, epsilon=1).event_of(size=7).scale == 7  # 7 counts one person may all touch
    histogram = tacit.Laplace(sensitivity=1, epsilon=1).event_of(size=50)  # disjoint cells
    assert histogram.scale == 1
    four = tacit.Gaussian(sensitivity=2, epsilon=1, delta="1e-6").event_of(size=4)  # 4 counts: the root of 4
    assert four.sensitivity_squared == 4
    fraction = tacit.Laplace(sensitivity=Fraction(1, 1000), epsilon=1).event_of(dtype=float)  # of 1000 people
    assert fraction.scale >= 1000
    assert fraction.sensitivity / fraction.scale == 1


@pytest.mark.parametrize("value", [inf, -inf, nan, "inf", "unbounded", None])
def test_D4_an_unbounded_sensitivity_is_refused(value):
    with pytest.raises(InvalidParameter, match="sensitivity"):
        tacit.Laplace(sensitivity=value, epsilon=1)
    with pytest.raises(InvalidParameter, match="sensitivity"):
        tacit.Gaussian(sensitivity=value, epsilon=1, delta=1e-6)


def test_D4_a_float_sensitivity_never_counts_as_less_than_it_is():
    third = tacit.Laplace(sensitivity=0.1, epsilon=1).sensitivity
    assert third >= Fraction(1, 10)
    assert third >= Fraction(0.1)


# ---- S06: parameters -----------------------------------------------------------------------------------------------

NOT_POSITIVE_NUMBERS = [
    nan,
    inf,
    -inf,
    0,
    0.0,
    -1,
    -0.5,
    True,
    False,
    "",
    "x",
    "nan",
    "1/0",
    None,
    [1],
    1j,
    b"1",
    object(),
]


@pytest.mark.parametrize("value", NOT_POSITIVE_NUMBERS, ids=lambda value: repr(value).partition(" at 0x")[0])
@pytest.mark.parametrize("name", ["epsilon", "sensitivity", "delta"])
def test_S06_a_parameter_that_is_no_positive_number_is_refused_by_name(name, value):
    given = {"sensitivity": 1, "epsilon": 1, "delta": 1e-6} | {name: value}
    with pytest.raises(InvalidParameter, match=name):
        tacit.Gaussian(**given)
    if name != "delta":
        del given["delta"]
        with pytest.raises(InvalidParameter, match=name):
            tacit.Laplace(**given)


@pytest.mark.parametrize("delta", [1, 1.0, 2, "1", 1e300])
def test_S06_a_delta_of_one_or_more_is_refused(delta):
    with pytest.raises(InvalidParameter, match="delta"):
        tacit.Gaussian(epsilon=1, delta=delta)


@pytest.mark.parametrize("epsilon", [11, 1000, 1e9, 1e15, "1e30", 1e300])
def test_S06_a_huge_epsilon_is_accepted_with_a_warning_and_noise_never_becomes_zero(epsilon):
    for mechanism in (tacit.Laplace(epsilon=epsilon), tacit.Gaussian(epsilon=epsilon, delta=1e-6)):
        assert mechanism.release(3) == pytest.approx(3, abs=4)
        assert "Warning" in mechanism.explain()
    assert tacit.Laplace(epsilon=epsilon).event.scale >= SCALE_MIN > 0
    assert tacit.Gaussian(epsilon=epsilon, delta=1e-6).event.sigma >= SCALE_MIN


@pytest.mark.parametrize("epsilon", ["1e-20", 1e-300, Fraction(1, 2**60)])
def test_S06_an_epsilon_whose_noise_cannot_be_drawn_is_refused_at_once(epsilon):
    with pytest.raises(InvalidParameter, match="epsilon and sensitivity ask for noise"):
        tacit.Laplace(epsilon=epsilon)


def test_S06_the_two_mechanisms_take_their_numbers_by_name_only():
    with pytest.raises(TypeError):
        tacit.Laplace(1, 1)
    with pytest.raises(TypeError):
        tacit.Gaussian(1, 1, 1e-6)


@pytest.mark.parametrize("value", [0, 1, 1.5, -0.1, nan, "x", True, None])
def test_S06_a_confidence_outside_zero_and_one_is_refused(value):
    for mechanism in (tacit.Laplace(epsilon=1), tacit.Gaussian(epsilon=1, delta=1e-6)):
        with pytest.raises(InvalidParameter, match="confidence"):
            mechanism.error(value)


@pytest.mark.parametrize("value", [0, -1, 1.5, "2", True, None])
def test_S06_a_count_of_coordinates_is_a_whole_number(value):
    for mechanism in (tacit.Laplace(epsilon=1), tacit.Gaussian(epsilon=1, delta=1e-6)):
        with pytest.raises(InvalidParameter, match="coordinates"):
            mechanism.error(coordinates=value)
        with pytest.raises(InvalidParameter, match="dtype"):
            mechanism.error(dtype=str)


@pytest.mark.parametrize("value", [-1, 1.5, "2", True, None])
def test_S06_a_number_of_draws_is_a_whole_number(value):
    with pytest.raises(InvalidParameter, match="n must be"):
        DiscreteLaplace(1).sample(value)


@pytest.mark.parametrize("value", [0, -1, "1/10000000", 2**56 + 1, nan, inf, True, "x"])
def test_S06_a_scale_that_cannot_be_drawn_is_refused(value):
    with pytest.raises(TacitError, match="scale"):
        DiscreteLaplace(value)


# ---- what a user reads ---------------------------------------------------------------------------------------------


def test_a_float_epsilon_means_its_shortest_decimal():
    assert tacit.Laplace(epsilon=0.1).loss.epsilon == Fraction(1, 10)
    assert tacit.Laplace(epsilon=0.1).event.scale == 10


def test_integers_of_a_wide_range_are_pointed_to_floats_which_work():
    mechanism = tacit.Laplace(sensitivity=10**30, epsilon=1)
    with pytest.raises(InvalidParameter, match="floats"):
        mechanism.release(10**31)
    assert abs(mechanism.release(1e31) - 1e31) < 1e32
    assert "release them as floats" in mechanism.explain()
    assert mechanism.event_of(dtype=float).scale <= SCALE_MAX


def test_errors_are_the_laws_own_quantiles():
    laplace = tacit.Laplace(sensitivity=4, epsilon=Fraction(1, 3))
    assert laplace.error(0.9) == LaplaceLaw(Fraction(12)).smallest_bound(Fraction(1, 10))
    gaussian = tacit.Gaussian(sensitivity=4, epsilon=1, delta=1e-6)
    assert gaussian.error(0.9) == GaussianLaw(gaussian.event.sigma).smallest_bound(Fraction(1, 10))
    assert tacit.Laplace(epsilon=1).error(dtype=float) == pytest.approx(log(20), rel=2e-3)


def test_about_as_many_answers_are_within_the_error_as_it_says():
    """Of 20,000 answers, fewer than 94 % or more than 96 % within the 95 % error is seen less than once in 10^6."""
    for mechanism in (tacit.Laplace(epsilon=1), tacit.Gaussian(epsilon=1, delta=1e-6)):
        noisy = mechanism.release(np.zeros(20_000))
        within = np.mean(np.abs(noisy) <= mechanism.error(dtype=float))
        assert 0.94 < within < 0.96


def test_explain_says_the_promise_the_noise_and_the_error():
    text = tacit.Laplace(sensitivity=2, epsilon=0.5).explain()
    assert "ε = 0.5" in text
    assert "scale 2/0.5 = 4" in text
    assert "95 %" in text
    assert "Warning" not in text
    assert "Warning" in tacit.Laplace(epsilon=11).explain()
    assert "δ = 1e-6" in tacit.Gaussian(epsilon=0.5, delta=1e-6).explain()


def test_a_mechanism_prints_as_it_was_made():
    assert repr(tacit.Laplace(sensitivity=2, epsilon=0.5)) == "Laplace(sensitivity=2, epsilon=0.5)"
    assert repr(tacit.Gaussian(epsilon=1, delta=1e-6)) == "Gaussian(sensitivity=1, epsilon=1, delta=1e-6)"


@pytest.mark.parametrize("sensitivity", ["0.001", "0.5", "2.5", "1e-30", "1e30"])
def test_the_error_is_in_the_units_of_what_is_released_at_any_scale(sensitivity):
    exact = Fraction(sensitivity)
    laplace = tacit.Laplace(sensitivity=sensitivity, epsilon="0.5")
    kind = float if exact.denominator > 1 or exact > 2**50 else int
    expected = float(exact) * 2 * log(20)  # of continuous noise, which the grid is near
    assert laplace.error(dtype=kind) == pytest.approx(expected, rel=5e-3)
    gaussian = tacit.Gaussian(sensitivity=sensitivity, epsilon="0.5", delta="1e-6")
    of_one = tacit.Gaussian(sensitivity=2**40, epsilon="0.5", delta="1e-6").error() / 2**40
    assert gaussian.error(dtype=kind) == pytest.approx(float(exact) * of_one, rel=5e-3)
    if exact.denominator > 1:
        assert (laplace.error(), gaussian.error()) == (laplace.error(dtype=float), gaussian.error(dtype=float))
        assert "within 0 " not in laplace.explain() + gaussian.explain()
        assert "Integers" not in laplace.explain()


def test_an_error_is_rounded_up():
    for sensitivity in ("0.001", "1/3", "1e-300"):
        mechanism = tacit.Laplace(sensitivity=sensitivity, epsilon=1)
        draw = mechanism.draw_for(1, is_float=True)
        steps = draw.noise.law.smallest_bound(Fraction(1, 20), 1)
        assert Fraction(mechanism.error()) >= (steps + Fraction(1, 2)) * draw.step


def test_a_fractional_sensitivity_is_recorded_as_what_floats_lose():
    mechanism = tacit.Laplace(sensitivity="0.001", epsilon="0.5")
    assert mechanism.event.sensitivity > 1  # in steps of its grid: integers would not move at all
    assert tacit.compose([mechanism], delta=1e-9).loss.epsilon > Fraction(49, 100)


def test_what_it_says_of_itself_holds_for_floats_too():
    """Whole numbers may get noise that is nearly always 0 where floats, on a finer grid, stray by more."""
    mechanism = tacit.Laplace(sensitivity=1, epsilon=5)
    assert mechanism.error() == 0
    strays = mechanism.error(dtype=float)
    assert strays > 0.5
    assert f"95 % of them are within {show(Fraction(strays))}." in mechanism.explain()
    assert "95 % of them" not in tacit.Laplace(sensitivity=0.5, epsilon=5).explain()
