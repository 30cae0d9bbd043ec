"""The public grid: rounding is exact and inside the sensitivity, no value fails, and an answer's form is public."""

from fractions import Fraction
from math import inf, isqrt, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.errors import InvalidParameter
from tacit.noise import grid, mechanism

LAPLACE = tacit.Laplace(sensitivity=1, epsilon=1)
GAUSSIAN = tacit.Gaussian(sensitivity=1, epsilon=1, delta=1e-6)
BOTH = pytest.mark.parametrize("kind", [LAPLACE, GAUSSIAN], ids=["Laplace", "Gaussian"])

floats = st.floats(allow_nan=False, allow_infinity=False)
sensitivities = st.one_of(
    st.fractions(min_value=Fraction(1, 10**9), max_value=10**9),
    st.sampled_from([Fraction(2) ** -1074, Fraction(2) ** 1000, Fraction(3, 10**300)]),
)


def steps_of(values, step):
    return [int(value) for value in grid.to_steps(np.array(values, dtype=np.float64), step)]


@given(st.lists(floats, min_size=1, max_size=5), sensitivities)
def test_rounding_is_to_the_nearest_step_exactly(values, sensitivity):
    step = grid.float_step(sensitivity, spread=len(values))
    for value, steps in zip(values, steps_of(values, step), strict=True):
        assert steps == round(Fraction(value) / step)


@given(floats, floats, sensitivities)
def test_rounding_moves_a_difference_by_at_most_one_step(a, b, sensitivity):
    step = grid.float_step(sensitivity, spread=1)
    first, second = steps_of([a], step)[0], steps_of([b], step)[0]
    assert abs(first - second) * step <= abs(Fraction(a) - Fraction(b)) + step


@given(st.lists(st.tuples(floats, st.floats(-1, 1)), min_size=1, max_size=8), st.fractions(Fraction(1, 100), 100))
def test_what_is_recorded_covers_the_rounded_move_in_l1_and_l2(pairs, sensitivity):
    """Any two vectors within the sensitivity are, once rounded, within the recorded one."""
    first = [a for a, _ in pairs]
    second = [a + float(sensitivity) * shift / len(pairs) for a, shift in pairs]
    moves = [Fraction(b) - Fraction(a) for a, b in zip(first, second, strict=True)]
    exact = max(sum(abs(move) for move in moves), Fraction(1, 10**9))
    laplace = tacit.Laplace(sensitivity=exact, epsilon=1).draw_for(len(pairs), is_float=True)
    moved = [b - a for a, b in zip(steps_of(first, laplace.step), steps_of(second, laplace.step), strict=True)]
    assert sum(abs(move) for move in moved) <= laplace.event.sensitivity
    root = Fraction(isqrt(int(sum(move * move for move in moves) * 10**30)) + 1, 10**15)  # above the L2 length
    gaussian = tacit.Gaussian(sensitivity=root, epsilon=1, delta=1e-6).draw_for(len(pairs), is_float=True)
    moved = [b - a for a, b in zip(steps_of(first, gaussian.step), steps_of(second, gaussian.step), strict=True)]
    assert sum(move * move for move in moved) <= gaussian.event.sensitivity_squared


@pytest.mark.parametrize("size", [1, 2, 3, 10, 1000, 1023, 10**6])
@pytest.mark.parametrize("sensitivity", [Fraction(1), Fraction(1, 3), Fraction(12345), Fraction(1, 10**7)], ids=str)
def test_the_grid_adds_at_most_a_thousandth_to_the_sensitivity(size, sensitivity):
    laplace = tacit.Laplace(sensitivity=sensitivity, epsilon=1).draw_for(size, is_float=True)
    assert sensitivity < laplace.event.sensitivity * laplace.step <= sensitivity * Fraction(1001, 1000)
    gaussian = tacit.Gaussian(sensitivity=sensitivity, epsilon=1, delta=1e-6).draw_for(size, is_float=True)
    length_squared = gaussian.event.sensitivity_squared * gaussian.step**2
    assert sensitivity**2 < length_squared <= (sensitivity * Fraction(1001, 1000)) ** 2


@BOTH
@pytest.mark.parametrize("value", [nan, inf, -inf, 1.7e308, -1.7e308, 5e-324, -0.0, 1e18, 10**30, -(10**400), 2**63])
def test_no_value_makes_a_release_fail(kind, value):
    noisy = kind.release(value)
    assert type(noisy) is type(value)
    if isinstance(value, float):
        assert np.isfinite(noisy)
        step = grid.float_step(Fraction(1), spread=1)
        assert (Fraction(noisy) / step).denominator == 1
    else:
        assert abs(noisy - value) < 10**4


@BOTH
def test_nan_counts_as_zero_and_infinities_as_the_largest_float(kind):
    noisy = kind.release(np.array([nan, inf, -inf, 3.0]))
    assert abs(noisy[0]) < 100
    assert noisy[1:3].tolist() == [grid.LARGEST, -grid.LARGEST]
    assert abs(noisy[3] - 3) < 100


@BOTH
@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (np.zeros((2, 3)), np.float64),
        (np.zeros((2, 3), dtype=np.float32), np.float64),
        (np.zeros(4, dtype=np.float16), np.float64),
        (np.zeros((2, 0)), np.float64),
        (np.array(7.5), np.float64),
        (np.zeros((3, 1), dtype=np.int8), np.int64),
        (np.full(3, 2**64 - 1, dtype=np.uint64), object),
        (np.full(3, 255, dtype=np.uint8), np.int64),
        (np.array([2**70, -(2**70)]), object),
        ([1, 2, 3], np.int64),
        ([[1.5], [2.5]], np.float64),
        ([2**65, -1], object),
        ([1, 2.5, 10**400], np.float64),
        ((), np.float64),
    ],
    ids=repr,
)
def test_shape_and_kind_are_kept(kind, value, dtype):
    noisy = kind.release(value)
    assert isinstance(noisy, np.ndarray)
    assert noisy.shape == np.shape(value)
    assert noisy.dtype == dtype


@BOTH
def test_scalars_come_back_as_python_numbers(kind):
    for value in (3, np.int8(3), np.uint64(2**64 - 1)):
        assert type(kind.release(value)) is int
    for value in (3.5, np.float32(3.5), np.float64(3.5), np.float16(3.5)):
        assert type(kind.release(value)) is float


@BOTH
@pytest.mark.parametrize(
    "value",
    [
        *(True, np.True_, "3", b"3", None, {1: 2}, [True], ["a"], [None], [[1], [1, 2]], Fraction(1, 2)),
        *(np.array([1 + 2j]), np.array(["a"]), np.longdouble(1), np.zeros(1, dtype=np.longdouble)),
        *(np.datetime64("2020-01-01"), np.zeros(2, "M8[s]")),
    ],
    ids=repr,
)
def test_other_kinds_are_refused_by_kind(kind, value):
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        pytest.skip("this machine's long double is a double")
    with pytest.raises(InvalidParameter, match="release takes an integer"):
        kind.release(value)


@settings(max_examples=50)
@given(st.integers(-(2**64), 2**64), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1), st.booleans())
def test_the_same_noisy_steps_give_the_same_answer_whatever_was_exact(noisy, noise_a, noise_b, is_float):
    """Not even the answer's type depends on how exact value and noise share the sum."""
    answers = []
    for noise in (noise_a, noise_b):
        exact, _, _ = grid.read([noisy - noise])
        sums = grid.add_steps(grid.to_steps(exact, Fraction(1)), np.array([noise]))
        answers.append(grid.from_steps(sums, Fraction(1, 1024), is_float=is_float, shape=(1,)))
    assert answers[0].dtype == answers[1].dtype
    assert answers[0].tolist() == answers[1].tolist()
    if not is_float:
        assert answers[0].tolist() == [noisy]


@given(st.integers(-(2**63), 2**63 - 1), st.sampled_from([-1074, -1000, -899, -10, 0, 10, 899, 1000]))
def test_steps_become_the_nearest_float_by_either_way(noisy, exponent):
    step = Fraction(2) ** exponent
    quick = grid.from_steps(np.array([noisy]), step, is_float=True, shape=None)
    slow = grid.from_steps(np.array([noisy], dtype=object), step, is_float=True, shape=None)
    assert quick == slow == grid._float_of(noisy * step)


def test_the_step_comes_from_public_parameters_alone(monkeypatch):
    """Whatever is released, the noise is asked for with the same scale."""
    scales = []
    sample = mechanism.DiscreteLaplace.sample
    monkeypatch.setattr(
        mechanism.DiscreteLaplace, "sample", lambda self, n: scales.append(self.scale) or sample(self, n)
    )
    for value in (0.0, 1e300, nan, -5e-324, 0.1):
        LAPLACE.release(value)
        LAPLACE.release([value, 0.0])
    assert len(set(scales[::2])) == len(set(scales[1::2])) == 1
