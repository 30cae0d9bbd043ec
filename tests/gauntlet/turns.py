"""Which planted bugs one run of the tests plants: the first bug of an eighth of the cases, another eighth each day,
and every bug whose place or whose own code differs from the main branch. `make slow` plants all of them.

What is planted changes by the day; whether a planted bug is killed does not.
"""

import inspect
from collections.abc import Collection, Iterable, Iterator
from datetime import date
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import tacit_gauntlet
from tacit.errors import InvalidParameter
from tacit_gauntlet.frame.case import Case, all_cases
from tacit_gauntlet.frame.mutant import Mutant, all_mutants
from tacit_gauntlet.targets import TARGETS, places_of
from tests.changes import PROJECT

TURNS = 8


def first_bugs(mutants: Iterable[Mutant]) -> dict[str, str]:
    """Return each case's first bug by name, which shows that the case can fail."""
    return {mutant.killed_by: mutant.name for mutant in sorted(mutants, key=lambda each: each.name, reverse=True)}


def planted_on(day: date, mutants: Collection[Mutant], changed: Collection[str]) -> set[str]:
    """Return the names of the bugs that a run plants."""
    firsts = first_bugs(mutants)
    turn = [firsts[case] for at, case in enumerate(sorted(firsts)) if at % TURNS == day.toordinal() % TURNS]
    return {*turn, *(mutant.name for mutant in mutants if concerns(mutant, changed))}


def concerns(mutant: Mutant, changed: Collection[str]) -> bool:
    """Whether a file that changed has a place of the bug's seams, the bug, or the case that must kill it."""
    return bool(changed) and not files_of(mutant).isdisjoint(changed)


def tests_near(changed: Collection[str]) -> list[str]:
    """Return the tests of the cases and bugs that have to do with a file that changed."""
    tacit_gauntlet.load()
    bugs = [bug for bug in all_mutants() if concerns(bug, changed)]
    cases = {case.id for bug in bugs for case in cases_of(bug)}
    return [
        *(f"tests/gauntlet/test_cases.py::test_case_passes[{id}]" for id in sorted(cases)),
        *(f"tests/gauntlet/test_cases.py::test_mutant_is_killed[{bug.name}]" for bug in bugs),
    ]


def files_of(mutant: Mutant) -> set[str]:
    """Return the files, from the root of the project, that decide whether this bug is killed at once."""
    modules = {module for seam in seams_of(mutant) for module in _modules_at(seam)}
    modules |= {each.__module__ for each in _functions(mutant.plant)}
    modules |= {case.attack.__module__ for case in cases_of(mutant)}
    return {_file_of(each) for each in modules} - {""}


def cases_of(mutant: Mutant) -> list[Case]:
    """Return the cases that share a bug; L03b has those of L03."""
    return [case for case in all_cases() if case.id[:3] == mutant.killed_by[:3]]


def seams_of(mutant: Mutant) -> set[str]:
    """Return the seams that a bug's code names, itself or by the gauntlet's functions that it calls."""
    codes = (code for each in _functions(mutant.plant) for code in _codes(each.__code__))
    return {text for code in codes for text in _texts(code.co_consts) if text in TARGETS}


def _functions(plant: Any) -> list[FunctionType]:
    """Return a function, those that its code names, those that it was made with, and theirs: the gauntlet's own."""
    found: list[FunctionType] = []
    look_at = [plant]
    while look_at:
        function = inspect.unwrap(look_at.pop())
        if isinstance(function, FunctionType) and _is_of_bugs(function.__module__) and function not in found:
            found.append(function)
            look_at += [cell.cell_contents for cell in function.__closure__ or ()]
            look_at += [function.__globals__.get(name) for code in _codes(function.__code__) for name in code.co_names]
    return found


def _texts(constants: Iterable[object]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, tuple | frozenset):
            yield from _texts(constant)


def _is_of_bugs(module: str) -> bool:
    """Whether a module is of the gauntlet, and neither its frame nor the table of seams, which serve every bug."""
    home, _, rest = module.partition(".")
    return home == tacit_gauntlet.__name__ and not rest.startswith(("frame.", "targets"))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _modules_at(seam: str) -> Iterator[str]:
    """Return the modules of a seam's places, and those that define what stands there."""
    try:
        places = places_of(seam)
    except (
        ImportError,
        InvalidParameter,
    ):  # test_targets.py says that the place is gone, and the bug fails when planted
        return
    for owner, name in places:
        yield getattr(owner, "__module__", None) or getattr(owner, "__name__", "")
        yield getattr(vars(owner)[name], "__module__", None) or ""


def _file_of(module: str) -> str:
    """Return src/tacit/noise/bits.py of tacit.noise.bits; nothing of a module that is not ours."""
    root = {"tacit": "src", tacit_gauntlet.__name__: "gauntlet/src"}.get(module.partition(".")[0])
    if root is None:
        return ""
    path = Path(root, *module.split("."))
    whole = path / "__init__.py"
    return str(whole if (PROJECT / whole).exists() else path.with_suffix(".py"))
