"""Measure every library side by side, then write the page: `python bench/peers/run.py [SUBJECT...]`.

Each figure is kept in docs/benchmarks/results.json as it comes, in place of the one before, so subjects can be run
apart and a run that is cut short loses nothing. `--page` writes the page from what is kept.
"""

import json
import os
import platform
import signal
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(PROJECT))

IDENTITY = ("case", "library", "quantity", "note")
RESULTS = PROJECT / "docs" / "benchmarks" / "results.json"


def main(wanted: list[str]) -> int:
    """Measure the wanted subjects, all where none is named, write the page, and return the exit code."""
    from bench.peers import page
    from bench.peers.subjects import SUBJECTS

    only_page = wanted == ["--page"]
    unknown = set() if only_page else {each.split(":")[0] for each in wanted} - set(SUBJECTS)
    if unknown:
        print(f"no subject named {', '.join(sorted(unknown))}; there are: {', '.join(SUBJECTS)}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what runs for us ends too
    results = kept()
    for subject in () if only_page else wanted or SUBJECTS:
        measure(subject, results)
    page.write(results, RESULTS.parent)
    page.write_charts(results, RESULTS.parent)
    missed = page.print_targets(results)
    print(f"{missed} missed: docs/benchmarks.md says why" if missed else "no target that was measured is missed")
    return 0


def measure(subject: str, results: dict[str, Any]) -> None:
    """Run one subject, perhaps of some libraries alone (`groupby7:tacit+opendp`), and keep each record as it comes."""
    from bench.peers import page
    from bench.peers.subjects import SUBJECTS

    start, load = time.perf_counter(), os.getloadavg()[0]
    subject, _, libraries = subject.partition(":")
    only = libraries.split("+") if libraries else []
    old = [record for record in results["records"] if record["subject"] == subject]
    if not only:
        results["records"] = [record for record in results["records"] if record not in old]
    for record in SUBJECTS[subject](only) if only else SUBJECTS[subject]():
        place = (record.case, record.library, record.quantity, record.note)
        same = [each for each in old if tuple(each[name] for name in IDENTITY) == place]
        results["records"] = [each for each in results["records"] if each not in same] + [asdict(record)]
        shown = f"{record.value:.4g}" if record.value is not None else record.failed
        print(f"{subject}: {record.case}: {record.library}: {record.quantity} {shown} {record.note}", flush=True)
        results["subjects"][subject] = {
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "seconds": round(time.perf_counter() - start),
            "load before": round(load, 1),
            "machine": machine(),
        }
        results["versions"] = versions()
        write(results)
        page.write(results, RESULTS.parent)
    page.write_charts(results, RESULTS.parent)


def kept() -> dict[str, Any]:
    """Return what was measured so far."""
    if RESULTS.exists():
        found: dict[str, Any] = json.loads(RESULTS.read_text())
        return found
    return {"subjects": {}, "machine": {}, "versions": {}, "records": []}


def write(results: dict[str, Any]) -> None:
    """Keep the results, whole or as they were."""
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    beside = RESULTS.with_suffix(".new")
    beside.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n")
    beside.replace(RESULTS)


def machine() -> dict[str, Any]:
    """Return what the figures depend on."""
    cpu = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    gibibytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": cpu,
        "cores": os.cpu_count(),
        "memory": f"{gibibytes:.0f} GiB",
        "system": platform.system(),
        "python": platform.python_version(),
    }


def versions() -> dict[str, str]:
    """Return the versions that are pinned for the peers, and those of ours and the baselines."""
    from importlib.metadata import version

    from bench.peers import environments

    texts = {name: (environments.HERE / "requirements" / f"{name}.txt").read_text() for name in environments.NAMES}
    found = {name: environments.version(name, text) for name, text in texts.items()}
    return {**{name: version(name) for name in ("tacit", "duckdb", "numpy")}, **found}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
