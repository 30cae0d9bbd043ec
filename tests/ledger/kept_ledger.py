"""A small ledger that is kept as text, so that later versions can show that they still read it.

`write` makes one with the version that runs, through the public doors alone; `restore` puts a kept one into a home.
The folders in `kept/` were written once, by the version of their date, and are never written again. When the stored
form grows, keep another beside them: `python -m tests.ledger.kept_ledger tests/ledger/kept/<date>`.
"""

import hashlib
import json
import os
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import tacit
from tacit import local
from tacit.ledger import Ledger, open_ledger
from tacit.privacy import loss as event

DECLARATION = {"unit": "person_id", "neighbours": "add or remove", "columns": ["income"], "version": 1}
# Nobody's: it is made from these words, so the kept ledgers can be charged on.
KEY_WORDS = b"the key of the kept ledgers of the tests"
# The pragmas by which a file says whose it is and in which layout; a dump has no word of them.
PRAGMAS = ("application_id", "user_version")


def clock() -> datetime:
    """Return the one time at which kept ledgers are written and read: a later one would be another period."""
    return datetime(2026, 11, 15, 12, tzinfo=UTC)


def visits(ledger: Ledger, *, budget: Any = None) -> Any:
    """Return a protected frame of 60 people, known to the ledger by its name and version."""
    rows = {
        "person": [f"p{n}" for n in range(60)],
        "ward": ["north" if n % 3 else "south" for n in range(60)],
        "pay": [n % 50 for n in range(60)],
    }
    columns = {"pay": {"between": (0, 50)}}
    return tacit.table(
        pa.table(rows),
        unit="person",
        name="visits",
        version=1,
        columns=columns,
        rows_per_unit=1,
        groups_per_unit=1,
        ledger=ledger,
        budget=budget,
    )


# What was asked of the frame, each with its words; asked again, each comes back with the same numbers, free.
QUESTIONS: dict[str, tuple[Callable[[Any], Any], dict[str, Any]]] = {
    "listed keys": (lambda table: table.group_by("ward", keys=["north", "south"]).count(), {"epsilon": 0.2}),
    "keys nobody listed": (lambda table: table.group_by("ward").mean("pay"), {"epsilon": 2, "delta": 2e-7}),
    "one number": (lambda table: table.sum("pay"), {"epsilon": 0.1}),
    "Gaussian": (lambda table: table.sum("pay"), {"epsilon": 0.1, "delta": 1e-7, "noise": "gaussian"}),
    "a median": (lambda table: table.median("pay"), {"epsilon": 0.3, "request_id": "r-median"}),
    "the best key": (lambda table: table.top("ward", 1, keys=["north", "south", "east"]), {"epsilon": 0.1}),
    "an analyst's own": (lambda table: table.count(), {"epsilon": 0.1, "analyst": "ann"}),
}

# One of each kind of event, as (its name, its fields); charged to a table that has no rows.
EVENTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("LaplaceNoise", {"scale": Fraction(100, 3), "sensitivity": Fraction(1)}),
    ("GaussianNoise", {"sigma": Fraction(200), "sensitivity_squared": Fraction(2)}),
    ("GaussianNoise", {"sigma": Fraction(401, 2), "sensitivity_squared": Fraction(1), "scalar": True}),
    ("StaircaseNoise", {"epsilon": Fraction(1, 100), "sensitivity": Fraction(5), "width": Fraction(2)}),
    ("KeyThreshold", {"delta": Fraction(1, 10**9)}),
    ("PureChoice", {"epsilon": Fraction(1, 100)}),
    ("ExponentialChoice", {"epsilon": Fraction(1, 100)}),
)


def surveyed() -> local.Collector:
    """Return a collection of 2,000 reports of one survey; the estimate is not the same twice, its question is."""
    client = local.Randomizer(["yes", "no"], epsilon=1)
    collector = local.Collector(client.survey)
    collector.add_all(client.reports(["yes"] * 2000))
    return collector


def write(folder: Path, home: Path) -> None:
    """Make a ledger in an empty home, with everything a ledger can hold, and keep it in a folder as text."""
    home.mkdir(mode=0o700, exist_ok=True)
    _write_key(home)
    with open_ledger(home / "ledger.db", clock=clock) as ledger:
        answers = _fill(ledger)
        spent = {table.name: _amounts(ledger.spent(table)) for table in ledger.tables()}
        numbers = [entry.number for entry in ledger.entries() if entry.kind == "answer"]
        certificates = [ledger.certificate(number) for number in numbers]
        anchor = (home / "anchors" / ledger.id).read_text()
        kept = {"ledger": ledger.id, "entries": ledger.length(), "spent": spent, "answers": answers}
    folder.mkdir(parents=True)
    (folder / "ledger.sql").write_text(_dump(home / "ledger.db"))
    (folder / "anchor.txt").write_text(anchor)
    (folder / "certificates.json").write_text(json.dumps(certificates, indent=1, ensure_ascii=False) + "\n")
    (folder / "kept.json").write_text(json.dumps(kept, indent=1) + "\n")


def restore(folder: Path, home: Path) -> Path:
    """Put a kept ledger, its key and its anchor into an empty home, and return where the ledger is."""
    home.mkdir(mode=0o700, exist_ok=True)
    _write_key(home)
    kept = json.loads((folder / "kept.json").read_text())
    (home / "anchors").mkdir(mode=0o700)
    (home / "anchors" / kept["ledger"]).write_text((folder / "anchor.txt").read_text())
    with closing(sqlite3.connect(home / "ledger.db")) as connection:
        connection.executescript((folder / "ledger.sql").read_text())
    return home / "ledger.db"


def _fill(ledger: Ledger) -> dict[str, Any]:
    table = visits(ledger, budget=tacit.epsilon(6, delta=1e-6))
    ledger.grant("visits", tacit.epsilon(1), analyst="ann", reason="ann asks little")
    ledger.grant("visits", tacit.epsilon(5, delta=1e-6), period="month", reason="not all at once")
    answers = {name: ask(table).answer(**words).to_dicts() for name, (ask, words) in QUESTIONS.items()}

    events = [getattr(event, kind)(**fields) for kind, fields in EVENTS]
    pay = ledger.register(
        name="pay",
        declaration=DECLARATION,
        source="pay.parquet",
        marks=("part-1",),
        budget=tacit.epsilon(1, delta=1e-6),
    )
    ledger.reserve(pay, events, question_key="each kind").commit('{"each": "kind"}')
    ledger.reserve(pay, events[:1], question_key="no answer", request_id="r-dead")
    answers["refused"] = _refused(lambda: ledger.reserve(pay, [event.PureChoice(Fraction(2))], question_key="too much"))
    ledger.register(
        name="pay", declaration={**DECLARATION, "version": 2}, source="pay.parquet", marks=("part-1", "part-2")
    )
    rho = ledger.register(name="by rho", declaration=DECLARATION, source="by rho", budget=tacit.rho(0.1))
    ledger.reserve(rho, events[1:3], question_key="Gaussian").commit("3")
    ledger.register(name="by rho again", declaration=DECLARATION, source="again", same_people_as="by rho")

    survey = ledger.register(
        name="survey", declaration=DECLARATION, source="survey", budget=tacit.epsilon(2, delta=1e-6)
    )
    answers["shuffled"] = tacit.release_estimate(surveyed(), ledger, survey, delta=1e-7, unlinkable=True)
    answers["not shuffled"] = tacit.release_estimate(surveyed(), ledger, survey)
    return answers


def _refused(ask: Callable[[], object]) -> str:
    try:
        ask()
    except tacit.BudgetExceeded as refusal:
        return str(refusal)
    raise AssertionError("this was to be refused")


def _amounts(charge: Any) -> dict[str, str | None]:
    names = ("epsilon", "rho", "delta", "delta_noise")
    return {name: None if getattr(charge, name) is None else str(getattr(charge, name)) for name in names}


def _dump(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        pragmas = [f"PRAGMA {name} = {connection.execute(f'PRAGMA {name}').fetchone()[0]};" for name in PRAGMAS]
        return "\n".join([*connection.iterdump(), *pragmas]) + "\n"


def _write_key(home: Path) -> None:
    private = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(KEY_WORDS).digest())
    text = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = home / "signing.key"
    path.write_bytes(text)
    path.chmod(0o600)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        os.environ.update(TACIT_HOME=made, TACIT_KERNEL="off")
        write(Path(sys.argv[1]), Path(made))
