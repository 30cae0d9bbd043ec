"""The catalogue's words as plain Python: what each function means on one row, written without any engine.

Values: None is NULL, int, float, Fraction (a decimal), bool, str, date, datetime. It shares no code with the
translation it judges, and none with the evaluator of HAVING.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

from tacit.query.nodes import Call, Column, Expression, Kind, Value
from tacit.query.typecheck import kind_of
from tacit.tables.cells import TEXT_BYTES_MAX
from tacit_gauntlet.stage.reference_maths import MATHS

Cells = Mapping[str, Any]
Kinds = Mapping[str, Kind]

_DIGITS = frozenset("0123456789")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def meaning(expression: Expression, row: Cells, kinds: Kinds) -> Any:
    """Return what the catalogue says the expression is on this row."""
    if isinstance(expression, Value):
        return _as_kind(expression.value, kind_of(expression, kinds))
    if isinstance(expression, Column):
        return _as_read(row[expression.name], kinds[expression.name])
    kind = kind_of(expression, kinds)
    arguments = [meaning(argument, row, kinds) for argument in expression.arguments]
    if expression.function == "cast_text" and isinstance(arguments[0], Fraction):
        return _digits(arguments[0], kind_of(expression.arguments[0], kinds).scale)
    return _as_kind(_call(expression, arguments, kind), kind)


def _call(call: Call, arguments: list[Any], kind: Kind) -> Any:
    name = call.function
    if name in ("and", "or"):
        decisive = name == "or"
        return decisive if decisive in arguments else None if None in arguments else not decisive
    if name == "is_null":
        return arguments[0] is None
    if name == "case":
        chosen = [result for test, result in zip(arguments[:-1:2], arguments[1::2], strict=True) if test is True]
        return chosen[0] if chosen else arguments[-1]
    if name == "coalesce":
        present = [argument for argument in arguments if argument is not None]
        return present[0] if present else None
    if name == "nullif":
        return None if None not in arguments and _order(*arguments) == 0 else arguments[0]
    if name in ("least", "greatest"):
        return extreme(name, arguments, _order)
    if None in arguments:
        return None
    if name in MEANINGS:
        return MEANINGS[name](arguments, kind)
    if name.startswith("cast_"):
        return _cast(name.removeprefix("cast_"), arguments[0], kind)
    return _strict(name, arguments)


def _strict(name: str, arguments: list[Any]) -> Any:
    first = arguments[0]
    if name in ("=", "<>", "<", "<=", ">", ">="):
        order = _order(*arguments)
        return {"=": order == 0, "<>": order != 0, "<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[
            name
        ]
    if name == "not":
        return not first
    if name == "in":
        return any(_order(first, each) == 0 for each in arguments[1:])
    if name == "like":
        return _like(first, *arguments[1:])
    if name in ("lower", "upper"):
        fold = {letter.upper(): letter for letter in _LETTERS}
        table = fold if name == "lower" else {small: big for big, small in fold.items()}
        return "".join(table.get(character, character) for character in first)
    if name == "trim":
        return first.strip(" \t\n\r\v\f")
    return _number(name, arguments)


def _number(name: str, arguments: list[Any]) -> Any:
    if name == "negate":
        return _number("-", [0, arguments[0]]) if not isinstance(arguments[0], float) else _float(-arguments[0])
    if name == "%":
        top, bottom = arguments
        return None if bottom == 0 else (abs(top) % abs(bottom)) * (1 if top >= 0 else -1)
    if name == "/":
        top, bottom = (float(argument) for argument in arguments)
        return None if bottom == 0 else _float(top / bottom)
    if any(isinstance(argument, float) for argument in arguments):
        left, right = (float(argument) for argument in arguments)
        return _float({"+": left + right, "-": left - right, "*": left * right}[name])
    left, right = arguments
    result = {"+": left + right, "-": left - right, "*": left * right}[name]
    whole = all(isinstance(argument, int) for argument in arguments)
    return _int(result) if whole else Fraction(result)


def _order(left: Any, right: Any) -> int:
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
    if isinstance(left, date):
        left, right = _moment(left), _moment(right)
    if isinstance(left, str):
        left, right = [ord(character) for character in left], [ord(character) for character in right]
    return int(left > right) - int(left < right)


def _like(text: str, pattern: str, escape: str | None = None) -> bool:
    """By recursion on the pattern, remembered for each pair of positions."""
    known: dict[tuple[int, int], bool] = {}

    def fits(here: int, place: int) -> bool:
        if (here, place) not in known:
            known[here, place] = fits_now(here, place)
        return known[here, place]

    def fits_now(here: int, place: int) -> bool:
        if place == len(pattern):
            return here == len(text)
        sign = pattern[place]
        if sign == escape:
            return here < len(text) and text[here] == pattern[place + 1] and fits(here + 1, place + 2)
        if sign == "%":
            return fits(here, place + 1) or (here < len(text) and fits(here + 1, place))
        return here < len(text) and sign in ("_", text[here]) and fits(here + 1, place + 1)

    return fits(0, 0)


def _cast(target: str, value: Any, kind: Kind) -> Any:
    if isinstance(value, str):
        return _from_text(target, value.strip(" \t\n\r\v\f"), kind) if target != "text" else value
    if target == "bool":
        return bool(value)
    if target == "int":
        if isinstance(value, float) and value in (float("inf"), float("-inf")):
            return None
        return _int(int(value))  # int() goes toward 0
    if target == "float":
        return float(value)
    if target == "decimal":
        return _rounded(Fraction(value), kind)
    if target == "text":
        return _in_text(value)
    if target == "date":
        return value.date() if isinstance(value, datetime) else value
    return _moment(value)


def _from_text(target: str, text: str, kind: Kind) -> Any:
    if target == "bool":
        return {"true": True, "false": False}.get(text.lower()) if text.isascii() else None
    if target in ("date", "timestamp"):
        moment = _instant(text)
        return moment.date() if moment and target == "date" else moment
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if target == "int":
        return _int(int(text)) if unsigned and set(unsigned) <= _DIGITS and len(unsigned) <= 30 else None
    mantissa, exponent = unsigned, ""
    if target == "float" and ("e" in unsigned or "E" in unsigned):
        mantissa, _, exponent = unsigned.replace("E", "e").partition("e")
        power = exponent[1:] if exponent[:1] in ("+", "-") else exponent
        if not power or not set(power) <= _DIGITS or len(power) > 3:
            return None
    whole, _, part = mantissa.partition(".")
    if not (whole or part) or not set(whole + part) <= _DIGITS or max(len(whole), len(part)) > 40:
        return None
    if target == "decimal":
        return _rounded(Fraction(text), kind)
    read = float(text)
    return None if read in (float("inf"), float("-inf")) else _float(read)


def _day(text: str) -> date | None:
    shape = [len(part) for part in text.split("-")] == [4, 2, 2] and set(text) <= _DIGITS | {"-"}
    try:
        return date(*(int(part) for part in text.split("-"))) if shape else None
    except ValueError:
        return None


def _instant(text: str) -> datetime | None:
    day, rest = _day(text[:10]), text[10:]
    if day is None or not rest:
        return None if day is None else _moment(day)
    written, ahead = _without_offset(rest[1:])
    clock, point, part = written.partition(".")
    sizes = [len(each) for each in clock.split(":")]
    shape = sizes == [2, 2, 2] or (sizes == [2, 2] and not point)
    known = shape and set(clock) <= _DIGITS | {":"} and ahead is not None
    if rest[0] not in " T" or not known or (point and not (part and set(part) <= _DIGITS and len(part) <= 9)):
        return None
    try:
        hour, minute, second = (int(each) for each in [*clock.split(":"), "0"][:3])
        local = datetime.combine(day, time(hour, minute, second))
        return local + timedelta(microseconds=int(part[:6].ljust(6, "0")) if part else 0, minutes=-(ahead or 0))
    except (ValueError, OverflowError):
        return None


def _without_offset(text: str) -> tuple[str, int | None]:
    """The clock, and how many minutes it is ahead of UTC; None where the offset is none."""
    if text.endswith("Z"):
        return text[:-1], 0
    place = max(text.rfind("+"), text.rfind("-"))
    if place < 0:
        return text, 0
    digits = text[place + 1 :]
    digits = digits[:2] + digits[3:] if len(digits) == 5 and digits[2] == ":" else digits
    if len(digits) not in (2, 4) or not set(digits) <= _DIGITS or int(digits[:2]) > 15 or int(digits[2:] or 0) > 59:
        return text, None
    minutes = 60 * int(digits[:2]) + int(digits[2:] or 0)
    return text[:place], minutes if text[place] == "+" else -minutes


def _in_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date) else str(value)


def _digits(value: Fraction, scale: int) -> str:
    digits = str(abs(value.numerator) * 10**scale // value.denominator).rjust(scale + 1, "0")
    split = len(digits) - scale
    return ("-" if value < 0 else "") + digits[:split] + ("." + digits[split:] if scale else "")


def _rounded(value: Fraction, kind: Kind) -> Fraction | None:
    steps = (abs(value) * 10**kind.scale + Fraction(1, 2)) // 1
    return None if steps >= 10**kind.digits else Fraction(steps if value >= 0 else -steps, 10**kind.scale)


def _as_read(cell: Any, kind: Kind) -> Any:
    return None if cell is None else _as_kind(_float(cell) if isinstance(cell, float) else cell, kind)


def _as_kind(value: Any, kind: Kind) -> Any:
    """A result in its static type: an int that meets decimals is one, a date that meets timestamps too."""
    if value is None:
        return None
    if kind.type == "float":
        return _float(float(value))
    if kind.type == "decimal":
        return Fraction(value)
    return _moment(value) if kind.type == "timestamp" else value


def _moment(day: date) -> datetime:
    return day if isinstance(day, datetime) else datetime.combine(day, time())


def _float(value: float) -> float | None:
    return None if value != value else value + 0.0


def _int(value: int) -> int | None:
    return value if -(2**63) <= value < 2**63 else None


def extreme(name: str, arguments: Sequence[Any], order: Callable[[Any, Any], int]) -> Any:
    """LEAST or GREATEST of what is not NULL."""
    known = sorted((each for each in arguments if each is not None), key=cmp_to_key(order))
    return (known[0] if name == "least" else known[-1]) if known else None


def _abs(arguments: list[Any], _kind: Kind) -> Any:
    return _int_cell(abs(arguments[0])) if isinstance(arguments[0], int) else abs(arguments[0])


def _floor(arguments: list[Any], _kind: Kind) -> Any:
    return None if _infinite(arguments[0]) else _int_cell(Fraction(arguments[0]) // 1)


def _ceil(arguments: list[Any], _kind: Kind) -> Any:
    return None if _infinite(arguments[0]) else _int_cell(-(-Fraction(arguments[0]) // 1))


def _round(arguments: list[Any], kind: Kind) -> Any:
    value, places = arguments[0], arguments[1] if len(arguments) == 2 else 0
    if isinstance(value, float) and places:
        return _round_float(value, places)
    if _infinite(value):
        return None
    rounded = _half_away(Fraction(value) * Fraction(10) ** places) * Fraction(10) ** -places
    return _int_cell(int(rounded)) if kind.type == "int" else rounded


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


def _int_cell(value: int) -> int | None:
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
    start = _start(_moment_of(when), unit)
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
    unit, first, last = arguments[0], *(_start(_moment_of(each), arguments[0]) for each in arguments[1:])
    if unit in ("year", "quarter", "month"):
        months = (last.year - first.year) * 12 + last.month - first.month
        return months // {"year": 12, "quarter": 3, "month": 1}[unit]
    size = {"week": 7 * 86_400, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}[unit]
    return (last - first) // timedelta(seconds=size)


def _move(arguments: list[Any], kind: Kind) -> Any:
    when, number, step = arguments
    try:
        moved = _months_later(_moment_of(when), number) if step == "month" else _moment_of(when) + _span(number, step)
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


def _moment_of(day: date) -> datetime:
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
    **MATHS,
}
