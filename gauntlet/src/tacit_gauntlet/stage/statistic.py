"""Bounds that judge samples: binomial tails, Clopper–Pearson bounds, chi-square tails, and a correlation's bound.

Probabilities are evaluated in ball arithmetic, so a bound returned here is on the safe side of the true one; the
search halves floats, and each float returned was verified. Only the correlation's bound is approximate (by Fisher's z).
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from statistics import NormalDist

from flint import arb

from tacit.errors import InvalidParameter
from tacit.numbers import Formula, as_rational, ball, certainly_less, working_precision

# The false-alarm rate of one statistical test: 100 tests every day for a year raise 0.04 false alarms.
FALSE_ALARM = Fraction(1, 10**9)

_PRECISION = 128
_HALVINGS = 100
_TIGHT = 2.0**-36


def binomial_at_least(successes: int, trials: int, probability: Fraction | float) -> float:
    """Return the chance of at least `successes` in `trials`, rounded up.

    >>> binomial_at_least(2, 2, 0.5)
    0.25
    """
    _check_counts(successes, trials)
    if successes == 0:
        return 1.0
    exact = Fraction(probability)
    return _float_up(lambda: _at_least(successes, trials, exact))


def binomial_at_most(successes: int, trials: int, probability: Fraction | float) -> float:
    """Return the chance of at most `successes` in `trials`, rounded up.

    >>> binomial_at_most(0, 2, 0.5)
    0.25
    """
    return binomial_at_least(trials - successes, trials, 1 - Fraction(probability))


def clopper_pearson_lower(successes: int, trials: int, *, alpha: Fraction | float = FALSE_ALARM) -> float:
    """Return a probability the true one is below with chance at most `alpha` (one-sided, exact coverage).

    >>> round(clopper_pearson_lower(10, 10, alpha=0.05), 4)
    0.7411
    """
    _check_counts(successes, trials)
    exact_alpha = Fraction(alpha)
    if successes == 0:
        return 0.0
    return _largest(lambda p: certainly_less(lambda: _at_least(successes, trials, p), lambda: ball(exact_alpha)))


def clopper_pearson_upper(successes: int, trials: int, *, alpha: Fraction | float = FALSE_ALARM) -> float:
    """Return a probability the true one is above with chance at most `alpha` (one-sided, exact coverage).

    >>> round(clopper_pearson_upper(0, 10, alpha=0.05), 4)
    0.2589
    """
    _check_counts(successes, trials)
    exact_alpha = Fraction(alpha)
    if successes == trials:
        return 1.0
    failures = trials - successes
    return _smallest(lambda p: certainly_less(lambda: _at_least(failures, trials, 1 - p), lambda: ball(exact_alpha)))


def log_ratio_lower(
    successes: tuple[int, int], trials: tuple[int, int], *, alpha: Fraction | float = FALSE_ALARM
) -> float:
    """Return a lower bound of ln(p/q) for two sampled events, wrong with chance at most `alpha`.

    It is the largest loss the samples prove: above a claimed epsilon, the claim is false. The larger of the two
    directions is not taken; ask twice, with the pairs swapped.
    """
    half = Fraction(alpha) / 2
    low = clopper_pearson_lower(successes[0], trials[0], alpha=half)
    high = clopper_pearson_upper(successes[1], trials[1], alpha=half)
    return math.log(low / high) if low > 0 else -math.inf


def chi_square_tail(statistic: float, degrees: int) -> float:
    """Return the chance that a chi-square of `degrees` exceeds `statistic`: a fit's p-value, rounded up.

    >>> round(chi_square_tail(3.841458820694124, 1), 6)
    0.05
    """
    if degrees < 1:
        raise InvalidParameter(f"degrees must be at least 1, not {degrees}\nhint: merge fewer cells")
    if statistic <= 0:
        return 1.0
    return _float_up(lambda: (arb(statistic) / 2).gamma_upper(arb(degrees) / 2, 1))


def chi_square_fit(observed: Sequence[int], expected: Sequence[float]) -> float:
    """Return the p-value of observed counts against expected ones whose totals agree (cells of about 5 or more)."""
    statistic = math.fsum((seen - mean) ** 2 / mean for seen, mean in zip(observed, expected, strict=True))
    return chi_square_tail(statistic, len(observed) - 1)


def correlation_upper(correlation: float, samples: int, *, alpha: Fraction | float = FALSE_ALARM) -> float:
    """Return an upper bound of a correlation seen in `samples` pairs, by Fisher's z (approximate)."""
    if samples <= 3:
        raise InvalidParameter(f"samples must be above 3, not {samples}")
    if abs(correlation) >= 1:
        return 1.0
    quantile = NormalDist().inv_cdf(1 - float(alpha))
    return math.tanh(math.atanh(correlation) + quantile / math.sqrt(samples - 3))


def _check_counts(successes: int, trials: int) -> None:
    if not 0 <= successes <= trials or trials == 0:
        raise InvalidParameter(f"successes must be between 0 and trials, not {successes} of {trials}")


def _at_least(successes: int, trials: int, probability: Fraction) -> arb:
    """P[Binomial(trials, probability) >= successes], for successes of at least 1."""
    return ball(probability).beta_lower(arb(successes), arb(trials - successes + 1), 1)


def _largest(holds: Callable[[Fraction], bool]) -> float:
    """Return nearly the largest float in [0, 1] where `holds` is verified, for a claim that holds below some point."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if high - low <= _TIGHT * high:
            break
        if holds(Fraction(middle)):
            low = middle
        else:
            high = middle
    return low


def _smallest(holds: Callable[[Fraction], bool]) -> float:
    """Return nearly the smallest float in [0, 1] where `holds` is verified, for a claim that holds above some point."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if high - low <= _TIGHT * high:
            break
        if holds(Fraction(middle)):
            high = middle
        else:
            low = middle
    return high


def _float_up(formula: Formula) -> float:
    """Return the least float at or above the ball's upper end, at most 1."""
    with working_precision(_PRECISION):
        exact_upper = as_rational(formula().upper())
    nearest = float(exact_upper)
    return min(1.0, nearest if Fraction(nearest) >= exact_upper else math.nextafter(nearest, math.inf))
