"""How much memory an answer may take: TACIT_MEMORY, such as 4GB, or half of what the machine has."""

import os
import re

from tacit.errors import InvalidParameter

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
LEAST = 64 << 20


def memory_limit() -> int:
    """Return the limit in bytes; rows beyond it are written to a private file for the time of the question."""
    said = os.environ.get("TACIT_MEMORY")
    if said is None:
        return max(LEAST, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    found = re.fullmatch(r"\s*([0-9]+)\s*([KMGT]?)(i?B)?\s*", said, re.IGNORECASE)
    if found is None:
        raise InvalidParameter("TACIT_MEMORY must be a number of bytes, such as 4GB or 512MB")
    return int(found[1]) * UNITS[found[2].upper()]
