"""The rows of one part while they arrive: in memory, and from a public size on in a private file that is mapped.

So the memory of a part does not grow with its rows, in any distribution over units.
"""

from typing import Any, Self

import numpy as np
import pyarrow as pa

from tacit.engine.spill_file import SpillFile
from tacit.memory import spill_folder

HELD_SHARE = 8
ALIGNED = 64  # bytes: Arrow reads blocks at a multiple of them in place


class Spool:
    """Arrow rows of a few tables, taken piece by piece."""

    def __init__(self, memory: int, tables: int) -> None:
        self._most = memory // HELD_SHARE
        self._held: list[list[Any]] = [[] for _ in range(tables)]
        self._size = 0
        self._file = SpillFile(spill_folder())
        self._written: list[list[tuple[int, int]]] = [[] for _ in range(tables)]

    def add(self, table: int, data: bytes) -> None:
        """Take a piece: an Arrow stream of rows of one table."""
        self._held[table].append(data)
        self._size += len(data)
        if self._size > self._most:
            self._spill()

    def table(self, table: int, schema: pa.Schema) -> pa.Table:
        """Return all rows of one table; rows in the file are read as they are used."""
        pieces = list(self._held[table])
        if self._written[table]:
            mapped = pa.py_buffer(self._file.mapped(np.uint8))
            pieces += [mapped.slice(start, size) for start, size in self._written[table]]
        tables = [pa.ipc.open_stream(piece).read_all() for piece in pieces]
        return pa.concat_tables(tables) if tables else schema.empty_table()

    def _spill(self) -> None:
        for held, written in zip(self._held, self._written, strict=True):
            for data in held:
                aligned = bytes(data) + bytes(-len(data) % ALIGNED)
                written.append((self._file.append(np.frombuffer(aligned, dtype=np.uint8)), len(data)))
            held.clear()
        self._size = 0

    def close(self) -> None:
        """Free the memory and close the file."""
        for held in self._held:
            held.clear()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
