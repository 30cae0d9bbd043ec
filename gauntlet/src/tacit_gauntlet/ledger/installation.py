"""An installation that lacks a package is found before the charge: a question that then fails has spent its epsilon."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from typing import Any

from tacit.errors import TacitError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.ledger import forget_installation
from tacit_gauntlet.stage.models import charged, people_table

# Packages, and parts of one, that some question loads only after its charge; without numba, SQL answers.
DONE_WITHOUT = ("numba", "llvmlite")
LOADED_LATE = (*DONE_WITHOUT, "pyarrow.dataset", "pyarrow._dataset", "duckdb", "rich")
QUESTIONS: dict[str, Any] = {
    "a count": lambda table: table.count().answer(epsilon=1),
    "a mean by group": lambda table: table.group_by("ward").mean("age").answer(epsilon=1),
    "a learned fact": lambda table: table.learn(epsilon=1),
}


@case("L41", title="an installation that lacks a package charges no budget", feature="ledger")
def incomplete(size: Size) -> Evidence:
    charged_for: list[str] = []
    whole = people_table()
    QUESTIONS["a count"](whole)  # the compiled loops are loaded by now, if this machine has them
    asked = QUESTIONS if size == "full" else {"a count": QUESTIONS["a count"]}
    for name in LOADED_LATE:
        for what, ask in asked.items():
            table = people_table()
            with hidden(name):
                try:
                    ask(table)
                    if name not in DONE_WITHOUT or not charged(table):
                        charged_for.append(f"{what} without {name} is answered")
                except TacitError as problem:
                    if charged(table) or name not in str(problem) or name in DONE_WITHOUT:
                        charged_for.append(f"{what} without {name} is charged, and then: {type(problem).__name__}")
    details = {"packages": len(LOADED_LATE), "charged": charged_for[:5]}
    return Evidence(not charged_for and len(charged(whole)) > 0, details)


class _Hidden(MetaPathFinder):
    """Finds no module of one name, nor any inside of it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:  # noqa: ARG002
        if fullname == self.name or fullname.startswith(f"{self.name}."):
            raise ModuleNotFoundError(fullname)


@contextmanager
def hidden(name: str) -> Iterator[None]:
    """Hide a package from all that is imported inside."""
    inside = [each for each in sys.modules if each == name or each.startswith(f"{name}.")]
    before = {each: sys.modules.pop(each) for each in inside}
    finder = _Hidden(name)
    sys.meta_path.insert(0, finder)
    forget_installation()
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        sys.modules.update(before)
        forget_installation()
