"""Dates and timestamps on an engine: parts, starts, differences and intervals.

A date is made a timestamp before it is moved or cut, since some engines return one for the other. A time that would
leave the calendar becomes NULL before it is moved, so that no engine sees a year it does not have.
"""

from datetime import datetime, timedelta

import ibis
import ibis.expr.types as ir

from tacit.engine.conversion import nothing, type_name
from tacit.engine.made import Made, Translation
from tacit.query.kind import TIMESTAMP

_IBIS_UNITS = {
    "year": "Y",
    "quarter": "Q",
    "month": "M",
    "week": "W",
    "day": "D",
    "hour": "h",
    "minute": "m",
    "second": "s",
}
_FIRST, _LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001 - no zones here
_MONTHS = {"year": 12, "quarter": 3, "month": 1}


def _part(made: Made) -> ir.Value:
    return _part_of(made.cells[1].value, str(made.constant(0)))


def _part_of(time: ir.Value, part: str) -> ir.Value:
    if part == "isoyear":  # the year of the week's Thursday; not every engine has its own
        return _part_of(_start_of(time, "week") + ibis.interval(days=3), "year")
    if part in ("dow", "isodow"):
        from_monday = time.day_of_week.index().cast("int64")
        return from_monday + 1 if part == "isodow" else (from_monday + 1) % 7
    if part in ("week", "doy"):
        return (time.week_of_year() if part == "week" else time.day_of_year()).cast("int64")
    return getattr(time, part)().cast("int64")


def _start(made: Made) -> ir.Value:
    started = _start_of(made.cells[1].value, str(made.constant(0)))
    return started.cast("date") if made.kind.type == "date" else started


def _start_of(time: ir.Value, unit: str) -> ir.Value:
    return time.cast("timestamp(6)").truncate(_IBIS_UNITS[unit])


def _difference(made: Made) -> ir.Value:
    unit = str(made.constant(0))
    first, last = (cell.value for cell in made.cells[1:])
    if unit in _MONTHS:
        number = "quarter" if unit == "quarter" else "month"
        in_year = 12 // _MONTHS[unit]
        years = _part_of(last, "year") - _part_of(first, "year")
        if unit == "year":
            return years
        return years * in_year + _part_of(last, number) - _part_of(first, number)
    days = _day_of(last, unit).delta(_day_of(first, unit), unit="day").cast("int64")
    if unit == "week":
        return (days / 7).floor().cast("int64")  # whole weeks between Mondays, so exact
    total = days
    for part, size in (("hour", 24), ("minute", 60), ("second", 60)):
        if unit == "day":
            break
        total = total * size + _clock(last, part) - _clock(first, part)
        if part == unit:
            break
    return total


def _day_of(time: ir.Value, unit: str) -> ir.Value:
    if unit == "week":
        time = _start_of(time, "week")
    return time if time.type().is_date() else time.cast("date")


def _clock(time: ir.Value, part: str) -> ir.Value:
    """A part of the time of day; midnight's where there is none."""
    return ibis.literal(0, "int64") if time.type().is_date() else _part_of(time, part)


def _moved(made: Made) -> ir.Value:
    number, step = made.number(1), str(made.constant(2))
    time = made.cells[0].value.cast("timestamp(6)")
    limit = ibis.literal(_limit(number, step).isoformat(sep=" ")).cast("timestamp(6)")
    stays = time <= limit if number >= 0 else time >= limit
    kept = ibis.cases((stays, time), else_=nothing(TIMESTAMP))
    moved = kept + ibis.interval(**{f"{step}s": number})
    return moved.cast("date") if made.kind.type == "date" else moved.cast(type_name(TIMESTAMP))


def _limit(number: int, step: str) -> datetime:
    """The last time that so many steps later is still in the calendar; for negative steps the first one."""
    if step == "month":
        # months are counted from the calendar's year 0, so that January of year 1 is 12
        last = 12 * 9_999 + 11 - number if number >= 0 else 11 - number
        year, month = divmod(last + 1, 12)
        start = _LAST if year > 9_999 else datetime(year, month + 1, 1)  # noqa: DTZ001 - no zones here
        return start - timedelta(microseconds=1) if number > 0 else start
    span = timedelta(**{f"{step}s": abs(number)})
    return _LAST - span if number >= 0 else _FIRST + span


TIMES: dict[str, Translation] = {
    "extract": _part,
    "date_trunc": _start,
    "date_diff": _difference,
    "add_interval": _moved,
}
