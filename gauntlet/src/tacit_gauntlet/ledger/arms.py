"""Attacks on the rule's two arms by questions whose noise is not pure (L20), and on what such a charge states (L21).

L20 is a game that is solved exactly: every adaptive way of asking randomised responses, Gaussian noise and a mechanism
that shows everything with a small chance, as long as the rule admits it, and the most by which the promise breaks.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
import numpy.typing as npt

from tacit.accounting import cost
from tacit.accounting import filter as rules
from tacit.accounting.filter import NOTHING, Charge, Rule, charge_of, rule_of
from tacit.errors import LedgerError
from tacit.ledger import charging, open_ledger
from tacit.ledger.chain import digest
from tacit.privacy.event import Event, GaussianNoise, PureChoice
from tacit.privacy.loss import ApproximateLoss
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.ledger import private_home, refused, register
from tacit_gauntlet.targets import replaced

BUDGET = ApproximateLoss(Fraction(1), Fraction(1, 50))
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Move:
    """A question of the game: what it is charged, and how likely each loss is, in steps of the lattice."""

    charge: Charge
    losses: tuple[tuple[int, float], ...]
    shown: float = 0.0  # the chance that it shows everything


@case("L20", title="questions that are not pure, chosen to profit from both arms of the rule", feature="accounting")
def both_arms(size: Size) -> Evidence:
    """No adaptive way of asking breaks the promise by more than the two arms' deltas, which are parts of one."""
    cost.noise_delta.cache_clear()  # a mutant may have filled it
    rule = rule_of(BUDGET)
    divided = rule.delta + rule.delta_noise + rule.delta_convert
    worst, states = 0.0, 0
    for moves, sigma in _games(size):
        value, count = solve_game(rule, moves, epsilon=float(BUDGET.epsilon), step=1 / (2 * sigma**2))
        worst, states = max(worst, value), states + count
    promised = float(rule.delta_noise + rule.delta_convert)
    details = {"worst delta": worst, "promised": promised, "states": states, "delta in all": float(divided)}
    return Evidence(divided <= BUDGET.delta and worst <= promised, details)


def _games(size: Size) -> Iterator[tuple[list[Move], int]]:
    """Yield sets of questions, and the sigma whose losses are the lattice they live on."""
    for sigma in (5,) if size == "quick" else (4, 5, 6):
        gaussian = [_gaussian(sigma, Fraction(asked, 20)) for asked in (4, 10)]
        yield [_response(sigma**2 // 2, sigma), gaussian[1], _leaking(sigma**2 // 5, sigma, parts=2)], sigma
        # made for less than its noise needs: what it needs must be charged
        yield [_gaussian(sigma, Fraction(1, 50), Fraction(0)), _response(sigma**2, sigma)], sigma
        yield [gaussian[0], _response(2 * sigma, sigma), _leaking(sigma, sigma, parts=3)], sigma


def _response(steps: int, sigma: int) -> Move:
    """Randomised response whose loss is so many steps up or down."""
    epsilon = Fraction(steps, 2 * sigma**2)
    likely = 1 / (1 + math.exp(-epsilon))
    return Move(charge_of([PureChoice(epsilon)]), ((steps, likely), (-steps, 1 - likely)))


def _leaking(steps: int, sigma: int, *, parts: int) -> Move:
    """The worst that is (epsilon, delta)-DP: everything is shown with chance delta; no rho bounds it."""
    response = _response(steps, sigma)
    delta = BUDGET.delta * rules.FOR_NOISE / parts
    charge = replace(response.charge, rho=Fraction(10**6), delta_noise=delta)
    stays = 1 - float(delta)
    return Move(charge, tuple((loss, stays * likely) for loss, likely in response.losses), float(delta))


def _gaussian(sigma: int, epsilon: Fraction, delta: Fraction | None = None) -> Move:
    """Discrete Gaussian noise on a count, made for an epsilon and a delta, by default the one it truly needs."""
    event = GaussianNoise(Fraction(sigma), Fraction(1), scalar=True)
    asked = ApproximateLoss(epsilon, cost.noise_delta((event,), epsilon) if delta is None else delta)
    reach = range(-8 * sigma, 8 * sigma + 1)
    weights = [math.exp(-(x * x) / (2 * sigma**2)) for x in reach]
    losses = tuple((1 - 2 * x, weight / sum(weights)) for x, weight in zip(reach, weights, strict=True))
    return Move(charge_of([event], asked=asked), losses)


def solve_game(rule: Rule, moves: Sequence[Move], *, epsilon: float, step: float) -> tuple[float, int]:
    """Return the largest delta at epsilon of any adaptive way of asking these questions, and how many states it has.

    The gain of a loss is 1 - e^(epsilon - loss) where it is above epsilon. Losses beyond three times epsilon gain 1,
    and those below minus that are taken for it, so the value is never too small.
    """
    reach = math.ceil(3 * epsilon / step)
    lattice = np.arange(-reach, reach + 1) * step
    stop: Values = np.maximum(0.0, -np.expm1(np.minimum(epsilon - lattice, 0.0)))

    @cache
    def best(counts: tuple[int, ...]) -> Values:
        total = NOTHING
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


@case("L21", title="a charge that states less than what ran", feature="ledger")
def understated(size: Size) -> Evidence:  # noqa: ARG001 (three checks are the full size)
    """Verifying computes what each question's noise cost again, and refuses a charge below it."""
    event, epsilon = GaussianNoise(Fraction(30), Fraction(1), scalar=True), Fraction(1, 5)
    true = charge_of([event], asked=ApproximateLoss(epsilon, Fraction(0)))
    checks = {
        "as it is": _verifies(event, true),
        "less delta": not _verifies(event, replace(true, delta_noise=true.delta_noise / 2)),
        "less epsilon": not _verifies(event, replace(true, epsilon=epsilon / 2)),
        "less rho": not _verifies(event, replace(true, rho=true.rho / 2)),
    }
    return Evidence(all(checks.values()), checks)


def _verifies(event: Event, stated: Charge) -> bool:
    """Return whether a ledger verifies that was made to state this charge for the event, with its own key."""
    with private_home() as home, open_ledger(home / "ledger.db") as ledger:
        table = register(ledger, ApproximateLoss(Fraction(1), Fraction(1, 10**6)))
        with replaced(charging, "charge_of", lambda *_, **__: stated):
            ledger.reserve(table, [event], question_key=digest("understated"))
        return not refused(ledger.verify, LedgerError)
