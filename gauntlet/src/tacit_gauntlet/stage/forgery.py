"""What somebody does who knows how a ledger is written: hashes and texts that fit, foreign ids, keys of their own."""

import copy
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from tacit import numbers
from tacit.ledger import certificate, chain
from tacit.ledger.draft import first_draft
from tacit.ledger.entry import SCHEMA, Account, Writes, account_text
from tacit.ledger.sqlite import SqliteStore
from tacit.ledger.store import StoreRows
from tacit_gauntlet.targets import original, planted

Json = dict[str, Any]


def written(record: object) -> str:
    """Return a record as the ledger writes it."""
    return chain.canonical(record)


def number_text(value: Any) -> str:
    """Return an exact number as the ledger writes it."""
    return numbers.to_text(value)


def exact_number(text: str) -> object:
    """Return the exact number that a text in a file is read as."""
    return numbers.from_text(text)


def read_json(text: str) -> object:
    """Return what a JSON text from others is read as."""
    return numbers.read_json(text)


def chained(previous: str, body: str) -> str:
    """Return the hash that an entry has after the one before it."""
    return chain.link(previous, body)


def digest_of(*texts: str) -> str:
    """Return a key as questions have it."""
    return chain.digest(*texts)


def nothing_spent() -> str:
    """Return the total of somebody who was never charged, as the ledger writes it."""
    return account_text(Account())


def newer_layout(path: Path) -> None:
    """Have a ledger's file say that it is of the next layout."""
    with closing(sqlite3.connect(path)) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA + 1}")


def ledger_of_id(path: Path, id: str) -> None:
    """Write a ledger whose id is any text, signed by a key of its own."""
    key = chain.new_key()

    def first(rows: StoreRows) -> Writes | None:
        draft = first_draft(rows, ledger=id, time="2026-11-15T00:00:00.000000Z")
        draft.append({"kind": "ledger", "ledger": id, "public_key": key.public, "schema": SCHEMA})
        return draft.seal(key)

    store = SqliteStore(path)
    store.transact((), first)
    store.close()


@contextmanager
def watched_anchors(*, waits: bool = False) -> Iterator[list[object]]:
    """Yield the paths at which an anchor is looked for while open; where one `waits`, it is not opened."""
    looked: list[object] = []
    read = original("Anchor.read_marks")

    def watched(self: Any, *, between_writes: bool = False) -> Any:
        looked.append(self.path)
        return None if waits else read(self, between_writes=between_writes)

    with planted("Anchor.read_marks", watched):
        yield looked


def verify_certificate(record: Mapping[str, Any]) -> object:
    """Verify an answer's certificate."""
    return certificate.verify_certificate(dict(record))


def forged_certificate(real: Json, *, body: str | None = None, **changed: object) -> Json:
    """Return a certificate with another charge, everything else made to fit and signed by a key of the forger's."""
    forged, key = copy.deepcopy(real), chain.new_key()
    entry_of = forged["chain"]["charge"]
    charge = json.loads(entry_of["body"]) | changed
    entry_of["body"] = json.dumps(charge) if body is None else body
    entry_of["hash"] = chain.link(entry_of["previous"], entry_of["body"])
    forged["loss"] = {name: charge[name] for name in ("epsilon", "rho", "delta")}
    forged["events"], forged["public_key"] = charge["events"], key.public
    del forged["signature"]
    return forged | {"signature": key.sign(forged)}
