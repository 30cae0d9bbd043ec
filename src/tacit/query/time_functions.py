"""EXTRACT, DATE_TRUNC, DATE_DIFF and intervals: their types, their words, and their one canonical form."""

from tacit.errors import QueryRefused
from tacit.query.kind import DATE, INT, TIMESTAMP, Kind, phrase, value_of
from tacit.query.nodes import Call, Expression, Value
from tacit.query.rule import Function, Kinds, refuse_count
from tacit.query.show import Shown

DAY_PARTS = ("year", "isoyear", "quarter", "month", "week", "day", "doy", "dow", "isodow")
CLOCK = ("hour", "minute", "second")
PARTS = (*DAY_PARTS, *CLOCK)
UNITS = ("year", "quarter", "month", "week", "day", *CLOCK)

# an interval of each unit as so many months, days or seconds
STEPS = {
    "year": ("month", 12),
    "quarter": ("month", 3),
    "month": ("month", 1),
    "week": ("day", 7),
    "day": ("day", 1),
    "hour": ("second", 3_600),
    "minute": ("second", 60),
    "second": ("second", 1),
}
_DAYS = 3_652_059  # from 0001-01-01 to 9999-12-31
REACH = {"month": 12 * 9_999 - 1, "day": _DAYS - 1, "second": _DAYS * 86_400 - 1}


def _part(kinds: Kinds, where: Shown) -> Kind:
    refuse_count(kinds, where, (2,), "EXTRACT(YEAR FROM x)")
    _unit(where, 0, PARTS, "EXTRACT(YEAR FROM x)")
    _times(kinds[1:], where, clock=where.constant(0) in CLOCK)
    return INT


def _start(kinds: Kinds, where: Shown) -> Kind:
    refuse_count(kinds, where, (2,), "DATE_TRUNC('month', x)")
    _unit(where, 0, UNITS, "DATE_TRUNC('month', x)")
    _times(kinds[1:], where, clock=where.constant(0) in CLOCK)
    return kinds[1]


def _difference(kinds: Kinds, where: Shown) -> Kind:
    refuse_count(kinds, where, (3,), "DATE_DIFF('day', a, b)")
    _unit(where, 0, UNITS, "DATE_DIFF('day', a, b)")
    _times(kinds[1:], where)
    return INT


def _moved(kinds: Kinds, where: Shown) -> Kind:
    refuse_count(kinds, where, (3,), "x + INTERVAL 3 DAY")
    _times(kinds[:1], where)
    unit, number = _unit(where, 2, tuple(STEPS), "x + INTERVAL 3 DAY"), where.constant(1)
    step, size = STEPS[unit]
    if isinstance(number, bool) or not isinstance(number, int) or abs(number) * size > REACH[step]:
        raise QueryRefused(
            f"{where}: an interval is a whole constant, no longer than the years 1 to 9999\nhint: x + INTERVAL 3 DAY"
        )
    return DATE if kinds[0] == DATE and step != "second" else TIMESTAMP


def in_steps(call: Call) -> Expression:
    """Return an interval in months, days or seconds: a year is 12 months, a week 7 days, an hour 3600 seconds."""
    moved, number, unit = call.arguments
    if not (isinstance(number, Value) and isinstance(number.value, int) and isinstance(unit, Value)):
        return call
    step, size = STEPS[str(unit.value)]
    return Call(call.function, (moved, value_of(number.value * size), value_of(step)))


def _unit(where: Shown, place: int, units: tuple[str, ...], form: str) -> str:
    unit = where.constant(place)
    if not isinstance(unit, str) or unit not in units:
        raise QueryRefused(f"{where}: the units are {', '.join(units)}\nhint: write {form}")
    return unit


def _times(kinds: Kinds, where: Shown, *, clock: bool = False) -> None:
    for kind in kinds:
        if not kind.is_time:
            raise QueryRefused(
                f"{where} is for dates and timestamps, and has {phrase(kind)}"
                "\nhint: CAST(x AS DATE) reads text, DATE '2011-01-31' is a constant"
            )
        if clock and kind == DATE:
            raise QueryRefused(f"{where}: a date has no time of day\nhint: use a timestamp, or a unit of whole days")


ENTRIES = (
    Function(
        "extract",
        "EXTRACT(YEAR FROM a)",
        "a part of a date or timestamp, as an int: year, quarter 1 to 4, month, day, doy (day of the year from 1), week"
        " and isoyear (ISO 8601: weeks start on Monday, week 1 has the year's first Thursday), dow (Sunday is 0),"
        " isodow (Monday is 1, Sunday 7); of a timestamp also hour, minute, and second without its fraction. YEAR(a),"
        " QUARTER(a), MONTH(a), WEEK(a), DAY(a), HOUR(a), MINUTE(a) and SECOND(a) are the same",
        _part,
    ),
    Function(
        "date_trunc",
        "DATE_TRUNC('month', a)",
        "the start of the year, quarter, month, week (Monday), day, hour, minute or second that a is in; a date stays a"
        " date and has no hours",
        _start,
    ),
    Function(
        "date_diff",
        "DATE_DIFF('day', a, b)",
        "how many starts of a year, quarter, month, week (Monday), day, hour, minute or second lie after a, up to b;"
        " negative where b is before a; b - a of two dates is their DATE_DIFF in days",
        _difference,
    ),
    Function(
        "add_interval",
        "a + INTERVAL 3 MONTH or a - INTERVAL 3 MONTH",
        "that much later or earlier, by a whole constant of years, quarters, months, weeks, days, hours, minutes or"
        " seconds; a day that its new month does not have becomes the month's last; NULL where it leaves the years 1 to"
        " 9999; a date moved by hours, minutes or seconds is a timestamp, otherwise a date",
        _moved,
    ),
)
