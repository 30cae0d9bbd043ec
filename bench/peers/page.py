"""docs/benchmarks.md and its pictures, made from the results alone: no peer is needed to write the page again."""

from pathlib import Path
from typing import Any

from bench.peers import sections
from bench.peers.figures import Figures
from bench.peers.learning import page as learning
from bench.peers.quoted import quote
from bench.peers.targets import Target, targets

INTRO = """\
# Tacit beside its peers

`make bench-peers` puts every library into an environment of its own, asks all of them the same questions on this
page, one at a time, and writes the page anew; `make bench-peers ONLY="noise start"` measures some subjects again. The
raw figures are in [results.json](benchmarks/results.json). Machines differ, so ratios matter more than seconds; every
time is beside a baseline of the same run. Where a library promises something else, or had to be helped, it says so
beside its figure.
"""
MARKS = {True: "yes", False: "**no**", None: "–"}


def write(results: dict[str, Any], folder: Path) -> None:
    """Write the page beside the folder of its pictures, and what the README quotes from it."""
    (folder.parent / f"{folder.name}.md").write_text(page(results))
    (folder / "learning.md").write_text(learning.page(results, machine_words(results, "learning")))
    quote(Figures(tuple(results["records"])), folder.parent.parent / "README.md")


def write_charts(results: dict[str, Any], folder: Path) -> None:
    """Write the pictures into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    sections.write_charts(Figures(tuple(results["records"])), folder)


def page(results: dict[str, Any]) -> str:
    """Return the page's text."""
    figures = Figures(tuple(results["records"]))
    parts = [INTRO, measured_on(results), "## What we set out to reach\n", target_table(targets(figures))]
    parts += sections.all_sections(figures)
    return "\n".join(part.rstrip("\n") + "\n" for part in parts if part)


def measured_on(results: dict[str, Any]) -> str:
    """Return when and on what it was measured, with which versions; a subject may have had a machine of its own."""
    subjects = results["subjects"]
    if not subjects:
        return "Nothing is measured yet."
    dates = sorted(each["date"] for each in subjects.values())
    when = dates[0] if dates[0] == dates[-1] else f"{dates[0]} to {dates[-1]}"
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    measured: dict[str, list[str]] = {}
    for subject in subjects:
        measured.setdefault(machine_words(results, subject), []).append(subject)
    first, *others = sorted(measured, key=lambda words: -len(measured[words]))
    where = "".join([first, *(f"; {', '.join(measured[words])} on {words}" for words in others)])
    return f"Measured {when}, on {where}. Versions: {versions}."


def machine_words(results: dict[str, Any], subject: str) -> str:
    """Return what a subject was measured on."""
    machine = results["subjects"].get(subject, {}).get("machine", results["machine"])
    return f"{machine['cores']} cores ({machine['processor']}), {machine['memory']}, Python {machine['python']}"


def target_table(found: list[Target]) -> str:
    """Return the targets as a table; ours is the first figure of a pair."""
    rows = [f"| {each.name} | {each.wanted} | {each.measured} | {MARKS[each.met]} |" for each in found]
    return "\n".join(["| line | target | measured | met |", "|---|---|---|---|", *rows])


def print_targets(results: dict[str, Any]) -> int:
    """Print the targets, and return how many are missed."""
    found = targets(Figures(tuple(results["records"])))
    for each in found:
        verdict = {True: "ok", False: "MISSED", None: "not measured"}[each.met]
        print(f"{each.name:62} {each.wanted:52} {each.measured:40} {verdict}")
    return sum(each.met is False for each in found)
