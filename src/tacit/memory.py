"""Memory and temporary files: how freed memory is reused, how much an answer may take, and where rows are spilled.

The limit is TACIT_MEMORY, such as 4GB, or half of the machine's memory. Rows beyond it go to a private folder, removed
with the process, or by the next one: a dead process is recognised by its lock, which the system releases.
"""

import atexit
import os
import re
import shutil
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from tacit.errors import InvalidParameter, QueryRefused
from tacit.system import PLAIN, is_ours, lock_file, machine_memory

# glibc adapts to freed blocks of up to 32 MiB
LEARNT = 32_000_000


@cache
def reuse_freed_memory() -> None:
    """Make the C library keep freed memory for the next batch: glibc keeps blocks up to the largest freed one.

    Otherwise a stream of batches fetches every page again, which adds half to the time of reading rows.
    """
    bytes(LEARNT)


# ---- The limit.

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
LEAST = 256 << 20


def declared_memory() -> int | None:
    """Return TACIT_MEMORY in bytes, or None if it is not set."""
    setting = os.environ.get("TACIT_MEMORY")
    if setting is None:
        return None
    match = re.fullmatch(r"\s*([0-9]{1,20})\s*([KMGT]?)(i?B)?\s*", setting, re.IGNORECASE)
    size = 0 if match is None else int(match[1]) * UNITS[match[2].upper()]
    if size < LEAST:
        raise InvalidParameter(
            "TACIT_MEMORY must be a size of at least 256MB, such as 4GB"
            "\nhint: unset it to use half of the machine's memory"
        )
    return size


def memory_limit() -> int:
    """Return the limit in bytes; rows beyond it are written to a private file for the time of the question."""
    return declared_memory() or max(LEAST, machine_memory() // 2)


# ---- The folder for rows that do not fit in memory.

PREFIX = "tacit-spill-"
LOCK = "lock"
BLOCK = bytes(4096)

_mine: tuple[int, Path] | None = None


def spill_folder() -> Path:
    """Return this process's folder, which only its user can read; folders of dead processes are removed."""
    global _mine
    if _mine is not None and _mine[0] == os.getpid() and _mine[1].is_dir():
        return _mine[1]
    _remove_dead(Path(tempfile.gettempdir()))
    unnamed = Path(tempfile.mkdtemp(prefix="tacit-new-"))  # only for its owner
    lock = os.open(unnamed / LOCK, os.O_CREAT | os.O_RDWR | PLAIN, 0o600)
    with suppress(OSError):  # without locks of files, folders of dead processes stay
        lock_file(lock)  # held until the process ends; a folder has its lock before it has its name
    folder = unnamed.with_name(PREFIX + unnamed.name.removeprefix("tacit-new-"))
    unnamed.rename(folder)
    _mine = (os.getpid(), folder)
    atexit.register(_remove, *_mine)
    return folder


def refuse_without_folder() -> None:
    """Refuse before any charge if the folder cannot be written to: whether a question needs it depends on rows."""
    try:
        with tempfile.TemporaryFile(dir=spill_folder(), buffering=0) as file:
            is_written = file.write(BLOCK) == len(BLOCK)
    except OSError:
        is_written = False
    if not is_written:
        raise QueryRefused(
            "the folder for temporary files cannot be written to, and questions may need it; no charge was made"
            "\nhint: free some space there, or set TMPDIR to a folder that can be written to, and start again"
        )


def _remove(process: int, folder: Path) -> None:
    if process == os.getpid():  # not in a fork
        shutil.rmtree(folder, ignore_errors=True)


def _remove_dead(parent: Path) -> None:
    for folder in parent.glob(PREFIX + "*"):
        try:
            if folder.is_symlink() or not is_ours(folder.stat(), or_roots=False):
                continue
            lock = os.open(folder / LOCK, os.O_RDWR | PLAIN)
        except OSError:
            continue  # another's, or just gone
        try:
            if lock_file(lock, wait=False):  # its process is dead
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # a file system without locks
        finally:
            os.close(lock)
