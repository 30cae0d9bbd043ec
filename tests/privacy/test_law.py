"""The laws of the noise are exact: every ball holds the true number, every bound is the least, nothing is cut off."""

import math
from fractions import Fraction

import mpmath
import pytest
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InvalidParameter
from tacit.numbers import nearest_float, working_precision
from tacit.privacy import law as gaussian_law
from tacit.privacy.law import GaussianLaw, LaplaceLaw, Law
from tests.accounting import oracle

SCALES = [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(12)]
LAWS: list[Law] = [law(scale) for law in (LaplaceLaw, GaussianLaw) for scale in SCALES]
WIDE = [Fraction(1, 10**6), Fraction(1, 3), Fraction(1), Fraction(5), Fraction(40), Fraction(10**6), Fraction(2**56)]


def holds(value: arb, true: mpmath.mpf) -> bool:
    """Whether the ball holds the oracle's number, to the oracle's 200 bits."""
    with working_precision(256):
        oracle_ball = arb(mpmath.nstr(true, 65), mpmath.nstr(abs(true) * mpmath.mpf(2) ** -200, 5))
        return bool(value.overlaps(oracle_ball))


def oracle_masses(law: Law) -> dict[int, mpmath.mpf]:
    if isinstance(law, LaplaceLaw):
        return oracle.laplace_masses(law.scale, int(150 * law.scale) + 150)
    return oracle.gaussian_masses(law.sigma, int(20 * law.sigma) + 60)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_mass_tails_and_variance_are_those_of_the_plain_sum(law: Law) -> None:
    masses = oracle_masses(law)
    with working_precision(128):
        for x in (-30, -3, -1, 0, 1, 2, 5, 31):
            assert holds(law.pmf(x), masses[x])
            assert holds(law.upper_tail(x), mpmath.fsum(masses[y] for y in masses if y >= x))
            assert holds(law.cdf(x), mpmath.fsum(masses[y] for y in masses if y <= x))
            assert holds(law.tail(x), mpmath.fsum(masses[y] for y in masses if abs(y) > x))
        assert holds(law.variance(), mpmath.fsum(y * y * masses[y] for y in masses))


@pytest.mark.parametrize("bits", [64, 128, 500])
@pytest.mark.parametrize("sigma", [Fraction(3, 5), Fraction(6), Fraction(16), Fraction(60)])
def test_a_gaussian_tail_holds_the_true_sum_however_it_was_computed(sigma: Fraction, bits: int) -> None:
    masses = oracle.gaussian_masses(sigma, int(20 * sigma) + 400)
    for x in (1, int(sigma) + 1, int(5 * sigma), int(8 * sigma) + 1):
        with working_precision(bits):
            value = GaussianLaw(sigma).upper_tail(x)
        assert holds(value, mpmath.fsum(masses[y] for y in range(x, max(masses) + 1)))
        assert value.rel_accuracy_bits() > bits - 30


@pytest.mark.parametrize("far", [10, 10**3, 10**6, 10**9])
def test_a_far_tail_of_a_wide_gaussian_keeps_its_relative_accuracy(far: int) -> None:
    sigma = Fraction(2**50)
    with working_precision(256):
        x = far * 2**50
        tail, mass = GaussianLaw(sigma).upper_tail(x), GaussianLaw(sigma).pmf(x)
        assert tail.rel_accuracy_bits() > 128
        # far out, Mills' ratio: between 1 - 1/far² and 1 of sigma/far, in units of the mass
        ratio = tail / mass * far / 2**50
        assert arb(1) - arb(1) / far**2 < ratio < arb(1) + arb(far) / 2**40


def test_a_mass_too_small_for_any_ball_still_has_a_tail_that_holds_zero() -> None:
    with working_precision(128):
        tail = GaussianLaw(Fraction(1, 10**6)).upper_tail(10**40)
        assert tail.contains(0) or tail > 0
        assert tail < arb(2) ** -(10**6)


def test_the_remainder_in_the_radius_is_what_keeps_a_short_expansion_honest() -> None:
    """A mutant without the remainder gives a ball that misses the true sum where the expansion stops early."""
    sigma, x = Fraction(3), 7
    true = mpmath.fsum(oracle.gaussian_masses(sigma, 80)[y] for y in range(x, 81))

    def one_term_only() -> arb:
        with working_precision(400):  # asks for more than the expansion can give at so small a sigma
            value, reached = gaussian_law._euler_maclaurin(sigma, x)
            assert not reached
            return value / gaussian_law._normaliser(sigma, 400)

    honest = one_term_only()
    assert holds(honest, true)
    with working_precision(400):
        assert not holds(honest.mid(), true)


@pytest.mark.parametrize("law", [law(scale) for law in (LaplaceLaw, GaussianLaw) for scale in WIDE], ids=str)
def test_tails_agree_with_masses_at_every_scale(law: Law) -> None:
    with working_precision(160):
        for x in (-2, 0, 1, 3, 1000):
            assert (law.upper_tail(x) - law.upper_tail(x + 1)).overlaps(law.pmf(x))
            assert (law.upper_tail(x) + law.cdf(x - 1)).overlaps(arb(1))
            assert law.cdf(x).overlaps(law.upper_tail(-x))


@pytest.mark.parametrize("law", [law(scale) for law in (LaplaceLaw, GaussianLaw) for scale in WIDE], ids=str)
@pytest.mark.parametrize(
    "p", [Fraction(1, 10**9), Fraction(1, 3), Fraction(1, 2), Fraction(3, 4), Fraction(999999, 10**6)]
)
def test_a_quantile_is_the_first_value_at_which_enough_lies_below(law: Law, p: Fraction) -> None:
    x = law.quantile(p)
    with working_precision(256):
        assert law.cdf(x) >= arb(p.numerator) / p.denominator
        assert law.cdf(x - 1) < arb(p.numerator) / p.denominator


@pytest.mark.parametrize("law", [law(scale) for law in (LaplaceLaw, GaussianLaw) for scale in WIDE], ids=str)
@pytest.mark.parametrize(
    ("chance", "coordinates"), [(Fraction(1, 20), 1), (Fraction(1, 20), 10_000), (Fraction(1, 10**12), 3)]
)
def test_a_simultaneous_bound_is_the_least(law: Law, chance: Fraction, coordinates: int) -> None:
    bound = law.smallest_bound(chance, coordinates)
    with working_precision(256):
        allowed = 1 - arb(chance.numerator) / chance.denominator
        assert (1 - law.tail(bound)) ** coordinates >= allowed
        assert bound == 0 or (1 - law.tail(bound - 1)) ** coordinates < allowed


def test_L2_the_tail_past_t_scales_is_near_e_to_the_minus_t_and_exact() -> None:
    law = LaplaceLaw(Fraction(1000))
    for t in (1, 2, 5):
        discrete = nearest_float(lambda t=t: law.tail(1000 * t))
        assert discrete == pytest.approx(math.exp(-t), rel=1e-3)
        assert discrete != math.exp(-t)
    # the mean of n values in [0, 1] with noise of scale 1/(epsilon n): beyond 2/(epsilon n) with chance e^-2 <= 1/4
    assert nearest_float(lambda: law.tail(2000)) <= 0.25


def test_L4_ten_thousand_names_are_all_within_a_little_less_than_ln_200000() -> None:
    steps = 1000  # epsilon = 1 on a grid of 1/1000
    bound = LaplaceLaw(Fraction(steps)).smallest_bound(Fraction(1, 20), 10_000)
    union = math.log(10_000 / 0.05)
    assert union == pytest.approx(12.2, abs=0.01)
    assert union - 0.03 < bound / steps < union
    # counts themselves are whole: none is off by more than 12
    assert LaplaceLaw(Fraction(1)).smallest_bound(Fraction(1, 20), 10_000) == 12


def test_G3_the_discrete_gaussian_varies_less_than_sigma_squared() -> None:
    for sigma in (Fraction(1, 3), Fraction(1, 2), Fraction(1), Fraction(3)):
        with working_precision(256):
            assert GaussianLaw(sigma).variance() < arb(sigma.numerator**2) / sigma.denominator**2


@given(
    kind=st.sampled_from([LaplaceLaw, GaussianLaw]),
    scale=st.fractions(min_value=Fraction(1, 8), max_value=8, max_denominator=16),
    shift=st.integers(0, 6),
    epsilon=st.fractions(min_value=0, max_value=6, max_denominator=8),
)
def test_P4_delta_is_the_plain_sum_over_the_bad_set(
    kind: type[Law], scale: Fraction, shift: int, epsilon: Fraction
) -> None:
    law = kind(scale)
    with mpmath.workprec(240), working_precision(160):
        true = oracle.hockey_stick(oracle_masses(law), shift, epsilon)
        value = law.delta(shift, epsilon)
        assert value.overlaps(arb(mpmath.nstr(true, 60), "1e-40"))
        assert value.overlaps(law.delta(-shift, epsilon))


@given(
    kind=st.sampled_from([LaplaceLaw, GaussianLaw]),
    scale=st.fractions(min_value=Fraction(1, 4), max_value=50, max_denominator=8),
    shift=st.integers(0, 60),
    epsilon=st.fractions(min_value=0, max_value=4, max_denominator=8),
)
def test_a_larger_move_is_never_hidden_better(kind: type[Law], scale: Fraction, shift: int, epsilon: Fraction) -> None:
    with working_precision(128):
        assert kind(scale).delta(shift + 1, epsilon) > kind(scale).delta(shift, epsilon) - arb(2) ** -100


def test_a_cut_one_step_off_undercounts_the_bad_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant that puts the boundary of the bad set one step too far reports less delta than there is."""
    law, epsilon = GaussianLaw(Fraction(2)), Fraction(1)
    with working_precision(128):
        exact = law.delta(1, epsilon)
        right_cut = GaussianLaw._cut
        for wrong in (1, -1):
            monkeypatch.setattr(GaussianLaw, "_cut", lambda self, s, e, wrong=wrong: right_cut(self, s, e) + wrong)
            assert law.delta(1, epsilon) < exact


@pytest.mark.parametrize("make", [LaplaceLaw, GaussianLaw])
def test_a_law_refuses_no_scale_and_no_chance(make: type[Law]) -> None:
    for scale in (Fraction(0), Fraction(-1)):
        with pytest.raises(InvalidParameter, match="above 0"):
            make(scale)
    for p in (Fraction(0), Fraction(1), Fraction(-1), Fraction(2)):
        with pytest.raises(InvalidParameter, match="above 0 and below 1"):
            make(Fraction(1)).quantile(p)
        with pytest.raises(InvalidParameter, match="above 0 and below 1"):
            make(Fraction(1)).smallest_bound(p)
    with pytest.raises(InvalidParameter, match="coordinates"):
        make(Fraction(1)).smallest_bound(Fraction(1, 2), 0)
