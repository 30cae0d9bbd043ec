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
from tacit_gauntlet.frame.case import Evidence, NotTried, Size

Plant = Callable[[], AbstractContextManager[object]]

# What a planted function raises that no longer fits the code around it: the bug was not tried, so it is not killed.
MISFITS = (TypeError, AttributeError, NameError, ImportError, KeyError, IndexError, NotTried)
UNPACKED = "values to unpack"  # a ValueError's words where a function gives more or fewer values than it did


@dataclass(frozen=True)
class Mutant:
    """A registered bug: its name, the case that must kill it, where it was published, and how to plant it."""

    name: str
    killed_by: str
    published: str
    plant: Plant


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


def mutant(name: str, *, killed_by: str, published: str) -> Callable[[Plant], Plant]:
    """Register the context manager below as the bug `name`; a name is given once."""

    def register(plant: Plant) -> Plant:
        if name in _mutants:
            raise InvalidParameter(f"there already is a mutant '{name}'\nhint: give this one its own name")
        _mutants[name] = Mutant(name, killed_by, published, plant)
        return plant

    return register


def all_mutants() -> tuple[Mutant, ...]:
    """Return every registered mutant, by name."""
    return tuple(_mutants[name] for name in sorted(_mutants))


def run_mutant(name: str, size: Size = "quick") -> Verdict:
    """Plant the bug, run the case that must notice it, and return whether it did.

    Evidence that did not pass kills; so does an error raised by the case, whose class is recorded as how. An error of
    the kind that a stale mutant makes kills nothing.
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
            said = f"raised {type(error).__name__}: {error}"
            if type(error) in MISFITS or (type(error) is ValueError and UNPACKED in str(error)):
                return Verdict(chosen, killed=False, how=f"does not fit the code: {said}")
            return Verdict(chosen, killed=True, how=said)
    if report.passed:
        return Verdict(chosen, killed=False, how="the case passed", evidence=report.evidence)
    how = "; ".join(report.evidence.lines()) or "the case failed"
    return Verdict(chosen, killed=True, how=how, evidence=report.evidence)
