"""A collector's file: the ids and tokens it has counted, and its counters, changed together.

A transaction holds a batch's ids and the counters that include it. After a crash both are there or both are missing, so
a batch that is sent again is counted once. Collectors that share a file take turns, and each starts from its contents.
"""

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidParameter

_TABLES = """
CREATE TABLE IF NOT EXISTS seen (id BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS people (token TEXT PRIMARY KEY, reports INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
"""


WAIT_SECONDS = 60.0


class TallyFile:
    """Ids, tokens and counters, in a file only its owner may read; without a path, in a temporary file."""

    def __init__(self, path: str | Path | None) -> None:
        self._seen_version: int | None = None
        try:
            if path is not None:  # private from the start: tokens name the senders of reports
                os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._connection = sqlite3.connect(
                "" if path is None else str(path), isolation_level=None, timeout=WAIT_SECONDS
            )
            self._connection.executescript("PRAGMA journal_mode = WAL;" + _TABLES)
        except (sqlite3.Error, OSError, ValueError):
            raise InvalidParameter(
                "store must be the path of a collector's own file\nhint: give a path that does not exist yet"
            ) from None

    def begin(self) -> None:
        """Start a batch, when it is this collector's turn."""
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            raise InvalidParameter(
                "the store is in use by another collector, or cannot be written\nhint: try again, or check its disk"
            ) from None

    def has_changed(self) -> bool:
        """Whether another collector has written since this was last asked; at first, yes."""
        before, self._seen_version = self._seen_version, self._connection.execute("PRAGMA data_version").fetchone()[0]
        return before != self._seen_version

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def rollback(self) -> None:
        self._connection.execute("ROLLBACK")

    def first_seen(self, ids: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Return which ids are new, to the store and within the batch, and remember them."""
        found = np.zeros(len(ids), dtype=np.bool_)
        if not len(ids):
            return found
        # in order, so that neighbours in the index are written together
        distinct, indices = np.unique(np.ascontiguousarray(ids).view(f"V{ids.shape[1]}").ravel(), return_index=True)
        rows = [(row.tobytes(),) for row in distinct]
        run = self._connection
        run.execute("SAVEPOINT ids")
        before = run.total_changes
        run.executemany("INSERT OR IGNORE INTO seen VALUES (?)", rows)
        if run.total_changes - before < len(rows):  # some were there: find out which, then remember the others
            run.execute("ROLLBACK TO ids")
            known = [run.execute("SELECT 1 FROM seen WHERE id = ?", row).fetchone() is not None for row in rows]
            indices = indices[~np.array(known)]
            run.executemany("INSERT OR IGNORE INTO seen VALUES (?)", rows)
        run.execute("RELEASE ids")
        found[indices] = True
        return found

    def within_cap(self, tokens: Sequence[str], cap: int) -> NDArray[np.bool_]:
        """Return which reports are within their person's cap, in order, and count those."""
        found = np.zeros(len(tokens), dtype=np.bool_)
        for index, token in enumerate(tokens):
            cursor = self._connection.execute(
                "INSERT INTO people VALUES (?, 1) ON CONFLICT DO UPDATE SET reports = reports + 1 WHERE reports < ?",
                (token, cap),
            )
            found[index] = cursor.rowcount == 1
        return found

    def shares_with(self, other: "TallyFile") -> bool:
        known = self._connection.execute
        return any(known("SELECT 1 FROM seen WHERE id = ?", row).fetchone() for row in other._all("id", "seen"))

    def take_over(self, other: "TallyFile") -> None:
        """Add another store's ids and people to this one's."""
        self._connection.executemany("INSERT OR IGNORE INTO seen VALUES (?)", other._all("id", "seen"))
        self._connection.executemany(
            "INSERT INTO people VALUES (?, ?) ON CONFLICT DO UPDATE SET reports = reports + excluded.reports",
            other._all("token, reports", "people"),
        )

    def save(self, name: str, value: str) -> None:
        self._connection.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (name, value))

    def load(self, name: str) -> str | None:
        row = self._connection.execute("SELECT value FROM state WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def close(self) -> None:
        self._connection.close()

    def _all(self, columns: str, table: str) -> sqlite3.Cursor:
        return self._connection.execute(f"SELECT {columns} FROM {table}")  # noqa: S608 (names of our own)
