"""Cells as 64-bit words, as many for every cell of a column, in the order of the cells: NULL comes last.

Records made of them are compared, sorted and written as bytes, so that what a row needs depends on its types alone.
Texts leave DuckDB with at most TEXT_BYTES_MOST bytes (`relation.leaving`), which is what makes them fit.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.engine.coding import as_words, bytes_of, is_null, is_number

Words = NDArray[np.uint64]

SIGN = np.uint64(1 << 63)
TEXT_BYTES_MOST = 64
_TEXT_WORDS = TEXT_BYTES_MOST // 8


def word_count(kind: pa.DataType) -> int:
    """Return how many words a cell takes: one says whether it is NULL."""
    if is_number(kind):
        return 2
    return 3 if pa.types.is_decimal(kind) else 2 + _TEXT_WORDS


def encode(column: pa.Array) -> Words:
    """Return the cells as (cell, word); two cells are equal just when all their words are."""
    known = np.ones(len(column), dtype=bool)
    if column.null_count:
        known = ~is_null(column)
    if is_number(column.type):
        words = _number_words(column)[:, None]
    elif pa.types.is_decimal(column.type):
        words = _decimal_words(column)
    else:
        words = _text_words(column, known)
    words[~known] = 0  # anything may lie under a NULL
    return np.column_stack([(~known).astype(np.uint64), words])


def decode(words: Words, kind: pa.DataType) -> list[Any]:
    """Return the cells of a column of this type."""
    null = words[:, 0] != 0
    if is_number(kind):
        cells = _numbers(np.where(null, SIGN, words[:, 1]), kind)  # under a NULL is no date
    elif pa.types.is_decimal(kind):
        pair = np.column_stack([words[:, 2], words[:, 1] ^ SIGN])
        cells = pa.Array.from_buffers(kind, len(words), [None, pa.py_buffer(pair.tobytes())]).to_pylist()
    else:
        data = np.ascontiguousarray(words[:, 1:-1]).astype(">u8").view(f"V{TEXT_BYTES_MOST}").reshape(-1)
        cells = [cell.tobytes()[:size].decode() for cell, size in zip(data, words[:, -1].tolist(), strict=True)]
    return [None if empty else cell for empty, cell in zip(null.tolist(), cells, strict=True)]


def encode_all(columns: Sequence[pa.Array], rows: int) -> Words:
    """Return several columns' words side by side; none give one word that says nothing."""
    if not columns:
        return np.zeros((rows, 1), dtype=np.uint64)
    return np.hstack([encode(column) for column in columns])


def decode_all(words: Words, kinds: Sequence[pa.DataType]) -> list[tuple[Any, ...]]:
    """Return the keys that these words are."""
    columns, at = [], 0
    for kind in kinds:
        columns.append(decode(words[:, at : at + word_count(kind)], kind))
        at += word_count(kind)
    return list(zip(*columns, strict=True)) if columns else [()] * len(words)


def _number_words(column: pa.Array) -> Words:
    words = as_words(column).view(np.uint64)
    if pa.types.is_floating(column.type):
        return np.where(words & SIGN, ~words, words ^ SIGN)
    return words.copy() if column.type == pa.uint64() else words ^ SIGN


def _numbers(words: Words, kind: pa.DataType) -> Sequence[Any]:
    if pa.types.is_floating(kind):
        return list(np.where(words & SIGN, words ^ SIGN, ~words).view(np.float64).tolist())
    if kind == pa.uint64():
        return list(words.tolist())
    whole = np.ascontiguousarray(words ^ SIGN).view(np.int64)
    if pa.types.is_temporal(kind):
        column = pa.array(whole)
        column = column.cast(pa.int32()).view(kind) if kind.bit_width == 32 else column.view(kind)
        found: list[Any] = column.to_pylist()
        return found
    return list((whole.astype(bool) if pa.types.is_boolean(kind) else whole).tolist())


def _decimal_words(column: pa.Array) -> Words:
    cells = (
        np.frombuffer(column.buffers()[1], dtype=np.uint64).reshape(-1, 2) if len(column) else np.zeros((0, 2), "u8")
    )
    cells = cells[column.offset : column.offset + len(column)]
    return np.column_stack([cells[:, 1] ^ SIGN, cells[:, 0]])


def _text_words(column: pa.Array, known: NDArray[np.bool_]) -> Words:
    data, ends = bytes_of(column)
    sizes = np.where(known, np.diff(ends), 0)
    cells = np.zeros((len(column), TEXT_BYTES_MOST), dtype=np.uint8)
    for byte in range(int(sizes.max(initial=0))):
        longer = np.flatnonzero(sizes > byte)
        cells[longer, byte] = data[ends[longer] + byte]
    return np.column_stack([cells.view(">u8").astype(np.uint64), sizes.astype(np.uint64)])
