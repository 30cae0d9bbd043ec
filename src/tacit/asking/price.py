"""The noise of a model's rounds for an epsilon: all of them together are one Gaussian batch.

The loss is divided among kinds of rounds by shares of 1/sigma², and no arithmetic on rows is involved. The whole batch
is within the call's epsilon at its delta, and within the rho that a budget of that size has room for: so it fits either
arm of the budget's rule (docs/proofs/rounds.md). Without a delta a model has its share of the eighth of the budget's
delta that is for noise. A given delta is the model's own, all of it for noise, since a model finds no keys: if it is
more than that share, three quarters of it are charged to a budget's thresholds (docs/proofs/ledger.md).
Such a batch is made for addition only, so it need not fit the other arm.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt

from tacit.accounting import (
    FOR_KEYS,
    FOR_NOISE,
    NoiseLoss,
    charge_of,
    gaussian_sigma_vector,
    noise_delta,
    rho_within,
    rule_of,
    shares_of,
)
from tacit.asking.session import Session
from tacit.errors import InvalidParameter, QueryRefused
from tacit.plan import make_spend
from tacit.privacy import (
    SCALE_MAX,
    SCALE_MIN,
    ApproximateLoss,
    GaussianNoise,
    Loss,
    Number,
    delta_meaning,
    shortened,
    show,
)

# sigma is rounded up to this many binary digits
SIGMA_BITS = 40
# the largest difference of the roundings, with a margin
ROUNDING = Fraction(1, 2**30)
# the most of a budget's delta that one model's noise may take, and the part of it that is charged as thresholds are
MOST = FOR_KEYS + FOR_NOISE
OF_KEYS = FOR_KEYS / MOST


def noise_for(
    session: Session, epsilon: Number, delta: Number | None, wanted: Sequence[tuple[int, Fraction]]
) -> tuple[tuple[GaussianNoise, ...], NoiseLoss]:
    """Return the events of a batch, and the (epsilon, delta) that its noise is made for: the batch is within it.

    `wanted` has, for each kind of round, the square of how far adding or removing one unit moves all its rounds
    together, and its share of the loss; shares add up to 1. If neighbours replace a unit, all moves are doubled here.
    """
    budget = session.registered.budget
    spend = make_spend(epsilon, _delta_of_question(delta, budget), "gaussian", budget)
    if spend.delta_rho == 0:
        raise QueryRefused(
            "models are learned with Gaussian noise, which needs a delta, but this budget is pure (delta = 0)"
            "\nhint: declare the budget with a delta, e.g. budget=tacit.epsilon(3, delta=1e-6)"
        )
    if sum(share for _, share in wanted) != 1 or any(share <= 0 or squared <= 0 for squared, share in wanted):
        raise InvalidParameter("the shares of rounds must be above 0 and add up to 1")
    squares = [replaced(session) * Fraction(squared) for squared, _ in wanted]
    asked = NoiseLoss(spend.epsilon, spend.delta_noise)
    by_rho = sum(squares, Fraction(0)) / (2 * rho_within(spend.epsilon, spend.delta_rho))
    shares = [share for _, share in wanted]
    if delta is None or not isinstance(budget, ApproximateLoss) or spend.epsilon > budget.epsilon:
        return _batch(squares, shares, asked, by_rho), asked
    rule, fair = rule_of(budget), shares_of(budget, spend.epsilon).asked
    also_of_keys = NoiseLoss(asked.epsilon, asked.delta, asked.delta * OF_KEYS)
    ways = [(asked, by_rho), (also_of_keys, Fraction(0))]
    if fair * FOR_NOISE < asked.delta <= fair * MOST:  # so that it fits beside others that take their fair share
        ways.reverse()
    for loss, least in ways:
        events = _batch(squares, shares, loss, least)
        if rule.admits(charge_of(events, asked=loss)):
            return events, loss
    raise QueryRefused(
        f"noise may take half of this budget's delta at most, {show(budget.delta * MOST)}, which is less than the"
        f" delta of {show(asked.delta)} that the model asks for\nhint: leave delta out, or declare the budget with"
        f" delta={show(asked.delta / MOST)}"
    )


def _batch(
    squares: Sequence[Fraction], shares: Sequence[Fraction], loss: ApproximateLoss, least: Fraction
) -> tuple[GaussianNoise, ...]:
    """Return noise that is within the loss by its exact law, with a total variance of at least `least`."""
    total = sum(squares, Fraction(0))
    variance, growth = max(gaussian_sigma_vector(total, loss.epsilon, loss.delta) ** 2, least), ROUNDING
    while True:
        sigmas = [
            _root_above(variance * (1 + growth) * squared / (share * total))
            for squared, share in zip(squares, shares, strict=True)
        ]
        events = tuple(
            GaussianNoise(_drawable_sigma(sigma), squared) for sigma, squared in zip(sigmas, squares, strict=True)
        )
        if noise_delta(events, loss.epsilon) <= loss.delta:
            return events
        growth *= 2


def _delta_of_question(delta: Number | None, budget: Loss) -> Fraction | None:
    """Return the delta of a question that has a model's own delta for its noise."""
    if delta is None:
        return None
    own = delta_meaning(delta)
    if isinstance(budget, ApproximateLoss) and own >= FOR_NOISE:
        raise InvalidParameter(f"a model's delta must be below {show(FOR_NOISE)}\nhint: such as delta=1e-6")
    return own / FOR_NOISE if isinstance(budget, ApproximateLoss) else own


def replaced(session: Session) -> int:
    """Return the factor for the square of a move: 4 if neighbours replace a unit, since two units move."""
    return 4 if session.declaration.neighbours == "replace" else 1


def _root_above(variance: Fraction) -> Fraction:
    """Return a root, rounded up to SIGMA_BITS digits."""
    bits = 2 * (SIGMA_BITS + 8) + max(0, variance.denominator.bit_length() - variance.numerator.bit_length())
    bits += bits % 2
    whole = -(-variance.numerator * 2**bits // variance.denominator)
    root = isqrt(whole - 1) + 1
    return shortened(Fraction(root, 2 ** (bits // 2)), up=True, bits=SIGMA_BITS)


def _drawable_sigma(sigma: Fraction) -> Fraction:
    """Return a sigma that the sampler draws, or refuse one that is too wide."""
    if sigma > SCALE_MAX:
        raise QueryRefused("this epsilon asks for noise wider than can be drawn\nhint: give a larger epsilon")
    return max(sigma, SCALE_MIN)
