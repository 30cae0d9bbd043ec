"""Turn a loss of one notion into another: every result is an upper bound, rounded up (docs/proofs/losses.md).

The order at which a Rényi or zCDP bound is read is found in floating point; the bound itself holds at every order and
is evaluated in ball arithmetic. The last part finds the zero of a function in floating point, for all searches of this
room: only ever to propose; callers verify what they use.
"""

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from tacit.errors import InvalidParameter
from tacit.numbers import TINY, ball, downward, show, upward
from tacit.privacy import ApproximateLoss, Loss, PureLoss, RenyiLoss, ZcdpLoss


def pure_to_zcdp(epsilon: Fraction) -> Fraction:
    """Return the least rho that every epsilon-DP release keeps to: epsilon·tanh(epsilon/2), below epsilon²/2.

    >>> float(pure_to_zcdp(Fraction(1)))
    0.46211715726...
    """
    return upward(lambda: ball(epsilon) * (ball(epsilon) / 2).tanh())


def zcdp_to_delta(rho: Fraction, epsilon: Fraction) -> Fraction:
    """Return a delta at which rho-zCDP gives (epsilon, delta)-DP, the least over all orders; at most 1."""
    if rho == 0:
        return Fraction(0)
    slope_rho, slope_epsilon = _as_float(rho), _as_float(epsilon)
    order = Fraction(rising_root(lambda b: slope_rho * (2 * b + 1) - slope_epsilon + math.log(b) - math.log1p(b)))
    return min(_delta_at_order(order, (1 + order) * rho, epsilon), Fraction(1))


def zcdp_to_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """Return an epsilon at which rho-zCDP gives (epsilon, delta)-DP, the least over all orders."""
    require_chance(delta)
    if rho == 0:
        return Fraction(0)
    slope_rho, log_delta = _as_float(rho), _log(delta)
    order = Fraction(rising_root(lambda b: slope_rho * b * b + math.log1p(b) + log_delta))
    return _epsilon_at_order(order, (1 + order) * rho, delta)


def rho_within(epsilon: Fraction, delta: Fraction) -> Fraction:
    """Return the largest rho, rounded down, with a conversion that stays within (epsilon, delta).

    >>> float(rho_within(Fraction(1), Fraction(1, 10**6)))
    0.02435597...
    """
    require_chance(delta)
    goal, log_delta = _as_float(epsilon), _log(delta)

    def falls_short(b: float) -> float:
        rho = -(math.log1p(b) + log_delta) / b / b
        return goal - ((2 * b + 1) * rho + math.log(b) - math.log1p(b))

    order = Fraction(rising_root(falls_short))

    def rho() -> arb:
        return ((ball(epsilon) - _order_cost(order, delta)) / ball(1 + order)).nonnegative_part()

    best, less = downward(rho), Fraction(1, 2**36)
    while best > 0 and (zcdp_to_epsilon(best, delta) > epsilon or zcdp_to_delta(best, epsilon) > delta):
        best, less = best * (1 - less), min(2 * less, Fraction(1, 2))  # where floats err by more, in a few steps
    return best


def renyi_to_epsilon(loss: RenyiLoss, delta: Fraction) -> Fraction:
    """Return an epsilon at which a Rényi curve gives (epsilon, delta)-DP: the least over the orders it lists."""
    require_chance(delta)
    left = delta - loss.delta
    if left <= 0:
        raise InvalidParameter(
            f"delta must be above {show(loss.delta)}, which this loss already spends\nhint: give a larger delta"
        )
    return min(_epsilon_at_order(order - 1, cost, left) for order, cost in loss.curve)


def renyi_to_delta(loss: RenyiLoss, epsilon: Fraction) -> Fraction:
    """Return a delta at which a Rényi curve gives (epsilon, delta)-DP, the least over its orders; at most 1."""
    return min(min(_delta_at_order(order - 1, cost, epsilon) for order, cost in loss.curve) + loss.delta, Fraction(1))


def to_approximate(loss: Loss, delta: Fraction) -> ApproximateLoss:
    """Return any loss as (epsilon, delta) at the delta asked for, which must cover what the loss already spends."""
    if isinstance(loss, PureLoss):
        return ApproximateLoss(loss.epsilon, delta)
    if isinstance(loss, RenyiLoss):
        return ApproximateLoss(renyi_to_epsilon(loss, delta), delta)
    if delta < loss.delta or (isinstance(loss, ZcdpLoss) and delta == loss.delta and loss.rho > 0):
        raise InvalidParameter(
            f"delta must be above {show(loss.delta)}, which this loss already spends\nhint: give a larger delta"
        )
    if isinstance(loss, ZcdpLoss):
        epsilon = zcdp_to_epsilon(loss.rho, delta - loss.delta) if loss.rho else Fraction(0)
        return ApproximateLoss(epsilon, delta)
    return ApproximateLoss(loss.epsilon, delta)


def require_chance(delta: Fraction) -> None:
    """Refuse a delta that is not above 0 and below 1, or too small to compute with."""
    if not 0 < delta < 1:
        raise InvalidParameter(f"delta must be above 0 and below 1, not {show(delta)}\nhint: e.g. delta=1e-6")
    if delta < TINY:
        raise InvalidParameter("delta must be at least 2^-2048, the smallest that is computed\nhint: e.g. delta=1e-6")


def _delta_at_order(b: Fraction, divergence: Fraction, epsilon: Fraction) -> Fraction:
    """Return the delta that a divergence at order 1 + b gives: exp(b(divergence - epsilon))·b^b/(1 + b)^(1 + b)."""

    def log_delta() -> arb:
        order = ball(b)
        return ball(b * (divergence - epsilon)) + order * order.log() - (1 + order) * order.log1p()

    def delta() -> arb:
        value = log_delta()
        return arb(1) if value > 0 else value.exp()

    return upward(delta)


def _epsilon_at_order(b: Fraction, divergence: Fraction, delta: Fraction) -> Fraction:
    """Return the epsilon that a divergence at order 1 + b gives at delta; zero if the bound is negative."""

    def epsilon() -> arb:
        value = ball(divergence) + _order_cost(b, delta)
        return arb(0) if value < 0 else value

    return upward(epsilon)


def _order_cost(b: Fraction, delta: Fraction) -> arb:
    """Return what reading order 1 + b at delta adds to epsilon."""
    order = ball(b)
    return (-ball(delta).log() + order * order.log() - (1 + order) * order.log1p()) / order


def _as_float(value: Fraction) -> float:
    return float(min(value, Fraction(10**300)))


def _log(value: Fraction) -> float:
    return math.log(value.numerator) - math.log(value.denominator)


# ---- zeros in floating point -----------------------------------------------------------------------------------------

# Excesses are compared on a log scale and clamped, so that far points say only on which side they are.
EXCESS_MAX = 60.0
STEPS_MAX = 200


def crossing(excess: Callable[[float], float], guess: float, *, relative: float = 1e-12) -> float:
    """Return about the x > 0 at which a falling `excess` reaches zero, on the side with values of at most zero."""
    low, high = _bracket(excess, math.log(guess))
    return math.exp(high) if low is None else _root_between(excess, low, high, relative)


def crossing_between(excess: Callable[[float], float], low: float, high: float, *, relative: float = 1e-12) -> float:
    """Return about where `excess`, above zero at `low` and at most zero at `high`, crosses; on the latter's side."""
    return _root_between(excess, math.log(low), math.log(high), relative)


def _root_between(excess: Callable[[float], float], low: float, high: float, relative: float) -> float:
    """Return the crossing between two logs: false position, halving the stale end, and a bisection every third step."""
    at_low, at_high = excess(math.exp(low)), excess(math.exp(high))
    side = 0
    for step in range(STEPS_MAX):
        if high - low <= relative:
            break
        middle = (low * at_high - high * at_low) / (at_high - at_low) if at_high < 0 else high
        if step % 3 == 2 or not low < middle < high:
            middle = (low + high) / 2
        value = excess(math.exp(middle))
        if value <= 0:
            high, at_high = middle, value
            at_low = at_low / 2 if side > 0 else at_low
            side = 1
        else:
            low, at_low = middle, value
            at_high = at_high / 2 if side < 0 else at_high
            side = -1
    return math.exp(high)


def log_excess(value: arb, target: arb) -> float:
    """Return ln(value/target), clamped: above zero if the value is too large."""
    if not value.is_finite():
        return EXCESS_MAX
    if not value > 0:
        return -EXCESS_MAX
    return max(-EXCESS_MAX, min(EXCESS_MAX, float((value / target).log().mid())))


def rising_root(slope: Callable[[float], float]) -> float:
    """Return about the b > 0 at which a rising function crosses zero, anywhere floating point reaches."""
    low, high = -700.0, 700.0
    while high - low > 1e-13 * max(1.0, abs(low)):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if slope(math.exp(middle)) < 0:
            low = middle
        else:
            high = middle
    return math.exp(high)


def _bracket(excess: Callable[[float], float], guess: float) -> tuple[float | None, float]:
    """Return logs of a point above and a point at or below zero; None for the first if it does not exist."""
    step, low, high = 0.05, guess, guess
    if excess(math.exp(guess)) > 0:
        while excess(math.exp(high)) > 0:
            low, high, step = high, min(high + step, 700.0), step * 2
            if low == high:
                break
        return low, high
    while excess(math.exp(low)) <= 0:
        low, high, step = max(low - step, -700.0), low, step * 2
        if low == high:
            return None, high
    return low, high
