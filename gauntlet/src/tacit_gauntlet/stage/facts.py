"""Facts under a case's hands: what a question would learn, facts of any content, and the plans that they give.

The planner takes facts as they come. Here they are the truth, or whatever somebody could have written into a ledger.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

from tacit.accounting import rho_within
from tacit.exact import ExactTable
from tacit.plan import planner
from tacit.plan.bounds import facts as fact_records
from tacit.plan.bounds import learning
from tacit.plan.groups import UNIT_SHIFT
from tacit.plan.plan import NoiseKind, NoisyRelease, Plan, Spend
from tacit.privacy import GaussianNoise, LaplaceNoise, StaircaseNoise
from tacit.release import NoisyTable, release
from tacit_gauntlet.stage.neighbours import Row, asked_of
from tacit_gauntlet.stage.table import BUDGET, Question, Table
from tacit_gauntlet.targets import planted, standing

# what the functions below take and give
WantedFact = fact_records.WantedFact
Fact = fact_records.Fact
Facts = dict[str, Fact]
Numbers = tuple[tuple[int, ...], ...]  # of a fact: [release, or number drawn][bin]
Tell = Callable[[WantedFact], Numbers]

_ROUNDS_MOST = 40
# The groups of every fact about groups; the votes for them, and the threshold, are told.
GROUPS: tuple[tuple[str | None], ...] = ((None,), ("a",), ("b",), ("c",), ("nowhere",))
# The bin that people are in where a case says how many there are.
BIN = 17


def unbounded(rows: Sequence[Row], **declared: Any) -> Table:
    """Return a table of the made-up people of which nothing is declared but whose rows they are."""
    return asked_of(rows, **({"rows_per_unit": None, "groups_per_unit": None, "columns": {}} | declared))


def spend_of(*, noise: NoiseKind | None = None, epsilon: object = 1, budget: Any = BUDGET) -> Spend:
    """Return what a call may spend."""
    return planner.make_spend(epsilon, None, noise, budget)  # type: ignore[arg-type]


def wanted_next(
    question: Question, spend: Spend, facts: Facts, *, learn: Fraction | None = None
) -> tuple[WantedFact, ...]:
    """Return what a question would learn next, knowing these facts."""
    return learning.missing_facts(question.query, question.session.declaration, spend, facts, learn)


def keys_of_facts(question: Question) -> set[str]:
    """Return the keys that a question's first facts are found by."""
    return {wanted.key for wanted in wanted_next(question, spend_of(), {})}


def told(question: Question, spend: Spend, tell: Tell) -> tuple[Facts, list[WantedFact]]:
    """Return all facts that a question asks for, one after the other, each told its numbers; and what was asked for."""
    facts: Facts = {}
    asked: list[WantedFact] = []
    for _ in range(_ROUNDS_MOST):
        wanted = wanted_next(question, spend, facts)
        if not wanted:
            return facts, asked
        asked += wanted
        facts |= {each.key: _fact(each, tell(each)) for each in wanted}
    raise RuntimeError("the question never stops learning")


def _fact(wanted: WantedFact, numbers: Numbers) -> Fact:
    scales = tuple(each.scale for each in wanted.plan.releases)
    keys = GROUPS if finds_groups(wanted) else ()
    return Fact(wanted.key, wanted.words, numbers, scales, wanted.plan.spend.epsilon, keys=keys)


def numbers_in(wanted: WantedFact) -> list[int]:
    """Return how many numbers each part of a fact has: the bins of its profiles, or one for each number drawn."""
    plan = wanted.plan
    if finds_groups(wanted):
        return [len(GROUPS), 1]
    return [len(plan.public_keys or ())] * len(plan.releases) + [1] * sum(
        3 * len(draw.targets) for draw in plan.quantiles
    )


def finds_groups(wanted: WantedFact) -> bool:
    """Return whether a fact is which groups there are."""
    return wanted.plan.threshold is not None


def drawn_most(wanted: WantedFact) -> int:
    """Return the greatest number that can be drawn, where numbers are; none is below 0."""
    return max((wanted.plan.measured[draw.column].height for draw in wanted.plan.quantiles), default=0)


def truth_of(wanted: WantedFact, exact: ExactTable) -> Numbers:
    """Return what a fact would say without noise; of numbers that are drawn, one draw."""
    plan = wanted.plan
    if plan.quantiles:
        return tuple(part for each in release(plan, exact).parts for part in each)
    if plan.threshold is not None:
        votes = dict(zip(exact.keys, exact.part(plan.releases[0].parts[0], plan), strict=True))
        return tuple(votes.get(key, 0) for key in GROUPS), (plan.threshold.least,)
    return tuple(tuple(exact.part(part, plan)) for each in plan.releases for part in each.parts)


def plan_on(question: Question, facts: Facts, spend: Spend) -> Plan:
    """Return the plan of a question that knows these facts."""
    return planner.make_plan(question.query, question.session.declaration, spend, facts)


def is_profile(wanted: WantedFact) -> bool:
    """Return whether a fact is how many people are in which bin, and not a number that is drawn."""
    return bool(wanted.plan.profiles)


def has_learned(plan: Plan) -> bool:
    """Return whether a plan rests on facts."""
    return bool(plan.learned)


def noise_faults(plan: Plan, spend: Spend) -> list[str]:
    """Return where a plan's noise is not for its sensitivity, or costs more in all than the call may spend."""
    faults, pure, rho = [], Fraction(0), Fraction(0)
    for place, each in enumerate((*plan.releases, *plan.totals)):
        wrong = _unlike(each)
        faults += [f"noise {place}: {wrong}"] if wrong else []
        event = each.event
        if isinstance(event, GaussianNoise):
            rho += event.sensitivity_squared / (2 * event.sigma**2)
        else:
            pure += event.epsilon if isinstance(event, StaircaseNoise) else event.sensitivity / event.scale
    if plan.quantiles or plan.choice is not None:
        return faults
    if pure > spend.epsilon:
        faults.append(f"all noise costs {float(pure)} of {float(spend.epsilon)}")
    if rho > 0 and (pure > 0 or rho > rho_within(spend.epsilon, spend.delta_rho)):
        faults.append("all noise costs more rho than epsilon holds")
    return faults


def _unlike(each: NoisyRelease) -> str:
    event, moves = each.event, each.sensitivity
    if isinstance(event, LaplaceNoise):
        right = event.scale == each.scale == each.law.scale and event.sensitivity >= moves.l1  # type: ignore[union-attr]
        return "" if right else "Laplace noise is not for what one unit moves"
    if isinstance(event, GaussianNoise):
        right = event.sigma == each.scale and event.sensitivity_squared >= moves.l2_squared
        right &= moves.l0 == 1 or not event.scalar
        return "" if right else "Gaussian noise is not for what one unit moves"
    right = moves.l0 == 1 and event.sensitivity >= moves.linf
    return "" if right else "a staircase is not for what one unit moves"


@contextmanager
def noisy_numbers_kept(kept: list[Any], *, again: bool) -> Iterator[None]:
    """Keep every noisy table that is released while open; or, `again`, release those that were kept, in their order."""
    release_of = standing("Session.release")
    left = iter(list(kept))

    def releasing(session: Any, plan: Plan) -> Any:
        noisy = release_of(session, plan)
        if again:
            return next(left)
        kept.append(noisy)
        return noisy

    with planted("Session.release", releasing):
        yield


@contextmanager
def facts_released_as(rounds: Sequence[Mapping[str, int]], people: int) -> Iterator[None]:
    """Release facts with these numbers while open, whatever the rows: votes of each round's groups, and people.

    Further rounds have the numbers of the last.
    """
    release_of = standing("Session.release")
    votes = list(rounds)

    def releasing(session: Any, plan: Plan) -> Any:
        noisy = release_of(session, plan)
        if plan.threshold is not None and not plan.outputs:
            found = votes.pop(0) if len(votes) > 1 else votes[0]
            counts = tuple(number << UNIT_SHIFT for number in found.values())
            return NoisyTable(tuple((group,) for group in found), ((counts,),))
        if plan.profiles:
            bins = tuple(people * (place == BIN) for place, _ in enumerate(plan.public_keys or ()))
            return NoisyTable(noisy.keys, ((bins,),) * len(plan.releases))
        return noisy

    with planted("Session.release", releasing):
        yield
