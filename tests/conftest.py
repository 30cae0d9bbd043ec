"""What every test shares: a home folder of its own, so that no test reads or writes the user's, and one path.

Whether the compiled kernel is ready depends on the machine, so tests answer in SQL unless they ask for the kernel
(tests/engine/conftest.py).
"""

from pathlib import Path

import pytest
from hypothesis import settings

# Machines differ in speed; a property that is true stays true on a slow one.
settings.register_profile("tacit", deadline=None, print_blob=True)
settings.load_profile("tacit")


@pytest.fixture(autouse=True)
def tacit_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh TACIT_HOME for this test."""
    home = tmp_path / "tacit-home"
    monkeypatch.setenv("TACIT_HOME", str(home))
    monkeypatch.setenv("TACIT_KERNEL", "off")
    return home
