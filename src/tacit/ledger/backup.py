"""Backups: a whole ledger copied into another place, checked there, from and to either store.

A copy has every entry, the state and the hashes of tokens. A copy is of the past: on a machine that has answered
since, it is behind its anchor and is refused until the curator accepts it, for the record (`tacit ledger accept`).
"""

import os

from tacit.errors import LedgerError
from tacit.ledger.entry import Entry, Writes
from tacit.ledger.home import open_ledger, open_store
from tacit.ledger.store import KEEP_USED, Rows, Store
from tacit.ledger.verify import Verified, verify


def back_up(source: str | os.PathLike[str] | None, target: str | os.PathLike[str]) -> Verified:
    """Copy a ledger into an empty place, verify the copy, and return the report.

    The source is checked against its anchor and verified first: an old or damaged one is refused.
    """
    open_ledger(source, create=False).close()
    return _copied(open_store(source, create=False), open_store(target, create=True))


def restore(backup: str | os.PathLike[str], target: str | os.PathLike[str] | None) -> Verified:
    """Copy a backup into an empty place, verify it, and return the report."""
    return _copied(open_store(backup, create=False), open_store(target, create=True))


def _copied(source: Store, target: Store) -> Verified:
    try:
        with source.reading() as rows:
            verify(rows)
            writes, tokens = _all_of(rows), rows.tokens()
        written: list[bool] = []

        def work(rows: Rows) -> Writes | None:
            written[:] = [rows.head() is None]
            return writes if written[0] else None

        target.transact((), work)
        if not written[0]:
            raise LedgerError(
                f"there is a ledger at {target.place} already; it was not changed"
                "\nhint: choose a place without a ledger, or move the old one away"
            )
        for token in tokens:
            target.beside(KEEP_USED, token)
        with target.checking(), target.reading() as rows:
            return verify(rows)
    finally:
        source.close()
        target.close()


def _all_of(rows: Rows) -> Writes:
    head = rows.head()
    if head is None:
        raise LedgerError("no ledger exists in this place\nhint: give the ledger's path with --ledger PATH")
    entries = [Entry(*columns) for columns in rows.columns()]
    return Writes(None, head, entries, [*rows.values()], [*rows.nodes().items()])
