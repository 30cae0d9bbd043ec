"""The stage for attacks on the server: a desk in this process, requests without a network, a clock of the case's own.

Nothing here waits: sleeping moves the clock, and so does an engine that is told to be slow.
"""

import asyncio
import io
import json
import logging
import os
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from tacit.answer import AnswerInfo, answer_from, answer_record
from tacit.answer.answer import Answer, AnswerRows
from tacit.asking import Catalog
from tacit.asking.session import Session
from tacit.catalog_file import read_catalog
from tacit.errors import InvalidParameter
from tacit.hold import PublicClock, noting
from tacit.json_wire import write_json
from tacit.ledger import Ledger, Person, open_ledger
from tacit.server import Desk, Listening, Visits, Watching, check_listening, make_app, own_hosts
from tacit.server.turns import Turns
from tacit_gauntlet.stage.ledger import Connection, connected, private_home
from tacit_gauntlet.targets import planted

# told from the table by its rows alone: (id, g, x)
Rows = Sequence[tuple[int, str, int]]
ROWS: Rows = [(n, "ab"[n % 2], n % 9) for n in range(40)]
T = 2.0
_KEY = b"k" * 32  # of cookies
ROUNDS = 20  # so often others are let go on before time passes

_TABLE = """
[tables.{name}]
source = "{name}.parquet"
unit = "id"
{budget}
hold = "{hold}"
rows_per_unit = 1
groups_per_unit = 1
most_rows_per_unit = 1
[tables.{name}.columns.g]
keys = ["a", "b"]
[tables.{name}.columns.x]
between = [0, {most}]
"""


@dataclass
class Watch:
    """A clock that moves when all who are there sleep on it: to the time at which the first of them wakes."""

    time: float = 0.0
    waking: list[float] = field(default_factory=list)

    def now(self) -> float:
        """Return the time."""
        return self.time

    def wait(self, seconds: float) -> None:
        """Let that much time pass, in a thread of its own."""
        self.time += seconds

    async def sleep(self, seconds: float) -> None:
        """Let that much time pass; others go on meanwhile."""
        wakes = self.time + seconds
        if not seconds:
            return
        self.waking.append(wakes)
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        while wakes > min(self.waking):  # noqa: ASYNC110 - it is time itself that is waited for
            await asyncio.sleep(0)
        self.waking.remove(wakes)
        self.time = max(self.time, wakes)


@dataclass(frozen=True)
class Reply:
    """What came back, and when it left by the clock of the case, counted from the request."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    seconds: float = 0.0

    @property
    def record(self) -> Any:
        """The body, read."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Server:
    """A server in this process, and its clock."""

    desk: Desk
    watch: Watch = field(default_factory=Watch)
    watching: Watching = field(default_factory=Watching)  # counts, over all requests
    visits: Visits | None = None  # given: it has pages too

    @cached_property
    def app(self) -> Any:
        """Its application."""
        return make_app(self.desk, self.visits, self.watching, own_hosts(Listening()))

    @property
    def folder(self) -> Path:
        """Where its catalog, its tables and its ledger are."""
        return self.desk.file.path.parent

    @property
    def ledger(self) -> Ledger:
        """Its ledger."""
        return self.desk.ledger

    def send(
        self,
        method: str,
        path: str,
        token: str | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Return the reply to one request."""
        return self.send_all([(method, path, token, body, headers)])[0]

    def send_all(self, requests: Sequence[tuple[str, str, str | None, Any, Mapping[str, str] | None]]) -> list[Reply]:
        """Return the replies to requests that are sent at once."""
        app = self.app

        async def together() -> list[Reply]:
            return list(await asyncio.gather(*(self._exchange(app, *request) for request in requests)))

        return asyncio.run(together())

    def ask(self, token: str, asked: Any, *, table: str = "t", key: str | None = None) -> Reply:
        """Return the reply to a question."""
        headers = {} if key is None else {"idempotency-key": key}
        return self.send("POST", f"/api/v1/tables/{table}/questions", token, asked, headers)

    def charges(self) -> int:
        """Return how many charges the ledger has."""
        return sum(entry.kind == "charge" for entry in self.ledger.entries())

    async def _exchange(
        self, app: Any, method: str, path: str, token: str | None, body: Any, headers: Mapping[str, str] | None
    ) -> Reply:
        raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        given = {
            "host": "127.0.0.1",
            **({} if token is None else {"authorization": f"Bearer {token}"}),
            **(headers or {}),
        }
        place, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": place,
            "raw_path": place.encode(),
            "root_path": "",
            "scheme": "http",
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 2),
        }
        began = self.watch.time
        sent: list[Any] = []
        incoming = iter([{"type": "http.request", "body": raw, "more_body": False}])

        async def receive() -> Any:
            return next(incoming, {"type": "http.disconnect"})

        async def send(message: Any) -> None:
            sent.append(message)

        await app(scope, receive, send)
        found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        whole = b"".join(message.get("body", b"") for message in sent[1:])
        return Reply(sent[0]["status"], found, whole, self.watch.time - began)


@contextmanager
def servers(
    tables: Mapping[str, Rows] | None = None,
    *,
    count: int = 1,
    most: int = 9,
    turns: int = 8,
    holds: Mapping[str, str] | None = None,
    budget: int | str = 9,
    connect: Callable[[str], Connection] = connected,
) -> Iterator[list[Server]]:
    """Open replicas of one server: the same tables, the same ledger, reached by `connect`.

    With `holds`, each table has its own, and all are about the people of the first.
    """
    with private_home() as home:
        write_tables(home, {"t": ROWS} if tables is None else tables, most, budget=budget, holds=holds)
        file = read_catalog(home / "tacit.toml")
        opened = []
        for _ in range(count):
            watch, book = Watch(), open_ledger(file.ledger, connect=connect)
            opened.append(
                Server(
                    Desk(file, book, book, turns_number=turns, now=watch.now, sleep=watch.sleep, wait=watch.wait), watch
                )
            )
        try:
            yield opened
        finally:
            for each in opened:
                each.desk.close()
                each.ledger.close()


def write_tables(
    home: Path,
    tables: Mapping[str, Rows],
    most: int = 9,
    *,
    budget: int | str = 9,
    hold: str = "2s",
    holds: Mapping[str, str] | None = None,
    ledger: str = "ledger.db",
) -> None:
    """Write tables and the catalog that declares them."""
    for name, rows in tables.items():
        columns = list(zip(*rows, strict=True)) or [(), (), ()]
        types = (pa.int64(), pa.string(), pa.int64())
        named = zip(("id", "g", "x"), columns, types, strict=True)
        pq.write_table(
            pa.table({each: pa.array(list(cells), kind) for each, cells, kind in named}), home / f"{name}.parquet"
        )
    first, own = next(iter(tables), ""), f"budget = {{ epsilon = {budget} }}"
    paid = {name: own if holds is None or name == first else f'same_people_as = "{first}"' for name in tables}
    declared = "".join(
        _TABLE.format(name=name, most=most, budget=paid[name], hold=(holds or {}).get(name, hold)) for name in tables
    )
    (home / "tacit.toml").write_text(f'ledger = "{ledger}"\n{declared}')


def catalog_with(budget: str) -> Any:
    """Return the catalog that a tacit.toml declares, whose one table has a budget of this epsilon, as written."""
    with private_home() as home:
        write_tables(home, {"t": [(1, "a", 1)]}, budget=budget)
        return read_catalog(home / "tacit.toml")


def write_columns(path: Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write a file of rows."""
    pq.write_table(pa.table({name: list(cells) for name, cells in columns.items()}), path)


def with_pages(server: Server) -> Server:
    """Return the same server with its pages."""
    return replace(server, visits=Visits(_KEY))


def form_routes(server: Server) -> list[str]:
    """Return every address to which a form of the pages may be sent."""
    routes = [route for route in server.app.app.routes if "POST" in getattr(route, "methods", ())]
    return [
        route.path for route in routes if not route.include_in_schema and not route.path.startswith(("/api", "/mcp"))
    ]


def cookie_as_bearer(scope: Any) -> Any:
    """Return a request with the token of its cookie as if it had been sent as one."""
    headers = dict(scope["headers"])
    cookie = headers.get(b"cookie", b"").decode().partition("=")[2]
    visit = Visits(_KEY).opened(cookie)
    if visit is None or not scope["path"].startswith("/api") or b"authorization" in headers:
        return scope
    return {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {visit.secret}".encode())]}


def entries_by_file(server: Server, name: str) -> list[dict[str, Any]]:
    """Return the last two entries of a fresh ledger in which a table of the catalog is declared: budget and table."""
    with open_ledger(server.folder / "other.db") as book:
        Catalog(read_catalog(server.folder / "tacit.toml"), book)[name]
        return [entry.record for entry in book.entries()][-2:]


def said_about_secrets(server: Server, token: str) -> tuple[dict[str, str], list[str]]:
    """Plant secrets in a server's catalog, ledger and environment; return them, and all that was said about them.

    A table on a server that cannot be reached, a ledger there, a key that is none: each error as it is told, with its
    trace, and how the objects that hold a secret show themselves.
    """
    secrets = {
        "a token": token.split("_", 2)[2],
        "a table's password": "canary-of-a-table",
        "a ledger's password": "canary-of-a-ledger",
        "a key": "canaryOfAKeyThatIsNone",
    }
    catalog, name = server.folder / "tacit.toml", "a ledger's password"  # a trace quotes lines: none has a secret
    address = "postgresql://ada:canary-of-a-table@127.0.0.1:1/clinic?connect_timeout=1&table=visits"
    catalog.write_text(
        f'{catalog.read_text()}\n[tables.far]\nsource = "{address}"\nunit = "id"\nbudget = {{epsilon = 1}}\n'
    )
    said = [Path("/proc/self/cmdline").read_text(encoding="utf-8", errors="replace")]
    for provoke in (
        lambda: Catalog(read_catalog(catalog), server.ledger)["far"],
        lambda: open_ledger(f"postgresql://ada:{secrets[name]}@127.0.0.1:1/book?connect_timeout=1"),
        lambda: _with_key(secrets["a key"], server.folder),
    ):
        try:
            provoke()
        except Exception:
            said.append(traceback.format_exc())
    said += [repr(server.desk), repr(read_catalog(catalog)), repr(server.ledger)]
    return secrets, said


def _with_key(text: str, folder: Path) -> None:
    with mock.patch.dict(os.environ, {"TACIT_KEY": f"-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----"}):
        open_ledger(folder / "another.db")


def limited(server: Server, *, turns: int, waiting: int) -> None:
    """Give a server so many turns, and room for so many questions of one analyst that wait."""
    server.desk.turns = Turns(turns, waiting_max=waiting)


def token_of(server: Server, name: str, role: str = "analyst", tables: Sequence[str] | None = None) -> str:
    """Return a token of a person who is let in here."""
    server.ledger.add_person(name, role=role, tables=None if tables is None else list(tables))
    return server.ledger.new_token(name)


def person(name: str, role: str = "analyst") -> Person:
    """Return a person as the ledger knows them."""
    return Person(name, role, None, None)


@contextmanager
def engine_takes(server: Server, seconds: float, *, fails: bool = False) -> Iterator[None]:
    """Let every reading of rows take so long by the server's clock, and fail at its end if told to."""
    usual: Callable[..., Any] = Session.release

    def slow(self: Session, plan: Any) -> Any:
        server.watch.time += seconds
        if fails:
            raise ValueError("a cell")
        return usual(self, plan)

    with planted("Session.release", slow):
        yield


def clocks_of_library(server: Server, asked: Sequence[str], analyst: str) -> list[float]:
    """Return when answers about the same tables may leave first where the library gives them: no time passes."""
    catalog = Catalog(read_catalog(server.folder / "tacit.toml"), server.ledger)
    first, other, *_ = catalog.values()
    questions = [*(catalog.sql(text) for text in asked), first.join(other, on="id").count()]
    found = []
    for question in questions:
        watch = Watch()
        clock = PublicClock(Fraction(1, 1000), watch.now, watch.wait)
        with noting(clock):
            question.answer(epsilon="0.2", analyst=analyst)
        found.append(watch.time + clock.seconds_left())
    return found


@contextmanager
def writings_noted(server: Server) -> Iterator[list[float]]:
    """Note when answers are written to the ledger, by the server's clock."""
    usual: Callable[..., Any] = Ledger.commit
    noted: list[float] = []

    def commit(self: Ledger, *given: Any) -> Any:
        noted.append(server.watch.time)
        return usual(self, *given)

    with planted("Ledger.commit", commit):
        yield noted


def travelled(numbers: Sequence[Any]) -> tuple[bytes, list[Any]]:
    """Return numbers of an answer as a server writes them, and as a client reads them."""
    info = AnswerInfo({}, {}, "each row", "replace one", Fraction(19, 20), durable=True, free=False)
    columns = {name: list(numbers) for name in ("n", "n_low", "n_high")}
    answer = Answer(AnswerRows(columns), ("n",), dict.fromkeys(columns, "int"), ("n",), info)
    body = write_json(answer_record(answer))
    return body, [row["n"] for row in answer_from(json.loads(body), {}).rows]


def order_of_turns(number: int, asked: Sequence[str]) -> list[str]:
    """Return the order in which questions of these analysts are served."""

    async def story() -> list[str]:
        turns, served = Turns(number), []

        async def one(analyst: str) -> None:
            async with turns.turn(analyst):
                served.append(analyst)
                for _ in range(3):
                    await asyncio.sleep(0)

        await asyncio.gather(*map(one, asked))
        return served

    return asyncio.run(story())


def listens(**where: Any) -> bool:
    """Return whether the server would listen at an address."""
    try:
        check_listening(Listening(**where))
    except InvalidParameter:
        return False
    return True


@contextmanager
def logs_kept() -> Iterator[io.StringIO]:
    """Keep all that the server's own log says."""
    kept = io.StringIO()
    watching = logging.StreamHandler(kept)
    log = logging.getLogger("tacit.server")
    level = log.level
    log.addHandler(watching)
    log.setLevel(logging.INFO)
    try:
        yield kept
    finally:
        log.removeHandler(watching)
        log.setLevel(level)
