"""The curator's acts over HTTP: people, tokens and grants, each an entry of the ledger with a reason and the token's
owner.

Changes of people, tokens or tables need a curator of every table: one of some could give themselves access to others.

A declared table becomes the lines that a curator would write in the catalog, whose reader refuses it in the same words.
Sources are files under allowed folders, or tables of a PostgreSQL server that the catalog names already.
"""

import glob
import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response

from tacit.asking import Catalog, left_record, what_is_left
from tacit.catalog_file import BYTES_MAX, CatalogEntry, CatalogFile, catalog_from, without_password
from tacit.errors import InvalidParameter
from tacit.files import read_small
from tacit.hold import hold_text
from tacit.json_wire import scalar_from
from tacit.ledger import BudgetStatus, Person, Token
from tacit.noise import fresh_bytes
from tacit.options import AMOUNT, TABLE, TEXT, read_object, read_value
from tacit.privacy import Loss, epsilon, rho
from tacit.server.access import Verb, require, sees
from tacit.server.desk import Desk
from tacit.server.problems import Problem, Who, body_of, json_reply, object_document, unknown
from tacit.server.reply_schemas import DeclaredTable, EndedToken, GrantRecord, NewToken, PeopleRecord, PersonRecord
from tacit.system import lock_file
from tacit.tables import open_source

TOKEN_ID = re.compile(r"[0-9a-f]{16}")
REASON_MAX = 900
_REASON = {"type": "string", "minLength": 1, "maxLength": REASON_MAX, "description": "why, for the record"}
_UNTIL = {"type": "string", "description": "the first day (UTC) without access, or a time with its zone"}
PEOPLE = {
    "name": TEXT,
    "role": {"enum": ["analyst", "curator", "auditor"]},
    "tables": {"type": "array", "items": TEXT},
    "until": _UNTIL,
    "usual_epsilon": {**AMOUNT, "description": "of a question by PostgreSQL's protocol that names no amount"},
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
DECLARED = {"name": TEXT} | {name: each.document for name, each in TABLE.items()}


def add_curator_routes(app: FastAPI, desk: Desk, who: Who) -> None:
    people = "People, their roles, and their tokens, without secrets"

    @app.get("/api/v1/people", summary=people, response_model=PeopleRecord)
    async def everyone(request: Request) -> Response:
        person = await who(request)
        require_all(person, "audit")
        return json_reply(await desk.aside(lambda: listed(desk)))

    @app.delete(
        "/api/v1/tokens/{id}",
        summary="End a token by its id, everywhere and at once",
        response_model=EndedToken,
        openapi_extra={"parameters": [{"name": "reason", "in": "query", "required": True, "schema": _REASON}]},
    )
    async def end_token(request: Request, id: str) -> Response:
        person = await who(request)
        require_all(person, "curate")
        reason = _reason({"reason": request.query_params.get("reason")}, person)
        return json_reply(await desk.aside(lambda: stop_token(desk, id, reason)))

    let = "Let a person in, change what they may do, or end their access"
    make = "Make a token for a person: only this reply contains its secret"
    give = "Set a budget from now on: grant, lower or revoke it"
    declare_one = "Declare a table, for life: as a line in the catalog would"
    for act in (
        Act("tables", declare_one, DECLARED, ("name", "source", "unit"), declare, DeclaredTable),
        Act("people", let, PEOPLE, ("name", "reason"), let_in, PersonRecord),
        Act("tokens", make, TOKENS, ("name", "reason"), make_token, NewToken),
        Act("grants", give, GRANTS, GRANTED, grant, GrantRecord),
    ):
        add_act(app, desk, who, act)


@dataclass(frozen=True)
class Act:
    """An act of a curator: its path, its names and the needed ones of these, what it does with them, and its reply."""

    path: str
    summary: str
    names: Mapping[str, Any]
    needed: tuple[str, ...]
    run: Callable[[Desk, Person, Mapping[str, Any]], dict[str, Any]]
    reply: Any  # the record's type


def add_act(app: FastAPI, desk: Desk, who: Who, act: Act) -> None:
    """Add the route of an act about all tables, or of a grant, which checks its own."""
    body = object_document(act.names, act.needed)

    @app.post(f"/api/v1/{act.path}", summary=act.summary, response_model=act.reply, openapi_extra={"requestBody": body})
    async def acted(request: Request) -> Response:
        person = await who(request)
        (require if act.needed is GRANTED else require_all)(person, "curate")
        record = read_object(await body_of(request), act.names)
        return json_reply(await desk.aside(lambda: act.run(desk, person, record)))


def let_in(desk: Desk, curator: Person, record: Mapping[str, Any]) -> dict[str, Any]:
    """Let a person in, or end their time; for the record."""
    name, reason = _text_field(record, "name"), _reason(record, curator)
    if _flag(record, "end"):
        if set(record) - {"name", "end", "reason"}:
            raise InvalidParameter('with "end", send only name and reason\nhint: name, end and reason')
        return _person_record(desk.ledger.end_person(name, reason=reason))
    usual = record.get("usual_epsilon")
    person = desk.ledger.add_person(
        name,
        role=record.get("role", "analyst"),
        tables=record.get("tables"),
        until=None if record.get("until") is None else _text_field(record, "until"),
        usual_epsilon=usual if usual is None else read_value("amount", usual, "usual_epsilon"),
        reason=reason,
    )
    return _person_record(person)


def make_token(desk: Desk, curator: Person, record: Mapping[str, Any]) -> dict[str, Any]:
    until = None if record.get("until") is None else _text_field(record, "until")
    secret = desk.ledger.new_token(_text_field(record, "name"), until=until, reason=_reason(record, curator))
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
    table, reason = _text_field(record, "table"), _reason(record, curator)
    require(curator, "curate", table)
    known = desk.ledger.table(table)
    if known is None:
        raise unknown("table")
    if not all(sees(curator, each.name) for each in desk.ledger.tables() if each.cohort == known.cohort):
        detail = f"'{table}' shares its people with other tables, and '{curator.name}' is not a curator of those"
        raise Problem("unauthorised", 403, detail, "ask a curator of all of them")
    analyst, period = (
        None if record.get(name) is None else _text_field(record, name) for name in ("analyst", "period")
    )
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


def _text_field(record: Mapping[str, Any], name: str) -> str:
    return str(read_value("text", record.get(name), name))


def _flag(record: Mapping[str, Any], name: str) -> bool:
    return bool(read_value("flag", record.get(name, False), name))


# ---- declarations ----------------------------------------------------------------------------------------------------


_DATABASE = re.compile(r"(?P<path>.+\.(?:duckdb|ddb|db))(?P<table>\?table=.+)?", re.IGNORECASE | re.DOTALL)
_POSTGRES = re.compile(r"postgres(ql)?://", re.IGNORECASE)


_declaring = threading.Lock()
_ENDINGS = (".parquet", ".pq", ".csv", ".duckdb")
FILES_MAX = 200


def declare(desk: Desk, curator: Person, record: Mapping[str, Any]) -> dict[str, Any]:
    """Declare a table: its lines are added to the catalog once they were read, opened and registered."""
    name, source = record.get("name"), record.get("source")
    if not isinstance(name, str) or not isinstance(source, str):
        raise InvalidParameter('name and source must be text\nhint: {"name": "visits", "source": "visits.parquet"}')
    require(curator, "curate", name)
    options = {word: value for word, value in record.items() if word not in ("name", "source") and value is not None}
    path = desk.file.path
    with _declaring, _locked(path.parent):
        try:
            before = read_small(path, bytes_max=BYTES_MAX)
        except (OSError, ValueError):
            raise _unwritable() from None
        known = catalog_from(path, before, may_be_empty=True)
        if name in {*known.tables, *known.public, *desk.file.tables}:
            raise InvalidParameter(
                f"'{name}' is declared already\nhint: give another name; a next version is written in the catalog"
            )
        safe = allowed_source(source, desk.sources, known)
        text = before.rstrip("\n") + "\n\n" + lines(name, safe, options)
        wanted = catalog_from(path, text)
        if not os.access(path.parent, os.W_OK):
            raise _unwritable()
        table = Catalog(wanted, desk.ledger)[name]  # opened, and registered in the ledger
        _replace(path, text)
        desk.look_again()
    return {
        "name": name,
        "declaration": table.frame.declaration.record(),
        "hold": hold_text(desk.hold_of(name)),
        "budget": left_record(what_is_left(table.session, curator.name)),
        "lines": lines(name, without_password(source), options),
    }


def columns_of(desk: Desk, source: str) -> dict[str, str]:
    """Return the names and types of a source's columns, from its schema; no row is read."""
    allowed = allowed_source(source, desk.sources, desk.file)
    opened = open_source(allowed if "://" in allowed else str(desk.file.path.parent / allowed), {})
    return {column: facts.type for column, facts in opened.columns.items()}


def files_under(desk: Desk) -> list[str]:
    """Return the files that tables may be declared of, as a declaration names them."""
    base = desk.file.path.parent
    found = [path for folder in desk.sources for path in sorted(folder.iterdir()) if path.suffix in _ENDINGS]
    return [os.path.relpath(path, base) for path in found[:FILES_MAX]]


# ---- sources ---------------------------------------------------------------------------------------------------------


def allowed_source(source: str, folders: Sequence[Path], catalog: CatalogFile) -> str:
    """Return a source as the catalog may have it, or refuse it in words that do not depend on existing files."""
    if "\0" in source or not source:
        raise _not_allowed()
    if "://" in source:
        return _known_address(source, (*catalog.tables.values(), *catalog.public.values()))
    matched = _DATABASE.fullmatch(source)
    path = source if matched is None else matched["path"]
    whole = str(catalog.path.parent / path)
    found = glob.glob(whole) if glob.has_magic(path) else [whole]
    fixed = whole if not glob.has_magic(path) else whole[: re.search(r"[*?\[]", whole).start()]  # type: ignore[union-attr]
    inside = [os.path.dirname(fixed) if glob.has_magic(path) else fixed, *found]
    if not all(_is_under(each, folders) for each in inside):
        raise _not_allowed()
    return source


def _is_under(path: str, folders: Iterable[Path]) -> bool:
    """Return whether a path, all links followed, is inside of a folder."""
    real = os.path.realpath(path)
    roots = [os.path.realpath(folder) for folder in folders]
    return any(os.path.commonpath([real, root]) == root for root in roots)


def _known_address(source: str, entries: Iterable[CatalogEntry]) -> str:
    """Return the address of a table on a server that the catalog names already, with the catalog's own password."""
    base, table = _address_parts(source)
    if _POSTGRES.match(source) is None or len(table) != 1 or without_password(source) != source:
        raise _not_allowed()
    for entry in entries:
        known, _ = _address_parts(entry.source)
        if _POSTGRES.match(entry.source) is not None and without_password(known) == base:
            return f"{known}{'&' if '?' in known else '?'}{table[0]}"
    raise _not_allowed()


def _address_parts(address: str) -> tuple[str, list[str]]:
    """Return an address without its table, and the words that name one."""
    place, _, asked = address.partition("?")
    words = [word for word in asked.split("&") if word]
    rest = [word for word in words if word.partition("=")[0] != "table"]
    return "?".join(filter(None, (place, "&".join(rest)))), [word for word in words if word not in rest]


def _not_allowed() -> InvalidParameter:
    return InvalidParameter(
        "this source is not one from which tables may be declared here"
        "\nhint: a file under a folder of `tacit serve --sources DIR`, or a table of a server that the catalog has"
    )


# ---- the catalog's lines ---------------------------------------------------------------------------------------------


def lines(name: str, source: str, options: Mapping[str, Any]) -> str:
    """Return a table's lines in a catalog.

    >>> print(lines("visits", "visits.parquet", {"unit": "id", "columns": {"age": {"between": [0, 120]}}}), end="")
    [tables."visits"]
    "source" = "visits.parquet"
    "unit" = "id"
    "columns" = {"age" = {"between" = [0, 120]}}
    """
    written = {"source": source, **options}
    return "\n".join(
        [f"[tables.{_value(name)}]", *(f"{_value(word)} = {_value(v)}" for word, v in written.items()), ""]
    )


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)).startswith("$"):
        return str(scalar_from(value).isoformat()) if next(iter(value)) in ("$date", "$timestamp") else _refuse_value()
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_value(word)} = {_value(each)}' for word, each in value.items())}}}"
    return _refuse_value()


def _refuse_value() -> str:
    raise InvalidParameter(
        'a declaration has text, whole numbers, true, false, lists and objects\nhint: amounts are text, such as "0.5"'
    )


# ---- the catalog's file ----------------------------------------------------------------------------------------------


def _unwritable() -> Problem:
    detail = "the server's catalog cannot be written, so no table can be declared over HTTP"
    return Problem("unavailable", 503, detail, "declare it in the catalog, and start the server again")


def _replace(path: Path, text: str) -> None:
    """Write the whole catalog, or leave it unchanged."""
    draft = path.with_name(f".{path.name}.{fresh_bytes(8).hex()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, path.stat().st_mode & 0o777)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError:
        draft.unlink(missing_ok=True)
        raise _unwritable() from None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes on this machine from declaring at the same time."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows opens no folder
        raise _unwritable() from None
    try:
        lock_file(descriptor)
        yield
    finally:
        os.close(descriptor)
