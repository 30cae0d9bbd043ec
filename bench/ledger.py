"""Durable charges against bare inserts with the same durability, on the same disk, by one caller and by many."""

import itertools
import os
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path

from bench.measure import Ratio, best_of_each

# A charge reads and writes totals, hashes and signs; a bare insert writes one row. At least 0.3 of its rate.
LIMIT = 1 / 0.3
CHARGES = 320
ROW = "x" * 600

Call = Callable[[], object]


def results() -> Iterator[Ratio]:
    """Yield the time of a charge against that of a bare insert, for each store and number of callers."""
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tacit-bench-")))
        os.environ["TACIT_HOME"] = str(home)
        yield from _compared("SQLite", str(home / "ledger.db"), _bare_sqlite(home / "bare.db"))
        address = _postgres(stack)
        if address is not None:
            from tacit_gauntlet.stage.postgres_server import fresh_schema

            yield from _compared("PostgreSQL", fresh_schema(address), _bare_postgres(address, stack))


def _compared(store: str, where: str, bare: Call) -> Iterator[Ratio]:
    from tacit.ledger import open_ledger
    from tacit.privacy.loss import LaplaceNoise, PureLoss

    with open_ledger(where) as ledger:
        table = ledger.register(name="pay", declaration={"unit": "id"}, budget=PureLoss(Fraction(10**9)))
        event = LaplaceNoise(scale=Fraction(100), sensitivity=Fraction(1))
        numbers = itertools.count()

        def charge() -> None:
            name = str(next(numbers))
            ledger.reserve(table, [event], question_key=name, request_id=name)

        for callers in (1, 32):
            ours, baseline = best_of_each(_by(callers, charge), _by(callers, bare), repeats=5)
            who = f"{callers} caller{'s' if callers > 1 else ''}"
            yield Ratio(f"durable charge, {store}, {who}", ours / CHARGES, baseline / CHARGES, LIMIT)


def _by(callers: int, call: Call) -> Call:
    """Return a job in which so many callers make CHARGES calls together."""

    def some() -> None:
        for _ in range(CHARGES // callers):
            call()

    def job() -> None:
        threads = [threading.Thread(target=some) for _ in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    return job


def _bare_sqlite(path: Path) -> Call:
    """Insert one row durably; callers take turns on one connection, which is the fastest they can do."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE bare (number INTEGER PRIMARY KEY, body TEXT)")
    turn = threading.Lock()

    def insert() -> None:
        with turn:
            connection.execute("INSERT INTO bare (body) VALUES (?)", (ROW,))

    return insert


def _bare_postgres(address: str, stack: ExitStack) -> Call:
    """Insert one row durably; each caller has a connection, and the server syncs for several at once."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as link:
        link.execute("CREATE TABLE bare (number BIGSERIAL PRIMARY KEY, body TEXT)")
    idle = [stack.enter_context(psycopg.connect(address, autocommit=True)) for _ in range(32)]

    def insert() -> None:
        link = idle.pop()
        link.execute("INSERT INTO bare (body) VALUES (%s)", (ROW,))
        idle.append(link)

    return insert


def _postgres(stack: ExitStack) -> str | None:
    from tacit_gauntlet.stage.postgres_server import server, server_programs

    programs = server_programs()
    return None if programs is None else stack.enter_context(server(programs))
