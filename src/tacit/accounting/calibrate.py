"""The least noise for a target loss, verified at the noise chosen (docs/proofs/calibration.md).

A search in floats proposes a sigma, rounded up to a short rational; the exact delta at that sigma decides. The other
direction, the loss for a noise, is `cost`'s.
"""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache

from flint import arb

from tacit.accounting import cost
from tacit.accounting.convert import crossing, crossing_between, log_excess, require_chance, rho_within
from tacit.accounting.cost import SEARCH_BITS, delta_at
from tacit.errors import InvalidParameter
from tacit.privacy import (
    SCALE_MIN,
    GaussianLaw,
    GaussianNoise,
    ball,
    least_integer,
    positive,
    shortened,
    working_precision,
)

# From here on the grid's steps no longer show in delta beyond a relative 1e-9, and sigma is searched as a real number.
SIGMA_SMOOTH = 1 << 14
# No table's noise is as wide; past it floats could not even search.
SIGMA_BEYOND = 1e200
# Sigmas are multiples of a power of two that is about 2^-30 of them; finer only if that overshoots.
SIGMA_BITS = (30, 38, 46, 54)


def laplace_scale(sensitivity: Fraction, epsilon: Fraction) -> Fraction:
    """Return the least scale at which Laplace noise hides a move of `sensitivity` in L1 at epsilon.

    >>> laplace_scale(Fraction(1), Fraction(1, 10))
    Fraction(10, 1)
    """
    positive(epsilon, name="epsilon")
    return max(positive(sensitivity, name="sensitivity") / epsilon, SCALE_MIN)


@lru_cache(maxsize=4096)
def gaussian_sigma(sensitivity: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the least sigma, within one part in 10^7, at which one coordinate is (epsilon, delta)-DP.

    The discrete law's own delta is used: above epsilon = 1 it is not monotone in sigma where sigma is small.

    >>> float(gaussian_sigma(Fraction(1), Fraction(1), Fraction(1, 10**6)))
    4.230778...
    """
    _require_target(epsilon, delta)
    shift = math.floor(positive(sensitivity, name="sensitivity"))

    def holds(sigma: Fraction) -> bool:
        return delta_at(GaussianNoise(sigma, Fraction(shift) ** 2, scalar=True), epsilon) <= delta

    if holds(SCALE_MIN):  # always if the sensitivity is below one step, since such moves round to 0
        return SCALE_MIN

    def excess(sigma: float) -> float:
        with working_precision(SEARCH_BITS):
            return log_excess(GaussianLaw(Fraction(sigma)).delta(shift, epsilon), ball(delta))

    continuous = _continuous_sigma(lambda: ball(shift), epsilon, delta)
    if continuous > SIGMA_SMOOTH or 2 * epsilon < shift:  # delta then falls with sigma all the way
        found = crossing(excess, continuous)
    else:
        found = _first_crossing(excess, shift, epsilon, continuous)
    return _verified(holds, found)


@lru_cache(maxsize=4096)
def gaussian_sigma_vector(sensitivity_squared: Fraction, epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return a sigma at which a vector that moves by the root of `sensitivity_squared` in L2 is (epsilon, delta)-DP.

    Exact where only one coordinate can move by one step; otherwise the smaller of two bounds that hold whatever the
    shape of the move: zCDP, and continuous noise blurred onto the grid.
    """
    _require_target(epsilon, delta)
    positive(sensitivity_squared, name="sensitivity_squared")
    if sensitivity_squared < 2:
        return gaussian_sigma(sensitivity_squared, epsilon, delta)

    def holds(sigma: Fraction) -> bool:
        return delta_at(GaussianNoise(sigma, sensitivity_squared), epsilon) <= delta

    if holds(SCALE_MIN):
        return SCALE_MIN
    rho = rho_within(epsilon, delta)
    by_zcdp = math.sqrt(sensitivity_squared / (2 * rho)) if rho else math.inf
    blur = cost.smoothing(sensitivity_squared, epsilon).blur_squared
    continuous = _continuous_sigma(lambda: ball(sensitivity_squared).sqrt(), epsilon, delta)
    found = min(by_zcdp, math.hypot(continuous, math.sqrt(blur)))
    return _verified(holds, found)


def _require_target(epsilon: Fraction, delta: Fraction) -> None:
    positive(epsilon, name="epsilon")
    require_chance(delta)


def _continuous_sigma(move: Callable[[], arb], epsilon: Fraction, delta: Fraction) -> float:
    def excess(sigma: float) -> float:
        with working_precision(SEARCH_BITS):
            width = ball(Fraction(sigma))
            return log_excess(cost.continuous_gaussian_delta(move() / width, ball(epsilon)), ball(delta))

    with working_precision(SEARCH_BITS):
        # for a wide move's delta; if epsilon is almost 0, delta alone asks for noise of about move/delta
        guess = move() * ((2 * (1 / ball(delta)).log() + ball(epsilon)).sqrt() / ball(epsilon)).min(1 / ball(delta))
        if not guess < SIGMA_BEYOND:
            raise InvalidParameter(
                "this epsilon and delta ask for noise far wider than can be drawn\nhint: give a larger epsilon or delta"
            )
    return crossing(excess, float(guess))


def _first_crossing(excess: Callable[[float], float], shift: int, epsilon: Fraction, about: float) -> float:
    """Return about the least sigma at which delta reaches its goal, among the several at which it may.

    As sigma grows past each value at which the cut between the good and the bad set is a whole number n, delta turns
    from falling to rising: those are its local minima. Between two of them it rises, then falls.
    """
    first = shift // 2 + 1  # the cuts run from here: n - first = 0, 1, ...

    def turning(n: int) -> float:
        return math.sqrt((first + n - Fraction(shift, 2)) * shift / epsilon) * (1 - 1e-15)

    begin = math.floor(epsilon * Fraction(about) ** 2 / shift + Fraction(shift, 2)) - first
    n = least_integer(lambda n: excess(turning(n)) <= 0, max(begin, 0))
    low = turning(n - 1) if n else turning(0) / 2
    while excess(low) <= 0:  # only below the first turning, where delta falls all the way from 1
        low /= 2
    return crossing_between(excess, low, turning(n))


def _verified(holds: Callable[[Fraction], bool], found: float) -> Fraction:
    """Return a short sigma at or just above `found` at which `holds` is certain."""
    for sigma in _candidates(Fraction(found)):
        if holds(sigma):
            return sigma
    raise InvalidParameter("no noise was found for this loss\nhint: please report the epsilon and delta used")


def _candidates(found: Fraction) -> Iterator[Fraction]:
    if found <= SCALE_MIN:
        yield SCALE_MIN
    for bits in SIGMA_BITS:
        yield max(shortened(found, up=True, bits=bits), SCALE_MIN)
    growth = Fraction(1, 2**40)
    while growth < 1:
        yield max(shortened(found * (1 + growth), up=True, bits=60), SCALE_MIN)
        growth *= 2
