"""What a rule leaves, for people to plan by: how much one more question may cost, and how many more like the last.

Nothing here decides: the filter does. Amounts shown as left are rounded down.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import floor, inf, log10

from tacit.accounting import convert
from tacit.accounting.filter import Charge, Rule

# Epsilons between these are cut to six digits; others are lowered by a millionth.
_SHOWN_IN_DIGITS = (Fraction(1, 10**12), Fraction(10**6))


@dataclass(frozen=True)
class Room:
    """How much one more question may cost: the larger epsilon of the two arms, what is left of rho and of delta.

    `epsilon` is pure where the pure arm gives it; by the zCDP arm it is what all the rho left amounts to.
    """

    epsilon: Fraction
    rho: Fraction | None
    delta: Fraction


def room(rule: Rule, spent: Charge) -> Room:
    """Return what a rule leaves after `spent`; nothing where `spent` is already beyond it.

    >>> from tacit.accounting.filter import rule_of
    >>> from tacit.privacy.loss import PureLoss
    >>> room(rule_of(PureLoss(Fraction(3))), Charge(Fraction(1), Fraction(1, 2))).epsilon
    Fraction(2, 1)
    """
    if not rule.admits(spent):
        return Room(Fraction(0), None if rule.rho is None else Fraction(0), Fraction(0))
    purely = rule.epsilon - spent.epsilon if rule.epsilon is not None and spent.epsilon is not None else Fraction(0)
    rho = None if rule.rho is None else max(rule.rho - spent.rho, Fraction(0))
    return Room(max(purely, Fraction(0), _epsilon_within(rho, rule)), rho, rule.delta - spent.delta)


def epsilon_spent(rule: Rule, spent: Charge) -> Fraction | None:
    """Return the epsilon that `spent` amounts to under a rule, the smaller of its arms; None for a rho budget."""
    purely = [spent.epsilon] if rule.epsilon is not None and spent.epsilon is not None else []
    by_rho = [convert.zcdp_to_epsilon(spent.rho, rule.delta_convert)] if rule.delta_convert else []
    return min(purely + by_rho, default=None)


def questions_left(rule: Rule, spent: Charge, like: Charge) -> int | None:
    """Return how many more questions that cost `like` the rule admits, one after the other; None for any number.

    >>> from tacit.accounting.filter import rule_of
    >>> from tacit.privacy.loss import PureLoss
    >>> questions_left(rule_of(PureLoss(Fraction(1))), Charge(Fraction(7, 10)), Charge(Fraction(1, 10)))
    3
    """
    if not rule.admits(spent):
        return 0
    by_epsilon = by_rho = 0.0
    if rule.admits_purely(spent) and like.epsilon is not None:
        by_epsilon = _times(rule.epsilon, spent.epsilon, like.epsilon)
    if rule.admits_by_rho(spent):
        by_rho = _times(rule.rho, spent.rho, like.rho)
    times = min(max(by_epsilon, by_rho), _times(rule.delta, spent.delta, like.delta))
    return None if times == inf else int(times)


def _times(limit: Fraction | None, spent: Fraction | None, amount: Fraction) -> float | int:
    """How often an amount fits between what is spent and its limit: a whole number, or infinity for no amount."""
    if limit is None or spent is None:
        return 0
    return (limit - spent) // amount if amount else inf


def _epsilon_within(rho: Fraction | None, rule: Rule) -> Fraction:
    """An epsilon, to six digits and rounded down, that a question costing at most `rho` may be given."""
    if not rho:
        return Fraction(0)
    found = convert.zcdp_to_epsilon(rho, rule.delta_convert) if rule.delta_convert else _pure_within(rho)
    if not _SHOWN_IN_DIGITS[0] < found < _SHOWN_IN_DIGITS[1]:
        return found * Fraction(999_999, 1_000_000)
    step = Fraction(10) ** (floor(log10(found)) - 5)
    return found // step * step


def _pure_within(rho: Fraction) -> Fraction:
    """The largest pure epsilon, nearly, that costs at most `rho`: found by halving, each one checked."""
    if rho > _SHOWN_IN_DIGITS[1]:
        return rho  # an epsilon never costs more than itself
    low, high = 0.0, 2 * float(rho) + 4
    for _ in range(50):
        middle = (low + high) / 2
        if convert.pure_to_zcdp(Fraction(middle)) <= rho:
            low = middle
        else:
            high = middle
    return Fraction(low)
