"""Translates each function of the catalogue into SQL: one table, `TRANSLATIONS`; no translation can fail on a row.

An operation that could raise gets NULL in place of the argument that would make it raise: engines may evaluate a branch
that a CASE guards. Numbers that could overflow are computed in wide decimals. Operations that engines do differently
(rounding halves, the case of letters, what a character is) are not used.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from tacit import typed_sql as sql
from tacit.engine.conversion import CASTS, Cell, TranslatedCall, nothing, settle_int, type_name, widen
from tacit.query import (
    BOOL,
    FLOAT,
    POSITION_MAX,
    TIMESTAMP,
    Expression,
    Kind,
    Value,
    Wild,
    decimal,
    pattern_parts,
)
from tacit.tables import TEXT_BYTES_MAX

Run = Callable[[TranslatedCall], sql.Typed]


@dataclass(frozen=True)
class Translation:
    """How a call is run; one that `takes_raw` passes NaN on or makes NULL of it, so it needs no settled floats."""

    run: Run
    takes_raw: bool = False


def _compared_sql(compare: Callable[[sql.Typed, sql.Typed], sql.Typed]) -> Run:
    def translate(call: TranslatedCall) -> sql.Typed:
        left, right = call.values()
        return compare(left, right)

    return translate


def _joined_sql(join: Callable[[sql.Typed, sql.Typed], sql.Typed]) -> Run:
    def translate(call: TranslatedCall) -> sql.Typed:
        first, *rest = call.values(BOOL)
        for part in rest:
            first = join(first, part)
        return first

    return translate


def _in(call: TranslatedCall) -> sql.Typed:
    tested, *listed = call.values()
    return tested.isin(listed)


def _like(call: TranslatedCall) -> sql.Typed:
    _, given, *escape = call.call.arguments
    text, pattern = call.cells[0].value, pattern_parts(given, escape[0] if escape else None)
    if pattern.escape is None:
        return text.like("".join(part.value if isinstance(part, Wild) else part for part in pattern.parts))
    return text.re_search("(?s)^" + "".join(_as_regular(part) for part in pattern.parts) + "$")


def _as_regular(part: str | Wild) -> str:
    if isinstance(part, Wild):
        return ".*" if part is Wild.ANY else "."
    return "".join(each if each.isalnum() or not each.isascii() else f"\\x{ord(each):02x}" for each in part)


def _sum_sql(operate: Callable[[sql.Typed, sql.Typed], sql.Typed]) -> Run:
    def translate(call: TranslatedCall) -> sql.Typed:
        if call.kind.type == "int":
            return settle_int(operate(*(cell.value.cast("decimal(19, 0)") for cell in call.cells)))
        total = operate(*call.values(call.kind))
        return total if call.kind.type == "float" else total.cast(type_name(call.kind))

    return translate


def _product_sql(call: TranslatedCall) -> sql.Typed:
    if call.kind.type == "float":
        left, right = call.values(FLOAT)
        return left * right
    if call.kind.type == "int":
        return settle_int(product(*(cell.value.cast("decimal(19, 0)") for cell in call.cells)))
    return product(*(widen(cell, decimal(cell.kind.digits, cell.kind.scale)) for cell in call.cells))


def _quotient_sql(call: TranslatedCall) -> sql.Typed:
    top, bottom = call.values(FLOAT)
    if _is_safe_divisor(call.call.arguments[1]):
        return top / bottom
    return top / bottom.nullif(_float("0.0"))


def _remainder(call: TranslatedCall) -> sql.Typed:
    top, bottom = (cell.value.cast("int64") for cell in call.cells)
    if _is_safe_divisor(call.call.arguments[1]):
        return top % bottom
    # some engines raise on the least int % −1, whose answer is 0 as for every int
    safe = sql.cases((bottom.isin([0, -1]), nothing(call.kind)), else_=bottom)
    return sql.cases(((bottom == -1) & top.notnull(), sql.literal(0, "int64")), else_=top % safe).cast("int64")


def _negation(call: TranslatedCall) -> sql.Typed:
    (cell,) = call.cells
    if call.kind.type == "int":
        return settle_int(-cell.value.cast("decimal(19, 0)"))
    return -cell.value


def _is_safe_divisor(argument: Expression) -> bool:
    return isinstance(argument, Value) and argument.value not in (0, -1)


def _case_sql(call: TranslatedCall) -> sql.Typed:
    conditions = [widen(cell, BOOL) for cell in call.cells[:-1:2]]
    results = [widen(cell, call.kind) for cell in call.cells[1::2]]
    return sql.cases(*zip(conditions, results, strict=True), else_=widen(call.cells[-1], call.kind))


def _nullif(call: TranslatedCall) -> sql.Typed:
    left, right = call.values()
    return sql.cases((left == right, nothing(call.kind)), else_=widen(call.cells[0], call.kind))


def _cast(run: Callable[[Cell, Kind], sql.Typed]) -> Run:
    return lambda call: run(call.cells[0], call.kind)


_WIDE = 19


def product(left: sql.Typed, right: sql.Typed) -> sql.Typed:
    """Return the exact product of two decimals, one made wide first: DuckDB raises on products of narrow ones."""
    one, other = left.type(), right.type()
    wide = left.cast(sql.decimal(max(one.digits, _WIDE), one.scale))
    return (wide * right).cast(sql.decimal(one.digits + other.digits, one.scale + other.scale))


# The float just below 1/2: floor(x + this) rounds halves up for every float x >= 0, while x + 1/2 is inexact below 1/2
# and from 2^52 on.
_BELOW_HALF = "0.49999999999999994"
_WHOLE_FROM = "9007199254740992"  # from 2^53 on a float has no places to round


def _magnitude(call: TranslatedCall) -> sql.Typed:
    (cell,) = call.cells
    return settle_int(cell.value.cast("decimal(19, 0)").abs()) if call.kind.type == "int" else cell.value.abs()


def _round(call: TranslatedCall) -> sql.Typed:
    cell = call.cells[0]
    places = call.number(1) if len(call.cells) == 2 else 0
    if cell.kind.type == "float":
        return _round_float(cell.value, places) if places else settle_int(_whole_sql(cell.value))
    if places < 0:
        rounded = _round_left_of_point(cell, -places)
        return settle_int(rounded) if call.kind.type == "int" else rounded.cast(type_name(call.kind))
    if places:
        return cell.value.cast(type_name(call.kind))
    nearest = decimal(cell.kind.digits - cell.kind.scale + 1, 0)  # halves away from 0
    return settle_int(cell.value.cast(type_name(nearest)) if cell.kind.scale else cell.value)


def _whole_sql(value: sql.Typed) -> sql.Typed:
    """The nearest whole number as a float, halves away from 0; NaN and ±Inf stay."""
    return value.sign() * (value.abs() + _float(_BELOW_HALF)).floor()


def _round_float(value: sql.Typed, places: int) -> sql.Typed:
    power = _float(f"1e{abs(places)}")
    scaled = value * power if places > 0 else value / power
    back = _whole_sql(scaled) / power if places > 0 else _whole_sql(scaled) * power
    # NaN is not below anything, so it stays
    return sql.cases((scaled.abs() < _float(_WHOLE_FROM), back), else_=value)


def _round_left_of_point(cell: Cell, zeros: int) -> sql.Typed:
    """An exact number rounded to tens, hundreds and so on: moved right, rounded, moved back."""
    kind = cell.kind if cell.kind.type == "decimal" else decimal(19, 0)
    right = sql.literal("0." + "0" * (zeros - 1) + "1").cast(type_name(decimal(zeros, zeros)))
    left = sql.literal("1" + "0" * zeros).cast(type_name(decimal(zeros + 1, 0)))
    moved = product(widen(cell, kind), right)
    return product(moved.cast(type_name(decimal(kind.digits - kind.scale + 1, 0))), left)


def _float(written: str) -> sql.Typed:
    return sql.literal(written).cast("float64")


_UPPER, _LOWER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"
_NOT_PLAIN = "[^ -~]"


def _folded(call: TranslatedCall, *, up: bool) -> sql.Typed:
    """Engines change the case of É and İ in different ways. Their function is much faster, so ASCII text uses it."""
    text = call.cells[0].value
    theirs = text.upper() if up else text.lower()
    ours = text.translate(_LOWER, _UPPER) if up else text.translate(_UPPER, _LOWER)
    return sql.cases((text.re_search(_NOT_PLAIN), ours), else_=theirs)


def _substring(call: TranslatedCall) -> sql.Typed:
    length = call.number(2) if len(call.cells) == 3 else None
    # without a length, one beyond any text is given: engines disagree about a missing length
    return call.cells[0].value.substr(call.number(1) - 1, _ALL if length is None else length)


_ALL = 2**31 - 1 - POSITION_MAX


def _concat(call: TranslatedCall) -> sql.Typed:
    first, *rest = (cell.value for cell in call.cells)
    size = first.byte_length()
    for text in rest:
        size = size + text.byte_length()
    joined = _where_short(first, size)
    for text in rest:
        joined = joined + text
    return joined


def _replace(call: TranslatedCall) -> sql.Typed:
    text, old, new = (cell.value for cell in call.cells)
    was, becomes = (len(str(call.constant(place)).encode()) for place in (1, 2))
    if becomes <= was:
        return text.replace(old, new)
    taken = text.byte_length() - text.replace(old, "").byte_length()
    size = text.byte_length() + (taken / was).floor().cast("int64") * (becomes - was)
    return _where_short(text, size).replace(old, new)


def _where_short(text: sql.Typed, size: sql.Typed) -> sql.Typed:
    """Return the text if the result made of it is short enough, else NULL; longer text is never made."""
    return sql.cases((size <= TEXT_BYTES_MAX, text), else_=sql.null("string"))


_FIRST, _LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001 - no zones here
_MONTHS = {"year": 12, "quarter": 3, "month": 1}


def _part_of(time: sql.Typed, part: str) -> sql.Typed:
    if part == "isoyear":  # the year of the week's Thursday; not every engine has its own
        return _part_of(_start_of(time, "week") + sql.interval(days=3), "year")
    return time.part(part)


def _start(call: TranslatedCall) -> sql.Typed:
    started = _start_of(call.cells[1].value, str(call.constant(0)))
    return started.cast("date") if call.kind.type == "date" else started


def _start_of(time: sql.Typed, unit: str) -> sql.Typed:
    return time.cast("timestamp(6)").truncate(unit)


def _difference_sql(call: TranslatedCall) -> sql.Typed:
    unit = str(call.constant(0))
    first, last = (cell.value for cell in call.cells[1:])
    if unit in _MONTHS:
        number = "quarter" if unit == "quarter" else "month"
        in_year = 12 // _MONTHS[unit]
        years = _part_of(last, "year") - _part_of(first, "year")
        if unit == "year":
            return years
        return years * in_year + _part_of(last, number) - _part_of(first, number)
    days = _day_of(last, unit).days_since(_day_of(first, unit))
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


def _day_of(time: sql.Typed, unit: str) -> sql.Typed:
    if unit == "week":
        time = _start_of(time, "week")
    return time if time.type().is_date() else time.cast("date")


def _clock(time: sql.Typed, part: str) -> sql.Typed:
    """A part of the time of day; midnight's where there is none."""
    return sql.literal(0, "int64") if time.type().is_date() else _part_of(time, part)


def _moved_sql(call: TranslatedCall) -> sql.Typed:
    number, step = call.number(1), str(call.constant(2))
    time = call.cells[0].value.cast("timestamp(6)")
    limit = sql.literal(_limit(number, step).isoformat(sep=" ")).cast("timestamp(6)")
    stays = time <= limit if number >= 0 else time >= limit
    kept = sql.cases((stays, time), else_=nothing(TIMESTAMP))
    moved = kept + sql.interval(**{f"{step}s": number})
    return moved.cast("date") if call.kind.type == "date" else moved.cast(type_name(TIMESTAMP))


def _limit(number: int, step: str) -> datetime:
    """The last time that can be moved by `steps` and stay in the calendar; for negative steps the first one."""
    if step == "month":
        # months are counted from the calendar's year 0, so that January of year 1 is 12
        last = 12 * 9_999 + 11 - number if number >= 0 else 11 - number
        year, month = divmod(last + 1, 12)
        start = _LAST if year > 9_999 else datetime(year, month + 1, 1)  # noqa: DTZ001 - no zones here
        return start - timedelta(microseconds=1) if number > 0 else start
    span = timedelta(**{f"{step}s": abs(number)})
    return _LAST - span if number >= 0 else _FIRST + span


# ---- Whole division, roots, powers, logarithms, and times as text.

_pow = sql.function("pow", "float64")
_strftime = sql.function("strftime", "string")


def _whole_quotient_sql(call: TranslatedCall) -> sql.Typed:
    top, bottom = (cell.value.cast("int64") for cell in call.cells)
    if _is_safe_divisor(call.call.arguments[1]):
        return top // bottom
    # an engine raises on 0, and on the least int // −1, which does not fit
    safe = sql.cases((bottom.isin([0, -1]), nothing(call.kind)), else_=bottom)
    return sql.cases((bottom == -1, settle_int(-top.cast("decimal(19, 0)"))), else_=top // safe)


def _real_function(name: str, keeps: Callable[[sql.Typed], sql.Typed] | None = None) -> Run:
    theirs = sql.function(name, "float64")

    def translate(call: TranslatedCall) -> sql.Typed:
        (value,) = call.values(FLOAT)
        return theirs(value if keeps is None else sql.cases((keeps(value), value), else_=nothing(FLOAT)))

    return translate


def _above_zero(value: sql.Typed) -> sql.Typed:
    return value > sql.literal(0.0, "float64")


def _from_zero(value: sql.Typed) -> sql.Typed:
    return value >= sql.literal(0.0, "float64")


def _power(call: TranslatedCall) -> sql.Typed:
    base, exponent = call.values(FLOAT)  # settled: NaN to the power 0 would be 1
    # 0 to a negative power is infinite; by a setting of a user's connection the engine raises on it
    zero = sql.literal(0.0, "float64")
    is_infinite = (base == zero) & (exponent < zero)
    power = _pow(sql.cases((is_infinite, nothing(FLOAT)), else_=base), exponent)
    infinite = sql.literal("Infinity").cast("float64")
    return Cell(sql.cases((is_infinite, infinite), else_=power), FLOAT, raw=True).settled().value


TRANSLATIONS: dict[str, Translation] = {
    "=": Translation(_compared_sql(operator.eq)),
    "<>": Translation(_compared_sql(operator.ne)),
    "<": Translation(_compared_sql(operator.lt)),
    "<=": Translation(_compared_sql(operator.le)),
    ">": Translation(_compared_sql(operator.gt)),
    ">=": Translation(_compared_sql(operator.ge)),
    "and": Translation(_joined_sql(operator.and_)),
    "or": Translation(_joined_sql(operator.or_)),
    "not": Translation(lambda call: ~widen(call.cells[0], BOOL)),
    "in": Translation(_in),
    "like": Translation(_like),
    "is_null": Translation(lambda call: call.cells[0].value.isnull()),
    "+": Translation(_sum_sql(operator.add), takes_raw=True),
    "-": Translation(_sum_sql(operator.sub), takes_raw=True),
    "*": Translation(_product_sql, takes_raw=True),
    "/": Translation(_quotient_sql, takes_raw=True),
    "%": Translation(_remainder),
    "//": Translation(_whole_quotient_sql),
    "sqrt": Translation(_real_function("sqrt", _from_zero)),
    "exp": Translation(_real_function("exp")),
    "ln": Translation(_real_function("ln", _above_zero)),
    "log10": Translation(_real_function("log10", _above_zero)),
    "log2": Translation(_real_function("log2", _above_zero)),
    "power": Translation(_power),
    "strftime": Translation(
        lambda call: _strftime(call.cells[0].value.cast("timestamp(6)"), sql.literal(str(call.constant(1))))
    ),
    "negate": Translation(_negation, takes_raw=True),
    "case": Translation(_case_sql, takes_raw=True),
    "coalesce": Translation(lambda call: sql.coalesce(*call.values(call.kind))),
    "nullif": Translation(_nullif),
    "lower": Translation(lambda call: _folded(call, up=False)),
    "upper": Translation(lambda call: _folded(call, up=True)),
    "trim": Translation(lambda call: call.cells[0].value.strip()),
    **{name: Translation(_cast(run), takes_raw=name == "cast_int") for name, run in CASTS.items()},
    "least": Translation(lambda call: sql.least(*call.values(call.kind))),
    "greatest": Translation(lambda call: sql.greatest(*call.values(call.kind))),
    "abs": Translation(_magnitude, takes_raw=True),
    "round": Translation(_round, takes_raw=True),
    "floor": Translation(lambda call: settle_int(call.cells[0].value.floor()), takes_raw=True),
    "ceil": Translation(lambda call: settle_int(call.cells[0].value.ceil()), takes_raw=True),
    "length": Translation(lambda call: call.cells[0].value.length()),
    "substring": Translation(_substring),
    "concat": Translation(_concat),
    "replace": Translation(_replace),
    "extract": Translation(lambda call: _part_of(call.cells[1].value, str(call.constant(0)))),
    "date_trunc": Translation(_start),
    "date_diff": Translation(_difference_sql),
    "add_interval": Translation(_moved_sql),
}
