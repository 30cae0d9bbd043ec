"""The types of DuckDB that relations have, and that DuckDB gives to sums, products and choices of them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import ClassVar

import pyarrow as pa

DIGITS_MAX = 38
# The product of two decimals of at most this many digits has no more; DuckDB raises where it does not fit.
NARROW_DIGITS = 18

_SIGNED = ("int8", "int16", "int32", "int64", "int128")
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64", "uint128")
_WRITTEN = {
    **dict(zip(_SIGNED, ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), strict=True)),
    **dict(zip(_UNSIGNED, ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), strict=True)),
    "boolean": "BOOLEAN",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "string": "VARCHAR",
    "date": "DATE",
    "binary": "BLOB",
    "uuid": "UUID",
    "interval": "INTERVAL",
}
_KINDS = {written: kind for kind, written in _WRITTEN.items()}
_TIMES = {0: "TIMESTAMP_S", 3: "TIMESTAMP_MS", 6: "TIMESTAMP", 9: "TIMESTAMP_NS"}
_UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
# As many digits as a whole number of this type can have, where it meets a decimal.
_DIGITS = dict(zip((*_SIGNED, *_UNSIGNED), (3, 5, 10, 19, 38, 3, 5, 10, 20, 38), strict=True))


def _is(*kinds: str) -> "Callable[[Type], bool]":
    return lambda self: self.kind in kinds


@dataclass(frozen=True, slots=True)
class Type:
    """What a column holds: its kind; a decimal's digits and scale; a timestamp's digits of a second, and its zone."""

    kind: str
    digits: int = 0
    scale: int = 0
    is_zoned: bool = False  # every zone is UTC here

    def __str__(self) -> str:
        if self.kind == "decimal":
            return f"decimal({self.digits}, {self.scale})"
        if self.kind == "timestamp":
            return f"timestamp('UTC', {self.scale})" if self.is_zoned else f"timestamp({self.scale})"
        return self.kind

    @property
    def sql(self) -> str:
        """The name by which DuckDB's SQL knows it."""
        if self.kind == "decimal":
            return f"DECIMAL({self.digits},{self.scale})"
        if self.kind == "timestamp":
            return "TIMESTAMP WITH TIME ZONE" if self.is_zoned else _TIMES[self.scale]
        if self.kind not in _WRITTEN:
            raise TypeError(f"values of the type {self.kind} are not written")
        return _WRITTEN[self.kind]

    is_whole: ClassVar["IsKind"] = _is(*_DIGITS)
    is_integer: ClassVar["IsKind"] = _is(*(kind for kind in _DIGITS if kind not in ("int128", "uint128")))
    is_floating: ClassVar["IsKind"] = _is("float32", "float64")
    is_decimal: ClassVar["IsKind"] = _is("decimal")
    is_boolean: ClassVar["IsKind"] = _is("boolean")
    is_string: ClassVar["IsKind"] = _is("string")
    is_binary: ClassVar["IsKind"] = _is("binary")
    is_uuid: ClassVar["IsKind"] = _is("uuid")
    is_date: ClassVar["IsKind"] = _is("date")
    is_timestamp: ClassVar["IsKind"] = _is("timestamp")


IsKind = Callable[[Type], bool]


NULL, OTHER, STRUCT, INTERVAL = (Type(kind) for kind in ("null", "other", "struct", "interval"))
BOOLEAN, STRING, BINARY, DATE = (Type(kind) for kind in ("boolean", "string", "binary", "date"))
INT8, INT32, INT64, INT128, UINT64 = (Type(kind) for kind in ("int8", "int32", "int64", "int128", "uint64"))
FLOAT32, FLOAT64, TIMESTAMP = Type("float32"), Type("float64"), Type("timestamp", scale=6)


def decimal(digits: int, scale: int) -> Type:
    """Return the type of decimals of this number of digits, `scale` of them after the point."""
    return Type("decimal", digits, scale)


_DECIMAL = re.compile(r"decimal\((\d+), ?(\d+)\)", re.IGNORECASE)
_TIME = re.compile(r"timestamp\(('UTC', )?(\d)\)")


@cache
def parsed(text: str) -> Type:
    """Return the type that the product names 'int64', 'decimal(19, 0)' or "timestamp('UTC', 6)"."""
    if found := _DECIMAL.fullmatch(text):
        return decimal(int(found[1]), int(found[2]))
    if found := _TIME.fullmatch(text):
        return Type("timestamp", scale=int(found[2]), is_zoned=found[1] is not None)
    if text not in _WRITTEN:
        raise ValueError(f"there is no type {text}")
    return Type(text)


@cache
def stored(text: str) -> Type:
    """Return the type of a stored column, from the name that DESCRIBE has for it; an ENUM holds texts."""
    if text in _KINDS:
        return Type(_KINDS[text])
    if found := _DECIMAL.fullmatch(text):
        return decimal(int(found[1]), int(found[2]))
    if text == "TIMESTAMP WITH TIME ZONE":
        return Type("timestamp", scale=6, is_zoned=True)
    times = {written: scale for scale, written in _TIMES.items()}
    if text in times:
        return Type("timestamp", scale=times[text])
    return STRING if text.startswith("ENUM(") else OTHER


_ARROW = {
    "bool": "boolean",
    "double": "float64",
    "float": "float32",
    "date32[day]": "date",
    "large_string": "string",
    "string_view": "string",
    "large_binary": "binary",
}


def of_arrow(kind: pa.DataType) -> Type:
    """Return the type that DuckDB gives to an Arrow column."""
    if pa.types.is_decimal(kind):
        return decimal(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return Type("timestamp", scale=6 if kind.tz else _UNITS[kind.unit], is_zoned=kind.tz is not None)
    if pa.types.is_dictionary(kind):
        return of_arrow(kind.value_type)
    text = _ARROW.get(str(kind), str(kind))
    return Type(text) if text in _WRITTEN else OTHER


def widest(left: Type, right: Type) -> Type:
    """Return the type that both become in a comparison, a CASE or a COALESCE."""
    if left == right or right == NULL:
        return left
    if left == NULL:
        return right
    if left.is_floating() or right.is_floating():
        return FLOAT64 if FLOAT64 in (left, right) else FLOAT32
    if left.is_whole() and right.is_whole():
        return _widest_whole(left, right)
    if (left.is_decimal() or left.is_whole()) and (right.is_decimal() or right.is_whole()):
        before, scale = _both_sides(_as_decimal(left), _as_decimal(right))
        scale = min(scale, DIGITS_MAX - before)  # digits before the point come first
        return decimal(before + scale, scale)
    if {left.kind, right.kind} == {"date", "timestamp"}:
        return left if left.is_timestamp() else right
    raise TypeError(f"there is no type for both {left} and {right}")


def _widest_whole(left: Type, right: Type) -> Type:
    if (left.kind in _SIGNED) is (right.kind in _SIGNED):
        names = _SIGNED if left.kind in _SIGNED else _UNSIGNED
        return max((left, right), key=lambda each: names.index(each.kind))
    signed, unsigned = (left, right) if left.kind in _SIGNED else (right, left)
    if unsigned.kind == "uint128":
        raise TypeError("no whole number of DuckDB is wide enough")
    return Type(_SIGNED[max(_SIGNED.index(signed.kind), _UNSIGNED.index(unsigned.kind) + 1)])


def _both_sides(left: Type, right: Type) -> tuple[int, int]:
    """Return how many digits two decimals have before the point and after it."""
    return max(left.digits - left.scale, right.digits - right.scale), max(left.scale, right.scale)


def _as_decimal(kind: Type) -> Type:
    return kind if kind.is_decimal() else decimal(_DIGITS[kind.kind], 0)


def operated(left: Type, right: Type) -> Type:
    """Return the type of an operation on two numbers, decimals apart: a third type has 64 bits or more."""
    shared = widest(left, right)
    return INT64 if shared not in (left, right) and shared.kind in ("int16", "int32") else shared


def total_of(left: Type, right: Type) -> Type:
    """Return the type of a sum or a difference; of decimals, one digit more."""
    if not widest(left, right).is_decimal():
        return operated(left, right)
    before, scale = _both_sides(_as_decimal(left), _as_decimal(right))
    return decimal(min(before + scale + 1, DIGITS_MAX), scale)


def product_of(left: Type, right: Type) -> Type:
    """Return the type of a product; of decimals, digits and scales add up."""
    if not widest(left, right).is_decimal():
        return operated(left, right)
    mine, theirs = _as_decimal(left), _as_decimal(right)
    digits, scale = mine.digits + theirs.digits, mine.scale + theirs.scale
    if max(mine.digits, theirs.digits) <= NARROW_DIGITS and scale < NARROW_DIGITS:
        digits = min(digits, NARROW_DIGITS)
    return decimal(min(digits, DIGITS_MAX), scale)


def sum_of(kind: Type) -> Type:
    """Return the type of an added-up column: 128 bits for whole numbers."""
    if kind.is_integer() or kind == INT128:
        return INT128
    if kind.is_decimal():
        return decimal(DIGITS_MAX, kind.scale)
    if kind.is_floating():
        return FLOAT64
    raise TypeError(f"values of the type {kind} are not added up")
