"""Decimals as they are handed over: whole numbers in 4, 8 or 16 bytes, with no more digits than their type has.

Nobody on the way checks them: a buffer of decimal(38, 0) can hold 2^127, on which an engine fails.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

WIDE = 16
WORD = (1 << 64) - 1


def sound_decimals(chunk: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return decimals of any width as `kind`, NULL where a cell has more digits than `kind` has."""
    buffer = chunk.buffers()[1]
    if buffer is None or not len(chunk):
        return pa.nulls(len(chunk), kind)
    low, high = _halves(buffer, chunk)
    most = 10**kind.precision - 1
    outside = _is_after(low, high, most) | ~_is_after(low, high, -most - 1)
    if chunk.type == kind and not outside.any():
        return chunk
    words = np.column_stack((low, high.view(np.uint64)))
    read = pa.Array.from_buffers(kind, len(chunk), [None, pa.py_buffer(words)])
    return pc.if_else(pc.and_(chunk.is_valid(), pa.array(~outside)), read, pa.scalar(None, kind))


def _halves(buffer: pa.Buffer, chunk: pa.Array) -> tuple[Any, Any]:
    """Return each number's lower 64 bits, and the upper with its sign."""
    width = chunk.type.byte_width
    if width == WIDE:
        words = np.frombuffer(buffer, np.uint64, 2 * len(chunk), WIDE * chunk.offset)
        return words[::2], words[1::2].view(np.int64)
    whole = np.frombuffer(buffer, f"i{width}", len(chunk), width * chunk.offset).astype(np.int64)
    return whole.view(np.uint64), whole >> 63


def _is_after(low: Any, high: Any, bound: int) -> Any:
    return (high > bound >> 64) | ((high == bound >> 64) & (low > np.uint64(bound & WORD)))
