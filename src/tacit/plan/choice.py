"""Which of the public keys are most common: a choice by exact counts of units, which are not shown.

One unit moves every count by at most 1, all in the same direction when it is added or removed, so the choice costs the
same however many keys a unit is in, and far less than all the counts would (docs/proofs/selection.md).
"""

from fractions import Fraction
from math import isqrt

from tacit.accounting.convert import rho_within
from tacit.errors import QueryRefused
from tacit.plan.plan import Choice, Spend
from tacit.plan.ranks import UnitBounds
from tacit.query.nodes import Query, Scalar
from tacit.selection.top_k import TopK

EPSILON_BITS = 40
# Permute-and-flip errs up to twice less than the exponential mechanism at the same epsilon.
GAIN_LEAST = 2


def choice_of(
    query: Query, listed: tuple[tuple[Scalar, ...], ...] | None, spend: Spend, unit: UnitBounds
) -> Choice | None:
    """Return how the best keys are chosen, or None where no ranking is asked for."""
    best = next((output.aggregate.best for output in query.outputs if output.aggregate.best is not None), None)
    if best is None:
        return None
    if len(query.outputs) > 1 or listed is None or not query.keys:
        raise QueryRefused("a ranking of public keys is asked alone\nhint: top('city', 3, keys=['A', 'B', 'C', 'D'])")
    if not 1 <= best < len(listed):
        raise QueryRefused(
            f"the best {best} of {len(listed)} keys is no choice\nhint: give a smaller number, or ask for the counts"
        )
    pure = TopK(k=best, epsilon=spend.epsilon, monotone=not unit.replace)
    if spend.delta_rho == 0 or spend.noise == "laplace":
        return _choice(pure, monotone=not unit.replace)
    each = _root_down(8 * rho_within(spend.epsilon, spend.delta_noise) / best)
    by_rho = TopK(k=best, epsilon=each * best, monotone=not unit.replace, by="exponential")
    better = each > GAIN_LEAST * spend.epsilon / best
    return _choice(by_rho if better or spend.noise == "gaussian" else pure, monotone=not unit.replace)


def _choice(top: TopK, *, monotone: bool) -> Choice:
    return Choice(top.k, top.by, top.terms.epsilon, monotone, top.events)


def _root_down(value: Fraction) -> Fraction:
    return Fraction(max(isqrt((value.numerator << 2 * EPSILON_BITS) // value.denominator), 1), 1 << EPSILON_BITS)
