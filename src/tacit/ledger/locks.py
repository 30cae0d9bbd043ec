"""Requests in hand: one process carries a charge out at a time, and one that has died lets go of it.

A request is held by a lock that dies with its process, however that ends: a byte of a file beside an SQLite ledger,
locked in the operating system, or a lock of a PostgreSQL session. No clock is read and locks do not expire: a slow
worker that is alive keeps its lock. If a process gets the lock of a request that was charged and not answered, no
other process is at work on it, and the same charge may be carried out again (`charging.py`), `ATTEMPTS` times in all.

The lock saves work and time; correctness does not depend on it. If a lock is lost, because a connection broke, the
ledger takes only the answer of the newest attempt.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Protocol

from tacit.errors import LedgerError
from tacit.system import at_fork, lock_byte, unlock_byte

# The most times that one charge is carried out: public, and in the entry of each charge to which it applies.
ATTEMPTS = 3

_DIGITS = 15  # of a key's hash, as the place of its byte: within a file's size and a PostgreSQL bigint


class Locks(Protocol):
    """Locks by name that a process holds until it lets go or dies; at most one holder each, threads included."""

    def take(self, key: str) -> bool: ...

    def is_free(self, key: str) -> bool:
        """Return whether no process holds a lock; several may look at the same time."""
        ...

    def let_go(self, key: str) -> None: ...


def number_of(key: str) -> int:
    return int(key[:_DIGITS], 16)


@dataclass(frozen=True)
class InHand:
    """The request that this thread carries out."""

    ledger: str
    request_id: str
    analyst: str | None


_NOW: ContextVar[InHand | None] = ContextVar("tacit_in_hand", default=None)


def in_hand(ledger: str) -> InHand | None:
    now = _NOW.get()
    return now if now is not None and now.ledger == ledger else None


@contextmanager
def taken(now: InHand, key: str, locks: Locks) -> Iterator[bool]:
    """Hold a request while the block runs; yields whether it is held only here."""
    if not locks.take(key):
        yield False
        return
    before = _NOW.set(now)
    try:
        yield True
    finally:
        _NOW.reset(before)
        locks.let_go(key)


# The seconds to wait before looking again whether a lock is free: doubled each time, up to the most.
LOOK_AGAIN, LOOK_AGAIN_MOST = 0.002, 0.05

_ALONE: ContextVar[tuple[str, ...]] = ContextVar("tacit_alone", default=())


def is_alone() -> bool:
    """Return whether this thread holds the lock of its payment."""
    return bool(_ALONE.get())


@contextmanager
def waited_for(key: str, locks: Locks) -> Iterator[None]:
    """Wait until no other thread or process holds a key, and hold it while the block runs."""
    held = _ALONE.get()
    if key in held:
        yield
        return
    pause = LOOK_AGAIN
    while not locks.take(key):
        time.sleep(pause)
        pause = min(2 * pause, LOOK_AGAIN_MOST)
    _ALONE.set((*held, key))
    try:
        yield
    finally:
        _ALONE.set(held)
        locks.let_go(key)


# ---- the locks of a file ---------------------------------------------------------------------------------------------


@dataclass
class _Held:
    """The locks that this process holds on one file; the file stays open while there are any."""

    numbers: set[int] = field(default_factory=set)
    descriptor: int | None = None


# The system has locks of a process, but not of a thread or of a second ledger on the same file: those are here.
_HELD: dict[str, _Held] = {}
_DOOR = threading.Lock()


@dataclass(frozen=True)
class FileLocks:
    """Locks on bytes of a file beside the ledger, which stays empty; None is for a ledger in memory."""

    path: str | None

    def take(self, key: str) -> bool:
        number = number_of(key)
        with _DOOR:
            held = _HELD.setdefault(self.path or "", _Held())
            if number in held.numbers:
                return False
            if self.path is not None and not self._locked(self.path, held, number):
                return False
            held.numbers.add(number)
            return True

    def is_free(self, key: str) -> bool:
        """Return whether no process holds a lock; several may look at the same time."""
        number = number_of(key)
        with _DOOR:
            held = _HELD.setdefault(self.path or "", _Held())
            if number in held.numbers or self.path is None:
                return number not in held.numbers
            is_free = self._locked(self.path, held, number, shared=True)
            if held.descriptor is not None:
                unlock_byte(held.descriptor, number)
            _close_if_idle(held)
            return is_free

    def let_go(self, key: str) -> None:
        with _DOOR:
            held = _HELD[self.path or ""]
            held.numbers.discard(number_of(key))
            if held.descriptor is not None:
                unlock_byte(held.descriptor, number_of(key))
            _close_if_idle(held)

    @staticmethod
    def _locked(path: str, held: _Held, number: int, *, shared: bool = False) -> bool:
        try:
            if held.descriptor is None:
                held.descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            is_free = lock_byte(held.descriptor, number, shared=shared)
        except OSError as error:
            _close_if_idle(held)
            raise LedgerError(
                f"requests cannot be held in {path} ({error.strerror}); no charge was made and no answer was given"
                "\nhint: put the ledger on a local disk, in a folder that its owner may write"
            ) from error
        if not is_free:
            _close_if_idle(held)
        return is_free


def _close_if_idle(held: _Held) -> None:
    if not held.numbers and held.descriptor is not None:
        os.close(held.descriptor)  # closing lets go of every lock of this process on the file
        held.descriptor = None


def _after_fork_in_child() -> None:
    """Forget all locks in a new process: they stay with the process that took them."""
    for held in _HELD.values():
        if held.descriptor is not None:
            with suppress(OSError):
                os.close(held.descriptor)
    _HELD.clear()
    _DOOR.release()


at_fork(before=_DOOR.acquire, after_in_parent=_DOOR.release, after_in_child=_after_fork_in_child)
