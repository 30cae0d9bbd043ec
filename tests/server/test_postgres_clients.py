"""Clients of PostgreSQL as they are: psycopg in this process, and psql on this machine."""

import asyncio
import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.server.conftest import House
from tests.server.postgres_client import listening, startup

COUNT = "SELECT ward, COUNT(*) AS n FROM visits WHERE days > %s GROUP BY ward"


def with_psycopg(house: House, work: Callable[[Any], Any], **options: Any) -> Any:
    """Run work in a thread with a connection of psycopg to a door of this house."""

    def connected(port: int) -> Any:
        given = {"host": "127.0.0.1", "port": port, "user": "ada", "password": "tacit_ada", "dbname": "tacit"}
        with psycopg.connect(**{**given, "options": "-c tacit.epsilon=1", **options}) as connection:  # type: ignore[arg-type]
            return work(connection)

    async def run() -> Any:
        async with listening(house) as port:
            return await asyncio.to_thread(connected, port.port)

    return asyncio.run(run())


def test_psycopg_asks_with_parameters_and_reads_notices(house: House) -> None:
    notices: list[str] = []

    def work(connection: Any) -> Any:
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary))
        first = connection.execute(COUNT, (1,)).fetchall()
        again = connection.cursor(binary=True).execute(COUNT, (1,)).fetchall()
        for _ in range(7):  # from the sixth on it prepares the statement
            assert connection.execute(COUNT, (1,)).fetchall() == first
        assert connection.execute("SELECT %s, %s::int, %s", ("a'b", 5, None)).fetchone() == ("a'b", 5, None)
        return first, again

    first, again = with_psycopg(house, work)
    assert [row[0] for row in first] == ["A", "B", "C"]
    assert again == first
    assert all(type(cell) is int for row in first for cell in row[1:])
    assert notices[1].startswith("Spent")
    assert sum(entry.kind == "charge" for entry in house.desk.ledger.entries()) == 1


def test_psycopg_raises_a_refusal_with_its_hint(house: House) -> None:
    def work(connection: Any) -> Any:
        with pytest.raises(psycopg.errors.SyntaxErrorOrAccessRuleViolation) as refused:
            connection.execute("SELECT * FROM visits LIMIT 100")
        connection.execute("SET tacit.epsilon = 100")
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded) as spent:
            connection.execute("SELECT COUNT(*) FROM visits")
        connection.rollback()
        return refused.value.diag, spent.value.diag

    refused, spent = with_psycopg(house, work)
    assert refused.message_hint
    assert refused.statement_position == "8"
    assert "budget" in spent.message_primary


def test_a_wrong_token_is_an_operational_error(house: House) -> None:
    with pytest.raises(psycopg.OperationalError, match="no valid token was given for this user"):
        with_psycopg(house, lambda _: None, password="tacit_wrong")


def test_a_connection_is_encrypted_and_words_sent_before_that_are_not_taken(
    house: House, certificate: dict[str, str]
) -> None:
    request = struct.pack("!ihh", 8, 1234, 5679)

    def connected(port: int) -> bool:
        given = {"host": "127.0.0.1", "port": port, "user": "ada", "password": "tacit_ada", "sslmode": "require"}
        with psycopg.connect(**given) as connection:  # type: ignore[arg-type]
            assert connection.execute("SELECT 1").fetchone() == (1,)
            return bool(connection.pgconn.ssl_in_use)

    async def run() -> tuple[bool, bytes]:
        async with listening(house, **certificate) as port:
            early = await port.connect()
            early.writer.write(request + startup(user="ada"))
            return await asyncio.to_thread(connected, port.port), await early.reader.read()

    is_encrypted, told = asyncio.run(run())
    assert is_encrypted
    assert told[:1] == b"E"


@pytest.mark.far
def test_psql_lists_describes_and_asks(serving: Callable) -> None:
    if shutil.which("psql") is None:
        pytest.skip("psql is not here: Debian has it as postgresql-client")
    _, token, process = serving("--hold", "10ms", "--workers", "1", "--postgres", "0", "--no-log")
    address = process.stdout.readline().split()[-1].replace("NAME", "curator")
    said = [r"\dt", r"\d visits", r"\l", r"\dn", "SET tacit.epsilon = 1"]
    said += ["SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", "SELECT * FROM visits LIMIT 100"]
    words = [word for each in said for word in ("-c", each)]
    environment = {**os.environ, "PGPASSWORD": token}
    found = subprocess.run(
        ["psql", "-X", address, *words], capture_output=True, text=True, env=environment, check=False
    )
    for each in (" public | visits | table", " days    | bigint", " tacit ", " ward |  n  | n_low | n_high"):
        assert each in found.stdout, found.stdout
    assert "NOTICE:  Spent ε 1" in found.stderr
    assert "LINE 1: SELECT * FROM visits LIMIT 100\n               ^" in found.stderr
