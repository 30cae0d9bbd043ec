"""Every ledger test runs on every store: SQLite in a file, and PostgreSQL on a server the tests start themselves."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tacit.ledger import Ledger, RegisteredTable, open_ledger
from tacit.privacy.loss import epsilon
from tacit_gauntlet.stage.ledger import DECLARATION
from tacit_gauntlet.stage.postgres_server import fresh_schema


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a ledger may be made: in a file, or in a schema of its own."""
    if request.param == "sqlite":
        return str(tmp_path / "ledger.db")
    return fresh_schema(request.getfixturevalue("postgres"))


@pytest.fixture
def ledger(where: str) -> Iterator[Ledger]:
    """An empty ledger."""
    with open_ledger(where) as opened:
        yield opened


@pytest.fixture
def table(ledger: Ledger) -> RegisteredTable:
    """A table with a budget of epsilon 1."""
    return ledger.register(name="pay", declaration=DECLARATION, source="pay.parquet", budget=epsilon(1))
