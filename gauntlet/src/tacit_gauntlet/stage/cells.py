"""Made-up rows whose cells have fooled engines before, and every expression form of the catalogue over them."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from tacit.errors import QueryRefused
from tacit.query.language.named_functions import PARTS, REACH, UNITS
from tacit.query.nodes import BOOL, DATE, FLOAT, INT, TEXT, TIMESTAMP, Call, Column, Expression, Kind, decimal, value_of
from tacit.query.typecheck import canonical

INTS = [
    None,
    0,
    1,
    -1,
    2,
    -2,
    7,
    -7,
    10,
    2**31,
    -(2**31) - 1,
    2**33,
    10**10,
    10**15,
    2**53 - 1,
    2**53 + 1,
    -(2**53) - 1,
    2**62,
    2**63 - 1,
    -(2**63),
    -(2**63) + 1,
    3037000500,
]
FLOATS = [
    *(None, float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1.0, -1.0, 0.1, 0.5, -0.5, 1.5, 2.5, -2.5, 5e-324),
    *(
        -5e-324,
        2.2250738585072014e-308,
        1.7976931348623157e308,
        -1.7976931348623157e308,
        1e-300,
        1e300,
        9007199254740993.0,
    ),
    *(
        9.223372036854775807e18,
        -9.223372036854775808e18,
        9.223372036854774e18,
        0.49999999999999994,
        1e16,
        123456789.987654321,
    ),
    *(
        *(4503599627370495.5, 4503599627370497.0, 9007199254740991.0, -9007199254740992.0, 1.005, 2.675, -1.005),
        *(15.0, 25.0, -150.0, 1e22, 1e294, 3.4999999999999996, -0.49999999999999994, 9.223372036854775e18),
        *(2.0**31, 2.0**33, 2.0**33 - 0.5, -(2.0**33) - 0.5, 1e10, -1e10, 1e15, 2.0**50 + 0.25, 2.0**62, -(2.0**62)),
    ),
]
TEXTS = [
    *(
        None,
        "",
        " ",
        "a",
        "A",
        "ab",
        "aB",
        "É",
        "é",
        "ß",
        "İ",
        "ı",
        "ſ",
        "K",
        "a%b",
        "a_b",
        "a!b",
        "a\\b",
        "a\nb",
        "a'b",
        'a"b',
    ),
    *(
        "\u00a0x\u2003",
        "\u3000",
        "\t x \v",
        "x\x00y",
        "👩‍👩‍👧",
        "e\u0301",
        "🙂",
        "ﬁ",
        "\ufeff1",
        "٣",
        "１２",
        "NULL",
        "nan",
        "inf",
        "-Infinity",
    ),
    *(
        "12",
        " 12 ",
        "12\n",
        "+12",
        "-12",
        "+-12",
        "-0",
        "007",
        "1_000",
        "1,000",
        "0x1F",
        "1.5",
        ".5",
        "5.",
        ".",
        "-.5",
        "1e3",
        "1E+3",
    ),
    *(
        "1e999",
        "-1e999",
        "1e-999",
        "1e1000",
        "e3",
        "1e",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
    ),
    *(
        "9" * 30,
        "9" * 31,
        "0" * 35 + "1",
        "2.445",
        "-2.445",
        "2.4449999999999999999999999999",
        "99999999.995",
        "0." + "0" * 39 + "1",
    ),
    *(
        "0." + "1" * 41,
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "0.1",
        "4.35",
        "true",
        " TRUE ",
        "t",
        "1",
        "False",
        "yes",
    ),
    *(
        "2011-01-31",
        " 2011-01-31 ",
        "2011-02-30",
        "0000-01-01",
        "0001-01-01",
        "9999-12-31",
        "10000-01-01",
        "2011-1-1",
        "2011/01/31",
    ),
    *(
        "2011-01-31 18:30:00",
        "2011-01-31T18:30:00.123456",
        "2011-01-31 24:00:00",
        "2011-01-31 23:59:60",
        "2011-01-31 18:30",
    ),
    *(
        "2011-01-31 18:30:00.1234567",
        "2011-01-31 18:30:00Z",
        "2011-01-31 18:30:00+02",
        "2011-01-31T18:30:00.123456789-0930",
        "2011-01-31T23:30+02:00",
        "2011-01-31 18:30:00.5 +02",
        "2011-01-31 18:30:00+16",
        "2011-01-31Z",
        "0001-01-01 00:00:00+00:01",
        "0000-12-31 23:59:59-02",
        "9999-12-31T23:59:59.999999Z",
        "9999-12-31T23:59:59.999999-00:01",
        "infinity",
        "epoch",
        "2012-02-29",
        "1900-02-29",
    ),
]
BOOLS = [None, True, False]
DAYS = [
    None,
    *(date(*day) for day in [(1, 1, 1), (9999, 12, 31), (1970, 1, 1), (1969, 12, 31), (2011, 1, 31), (1582, 10, 10)]),
    *(
        date(*day)
        for day in [(2012, 2, 29), (2000, 2, 29), (1900, 2, 28), (2010, 1, 3), (2008, 12, 29), (2011, 12, 31)]
    ),
    *(date(*day) for day in [(1, 1, 31), (1, 2, 1), (4, 2, 29), (9999, 11, 30), (9999, 1, 1), (9998, 12, 31)]),
]
MOMENTS = [
    None,
    *(
        datetime.fromisoformat(day)
        for day in (
            "0001-01-01",
            "9999-12-31T23:59:59.999999",
            "1969-12-31T23:59:59.999999",
            "2011-01-31",
            "2011-01-31T18:30:00.123456",
            "0001-01-01T00:00:00.000001",
            "2012-02-29T23:59:59.999999",
            "2010-01-03T12:00:00",
            "1970-01-01T00:00:01",
            "9999-11-30T23:59:59.999999",
            "0001-02-28T00:59:59.5",
            "2008-12-29T00:00:59.999999",
        )
    ),
]
PRICES = [
    None,
    *map(Decimal, ["0.00", "0.01", "-0.01", "1.50", "-2.50", "99999999.99", "-99999999.99", "12.34", "0.50"]),
]
WIDE = [
    None,
    *map(Decimal, ["0", "0.000001", "-0.000005", "0.5", "1.5", "999999999999.999999", "-999999999999.999999", "2.445"]),
]
# All the digits that a decimal has, before the point and after it.
_NINES = ("9" * 32 + ".999999", "9." + "9" * 37)
HUGE = [None, *map(Decimal, ["0.000001", "8589934592.5", "-1e10", "1e15", "-1e18", "1e24", "-1e31", _NINES[0]])]
HUGE += [Decimal("-" + _NINES[0])]
TINY = [None, *map(Decimal, ["0", "1e-37", "-1e-37", "0.5", "-0.5", "9.5e-7", _NINES[1], "-" + _NINES[1]])]

CELLS: dict[str, tuple[list[Any], Kind, Any]] = {
    "i": (INTS, INT, pa.int64()),
    "j": (INTS, INT, pa.int64()),
    "f": (FLOATS, FLOAT, pa.float64()),
    "g": (FLOATS, FLOAT, pa.float64()),
    "s": (TEXTS, TEXT, pa.string()),
    "t": (TEXTS, TEXT, pa.string()),
    "b": (BOOLS, BOOL, pa.bool_()),
    "c": (BOOLS, BOOL, pa.bool_()),
    "day": (DAYS, DATE, pa.date32()),
    "moment": (MOMENTS, TIMESTAMP, pa.timestamp("us")),
    "price": (PRICES, decimal(10, 2), pa.decimal128(10, 2)),
    "wide": (WIDE, decimal(18, 6), pa.decimal128(18, 6)),
    "huge": (HUGE, decimal(38, 6), pa.decimal128(38, 6)),
    "tiny": (TINY, decimal(38, 37), pa.decimal128(38, 37)),
}
KINDS = {name: kind for name, (_, kind, _) in CELLS.items()}
_STRIDES = dict(zip(CELLS, (1, 5, 1, 7, 1, 11, 1, 2, 1, 3, 1, 5, 1, 4), strict=True))

PATTERNS = ["", "%", "_", "a%", "%b", "a_b", "a\\b", "%a%b%", "É%", "__", "a%b", "A", "%\n%"]
ESCAPED = [
    ("a!%b", "!"),
    ("a!_b", "!"),
    ("a!!b", "!"),
    ("%!%%", "!"),
    ("a\\%b", "\\"),
    ("_aa", "a"),
    ("%.\\+*?^$|()[]{}'!!", "!"),
]
LISTED: dict[str, list[Any]] = {
    "s": ["a", "É", ""],
    "f": [0.1, 1, 1e300],
    "i": [Fraction(5, 2), 2**63 - 1],
    "day": ["2011-01-31", "1970-01-01"],
    "price": [Fraction(3, 2), 0],
}
_BINARY: tuple[str, ...] = ("=", "<>", "<", "<=", ">", ">=", "and", "or", "+", "-", "*", "/", "%", "//", "power")
_BINARY += ("nullif", "coalesce")
_UNARY = ("not", "is_null", "negate", "lower", "upper", "trim", "sqrt", "exp", "ln", "log10", "log2")
_FORMATS = ("%Y-%m", "%A %d %B, %y", "%j%%%V %u%w", "%H:%M:%S", "%a %b é")
_CASTS = ("cast_bool", "cast_int", "cast_float", "cast_text", "cast_date", "cast_timestamp")
CONSTANTS = [
    0,
    1,
    -1,
    3,
    2**63 - 1,
    Fraction(5, 2),
    Fraction(1, 10),
    0.1,
    1e300,
    "a",
    "2011-01-31",
    True,
    date(2011, 1, 31),
]


def rows(number: int) -> list[dict[str, Any]]:
    """Return made-up rows; every column steps through its cells at its own pace, so that pairs meet in many ways."""
    return [
        {
            name: cells[(place * _STRIDES[name] + place // len(cells)) % len(cells)]
            for name, (cells, _, _) in CELLS.items()
        }
        for place in range(number)
    ]


def arrow(made_up: list[dict[str, Any]]) -> pa.Table:
    """Return the rows as an Arrow table."""
    return pa.table({name: pa.array([row[name] for row in made_up], type=kind) for name, (_, _, kind) in CELLS.items()})


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with decimals as rationals."""
    return {name: Fraction(cell) if isinstance(cell, Decimal) else cell for name, cell in row.items()}


def every_form() -> dict[str, list[Expression]]:
    """Return, for each function of the catalogue, all the calls over columns and constants that its types allow."""
    forms: dict[str, list[Expression]] = {}
    for call in _written_forms():
        try:
            expression = canonical(call, KINDS)
        except QueryRefused:
            continue
        if isinstance(expression, Call):
            forms.setdefault(call.function, []).append(expression)
    return forms


def _written_forms() -> Iterator[Call]:
    columns: list[Expression] = [Column(name) for name in CELLS]
    constants: list[Expression] = [value_of(constant) for constant in CONSTANTS]
    for name in _BINARY:
        yield from (Call(name, (left, right)) for left in columns for right in [*columns, *constants])
        yield from (Call(name, (constant, right)) for constant in constants for right in columns)
    for name in (*_UNARY, *_CASTS):
        yield from (Call(name, (column,)) for column in columns)
    for digits, scale in ((10, 2), (4, 0), (38, 6), (3, 3), (20, 20)):
        sizes = (value_of(digits), value_of(scale))
        yield from (Call("cast_decimal", (column, *sizes)) for column in columns)
    for pattern in PATTERNS:
        yield Call("like", (Column("s"), value_of(pattern)))
    for pattern, escape in ESCAPED:
        yield Call("like", (Column("s"), value_of(pattern), value_of(escape)))
    yield from (Call("strftime", (column, value_of(form))) for column in columns for form in _FORMATS)
    yield from (Call("in", (column, *constants[:2])) for column in columns)
    for name, listed in LISTED.items():
        yield Call("in", (Column(name), *(value_of(constant) for constant in listed)))
    yield from function_forms(columns, constants)
    no_value = value_of(None)
    for left in columns:
        yield from (Call("case", (Column("b"), left, Column("c"), right, no_value)) for right in columns)
        yield from (Call("coalesce", (no_value, left, right, left)) for right in columns)


def same_cell(found: Any, wanted: Any) -> bool:
    """Whether an engine's cell is the value wanted: the type too, and a float's sign of zero."""
    if isinstance(wanted, float) and isinstance(found, float):
        return found.hex() == wanted.hex()
    if type(found).__name__ == "Decimal":
        return type(wanted).__name__ == "Fraction" and bool(found == wanted)
    return type(found) is type(wanted) and bool(found == wanted)


_PLACES = (1, 2, 5, 15, -1, -2, -5, -15)
_PIECES = ((1,), (2,), (1, 0), (1, 1), (1, 3), (2, 2), (4, 1000), (7,), (1_000_000, 1_000_000))
_REPLACED = (
    *(("a", ""), ("a", "b"), ("a", "aa"), ("aa", "a"), ("é", "e"), ("e", "é"), ("👩", "x"), ("\u0301", "!")),
    *((" ", ""), ("1", "12"), ("%", "_"), ("\\", "\\\\"), ("'", '"'), ("\x00", "0"), ("--", "-"), ("a\nb", "🙂")),
)
_INTERVALS = (
    *(("day", 1), ("day", -1), ("day", 0), ("day", 146_097), ("month", 1), ("month", -1), ("month", 11), ("year", 4)),
    *(("quarter", 1), ("week", -1), ("hour", 1), ("minute", -1), ("second", 1), ("second", -86_400), ("year", -2011)),
    *((unit, reach) for unit, reach in REACH.items()),
    *((unit, -reach) for unit, reach in REACH.items()),
)


def function_forms(columns: Sequence[Expression], constants: Sequence[Expression]) -> Iterator[Call]:
    """Return calls of each function on each column; those that its types refuse are for the caller to drop."""
    for name in ("least", "greatest", "concat"):
        yield from (Call(name, (left, right)) for left in columns for right in [*columns, *constants])
    for name in ("abs", "round", "floor", "ceil", "length"):
        yield from (Call(name, (column,)) for column in columns)
    for left in columns:
        yield Call("least", (left, value_of(None)))
        yield from (Call("greatest", (left, right, left)) for right in columns)
        yield Call("concat", (left, left, value_of("é "), left))
        yield from (Call("round", (left, value_of(places))) for places in _PLACES)
        yield from (Call("substring", (left, *map(value_of, piece))) for piece in _PIECES)
        yield from (Call("replace", (left, value_of(old), value_of(new))) for old, new in _REPLACED)
        yield from (Call("extract", (value_of(part), left)) for part in PARTS)
        yield from (Call("date_trunc", (value_of(unit), left)) for unit in UNITS)
        yield from (Call("add_interval", (left, value_of(number), value_of(unit))) for unit, number in _INTERVALS)
        for unit in UNITS:
            yield from (Call("date_diff", (value_of(unit), left, right)) for right in [*columns, *constants])
            yield from (Call("date_diff", (value_of(unit), constant, left)) for constant in constants)
