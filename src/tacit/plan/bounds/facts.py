"""Facts: noisy numbers that were paid for once and serve every later question, free, at any epsilon.

Facts cannot affect privacy: caps and ranges that are read off facts are public numbers like those a person writes, and
they bound people with any value. A wrong fact makes an answer worse, but never less private. An absurd fact, as only a
damaged or forged entry has, is cut to possible values before a plan is made from it, so that such a plan does not fail
once it is charged.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType

from tacit.errors import QueryRefused
from tacit.plan.bounds.scaling import LARGEST_BINS
from tacit.plan.plan import Cost, Plan
from tacit.privacy import SCALE_MAX, SCALE_MIN
from tacit.query import Scalar

# A bin is taken to have at most this many people, and at least none: a float distinguishes whole numbers up to here.
PEOPLE_MOST = 1 << 53
# The beginning of a key of a fact about groups.
OF_GROUPS = "groups "
EPSILON_SHOWN_MOST = Fraction(1 << 53)


@dataclass(frozen=True)
class WantedFact:
    """A fact that a question needs and that is not paid for yet: its plan, and its name.

    `key` names its subject, and never an epsilon, so that it is found again by every later question.
    """

    key: str
    words: str  # e.g. "how many rows a user_id has, by item"
    plan: Plan = field(repr=False)
    instead: tuple[str, ...] = ()  # keys of facts that would do as well, if they are known

    @property
    def cost(self) -> Cost:
        """What it costs."""
        return self.plan.spend.epsilon, self.plan.threshold.delta if self.plan.threshold else Fraction(0)


@dataclass(frozen=True)
class Fact:
    """A learned fact: a plan's noisy integers, the scale of their noise, and the entry that paid for them."""

    key: str
    words: str
    parts: tuple[tuple[int, ...], ...]  # [release or draw's target][bin]
    scales: tuple[Fraction, ...]  # of the Laplace noise of each release, in people; None for a draw
    epsilon: Fraction
    entry: int = 0
    time: str = ""
    keys: tuple[tuple[Scalar, ...], ...] = ()  # the groups that were found, if the fact is about groups
    delta: Fraction = Fraction(0)  # of the threshold that groups were found by

    @property
    def cost(self) -> Cost:
        """What it costs."""
        return self.epsilon, self.delta

    @property
    def tells_range(self) -> bool:
        """Whether the fact is about the size of values, or their distance from the middle."""
        return bool(self.scales) and all(len(part) == LARGEST_BINS for part in self.parts)

    @property
    def finds_groups(self) -> bool:
        """Whether it is about which groups there are."""
        return self.key.startswith(OF_GROUPS)


Facts = Mapping[str, Fact]
NO_FACTS: Facts = MappingProxyType({})


def sound(fact: Fact, sizes: Sequence[int], *, scales: int, drawn_most: int | None = None) -> Fact:
    """Return a fact with numbers that could have been learned; refuse one with another count of numbers in a part.

    `drawn_most` is the highest step that can be drawn, for numbers that are drawn; others count people.
    """
    if [len(part) for part in fact.parts] != list(sizes) or len(fact.scales) != scales:
        raise QueryRefused(
            f"what is kept as '{fact.words}' is not what such a fact has, so no question can rest on it"
            "\nhint: run tacit ledger verify; learn(..., again=True) learns it once more"
        )
    least, most = (-PEOPLE_MOST, PEOPLE_MOST) if drawn_most is None else (0, drawn_most)
    parts = tuple(tuple(min(max(number, least), most) for number in part) for part in fact.parts)
    widths = tuple(min(max(scale, SCALE_MIN), SCALE_MAX) for scale in fact.scales)
    epsilon = min(max(fact.epsilon, Fraction(0)), EPSILON_SHOWN_MOST)
    if (parts, widths, epsilon) == (fact.parts, fact.scales, fact.epsilon):
        return fact
    return replace(fact, parts=parts, scales=widths, epsilon=epsilon)
