"""Small files that others wrote, such as a catalog or a certificate: read whole, and never more than they may hold.

A path may lead to a device that never ends, or to a file far larger than what it should be. A pipe is read too.
"""

import os
import stat
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
