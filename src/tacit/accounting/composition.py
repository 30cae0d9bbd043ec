"""The smallest valid total of a batch fixed in advance, and the rule that gave it (docs/proofs/composition.md).

Every rule here is a valid bound if the events are decided beforehand, so the smallest may be taken. Questions chosen
adaptively are left to the filter (`filter.py`), which keeps to one rule.

For (epsilon, delta) promises without further facts there are two rules: the classical bound of Dwork, Rothblum and
Vadhan, and the optimal one, which Kairouz, Oh and Viswanath showed to be that of composed randomized responses; it is
computed here for unequal promises too. Parallel composition is for releases about parts of a table
that share no unit: a unit pays only for its own parts.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from flint import arb

from tacit.accounting import convert, cost
from tacit.accounting.amplify import sampled_pair
from tacit.accounting.convert import require_chance
from tacit.accounting.pair import Pair, TooFine, moves_nothing, pair_of
from tacit.accounting.pld import Total
from tacit.errors import InvalidParameter
from tacit.numbers import Number, ball, decimal_meaning, shortened, show, upward, whole, within, working_precision
from tacit.privacy import (
    ApproximateLoss,
    Event,
    Failing,
    FailureChance,
    GaussianNoise,
    Loss,
    PureChoice,
    PureLoss,
    RenyiLoss,
    SubsampledGaussian,
    ZcdpLoss,
    delta_meaning,
)

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


# ---- batches ---------------------------------------------------------------------------------------------------------


Counts = Mapping[Event, int]

BASIC, CLASSICAL, OPTIMAL = "basic", "advanced", "optimal advanced"
ZCDP, RENYI, NUMERICAL = "zCDP", "Rényi", "numerical"

# Beyond this a single release promises so little that rules about promises do not help.
PROMISE_MOST = 100
# Batches are never asked for at a larger epsilon: the promise is empty there.
EPSILON_MOST = Fraction(10**6)

# Losses smaller or larger than these are left to the rules that add.
LOSS_LEAST, LOSS_MOST, SAMPLED_MOST = Fraction(1, 10**9), Fraction(10**4), Fraction(20)

# A product of probabilities is kept exactly up to this length of its exact value.
EXACT_BITS = 2000

# Orders above 1 at which Rényi curves are read first; then nearer to the best of them.
_ORDERS = tuple(Fraction(2) ** j for j in range(-5, 13))
_FINER = tuple(Fraction(5 + j, 10) for j in range(16))


@dataclass(frozen=True)
class Way:
    """A rule's total, or None if the rule does not apply to this batch."""

    name: str
    loss: PureLoss | ApproximateLoss | None


@dataclass(frozen=True)
class Batch:
    """The loss of a batch by every rule; `loss` is the smallest and `way` the rule that gave it."""

    releases: int
    loss: PureLoss | ApproximateLoss
    way: str
    ways: tuple[Way, ...]

    def __str__(self) -> str:
        lines = [f"{self.releases:,} release{'s' * (self.releases > 1)}, fixed in advance: {self.loss} ({self.way})"]
        for way in self.ways:
            mark = "*" if way.name == self.way else " "
            lines.append(f" {mark} {way.name:<17} {'not known' if way.loss is None else way.loss}")
        return "\n".join(lines)

    __repr__ = __str__


def compose(
    events: Iterable[Any] | Mapping[Any, int], *, delta: Number | None = None, epsilon: Number | None = None
) -> Batch:
    """Return the cost of a batch fixed in advance, by every rule and the smallest: epsilon at a delta, or delta at one.

    An item is an event, a mechanism that has one, or a pure or (epsilon, delta) loss; a mapping gives how often
    each runs. Valid only if the batch is decided before the first answer is seen.

    >>> import tacit
    >>> print(tacit.compose([tacit.Laplace(epsilon=0.1)] * 50, delta=1e-6))
    50 releases, fixed in advance: ε = 3.17291, δ = 1e-6 (numerical)
       basic             ε = 5, δ = 1e-6
       advanced          ε = 4.24278, δ = 1e-6
       optimal advanced  ε = 3.17291, δ = 1e-6
       zCDP              ε = 3.54066, δ = 1e-6
       Rényi             ε = 3.35569, δ = 1e-6
     * numerical         ε = 3.17291, δ = 1e-6
    """
    counts, releases = _event_counts(events)
    if (delta is None) == (epsilon is None):
        raise InvalidParameter("give delta, to get epsilon, or epsilon, to get delta\nhint: e.g. delta=1e-6")
    if epsilon is not None:
        asked = decimal_meaning(epsilon, name="epsilon")
        ways = _at_epsilon(counts, within(asked, name="epsilon", least=Fraction(0), most=EPSILON_MOST))
    else:
        ways = _at_delta(counts, delta_meaning(delta if delta is not None else 0))
    known = [(way.loss, -index, way.name) for index, way in enumerate(ways) if way.loss is not None]
    if not known:
        why = "at this delta: its events already fail with that probability\nhint: give a larger delta"
        if epsilon is not None:
            why = "at this epsilon the batch gives no promise\nhint: give a larger epsilon"
        raise InvalidParameter(f"no rule gives this batch a total {why}")
    loss, _, name = min(known, key=lambda item: (_loss_size(item[0]), item[1]))
    return Batch(releases, loss, name, ways)


def _loss_size(loss: PureLoss | ApproximateLoss) -> tuple[Fraction, Fraction]:
    return loss.epsilon, loss.delta if isinstance(loss, ApproximateLoss) else Fraction(0)


def _event_counts(events: Iterable[Any] | Mapping[Any, int]) -> tuple[Counts, int]:
    """Return how often each event runs, and how many releases were given: an (epsilon, delta) loss is two events."""
    counts: Counter[Event] = Counter()
    releases = 0
    if isinstance(events, str | bytes) or not isinstance(events, Iterable):
        raise InvalidParameter(f"cannot compose a {type(events).__name__}\nhint: give a list, e.g. [tacit.epsilon(1)]")
    for item, times in events.items() if isinstance(events, Mapping) else ((event, 1) for event in events):
        often = whole(times, name="how often an event runs")
        releases += often
        for event in _events_of(item):
            one, times_each = _one_round(event)
            counts[one] += often * times_each
    if not counts:
        raise InvalidParameter("the batch is empty\nhint: give at least one event")
    return counts, releases


def _one_round(event: Event) -> tuple[Event, int]:
    """Return one round of an event, and the number of its rounds."""
    if isinstance(event, SubsampledGaussian) and event.rounds != 1:
        return replace(event, rounds=Fraction(1)), int(event.rounds)
    return event, 1


def _events_of(item: object) -> tuple[Event, ...]:
    if isinstance(item, Event):
        return (item,)
    if isinstance(item, PureLoss):
        return (PureChoice(item.epsilon),)
    if isinstance(item, ApproximateLoss):
        # the worst of all that keep to it: fail with chance delta, otherwise randomized response
        return (PureChoice(item.epsilon), FailureChance(item.delta))
    event = getattr(item, "event", None)
    if isinstance(event, Event):
        return (event,)
    raise InvalidParameter(
        f"cannot compose a {type(item).__name__}"
        "\nhint: give events, mechanisms such as tacit.Laplace(epsilon=1), or losses such as tacit.epsilon(1)"
    )


# ---- epsilon at a delta ----------------------------------------------------------------------------------------------


def _at_delta(counts: Counts, delta: Fraction) -> tuple[Way, ...]:
    if delta == 0:
        total = _pure_total(counts)
        if total is None:
            raise InvalidParameter("this batch is not pure, so delta must be above 0\nhint: e.g. delta=1e-6")
        return (Way(BASIC, PureLoss(total)),)
    rules: dict[str, Callable[[], Fraction | None]] = {
        BASIC: lambda: _basic_epsilon(counts, delta),
        CLASSICAL: lambda: _by_promises(counts, delta, classical_epsilon),
        OPTIMAL: lambda: _by_promises(counts, delta, optimal_epsilon),
        ZCDP: lambda: _zcdp_epsilon(counts, delta),
        RENYI: lambda: _renyi(counts, lambda curve: convert.renyi_to_epsilon(curve, delta), delta),
        NUMERICAL: lambda: _numerical(counts, lambda total: total.epsilon(delta)),
    }
    found = {name: _total_by(rule) for name, rule in rules.items()}
    return tuple(Way(name, None if e is None else ApproximateLoss(e, delta)) for name, e in found.items())


def _pure_total(counts: Counts) -> Fraction | None:
    total = Fraction(0)
    for event, count in counts.items():
        epsilon = cost.pure_epsilon(event)
        if epsilon is None:
            return None
        total += count * epsilon
    return total


def _basic_epsilon(counts: Counts, delta: Fraction) -> Fraction | None:
    promises, left = _promises(counts, delta, slack_share=Fraction(0))
    return None if left < 0 else sum((count * epsilon for epsilon, count in promises), Fraction(0))


def _by_promises(
    counts: Counts, delta: Fraction, rule: Callable[[Promises, Fraction], Fraction | None]
) -> Fraction | None:
    promises, left = _promises(counts, delta, slack_share=Fraction(1, 2))
    if left <= 0 or not promises or max(promises)[0] > PROMISE_MOST or min(promises)[0] < LOSS_LEAST:
        return None
    return rule(promises, left)


def _promises(counts: Counts, delta: Fraction, *, slack_share: Fraction) -> tuple[Promises, Fraction]:
    """Return (epsilon, count) for each event, and the delta that remains; negative if the total does not exist.

    Events that are not pure share the remaining delta equally, except for `slack_share`.
    """
    left = _delta_left(delta, _failing(counts))
    promises: list[tuple[Fraction, int]] = []
    others: dict[Event, int] = {}
    for event, n in counts.items():
        if isinstance(event, SubsampledGaussian):
            return (), Fraction(-1)
        epsilon = cost.pure_epsilon(event)
        if epsilon is not None:
            promises.append((epsilon, n))
        elif not isinstance(event, Failing):
            others[event] = n
    if left < 0 or (others and left == 0):
        return (), Fraction(-1)
    if others:
        each = left * (1 - slack_share) / sum(others.values())
        promises += [(cost.epsilon_at(event, each), n) for event, n in others.items()]
        left = left * slack_share
    return [(epsilon, n) for epsilon, n in promises if epsilon > 0], left


# ---- delta at an epsilon ---------------------------------------------------------------------------------------------


def _at_epsilon(counts: Counts, epsilon: Fraction) -> tuple[Way, ...]:
    if epsilon < 0:
        raise InvalidParameter(f"epsilon must be at least 0, not {show(epsilon)}")
    failing = _failing(counts)
    promises, _ = _promises(counts, failing, slack_share=Fraction(0))
    total = sum((n * each for each, n in promises), Fraction(0))
    by_sum = failing if promises and total <= epsilon else None

    def added(rule: Callable[[Promises, Fraction], Fraction]) -> Fraction | None:
        if not promises or max(promises)[0] > PROMISE_MOST or min(promises)[0] < LOSS_LEAST:
            return None
        return failing + (1 - failing) * rule(promises, epsilon)

    rules: dict[str, Callable[[], Fraction | None]] = {
        BASIC: lambda: by_sum,
        CLASSICAL: lambda: added(classical_delta),
        OPTIMAL: lambda: added(optimal_delta),
        ZCDP: lambda: _zcdp_delta(counts, epsilon),
        RENYI: lambda: _renyi(counts, lambda curve: convert.renyi_to_delta(curve, epsilon), None),
        NUMERICAL: lambda: _numerical(counts, lambda sums: sums.delta(epsilon)),
    }
    return tuple(Way(name, _loss_within(epsilon, _total_by(rule))) for name, rule in rules.items())


def _total_by(rule: Callable[[], Fraction | None]) -> Fraction | None:
    """Return a rule's total, or None if it would need a finer grid than is ever computed."""
    try:
        return rule()
    except TooFine:
        return None


def _loss_within(epsilon: Fraction, delta: Fraction | None) -> PureLoss | ApproximateLoss | None:
    if delta is None or delta >= 1:
        return None
    return ApproximateLoss(epsilon, delta) if delta else PureLoss(epsilon)


def _failing(counts: Counts) -> Fraction:
    """Return the chance that any threshold or promise fails, each on its own: 1 − Π(1 − δ)^n, rounded up."""
    deltas = [(event.delta, n) for event, n in counts.items() if isinstance(event, Failing) and event.delta]
    if not deltas or any(delta >= 1 for delta, _ in deltas):
        return Fraction(1 if deltas else 0)
    if sum(n * delta.denominator.bit_length() for delta, n in deltas) <= EXACT_BITS:
        return 1 - math.prod(((1 - delta) ** n for delta, n in deltas), start=Fraction(1))
    added = sum((n * delta for delta, n in deltas), Fraction(0))
    return min(upward(lambda: -sum((n * (-ball(delta)).log1p() for delta, n in deltas), arb(0)).expm1()), added)


def _delta_left(delta: Fraction, failing: Fraction) -> Fraction:
    """Return the delta left beside `failing`, rounded down: it is conditional on no failure, of probability
    1 − failing.
    """
    if delta <= failing:
        return delta - failing
    return shortened((delta - failing) / (1 - failing), up=False)


# ---- the rules that add curves ---------------------------------------------------------------------------------------


def _zcdp_total(counts: Counts) -> ZcdpLoss | None:
    rho = Fraction(0)
    for event, count in counts.items():
        if isinstance(event, SubsampledGaussian):
            return None
        rho += count * cost.zcdp(event).rho
    return ZcdpLoss(rho, _failing(counts))


def _zcdp_epsilon(counts: Counts, delta: Fraction) -> Fraction | None:
    total = _zcdp_total(counts)
    if total is None or total.delta >= delta:
        return None
    return convert.zcdp_to_epsilon(total.rho, _delta_left(delta, total.delta)) if total.rho else Fraction(0)


def _zcdp_delta(counts: Counts, epsilon: Fraction) -> Fraction | None:
    total = _zcdp_total(counts)
    return None if total is None else total.delta + (1 - total.delta) * convert.zcdp_to_delta(total.rho, epsilon)


def _renyi(counts: Counts, read: Callable[[RenyiLoss], Fraction], delta: Fraction | None) -> Fraction | None:
    """Return what a conversion reads off the summed curve at its best order, found coarsely and then finely."""
    curve = _renyi_sum(counts, [1 + b for b in _ORDERS])
    if delta is not None and curve.delta >= delta:
        return None
    values = [(read(RenyiLoss((point,), curve.delta)), point[0]) for point in curve.curve]
    order = min(values)[1]
    finer = _renyi_sum(counts, [1 + (order - 1) * share for share in _FINER])
    return min(min(values)[0], read(finer))


def _renyi_sum(counts: Counts, orders: Iterable[Fraction]) -> RenyiLoss:
    wanted = list(orders)
    if any(isinstance(event, SubsampledGaussian) for event in counts):
        wanted = sorted({Fraction(max(2, round(order))) for order in wanted if order <= cost.ORDER_MOST})
    sums = dict.fromkeys(wanted, Fraction(0))
    for event, count in counts.items():
        for order, paid in cost.renyi(event, wanted).curve:
            sums[order] += count * paid
    return RenyiLoss(tuple(sums.items()), _failing(counts))


def _numerical(counts: Counts, ask: Callable[[Total], Fraction | None]) -> Fraction | None:
    """Return the larger answer of the two directions, removing a unit and adding one; None if none is known."""
    answers = []
    for adding in (False, True) if any(isinstance(event, SubsampledGaussian) for event in counts) else (False,):
        pairs: list[tuple[Pair, int]] = []
        with working_precision(128):
            for event, count in counts.items():
                if moves_nothing(event):
                    continue
                if not _is_ordinary(event):
                    return None
                pair = sampled_pair(event, adding=adding) if isinstance(event, SubsampledGaussian) else pair_of(event)
                if pair is None:
                    return None
                pairs.append((pair, count))
        answer = ask(Total(pairs)) if pairs else Fraction(0)
        if answer is None:
            return None
        answers.append(answer)
    return max(answers)


def numerical_delta(events: Iterable[Event], epsilon: Fraction) -> Fraction:
    """Return the numerical total of a batch at an epsilon, rounded up; 1 if it is not known.

    The floats of another machine may round otherwise, and then differ by far less than a thousandth
    (docs/proofs/sampled-rounds.md).
    """
    counts, _ = _event_counts(events)
    if any(isinstance(event, Failing) for event in counts):
        return Fraction(1)
    found = _total_by(lambda: _numerical(counts, lambda sums: sums.delta(epsilon)))
    return Fraction(1) if found is None else min(found, Fraction(1))


def _is_ordinary(event: Event) -> bool:
    """Whether an event's loss is of a size that floats can add to others without underflow or overflow."""
    if isinstance(event, Failing):
        return event.delta < 1
    if isinstance(event, SubsampledGaussian):
        rate, squared = event.rate, event.sensitivity_squared / event.sigma**2
        return rate >= LOSS_LEAST and (LOSS_LEAST / rate) ** 2 <= squared <= SAMPLED_MOST**2
    if isinstance(event, GaussianNoise):
        return LOSS_LEAST**2 <= event.sensitivity_squared / event.sigma**2 <= LOSS_MOST**2
    epsilon = cost.pure_epsilon(event)
    return epsilon is not None and LOSS_LEAST <= epsilon <= LOSS_MOST


def parallel(losses: Iterable[Loss], *, parts_per_unit: int = 1, neighbours: str = "add-remove") -> Loss:
    """Return the cost of releases about disjoint parts together, if one unit is in at most `parts_per_unit` of them.

    The largest of them add up, that many, and twice that many if neighbours replace a unit: it leaves some parts and
    enters others. All losses are of one notion (docs/proofs/composition.md).

    >>> print(parallel([PureLoss(Fraction(1)), PureLoss(Fraction(2)), PureLoss(Fraction(3))]))
    ε = 3
    """
    given = list(losses) if isinstance(losses, Iterable) else [losses]
    if not given:
        raise InvalidParameter("the batch is empty\nhint: give at least one loss")
    if neighbours not in ("add-remove", "replace"):
        raise InvalidParameter(f"neighbours must be 'add-remove' or 'replace', not {neighbours!r}")
    touched = whole(parts_per_unit, name="parts_per_unit") * (2 if neighbours == "replace" else 1)
    if all(isinstance(loss, PureLoss | ApproximateLoss) for loss in given):
        epsilon = _sum_of_largest(
            [loss.epsilon for loss in given if not isinstance(loss, ZcdpLoss | RenyiLoss)], touched
        )
        delta = _sum_of_largest([loss.delta for loss in given if isinstance(loss, ApproximateLoss)], touched)
        return ApproximateLoss(epsilon, delta) if delta else PureLoss(epsilon)
    zcdp = [loss for loss in given if isinstance(loss, ZcdpLoss)]
    if len(zcdp) == len(given):
        return ZcdpLoss(
            _sum_of_largest([loss.rho for loss in zcdp], touched),
            _sum_of_largest([loss.delta for loss in zcdp], touched),
        )
    raise InvalidParameter(
        "the parts have losses of mixed notions, or Rényi curves\nhint: give all of them as tacit.epsilon or tacit.rho"
    )


def _sum_of_largest(amounts: Sequence[Fraction], count: int) -> Fraction:
    return sum(sorted(amounts, reverse=True)[:count], Fraction(0))
