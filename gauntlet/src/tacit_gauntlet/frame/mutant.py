"""Mutants: published bugs, planted in our own modules on purpose, that a gauntlet case must kill.

A case that no mutant makes fail proves nothing. A mutant is a function that plants the bug as a context manager:
it patches our modules while open and puts them back when closed (targets.py). Planting happens before the case
starts, so a mutant that no longer fits our code is an error, not a kill.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from tacit.errors import InvalidParameter
from tacit_gauntlet.frame import case as cases
from tacit_gauntlet.frame.case import Evidence, Size

Plant = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Mutant:
    """A registered bug: its name, the case that must kill it, where it was published, and how to plant it.

    `raises` is how the error begins, class and words, by which the product or the case notices it; empty for evidence.
    """

    name: str
    killed_by: str
    published: str
    plant: Plant
    raises: str = ""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: whether its case killed it, and how."""

    mutant: Mutant
    killed: bool
    how: str
    evidence: Evidence | None = None

    def __str__(self) -> str:
        fate = f"killed by {self.mutant.killed_by}" if self.killed else f"SURVIVED {self.mutant.killed_by}"
        return f"{self.mutant.name}: {fate} ({self.how}); {self.mutant.published}"


_mutants: dict[str, Mutant] = {}


def mutant(name: str, *, killed_by: str, published: str, raises: str = "") -> Callable[[Plant], Plant]:
    """Register the context manager below as the bug `name`; a name is given once."""

    def register(plant: Plant) -> Plant:
        if name in _mutants:
            raise InvalidParameter(f"there already is a mutant '{name}'\nhint: give this one its own name")
        _mutants[name] = Mutant(name, killed_by, published, plant, raises)
        return plant

    return register


def all_mutants() -> tuple[Mutant, ...]:
    """Return every registered mutant, by name."""
    return tuple(_mutants[name] for name in sorted(_mutants))


def run_mutant(name: str, size: Size = "quick") -> Verdict:
    """Plant the bug, run the case that must notice it, and return whether it did.

    Evidence that did not pass kills; so does the error that the mutant says it is noticed by. Any other error kills
    nothing: what was planted broke by itself, as stale code does, and nobody has noticed the bug.
    """
    if name not in _mutants:
        known = ", ".join(sorted(_mutants)) or "none"
        raise InvalidParameter(f"there is no mutant '{name}'\nhint: the mutants are: {known}")
    chosen = _mutants[name]
    cases.find(chosen.killed_by)
    with chosen.plant():
        try:
            report = cases.run(chosen.killed_by, size)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            if chosen.raises and said.startswith(chosen.raises):
                return Verdict(chosen, killed=True, how=f"raised {said}")
            return Verdict(chosen, killed=False, how=f"does not fit the code: raised {said}")
    if report.passed:
        return Verdict(chosen, killed=False, how="the case passed", evidence=report.evidence)
    how = "; ".join(report.evidence.lines()) or "the case failed"
    return Verdict(chosen, killed=True, how=how, evidence=report.evidence)
