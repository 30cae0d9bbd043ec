"""Problems in HTTP's format (RFC 9457): the product's own sentence, its hint, and the class of the error.

Our errors depend only on the question and on public facts, so their words may leave. Other errors may quote a row:
only the fact that they happened leaves.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

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
    "not-this-way": "This address is there, and not for this",
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
