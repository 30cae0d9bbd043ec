"""The accountant as a case meets it: events by what ran, what they cost, and the rule of a budget."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.accounting import convert, cost
from tacit.accounting import filter as rules
from tacit.privacy import loss as events
from tacit.privacy.loss import ApproximateLoss, Loss
from tacit_gauntlet.targets import original

# what the functions below give
Event = events.Event
Charge = rules.Charge
Rule = rules.BudgetRule

Values = npt.NDArray[np.float64]


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


def partly_of_keys(epsilon: Fraction, delta: Fraction, of_keys: Fraction) -> ApproximateLoss:
    """Return an (epsilon, delta) of whose delta a part is charged as thresholds are."""
    return rules.NoiseLoss(epsilon, delta, of_keys)


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


@dataclass(frozen=True)
class Move:
    """A question of the game: what it is charged, and how likely each loss is, in steps of the lattice."""

    charge: Charge
    losses: tuple[tuple[int, float], ...]
    shown: float = 0.0  # the chance that it shows everything


def solve_mixed_game(rule: Rule, moves: Sequence[Move], *, epsilon: float, step: float) -> tuple[float, int]:
    """Return the largest delta at epsilon of any adaptive way of asking these questions, and how many states it has.

    The gain of a loss is 1 - e^(epsilon - loss) where it is above epsilon. Losses beyond three times epsilon gain 1,
    and those below minus that are taken for it, so the value is never too small.
    """
    reach = math.ceil(3 * epsilon / step)
    lattice = np.arange(-reach, reach + 1) * step
    stop: Values = np.maximum(0.0, -np.expm1(np.minimum(epsilon - lattice, 0.0)))

    @cache
    def best(counts: tuple[int, ...]) -> Values:
        total = no_charge()
        for count, move in zip(counts, moves, strict=True):
            total += move.charge.times(count)
        value = stop
        for place, move in enumerate(moves):
            if rule.admits(total + move.charge):
                after = best(tuple(count + (index == place) for index, count in enumerate(counts)))
                value = np.maximum(value, _mean(after, move))
        return value

    return float(best((0,) * len(moves))[reach]), best.cache_info().currsize


def _mean(after: Values, move: Move) -> Values:
    """Return the mean gain of a question from every loss so far."""
    far = max(abs(loss) for loss, _ in move.losses)
    padded = np.concatenate([np.full(far, after[0]), after, np.ones(far)])
    found = np.full(len(after), move.shown)
    for loss, likely in move.losses:
        found += likely * padded[far + loss : far + loss + len(after)]
    return found
