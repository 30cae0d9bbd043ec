"""Every engine runs every engine test: `engine` turns rows and a declaration into a protected table on each in turn."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tacit.auditing.gauntlet.table_stage import protected
from tacit.door import Table

# engine -> how to hold some rows in it and protect them
ENGINES: dict[str, Callable[..., Table]] = {"duckdb": protected}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Callable[..., Table]:
    """A function from an Arrow table and a declaration to a protected table on this engine."""
    hold = ENGINES[request.param]

    def protect(rows: pa.Table, **declared: Any) -> Table:
        return hold(rows, **declared)

    return protect
