"""Frames and key lists as Arrow tables, with types that come from declarations and never from cells.

An object column of a frame is text, whatever it holds: guessing its type would let one odd row change the schema.
"""

from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pyarrow as pa

from tacit.errors import InvalidParameter
from tacit.tables.schema import KeyValue

KEY_TYPES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "decimal": pa.decimal128(38, 12),
    "text": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "null": pa.string(),
}


def frame_to_arrow(frame: Any) -> pa.Table | None:
    """Return a pandas, Polars or Arrow frame as an Arrow table, or None if it is none of them."""
    if isinstance(frame, pa.Table):
        return _plain(frame)
    if isinstance(frame, pa.RecordBatch):
        return _plain(pa.Table.from_batches([frame]))
    module = type(frame).__module__.partition(".")[0]
    if module == "polars" and hasattr(frame, "to_arrow"):
        return _plain(frame.to_arrow())
    if module == "pandas" and hasattr(frame, "columns"):
        return _from_pandas(frame)
    return None


def keys_to_arrow(keys: Sequence[tuple[KeyValue, ...]], types: Sequence[str], *, place: str) -> pa.Table:
    """Return the public keys as columns listed_k0, listed_k1, … and each key's place in the list."""
    columns: dict[str, pa.Array] = {place: pa.array(range(len(keys)), pa.int64())}
    for position, kind in enumerate(types):
        values = [_storable(key[position], kind) for key in keys]
        columns[f"listed_k{position}"] = pa.array(values, KEY_TYPES[kind])
    return pa.table(columns)


def to_scalar(value: Any) -> KeyValue:
    """Return a key as the engine gave it in the form a question writes it."""
    return Fraction(value) if isinstance(value, Decimal) else value


def _storable(value: KeyValue, kind: str) -> Any:
    if kind == "decimal" and isinstance(value, Fraction | int):
        return Decimal(value.numerator) / Decimal(value.denominator)
    if kind == "float" and isinstance(value, int | Fraction) and not isinstance(value, bool):
        return float(value)
    return value


def _from_pandas(frame: Any) -> pa.Table:
    columns, names = [], []
    for position, name in enumerate(frame.columns):
        if not isinstance(name, str):
            raise InvalidParameter(f"column {position} is not named by text\nhint: rename the frame's columns to text")
        names.append(name)
        series = frame.iloc[:, position]
        if str(series.dtype) == "category":
            series = series.astype(series.cat.categories.dtype)
        if str(series.dtype) == "object":
            columns.append(pa.array([_text(cell) for cell in series], pa.string()))
        else:
            columns.append(_series(series))
    return _plain(pa.Table.from_arrays(columns, names=names))


def _series(series: Any) -> pa.ChunkedArray:
    array = pa.array(series, from_pandas=True)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _text(cell: Any) -> str | None:
    """Return an object cell as text; None and NaN, which pandas writes for nothing, are NULL."""
    return None if cell is None or cell != cell else str(cell)


def _plain(table: pa.Table) -> pa.Table:
    """Return the table with dictionary codes replaced by the values they stand for."""
    for position, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            plain = table.column(position).cast(column.type.value_type)
            table = table.set_column(position, column.name, plain)
    return table
