"""Records of 64-bit words put in order, on disk where they do not fit memory: what they need is only room in a file.

A record is compared as its bytes, the highest word first. Runs of records are sorted in memory, written one after
another to a private file without a name, and merged block by block.
"""

import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray

Records = NDArray[np.uint64]  # (record, word)
Bytes = NDArray[Any]  # (record,) of fixed width, compared as bytes

# Runs that are merged at once; more are merged in several passes.
MERGED_MOST = 64
# A run, its order, its sorted copy, and the copy that is handed out.
COPIES = 5
RUN_RECORDS_LEAST = 4 * MERGED_MOST


@dataclass
class _Run:
    """A sorted stretch of the file, from a byte on; a block of it is in memory at a time."""

    start: int
    records: int


class SortedRecords:
    """Takes records in any order and gives them back in order, once."""

    def __init__(self, *, words: int, memory: int, folder: Path | None) -> None:
        self._words = words
        self._size = 8 * words
        self._most = max(RUN_RECORDS_LEAST, memory // (COPIES * self._size))
        self._folder = folder
        self._file: IO[bytes] | None = None
        self._end = 0
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
            start, count = self._end, 0
            for block in self._merged(merged):
                self._append(block)
                count += len(block)
            self._runs.append(_Run(start, count))
        for block in self._merged(self._runs):
            yield self._words_of(block)

    def close(self) -> None:
        """Let go of memory and file."""
        self._held.clear()
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _sorted_held(self) -> Bytes:
        together = np.concatenate(self._held)
        self._held, self._count = [], 0
        return together[np.argsort(together)]

    def _write_run(self) -> None:
        if self._count:
            run = _Run(self._end, self._count)
            self._append(self._sorted_held())
            self._runs.append(run)

    def _append(self, records: Bytes) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 - closed by close()
        waiting = np.ascontiguousarray(records).view(np.uint8).reshape(-1).data
        while waiting.nbytes:
            done = os.pwrite(self._file.fileno(), waiting, self._end)
            waiting, self._end = waiting[done:], self._end + done

    def _read(self, run: _Run, most: int) -> Bytes:
        """Return the next records of a run, which is then shorter."""
        if self._file is None:
            raise OSError("there is no file of runs")
        count = min(most, run.records)
        found = os.pread(self._file.fileno(), count * self._size, run.start)
        if len(found) < count * self._size:  # a signal or a limit of the system: read the rest
            found = self._read_on(found, run.start, count * self._size)
        run.start, run.records = run.start + len(found), run.records - count
        return np.frombuffer(found, dtype=f"V{self._size}")

    def _read_on(self, found: bytes, start: int, size: int) -> bytes:
        while len(found) < size and self._file is not None:
            more = os.pread(self._file.fileno(), size - len(found), start + len(found))
            if not more:
                raise OSError("the file of runs ended early")
            found += more
        return found

    def _merged(self, runs: list[_Run]) -> Iterator[Bytes]:
        """Yield the records of several runs in order; in memory is a block of each."""
        block = max(1, self._most // len(runs))
        heads = [self._read(run, block) for run in runs]
        while heads:
            ends = [head[-1].tobytes() for head, run in zip(heads, runs, strict=True) if run.records]
            if ends:  # what is not beyond the end of any block that has more behind it is complete
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
            going = [place for place, head in enumerate(heads) if len(head)]
            heads, runs = [heads[place] for place in going], [runs[place] for place in going]

    def _words_of(self, records: Bytes) -> Records:
        return records.view(">u8").reshape(-1, self._words).astype(np.uint64)


def as_bytes(records: Records) -> Bytes:
    """Return records as what is compared: their words one after another, the highest byte first."""
    return np.ascontiguousarray(records.astype(">u8")).view(f"V{8 * records.shape[1]}").reshape(-1)
