"""Membership: is this person in the data? Two attackers, on exact answers and on ours.

One attacker has a thousand facts about the person and the frequency of each, and sees the frequency of each among the
members (as was done with genomes). The other is the strongest possible: an attacker with the data of all other people
who sees one mean.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.accounting import explain
from tacit.asking import table
from tacit.numbers import Number
from tacit.privacy import epsilon as pure_loss
from tacit_classroom.attacks.people import (
    Choices,
    Progress,
    at_most,
    loss_to_try,
    percent,
    silent,
    size,
    without_warnings,
)

MEMBERS, MEMBERS_LEAST, MEMBERS_MOST = 100, 10, 2_000
FACTS, FACTS_LEAST, FACTS_MOST = 2_000, 10, 10_000
TRIALS, TRIALS_LEAST, TRIALS_MOST = 2_000, 10, 20_000
OTHERS = 50  # people in each trial who are known
RELEASES = 5  # how often the averages of many facts are asked again, since one noise is shared by all who are judged
EPSILONS: tuple[Number, ...] = ("0.1", "0.3", "1", "3", "10", "100", "1000")
MANY_FACTS, ONE_MEAN = "many facts", "one mean"

Booleans = NDArray[np.bool_]


@dataclass(frozen=True)
class MembershipPoint:
    """How much better than a coin an attacker does at some epsilon: detections less false alarms."""

    attacker: str
    epsilon: float
    advantage: float
    bound: float


@dataclass(frozen=True)
class Membership:
    """How well members are distinguished from others: print it, `plot` it, or take `record()` as data."""

    members: int
    facts: int
    trials: int
    seed: int
    exact_many_facts: float
    exact_one_mean: float
    points: tuple[MembershipPoint, ...]
    epsilon: float  # the one the sentence speaks of

    def at(self, attacker: str) -> MembershipPoint:
        """Return what an attacker gets at the epsilon the sentence speaks of."""
        return next(point for point in self.points if point.attacker == attacker and point.epsilon == self.epsilon)

    @property
    def sentence(self) -> str:
        """The meaning, for decision makers."""
        many, one = self.at(MANY_FACTS), self.at(ONE_MEAN)
        return (
            "Exact averages let an attacker detect members of the data (an advantage of "
            f"{percent(self.exact_many_facts)} over a coin); through a budget of ε = {self.epsilon:g} the same "
            f"attacker gets {percent(max(many.advantage, 0))}, one with everyone else's data gets "
            f"{percent(max(one.advantage, 0))}, and no attacker can expect more than {at_most(one.bound)}."
        )

    def record(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return asdict(self) | {"attack": "membership", "sentence": self.sentence}

    def plot(self, path: str | Path) -> Path:
        """Draw each attacker's advantage along epsilon, under the bound: .png, .svg or .html."""
        from tacit_classroom.attacks.drawings import draw_membership

        return draw_membership(self, Path(path))

    def __str__(self) -> str:
        lines = [
            f"Who is in the data? Advantage over a coin: members detected less others accused (seed {self.seed})",
            "",
            f"{'':<14}{f'{self.facts:,} facts about':>20}{'one mean, all':>18}{'at most, by':>14}",
            f"{'answers':<14}{f'{self.members:,} members':>20}{'others known':>18}{'any attack':>14}",
            f"{'exact':<14}{percent(self.exact_many_facts):>20}{percent(self.exact_one_mean):>18}{'100 %':>14}",
        ]
        many = {point.epsilon: point for point in self.points if point.attacker == MANY_FACTS}
        for point in (point for point in self.points if point.attacker == ONE_MEAN):
            shares = f"{_signed(many[point.epsilon].advantage):>20}{_signed(point.advantage):>18}"
            lines.append(f"{f'ε = {point.epsilon:g}':<14}{shares}{at_most(point.bound):>14}")
        few = (
            f"Measured on {2 * self.members:,} people and in {self.trials:,} trials: a measured value may be some "
            "percent too high or too low, so it may be above its bound."
        )
        return "\n".join([*lines, few, "", self.sentence])

    __repr__ = __str__


@without_warnings()
def membership(
    *,
    epsilon: Number = 1,
    epsilons: Sequence[Number] = EPSILONS,
    members: int = MEMBERS,
    facts: int = FACTS,
    trials: int = TRIALS,
    seed: int = 1,
    progress: Progress = silent,
) -> Membership:
    """Return the success of two attackers in detecting members, on exact answers and through budgets.

    `facts` about each of `members` are averaged; a budget of each epsilon is for all the averages together. The
    one mean is tried `trials` times.
    """
    spoken = loss_to_try(epsilon)
    losses = sorted({spoken, *(loss_to_try(one) for one in epsilons)})
    size(members, name="members", least=MEMBERS_LEAST, most=MEMBERS_MOST)
    size(facts, name="facts", least=FACTS_LEAST, most=FACTS_MOST)
    size(trials, name="trials", least=TRIALS_LEAST, most=TRIALS_MOST)
    choices = Choices(seed)
    common = 0.05 + 0.9 * choices.fractions("how common", facts)
    inside, outside = (
        (choices.fractions(who, members * facts).reshape(members, facts) < common) for who in ("members", "others")
    )
    present = choices.coins("present", trials)
    points = []
    for at, loss in enumerate(losses):
        bound = float(explain(loss).one.advantage)
        many = float(
            np.mean([_told_by_facts(_noisy_shares(inside, loss), common, inside, outside) for _ in range(RELEASES)])
        )
        one = _told_by_mean(_noisy_means(present, loss), present)
        points += [
            MembershipPoint(MANY_FACTS, float(loss), many, bound),
            MembershipPoint(ONE_MEAN, float(loss), one, bound),
        ]
        progress("asking who is there", (at + 1) / len(losses))
    exact_means = present / (OTHERS + present)
    return Membership(
        members=members,
        facts=facts,
        trials=trials,
        seed=seed,
        exact_many_facts=_told_by_facts(inside.mean(axis=0), common, inside, outside),
        exact_one_mean=_told_by_mean(exact_means, present),
        points=tuple(points),
        epsilon=float(spoken),
    )


def _noisy_shares(inside: Booleans, loss: Fraction) -> NDArray[np.float64]:
    """Return how common each fact is among the members, as a protected table answers it; how many they are is known."""
    members, facts = inside.shape
    who, which = np.nonzero(inside)
    protected = table(
        pa.table({"person": who, "fact": which}),
        name="facts",
        unit="person",
        rows_per_unit=1,
        groups_per_unit=facts,
        columns={"fact": {"keys": list(range(facts))}},
        budget=pure_loss(loss),
        ledger=":memory:",
    )
    noisy = np.zeros(facts)
    for row in protected.group_by("fact").count().answer(epsilon=loss, accept_noise=True).to_dicts():
        noisy[row["fact"]] = row["count"]
    shares: NDArray[np.float64] = noisy / members
    return shares


def _told_by_facts(shares: Any, common: Any, inside: Booleans, outside: Booleans) -> float:
    """Return the advantage of calling those members who lean the way the published shares lean."""
    lean = shares - common
    level = (common * (1 - common)).sum() / (2 * len(inside))  # half of a member's contribution
    detected, accused = (float((((who - common) @ lean) > level).mean()) for who in (inside, outside))
    return detected - accused


def _noisy_means(present: Booleans, loss: Fraction) -> list[float | None]:
    """Return the mean of each trial: fifty people who are known to have 0, and perhaps one who has 1."""
    trials = len(present)
    known = np.repeat(np.arange(trials), OTHERS)
    trial = np.concatenate([known, np.flatnonzero(present)])
    value = np.concatenate([np.zeros(len(known), dtype=np.int64), np.ones(int(present.sum()), dtype=np.int64)])
    protected = table(
        pa.table({"person": np.arange(len(trial)), "trial": trial, "value": value}),
        name="trials",
        unit="person",
        rows_per_unit=1,
        groups_per_unit=1,
        columns={"trial": {"keys": list(range(trials))}, "value": {"between": (0, 1)}},
        budget=pure_loss(loss),
        ledger=":memory:",
    )
    rows = protected.group_by("trial").mean("value").answer(epsilon=loss, accept_noise=True).to_dicts()
    found = {row["trial"]: row["mean_value"] for row in rows}
    return [found[trial] for trial in range(trials)]


def _told_by_mean(means: Sequence[float | None] | NDArray[Any], present: Booleans) -> float:
    """Return the advantage of guessing 'member' if the mean is above that of the others."""
    guessed = np.array([mean is not None and mean > 0 for mean in means])
    return float(guessed[present].mean() - guessed[~present].mean())


def _signed(advantage: float) -> str:
    return percent(advantage) if advantage > 0 else f"{advantage * 100:.1f} %".replace("-", "−")
