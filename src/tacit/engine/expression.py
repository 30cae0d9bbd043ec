"""Translates row expressions into SQL, with exactly the catalogue's meaning; no expression can fail on any row.

This file translates stored columns, each read as its declared type, and constants. Floats are written as text and cast,
because some engines read a written 0.1 as a decimal first. Functions are translated in `translations.py`.
"""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from tacit import typed_sql as sql
from tacit.engine.conversion import Cell, TranslatedCall, convert, in_utc, settle_int, settle_time, type_name
from tacit.engine.translations import TRANSLATIONS
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

# The decimals that hold most of DuckDB's HUGEINT: a HUGEINT can hold larger numbers.
HUGE_TYPE = sql.decimal(DIGITS_MAX, 0)


def to_sql(expression: Expression, table: sql.Relation, kinds: Kinds) -> sql.Typed:
    """Return a checked expression over a table's columns; `kinds` says what each declared column yields."""
    return _cell(expression, table, kinds).settled().value


def to_raw_sql(expression: Expression, table: sql.Relation, kinds: Kinds) -> sql.Typed:
    """Return the same with NaN still in place of NULL and −0.0 in place of 0.0; the caller must handle both."""
    return _cell(expression, table, kinds).value


def _cell(expression: Expression, table: sql.Relation, kinds: Kinds) -> Cell:
    if isinstance(expression, Column):
        return read_column(table, expression.name, kinds[expression.name])
    if isinstance(expression, Value):
        return constant(expression)
    if expression.function not in TRANSLATIONS:
        raise QueryRefused(f"the engine has no function '{expression.function}'\nhint: use a function of the catalogue")
    cells = tuple(_cell(each, table, kinds) for each in expression.arguments)
    translation, kind = TRANSLATIONS[expression.function], kind_of(expression, kinds)
    if not translation.takes_raw:
        cells = tuple(cell.settled() for cell in cells)
    value = translation.run(TranslatedCall(expression, cells, kind))
    return Cell(value, kind, raw=translation.takes_raw and kind.type == "float")


def read_column(table: sql.Relation, name: str, kind: Kind) -> Cell:
    """Return a column as what it was declared to be, total on everything an engine can store there."""
    return convert(_stored_cell(table[name]), kind, name=name)


def read_unit(table: sql.Relation, name: str, kind: Kind) -> sql.Typed:
    """Return the unit column. Whole numbers that do not fit an int are kept too, so that no person's rows are lost."""
    stored = table[name].type()
    if kind.type in ("decimal", "text") and (stored == HUGE_TYPE or stored.kind == "int128"):
        return table[name].cast("string")
    if kind.type in ("int", "text") and stored.kind == "uint64":
        return table[name] if kind.type == "int" else table[name].cast("string")
    return read_column(table, name, kind).value


def constant(value: Value) -> Cell:
    """Return a constant. Numbers and times go as text and are cast, which every engine rounds correctly."""
    kind = kind_of_value(value)
    content = value.value
    if content is None:
        return Cell(sql.null(), kind)
    if isinstance(content, bool):
        return Cell(sql.literal(content, "boolean"), kind)
    if isinstance(content, int):
        return Cell(sql.literal(content, "int64"), kind)
    if isinstance(content, str):
        return Cell(sql.literal(content, "string"), kind)
    return Cell(sql.literal(_constant_text(content, kind)).cast(type_name(kind)), kind)


def _constant_text(content: object, kind: Kind) -> str:
    if isinstance(content, Fraction):
        return str(Decimal(f"{int(content * 10**kind.scale)}e-{kind.scale}"))  # scaleb would round to 28 digits
    if isinstance(content, datetime):
        return content.isoformat(sep=" ")
    return repr(content) if isinstance(content, float) else str(content)


def _stored_cell(column: sql.Typed) -> Cell:
    dtype = column.type()
    if dtype.is_boolean():
        return Cell(column, BOOL)
    if dtype.is_integer():
        return Cell(settle_int(column) if dtype.kind == "uint64" else column.cast("int64"), INT)
    if dtype.is_floating():
        return Cell(column.cast("float64"), FLOAT, raw=True)
    if dtype.is_decimal():
        return Cell(column, decimal(dtype.digits, dtype.scale))
    if dtype.kind == "int128":
        return Cell(column.cast(HUGE_TYPE), decimal(DIGITS_MAX, 0))
    if dtype.is_date():
        return Cell(settle_time(column, DATE), DATE)
    if dtype.is_timestamp():
        plain = in_utc(column) if dtype.is_zoned else column.cast("timestamp(6)")
        return Cell(settle_time(plain, TIMESTAMP), TIMESTAMP)
    return Cell(column if dtype.is_string() else _capped(column.cast("string")), TEXT)


def _capped(text: sql.Typed) -> sql.Typed:
    """Return a text that a cast has made, or NULL if it is longer than a text may be."""
    return sql.cases((text.byte_length() <= TEXT_BYTES_MAX, text), else_=sql.null("string"))
