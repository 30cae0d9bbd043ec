"""Ask a library in a process of its own: what it printed as JSON, the memory it took at most, or how it failed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
POLL_SECONDS = 0.2
TIMEOUT = 300.0
# ours and the baselines run in the environment that runs the bench
HERE_TOO = ("tacit", "numpy", "duckdb", "scikit-learn")


@dataclass(frozen=True)
class Said:
    """What a process printed, or the class of what it failed with; mebibytes at the peak, children included."""

    facts: dict[str, Any] | None
    failed: str
    mebibytes: float


def ask(python: str, script: str, *arguments: str, timeout: float = TIMEOUT, folder: Path | None = None) -> Said:
    """Run a script of this folder and return what it said; it is ended, with its children, when its time is over."""
    environment = {**os.environ, "PYSPARK_PYTHON": python, "PYTHONWARNINGS": "ignore"}
    if python != our_python():
        environment.pop("PYTHONPATH", None)  # a peer sees its own packages alone
    if folder is not None:
        environment["TACIT_HOME"] = str(folder / "home")
    started = subprocess.Popen(
        [python, str(HERE / script), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        cwd=folder,
        start_new_session=True,
    )
    peak, done = [0.0], threading.Event()
    watcher = threading.Thread(target=watch, args=(started.pid, peak, done))
    watcher.start()
    try:
        out, err = started.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate()
        return Said(None, f"more than {timeout:.0f} s", peak[0])
    except BaseException:  # the run itself is being ended
        os.killpg(started.pid, signal.SIGKILL)
        raise
    finally:
        done.set()
        watcher.join()
    if started.returncode:
        return Said(None, reason(err, started.returncode), peak[0])
    lines = out.splitlines()
    return Said(json.loads(lines[-1]) if lines and lines[-1].startswith(("{", "[")) else {}, "", peak[0])


def reason(err: str, code: int) -> str:
    """Return the class of the error in a traceback, or how the process ended."""
    for line in reversed(err.splitlines()):
        head = line.split(":")[0].strip()
        if head and " " not in head and (head.endswith(("Error", "Exception")) or "." in head):
            return head.split(".")[-1]
    return "killed" if code < 0 else f"exit code {code}"


def watch(session: int, peak: list[float], done: threading.Event) -> None:
    """Keep the largest sum of the peaks of a session's live processes."""
    while not done.wait(POLL_SECONDS):
        peak[0] = max(peak[0], sum(process_peak(pid) for pid in processes_of(session)))


def processes_of(session: int) -> list[int]:
    """Return the live processes of a session."""
    found = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if entry.isdigit():
            try:
                if os.getsid(int(entry)) == session:
                    found.append(int(entry))
            except OSError:
                continue
    return found


def process_peak(pid: int) -> float:
    """Return the most memory that a process had, in mebibytes; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/status") as status:
            for line in status:
                if line.startswith("VmHWM"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def start_seconds(python: str, code: str, repeats: int = 5) -> float:
    """Return the shortest time that a fresh Python takes for a line of code."""
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        subprocess.run([python, "-c", code], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def our_python() -> str:
    """Return the Python that runs the bench."""
    return sys.executable
