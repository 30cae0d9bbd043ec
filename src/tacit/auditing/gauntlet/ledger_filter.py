"""Attacks on the filter: questions chosen one after the other so as to profit from its two arms (L16).

The strongest test is a game that is solved exactly: every adaptive way of asking randomised-response questions the
rule admits, and the largest chance by which any of them breaks the promise.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from tacit.accounting import cost
from tacit.accounting.filter import NOTHING, Rule, charge_of, grains, rule_of
from tacit.auditing.gauntlet.case import Evidence, Size, case
from tacit.privacy.event import Event, ExponentialChoice, GaussianNoise, KeyThreshold, LaplaceNoise, PureChoice
from tacit.privacy.loss import ApproximateLoss


@case("L16", title="questions chosen to profit from switching between the filter's arms", feature="accounting")
def adaptive(size: Size) -> Evidence:
    """The declared rule alone decides, and no adaptive way of asking breaks the promise it makes."""
    sequences = 500 if size == "quick" else 100_000
    wrong = sum(not _decided_by_the_rule(seed) for seed in range(sequences))
    budget = ApproximateLoss(Fraction(1), Fraction(1, 50))
    worst, states = solve_game(
        budget, steps=(1, 3) if size == "quick" else (1, 2, 5), grain=Fraction(1, 10 if size == "quick" else 20)
    )
    promised = float(rule_of(budget).delta_convert)
    details = {
        "sequences": sequences,
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
    rule = rule_of(budget)
    if rule.rho is None or rule.epsilon is None:
        return False
    total = NOTHING
    admitted: list[Event] = []
    for _ in range(12):
        event = _some_event(numbers, budget)
        after = total + charge_of([event])
        if rule.admits(after) != _admissible([*admitted, event], rule):
            return False
        if rule.admits(after):
            total = after
            admitted.append(event)
    return True


def _admissible(events: Sequence[Event], rule: Rule) -> bool:
    """The definition, from the events themselves: both sums within, or all pure and their epsilons within."""
    losses = [cost.zcdp(event) for event in events]
    epsilons = [cost.pure_epsilon(event) for event in events if not isinstance(event, KeyThreshold)]
    if sum(grains(loss.delta) for loss in losses) > rule.delta:
        return False
    by_rho = rule.rho is not None and sum(grains(loss.rho) for loss in losses) <= rule.rho
    pure = [grains(epsilon) for epsilon in epsilons if epsilon is not None]
    return by_rho or (rule.epsilon is not None and len(pure) == len(epsilons) and sum(pure) <= rule.epsilon)


def _some_event(numbers: "_Numbers", budget: ApproximateLoss) -> Event:
    epsilon = budget.epsilon / (1 << numbers.below(6))
    events: list[Event] = [
        PureChoice(epsilon),
        LaplaceNoise(scale=Fraction(1), sensitivity=epsilon),
        ExponentialChoice(epsilon),
        GaussianNoise(sigma=Fraction(4), sensitivity_squared=epsilon),
        KeyThreshold(budget.delta / (1 << numbers.below(4))),
    ]
    return events[numbers.below(len(events))]


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
