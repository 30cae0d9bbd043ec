"""Row expressions as Ibis, meaning exactly what the catalogue says; no expression can fail on any row.

Expressions begin at a stored column, read as its declared type, or at a constant of the question. Floats meet engines
as text, since a written 0.1 is first a decimal to some of them. How each function is run stands in `translations.py`.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import ibis.expr.types as ir

from tacit.engine.conversion import Cell, TranslatedCall, convert, in_utc, settle_int, settle_time, type_name
from tacit.engine.translations import TRANSLATIONS, bytes_of
from tacit.errors import QueryRefused
from tacit.query import (
    BOOL,
    DATE,
    DIGITS_MAX,
    FLOAT,
    INT,
    TEXT,
    TIMESTAMP,
    Column,
    Expression,
    Kind,
    Value,
    decimal,
    kind_of,
    kind_of_value,
)
from tacit.tables import TEXT_BYTES_MAX

Kinds = Mapping[str, Kind]

# What Ibis calls DuckDB's HUGEINT, which holds more.
HUGE_TYPE = dt.Decimal(DIGITS_MAX, 0)


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
    translation, kind = TRANSLATIONS[expression.function], kind_of(expression, kinds)
    if not translation.takes_raw:
        cells = tuple(cell.settled() for cell in cells)
    value = translation.run(TranslatedCall(expression, cells, kind))
    return Cell(value, kind, raw=translation.takes_raw and kind.type == "float")


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
