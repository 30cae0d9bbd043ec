"""Two checks of paths. `read_small` reads a file of others whole, up to a limit: a path may lead to an endless device.

`fault_of` finds how other users could change what is at a path. Every folder from the root down must belong to us or to
the system, closed to writing by others; one such as /tmp may be on the way but not at the end. Links follow the same
rule. Each step is checked, and cannot change, before the next one is read.
"""

import grp
import os
import pwd
import stat
from functools import cache
from pathlib import Path

from tacit.errors import InvalidParameter


def path_of(path: object) -> Path:
    """Return a path that a user gave, as text or as a Path; refuse anything else."""
    if not isinstance(path, str | Path) or not str(path) or "\0" in str(path):
        raise InvalidParameter(f"a path must be a text or a Path, not {type(path).__name__}\nhint: e.g. 'answer.csv'")
    return Path(path)


def write_text(path: object, text: str) -> None:
    """Write a text to the file that a user named; refuse a place at which that is impossible."""
    try:
        path_of(path).write_text(text, encoding="utf-8")
    except OSError:
        raise InvalidParameter(
            "the file cannot be written to this path\nhint: name a file in a folder that you may write to"
        ) from None


def read_small(path: Path, *, bytes_max: int) -> str:
    """Return a file's text in UTF-8. Refuse a device, a folder, a file that is too large, and bytes that are not text.

    An OSError of the system is not caught.

    >>> read_small(Path(os.devnull), bytes_max=10)
    Traceback (most recent call last):
    tacit.errors.InvalidParameter: /dev/null is a device or a folder, not a file...
    """
    with path.open("rb") as file:
        kind = os.fstat(file.fileno()).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISFIFO(kind)):
            raise InvalidParameter(f"{path} is a device or a folder, not a file\nhint: give the path of a file")
        content = file.read(bytes_max + 1)
    if len(content) > bytes_max:
        raise InvalidParameter(f"{path} is larger than {bytes_max >> 20} MB\nhint: check that it is the right file")
    try:
        return content.decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise InvalidParameter(f"{path} is not text in UTF-8\nhint: save it as UTF-8") from None


LINKS_MOST = 40


def fault_of(path: Path) -> str | None:
    """Return how others could change what is at a path; None if they cannot, or if the path does not exist yet."""
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
            if found.st_uid not in (0, os.geteuid()) or links > LINKS_MOST:
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
    """Whether users other than the owner and the system may write to a file or folder."""
    by_group = found.st_mode & stat.S_IWGRP and found.st_gid != 0 and not _has_nobody_else(found.st_gid)
    return bool(found.st_mode & stat.S_IWOTH or by_group)


def _path_parts(path: str) -> list[str]:
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
