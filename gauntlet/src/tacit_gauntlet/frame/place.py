"""Where the rows of cases are: in this process, or in an engine that the course has started."""

import os

ROWS_AT = "TACIT_GAUNTLET_ROWS_AT"  # the address of the engine, if there is one


def rows_at() -> str | None:
    """Return the address of the engine that rows of this process go to, or None."""
    return os.environ.get(ROWS_AT)


def is_spark(address: str) -> bool:
    """Return whether an address is that of a session of Spark, and not of a server of PostgreSQL."""
    return address.startswith("spark ")
