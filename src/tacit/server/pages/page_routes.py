"""The pages' routes: sign in, the tables, ask, the answer.

No decision is made here: a page asks the desk like a client of the API, as the same person.
"""

import asyncio
import hmac
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import FileResponse, RedirectResponse

from tacit.server.desk import Desk
from tacit.server.pages.answer_pages import AnswerPages
from tacit.server.pages.ask_pages import AskPages
from tacit.server.pages.curator_pages import CuratorPages
from tacit.server.pages.keeping_pages import KeepingPages
from tacit.server.pages.ledger_pages import LedgerPages
from tacit.server.pages.made_pages import MadePages
from tacit.server.pages.page_look import budget_bars, folders, outside_pages, page
from tacit.server.pages.visits import COOKIE, VISIT_SECONDS, SignInFirst, Visitors, Visits, read_form
from tacit.server.problems import Problem, unauthorised, unknown
from tacit.server.sign_on import STARTED_SECONDS, Provider

STARTED_COOKIE = "__Host-tacit-start"
STARTED = b"sign-in at a provider"
KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


def add_pages(app: FastAPI, desk: Desk, visits: Visits) -> None:
    visitors = Visitors(desk, visits)
    ask = AskPages(desk, visitors)
    answers, curator, ledger = AnswerPages(desk, visitors), CuratorPages(desk, visitors), LedgerPages(desk, visitors)
    made = MadePages(desk, visitors)
    keeping = KeepingPages(desk, visitors, answers)
    pages = Pages(desk, visitors, keeping)
    get, post = {"methods": ["GET"]}, {"methods": ["POST"]}
    routes: tuple[tuple[str, Callable[..., Any], dict[str, Any]], ...] = (
        ("/", pages.home, get),
        ("/sign-in", pages.sign_in, get),
        ("/sign-in", pages.signed_in, post),
        ("/sign-in/provider", pages.sign_in_at_provider, get),
        ("/sign-in/callback", pages.back_from_provider, get),
        ("/sign-in/{code}", pages.sign_in_by_link, get),
        ("/sign-out", pages.sign_out, post),
        ("/sql", ask.grammar, get),
        ("/tables/{table}", ask.ask, get),
        ("/tables/{table}/plan", ask.plan, post),
        ("/tables/{table}/ask", ask.asked, post),
        ("/tables/{table}/learn", ask.learn, post),
        ("/tables/{table}/made", made.show, get),
        ("/tables/{table}/made", made.asked, post),
        ("/answers/{key}", answers.fresh, get),
        ("/answers/{key}/answer.{kind}", answers.fresh_as, get),
        ("/history", answers.history, get),
        ("/history/compare", answers.compare, get),
        ("/history/{number}", answers.kept, get),
        ("/history/{number}/answer.{kind}", answers.kept_as, get),
        ("/history/{number}/share", keeping.share, post),
        ("/shared/{secret}", keeping.shared, get),
        ("/shared/{secret}/answer.{kind}", keeping.shared_as, get),
        ("/saved", keeping.saved, get),
        ("/saved", keeping.save, post),
        ("/notes/end", keeping.end, post),
        ("/tables/{table}/request", keeping.wish, post),
        ("/requests/grant", keeping.grant, post),
        ("/ledger", ledger.ledger, get),
        ("/ledger/{number}", ledger.entry, get),
        ("/tables/{table}/facts", ledger.health, get),
        ("/tables/{table}/grants", curator.grants, get),
        ("/tables/{table}/grants", curator.granted, post),
        ("/people", curator.people, get),
        ("/people", curator.let_in, post),
        ("/people/token", curator.token, post),
        ("/people/token/end", curator.end_token, post),
        ("/declare", curator.declare, get),
        ("/declare", curator.declared, post),
        ("/static/{name}", pages.static, get),
    )
    for path, route, kind in routes:
        app.add_api_route(path, route, **kind, include_in_schema=False)
    for others in outside_pages():
        others.add(app, visitors.if_signed_in)

    async def to_sign_in(_request: Request, _error: Exception) -> Response:
        return RedirectResponse("/sign-in", 303)

    app.add_exception_handler(SignInFirst, to_sign_in)


async def problem_page(request: Request, problem: Problem, desk: Desk, visits: Visits) -> Response:
    """Return a problem as a page, with the header of the visitor."""
    try:
        return (await Visitors(desk, visits).who(request)).page("problem_page.html", problem, fixes=())
    except Exception:  # noqa: BLE001 - without a visit, or with an unreadable ledger, the problem is shown anyway
        nameless = {"person": None, "visit": None}
        return page(request, "problem_page.html", problem.status, problem=problem, fixes=(), **nameless)


def is_same_state(given: str, kept: str) -> bool:
    """Return whether the state that came back is the one that this browser was sent with."""
    return bool(kept) and hmac.compare_digest(given.encode(), kept.encode())


class Pages:
    """The contents of every page."""

    def __init__(self, desk: Desk, visitors: Visitors, keeping: KeepingPages) -> None:
        self.desk = desk
        self.visitors = visitors
        self.who = visitors.who
        self.keeping = keeping
        self._static = {path.name: path for folder in folders() for path in (folder / "static").iterdir()}

    # --- signing in ---

    async def sign_in(self, request: Request) -> Response:
        return page(request, "sign_in.html", person=None, problem=None, has_provider=self.desk.sign_on is not None)

    async def sign_in_at_provider(self, request: Request) -> Response:
        """Send the visitor to the provider of single sign-on; a sealed cookie keeps the state."""
        provider = self._provider()
        redirect = f"{request.url.scheme}://{request.headers.get('host', '')}/sign-in/callback"
        address, started = await self.desk.doubted(lambda: provider.begun(redirect))
        reply = RedirectResponse(address, 303)
        kept = self.visitors.visits.sealed(started, STARTED)
        # Lax: the way back is a link from another site
        reply.set_cookie(STARTED_COOKIE, kept, STARTED_SECONDS, path="/", secure=True, httponly=True, samesite="lax")
        return reply

    async def back_from_provider(self, request: Request) -> Response:
        """Take the provider's code from the visitor who was sent there, once, and give a cookie for the person."""
        provider, visits = self._provider(), self.visitors.visits
        found = visits.unsealed(request.cookies.get(STARTED_COOKIE), STARTED)
        started: dict[str, Any] = {} if found is None else found[1]
        code, state = (request.query_params.get(name, "") for name in ("code", "state"))
        try:
            if not is_same_state(state, str(started.get("state", ""))) or not code:
                raise unauthorised()
            if not await self.desk.doubted(lambda: visits.once(state, started["until"], self.desk.ledger)):
                raise unauthorised()
            person = await self.desk.doubted(lambda: provider.finished(code, started))
        except Problem as problem:
            return page(request, "sign_in.html", problem.status, person=None, problem=problem, has_provider=True)
        return self._signed_in(request, visits.seal_person(person))

    def _provider(self) -> Provider:
        if self.desk.sign_on is None:
            raise unknown("page")
        return self.desk.sign_on

    async def signed_in(self, request: Request) -> Response:
        """Take a token, and give a cookie for it."""
        form = await read_form(request, None)
        return await self._visit(request, str(form.get("token") or "").strip())

    async def sign_in_by_link(self, request: Request, code: str) -> Response:
        """Sign in with a link that works once."""
        return await self._visit(request, self.visitors.visits.used(code) or "")

    async def _visit(self, request: Request, secret: str) -> Response:
        try:
            await self.visitors.of(request, secret)
        except Problem as problem:
            shown = {"problem": problem, "has_provider": self.desk.sign_on is not None}
            return page(request, "sign_in.html", problem.status, person=None, **shown)
        return self._signed_in(request, self.visitors.visits.seal(secret))

    def _signed_in(self, request: Request, cookie: str) -> Response:
        # a page of our own, and no redirect: a Strict cookie is not sent on one that began at another site
        reply = page(request, "signed_in.html", person=None)
        reply.delete_cookie(STARTED_COOKIE, path="/", secure=True, httponly=True, samesite="lax")
        reply.set_cookie(COOKIE, cookie, VISIT_SECONDS, path="/", secure=True, httponly=True, samesite="strict")
        return reply

    async def sign_out(self, request: Request) -> Response:
        """End the visit, here and on every replica."""
        guest = await self.who(request)
        await guest.form()
        await self.desk.aside(lambda: self.visitors.visits.end(guest.visit, self.desk.ledger))
        reply = RedirectResponse("/sign-in", 303)
        reply.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="strict")
        return reply

    # --- tables ---

    async def home(self, request: Request) -> Response:
        """Show the tables that the visitor may see, and the rest of each budget."""
        guest = await self.who(request)
        tables = []
        for listed in self.desk.listed(guest.person):
            described = await self.desk.described(guest.person, listed["name"])
            bars = await asyncio.to_thread(budget_bars, self.desk.ledger, listed["name"], guest.person.name)
            tables.append({**described, "name": listed["name"], "bars": bars})
        return guest.page("home.html", tables=tables, **await self.keeping.open_notes(guest))

    # --- the page's own files ---

    async def static(self, name: str) -> Response:
        """Give a file of the page's own."""
        path: Path | None = self._static.get(name)
        if path is None:
            raise unknown("page")
        return FileResponse(path, media_type=KINDS[path.suffix], headers={"Cache-Control": "public, max-age=3600"})
