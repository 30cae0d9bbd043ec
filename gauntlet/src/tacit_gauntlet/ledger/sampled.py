"""Noise on samples of the units, asked for as often as the rule admits it (L24): what it shows is computed exactly.

Sampling lowers what Gaussian noise shows, and the rules of thumb by which it does are false in the tails: the ledger
must refuse before they are.
"""

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product

from tacit.errors import BudgetExceeded
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.accounting import Event, approximate, forget_costs, sampled_gaussian
from tacit_gauntlet.stage.ledger import DECLARATION, Ledger, open_at

BUDGET = approximate(Fraction(1), Fraction(1, 10**4))
# All outcomes of so many samples are enumerated.
SAMPLES_MAX = 3


@case("L24", title="noise on samples of the units, as often as the rule admits it", feature="accounting")
def samples(size: Size) -> Evidence:
    """All samples that were admitted show, together, no more than the budget promises."""
    forget_costs()
    shown, admitted = {}, 0
    for sigma, rate, asked, together in _questions(size):
        with open_at(":memory:") as ledger:
            count = _asked_until_refused(ledger, [sampled_gaussian(sigma, Fraction(1), rate)] * together, asked)
        admitted += count
        name = f"sigma {sigma}, rate {rate}, {'by rho' if asked is None else f'at epsilon {asked}'}: {count}"
        shown[name] = exact_delta(float(sigma), float(rate), count, float(BUDGET.epsilon))
    worst = max(shown, key=lambda name: shown[name])
    details = {"admitted": admitted, "worst": worst, "its delta": shown[worst], "promised": float(BUDGET.delta)}
    return Evidence(admitted > 0 and shown[worst] <= BUDGET.delta, details)


def _questions(size: Size) -> Iterator[tuple[Fraction, Fraction, Fraction | None, int]]:
    """Yield sigma, rate, the epsilon that is asked for, and how many samples one question is of."""
    sigmas = (Fraction(1, 2), Fraction(2)) if size == "quick" else (Fraction(1, 2), Fraction(1), Fraction(2))
    rates = (Fraction(1, 10), Fraction(1, 50)) if size == "quick" else (*map(Fraction, ("1/2", "1/10", "1/50")),)
    yield from product(sigmas, rates, (None, Fraction(1), Fraction(1, 3)), (1,))
    # one of these samples has room at this epsilon, and three do not
    yield Fraction(3), Fraction(1, 2), Fraction(1), SAMPLES_MAX


def _asked_until_refused(ledger: Ledger, events: Sequence[Event], asked: Fraction | None) -> int:
    """Return how many samples are admitted, at most as many as are enumerated; each is charged and not answered."""
    table = ledger.register(name="people", declaration=DECLARATION, budget=BUDGET, accept_large_delta=True)
    made_for = None if asked is None else approximate(asked, Fraction(0))
    for count in range(0, SAMPLES_MAX, len(events)):
        try:
            ledger.reserve(table, events, question_key=f"sample {count}", asked=made_for)
        except BudgetExceeded:
            return count
    return SAMPLES_MAX


def exact_delta(sigma: float, rate: float, times: int, epsilon: float) -> float:
    """Return the larger delta of removing and of adding a unit that moves a count by one where it is sampled."""
    reach = math.ceil(9 * sigma)
    weights = [math.exp(-(x**2) / (2 * sigma**2)) for x in range(-reach, reach + 1)]
    without = [weight / math.fsum(weights) for weight in weights] + [0.0]
    with_it = [(1 - rate) * p + rate * q for p, q in zip(without, [0.0, *without[:-1]], strict=True)]
    pairs = [(1.0, 1.0)]
    for _ in range(times):
        pairs = [(p * one, q * other) for p, q in pairs for one, other in zip(with_it, without, strict=True)]
    removing = math.fsum(max(0.0, p - math.exp(epsilon) * q) for p, q in pairs)
    adding = math.fsum(max(0.0, q - math.exp(epsilon) * p) for p, q in pairs)
    return max(removing, adding)
