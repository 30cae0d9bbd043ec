"""One case or one planted bug in a process of its own: run by `course.py`, it writes what it found to a file.

Whatever a case prints goes to the error stream, which is kept for the report of a crash.
"""

import importlib
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import tacit_gauntlet as gauntlet
from tacit_gauntlet.frame import case, mutant
from tacit_gauntlet.frame.case import Size


def main(words: Sequence[str]) -> None:
    """Run what the words name (result file, kind, name, size, modules) and write the finding as JSON."""
    result, kind, name, size, *modules = words
    os.dup2(2, 1)
    for module in modules:
        importlib.import_module(module)
    if not is_registered(kind, name):
        gauntlet.load()
    found = run_case(name, cast(Size, size)) if kind == "case" else run_mutant(name, cast(Size, size))
    Path(result).write_text(json.dumps(found, default=str), encoding="utf-8")


def is_registered(kind: str, name: str) -> bool:
    """Return whether the modules loaded so far hold what is asked for."""
    if kind == "case":
        return any(each.id == name for each in case.all_cases())
    return any(each.name == name for each in mutant.all_mutants())


def run_case(id: str, size: Size) -> dict[str, Any]:
    """Return what became of a case; an error it raised is a failure, told by its class and words."""
    try:
        report = case.run(id, size)
    except Exception as error:
        return {"passed": False, "figures": {}, "how": f"raised {type(error).__name__}: {error}"}
    return {"passed": report.passed, "figures": dict(report.evidence.details), "how": ""}


def run_mutant(name: str, size: Size) -> dict[str, Any]:
    """Return whether a planted bug was killed; one that does not fit the code is an error, not a kill."""
    try:
        verdict = mutant.run_mutant(name, size)
    except Exception as error:
        return {"passed": False, "figures": {}, "how": f"could not be planted: {type(error).__name__}: {error}"}
    return {"passed": verdict.killed, "figures": {}, "how": verdict.how}


if __name__ == "__main__":
    main(sys.argv[1:])
