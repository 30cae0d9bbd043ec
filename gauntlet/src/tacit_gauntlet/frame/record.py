"""What is written about a run: the findings of every job, as data and as a page that stands by itself."""

import inspect
import json
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from html import escape
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


_STYLE = """
:root { --ink: #1b1f24; --paper: #fff; --line: #d5d9de; --soft: #f4f6f8; --good: #1a7f37; --bad: #c01c28;
  --wait: #8a5a00 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e9ec; --paper: #14171a; --line: #363c43; --soft: #1d2125; --good: #57c472; --bad: #ff7b72;
          --wait: #e0a94a } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 62rem;
       margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.6rem; margin-bottom: 0 } h2 { font-size: 1.15rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .25rem .6rem .25rem 0;
       border-bottom: 1px solid var(--line); vertical-align: top } td.n, th.n { text-align: right }
.good { color: var(--good) } .bad { color: var(--bad); font-weight: 600 } .wait { color: var(--wait) }
details { border-bottom: 1px solid var(--line); padding: .35rem 0 } summary { cursor: pointer }
summary code { display: inline-block; min-width: 3rem } .time { float: right; opacity: .75 }
dl { margin: .4rem 0 .6rem 1.2rem; background: var(--soft); padding: .6rem .8rem } dt { font-weight: 600 }
dd { margin: 0 0 .4rem 1rem; overflow-wrap: anywhere; white-space: pre-wrap } .note { opacity: .8 }
"""


def page_of(record: Record) -> str:
    """Return the page: the verdict, a summary by letter, each case with its evidence, each bug with its fate."""
    found = record.to_dict()
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        f"<title>Tacit: the gauntlet</title><style>{_STYLE}</style></head><body>",
        f"<h1>The gauntlet: {_verdict(ok=record.passed)}</h1>",
        f'<p class="note">{escape(str(record.setting)).replace(chr(10), "<br>")}<br>{record.seconds:.0f} s in all</p>',
        "<p>Each case is a published way in which software of this kind has leaked or lost, tried on this one. "
        "Each bug is one that was published, planted here on purpose, which its case must notice.</p>",
        _summary(record),
    ]
    if found["cases"]:
        parts += ["<h2>Cases</h2>", *(_case(each) for each in found["cases"])]
    if found["mutants"]:
        parts += ["<h2>Planted bugs</h2>", *(_mutant(each) for each in found["mutants"])]
    if record.waits:
        parts += ["<h2>What waits</h2>", _waits(record)]
    return "\n".join([*parts, "</body></html>", ""])


def _verdict(*, ok: bool) -> str:
    return '<span class="good">survived</span>' if ok else '<span class="bad">failed</span>'


def _summary(record: Record) -> str:
    rows = "".join(
        f'<tr><td>{escape(name)}</td><td class="n">{passed}</td><td class="n{" bad" if failed else ""}">{failed}</td>'
        f'<td class="n">{waits}</td><td class="n">{seconds:.0f}</td></tr>'
        for name, passed, failed, waits, seconds in record.summary()
    )
    heads = "".join(f'<th class="n">{name}</th>' for name in ("passed", "failed", "wait", "seconds"))
    return f"<table><tr><th></th>{heads}</tr>{rows}</table>"


def _case(each: dict[str, Any]) -> str:
    sign = '<span class="good">pass</span>' if each["passed"] else '<span class="bad">FAIL</span>'
    late = ", late" if each["late"] else ""
    terms = [("what is tried", each["tries"])] if each["tries"] else []
    terms += [(name, str(value)) for name, value in each["figures"].items()]
    if each["how"]:
        terms.append(("how it ended", each["how"]))
    caught = "\n".join(f"{bug['bug']} ({bug['published']})" for bug in each["would catch"])
    terms.append(("would have caught", caught or "no bug is planted for it"))
    head = f"<code>{each['id']}</code> {sign} {escape(each['title'])}"
    return _folded(head, f"{each['seconds']:.1f} s{late}", terms, is_open=not each["passed"])


def _mutant(each: dict[str, Any]) -> str:
    fate = f"killed by {each['case']}" if each["killed"] else f"SURVIVED {each['case']}"
    sign = f'<span class="{"good" if each["killed"] else "bad"}">{fate}</span>'
    terms = [("published", each["published"]), ("how", each["how"])]
    return _folded(f"{escape(each['bug'])}: {sign}", f"{each['seconds']:.1f} s", terms, is_open=not each["killed"])


def _folded(head: str, time: str, terms: list[tuple[str, str]], *, is_open: bool) -> str:
    body = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in terms)
    summary = f'<summary>{head}<span class="time">{time}</span></summary>'
    return f"<details{' open' if is_open else ''}>{summary}<dl>{body}</dl></details>"


def _waits(record: Record) -> str:
    rows = []
    for each in record.waits:
        state = '<span class="bad">missing</span>' if each.is_due else f'<span class="wait">{escape(each.needs)}</span>'
        rows.append(f"<tr><td><code>{each.id}</code></td><td>{escape(each.title)}</td><td>waits for: {state}</td></tr>")
    return f"<table>{''.join(rows)}</table>"
