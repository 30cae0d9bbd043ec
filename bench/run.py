"""Run the benches: `python bench/run.py` for all subjects, or name some; exits 1 where a promise is not kept.

One table is printed, and bench/results/latest.json has the same as data, with the machine's load at the time.

A subject is a module in this folder with a function `results()` that yields what bench/measure.py describes.
"""

import importlib
import json
import os
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

NOT_SUBJECTS = {"run", "measure", "orders", "engines_spark", "synthetic_aim", "population_page", "__init__"}
# These take many minutes: they run where they are named.
ONLY_NAMED = {
    "answers",
    "clusters",
    "engines_large",
    "learning",
    "learning_large",
    "learning_linear",
    "learning_terms",
    "population",
    "server_clock",
    "synthetic",
}
RESULTS = FOLDER / "results" / "latest.json"


def subjects() -> list[str]:
    """Return the names of all subjects."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in NOT_SUBJECTS)


def main(wanted: list[str]) -> int:
    """Run the wanted subjects, print a line for each result, and return the exit code."""
    unknown = set(wanted) - set(subjects())
    if unknown:
        print(f"no bench named {', '.join(sorted(unknown))}; there are: {', '.join(subjects())}", file=sys.stderr)
        return 2
    load = os.getloadavg()[0]
    print(f"Python {platform.python_version()} on {os.cpu_count()} cores, {platform.machine()}, load {load:.1f}")
    print(f"{'':46} {'ours':>11} {'baseline':>11} {'ratio':>7} {'limit':>8}")
    missed, absent, records = 0, 0, []
    for subject in wanted or sorted(set(subjects()) - ONLY_NAMED):
        for result in importlib.import_module(f"bench.{subject}").results():
            print(line(subject, result), flush=True)
            missed += not result.met
            absent += hasattr(result, "why")
            records.append(record(subject, result))
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"python": platform.python_version(), "results": records}, indent=1))
    if absent:
        print(f"{absent} lines were not measured; each says why")
    print(f"{missed} over their limit" if missed else "every limit that was measured is met")
    return int(bool(missed))


def line(subject: str, result: object) -> str:
    """Return one result as a line of the table."""
    from bench.measure import Absent, Error, Figure, Ratio, Seconds

    verdict = "" if getattr(result, "met", True) else "  OVER"
    if isinstance(result, Ratio):
        limit = "" if result.limit is None else f"{result.limit:g}×"
        times = f"{seconds(result.ours):>11} {seconds(result.baseline):>11} {result.value:>6.2f}×"
        wall = "" if result.wall is None else f"  of processors; by the wall {result.wall:.2f}×"
        return f"{subject + ': ' + result.name:46} {times} {limit:>8}{verdict}{wall}"
    if isinstance(result, Error):
        limit = "" if result.limit is None else f"{result.limit:g}×"
        errors = f"{result.ours:>11.4g} {result.baseline:>11.4g} {result.value:>6.2f}×"
        return f"{subject + ': ' + result.name:46} {errors} {limit:>8}{verdict}"
    if isinstance(result, Absent):
        return f"{subject + ': ' + result.name:46} not measured: {result.why}"
    if isinstance(result, Seconds):
        limit = "" if result.limit is None else seconds(result.limit)
        return f"{subject + ': ' + result.name:46} {seconds(result.ours):>11} {'':>11} {'':>7} {limit:>8}{verdict}"
    if isinstance(result, Figure):
        least = f"≥ {result.least:.3g}" if result.least and result.least > float("-inf") else ""
        limit = f"{result.most:.3g}" if result.most < float("inf") else least
        return f"{subject + ': ' + result.name:46} {result.value:>11.4g} {'':>11} {'':>7} {limit:>8}{verdict}"
    raise TypeError(f"bench {subject} yielded a {type(result).__name__}; yield Ratio, Seconds, Figure, Error or Absent")


def record(subject: str, result: Any) -> dict[str, Any]:
    """Return one result as data; what has no limit has none here."""
    facts = {name: value for name, value in asdict(result).items() if value not in (None, float("inf"), float("-inf"))}
    ratio = {"value": result.value} if hasattr(result, "value") else {}
    return {"subject": subject, **facts, **ratio, "met": result.met, "load": os.getloadavg()[0]}


def seconds(value: float) -> str:
    """Return a time in the unit that fits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
