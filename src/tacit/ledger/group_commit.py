"""Group commit: one thread writes the requests of all waiting threads in a single durable transaction.

Many callers then share one sync of the disk. Decisions are still made one by one, in order on the same draft; a
failure of the disk fails them all. A fork never shares a connection with its parent.
"""

import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from tacit.errors import LedgerError, TacitError
from tacit.ledger.draft import LedgerDraft
from tacit.ledger.store import LedgerStore, Likely, unexpected
from tacit.system import at_fork

# More in one transaction would make the first wait for the last.
TOGETHER_MAX = 64

NOTHING_LIKELY = Likely()

Outcome = TypeVar("Outcome")


class PendingWrite(Generic[Outcome]):
    """A caller's step that waits to be written, and its outcome.

    A step decides first and adds entries last, so it adds all or none.
    """

    def __init__(
        self, step: Callable[[LedgerDraft], Outcome], likely: Likely, *, publishes: bool, sets_clock: bool
    ) -> None:
        self.step = step
        self.likely = likely
        self.publishes = publishes
        self.sets_clock = sets_clock
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self.done: bool = False
        self.called: threading.Event = threading.Event()

    def attempt(self, draft: LedgerDraft) -> None:
        """Take the step on a draft; a refusal is an outcome, and its entries stay in the draft."""
        self.outcome, self.error = None, None
        try:
            self.outcome = self.step(draft)
        except TacitError as refusal:
            self.error = refusal

    def fail(self, error: BaseException) -> None:
        """Record that the transaction did not happen, or is not known to have."""
        self.outcome, self.error = None, error

    def finish(self) -> None:
        """Tell the caller that there is an outcome."""
        self.done = True
        self.called.set()

    def result(self) -> Outcome:
        """Return the outcome, or raise the error that happened instead."""
        if self.error is not None:
            raise self.error
        return self.outcome  # type: ignore[return-value]


Flush = Callable[[Sequence[PendingWrite[Any]]], None]


class GroupCommit:
    """Writes the steps of many callers to a store: the leading one flushes all that wait, then names the next."""

    def __init__(self, store: LedgerStore, flush: Flush) -> None:
        self._store = store
        self._flush = flush
        self._door = threading.Lock()
        self._waiting: deque[PendingWrite[Any]] = deque()
        self._leader: PendingWrite[Any] | None = None
        with _fork_lock:  # a fork in another thread goes through them all
            _group_commits.add(self)

    def submit(
        self,
        step: Callable[[LedgerDraft], Outcome],
        *,
        likely: Likely = NOTHING_LIKELY,
        publishes: bool = False,
        sets_clock: bool = False,
    ) -> Outcome:
        """Submit one step and return its outcome once it is durable; `publishes` has the anchor moved as well."""
        write: PendingWrite[Outcome] = PendingWrite(step, likely, publishes=publishes, sets_clock=sets_clock)
        try:
            with self._door:
                self._waiting.append(write)
                if self._leader is None:
                    self._leader = write
            if self._leader is not write:
                write.called.wait()
            if not write.done:
                self._flush_waiting()
        finally:
            self._leave(write)
        return write.result()

    def _flush_waiting(self) -> None:
        with self._door:
            writes = [self._waiting.popleft() for _ in range(min(len(self._waiting), TOGETHER_MAX))]
        try:
            with self._store.turn:
                self._flush(writes)
        except Exception as error:  # noqa: BLE001 (the callers who wait must hear of any failure)
            for write in writes:
                write.fail(type(error)(*error.args) if isinstance(error, TacitError) else unexpected(error))
        except BaseException:
            for write in writes:
                write.fail(LedgerError("the ledger was interrupted; no answer was given\nhint: ask again"))
            raise
        finally:
            for write in writes:
                write.finish()

    def _leave(self, write: PendingWrite[Any]) -> None:
        """Call the next to lead, if this caller did; a caller interrupted while it waits takes its step with it."""
        with self._door:
            if not write.done and write in self._waiting:
                self._waiting.remove(write)
            if self._leader is write:
                self._leader = self._waiting[0] if self._waiting else None
                if self._leader is not None:
                    self._leader.called.set()

    def before_fork(self) -> None:
        """Wait for the transaction under way and let go of the connection."""
        self._store.turn.acquire()
        self._store.disconnect()

    def after_fork_in_parent(self) -> None:
        """Go on; the next use connects again."""
        self._store.turn.release()

    def after_fork_in_child(self) -> None:
        """Go on without the steps that the parent's threads had queued: the parent finishes them."""
        self._door = threading.Lock()
        self._waiting = deque()
        self._leader = None
        self._store.enter_child()
        self._store.turn.release()


_group_commits: "weakref.WeakSet[GroupCommit]" = weakref.WeakSet()
_forking: list[GroupCommit] = []
_fork_lock = threading.Lock()


def _before_fork() -> None:
    _fork_lock.acquire()
    _forking[:] = list(_group_commits)
    for group_commit in _forking:
        group_commit.before_fork()


def _after_fork(go_on: Callable[[GroupCommit], None]) -> None:
    for group_commit in _forking:
        go_on(group_commit)
    _forking.clear()
    _fork_lock.release()


at_fork(
    before=_before_fork,
    after_in_parent=lambda: _after_fork(GroupCommit.after_fork_in_parent),
    after_in_child=lambda: _after_fork(GroupCommit.after_fork_in_child),
)
