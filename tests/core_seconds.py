"""What the tests cost in processor seconds, printed at the end of a run: the ten dearest, and each folder.

Wall time says little on a busy machine. A test's time is that of its process and of every process it started, ended
or not; what no test used (imports, collecting) is a line of its own. No test asserts on any of it.
"""

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

DEAREST = 10
_TICK = os.sysconf("SC_CLK_TCK")


class CoreSeconds:
    """Measures in every process that runs tests; sums and prints in the one that reports."""

    def __init__(self) -> None:
        self.last = used()
        self.tests: Counter[str] = Counter()
        self.whole = 0.0

    def pytest_collection_finish(self) -> None:
        """Begin to measure tests: what was imported for them is no test's."""
        self.last = used()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Any:
        """Give the report of each phase of a test what was used since the phase before."""
        report = yield
        now = used()
        report.user_properties.append(("core_seconds", now - self.last))
        self.last = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a phase to its test; xdist's reports come here too."""
        self.tests[report.nodeid] += sum(value for name, value in report.user_properties if name == "core_seconds")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell the process that reports what this one has used, or keep it where this is that process.

        A process whose workers tell theirs keeps only its own: theirs would count twice.
        """
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["core_seconds"] = used()
        else:
            self.whole += sum(os.times()[:2]) if session.config.getoption("numprocesses", None) else used()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add what a worker of xdist used; one that crashed says nothing."""
        self.whole += getattr(node, "workeroutput", {}).get("core_seconds", 0.0)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the dearest tests and the folders, above pytest's own last line."""
        if self.tests:
            terminalreporter.section("processor seconds")
            for line in lines(self.tests, self.whole):
                terminalreporter.line(line)


def lines(tests: Counter[str], whole: float) -> list[str]:
    """Return the dearest tests, then each folder, then what no test used and the whole."""
    folders: Counter[str] = Counter()
    numbers: Counter[str] = Counter()
    for name, seconds in tests.items():
        folders[folder_of(name)] += seconds
        numbers[folder_of(name)] += 1
    return [
        *(f"{seconds:8.1f}  {name}" for name, seconds in tests.most_common(DEAREST)),
        "",
        *(f"{seconds:8.1f}  {folder} ({numbers[folder]} tests)" for folder, seconds in folders.most_common()),
        f"{max(0.0, whole - tests.total()):8.1f}  imports, collecting and the rest",
        f"{max(whole, tests.total()):8.1f}  the whole",
    ]


def folder_of(nodeid: str) -> str:
    """Return tests/noise of tests/noise/test_bits.py::test_x, and src of a module's examples."""
    parts = Path(nodeid.partition("::")[0]).parts
    return "/".join(parts[:2]) if parts[0] == "tests" else parts[0]


def used() -> float:
    """Return the processor seconds of this process, of its children that ended, and of those that run."""
    return sum(os.times()[:4]) + sum(_of_descendants())


def _of_descendants() -> list[float]:
    """Return what each living process below this one has used, as Linux lists them; elsewhere nothing."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:  # the usual case, and reading every process costs some milliseconds
        return []
    parents, seconds = {}, {}
    for name in filter(str.isdigit, os.listdir("/proc") if os.path.isdir("/proc") else []):
        with suppress(OSError):
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            parents[int(name)], seconds[int(name)] = int(fields[1]), sum(map(int, fields[11:15])) / _TICK
    below = {os.getpid()}
    while found := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= found
    return [seconds[pid] for pid in below - {os.getpid()}]
