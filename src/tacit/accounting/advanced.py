"""Advanced composition of (epsilon, delta) promises about which nothing else is known (docs/proofs/composition.md).

Two kinds: the classical bound of Dwork, Rothblum and Vadhan, and the least epsilon there is, which Kairouz, Oh and
Viswanath showed to be that of composed randomized responses; it is computed here for unequal promises too.
"""

from collections.abc import Sequence
from fractions import Fraction

from flint import arb

from tacit.accounting.convert import require_chance
from tacit.accounting.digits import upward
from tacit.accounting.pair import pair_of
from tacit.accounting.pld import Total
from tacit.privacy.event import PureChoice
from tacit.privacy.rounding import ball, working_precision

# (epsilon, how many releases keep to it)
Promises = Sequence[tuple[Fraction, int]]


def classical_epsilon(promises: Promises, slack: Fraction) -> Fraction:
    """Return sqrt(2 ln(1/slack)·Σε²) + Σε(e^ε − 1), rounded up; delta grows by `slack`.

    >>> float(classical_epsilon([(Fraction(1, 10), 100)], Fraction(1, 10**6)))
    6.30823...
    """
    require_chance(slack)
    squares = sum((count * epsilon**2 for epsilon, count in promises), Fraction(0))

    def total() -> arb:
        return (-2 * ball(slack).log() * ball(squares)).sqrt() + _drift(promises)

    return upward(total)


def classical_delta(promises: Promises, epsilon: Fraction) -> Fraction:
    """Return the slack at which the classical bound reaches `epsilon`, rounded up; 1 where it cannot."""
    squares = sum((count * each**2 for each, count in promises), Fraction(0))

    def slack() -> arb:
        left = ball(epsilon) - _drift(promises)
        return (-(left**2) / (2 * ball(squares))).exp() if left > 0 else arb(1)

    return upward(slack)


def optimal_epsilon(promises: Promises, slack: Fraction) -> Fraction | None:
    """Return the least epsilon of any adaptive sequence of releases that keep to these promises, rounded up.

    >>> float(optimal_epsilon([(Fraction(1, 10), 100)], Fraction(1, 10**6)))
    4.774567...
    """
    return _responses(promises).epsilon(slack)


def optimal_delta(promises: Promises, epsilon: Fraction) -> Fraction:
    """Return the least slack at which any such sequence stays within `epsilon`, rounded up."""
    return _responses(promises).delta(epsilon)


def _responses(promises: Promises) -> Total:
    with working_precision(128):
        pairs = [(pair_of(PureChoice(epsilon)), count) for epsilon, count in promises]
    return Total([(pair, count) for pair, count in pairs if pair is not None])


def _drift(promises: Promises) -> arb:
    drift = arb(0)
    for epsilon, count in promises:
        drift = drift + count * ball(epsilon) * ball(epsilon).expm1()
    return drift
