"""Connections of PostgreSQL's protocol: bytes in and out with limits and deadlines, TLS, and listening.

A connection from another machine must be encrypted first if the server has a certificate. What a client sent before the
encryption began is thrown away with its connection: nobody on the way can put words into it.
"""

import asyncio
import logging
import ssl
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from tacit.remote import is_this_machine
from tacit.server.postgres.messages import HEAD_BYTES, MESSAGE_BYTES_MAX, Broken

log: logging.Logger = logging.getLogger("tacit.server")

BUFFER_BYTES_MAX = 2 * MESSAGE_BYTES_MAX
UNSENT_BYTES_MAX = 4 << 20
IDLE_SECONDS = 3_600.0
SENDING_SECONDS = 60.0
Serving = Callable[["ClientWire"], Awaitable[None]]


class Gone(Exception):
    """The client has gone, or is too slow."""


class ClientWire(asyncio.Protocol):
    """One connection: whole messages out of its bytes, and back-pressure in both directions."""

    def __init__(self, serve: Serving, patience: float, wrap: "ssl.SSLContext | None" = None) -> None:
        self._serve = serve
        self._patience = patience
        self._wrap = wrap
        self._buffer = bytearray()
        self._arrived = asyncio.Event()
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._is_paused = False
        self._task: asyncio.Task[None] | None = None
        self.lost: asyncio.Event = asyncio.Event()
        self.transport: Any = None

    # --- what asyncio calls ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.transport.set_write_buffer_limits(UNSENT_BYTES_MAX)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._arrived.set()
        if len(self._buffer) > BUFFER_BYTES_MAX and not self._is_paused:
            self._is_paused = True
            self.transport.pause_reading()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.lost.set()
        self._arrived.set()
        self._can_write.set()

    def pause_writing(self) -> None:
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()

    # --- what a session calls ---

    @property
    def address(self) -> str:
        found = self.transport.get_extra_info("peername")
        return str(found[0]) if isinstance(found, tuple) else ""

    @property
    def is_private(self) -> bool:
        """Whether no other machine can read along: the connection is encrypted, or comes from this machine."""
        return self.transport.get_extra_info("sslcontext") is not None or is_this_machine(self.address)

    @property
    def can_encrypt(self) -> bool:
        """Whether the server has a certificate, and the connection is not encrypted yet."""
        return self._wrap is not None and self.transport.get_extra_info("sslcontext") is None

    async def startup(self) -> bytes:
        """Return the body of a message without a kind, which is how a connection begins."""
        (size,) = struct.unpack("!i", await self._take(4, self._patience))
        if not 8 <= size <= 10_000:
            raise Broken
        return await self._take(size - 4, self._patience)

    async def message(
        self, *, bytes_max: int = MESSAGE_BYTES_MAX, seconds: float = IDLE_SECONDS
    ) -> tuple[bytes, bytes]:
        """Return the kind and the body of a message: once it has begun it must be there in time."""
        await self._arrive(1, seconds)
        kind, size = struct.unpack("!ci", await self._take(HEAD_BYTES, self._patience))
        if not 4 <= size <= bytes_max + 4:
            raise Broken
        return kind, await self._take(size - 4, self._patience)

    async def send(self, data: bytes) -> None:
        """Send bytes, as fast as the client takes them."""
        if self.lost.is_set():
            raise Gone
        self.transport.write(data)
        try:
            async with asyncio.timeout(SENDING_SECONDS):
                await self._can_write.wait()
        except TimeoutError:
            self.transport.abort()
            raise Gone from None

    async def encrypt(self) -> None:
        """Go on encrypted; a client that has sent more than its request is not listened to."""
        if self._buffer or self._wrap is None:
            raise Broken
        self.transport.write(b"S")
        loop = asyncio.get_running_loop()
        try:
            self.transport = await loop.start_tls(
                self.transport, self, self._wrap, server_side=True, ssl_handshake_timeout=self._patience
            )
        except (OSError, ssl.SSLError):
            raise Gone from None

    # --- inside ---

    async def _run(self) -> None:
        try:
            await self._serve(self)
        except (Gone, Broken, ConnectionError):
            pass
        except Exception as error:  # noqa: BLE001 - its text may quote what the client sent
            log.error("a connection ended: %s", type(error).__name__)  # noqa: TRY400
        with suppress(RuntimeError, ConnectionError):
            self.transport.close()

    async def _take(self, count: int, seconds: float) -> bytes:
        await self._arrive(count, seconds)
        taken = bytes(self._buffer[:count])
        del self._buffer[:count]
        self._resume()
        return taken

    async def _arrive(self, count: int, seconds: float) -> None:
        """Wait until this many bytes are there."""
        try:
            async with asyncio.timeout(seconds):
                while len(self._buffer) < count:
                    if self.lost.is_set():
                        raise Gone
                    self._arrived.clear()
                    self._resume()
                    await self._arrived.wait()
        except TimeoutError:
            raise Gone from None

    def _resume(self) -> None:
        if self._is_paused and len(self._buffer) <= BUFFER_BYTES_MAX:
            self._is_paused = False
            self.transport.resume_reading()
