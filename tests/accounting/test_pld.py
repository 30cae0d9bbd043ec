"""Numerical totals are upper bounds, hardly above the truth, and every error they make is on the safe side."""

import dataclasses
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.accounting import cost, pair, pld
from tacit.accounting.pair import Curve, Lattice, Normal, Pair, pair_of
from tacit.accounting.pld import Total
from tacit.numbers import ball, working_precision
from tacit.privacy.loss import Event, ExponentialChoice, GaussianNoise, KeyThreshold, LaplaceNoise, PureChoice
from tests.accounting import oracle

MILLION = Fraction(1, 10**6)
STEPS = 2**20
WIDE = LaplaceNoise(Fraction(100 * STEPS), Fraction(STEPS))


def total(*events: tuple[Event, int]) -> Total:
    with working_precision(128):
        pairs = [(pair_of(event), count) for event, count in events]
    return Total([(found, count) for found, count in pairs if found is not None])


def composed(masses: dict[int, mpmath.mpf], shift: int, times: int, epsilon: Fraction) -> mpmath.mpf:
    """The delta of `times` releases by plain convolution of losses: no grid, no cut, no transform."""
    single: dict[mpmath.mpf, mpmath.mpf] = {}
    for x, mass in masses.items():
        if x + shift in masses:
            loss = mpmath.nint(mpmath.log(mass / masses[x + shift]) * mpmath.mpf(10) ** 30)
            single[loss] = single.get(loss, mpmath.mpf(0)) + mass
    sums = {mpmath.mpf(0): mpmath.mpf(1)}
    for _ in range(times):
        grown: dict[mpmath.mpf, mpmath.mpf] = {}
        for loss, chance in sums.items():
            for more, part in single.items():
                grown[loss + more] = grown.get(loss + more, mpmath.mpf(0)) + chance * part
        sums = grown
    goal = oracle.real(epsilon)
    excess = ((goal - loss / mpmath.mpf(10) ** 30, chance) for loss, chance in sums.items())
    return mpmath.fsum(chance * -mpmath.expm1(gap) for gap, chance in excess if gap < 0)


@pytest.mark.parametrize(("epsilon", "times"), [(Fraction(1, 2), 2), (Fraction(3, 2), 3), (Fraction(7, 3), 3)])
def test_P4_a_total_is_at_least_the_plain_sum_and_hardly_more(epsilon: Fraction, times: int) -> None:
    for event, masses, shift in (
        (GaussianNoise(Fraction(2), Fraction(1), scalar=True), oracle.gaussian_masses(Fraction(2), 40), 1),
        (LaplaceNoise(Fraction(3), Fraction(2)), oracle.laplace_masses(Fraction(3), 260), 2),
    ):
        truth = composed(masses, shift, times, epsilon)
        ours = oracle.real(total((event, times)).delta(epsilon))
        assert truth <= ours <= truth * (1 + mpmath.mpf(10) ** -9) + mpmath.mpf(2) ** -50


def test_P4_a_total_off_its_own_grid_is_still_at_least_the_truth() -> None:
    """A grid that fits no event: every chance is shared between two points, and none of the shares is optimistic."""
    event, times = GaussianNoise(Fraction(3), Fraction(1), scalar=True), 2
    other = PureChoice(Fraction(1, 3) + Fraction(1, 7 * 10**6))
    masses = oracle.gaussian_masses(Fraction(3), 60)
    found = total((event, times), (other, 1))
    epsilon = Fraction(103, 100)
    flip = 1 / (1 + mpmath.exp(oracle.real(other.epsilon)))
    truth = flip * composed(masses, 1, times, epsilon + other.epsilon)
    truth += (1 - flip) * composed(masses, 1, times, epsilon - other.epsilon)
    assert truth <= oracle.real(found.delta(epsilon)) <= truth * (1 + mpmath.mpf(10) ** -6)


def test_a_grid_point_below_is_optimistic_and_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: chances between two points go to the lower one."""

    def lower(found: Lattice, step: Fraction) -> list[arb]:
        ratio = found.step / step
        masses = [arb(0)] * (int((len(found.masses) - 1) * ratio) + 2)
        for i, mass in enumerate(found.masses):
            masses[int(i * ratio)] += mass
        return masses

    monkeypatch.setattr(pair, "_lattice_masses", lower)
    with pytest.raises(AssertionError):
        test_P4_a_total_off_its_own_grid_is_still_at_least_the_truth()


@pytest.mark.parametrize("count", [1, 7, 1000])
def test_P2_many_gaussians_are_one_with_the_root_of_their_number(count: int) -> None:
    event = GaussianNoise(Fraction(30 * STEPS), Fraction(STEPS**2))
    epsilon = total((event, count)).epsilon(MILLION)
    assert epsilon is not None
    with working_precision(128):
        truth = cost.continuous_gaussian_delta(arb(count).sqrt() / 30, ball(epsilon))
        relative = truth / ball(MILLION)
    assert relative <= 1
    assert relative >= 1 - 1e-5


def test_a_normal_loss_is_at_or_above_its_tails_in_every_cell() -> None:
    """The quick way to put a normal loss on a grid against its exact tails, cell by cell."""
    normal = Normal(Fraction(1, 10), arb(1), Fraction(0))
    step = Fraction(1, 500)
    quick = pair._normal(normal, step)
    with working_precision(128):
        exact = pair._floats(_narrow_cells(pair.normal_curve(normal), step))
    assert len(quick.masses) == len(exact)
    assert np.all(quick.masses >= exact * (1 - 1e-14))
    assert np.all(quick.masses <= exact * (1 + 1e-9) + 1e-20)


def _narrow_cells(curve: Curve, step: Fraction) -> list[arb]:
    saved = pair.SHARING_COST
    try:
        pair.SHARING_COST = 0.0
        return pair._curve_masses(curve, step)[0]
    finally:
        pair.SHARING_COST = saved


def test_a_single_release_has_its_exact_epsilon() -> None:
    from tacit.accounting.cost import epsilon_at

    for event in (
        GaussianNoise(Fraction(10), Fraction(1), scalar=True),
        LaplaceNoise(Fraction(10), Fraction(3)),
        ExponentialChoice(Fraction(1, 2)),
        PureChoice(Fraction(1)),
    ):
        found = total((event, 1)).epsilon(MILLION)
        assert found is not None
        assert epsilon_at(event, MILLION) * Fraction(999_999_999, 10**9) <= found
        assert found <= epsilon_at(event, MILLION) * Fraction(100_001, 100_000)


def test_thresholds_add_their_chance_of_failing() -> None:
    noise = GaussianNoise(Fraction(10), Fraction(1), scalar=True)
    plain, failing = total((noise, 1)), total((noise, 1), (KeyThreshold(Fraction(1, 10**7)), 3))
    epsilon = Fraction(1, 2)
    assert failing.delta(epsilon) >= plain.delta(epsilon) * (1 - Fraction(3, 10**7)) + Fraction(3, 10**7) * Fraction(
        99, 100
    )
    assert failing.epsilon(Fraction(2, 10**7)) is None


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 400), st.fractions(Fraction(1, 50), Fraction(1)), st.integers(1, 12))
def test_epsilon_and_delta_agree(times: int, epsilon: Fraction, digits: int) -> None:
    """The epsilon at a delta is where the delta at that epsilon is that delta, or smaller."""
    promises = total((PureChoice(epsilon.limit_denominator(100)), times))
    delta = Fraction(1, 10**digits)
    found = promises.epsilon(delta)
    assert found is not None
    assert promises.delta(found) <= delta * (1 + Fraction(1, 10**6))
    if found > 0:
        assert promises.delta(found * Fraction(99, 100)) > delta * Fraction(999, 1000)


def test_the_window_loses_nothing_above(monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies above the window is added; the mutant that forgets it falls below the truth."""
    monkeypatch.setattr(pld, "ABOVE", 0.7)
    monkeypatch.setattr(pld, "WINDOW", pld.BELOW + 0.7)
    many = total((PureChoice(Fraction(1, 10)), 4000))
    honest = many.delta(Fraction(12))
    monkeypatch.undo()
    truth = many.delta(Fraction(12))
    assert honest >= truth * (1 - Fraction(1, 10**6))
    monkeypatch.setattr(pld, "ABOVE", 0.7)
    monkeypatch.setattr(pld, "WINDOW", pld.BELOW + 0.7)
    monkeypatch.setattr(pld, "_above", lambda *_: arb(0))
    assert many.delta(Fraction(12)) < truth


@pytest.mark.parametrize("size", [8, 64, 1024])
def test_the_transform_keeps_to_its_error(size: int) -> None:
    values = np.random.default_rng(7).random(size) ** 9
    spectrum = pair.transform(values)
    with mpmath.workprec(120):
        turns = [mpmath.expjpi(mpmath.mpf(-2 * k) / size) for k in range(size)]
        places = range(0, size // 2 + 1, max(1, size // 64))
        exact = [mpmath.fsum(float(v) * turns[j * k % size] for j, v in enumerate(values)) for k in places]
        gaps = [abs(mpmath.mpc(spectrum[k]) - value) for k, value in zip(places, exact, strict=True)]
        length = mpmath.sqrt(size * mpmath.fsum(mpmath.mpf(float(v)) ** 2 for v in values))
    assert mpmath.sqrt(mpmath.fsum(gap**2 for gap in gaps)) <= pair.relative_error(size) * length
    back = pair.inverse(spectrum)
    assert np.linalg.norm(back - values) <= 2 * pair.relative_error(size) * np.linalg.norm(values)


def test_powers_are_within_their_error() -> None:
    rate = Fraction(-3, 1000)
    found = pair.powers(rate, 3000)
    for i in range(0, 3000, 37):
        truth = mpmath.exp(oracle.real(rate * i))
        assert abs(found[i] / truth - 1) <= pair.POWER_ERROR


def test_a_coarse_wrong_root_would_show(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mutant: roots of unity in single precision break the transform's promise."""
    roots = pair._roots
    monkeypatch.setattr(pair, "_roots", lambda size: roots(size).astype(np.complex64).astype(np.complex128))
    with pytest.raises(AssertionError):
        test_the_transform_keeps_to_its_error(1024)


def test_a_batch_too_fine_for_any_grid_is_refused_by_name() -> None:
    from tacit.errors import InvalidParameter

    with pytest.raises(InvalidParameter, match="the batch is empty"):
        Total([])
    with pytest.raises(InvalidParameter, match="epsilon must be at least 0"):
        total((PureChoice(Fraction(1)), 2)).delta(Fraction(-1))
    with pytest.raises(InvalidParameter, match="delta must be above 0"):
        total((PureChoice(Fraction(1)), 2)).epsilon(Fraction(0))


def test_dp_accounting_is_never_tighter() -> None:
    accounting = pytest.importorskip("dp_accounting")
    accountant = pytest.importorskip("dp_accounting.pld.pld_privacy_accountant")
    gaussian = GaussianNoise(Fraction(30 * STEPS), Fraction(STEPS**2))
    laplace, normal = accounting.LaplaceDpEvent(100), accounting.GaussianDpEvent(30)
    for ours, theirs in (
        ([(WIDE, 1000)], [(laplace, 1000)]),
        ([(gaussian, 1000)], [(normal, 1000)]),
        ([(WIDE, 100), (gaussian, 100)], [(laplace, 100), (normal, 100)]),
    ):
        peer = accountant.PLDAccountant()
        for event, count in theirs:
            peer.compose(event, count)
        epsilon = total(*ours).epsilon(MILLION)
        assert epsilon is not None
        assert float(epsilon) <= peer.get_epsilon(1e-6)
        assert float(epsilon) >= peer.get_epsilon(1e-6) * (1 - 1e-4)


def test_pairs_are_values() -> None:
    found: Pair | None = pair_of(PureChoice(Fraction(1)))
    assert isinstance(found, Lattice)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.start = Fraction(0)  # type: ignore[misc]
    assert math.isclose(sum(float(mass) for mass in found.masses), 1)
    assert pld.choose_step([(found, 3)]) == 2
