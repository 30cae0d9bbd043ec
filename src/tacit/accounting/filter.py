"""The filter: the events that a budget still admits, when each question is chosen after seeing the last answer.

A rule is fixed when a budget is declared, and only it decides (docs/proofs/ledger.md has the proof). The cost of
events comes from `cost.py`, and totals are stored by the ledger; here a total is a value and a rule is a comparison,
exact in rationals.

The last part computes the rest of a rule: the largest epsilon that one more question may ask for, with its delta, and
the number of further questions like the last. This part does not decide: every amount is checked with the rule and
rounded down.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import lru_cache
from itertools import count
from math import floor, inf, lcm, log10

from tacit.accounting import convert, cost
from tacit.errors import InvalidParameter
from tacit.privacy import ABOVE_ZERO, ApproximateLoss, Event, Failing, Loss, PureLoss, ZcdpLoss, is_possible

# Amounts are multiples of 1/GRAIN, so that a total stays short however many different ones it adds. Decimals to 30
# places and fractions over anything to 40 are exact; any other amount is rounded up to a multiple of 2^-96.
GRAIN = 2**64 * 10**30 * lcm(*range(1, 41))
_FINE = 2**96

# How the delta of a budget is divided, and a question's delta likewise: for private keys; for noise that is
# not pure, where losses are added as they were asked; and for turning a sum of rho back into epsilon.
FOR_KEYS = Fraction(3, 8)
FOR_NOISE = Fraction(1, 8)
FOR_RHO = 1 - FOR_KEYS - FOR_NOISE


@dataclass(frozen=True)
class Charge:
    """The cost of events together, in every notion that a budget may count.

    `epsilon` is the sum of the epsilons asked for, and None after a question without one. All noise is within it except
    with probability `delta_noise`, which is 0 for pure noise. `delta` is the probability that a threshold or a
    promise fails.
    """

    epsilon: Fraction | None = Fraction(0)
    rho: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    delta_noise: Fraction = Fraction(0)

    def __add__(self, other: "Charge") -> "Charge":
        stated = self.epsilon is not None and other.epsilon is not None
        return Charge(
            self.epsilon + other.epsilon if stated else None,  # type: ignore[operator]
            self.rho + other.rho,
            self.delta + other.delta if other.delta else self.delta,
            self.delta_noise + other.delta_noise if other.delta_noise else self.delta_noise,
        )

    def times(self, count: int) -> "Charge":
        if count == 0:
            return ZERO_CHARGE
        epsilon = None if self.epsilon is None else count * self.epsilon
        return Charge(epsilon, count * self.rho, count * self.delta, count * self.delta_noise)


ZERO_CHARGE = Charge()


@dataclass(frozen=True)
class NoiseLoss(ApproximateLoss):
    """The (epsilon, delta) that noise was made for; the part `of_keys` of its delta is charged as thresholds' is.

    A release that finds no keys may use the delta that a budget has for them, instead of a threshold.
    """

    of_keys: Fraction = Fraction(0)


@dataclass(frozen=True)
class BudgetRule:
    """A filter: totals inside either arm are admitted, and every total needs its thresholds' delta inside `delta`.

    The arm of addition bounds the summed epsilon and, inside `delta_noise`, the chance that noise is beyond it; the
    zCDP arm bounds the summed rho. An arm that is None admits no charge. `delta_convert` is the part of the declared
    delta that turns rho back into epsilon.
    """

    epsilon: Fraction | None
    rho: Fraction | None
    delta: Fraction
    delta_convert: Fraction = Fraction(0)
    delta_noise: Fraction = Fraction(0)

    def admits(self, total: Charge) -> bool:
        """Return whether `total`, the new charge included, keeps the promise."""
        return total.delta <= self.delta and (self.admits_by_addition(total) or self.admits_by_rho(total))

    def admits_by_addition(self, total: Charge) -> bool:
        """Return whether the arm of addition has room, the thresholds' delta apart."""
        if self.epsilon is None or total.epsilon is None:
            return False
        return total.epsilon <= self.epsilon and total.delta_noise <= self.delta_noise

    def admits_by_rho(self, total: Charge) -> bool:
        """Return whether the zCDP arm has room, the thresholds' delta apart."""
        return self.rho is not None and total.rho <= self.rho


def rule_of(budget: Loss) -> BudgetRule:
    """Return the one rule of a budget.

    >>> rule_of(PureLoss(Fraction(1))).admits(Charge(Fraction(1), Fraction(1, 2)))
    True
    """
    if isinstance(budget, PureLoss):
        return BudgetRule(budget.epsilon, None, Fraction(0))
    if isinstance(budget, ZcdpLoss):
        return BudgetRule(None, budget.rho, budget.delta)
    if isinstance(budget, ApproximateLoss):
        delta_convert = budget.delta * FOR_RHO
        rho = convert.rho_within(budget.epsilon, delta_convert)
        return BudgetRule(budget.epsilon, rho, budget.delta * FOR_KEYS, delta_convert, budget.delta * FOR_NOISE)
    raise InvalidParameter(
        "a Rényi curve cannot be a budget\nhint: declare tacit.epsilon(3, delta=1e-6) or tacit.rho(0.1)"
    )


def charge_of(events: Iterable[Event], *, asked: ApproximateLoss | None = None) -> Charge:
    """Return the cost of one question's events together, each amount rounded up to the grain.

    `asked` is the (epsilon, delta) that its noise was made for. If the noise is pure and within that epsilon the delta
    is not needed; if it is beyond, the delta that it needs is charged, in part to keys if `asked` requires so.

    >>> from tacit.privacy.loss import PureChoice
    >>> charge_of([PureChoice(Fraction(1, 10))]).epsilon
    Fraction(1, 10)
    """
    drawn, total = tuple(events), ZERO_CHARGE
    for event in drawn:
        _require_possible(event)
        loss = cost.zcdp(event)
        # a failure event costs only its delta: its output was paid for by the events recorded with it
        epsilon = Fraction(0) if isinstance(event, Failing) else cost.pure_epsilon(event)
        total += Charge(None if epsilon is None else grains(epsilon), grains(loss.rho), grains(loss.delta))
    if asked is None or (total.epsilon is not None and total.epsilon <= asked.epsilon):
        return total
    needed = max(asked.delta, cost.noise_delta(drawn, asked.epsilon))
    of_keys = min(asked.of_keys, needed) if isinstance(asked, NoiseLoss) else Fraction(0)
    return replace(
        total,
        epsilon=grains(asked.epsilon),
        delta=total.delta + grains(of_keys),
        delta_noise=grains(needed - of_keys),
    )


def covers(charged: Charge, events: Iterable[Event]) -> bool:
    """Return whether events cost no more than was charged for them, in every notion that the charge states.

    A delta that is charged beyond what the events' thresholds and promises need pays for noise.
    """
    drawn = tuple(events)
    cost_of = charge_of(drawn)
    if cost_of.rho > charged.rho or cost_of.delta > charged.delta:
        return False
    if charged.epsilon is None or (cost_of.epsilon is not None and cost_of.epsilon <= charged.epsilon):
        return True
    return cost.noise_delta(drawn, charged.epsilon) <= charged.delta_noise + (charged.delta - cost_of.delta)


def _require_possible(event: Event) -> None:
    """Refuse an event with inexact amounts, or one that no noise could have: its cost would be meaningless."""
    for field in fields(event):
        value = getattr(event, field.name)
        if isinstance(value, bool) and field.name == "scalar":
            continue
        if isinstance(value, bool) or not isinstance(value, Fraction | int):
            raise InvalidParameter(f"an event's {field.name} must be a Fraction, not {type(value).__name__}")
        if not is_possible(field.name, Fraction(value)):
            least = "above" if field.name in ABOVE_ZERO else "at least"
            most = " and at most 1" if value > 1 else ""
            raise InvalidParameter(f"an event's {field.name} must be {least} 0{most}")


def grains(amount: Fraction) -> Fraction:
    """Return the amount, rounded up to the grain if it is not a multiple of it; never less."""
    if amount < 0:
        raise InvalidParameter("a charge cannot be below 0\nhint: an event's scale and sensitivity must be above 0")
    return amount if GRAIN % amount.denominator == 0 else Fraction(-(-amount * _FINE // 1), _FINE)


def grains_below(amount: Fraction) -> Fraction:
    """Return the amount, rounded down to the grain, so that shares which add up to a limit still do when charged.

    An amount that is too small for that stays unchanged.
    """
    lowered = amount if GRAIN % amount.denominator == 0 else Fraction(amount * _FINE // 1, _FINE)
    return lowered if 2 * lowered > amount else amount


# ---- how much a rule leaves ------------------------------------------------------------------------------------------


# A rho budget does not have its own delta to share; at this one its rho is read as an epsilon.
DELTA_TO_READ_RHO = Fraction(1, 10**6)
# Epsilons between these are cut to six digits; others are lowered by a millionth.
_SHOWN_IN_DIGITS = (Fraction(1, 10**12), Fraction(10**6))
_MILLIONTH = Fraction(1, 10**6)
# Less than this is not worth a question, and the rounding of charges could be more.
_RHO_LEAST = Fraction(1, 2**64)
_EPSILON_LEAST = Fraction(1, 10**12)
# A round of the search for an epsilon brings it some thirty times closer.
_ROUNDS = 6


@dataclass(frozen=True)
class Shares:
    """A question's delta, all of it and divided: for private keys, for noise by addition, for its rho."""

    asked: Fraction
    keys: Fraction
    noise: Fraction
    rho: Fraction


def shares_of(budget: Loss, epsilon: Fraction, delta: Fraction | None = None) -> Shares:
    """Return how a question's delta is divided; the default is its epsilon's share of the budget's.

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
    """Return the delta of a question without one: its epsilon's share of the budget's delta."""
    if isinstance(budget, ApproximateLoss):
        return budget.delta * min(epsilon / budget.epsilon, Fraction(1))
    return DELTA_TO_READ_RHO if isinstance(budget, ZcdpLoss) else Fraction(0)


@dataclass(frozen=True)
class Remaining:
    """The most that one more question may ask for.

    `laplace` is the largest epsilon of pure noise and `delta` the largest delta beside it, for private keys.
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


def remaining(rule: BudgetRule, spent: Charge, asking: Loss) -> Remaining:
    """Return what a rule leaves after `spent`, to questions that take their share of the delta of `asking`.

    >>> from tacit.accounting.filter import rule_of
    >>> budget = PureLoss(Fraction(3))
    >>> remaining(rule_of(budget), Charge(Fraction(1), Fraction(1, 2)), budget).epsilon
    Fraction(2, 1)
    """
    zero = Fraction(0)
    if not rule.admits(spent):
        return Remaining(zero, zero, zero, zero, None if rule.rho is None else zero)
    keys_left = (rule.delta - spent.delta) / (FOR_KEYS if rule.delta_convert else 1)
    added = _by_addition(rule, spent, asking)
    gaussian = max(added, _by_rho(rule, spent, asking))
    noise_left = (rule.delta_noise - spent.delta_noise) / FOR_NOISE
    beside = noise_left if added == gaussian else asked_delta(asking, gaussian)
    return Remaining(
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


def questions_left(rule: BudgetRule, spent: Charge, like: Charge) -> int | None:
    """Return the number of further questions with the cost `like` that the rule admits, one after the other; None for
    any number.

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
            _repeats(rule.epsilon, spent.epsilon, like.epsilon),
            _repeats(rule.delta_noise, spent.delta_noise, like.delta_noise),
        )
    if rule.admits_by_rho(spent):
        by_rho = _repeats(rule.rho, spent.rho, like.rho)
    times = min(max(by_addition, by_rho), _repeats(rule.delta, spent.delta, like.delta))
    return None if times == inf else int(times)


def _repeats(limit: Fraction | None, spent: Fraction | None, amount: Fraction) -> float | int:
    """How often an amount fits between what is spent and its limit: a whole number, or infinity for no amount."""
    if limit is None or spent is None:
        return 0
    return (limit - spent) // amount if amount else inf


def _by_addition(rule: BudgetRule, spent: Charge, asking: Loss | None) -> Fraction:
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


def _by_rho(rule: BudgetRule, spent: Charge, asking: Loss | None) -> Fraction:
    """The same for the zCDP arm, to six digits: searched, and then checked."""
    rho = Fraction(0) if rule.rho is None else rule.rho - spent.rho
    if rho < _RHO_LEAST or isinstance(asking, PureLoss):
        return Fraction(0)
    found = _six_digits(_pure_within(rho) if asking is None else _gaussian_within(rho, asking))
    for tries in count():
        if found < _EPSILON_LEAST or charge_at(found, asking).rho <= rho:
            break
        found = _six_digits(found * (1 - _MILLIONTH) if tries < _ROUNDS else found / 2)
    return found if found >= _EPSILON_LEAST else Fraction(0)


@lru_cache(maxsize=256)
def _gaussian_within(rho: Fraction, asking: Loss) -> Fraction:
    """Nearly the largest epsilon at which Gaussian noise costs at most `rho`: its delta hardly moves with it."""
    found = asking.epsilon if isinstance(asking, ApproximateLoss) else Fraction(1)
    for _ in range(_ROUNDS):
        if found < _EPSILON_LEAST:  # the delta already covers this little rho
            break
        found = convert.zcdp_to_epsilon(rho, shares_of(asking, found).rho)
    return found


def _six_digits(epsilon: Fraction) -> Fraction:
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
