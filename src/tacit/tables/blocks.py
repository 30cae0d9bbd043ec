"""Blocks: the calendar day, month or year of a row, by one of its columns, each with a budget of its own.

A block begins when clocks of its zone first show its midnight or later, and ends where the next begins: so blocks have
no gaps and no overlaps. Only the blocks of a question's constants are computed, never a row's.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from tacit.errors import InvalidParameter, did_you_mean
from tacit.tables.schema import ColumnFacts, RowBlocks

# How much of a date's text names its block.
EVERY = {"day": 10, "month": 7, "year": 4}
# A question that allows more blocks is charged to all of them.
BLOCKS_MOST = 400
_TICK = timedelta(microseconds=1)
_EXAMPLE = 'block={"column": "day", "every": "month", "zone": "Europe/Berlin"}'


def read_blocks(
    written: object, columns: Mapping[str, ColumnFacts], *, instants: Collection[str], read_in_utc: Collection[str] = ()
) -> RowBlocks:
    """Return the declared blocks, checked against the columns, of which `instants` have a zone; no row is read.

    Of times in texts, which may have an offset, and of dates made from instants, only the clocks of UTC are known.
    """
    if not isinstance(written, Mapping) or {"column", "every"} - set(written) or set(written) - {*_NAMES}:
        raise InvalidParameter(f"block must have column and every, and may have zone\nhint: {_EXAMPLE}")
    column, every, zone = (written.get(name) for name in _NAMES)
    if not isinstance(every, str) or every not in EVERY:
        raise InvalidParameter(f"a block is every {', '.join(EVERY)}\nhint: {_EXAMPLE}")
    if not isinstance(column, str) or column not in columns:
        raise InvalidParameter(f"the table has no column '{column}' for blocks{did_you_mean(str(column), columns)}")
    kind = columns[column].type
    if kind not in ("date", "timestamp"):
        raise InvalidParameter(f"blocks need dates or timestamps, and '{column}' is {kind}\nhint: {_EXAMPLE}")
    if zone is None and kind == "timestamp":
        raise InvalidParameter(
            f"the times of '{column}' need a zone: it decides on which day, and so in which block, a moment is"
            f"\nhint: {_EXAMPLE}"
        )
    if zone is not None:
        zone_of(zone)
    if column in read_in_utc and zone not in (None, "UTC"):
        raise InvalidParameter(
            f"'{column}' is read in UTC, since it is made from texts or other times, so its blocks are those of UTC"
            '\nhint: "zone": "UTC", or store the column as dates or timestamps'
        )
    return RowBlocks(column, every, zone, is_instant=kind == "timestamp" and column in instants)


_NAMES = ("column", "every", "zone")


def zone_of(name: object) -> tzinfo:
    """Return the zone of a name, or refuse it."""
    try:
        return ZoneInfo(name)  # type: ignore[arg-type]
    except (KeyError, ValueError, TypeError, OSError):  # an unknown zone is a KeyError
        raise InvalidParameter(f"there is no time zone '{name}'\nhint: such as Europe/Berlin, or UTC") from None


def blocks_between(blocks: RowBlocks, low: date, high: date) -> tuple[str, ...] | None:
    """Return the names of the blocks from one moment to another, both included; None for too many, or beyond years.

    >>> blocks_between(RowBlocks("day", "month"), date(2026, 11, 30), date(2027, 1, 1))
    ('2026-11', '2026-12', '2027-01')
    """
    try:
        first, last = _begin_of(blocks, low), _begin_of(blocks, high)
        found: list[str] = []
        while first <= last:
            if len(found) == BLOCKS_MOST:
                return None
            found.append(first.isoformat()[: EVERY[blocks.every]])
            first = _next(blocks.every, first)
    except (OverflowError, ValueError):
        return None
    return tuple(found)


def _begin_of(blocks: RowBlocks, when: date) -> datetime:
    """Return the first midnight of the block of a moment, as its zone's clocks show it."""
    if not isinstance(when, datetime) or not blocks.is_instant:
        return _floor(blocks.every, when)
    zone = zone_of(blocks.zone)
    begin = _floor(blocks.every, when.replace(tzinfo=UTC).astimezone(zone))
    while when < begin_in_utc(begin, zone):
        begin = _floor(blocks.every, begin - _TICK)
    while when >= begin_in_utc(following := _next(blocks.every, begin), zone):
        begin = following
    return begin


def begin_in_utc(midnight: datetime, zone: tzinfo) -> datetime:
    """Return the first instant, in UTC, at which clocks of a zone show a midnight or later."""
    early, late = (midnight.replace(tzinfo=zone, fold=fold).astimezone(UTC).replace(tzinfo=None) for fold in (1, 0))
    if early >= late:  # shown once, or twice: then `late` is the first of both
        return late
    while late - early > _TICK:  # never shown, since clocks are set forward over it
        middle = early + (late - early) // 2
        shown = middle.replace(tzinfo=UTC).astimezone(zone).replace(tzinfo=None)
        early, late = (early, middle) if shown >= midnight else (middle, late)
    return late


def _floor(every: str, when: date) -> datetime:
    return datetime(  # noqa: DTZ001 - as clocks show it
        when.year, 1 if every == "year" else when.month, when.day if every == "day" else 1
    )


def _next(every: str, begin: datetime) -> datetime:
    return _floor(every, begin + timedelta(days={"day": 1, "month": 31, "year": 366}[every]))
