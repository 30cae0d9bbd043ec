"""The stage for attacks on answers: small protected tables, their exact sums under a chosen salt, and frozen noise.

A real answer never shows an exact sum or repeats a noise. Here the engine is asked directly, which only code on the
curator's side can do, and the noise is frozen by replacing our own generator while a case runs.
"""

import importlib
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from tacit import epsilon as pure_or_approximate
from tacit.auditing import replay
from tacit.door import Question, Table, table
from tacit.exact import ExactTable
from tacit.plan.plan import NoiseKind, Plan
from tacit.plan.planner import make_plan, make_spend
from tacit.privacy.arrays import Words
from tacit_gauntlet.targets import planted

SALT = replay.SALT
distance = replay.distance
BUDGET = pure_or_approximate(10**6, delta="1e-6")

Cells = dict[tuple[Any, ...], int]  # (key, part) -> an exact integer


def protected(source: Any, **declared: Any) -> Table:
    """Return a protected table in a ledger of its own, with bounds of two rows and two groups unless declared."""
    usual: dict[str, Any] = {"unit": "id", "budget": BUDGET, "ledger": ":memory:"}
    usual |= {"rows_per_unit": 2, "groups_per_unit": 2, "name": "t"}
    return table(source, **(usual | declared))


def pandas() -> Any:
    """Return pandas, which Ibis brings."""
    return importlib.import_module("pandas")


def plan_of(question: Question, *, epsilon: object = 1, noise: NoiseKind | None = None) -> Plan:
    """Return the plan that answering would follow."""
    spend = make_spend(epsilon, None, noise, question.session.registered.budget)  # type: ignore[arg-type]
    return make_plan(question.query, question.session.declaration, spend)


def exact_table(question: Question, *, salt: str = SALT) -> ExactTable:
    """Return what the engine hands to the release: bounded and still secret."""
    return question.session.engine.aggregate(plan_of(question), salt)


def exact_cells(question: Question, *, salt: str = SALT) -> list[Cells]:
    """Return for each release every exact integer that noise is added to, by key and part; zeros are left out."""
    plan, exact = plan_of(question), exact_table(question, salt=salt)
    found = []
    for release in plan.releases:
        cells: Cells = {}
        for part in release.parts:
            for key, value in zip(exact.keys, exact.part(part, plan), strict=True):
                if value:
                    cells[(*key, part.kind)] = value
        found.append(cells)
    return found


def too_far(question: Question, neighbour: Question, *, salt: str = SALT) -> list[str]:
    """Return what exceeds the sensitivity the plan declares when one table becomes the other."""
    plan = plan_of(question)
    both = zip(exact_cells(question, salt=salt), exact_cells(neighbour, salt=salt), plan.releases, strict=True)
    return [
        f"release {place}: {what}"
        for place, (before, after, release) in enumerate(both)
        for what in replay.beyond(before, after, release.sensitivity)
    ]


def added(left: Cells, right: Cells) -> Cells:
    """Return the sum of two vectors, zeros left out."""
    total = {place: left.get(place, 0) + right.get(place, 0) for place in left.keys() | right.keys()}
    return {place: value for place, value in total.items() if value}


def rows(columns: Mapping[str, tuple[Sequence[Any], pa.DataType]]) -> pa.Table:
    """Return an Arrow table of typed columns."""
    return pa.table({name: pa.array(list(values), kind) for name, (values, kind) in columns.items()})


class Ear(logging.Handler):
    """Keeps whatever is logged."""

    def __init__(self) -> None:
        super().__init__(level=0)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep an entry as it would be written."""
        self.heard.append(self.format(record))


class FrozenBits:
    """Bits that repeat: the same words for every release. They live only here."""

    def __init__(self) -> None:
        self._at = 0

    def words(self, n: int, width: int = 64) -> Words:
        """Return `n` words that look random and are not (splitmix64 of a counter)."""
        state = (np.arange(self._at + 1, self._at + n + 1, dtype=np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        self._at += n
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed: Words = state ^ (state >> np.uint64(31))
        return mixed if width == 64 else mixed >> np.uint64(64 - width)


@contextmanager
def frozen() -> Iterator[None]:
    """Freeze the noise and the salt while open, so that two runs differ by their rows alone."""
    with (
        planted("Keystream in integer noise", FrozenBits),
        planted("fresh_bytes in a session", bytes),
    ):
        yield


@contextmanager
def in_sql() -> Iterator[None]:
    """Answer on the engine's path in SQL while open, ready compiled kernel or not."""
    before = os.environ.get("TACIT_KERNEL")
    os.environ["TACIT_KERNEL"] = "off"
    try:
        yield
    finally:
        if before is None:
            del os.environ["TACIT_KERNEL"]
        else:
            os.environ["TACIT_KERNEL"] = before
