"""Translates row expressions into SQL, with exactly the catalogue's meaning, and numbers into steps of their grids.

No expression can fail on any row. Floats are written as text and cast: some engines read a written 0.1 as a decimal. A
row's number is clamped to its public range and rounded to whole steps above the low end, by floor(x + 1/2), since
engines disagree about their own rounding; NaN and NULL are NULL. The plan keeps every number well inside 64 bits.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from math import floor

from tacit import typed_sql as sql
from tacit.engine.conversion import Cell, TranslatedCall, convert, in_utc, settle_int, settle_time, type_name
from tacit.engine.translations import TRANSLATIONS
from tacit.errors import QueryRefused
from tacit.plan import Measured
from tacit.query import (
    BOOL,
    DATE,
    DIGITS_MAX,
    FLOAT,
    INT,
    INT_LEAST,
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


# --- numbers on their grids ---


# Differences below this are added and rounded in 64 bits without overflow.
INT_REACH = 2**62


@dataclass(frozen=True)
class FloatGrid:
    """How a float is put on its grid: clamped between two floats, scaled, rounded, and clamped again as an integer."""

    start: float
    end: float
    scale: float
    low: int
    high: int

    @property
    def keeps_ends(self) -> bool:
        """Whether both ends come out inside. Scaling and rounding keep the order of floats, so all between does too."""
        return floor(self.start * self.scale + 0.5) >= self.low and floor(self.end * self.scale + 0.5) <= self.high


def float_grid(column: Measured) -> FloatGrid | None:
    """Return the grid of a column whose values are floats on their way to it; None where they are whole throughout."""
    if column.type == "int" and column.step.denominator == 1:
        start = column.low * column.step
        if start >= INT_LEAST and (column.height + 1) * column.step < INT_REACH:
            return None
    ends = float(column.low * column.step), float(column.high * column.step)
    return FloatGrid(*ends, float(1 / column.step), column.low, column.high)


def steps_above_low(value: sql.Typed, column: Measured) -> sql.Typed:
    """Return the integer in 0 … height for each row, NULL where the value is."""
    grid = float_grid(column)
    return _from_integer(value, column) if grid is None else _from_float(value.cast("float64"), grid)


def _from_integer(value: sql.Typed, column: Measured) -> sql.Typed:
    step, start = int(column.step), column.low * int(column.step)
    inside = _above(_clamped(value, start, column.high * step).cast("int64"), start)
    if step == 1:
        return inside
    raised = inside + sql.literal(step // 2, "int64")
    whole = (raised - raised % sql.literal(step, "int64")).cast("float64")  # a multiple of the step, so exact enough
    return _clamped((whole / float(step) + 0.5).floor().cast("int64"), 0, column.height)


def _from_float(value: sql.Typed, grid: FloatGrid) -> sql.Typed:
    """Decimals come here too: within 2^50 steps of zero, their nearest step is exact."""
    steps = (_clamped(value, grid.start, grid.end) * grid.scale + 0.5).floor().cast("int64")
    return _above(steps if grid.keeps_ends else _clamped(steps, grid.low, grid.high), grid.low)


def _clamped(value: sql.Typed, low: float, high: float) -> sql.Typed:
    """Return the value inside its range, NULL where it is NULL or NaN; LEAST and GREATEST take twice as long."""
    ends = [sql.literal(end, value.type()) for end in (low, high)]
    unknown = [(value.isnan(), sql.null(value.type()))] if value.type().is_floating() else []
    return sql.cases((value.between(*ends), value), *unknown, (value < ends[0], ends[0]), (value > ends[1], ends[1]))


def _above(steps: sql.Typed, low: int) -> sql.Typed:
    return steps - sql.literal(low, "int64") if low else steps
