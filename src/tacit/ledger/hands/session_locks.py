"""Locks of requests in hand on a PostgreSQL server (see `in_hand.py`)."""

import contextlib
import os
from threading import Lock
from typing import Any

import psycopg

from tacit.errors import LedgerError
from tacit.ledger.hands.in_hand import number_of

CONNECT_SECONDS = 60
# Seconds until the server notices a client on a machine that is gone.
_NOTICED = {"tcp_keepalives_idle": 10, "tcp_keepalives_interval": 5, "tcp_keepalives_count": 4}

Link = psycopg.Connection[tuple[Any, ...]]


class SessionLocks:
    """Locks of a separate session, which the server releases when the session ends.

    A machine that is gone without a word is noticed within half a minute. If the connection breaks, its locks are
    released: another process may carry the request out, and a result computed here is refused.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._held: set[int] = set()  # a session may take its own lock twice
        self._link: Link | None = None
        self._of_parent: list[Link] = []  # kept: closing one in a fork would end the parent's session
        self._process = os.getpid()
        self._door = Lock()

    def take(self, key: str) -> bool:
        """Take a lock and return whether it was free."""
        number = number_of(key)
        with self._door:
            self._leave_to_parent()
            if number in self._held:
                return False
            is_free = self._ask_or_reconnect("pg_try_advisory_lock", number)
            if is_free:
                self._held.add(number)
            return is_free

    def is_free(self, key: str) -> bool:
        """Return whether no process holds a lock; several may look at the same time."""
        number = number_of(key)
        with self._door:
            self._leave_to_parent()
            if number in self._held or not self._ask_or_reconnect("pg_try_advisory_lock_shared", number):
                return False
            self._ask_or_reconnect("pg_advisory_unlock_shared", number)
            return True

    def let_go(self, key: str) -> None:
        """Let go of a lock that was taken here."""
        number = number_of(key)
        with self._door:
            self._leave_to_parent()
            self._held.discard(number)
            try:
                if self._link is not None:
                    self._ask("pg_advisory_unlock", number)
            except psycopg.Error:
                self._drop()

    def close(self) -> None:
        """Let go of all of them."""
        with self._door:
            self._leave_to_parent()
            self._drop()

    def _ask_or_reconnect(self, function: str, number: int) -> bool:
        try:
            return self._ask(function, number)
        except psycopg.Error:  # it was idle for long, or the server was restarted
            self._drop()
        try:
            return self._ask(function, number)
        except psycopg.Error as error:
            self._drop()
            raise _lost(error) from error

    def _ask(self, function: str, number: int) -> bool:
        if self._link is None:
            self._link = psycopg.connect(
                self._address, autocommit=True, connect_timeout=CONNECT_SECONDS, application_name="tacit in hand"
            )
            for setting, value in _NOTICED.items():
                self._link.execute(f"SET {setting} = {value}".encode())
        # a lock of two numbers is another's: the ledger's own has them
        return bool(self._link.execute(f"SELECT {function}(%s::bigint)".encode(), (number,)).fetchall()[0][0])

    def _drop(self) -> None:
        if self._link is not None:
            link, self._link = self._link, None
            with contextlib.suppress(psycopg.Error):
                link.close()

    def _leave_to_parent(self) -> None:
        """Open a new connection in a fork: the old connection and its locks are the parent's."""
        if self._process != os.getpid():
            self._process, self._held = os.getpid(), set()
            self._of_parent += [] if self._link is None else [self._link]
            self._link = None


def _lost(error: psycopg.Error) -> LedgerError:
    code = error.sqlstate or type(error).__name__
    return LedgerError(
        f"requests cannot be held on the PostgreSQL server ({code}); no charge was made and no answer was given"
        "\nhint: check that the server is up, and has room for one more connection of each worker"
    )
