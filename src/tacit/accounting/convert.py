"""Turn a loss of one notion into another: every result is an upper bound, rounded up (docs/proofs/losses.md).

The order at which a Rényi or zCDP bound is read is found in floating point; the bound itself holds at every order and
is evaluated in ball arithmetic. The last part finds the zero of a function in floating point, for all searches of this
room: only ever to propose; callers verify what they use.

The meaning of a loss for a person: the most that an attacker with all other data can learn, in words too.

The meaning is arithmetic on epsilon and delta only, so it holds for every attacker and every release with that loss
(docs/proofs/tradeoff.md). Displayed numbers are rounded up. The first part extends a loss for one unit to a group of
units (docs/proofs/losses.md).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal
from fractions import Fraction
from math import inf

from flint import arb

from tacit import privacy
from tacit.errors import InvalidParameter
from tacit.numbers import TINY, Number, ball, brief, decimal_meaning, downward, show, upward, whole
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


def for_group(loss: Loss, units: int) -> Loss:
    """Return the loss for any `units` units together. A delta of 1 means that a group of this size gets no promise.

    >>> print(for_group(PureLoss(Fraction(1, 2)), 3))
    ε = 1.5
    """
    whole(units, name="units")
    if units == 1:
        return loss
    if isinstance(loss, PureLoss):
        return PureLoss(units * loss.epsilon)
    if isinstance(loss, ApproximateLoss):
        return ApproximateLoss(units * loss.epsilon, _group_delta(loss, units))
    if isinstance(loss, ZcdpLoss) and loss.delta == 0:
        return ZcdpLoss(units**2 * loss.rho)
    raise InvalidParameter(
        "the loss of a group is known for pure, (epsilon, delta) and exact zCDP losses only"
        "\nhint: convert it to (epsilon, delta) first"
    )


def _group_delta(loss: ApproximateLoss, units: int) -> Fraction:
    """Return delta·(e^(units·epsilon) - 1)/(e^epsilon - 1), the sum of delta·e^(i·epsilon) over i below units."""
    if loss.epsilon == 0:
        return min(units * loss.delta, Fraction(1))

    def delta() -> arb:
        value = ball(loss.delta) * ball(units * loss.epsilon).expm1() / ball(loss.epsilon).expm1()
        return value if value < 1 else arb(1)

    return upward(delta)


# Losses of other notions are read at this delta.
DELTA_READ = Fraction(1, 10**6)
PRIORS = (Fraction(1, 100), Fraction(1, 10), Fraction(1, 2))
ALARMS = (Fraction(1, 1000), Fraction(1, 100), Fraction(5, 100), Fraction(1, 10), Fraction(1, 4), Fraction(1, 2))
GROUPS = (1, 2, 5, 10)
# e to this power has 4,300 digits, and promises are empty long before.
POWER_MOST = 10_000


@dataclass(frozen=True)
class Attack:
    """The most that an attacker with the rest of the table learns about `units` units together."""

    units: int
    epsilon: Fraction
    delta: Fraction

    @property
    def odds(self) -> Fraction | float:
        """The growth of the odds of any belief, except with probability delta: e^epsilon, rounded up."""
        return inf if self.epsilon > POWER_MOST else upward(lambda: ball(self.epsilon).exp())

    @property
    def advantage(self) -> Fraction:
        """How much better than guessing a test for membership can do: (e^epsilon - 1 + 2 delta)/(e^epsilon + 1)."""
        if self.epsilon > POWER_MOST:
            return Fraction(1)
        return min(
            upward(lambda: (ball(self.epsilon).expm1() + 2 * ball(self.delta)) / (ball(self.epsilon).exp() + 1)),
            Fraction(1),
        )

    @property
    def accuracy(self) -> Fraction:
        """How often a guess between two equally likely cases can be right."""
        return (1 + self.advantage) / 2

    def posterior(self, prior: Fraction) -> Fraction:
        """Return the most that a belief of `prior` can become, except with probability delta, rounded up."""
        _chance(prior, name="prior")
        if prior in (0, 1):
            return prior
        if self.epsilon > POWER_MOST:
            return Fraction(1)
        return min(upward(lambda: 1 / (1 + ball((1 - prior) / prior) * (-ball(self.epsilon)).exp())), Fraction(1))

    def detection(self, alarm: Fraction) -> Fraction:
        """Return the most a test can detect that raises a false alarm with chance `alarm`, rounded up."""
        _chance(alarm, name="alarm")
        if self.epsilon > POWER_MOST:
            return Fraction(1)
        steep = upward(lambda: ball(self.epsilon).exp() * ball(alarm) + ball(self.delta))
        left = 1 - self.delta - alarm
        flat = 1 - downward(lambda: (-ball(self.epsilon)).exp() * ball(left)) if left > 0 else Fraction(1)
        return min(steep, flat, Fraction(1))


@dataclass(frozen=True)
class Meaning:
    """The meaning of a loss: the attacks on one unit and on groups, and their text."""

    loss: PureLoss | ApproximateLoss
    attacks: tuple[Attack, ...]
    priors: tuple[Fraction, ...]

    @property
    def one(self) -> Attack:
        return self.attacks[0]

    def curve(self, alarms: Sequence[Fraction] = ALARMS) -> list[tuple[Fraction, Fraction]]:
        """Return (false alarms, most detected) for one unit."""
        return [(alarm, self.one.detection(alarm)) for alarm in alarms]

    def __str__(self) -> str:
        return "\n".join([*self._promise(), *self._beliefs(), *self._tests(), *self._groups()])

    __repr__ = __str__

    def _promise(self) -> list[str]:
        lines = [
            f"{self.loss}: the promise to one person, against an attacker with any knowledge about everyone else.",
            f"  No answer becomes more than {_ratio_words(self.one.odds)} times as likely because of them.",
        ]
        if self.one.delta:
            lines.append(f"  The promise may fail altogether with probability {show(self.one.delta)}.")
        return lines

    def _beliefs(self) -> list[str]:
        lines = ["A belief about them, before and, at most, after:"]
        return lines + [f"  {_percent_up(p):>8} -> {_percent_up(self.one.posterior(p))}" for p in self.priors]

    def _tests(self) -> list[str]:
        lines = [
            f"A guess whether they are in the data at all: right at most {_percent_up(self.one.accuracy)} of the time "
            f"(50 % is guessing; advantage {_percent_up(self.one.advantage)}).",
            "A test for it, by how often it accuses someone who is not in the data:",
            f"  {'false alarms':>12} {'detected, at most':>18}",
        ]
        return lines + [f"  {_percent_up(alarm):>12} {_percent_up(found):>18}" for alarm, found in self.curve()]

    def _groups(self) -> list[str]:
        lines = [
            "Groups, together (a family, a firm):",
            f"  {'people':>6} {'ε':>8} {'δ':>12} {'odds, times':>12} {'50 % becomes':>13} {'advantage':>10}",
        ]
        for attack in self.attacks:
            odds, half = _ratio_words(attack.odds), _percent_up(attack.posterior(Fraction(1, 2)))
            if attack.delta >= 1:
                lines.append(
                    f"  {attack.units:>6} {show(attack.epsilon):>8} {'1':>12} nothing is promised to this group"
                )
                continue
            lines.append(
                f"  {attack.units:>6} {show(attack.epsilon):>8} {_chance_words(attack.delta):>12} {odds:>12} "
                f"{half:>13} {_percent_up(attack.advantage):>10}"
            )
        return lines


def explain(
    epsilon: Number | Loss,
    *,
    delta: Number = 0,
    priors: Sequence[Number] = PRIORS,
    groups: Sequence[int] = GROUPS,
) -> Meaning:
    """Return the meaning of a loss: beliefs, odds, tests for membership, for one person and for groups.

    >>> meaning = explain(1, delta=1e-6)
    >>> print(meaning_line(meaning.loss))
    odds about one person shift at most 2.72 times; a guess whether they are in the data is right at most 73.2 % of ...
    """
    given = epsilon if isinstance(epsilon, Loss) else privacy.epsilon(epsilon, delta=delta)
    loss = _as_epsilon_delta(given)
    for name, listed in (("priors", priors), ("groups", groups)):
        if isinstance(listed, str | bytes) or not isinstance(listed, Iterable):
            raise InvalidParameter(
                f"{name} must be a list of numbers\nhint: e.g. {name}=[{'0.1, 0.5' if name == 'priors' else '2, 5'}]"
            )
    sizes = sorted({1, *(whole(size, name="groups") for size in groups)})
    beliefs = tuple(_chance(decimal_meaning(prior, name="prior"), name="prior") for prior in priors)
    return Meaning(loss, tuple(_attack(loss, units) for units in sizes), beliefs)


def meaning_line(loss: Loss) -> str:
    attack = _attack(_as_epsilon_delta(loss), 1)
    fails = f"; it may fail with probability {brief(attack.delta)}" if attack.delta else ""
    return (
        f"odds about one person shift at most {_ratio_words(attack.odds)} times; a guess whether they are in the data "
        f"is right at most {_percent_up(attack.accuracy)} of the time{fails}"
    )


def _as_epsilon_delta(loss: Loss) -> PureLoss | ApproximateLoss:
    if isinstance(loss, ZcdpLoss | RenyiLoss):
        return to_approximate(loss, max(DELTA_READ, 2 * loss.delta))
    return loss


def _attack(loss: PureLoss | ApproximateLoss, units: int) -> Attack:
    group = for_group(loss, units)
    if not isinstance(group, PureLoss | ApproximateLoss):
        raise TypeError("a group's loss is of the same notion")
    return Attack(units, group.epsilon, group.delta if isinstance(group, ApproximateLoss) else Fraction(0))


def _chance(value: Fraction, *, name: str) -> Fraction:
    if not 0 <= value <= 1:
        raise InvalidParameter(f"{name} must be between 0 and 1, not {show(value)}\nhint: e.g. {name}=0.1 for 10 %")
    return value


def _percent_up(share: Fraction) -> str:
    """Return a share in percent, rounded up; more digits where it is small, or near to certain."""
    digits_shown = 1
    while digits_shown < 5 and (
        0 < 1 - share < Fraction(1, 10 ** (digits_shown + 2)) or 0 < share < Fraction(1, 10 ** (digits_shown + 1))
    ):
        digits_shown += 1
    value = -(-share * 100 * 10**digits_shown // 1) / Fraction(10) ** digits_shown
    return f"{float(value):.{digits_shown}f}".rstrip("0").rstrip(".") + " %"


def _chance_words(chance: Fraction) -> str:
    """Return a chance to three digits, rounded up."""
    shown = show(chance)
    if len(shown) <= 8:
        return shown
    digits = Decimal(chance.numerator) / Decimal(chance.denominator)
    return f"{float(digits.quantize(Decimal(1).scaleb(digits.adjusted() - 2), ROUND_UP)):.3g}"


def _ratio_words(ratio: Fraction | float) -> str:
    if not isinstance(ratio, Fraction) or ratio >= 10**300:
        return str(inf)
    if ratio >= 10**6:
        return f"{float(ratio):.2e}"
    if ratio >= 100:
        return f"{-(-ratio // 1):,}"
    return f"{float(-(-ratio * 100 // 1) / Fraction(100)):g}"
