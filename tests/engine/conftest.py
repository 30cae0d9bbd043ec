"""Engine tests run on both paths, in SQL and in the compiled kernel, and every engine runs every engine test."""

import logging
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tacit.asking import Table
from tacit.engine.engine import log
from tacit.engine.kernel import compiled
from tacit_gauntlet.stage.postgres_rows import held
from tacit_gauntlet.stage.table import Ear, protected
from tests.spark_session import spark_session, stored

CACHE = Path(__file__).parents[2] / ".pytest_cache" / "kernel"

# Tests import the loops by name, which would have numba look for their machine code elsewhere: load them first.
with pytest.MonkeyPatch.context() as _patched:
    _patched.delenv("TACIT_KERNEL", raising=False)
    _patched.setenv("XDG_CACHE_HOME", str(CACHE))
    compiled.compile_now()
    compiled.load()

# Holds an Arrow table somewhere, and returns the words that tacit.table opens it by.
Hold = Callable[[pa.Table], dict[str, Any]]


def _here(_: pytest.FixtureRequest) -> Hold:
    return lambda rows: {"source": rows}


def _on_postgres(request: pytest.FixtureRequest) -> Hold:
    address = request.getfixturevalue("postgres")
    return _once("postgresql", lambda rows: {"source": held(rows, address) or rows})


def _on_spark(_: pytest.FixtureRequest) -> Hold:
    session = spark_session()
    return _once("spark", lambda rows: {"source": stored(rows, f"held_{next(_numbers)}"), "spark": session})


_numbers = count()
_held: dict[tuple[str, int], tuple[pa.Table, dict[str, Any]]] = {}


def _once(engine: str, hold: Hold) -> Hold:
    """Hold a table that tests share once in a process: the very same rows are where they were."""

    def held_once(rows: pa.Table) -> dict[str, Any]:
        if (engine, id(rows)) not in _held:
            _held[engine, id(rows)] = (rows, hold(rows))  # rows that are kept keep their id
        return _held[engine, id(rows)][1]

    return held_once


# One session, in one process; every question is two jobs of it, so `make slow` has them all.
_SPARK = pytest.param("spark", marks=[pytest.mark.xdist_group("spark"), pytest.mark.slow])
# each engine -> how to hold rows there; the embedded one has two paths
HOLDERS: dict[str, Callable[[pytest.FixtureRequest], Hold]] = {
    "duckdb, sql": _here,
    "duckdb, kernel": _here,
    "postgresql": _on_postgres,
    "spark": _on_spark,
}
ENGINES = [*(name for name in HOLDERS if name != "spark"), _SPARK]
ELSEWHERE = ["postgresql", _SPARK]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Callable[..., Table]:
    """A function from an Arrow table and a declaration to a protected table on this engine."""
    if request.param.endswith("kernel"):
        request.getfixturevalue("kernel")
    hold = HOLDERS[request.param](request)
    return lambda rows, **declared: protected(**(hold(rows) | declared))


@pytest.fixture(params=ELSEWHERE)
def elsewhere(request: pytest.FixtureRequest) -> Hold:
    """A function that holds an Arrow table on another engine, and returns what tacit.table opens it by."""
    return HOLDERS[request.param](request)


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
