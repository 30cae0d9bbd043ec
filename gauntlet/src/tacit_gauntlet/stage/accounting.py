"""The accountant as a case meets it: events by what ran, what they cost, and the rule of a budget."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

from tacit.accounting import convert, cost
from tacit.accounting import filter as rules
from tacit.privacy import event as events
from tacit.privacy.loss import ApproximateLoss, Loss
from tacit_gauntlet.targets import original

# what the functions below give
Event = events.Event
Charge = rules.Charge
Rule = rules.Rule


def choice(epsilon: Fraction) -> Event:
    """Return the event of a release that is epsilon-DP, however it is drawn."""
    return events.PureChoice(epsilon)


def exponential(epsilon: Fraction) -> Event:
    """Return the event of one draw of the exponential mechanism."""
    return events.ExponentialChoice(epsilon)


def laplace(scale: Fraction, sensitivity: Fraction) -> Event:
    """Return the event of discrete Laplace noise on something that one unit moves so far in L1."""
    return events.LaplaceNoise(scale, sensitivity)


def gaussian(sigma: Fraction, sensitivity_squared: Fraction, *, scalar: bool = False) -> Event:
    """Return the event of discrete Gaussian noise on something that one unit moves so far in L2, squared."""
    return events.GaussianNoise(sigma, sensitivity_squared, scalar=scalar)


def sampled_gaussian(sigma: Fraction, sensitivity_squared: Fraction, rate: Fraction) -> Event:
    """Return the event of discrete Gaussian noise on a sample, in which each unit is with chance `rate`."""
    return events.SubsampledGaussian(sigma, sensitivity_squared, rate)


def threshold(delta: Fraction) -> Event:
    """Return the event of group keys that are shown above a threshold."""
    return events.KeyThreshold(delta)


def is_threshold(event: Event) -> bool:
    """Return whether an event is one of keys, which costs a delta alone."""
    return isinstance(event, events.KeyThreshold)


def staircase_of(event: Event) -> tuple[Fraction, Fraction] | None:
    """Return the epsilon and the sensitivity of staircase noise; None for any other event."""
    return (event.epsilon, event.sensitivity) if isinstance(event, events.StaircaseNoise) else None


def event_from(record: Mapping[str, Any]) -> Event:
    """Return the event that a stored record says."""
    return events.event_from_dict(dict(record))


# ---- costs ---------------------------------------------------------------------------------------------------------


def forget_costs() -> None:
    """Forget the costs computed so far, which a planted bug may have filled."""
    for seam in ("noise_delta", "delta_at", "zcdp"):
        original(seam).cache_clear()


def pure_epsilon(event: Event) -> Fraction | None:
    """Return the epsilon of an event that is pure, or None."""
    return cost.pure_epsilon(event)


def rho_and_delta(event: Event) -> tuple[Fraction, Fraction]:
    """Return what an event costs in zCDP, and the delta beside it."""
    loss = cost.zcdp(event)
    return loss.rho, loss.delta


def delta_at(event: Event, epsilon: Fraction) -> Fraction:
    """Return the delta of one event at an epsilon."""
    return cost.delta_at(event, epsilon)


def noise_delta(event: Event, epsilon: Fraction) -> Fraction:
    """Return the delta that an event's noise needs where it is charged an epsilon."""
    return cost.noise_delta((event,), epsilon)


def rho_of_pure(epsilon: Fraction) -> Fraction:
    """Return the rho that an epsilon is converted to."""
    return convert.pure_to_zcdp(epsilon)


def delta_of_rho(rho: Fraction, epsilon: Fraction) -> Fraction:
    """Return the delta that a rho is converted to, at an epsilon."""
    return convert.zcdp_to_delta(rho, epsilon)


# ---- the rule ------------------------------------------------------------------------------------------------------


def approximate(epsilon: Fraction, delta: Fraction) -> ApproximateLoss:
    """Return an (epsilon, delta) as it is asked for; the delta may be nothing."""
    return ApproximateLoss(epsilon, delta)


def rule_of(budget: Loss) -> Rule:
    """Return the rule by which a budget admits charges."""
    return rules.rule_of(budget)


def charge_of(*drawn: Event, asked: ApproximateLoss | None = None) -> Charge:
    """Return what one question's events are charged together."""
    return rules.charge_of(drawn, asked=asked)


def no_charge() -> Charge:
    """Return the charge of a budget that nothing was spent of."""
    return rules.ZERO_CHARGE


def grains(amount: Fraction) -> Fraction:
    """Return an amount as it is charged: rounded up to the ledger's grain."""
    return rules.grains(amount)


def share_for_noise() -> Fraction:
    """Return the part of a budget's delta that is for noise that is not pure."""
    return rules.FOR_NOISE


def solve_game(budget: Any, *, steps: Sequence[int], grain: Fraction) -> tuple[float, int]:
    """Return the largest delta at the budget's epsilon of any adaptive way of asking, and how many states it has.

    Each question is a randomised response of epsilon = steps·grain. After any answers the adversary picks the next
    question the rule admits, or stops; its gain is the mean of (1 - e^(epsilon - loss)) where the loss is above it.
    """
    rule = rule_of(budget)
    costs = [charge_of(choice(step * grain)) for step in steps]
    goal, size = float(budget.epsilon), float(grain)
    probabilities = [1 / (1 + math.exp(-step * size)) for step in steps]

    @cache
    def best(counts: tuple[int, ...], loss: int) -> float:
        stop = max(0.0, -math.expm1(goal - loss * size))
        total = no_charge()
        for count, charge in zip(counts, costs, strict=True):
            total += charge.times(count)
        gains = [stop]
        for place, step in enumerate(steps):
            if rule.admits(total + costs[place]):
                after = tuple(count + (index == place) for index, count in enumerate(counts))
                likely = probabilities[place]
                gains.append(likely * best(after, loss + step) + (1 - likely) * best(after, loss - step))
        return max(gains)

    worst = best((0,) * len(steps), 0)
    return worst, best.cache_info().currsize
