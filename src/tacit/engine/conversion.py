"""Converts cells between types in SQL; a cell that does not fit becomes NULL, so no conversion can fail on a row."""

from collections.abc import Callable
from dataclasses import dataclass

from tacit import typed_sql as sql
from tacit.errors import QueryRefused
from tacit.query import DIGITS_MAX, TIMESTAMP, Call, Kind, Scalar, Value, common
from tacit.tables import FIRST_SECOND, LAST_SECOND

_PLAIN = {"bool": "boolean", "int": "int64", "float": "float64", "text": "string", "date": "date"}
FIRST_DAY, LAST_DAY = "0001-01-01", "9999-12-31"

# Written so that RE2, Java and POSIX agree. A text that matches is taken whole; any other becomes '', and so NULL.
_DIGITS = "([0-9]{1,40}([.][0-9]{0,40})?|[.][0-9]{1,40})"
_INT_TEXT = "^[+-]?[0-9]{1,30}$"
_DECIMAL_TEXT = f"^[+-]?{_DIGITS}$"
_FLOAT_TEXT = f"^[+-]?{_DIGITS}([eE][+-]?[0-9]{{1,3}})?$"
_YEAR = "([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)"
_CLOCK = "([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9]([.][0-9]{1,9})?)?"
_ZONE = "(Z|[+-](0[0-9]|1[0-5])(:?[0-5][0-9])?)"
_TIME_TEXT = f"^{_YEAR}-[0-9]{{2}}-[0-9]{{2}}([ T]{_CLOCK}{_ZONE}?)?$"
_HAS_ZONE = ":.*[Z+-]"  # for texts that match _TIME_TEXT


@dataclass(frozen=True)
class Cell:
    """A translated expression and what it yields.

    A raw float may still be NaN or −0.0. Arithmetic carries NaN along, so it takes raw floats and is settled once, at
    its end: settling every step would mention each argument twice, and the text of a question would double each time.
    """

    value: sql.Typed
    kind: Kind
    raw: bool = False

    def settled(self) -> "Cell":
        """Return the cell with NaN as NULL and −0.0 as 0.0."""
        if not self.raw:
            return self
        zero = sql.literal("0").cast("float64")
        value = sql.cases((self.value.isnan(), sql.null("float64")), else_=self.value + zero)
        return Cell(value, self.kind)


def type_name(kind: Kind) -> str:
    """Return a kind as typed SQL names it."""
    if kind.type == "decimal":
        return f"decimal({kind.digits}, {kind.scale})"
    return "timestamp(6)" if kind.type == "timestamp" else _PLAIN[kind.type]


def nothing(kind: Kind) -> sql.Typed:
    return sql.null(type_name(kind))


def settle_int(wide: sql.Typed) -> sql.Typed:
    """Return a wide whole number as an int, NULL where it is beyond 64 bits."""
    return wide.cast("int64")


def settle_time(value: sql.Typed, kind: Kind) -> sql.Typed:
    """Return a date or timestamp, NULL outside years 1 to 9999."""
    end = LAST_DAY if kind.type == "date" else f"{LAST_DAY} 23:59:59.999999"
    low, high = (sql.literal(day).cast(type_name(kind)) for day in (FIRST_DAY, end))
    return sql.cases(((value >= low) & (value <= high), value), else_=nothing(kind))


def widen(cell: Cell, kind: Kind) -> sql.Typed:
    """Return a cell as a kind that holds all its values."""
    if cell.kind.type == "null":
        return nothing(kind)
    if kind.type == "float" and cell.kind.type == "decimal":
        return _decimal_text(cell).cast("float64")
    if cell.kind == kind or kind.type in ("int", "text", "bool"):
        return cell.value
    return cell.value.cast(type_name(kind))


@dataclass(frozen=True)
class TranslatedCall:
    """A call whose arguments are translated, and the kind its result must have."""

    call: Call
    cells: tuple[Cell, ...]
    kind: Kind

    def values(self, kind: Kind | None = None) -> list[sql.Typed]:
        """Return the arguments, all widened to one kind."""
        shared = self.shared() if kind is None else kind
        return [widen(cell, shared) for cell in self.cells]

    def shared(self) -> Kind:
        """Return the kind that all arguments widen to."""
        result = Kind("null")
        for cell in self.cells:
            result = common(result, cell.kind, where="a call")
        return result

    def constant(self, index: int) -> Scalar:
        """Return the constant that the call was checked to have at this index."""
        argument = self.call.arguments[index]
        if not isinstance(argument, Value):
            raise QueryRefused("this argument must be a constant\nhint: write the value itself")
        return argument.value

    def number(self, index: int) -> int:
        """Return the whole constant that the call was checked to have at this index."""
        value = self.constant(index)
        if not isinstance(value, int):
            raise QueryRefused("this argument must be a constant whole number\nhint: write the number itself")
        return value


def _to_bool(cell: Cell, kind: Kind) -> sql.Typed:
    if cell.kind.type == "int":
        return cell.value != sql.literal(0, "int64")
    text = cell.value.strip()
    true, false = (_in_any_case(text, word) for word in ("true", "false"))
    return sql.cases((true, sql.literal(True)), (false, sql.literal(False)), else_=nothing(kind))


def _to_int(cell: Cell, kind: Kind) -> sql.Typed:
    if cell.kind.type == "bool":
        return cell.value.cast(type_name(kind))
    if cell.kind.type == "text":
        return _shaped(cell, _INT_TEXT).cast("int64")
    if cell.kind.type == "decimal":
        return _decimal_text(cell).re_replace("[.][0-9]*$", "").cast("int64")
    return cell.value.trunc().cast("int64")


def _to_float(cell: Cell, kind: Kind) -> sql.Typed:
    if cell.kind.type != "text":
        return widen(cell, kind)
    read = _shaped(cell, _FLOAT_TEXT).cast("float64")
    finite = sql.cases((read.isinf(), sql.null("float64")), else_=read)
    return Cell(finite, kind, raw=True).settled().value


def _to_decimal(cell: Cell, kind: Kind) -> sql.Typed:
    return (_shaped(cell, _DECIMAL_TEXT) if cell.kind.type == "text" else cell.value).cast(type_name(kind))


def _to_text(cell: Cell, _kind: Kind) -> sql.Typed:
    return _decimal_text(cell) if cell.kind.type == "decimal" else cell.value.cast("string")


def _to_date(cell: Cell, _kind: Kind) -> sql.Typed:
    if cell.kind.type == "timestamp":
        return cell.value.cast("date")
    return _moment(cell).cast("date")


def _to_timestamp(cell: Cell, kind: Kind) -> sql.Typed:
    if cell.kind.type == "date":
        return cell.value.cast(type_name(kind))
    return _moment(cell)


def _moment(cell: Cell) -> sql.Typed:
    """A text as a timestamp in UTC. The engine's cast to a timestamp ignores an offset; its zoned cast reads it."""
    text = _shaped(cell, _TIME_TEXT)
    zoned = in_utc(text.cast("timestamp('UTC', 6)"))
    plain = text.cast(type_name(TIMESTAMP))
    return settle_time(sql.cases((text.re_search(_HAS_ZONE), zoned), else_=plain), TIMESTAMP)


def in_utc(zoned: sql.Typed) -> sql.Typed:
    """Return a timestamp with a zone in UTC, NULL outside the calendar: by the count of microseconds, since a cast
    would use the connection's zone."""
    count = epoch_us(zoned)
    within = count.between(FIRST_SECOND * 10**6, LAST_SECOND * 10**6 + 999_999)
    return make_timestamp(sql.cases((within, count), else_=sql.null("int64")))


epoch_us = sql.function("epoch_us", "int64")
make_timestamp = sql.function("make_timestamp", "timestamp(6)")


CASTS: dict[str, Callable[[Cell, Kind], sql.Typed]] = {
    "cast_bool": _to_bool,
    "cast_int": _to_int,
    "cast_float": _to_float,
    "cast_decimal": _to_decimal,
    "cast_text": _to_text,
    "cast_date": _to_date,
    "cast_timestamp": _to_timestamp,
}


def convert(cell: Cell, kind: Kind, *, name: str) -> Cell:
    """Return a stored column as its declared type, by the catalogue's casts; refuse a conversion without a cast."""
    if cell.kind == kind or (cell.kind.type == kind.type and kind.type != "decimal"):
        return cell
    if (cell.kind.type, kind.type) in _NO_CAST:
        raise QueryRefused(
            f"column '{name}' is stored as {cell.kind.phrase}, which cannot be read as {kind.phrase}"
            f"\nhint: declare it as {cell.kind.type}, and use CAST in questions"
        )
    return Cell(CASTS[f"cast_{kind.type}"](cell.settled(), kind), kind)


_NO_CAST = {
    *((source, "decimal") for source in ("float", "bool", "date", "timestamp")),
    *((source, "text") for source in ("float", "timestamp")),
    *((source, "bool") for source in ("float", "decimal", "date", "timestamp")),
    *((source, target) for source in ("date", "timestamp") for target in ("int", "float")),
    *((source, target) for source in ("bool", "int", "float", "decimal") for target in ("date", "timestamp")),
    ("bool", "float"),
}


def _decimal_text(cell: Cell) -> sql.Typed:
    """A decimal in digits; one digit more than it needs, so that engines write the 0 before the point."""
    wider = Kind("decimal", min(cell.kind.digits + 1, DIGITS_MAX), cell.kind.scale)
    return cell.value.cast(type_name(wider)).cast("string")


def _shaped(cell: Cell, shape: str) -> sql.Typed:
    """The trimmed text where it has the shape, else ''; an engine's own cast reads more than we promise."""
    return cell.value.strip().re_extract(shape)


def _in_any_case(text: sql.Typed, word: str) -> sql.Typed:
    return text.re_search("^" + "".join(f"[{letter}{letter.upper()}]" for letter in word) + "$")
