"""The noise of many rounds on samples of the people, for an (epsilon, delta) that all of them together may cost.

A search in floats proposes a sigma, and the rounded-up total of the batch at that sigma decides. The total is numerical
where that is the least bound (docs/proofs/sampled-rounds.md), and the floats of another machine may round otherwise:
so the noise is made for a little less than the delta that is charged.
"""

import math
from fractions import Fraction
from functools import lru_cache

from tacit.accounting.cost import noise_delta
from tacit.errors import InvalidParameter, QueryRefused
from tacit.numbers import shortened, show
from tacit.privacy import SCALE_MAX, ApproximateLoss, GaussianNoise, SubsampledGaussian

# The part of delta that the noise leaves free, far more than two machines' totals differ by.
MARGIN = Fraction(1, 64)
# The count of people has noise of about this over epsilon: less than a fiftieth of the loss.
COUNT_NOISE = 40
# Sigmas are found to this part of them.
CLOSE = 1e-3
CLOSE_IN_DELTA = 0.03
# The logarithm of delta falls about so fast with that of the noise.
SLOPE = 25.0
TRIES = 40
ROUNDS_MOST = 1_000_000
Rounds = tuple[GaussianNoise, SubsampledGaussian]


@lru_cache(maxsize=256)
def sampled_rounds(loss: ApproximateLoss, rate: Fraction, rounds: int, step: int) -> Rounds:
    """Return the events of a noisy count of people and of `rounds` sums over samples, all within the loss.

    Each person is in a sample with chance `rate`, and moves a sum by at most `step` in L2.

    >>> _, event = sampled_rounds(ApproximateLoss(Fraction(1), Fraction(1, 10**6)), Fraction(1, 128), 256, 1024)
    >>> round(float(event.sigma / 1024), 2)
    0.99
    """
    if not 1 <= rounds <= ROUNDS_MOST:
        raise InvalidParameter(f"there must be between 1 and {ROUNDS_MOST:,} rounds, not {rounds}")
    if not 0 < rate <= 1:
        raise InvalidParameter(f"rate must be above 0 and at most 1, not {show(rate)}\nhint: e.g. rate=0.01")
    of_count = shortened(max(Fraction(COUNT_NOISE) / loss.epsilon, Fraction(1)), up=True, bits=20)
    count = GaussianNoise(of_count, Fraction(1), scalar=True)

    def events(noise: float) -> Rounds:
        sigma = shortened(Fraction(noise) * step, up=True, bits=30)
        if sigma > SCALE_MAX:
            raise QueryRefused("this epsilon asks for noise wider than can be drawn\nhint: give a larger epsilon")
        return count, SubsampledGaussian(sigma, Fraction(step) ** 2, rate, Fraction(rounds))

    def excess(noise: float) -> float:
        found = noise_delta(events(noise), loss.epsilon)
        return math.log(found / goal) if found else -math.inf

    goal = loss.delta * (1 - MARGIN)
    below, above = (0.0, 0.0), (math.inf, 0.0)  # noise that is too little, and enough; each with how far it is off
    noise = _about(float(loss.epsilon), float(loss.delta), float(rate), rounds)
    for _ in range(TRIES):
        over = excess(noise)
        if over > 0:
            below = (noise, over)
        else:
            above = (noise, over)
        if -CLOSE_IN_DELTA <= over <= 0 or above[0] <= below[0] * (1 + CLOSE):
            return events(above[0])
        noise = _next_noise(below, above, noise, over)
    raise QueryRefused("no noise was found for this epsilon, rate and number of rounds\nhint: fewer epochs")


def _about(epsilon: float, delta: float, rate: float, rounds: int) -> float:
    """Return about the noise, as if all rounds together were one Gaussian release."""
    tail = math.sqrt(-2 * math.log(delta))
    move = math.sqrt(tail * tail + 2 * epsilon) - tail
    growth = move * move / (rate * rate * rounds)
    return 1 / math.sqrt(math.log1p(growth))


def _next_noise(below: tuple[float, float], above: tuple[float, float], noise: float, over: float) -> float:
    """Return the next noise to try: where a line through the two nearest crosses, a little to the side of enough."""
    if not below[0] or above[0] == math.inf:
        return noise * math.exp(max(-1.0, min(1.0, over / SLOPE)) + math.copysign(CLOSE, over))
    low, high = math.log(below[0]), math.log(above[0])
    share = below[1] / (below[1] - above[1]) if above[1] > -math.inf else 0.5
    near = low + share * (high - low) + CLOSE / 3
    return math.exp(min(max(near, low + CLOSE / 3), high - CLOSE / 3))
