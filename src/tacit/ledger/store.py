"""What the ledger asks of a store: durable transactions on its tables, one at a time."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from threading import RLock
from typing import Protocol

from tacit.errors import LedgerError
from tacit.ledger.entry import Writes
from tacit.ledger.rows import Likely, Rows

Work = Callable[[Rows], Writes | None]


class NotAsSigned(Exception):
    """What the tables hold is not what the head was signed for: damage, or a head that has moved on meanwhile."""


class Store(Protocol):
    """Keeps the tables of one ledger.

    `durable` says whether a transaction survives the process and a power cut once `transact` has returned; `place`
    names where the tables are, without a password, and `places` that and what it was asked for as, before links are
    followed; `turn` is held by the one thread that uses the connection.
    """

    durable: bool
    place: str
    places: tuple[str, ...]
    turn: RLock

    def transact(self, likely: Sequence[Likely], work: Work) -> None:
        """Run `work` on what the store holds and write what it returns, all or nothing, alone among all writers.

        `work` may run again when the store asks for a retry, so it must not keep what it read. On return the writes
        are on the disk. On an error nothing is known to be written, and nothing may be answered.
        """
        ...

    def reading(self) -> AbstractContextManager[Rows]:
        """Return the rows as of one moment."""
        ...

    def checking(self) -> AbstractContextManager[None]:
        """Refuse tables or files that the store itself finds damaged, by the time what is inside has ended."""
        ...

    def disconnect(self) -> None:
        """Let go of the connection, which the next use opens again."""
        ...

    def enter_child(self) -> None:
        """Note that this process is a fork of the one that opened the store."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...


def not_a_ledger(place: str) -> LedgerError:
    """Return the error for a database that is someone else's."""
    return LedgerError(f"{place} is not a ledger\nhint: give another path; it is left as it is")


def newer_layout(place: str) -> LedgerError:
    """Return the error for a ledger that a later version wrote."""
    return LedgerError(f"the ledger {place} was written by a newer version\nhint: update tacit")


def older_layout(place: str) -> LedgerError:
    """Return the error for a ledger that an earlier version wrote, whose budgets kept another rule."""
    return LedgerError(
        f"the ledger {place} was written by an older version, whose budgets kept another rule"
        "\nhint: read it with that version; here begin a new one, with budgets lowered by what was spent"
    )


def damaged(place: str) -> LedgerError:
    """Return the error for tables that are not as we wrote them."""
    return LedgerError(f"the ledger {place} is damaged\nhint: restore it from a backup, then: tacit ledger verify")


def unexpected(error: Exception) -> LedgerError:
    """Return the error for rows that are not what was signed, or could not be read as what we write."""
    if isinstance(error, NotAsSigned):
        return LedgerError(
            "the ledger was changed behind its back: an entry, a total or a budget is not what its head signs; "
            "nothing was charged or answered\nhint: tacit ledger verify names it; restore the newest whole copy"
        )
    fault = LedgerError(
        f"the ledger holds something it did not write ({type(error).__name__}); nothing was answered"
        "\nhint: tacit ledger verify says what is wrong with it"
    )
    fault.__cause__ = error
    return fault
