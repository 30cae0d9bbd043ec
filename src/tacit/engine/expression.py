"""Row expressions as Ibis, meaning exactly what the catalogue says; no expression can fail on any row.

An operation that could raise gets NULL in place of the argument that would make it: engines may evaluate a branch
that a CASE guards, so a guard around an operation is not enough. Numbers that could overflow are computed in wide
decimals, whose digits the question's check has bounded. Floats meet engines as text, since a written 0.1 is first a
decimal to some of them.
"""

from collections.abc import Callable, Mapping

import ibis
import ibis.expr.types as ir

from tacit.engine.conversion import CASTS, Cell, nothing, settle_int, type_name, widen
from tacit.engine.leaf import constant, read_column
from tacit.engine.made import Made, Translation
from tacit.engine.number import NUMBERS
from tacit.engine.pattern import matches
from tacit.engine.product import product
from tacit.engine.text import TEXTS
from tacit.engine.time import TIMES
from tacit.errors import QueryRefused
from tacit.query.canonical import kind_of
from tacit.query.kind import BOOL, FLOAT, Kind, decimal
from tacit.query.like import pattern_parts
from tacit.query.nodes import Column, Expression, Value

Kinds = Mapping[str, Kind]

# These pass NaN on, or make NULL of it, so their float arguments need no settling before.
_TAKE_RAW = ("+", "-", "*", "/", "negate", "case", "cast_int", "abs", "round", "floor", "ceil")


def to_ibis(expression: Expression, table: ir.Table, kinds: Kinds) -> ir.Value:
    """Return a checked expression over a table's columns; `kinds` says what each declared column yields."""
    return _cell(expression, table, kinds).settled().value


def to_raw_ibis(expression: Expression, table: ir.Table, kinds: Kinds) -> ir.Value:
    """Return the same where NaN may still stand for NULL and −0.0 for 0.0, for those who take care of both."""
    return _cell(expression, table, kinds).value


def _cell(expression: Expression, table: ir.Table, kinds: Kinds) -> Cell:
    if isinstance(expression, Column):
        return read_column(table, expression.name, kinds[expression.name])
    if isinstance(expression, Value):
        return constant(expression)
    if expression.function not in TRANSLATIONS:
        raise QueryRefused(f"there is no function '{expression.function}' in the engine\nhint: use the catalogue's")
    cells = tuple(_cell(each, table, kinds) for each in expression.arguments)
    takes_raw = expression.function in _TAKE_RAW
    made = Made(expression, cells if takes_raw else tuple(cell.settled() for cell in cells), kind_of(expression, kinds))
    raw = takes_raw and made.kind.type == "float"
    return Cell(TRANSLATIONS[expression.function](made), made.kind, raw)


def _compared(compare: Callable[[ir.Value, ir.Value], ir.Value]) -> Translation:
    def translate(made: Made) -> ir.Value:
        left, right = made.values()
        return compare(left, right)

    return translate


def _joined(join: Callable[[ir.Value, ir.Value], ir.Value]) -> Translation:
    def translate(made: Made) -> ir.Value:
        first, *rest = made.values(BOOL)
        for part in rest:
            first = join(first, part)
        return first

    return translate


def _in(made: Made) -> ir.Value:
    tested, *listed = made.values()
    return tested.isin(listed)


def _like(made: Made) -> ir.Value:
    _, pattern, *escape = made.call.arguments
    return matches(made.cells[0].value, pattern_parts(pattern, escape[0] if escape else None))


def _sum(operate: Callable[[ir.Value, ir.Value], ir.Value]) -> Translation:
    def translate(made: Made) -> ir.Value:
        if made.kind.type == "int":
            return settle_int(operate(*(cell.value.cast("decimal(19, 0)") for cell in made.cells)))
        total = operate(*made.values(made.kind))
        return total if made.kind.type == "float" else total.cast(type_name(made.kind))

    return translate


def _product(made: Made) -> ir.Value:
    if made.kind.type == "float":
        left, right = made.values(FLOAT)
        return left * right
    if made.kind.type == "int":
        return settle_int(product(*(cell.value.cast("decimal(19, 0)") for cell in made.cells)))
    return product(*(widen(cell, decimal(cell.kind.digits, cell.kind.scale)) for cell in made.cells))


def _quotient(made: Made) -> ir.Value:
    top, bottom = made.values(FLOAT)
    if _is_safe_divisor(made.call.arguments[1]):
        return top / bottom
    return top / bottom.nullif(constant(Value(0.0, "float")).value)


def _remainder(made: Made) -> ir.Value:
    top, bottom = (cell.value.cast("int64") for cell in made.cells)
    if _is_safe_divisor(made.call.arguments[1]):
        return top % bottom
    # some engines raise on the least int % −1, whose answer is 0 as for every int
    safe = ibis.cases((bottom.isin([0, -1]), nothing(made.kind)), else_=bottom)
    return ibis.cases(((bottom == -1) & top.notnull(), ibis.literal(0, "int64")), else_=top % safe).cast("int64")


def _negation(made: Made) -> ir.Value:
    (cell,) = made.cells
    if made.kind.type == "int":
        return settle_int(-cell.value.cast("decimal(19, 0)"))
    return -cell.value


def _is_safe_divisor(argument: Expression) -> bool:
    return isinstance(argument, Value) and argument.value not in (0, -1)


def _case(made: Made) -> ir.Value:
    conditions = [widen(cell, BOOL) for cell in made.cells[:-1:2]]
    results = [widen(cell, made.kind) for cell in made.cells[1::2]]
    return ibis.cases(*zip(conditions, results, strict=True), else_=widen(made.cells[-1], made.kind))


def _coalesce(made: Made) -> ir.Value:
    return ibis.coalesce(*made.values(made.kind))


def _nullif(made: Made) -> ir.Value:
    left, right = made.values()
    return ibis.cases((left == right, nothing(made.kind)), else_=widen(made.cells[0], made.kind))


def _cast(name: str) -> Translation:
    def translate(made: Made) -> ir.Value:
        return CASTS[name](made.cells[0], made.kind)

    return translate


TRANSLATIONS: dict[str, Translation] = {
    "=": _compared(lambda left, right: left == right),
    "<>": _compared(lambda left, right: left != right),
    "<": _compared(lambda left, right: left < right),
    "<=": _compared(lambda left, right: left <= right),
    ">": _compared(lambda left, right: left > right),
    ">=": _compared(lambda left, right: left >= right),
    "and": _joined(lambda left, right: left & right),
    "or": _joined(lambda left, right: left | right),
    "not": lambda made: ~widen(made.cells[0], BOOL),
    "in": _in,
    "like": _like,
    "is_null": lambda made: made.cells[0].value.isnull(),
    "+": _sum(lambda left, right: left + right),
    "-": _sum(lambda left, right: left - right),
    "*": _product,
    "/": _quotient,
    "%": _remainder,
    "negate": _negation,
    "case": _case,
    "coalesce": _coalesce,
    "nullif": _nullif,
    **NUMBERS,
    **TEXTS,
    **TIMES,
    **{name: _cast(name) for name in CASTS},
}
