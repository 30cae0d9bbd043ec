"""Files as they were when they were opened: a question is refused, before it is charged, where they are no longer so.

Files may get new rows under an open handle. What may not change is that they are there and have their columns. That
is a matter of the files' names, times and schemas, which opening has read already; no row is.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tacit.errors import QueryRefused

Mark = tuple[int, int, int, int]


@dataclass(frozen=True)
class OpenedFiles:
    """Paths, how each file was marked, and the columns that all of them had."""

    paths: Sequence[str]
    marks: Sequence[Mark]
    columns: object
    columns_of: Callable[[str], object]

    def refuse_changes(self) -> None:
        """Refuse if a file is gone, or has been written since and has other columns now."""
        for path, mark in zip(self.paths, self.marks, strict=True):
            try:
                is_same = _mark(path) == mark
            except OSError:
                raise QueryRefused(
                    f"there is no file at {path!r} any more, so nothing was charged"
                    "\nhint: put it back, or open the table again"
                ) from None
            if not is_same and not self._has_its_columns(path):
                raise QueryRefused(
                    f"the file at {path!r} no longer has the columns it was opened with, so nothing was charged"
                    "\nhint: open the table again, with a new version="
                )

    def _has_its_columns(self, path: str) -> bool:
        try:
            return self.columns_of(path) == self.columns
        except Exception:  # noqa: BLE001 - whatever it is now, it is not what was opened
            return False


def opened_files(paths: Sequence[str], columns_of: Callable[[str], object]) -> OpenedFiles:
    """Return files that have just been opened, all of the same columns."""
    return OpenedFiles(tuple(paths), [_mark(path) for path in paths], columns_of(paths[0]), columns_of)


def _mark(path: str) -> Mark:
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def written_stamp(paths: Sequence[str]) -> str:
    """Return a text that differs once a file was written or replaced: its number and its time, and never its size.

    When a file was written is known to whoever keeps it; how large it is would say how many rows it has.
    """
    return "|".join(f"{path}:{_written(path)}" for path in paths)


def _written(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError:
        return "absent"
    return f"{found.st_ino}:{found.st_mtime_ns}"
