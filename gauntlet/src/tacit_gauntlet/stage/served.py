"""The stage for attacks on a server that runs: worker processes on a port of this machine, which may be killed.

It is forked from this process, so that a planted bug is in it too.
"""

import http.client
import json
import os
import signal
import sqlite3
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from tacit.catalog_file import read_catalog
from tacit.errors import LedgerError
from tacit.ledger import Ledger, open_ledger
from tacit.server import Desk, Listening, make_app, own_hosts, share_of
from tacit.server import serve as listen
from tacit_gauntlet.frame.case import NotTried
from tacit_gauntlet.stage.ledger import Connection, connected, private_home
from tacit_gauntlet.stage.postgres_server import fresh_schema, is_here, server, server_programs
from tacit_gauntlet.stage.racing import run_together
from tacit_gauntlet.stage.server import ROWS, Reply, write_tables

PATIENCE_SECONDS = 120  # no reply takes as long
AGAIN_SECONDS = 0.02
HOLD = "40ms"


@dataclass(frozen=True)
class Served:
    """A running server: its port and its parent process."""

    port: int
    process: int

    def send(
        self,
        method: str,
        path: str,
        token: str | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Return the reply to a request on a connection of its own; OSError or HTTPException where it breaks."""
        given = {**({} if token is None else {"Authorization": f"Bearer {token}"}), **(headers or {})}
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        try:
            line.request(method, path, None if body is None else json.dumps(body), given)
            reply = line.getresponse()
            return Reply(reply.status, dict(reply.getheaders()), reply.read())
        finally:
            line.close()

    def until_told(self, *request: Any) -> Reply:
        """Return the reply to a request that is sent again, the same, as often as its connection breaks."""
        while True:
            with suppress(OSError, http.client.HTTPException):
                reply = self.send(*request)
                if reply.status != 429:
                    return reply
            time.sleep(AGAIN_SECONDS)

    def workers(self) -> list[int]:
        """Return the worker processes that run now."""
        return [int(each) for each in Path(f"/proc/{self.process}/task/{self.process}/children").read_text().split()]

    def kill_a_worker(self) -> bool:
        """Kill a worker without a warning; return whether there was one."""
        for pid in self.workers()[:1]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                return True
        return False


@dataclass(frozen=True)
class House:
    """Running replicas of one server, and their ledger."""

    replicas: Sequence[Served]
    ledger: Ledger

    def token(self, name: str) -> str:
        """Return a token of a person who is let in here."""
        self.ledger.add_person(name)
        return self.ledger.new_token(name)

    def charges(self) -> dict[int, Fraction]:
        """Return every charge by its entry's number."""
        return {e.number: Fraction(e.record["epsilon"]) for e in self.ledger.entries() if e.kind == "charge"}

    def faults(self) -> list[str]:
        """Return what is wrong with the ledger as a whole."""
        try:
            self.ledger.verify()
        except LedgerError as error:
            return [str(error).splitlines()[0]]
        return []


@contextmanager
def served(
    *,
    count: int = 1,
    workers: int = 2,
    turns: int = 8,
    budget: int = 10,
    patience: float = 10.0,
    postgres: str | None = None,
) -> Iterator[House]:
    """Run replicas of one server, with workers of their own, on one ledger: a file, or in a PostgreSQL server."""
    with ExitStack() as stack:
        home = stack.enter_context(private_home())
        place = "ledger.db" if postgres is None else fresh_schema(postgres)
        write_tables(home, {"t": ROWS}, budget=budget, hold=HOLD, ledger=place)
        file = read_catalog(home / "tacit.toml")
        ledger = stack.enter_context(open_ledger(file.ledger))
        replicas = [stack.enter_context(_running(home, workers, turns, patience)) for _ in range(count)]
        yield House(replicas, ledger)


@contextmanager
def postgres_if_here() -> Iterator[str | None]:
    """Yield the address of a PostgreSQL server of one's own, or None where none can be started."""
    programs = server_programs()
    if programs is None or not is_here():
        yield None
        return
    with server(programs) as address:
        yield address


@contextmanager
def _running(home: Path, workers: int, turns: int, patience: float) -> Iterator[Served]:
    read, write = os.pipe()
    process = os.fork()
    if not process:
        try:
            listening = Listening(port=0, patience=patience)
            listen(lambda: _opened(home, workers, turns), listening, ready=lambda at: _tell(write, at), workers=workers)
        except Exception:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as told:
        port = told.readline()
    try:
        if port:
            yield Served(int(port), process)
    finally:
        os.kill(process, signal.SIGTERM)
        _, status = os.waitpid(process, 0)
    if not port:
        raise NotTried(f"the server ended before it listened ({os.waitstatus_to_exitcode(status)})")


@contextmanager
def _opened(home: Path, workers: int, turns: int) -> Iterator[Any]:
    file = read_catalog(home / "tacit.toml")
    ledger = open_ledger(file.ledger)
    desk = Desk(file, ledger, ledger, turns_number=share_of(turns, workers), workers=workers)
    try:
        yield make_app(desk, hosts=own_hosts(Listening()))
    finally:
        desk.close()


def _tell(write: int, where: Listening) -> None:
    os.write(write, f"{where.port}\n".encode())
    os.close(write)


def in_threads(works: Sequence[Callable[[], None]], number: int) -> None:
    """Do works in so many threads, each taking the next that nobody has taken."""
    waiting = list(reversed(works))

    def worker() -> None:
        while waiting:
            with suppress(IndexError):
                waiting.pop()()

    run_together([worker] * number)


# ---- a ledger whose connection is watched


@dataclass(frozen=True)
class Watched:
    """A connection to a ledger's file that calls `before` with each statement."""

    within: Connection
    before: Callable[[str], None]

    def execute(self, statement: str, *values: Any) -> Any:
        """Run a statement."""
        self.before(statement)
        return self.within.execute(statement, *values)

    def executemany(self, statement: str, rows: Any) -> Any:
        """Run a statement for each row."""
        self.before(statement)
        return self.within.executemany(statement, rows)

    def close(self) -> None:
        """Close the connection."""
        self.within.close()


def watching(before: Callable[[str], None]) -> Callable[[str], Connection]:
    """Return a way to connect that is watched."""
    return lambda name: Watched(connected(name), before)


def disk_is_full(statement: str) -> None:
    """Fail a write as SQLite does on a disk without room."""
    if statement.startswith(("INSERT", "UPDATE", "COMMIT")):
        error = sqlite3.OperationalError("database or disk is full")
        error.sqlite_errorname = "SQLITE_FULL"
        raise error
