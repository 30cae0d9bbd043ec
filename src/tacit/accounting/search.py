"""Find the zero of a falling function, in floating point: only ever to propose; callers verify what they use."""

import math
from collections.abc import Callable

from flint import arb

# Excesses are compared on a log scale and clamped, so that far points say only on which side they are.
EXCESS_MAX = 60.0
STEPS_MAX = 200


def crossing(excess: Callable[[float], float], guess: float, *, relative: float = 1e-12) -> float:
    """Return about the x > 0 at which a falling `excess` reaches zero, on the side with values of at most zero."""
    low, high = _bracket(excess, math.log(guess))
    return math.exp(high) if low is None else _narrowed(excess, low, high, relative)


def crossing_between(excess: Callable[[float], float], low: float, high: float, *, relative: float = 1e-12) -> float:
    """Return about where `excess`, above zero at `low` and at most zero at `high`, crosses; on the latter's side."""
    return _narrowed(excess, math.log(low), math.log(high), relative)


def _narrowed(excess: Callable[[float], float], low: float, high: float, relative: float) -> float:
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
