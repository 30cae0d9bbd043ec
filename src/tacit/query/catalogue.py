"""The closed table of functions a question may use, each with its types and its meaning on every input.

Nothing else exists: the doors refuse a name that is not here, and the engine translates exactly these names. Every
function is total: it has a result, perhaps NULL, for every row, and never an error. The rules that all share:

- A float that is NaN reads as NULL and so does any operation that would yield NaN; −0.0 is 0.0; ±Inf stay, ordered
  beyond every number. Float arithmetic is IEEE 754 binary64, rounded to nearest.
- An int is 64 bits wide; an int result that would not fit is NULL. A decimal is exact, and an operation that could
  need more than 38 digits is refused before any row is read.
- Text of more than 32,768 bytes in UTF-8 is NULL: in a cell, and where CONCAT or REPLACE would make it. What could make
  text more than 100 times as long as a row's own, or looks at texts too often, is refused before any row is read.
- A date or timestamp before year 1 or after year 9999, infinite ones included, reads as NULL. Timestamps are in
  microseconds and have no zone; a zoned column is read in UTC.
- Text is compared code point by code point. Empty text is text, not NULL.
- Any NULL argument makes NULL, except where the words below say otherwise.
- int widens to decimal and either widens to float, correctly rounded, where they meet; a date where it meets a
  timestamp is its midnight. Nothing else converts unasked.
"""

from tacit.errors import QueryRefused
from tacit.query import functions
from tacit.query.functions import Function, Kinds, Rule, number, numbers, one_kind, refuse_null, text
from tacit.query.kind import BOOL, DATE, FLOAT, INT, TEXT, TIMESTAMP, Kind, common, fits, phrase


def _comparison(kinds: Kinds, where: object) -> Kind:
    refuse_null(kinds, where)
    common(kinds[0], kinds[1], where=where)
    return BOOL


def _membership(kinds: Kinds, where: object) -> Kind:
    refuse_null(kinds, where)
    for kind in kinds[1:]:
        common(kinds[0], kind, where=where)
    return BOOL


def _logic(kinds: Kinds, where: object) -> Kind:
    for kind in kinds:
        if kind.type not in ("bool", "null"):
            raise QueryRefused(
                f"{where} needs true-or-false parts, and has {phrase(kind)}\nhint: compare it, e.g. x > 0 or x = 'A'"
            )
    return BOOL


def _sum(kinds: Kinds, where: object) -> Kind:
    both = numbers(kinds, where)
    if both.type == "decimal":
        return fits(both.digits + 1, both.scale, where=where)
    return INT if both.type == "int" else both


def _product(kinds: Kinds, where: object) -> Kind:
    both = numbers(kinds, where, align=False)
    if both.type == "decimal":
        return fits(kinds[0].digits + kinds[1].digits, kinds[0].scale + kinds[1].scale, where=where)
    return INT if both.type == "int" else both


def _quotient(kinds: Kinds, where: object) -> Kind:
    numbers(kinds, where, align=False)
    return FLOAT


def _remainder(kinds: Kinds, where: object) -> Kind:
    numbers(kinds, where, align=False)
    if any(kind.type != "int" for kind in kinds):
        raise QueryRefused(f"{where}: % is for whole numbers\nhint: CAST(x AS INT) % 10")
    return INT


def _case(kinds: Kinds, where: object) -> Kind:
    _logic(kinds[:-1:2], where)
    return one_kind((*kinds[1::2], kinds[-1]), where)


def _nullif(kinds: Kinds, where: object) -> Kind:
    _comparison(kinds, where)
    return INT if kinds[0].type == "int" else kinds[0]


def _like(kinds: Kinds, where: object) -> Kind:
    text(kinds, where)
    return BOOL


def _is_null(_kinds: Kinds, _where: object) -> Kind:
    return BOOL


def _cast(target: Kind, *sources: str) -> Rule:
    def rule(kinds: Kinds, where: object) -> Kind:
        if kinds[0].type not in sources:
            raise QueryRefused(
                f"{where}: {phrase(kinds[0])} cannot become {phrase(target)}"
                f"\nhint: {target.type} is made from {', '.join(sources)}"
            )
        return target

    return rule


def _cast_decimal(_kinds: Kinds, where: object) -> Kind:
    raise QueryRefused(f"{where} has no digits\nhint: CAST(x AS DECIMAL(12, 2))")


_COMPARED = "ints and decimals exactly; with a float, both as floats; false before true; text by code point"
_ENTRIES = (
    Function("=", "a = b", f"whether they are equal: {_COMPARED}", _comparison),
    Function("<>", "a <> b", "NOT (a = b)", _comparison),
    Function("<", "a < b", f"whether a is before b: {_COMPARED}", _comparison),
    Function("<=", "a <= b", "a < b OR a = b", _comparison),
    Function(">", "a > b", "b < a", _comparison),
    Function(">=", "a >= b", "b <= a; a BETWEEN b AND c is a >= b AND a <= c", _comparison),
    Function("and", "a AND b", "false if any part is false, else NULL if any is NULL, else true", _logic),
    Function("or", "a OR b", "true if any part is true, else NULL if any is NULL, else false", _logic),
    Function(
        "not",
        "NOT a",
        "true and false swapped; a NOT LIKE 'x%', NOT IN, NOT BETWEEN and IS NOT NULL are NOT of what they deny",
        _logic,
    ),
    Function("in", "a IN (1, 2)", "whether a equals one of the constants, none of which is NULL", _membership),
    Function(
        "like",
        "a LIKE 'x%' [ESCAPE '!']",
        "whether all of a matches: % is any run of characters, newlines too, _ is any one code point, the escape makes"
        " the next character plain, all else is itself; case counts; a backslash is plain unless it is the escape",
        _like,
    ),
    Function("is_null", "a IS NULL", "whether a is NULL (a NaN is); true or false, never NULL", _is_null),
    Function("+", "a + b", "their sum; an int out of 64 bits is NULL; Inf − Inf is NULL", _sum),
    Function("-", "a - b", "a + (−b), without rounding twice; an int out of 64 bits is NULL", _sum),
    Function("*", "a * b", "their product; an int out of 64 bits is NULL; 0 × Inf is NULL", _product),
    Function(
        "/", "a / b", "the quotient of both as floats, always a float; NULL if b is 0, or both are ±Inf", _quotient
    ),
    Function("%", "a % b", "the remainder of whole numbers, with a's sign; NULL if b is 0", _remainder),
    Function("negate", "-a", "0 − a; the least int has no opposite, so NULL", number),
    Function(
        "case",
        "CASE WHEN c THEN a ELSE b END",
        "the result after the first condition that is true (false and NULL are passed over), else b, else NULL",
        _case,
    ),
    Function("coalesce", "COALESCE(a, b)", "the first that is not NULL, else NULL", one_kind),
    Function("nullif", "NULLIF(a, b)", "NULL if a = b is true, else a", _nullif),
    Function("lower", "LOWER(a)", "A to Z become a to z; no other character changes", text),
    Function("upper", "UPPER(a)", "a to z become A to Z; no other character changes", text),
    Function("trim", "TRIM(a)", "without the spaces, tabs, newlines, \\r, \\v and \\f at both ends", text),
    Function(
        "cast_bool",
        "CAST(a AS BOOL)",
        "an int: whether it is not 0; text, trimmed, in any case: true or false, else NULL",
        _cast(BOOL, "bool", "int", "text"),
    ),
    Function(
        "cast_int",
        "CAST(a AS INT)",
        "a decimal or float without its digits after the point (toward 0), NULL beyond 64 bits; true is 1; text,"
        " trimmed: an optional sign and at most 30 digits 0 to 9, else NULL",
        _cast(INT, "bool", "int", "decimal", "float", "text"),
    ),
    Function(
        "cast_float",
        "CAST(a AS FLOAT)",
        "the nearest float; text, trimmed: sign, at most 40 digits on each side of an optional point, an optional"
        " exponent (e or E, sign, at most 3 digits), else NULL; text beyond the largest float is NULL",
        _cast(FLOAT, "int", "decimal", "float", "text"),
    ),
    Function(
        "cast_decimal",
        "CAST(a AS DECIMAL(p, s))",
        "rounded to s digits after the point, halves away from 0; NULL if it needs over p digits; text, trimmed: sign,"
        " at most 40 digits on each side of an optional point, else NULL",
        _cast_decimal,
    ),
    Function(
        "cast_text",
        "CAST(a AS TEXT)",
        "an int in digits; a decimal with all its scale's digits, 0.50; true or false; a date as 2011-01-31",
        _cast(TEXT, "text", "int", "decimal", "bool", "date"),
    ),
    Function(
        "cast_date",
        "CAST(a AS DATE)",
        "a timestamp's day; text: the day of CAST(a AS TIMESTAMP), so in UTC where it has an offset",
        _cast(DATE, "date", "timestamp", "text"),
    ),
    Function(
        "cast_timestamp",
        "CAST(a AS TIMESTAMP)",
        "a date's midnight; text, trimmed: YYYY-MM-DD, or with T or a space HH:MM or HH:MM:SS and at most 9 more digits"
        " after a point (rounded down to microseconds), then perhaps Z or an offset below 16 hours such as +02, +0200"
        " or +02:00, which is taken off so that it is in UTC; in the calendar and below 24:00:00, else NULL",
        _cast(TIMESTAMP, "timestamp", "date", "text"),
    ),
)

_ALL = (*_ENTRIES, *functions.NUMBER_ENTRIES, *functions.TEXT_ENTRIES, *functions.TIME_ENTRIES)
CATALOGUE = {entry.name: entry for entry in _ALL}


def function(name: str) -> Function:
    """Return the entry of a name, or refuse a name that is not in the catalogue."""
    if name not in CATALOGUE:
        raise QueryRefused(f"there is no function '{name}'\nhint: the functions are {written_forms()}")
    return CATALOGUE[name]


def written_forms() -> str:
    """Return how each function is written, in one line."""
    return "; ".join(entry.form for entry in _ALL)
