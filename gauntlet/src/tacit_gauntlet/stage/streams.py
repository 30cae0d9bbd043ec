"""Counts that run on, for cases: visits by day, a ledger with a clock that a case sets, and the exact numbers."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

import tacit
from tacit.errors import InvalidParameter, LedgerError
from tacit.ledger import Ledger
from tacit_gauntlet.stage.ledger import open_at, private_home
from tacit_gauntlet.targets import planted, standing

BEGIN = datetime(2026, 3, 1, 8, tzinfo=UTC)
FIRST = BEGIN.date()
# Of this many days the squares of the rounded coefficients add up to more than those of the true ones.
DAYS = 13
Neighbours = Literal["add-remove", "replace"]
Rows = Sequence[tuple[int | None, date | None]]
CAP = 3
CROWD: Rows = [(100 + who, FIRST + timedelta(days=who % DAYS)) for who in range(30)]


@contextmanager
def opened_stream(place: Path, now: list[datetime]) -> Iterator[Ledger]:
    """Yield the ledger at a place, by the clock that `now` has."""
    with open_at(place, clock=lambda: now[0]) as ledger:
        yield ledger


def running_count(
    ledger: Ledger, rows: Rows = CROWD, cap: int = 1, budget: Any = None, neighbours: Neighbours = "add-remove"
) -> Any:
    """Return the running count of a table with these rows: of units, or of rows up to a cap."""
    ids, days = ([row[at] for row in rows] for at in (0, 1))
    table = tacit.table(
        pa.table({"id": pa.array(ids, pa.int64()), "day": pa.array(days, pa.date32())}),
        name="visits",
        version=1,
        unit="id",
        budget=budget or tacit.epsilon(1, delta=1e-6),
        ledger=ledger,
        neighbours=neighbours,
    )
    running = table.running("day", until=FIRST + timedelta(days=DAYS - 1), since=FIRST, zone="UTC")
    return running.count_units() if cap == 1 else running.count(rows_per_unit=cap)


def totals_of(answer: Any) -> list[int]:
    """Return the totals of an answer."""
    return [row[answer.aggregates[0]] for row in answer.to_dicts()]


def stepped_again(ledger: Ledger) -> list[int]:
    """Return what another step gives, or if it is refused, what was released."""
    running = running_count(ledger)
    try:
        return totals_of(running.step())
    except InvalidParameter:
        return totals_of(running.show())


def stepped_at_once(place: Path, now: list[datetime], many: int) -> list[tuple[int, ...]]:
    """Return what leaves of the same days on several threads, all of which have drawn before any has written."""
    gate, draw, outcomes = threading.Barrier(many), standing("numbers of a step"), list[tuple[int, ...]]()

    def together(exact: Any, event: Any) -> Any:
        noisy = draw(exact, event)
        gate.wait(60)
        return noisy

    def step() -> None:
        with opened_stream(place, now) as ledger:
            outcomes.append(tuple(totals_of(running_count(ledger).step())))

    with planted("numbers of a step", together):
        threads = [threading.Thread(target=step) for _ in range(many)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    return outcomes if len(outcomes) == many else [(), (0,)]


def refuses_copy(place: Path, now: list[datetime]) -> bool:
    """Return whether a copy from before a step is refused on a machine that has stepped since."""
    try:
        with opened_stream(place, now) as ledger:
            running_count(ledger).step()
    except LedgerError:
        return True
    return False


def exact_stream(rows: Rows, cap: int, pause: int, neighbours: Neighbours = "add-remove") -> tuple[list[int], Fraction]:
    """Return the exact numbers of a stream, and the square of the move that its charge is for."""
    exact_numbers = list[int]()

    def hear(exact: Any, _event: Any) -> list[int]:
        exact_numbers.extend(int(each) for each in exact.values)
        return [0] * len(exact.values)

    now = [BEGIN]
    with private_home() as home, opened_stream(home / "l.db", now) as ledger, planted("numbers of a step", hear):
        running = running_count(ledger, rows, cap, neighbours=neighbours)
        running.start(epsilon=1)
        while len(exact_numbers) < DAYS:
            now[0] += timedelta(days=pause)
            running.step()
        charges = [entry.record for entry in ledger.entries() if entry.kind == "charge"]
    (event,) = charges[-1]["events"]
    return exact_numbers, Fraction(event["sensitivity_squared"])
