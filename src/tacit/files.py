"""Paths that a user names: read whole, up to a limit, since a path may lead to an endless device, or written to."""

import os
import stat
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
