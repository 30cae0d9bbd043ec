"""Blocks begin at the first instant at which a zone's clocks show midnight or later, and follow without a gap."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from tacit.errors import InvalidParameter
from tacit.tables import ColumnFacts, RowBlocks, blocks_between, read_blocks
from tacit.tables.blocks import BLOCKS_MOST, begin_in_utc

TICK = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("zone", "midnight", "begins"),
    [
        ("UTC", "2026-11-01", "2026-11-01T00:00"),
        ("Europe/Berlin", "2026-11-01", "2026-10-31T23:00"),
        ("Europe/Berlin", "2026-07-01", "2026-06-30T22:00"),
        ("America/St_Johns", "2009-11-01", "2009-11-01T02:30"),  # shown twice: the first
        ("America/Asuncion", "2017-10-01", "2017-10-01T04:00"),  # never shown: the change itself
        ("America/Toronto", "1919-03-31", "1919-03-31T04:30"),  # never shown, in the middle of a change
        ("Pacific/Apia", "2011-12-30", "2011-12-30T10:00"),  # a day that was left out
        ("Pacific/Apia", "2011-12-31", "2011-12-30T10:00"),
    ],
)
def test_a_block_begins_when_clocks_first_show_its_midnight_or_later(zone, midnight, begins):
    assert begin_in_utc(datetime.fromisoformat(midnight), ZoneInfo(zone)) == datetime.fromisoformat(begins)


@pytest.mark.parametrize(
    ("zone", "around"),
    [
        ("America/St_Johns", "2009-11-01T02:30"),
        ("America/Asuncion", "2017-10-01T04:00"),
        ("Pacific/Apia", "2011-12-30T10:00"),
        ("Europe/Berlin", "2026-10-25T01:00"),
    ],
)
@pytest.mark.parametrize("every", ["day", "month", "year"])
def test_blocks_never_go_back_whatever_clocks_do(zone, around, every):
    blocks = RowBlocks("at", every, zone, is_instant=True)
    moments = [datetime.fromisoformat(around) + timedelta(minutes=10 * step) for step in range(-200, 200)]
    found = [blocks_between(blocks, each, each) for each in moments]
    assert all(each is not None and len(each) == 1 for each in found)
    assert found == sorted(found)
    for each in moments:
        assert blocks_between(blocks, each - TICK, each)[-1:] == blocks_between(blocks, each, each)


def test_days_that_a_zone_left_out_hold_no_moment():
    days = RowBlocks("at", "day", "Pacific/Apia", is_instant=True)
    change = datetime(2011, 12, 30, 10)  # noqa: DTZ001 - as columns hold it
    assert blocks_between(days, change - TICK, change - TICK) == ("2011-12-29",)
    assert blocks_between(days, change, change) == ("2011-12-31",)


def test_times_without_a_zone_of_their_own_are_what_clocks_show():
    late = datetime(2026, 1, 1, 23, 59)  # noqa: DTZ001
    assert blocks_between(RowBlocks("at", "day", "Europe/Berlin"), late, late) == ("2026-01-01",)


def test_so_many_blocks_and_moments_beyond_the_calendar_are_all_blocks():
    days = RowBlocks("day", "day")
    assert len(blocks_between(days, date(2026, 1, 1), date(2026, 1, 1) + timedelta(BLOCKS_MOST - 1))) == BLOCKS_MOST
    assert blocks_between(days, date(2026, 1, 1), date(2026, 1, 1) + timedelta(BLOCKS_MOST)) is None
    assert blocks_between(days, date(9999, 12, 31), date(9999, 12, 31)) is None
    last = datetime(9999, 12, 31, 23)  # noqa: DTZ001
    assert blocks_between(RowBlocks("at", "day", "Asia/Tokyo", is_instant=True), last, last) is None


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ({"column": "at", "every": "month"}, "need a zone"),
        ({"column": "at", "every": "month", "zone": "Europe/Atlantis"}, "no time zone"),
        ({"column": "at", "every": "month", "zone": "../etc/passwd"}, "no time zone"),
        ({"column": "at", "every": "week", "zone": "UTC"}, "every day, month, year"),
        ({"column": "att", "every": "month", "zone": "UTC"}, "no column"),
        ({"column": "text", "every": "month"}, "need dates or timestamps"),
        ({"column": "at"}, "must have column and every"),
        ("month", "must have column and every"),
    ],
)
def test_what_is_no_block_is_refused_with_the_words(written, words):
    columns = {"at": ColumnFacts("timestamp"), "text": ColumnFacts("text")}
    with pytest.raises(InvalidParameter, match=words):
        read_blocks(written, columns, instants=())


def test_a_column_of_dates_needs_no_zone():
    assert read_blocks({"column": "day", "every": "year"}, {"day": ColumnFacts("date")}, instants=()) == RowBlocks(
        "day", "year"
    )
