"""Check access: a bearer token becomes a person, and that person may or may not do a verb to a table.

Tokens and people are the ledger's, read anew for every request, so that an end holds at once and on every replica. The
name of the analyst comes only from the token. A table that a person may not see is answered as one that does not exist.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, Literal, Protocol

from tacit.errors import printable, with_article
from tacit.ledger import Person
from tacit.server.problems import Problem, unauthorised, unknown

Verb = Literal["see", "plan", "ask", "audit", "curate"]

VERBS: dict[str, frozenset[Verb]] = {
    "curator": frozenset({"see", "plan", "ask", "audit", "curate"}),
    "analyst": frozenset({"see", "plan", "ask"}),
    "auditor": frozenset({"see", "audit"}),
}
SECRET_MAX = 200
GUESSES_MAX = 10
ADDRESSES_MAX = 100_000


class KnowsTokens(Protocol):
    """The part of the ledger that maps secrets to people."""

    def whose(self, secret: str) -> Person | None:
        """Return the person who owns this token, or None: looked up again on every call, in constant time."""

    def holder(self, id: str) -> Person | None:
        """Return the owner of a token that was proved before, by its id, or None."""

    def scram(self, name: str) -> Any:
        """Return the keys by which a person's tokens are proved, and their salt."""


def has_token(authorization: str | None) -> bool:
    """Return whether a header has a bearer token, valid or not."""
    scheme, _, secret = (authorization or "").partition(" ")
    return scheme.lower() == "bearer" and bool(secret.strip())


def person_of(authorization: str | None, tokens: KnowsTokens) -> Person:
    """Return who sent a request; a missing header and an unknown, ended or wrong token get the same reply."""
    if not has_token(authorization):
        raise unauthorised()
    secret = (authorization or "").partition(" ")[2]
    readable = secret.isascii() and len(secret) <= SECRET_MAX
    person = tokens.whose(secret if readable else "-")
    if person is None or not readable or person.name is None:
        raise unauthorised()
    return person


class Guesses:
    """How many wrong tokens each address has sent in this minute; a valid one passes from a limited address too."""

    def __init__(self, now: Callable[[], float], workers: int = 1) -> None:
        self._now = now
        self._most = max(1, GUESSES_MAX // workers)
        self._minute = 0
        self._failed: Counter[str] = Counter()

    def is_limited(self, address: str) -> bool:
        """Return whether an address has sent too many wrong tokens in this minute."""
        minute = int(self._now() // 60)
        if minute != self._minute:
            self._minute = minute
            self._failed.clear()
        return self._failed[address] >= self._most

    def note(self, address: str) -> None:
        if len(self._failed) < ADDRESSES_MAX or address in self._failed:
            self._failed[address] += 1


def too_many_guesses() -> Problem:
    """Return the reply to a wrong token from an address that is limited."""
    return Problem(
        "too-many", 429, "too many wrong tokens from this address", "wait a minute", headers={"Retry-After": "60"}
    )


def sees(person: Person, table: str) -> bool:
    return person.tables is None or table in person.tables


def require(person: Person, verb: Verb, table: str | None = None) -> None:
    """Refuse what a person may not do: a table they may not see as one that does not exist."""
    if table is not None and not sees(person, table):
        raise unknown("table")
    if verb not in VERBS.get(person.role, frozenset()):
        detail = f"'{printable(person.name or '')}' is {with_article(person.role)}, who may not {_WORDS[verb]}"
        raise Problem("unauthorised", 403, detail, "ask the curator")


_WORDS: dict[Verb, str] = {
    "see": "see tables",
    "plan": "plan questions",
    "ask": "ask questions",
    "audit": "read the whole ledger",
    "curate": "declare, grant or let people in",
}
