"""`Door`: connections of PostgreSQL's protocol to a desk, how many there may be, and how they are cancelled.

Every worker has a door in the event loop of its HTTP server. A client cancels on a separate connection, perhaps to
another worker, which hands the request on through a socket in the folder that all workers share.
"""

import asyncio
import os
import socket
import ssl
import struct
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from tacit.noise import fresh_bytes
from tacit.server.desk import Desk
from tacit.server.postgres import messages
from tacit.server.postgres.dialogue import PostgresSession
from tacit.server.postgres.messages import Broken, Fields
from tacit.server.postgres.statements import Statements
from tacit.server.postgres.transport import ClientWire, Gone
from tacit.server.watching import Watching

CONNECTIONS_MAX = 1_000
EACH_MAX = 100  # of one person
REQUESTS_MAX = 3  # before a startup message: for TLS, for GSS, once more for TLS
SECRET_BYTES = 4
STOP_SECONDS = 60.0


@dataclass
class Door:
    """One worker's connections."""

    desk: Desk
    watching: Watching
    patience: float
    certificate: str | None = None
    key: str | None = None
    _sessions: dict[bytes, PostgresSession] = field(default_factory=dict, init=False)
    _open: set[ClientWire] = field(default_factory=set, init=False)
    _held: Counter[str] = field(default_factory=Counter, init=False)
    _server: asyncio.Server | None = field(default=None, init=False)
    _is_stopping: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.statements: Statements = Statements(self.desk)
        self._wrap: ssl.SSLContext | None = None
        if self.certificate is not None:
            self._wrap = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            self._wrap.load_cert_chain(self.certificate, self.key)

    async def start(self, listener: socket.socket, *, backlog: int) -> None:
        """Take connections from a socket that listens, in this event loop."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self.wire, sock=listener, backlog=backlog)
        if self.watching.folder is not None:
            path = str(self.watching.folder / f"cancel-{os.getpid()}")
            await loop.create_datagram_endpoint(lambda: _Cancels(self), local_addr=path, family=socket.AF_UNIX)

    def wire(self) -> ClientWire:
        return ClientWire(self.serve, self.patience, self._wrap)

    async def stop(self) -> None:
        """Take no more connections; statements that run are answered first."""
        self._is_stopping = True
        if self._server is not None:
            self._server.close()
        for each in [one for one in self._sessions.values() if not one.is_busy]:
            each.wire.transport.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                for each in [one for one in self._sessions.values() if one.is_busy]:
                    await each.idle.wait()
        for wire in [*self._open]:
            wire.transport.close()

    async def serve(self, wire: ClientWire) -> None:
        """Serve one connection from its first byte to its last."""
        self._open.add(wire)
        try:
            options = await self._begun(wire)
            if options is not None:
                await self._session(wire, options)
        except Broken:
            with suppress(Gone):
                await wire.send(_fatal("08P01", "this is not PostgreSQL's protocol, version 3"))
        finally:
            self._open.discard(wire)

    async def _begun(self, wire: ClientWire) -> dict[str, str] | None:
        """Return a startup message's options, after TLS if the client asks for it; None if it was for another thing."""
        for _ in range(REQUESTS_MAX + 1):
            fields = Fields(await wire.startup())
            version = fields.int32()
            if version == messages.CANCEL_REQUEST:
                process, secret = fields.int32(), fields.take(SECRET_BYTES)
                fields.end()
                self.cancel(process, secret)
                return None
            if version == messages.SSL_REQUEST and wire.can_encrypt:
                await wire.encrypt()
            elif version in (messages.SSL_REQUEST, messages.GSS_REQUEST):
                await wire.send(b"N")
            elif version >> 16 == 3:
                options = messages.startup_options(fields)
                await self._negotiate(wire, version, options)
                return options
            else:
                break
        raise Broken

    async def _negotiate(self, wire: ClientWire, version: int, options: dict[str, str]) -> None:
        """Answer a newer version of the protocol, or unknown options, with the version of this server."""
        unknown = [name for name in options if name.startswith("_pq_.")]
        if version != messages.PROTOCOL_3 or unknown:
            names = [messages.text_field(name) for name in unknown]
            await wire.send(messages.message(b"v", struct.pack("!ii", messages.PROTOCOL_3, len(names)), *names))

    async def _session(self, wire: ClientWire, options: dict[str, str]) -> None:
        if len(self._open) > CONNECTIONS_MAX or self._is_stopping:
            await wire.send(_fatal("53300", "too many connections at once", "close some, or try again later"))
            return
        session = PostgresSession(wire, self.statements, self.watching)
        if not await session.sign_in(options):
            return
        name = (session.person.name if session.person is not None else None) or ""
        if self._held[name] >= EACH_MAX:
            await wire.send(_fatal("53300", "this person has too many connections", "close some of them"))
            return
        secret = fresh_bytes(SECRET_BYTES)
        self._held[name] += 1
        self._sessions[secret] = session
        try:
            await session.run(os.getpid(), secret)
        finally:
            del self._sessions[secret]
            self._held[name] -= 1

    def cancel(self, process: int, secret: bytes) -> None:
        """Let a session's statement end, here or in another worker; a wrong secret gets the same reply."""
        if process != os.getpid():
            if self.watching.folder is not None and process > 0:
                with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as line:
                    line.sendto(secret, str(self.watching.folder / f"cancel-{process}"))
            return
        session = self._sessions.get(secret)
        if session is not None:
            session.cancelled.set()


class _Cancels(asyncio.DatagramProtocol):
    """Takes cancels that another worker hands on."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def datagram_received(self, data: bytes, _address: object) -> None:
        self._door.cancel(os.getpid(), data)


def _fatal(state: str, words: str, hint: str = "") -> bytes:
    return messages.report(b"E", {"S": "FATAL", "V": "FATAL", "C": state, "M": words, "H": hint})
