"""The functions that are called by name, one record each: of numbers, of texts, and of dates and timestamps."""

from collections.abc import Callable
from typing import Any

from tacit.errors import QueryRefused
from tacit.query.language.evaluation import (
    BLANKS,
    ceil_of,
    concatenated,
    floor_of,
    moved,
    part_of,
    replaced,
    rounded,
    start_of,
    starts_between,
    substring,
)
from tacit.query.language.functions import (
    BytesOf,
    CheckedCall,
    Cost,
    Function,
    KindOf,
    Kinds,
    Length,
    Notation,
    Pen,
    TypeRule,
    adapted_together,
    aligned,
    all_adapted,
    by_name,
    each_once,
    flat_parts,
    gives,
    longest,
    looks,
    number,
    one_kind,
    only_one,
    same_bytes,
    strict,
    text,
)
from tacit.query.nodes import DATE, FLOAT, INT, TEXT, TIMESTAMP, Call, Expression, Kind, Value, decimal, fits, value_of
from tacit.tables import TEXT_BYTES_MAX

# --- numbers ---

PLACES_MAX = 15


def _extreme_kind(kinds: Kinds, where: CheckedCall) -> Kind:
    if len(kinds) < 2:
        raise QueryRefused(
            f"{where} has only one argument\nhint: LEAST(a, b) compares values of one row; MIN(x) compares rows"
        )
    return one_kind(kinds, where)


def _extreme_value(*, last: bool) -> Callable[..., Any]:
    def run(*values: Any) -> Any:
        chosen = None
        for value in values:
            if value is None:
                continue
            left, right = aligned(value, value if chosen is None else chosen)
            if chosen is None or (left > right if last else left < right):
                chosen = value
        return chosen

    return run


def _round_kind(kinds: Kinds, where: CheckedCall) -> Kind:
    kind = number(kinds, where)
    if len(kinds) == 1:
        return INT
    places = where.constant(1)
    if isinstance(places, bool) or not isinstance(places, int) or abs(places) > PLACES_MAX:
        raise QueryRefused(
            f"{where}: the number of decimals must be a whole number from -{PLACES_MAX} to {PLACES_MAX}"
            "\nhint: ROUND(x, 2), or ROUND(x, -3) for thousands"
        )
    if kind.type != "decimal":
        return FLOAT if kind.type == "float" else INT
    whole = kind.digits - kind.scale
    if places < 0:
        fits(max(kind.digits, whole + 2) - places, kind.scale - places, where=where)
        return decimal(max(whole, -places) + 1, 0)
    return kind if places >= kind.scale else decimal(whole + places + 1, places)


def _without_idle_rounding(checked: CheckedCall, kind_of: KindOf) -> Expression:
    """The argument itself if it is whole already or needs no more places."""
    inner, *given = checked.call.arguments
    kind = kind_of(inner)
    places = given[0].value if given and isinstance(given[0], Value) else 0
    if not isinstance(places, int):
        return checked.call
    if kind.type == "int" and places >= 0:
        return inner
    if kind.type == "decimal" and given and places > 0 and places >= kind.scale:
        return inner
    return Call(checked.call.function, (inner,)) if places == 0 else checked.call


def _extreme_of(name: str, meaning: str, *, last: bool) -> Function:
    return Function(
        name,
        f"{name.upper()}(a, b)",
        meaning,
        _extreme_kind,
        adapt=all_adapted,
        rewrite=lambda checked, _kind_of: only_one(name, each_once(checked.call.arguments)),
        evaluate=_extreme_value(last=last),
        cost=Cost(mentions=2, text_bytes=same_bytes),
    )


def _to_whole(name: str, meaning: str, run: Callable[[Any], int | None]) -> Function:
    form, kind = f"{name.upper()}(a)", gives(INT, number)
    return Function(name, form, meaning, kind, strict(run), rewrite=_without_idle_rounding, counts=(1,))


NUMBERS = (
    _extreme_of("least", "the first in order of those that are not NULL; NULL if all are", last=False),
    _extreme_of("greatest", "the last in order of those that are not NULL; NULL if all are", last=True),
    Function(
        "abs",
        "ABS(a)",
        "a without its sign; the least int lacks an opposite, so NULL",
        number,
        evaluate=strict(abs),
        counts=(1,),
    ),
    Function(
        "round",
        "ROUND(a [, places])",
        "the nearest whole number, halves away from 0, as an int: NULL beyond 64 bits and for ±Inf. With places, from"
        " -15 to 15 and not 0: an int or decimal exactly, halves away from 0, an int beyond 64 bits NULL; a "
        "float x is the whole number nearest x × 10^places, halves away from 0, divided by 10^places (for "
        "negative places divided first, then multiplied), each step rounded as floats are, or x itself if the "
        "scaled number is 2^53 or more",
        _round_kind,
        rewrite=_without_idle_rounding,
        evaluate=strict(rounded),
        counts=(1, 2),
        cost=Cost(mentions=4),
    ),
    _to_whole("floor", "the last whole number up to a, as an int; NULL beyond 64 bits and for ±Inf", floor_of),
    _to_whole("ceil", "the first whole number from a on, as an int; NULL beyond 64 bits and for ±Inf", ceil_of),
)


# --- texts ---

POSITION_MAX = 1_000_000
_CHARACTER_BYTES = 4
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def _fold(name: str, meaning: str, letters: dict[int, int]) -> Function:
    cost = Cost(mentions=3, bytes_read=looks(2), text_bytes=same_bytes)
    run = strict(lambda value: value.translate(letters))
    return Function(name, f"{name.upper()}(a)", meaning, text, run, cost=cost)


FOLDS = (
    _fold("lower", "A to Z become a to z; no other character changes", _LOWER),
    _fold("upper", "a to z become A to Z; no other character changes", _UPPER),
    Function(
        "trim",
        "TRIM(a)",
        "without the spaces, tabs, newlines, \\r, \\v and \\f at both ends",
        text,
        evaluate=strict(lambda value: value.strip(BLANKS)),
        cost=Cost(bytes_read=looks(1), text_bytes=same_bytes),
    ),
)


def _substring_kind(kinds: Kinds, where: CheckedCall) -> Kind:
    text(kinds[:1], where)
    for index, least in ((1, 1), (2, 0))[: len(kinds) - 1]:
        given = where.constant(index)
        if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= POSITION_MAX:
            raise QueryRefused(
                f"{where}: start (from 1) and length (from 0) must be whole constants, at most {POSITION_MAX}"
                "\nhint: SUBSTRING(x, 1, 3) is the first three characters"
            )
    return TEXT


def _substring_bytes(call: Call, bytes_of: BytesOf) -> int:
    length = call.arguments[2] if len(call.arguments) == 3 else None
    most = length.value if isinstance(length, Value) and isinstance(length.value, int) else TEXT_BYTES_MAX
    return min(bytes_of(call.arguments[0]), _CHARACTER_BYTES * most)


def _replace_kind(kinds: Kinds, where: CheckedCall) -> Kind:
    text(kinds, where)
    old, new = where.constant(1), where.constant(2)
    if not isinstance(old, str) or not isinstance(new, str) or not old:
        raise QueryRefused(
            f"{where}: both texts of REPLACE must be constants, and the first must not be empty"
            "\nhint: REPLACE(x, '-', '') removes hyphens"
        )
    return TEXT


def _replace_bytes(call: Call, bytes_of: BytesOf) -> int:
    inner, old, new = map(bytes_of, call.arguments)
    return min(inner * max(1, -(-new // max(old, 1))), TEXT_BYTES_MAX)


def _replace_length(parts: list[Length]) -> Length:
    if len(parts) != 3:
        return longest(parts)
    (times, more), (_, old), (_, new) = parts
    growth = max(1, -(-new // max(old, 1)))
    return times * growth, more * growth


TEXTS = (
    Function(
        "length",
        "LENGTH(a)",
        "how many code points a has; 0 for empty text",
        gives(INT, text),
        evaluate=strict(len),
        counts=(1,),
        cost=Cost(bytes_read=looks(1)),
    ),
    Function(
        "substring",
        "SUBSTRING(a, start [, length])",
        "that many code points from the start on, counted from 1, or all of them; fewer if a ends before, empty "
        "text if it ends before the start; start and length are constants",
        _substring_kind,
        evaluate=strict(substring),
        counts=(2, 3),
        cost=Cost(bytes_read=looks(1), text_bytes=_substring_bytes),
    ),
    Function(
        "concat",
        "CONCAT(a, b) or a || b",
        "the texts one after the other; NULL if any is NULL",
        text,
        rewrite=lambda checked, _kind_of: only_one("concat", flat_parts(checked.call)),
        evaluate=strict(concatenated),
        cost=Cost(
            mentions=2,
            bytes_read=looks(1),
            text_bytes=lambda call, bytes_of: min(sum(map(bytes_of, call.arguments)), TEXT_BYTES_MAX),
            text_length=lambda parts: (sum(times for times, _ in parts), sum(more for _, more in parts)),
        ),
    ),
    Function(
        "replace",
        "REPLACE(a, 'old', 'new')",
        "a with each old, found from left to right without overlap and code point by code point, become new; both are"
        " constants, and old is not empty",
        _replace_kind,
        evaluate=strict(replaced),
        counts=(3,),
        cost=Cost(mentions=4, bytes_read=looks(3), text_bytes=_replace_bytes, text_length=_replace_length),
    ),
)


# --- dates and timestamps ---

DAY_PARTS = ("year", "isoyear", "quarter", "month", "week", "day", "doy", "dow", "isodow")
CLOCK = ("hour", "minute", "second")
PARTS = (*DAY_PARTS, *CLOCK)
UNITS = ("year", "quarter", "month", "week", "day", *CLOCK)

# each unit of an interval -> the base unit (months, days or seconds), and its length in that
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


def _of_unit(units: tuple[str, ...], form: str, result: Kind | None, *, reads_clock: bool = True) -> TypeRule:
    """Return the rule of a function of a unit and times, which gives this kind, or the time's."""

    def kind(kinds: Kinds, where: CheckedCall) -> Kind:
        _unit_of_time(where, 0, units, form)
        _texts_times(kinds[1:], where, clock=reads_clock and where.constant(0) in CLOCK)
        return kinds[1] if result is None else result

    return kind


def _moved_kind(kinds: Kinds, where: CheckedCall) -> Kind:
    _texts_times(kinds[:1], where)
    unit, number = _unit_of_time(where, 2, tuple(STEPS), "x + INTERVAL 3 DAY"), where.constant(1)
    step, size = STEPS[unit]
    if isinstance(number, bool) or not isinstance(number, int) or abs(number) * size > REACH[step]:
        raise QueryRefused(
            f"{where}: an interval must be a whole constant that fits in the years 1 to 9999\nhint: x + INTERVAL 3 DAY"
        )
    return DATE if kinds[0] == DATE and step != "second" else TIMESTAMP


def _in_steps(checked: CheckedCall, _kind_of: KindOf) -> Expression:
    """An interval in months, days or seconds: a year is 12 months, a week 7 days, an hour 3600 seconds."""
    moved, number, unit = checked.call.arguments
    if not (isinstance(number, Value) and isinstance(number.value, int) and isinstance(unit, Value)):
        return checked.call
    step, size = STEPS[str(unit.value)]
    return Call(checked.call.function, (moved, value_of(number.value * size), value_of(step)))


def _times_adapted(checked: CheckedCall, kind_of: KindOf) -> Call:
    unit, *times = checked.call.arguments
    return Call("date_diff", (unit, *adapted_together(tuple(times), kind_of, checked)))


def _write_part(call: Call, pen: Pen) -> str:
    if len(call.arguments) != 2:
        return by_name(call, pen)
    part, time = call.arguments
    return f"EXTRACT({_constant_word(part, pen)} FROM {pen.plain(time)})"


def _write_interval(call: Call, pen: Pen) -> str:
    moved, number, unit = call.arguments
    return f"{pen.bracketed(moved)} + INTERVAL {_constant_word(number, pen)} {_constant_word(unit, pen)}"


def _constant_word(argument: Expression, pen: Pen) -> str:
    """A number in quotes, or a unit without quotes; anything else unchanged."""
    if isinstance(argument, Value) and isinstance(argument.value, str) and argument.value.isalpha():
        return argument.value.upper()
    is_number = isinstance(argument, Value) and isinstance(argument.value, int)
    return f"'{argument.value}'" if isinstance(argument, Value) and is_number else pen.plain(argument)


def _unit_of_time(where: CheckedCall, index: int, units: tuple[str, ...], form: str) -> str:
    unit = where.constant(index)
    if not isinstance(unit, str) or unit not in units:
        raise QueryRefused(f"{where}: the units are {', '.join(units)}\nhint: write {form}")
    return unit


def _texts_times(kinds: Kinds, where: CheckedCall, *, clock: bool = False) -> None:
    for kind in kinds:
        if not kind.is_time:
            raise QueryRefused(
                f"{where} needs dates or timestamps, but has {kind.phrase}"
                "\nhint: CAST(x AS DATE) reads text, DATE '2011-01-31' is a constant"
            )
        if clock and kind == DATE:
            raise QueryRefused(
                f"{where}: a date does not have a time of day\nhint: use a timestamp, or a unit of whole days"
            )


TIMES = (
    Function(
        "extract",
        "EXTRACT(YEAR FROM a)",
        "a part of a date or timestamp, as an int: year, quarter 1 to 4, month, day, doy (day of the year from 1), week"
        " and isoyear (ISO 8601: weeks start on Monday, week 1 has the year's first Thursday), dow (Sunday is 0),"
        " isodow (Monday is 1, Sunday 7); of a timestamp also hour, minute, and second without its fraction. YEAR(a),"
        " QUARTER(a), MONTH(a), WEEK(a), DAY(a), HOUR(a), MINUTE(a) and SECOND(a) are the same",
        _of_unit(PARTS, "EXTRACT(YEAR FROM x)", INT),
        evaluate=strict(part_of),
        counts=(2,),
        notation=Notation(_write_part),
    ),
    Function(
        "date_trunc",
        "DATE_TRUNC('month', a)",
        "the start of the year, quarter, month, week (Monday), day, hour, minute or second that a is in; a date "
        "stays a date, without hours",
        _of_unit(UNITS, "DATE_TRUNC('month', x)", None),
        evaluate=strict(start_of),
        counts=(2,),
    ),
    Function(
        "date_diff",
        "DATE_DIFF('day', a, b)",
        "how many starts of a year, quarter, month, week (Monday), day, hour, minute or second lie after a, up to b;"
        " negative where b is before a; b - a of two dates is their DATE_DIFF in days",
        _of_unit(UNITS, "DATE_DIFF('day', a, b)", INT, reads_clock=False),
        adapt=_times_adapted,
        evaluate=strict(starts_between),
        counts=(3,),
        cost=Cost(mentions=4),
    ),
    Function(
        "add_interval",
        "a + INTERVAL 3 MONTH or a - INTERVAL 3 MONTH",
        "that much later or earlier, by a whole constant of years, quarters, months, weeks, days, hours, minutes "
        "or seconds; a day that its new month does not have becomes the month's last; NULL if it leaves the "
        "years 1 to 9999; a date moved by hours, minutes or seconds is a timestamp, otherwise a date",
        _moved_kind,
        rewrite=_in_steps,
        evaluate=strict(moved),
        counts=(3,),
        notation=Notation(_write_interval, is_operator=True),
        cost=Cost(mentions=2),
    ),
)
