"""The record of a run: what ran where and when, every finding, what waits, and the verdict on the whole.

A record is plain values, so that it can be kept as JSON; `page.py` makes it readable.
"""

import inspect
import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tacit import __version__
from tacit_gauntlet.frame.case import Case, Size
from tacit_gauntlet.frame.course import Finding
from tacit_gauntlet.frame.mutant import Mutant
from tacit_gauntlet.frame.waiting import Awaited

LETTERS = {
    "N": "noise",
    "S": "sensitivity",
    "Q": "questions",
    "L": "ledger",
    "T": "local model",
    "F": "files",
    "W": "server",
    "M": "learning",
}


def this_machine() -> str:
    """Return what the run was made on: processor, cores, system and Python."""
    return f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


@dataclass(frozen=True)
class Setting:
    """Where and how a run was made."""

    size: Size
    engine: str
    workers: int
    version: str = __version__
    date: str = field(default_factory=lambda: datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))
    machine: str = field(default_factory=this_machine)

    def __str__(self) -> str:
        return (
            f"tacit {self.version}, {self.date}, engine {self.engine}, {self.size} size, "
            f"{self.workers} at a time\n{self.machine}"
        )


@dataclass(frozen=True)
class Record:
    """A whole run: its setting, findings, seconds, and the cases that wait for something."""

    setting: Setting
    findings: tuple[Finding, ...]
    waits: tuple[Awaited, ...]
    seconds: float
    cases: tuple[Case, ...]
    mutants: tuple[Mutant, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing failed and nothing that could have run was left out."""
        return all(finding.passed for finding in self.findings) and not self.missing

    @property
    def missing(self) -> tuple[Awaited, ...]:
        """The cases whose feature is there and that are not: a skip, which counts as a failure."""
        return tuple(each for each in self.waits if each.is_due)

    def summary(self) -> list[tuple[str, int, int, int, float]]:
        """Return a row for each letter: its name, how many passed, failed and wait, and their seconds together."""
        rows = []
        by_name = {bug.name: bug.killed_by for bug in self.mutants}
        for letter, name in LETTERS.items():
            own = [f for f in self.findings if by_name.get(f.job.name, f.job.name).startswith(letter)]
            waits = [each for each in self.waits if each.id.startswith(letter)]
            missing = [each for each in self.missing if each.id.startswith(letter)]
            if own or waits:
                passed = sum(finding.passed for finding in own)
                failed = len(own) - passed + len(missing)
                seconds = sum(finding.seconds for finding in own)
                rows.append((f"{letter} {name}", passed, failed, len(waits) - len(missing), seconds))
        return rows

    def to_json(self) -> str:
        """Return the record as JSON."""
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=False, default=str) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values."""
        titles = {each.id: each for each in self.cases}
        bugs = {each.name: each for each in self.mutants}
        return {
            "tacit": self.setting.version,
            "date": self.setting.date,
            "machine": self.setting.machine,
            "engine": self.setting.engine,
            "size": self.setting.size,
            "workers": self.setting.workers,
            "seconds": round(self.seconds, 1),
            "passed": self.passed,
            "cases": [
                case_as_dict(finding, titles[finding.job.name], self.mutants)
                for finding in self.findings
                if finding.job.kind == "case"
            ],
            "mutants": [
                mutant_as_dict(finding, bugs[finding.job.name])
                for finding in self.findings
                if finding.job.kind == "mutant"
            ],
            "waits": [{"id": each.id, "title": each.title, "for": each.needs} for each in self.waits],
        }


def case_as_dict(finding: Finding, chosen: Case, mutants: Sequence[Mutant]) -> dict[str, Any]:
    """Return a case's finding as plain values, with the bugs that show it can fail."""
    return {
        "id": chosen.id,
        "title": chosen.title,
        "tries": inspect.getdoc(chosen.attack) or "",
        "feature": chosen.feature,
        "passed": finding.passed,
        "seconds": round(finding.seconds, 2),
        "late": finding.is_late,
        "figures": dict(finding.figures),
        "how": finding.how,
        "would catch": [{"bug": bug.name, "published": bug.published} for bug in killers(chosen.id, mutants)],
    }


def mutant_as_dict(finding: Finding, bug: Mutant) -> dict[str, Any]:
    """Return a planted bug's finding as plain values."""
    return {
        "bug": bug.name,
        "published": bug.published,
        "case": bug.killed_by,
        "killed": finding.passed,
        "seconds": round(finding.seconds, 2),
        "how": finding.how,
    }


def killers(id: str, mutants: Iterable[Mutant]) -> list[Mutant]:
    """Return the bugs that a case must kill; the parts of a case (L03b) share those of the first (L03)."""
    return [bug for bug in mutants if bug.killed_by in (id, id[:3])]
