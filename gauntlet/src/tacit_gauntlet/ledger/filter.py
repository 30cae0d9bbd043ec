"""Attacks on the filter: questions chosen one after the other so as to profit from its two arms (L16).

The strongest test is a game that is solved exactly: every adaptive way of asking randomised-response questions the
rule admits, and the largest chance by which any of them breaks the promise.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, lru_cache

from tacit.accounting import cost
from tacit.accounting.filter import NOTHING, Charge, Rule, charge_of, grains, rule_of
from tacit.privacy.event import Event, ExponentialChoice, GaussianNoise, KeyThreshold, LaplaceNoise, PureChoice
from tacit.privacy.loss import ApproximateLoss
from tacit_gauntlet.frame.case import Evidence, Size, case


@case("L16", title="questions chosen to profit from switching between the filter's arms", feature="accounting")
def adaptive(size: Size) -> Evidence:
    """The declared rule alone decides, and no adaptive way of asking breaks the promise it makes."""
    _rule.cache_clear()
    _charge.cache_clear()  # a mutant may have filled them
    _own_cost.cache_clear()
    sequences = 500 if size == "quick" else 100_000
    wrong = sum(not _decided_by_the_rule(seed) for seed in range(sequences))
    budget = ApproximateLoss(Fraction(1), Fraction(1, 50))
    worst, states = solve_game(
        budget, steps=(1, 3) if size == "quick" else (1, 2, 5), grain=Fraction(1, 10 if size == "quick" else 20)
    )
    promised = float(rule_of(budget).delta_convert)
    details = {
        "sequences": sequences,
        "seeds": f"0 to {sequences - 1}",
        "decided otherwise": wrong,
        "worst delta": worst,
        "promised": promised,
        "states": states,
    }
    return Evidence(wrong == 0 and worst <= promised, details)


def _decided_by_the_rule(seed: int) -> bool:
    """Return whether a made-up sequence of questions is admitted as the rule's definition says, every time."""
    numbers = _Numbers(seed)
    budget = ApproximateLoss(Fraction(numbers.below(8) + 1, 4), Fraction(1, 10 ** (numbers.below(4) + 4)))
    rule = _rule(budget)
    total = NOTHING
    sums = Sums()
    for _ in range(12):
        event = _some_event(numbers, budget)
        after, sums_after = total + _charge(event), sums.with_event(event)
        admitted = rule.admits(after)
        if admitted != sums_after.within(rule):
            return False
        if admitted:
            total, sums = after, sums_after
    return True


@dataclass(frozen=True)
class Sums:
    """The definition, from the events' own costs: every sum within, or all pure and their epsilons within."""

    epsilon: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    all_pure: bool = True

    def with_event(self, event: Event) -> "Sums":
        """Return the sums after one more event."""
        epsilon, rho, delta, is_pure = _own_cost(event)
        return Sums(self.epsilon + epsilon, self.rho + rho, self.delta + delta, self.all_pure and is_pure)

    def within(self, rule: Rule) -> bool:
        """Return whether the rule's definition admits these sums."""
        purely = rule.epsilon is not None and self.all_pure and self.epsilon <= rule.epsilon
        return self.delta <= rule.delta and (purely or (rule.rho is not None and self.rho <= rule.rho))


@lru_cache(maxsize=4096)
def _own_cost(event: Event) -> tuple[Fraction, Fraction, Fraction, bool]:
    """Return an event's epsilon (0 where it has none), rho and delta, and whether it is pure, or none but its delta."""
    loss = cost.zcdp(event)
    epsilon = Fraction(0) if isinstance(event, KeyThreshold) else cost.pure_epsilon(event)
    return grains(epsilon or Fraction(0)), grains(loss.rho), grains(loss.delta), epsilon is not None


@cache
def _rule(budget: ApproximateLoss) -> Rule:
    return rule_of(budget)


@lru_cache(maxsize=4096)
def _charge(event: Event) -> Charge:
    return charge_of([event])


def _some_event(numbers: "_Numbers", budget: ApproximateLoss) -> Event:
    kind, epsilon = numbers.below(5), budget.epsilon / (1 << numbers.below(6))
    if kind == 0:
        return PureChoice(epsilon)
    if kind == 1:
        return LaplaceNoise(scale=Fraction(1), sensitivity=epsilon)
    if kind == 2:
        return ExponentialChoice(epsilon)
    if kind == 3:
        return GaussianNoise(sigma=Fraction(4), sensitivity_squared=epsilon)
    return KeyThreshold(budget.delta / (1 << numbers.below(4)))


class _Numbers:
    """A fixed sequence of small numbers for each seed: what is tried can be tried again."""

    def __init__(self, seed: int) -> None:
        self._state = seed * 2654435761 + 12345

    def below(self, limit: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self._state >> 33) % limit


def solve_game(budget: ApproximateLoss, *, steps: Sequence[int], grain: Fraction) -> tuple[float, int]:
    """Return the largest delta at the budget's epsilon of any adaptive way of asking, and how many states it has.

    Each question is a randomised response of epsilon = steps·grain. After any answers the adversary picks the next
    question the rule admits, or stops; its gain is the mean of (1 - e^(epsilon - loss)) where the loss is above it.
    """
    rule = rule_of(budget)
    costs = [charge_of([PureChoice(step * grain)]) for step in steps]
    goal, size = float(budget.epsilon), float(grain)
    probabilities = [1 / (1 + math.exp(-step * size)) for step in steps]

    @cache
    def best(counts: tuple[int, ...], loss: int) -> float:
        stop = max(0.0, -math.expm1(goal - loss * size))
        total = NOTHING
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
