"""The ledger for its readers: entries page by page, and an answer's numbers as CSV or a picture.

Curators and auditors read every entry; an analyst reads those about themselves. Readers of some tables read only
entries of these, and other entries do not exist for them.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from fastapi import FastAPI, Request, Response

from tacit.answer import Answer, answer_of_certificate
from tacit.errors import InvalidParameter, TacitError
from tacit.ledger import BEGINNING, Entry, Ledger, Person, RegisteredTable, entry_line, name_key
from tacit.server.access import VERBS, require, sees
from tacit.server.desk import Desk
from tacit.server.problems import Problem, Who, json_reply, number_of, unknown
from tacit.server.reply_schemas import TEXT_OF_CSV, TEXT_OF_SVG, CertificateRecord, EntriesPage, text_as

PAGE_ENTRIES = 500  # looked at for one reply
PAGE_BYTES_MAX = 4 << 20
SVG_HEADERS = {  # an image runs no script, with any key as its name; the same if it is opened as a page
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; sandbox"
    )
}
FREE_TEXTS = ("reason", "denied")
ABOUT_NOBODY = frozenset({"ledger", "clock", "override", "key"})
Tables = Mapping[str, RegisteredTable]


def add_record_routes(app: FastAPI, desk: Desk, who: Who) -> None:
    @app.get(
        "/api/v1/ledger",
        summary="Entries of the ledger: one's own, or all for curators and auditors",
        response_model=EntriesPage,
        openapi_extra={"parameters": [_FROM_DOCUMENT]},
    )
    async def ledger(request: Request) -> Response:
        person = await who(request)
        first = number_of(request.query_params.get("from", "1"), "entry")
        return json_reply(await desk.aside(lambda: page(desk.ledger, person, first)))

    signed = "The signed certificate of an answer"

    @app.get("/api/v1/answers/{number}/certificate", summary=signed, response_model=CertificateRecord)
    async def certificate(request: Request, number: str) -> Response:
        return json_reply(await desk.certificate(await who(request), number_of(number, "answer")))

    @app.get(
        "/api/v1/answers/{number}.csv",
        summary="An answer's numbers with their error bars, as CSV",
        response_class=Response,
        responses=text_as(TEXT_OF_CSV),
    )
    async def as_csv(request: Request, number: str) -> Response:
        answer = await kept(desk, await who(request), number_of(number, "answer"))
        headers = {"Content-Disposition": f'attachment; filename="answer-{int(number)}.csv"'}
        return Response(answer.to_csv(), 200, headers, media_type=f"{TEXT_OF_CSV}; charset=utf-8")

    @app.get(
        "/api/v1/answers/{number}.svg",
        summary="An answer's picture",
        response_class=Response,
        responses=text_as(TEXT_OF_SVG),
    )
    async def as_svg(request: Request, number: str) -> Response:
        answer = await kept(desk, await who(request), number_of(number, "answer"))
        drawn = await desk.aside(lambda: _svg(answer))
        return Response(drawn, 200, dict(SVG_HEADERS), media_type=TEXT_OF_SVG)


def page(ledger: Ledger, person: Person, first: int) -> dict[str, Any]:
    """Return the entries that a person may read, from a number on, and the next number (None: the end)."""
    entries, number = read_entries(ledger, person, first, PAGE_ENTRIES)
    return {"entries": entries, "next": number if number <= ledger.length() else None}


def read_entries(ledger: Ledger, person: Person, first: int, most: int) -> tuple[list[dict[str, Any]], int]:
    """Return those of `most` entries, from a number on, that a person may read, and the next number."""
    require(person, "see")
    tables = {table.id: table for table in ledger.tables()}
    seen = {id: table for id, table in tables.items() if sees(person, table.name)}  # words name no other
    found: list[dict[str, Any]] = []
    size, number = 0, max(first, 1)
    for entry in islice(ledger.entries(number), most):
        number = entry.number + 1
        if may_read(ledger, person, entry, tables):
            size += len(entry.body)
            found.append(_entry_record(ledger, entry, without_others(person, entry, tables), seen))
        if size >= PAGE_BYTES_MAX:
            break
    return found, number


def without_others(person: Person, entry: Entry, tables: Tables) -> Entry:
    """Return an entry without reasons and denials, if they may name tables which a person may not see."""
    hidden = {name: "" for name in FREE_TEXTS if name in entry.record}
    about = [table.name for table in tables.values() if table.cohort == entry.record.get("people")]
    own = entry.kind in {"person", "token", "note"} or (
        entry.kind == "budget" and all(sees(person, name) for name in about)
    )
    if person.tables is None or own or not hidden:
        return entry
    return replace(entry, body=json.dumps({**entry.record, **hidden}, ensure_ascii=False))


def facts_read(desk: Desk, person: Person, table: str) -> list[dict[str, Any]]:
    """Return the facts of a table that a person may read: those about joins only if all tables are seen."""
    ledger = desk.ledger
    tables = {each.id: each for each in ledger.tables()}
    found = [(each, ledger.entry(each["entry"])) for each in desk.facts_of(table)]
    return [each for each, entry in found if entry is not None and may_read(ledger, person, entry, tables)]


def may_read(ledger: Ledger, person: Person, entry: Entry, tables: Tables) -> bool:
    record, kind = entry.record, entry.kind
    reads_all = "audit" in VERBS.get(person.role, frozenset())
    if kind in ABOUT_NOBODY:
        return reads_all
    if kind in {"person", "token"}:
        return (reads_all and person.tables is None) or _names_person(record["name"], person)
    if kind == "note":
        return sees(person, record["table"]) and (reads_all or _names_person(record["name"], person))
    if kind == "table":
        return reads_all and sees(person, record["name"])
    if kind == "budget":
        names = [table.name for table in tables.values() if table.cohort == record["people"]]
        return any(sees(person, name) for name in names) and (reads_all or _names_person(record["analyst"], person))
    charge = _charge_of(ledger, entry)
    named = [tables[id].name if id in tables else None for id in (charge["table"], *charge.get("beside", ()))]
    seen = all(name is not None and sees(person, name) for name in named)
    return seen and (reads_all or _names_person(charge["analyst"], person))


def _names_person(name: str | None, person: Person) -> bool:
    return name is not None and person.name is not None and name_key(name) == name_key(person.name)


def _charge_of(ledger: Ledger, entry: Entry) -> dict[str, Any]:
    """Return the charge of a charge, a refusal, an answer, an attempt or a fact learned in one."""
    found: Entry | None = entry
    if found is not None and found.kind == "fact":
        found = ledger.entry(int(found.record["answer"]))
    if found is not None and found.kind in {"answer", "attempt", "step"}:
        found = ledger.entry(int(found.record["charge"]))
    return {"table": None, "analyst": None} if found is None else found.record


def _entry_record(ledger: Ledger, entry: Entry, readable: Entry, tables: Tables) -> dict[str, Any]:
    before = None if entry.number == 1 else ledger.entry(entry.number - 1)
    return {
        "number": entry.number,
        "time": entry.record["time"],
        "kind": entry.kind,
        "text": entry_line(readable, tables).strip(),
        "previous": BEGINNING if before is None else before.hash,
        "hash": entry.hash,
        "body": readable.body,
        "withheld": readable is not entry,  # then the hash is of the whole body, and not of this one
    }


async def kept(desk: Desk, person: Person, number: int) -> Answer:
    """Return an answer as the ledger keeps it, to people who may have its certificate."""
    record = await desk.certificate(person, number)
    if record.get("shown") is None:
        raise unknown("answer")
    try:
        return answer_of_certificate(record)
    except InvalidParameter:
        raise unknown("answer") from None


def _svg(answer: Answer) -> str:
    try:
        found: str = answer.plot()._repr_mimebundle_()["image/svg+xml"]
    except TacitError as problem:
        if isinstance(problem, InvalidParameter):  # the extra is missing: the server's state, not the request's
            raise Problem("unavailable", 503, str(problem).partition("\n")[0], "ask the curator") from None
        raise
    return found


_FROM_DOCUMENT = {
    "name": "from",
    "in": "query",
    "required": False,
    "schema": {"type": "integer", "minimum": 1, "default": 1},
    "description": "the number of the first entry to look at",
}
