"""Facts: noisy numbers that were paid for once and serve every later question, free, at any epsilon.

A fact never touches privacy: caps and ranges that are read off facts are public numbers like those a person writes, and
what they bound is bounded whatever they are. A wrong fact makes an answer worse, and nobody less protected.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType

from tacit.plan.plan import Plan


@dataclass(frozen=True)
class WantedFact:
    """A fact that a question needs and nobody has paid for yet: what to run, and what it is called.

    `key` says what it is about, and never at which epsilon, so that it is found again by every later question.
    """

    key: str
    words: str  # e.g. "how many rows a user_id has, by item"
    plan: Plan = field(repr=False)


@dataclass(frozen=True)
class Fact:
    """What was learned: a plan's noisy integers, the scale of their noise, and where they were paid for."""

    key: str
    words: str
    parts: tuple[tuple[int, ...], ...]  # [release or draw's target][bin]
    scales: tuple[Fraction, ...]  # of the Laplace noise of each release, in people; none for a draw
    epsilon: Fraction
    entry: int = 0
    time: str = ""


Facts = Mapping[str, Fact]
NO_FACTS: Facts = MappingProxyType({})
