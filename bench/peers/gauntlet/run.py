"""Run the gauntlet's comparable cases on Tacit and its peers, each in its own environment: `make side-by-side`.

Writes docs/side-by-side.md and, with all that was seen, docs/side-by-side.json.
"""

import json
import math
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parents[2]
sys.path[:0] = [str(HERE), str(HERE.parent), str(PROJECT / "src"), str(PROJECT / "gauntlet" / "src")]

from environments import NotInstalled, environment  # noqa: E402
from judge import JUDGES, audit  # noqa: E402
from page import page_of  # noqa: E402

from tacit_gauntlet.frame.record import this_machine  # noqa: E402

LIBRARIES = ("tacit", "opendp", "diffprivlib", "python-dp")
SECONDS_MAX = 300
MISSING = "not run"


def main():
    """Run everything and write the page and the JSON; 1 where a library could not be run."""
    found, versions = {}, {}
    for library in LIBRARIES:
        try:
            python = sys.executable if library == "tacit" else environment(library).python
        except NotInstalled as error:
            print(f"{library}: not installed: {error}", file=sys.stderr)
            continue
        for case in (*JUDGES, "audit"):
            entry = one(library, python, case)
            versions[library] = entry.pop("version", versions.get(library))
            found.setdefault(case, {})[library] = entry
            print(f"{library:12} {case:6} {entry['verdict']:15} {entry['figure']}", flush=True)
    record = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": this_machine(),
        "versions": versions,
        "cases": found,
    }
    docs = PROJECT / "docs"
    text = json.dumps(plain(record), indent=1, ensure_ascii=False, allow_nan=False)
    (docs / "side-by-side.json").write_text(text + "\n", encoding="utf-8")
    (docs / "side-by-side.md").write_text(page_of(record), encoding="utf-8")
    return int(any(entry["verdict"] == MISSING for row in found.values() for entry in row.values()))


def one(library, python, case):
    """Return what one case saw of one library, and the verdict on it."""
    with tempfile.TemporaryDirectory() as folder:
        words = [python, str(HERE / "probe.py"), library, case, folder]
        try:
            ran = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS_MAX, check=False)
            told = json.loads(ran.stdout.splitlines()[-1])
        except (subprocess.TimeoutExpired, ValueError, IndexError) as error:
            return {"verdict": MISSING, "figure": type(error).__name__, "seen": {}}
        seen = told["seen"]
        verdict, figure = audit(seen, folder) if case == "audit" else JUDGES[case](seen)
    return {"verdict": verdict, "figure": figure, "seen": seen, "version": told["version"]}


def plain(value):
    """Return a value with NaN and the infinities as text, which JSON has no numbers for."""
    if isinstance(value, dict):
        return {name: plain(held) for name, held in value.items()}
    if isinstance(value, list):
        return [plain(held) for held in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


if __name__ == "__main__":
    sys.exit(main())
