"""docs/benchmarks/bounds.md, made from what `make bench ONLY=bounds` measured last: `python bench/learned/page.py`."""

import json
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(PROJECT))

RESULTS = PROJECT / "bench" / "results" / "latest.json"
PAGE = PROJECT / "docs" / "benchmarks" / "bounds.md"
INTRO = """\
# Learned bounds beside the best that could be set by hand

`make bench ONLY=bounds` asks each question of a table that nobody has asked before, with nothing declared but the
unit: ε = 1 and δ = 1e-6 pay for what is learned and for the answer. Errors are mean absolute errors by group against
the whole table, over 12 runs (72 of one number, 24 where each row is a person). The baseline is an oracle that picks
the best of a grid of hand-set bounds with the true error in view, and pays for no learning; no analyst can do that.
`5 × 2` is a guess: at most 5 groups of a person, 2 rows in each. The first constants of the planner were chosen without
the *foreign* tables (flights, patients, ratings, seasons), and have been changed since with them in view
([decisions](../decisions.md)). Intervals are about the table in which nobody counts for more than the tail cap.

The web shop and the census extract are read from a folder that `TACIT_BENCH_DATA` names (online_retail.parquet and
adult.parquet, from the UCI Machine Learning Repository); without it their lines say so and the others go on. All other
tables are made by a rule, or come with a package that `make bench` installs.
"""


def main() -> int:
    """Write the page; 1 where nothing was measured."""
    if not RESULTS.exists():
        print("nothing is measured yet: make bench ONLY=bounds", file=sys.stderr)
        return 1
    results = json.loads(RESULTS.read_text())
    records = [each for each in results["results"] if each["subject"] == "bounds"]
    when = datetime.fromtimestamp(RESULTS.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M UTC")
    PAGE.write_text(page(records, f"{when}, Python {platform.python_version()}, {machine()}"))
    return 0


def page(records: list[dict[str, Any]], measured: str) -> str:
    """Return the page's text."""
    head = ["| line | measured | baseline | ratio | promised | met |", "|---|---|---|---|---|---|"]
    missed = [each["name"] for each in records if not each["met"]]
    told = f"Missed: {'; '.join(missed)}." if missed else "No promise is missed."
    return "\n".join([INTRO, f"Measured {measured}.\n", *head, *map(row, records), "", told, ""])


def row(record: dict[str, Any]) -> str:
    """Return one line of the table."""
    met = {True: "yes", False: "**no**"}[record["met"]]
    if "why" in record:
        return f"| {record['name']} | not measured: {record['why']} | | | | |"
    if "baseline" in record:
        promised = f"≤ {record['limit']:g} ×" if "limit" in record else ""
        numbers = f"{plain(record['ours'])} | {plain(record['baseline'])} | {record['value']:.2f} | {promised}"
        return f"| {record['name']} | {numbers} | {met if promised else ''} |"
    ends = [f"≤ {plain(record['most'])}"] if "most" in record else []
    ends += [f"≥ {plain(record['least'])}"] if record.get("least") else []
    return f"| {record['name']} | {plain(record['value'])} | | | {', '.join(ends)} | {met if ends else ''} |"


def plain(value: float) -> str:
    """Return a number with about three digits."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def machine() -> str:
    """Return what it was measured on."""
    from bench.peers.run import machine as found

    facts = found()
    return f"{facts['cores']} cores ({facts['processor']}), {facts['memory']}"


if __name__ == "__main__":
    sys.exit(main())
