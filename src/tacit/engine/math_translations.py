"""Translates whole division, roots, powers, logarithms and times as text into SQL; none can fail on a row.

What an engine would raise on, or make NaN of, is NULL before it gets there.
"""

from collections.abc import Callable

from tacit import typed_sql as sql
from tacit.engine.conversion import Cell, TranslatedCall, nothing, settle_int
from tacit.query import FLOAT, Value

Run = Callable[[TranslatedCall], sql.Value]


_pow = sql.function("pow", "float64")
_strftime = sql.function("strftime", "string")


def _whole_quotient(call: TranslatedCall) -> sql.Value:
    top, bottom = (cell.value.cast("int64") for cell in call.cells)
    constant = call.call.arguments[1]
    if isinstance(constant, Value) and constant.value not in (0, -1):
        return top // bottom
    # an engine raises on 0, and on the least int // −1, which does not fit
    safe = sql.cases((bottom.isin([0, -1]), nothing(call.kind)), else_=bottom)
    return sql.cases((bottom == -1, settle_int(-top.cast("decimal(19, 0)"))), else_=top // safe)


def _real(name: str, keeps: Callable[[sql.Value], sql.Value] | None = None) -> Run:
    theirs = sql.function(name, "float64")

    def translate(call: TranslatedCall) -> sql.Value:
        (value,) = call.values(FLOAT)
        return theirs(value if keeps is None else sql.cases((keeps(value), value), else_=nothing(FLOAT)))

    return translate


def _above_zero(value: sql.Value) -> sql.Value:
    return value > sql.literal(0.0, "float64")


def _from_zero(value: sql.Value) -> sql.Value:
    return value >= sql.literal(0.0, "float64")


def _power(call: TranslatedCall) -> sql.Value:
    base, exponent = call.values(FLOAT)  # settled: NaN to the power 0 would be 1
    # 0 to a negative power is infinite; by a setting of a user's connection the engine raises on it
    zero = sql.literal(0.0, "float64")
    is_infinite = (base == zero) & (exponent < zero)
    power = _pow(sql.cases((is_infinite, nothing(FLOAT)), else_=base), exponent)
    infinite = sql.literal("Infinity").cast("float64")
    return Cell(sql.cases((is_infinite, infinite), else_=power), FLOAT, raw=True).settled().value


def _time_as_text(call: TranslatedCall) -> sql.Value:
    return _strftime(call.cells[0].value.cast("timestamp(6)"), sql.literal(str(call.constant(1))))


MATHS: dict[str, Run] = {
    "//": _whole_quotient,
    "sqrt": _real("sqrt", _from_zero),
    "exp": _real("exp"),
    "ln": _real("ln", _above_zero),
    "log10": _real("log10", _above_zero),
    "log2": _real("log2", _above_zero),
    "power": _power,
    "strftime": _time_as_text,
}
