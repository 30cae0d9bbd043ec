"""What the words say of functions of numbers, texts and times, as plain Python; the rest is `query_reference`."""

from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

from tacit.query.kind import Kind
from tacit.tables.cells import TEXT_BYTES_MAX


def extreme(name: str, arguments: Sequence[Any], order: Callable[[Any, Any], int]) -> Any:
    """LEAST or GREATEST of what is not NULL."""
    known = sorted((each for each in arguments if each is not None), key=cmp_to_key(order))
    return (known[0] if name == "least" else known[-1]) if known else None


def _abs(arguments: list[Any], _kind: Kind) -> Any:
    return _int(abs(arguments[0])) if isinstance(arguments[0], int) else abs(arguments[0])


def _floor(arguments: list[Any], _kind: Kind) -> Any:
    return None if _infinite(arguments[0]) else _int(Fraction(arguments[0]) // 1)


def _ceil(arguments: list[Any], _kind: Kind) -> Any:
    return None if _infinite(arguments[0]) else _int(-(-Fraction(arguments[0]) // 1))


def _round(arguments: list[Any], kind: Kind) -> Any:
    value, places = arguments[0], arguments[1] if len(arguments) == 2 else 0
    if isinstance(value, float) and places:
        return _round_float(value, places)
    if _infinite(value):
        return None
    rounded = _half_away(Fraction(value) * Fraction(10) ** places) * Fraction(10) ** -places
    return _int(int(rounded)) if kind.type == "int" else rounded


def _round_float(value: float, places: int) -> float:
    power = float(10 ** abs(places))
    scaled = value * power if places > 0 else value / power
    if not abs(scaled) < 2.0**53:
        return value
    whole = float(_half_away(Fraction(scaled)))
    return whole / power if places > 0 else whole * power


def _half_away(value: Fraction) -> int:
    size = (abs(value) * 2 + 1) // 2
    return size if value >= 0 else -size


def _infinite(value: Any) -> bool:
    return isinstance(value, float) and value in (float("inf"), float("-inf"))


def _int(value: int) -> int | None:
    return value if -(2**63) <= value < 2**63 else None


def _length(arguments: list[Any], _kind: Kind) -> int:
    return len(arguments[0])


def _substring(arguments: list[Any], _kind: Kind) -> str:
    text, start, *length = arguments
    return str(text)[start - 1 :][: length[0] if length else None]


def _concat(arguments: list[Any], _kind: Kind) -> str | None:
    return _short("".join(arguments))


def _short(made: str) -> str | None:
    return made if len(made.encode("utf-8")) <= TEXT_BYTES_MAX else None


def _replace(arguments: list[Any], _kind: Kind) -> str | None:
    """Found from left to right: what is replaced is not looked at again."""
    text, old, new = arguments
    made, here = "", 0
    while here < len(text):
        found = text[here : here + len(old)] == old
        made += new if found else text[here]
        here += len(old) if found else 1
    return _short(made)


def _extract(arguments: list[Any], _kind: Kind) -> int:
    part, when = arguments
    year, week, weekday = when.isocalendar()
    parts = {"isoyear": year, "week": week, "isodow": weekday, "dow": weekday % 7, "quarter": (when.month + 2) // 3}
    parts["doy"] = when.timetuple().tm_yday
    return parts[part] if part in parts else getattr(when, part)  # type: ignore[no-any-return]


def _trunc(arguments: list[Any], kind: Kind) -> Any:
    unit, when = arguments
    start = _start(_moment(when), unit)
    return start.date() if kind.type == "date" else start


def _start(when: datetime, unit: str) -> datetime:
    day = datetime.combine(when.date(), time())
    if unit == "week":
        return day - timedelta(days=day.weekday())
    month = {"year": 1, "quarter": (when.month - 1) // 3 * 3 + 1, "month": when.month}.get(unit)
    if month is not None:
        return day.replace(month=month, day=1)
    clock = {"day": (0, 0, 0), "hour": (when.hour, 0, 0), "minute": (when.hour, when.minute, 0)}
    hour, minute, second = clock.get(unit, (when.hour, when.minute, when.second))
    return day.replace(hour=hour, minute=minute, second=second)


def _diff(arguments: list[Any], _kind: Kind) -> int:
    """By the starts themselves: how many of them lie between the start before a and the one before b."""
    unit, first, last = arguments[0], *(_start(_moment(each), arguments[0]) for each in arguments[1:])
    if unit in ("year", "quarter", "month"):
        months = (last.year - first.year) * 12 + last.month - first.month
        return months // {"year": 12, "quarter": 3, "month": 1}[unit]
    size = {"week": 7 * 86_400, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}[unit]
    return (last - first) // timedelta(seconds=size)


def _move(arguments: list[Any], kind: Kind) -> Any:
    when, number, step = arguments
    try:
        moved = _months_later(_moment(when), number) if step == "month" else _moment(when) + _span(number, step)
    except (OverflowError, ValueError):
        return None
    return moved.date() if kind.type == "date" else moved


def _span(number: int, step: str) -> timedelta:
    return timedelta(days=number) if step == "day" else timedelta(seconds=number)


def _months_later(when: datetime, number: int) -> datetime:
    year, month = divmod(when.year * 12 + when.month - 1 + number, 12)
    day = when.day
    while True:
        try:
            return when.replace(year=year, month=month + 1, day=day)
        except ValueError:
            day -= 1
            if day < 28:
                raise


def _moment(day: date) -> datetime:
    return day if isinstance(day, datetime) else datetime.combine(day, time())


MEANINGS: dict[str, Callable[[list[Any], Kind], Any]] = {
    "abs": _abs,
    "floor": _floor,
    "ceil": _ceil,
    "round": _round,
    "length": _length,
    "substring": _substring,
    "concat": _concat,
    "replace": _replace,
    "extract": _extract,
    "date_trunc": _trunc,
    "date_diff": _diff,
    "add_interval": _move,
}
