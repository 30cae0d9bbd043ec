"""The filter: which events a budget still admits, when each question is chosen after seeing the last answer.

One rule is fixed when a budget is declared and it alone decides (docs/proofs/ledger.md has the proof). What events
cost is `cost.py`'s business and where totals are kept is the ledger's; here a total is a value and a rule a
comparison, exact in rationals.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from math import lcm

from tacit.accounting import convert, cost
from tacit.errors import InvalidParameter
from tacit.privacy.event import Event, KeyThreshold
from tacit.privacy.loss import ApproximateLoss, Loss, PureLoss, ZcdpLoss

# Amounts are multiples of 1/GRAIN, so that a total stays short however many different ones it adds. Decimals to 30
# places and fractions over anything to 40 are exact; any other amount is rounded up to a multiple of 2^-96.
GRAIN = 2**64 * 10**30 * lcm(*range(1, 41))
_FINE = 2**96

# How the delta of a budget is divided, and a question's delta likewise: for keys that nobody listed; for noise that is
# not pure, where losses are added as they were asked; and for turning a sum of rho back into epsilon.
FOR_KEYS = Fraction(3, 8)
FOR_NOISE = Fraction(1, 8)
FOR_RHO = 1 - FOR_KEYS - FOR_NOISE


@dataclass(frozen=True)
class Charge:
    """What events cost together, in every notion a budget may count.

    `epsilon` is what was asked, by plain addition, and None once a question did not say; all noise is within it but
    for a chance of `delta_noise`, which is 0 for pure noise. `delta` is the chance that a threshold fails.
    """

    epsilon: Fraction | None = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    delta_noise: Fraction = Fraction(0)

    def __add__(self, other: "Charge") -> "Charge":
        said = self.epsilon is not None and other.epsilon is not None
        return Charge(
            self.epsilon + other.epsilon if said else None,  # type: ignore[operator]
            self.rho + other.rho,
            self.delta + other.delta if other.delta else self.delta,
            self.delta_noise + other.delta_noise if other.delta_noise else self.delta_noise,
        )

    def times(self, count: int) -> "Charge":
        """Return what `count` such charges cost."""
        if count == 0:
            return NOTHING
        epsilon = None if self.epsilon is None else count * self.epsilon
        return Charge(epsilon, count * self.rho, count * self.delta, count * self.delta_noise)


NOTHING = Charge()


@dataclass(frozen=True)
class Rule:
    """One filter: totals inside either arm are admitted, and every total needs its thresholds' delta inside `delta`.

    The arm of addition bounds the summed epsilon and, inside `delta_noise`, the chance that noise is beyond it; the
    zCDP arm bounds the summed rho. An arm that is None admits nothing. `delta_convert` is the part of the declared
    delta that turns rho back into epsilon.
    """

    epsilon: Fraction | None
    rho: Fraction | None
    delta: Fraction
    delta_convert: Fraction = Fraction(0)
    delta_noise: Fraction = Fraction(0)

    def admits(self, total: Charge) -> bool:
        """Return whether `total`, the new charge included, keeps the promise."""
        return total.delta <= self.delta and (self.admits_by_addition(total) or self.admits_by_rho(total))

    def admits_by_addition(self, total: Charge) -> bool:
        """Return whether the arm of addition has room, the thresholds' delta apart."""
        if self.epsilon is None or total.epsilon is None:
            return False
        return total.epsilon <= self.epsilon and total.delta_noise <= self.delta_noise

    def admits_by_rho(self, total: Charge) -> bool:
        """Return whether the zCDP arm has room, the thresholds' delta apart."""
        return self.rho is not None and total.rho <= self.rho


def rule_of(budget: Loss) -> Rule:
    """Return the one rule of a budget.

    >>> rule_of(PureLoss(Fraction(1))).admits(Charge(Fraction(1), Fraction(1, 2)))
    True
    """
    if isinstance(budget, PureLoss):
        return Rule(budget.epsilon, None, Fraction(0))
    if isinstance(budget, ZcdpLoss):
        return Rule(None, budget.rho, budget.delta)
    if isinstance(budget, ApproximateLoss):
        delta_convert = budget.delta * FOR_RHO
        rho = convert.rho_within(budget.epsilon, delta_convert)
        return Rule(budget.epsilon, rho, budget.delta * FOR_KEYS, delta_convert, budget.delta * FOR_NOISE)
    raise InvalidParameter(
        "a Rényi curve cannot be a budget\nhint: declare tacit.epsilon(3, delta=1e-6) or tacit.rho(0.1)"
    )


def charge_of(events: Iterable[Event], *, asked: ApproximateLoss | None = None) -> Charge:
    """Return what one question's events cost together, each amount rounded up to the grain.

    `asked` is the (epsilon, delta) that its noise was made for. Where the noise is pure and within that epsilon the
    delta is not needed; where it is beyond, what it truly needs is charged.

    >>> from tacit.privacy.event import PureChoice
    >>> charge_of([PureChoice(Fraction(1, 10))]).epsilon
    Fraction(1, 10)
    """
    drawn, total = tuple(events), NOTHING
    for event in drawn:
        _check(event)
        loss = cost.zcdp(event)
        # a threshold's failure is its delta; what it shows otherwise was paid for by the noise it looks at
        epsilon = Fraction(0) if isinstance(event, KeyThreshold) else cost.pure_epsilon(event)
        total += Charge(None if epsilon is None else grains(epsilon), grains(loss.rho), grains(loss.delta))
    if asked is None or (total.epsilon is not None and total.epsilon <= asked.epsilon):
        return total
    needed = max(asked.delta, cost.noise_delta(drawn, asked.epsilon))
    return replace(total, epsilon=grains(asked.epsilon), delta_noise=grains(needed))


def covers(charged: Charge, events: Iterable[Event]) -> bool:
    """Return whether events cost no more than was charged for them, in every notion that the charge states."""
    drawn = tuple(events)
    cost_of = charge_of(drawn)
    if cost_of.rho > charged.rho or cost_of.delta > charged.delta:
        return False
    if charged.epsilon is None or (cost_of.epsilon is not None and cost_of.epsilon <= charged.epsilon):
        return True
    return cost.noise_delta(drawn, charged.epsilon) <= charged.delta_noise


def _check(event: Event) -> None:
    """Refuse an event whose amounts are not exact, or that no noise could have: its cost would mean nothing."""
    for field in fields(event):
        value = getattr(event, field.name)
        if isinstance(value, bool) and field.name == "scalar":
            continue
        least_is_zero = field.name not in {"scale", "sigma"}
        if isinstance(value, bool) or not isinstance(value, Fraction | int):
            raise InvalidParameter(f"an event's {field.name} must be a Fraction, not {type(value).__name__}")
        if value < 0 or (value == 0 and not least_is_zero):
            raise InvalidParameter(f"an event's {field.name} must be {'at least' if least_is_zero else 'above'} 0")


def grains(amount: Fraction) -> Fraction:
    """Return the amount, rounded up to the grain where it is not a multiple of it; never less."""
    if amount < 0:
        raise InvalidParameter("a charge cannot be below 0\nhint: an event's scale and sensitivity must be above 0")
    return amount if GRAIN % amount.denominator == 0 else Fraction(-(-amount * _FINE // 1), _FINE)


def grains_below(amount: Fraction) -> Fraction:
    """Return the amount, rounded down to the grain, so that shares which add up to a limit still do when charged.

    One so small that little of it would be left stays as it is.
    """
    lowered = amount if GRAIN % amount.denominator == 0 else Fraction(amount * _FINE // 1, _FINE)
    return lowered if 2 * lowered > amount else amount
