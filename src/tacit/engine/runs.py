"""Rows held until all have come, sorted by part, in memory or in a private file that has no name.

A run is one batch of rows, sorted by the part its units belong to. Runs that no longer fit the memory limit are written
to a file that only this process can open: it has no name, so a killed run leaves nothing behind.
"""

import os
import tempfile
from pathlib import Path
from typing import IO, Self

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.uint32]


class Runs:
    """All rows of one question, by part."""

    def __init__(self, *, width: int, parts: int, memory: int, folder: Path | None) -> None:
        self._width = width
        self._memory = memory
        self._folder = folder
        self._held: list[tuple[Rows, NDArray[np.int64]]] = []
        self._written: list[tuple[int, NDArray[np.int64]]] = []  # where in the file a run begins, and its parts
        self._file: IO[bytes] | None = None
        self.sizes = np.zeros(parts, dtype=np.int64)

    def add(self, rows: Rows, starts: NDArray[np.int64]) -> None:
        """Take a run; part p is rows[starts[p] : starts[p + 1]]."""
        self.sizes += np.diff(starts)
        self._held.append((rows, starts))
        if sum(held.nbytes for held, _ in self._held) > self._memory:
            self._spill()

    def part(self, part: int) -> Rows:
        """Return all rows of a part."""
        rows = np.empty((int(self.sizes[part]), self._width), dtype=np.uint32)
        done = 0
        for held, starts in self._held:
            count = int(starts[part + 1] - starts[part])
            rows[done : done + count] = held[starts[part] : starts[part + 1]]
            done += count
        for begin, starts in self._written:
            count = int(starts[part + 1] - starts[part])
            self._read(rows[done : done + count], begin + int(starts[part]) * self._width * rows.itemsize)
            done += count
        return rows

    def close(self) -> None:
        """Let go of memory and file."""
        self._held.clear()
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _spill(self) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115 - closed by close()
        for rows, starts in self._held:
            begin = self._file.tell()
            waiting = rows.reshape(-1).view(np.uint8).data
            while waiting.nbytes:
                waiting = waiting[self._file.write(waiting) :]
            self._written.append((begin, starts))
        self._held.clear()

    def _read(self, rows: Rows, begin: int) -> None:
        waiting = rows.reshape(-1).view(np.uint8).data
        while waiting.nbytes and self._file is not None:
            got = os.preadv(self._file.fileno(), [waiting], begin)
            if got == 0:
                raise OSError("the spill file ended early")
            waiting, begin = waiting[got:], begin + got
