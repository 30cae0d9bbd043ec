"""The clock: the time as text that sorts in order of time, and how a wrong clock is corrected.

A ledger's time never goes back by itself, so a clock set back cannot re-open a period. A clock far ahead would close
every period until its time comes: it is refused. Entries that a wrong clock has written are corrected by the curator.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tacit.errors import InvalidParameter, LedgerError
from tacit.ledger.draft import LedgerDraft
from tacit.ledger.entry import Entry

Clock = Callable[[], datetime]


def system_clock() -> datetime:
    return datetime.now(UTC)


def time_text(clock: Clock) -> str:
    """Return the clock's time in UTC, to the microsecond, as text that sorts by time.

    >>> time_text(lambda: datetime(2026, 11, 15, 8, tzinfo=UTC))
    '2026-11-15T08:00:00.000000Z'
    """
    now = clock()
    if now.tzinfo is None:
        raise LedgerError("the ledger's clock lacks a time zone\nhint: give one that returns an aware datetime")
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


# A ledger that was unused for longer than this asks whether the clock is right.
FAR_AHEAD = timedelta(days=400)
# A smaller lead passes within a period, and correcting it could re-open a period that was closed.
CORRECTABLE = timedelta(days=32)


def refuse_far_ahead(draft: LedgerDraft) -> None:
    """Refuse to write at a time far beyond the last entry's: it would close every period until then."""
    if draft.now[:4] > draft.head.time[:4] and _is_far_ahead(draft):
        raise LedgerError(
            f"the clock says {draft.now[:10]}, and this ledger's last entry is of {draft.head.time[:10]}; "
            "no charge was made and no row was read"
            "\nhint: set the clock; or, if it is right, have the curator confirm it: tacit ledger clock --reason '...'"
        )


def _is_far_ahead(draft: LedgerDraft) -> bool:
    return _time_of(draft.now) - _time_of(draft.head.time) > FAR_AHEAD


def correct(draft: LedgerDraft, reason: str) -> Entry:
    """Set the ledger's time to the clock's, for the record: forward if it is far ahead, or back from a wrong one.

    A charge stays in its period, even if the clock enters that period again.
    """
    before = draft.head.time
    if not _is_far_ahead(draft):
        _refuse_to_reopen(draft)
    draft.time = draft.now
    return draft.append({"kind": "clock", "reason": reason, "before": before})


def _refuse_to_reopen(draft: LedgerDraft) -> None:
    """Refuse a correction unless all later entries are of a clock that was far ahead of this one."""
    number = draft.head.number
    first: str | None = None
    while number > 0 and (entry := draft.entry(number)) is not None and entry.record["time"] > draft.now:
        # after an earlier correction times fall once, so the last one seen need not be the earliest
        first, number = min(first or entry.record["time"], entry.record["time"]), number - 1
    if first is None:
        raise InvalidParameter("the ledger is not ahead of the clock; no correction is needed")
    if _time_of(first) - _time_of(draft.now) <= CORRECTABLE:
        raise InvalidParameter(
            f"the ledger has entries of {first[:10]}, which is not far ahead of the clock ({draft.now[:10]}): "
            "going back could re-open a period that was closed"
            "\nhint: check the clock; if it is right, the ledger goes on when its time has come"
        )


def _time_of(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)
