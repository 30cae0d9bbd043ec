"""What a loss for one unit means for a group of them (docs/proofs/losses.md)."""

from fractions import Fraction

from flint import arb

from tacit.accounting.digits import upward
from tacit.errors import InvalidParameter
from tacit.privacy.loss import ApproximateLoss, Loss, PureLoss, ZcdpLoss
from tacit.privacy.number import whole
from tacit.privacy.rounding import ball


def for_group(loss: Loss, units: int) -> Loss:
    """Return the loss for any `units` units together. A delta of 1 says that nothing is promised to so many.

    >>> print(for_group(PureLoss(Fraction(1, 2)), 3))
    ε = 1.5
    """
    whole(units, name="units")
    if units == 1:
        return loss
    if isinstance(loss, PureLoss):
        return PureLoss(units * loss.epsilon)
    if isinstance(loss, ApproximateLoss):
        return ApproximateLoss(units * loss.epsilon, _group_delta(loss, units))
    if isinstance(loss, ZcdpLoss) and loss.delta == 0:
        return ZcdpLoss(units**2 * loss.rho)
    raise InvalidParameter(
        "the loss of a group is known for pure, (epsilon, delta) and exact zCDP losses only"
        "\nhint: convert it to (epsilon, delta) first"
    )


def _group_delta(loss: ApproximateLoss, units: int) -> Fraction:
    """Return delta·(e^(units·epsilon) - 1)/(e^epsilon - 1), the sum of delta·e^(i·epsilon) over i below units."""
    if loss.epsilon == 0:
        return min(units * loss.delta, Fraction(1))

    def delta() -> arb:
        value = ball(loss.delta) * ball(units * loss.epsilon).expm1() / ball(loss.epsilon).expm1()
        return value if value < 1 else arb(1)

    return upward(delta)
