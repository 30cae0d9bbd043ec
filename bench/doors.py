"""PostgreSQL's protocol beside HTTP: the server's processor time for a stored answer, and for held connections.

Both doors answer the same stored question of the same server, in turn. Only the processor time of the server counts:
how long an answer takes is decided by the table's public clock.
"""

import http.client
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from bench.measure import Figure, Ratio
from bench.server import Server, people, serving, write_tables

SQL = "SELECT ward, COUNT(*) AS n FROM visits WHERE days <> 3 GROUP BY ward"
CLIENTS = 16
EACH = 25
ROUNDS = 5
HELD = 200
HELD_SECONDS = 5.0
PEOPLE = 4  # one person holds 100 connections at most


def results() -> Iterator[Ratio | Figure]:
    """Start a server with both doors, and compare them."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_tables(home)
        tokens = people(home, PEOPLE)
        with serving(home, "--workers", "1", "--postgres", "0") as server:
            yield stored_answers(server, tokens[0])
            yield from connections_held(server, tokens)


def stored_answers(server: Server, token: str) -> Ratio:
    """Return the processor time of a stored answer over PostgreSQL's protocol against HTTP; its client prepares
    nothing."""
    over_http = asking_over_http(server, token)
    over_postgres = asking_over_postgres(server, token, "analyst 0")
    for each in (over_http, over_postgres):
        each(2)  # the answer is stored, and each thread has its tables open
    times: dict[str, list[float]] = {"http": [], "postgres": []}
    for _ in range(ROUNDS):
        for name, door in (("http", over_http), ("postgres", over_postgres)):
            before = server.processor_seconds()
            door(EACH)
            times[name].append((server.processor_seconds() - before) / (EACH * CLIENTS))
    ours, baseline = (statistics.median(times[name]) for name in ("postgres", "http"))
    return Ratio("a stored answer: PostgreSQL's protocol, HTTP", ours, baseline, 1.5)


def asking_over_http(server: Server, token: str) -> Callable[[int], None]:
    """Return what asks over HTTP so many times from every client, each on a connection that is kept."""
    where = urlsplit(server.address)
    body = json.dumps({"sql": SQL, "epsilon": "0.1"})
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def client(times: int) -> None:
        connection = http.client.HTTPConnection(where.hostname or "", where.port)
        for _ in range(times):
            connection.request("POST", "/api/v1/tables/visits/questions", body, headers)
            reply = connection.getresponse()
            if reply.status != 200 or not reply.read():
                raise RuntimeError(f"HTTP answered {reply.status}")
        connection.close()

    return _from_every_client(client)


def asking_over_postgres(server: Server, token: str, name: str) -> Callable[[int], None]:
    """Return what asks over PostgreSQL's protocol so many times from every client, each on one connection."""
    import psycopg

    def client(times: int) -> None:
        with _connected(server, token, name) as connection:
            cursor = psycopg.ClientCursor(connection)
            for _ in range(times):
                if len(cursor.execute(SQL).fetchall()) != 3:
                    raise RuntimeError("PostgreSQL's protocol gave other rows")

    return _from_every_client(client)


def connections_held(server: Server, tokens: list[str]) -> Iterator[Figure]:
    """Yield how many connections a server holds, and its processor time for them while none asks."""
    with ExitStack() as stack:
        held = [
            stack.enter_context(_connected(server, tokens[number % PEOPLE], f"analyst {number % PEOPLE}"))
            for number in range(HELD)
        ]
        before, began = server.processor_seconds(), time.monotonic()
        time.sleep(HELD_SECONDS)
        share = (server.processor_seconds() - before) / (time.monotonic() - began)
        alive = sum(each.execute("SELECT 1").fetchone() == (1,) for each in held)
        with ThreadPoolExecutor(CLIENTS) as pool:
            answers = sum(pool.map(lambda each: len(each.execute(SQL).fetchall()) == 3, held))
    yield Figure("connections held, and each is answered", alive, least=HELD)
    yield Figure("of these, with a stored answer at once", answers, least=HELD)
    yield Figure("processors in use while they are idle", share, most=0.05)


def _connected(server: Server, token: str, name: str) -> Any:
    import psycopg

    address = server.postgres.replace("NAME@", "")
    return psycopg.connect(address, user=name, password=token, autocommit=True, options="-c tacit.epsilon=0.1")


def _from_every_client(client: Callable[[int], None]) -> Callable[[int], None]:
    def run(times: int) -> None:
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(client, [times] * CLIENTS))

    return run
