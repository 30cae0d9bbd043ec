"""The one file of rows on disk: without a name, so that other processes cannot open it and a killed one leaves nothing.

It is made when something is first written. Bytes are appended, and read anywhere, or mapped into memory. What is in it,
and what else stays in memory, is left to those that spill.
"""

import os
import tempfile
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.typing import NDArray


class SpillFile:
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
            done = os.pwrite(self._file.fileno(), waiting, self.size)
            waiting, self.size = waiting[done:], self.size + done
        return begin

    def fill(self, cells: NDArray[Any], begin: int) -> None:
        """Read into cells the bytes from this one on; the file is not mapped, so only these cells take memory."""
        waiting = cells.reshape(-1).view(np.uint8).data
        while waiting.nbytes:
            done = os.preadv(self._file.fileno(), [waiting], begin) if self._file is not None else 0
            if not done:
                raise OSError("a file of spilled rows ended early")
            waiting, begin = waiting[done:], begin + done

    def mapped(self, kind: Any) -> NDArray[Any]:
        """Return all of it as an array that is read from disk when it is used, and stays readable once it is closed."""
        if self._file is None or not self.size:
            return np.empty(0, dtype=kind)
        return np.memmap(self._file, dtype=kind, mode="r")

    def close(self) -> None:
        """Close the file, which is then gone."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
