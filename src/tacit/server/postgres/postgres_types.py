"""Values as PostgreSQL's protocol has them: types by number, cells as text or binary, parameters read exactly."""

import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from math import isfinite
from typing import Any

from tacit.errors import QueryRefused
from tacit.server.postgres.messages import Broken, Cell, decoded

BOOL, BYTEA, INT8, INT2, INT4, TEXT, OID = 16, 17, 20, 21, 23, 25, 26
FLOAT4, FLOAT8, UNKNOWN, VARCHAR, BPCHAR, DATE = 700, 701, 705, 1043, 1042, 1082
TIMESTAMP, TIMESTAMPTZ, NUMERIC, NAME, CHAR = 1114, 1184, 1700, 19, 18
# the type of an answer's column -> its number
OF_TYPE = {
    "bool": BOOL,
    "int": INT8,
    "float": FLOAT8,
    "decimal": NUMERIC,
    "text": TEXT,
    "date": DATE,
    "timestamp": TIMESTAMP,
}
SIZES = {BOOL: 1, INT8: 8, INT2: 2, INT4: 4, FLOAT4: 4, FLOAT8: 8, DATE: 4, TIMESTAMP: 8, OID: 4}
INTEGERS = {INT2: "!h", INT4: "!i", INT8: "!q", OID: "!I"}
TEXTS = frozenset({TEXT, VARCHAR, BPCHAR, UNKNOWN, NAME, CHAR, 0})
MOST_OF_INT8 = (1 << 63) - 1
EPOCH = datetime(2000, 1, 1)  # noqa: DTZ001 - PostgreSQL's, without a zone
NUMBER_CHARACTERS_MAX = 400


def cell_of(value: Any, type: int, *, is_binary: bool) -> Cell:
    """Return a value of a result as a column of this type has it."""
    if value is None:
        return None
    if not is_binary:
        return _text_of(value).encode("utf-8", "backslashreplace")
    writer = _WRITERS.get(type)
    return _text_of(value).encode("utf-8", "backslashreplace") if writer is None else writer(value)


def has_binary(type: int) -> bool:
    """Return whether cells of a type can leave in binary."""
    return type in _WRITERS or type in TEXTS


def _text_of(value: Any) -> str:
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, float):
        return repr(value) if isfinite(value) else {"inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), "NaN")
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, Fraction):
        return _decimal_text(value)
    if isinstance(value, list):
        return "{" + ",".join("NULL" if each is None else _text_of(each) for each in value) + "}"
    return str(value)


def _decimal_text(value: Fraction) -> str:
    """Return an exact decimal if it is one, and otherwise its nearest float."""
    rest = value.denominator
    for factor in (2, 5):
        while rest % factor == 0:
            rest //= factor
    if rest != 1:
        return repr(float(value))
    exact = Decimal(value.numerator) / Decimal(value.denominator)
    return format(exact, "f") if Fraction(exact) == value else repr(float(value))


def _numeric(value: Any) -> bytes:
    """Return a number as NUMERIC: groups of four decimal digits."""
    written = Decimal(_text_of(value))
    sign, digits, exponent = written.as_tuple()
    if not isinstance(exponent, int):
        return struct.pack("!hhHh", 0, 0, 0xC000, 0)
    scale = max(-exponent, 0)
    text = "".join(map(str, digits)) + "0" * max(exponent, 0)
    whole, part = (text[: len(text) - scale] or "0", text[len(text) - scale :].rjust(scale, "0") if scale else "")
    whole = whole.rjust(-(-len(whole) // 4) * 4, "0")
    part = part.ljust(-(-len(part) // 4) * 4, "0")
    groups = [int((whole + part)[at : at + 4]) for at in range(0, len(whole + part), 4)]
    weight = len(whole) // 4 - 1
    return struct.pack("!hhHh", len(groups), weight, 0x4000 if sign else 0, scale) + struct.pack(
        f"!{len(groups)}h", *groups
    )


_WRITERS: Mapping[int, Callable[[Any], bytes]] = {
    BOOL: lambda value: b"\1" if value else b"\0",
    INT2: lambda value: struct.pack("!h", value),
    INT4: lambda value: struct.pack("!i", value),
    INT8: lambda value: struct.pack("!q", value),
    OID: lambda value: struct.pack("!I", value),
    FLOAT4: lambda value: struct.pack("!f", value),
    FLOAT8: lambda value: struct.pack("!d", value),
    NUMERIC: _numeric,
    DATE: lambda value: struct.pack("!i", (value - EPOCH.date()).days),
    TIMESTAMP: lambda value: struct.pack("!q", (value - EPOCH) // timedelta(microseconds=1)),
}


# ---- parameters ------------------------------------------------------------------------------------------------------

Constant = None | bool | int | float | Fraction | str | date | datetime


def constant_of(cell: Cell, type: int, *, is_binary: bool) -> Constant:
    """Return a parameter as a constant of a question; it is never a part of a text of SQL."""
    if cell is None:
        return None
    try:
        return _from_binary(cell, type) if is_binary else _from_text(decoded(cell), type)
    except (ValueError, ArithmeticError, struct.error, Broken):
        raise QueryRefused(
            "a parameter is not a value of its type\nhint: send it as text, or with another type"
        ) from None


def _from_text(written: str, type: int) -> Constant:
    if type == BOOL:
        return _TRUTHS[written.strip().lower()] if written.strip().lower() in _TRUTHS else _refuse()
    if type in INTEGERS or type in (FLOAT4, FLOAT8, NUMERIC):
        if len(written) > NUMBER_CHARACTERS_MAX:
            raise ValueError
        return int(written) if type in INTEGERS else _number(written, type)
    if type == DATE:
        return date.fromisoformat(written)
    if type in (TIMESTAMP, TIMESTAMPTZ):
        return _in_utc(datetime.fromisoformat(written))
    return written if type in TEXTS else _refuse()


def _from_binary(cell: bytes, type: int) -> Constant:
    if type == BOOL and len(cell) == 1:
        return cell == b"\1"
    if type in INTEGERS:
        return int(struct.unpack(INTEGERS[type], cell)[0])
    if type in (FLOAT4, FLOAT8):
        return _finite(struct.unpack("!f" if type == FLOAT4 else "!d", cell)[0])
    if type == NUMERIC:
        return _numeric_from(cell)
    if type == DATE:
        return EPOCH.date() + timedelta(days=struct.unpack("!i", cell)[0])
    if type in (TIMESTAMP, TIMESTAMPTZ):
        return EPOCH + timedelta(microseconds=struct.unpack("!q", cell)[0])
    return decoded(cell) if type in TEXTS else _refuse()


def _number(written: str, type: int) -> Constant:
    if type == NUMERIC:
        found = Decimal(written)
        return Fraction(found) if found.is_finite() and abs(found.adjusted()) < NUMBER_CHARACTERS_MAX else _refuse()
    return _finite(float(written))


def _finite(value: float) -> Constant:
    return value if isfinite(value) else _refuse()


def _numeric_from(cell: bytes) -> Constant:
    count, weight, sign, _ = struct.unpack("!hhHh", cell[:8])
    if sign not in (0, 0x4000) or not 0 <= count <= NUMBER_CHARACTERS_MAX // 4 or abs(weight) > count + 100:
        return _refuse()
    groups = struct.unpack(f"!{count}h", cell[8:])
    total = sum((Fraction(group) * Fraction(10_000) ** (weight - at) for at, group in enumerate(groups)), Fraction(0))
    return -total if sign else total


def _in_utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)


def _refuse() -> Constant:
    raise ValueError


_TRUTHS = {"t": True, "true": True, "on": True, "1": True, "f": False, "false": False, "off": False, "0": False}
