"""The public clock: the time at which an outcome may leave, chosen so that it does not reveal the rows.

An answer takes longer for a person with many rows, a predicate that is slow on some rows, or an engine that fails
early. So an outcome after a charge does not leave when it is ready. The outcome leaves at a public tick: T, 2T, 4T or
8T after the question was asked, and after 8T at four ticks in each doubling (10T, 12T, 14T, 16T, 20T ...), so that a
long question does not wait for twice its time. T is declared for a table and is not secret. A question about several
tables has the longest T of them. A refusal before the charge depends only on public facts, and leaves at once.

Ledger entries have times too. So an answer is written in the middle between two ticks, and leaves at the second of
them: a receipt and a certificate show no more than the tick does. Facts that a question learns first are written in
such a middle too, counted from the entry before, and the answer leaves at the first tick after all of them.

`holding` waits by itself. A server's threads are needed elsewhere, so it hands over a `PublicClock` with `noting`, and
waits by its own means. `past_the_charge` is called by the one way to pay (asking/paying.py) as soon as there is a
charge, or an answer that was paid for before.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise

from tacit.errors import InvalidParameter

Hold = int | float | str | Fraction

HOLD_MOST = 3600
DOUBLED_UP_TO = 8  # times T; from there on each doubling has several ticks
TICKS_IN_A_DOUBLING = 4
_UNITS = {"ms": Fraction(1, 1000), "s": Fraction(1), "m": Fraction(60)}
_WRITTEN = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) ?(ms|s|m)", re.ASCII)


@dataclass
class PublicClock:
    """The ticks of one call, the first `every` seconds after it began."""

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
        """Wait for the first middle between two ticks, counted from the last entry: the result is written then.

        A failure waits for the same time. Facts that a call learns first are written so too.
        """
        due = self._taken() - self.written
        self.written += next(middle for middle in _middles(self.every) if middle >= due)
        self.wait(max(float(self.written - self._taken()), 0.0))

    def seconds_left(self) -> float:
        """Return the wait of an outcome that is ready now: 0 if it was not charged."""
        if not self.is_past_charge:
            return 0.0
        taken = self._taken()
        leaves = next(tick for tick in _ticks(self.every) if tick >= taken and tick > self.written)
        return max(float(leaves - self._taken()), 0.0)

    def _taken(self) -> Fraction:
        return Fraction(self.now()) - Fraction(self.began)


def _ticks(every: Fraction) -> Iterator[Fraction]:
    """Yield when outcomes may leave: T, 2T, 4T, 8T, then four ticks in each doubling."""
    tick, doubled = every, every * DOUBLED_UP_TO
    while tick < doubled:
        yield tick
        tick *= 2
    while True:
        for step in range(TICKS_IN_A_DOUBLING):
            yield doubled + doubled * step / TICKS_IN_A_DOUBLING
        doubled *= 2


def _middles(every: Fraction) -> Iterator[Fraction]:
    """Yield the middles between neighbouring ticks; the first is T/2."""
    yield every / 2
    yield from ((one + other) / 2 for one, other in pairwise(_ticks(every)))


def longest(holds: Iterable[Fraction | None]) -> Fraction | None:
    """Return the longest of several holds; None if there are none."""
    return max((each for each in holds if each is not None), default=None)


_CURRENT: ContextVar[PublicClock | None] = ContextVar("tacit_public_clock", default=None)


def past_the_charge(*, is_new: bool = False) -> None:
    """Note that from here on rows, or facts learned from them, decide the time; and a charge just made."""
    clock = _CURRENT.get()
    if clock is not None:
        clock.is_past_charge = True
        clock.has_charged = clock.has_charged or is_new


def wait_to_write() -> None:
    """Wait until an outcome that is ready may be written: called after reading rows, for every outcome."""
    clock = _CURRENT.get()
    if clock is not None:
        clock.wait_to_write()


@contextmanager
def noting(clock: PublicClock) -> Iterator[None]:
    """Note on this clock whether what runs inside charges anything; the giver of the clock waits."""
    before = _CURRENT.set(clock)
    try:
        yield
    finally:
        _CURRENT.reset(before)


@contextmanager
def holding(every: Fraction | None, *, sleep: Callable[[float], None] = time.sleep) -> Iterator[None]:
    """Let every outcome inside after a charge leave at a public tick: a value, an error, an interruption.

    Inside another such call the outer one waits, on ticks that are at least that far apart.
    """
    outer = _CURRENT.get()
    if outer is not None:
        outer.every = max(outer.every, every or outer.every)
    if every is None or outer is not None:
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
