"""Engine tests run on both paths, in SQL and in the compiled kernel, and every engine runs every engine test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tacit.auditing.gauntlet.table_stage import protected
from tacit.door import Table
from tacit.engine import compiled

# engine and path -> how to hold some rows in it and protect them
ENGINES: dict[str, Callable[..., Table]] = {"duckdb, sql": protected, "duckdb, kernel": protected}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Callable[..., Table]:
    """A function from an Arrow table and a declaration to a protected table on this engine."""
    hold = ENGINES[request.param]
    if request.param.endswith("kernel"):
        request.getfixturevalue("kernel")

    def protect(rows: pa.Table, **declared: Any) -> Table:
        return hold(rows, **declared)

    return protect


@pytest.fixture
def kernel(pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled kernel, ready to use; what is compiled is kept for the next run of the tests."""
    monkeypatch.delenv("TACIT_KERNEL")
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path(pytestconfig.rootpath) / ".pytest_cache" / "kernel"))
    compiled.compile_now()
    assert compiled.load()


@pytest.fixture(params=["sql", "kernel"])
def path(request: pytest.FixtureRequest) -> str:
    """Each path in turn; a test that uses it runs its questions there."""
    if request.param == "kernel":
        request.getfixturevalue("kernel")
    return str(request.param)
