"""Parallel composition: releases about parts of a table that share no unit cost a unit what its own parts cost."""

from collections.abc import Iterable, Sequence
from fractions import Fraction

from tacit.errors import InvalidParameter
from tacit.privacy.loss import ApproximateLoss, Loss, PureLoss, RenyiLoss, ZcdpLoss
from tacit.privacy.number import whole


def parallel(losses: Iterable[Loss], *, parts_per_unit: int = 1, neighbours: str = "add-remove") -> Loss:
    """Return what releases about disjoint parts cost together, where one unit is in at most `parts_per_unit` of them.

    The largest that many count, and twice as many where neighbours replace a unit: it leaves some parts and enters
    others. All losses are of one notion (docs/proofs/composition.md).

    >>> print(parallel([PureLoss(Fraction(1)), PureLoss(Fraction(2)), PureLoss(Fraction(3))]))
    ε = 3
    """
    given = list(losses)
    if not given:
        raise InvalidParameter("nothing to compose\nhint: give at least one loss")
    if neighbours not in ("add-remove", "replace"):
        raise InvalidParameter(f"neighbours must be 'add-remove' or 'replace', not {neighbours!r}")
    touched = whole(parts_per_unit, name="parts_per_unit") * (2 if neighbours == "replace" else 1)
    if all(isinstance(loss, PureLoss | ApproximateLoss) for loss in given):
        epsilon = _largest([loss.epsilon for loss in given if not isinstance(loss, ZcdpLoss | RenyiLoss)], touched)
        delta = _largest([loss.delta for loss in given if isinstance(loss, ApproximateLoss)], touched)
        return ApproximateLoss(epsilon, delta) if delta else PureLoss(epsilon)
    zcdp = [loss for loss in given if isinstance(loss, ZcdpLoss)]
    if len(zcdp) == len(given):
        return ZcdpLoss(
            _largest([loss.rho for loss in zcdp], touched), _largest([loss.delta for loss in zcdp], touched)
        )
    raise InvalidParameter(
        "the parts' losses are of different notions, or Rényi curves\nhint: give them all as tacit.epsilon or tacit.rho"
    )


def _largest(amounts: Sequence[Fraction], count: int) -> Fraction:
    return sum(sorted(amounts, reverse=True)[:count], Fraction(0))
