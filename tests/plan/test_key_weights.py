"""Keys shown by weights: the threshold is the least whose exact delta fits for every number of groups of a unit."""

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.plan import groups as groups_page
from tacit.plan.bounds.scaling import Scaling, Vector
from tacit.plan.groups import UNIT_SHIFT, key_weight, threshold_for_weights
from tests.engine.scaling_reference import Cell, contributions

mpmath.mp.dps = 60
UNIT = 1 << UNIT_SHIFT
MILLIONTH = Fraction(1, 10**6)


def weight_of_reference(groups, *, shift=UNIT_SHIFT, cap=UNIT, norm):
    """What a unit in so many groups adds to each, as the plain reference of scaling tells it."""
    scaling = Scaling(norm, (Vector("units", shift=shift, cap=cap),), ((0,),))
    (added,) = contributions(scaling, [Cell(1)] * groups)
    assert len(set(added)) == 1
    return added[0]


@lru_cache
def law(noise, scale):
    """Return x -> Pr[Z >= x], added up term by term once."""
    far = (60 if noise == "laplace" else 16) * (int(scale) + 1) + 2 * UNIT
    s = mpmath.mpf(scale.numerator) / scale.denominator
    masses = [mpmath.exp(-x / s) if noise == "laplace" else mpmath.exp(-((x / s) ** 2) / 2) for x in range(far + 1)]
    whole = 2 * mpmath.fsum(masses) - masses[0]
    tails = [mpmath.mpf(0)] * (far + 2)
    for x in range(far, -1, -1):
        tails[x] = tails[x + 1] + masses[x] / whole
    return lambda x: tails[min(x, far + 1)] if x >= 0 else 1 - tails[min(1 - x, far + 1)]


def delta_by_force(tail, least, most, weight):
    """The largest chance, over every number of groups, that one of a unit's own keys is shown."""
    return max(1 - (1 - tail(least - weight(count))) ** count for count in range(1, most + 1))


@given(groups=st.integers(1, 600), norm=st.sampled_from([1, 2]), shift=st.integers(-1, 24), cap=st.integers(1, 1 << 24))
def test_a_unit_gives_each_of_its_keys_the_weight_that_scaling_gives(groups, norm, shift, cap):
    assert key_weight(groups, shift=shift, cap=cap, norm=norm) == weight_of_reference(
        groups, shift=shift, cap=cap, norm=norm
    )


@given(groups=st.integers(1, 10**6), norm=st.sampled_from([1, 2]))
def test_weights_never_rise_with_the_groups_and_stay_within_one_unit(groups, norm):
    here, next_one = key_weight(groups, norm=norm), key_weight(groups + 1, norm=norm)
    assert next_one <= here
    assert here**norm * groups <= UNIT**norm


def found_and_forced(threshold_of, noise, scale, most, delta, cap=64, shift=6):
    """Return the threshold, the largest chance at it, and the largest just below it."""
    norm = 1 if noise == "laplace" else 2
    found = threshold_of(noise, scale, cap=cap, shift=shift, norm=norm, groups_most=most, delta=delta, release=3)
    weight = partial(weight_of_reference, shift=shift, cap=cap, norm=norm)
    tail = law(noise, scale)
    return found, *(delta_by_force(tail, least, most, weight) for least in (found.least, found.least - 1))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@settings(max_examples=6, deadline=None)
@given(
    scale=st.sampled_from(["1/3", "2", "17/2", "64", "100", "300"]),
    most=st.integers(1, 60),
    power=st.integers(1, 9),
    cap=st.sampled_from([64, 200]),
)
def test_the_threshold_is_the_least_that_fits_for_every_number_of_groups(noise, scale, most, power, cap):
    scale, delta = Fraction(scale), Fraction(1, 10**power)
    found, here, below = found_and_forced(threshold_for_weights, noise, scale, most, delta, cap)
    assert here <= mpmath.mpf(found.delta.numerator) / found.delta.denominator
    assert found.delta <= delta
    assert found.least == 1 or below > mpmath.mpf(delta.numerator) / delta.denominator
    assert float(found.delta) == pytest.approx(float(here), rel=1e-12)
    assert found.release == 3


def test_the_worst_number_of_groups_is_one_or_the_most_or_between():
    """So that trying one of them alone cannot pass for trying all."""
    worst = set()
    for scale, cap in ((8, 64), (2000, 64), (8, 200)):
        found, here, _ = found_and_forced(threshold_for_weights, "gaussian", Fraction(scale), 60, MILLIONTH, cap)
        tail, weight = law("gaussian", Fraction(scale)), partial(weight_of_reference, shift=6, cap=cap, norm=2)
        chances = {count: 1 - (1 - tail(found.least - weight(count))) ** count for count in range(1, 61)}
        worst.add(max(chances, key=chances.get))
        assert max(chances.values()) == here
    assert worst == {1, 60, 9}


def test_a_unit_that_could_have_a_million_million_groups_still_has_a_threshold():
    found = threshold_for_weights(
        "gaussian", Fraction(5000), norm=2, groups_most=10**12, delta=Fraction(1, 10**6), release=0
    )
    assert found.delta <= Fraction(1, 10**6)
    with_fewer = threshold_for_weights(
        "gaussian", Fraction(5000), norm=2, groups_most=256, delta=Fraction(1, 10**6), release=0
    )
    assert with_fewer.least < found.least < 2 * with_fewer.least


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_a_delta_too_small_for_a_float_has_a_threshold(noise):
    delta = Fraction(1, 10**400)
    norm = 1 if noise == "laplace" else 2
    found = threshold_for_weights(noise, Fraction(100), norm=norm, groups_most=256, delta=delta, release=0)
    assert found.delta <= delta


# ---- What a wrong threshold would be: the chances themselves must tell each of these from the right one.


def too_likely(threshold_of):
    """Return whether a key of one single unit is shown too often anywhere, among noises of several scales."""
    found = []
    for noise, scale, cap in product(("laplace", "gaussian"), (Fraction(1, 3), Fraction(8), Fraction(500)), (64, 200)):
        threshold, here, _ = found_and_forced(threshold_of, noise, scale, 60, MILLIONTH, cap)
        found.append(here > mpmath.mpf(threshold.delta.numerator) / threshold.delta.denominator)
    return any(found)


def one_group_alone(noise, scale, *, groups_most, **rest):
    return threshold_for_weights(noise, scale, groups_most=1, **rest)


def one_group_and_the_most_alone(noise, scale, *, groups_most, delta, cap, shift, norm, release):
    """Tries both ends, and none between."""
    chance = Fraction(1 - (1 - float(delta)) ** (1 / groups_most))
    alone = threshold_for_weights(
        noise, scale, cap=cap, shift=shift, norm=norm, groups_most=1, delta=delta, release=release
    )
    many = threshold_for_weights(
        noise, scale, cap=cap, shift=shift, norm=norm, groups_most=1, delta=chance, release=release
    )
    lower = (1 << shift) - key_weight(groups_most, cap=cap, shift=shift, norm=norm)
    return replace(alone, least=max(alone.least, many.least - lower))


def one_step_lower(noise, scale, **rest):
    found = threshold_for_weights(noise, scale, **rest)
    return replace(found, least=found.least - 1)


def the_delta_of_one_group_alone(noise, scale, *, groups_most, **rest):
    found = threshold_for_weights(noise, scale, groups_most=groups_most, **rest)
    return replace(found, delta=found.delta / groups_most)


def test_the_right_threshold_is_nowhere_too_likely():
    assert not too_likely(threshold_for_weights)


@pytest.mark.parametrize(
    "wrong", [one_group_alone, one_group_and_the_most_alone, one_step_lower, the_delta_of_one_group_alone]
)
def test_a_threshold_that_forgets_a_number_of_groups_is_told_by_its_chances(wrong):
    assert too_likely(wrong)


def a_step_lighter(groups, *, shift=UNIT_SHIFT, cap=UNIT, norm):
    """What a planner would think whose engine rounded weights up."""
    return key_weight(groups, shift=shift, cap=cap, norm=norm) - (groups > 1)


def as_if_all_noise_were_laplace(groups, *, shift=UNIT_SHIFT, cap=UNIT, norm):
    return key_weight(groups, shift=shift, cap=cap, norm=1)


@pytest.mark.parametrize("wrong", [a_step_lighter, as_if_all_noise_were_laplace])
def test_a_threshold_for_lighter_weights_is_told_by_its_chances(wrong, monkeypatch):
    monkeypatch.setattr(groups_page, "key_weight", wrong)
    assert too_likely(threshold_for_weights)
