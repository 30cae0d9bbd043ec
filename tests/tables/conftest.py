"""A schema of its own on a PostgreSQL server, for a test of tables that are there."""

import uuid
from collections.abc import Callable
from typing import Any

import psycopg
import pytest


@pytest.fixture
def run(postgres: str) -> Callable[[str], Any]:
    """A function that runs statements on the server, in a schema of the test's own."""
    schema = f"t{uuid.uuid4().hex}"

    def run(sql: str) -> Any:
        with psycopg.connect(postgres, autocommit=True) as link:
            link.execute(f"SET search_path = {schema}")
            found = link.execute(sql)
            return found.fetchall() if found.description else None

    run(f"CREATE SCHEMA {schema}")
    run.schema, run.address = schema, postgres
    return run


@pytest.fixture
def user(run: Any) -> str:
    """The address of a user without rights but one: to look into the schema."""
    name = f"u{uuid.uuid4().hex}"
    run(f"CREATE USER {name}; GRANT USAGE ON SCHEMA {run.schema} TO {name}")
    run.name = name
    return str(run.address).replace("tacit@", f"{name}@")
