"""Two experiments on risks: whether a person is in the data, and what δ allows in the worst case."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit import Laplace, explain
from tacit.noise import Bernoulli, Keystream, draw_below
from tacit.numbers import show
from tacit_classroom.theory.experiments import Rows, at_most, drawn_before, percent

# ---- Membership.

MEMBERS = 60
FACTS = (5, 10, 20, 50, 100, 200, 500)


@dataclass(frozen=True)
class Membered:
    """How well members are told from others by averages of many facts: exact ones, and those through a budget."""

    facts: int
    epsilon: Fraction
    most: Fraction
    drawn: tuple[int, ...]  # for each number of facts and way: members detected, others accused

    @property
    def along(self) -> tuple[tuple[str, int, float], ...]:
        """The way to answer, the number of facts, and the advantage over a coin."""
        places = [(way, few) for few in _facts_at(self.facts) for way in ("exact", "budget")]
        pairs = zip(self.drawn[::2], self.drawn[1::2], strict=True)
        return tuple(
            (way, few, (hit - wrong) / MEMBERS) for (way, few), (hit, wrong) in zip(places, pairs, strict=True)
        )

    @property
    def rows(self) -> Rows:
        """The advantages with all facts."""
        here = {way: max(share, 0.0) for way, few, share in self.along if few == self.facts}
        return (
            ("Exact averages: advantage over a coin", percent(here["exact"])),
            ("Averages through a budget", percent(here["budget"])),
            ("No attack on this budget can expect more than", at_most(self.most)),
        )

    @property
    def python(self) -> str:
        """The same in Python, through a table with a ledger."""
        sizes = f"members={MEMBERS}, facts={self.facts}, epsilon={show(self.epsilon)}, epsilons=[{show(self.epsilon)}]"
        return f"from tacit_classroom.attacks import membership\n\nprint(membership({sizes}, trials=200))"


def detect_members(*, facts: int, epsilon: Fraction, drawn: tuple[int, ...] = ()) -> Membered:
    """Return how many members and others an attacker calls members, who knows all facts of everyone.

    One person changes the count of each fact by at most 1, so the sensitivity is the number of facts.
    """
    most = explain(epsilon).one.advantage
    sizes = _facts_at(facts)
    if not drawn_before(drawn, [MEMBERS] * 4 * len(sizes)):
        bits = Keystream()
        common = 10 + draw_below(81, facts, bits)  # percent of people who have the fact
        people = draw_below(100, 2 * MEMBERS * facts, bits).reshape(2, MEMBERS, facts) < common
        found: list[int] = []
        for few in sizes:
            inside, outside = people[0, :, :few], people[1, :, :few]
            counts = inside.sum(axis=0).astype(np.int64)
            for given in (counts, Laplace(sensitivity=few, epsilon=epsilon).release(counts)):
                lean = given / MEMBERS - common[:few] / 100
                found += [_called(each, lean, common[:few] / 100) for each in (inside, outside)]
        drawn = tuple(found)
    return Membered(facts, epsilon, most, drawn)


def _called(people: NDArray[np.bool_], lean: NDArray[np.float64], common: NDArray[np.float64]) -> int:
    """Return how many lean as the published averages lean, by at least half of a member's own part in them."""
    level = (common * (1 - common)).sum() / (2 * MEMBERS)
    return int((((people - common) @ lean) > level).sum())


def _facts_at(facts: int) -> tuple[int, ...]:
    return (*(each for each in FACTS if each < facts), facts)


# ---- Name and shame.

DELTAS = tuple(Fraction(1, 10**power) for power in range(2, 10))


@dataclass(frozen=True)
class Shamed:
    """A release that publishes each row in the clear with probability δ, which satisfies (0, δ)-privacy."""

    people: int
    delta: Fraction
    drawn: tuple[int, ...]  # rows published in one release now

    @property
    def along(self) -> tuple[tuple[Fraction, float], ...]:
        """δ, and the probability that at least one row is published."""
        return tuple((delta, risk_of(self.people, delta)) for delta in DELTAS)

    @property
    def rows(self) -> Rows:
        """The risk at the chosen δ, and one release."""
        expected = float(self.people * self.delta)
        return (
            ("At least one row is published with probability", percent(risk_of(self.people, self.delta))),
            ("Rows published on average", f"{expected:,.3g}"),
            ("Rows published in one release now", f"{self.drawn[0]:,}"),
            ("δ should be well below", f"{show(Fraction(1, self.people))} (one over the people)"),
        )

    @property
    def python(self) -> str:
        """The same in Python."""
        return (
            f"from tacit_classroom.attacks import name_and_shame\n\nprint(name_and_shame(rows={self.people}, runs=20))"
        )


def shame(*, people: int, delta: Fraction, drawn: tuple[int, ...] = ()) -> Shamed:
    """Return how many rows such a release publishes, with a coin for each person."""
    if not drawn_before(drawn, (people,)):
        drawn = (int(np.sum(Bernoulli(delta).sample(people))),)
    return Shamed(people, delta, drawn)


def risk_of(people: int, delta: Fraction) -> float:
    """Return the probability that at least one of the rows is published."""
    return float(-np.expm1(people * np.log1p(-float(delta))))
