"""Worker processes: the same server several times on one socket, and a parent that replaces one that dies.

The parent reads no row and does not answer: it loads the program, forks workers and waits. A worker is like a replica,
with its own desk, connections and ledger. Workers do not share memory, and only the ledger decides about charges. All
accept from one socket: connections that wait in it outlive a worker that is killed.
"""

import gc
import json
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType
from typing import NoReturn

from tacit import errors
from tacit.errors import TacitError
from tacit.system import cores

WORKERS_MAX = 64
USUAL_MAX = 4
SOON_SECONDS = 1.0  # a worker that ends sooner than this is replaced more slowly each time
PAUSE_SECONDS_MAX = 5.0
STOPS = (signal.SIGTERM, signal.SIGINT)

log: logging.Logger = logging.getLogger("tacit.server")

Told = Callable[[], None]
Work = Callable[[Told], None]


def usual_workers() -> int:
    """Return how many workers suit this machine: one for each core, up to four, where processes can be forked."""
    return min(cores() if sys.platform == "linux" else 1, USUAL_MAX)


def share_of(number: int, workers: int) -> int:
    """Return each worker's share of something that all have together, and at least one."""
    return max(1, number // workers)


@dataclass
class Workers:
    """A number of processes that do the same `work` until they are stopped.

    `work` calls its argument once it can serve, and returns on SIGTERM; `ready` is called here, once.
    """

    number: int
    work: Work
    ready: Told
    stopping: Told
    sleep: Callable[[float], None] = time.sleep
    _alive: dict[int, float] = field(default_factory=dict, init=False)  # since when each runs
    _is_stopping: bool = field(default=False, init=False)
    _too_soon: int = field(default=0, init=False)  # how many have ended soon after they began, one after the other

    def run(self) -> None:
        """Keep all workers running until this process is stopped; then let each finish what it does."""
        self._lifeline, self._held = os.pipe()  # workers see its other end close when this process is gone
        before = {each: signal.signal(each, self._stop) for each in STOPS}
        gc.freeze()  # loaded code stays shared among processes
        try:
            self._start_first()
            while len(self._alive) < self.number and self._start():
                pass
            while self._alive:
                self._replace(*os.waitpid(-1, 0))
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)
            os.close(self._lifeline)
            os.close(self._held)

    def _start_first(self) -> None:
        """Start a worker and wait until it can be asked; errors in a declaration are reported here."""
        read, write = os.pipe()
        pid = self._start(write)
        os.close(write)
        with os.fdopen(read, "rb") as said:
            told = said.read()
        if told == b"ready":
            self.ready()
            return
        if pid is not None:
            del self._alive[pid]
            os.waitpid(pid, 0)
        if not self._is_stopping:
            raise _error_of(told)

    def _start(self, tell: int | None = None) -> int | None:
        """Fork a worker and return its process; None if all are stopping."""
        sys.stdout.flush()
        sys.stderr.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)  # else a new worker would take one for the parent's
        pid = None
        if not self._is_stopping:
            pid = os.fork()
            if not pid:
                self._become_worker(tell)
            self._alive[pid] = time.monotonic()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        return pid

    def _become_worker(self, tell: int | None) -> NoReturn:
        """Do the work, and end this process; the parent's code does not continue in it."""
        code = 1
        try:
            for each in STOPS:
                signal.signal(each, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
            os.close(self._held)
            threading.Thread(target=_end_with_parent, args=(self._lifeline,), daemon=True).start()
            self.work(lambda: _say(tell, b"ready"))
            code = 0
        except BaseException as error:  # noqa: BLE001 - the parent goes on; only the class of a foreign error is shown
            named = isinstance(error, TacitError)
            log.error("a worker ended: %s", type(error).__name__)  # noqa: TRY400 - a trace may quote a row
            _say(tell, json.dumps([type(error).__name__, str(error) if named else ""]).encode())
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)

    def _replace(self, pid: int, _status: int) -> None:
        """Start another worker for one that has ended, unless it was stopped on purpose."""
        began = self._alive.pop(pid, None)
        if began is None or self._is_stopping:
            return
        self._too_soon = self._too_soon + 1 if time.monotonic() - began < SOON_SECONDS else 0
        log.error("a worker ended, and another is started")
        if self._too_soon:
            self.sleep(min(0.05 * 2**self._too_soon, PAUSE_SECONDS_MAX))
        self._start()

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        """Tell every worker to finish; on a second signal they end at once, and charges stay."""
        how = signal.SIGKILL if self._is_stopping and number == signal.SIGINT else signal.SIGTERM
        self._is_stopping = True
        self.stopping()
        for pid in self._alive:
            _tell_to_stop(pid, how)


def _end_with_parent(lifeline: int) -> None:
    """Stop this process when its parent is gone, however that ended."""
    with suppress(OSError):
        os.read(lifeline, 1)
        os.kill(os.getpid(), signal.SIGTERM)


def _tell_to_stop(pid: int, how: signal.Signals = signal.SIGTERM) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, how)


def _say(where: int | None, what: bytes) -> None:
    if where is not None:
        with suppress(OSError):
            os.write(where, what)
            os.close(where)


def _error_of(told: bytes) -> TacitError:
    """Return what a worker could not begin for, as the error it was."""
    name, text = json.loads(told) if told else ("", "")
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, TacitError):
        return kind(text)
    return TacitError(f"the server could not start ({name or 'its process ended'})\nhint: tacit serve --workers 1")
