"""Partition selection: an answer shows all groups of a public list, or the groups that reach a private threshold."""

from fractions import Fraction
from itertools import product

from tacit.errors import QueryRefused
from tacit.plan.plan import NoiseKind, Threshold
from tacit.privacy import GaussianLaw, LaplaceLaw, ball, certainly_less, rounded_up
from tacit.query import PUBLIC_KEYS_MAX, Column, Query, Scalar
from tacit.tables import Declaration

# Charged on top, so that a probability like e^(-10^12) needs no trillion digits.
DELTA_LEAST = Fraction(1, 2**1000)


def public_keys(query: Query, declaration: Declaration) -> tuple[tuple[Scalar, ...], ...] | None:
    """Return the public list of keys: one empty key without GROUP BY, None where they are to be found privately."""
    if not query.keys:
        return ((),)
    if query.public_keys is not None:
        return query.public_keys
    lists = []
    for key in query.keys:
        facts = declaration.columns.get(key.expression.name) if isinstance(key.expression, Column) else None
        if facts is None or facts.keys is None:
            return None
        lists.append(facts.keys)
    size = 1
    for listed in lists:
        size *= len(listed)
    if size > PUBLIC_KEYS_MAX:
        raise QueryRefused(
            f"the declared keys combine to {size:,} groups, more than {PUBLIC_KEYS_MAX:,}"
            "\nhint: give the combinations that can occur with group_by(..., keys=...)"
        )
    return tuple(product(*lists))


def refuse_private_keys(query: Query) -> None:
    """Refuse private keys under a pure budget, with the two ways out."""
    names = ", ".join(f"'{key.name}'" for key in query.keys)
    raise QueryRefused(
        f"the groups of {names} are not public, and a pure budget (delta = 0) cannot show keys found in the data."
        "\nhint: list them, e.g. group_by(..., keys=['A', 'B']) or --keys column=A,B; or declare the budget with a"
        " delta, e.g. budget=tacit.epsilon(3, delta=1e-6) (--budget 3 --delta 1e-6)"
    )


def threshold_for(
    noise: NoiseKind, scale: Fraction, *, groups_per_unit: int, delta: Fraction, release: int
) -> Threshold:
    """Return the least threshold that shows a key of one single unit with an exact probability of at most `delta`.

    Privacy: a unit adds at most g keys that nobody else has, each with a count of 1; a key is shown when its noisy
    count is at least the threshold (inclusive), so delta = 1 - (1 - Pr[1 + Z >= threshold])^g, the g noises being
    independent.
    """
    law = LaplaceLaw(scale) if noise == "laplace" else GaussianLaw(scale)

    def too_likely(least: int) -> bool:
        # Pr[Z >= least - 1] > 1 - (1 - delta)^(1/g); equality cannot hold, the one side being transcendental
        return certainly_less(
            lambda: -((-ball(delta)).log1p() / groups_per_unit).expm1(), lambda: law.upper_tail(least - 1)
        )

    high = 2
    while too_likely(high):
        high *= 2
    low = 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if too_likely(middle) else (low, middle)
    delta_up = rounded_up(lambda: ball(DELTA_LEAST) - ((-law.upper_tail(high - 1)).log1p() * groups_per_unit).expm1())
    return Threshold(release=release, least=high, delta=min(delta_up, delta))
