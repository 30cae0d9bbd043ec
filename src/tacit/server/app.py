"""The routes: each reads a request, asks the desk, and writes the desk's reply.

No decision is made here. Every reply has the same headers, whatever happened; a problem is RFC 9457's.
"""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import PlainTextResponse
from starlette.exceptions import HTTPException

from tacit import __version__
from tacit.errors import TacitError
from tacit.ledger import Person
from tacit.noise import fresh_bytes
from tacit.options import read_wording
from tacit.server.curating import add_curator_routes
from tacit.server.desk import KEY_BYTES, Desk, Given, told
from tacit.server.listening import OwnHosts
from tacit.server.mcp import add_mcp_route
from tacit.server.pages import Visits, add_pages, problem_page
from tacit.server.problems import (
    KEY_DOCUMENT,
    MEDIA_TYPE,
    Problem,
    Who,
    body_of,
    json_reply,
    misdirected,
    question_document,
    read_key,
    unknown,
)
from tacit.server.records import add_record_routes
from tacit.server.reply_schemas import (
    NOT_YET,
    WITH_ANSWER,
    AnswerRecord,
    BudgetRecord,
    PlanRecord,
    PublicTableRecord,
    SignOnRecord,
    TableNames,
    TableRecord,
    TypedApi,
)
from tacit.server.rows_and_days import add_rows_and_days_routes
from tacit.server.watching import Watching, add_watching_routes, asker

NOTHING = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"
OWN_PAGES = "; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'"
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": NOTHING,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
ENCRYPTED = ((b"strict-transport-security", b"max-age=31536000"),)  # a browser does not come back without encryption

PROBED = frozenset({"/health", "/ready"})  # machines ask there by any address, and the reply reveals no data

PROBLEM = "tacit.problem"  # in a request's scope: the kind of the problem

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


def make_app(
    desk: Desk, visits: Visits | None = None, watching: Watching | None = None, hosts: OwnHosts | None = None
) -> Any:
    """Return the ASGI application of a desk, with pages for `visits`; with `hosts` it answers only requests to them."""
    app = TypedApi(
        title="Tacit",
        version=__version__,
        description="Private answers about tables of people.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
    )
    watching = Watching() if watching is None else watching
    add_routes(app, desk, watching)
    if visits is not None:
        add_pages(app, desk, visits)

    async def tell(request: Request, error: Exception) -> Response:
        wants_page = "text/html" in request.headers.get("accept", "")
        if visits is not None and wants_page and not request.url.path.startswith("/api/"):
            problem = _as_problem(error)
            request.scope[PROBLEM] = problem.kind
            return await problem_page(request, problem, desk, visits)
        return _problem(error, request.scope)

    for kind in (Problem, TacitError, HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, tell)
    return SafeReplies(app, desk, watching, hosts)


def add_routes(app: FastAPI, desk: Desk, watching: Watching) -> None:
    async def who(request: Request) -> Person:
        address = "" if request.client is None else request.client.host
        given = request.headers.get("authorization")
        person = await desk.who(given, address)
        request.scope.setdefault("state", {})["asker"] = asker(given, person.name)
        return person

    @app.get("/health", response_class=PlainTextResponse, summary="Whether the server runs")
    async def health() -> str:
        return "ok"

    provider = "The provider of single sign-on, for programs that sign in"

    @app.get("/api/v1/sign-on", summary=provider, response_model=SignOnRecord)
    async def sign_on() -> Response:
        if desk.sign_on is None:
            raise unknown("page")
        return json_reply(desk.sign_on.public())

    _add_question_routes(app, desk, who)
    add_rows_and_days_routes(app, desk, who)
    add_curator_routes(app, desk, who)
    add_record_routes(app, desk, who)
    add_mcp_route(app, desk, who)
    add_watching_routes(app, desk, who, watching)


def _add_question_routes(app: FastAPI, desk: Desk, who: Who) -> None:
    @app.get("/api/v1/tables", summary="The tables that this token may see", response_model=TableNames)
    async def tables(request: Request) -> Response:
        return json_reply({"tables": desk.listed(await who(request))})

    described = "The declaration of a table, its clock, and the rest of its budget"

    @app.get("/api/v1/tables/{table}", summary=described, response_model=TableRecord)
    async def table(request: Request, table: str) -> Response:
        return json_reply(await desk.described(await who(request), table))

    room = "The amount that this token may still spend on a table"

    @app.get("/api/v1/tables/{table}/budget", summary=room, response_model=BudgetRecord)
    async def budget(request: Request, table: str) -> Response:
        return json_reply(await desk.budget(await who(request), table))

    @app.post(
        "/api/v1/tables/{table}/plan",
        summary="The cost and the expected error of an answer: free",
        response_model=PlanRecord,
        openapi_extra={"requestBody": question_document(may_answer=False)},
    )
    async def plan(request: Request, table: str) -> Response:
        person = await who(request)
        return json_reply(await desk.plan(person, table, read_wording(await body_of(request), may_answer=False)))

    @app.post(
        "/api/v1/tables/{table}/questions",
        summary="An answer, charged, on the table's public clock",
        response_model=AnswerRecord,
        responses=WITH_ANSWER,
        openapi_extra={"requestBody": question_document(may_answer=True), "parameters": [KEY_DOCUMENT]},
    )
    async def questions(request: Request, table: str) -> Response:
        person = await who(request)
        key = read_key(request.headers.get("idempotency-key")) or fresh_bytes(KEY_BYTES).hex()
        wording = read_wording(await body_of(request), may_answer=True)
        return _given(await desk.ask(person, table, wording, key), key)

    joined = "The declaration of a public table that may be joined"

    @app.get("/api/v1/public/{name}", summary=joined, response_model=PublicTableRecord)
    async def public(request: Request, name: str) -> Response:
        return json_reply(await desk.public(await who(request), name))

    @app.get(
        "/api/v1/questions/{key:path}",
        summary="The answer to a question that was asked with this key",
        response_model=AnswerRecord,
        responses={**WITH_ANSWER, **NOT_YET},
    )
    async def question(request: Request, key: str) -> Response:
        given = await desk.again(await who(request), key)
        return json_reply({"answer": "not yet"}, 202) if given is None else _given(given, key)


def _as_problem(error: Exception) -> Problem:
    if isinstance(error, HTTPException):
        error = unknown("page") if error.status_code == 404 else _not_this_way(error)
    if isinstance(error, RequestValidationError):
        error = unknown("page")
    return told(error)


def _not_this_way(error: HTTPException) -> Problem:
    hint = "GET /api/v1/openapi.json lists every address and its methods"
    return Problem(
        "not-this-way", error.status_code, "this address does not allow this method", hint, headers=error.headers or {}
    )


def _problem(error: Exception, scope: Scope) -> Response:
    problem = _as_problem(error)
    scope[PROBLEM] = problem.kind
    return Response(problem.body(), problem.status, dict(problem.headers), media_type=MEDIA_TYPE)


def _given(given: Given, key: str) -> Response:
    headers = {"Tacit-Left": given.left, "Idempotency-Key": key}
    return Response(given.body, 200, headers, media_type="application/json")


def _with_own_headers(given: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return a reply's headers with those of every reply; only our own pages may load anything, and only from here."""
    names = {name.lower(): value for name, value in given}
    own = {name.lower().encode(): value.encode() for name, value in HEADERS.items()}
    if names.get(b"content-type", b"").startswith(b"text/html"):
        own[b"content-security-policy"] = (NOTHING + OWN_PAGES).encode()
        own[b"referrer-policy"] = b"same-origin"  # without it a form's origin would be null
    return [*given, *((name, value) for name, value in own.items() if name not in names)]


class SafeReplies:
    """The outermost layer: the same headers on every reply, and a problem, never a trace, for every error."""

    def __init__(self, app: Any, desk: Desk, watching: Watching, hosts: OwnHosts | None = None) -> None:
        self.app = app
        self.desk = desk
        self.watching = watching
        self.hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application; its errors become problems."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_begun = False

        async def sending(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = _with_own_headers(message.get("headers", []))
                message = {**message, "headers": [*headers, *(ENCRYPTED if scope.get("scheme") == "https" else ())]}
                self.watching.note(scope, message["status"], scope.get(PROBLEM))
            await send(message)

        if self.hosts is not None and scope["path"] not in PROBED and not self.hosts.has(scope["headers"]):
            await _problem(misdirected(), scope)(scope, receive, sending)
            return
        try:
            await self.app(scope, receive, sending)
        except Exception as error:  # noqa: BLE001 - its text may quote a row, and a server's own log would have it
            if not has_begun:
                await _problem(error, scope)(scope, receive, sending)
