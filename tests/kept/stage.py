"""The stage of the kept outputs: made-up people, and a world in which nothing is random and time stands still.

The product is not patched. What it asks the system for is: random bytes, a new signing key, and the time. So these
outputs do not depend on where a function lives. The few inner names that are needed stand together below.
"""

import contextlib
import hashlib
import io
import os
import re
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import tacit
from tacit.asking import Table
from tacit.cli.app import main as tacit_command
from tacit.ledger import Ledger, open_ledger
from tacit.plan.plan import question_key

__all__ = ["question_key"]

START = datetime(2026, 11, 15, 8, tzinfo=UTC)
KEY_BYTES = 32
BUDGET = {"epsilon": 3, "delta": "1e-6"}


class World:
    """What the system gives while the world stands still: bytes that follow from their number, one key, one time."""

    def __init__(self) -> None:
        self.now = START
        self._given: Counter[int] = Counter()
        self._marks = 0

    def again(self) -> None:
        """Begin the random bytes anew, so that what comes next does not depend on what came before."""
        self._given.clear()

    def urandom(self, n: int) -> bytes:
        """Return bytes that depend on how many are wanted and on how often so many were.

        What follows a key is new every time, even after `again`: the product refuses a source that repeats itself.
        """
        self._given[n] += 1
        self._marks += 1
        key = hashlib.shake_256(f"{n} bytes, time {self._given[n]}".encode()).digest(min(n, KEY_BYTES))
        return key + hashlib.shake_256(f"mark {self._marks}".encode()).digest(n - len(key))

    def clock(self) -> datetime:
        """Return the time."""
        return self.now


@contextmanager
def standing_still() -> Iterator[World]:
    """Yield a world without chance, in a home of its own."""
    world = World()
    key = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as home, warnings.catch_warnings():
        warnings.simplefilter("ignore", tacit.LargeEpsilonWarning)
        patch.setenv("TACIT_HOME", str(Path(home) / "home"))
        patch.setenv("TACIT_KERNEL", "off")
        patch.setenv("COLUMNS", "120")
        patch.chdir(home)
        patch.setattr(os, "urandom", world.urandom)
        patch.setattr(Ed25519PrivateKey, "generate", classmethod(lambda _: key))
        patch.setitem(open_ledger.__kwdefaults__, "clock", world.clock)
        yield world


def people() -> pa.Table:
    """300 people with two visits each, in at most two of three wards: no bound leaves out a row, so no salt matters.

    All are of one site: the order in which an engine finds several private groups, and so their noise, is its own.
    """
    rows = range(600)
    return pa.table(
        {
            "person": [f"p{row // 2:03}" for row in rows],
            "ward": ["ABC"[(row // 2 + row % 2 * (row % 5 == 0)) % 3] for row in rows],
            "age": pa.array([None if row % 50 == 7 else 18 + row * 7 % 70 for row in rows], pa.int64()),
            "pay": pa.array([None if row % 40 == 3 else (row * 37 % 1000) / 8 for row in rows], pa.float64()),
            "bill": pa.array([Decimal(row * 31 % 10_000) / 100 for row in rows], pa.decimal128(8, 2)),
            "urgent": [row % 3 == 0 for row in rows],
            "day": [date(2026, 1, 1 + row % 28) for row in rows],
            "seen": pa.array([START.replace(minute=row % 60) for row in rows], pa.timestamp("us")),
            "site": ["north"] * len(rows),
            "note": ["<b>" if row % 9 == 0 else "plain" for row in rows],
        }
    )


COLUMNS = {
    "age": {"between": (18, 88)},
    "pay": {"between": (0, 125), "step": "0.5"},
    "bill": {"between": (0, 100)},
    "urgent": {"keys": [True, False]},
}


def visits(ledger: Ledger, *, columns: dict[str, object] | None = None, **declared: object) -> Table:
    """Return the people as a protected table: two rows and two groups of a person, unless declared otherwise."""
    usual = {"unit": "person", "rows_per_unit": 2, "groups_per_unit": 2, "most_rows_per_unit": 1}
    usual |= {"name": "visits", "version": 1}
    usual |= {"budget": tacit.epsilon(**BUDGET), "ledger": ledger, "columns": COLUMNS | (columns or {})}
    return tacit.table(people(), **(usual | declared))


def visits_file() -> str:
    """Return the path of the people as a file, in the folder where the process is."""
    path = Path("visits.parquet")
    if not path.exists():
        pq.write_table(people(), path)
    return str(path)


def run_tacit(*words: object) -> str:
    """Return what a command prints, on both ways, and its exit code."""
    shown, code = io.StringIO(), 0
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        try:
            tacit_command([str(word) for word in words])
        except SystemExit as stopped:
            code = stopped.code if isinstance(stopped.code, int) else int(bool(stopped.code))
    return shown.getvalue() + f"exit code {code}"


def section(title: str, *texts: object) -> str:
    """Return a part of a kept text."""
    return "\n".join([f"== {title}", *(str(text).rstrip("\n") for text in texts), ""])


def steady(text: str) -> str:
    """Return a text whose long decimals have ten digits: the last ones are the processor's own."""
    return re.sub(r"-?\d+\.\d{6,}(e[-+]?\d+)?", lambda found: f"{float(found[0]):.10g}", text)


def short(text: str) -> str:
    """Return what stands for a long text."""
    return f"{hashlib.sha256(text.encode()).hexdigest()} ({len(text):,} characters)"
