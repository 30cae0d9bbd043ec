"""The clock: the time as text that sorts as time does."""

from collections.abc import Callable
from datetime import UTC, datetime

from tacit.errors import LedgerError

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    """Return the time of the operating system."""
    return datetime.now(UTC)


def time_text(clock: Clock) -> str:
    """Return the clock's time in UTC, to the microsecond, in a form whose order is that of time.

    >>> time_text(lambda: datetime(2026, 11, 15, 8, tzinfo=UTC))
    '2026-11-15T08:00:00.000000Z'
    """
    now = clock()
    if now.tzinfo is None:
        raise LedgerError("the ledger's clock has no time zone\nhint: give one that returns an aware datetime")
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")
