"""The curator's acts over HTTP: people, tokens and grants, each an entry of the ledger with a reason.

The acts are those of `tacit people` and `tacit budget`, in the same words. A reason is required, and the record names
the token's owner. Changes of people, tokens or tables need a curator of every table: a curator of some could give
themselves access to others.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request, Response

from tacit.errors import InvalidParameter
from tacit.ledger import BudgetStatus, Person, Token
from tacit.options import AMOUNT, TEXT, read_object, read_value
from tacit.privacy import Loss, epsilon, rho
from tacit.server.access import Verb, require, sees
from tacit.server.desk import Desk
from tacit.server.problems import Problem, unknown
from tacit.server.replies import Who, body_of, json_reply, object_document

TOKEN_ID = re.compile(r"[0-9a-f]{16}")
REASON_MAX = 900
_REASON = {"type": "string", "minLength": 1, "maxLength": REASON_MAX, "description": "why, for the record"}
_UNTIL = {"type": "string", "description": "the first day (UTC) on which it is over, or a time with its zone"}
PEOPLE = {
    "name": TEXT,
    "role": {"enum": ["analyst", "curator", "auditor"]},
    "tables": {"type": "array", "items": TEXT},
    "until": _UNTIL,
    "end": {"type": "boolean", "description": "end their time, and their tokens"},
    "reason": _REASON,
}
TOKENS = {"name": TEXT, "until": _UNTIL, "reason": _REASON}
GRANTS = {
    "table": TEXT,
    "epsilon": AMOUNT,
    "delta": AMOUNT,
    "rho": AMOUNT,
    "analyst": TEXT,
    "period": {"enum": ["day", "month", "year"]},
    "accept_large_delta": {"type": "boolean"},
    "revoke": {"type": "boolean", "description": "stop all further spending under this budget"},
    "reason": _REASON,
}
GRANTED = ("table", "reason")


def add_curator_routes(app: FastAPI, desk: Desk, who: Who) -> None:
    """Add the routes by which a curator sets who may ask, and how much."""

    @app.get("/api/v1/people", summary="People, their roles, and their tokens, without secrets")
    async def everyone(request: Request) -> Response:
        person = await who(request)
        require_all(person, "audit")
        return json_reply(await desk.aside(lambda: listed(desk)))

    @app.delete(
        "/api/v1/tokens/{id}",
        summary="End a token by its id, everywhere and at once",
        openapi_extra={"parameters": [{"name": "reason", "in": "query", "required": True, "schema": _REASON}]},
    )
    async def end_token(request: Request, id: str) -> Response:
        person = await who(request)
        require_all(person, "curate")
        reason = _reason({"reason": request.query_params.get("reason")}, person)
        return json_reply(await desk.aside(lambda: stop_token(desk, id, reason)))

    let = "Let a person in, say anew what they may do, or end their time"
    make = "Make a token for a person: only this reply contains its secret"
    add_act(app, desk, who, Act("people", let, PEOPLE, ("name", "reason"), let_in))
    add_act(app, desk, who, Act("tokens", make, TOKENS, ("name", "reason"), make_token))
    add_act(
        app, desk, who, Act("grants", "Set a budget from now on: grant, lower or revoke it", GRANTS, GRANTED, grant)
    )


@dataclass(frozen=True)
class Act:
    """An act of a curator: its path, its names and the needed ones of these, and what it does with them."""

    path: str
    summary: str
    names: Mapping[str, Any]
    needed: tuple[str, ...]
    run: Callable[[Desk, Person, Mapping[str, Any]], dict[str, Any]]


def add_act(app: FastAPI, desk: Desk, who: Who, act: Act) -> None:
    """Add the route of an act about all tables, or of a grant, which checks its own."""
    body = object_document(act.names, act.needed)

    @app.post(f"/api/v1/{act.path}", summary=act.summary, openapi_extra={"requestBody": body})
    async def acted(request: Request) -> Response:
        person = await who(request)
        (require if act.needed is GRANTED else require_all)(person, "curate")
        record = read_object(await body_of(request), act.names)
        return json_reply(await desk.aside(lambda: act.run(desk, person, record)))


def let_in(desk: Desk, curator: Person, record: Mapping[str, Any]) -> dict[str, Any]:
    """Let a person in, or end their time; for the record."""
    name, reason = _text(record, "name"), _reason(record, curator)
    if _flag(record, "end"):
        if set(record) - {"name", "end", "reason"}:
            raise InvalidParameter('with "end", send only name and reason\nhint: name, end and reason')
        return _person_record(desk.ledger.end_person(name, reason=reason))
    person = desk.ledger.add_person(
        name,
        role=record.get("role", "analyst"),
        tables=record.get("tables"),
        until=None if record.get("until") is None else _text(record, "until"),
        reason=reason,
    )
    return _person_record(person)


def make_token(desk: Desk, curator: Person, record: Mapping[str, Any]) -> dict[str, Any]:
    """Make a token and return its secret, this once."""
    until = None if record.get("until") is None else _text(record, "until")
    secret = desk.ledger.new_token(_text(record, "name"), until=until, reason=_reason(record, curator))
    id = secret.split("_")[1]
    return {"id": id, "token": secret, "note": "shown this once; the ledger keeps only its hash"}


def stop_token(desk: Desk, id: str, reason: str) -> dict[str, Any]:
    """End a token, for the record; a request with the secret itself in its address is refused."""
    if TOKEN_ID.fullmatch(id) is None:
        raise unknown("token")
    try:
        desk.ledger.end_token(id, reason=reason)
    except InvalidParameter:
        raise unknown("token") from None
    return {"id": id, "ended": True}


def grant(desk: Desk, curator: Person, record: Mapping[str, Any]) -> dict[str, Any]:
    """Set or revoke a budget, for the record; spent budget stays spent."""
    table, reason = _text(record, "table"), _reason(record, curator)
    require(curator, "curate", table)
    known = desk.ledger.table(table)
    if known is None:
        raise unknown("table")
    if not all(sees(curator, each.name) for each in desk.ledger.tables() if each.cohort == known.cohort):
        detail = f"'{table}' shares its people with other tables, and '{curator.name}' is not a curator of those"
        raise Problem("unauthorised", 403, detail, "ask a curator of all of them")
    analyst, period = (None if record.get(name) is None else _text(record, name) for name in ("analyst", "period"))
    if _flag(record, "revoke"):
        if set(record) - {"table", "analyst", "period", "revoke", "reason"}:
            raise InvalidParameter(
                'with "revoke", do not send an amount\nhint: table, analyst, period, revoke and reason'
            )
        given = desk.ledger.revoke(table, analyst=analyst, period=period, reason=reason)
    else:
        given = desk.ledger.grant(
            table,
            _loss(record),
            analyst=analyst,
            period=period,
            accept_large_delta=_flag(record, "accept_large_delta"),
            reason=reason,
        )
    registered = desk.ledger.table(table)
    statuses: tuple[BudgetStatus, ...] = ()
    if registered is not None and given.analyst != "*":
        statuses = desk.ledger.budget_status(registered, given.analyst)
    left = next((one.words_left for one in statuses if one.budget == given), None)
    is_known = given.analyst in (None, "*") or desk.ledger.person(given.analyst) is not None
    note = None if is_known else f"'{given.analyst}' is not among this ledger's people yet"
    return {"table": table, "budget": str(given), "left": left, "note": note}


def _loss(record: Mapping[str, Any]) -> Loss:
    if ("epsilon" in record) == ("rho" in record):
        raise InvalidParameter('give the budget as epsilon or as rho\nhint: {"epsilon": "3", "delta": "1e-6"}')
    main = "epsilon" if "epsilon" in record else "rho"
    amount, delta = (read_value("amount", record.get(name, 0), name) for name in (main, "delta"))
    return epsilon(amount, delta=delta) if main == "epsilon" else rho(amount, delta=delta)


def listed(desk: Desk) -> dict[str, Any]:
    """Return people, their roles, and their tokens; no secret is kept."""
    tokens = desk.ledger.tokens()
    return {
        "people": [
            {**_person_record(each), "tokens": [_token_record(one) for one in tokens if one.name == each.name]}
            for each in desk.ledger.people()
        ]
    }


def _person_record(person: Person) -> dict[str, Any]:
    return {**vars(person), "tables": None if person.tables is None else list(person.tables)}


def _token_record(token: Token) -> dict[str, Any]:
    named = ("id", "made", "until", "ended", "first_used", "last_used", "holds")
    return {name: getattr(token, name) for name in named}


def require_all(person: Person, verb: Verb) -> None:
    """Refuse who may not do this to every table."""
    require(person, verb)
    if person.tables is not None:
        detail = f"'{person.name}' is the {person.role} of only some tables, and this is about all of them"
        raise Problem("unauthorised", 403, detail, "ask a curator of every table")


def _reason(record: Mapping[str, Any], curator: Person) -> str:
    """Return the reason, and the token's owner."""
    written = record.get("reason")
    if not isinstance(written, str) or not written.strip() or len(written) > REASON_MAX:
        raise InvalidParameter(
            f'a reason is needed, of at most {REASON_MAX} characters\nhint: {{"reason": "the ward study"}}'
        )
    return f"{written} (by {curator.name}, over HTTP)"


def _text(record: Mapping[str, Any], name: str) -> str:
    return str(read_value("text", record.get(name), name))


def _flag(record: Mapping[str, Any], name: str) -> bool:
    return bool(read_value("flag", record.get(name, False), name))
