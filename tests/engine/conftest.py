"""Engine tests run on both paths, in SQL and in the compiled kernel, and every engine runs every engine test."""

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tacit.door import Table
from tacit.engine.engine import log
from tacit.engine.kernel import compiled
from tacit_gauntlet.stage.table import Ear, protected

CACHE = Path(__file__).parents[2] / ".pytest_cache" / "kernel"

# Tests import the loops by name, which would have numba look for their machine code elsewhere: load them first.
with pytest.MonkeyPatch.context() as _patched:
    _patched.delenv("TACIT_KERNEL", raising=False)
    _patched.setenv("XDG_CACHE_HOME", str(CACHE))
    compiled.compile_now()
    compiled.load()

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
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled kernel, ready to use; what is compiled is kept for the next run of the tests."""
    monkeypatch.delenv("TACIT_KERNEL")
    monkeypatch.setenv("XDG_CACHE_HOME", str(CACHE))
    assert compiled.load()


def _heard_by(logger: logging.Logger) -> Iterator[list[str]]:
    ear = Ear()
    logger.addHandler(ear)
    yield ear.heard
    logger.removeHandler(ear)


@pytest.fixture
def curators_log() -> Iterator[list[str]]:
    """What handlers hear that were put on the curator's own logger."""
    yield from _heard_by(log)


@pytest.fixture
def everyones_log() -> Iterator[list[str]]:
    """What handlers hear that were put on the root of all loggers."""
    yield from _heard_by(logging.getLogger())


@pytest.fixture(params=["sql", "kernel"])
def path(request: pytest.FixtureRequest) -> str:
    """Each path in turn; a test that uses it runs its questions there."""
    if request.param == "kernel":
        request.getfixturevalue("kernel")
    return str(request.param)
