"""What every test shares: a home folder of its own, so that no test reads or writes the user's, and one path.

Whether the compiled kernel is ready depends on the machine, and on the moment while it is being compiled, so tests
answer in SQL unless they ask for the kernel (tests/engine/conftest.py). Fixtures that outlive a test and the examples
in the package come before any test's own settings, so both hold from the start.
"""

import os
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.changes import PROJECT, changed_files, today
from tests.core_seconds import CoreSeconds

# Machines differ in speed; a property that is true stays true on a slow one. The examples follow from the test alone,
# so that two runs of the same code agree; `make slow` looks at others every time, and at four times as many.
settings.register_profile("searching", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("tacit", settings.get_profile("searching"), derandomize=True, database=None, max_examples=25)
settings.load_profile("tacit")

_root = tempfile.mkdtemp(prefix="tacit-tests-")
_numbers = count(1)


def pytest_configure(config: pytest.Config) -> None:
    """Give this process a home and a path before anything runs."""
    config.add_cleanup(lambda: shutil.rmtree(_root, ignore_errors=True))
    config.pluginmanager.register(CoreSeconds())
    os.environ.update(TACIT_HOME=_root, TACIT_KERNEL="off")
    find_packages_beside()
    changed_files(), today()  # before there are workers, which must agree
    os.environ["GRPC_ENABLE_FORK_SUPPORT"] = (
        "0"  # its handlers end forks of a process that has talked to a Spark Connect
    )


def find_packages_beside() -> None:
    """Have the entry points of the packages beside the product found in this process if they are not installed."""
    found = Path(_root) / "packages"
    for package in ("gauntlet", "classroom"):
        project = tomllib.loads((PROJECT / package / "pyproject.toml").read_text())["project"]
        try:
            distribution(project["name"])
        except PackageNotFoundError:
            about = found / f"{project['name'].replace('-', '_')}-0.dist-info"
            about.mkdir(parents=True, exist_ok=True)
            (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 0\n")
            groups = project["entry-points"].items()
            lines = [line for group, points in groups for line in (f"[{group}]", *map(" = ".join, points.items()))]
            (about / "entry_points.txt").write_text("\n".join(lines) + "\n")
    sys.path.append(str(found))


@pytest.hookimpl(optionalhook=True, trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Have xdist see the groups: with `--dist loadgroup` it reads them at the end of a test's name.

    xdist 3.8 writes the name to where pytest had it before 9.2, so its workers say names without groups, and each
    worker would start a Spark of its own.
    """
    if not getattr(config.option, "loadgroup", False):
        return
    for item in items:
        groups = sorted({str(mark.args[0]) for mark in item.iter_markers("xdist_group")})
        if groups and not item.nodeid.endswith(f"@{'_'.join(groups)}"):
            item._id = item.parent.id.child(f"{item.name}@{'_'.join(groups)}")


@pytest.fixture(autouse=True)
def tacit_home(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A TACIT_HOME of this test's own, which the first that needs it makes: most tests need none."""
    home = Path(_root) / f"home-{next(_numbers)}"
    monkeypatch.setenv("TACIT_HOME", str(home))
    monkeypatch.setenv("TACIT_KERNEL", "off")
    return home


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a PostgreSQL server; skips on a laptop without one, and fails in CI."""
    from tacit_gauntlet.stage.postgres_server import server, server_programs

    programs = server_programs()
    if programs is None:
        message = "PostgreSQL is not installed, so what uses it was not tested (apt-get install postgresql)"
        if os.environ.get("CI") == "true":
            pytest.fail(message)
        pytest.skip(message)
    with server(programs) as address:
        yield address
