"""The public clock: when an outcome may leave, so that the time it took tells nothing of the rows.

One person with many rows makes an answer slower, and so do a predicate that is slow on some rows and an engine that
fails early. So nothing that happens after a charge leaves when it is ready. It leaves at the first public tick: T after
the question was asked, or 2T, 4T, 8T. T is declared for a table and no secret. A refusal before the charge depends on
public facts alone, and is told at once. Half-way to its tick an answer is written to the ledger, whose entries have
times too: a receipt and a certificate tell no more than the tick does. What a question learns first is written T/2 (or
T, 2T …) after the entry before, and the answer leaves at the first of the question's own ticks after all of it.

`holding` waits by itself. A server, whose threads have other things to do, hands over a `PublicClock` with `noting`,
and waits as it likes. `past_the_charge` is called by the one way to pay (paying.py) as soon as there is a charge, or an
answer that was paid for before.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction

from tacit.errors import InvalidParameter

Hold = int | float | str | Fraction

HOLD_MOST = 3600
_UNITS = {"ms": Fraction(1, 1000), "s": Fraction(1), "m": Fraction(60)}
_WRITTEN = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) ?(ms|s|m)", re.ASCII)


@dataclass
class PublicClock:
    """The ticks of one call: `every` seconds after it began, then twice, four times, … as long after."""

    every: Fraction
    now: Callable[[], float] = time.monotonic
    wait: Callable[[float], None] = time.sleep
    began: float = field(default=0.0, init=False)
    is_past_charge: bool = field(default=False, init=False)
    has_charged: bool = field(default=False, init=False)  # anything in this call, a fact too
    written: Fraction = field(default=Fraction(0), init=False)  # how long after the beginning the last entry was due

    def __post_init__(self) -> None:
        self.began = self.now()

    def wait_to_write(self) -> None:
        """Wait for half a tick, or twice, four times … as long, after an entry: what was computed is written then.

        A failure waits as long. What a call learns first is so written too, and each part has its own half tick.
        """
        every, due = self.every / 2, self._taken() - self.written
        self.written += every * 2 ** _first(every, due)
        self.wait(max(float(self.written - self._taken()), 0.0))

    def seconds_left(self) -> float:
        """Return how long an outcome that is ready now has to wait: not at all if nothing was charged."""
        if not self.is_past_charge:
            return 0.0
        leaves = self.every * 2 ** _first(self.every, self._taken())
        if leaves <= self.written:  # it leaves after what was written
            leaves *= 2
        return max(float(leaves - self._taken()), 0.0)

    def _taken(self) -> Fraction:
        return Fraction(self.now()) - Fraction(self.began)


def _first(every: Fraction, taken: Fraction) -> int:
    """Return the first number n for which `every` times 2^n is not over yet."""
    number = 0
    while every * 2**number < taken:
        number += 1
    return number


_CURRENT: ContextVar[PublicClock | None] = ContextVar("tacit_public_clock", default=None)


def past_the_charge(*, is_new: bool = False) -> None:
    """Note that from here on rows, or what was learned of them, decide how long things take; and a charge just made."""
    clock = _CURRENT.get()
    if clock is not None:
        clock.is_past_charge = True
        clock.has_charged = clock.has_charged or is_new


def wait_to_write() -> None:
    """Wait until an outcome that is ready may be written: called where rows were read, whatever came of it."""
    clock = _CURRENT.get()
    if clock is not None:
        clock.wait_to_write()


@contextmanager
def noting(clock: PublicClock) -> Iterator[None]:
    """Note on this clock whether what runs inside charges anything; whoever gave the clock waits."""
    before = _CURRENT.set(clock)
    try:
        yield
    finally:
        _CURRENT.reset(before)


@contextmanager
def holding(every: Fraction | None, *, sleep: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """Let whatever happens inside after a charge leave at a public tick: a value, an error, an interruption.

    Inside of another such call that one waits.
    """
    if every is None or _CURRENT.get() is not None:
        yield
        return
    clock = PublicClock(every, wait=sleep)
    try:
        with noting(clock):
            yield
    finally:
        sleep(clock.seconds_left())


def read_hold(written: object, *, name: str = "hold") -> Fraction | None:
    """Return how many seconds apart ticks are: from a number of seconds, or a text such as "2s" or "500ms".

    >>> read_hold("500ms"), read_hold(2), read_hold(None)
    (Fraction(1, 2), Fraction(2, 1), None)
    """
    if written is None:
        return None
    found: Fraction | None = None
    if isinstance(written, str) and (parts := _WRITTEN.fullmatch(written.strip())):
        found = Fraction(parts[1]) * _UNITS[parts[2]]
    elif isinstance(written, int | Fraction) and not isinstance(written, bool):
        found = Fraction(written)
    elif isinstance(written, float) and 0 < written <= HOLD_MOST:
        found = Fraction(repr(written))
    if found is None or not 0 < found <= HOLD_MOST:
        raise InvalidParameter(
            f"{name} must be a time of at most an hour, by which every answer is ready\nhint: {name}='2s', or '500ms'"
        )
    return found


def hold_text(every: Fraction) -> str:
    """Return a hold as people write it.

    >>> hold_text(Fraction(1, 2)), hold_text(Fraction(2))
    ('500ms', '2s')
    """
    return f"{every}s" if every.denominator == 1 else f"{float(every * 1000):g}ms"
