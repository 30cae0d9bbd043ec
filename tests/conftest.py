"""What every test shares: a home folder of its own, so that no test reads or writes the user's, and one path.

Whether the compiled kernel is ready depends on the machine, and on the moment while it is being compiled, so tests
answer in SQL unless they ask for the kernel (tests/engine/conftest.py). Fixtures that outlive a test and the examples
in the package come before any test's own settings, so both hold from the start.
"""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Machines differ in speed; a property that is true stays true on a slow one. The examples follow from the test alone,
# so that two runs of the same code agree; `make slow` looks at others every time.
settings.register_profile("searching", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("tacit", settings.get_profile("searching"), derandomize=True, database=None)
settings.load_profile("tacit")


def pytest_configure(config: pytest.Config) -> None:
    """Give this process a home and a path before anything runs."""
    home = tempfile.mkdtemp(prefix="tacit-tests-")
    config.add_cleanup(lambda: shutil.rmtree(home, ignore_errors=True))
    os.environ.update(TACIT_HOME=home, TACIT_KERNEL="off")


@pytest.fixture(autouse=True)
def tacit_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh TACIT_HOME for this test."""
    home = tmp_path / "tacit-home"
    monkeypatch.setenv("TACIT_HOME", str(home))
    monkeypatch.setenv("TACIT_KERNEL", "off")
    return home
