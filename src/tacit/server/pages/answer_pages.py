"""Answers as pages: the question in words, its price, the numbers beside their picture, and files to take away.

An answer that was just given and one that the ledger keeps have the same page. Opening one again is free.
"""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastapi import Request, Response

from tacit.answer import Answer, answer_from, answer_record, cells, closing_lines, svg_for_page
from tacit.json_wire import write_json
from tacit.ledger import Person
from tacit.numbers import brief
from tacit.server.desk import Desk, Given
from tacit.server.pages.page_look import budget_bars
from tacit.server.pages.question_words import title_of
from tacit.server.pages.visits import Visitors
from tacit.server.pages.wording_of_forms import Chosen, python_of
from tacit.server.problems import Problem, number_of, unknown
from tacit.server.records import kept, read_entries

# An SVG that is opened by itself may not run anything either.
PICTURE_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
PICTURES = {"svg": "image/svg+xml", "narrow.svg": "image/svg+xml", "png": "image/png"}
PICTURES_KEPT = 64
WORKBOOK = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
LOOKED_BACK = 2_000  # entries; older ones are on the ledger's pages
LISTED = 60
LETTERS_MOST = 200  # of a title
_SIZE = re.compile(rb'<svg[^>]*? width="([0-9.]+)"[^>]*? height="([0-9.]+)"')


class AnswerPages:
    """The pages of answers."""

    def __init__(self, desk: Desk, visitors: Visitors) -> None:
        self.desk = desk
        self.who = visitors.who

    async def fresh(self, request: Request, key: str) -> Response:
        """Show the answer to a question that was sent with this key, or that it is on its way."""
        guest = await self.who(request)
        found = await self.desk.aside(lambda: self.desk.ledger.sent_with(key, guest.person.name))
        given = await self.desk.again(guest.person, key)
        if given is None:
            return guest.page("not_yet.html", status=202, key=key)
        table, sent = ("", None) if found is None else found
        answer = _given_answer(given)
        shown = await self._shown(guest.person, answer, table=table, sent=sent or "", where=f"/answers/{key}")
        return guest.page("answer.html", **shown)

    async def fresh_as(self, request: Request, key: str, kind: str, title: str = "") -> Response:
        given = await self.desk.again((await self.who(request)).person, key)
        if given is None:
            raise unknown("answer")
        return await file_of(_given_answer(given), kind, title[:LETTERS_MOST] or None)

    async def kept(self, request: Request, number: str) -> Response:
        guest = await self.who(request)
        return guest.page("answer.html", **await self.values_of(guest.person, number))

    async def kept_as(self, request: Request, number: str, kind: str, title: str = "") -> Response:
        """Give a kept answer as a file, or its certificate."""
        person = (await self.who(request)).person
        if kind == "certificate":
            found = await self.desk.certificate(person, number_of(number, "answer"))
            name = f'attachment; filename="certificate-{int(number)}.json"'
            return Response(json.dumps(found, indent=1), 200, {"Content-Disposition": name}, "application/json")
        found = await kept(self.desk, person, number_of(number, "answer"))
        return await file_of(found, kind, title[:LETTERS_MOST] or None)

    async def compare(self, request: Request) -> Response:
        guest = await self.who(request)
        numbers = request.query_params.getlist("n")[:2]
        return guest.page("compare.html", both=[await self.values_of(guest.person, number) for number in numbers])

    async def history(self, request: Request) -> Response:
        """Show the answers that one may see, the newest first."""
        guest = await self.who(request)
        answers = (await self.desk.aside(lambda: self._listed(guest.person)))[:LISTED]
        for table in {each["table"] for each in answers if each["sent"]}:
            own = [each for each in answers if each["table"] == table and each["sent"]]
            titles = await self._titles(guest.person, table, [each["sent"] for each in own])
            for each, title in zip(own, titles, strict=True):
                each["title"] = title
        return guest.page("history.html", answers=answers)

    async def values_of(self, person: Person, number: str) -> dict[str, Any]:
        """Return what a page shows of a kept answer, to people who may have its certificate."""
        place = number_of(number, "answer")
        answer = await kept(self.desk, person, place)
        record = await self.desk.certificate(person, place)
        asked = json.loads(record["chain"]["charge"]["body"])
        return await self._shown(
            person,
            answer,
            table=record["table"]["name"],
            sent=asked.get("sent") or "",
            about=asked.get("about", ""),
            where=f"/history/{place}",
            number=place,
            analyst=asked.get("analyst"),
            time=asked["time"],
        )

    async def _shown(
        self,
        person: Person,
        answer: Answer,
        *,
        table: str,
        sent: str,
        where: str,
        about: str = "",
        number: int | None = None,
        analyst: str | None = None,
        time: str = "",
    ) -> dict[str, Any]:
        """Return what a page shows of an answer: fresh and kept ones have the same."""
        facts = answer.facts
        sql, asked = _typed(sent)
        spending: dict[str, str] = {name: str(asked[name]) for name in ("epsilon", "error") if name in asked}
        (title,) = await self._titles(person, table, [sent])
        bars = await self.desk.aside(lambda: budget_bars(self.desk.ledger, table, person.name)) if table else []
        epsilon, delta = facts.loss["epsilon"], facts.loss["delta"]
        return {
            "title": title or " and ".join(answer.columns) or "Answer",
            "table": table,
            "time": (time or str(facts.receipt.get("time", "")))[:16].replace("T", " "),
            "analyst": None if analyst == person.name else analyst,
            "number": number or facts.receipt.get("entry"),
            "where": where,
            "price": str(facts.loss["text"]) if epsilon is None else f"ε {brief(epsilon)}",
            "delta": brief(delta) if delta else "",
            "bars": bars,
            "more": await self._more_like(person, table, epsilon),
            "sql": sql or about,
            "python": python_of(Chosen(mode="sql"), table, spending, sql) if sql else "",
            "kinds": _files(answer),
            **await looks_of(answer),
        }

    async def _more_like(self, person: Person, table: str, epsilon: float | None) -> int:
        """Return how many more answers of this price the budget admits, by addition; 0 if that is not known."""
        try:
            left = (await self.desk.budget(person, table))["laplace"]["epsilon"] if epsilon else 0
        except Problem:
            return 0
        return int(left / epsilon) if left and epsilon else 0

    async def _titles(self, person: Person, table: str, bodies: list[str]) -> list[str]:
        """Return questions in words, as they were sent; empty for one that cannot be read any more."""
        try:
            found = await self.desk.read(person, table, bodies)
        except Problem:  # the table is not in the catalog any more
            return [""] * len(bodies)
        return ["" if each is None else title_of(each) for each in found]

    def _listed(self, person: Person) -> list[dict[str, Any]]:
        ledger = self.desk.ledger
        names = {table.id: table.name for table in ledger.tables()}
        found = []
        read, _ = read_entries(ledger, person, max(1, ledger.length() - LOOKED_BACK), LOOKED_BACK)
        for entry in read:
            record = json.loads(entry["body"])
            if entry["kind"] != "charge" or "about" not in record:
                continue
            answer = ledger.answer_of(entry["number"])
            sql, _ = _typed(record.get("sent") or "")
            found.append(
                {
                    "number": None if answer is None or "as_shown" not in answer.record else answer.number,
                    "time": record["time"][:16].replace("T", " "),
                    "who": record["analyst"],
                    "table": names.get(record["table"], "?"),
                    "about": sql or record["about"],
                    "sent": record.get("sent") or "",
                    "title": "",
                }
            )
        return found[::-1]


def _typed(sent: str) -> tuple[str, dict[str, Any]]:
    """Return the SQL of a request as it was typed, and the whole request."""
    asked = json.loads(sent) if sent else {}
    return str(asked.get("sql") or ""), asked


def _given_answer(given: Given) -> Answer:
    return answer_from(json.loads(given.body), json.loads(given.left))


# ---- files -----------------------------------------------------------------------------------------------------------


def _files(answer: Answer) -> list[tuple[str, str]]:
    """Return the files that an answer can be taken away as: their endings and their names."""
    keys = [name for name in answer.columns if name not in answer.aggregates]
    book = [("xlsx", "Excel")] if find_spec("openpyxl") is not None and not answer.parts else []
    book += [("crossed.xlsx", f"Excel, {keys[-1]} across")] if book and len(keys) > 1 else []
    pictures = [] if answer.parts else [("png", "PNG"), ("svg", "SVG")]
    return [("csv", "CSV"), *book, ("json", "JSON"), *pictures, ("md", "Note for the public")]


async def file_of(answer: Answer, kind: str, title: str | None = None) -> Response:
    """Return an answer as csv, json, a picture, or with this title a workbook or a note for the public."""
    if kind == "csv":
        return Response(answer.to_csv(), media_type="text/csv; charset=utf-8")
    if kind == "json":
        return Response(write_json(json.loads(answer.to_json())), media_type="application/json")
    if kind == "md":
        return Response(str(answer.note(title=title)), media_type="text/markdown; charset=utf-8")
    if kind in ("xlsx", "crossed.xlsx") and not answer.parts:
        keys = [name for name in answer.columns if name not in answer.aggregates]
        across = keys[-1] if kind == "crossed.xlsx" and keys else None
        book = await asyncio.to_thread(_written, partial(answer.to_excel, columns=across, title=title), "answer.xlsx")
        return Response(book, media_type=WORKBOOK)
    if kind not in PICTURES:
        raise unknown("answer")
    picture = await asyncio.to_thread(_picture, write_json(answer_record(answer)), kind)
    return Response(picture, 200, dict(PICTURE_HEADERS), media_type=PICTURES[kind])


async def looks_of(answer: Answer) -> dict[str, Any]:
    """Return an answer's table, the lines below it, and the sizes of its pictures."""
    head, body = cells(answer) if not answer.parts else _cells_of_parts(answer)
    spent = replace(answer, facts=replace(answer.facts, left={}))  # the page has the rest of the budget as of now
    shown = {"head": head, "body": body, "closing": closing_lines(spent, more=""), "details": spent.details()}
    return shown | {"sizes": await sizes_of(answer)}


def _cells_of_parts(answer: Answer) -> tuple[list[tuple[str, bool]], list[list[str]]]:
    """Return the numbers of a workload as one table: the question, the group, the number and its interval."""
    body = []
    for name, part in answer.parts.items():
        head, rows = cells(part)
        keys = [at for at, (column, _) in enumerate(head) if column in part.columns and column not in part.aggregates]
        for row in rows:
            group = ", ".join(row[at] for at in keys)
            numbers = [(head[at][0], *row[at : at + 2]) for at in range(len(keys), len(head), 2)]
            body += [[name, group, *each] for each in numbers]
    return [("question", False), ("group", False), ("number", False), ("value", True), ("±", True)], body


async def sizes_of(answer: Answer) -> dict[str, tuple[int, int]]:
    """Return the width and height of an answer's two SVG pictures, so that its page keeps the place for them."""
    body = write_json(answer_record(answer))
    pictures = {kind: await asyncio.to_thread(_picture, body, kind) for kind in ("svg", "narrow.svg")}
    found = {kind: _SIZE.search(picture) for kind, picture in pictures.items()}
    return {
        kind: (640, 360) if size is None else (round(float(size[1])), round(float(size[2])))
        for kind, size in found.items()
    }


@lru_cache(maxsize=PICTURES_KEPT)
def _picture(body: bytes, kind: str) -> bytes:
    """Return a picture of an answer; drawing takes long enough that others must not wait for it, and once is enough."""
    answer = answer_from(json.loads(body), {})
    answer = next(iter(answer.parts.values()), answer)  # of a workload, its first question
    if kind == "png":
        return _written(answer.plot, "answer.png")
    return svg_for_page(answer, narrow=kind == "narrow.svg").encode()


def _written(write: Callable[[Path], object], name: str) -> bytes:
    with TemporaryDirectory() as folder:
        path = Path(folder) / name
        write(path)
        return path.read_bytes()
