"""What several events cost together, when which ones run is fixed in advance."""

from collections.abc import Iterable
from fractions import Fraction

from tacit.accounting import cost
from tacit.errors import InvalidParameter
from tacit.privacy.event import Event
from tacit.privacy.loss import ApproximateLoss, PureLoss, ZcdpLoss


def basic(losses: Iterable[PureLoss | ApproximateLoss]) -> PureLoss | ApproximateLoss:
    """Return the losses' epsilons and deltas added up: valid for every order in which they run, adaptively too.

    >>> print(basic([PureLoss(Fraction(1)), ApproximateLoss(Fraction(1, 2), Fraction(1, 10**6))]))
    ε = 1.5, δ = 1e-06
    """
    epsilon, delta, some = Fraction(0), Fraction(0), False
    for loss in losses:
        epsilon += loss.epsilon
        delta += loss.delta if isinstance(loss, ApproximateLoss) else 0
        some = True
    if not some:
        raise InvalidParameter("nothing to compose\nhint: give at least one loss")
    return ApproximateLoss(epsilon, delta) if delta else PureLoss(epsilon)


def zcdp_total(events: Iterable[Event]) -> ZcdpLoss:
    """Return the events' rhos and deltas added up.

    >>> from tacit.privacy.event import GaussianNoise
    >>> print(zcdp_total([GaussianNoise(Fraction(1), Fraction(1))] * 2))
    ρ = 1
    """
    losses = [cost.zcdp(event) for event in events]
    return ZcdpLoss(sum((loss.rho for loss in losses), Fraction(0)), sum((loss.delta for loss in losses), Fraction(0)))
