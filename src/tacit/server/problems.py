"""Problems in HTTP's format (RFC 9457): the product's own sentence, its hint, and the class of the error.

Our errors depend only on the question and on public facts, so their words may leave. Other errors may quote a row:
only the fact that they happened leaves.

Common parts of every route: the sender of a request, its body, a page's number, and a record as a reply.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from tacit.errors import (
    BeingAnswered,
    BudgetExceeded,
    DeadRequest,
    EngineError,
    InvalidParameter,
    LedgerError,
    NoRandomness,
    NotAllowed,
    QueryRefused,
    TacitError,
)
from tacit.json_wire import write_json
from tacit.ledger import Person
from tacit.options import BODY_BYTES_MAX, FLAGS, QUESTION, SPENDING

MEDIA_TYPE = "application/problem+json"

# class -> (the last part of its type, status); a class that is not here is refused
_KINDS: tuple[tuple[type[TacitError], str, int], ...] = (
    (BudgetExceeded, "no-room", 402),
    (BeingAnswered, "being-answered", 409),
    (DeadRequest, "failed-after-charge", 409),
    (EngineError, "failed-after-charge", 500),
    (NoRandomness, "failed-after-charge", 500),
    (LedgerError, "unavailable", 503),
    (NotAllowed, "unauthorised", 403),
    (InvalidParameter, "refused", 422),
    (QueryRefused, "refused", 422),
)
_TITLES = {
    "refused": "It was refused, and no charge was made",
    "no-room": "The budget is too small for the question, and no charge was made for it",
    "being-answered": "The question is charged once, and is being answered",
    "failed-after-charge": "The question was charged and remains unanswered",
    "refused-after-learning": "The question was refused; the facts learned for it first are charged, and kept",
    "unauthorised": "A token is needed that may do this",
    "unknown": "This token may not see it, or it does not exist",
    "not-this-way": "This address does not allow this method",
    "misdirected": "This server does not have the host name that was asked for",
    "too-many": "Too many requests at once",
    "too-large": "The body is too large",
    "unavailable": "The server cannot do this now",
    "unexpected": "Something unexpected happened on the server",
}


@dataclass(eq=False)
class Problem(Exception):
    """A reply other than a success."""

    kind: str
    status: int
    detail: str
    hint: str = ""
    error: str = "InvalidParameter"
    headers: Mapping[str, str] = field(default_factory=dict)

    def body(self) -> bytes:
        return write_json(
            {
                "type": f"urn:tacit:{self.kind}",
                "title": _TITLES[self.kind],
                "status": self.status,
                "detail": self.detail,
                "hint": self.hint,
                "error": self.error,
            }
        )


def problem_of(error: Exception) -> Problem:
    if isinstance(error, Problem):
        return error
    if not isinstance(error, TacitError):
        return Problem("unexpected", 500, "an unexpected error; its text is withheld", "ask the curator", "TacitError")
    kind, status = next(((kind, status) for each, kind, status in _KINDS if isinstance(error, each)), ("refused", 422))
    detail, _, hint = str(error).partition("\nhint: ")
    return Problem(kind, status, detail, hint, type(error).__name__)


def refused_after_learning(error: TacitError) -> Problem:
    """Return the refusal of a question for which something was learned, and charged, before it was refused."""
    problem = problem_of(error)
    return replace(problem, kind="refused-after-learning") if problem.kind in ("refused", "no-room") else problem


def unauthorised() -> Problem:
    """Return the one reply to a missing, unknown, ended or wrong token."""
    return Problem(
        "unauthorised",
        401,
        "no valid token was given",
        "send it as 'Authorization: Bearer tacit_...'; the curator makes tokens",
        headers={"WWW-Authenticate": "Bearer"},
    )


def misdirected() -> Problem:
    """Return the reply to a request with a Host that is not one of this server's."""
    detail = "the request was sent to a host name that is not one of this server's"
    return Problem("misdirected", 421, detail, "if the name is right, start the server with --host-names NAME")


def unknown(what: str) -> Problem:
    """Return the same reply for missing objects and for objects that a token may not see."""
    return Problem("unknown", 404, f"there is no such {what}", "GET /api/v1/tables lists what this token may ask")


Who = Callable[[Request], Awaitable[Person]]
NUMBER_DIGITS_MAX = 18
KEY_MAX = 200
KEY_DOCUMENT = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "maxLength": KEY_MAX},
    "description": "charged once under it; sent again, it gets the same bytes",
}


async def body_of(request: Request) -> bytes:
    """Return the body of a request, never more than a question may have."""
    read = bytearray()
    try:
        async for chunk in request.stream():
            read += chunk
            if len(read) > BODY_BYTES_MAX:
                raise Problem(
                    "too-large", 413, f"the body has more than {BODY_BYTES_MAX} bytes", "ask several smaller questions"
                )
    except ClientDisconnect:  # nobody hears it
        raise Problem("refused", 408, "the request did not arrive whole", "send it again") from None
    return bytes(read)


def read_key(written: str | None) -> str | None:
    """Return the key under which a question is charged once, from the Idempotency-Key header."""
    if written is None:
        return None
    if not 0 < len(written) <= KEY_MAX or not written.isascii() or not written.isprintable():
        raise InvalidParameter(f"an Idempotency-Key has 1 to {KEY_MAX} plain characters\nhint: a random text")
    return written


def number_of(written: str, what: str) -> int:
    """Return the number in a path, or the reply for missing objects."""
    if not written.isascii() or not written.isdecimal() or len(written) > NUMBER_DIGITS_MAX:
        raise unknown(what)
    return int(written)


def json_reply(record: Any, status: int = 200) -> Response:
    return Response(write_json(record), status, media_type="application/json")


def object_document(properties: Mapping[str, Any], required: tuple[str, ...], **more: Any) -> dict[str, Any]:
    """Return what OpenAPI says of a body that is one object."""
    schema = {"type": "object", "properties": dict(properties), **more}
    schema |= {"required": list(required)} if required else {}
    return {"required": True, "content": {"application/json": {"schema": {**schema, "additionalProperties": False}}}}


def question_document(*, may_answer: bool) -> dict[str, Any]:
    """Return what OpenAPI says of a body that asks or plans: the names that `read_wording` reads."""
    options = {**QUESTION, **SPENDING, **(FLAGS if may_answer else {})}
    one_of = [{"required": [name]} for name in ("sql", "question", "questions")]
    return object_document({name: each.document for name, each in options.items()}, (), oneOf=one_of)
