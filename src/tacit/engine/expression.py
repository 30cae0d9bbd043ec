"""Row expressions as Ibis, meaning exactly what the catalogue says; no expression can fail on any row.

An operation that could raise gets NULL in place of the argument that would make it: engines may evaluate a branch
that a CASE guards, so a guard around an operation is not enough. Numbers that could overflow are computed in wide
decimals, whose digits the question's check has bounded. Floats meet engines as text, since a written 0.1 is first a
decimal to some of them.

Where expressions begin: a stored column read as its declared type, and a constant of the question.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import ibis.expr.types as ir

from tacit.engine.conversion import CASTS, Cell, convert, in_utc, nothing, settle_int, settle_time, type_name, widen
from tacit.engine.translations import NUMBERS, TEXTS, TIMES, Made, Translation, bytes_of, matches, product
from tacit.errors import QueryRefused
from tacit.query.canonical_form import kind_of
from tacit.query.kind import BOOL, DATE, DIGITS_MAX, FLOAT, INT, TEXT, TIMESTAMP, Kind, decimal, kind_of_value
from tacit.query.literal import pattern_parts
from tacit.query.nodes import Column, Expression, Value
from tacit.tables.cells import TEXT_BYTES_MAX

# What Ibis calls DuckDB's HUGEINT, which holds more.
HUGE_TYPE = dt.Decimal(DIGITS_MAX, 0)


def read_column(table: ir.Table, name: str, kind: Kind) -> Cell:
    """Return a column as what it was declared to be, total on everything an engine can store there."""
    return convert(_stored(table[name]), kind, name=name)


def read_unit(table: ir.Table, name: str, kind: Kind) -> ir.Value:
    """Return a column that says whose a row is; whole numbers that an int does not hold too, so that all are people."""
    stored = table[name].type()
    if kind.type in ("decimal", "text") and stored == HUGE_TYPE:
        return table[name].cast("string")
    if kind.type in ("int", "text") and stored.is_uint64():
        return table[name] if kind.type == "int" else table[name].cast("string")
    return read_column(table, name, kind).value


def constant(value: Value) -> Cell:
    """Return a constant. Numbers and times go as text and are cast, which every engine rounds correctly."""
    kind = kind_of_value(value)
    content = value.value
    if content is None:
        return Cell(ibis.null(), kind)
    if isinstance(content, bool):
        return Cell(ibis.literal(content, "boolean"), kind)
    if kind.type == "int":
        return Cell(ibis.literal(content, "int64"), kind)
    if isinstance(content, str):
        return Cell(ibis.literal(content, "string"), kind)
    return Cell(ibis.literal(_written(content, kind)).cast(type_name(kind)), kind)


def _written(content: object, kind: Kind) -> str:
    if isinstance(content, Fraction):
        return str(Decimal(int(content * 10**kind.scale)).scaleb(-kind.scale))
    if isinstance(content, datetime):
        return content.isoformat(sep=" ")
    return repr(content) if isinstance(content, float) else str(content)


def _stored(column: ir.Value) -> Cell:
    dtype = column.type()
    if dtype.is_boolean():
        return Cell(column, BOOL)
    if dtype.is_integer():
        return Cell(settle_int(column) if dtype.is_uint64() else column.cast("int64"), INT)
    if dtype.is_floating():
        return Cell(column.cast("float64"), FLOAT, raw=True)
    if dtype.is_decimal():
        # a cast to its own type Ibis would drop
        within = ops.TryCast(column, HUGE_TYPE).to_expr() if dtype == HUGE_TYPE else column
        return Cell(within, decimal(dtype.precision or DIGITS_MAX, dtype.scale or 0))
    if dtype.is_date():
        return Cell(settle_time(column, DATE), DATE)
    if dtype.is_timestamp():
        plain = column.cast("timestamp(6)") if dtype.timezone is None else in_utc(column)
        return Cell(settle_time(plain, TIMESTAMP), TIMESTAMP)
    return Cell(column if dtype.is_string() else _capped(column.try_cast("string")), TEXT)


def _capped(text: ir.Value) -> ir.Value:
    """Return a text that a cast has made, NULL where it is longer than any cell's."""
    return ibis.cases((bytes_of(text) <= TEXT_BYTES_MAX, text), else_=ibis.null("string"))


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
