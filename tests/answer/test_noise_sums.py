"""How far sums of noises stray: as a plain convolution says, and as certain digits of the closed form say."""

from fractions import Fraction
from math import prod

import numpy as np
import pytest
from flint import arb

from tacit.answer.noise_sums import nearest_bound, weighted_bound, weighted_bounds, whole_sum_bound
from tacit.numbers import ball, nearest_float, working_precision
from tacit.privacy.law import GaussianLaw, LaplaceLaw

LEVELS = [Fraction(1, 2), Fraction(95, 100), Fraction(999, 1000)]


def least_by_convolution(noise: str, scale: Fraction, weights: tuple[int, ...], confidence: Fraction) -> int:
    """The least a, by the masses of each noise convolved one after the other."""
    law = LaplaceLaw(scale) if noise == "laplace" else GaussianLaw(scale)
    reach = law.smallest_bound(Fraction(1, 10**14))
    half = np.array([nearest_float(lambda x=x: law.pmf(x)) for x in range(reach + 1)])
    masses = np.concatenate([half[:0:-1], half])
    total = np.ones(1)
    for weight in weights:
        spread = np.zeros(2 * reach * abs(weight) + 1)
        spread[:: abs(weight)] = masses
        total = np.convolve(total, spread)
    middle = len(total) // 2
    for a in range(middle):
        if 1 - total[middle - a : middle + a + 1].sum() <= float(1 - confidence):
            return a
    raise AssertionError


@pytest.mark.parametrize("confidence", LEVELS)
@pytest.mark.parametrize("weights", [(1, 1), (1, 1, 1), (1, 1, 1, 1), (3, -2), (4, 4, -6)])
@pytest.mark.parametrize("scale", [Fraction(1, 5), Fraction(1), Fraction(7, 3)])
@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_whole_weights_have_the_least_bound(noise, scale, weights, confidence):
    assert whole_sum_bound(noise, scale, weights, confidence) == least_by_convolution(noise, scale, weights, confidence)


def laplace_sum_tail(sizes: list[Fraction], distance: float) -> arb:
    """Pr[|sum| > distance] of continuous Laplace noises of different scales, with certain digits."""
    total = arb(0)
    for place, size in enumerate(sizes):
        others = [other for at, other in enumerate(sizes) if at != place]
        factor = prod((size**2 / (size**2 - other**2) for other in others), start=Fraction(1))
        total += ball(factor) * (-ball(Fraction(distance) / size)).exp()
    return total


@pytest.mark.parametrize("miss", [Fraction(1, 2), Fraction(1, 20), Fraction(1, 400), Fraction(1, 9_000)])
@pytest.mark.parametrize("count", [2, 3, 4, 9, 10])
def test_weighted_noises_stay_within_their_bound_and_it_is_no_wider_than_it_must_be(count, miss):
    shapes = [
        [Fraction(100 - place, 100) for place in range(count)],
        [Fraction(1, 2**place) for place in range(count)],
        [Fraction(1), *(Fraction(1 + place, 1000) for place in range(count - 1))],
    ]
    # so wide a scale that the one step of each discrete noise is nothing
    found = weighted_bounds("laplace", Fraction(10**12), np.array(shapes, dtype=float), 1 - miss)
    for sizes, bound in zip(shapes, found, strict=True):
        alone = weighted_bound("laplace", Fraction(10**12), [float(size) for size in sizes], 1 - miss)
        for each in (bound, alone):
            with working_precision(512):
                assert laplace_sum_tail(sizes, each / 1e12) <= ball(miss)
                assert laplace_sum_tail(sizes, each / 1e12 * 0.98) > ball(miss)


def test_a_bound_at_a_tiny_chance_to_miss_still_holds():
    sizes = [Fraction(100 - place, 100) for place in range(5)]
    (found,) = weighted_bounds("laplace", Fraction(10**12), np.array([sizes], dtype=float), 1 - Fraction(1, 10**9))
    with working_precision(512):
        assert laplace_sum_tail(sizes, found / 1e12) <= arb(1) / 10**9
        assert laplace_sum_tail(sizes, found / 1e12 * 0.8) > arb(1) / 10**9


def test_no_noise_has_no_bound():
    assert whole_sum_bound("laplace", Fraction(3), (0, 0), LEVELS[1]) == 0
    assert weighted_bounds("laplace", Fraction(3), np.zeros((2, 3)), LEVELS[1]).tolist() == [0, 0]


@pytest.mark.parametrize("height", [1, 2, 3, 10, 101])
def test_a_rounded_quotient_is_off_by_its_bound_at_most(height):
    scale, weights = Fraction(2 * height), (1, 1, 1)
    strays = whole_sum_bound("laplace", scale, weights, LEVELS[1])
    bound = nearest_bound("laplace", scale, weights, height, LEVELS[1])
    nearest = [(2 * stray + height) // (2 * height) for stray in (-strays, strays)]
    assert max(map(abs, nearest)) <= bound
    assert bound <= strays / height + Fraction(1, 2)
