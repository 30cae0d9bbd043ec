"""A call on its way to an engine: its arguments translated, its result's kind known.

Functions of text on an engine, all by code point; what an engine would do by grapheme or language is avoided.

Dates and timestamps on an engine: parts, starts, differences and intervals.

A date is made a timestamp before it is moved or cut, since some engines return one for the other. A time that would
leave the calendar becomes NULL before it is moved, so that no engine sees a year it does not have.

LIKE on an engine: its own where the pattern has no escape, otherwise a regular expression of the same meaning.

The product of two decimals with the digits both need: Ibis gives it too few, and refuses scales that differ.

LEAST, GREATEST, ABS, ROUND, FLOOR and CEIL on an engine.

Engines disagree about halves, and their own rounding of a float is not always of the number that it is. Floats are
rounded by floor alone; decimals by their own floor and ceiling, or by the cast that all engines round away from 0.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import ibis.expr.rules as rlz
import ibis.expr.types as ir
from ibis.common.annotations import attribute

from tacit.engine.conversion import Cell, nothing, settle_int, type_name, widen
from tacit.errors import QueryRefused
from tacit.query.functions import POSITION_MAX
from tacit.query.kind import DIGITS_MAX, TIMESTAMP, Kind, common, decimal
from tacit.query.literal import Pattern, Wild
from tacit.query.nodes import Call, Scalar, Value
from tacit.tables.cells import TEXT_BYTES_MAX


@dataclass(frozen=True)
class Made:
    """A call whose arguments are translated, and the kind its result must have."""

    call: Call
    cells: tuple[Cell, ...]
    kind: Kind

    def values(self, kind: Kind | None = None) -> list[ir.Value]:
        """Return the arguments, all widened to one kind."""
        shared = self.shared() if kind is None else kind
        return [widen(cell, shared) for cell in self.cells]

    def shared(self) -> Kind:
        """Return the kind that all arguments widen to."""
        result = Kind("null")
        for cell in self.cells:
            result = common(result, cell.kind, where="a call")
        return result

    def constant(self, place: int) -> Scalar:
        """Return the constant that the call was checked to have at this place."""
        argument = self.call.arguments[place]
        if not isinstance(argument, Value):
            raise QueryRefused("an argument that must be a constant is none\nhint: write the value itself")
        return argument.value

    def number(self, place: int) -> int:
        """Return the whole constant that the call was checked to have at this place."""
        value = self.constant(place)
        if not isinstance(value, int):
            raise QueryRefused("an argument that must be a whole constant is none\nhint: write the number itself")
        return value


Translation = Callable[[Made], ir.Value]


_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_NOT_PLAIN = "[^ -~]"
bytes_of = ibis.udf.scalar.builtin(lambda text: text, name="strlen", signature=(("string",), "int64"))


def _folded(made: Made, *, up: bool) -> ir.Value:
    """Engines fold É and İ each in their own way, so theirs, much quicker than ours, is for plain ASCII alone."""
    text = made.cells[0].value
    theirs = text.upper() if up else text.lower()
    ours = text.translate(_LOWER, _UPPER) if up else text.translate(_UPPER, _LOWER)
    return ibis.cases((text.re_search(_NOT_PLAIN), ours), else_=theirs)


def _substring(made: Made) -> ir.Value:
    length = made.number(2) if len(made.cells) == 3 else None
    start = ibis.literal(made.number(1) - 1, "int64")
    # a length beyond any text where none is given: engines read a missing one in their own ways
    return made.cells[0].value.substr(start, ibis.literal(_ALL if length is None else length, "int64"))


_ALL = 2**31 - 1 - POSITION_MAX


def _concat(made: Made) -> ir.Value:
    first, *rest = (cell.value for cell in made.cells)
    size = bytes_of(first)
    for text in rest:
        size = size + bytes_of(text)
    joined = _where_short(first, size)
    for text in rest:
        joined = joined + text
    return joined


def _replace(made: Made) -> ir.Value:
    text, old, new = (cell.value for cell in made.cells)
    was, becomes = (len(str(made.constant(place)).encode()) for place in (1, 2))
    if becomes <= was:
        return text.replace(old, new)
    taken = bytes_of(text) - bytes_of(text.replace(old, ibis.literal("")))
    size = bytes_of(text) + (taken / was).floor().cast("int64") * (becomes - was)
    return _where_short(text, size).replace(old, new)


def _where_short(text: ir.Value, made: ir.Value) -> ir.Value:
    """Return the text where what is made of it is short enough, NULL elsewhere: longer text is never made."""
    return ibis.cases((made <= TEXT_BYTES_MAX, text), else_=ibis.null("string"))


TEXTS: dict[str, Translation] = {
    "lower": lambda made: _folded(made, up=False),
    "upper": lambda made: _folded(made, up=True),
    "trim": lambda made: made.cells[0].value.strip(),
    "length": lambda made: made.cells[0].value.length().cast("int64"),
    "substring": _substring,
    "concat": _concat,
    "replace": _replace,
}


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


def matches(text: ir.Value, pattern: Pattern) -> ir.Value:
    """Return whether all of the text matches the pattern."""
    if pattern.escape is None:
        return text.like("".join(part.value if isinstance(part, Wild) else part for part in pattern.parts))
    return text.re_search("(?s)^" + "".join(_regular(part) for part in pattern.parts) + "$")


def _regular(part: str | Wild) -> str:
    if isinstance(part, Wild):
        return ".*" if part is Wild.ANY else "."
    return "".join(_plain(character) for character in part)


def _plain(character: str) -> str:
    if character.isalnum() or not character.isascii():
        return character
    return f"\\x{ord(character):02x}"


_WIDE = 19


class Multiply(ops.Value):  # type: ignore[misc]  # Ibis has no types; compilers find an operation by its class's name
    """left * right, both decimals."""

    left: ops.Value
    right: ops.Value
    shape = rlz.shape_like("args")

    @attribute  # type: ignore[untyped-decorator]
    def dtype(self) -> dt.Decimal:
        """Return decimal(sum of digits, sum of scales); the question's check has seen that it fits."""
        left, right = self.left.dtype, self.right.dtype
        return dt.Decimal(min(left.precision + right.precision, DIGITS_MAX), left.scale + right.scale)


def product(left: ir.Value, right: ir.Value) -> ir.Value:
    """Return the exact product of two decimals.

    DuckDB keeps a product of narrow decimals in 18 digits and raises where it does not fit, so one of them is made
    wide first.
    """
    digits, scale = left.type().precision, left.type().scale
    wide = left.cast(f"decimal({max(digits, _WIDE)}, {scale})")
    exact = dt.Decimal(digits + right.type().precision, scale + right.type().scale)
    return Multiply(wide, right).to_expr().cast(exact)


# The float just below 1/2: floor(x + this) rounds halves up for every float x >= 0, while x + 1/2 is inexact below 1/2
# and from 2^52 on.
_BELOW_HALF = "0.49999999999999994"
_WHOLE_FROM = "9007199254740992"  # from 2^53 on a float has no places to round


@ibis.udf.scalar.builtin(name="floor")  # type: ignore[untyped-decorator]
def floor_of(number: float) -> float:
    """Return the engine's own, as a float; Ibis would cast it to an int, and raise where it does not fit."""
    raise NotImplementedError


@ibis.udf.scalar.builtin(name="ceil")  # type: ignore[untyped-decorator]
def ceil_of(number: float) -> float:
    """Return the engine's own, as a float."""
    raise NotImplementedError


def _magnitude(made: Made) -> ir.Value:
    (cell,) = made.cells
    return settle_int(_wide(cell).abs()) if made.kind.type == "int" else cell.value.abs()


def _floor(made: Made) -> ir.Value:
    (cell,) = made.cells
    return settle_int(floor_of(cell.value) if cell.kind.type == "float" else _toward(cell, "floor"))


def _ceil(made: Made) -> ir.Value:
    (cell,) = made.cells
    return settle_int(ceil_of(cell.value) if cell.kind.type == "float" else _toward(cell, "ceil"))


def _round(made: Made) -> ir.Value:
    cell = made.cells[0]
    places = made.number(1) if len(made.cells) == 2 else 0
    if cell.kind.type == "float":
        return _round_float(cell.value, places) if places else settle_int(_whole(cell.value))
    if places < 0:
        rounded = _round_left_of_point(cell, -places)
        return settle_int(rounded) if made.kind.type == "int" else rounded.cast(type_name(made.kind))
    if places:
        return cell.value.cast(type_name(made.kind))
    return settle_int(_nearest(cell))


def _whole(value: ir.Value) -> ir.Value:
    """The nearest whole number as a float, halves away from 0; NaN and ±Inf stay."""
    return value.sign() * floor_of(value.abs() + _float(_BELOW_HALF))


def _round_float(value: ir.Value, places: int) -> ir.Value:
    power = _float(f"1e{abs(places)}")
    scaled = value * power if places > 0 else value / power
    back = _whole(scaled) / power if places > 0 else _whole(scaled) * power
    # NaN is not below anything, so it stays
    return ibis.cases((scaled.abs() < _float(_WHOLE_FROM), back), else_=value)


def _toward(cell: Cell, name: str) -> ir.Value:
    """A decimal's floor or ceiling by the engine's own, which is exact and has digits enough for every decimal."""
    return _engine_own(name, type_name(cell.kind))(cell.value) if cell.kind.scale else cell.value


@cache
def _engine_own(name: str, kind: str) -> Callable[[ir.Value], ir.Value]:
    """Return the engine's function of one decimal, the same object for the same type."""
    found: Callable[[ir.Value], ir.Value] = ibis.udf.scalar.builtin(
        lambda number: number, name=name, signature=((kind,), kind)
    )
    return found


def _nearest(cell: Cell) -> ir.Value:
    """A decimal's nearest whole number, halves away from 0, as a decimal without places."""
    kind = cell.kind
    return cell.value.cast(type_name(decimal(kind.digits - kind.scale + 1, 0))) if kind.scale else cell.value


def _round_left_of_point(cell: Cell, zeros: int) -> ir.Value:
    """An exact number rounded to tens, hundreds and so on: moved right, rounded, moved back."""
    kind = cell.kind if cell.kind.type == "decimal" else decimal(19, 0)
    right = ibis.literal("0." + "0" * (zeros - 1) + "1").cast(type_name(decimal(zeros, zeros)))
    left = ibis.literal("1" + "0" * zeros).cast(type_name(decimal(zeros + 1, 0)))
    moved = product(widen(cell, kind), right)
    return product(moved.cast(type_name(decimal(kind.digits - kind.scale + 1, 0))), left)


def _wide(cell: Cell) -> ir.Value:
    return cell.value.cast("decimal(19, 0)")


def _float(written: str) -> ir.Value:
    return ibis.literal(written).cast("float64")


NUMBERS: dict[str, Translation] = {
    "least": lambda made: ibis.least(*made.values(made.kind)),
    "greatest": lambda made: ibis.greatest(*made.values(made.kind)),
    "abs": _magnitude,
    "round": _round,
    "floor": _floor,
    "ceil": _ceil,
}
