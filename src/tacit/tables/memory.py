"""How much memory an answer may take: TACIT_MEMORY, such as 4GB, or half of what the machine has."""

import os
import re

from tacit.errors import InvalidParameter

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
