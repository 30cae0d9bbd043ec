"""Listening addresses: by default only this machine, elsewhere only with a certificate or behind a proxy."""

import asyncio
import ipaddress
import logging
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit.errors import InvalidParameter
from tacit.remote import is_this_machine
from tacit.server.postgres import DATABASE, Door
from tacit.server.workers import Told, Workers

PORT = 8765
KEEP_ALIVE_SECONDS = 30
STOP_SECONDS = 60
PATIENCE_SECONDS = 10.0
CONNECTIONS_MAX = 1_000
WAITING_CONNECTIONS = 1_024
EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - addresses that mean every address of the machine
_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", re.ASCII)
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_.-]+))(?::[0-9]{1,5})?", re.ASCII)
ACCEPTED_AT_ONCE = 1  # so that a worker that is busy leaves connections to one that is not


@dataclass(frozen=True)
class Listening:
    """An address, and its protection (a certificate or a proxy)."""

    host: str = "127.0.0.1"
    port: int = PORT
    certificate: str | None = None
    key: str | None = None
    behind_proxy: bool = False
    patience: float = PATIENCE_SECONDS  # for a request that is not all there
    host_names: tuple[str, ...] = ()  # further names under which clients reach it
    postgres: int | None = None  # a second port, for PostgreSQL's protocol

    @property
    def url(self) -> str:
        """The address that clients give to tacit.connect."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    @property
    def postgres_url(self) -> str:
        """The address that clients of PostgreSQL take; the user is a person's name, and the password a token."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"postgresql://NAME@{host}:{self.postgres}/{DATABASE}{'?sslmode=require' if self.certificate else ''}"


@dataclass(frozen=True)
class OwnHosts:
    """The hosts under which a server may be asked: other names for this machine (DNS rebinding) are refused."""

    names: frozenset[str]
    takes_addresses: bool = False  # the server listens on every address of the machine

    def has(self, headers: Iterable[tuple[bytes, bytes]]) -> bool:
        """Return whether a request has one Host header, and that is ours; any port will do."""
        hosts = [value.decode("latin-1") for name, value in headers if name.lower() == b"host"]
        parts = _HOST.fullmatch(hosts[0].lower()) if len(hosts) == 1 else None
        if parts is None:
            return False
        name = (parts[1] or parts[2]).removesuffix(".")
        return name in self.names or (self.takes_addresses and _is_address(name))


def own_hosts(listening: Listening) -> OwnHosts:
    """Return the hosts of a server: its address, the names of its certificate, and those that were given."""
    names = {listening.host, *listening.host_names, *_names_in(listening.certificate)}
    if is_this_machine(listening.host) or listening.behind_proxy:
        names |= {"localhost", "127.0.0.1", "::1"}
    return OwnHosts(frozenset(name.lower() for name in names), listening.host in EVERYWHERE)


def _names_in(certificate: str | None) -> list[str]:
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificate(Path(certificate or "").read_bytes())
        names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):  # errors of a certificate are reported when it is used
        return []
    addresses = [str(each) for each in names.get_values_for_type(x509.IPAddress)]
    return [*names.get_values_for_type(x509.DNSName), *addresses]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def check_listening(listening: Listening) -> None:
    """Refuse an address beyond this machine where tokens and answers would travel unencrypted."""
    if (listening.certificate is None) != (listening.key is None):
        raise InvalidParameter("a certificate and its key belong together\nhint: --certificate FILE --key FILE")
    for path in filter(None, (listening.certificate, listening.key)):
        if not Path(path).is_file():
            raise InvalidParameter(f"no file exists at {path!r}\nhint: --certificate and --key name PEM files")
    for name in listening.host_names:
        if not _NAME.fullmatch(name) and not _is_address(name):
            raise InvalidParameter(
                "--host-names takes names of this server, without http:// and without a port"
                "\nhint: --host-names data.example.org"
            )
    if not all(0 <= port < 2**16 for port in (listening.port, listening.postgres or 0)):
        raise InvalidParameter("a port is a number below 65536\nhint: --port 8765")
    if not is_this_machine(listening.host) and listening.certificate is None and not listening.behind_proxy:
        raise InvalidParameter(
            f"the server would listen on {listening.host} without encryption, where others can read tokens"
            "\nhint: --certificate FILE --key FILE, or --behind-proxy if a proxy on this machine encrypts"
        )


def serve(
    opening: Callable[[], AbstractContextManager[Any]],
    listening: Listening,
    *,
    ready: Callable[[Listening], None],
    workers: int = 1,
) -> None:
    """Serve until the process is told to stop, then finish what runs; `opening` opens an application in each worker."""
    check_listening(listening)
    with ExitStack() as sockets:
        listener = sockets.enter_context(_socket(listening.host, listening.port))
        found = replace(listening, port=listener.getsockname()[1])
        beside = (
            None if listening.postgres is None else sockets.enter_context(_socket(listening.host, listening.postgres))
        )
        found = replace(found, postgres=None if beside is None else beside.getsockname()[1])

        def work(tell: Told) -> None:
            with opening() as app:
                _serve_on(listener, app, found, tell, beside)

        def close() -> None:
            sockets.close()

        if workers == 1:
            work(lambda: ready(found))
        else:
            Workers(workers, work, lambda: ready(found), close).run()


def _socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family)
    except OSError as problem:
        raise InvalidParameter(
            f"the server cannot listen on {host}, port {port}: {problem.strerror}"
            "\nhint: another server may be there; --port 0 takes any port that is free"
        ) from None
    # Connections inherit it. asyncio sets it only if a socket names its protocol, and otherwise each reply waited 40
    # ms for the client to acknowledge its head.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def _serve_on(
    listener: socket.socket, app: Any, listening: Listening, tell: Told, beside: socket.socket | None = None
) -> None:
    import uvicorn

    stopped = _signals_kept()
    door = None
    if beside is not None:
        door = Door(app.desk, app.watching, listening.patience, listening.certificate, listening.key)

    class Announced(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            self.should_exit = self.should_exit or bool(stopped)
            if self.started:
                # asyncio has made the backlog equal to its batch of accepted connections
                listener.listen(WAITING_CONNECTIONS)
                if door is not None and beside is not None:
                    await door.start(beside, backlog=ACCEPTED_AT_ONCE)
                    beside.listen(WAITING_CONNECTIONS)
                tell()

        async def shutdown(self, sockets: Any = None) -> None:
            if door is not None:
                await door.stop()
            await super().shutdown(sockets)

    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # a trace may quote what it was about
    Announced(
        uvicorn.Config(
            app,
            http=_impatient(listening.patience),
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=listening.behind_proxy,  # otherwise any client could choose its own address
            forwarded_allow_ips="127.0.0.1",
            ssl_certfile=listening.certificate,
            ssl_keyfile=listening.key,
            limit_concurrency=CONNECTIONS_MAX,
            backlog=ACCEPTED_AT_ONCE,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=STOP_SECONDS,
        )
    ).run(sockets=[listener])


def _impatient(patience: float) -> Any:
    """Return uvicorn's protocol, with a limit to how long a request may be on its way."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):
        """A connection that is closed when its request, head and body, is not all there in time."""

        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._deadline = self.loop.call_later(patience, self._end)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if not self._waits_for_client():
                self._forget_deadline()
            elif self._deadline is None:
                self._deadline = self.loop.call_later(patience, self._end)

        def connection_lost(self, exc: Exception | None) -> None:
            self._forget_deadline()
            super().connection_lost(exc)

        def _waits_for_client(self) -> bool:
            cycle = self.cycle
            return cycle is None or cycle.response_complete or cycle.more_body

        def _forget_deadline(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _end(self) -> None:
            self._deadline = None
            if self._waits_for_client() and not self.transport.is_closing():
                self.transport.close()

    return Impatient


def _signals_kept() -> list[int]:
    """Note stop signals without ending: uvicorn would raise them again before running questions are finished."""
    noted: list[int] = []
    if threading.current_thread() is threading.main_thread():
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, lambda number, _: noted.append(number))
    return noted
