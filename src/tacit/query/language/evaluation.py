"""The catalogue's functions on values in Python, for the noisy answer; arguments are never None.

Whole numbers have no limit of 64 bits here, unless a record defines a result beyond it as NULL.
"""

import re
from datetime import date, datetime, timedelta
from fractions import Fraction
from math import isinf
from typing import Any

from tacit.query.language.functions import as_float, comparable, settled
from tacit.query.nodes import INT_LEAST, INT_MOST
from tacit.tables import TEXT_BYTES_MAX

BLANKS = " \t\n\r\v\f"
_EXACT_FLOATS = 2.0**53
_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_DECIMAL = re.compile(r"[+-]?(?=\.?[0-9])[0-9]{0,40}(\.[0-9]{0,40})?")
_FLOAT = re.compile(rf"{_DECIMAL.pattern}([eE][+-]?[0-9]{{1,3}})?")
_MOMENT = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"(?:[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?)?"
)
_OFFSET_HOURS_MOST = 15
_SECONDS = {"day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}


# --- numbers ---


def remainder(top: Any, bottom: Any) -> Any:
    """Return what is left of a whole number, with its sign; None for a divisor of 0."""
    if bottom == 0 or any(isinstance(each, float) and isinf(each) for each in (top, bottom)):
        return None
    left = abs(comparable(top)) % abs(comparable(bottom))
    return settled(left if top >= 0 else -left)


def rounded(value: Any, places: int = 0) -> Any:
    """Return a number rounded to places, halves away from 0; a float by scaling it, as floats are on rows."""
    if places and isinstance(value, float):
        return _rounded_float(value, places)
    if isinstance(value, float) and isinf(value):
        return None
    scaled = _half_away(Fraction(value) * Fraction(10) ** places) * Fraction(10) ** -places
    if places and isinstance(value, Fraction):
        return scaled
    return in_64_bits(int(scaled))


def _rounded_float(value: float, places: int) -> float:
    power = float(10 ** abs(places))
    scaled = value * power if places > 0 else value / power
    if not abs(scaled) < _EXACT_FLOATS:
        return value
    whole = float(_half_away(Fraction(scaled)))
    return whole / power if places > 0 else whole * power


def _half_away(value: Fraction) -> int:
    whole = (2 * abs(value) + 1) // 2
    return whole if value >= 0 else -whole


def floor_of(value: Any) -> int | None:
    return None if isinstance(value, float) and isinf(value) else in_64_bits(Fraction(value) // 1)


def ceil_of(value: Any) -> int | None:
    return None if isinstance(value, float) and isinf(value) else in_64_bits(-(-Fraction(value) // 1))


def in_64_bits(value: int) -> int | None:
    return value if INT_LEAST <= value <= INT_MOST else None


# --- texts ---


def substring(text: str, start: int, length: int | None = None) -> str:
    return text[start - 1 :] if length is None else text[start - 1 : start - 1 + length]


def concatenated(*texts: str) -> str | None:
    """Return the texts one after the other, or None if that is longer than any text of a row."""
    return _fitting("".join(texts))


def replaced(text: str, old: str, new: str) -> str | None:
    """Return a text with each old part become new, or None if that is longer than any text of a row."""
    return _fitting(text.replace(old, new))


def _fitting(text: str) -> str | None:
    return text if len(text.encode("utf-8", "surrogatepass")) <= TEXT_BYTES_MAX else None


# --- times ---


def part_of(part: str, when: date) -> int:
    """Return a part of a date or timestamp."""
    year, week, weekday = when.isocalendar()
    special = {"isoyear": year, "week": week, "isodow": weekday, "dow": weekday % 7}
    special |= {"doy": when.timetuple().tm_yday, "quarter": (when.month + 2) // 3}
    return special[part] if part in special else int(getattr(when, part))


def start_of(unit: str, when: date) -> date:
    """Return the start of the unit that a time is in; a date stays a date."""
    start = _start(unit, comparable(when))
    return start if isinstance(when, datetime) else start.date()


def _start(unit: str, when: datetime) -> datetime:
    if unit in _MONTHS:
        size = _MONTHS[unit]
        return datetime(when.year, (when.month - 1) // size * size + 1, 1)  # noqa: DTZ001 - without a zone
    midnight = when.replace(hour=0, minute=0, second=0, microsecond=0)
    if unit == "week":
        return midnight - timedelta(days=midnight.weekday())
    seconds = int((when - midnight).total_seconds()) // _SECONDS[unit] * _SECONDS[unit]
    return midnight + timedelta(seconds=seconds)


def starts_between(unit: str, first: date, last: date) -> int:
    """Return how many starts of a unit lie after one time, up to another."""
    one, two = _start(unit, comparable(first)), _start(unit, comparable(last))
    if unit in _MONTHS:
        return ((two.year - one.year) * 12 + two.month - one.month) // _MONTHS[unit]
    return (two - one) // timedelta(seconds=_SECONDS["day"] * 7 if unit == "week" else _SECONDS[unit])


def moved(when: date, number: int, step: str) -> date | None:
    """Return a time that much later; None if it leaves the calendar."""
    try:
        if step == "month":
            return _months_later(when, number)
        if step == "day":
            return when + timedelta(days=number)
        later: datetime = comparable(when) + timedelta(seconds=number)
    except (OverflowError, ValueError):
        return None
    return later


def _months_later(when: date, number: int) -> date:
    year, month = divmod(when.year * 12 + when.month - 1 + number, 12)
    following = date(year + (month == 11), (month + 1) % 12 + 1, 1) if (year, month) < (9999, 11) else None
    last = 31 if following is None else (following - timedelta(days=1)).day
    return when.replace(year=year, month=month + 1, day=min(when.day, last))


# --- casts ---


def as_bool(value: Any) -> bool | None:
    """Return whether a number is not 0, or a text's truth value."""
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip(BLANKS).lower()) if value.isascii() else None
    return bool(value)


def as_int(value: Any) -> int | None:
    """Return a number toward 0, or the whole number a text says."""
    if isinstance(value, str):
        text = value.strip(BLANKS)
        return in_64_bits(int(text)) if _WHOLE.fullmatch(text) else None
    return None if isinstance(value, float) and isinf(value) else in_64_bits(int(value))


def to_float(value: Any) -> float | None:
    """Return the nearest float, or the one that a text says."""
    if not isinstance(value, str):
        return as_float(value)
    text = value.strip(BLANKS)
    read = float(text) if _FLOAT.fullmatch(text) else float("inf")
    return None if isinf(read) else read + 0.0


def to_decimal(value: Any, digits: int, scale: int) -> Fraction | None:
    """Return a number with these digits after the point, halves away from 0; None if it needs more digits in all."""
    if isinstance(value, str):
        text = value.strip(BLANKS)
        if not _DECIMAL.fullmatch(text):
            return None
        value = Fraction(text)
    if isinstance(value, float) and isinf(value):
        return None
    steps = _half_away(Fraction(value) * 10**scale)
    return None if abs(steps) >= 10**digits else Fraction(steps, 10**scale)


def to_text(value: Any, scale: int | None = None) -> str:
    """Return a value as text; a decimal has all the digits of its scale."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if scale is not None and isinstance(value, int | Fraction):
        steps = str(abs(int(Fraction(value) * 10**scale))).rjust(scale + 1, "0")
        whole = steps[: len(steps) - scale]
        return ("-" if value < 0 else "") + whole + ("." + steps[-scale:] if scale else "")
    return value.isoformat() if isinstance(value, date) else str(value)


def as_date(value: Any) -> date | None:
    """Return the day of a time or of a text that says one."""
    moment = as_timestamp(value)
    return None if moment is None else moment.date()


def as_timestamp(value: Any) -> datetime | None:
    """Return a date's midnight, a timestamp itself, or a text as a timestamp, in UTC if it has an offset."""
    if not isinstance(value, str):
        found: datetime = comparable(value)
        return found
    written = _MOMENT.fullmatch(value.strip(BLANKS))
    if written is None:
        return None
    year, month, day, hour, minute, second, fraction, offset = written.groups()
    try:
        clock = timedelta(hours=int(hour or 0), minutes=int(minute or 0), seconds=int(second or 0))
        moment = datetime(int(year), int(month), int(day))  # noqa: DTZ001 - without a zone
        ahead = _minutes_ahead(offset)
        in_clock = int(hour or 0) < 24 and int(minute or 0) < 60 and int(second or 0) < 60
        if ahead is None or not in_clock:
            return None
        return moment + clock + timedelta(microseconds=int((fraction or "0")[:6].ljust(6, "0")), minutes=-ahead)
    except (ValueError, OverflowError):
        return None


def _minutes_ahead(offset: str | None) -> int | None:
    """Return how far an offset is ahead of UTC; None if the offset is invalid."""
    if offset is None or offset == "Z":
        return 0
    hours, minutes = int(offset[1:3]), int(offset[3:].lstrip(":") or 0)
    if hours > _OFFSET_HOURS_MOST or minutes > 59:
        return None
    return (60 * hours + minutes) * (-1 if offset[0] == "-" else 1)
