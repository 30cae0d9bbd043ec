"""What a call may spend: epsilon for the whole call, and its delta, by default its fair share of the budget's."""

from fractions import Fraction

from tacit.accounting.room import shares_of
from tacit.errors import InvalidParameter, QueryRefused
from tacit.plan.plan import NoiseKind, Spend
from tacit.privacy.loss import Loss, RenyiLoss, delta_meaning
from tacit.privacy.number import Number, decimal_meaning, positive

NOISE_KINDS: tuple[NoiseKind, ...] = ("laplace", "gaussian")
EPSILON_LEAST = Fraction(1, 10**30)


def make_spend(
    epsilon: Number,
    delta: Number | None,
    noise: str | None,
    budget: Loss,
    *,
    confidence: Fraction = Fraction(95, 100),
    weights: tuple[tuple[str, Fraction], ...] = (),
) -> Spend:
    """Return what a call asked with these words may spend.

    The call's delta is divided as the budget's own is. A delta given under a pure budget is accepted and not used.
    """
    exact_epsilon = positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
    if exact_epsilon < EPSILON_LEAST:
        raise QueryRefused("epsilon is too small: below 1e-30 no noise can be drawn\nhint: ask with more")
    exact_delta = None if delta is None else delta_meaning(delta)
    kind = next((known for known in NOISE_KINDS if isinstance(noise, str) and known == noise), None)
    if noise is not None and kind is None:
        raise InvalidParameter("noise must be 'laplace' or 'gaussian', or left out for the one that errs less")
    if isinstance(budget, RenyiLoss):
        raise InvalidParameter(
            "a table's budget is an epsilon, an (epsilon, delta) or a rho\nhint: tacit.epsilon(3, delta=1e-6)"
        )
    shares = shares_of(budget, exact_epsilon, exact_delta)
    return Spend(exact_epsilon, shares.asked, shares.keys, shares.noise, shares.rho, kind, confidence, weights)
