"""A disk in memory that loses power, tears writes and reports errors, under a real SQLite (apsw).

A file has what the disk surely holds and the writes since its last sync. When the power goes, each of those writes is
kept, lost or torn at a sector, as the seed says. An error may also be reported for any write or sync, in which case
nothing is promised about what it did.
"""

import random
import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import apsw

SECTOR = 512


class PowerCut(BaseException):
    """The power went: the process ends here."""


class Disk:
    """Files that survive the process, and the faults they will show."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sure: dict[str, bytearray] = {}
        self.shown: dict[str, bytearray] = {}
        self.pending: dict[str, list[tuple[int, bytes]]] = {}
        self.operations_left = 10**9
        self.error_share = 0.0
        self.full = False

    def arm(self, *, operations: int, error_share: float = 0.0, full: bool = False) -> None:
        """Cut the power after so many writes and syncs; until then report errors for a share of them."""
        self.operations_left, self.error_share, self.full = operations, error_share, full

    def step(self) -> None:
        """Note a write or a sync about to happen, which may be the last, or fail."""
        self.operations_left -= 1
        if self.operations_left < 0:
            raise PowerCut
        if self.random.random() < self.error_share:
            if self.full:
                raise apsw.FullError("no space left on the disk")
            raise apsw.IOError("the disk reports an error")

    def write(self, name: str, offset: int, content: bytes) -> None:
        """Write to what is shown, and remember it as not yet sure."""
        shown = self.shown[name]
        if len(shown) < offset:
            shown.extend(bytes(offset - len(shown)))
        shown[offset : offset + len(content)] = content
        self.pending[name].append((offset, content))

    def sync(self, name: str) -> None:
        """Make all that is shown sure."""
        self.sure[name] = bytearray(self.shown[name])
        self.pending[name].clear()

    def truncate(self, name: str, size: int) -> None:
        """Cut a file; like a write, not sure before the next sync."""
        del self.shown[name][size:]
        self.pending[name].append((-1, size.to_bytes(8, "big")))

    def lose_power(self) -> None:
        """Keep, lose or tear each write that was not synced; what was synced stays."""
        for name, writes in self.pending.items():
            kept = bytearray(self.sure[name])
            for offset, content in writes:
                fate = self.random.random()
                if fate < 0.4:
                    continue
                if offset < 0:
                    del kept[int.from_bytes(content, "big") :]
                    continue
                if fate < 0.7:
                    content = content[: SECTOR * self.random.randrange(len(content) // SECTOR + 1)]
                if len(kept) < offset:
                    kept.extend(bytes(offset - len(kept)))
                kept[offset : offset + len(content)] = content
            self.sure[name], self.shown[name] = bytearray(kept), bytearray(kept)
            writes.clear()
        self.operations_left, self.error_share = 10**9, 0.0


class _Files(apsw.VFS):
    """SQLite's one door to all faulty disks: the disk in use is the one last connected to."""

    def __init__(self) -> None:
        super().__init__("faulty", "")
        self.disk = Disk(0)

    def xOpen(self, name: Any, flags: list[int]) -> "_File":  # type: ignore[override]
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        for files in (self.disk.sure, self.disk.shown):
            files.setdefault(path, bytearray())
        self.disk.pending.setdefault(path, [])
        flags[1] = flags[0]
        return _File(self.disk, path)

    def xDelete(self, name: str, syncdir: bool) -> None:
        self.disk.step()
        for files in (self.disk.sure, self.disk.shown, self.disk.pending):
            files.pop(name, None)

    def xAccess(self, name: str, flags: int) -> bool:
        return name in self.disk.shown

    def xFullPathname(self, name: str) -> str:
        return name


class _File:
    def __init__(self, disk: Disk, path: str) -> None:
        self.disk, self.path = disk, path

    def xRead(self, amount: int, offset: int) -> bytes:
        return bytes(self.disk.shown[self.path][offset : offset + amount])

    def xWrite(self, content: bytes, offset: int) -> None:
        self.disk.step()
        self.disk.write(self.path, offset, bytes(content))

    def xTruncate(self, size: int) -> None:
        self.disk.step()
        self.disk.truncate(self.path, size)

    def xSync(self, flags: int) -> None:
        self.disk.step()
        self.disk.sync(self.path)

    def xFileSize(self) -> int:
        return len(self.disk.shown[self.path])

    def xSectorSize(self) -> int:
        return SECTOR

    def xDeviceCharacteristics(self) -> int:
        return 0

    def xFileControl(self, op: int, pointer: int) -> bool:
        return False

    def xLock(self, level: int) -> None: ...

    def xUnlock(self, level: int) -> None: ...

    def xCheckReservedLock(self) -> bool:
        return False

    def xClose(self) -> None: ...


class FaultyConnection:
    """The standard library's connection as the store knows it, on a faulty disk."""

    def __init__(self, disk: Disk, path: str) -> None:
        _files().disk = disk
        self._inner = apsw.Connection(path, vfs="faulty")
        # without other processes, no memory needs to be shared with them
        self.execute("PRAGMA locking_mode = EXCLUSIVE")

    def execute(self, statement: str, values: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        try:
            return iter(list(self._inner.execute(statement, values)))
        except apsw.Error as error:
            raise _translated(error) from error

    def executemany(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        try:
            self._inner.executemany(statement, rows)
        except apsw.Error as error:
            raise _translated(error) from error

    def close(self) -> None:
        try:
            self._inner.close()
        except apsw.Error as error:
            raise _translated(error) from error


@cache
def _files() -> _Files:
    return _Files()


def _translated(error: apsw.Error) -> sqlite3.Error:
    translated = sqlite3.OperationalError(type(error).__name__)
    names = {apsw.FullError: "SQLITE_FULL", apsw.IOError: "SQLITE_IOERR", apsw.CorruptError: "SQLITE_CORRUPT"}
    translated.sqlite_errorname = names.get(type(error), "SQLITE_ERROR")
    return translated
