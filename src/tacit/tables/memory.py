"""How much memory an answer may take: TACIT_MEMORY, such as 4GB, or half of the machine's; and using it again."""

import os
import re
from functools import cache

from tacit.errors import InvalidParameter

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
LEAST = 256 << 20
# glibc learns from freed blocks up to 32 MiB
LEARNT = 32_000_000


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


@cache
def reuse_freed_memory() -> None:
    """Have the C library keep what is freed, for the next batch of rows, instead of giving it back to the system.

    Its rule is that blocks as large as one freed before are kept; so one is freed, which nobody has written to. Without
    that, a stream of batches pays for every page anew, which takes half as long again as reading the rows.
    """
    bytes(LEARNT)
