"""Memory that is freed is used again, by the next batch of rows or of draws, instead of being fetched anew."""

from functools import cache

# glibc learns from freed blocks up to 32 MiB
LEARNT = 32_000_000


@cache
def reuse_freed_memory() -> None:
    """Have the C library keep what is freed instead of giving it back to the system.

    Its rule is that blocks as large as one freed before are kept; so one is freed, which nobody has written to. Without
    that, a stream of batches pays for every page anew: half as long again as reading the rows, or as drawing noise.
    """
    bytes(LEARNT)
