"""What an entry of the catalogue is, and the rules about types that many of them share.

LEAST, GREATEST, ABS, ROUND, FLOOR and CEIL: their types, their words, and their one canonical form.

LENGTH, SUBSTRING, CONCAT and REPLACE: their types, their words, and their one canonical form.

EXTRACT, DATE_TRUNC, DATE_DIFF and intervals: their types, their words, and their one canonical form.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tacit.errors import QueryRefused
from tacit.query.kind import DATE, FLOAT, INT, TEXT, TIMESTAMP, Kind, common, decimal, fits, phrase, value_of
from tacit.query.nodes import Call, Expression, Value
from tacit.query.sql_text import Shown

Kinds = tuple[Kind, ...]
Rule = Callable[[Kinds, Shown], Kind]


@dataclass(frozen=True)
class Function:
    """One entry: its name in the tree, how it is written, what it means, and its result's kind.

    `rule` takes the arguments' kinds and the call (written out in its error), and returns the result's kind or refuses.
    """

    name: str
    form: str
    meaning: str
    rule: Rule


def one_kind(kinds: Kinds, where: object) -> Kind:
    """Return the kind that all arguments share, at least one of which is not NULL."""
    result = Kind("null")
    for kind in kinds:
        result = common(result, kind, where=where)
    if result.type == "null":
        raise QueryRefused(f"{where} is NULL whatever the row\nhint: leave it out, or give one result that is not NULL")
    return INT if result.type == "int" else result


def text(kinds: Kinds, where: object) -> Kind:
    """Return text, if all arguments are."""
    for kind in kinds:
        if kind.type != "text":
            raise QueryRefused(f"{where} is for text, and has {phrase(kind)}\nhint: CAST(x AS TEXT) first")
    return TEXT


def numbers(kinds: Kinds, where: object, *, align: bool = True) -> Kind:
    """Return the kind two numbers share; without `align` only whether it is int, decimal or float."""
    refuse_null(kinds, where)
    for kind in kinds:
        if not kind.is_number:
            raise QueryRefused(f"{where} is for numbers, and has {phrase(kind)}\nhint: {_way_to_number(kind)}")
    if align:
        return common(kinds[0], kinds[1], where=where)
    types = {kind.type for kind in kinds}
    return FLOAT if "float" in types else decimal(1, 0) if "decimal" in types else INT


def number(kinds: Kinds, where: object) -> Kind:
    """Return the kind of the first argument, a number."""
    kind = numbers((kinds[0], kinds[0]), where)
    return INT if kind.type == "int" else kind


def refuse_null(kinds: Kinds, where: object) -> None:
    """Refuse a call that is NULL on every row."""
    if any(kind.type == "null" for kind in kinds):
        raise QueryRefused(f"{where} is NULL whatever the row\nhint: write x IS NULL or x IS NOT NULL")


def refuse_count(kinds: Kinds, where: Shown, counts: tuple[int, ...], form: str) -> None:
    """Refuse a call with another number of arguments."""
    if len(kinds) not in counts:
        raise QueryRefused(f"{where} has {len(kinds)} argument(s)\nhint: write {form}")


def _way_to_number(kind: Kind) -> str:
    if kind.is_time:
        return "DATE_DIFF('day', a, b) is the time between, x + INTERVAL 3 DAY another day, EXTRACT(YEAR FROM x) a part"
    return "CAST(x AS INT) or CAST(x AS FLOAT) first" if kind.type in ("text", "bool") else "use a number"


PLACES_MAX = 15
WHOLE = ("round", "floor", "ceil")


def _choice(kinds: Kinds, where: Shown) -> Kind:
    if len(kinds) < 2:
        raise QueryRefused(f"{where} has one argument\nhint: LEAST(a, b) is the lower of two; MIN(x) is of many rows")
    return one_kind(kinds, where)


def _magnitude(kinds: Kinds, where: Shown) -> Kind:
    refuse_count(kinds, where, (1,), "ABS(x)")
    return number(kinds, where)


def _whole(kinds: Kinds, where: Shown) -> Kind:
    refuse_count(kinds, where, (1,), "FLOOR(x) or CEIL(x)")
    number(kinds, where)
    return INT


def _rounded(kinds: Kinds, where: Shown) -> Kind:
    refuse_count(kinds, where, (1, 2), "ROUND(x) or ROUND(x, 2)")
    kind = number(kinds, where)
    if len(kinds) == 1:
        return INT
    places = where.constant(1)
    if isinstance(places, bool) or not isinstance(places, int) or abs(places) > PLACES_MAX:
        raise QueryRefused(
            f"{where}: the places to round to are a whole number from -{PLACES_MAX} to {PLACES_MAX}"
            "\nhint: ROUND(x, 2), or ROUND(x, -3) for thousands"
        )
    if kind.type != "decimal":
        return FLOAT if kind.type == "float" else INT
    whole = kind.digits - kind.scale
    if places < 0:
        fits(max(kind.digits, whole + 2) - places, kind.scale - places, where=where)
        return decimal(max(whole, -places) + 1, 0)
    return kind if places >= kind.scale else decimal(whole + places + 1, places)


def without_idle_rounding(call: Call, kind: Kind) -> Expression:
    """Return the argument itself where it is whole already or has no more places than asked for.

    `kind` is the argument's.
    """
    inner, *given = call.arguments
    places = given[0].value if given and isinstance(given[0], Value) else 0
    if not isinstance(places, int):
        return call
    if kind.type == "int" and places >= 0:
        return inner
    if kind.type == "decimal" and given and places > 0 and places >= kind.scale:
        return inner
    return Call(call.function, (inner,)) if places == 0 else call


def in_one_order(call: Call) -> Expression:
    """Return LEAST or GREATEST with each argument once, sorted."""
    parts = {repr(argument): argument for argument in call.arguments}
    ordered = tuple(parts[text] for text in sorted(parts))
    return ordered[0] if len(ordered) == 1 else Call(call.function, ordered)


NUMBER_ENTRIES = (
    Function("least", "LEAST(a, b)", "the first in order of those that are not NULL; NULL if all are", _choice),
    Function("greatest", "GREATEST(a, b)", "the last in order of those that are not NULL; NULL if all are", _choice),
    Function("abs", "ABS(a)", "a without its sign; the least int has no opposite, so NULL", _magnitude),
    Function(
        "round",
        "ROUND(a [, places])",
        "the nearest whole number, halves away from 0, as an int: NULL beyond 64 bits and for ±Inf. With places, from"
        " -15 to 15 and not 0: an int or decimal exactly, halves away from 0, an int beyond 64 bits NULL; a float x is"
        " the whole number nearest x × 10^places, halves away from 0, divided by 10^places (for negative places"
        " divided first, then multiplied), each step rounded as floats are, or x itself where the scaled number is"
        " 2^53 or more",
        _rounded,
    ),
    Function("floor", "FLOOR(a)", "the last whole number up to a, as an int; NULL beyond 64 bits and for ±Inf", _whole),
    Function(
        "ceil", "CEIL(a)", "the first whole number from a on, as an int; NULL beyond 64 bits and for ±Inf", _whole
    ),
)


POSITION_MAX = 1_000_000


def _length(kinds: Kinds, where: Shown) -> Kind:
    refuse_count(kinds, where, (1,), "LENGTH(x)")
    text(kinds, where)
    return INT


def _substring(kinds: Kinds, where: Shown) -> Kind:
    refuse_count(kinds, where, (2, 3), "SUBSTRING(x, 1, 3)")
    text(kinds[:1], where)
    for place, least in ((1, 1), (2, 0))[: len(kinds) - 1]:
        given = where.constant(place)
        if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= POSITION_MAX:
            raise QueryRefused(
                f"{where}: the start counts from 1, the length from 0, both whole constants up to {POSITION_MAX}"
                "\nhint: SUBSTRING(x, 1, 3) is the first three characters"
            )
    return TEXT


def _replace(kinds: Kinds, where: Shown) -> Kind:
    refuse_count(kinds, where, (3,), "REPLACE(x, 'a', 'b')")
    text(kinds, where)
    old, new = where.constant(1), where.constant(2)
    if not isinstance(old, str) or not isinstance(new, str) or not old:
        raise QueryRefused(
            f"{where}: what is replaced is a constant text that is not empty, and so is by what, which may be"
            "\nhint: REPLACE(x, '-', '') takes hyphens out"
        )
    return TEXT


def joined(call: Call) -> Expression:
    """Return CONCAT with what is nested in it as its own parts: any NULL makes NULL, so brackets do not matter."""
    parts: list[Expression] = []
    for argument in call.arguments:
        nested = isinstance(argument, Call) and argument.function == "concat"
        parts += argument.arguments if isinstance(argument, Call) and nested else (argument,)
    return parts[0] if len(parts) == 1 else Call("concat", tuple(parts))


TEXT_ENTRIES = (
    Function("length", "LENGTH(a)", "how many code points a has; 0 for empty text", _length),
    Function(
        "substring",
        "SUBSTRING(a, start [, length])",
        "that many code points from the start on, counted from 1, or all of them; fewer where a ends before, empty"
        " text where it ends before the start; start and length are constants",
        _substring,
    ),
    Function("concat", "CONCAT(a, b) or a || b", "the texts one after the other; NULL if any is NULL", text),
    Function(
        "replace",
        "REPLACE(a, 'old', 'new')",
        "a with each old, found from left to right without overlap and code point by code point, become new; both are"
        " constants, and old is not empty",
        _replace,
    ),
)


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


TIME_ENTRIES = (
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
