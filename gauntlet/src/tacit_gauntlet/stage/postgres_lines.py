"""The stage for attacks on PostgreSQL's door: connections without a network, to a server in this process."""

import asyncio
import base64
import hashlib
import hmac
import struct
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tacit.server.postgres import Door
from tacit_gauntlet.stage.server import Server

PATIENCE = 5.0
SETTLED_SECONDS = 0.3  # a message that is waited for longer is not all there


class Draw:
    """Draws for messages, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._seed, self._count = seed, 0

    def randbytes(self, count: int) -> bytes:
        """Return this many bytes."""
        self._count += 1
        return hashlib.shake_256(f"{self._seed} {self._count}".encode()).digest(count)

    def randrange(self, below: int) -> int:
        """Return a number below another."""
        return int.from_bytes(self.randbytes(8), "big") % below

    def random(self) -> float:
        """Return a number from 0 to 1."""
        return self.randrange(1 << 53) / (1 << 53)

    def choice(self, among: Sequence[Any]) -> Any:
        """Return one of several."""
        return among[self.randrange(len(among))]


def packed(kind: bytes, body: bytes = b"") -> bytes:
    """Return a message with its length."""
    return kind + struct.pack("!i", len(body) + 4) + body


def startup(user: str, **options: str) -> bytes:
    """Return the message that begins a session."""
    pairs = {"user": user, "database": "tacit", **options}
    body = struct.pack("!i", 3 << 16) + b"".join(f"{a}\0{b}\0".encode() for a, b in pairs.items()) + b"\0"
    return struct.pack("!i", len(body) + 4) + body


def prepared(sql: str, values: Sequence[str] = (), *, execute: bool = True) -> bytes:
    """Return the messages of a prepared statement with text parameters, and a Sync."""
    cells = b"".join(struct.pack("!i", len(each.encode())) + each.encode() for each in values)
    bound = b"\0\0" + struct.pack("!hh", 0, len(values)) + cells + struct.pack("!h", 0)
    messages = [packed(b"P", b"\0" + sql.encode() + b"\0\0\0"), packed(b"D", b"S\0"), packed(b"B", bound)]
    messages += [packed(b"D", b"P\0"), *([packed(b"E", b"\0" + struct.pack("!i", 0))] if execute else [])]
    return b"".join([*messages, packed(b"S")])


@dataclass(frozen=True)
class ScramClient:
    """A client's half of SCRAM-SHA-256, as bytes of messages."""

    nonce: str = "abcdefghijkl"

    def first(self) -> bytes:
        """Return the first message."""
        said = f"n,,n=,r={self.nonce}".encode()
        return packed(b"p", b"SCRAM-SHA-256\0" + struct.pack("!i", len(said)) + said)

    def last(self, server_first: bytes, secret: str) -> bytes:
        """Return the message with the proof, after the server's first."""
        given = dict(part.split("=", 1) for part in server_first.decode().split(","))
        salt = base64.b64decode(given["s"])
        salted = hashlib.pbkdf2_hmac("sha256", secret.encode(), salt, int(given["i"]))
        client = hmac.digest(salted, b"Client Key", "sha256")
        plain = f"c=biws,r={given['r']}"
        said = f"n=,r={self.nonce},{server_first.decode()},{plain}".encode()
        signature = hmac.digest(hashlib.sha256(client).digest(), said, "sha256")
        proof = base64.b64encode(bytes(a ^ b for a, b in zip(client, signature, strict=True))).decode()
        return packed(b"p", f"{plain},p={proof}".encode())


@dataclass
class Line:
    """One connection to a door: bytes go in, and messages come out; the address is the client's."""

    door: Door
    address: str = "127.0.0.1"
    out: bytearray = field(default_factory=bytearray)
    is_closed: bool = False
    sent: bytearray = field(default_factory=bytearray)
    refused: str = ""  # why the sign-in was refused
    _wire: Any = None

    def open(self) -> "Line":
        """Connect."""
        self._wire = self.door.wire()
        self._wire.connection_made(self)
        return self

    # --- as asyncio's transport ---

    def write(self, data: bytes) -> None:
        """Take bytes from the server."""
        self.out += data

    def close(self) -> None:
        """End the connection."""
        if not self.is_closed:
            self.is_closed = True
            self._wire.connection_lost(None)

    abort = close

    def get_extra_info(self, name: str) -> Any:
        """Return the client's address; nothing is encrypted."""
        return (self.address, 1) if name == "peername" else None

    def set_write_buffer_limits(self, _high: int) -> None:
        """Take no notice."""

    def pause_reading(self) -> None:
        """Take no notice."""

    def resume_reading(self) -> None:
        """Take no notice."""

    # --- as a client ---

    def send(self, data: bytes) -> None:
        """Send bytes."""
        if not self.is_closed:
            self.sent += data
            self._wire.data_received(data)

    async def until(self, last: bytes) -> list[tuple[bytes, bytes]]:
        """Return the messages up to one of a kind, or to the end of the connection."""
        found: list[tuple[bytes, bytes]] = []
        while not self.is_closed or len(self.out) >= 5:
            if len(self.out) < 5:
                await asyncio.sleep(0.0005)
                continue
            kind, size = struct.unpack("!ci", self.out[:5])
            if len(self.out) < size + 1:
                await asyncio.sleep(0.0005)
                continue
            found.append((kind, bytes(self.out[5 : size + 1])))
            del self.out[: size + 1]
            if kind == last:
                break
        return found

    async def settled(self, last: bytes) -> list[tuple[bytes, bytes]]:
        """Return the messages up to one of a kind; empty if the server waits for more bytes, or closes."""
        try:
            async with asyncio.timeout(SETTLED_SECONDS):
                found = await self.until(last)
        except TimeoutError:
            return []
        return found if found and found[-1][0] == last else []

    async def sign_in(self, user: str, token: str, **options: str) -> bytes:
        """Sign in; return the kinds of the replies, which end with Z if it went well."""
        self.send(startup(user, **options))
        first = await self.until(b"R") if not self.out.startswith(b"E") else await self.until(b"E")
        if first and first[-1][0] == b"R":
            client = ScramClient()
            self.send(client.first())
            asked = await self.until(b"R")
            self.send(client.last(asked[-1][1][4:], token) if asked else b"")
            first = await self.until(b"Z")
        self.refused = words(first)
        return b"".join(kind for kind, _ in first)

    async def ask(self, sql: str) -> list[tuple[bytes, bytes]]:
        """Return the replies to a statement of the simple protocol."""
        self.send(packed(b"Q", sql.encode() + b"\0"))
        return await self.until(b"Z")

    async def prepare(self, sql: str, values: Sequence[str] = (), *, execute: bool = True) -> list[tuple[bytes, bytes]]:
        """Return the replies to a statement of the extended protocol."""
        self.send(prepared(sql, values, execute=execute))
        return await self.until(b"Z")


def at_the_door(server: Server, script: Callable[[Door], Awaitable[Any]]) -> Any:
    """Run a script with a door of a server."""

    async def run() -> Any:
        door = Door(server.desk, server.watching, PATIENCE)
        try:
            return await script(door)
        finally:
            with suppress(TimeoutError):
                async with asyncio.timeout(1):
                    await door.stop()

    return asyncio.run(run())


def cells(replies: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    """Return the rows of replies, as their bytes."""
    return [body for kind, body in replies if kind == b"D"]


def words(replies: Sequence[tuple[bytes, bytes]]) -> str:
    """Return the text of the errors among replies."""
    return " ".join(body.replace(b"\0", b" ").decode() for kind, body in replies if kind == b"E")
