"""What differs between operating systems: locks of files, owners and modes, forks, processors and memory.

Linux and macOS have all of it. Windows has locks, which exclude readers too, and neither forks nor modes: a file has
the access list of its folder, so nothing that others could have written is run there (`fault_of`), and a folder of
one's own is the user's to choose. A system without locks of files can keep a ledger only in memory.

`fault_of` finds how other users could change what is at a path. Every folder from the root down must belong to us or to
the system, closed to writing by others; one such as /tmp may be on the way but not at the end. Links follow the same
rule. Each step is checked, and cannot change, before the next one is read.
"""

import errno
import importlib
import os
import stat
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


fcntl: Any = _module("fcntl")
msvcrt: Any = _module("msvcrt")
pwd: Any = _module("pwd")
grp: Any = _module("grp")
HAS_OWNERS = hasattr(os, "geteuid") and pwd is not None and grp is not None

# A file is opened with these to be neither a link nor something that blocks, and read byte for byte.
PLAIN = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
NO_OWNERS = "this system does not show who may write to it"

# ---- Locks, which end with their process.

# Windows locks a whole file by this byte, and other bytes modulo it: no file is as long, so readers are not kept out.
WHOLE = 1 << 40
_PAUSE = 0.01


def lock_file(descriptor: int, *, shared: bool = False, wait: bool = True) -> bool:
    """Lock a file against other openers, and return whether that was possible: always, if we wait."""
    if fcntl is None:
        while not lock_byte(descriptor, WHOLE):
            if not wait:
                return False
            time.sleep(_PAUSE)
        return True
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True


def lock_byte(descriptor: int, number: int, *, shared: bool = False) -> bool:
    """Lock one byte of a file against other processes, which may be beyond its end; return whether it was free."""
    if fcntl is None and msvcrt is None:
        raise OSError(errno.ENOSYS, "locks of files are missing from this system")
    try:
        if fcntl is not None:
            fcntl.lockf(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB, 1, number)
        else:
            _seek_lock(descriptor, number)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES, errno.EDEADLK):
            return False
        raise
    return True


def unlock_byte(descriptor: int, number: int) -> None:
    """Unlock a byte that was locked here."""
    if fcntl is not None:
        fcntl.lockf(descriptor, fcntl.LOCK_UN, 1, number)
    elif msvcrt is not None:
        _seek_lock(descriptor, number)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)


def _seek_lock(descriptor: int, number: int) -> None:
    os.lseek(descriptor, number if number == WHOLE else number % WHOLE, os.SEEK_SET)


# ---- Reading, writing, and what is on the disk on return.

_seeking = threading.Lock()


def read_at(descriptor: int, room: Any, place: int) -> int:
    """Fill a buffer with the bytes of a file from a place on; return how many there were."""
    if hasattr(os, "preadv"):
        return os.preadv(descriptor, [room], place)
    with _seeking:
        os.lseek(descriptor, place, os.SEEK_SET)
        found = os.read(descriptor, len(room))
    room[: len(found)] = found
    return len(found)


def write_at(descriptor: int, content: Any, place: int) -> int:
    """Write bytes to a place of a file; return how many were written."""
    if hasattr(os, "pwrite"):
        return os.pwrite(descriptor, content, place)
    with _seeking:
        os.lseek(descriptor, place, os.SEEK_SET)
        return os.write(descriptor, content)


def sync_content(descriptor: int) -> None:
    """Have a file's content on the disk on return."""
    (os.fdatasync if hasattr(os, "fdatasync") else os.fsync)(descriptor)


def sync_folder(folder: Path) -> None:
    """Have the folder's list of files on the disk on return; Windows keeps that list in a journal of its own."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# ---- Owners and modes.

LINKS_MOST = 40


def is_ours(found: os.stat_result, *, or_roots: bool = True) -> bool:
    """Whether a file belongs to us or, by default, to the system; always on a system that does not show owners."""
    return not HAS_OWNERS or found.st_uid == os.geteuid() or (or_roots and found.st_uid == 0)


def user_number() -> int:
    """Return the number of this user; 0 on a system without such numbers."""
    return os.geteuid() if HAS_OWNERS else 0


def fault_of(path: Path) -> str | None:
    """Return how others could change what is at a path; None if they cannot, or if the path does not exist yet."""
    if not HAS_OWNERS:
        return NO_OWNERS
    here, links = "/", 0
    left = _path_parts(os.path.join(os.getcwd(), path))
    found = os.lstat(here)
    while True:
        fault = _fault_of_step(here, found, last=not left)
        if fault is not None or not left:
            return fault
        step = left.pop()
        below = os.path.dirname(here) if step == ".." else os.path.join(here, step)
        try:
            found = os.lstat(below)
        except FileNotFoundError:
            return None
        if stat.S_ISLNK(found.st_mode):
            links += 1
            if not is_ours(found) or links > LINKS_MOST:
                return f"{below} is a link that belongs to another user, or one of too many links"
            target = os.readlink(below)
            left += _path_parts(target)
            below = "/" if target.startswith("/") else here
            found = os.lstat(below)
        here = below


def make_folder(path: Path) -> None:
    """Make a folder and its missing parents, each readable by its owner only."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)


def others_may_write(found: os.stat_result) -> bool:
    """Whether users other than the owner and the system may write to a file or folder, as far as its mode says."""
    if not HAS_OWNERS:
        return False
    by_group = found.st_mode & stat.S_IWGRP and found.st_gid != 0 and not _has_nobody_else(found.st_gid)
    return bool(found.st_mode & stat.S_IWOTH or by_group)


def _path_parts(path: str) -> list[str]:
    """Return the parts of a path, the first one last."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _fault_of_step(path: str, found: os.stat_result, *, last: bool) -> str | None:
    if not is_ours(found):
        return f"{path} belongs to another user"
    passing = not last and stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX
    if others_may_write(found) and not passing:
        return f"others may write to {path}"
    return None


@cache
def _has_nobody_else(group: int) -> bool:
    """Whether a group is the one that many systems give each user for themselves."""
    try:
        mine, named = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except KeyError:
        return False
    return bool(mine.pw_gid == group and named.gr_name == mine.pw_name and set(named.gr_mem) <= {mine.pw_name})


# ---- Forks, processors and memory.

USUAL_MEMORY = 8 << 30


def at_fork(**hooks: Callable[[], object]) -> None:
    """Have functions called when the process forks, on a system that forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**hooks)


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine_memory() -> int:
    """Return the machine's memory in bytes; 8 GiB on a system that does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return USUAL_MEMORY
