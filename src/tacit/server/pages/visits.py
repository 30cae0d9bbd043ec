"""Visits: a token becomes a sealed cookie, and forms are taken only from our own pages.

The cookie holds the token, encrypted, and an end. Every request asks the ledger again for the token's owner and whether
the visit was signed out, so an end of either holds at once and on every replica. A token cannot be read out of a
cookie. The cookie is sent only to our own pages (SameSite=Strict), no script can read it (HttpOnly), and the routes
under /api never look at it.
"""

import base64
import hmac
import json
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from fastapi import Request, Response
from starlette.datastructures import FormData

from tacit.ledger import Ledger, Person
from tacit.noise import fresh_bytes
from tacit.server.desk import Desk
from tacit.server.pages.page_look import page
from tacit.server.problems import Problem

COOKIE = "__Host-tacit"
VISIT_SECONDS = 8 * 3600
LINK_SECONDS = 600
FORM_BYTES_MAX = 64 << 10
FIELDS_MAX = 200
_NONCE = 12


@dataclass(frozen=True)
class Visit:
    """An opened cookie: the token from sign-in, or the person who signed in at a provider; the mark that our own forms
    carry, and its end.

    `id` is a hash of the cookie, by which the ledger identifies a signed-out visit.
    """

    secret: str
    mark: str
    until: int
    id: str
    name: str | None = None  # of a person who signed in at a provider
    since: int = 0  # the entry that let them in: one that lets them in anew ends the visit


class Visits:
    """Seals cookies and opens them, and keeps sign-in links that work once."""

    def __init__(self, key: bytes, now: Callable[[], float] = time.time) -> None:
        self._box = AESGCM(sha256(b"cookie " + key).digest())
        self._marks = sha256(b"form " + key).digest()
        self._now = now
        self._links: dict[str, tuple[str, float]] = {}
        self._lock = threading.Lock()

    def seal(self, secret: str) -> str:
        """Return a cookie for a token, good for eight hours."""
        return self.sealed({"secret": secret, "until": self._now() + VISIT_SECONDS})

    def seal_person(self, person: Person) -> str:
        """Return a cookie for a person who signed in at a provider, good for eight hours."""
        inside = {"secret": "", "until": self._now() + VISIT_SECONDS}
        return self.sealed({**inside, "name": person.name, "since": person.since})

    def sealed(self, inside: Mapping[str, Any], purpose: bytes | None = None) -> str:
        """Return a record that only this server, and replicas with the same key, can read again."""
        nonce, written = fresh_bytes(_NONCE), json.dumps(inside).encode()
        return base64.urlsafe_b64encode(nonce + self._box.encrypt(nonce, written, purpose)).decode().rstrip("=")

    def unsealed(self, cookie: str | None, purpose: bytes | None = None) -> tuple[bytes, dict[str, Any]] | None:
        """Return a sealed record and its bytes; None for any other text."""
        try:
            written = (cookie or "").encode("ascii", "replace")
            raw = base64.b64decode(written + b"=" * (-len(written) % 4), altchars=b"-_", validate=True)
            return raw, json.loads(self._box.decrypt(raw[:_NONCE], raw[_NONCE:], purpose))
        except (ValueError, InvalidTag):
            return None

    def opened(self, cookie: str | None) -> Visit | None:
        """Return the content of our own cookie; None for any other cookie, and after its end."""
        found = self.unsealed(cookie)
        if found is None or self._now() >= found[1]["until"]:
            return None
        raw, inside = found
        mark, id = hmac.new(self._marks, raw, sha256).hexdigest(), sha256(b"visit " + raw).hexdigest()
        who = inside.get("name"), inside.get("since", 0)
        return Visit(inside["secret"], mark, math.ceil(inside["until"]), id, *who)

    def once(self, state: str, until: float, ledger: Ledger) -> bool:
        """Return whether a sign-in that was begun is used for the first time, on any replica."""
        id = sha256(b"state " + state.encode()).hexdigest()
        if ledger.has_ended(id):
            return False
        ledger.end_visit(id, now=int(self._now()), until=math.ceil(until))
        return True

    def end(self, visit: Visit, ledger: Ledger) -> None:
        """Write into the ledger that a visit is signed out: no worker and no replica takes its cookie any more."""
        ledger.end_visit(visit.id, now=int(self._now()), until=visit.until)

    def link(self, secret: str) -> str:
        """Return a code that signs in once, within ten minutes: a token itself never stands in an address."""
        code = fresh_bytes(16).hex()
        with self._lock:
            self._links[code] = (secret, self._now() + LINK_SECONDS)
        return code

    def used(self, code: str) -> str | None:
        """Return the token behind a code, this once."""
        with self._lock:
            secret, until = self._links.pop(code, ("", 0.0))
        return secret if self._now() < until else None


@dataclass(frozen=True)
class Guest:
    """A visitor who asks for a page: the request, the person, and the visit."""

    request: Request
    person: Person
    visit: Visit

    async def form(self) -> FormData:
        return await read_form(self.request, self.visit)

    def page(self, template: str, problem: Problem | None = None, *, status: int = 200, **values: Any) -> Response:
        """Return a page; a problem on it decides its status."""
        shown = {"person": self.person, "visit": self.visit, "problem": problem} | values
        return page(self.request, template, status if problem is None else problem.status, **shown)


class SignInFirst(Exception):
    """A visitor without a visit: sent to the sign-in page."""


@dataclass(frozen=True)
class Visitors:
    """The visitors of a desk's pages."""

    desk: Desk
    visits: Visits

    async def who(self, request: Request) -> Guest:
        """Return who looks, read from the ledger now; else SignInFirst."""
        visit = self.visits.opened(request.cookies.get(COOKIE))
        if visit is None:
            raise SignInFirst
        id = visit.id
        if await self.desk.aside(lambda: self.desk.ledger.has_ended(id)):
            raise SignInFirst
        try:
            return Guest(request, await self._whose(request, visit), visit)
        except Problem as problem:
            if problem.status == 401:
                raise SignInFirst from None
            raise

    async def _whose(self, request: Request, visit: Visit) -> Person:
        if visit.name is None:
            return await self.of(request, visit.secret)
        name = visit.name
        person = await self.desk.aside(lambda: self.desk.ledger.admitted(name))
        if person is None or person.since != visit.since:
            raise SignInFirst
        return person

    async def if_signed_in(self, request: Request) -> dict[str, Any]:
        """Return a page's `person` and `visit`: None for a visitor who is not signed in."""
        try:
            guest = await self.who(request)
        except (SignInFirst, Problem):
            return {"person": None, "visit": None}
        return {"person": guest.person, "visit": guest.visit}

    async def of(self, request: Request, secret: str) -> Person:
        """Return the owner of a token; wrong ones are counted by address."""
        return await self.desk.who(f"Bearer {secret}", "" if request.client is None else request.client.host)


def require_own_origin(request: Request) -> None:
    """Refuse what another site's page sends: its Origin is not ours."""
    origin = request.headers.get("origin")
    own = f"{request.url.scheme}://{request.headers.get('host', '')}"
    if origin is None or not hmac.compare_digest(origin.encode(), own.encode()):
        raise Problem("refused", 403, "this was not sent by a page of this server", "open the page and send it again")


async def read_form(request: Request, visit: Visit | None) -> FormData:
    """Return a form of our own page: the Origin is ours, and it carries the mark of this visit."""
    require_own_origin(request)
    declared = request.headers.get("content-length", "")
    if not declared.isascii() or not declared.isdigit() or int(declared) > FORM_BYTES_MAX:
        raise Problem("too-large", 413, f"a form has at most {FORM_BYTES_MAX} bytes", "write less")
    form = await request.form(max_files=0, max_fields=FIELDS_MAX)
    given = form.get("mark")
    if visit is not None and not hmac.compare_digest(str(given or "").encode(), visit.mark.encode()):
        raise Problem("refused", 403, "this form is not of this visit", "open the page again and send it from there")
    return form
