"""What a call may spend: epsilon for the whole call, and its delta, by default its fair share of the budget's."""

from fractions import Fraction

from tacit.errors import InvalidParameter, QueryRefused
from tacit.plan.plan import NoiseKind, Spend
from tacit.privacy.loss import ApproximateLoss, Loss, PureLoss, ZcdpLoss, delta_meaning
from tacit.privacy.number import Number, decimal_meaning, positive

NOISE_KINDS: tuple[NoiseKind, ...] = ("laplace", "gaussian")
# A rho budget has no delta of its own to share; this one only says at which delta an epsilon is read.
EPSILON_LEAST = Fraction(1, 10**30)
DELTA_TO_READ_RHO = Fraction(1, 10**6)


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

    Half of the call's delta is for keys nobody listed and half for Gaussian noise, as the budget's own is divided. A
    delta given under a pure budget is accepted and not used.
    """
    exact_epsilon = positive(decimal_meaning(epsilon, name="epsilon"), name="epsilon")
    if exact_epsilon < EPSILON_LEAST:
        raise QueryRefused("epsilon is too small: below 1e-30 no noise can be drawn\nhint: ask with more")
    exact_delta = None if delta is None else delta_meaning(delta)
    kind = next((known for known in NOISE_KINDS if isinstance(noise, str) and known == noise), None)
    if noise is not None and kind is None:
        raise InvalidParameter("noise must be 'laplace' or 'gaussian', or left out for the one that errs less")
    if isinstance(budget, PureLoss):
        return Spend(exact_epsilon, noise=kind, confidence=confidence, weights=weights)
    if isinstance(budget, ApproximateLoss):
        share = min(exact_epsilon / budget.epsilon, Fraction(1))
        whole = budget.delta * share if exact_delta is None else exact_delta
        return Spend(exact_epsilon, whole / 2, whole / 2, kind, confidence, weights)
    if isinstance(budget, ZcdpLoss):
        keys = Fraction(0) if budget.delta == 0 else min(budget.delta, exact_delta or budget.delta / 10)
        return Spend(exact_epsilon, keys, exact_delta or DELTA_TO_READ_RHO, kind, confidence, weights)
    raise InvalidParameter(
        "a table's budget is an epsilon, an (epsilon, delta) or a rho\nhint: tacit.epsilon(3, delta=1e-6)"
    )
