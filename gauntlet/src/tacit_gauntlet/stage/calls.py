"""Calls that learn and then ask, and another process that is stopped in one of them."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.asking.paying import Payment, spend
from tacit.ledger import Learning
from tacit.privacy import PureChoice
from tacit_gauntlet.stage.ledger import TENTH, Ledger, again, ask, open_at

KEY = "sizes"
FACT, ANSWER = TENTH, 7 * TENTH

Stop = Callable[[], None]


def learn(ledger: Ledger, analyst: str | None, stop: Stop = lambda: None) -> None:
    """Learn a fact that costs a tenth; stop between its charge and its answer."""

    learning = Learning("how many rows a unit has")
    with spend(ledger, again(ledger), Payment([PureChoice(FACT)], KEY, analyst=analyst, learning=learning)) as charge:
        if charge.stored is None:
            stop()
            charge.keep("learned")


def knows_fact(ledger: Ledger) -> bool:
    """Return whether the fact was learned."""
    return ledger.recall(again(ledger), question_key=KEY, is_fact=True) is not None


def call(own: Ledger, stop: Stop) -> None:
    """Learn and ask as one call of 0.8 in all, and stop in between; a process whose answer is refused ends with 1."""
    table = again(own)
    with own.call(table, [PureChoice(ANSWER)], beside=[PureChoice(FACT)], question_key="a call"):
        learn(own, None)
        stop()
        if ask(own, table, "the answer", epsilon=ANSWER) is None:
            os._exit(1)


def notice_waits(ledger: Ledger, met: threading.Event) -> None:
    """Set an event as soon as this ledger finds a lock that somebody else holds."""
    store: Any = ledger._store
    locks = store.locks

    class Noticing:
        def __getattr__(self, name: str) -> Any:
            return getattr(locks, name)

        def take(self, key: str) -> bool:
            is_free = bool(locks.take(key))
            if not is_free:
                met.set()
            return is_free

    store.locks = Noticing()


class Other:
    """Another process, which has stopped where its work says so by the time that this is made."""

    def __init__(self, path: Path, work: Callable[[Ledger, Stop], None]) -> None:
        stopped, says = os.pipe()
        hears, self._go = os.pipe()
        self._child = os.fork()
        if not self._child:
            signal.alarm(60)  # should nobody go on with it

            def stop() -> None:
                os.write(says, b"!")
                os.read(hears, 1)

            code = 70
            try:
                work(open_at(path), stop)
                code = 0
            finally:
                os._exit(code)
        os.close(says)
        os.close(hears)
        os.read(stopped, 1)
        os.close(stopped)

    def go_on(self) -> int:
        """Let it go on, and return how it ended."""
        os.write(self._go, b"!")
        return self._ended()

    def kill(self) -> None:
        """Kill it where it is."""
        os.kill(self._child, signal.SIGKILL)
        self._ended()

    def _ended(self) -> int:
        os.close(self._go)
        return os.waitstatus_to_exitcode(os.waitpid(self._child, 0)[1])
