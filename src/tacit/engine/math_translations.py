"""Translates whole division, roots, powers, logarithms and times as text into Ibis; none can fail on a row.

What an engine would raise on, or make NaN of, is NULL before it gets there.
"""

from collections.abc import Callable

import ibis
import ibis.expr.types as ir

from tacit.engine.conversion import Cell, TranslatedCall, nothing, settle_int
from tacit.query import FLOAT, Value

Run = Callable[[TranslatedCall], ir.Value]


def _builtin(name: str, arguments: tuple[str, ...], result: str) -> Callable[..., ir.Value]:
    """Return DuckDB's own function of one or two arguments."""
    one = ibis.udf.scalar.builtin(lambda value: value, name=name, signature=(arguments, result))
    two = ibis.udf.scalar.builtin(lambda value, _other: value, name=name, signature=(arguments, result))
    found: Callable[..., ir.Value] = one if len(arguments) == 1 else two
    return found


_divide = _builtin("divide", ("int64", "int64"), "int64")  # toward 0
_pow = _builtin("pow", ("float64", "float64"), "float64")
_strftime = _builtin("strftime", ("timestamp(6)", "string"), "string")


def _whole_quotient(call: TranslatedCall) -> ir.Value:
    top, bottom = (cell.value.cast("int64") for cell in call.cells)
    constant = call.call.arguments[1]
    if isinstance(constant, Value) and constant.value not in (0, -1):
        return _divide(top, bottom)
    # an engine raises on 0, and on the least int // −1, which does not fit
    safe = ibis.cases((bottom.isin([0, -1]), nothing(call.kind)), else_=bottom)
    return ibis.cases((bottom == -1, settle_int(-top.cast("decimal(19, 0)"))), else_=_divide(top, safe))


def _real(name: str, keeps: Callable[[ir.Value], ir.Value] | None = None) -> Run:
    theirs = _builtin(name, ("float64",), "float64")

    def translate(call: TranslatedCall) -> ir.Value:
        (value,) = call.values(FLOAT)
        return theirs(value if keeps is None else ibis.cases((keeps(value), value), else_=nothing(FLOAT)))

    return translate


def _above_zero(value: ir.Value) -> ir.Value:
    return value > ibis.literal(0.0, "float64")


def _from_zero(value: ir.Value) -> ir.Value:
    return value >= ibis.literal(0.0, "float64")


def _power(call: TranslatedCall) -> ir.Value:
    base, exponent = call.values(FLOAT)  # settled: NaN to the power 0 would be 1
    # 0 to a negative power is infinite; by a setting of a user's connection the engine raises on it
    zero = ibis.literal(0.0, "float64")
    is_infinite = (base == zero) & (exponent < zero)
    power = _pow(ibis.cases((is_infinite, nothing(FLOAT)), else_=base), exponent)
    infinite = ibis.literal("Infinity").cast("float64")
    return Cell(ibis.cases((is_infinite, infinite), else_=power), FLOAT, raw=True).settled().value


def _time_as_text(call: TranslatedCall) -> ir.Value:
    return _strftime(call.cells[0].value.cast("timestamp(6)"), ibis.literal(str(call.constant(1))))


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
