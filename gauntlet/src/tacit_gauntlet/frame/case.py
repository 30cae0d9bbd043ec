"""Gauntlet cases: each a published way in which such software has leaked, as code registered by its id.

A case is a function of a size that tries the attack and returns evidence. The tests call every case at its quick
size, `make slow` at its full size. Which bug each case would catch is shown by the mutants (mutant.py).
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tacit.errors import InvalidParameter

Size = Literal["quick", "full"]

# The promise of a full run on 2 cores. A slower run is reported as such; it does not fail, since machines differ.
SECONDS_MAX = 30.0


@dataclass(frozen=True)
class Evidence:
    """What a case found: whether we survived, and the measured figures that say so."""

    passed: bool
    details: Mapping[str, object] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Return the figures as lines to print."""
        return [f"{name}: {value}" for name, value in self.details.items()]


class NotTried(Exception):
    """A case could not be tried here; what was planted is then not killed by it."""


Attack = Callable[[Size], Evidence]


@dataclass(frozen=True)
class Case:
    """A registered case: its id, what it tries, the feature it belongs to, and the function that tries it."""

    id: str
    title: str
    feature: str
    attack: Attack


@dataclass(frozen=True)
class Report:
    """One run of a case: the evidence and how long it took."""

    case: Case
    size: Size
    evidence: Evidence
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether we survived the attack."""
        return self.evidence.passed

    @property
    def in_time(self) -> bool:
        """Whether the run kept the promise about its length."""
        return self.seconds <= SECONDS_MAX

    def __str__(self) -> str:
        verdict = "pass" if self.passed else "FAIL"
        late = "" if self.in_time else f" (over {SECONDS_MAX:g} s)"
        head = f"{self.case.id} {verdict} {self.seconds:.1f} s{late}: {self.case.title}"
        return "\n".join([head, *(f"    {line}" for line in self.evidence.lines())])


_cases: dict[str, Case] = {}


def case(id: str, *, title: str, feature: str) -> Callable[[Attack], Attack]:
    """Register the function below as the case `id`; an id is given once."""

    def register(attack: Attack) -> Attack:
        if id in _cases:
            raise InvalidParameter(f"the gauntlet already has a case {id}\nhint: give this one its own id")
        _cases[id] = Case(id, title, feature, attack)
        return attack

    return register


def all_cases() -> tuple[Case, ...]:
    """Return every registered case, by id."""
    return tuple(_cases[id] for id in sorted(_cases))


def find(id: str) -> Case:
    """Return the case registered as `id`."""
    if id not in _cases:
        known = ", ".join(sorted(_cases)) or "none"
        raise InvalidParameter(f"the gauntlet has no case {id}\nhint: the cases are: {known}")
    return _cases[id]


def run(id: str, size: Size = "quick") -> Report:
    """Run one case and return its report; an error inside the case is the caller's to see."""
    chosen = find(id)
    start = time.perf_counter()
    evidence = chosen.attack(size)
    return Report(chosen, size, evidence, time.perf_counter() - start)
