"""Published bugs of pages, planted in ours, that the cases must kill."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.stage.server import cookie_as_bearer
from tacit_gauntlet.targets import original, planted


@mutant("forms from any site", killed_by="W09", published="cross-site request forgery")
@contextmanager
def forms_from_any_site() -> Iterator[None]:
    """Look at no Origin."""
    with planted("require_own_origin", lambda _request: None):
        yield


@mutant("forms without a mark", killed_by="W09", published="a form token that is sent and never compared")
@contextmanager
def forms_without_a_mark() -> Iterator[None]:
    """Take a form of our own origin whatever its mark."""
    read = original("read_form")

    async def reading(request: Any, _visit: Any) -> Any:
        return await read(request, None)

    with planted("read_form", reading):
        yield


@mutant(
    "the cookie on the API", killed_by="W09", published="an API that takes a browser's cookie, without a form token"
)
@contextmanager
def cookie_on_the_api() -> Iterator[None]:
    """Read the cookie where only a token counts."""
    answer = original("SafeReplies.__call__")

    async def answering(self: Any, scope: Any, receive: Any, send: Any) -> None:
        await answer(self, cookie_as_bearer(scope), receive, send)

    with planted("SafeReplies.__call__", answering):
        yield


@mutant("pages without escaping", killed_by="W03p", published="one |safe in a template")
@contextmanager
def pages_without_escaping() -> Iterator[None]:
    """Write texts into pages as they are."""
    made = original("environment of pages")
    with planted("environment of pages", lambda: made().overlay(autoescape=False)):
        yield


@mutant("the cookie is deleted, and good", killed_by="W21", published="a sign-out that only asks the browser to forget")
@contextmanager
def only_forgotten() -> Iterator[None]:
    """Note no end of a visit."""
    with planted("Visits.end", lambda _self, _visit, _ledger: None):
        yield


@mutant("ended where it was ended", killed_by="W21", published="a list of ended sessions in one process's memory")
@contextmanager
def ended_here_only() -> Iterator[None]:
    """Keep ended visits in the memory of one replica."""
    ended: set[tuple[int, str]] = set()

    def end(self: Any, visit: str, *, now: int, until: int) -> None:
        ended.add((id(self), visit) if now < until else (0, visit))

    def has_ended(self: Any, visit: str) -> bool:
        return (id(self), visit) in ended

    with planted("Ledger.end_visit", end), planted("Ledger.has_ended", has_ended):
        yield


@mutant("any host", killed_by="W22", published="DNS rebinding of a server on this machine")
@contextmanager
def any_host() -> Iterator[None]:
    """Take every Host."""
    with planted("OwnHosts.has", lambda _self, _headers: True):
        yield


@mutant("a host that begins like ours", killed_by="W22", published="a list of hosts compared by prefix")
@contextmanager
def host_by_prefix() -> Iterator[None]:
    """Compare only the beginning of a Host."""

    def begins(self: Any, headers: Any) -> bool:
        host = dict(headers).get(b"host", b"").decode("latin-1").lower().strip("[")
        return any(host.startswith(name) for name in self.names)

    with planted("OwnHosts.has", begins):
        yield


@mutant("a link by its id", killed_by="W29", published="share links that are looked up and never compared")
@contextmanager
def link_by_its_id() -> Iterator[None]:
    """Look up a link's id, and compare no secret."""

    def linked(self: Any, secret: str) -> Any:
        note = self.note(secret[:16])
        return note if note is not None and note.of == "link" and note.holds else None

    with planted("Ledger.linked", linked):
        yield


@mutant("an ended link goes on", killed_by="W29", published="revoked share links that stay cached or unchecked")
@contextmanager
def ended_link() -> Iterator[None]:
    """Show the answer of an ended link."""
    check = original("check of a link")

    def linked(self: Any, secret: str) -> Any:
        note = self.note(secret[:16])
        return note if note is not None and note.about.get("check") == check(secret[:16], secret) else None

    with planted("Ledger.linked", linked):
        yield


@mutant("a link outlives its maker", killed_by="W29", published="share links of people who have left")
@contextmanager
def link_of_the_gone() -> Iterator[None]:
    """Ask only who made a link, and not whether they may still."""
    with planted("maker of a link", lambda self, note: self.desk.ledger.person(note.name)):
        yield
