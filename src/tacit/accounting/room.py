"""What a rule leaves: the largest epsilon one more question may ask for, with what delta, and how many like the last.

Nothing here decides: the filter does, and every amount shown as left is checked with it and rounded down.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import count
from math import floor, inf, log10

from tacit.accounting import convert
from tacit.accounting.filter import FOR_KEYS, FOR_NOISE, FOR_RHO, Charge, Rule, grains_below
from tacit.privacy.loss import ApproximateLoss, Loss, PureLoss, ZcdpLoss

# A rho budget has no delta of its own to share; this one only says at which delta an epsilon is read.
DELTA_TO_READ_RHO = Fraction(1, 10**6)
# Epsilons between these are cut to six digits; others are lowered by a millionth.
_SHOWN_IN_DIGITS = (Fraction(1, 10**12), Fraction(10**6))
_MILLIONTH = Fraction(1, 10**6)
# Less than this is not worth a question, and the rounding of charges could be more.
_RHO_LEAST = Fraction(1, 2**64)
_EPSILON_LEAST = Fraction(1, 10**12)
# Each round of the search for an epsilon brings it some thirty times closer.
_ROUNDS = 6


@dataclass(frozen=True)
class Shares:
    """A question's delta, all of it and divided: for keys nobody listed, for noise by addition, for its rho."""

    asked: Fraction
    keys: Fraction
    noise: Fraction
    rho: Fraction


def shares_of(budget: Loss, epsilon: Fraction, delta: Fraction | None = None) -> Shares:
    """Return how a question's delta is divided; it is by default the share of the budget's that its epsilon is.

    >>> shares_of(ApproximateLoss(Fraction(2), Fraction(1, 10**6)), Fraction(1)).rho
    Fraction(1, 4000000)
    """
    if isinstance(budget, PureLoss):
        return Shares(*[Fraction(0)] * 4)
    if isinstance(budget, ApproximateLoss):
        whole = asked_delta(budget, epsilon) if delta is None else delta
        return Shares(whole, whole * FOR_KEYS, grains_below(whole * FOR_NOISE), whole * FOR_RHO)
    keys = Fraction(0) if budget.delta == 0 else min(budget.delta, delta or budget.delta / 10)
    read = delta or DELTA_TO_READ_RHO
    return Shares(Fraction(0), keys, read, read)


def asked_delta(budget: Loss, epsilon: Fraction) -> Fraction:
    """Return the delta of a question that does not say one: the share of the budget's that its epsilon is."""
    if isinstance(budget, ApproximateLoss):
        return budget.delta * min(epsilon / budget.epsilon, Fraction(1))
    return DELTA_TO_READ_RHO if isinstance(budget, ZcdpLoss) else Fraction(0)


@dataclass(frozen=True)
class Room:
    """The most that one more question may ask for.

    `laplace` is the largest epsilon of pure noise and `delta` the largest delta beside it, for keys nobody listed.
    `gaussian` is the largest epsilon of Gaussian noise, and `delta_gaussian` the largest delta beside that.
    """

    laplace: Fraction
    gaussian: Fraction
    delta: Fraction
    delta_gaussian: Fraction
    rho: Fraction | None

    @property
    def epsilon(self) -> Fraction:
        """The larger of the two: a question that leaves the noise open gets the one that fits."""
        return max(self.laplace, self.gaussian)


def room(rule: Rule, spent: Charge, asking: Loss) -> Room:
    """Return what a rule leaves after `spent`, to questions that take their share of the delta of `asking`.

    >>> from tacit.accounting.filter import rule_of
    >>> budget = PureLoss(Fraction(3))
    >>> room(rule_of(budget), Charge(Fraction(1), Fraction(1, 2)), budget).epsilon
    Fraction(2, 1)
    """
    zero = Fraction(0)
    if not rule.admits(spent):
        return Room(zero, zero, zero, zero, None if rule.rho is None else zero)
    keys_left = (rule.delta - spent.delta) / (FOR_KEYS if rule.delta_convert else 1)
    added = _by_addition(rule, spent, asking)
    gaussian = max(added, _by_rho(rule, spent, asking))
    noise_left = (rule.delta_noise - spent.delta_noise) / FOR_NOISE
    beside = noise_left if added == gaussian else asked_delta(asking, gaussian)
    return Room(
        laplace=max(_by_addition(rule, spent, None), _by_rho(rule, spent, None)),
        gaussian=gaussian,
        delta=keys_left,
        delta_gaussian=beside if isinstance(asking, ZcdpLoss) else min(keys_left, beside),
        rho=None if rule.rho is None else max(rule.rho - spent.rho, zero),
    )


def charge_at(epsilon: Fraction, asking: Loss | None) -> Charge:
    """Return the most that a question of this epsilon costs, keys apart.

    Its noise is pure, or with `asking` Gaussian, made for its share of that budget's delta.
    """
    if asking is None:
        return Charge(epsilon, convert.pure_to_zcdp(epsilon))
    shares = shares_of(asking, epsilon)
    return Charge(epsilon, convert.rho_within(epsilon, shares.rho), delta_noise=shares.noise)


def questions_left(rule: Rule, spent: Charge, like: Charge) -> int | None:
    """Return how many more questions that cost `like` the rule admits, one after the other; None for any number.

    >>> from tacit.accounting.filter import rule_of
    >>> from tacit.privacy.loss import PureLoss
    >>> questions_left(rule_of(PureLoss(Fraction(1))), Charge(Fraction(7, 10)), Charge(Fraction(1, 10)))
    3
    """
    if not rule.admits(spent):
        return 0
    by_addition = by_rho = 0.0
    if rule.admits_by_addition(spent) and like.epsilon is not None:
        by_addition = min(
            _times(rule.epsilon, spent.epsilon, like.epsilon),
            _times(rule.delta_noise, spent.delta_noise, like.delta_noise),
        )
    if rule.admits_by_rho(spent):
        by_rho = _times(rule.rho, spent.rho, like.rho)
    times = min(max(by_addition, by_rho), _times(rule.delta, spent.delta, like.delta))
    return None if times == inf else int(times)


def _times(limit: Fraction | None, spent: Fraction | None, amount: Fraction) -> float | int:
    """How often an amount fits between what is spent and its limit: a whole number, or infinity for no amount."""
    if limit is None or spent is None:
        return 0
    return (limit - spent) // amount if amount else inf


def _by_addition(rule: Rule, spent: Charge, asking: Loss | None) -> Fraction:
    """The largest epsilon that the arm of addition leaves: of pure noise, or of Gaussian noise for `asking`."""
    if rule.epsilon is None or spent.epsilon is None or not rule.admits_by_addition(spent):
        return Fraction(0)
    left, delta_left = rule.epsilon - spent.epsilon, rule.delta_noise - spent.delta_noise
    if asking is None:
        return left
    whole = shares_of(asking, rule.epsilon).noise
    if isinstance(asking, ApproximateLoss):
        whole = asking.delta * FOR_NOISE
        return left if whole <= delta_left else min(left, asking.epsilon * delta_left / whole)
    return left if 0 < whole <= delta_left else Fraction(0)


def _by_rho(rule: Rule, spent: Charge, asking: Loss | None) -> Fraction:
    """The same for the zCDP arm, to six digits: searched, and then checked."""
    rho = Fraction(0) if rule.rho is None else rule.rho - spent.rho
    if rho < _RHO_LEAST or isinstance(asking, PureLoss):
        return Fraction(0)
    found = _cut(_pure_within(rho) if asking is None else _gaussian_within(rho, asking))
    for tries in count():
        if found < _EPSILON_LEAST or charge_at(found, asking).rho <= rho:
            break
        found = _cut(found * (1 - _MILLIONTH) if tries < _ROUNDS else found / 2)
    return found if found >= _EPSILON_LEAST else Fraction(0)


def _gaussian_within(rho: Fraction, asking: Loss) -> Fraction:
    """Nearly the largest epsilon at which Gaussian noise costs at most `rho`: its delta hardly moves with it."""
    found = asking.epsilon if isinstance(asking, ApproximateLoss) else Fraction(1)
    for _ in range(_ROUNDS):
        if found < _EPSILON_LEAST:  # so little rho is within the delta alone
            break
        found = convert.zcdp_to_epsilon(rho, shares_of(asking, found).rho)
    return found


def _cut(epsilon: Fraction) -> Fraction:
    """An epsilon to six digits, rounded down."""
    if not _SHOWN_IN_DIGITS[0] < epsilon < _SHOWN_IN_DIGITS[1]:
        return epsilon * (1 - _MILLIONTH)
    step = Fraction(10) ** (floor(log10(epsilon)) - 5)
    return epsilon // step * step


def _pure_within(rho: Fraction) -> Fraction:
    """The largest pure epsilon, nearly, that costs at most `rho`: found by halving, each one checked."""
    if rho > _SHOWN_IN_DIGITS[1]:
        return rho  # an epsilon never costs more than itself
    low, high = 0.0, 2 * float(rho) + 4
    for _ in range(50):
        middle = (low + high) / 2
        if middle * math.tanh(middle / 2) <= rho:
            low = middle
        else:
            high = middle
    return Fraction(low)
