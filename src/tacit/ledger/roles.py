"""People: who may ask, about which tables and until when, and the tokens by which a server identifies them.

A person is an entry of the chain, and a later entry replaces it; so is the making and the end of a token. Beside the
chain are hashes of each token's secret and its last use: deleting a row ends the token, and writing one does not
create a token. A ledger without people asks for no names.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from hmac import compare_digest
from typing import TypeVar

from tacit.errors import InvalidParameter, LedgerError, NotAllowed
from tacit.ledger import registry
from tacit.ledger.budget import Budget
from tacit.ledger.chain import canonical, digest, fresh_secret
from tacit.ledger.clock import time_text
from tacit.ledger.draft import HELD, PEOPLE, PERSON, LedgerDraft, person_name
from tacit.ledger.entry import Entry, Record
from tacit.ledger.registry import RegisteredTable
from tacit.ledger.spelling import given_name, look, name_key
from tacit.ledger.store import END_VISIT, FORGET_HASH, FORGET_VISITS, KEEP_HASH, NOTE_USE, LedgerStore
from tacit.numbers import decimal_meaning, positive
from tacit.privacy import Loss

CURATOR, ANALYST, AUDITOR = ROLES = ("curator", "analyst", "auditor")
REASON_MAX = 1000

# A secret: the prefix that scanners look for, the token's id, and 256 random bits.
SECRET = re.compile(r"tacit_([0-9a-f]{16})_([A-Za-z0-9_-]{43})").fullmatch
SECRET_MAX = 200
SCRAM_ROUNDS = 4096  # the least that clients take: 256 random bits need no slow hash
# A dummy token. The token is compared when the given id is unknown, so that both cases take the same time.
_NO_ID, _NO_HASH = "0" * 16, "0" * 64
# The last use is written again when it is older than this much of a time's text: the minute.
_MINUTE = 16

Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Person:
    """A person in the ledger: the spelling of the name, the role, the tables, and the end of access.

    `name` None means requests without a name, `tables` None every table; `since` is the entry that let them in.
    `usual_epsilon` is for a question by PostgreSQL's protocol that names no amount, as decimal text.
    """

    name: str | None
    role: str
    tables: tuple[str, ...] | None = None
    until: str | None = None
    ended: bool = False
    since: int = 0
    usual_epsilon: str | None = None

    def why_not(self, table: str, *, time: str) -> str | None:
        """Return why this person may not ask about a table at a time, in words; None if they may."""
        who = "requests without a name" if self.name is None else f"'{self.name}'"
        if self.ended or (self.until is not None and self.until <= time):
            return f"the time of {who} is over"
        if self.role == AUDITOR:
            return f"{who} is an auditor, who reads the ledger and may not ask"
        if self.tables is not None and table not in self.tables:
            return f"'{table}' is not among the tables that {who} may ask about"
        return None


@dataclass(frozen=True)
class Token:
    """A token, without its secret; `holds` is whether it is valid now."""

    id: str
    name: str
    made: str
    until: str | None
    ended: bool
    first_used: str | None
    last_used: str | None
    holds: bool


@dataclass(frozen=True)
class ScramKeys:
    """The keys by which SCRAM-SHA-256 proves a token of a person: by its id, the stored key and the server key."""

    salt: bytes
    keys: Mapping[str, tuple[bytes, bytes]]
    rounds: int = SCRAM_ROUNDS


class KnowsPeople:
    """The part of a ledger for people and their budgets; the ledger itself has the rest."""

    _store: LedgerStore

    def _submit(self, step: Callable[[LedgerDraft], Outcome]) -> Outcome:
        raise NotImplementedError

    def _view(self) -> AbstractContextManager[LedgerDraft]:
        raise NotImplementedError

    def add_person(
        self,
        name: str | None,
        *,
        role: str = ANALYST,
        tables: "tuple[str, ...] | list[str] | None" = None,
        until: "str | date | None" = None,
        usual_epsilon: str | int | None = None,
        reason: str = "",
    ) -> Person:
        """Add a person, or change what one may do; for the record. From the first one on, only people may ask.

        `name` None is for requests without a name; a date as `until` is the first day (UTC) without access.
        """
        kept = None if name is None else given_name(name)
        usual = None if usual_epsilon is None else _amount_text(usual_epsilon)
        person = Person(kept, _role(role, kept), _table_names(tables), until_text(until), usual_epsilon=usual)
        words = _reason(reason)
        return self._submit(lambda draft: _add_person(draft, person, words))

    def end_person(self, name: str | None, *, reason: str = "") -> Person:
        """Revoke a person's access, and their tokens; for the record. Spent budget stays spent."""
        words = _reason(reason)
        return self._submit(lambda draft: _end_person(draft, name, words))

    def person(self, name: str | None) -> Person | None:
        """Return the person of a name, however it is spelled, revoked or not; None if the name is unknown."""
        with self._view() as draft:
            return find_person(draft, name)

    def people(self) -> tuple[Person, ...]:
        """Return every person, ended or not, by name; requests without a name come first."""
        with self._view() as draft:
            found = [draft.fact(name) for name in draft.rows.names(PERSON)]
            people = [person_from(entry) for entry in found if entry is not None]
        return tuple(sorted(people, key=lambda one: name_key(one.name or "")))

    def has_people(self) -> bool:
        """Whether the curator has said who may ask."""
        with self._view() as draft:
            return draft.state.get(PEOPLE) is not None

    def grant(
        self,
        name: str,
        budget: Loss,
        *,
        analyst: str | None = None,
        period: str | None = None,
        population: int | None = None,
        accept_large_delta: bool = False,
        reason: str = "",
    ) -> Budget:
        """Set the budget of a table's people, for an analyst ("*" for each) or a period; what is spent stays spent."""
        return self._submit(
            lambda draft: registry.grant(
                draft,
                name,
                budget,
                analyst=analyst,
                period=period,
                population=population,
                accept_large_delta=accept_large_delta,
                reason=reason,
            )
        )

    def revoke(self, name: str, *, analyst: str | None = None, period: str | None = None, reason: str = "") -> Budget:
        """Stop all further spending under a budget, from now on and for the record; a later grant sets it anew."""
        return self._submit(lambda draft: registry.revoke(draft, name, analyst=analyst, period=period, reason=reason))

    def new_token(self, name: str, *, until: "str | date | None" = None, reason: str = "") -> str:
        """Return the secret of a new token, only now: the ledger keeps its hash."""
        id, secret = fresh_secret()
        ends, words, hash = until_text(until), _reason(reason), kept_hashes(secret, str(name))
        # the row first: without the entry it does not belong to a person
        self._store.beside(KEEP_HASH, (id, hash))
        try:
            self._submit(
                lambda draft: _new_token(draft, id, name, check=token_check(id, hash), until=ends, reason=words)
            )
        except BaseException:
            self._store.beside(FORGET_HASH, (id,))
            raise
        return secret

    def end_token(self, id: str, *, reason: str = "") -> None:
        """End a token by its id, or by its secret, everywhere and at once; for the record."""
        matched = SECRET(id) if isinstance(id, str) else None
        token, words = matched[1] if matched else str(id), _reason(reason)
        self._submit(lambda draft: _end_token(draft, token, words))
        self._store.beside(FORGET_HASH, (token,))

    def tokens(self, name: str | None = None) -> tuple[Token, ...]:
        """Return the tokens of a person, or of everyone, in the order in which they were made."""
        with self._view() as draft:
            ids = [found.removeprefix(HELD) for found in draft.rows.names(HELD)]
            tokens = [_token(draft, id) for id in ids]
        mine = [one for one in tokens if name is None or name_key(one.name) == name_key(name)]
        return tuple(sorted(mine, key=lambda one: (one.made, one.id)))

    def whose(self, secret: str) -> Person | None:
        """Return the owner of this token; None for an unknown, wrong, revoked or expired one, after the same steps in
        time.

        An expired token is revoked for the record, so that a clock that goes back does not restore it.
        """
        matched = SECRET(secret) if isinstance(secret, str) else None
        id, hash = (_NO_ID if matched is None else matched[1]), secret_hash(str(secret)[:SECRET_MAX])
        return self._owner(id, lambda kept: compare_digest(kept[: len(hash)], hash))

    def admitted(self, name: str) -> Person | None:
        """Return the person of a name who has access now; None for an unknown name, and after the end of access."""
        with self._view() as draft:
            person = find_person(draft, name)
            is_in = person is not None and not person.ended and (person.until is None or person.until > draft.time)
            return person if is_in else None

    def holder(self, id: str) -> Person | None:
        """Return the owner of a token whose secret was proved before, by its id; None once it has ended."""
        return self._owner(id, lambda _: True)

    def scram(self, name: str) -> ScramKeys:
        """Return the keys of all tokens of a person, perhaps none; unknown names take the same steps, and a salt."""
        found: dict[str, tuple[bytes, bytes]] = {}
        with self._view() as draft:
            for id in [each.removeprefix(HELD) for each in draft.rows.names(HELD)]:
                entry, row = draft.fact(HELD + id), draft.rows.token(id)
                kept = _NO_HASH if row is None else str(row[1])
                _, stored, server = (kept + "::").split(":")[:3]
                is_own = entry is not None and name_key(entry.record["name"]) == name_key(name)
                if is_own and stored and server:
                    found[id] = bytes.fromhex(stored), bytes.fromhex(server)
        return ScramKeys(scram_salt(name), found)

    def _owner(self, id: str, proves: Callable[[str], bool]) -> Person | None:
        with self._view() as draft:
            found = _held(draft, id, proves)
        if found.is_over:
            _end_expired(self, id)
        if found.person is None:
            return None
        if (found.last_used or "")[:_MINUTE] != found.time[:_MINUTE]:
            self._store.beside(NOTE_USE, (found.time, found.time, id))
        return found.person

    def end_visit(self, visit: str, *, now: int, until: int) -> None:
        """Write that a visit of pages, known by a hash of its cookie, is signed out; kept until it would be over."""
        self._store.beside(FORGET_VISITS, (_second(now),))
        self._store.beside(END_VISIT, (f"visit {visit}", visit, _second(until)))

    def has_ended(self, visit: str) -> bool:
        """Return whether a visit is signed out, read from the store now."""
        with self._store.reading() as rows:
            return rows.token(f"visit {visit}") is not None


def _second(number: int) -> str:
    return f"{number:012d}"  # as texts in the order of their numbers


# ---- people ----------------------------------------------------------------------------------------------------------


def require_allowed(draft: LedgerDraft, analyst: str | None, table: RegisteredTable) -> None:
    """Refuse who may not ask about a table; a ledger without people lets everyone ask."""
    why = why_not(draft, analyst, table)
    if why is not None:
        raise not_allowed(why)


def why_not(draft: LedgerDraft, analyst: str | None, table: RegisteredTable) -> str | None:
    """Return the reason why an analyst may not ask about a table, and those beside it, now; None if they may."""
    if draft.state.get(PEOPLE) is None:
        return None
    person = find_person(draft, analyst)
    if person is not None:
        declared = [draft.book.table(id) for id in (table.id, *table.beside)]
        names = ["?" if each is None else each.name for each in declared]
        return next((why for name in names if (why := person.why_not(name, time=draft.time)) is not None), None)
    return (
        "this ledger has registered people, and this question is without a name"
        if analyst is None
        else f"this ledger does not know '{analyst}'"
    )


def not_allowed(why: str) -> NotAllowed:
    """Return the error for someone who may not ask."""
    return NotAllowed(
        f"{why}; no charge was made and no row was read"
        "\nhint: give the name you are known by (analyst=, --analyst), or have the curator let you in: "
        "tacit people add NAME"
    )


def find_person(draft: LedgerDraft, name: str | None) -> Person | None:
    entry = draft.fact(person_name(name))
    return None if entry is None else person_from(entry)


def person_from(entry: Entry) -> Person:
    record = entry.record
    tables = None if record["tables"] is None else tuple(record["tables"])
    usual = record.get("usual_epsilon")
    return Person(record["name"], record["role"], tables, record["until"], record["ended"], record["since"], usual)


def _add_person(draft: LedgerDraft, person: Person, reason: str) -> Person:
    before = find_person(draft, person.name)
    if before is None and person.name is not None:
        _refuse_look_alike(draft, person.name)
    name = person.name if before is None else before.name
    since = draft.head.number + 1 if before is None or before.ended else before.since
    entry = draft.append(
        {
            "kind": "person",
            "name": name,
            "role": person.role,
            "tables": None if person.tables is None else list(person.tables),
            "until": person.until,
            "ended": False,
            "since": since,
            "reason": reason,
            **({} if person.usual_epsilon is None else {"usual_epsilon": person.usual_epsilon}),
        }
    )
    return person_from(entry)


def _end_person(draft: LedgerDraft, name: str | None, reason: str) -> Person:
    entry = draft.fact(person_name(name))
    if entry is None or entry.record["ended"]:
        known = (
            "requests without a name may not ask here"
            if name is None
            else f"'{name}' has no access in this ledger that could be revoked"
        )
        raise InvalidParameter(f"{known}\nhint: tacit people list")
    kept = {word: value for word, value in entry.record.items() if word != "time"}
    return person_from(draft.append({**kept, "ended": True, "reason": reason}))


def _refuse_look_alike(draft: LedgerDraft, name: str) -> None:
    for found in draft.rows.names(PERSON):
        entry = draft.fact(found)
        other = None if entry is None else entry.record["name"]
        if other is not None and look(other) == look(name):
            raise InvalidParameter(
                f"'{name}' looks like '{other}', which is registered: readers could confuse the two"
                f"\nhint: give a name that cannot be confused with it; for the same person, use '{other}'"
            )


def _role(role: object, name: str | None) -> str:
    if role not in ROLES:
        raise InvalidParameter(f"role must be one of {', '.join(ROLES)}\nhint: role='analyst'")
    if name is None and role != ANALYST:
        raise InvalidParameter(
            f"requests without a name can only be analysts, not {role}\nhint: give the {role} a name"
        )
    return str(role)


def _table_names(tables: object) -> tuple[str, ...] | None:
    if tables is None:
        return None
    if isinstance(tables, str) or not isinstance(tables, tuple | list) or not all(isinstance(t, str) for t in tables):
        raise InvalidParameter("tables must be names of tables, or None for every table\nhint: tables=['visits']")
    return tuple(sorted(set(tables)))


def _amount_text(amount: str | int) -> str:
    found = positive(decimal_meaning(amount, name="usual_epsilon"), name="usual_epsilon")
    if found > 1_000:
        raise InvalidParameter("usual_epsilon must be at most 1000\nhint: usual_epsilon='0.5'")
    return str(amount)


def _reason(reason: object) -> str:
    if not isinstance(reason, str) or len(reason) > REASON_MAX:
        raise InvalidParameter(f"reason must be a text of at most {REASON_MAX} characters")
    canonical(reason)
    return reason


def until_text(until: "str | date | None") -> str | None:
    """Return the moment at which something is over, as the ledger writes times; a day is over when it begins (UTC).

    >>> until_text("2027-02-01")
    '2027-02-01T00:00:00.000000Z'
    """
    if until is None:
        return None
    given: date | None = None
    with suppress(ValueError):
        given = datetime.fromisoformat(until) if isinstance(until, str) else until
    if isinstance(until, str) and len(until) == len("2027-02-01") and isinstance(given, datetime):
        given = given.replace(tzinfo=UTC)
    if isinstance(given, date) and not isinstance(given, datetime):
        given = datetime(given.year, given.month, given.day, tzinfo=UTC)
    if not isinstance(given, datetime) or given.tzinfo is None:
        raise InvalidParameter(
            "until must be a day, or a time with its zone\nhint: until='2027-02-01', or '2027-02-01T08:00:00+01:00'"
        )
    return time_text(lambda: given)


# ---- tokens ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _TokenHolder:
    """The result of looking a secret up: its person if it is valid, whether it has just expired, and its last use."""

    person: Person | None
    is_over: bool
    last_used: str | None
    time: str


def secret_hash(secret: str) -> str:
    """Return the hash of a secret; 256 random bits cannot be guessed from it."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def scram_salt(name: str) -> bytes:
    """Return the salt of a person's tokens, which every client of that name is sent."""
    return hashlib.sha256(f"tacit SCRAM {name_key(name)}".encode("utf-8", "surrogatepass")).digest()[:16]


def kept_hashes(secret: str, name: str) -> str:
    """Return the texts that are kept of a secret: its hash, and SCRAM-SHA-256's stored key and server key (RFC 5802).

    Privacy: each is a hash of 256 random bits, so that no secret can be found from them but by guessing it: 2^255
    tries on average. Who reads them could pose as the server: they stay beside the chain, where no reply has them.
    """
    salted = hashlib.pbkdf2_hmac("sha256", secret.encode(), scram_salt(name), SCRAM_ROUNDS)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).hexdigest()
    return f"{secret_hash(secret)}:{stored}:{hmac.digest(salted, b'Server Key', 'sha256').hex()}"


def token_check(id: str, hash: str) -> str:
    """Return the chain's copy of a token's hash, so that the hash in its row cannot be exchanged."""
    return digest("token", id, hash)


def _held(draft: LedgerDraft, id: str, proves: Callable[[str], bool]) -> _TokenHolder:
    """Return what looking a secret up finds; every step is taken for a missing id too, with the next one."""
    found, kept, _, last = draft.rows.token_near(id) or (_NO_ID, _NO_HASH, None, None)
    entry = draft.fact(HELD + found)
    record: Record = {} if entry is None else entry.record
    # a hash is of the whole secret, its id included
    same = proves(kept) & compare_digest(str(record.get("check", _NO_HASH)), token_check(id, kept))
    person = find_person(draft, record.get("name", ""))
    is_known = same and person is not None and not record.get("ended", True)
    is_let_in = person is not None and entry is not None and not person.ended and entry.number > person.since
    ends = [until for until in (record.get("until"), None if person is None else person.until) if until is not None]
    is_over = any(until <= draft.time for until in ends)
    holds = is_known and is_let_in and not is_over
    return _TokenHolder(person if holds else None, is_known and is_let_in and is_over, last, draft.time)


def _new_token(draft: LedgerDraft, id: str, name: str, *, check: str, until: str | None, reason: str) -> Entry:
    person = find_person(draft, name) if isinstance(name, str) else None
    if person is None or person.ended:
        raise InvalidParameter(f"this ledger has no '{name}' who could hold a token\nhint: tacit people add {name}")
    return draft.append(
        {
            "kind": "token",
            "token": id,
            "name": person.name,
            "check": check,
            "until": until,
            "ended": False,
            "reason": reason,
        }
    )


def _end_token(draft: LedgerDraft, id: str, reason: str) -> Entry:
    entry = draft.fact(HELD + id)
    if entry is None or entry.record["ended"]:
        raise InvalidParameter("this ledger has no such token that could be revoked\nhint: tacit people list")
    kept = {word: value for word, value in entry.record.items() if word != "time"}
    return draft.append({**kept, "made": entry.record["time"], "ended": True, "reason": reason})


def _end_expired(ledger: KnowsPeople, id: str) -> None:
    """Revoke an expired token, for the record; if that cannot be written now, it is refused all the same."""
    with suppress(InvalidParameter, LedgerError):
        ledger.end_token(id, reason="its time is over")


def _token(draft: LedgerDraft, id: str) -> Token:
    entry = draft.fact(HELD + id)
    if entry is None:
        raise LedgerError("the ledger is damaged: a token is missing\nhint: run tacit ledger verify")
    record = entry.record
    row = draft.rows.token(id)
    _, _, first, last = row or (id, _NO_HASH, None, None)
    person = find_person(draft, record["name"])
    ends = [until for until in (record["until"], None if person is None else person.until) if until is not None]
    holds = (
        row is not None
        and not record["ended"]
        and person is not None
        and not person.ended
        and entry.number > person.since
        and all(until > draft.time for until in ends)
    )
    made = str(record.get("made", record["time"]))
    return Token(id, record["name"], made, record["until"], record["ended"], first, last, holds)
