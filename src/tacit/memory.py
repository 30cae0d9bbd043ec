"""Memory that is freed is used again, by the next batch of rows or of draws, instead of being fetched anew.

How much memory an answer may take: TACIT_MEMORY, such as 4GB, or half of what the machine has.

Where rows may be put for the time of a question: a private folder, removed when the process ends.

A process that is killed cannot remove its own; the next one that makes a folder does. It knows a dead process by its
lock, which the system lets go of with the process.
"""

import atexit
import fcntl
import os
import re
import shutil
import tempfile
from functools import cache
from pathlib import Path

from tacit.errors import InvalidParameter, QueryRefused

# glibc learns from freed blocks up to 32 MiB
LEARNT = 32_000_000


@cache
def reuse_freed_memory() -> None:
    """Have the C library keep what is freed instead of giving it back to the system.

    Its rule is that blocks as large as one freed before are kept; so one is freed, which nobody has written to. Without
    that, a stream of batches pays for every page anew: half as long again as reading the rows, or as drawing noise.
    """
    bytes(LEARNT)


UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
LEAST = 256 << 20


def declared_memory() -> int | None:
    """Return TACIT_MEMORY in bytes, or None where it is not set."""
    said = os.environ.get("TACIT_MEMORY")
    if said is None:
        return None
    found = re.fullmatch(r"\s*([0-9]{1,20})\s*([KMGT]?)(i?B)?\s*", said, re.IGNORECASE)
    size = 0 if found is None else int(found[1]) * UNITS[found[2].upper()]
    if size < LEAST:
        raise InvalidParameter(
            "TACIT_MEMORY must be a size of at least 256MB, such as 4GB\nhint: leave it out for half of the memory"
        )
    return size


def memory_limit() -> int:
    """Return the limit in bytes; rows beyond it are written to a private file for the time of the question."""
    return declared_memory() or max(LEAST, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)


PREFIX = "tacit-spill-"
LOCK = "lock"
BLOCK = bytes(4096)

_mine: tuple[int, Path] | None = None


def spill_folder() -> Path:
    """Return this process's folder, which only its user can read; those of dead processes are removed."""
    global _mine
    if _mine is not None and _mine[0] == os.getpid() and _mine[1].is_dir():
        return _mine[1]
    _remove_dead(Path(tempfile.gettempdir()))
    unnamed = Path(tempfile.mkdtemp(prefix="tacit-new-"))  # for its owner alone
    lock = os.open(unnamed / LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)  # held until the process ends; a folder has its lock before it has its name
    folder = unnamed.with_name(PREFIX + unnamed.name.removeprefix("tacit-new-"))
    unnamed.rename(folder)
    _mine = (os.getpid(), folder)
    atexit.register(_remove, *_mine)
    return folder


def refuse_without_folder() -> None:
    """Refuse where nothing can be written to the folder, before any charge: whether a question needs it, rows decide.

    A block is written, of which nothing is left.
    """
    try:
        with tempfile.TemporaryFile(dir=spill_folder(), buffering=0) as file:
            is_written = file.write(BLOCK) == len(BLOCK)
    except OSError:
        is_written = False
    if not is_written:
        raise QueryRefused(
            "nothing can be written to the folder for temporary files, which questions may need; nothing was charged"
            "\nhint: make room there, or set TMPDIR to a folder that can be written to, and start again"
        )


def _remove(process: int, folder: Path) -> None:
    if process == os.getpid():  # not in a fork
        shutil.rmtree(folder, ignore_errors=True)


def _remove_dead(parent: Path) -> None:
    for folder in parent.glob(PREFIX + "*"):
        try:
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            lock = os.open(folder / LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            continue  # another's, or just gone
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # its process lives
        finally:
            os.close(lock)
