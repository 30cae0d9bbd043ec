"""Sorts records of 64-bit words, on disk if they do not fit memory, and encodes cells as such words.

A record is compared as its bytes. Sorted runs are in a private file without a name, which other processes cannot open
and a killed one does not leave. All cells of a column take the same number of words, in the cells' order, NULL last;
texts fit because they leave DuckDB with at most TEXT_BYTES_MOST bytes (`relation.leaving`).
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.engine.kernel.coding import as_words, bytes_of, is_null, is_number
from tacit.numbers import Words
from tacit.system import read_at, write_at

Records = NDArray[np.uint64]  # (record, word)
Bytes = NDArray[Any]  # (record,) of fixed width, compared as bytes

# How many runs are merged at once; more runs are merged in several passes.
MERGED_MOST = 64
# How many copies of a run are in memory at once: the run, its order, its sorted copy, and the copy that is yielded.
COPIES = 5
RUN_RECORDS_LEAST = 4 * MERGED_MOST


@dataclass
class _Run:
    """A sorted run of records in the file, starting at byte `start`; a single block of it is in memory at a time."""

    start: int
    records: int


class Held:
    """Files and lists that are held until it is closed, as the block that it is opened for does at its end."""

    def close(self) -> None:
        for each in vars(self).values():
            if isinstance(each, Held):
                each.close()
            elif isinstance(each, list):
                each.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class SortedRecords(Held):
    """Takes records in any order and gives them back in order, once."""

    def __init__(self, *, words: int, memory: int, folder: Path | None) -> None:
        self._words = words
        self._size = 8 * words
        self._most = max(RUN_RECORDS_LEAST, memory // (COPIES * self._size))
        self._file = SpillFile(folder)
        self._runs: list[_Run] = []
        self._held: list[Bytes] = []
        self._count = 0

    def add(self, records: Records) -> None:
        """Take more records."""
        for start in range(0, len(records), self._most):
            some = as_bytes(records[start : start + self._most])
            if self._count + len(some) > self._most:
                self._write_run()
            self._held.append(some)
            self._count += len(some)

    def blocks(self) -> Iterator[Records]:
        """Yield all records in order, a block at a time."""
        if not self._runs:
            if self._count:
                yield self._words_of(self._sorted_held())
            return
        self._write_run()
        while len(self._runs) > MERGED_MOST:
            merged, self._runs = self._runs[:MERGED_MOST], self._runs[MERGED_MOST:]
            start, count = self._file.size, 0
            for block in self._merged(merged):
                self._file.append(block)
                count += len(block)
            self._runs.append(_Run(start, count))
        for block in self._merged(self._runs):
            yield self._words_of(block)

    def _sorted_held(self) -> Bytes:
        together = np.concatenate(self._held)
        self._held, self._count = [], 0
        return together[np.argsort(together)]

    def _write_run(self) -> None:
        if self._count:
            count = self._count
            self._runs.append(_Run(self._file.append(self._sorted_held()), count))

    def _read(self, run: _Run, most: int) -> Bytes:
        """Return the next records of a run, which is then shorter."""
        found = np.empty(min(most, run.records), dtype=f"V{self._size}")
        self._file.fill(found, run.start)
        run.start, run.records = run.start + found.nbytes, run.records - len(found)
        return found

    def _merged(self, runs: list[_Run]) -> Iterator[Bytes]:
        """Yield the records of several runs in order, with one block of each run in memory."""
        block = max(1, self._most // len(runs))
        heads = [self._read(run, block) for run in runs]
        while heads:
            ends = [head[-1].tobytes() for head, run in zip(heads, runs, strict=True) if run.records]
            if ends:  # records up to the least last record of an unfinished run are complete: none can come before them
                last = np.frombuffer(min(ends), dtype=f"V{self._size}")
                cuts = [int(np.searchsorted(head, last, side="right")[0]) for head in heads]
            else:
                cuts = [len(head) for head in heads]
            ready = np.concatenate([head[:cut] for head, cut in zip(heads, cuts, strict=True)])
            yield ready[np.argsort(ready)]
            heads = [head[cut:] for head, cut in zip(heads, cuts, strict=True)]
            heads = [
                head if len(head) or not run.records else self._read(run, block)
                for head, run in zip(heads, runs, strict=True)
            ]
            going = [index for index, head in enumerate(heads) if len(head)]
            heads, runs = [heads[index] for index in going], [runs[index] for index in going]

    def _words_of(self, records: Bytes) -> Records:
        return records.view(">u8").reshape(-1, self._words).astype(np.uint64)


def as_bytes(records: Records) -> Bytes:
    """Return records as comparable bytes: their words one after another, the highest byte first."""
    return np.ascontiguousarray(records.astype(">u8")).view(f"V{8 * records.shape[1]}").reshape(-1)


# --- cells as words ---

SIGN = np.uint64(1 << 63)
TEXT_BYTES_MOST = 64
_TEXT_WORDS = TEXT_BYTES_MOST // 8


def word_count(kind: pa.DataType) -> int:
    """Return how many words a cell takes; the first word says whether it is NULL."""
    if is_number(kind):
        return 2
    return 3 if pa.types.is_decimal(kind) else 2 + _TEXT_WORDS


def encode(column: pa.Array) -> Words:
    """Return the cells as an array (cell, word); two cells are equal if and only if all their words are."""
    known = np.ones(len(column), dtype=bool)
    if column.null_count:
        known = ~is_null(column)
    if is_number(column.type):
        words = _number_words(column)[:, None]
    elif pa.types.is_decimal(column.type):
        words = _decimal_words(column)
    else:
        words = _text_words(column, known)
    words[~known] = 0  # the value under a NULL is arbitrary
    return np.column_stack([(~known).astype(np.uint64), words])


def decode(words: Words, kind: pa.DataType) -> list[Any]:
    """Return the cells of a column of this type."""
    null = words[:, 0] != 0
    if is_number(kind):
        cells = _decoded_numbers(np.where(null, SIGN, words[:, 1]), kind)  # the word of a NULL is not a valid date
    elif pa.types.is_decimal(kind):
        pair = np.column_stack([words[:, 2], words[:, 1] ^ SIGN])
        cells = pa.Array.from_buffers(kind, len(words), [None, pa.py_buffer(pair.tobytes())]).to_pylist()
    else:
        data = np.ascontiguousarray(words[:, 1:-1]).astype(">u8").view(f"V{TEXT_BYTES_MOST}").reshape(-1)
        cells = [cell.tobytes()[:size].decode() for cell, size in zip(data, words[:, -1].tolist(), strict=True)]
    return [None if empty else cell for empty, cell in zip(null.tolist(), cells, strict=True)]


def encode_all(columns: Sequence[pa.Array], rows: int) -> Words:
    """Return several columns' words side by side; without columns, one word that is always 0."""
    if not columns:
        return np.zeros((rows, 1), dtype=np.uint64)
    return np.hstack([encode(column) for column in columns])


def decode_all(words: Words, kinds: Sequence[pa.DataType]) -> list[tuple[Any, ...]]:
    """Return the keys that these words encode."""
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


def _decoded_numbers(words: Words, kind: pa.DataType) -> Sequence[Any]:
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


# --- the file of spilled rows ---


class SpillFile(Held):
    """A private file that only grows, in a folder."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._file: IO[bytes] | None = None
        self.size = 0  # in bytes

    def append(self, cells: NDArray[Any]) -> int:
        """Write cells at the end, as they are in memory; return the byte at which they begin."""
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 - closed by close()
        begin, waiting = self.size, np.ascontiguousarray(cells).reshape(-1).view(np.uint8).data
        while waiting.nbytes:
            done = write_at(self._file.fileno(), waiting, self.size)
            waiting, self.size = waiting[done:], self.size + done
        return begin

    def fill(self, cells: NDArray[Any], begin: int) -> None:
        """Read into cells the bytes from this one on; the file is not mapped, so only these cells take memory."""
        waiting = cells.reshape(-1).view(np.uint8).data
        while waiting.nbytes:
            done = read_at(self._file.fileno(), waiting, begin) if self._file is not None else 0
            if not done:
                raise OSError("a file of spilled rows ended early")
            waiting, begin = waiting[done:], begin + done

    def mapped(self, kind: Any) -> NDArray[Any]:
        """Return all of it as an array that is read from disk when it is used, and stays readable once it is closed."""
        if self._file is None or not self.size:
            return np.empty(0, dtype=kind)
        return np.memmap(self._file, dtype=kind, mode="r")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
