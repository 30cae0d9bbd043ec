"""Plans that are charged together: one loss for several questions, divided among them, with one kind of noise for all.

Laplace noise is charged in epsilon, so each question gets its share of epsilon. Gaussian noise is charged in rho, so
each gets its share of rho, which is more: among k questions each error is √k times, and not k times, that of the
question by itself. Their events are one list, with a cost within the (epsilon, delta) of the whole call.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import log

from tacit.accounting import noise_delta, rho_within
from tacit.errors import QueryRefused
from tacit.plan.bounds.facts import Facts
from tacit.plan.plan import Cost, NoiseKind, Plan, Spend, loss_of, question_key
from tacit.plan.planner import make_plan
from tacit.plan.split import PARTS_TRIED, ROUNDING, rounded_shares, standard_deviation
from tacit.privacy import ApproximateLoss, Event, Loss
from tacit.query import Query
from tacit.tables import Declaration

# Epsilons of parts are whole steps of this; the search for one ends there.
EPSILON_BITS = 40
DEVIATION_LEAST = 1e-300
# Even shares of so many questions are whole thousandths.
ROUNDED_MOST = 64

# A question, the public facts of its rows, and the learned ones.
Asked = tuple[Query, Declaration, Facts]


@dataclass(frozen=True)
class PlannedTogether:
    """The plans of several questions, and their cost as one."""

    plans: tuple[Plan, ...]
    spend: Spend  # of the whole call, without what it learns
    noise: NoiseKind

    @property
    def events(self) -> tuple[Event, ...]:
        return tuple(event for plan in self.plans for event in plan.events)

    @property
    def asked(self) -> ApproximateLoss | None:
        gaussian = any(plan.noise == "gaussian" for plan in self.plans)
        return ApproximateLoss(self.spend.epsilon, self.spend.delta_noise) if gaussian else None

    @property
    def loss(self) -> Loss:
        """The cost of the call by itself; for an (epsilon, delta) budget, its amount by plain addition."""
        return self.loss_with(())

    def loss_with(self, learned: Iterable[Cost]) -> Loss:
        keys = sum((plan.threshold.delta for plan in self.plans if plan.threshold is not None), Fraction(0))
        return loss_of(self.spend, keys=keys, noise=self.asked.delta if self.asked else Fraction(0), learned=learned)

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(question_key(plan) for plan in self.plans)


def spends_of(spend: Spend, queries: Sequence[Query]) -> tuple[Spend, ...]:
    """Return what each question may spend, as pure noise is charged: shares that add up to the whole."""
    shares = spend.parts or even_shares(len(queries))
    return tuple(_share_of(spend, share, query) for share, query in zip(shares, queries, strict=True))


def even_shares(count: int) -> tuple[Fraction, ...]:
    """Return even shares; of many questions they are exact, as no thousandths are."""
    if count == 1 or count > ROUNDED_MOST:
        return (Fraction(1, count),) * count
    return tuple(rounded_shares([1.0] * count))


def plans_together(asked: Sequence[Asked], spend: Spend, admits: Callable[[PlannedTogether], bool]) -> PlannedTogether:
    """Return the plans with the noise of smaller error, or with the other if the budget has room only for that."""
    found: dict[NoiseKind, PlannedTogether] = {}
    refused: QueryRefused | None = None
    for noise in _kinds(spend):
        try:
            found[noise] = plans_of_noise(asked, spend, noise)
        except QueryRefused as problem:
            refused = refused or problem
    if not found:
        raise refused or QueryRefused("no noise is left for these questions\nhint: leave out noise=")
    best = _better(found)
    if len(found) == 1 or admits(best):
        return best
    other = found["gaussian" if best.noise == "laplace" else "laplace"]
    if not admits(other):
        return best
    return replace(other, plans=tuple(replace(plan, instead_of=best.noise) for plan in other.plans))


def plans_of_noise(asked: Sequence[Asked], spend: Spend, noise: NoiseKind) -> PlannedTogether:
    """Return the plans with one kind of noise; the same call always gets the same."""
    queries = [query for query, _, _ in asked]
    shares = spends_of(spend, queries)
    if noise == "laplace":  # said, so that no number has a staircase, which could not be weighed with others
        return _made(asked, [replace(each, noise="laplace") for each in shares], spend, noise)
    for rho in _rhos(spend):
        by_rho = [
            replace(
                each,
                epsilon=_epsilon_of(rho * each.epsilon / spend.epsilon, spend.epsilon, spend.delta_rho),
                delta_noise=spend.delta_noise,
                delta_rho=spend.delta_rho,
                noise="gaussian",
            )
            for each in shares
        ]
        made = _made(asked, by_rho, spend, noise)
        if noise_delta(made.events, spend.epsilon) <= spend.delta_noise:
            break
    return made


def _made(asked: Sequence[Asked], spends: Sequence[Spend], spend: Spend, noise: NoiseKind) -> PlannedTogether:
    plans = [make_plan(*each[:2], share, each[2]) for each, share in zip(asked, spends, strict=True)]
    return PlannedTogether(tuple(plans), spend, noise)


def _share_of(spend: Spend, share: Fraction, query: Query) -> Spend:
    names = {output.name for output in query.outputs} | {query.level_name(kept) for kept in query.levels}
    return replace(
        spend,
        epsilon=spend.epsilon * share,
        delta=spend.delta * share,
        delta_keys=spend.delta_keys * share,
        delta_noise=spend.delta_noise * share,
        delta_rho=spend.delta_rho * share,
        weights=tuple((name, weight) for name, weight in spend.weights if name in names),
        parts=(),
    )


def _kinds(spend: Spend) -> tuple[NoiseKind, ...]:
    if spend.noise is not None:
        return (spend.noise,)
    return ("laplace",) if spend.delta_rho == 0 else ("laplace", "gaussian")


def _rhos(spend: Spend) -> Iterator[Fraction]:
    """Yield the rho that a whole call may have: the most first, and last what is surely within its delta for noise."""
    if spend.delta_rho == 0:  # its plan refuses, with words
        yield Fraction(0)
        return
    yield from (rho_within(spend.epsilon, spend.delta_rho) * part for part in PARTS_TRIED)
    yield rho_within(spend.epsilon, spend.delta_noise) * (1 - ROUNDING)


@lru_cache(maxsize=256)
def _epsilon_of(rho: Fraction, most: Fraction, delta: Fraction) -> Fraction:
    """Return the largest epsilon, in whole steps, that has no more than `rho` within it."""
    if delta == 0:
        return most
    step = most / (1 << EPSILON_BITS)
    low, high = 0, 1 << EPSILON_BITS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rho_within(step * middle, delta) <= rho else (low, middle)
    return step * max(low, 1)


def _better(found: dict[NoiseKind, PlannedTogether]) -> PlannedTogether:
    """Return the ones with smaller errors, compared as for one question: by the logarithms of all errors."""
    if len(found) == 1:
        return next(iter(found.values()))
    laplace, gaussian = found["laplace"], found["gaussian"]
    gain = sum(_log_gain(one, two) for one, two in zip(laplace.plans, gaussian.plans, strict=True))
    return gaussian if gain < 0 else laplace


def _log_gain(laplace: Plan, gaussian: Plan) -> float:
    """Return by how much, in logarithms, the errors of a plan grow with Gaussian noise in the place of Laplace."""
    one, two = (_log_errors(plan) for plan in (laplace, gaussian))
    gain = sum(two) / max(len(two), 1) - sum(one) / max(len(one), 1)
    draws = zip(laplace.quantiles, gaussian.quantiles, strict=True)
    return gain + sum(log(pure.epsilon / by_rho.epsilon) for pure, by_rho in draws)


def _log_errors(plan: Plan) -> list[float]:
    errors = []
    for place, release in enumerate(plan.releases):
        scaled = plan.scaling is not None and place < len(plan.scaling.vectors)
        fine = 2.0 ** plan.scaling.vectors[place].shift if plan.scaling is not None and scaled else 1.0
        if plan.threshold is not None and plan.threshold.release == place:
            size = float(plan.threshold.least)  # which decides what groups are seen
        else:
            size = standard_deviation(release.summed, release.scale)
        errors.append(log(max(size / fine, DEVIATION_LEAST)))
    return errors
