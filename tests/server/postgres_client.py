"""A client of PostgreSQL's protocol for tests: messages as they are, over a connection of this machine."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tacit.server.postgres import Door
from tacit.server.watching import Watching
from tacit_gauntlet.stage.postgres_lines import ScramClient
from tests.server.conftest import House

Message = tuple[bytes, bytes]
EPSILON = {"options": "-c tacit.epsilon=1"}
TEXT, INT8, FLOAT8, BOOL, DATE, NUMERIC = 25, 20, 701, 16, 1082, 1700


def packed(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!i", len(body) + 4) + body


def text(written: str) -> bytes:
    return written.encode() + b"\0"


def startup(**options: str) -> bytes:
    body = struct.pack("!i", 196608) + b"".join(text(name) + text(value) for name, value in options.items()) + b"\0"
    return struct.pack("!i", len(body) + 4) + body


def report_of(body: bytes) -> dict[str, str]:
    """The fields of an error or a notice, by their letters."""
    parts = [part for part in body.split(b"\0") if part]
    return {part[:1].decode(): part[1:].decode() for part in parts}


def row_of(body: bytes) -> list[bytes | None]:
    count, at, cells = struct.unpack("!h", body[:2])[0], 2, list[bytes | None]()
    for _ in range(count):
        size = struct.unpack("!i", body[at : at + 4])[0]
        cells.append(None if size < 0 else body[at + 4 : at + 4 + size])
        at += 4 + max(size, 0)
    return cells


def columns_of(body: bytes) -> list[tuple[str, int]]:
    at, found = 2, []
    for _ in range(struct.unpack("!h", body[:2])[0]):
        end = body.index(b"\0", at)
        found.append((body[at:end].decode(), struct.unpack("!ihihih", body[end + 1 : end + 19])[2]))
        at = end + 19
    return found


@dataclass
class Reply:
    """What came until the server was ready again."""

    messages: list[Message]

    def all(self, kind: bytes) -> list[bytes]:
        return [body for each, body in self.messages if each == kind]

    @property
    def kinds(self) -> bytes:
        return b"".join(kind for kind, _ in self.messages)

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return [tuple(None if cell is None else cell.decode() for cell in row_of(body)) for body in self.all(b"D")]

    @property
    def columns(self) -> list[tuple[str, int]]:
        return columns_of(self.all(b"T")[0]) if self.all(b"T") else []

    @property
    def error(self) -> dict[str, str]:
        return report_of(self.all(b"E")[0]) if self.all(b"E") else {}

    @property
    def notices(self) -> list[str]:
        return [report_of(body)["M"] for body in self.all(b"N")]

    @property
    def tags(self) -> list[str]:
        return [body.rstrip(b"\0").decode() for body in self.all(b"C")]


@dataclass
class Client:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    key: bytes = b""
    status: dict[str, str] = field(default_factory=dict)

    async def message(self) -> Message:
        kind, size = struct.unpack("!ci", await self.reader.readexactly(5))
        return kind, await self.reader.readexactly(size - 4)

    async def until(self, last: bytes = b"Z") -> Reply:
        """Read until a message of a kind, or until the server closes the connection."""
        found: list[Message] = []
        while not found or found[-1][0] != last:
            try:
                found.append(await self.message())
            except (asyncio.IncompleteReadError, ConnectionError):
                break
        return Reply(found)

    async def sign_in(self, token: str = "tacit_ada", **options: str) -> Reply:
        self.writer.write(startup(**{"user": "ada", "database": "tacit", **options}))
        first = await self.message()
        if first[0] != b"R":
            return Reply([first])
        scram = ScramClient()
        self.writer.write(scram.first())
        asked = await self.message()
        if asked[0] != b"R":
            return Reply([asked])
        self.writer.write(scram.last(asked[1][4:], token))
        reply = await self.until()
        self.key = next(iter(reply.all(b"K")), b"")
        self.status = dict(
            tuple(part.decode() for part in body.split(b"\0")[:2])
            for body in reply.all(b"S")  # type: ignore[misc]
        )
        return reply

    async def ask(self, sql: str) -> Reply:
        self.writer.write(packed(b"Q", text(sql)))
        return await self.until()

    async def send(self, *messages: bytes) -> Reply:
        """Send messages of the extended protocol, and Sync."""
        self.writer.write(b"".join(messages) + packed(b"S"))
        return await self.until()

    async def prepared(self, sql: str, values: Sequence[bytes | None] = (), **given: Any) -> Reply:
        """Parse, describe, bind, describe, execute."""
        return await self.send(
            parse(sql, types=given.get("types", ())),
            packed(b"D", b"S" + text("")),
            bind(values, formats=given.get("formats", ()), results=given.get("results", ())),
            packed(b"D", b"P" + text("")),
            packed(b"E", text("") + struct.pack("!i", given.get("most", 0))),
        )

    async def close(self) -> None:
        self.writer.close()
        with __import__("contextlib").suppress(ConnectionError):
            await self.writer.wait_closed()


def parse(sql: str, name: str = "", types: Sequence[int] = ()) -> bytes:
    numbers = b"".join(struct.pack("!i", each) for each in types)
    return packed(b"P", text(name) + text(sql) + struct.pack("!h", len(types)) + numbers)


def bind(
    values: Sequence[bytes | None] = (),
    name: str = "",
    portal: str = "",
    formats: Sequence[int] = (),
    results: Sequence[int] = (),
) -> bytes:
    cells = b"".join(struct.pack("!i", -1) if each is None else struct.pack("!i", len(each)) + each for each in values)
    return packed(
        b"B",
        text(portal)
        + text(name)
        + struct.pack("!h", len(formats))
        + b"".join(struct.pack("!h", each) for each in formats)
        + struct.pack("!h", len(values))
        + cells
        + struct.pack("!h", len(results))
        + b"".join(struct.pack("!h", each) for each in results),
    )


@dataclass
class Port:
    """A door that listens on this machine, in the test's own event loop."""

    door: Door
    port: int
    opened: list[Client] = field(default_factory=list)

    async def connect(self) -> Client:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.opened.append(Client(reader, writer))
        return self.opened[-1]

    async def signed_in(self, token: str = "tacit_ada", **options: str) -> Client:
        client = await self.connect()
        reply = await client.sign_in(token, **options)
        assert reply.kinds.endswith(b"Z"), reply
        return client


@asynccontextmanager
async def listening(house: House, **options: Any) -> AsyncIterator[Port]:
    """A door of a house, on any free port."""
    listener = socket.create_server(("127.0.0.1", 0))
    door = Door(house.desk, options.pop("watching", None) or Watching(), options.pop("patience", 10.0), **options)
    await door.start(listener, backlog=10)
    port = Port(door, listener.getsockname()[1])
    try:
        yield port
    finally:
        for each in port.opened:
            await each.close()
        await door.stop()
        listener.close()


def talk(house: House, dialogue: Callable[[Port], Awaitable[Any]], **options: Any) -> Any:
    """Run a dialogue with a door of this house."""

    async def run() -> Any:
        async with asyncio.timeout(60), listening(house, **options) as port:
            return await dialogue(port)

    return asyncio.run(run())


def ask(house: House, *statements: str, token: str = "tacit_ada", **options: str) -> list[Reply]:
    """Replies to statements in one session, which may spend ε = 1 on each question."""

    async def dialogue(port: Port) -> list[Reply]:
        client = await port.signed_in(token, **{**EPSILON, **options})
        return [await client.ask(each) for each in statements]

    return talk(house, dialogue)


def charges(house: House) -> int:
    """How many questions were charged."""
    return sum(entry.kind == "charge" for entry in house.desk.ledger.entries())
