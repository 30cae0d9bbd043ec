"""Converts frames and key lists to Arrow tables; types come from declarations and dtypes, never from cells."""

from collections.abc import Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from numbers import Number, Real
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from tacit.errors import InvalidParameter
from tacit.tables.schema import KeyValue

EXACT = Context(prec=100)
# Types with a text that describes an object completely, so that different objects have different texts.
WRITTEN = (str, bytes, Number, Decimal, np.bool_, np.datetime64, date, time, timedelta, UUID)
KEY_TYPES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "null": pa.string(),
}


def frame_to_arrow(frame: Any) -> pa.Table | None:
    """Return a pandas, Polars or Arrow frame as an Arrow table, or None for any other object."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    module = type(frame).__module__.partition(".")[0]
    if module == "polars" and hasattr(frame, "columns") and hasattr(frame, "to_arrow"):
        return _from_polars(frame)
    if module == "pandas" and hasattr(frame, "columns"):
        return _from_pandas(frame)
    return None


def keys_to_arrow(keys: Sequence[tuple[KeyValue, ...]], types: Mapping[str, str], *, place: str) -> pa.Table:
    """Return the public keys as columns of these names and types, and each key's index in the list as `place`."""
    columns: dict[str, pa.Array] = {place: pa.array(range(len(keys)), pa.int64())}
    for position, (name, kind) in enumerate(types.items()):
        values = [key[position] for key in keys]
        columns[name] = _decimals(values) if kind == "decimal" else _keys_of_type(values, kind)
    return pa.table(columns)


def to_scalar(value: Any) -> KeyValue:
    """Return a key as the engine gave it in the form a question writes it."""
    return Fraction(value) if isinstance(value, Decimal) else value


def _keys_of_type(values: Sequence[KeyValue], kind: str) -> pa.Array:
    if kind == "float":
        values = [float(value) if isinstance(value, int | Fraction) else value for value in values]
    return pa.array(values, KEY_TYPES[kind])


def _decimals(values: Sequence[KeyValue]) -> pa.Array:
    """Decimals with exactly the digits they need, so that comparing them widens no stored value."""
    exact = [None if value is None else Fraction(value) for value in values]  # type: ignore[arg-type]
    scale = 0
    while any(value is not None and (value * 10**scale).denominator != 1 for value in exact):
        scale += 1
    whole = [None if value is None else int(value * 10**scale) for value in exact]
    digits = max([len(str(abs(value))) for value in whole if value is not None], default=1)
    written = [None if value is None else Decimal(value).scaleb(-scale, EXACT) for value in whole]
    return pa.array(written, pa.decimal128(max(digits, scale), scale))


def _from_polars(frame: Any) -> pa.Table:
    try:
        return frame.to_arrow()
    except Exception:  # noqa: BLE001 - its text may quote a cell
        raise InvalidParameter(
            "the Polars frame has a column of a type that Arrow does not have\nhint: convert it, or leave it out"
        ) from None


def _from_pandas(frame: Any) -> pa.Table:
    columns, names = [], []
    for position, name in enumerate(frame.columns):
        if not isinstance(name, str):
            raise InvalidParameter(
                f"the name of column {position} is not text\nhint: rename the frame's columns to text"
            )
        names.append(name)
        columns.append(_series(frame.iloc[:, position], name))
    return pa.Table.from_arrays(columns, names=names)


def _series(series: Any, name: str) -> pa.ChunkedArray:
    """Return a column typed only by its dtype; the codes of a category are replaced by their values."""
    if str(series.dtype) == "category":
        codes = series.cat.codes.to_numpy()
        values = _series(series.cat.categories, name)
        if pa.types.is_string(values.type):  # repeated ones: together they may be more than 2^31 bytes
            values = values.cast(pa.large_string())
        return values.take(pa.array(codes, pa.int64(), mask=codes < 0))
    if str(series.dtype) == "object" or getattr(series.dtype, "storage", None) == "python":
        return pa.chunked_array([pa.array([_cell_text(cell) for cell in series], pa.large_string())])
    try:
        array = pa.array(series, from_pandas=True)
    except Exception:  # noqa: BLE001 - its text may quote a cell
        raise InvalidParameter(
            f"column '{name}' of the frame has the dtype {series.dtype}, which cannot be read"
            "\nhint: convert it, or leave it out"
        ) from None
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _cell_text(cell: Any) -> str | None:
    """Return an object cell as text: two cells get the same only if they are written alike, so no two ids become one.
    NULL stands for a lone surrogate, a list and other objects, with texts that may leave something out."""
    if not isinstance(cell, WRITTEN) or type(cell).__name__ == "NaTType":
        return None
    try:
        if isinstance(cell, Real | Decimal) and cell != cell:
            return None
        text = str.__str__(cell) if isinstance(cell, str) else str(cell)
        return text.encode("utf-8").decode("utf-8")
    except Exception:  # noqa: BLE001 - a cell's own code may do anything
        return None
