"""The filter: which events a budget still admits, when each question is chosen after seeing the last answer.

One rule is fixed when a budget is declared and it alone decides (docs/proofs/ledger.md has the proof). What events
cost is `cost.py`'s business and where totals are kept is the ledger's; here a total is a value and a rule a
comparison, exact in rationals.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
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

HALF = Fraction(1, 2)


@dataclass(frozen=True)
class Charge:
    """What events cost together, in every notion a budget may count.

    `epsilon` is None once an event has no pure epsilon. `delta` is the events' own chance of failing: a threshold's
    is counted there, apart from the pure epsilon beside it.
    """

    epsilon: Fraction | None = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)

    def __add__(self, other: "Charge") -> "Charge":
        pure = self.epsilon is not None and other.epsilon is not None
        return Charge(
            self.epsilon + other.epsilon if pure else None,  # type: ignore[operator]
            self.rho + other.rho,
            self.delta + other.delta if other.delta else self.delta,
        )

    def times(self, count: int) -> "Charge":
        """Return what `count` such charges cost."""
        if count == 0:
            return NOTHING
        return Charge(None if self.epsilon is None else count * self.epsilon, count * self.rho, count * self.delta)


NOTHING = Charge()


@dataclass(frozen=True)
class Rule:
    """One filter: totals inside either arm are admitted, and every total needs its delta inside `delta`.

    The pure arm bounds the summed epsilon of events that are all pure; the zCDP arm bounds the summed rho. An arm that
    is None admits nothing. `delta_convert` is the part of the declared delta that turns rho back into epsilon.
    """

    epsilon: Fraction | None
    rho: Fraction | None
    delta: Fraction
    delta_convert: Fraction = Fraction(0)

    def admits(self, total: Charge) -> bool:
        """Return whether `total`, the new charge included, keeps the promise."""
        return total.delta <= self.delta and (self.admits_purely(total) or self.admits_by_rho(total))

    def admits_purely(self, total: Charge) -> bool:
        """Return whether the pure arm has room, its delta apart."""
        return self.epsilon is not None and total.epsilon is not None and total.epsilon <= self.epsilon

    def admits_by_rho(self, total: Charge) -> bool:
        """Return whether the zCDP arm has room, its delta apart."""
        return self.rho is not None and total.rho <= self.rho


def rule_of(budget: Loss, *, parts: Fraction = HALF) -> Rule:
    """Return the one rule of a budget; `parts` is the share of an (epsilon, delta) budget's delta for events' own.

    >>> rule_of(PureLoss(Fraction(1))).admits(Charge(Fraction(1), Fraction(1, 2)))
    True
    """
    if isinstance(budget, PureLoss):
        return Rule(budget.epsilon, None, Fraction(0))
    if isinstance(budget, ZcdpLoss):
        return Rule(None, budget.rho, budget.delta)
    if isinstance(budget, ApproximateLoss):
        if not 0 < parts < 1:
            raise InvalidParameter(f"parts must be above 0 and below 1, not {parts}\nhint: leave it out for one half")
        delta_convert = budget.delta * (1 - parts)
        rho = convert.rho_within(budget.epsilon, delta_convert)
        return Rule(budget.epsilon, rho, budget.delta - delta_convert, delta_convert)
    raise InvalidParameter(
        "a Rényi curve cannot be a budget\nhint: declare tacit.epsilon(3, delta=1e-6) or tacit.rho(0.1)"
    )


def charge_of(events: Iterable[Event]) -> Charge:
    """Return what one question's events cost together, each amount rounded up to the grain.

    >>> from tacit.privacy.event import PureChoice
    >>> charge_of([PureChoice(Fraction(1, 10))]).epsilon
    Fraction(1, 10)
    """
    total = NOTHING
    for event in events:
        _check(event)
        loss = cost.zcdp(event)
        # a threshold's failure is its delta; what it shows otherwise was paid for by the noise it looks at
        epsilon = Fraction(0) if isinstance(event, KeyThreshold) else cost.pure_epsilon(event)
        total += Charge(None if epsilon is None else grains(epsilon), grains(loss.rho), grains(loss.delta))
    return total


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
