"""Small files that others wrote, such as a catalog or a certificate: read whole, and never more than they may hold.

A path may lead to a device that never ends, or to a file far larger than what it should be. A pipe is read too.

Which files and folders are ours alone: nobody else can change what is found at their path.

So it is where every folder on the way, from the root down, belongs to us or to the system, and nobody else may write
to it. A folder such as /tmp, where others may write but not rename what is ours, may be on the way, and not its end.
Links are followed by the same rule. Since each step is known to stay before the next is looked at, what is found is
what is used.
"""

import grp
import os
import pwd
import stat
from functools import cache
from pathlib import Path

from tacit.errors import InvalidParameter


def read_small(path: Path, *, bytes_max: int) -> str:
    """Return a file's text in UTF-8; what is too large, is a device or is no text is refused, and OSError is raised.

    >>> read_small(Path(os.devnull), bytes_max=10)
    Traceback (most recent call last):
    tacit.errors.InvalidParameter: /dev/null is no file, but a device or a folder...
    """
    with path.open("rb") as file:
        kind = os.fstat(file.fileno()).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
            raise InvalidParameter(f"{path} is no file, but a device or a folder\nhint: give the path of a file")
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise InvalidParameter(f"{path} is larger than {bytes_max >> 20} MB\nhint: check that it is the right file")
    try:
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise InvalidParameter(f"{path} is not text in UTF-8\nhint: save it as UTF-8") from None


LINKS_MOST = 40


def fault_of(path: Path) -> str | None:
    """Return how others could change what is at a path, or None where they cannot, or where nothing is there yet."""
    here, links = "/", 0
    left = _steps(os.path.join(os.getcwd(), path))
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
            if found.st_uid not in (0, os.geteuid()) or links > LINKS_MOST:
                return f"{below} is a link of another user's, or one of too many"
            target = os.readlink(below)
            left += _steps(target)
            below = "/" if target.startswith("/") else here
            found = os.lstat(below)
        here = below


def make_folder(path: Path) -> None:
    """Make a folder and what is missing above it, each for its owner alone."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)


def others_may_write(found: os.stat_result) -> bool:
    """Whether users other than the owner and the system may write to a file or folder."""
    by_group = found.st_mode & stat.S_IWGRP and found.st_gid != 0 and not _has_nobody_else(found.st_gid)
    return bool(found.st_mode & stat.S_IWOTH or by_group)


def _steps(path: str) -> list[str]:
    """Return the parts of a path, the first one last."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]


def _fault_of_step(path: str, found: os.stat_result, *, last: bool) -> str | None:
    if found.st_uid not in (0, os.geteuid()):
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
    return mine.pw_gid == group and named.gr_name == mine.pw_name and set(named.gr_mem) <= {mine.pw_name}
