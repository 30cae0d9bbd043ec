"""Attacks on the filter by questions chosen one after the other (L16, L20), and on what a charge states (L21).

The strongest tests are games that are solved exactly: every adaptive way of asking, as long as the rule admits it, and
the most by which the promise breaks. In L16 all noise is pure; in L20 there are also Gaussian noise and a mechanism
that shows everything with a small chance.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any

import tacit
from tacit.errors import LedgerError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.accounting import (
    Charge,
    Event,
    Move,
    Rule,
    approximate,
    charge_of,
    choice,
    exponential,
    forget_costs,
    gaussian,
    grains,
    is_threshold,
    laplace,
    no_charge,
    noise_delta,
    partly_of_keys,
    pure_epsilon,
    rho_and_delta,
    rule_of,
    share_for_noise,
    solve_game,
    solve_mixed_game,
    threshold,
)
from tacit_gauntlet.stage.forgery import digest_of
from tacit_gauntlet.stage.ledger import open_at, private_home, refused, register, stating


@case("L16", title="questions chosen to profit from switching between the filter's arms", feature="accounting")
def adaptive(size: Size) -> Evidence:
    """The declared rule alone decides, and no adaptive way of asking breaks the promise it makes."""
    _rule.cache_clear()
    _charge.cache_clear()  # a mutant may have filled them
    _own_cost.cache_clear()
    sequences = 500 if size == "quick" else 100_000
    wrong = sum(not _decided_by_the_rule(seed) for seed in range(sequences))
    budget = approximate(Fraction(1), Fraction(1, 50))
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
    budget = approximate(Fraction(numbers.below(8) + 1, 4), Fraction(1, 10 ** (numbers.below(4) + 4)))
    rule = _rule(budget)
    total = no_charge()
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
    rho, delta = rho_and_delta(event)
    epsilon = Fraction(0) if is_threshold(event) else pure_epsilon(event)
    return grains(epsilon or Fraction(0)), grains(rho), grains(delta), epsilon is not None


@cache
def _rule(budget: Any) -> Rule:
    return rule_of(budget)


@lru_cache(maxsize=4096)
def _charge(event: Event) -> Charge:
    return charge_of(event)


def _some_event(numbers: "_Numbers", budget: Any) -> Event:
    kind, epsilon = numbers.below(5), budget.epsilon / (1 << numbers.below(6))
    if kind == 0:
        return choice(epsilon)
    if kind == 1:
        return laplace(scale=Fraction(1), sensitivity=epsilon)
    if kind == 2:
        return exponential(epsilon)
    if kind == 3:
        return gaussian(sigma=Fraction(4), sensitivity_squared=epsilon)
    return threshold(budget.delta / (1 << numbers.below(4)))


class _Numbers:
    """A fixed sequence of small numbers for each seed: what is tried can be tried again."""

    def __init__(self, seed: int) -> None:
        self._state = seed * 2654435761 + 12345

    def below(self, limit: int) -> int:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self._state >> 33) % limit


BUDGET: Any = tacit.epsilon(1, delta=Fraction(1, 50))


@case("L20", title="questions that are not pure, chosen to profit from both arms of the rule", feature="accounting")
def both_arms(size: Size) -> Evidence:
    """No adaptive way of asking breaks the promise by more than the two arms' deltas, which are parts of one.

    With thresholds, and noise that is charged as they are, it is broken by no more than all three parts.
    """
    forget_costs()
    rule = rule_of(BUDGET)
    divided = rule.delta + rule.delta_noise + rule.delta_convert
    worst, of_keys, states = 0.0, 0.0, 0
    for moves, sigma in _games(size):
        value, count = solve_mixed_game(rule, moves, epsilon=float(BUDGET.epsilon), step=1 / (2 * sigma**2))
        is_of_keys = any(move.charge.delta for move in moves)
        worst, of_keys = (worst, max(of_keys, value)) if is_of_keys else (max(worst, value), of_keys)
        states += count
    promised = float(rule.delta_noise + rule.delta_convert)
    details = {
        "worst delta": worst,
        "promised": promised,
        "worst with thresholds": of_keys,
        "states": states,
        "delta in all": float(divided),
    }
    return Evidence(divided <= BUDGET.delta and worst <= promised and of_keys <= float(divided), details)


def _games(size: Size) -> Iterator[tuple[list[Move], int]]:
    """Yield sets of questions, and the sigma whose losses are the lattice they live on."""
    for sigma in (5,) if size == "quick" else (4, 5, 6):
        gaussian = [_gaussian(sigma, Fraction(asked, 20)) for asked in (4, 10)]
        yield [_response(sigma**2 // 2, sigma), gaussian[1], _leaking(sigma**2 // 5, sigma, parts=2)], sigma
        # made for less than its noise needs: what it needs must be charged
        yield [_gaussian(sigma, Fraction(1, 50), Fraction(0)), _response(sigma**2, sigma)], sigma
        yield [gaussian[0], _response(2 * sigma, sigma), _leaking(sigma, sigma, parts=3)], sigma
        # noise whose delta is charged as thresholds are, beside a threshold that shows everything when it fails
        of_keys = [_gaussian(sigma, Fraction(1, parts), of_keys=True) for parts in (4, 50)]
        yield [*of_keys, _response(sigma**2 // 2, sigma), _failing(parts=2)], sigma


def _response(steps: int, sigma: int) -> Move:
    """Randomised response whose loss is so many steps up or down."""
    epsilon = Fraction(steps, 2 * sigma**2)
    likely = 1 / (1 + math.exp(-epsilon))
    return Move(charge_of(choice(epsilon)), ((steps, likely), (-steps, 1 - likely)))


def _leaking(steps: int, sigma: int, *, parts: int) -> Move:
    """The worst that is (epsilon, delta)-DP: everything is shown with chance delta; no rho bounds it."""
    response = _response(steps, sigma)
    delta = BUDGET.delta * share_for_noise() / parts
    charge = replace(response.charge, rho=Fraction(10**6), delta_noise=delta)
    stays = 1 - float(delta)
    return Move(charge, tuple((loss, stays * likely) for loss, likely in response.losses), float(delta))


def _failing(*, parts: int) -> Move:
    """A threshold: everything is shown if it fails, and otherwise nothing."""
    charge = charge_of(threshold(rule_of(BUDGET).delta / parts))
    return Move(charge, ((0, 1 - float(charge.delta)),), float(charge.delta))


def _gaussian(sigma: int, epsilon: Fraction, delta: Fraction | None = None, *, of_keys: bool = False) -> Move:
    """Discrete Gaussian noise on a count, made for an epsilon and a delta, by default the one it truly needs."""
    event = gaussian(Fraction(sigma), Fraction(1), scalar=True)
    needed = noise_delta(event, epsilon) if delta is None else delta
    asked = partly_of_keys(epsilon, needed, needed) if of_keys else approximate(epsilon, needed)
    reach = range(-8 * sigma, 8 * sigma + 1)
    weights = [math.exp(-(x * x) / (2 * sigma**2)) for x in reach]
    losses = tuple((1 - 2 * x, weight / sum(weights)) for x, weight in zip(reach, weights, strict=True))
    return Move(charge_of(event, asked=asked), losses)


@case("L21", title="a charge that states less than what ran", feature="ledger")
def understated(size: Size) -> Evidence:  # noqa: ARG001 (the checks are the full size)
    """Verifying computes what each question's noise cost again, and refuses a charge below it."""
    event, epsilon = gaussian(Fraction(30), Fraction(1), scalar=True), Fraction(1, 5)
    true = charge_of(event, asked=approximate(epsilon, Fraction(0)))
    shown = threshold(true.delta_noise)
    moved = replace(true, delta=true.delta_noise, delta_noise=Fraction(0))
    checks = {
        "as it is": _verifies(event, true),
        "charged as thresholds are": _verifies(event, moved),
        "one delta for noise and a threshold": not _verifies(event, moved, shown),
        "less delta": not _verifies(event, replace(true, delta_noise=true.delta_noise / 2)),
        "less epsilon": not _verifies(event, replace(true, epsilon=epsilon / 2)),
        "less rho": not _verifies(event, replace(true, rho=true.rho / 2)),
    }
    return Evidence(all(checks.values()), checks)


def _verifies(event: Event, stated: Charge, *beside: Event) -> bool:
    """Return whether a ledger verifies that was made to state this charge for the events, with its own key."""
    with private_home() as home, open_at(home / "ledger.db") as ledger:
        table = register(ledger, tacit.epsilon(1, delta=Fraction(1, 10**6)))
        with stating(stated):
            ledger.reserve(table, [event, *beside], question_key=digest_of("understated"))
        return not refused(ledger.verify, LedgerError)
