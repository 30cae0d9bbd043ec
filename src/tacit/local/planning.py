"""How many people, what error, which epsilon for randomized response: any one from the other two.

The rule is the normal one with the estimate's exact standard deviation: with n people the error at a confidence is
z·sd/√n, z the normal quantile. For two answers sd is 1/(2·sinh(epsilon/2)), whatever the true answers are; for more it
depends on how many hold a category, and the largest is taken. docs/proofs/randomized-response.md derives both.
"""

import math
from statistics import NormalDist

from tacit.errors import InvalidParameter
from tacit.noise.mechanism import confidence_meaning
from tacit.privacy.number import Number, decimal_meaning, positive, show, whole

# Beyond these an answer's chance to change, or to tell, is below what a double can hold.
EPSILON_MOST = 36.7


def error_for(*, people: int, epsilon: Number, confidence: Number = 0.95, categories: int = 2) -> float:
    """Return the error of the estimated fraction that is exceeded with chance 1 - confidence.

    >>> round(error_for(people=10_000, epsilon=1), 4)
    0.0188
    """
    count = whole(people, name="people")
    return _quantile(confidence) * spread(_epsilon(epsilon), _kinds(categories)) / math.sqrt(count)


def people_for(*, error: Number, epsilon: Number, confidence: Number = 0.95, categories: int = 2) -> int:
    """Return the least number of people whose estimated fraction has at most this error.

    >>> people_for(error=0.02, epsilon=1)
    8842
    """
    goal = _error(error)
    needed = (_quantile(confidence) * spread(_epsilon(epsilon), _kinds(categories)) / goal) ** 2
    if needed > 2.0**62:
        raise InvalidParameter(
            "error and epsilon ask for more people than there can be\nhint: give a larger error or epsilon"
        )
    return max(1, math.ceil(needed))


def epsilon_for(*, people: int, error: Number, confidence: Number = 0.95, categories: int = 2) -> float:
    """Return the least epsilon at which this many people give at most this error.

    >>> round(epsilon_for(people=10_000, error=0.02), 4)
    0.9445
    """
    goal = _error(error) * math.sqrt(whole(people, name="people")) / _quantile(confidence)
    kinds = _kinds(categories)
    if kinds == 2:
        found = 2 * math.asinh(1 / (2 * goal))
    else:
        low, high = 0.0, EPSILON_MOST
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (low, middle) if middle and spread(middle, kinds) <= goal else (middle, high)
        found = high
    if not found < EPSILON_MOST:
        raise InvalidParameter(
            f"no epsilon gives {people} people so small an error: the answers would go out as they are"
            "\nhint: ask more people, or allow a larger error"
        )
    return found


def spread(epsilon: float, categories: int = 2) -> float:
    """Return the standard deviation of one report's estimate of a fraction, the largest over all true fractions."""
    if categories == 2:
        return 1 / (2 * math.sinh(epsilon / 2))
    others = (categories - 1) * math.exp(-epsilon)
    keep = 1 / (1 + others)
    change = others / (1 + others)
    stray = change / (categories - 1)
    gain = -math.expm1(-epsilon) / (1 + others)
    return math.sqrt(max(keep * change, stray * (1 - stray))) / gain


def _quantile(confidence: Number) -> float:
    return -NormalDist().inv_cdf(float(1 - confidence_meaning(confidence)) / 2)


def _epsilon(epsilon: Number) -> float:
    found = float(positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon"))
    if not 0 < found < EPSILON_MOST:
        raise InvalidParameter(
            f"epsilon must be above 0 and below {EPSILON_MOST}, beyond which answers go out as they are"
        )
    return found


def _error(error: Number) -> float:
    exact = decimal_meaning(error, name="error")
    if not 0 < exact < 1:
        raise InvalidParameter(f"error must be a fraction between 0 and 1, not {show(exact)}\nhint: e.g. error=0.02")
    return float(exact)


def _kinds(categories: int) -> int:
    return whole(categories, name="categories", least=2)
