"""One HTTP connection to a server, by the standard library: JSON out, JSON back, a refusal raised as the original
error.

A token goes only to the address that it was given for: redirects are not followed, proxies of the environment are not
used, and plain HTTP is only for this machine.
"""

import http.client
import ipaddress
import json
import ssl
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlsplit

from tacit import errors
from tacit.errors import InvalidParameter, LedgerError, TacitError, printable
from tacit.json_wire import write_json

ANSWER_BYTES_MAX = 256 << 20
TIMEOUT_SECONDS = 3700  # longer than any public clock's first tick

_GONE = "the server cannot be reached at that address\nhint: check the address, and that `tacit serve` runs there"


@dataclass(frozen=True)
class Reply:
    """A server's reply: the body as it came, and its headers by their lower-case names."""

    body: bytes
    headers: Mapping[str, str]

    @property
    def record(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            raise LedgerError("the server's answer is not JSON\nhint: is this the address of a tacit server?") from None


class Wire:
    """A connection to one server, used again for each request, by any thread."""

    def __init__(self, url: str, token: str) -> None:
        parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            raise InvalidParameter("a server's address is needed\nhint: tacit.connect('https://host:8765', token=...)")
        if parts.scheme == "http" and not is_this_machine(parts.hostname):
            raise InvalidParameter(
                "a token must not travel unencrypted: http is only for this machine\nhint: use https://"
            )
        if not isinstance(token, str) or not token.isascii() or not token.isprintable() or not token:
            raise InvalidParameter("a token is needed\nhint: token='tacit_...', which the curator gave you")
        self.address: str = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._path = parts.path.rstrip("/")
        self._token = token
        self._local = threading.local()
        self._opened_here: list[http.client.HTTPConnection] = []
        self._host, self._port = parts.hostname, parts.port
        self._is_secure = parts.scheme == "https"

    def send(
        self,
        method: str,
        path: str,
        record: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        once: bool = False,
    ) -> Reply:
        """Return the reply to a request; a problem is raised as the error that it was on the server.

        A request that must not be repeated is sent `once`, on a separate connection, and never again.
        """
        if once:
            self._close()
        body = record if isinstance(record, bytes | None) else write_json(record)
        given = {"Authorization": f"Bearer {self._token}", "Accept": "application/json", **(headers or {})}
        given |= {} if body is None else {"Content-Type": "application/json"}
        try:
            response = self._exchange(method, self._path + path, body, given)
        except (OSError, http.client.HTTPException):
            self._close()
            raise LedgerError(_GONE) from None
        reply = Reply(response[1], response[2])
        if response[0] >= 300:
            raise problem_from(response[0], reply)
        return reply

    def _exchange(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes, dict[str, str]]:
        """Send once; again if a kept connection was closed meanwhile: a question with a key is charged once."""
        is_kept = getattr(self._local, "connection", None) is not None
        try:
            return self._once(method, path, body, headers)
        except (ConnectionError, http.client.RemoteDisconnected, http.client.CannotSendRequest):
            self._close()
            if not is_kept:
                raise
            return self._once(method, path, body, headers)

    def _once(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes, dict[str, str]]:
        if getattr(self._local, "connection", None) is None:
            self._local.connection = self._opened()
            self._opened_here.append(self._local.connection)
        connection: http.client.HTTPConnection = self._local.connection
        connection.request(method, path, body, dict(headers))
        response = connection.getresponse()
        read = response.read(ANSWER_BYTES_MAX + 1)
        if len(read) > ANSWER_BYTES_MAX:
            raise http.client.HTTPException
        return response.status, read, {name.lower(): value for name, value in response.getheaders()}

    def _opened(self) -> http.client.HTTPConnection:
        if self._is_secure:
            context = ssl.create_default_context()
            return http.client.HTTPSConnection(self._host, self._port, timeout=TIMEOUT_SECONDS, context=context)
        return http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_SECONDS)

    def _close(self) -> None:
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._opened_here.remove(connection)
        self._local.connection = None

    def __del__(self) -> None:
        for connection in getattr(self, "_opened_here", ()):
            connection.close()


def path_of(*parts: str) -> str:
    return "/api/v1/" + "/".join(quote(part, safe="") for part in parts)


def problem_from(status: int, reply: Reply) -> TacitError:
    """Return a problem of the server's as the error that it is here: the same class, the same words, the same hint."""
    try:
        record = json.loads(reply.body)
    except ValueError:
        record = {}
    known = record if isinstance(record, dict) else {}
    found = getattr(errors, str(known.get("error")), None)
    kind = found if isinstance(found, type) and issubclass(found, TacitError) else InvalidParameter
    detail = known.get("detail") if isinstance(known.get("detail"), str) else f"the server answered {status}"
    hint = f"\nhint: {known['hint']}" if isinstance(known.get("hint"), str) and known["hint"] else ""
    if status == 401:
        hint = "\nhint: the curator makes tokens; in a terminal, it is the variable TACIT_TOKEN"
    return kind(printable(f"{detail}{hint}", keeping="\n"))


def is_this_machine(host: str) -> bool:
    """Return whether only processes of this machine can reach a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
