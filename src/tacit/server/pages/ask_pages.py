"""Ask: the builder's choices become a plan while the visitor types, and an answer after payment.

No decision is made here: a page asks the desk like a client of the API, as the same person.

The position of a refusal on the page, and the button that mends it.

A refusal has words, a hint and, for SQL, a line and a column. The builder's SELECT has one line for each part of the
form, so the line identifies the field.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Decimal
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from tacit.answer import Answer, answer_from, answer_record, cells, closing_lines, svg_for_page
from tacit.json_wire import write_json
from tacit.ledger import Person
from tacit.noise import fresh_bytes
from tacit.options import read_wording
from tacit.server.desk import Desk, Given, told
from tacit.server.pages.page_look import budget_bars, lines_of_plan, page
from tacit.server.pages.visits import Guest, Visitors
from tacit.server.pages.wording_of_forms import (
    AGGREGATES,
    PART_WORDS,
    WHAT_WORDS,
    Chosen,
    by_choices,
    chosen_from,
    columns_for,
    python_of,
    sql_of,
)
from tacit.server.problems import Problem, unknown

_PLACE = re.compile(r"\(line (\d+), column (\d+)\)")
_MEANT = re.compile(r"did you mean '([^']+)'")
_UNKNOWN = re.compile(r"there is no (?:column|table|function) '([^']+)'")
_FIELDS = {"SELECT": "what", "FROM": "what", "WHERE": "where", "GROUP": "by"}
_SPENDING = re.compile(r"\b(epsilon|error|delta|budget)\b")


@dataclass(frozen=True)
class Fix:
    """A button: its words, and the values that it sets."""

    words: str
    value: str  # field=text


def field_of(problem: Problem, chosen: Chosen, sql: str) -> str:
    """Return the field at which a refusal stands."""
    place = _PLACE.search(problem.detail)
    if problem.kind == "no-room" or (place is None and _SPENDING.search(problem.detail + problem.hint)):
        return "spend"
    if chosen.mode == "sql":
        return "sql"
    lines = sql.splitlines()
    line = lines[int(place[1]) - 1] if place and int(place[1]) <= len(lines) else ""
    if place is None and chosen.where and not chosen.by:
        return "where"
    return _FIELDS.get(line.split(" ")[0], "what")


def two_digits(amount: float) -> str:
    """Return an amount in two digits, rounded down.

    >>> two_digits(3.119), two_digits(0.0456), two_digits(2.0), two_digits(128.7)
    ('3.1', '0.045', '2', '120')
    """
    exact = Decimal(repr(amount))
    return f"{exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), ROUND_DOWN).normalize():f}"


def fixes_of(problem: Problem, chosen: Chosen, sql: str, epsilon: str) -> list[Fix]:
    """Return the buttons that mend a refusal; `epsilon` is an amount that fits, or None."""
    field = field_of(problem, chosen, sql)
    meant, unknown = _MEANT.search(problem.hint), _UNKNOWN.search(problem.detail)
    if meant and unknown and field in ("where", "sql"):
        text = getattr(chosen, field)
        found = re.sub(rf"\b{re.escape(unknown[1])}\b", lambda _: meant[1], text)
        return [Fix(meant[1], f"{field}={found}")] if found != text else []
    return [Fix(f"ε = {epsilon}", f"epsilon={epsilon}")] if field == "spend" and epsilon else []


def mended(chosen: Chosen, fix: str) -> Chosen:
    """Return what is chosen after a button of `fixes_of`."""
    field, _, text = fix.partition("=")
    if field == "epsilon":
        return replace(chosen, epsilon=text, error="")
    if field == "where":
        return replace(chosen, where=text)
    return replace(chosen, sql=text) if field == "sql" else chosen


# An SVG that is opened by itself may not run anything either.
PICTURE_HEADERS = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
PICTURES = {"svg": "image/svg+xml", "narrow.svg": "image/svg+xml", "png": "image/png"}
PICTURES_KEPT = 64
_SIZE = re.compile(rb'<svg[^>]*? width="([0-9.]+)"[^>]*? height="([0-9.]+)"')


class AskPages:
    """The pages for asking."""

    def __init__(self, desk: Desk, visitors: Visitors) -> None:
        self.desk = desk
        self.who = visitors.who

    async def ask(self, request: Request, table: str) -> Response:
        """Show the builder, filled in from an address: to repeat and change a question."""
        guest = await self.who(request)
        chosen = chosen_from(request.query_params)
        if not chosen.spends:
            left = (await self.desk.budget(guest.person, table))["epsilon"]
            chosen = replace(chosen, epsilon=f"{left / 10:.1g}" if left else "")
        if chosen.mode == "sql" and not chosen.sql:  # something to begin with
            chosen = replace(chosen, sql=sql_of(Chosen(), table, ""))
        return await self._ask_page(guest, table, chosen)

    async def plan(self, request: Request, table: str) -> Response:
        """Show the plan of the current choices: free; only the plan for a page that updates while the visitor types."""
        guest = await self.who(request)
        form = await guest.form()
        chosen = _with_buttons(mended(chosen_from(form), str(form.get("fix") or "")), form)
        if request.headers.get("tacit-part") == "plan":
            described = await self.desk.described(guest.person, table)
            values = await self._planned(guest.person, table, chosen, described)
            return page(request, "plan.html", table=table, is_part=True, **values)
        return await self._ask_page(guest, table, chosen)

    async def _ask_page(self, guest: Guest, table: str, chosen: Chosen, problem: Problem | None = None) -> Response:
        person = guest.person
        described = await self.desk.described(person, table)
        declared = described["declaration"]
        values = await self._planned(person, table, chosen, described)
        if problem is not None:
            values |= await self._at_its_field(person, table, problem, chosen, values["sql"], described)
        whats = {what: columns_for(what, declared["columns"], declared["unit"]) for what in AGGREGATES}
        return guest.page(
            "ask.html",
            status=200 if problem is None else problem.status,
            table=table,
            described=described,
            chosen=chosen,
            whats=whats,
            what_words=WHAT_WORDS,
            part_words=PART_WORDS,
            bars=await asyncio.to_thread(budget_bars, self.desk.ledger, table, person.name),
            columns=[name for name in declared["columns"] if name != declared["unit"]],
            by_choices=by_choices(declared["columns"], declared["unit"]),
            key=fresh_bytes(16).hex(),
            is_part=False,
            **values,
        )

    async def _at_its_field(
        self,
        person: Person,
        table: str,
        problem: Problem,
        chosen: Chosen,
        sql: str,
        described: Mapping[str, Any],
    ) -> dict[str, Any]:
        field = field_of(problem, chosen, sql)
        epsilon = ""
        if field == "spend" and described["budget"]["epsilon"]:
            epsilon = await self._fitting(person, table, chosen, sql, described["budget"])
        return {"problem": problem, "field": field, "fixes": fixes_of(problem, chosen, sql, epsilon)}

    async def _fitting(self, person: Person, table: str, chosen: Chosen, sql: str, left: Mapping[str, Any]) -> str:
        """Return the largest amount, in two digits, with a plan that fits into the rest of the budget; None if no
        amount fits.

        How much fits depends on the noise of the plan, so each amount that may be left is planned.
        """
        kinds = {left[kind]["epsilon"] for kind in ("gaussian", "laplace")}
        for amount in (two_digits(each) for each in sorted(kinds, reverse=True) if each):
            tried = replace(chosen, epsilon=amount, error="")
            try:
                planned = await self.desk.plan(person, table, _wording(sql, tried, may_answer=False))
            except Exception as error:  # noqa: BLE001 - a refusal of this amount: `told` logs what is not ours
                told(error)
                continue
            if planned["fits"]:
                return amount
        return ""

    async def _planned(
        self, person: Person, table: str, chosen: Chosen, described: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the plan of the current choices, or the problem and its position."""
        sql = sql_of(chosen, table, described["declaration"]["unit"])
        found: dict[str, Any] = {"sql": sql, "plan": None, "python": "", "problem": None, "field": "", "fixes": ()}
        if not sql or not chosen.spends:
            return found
        try:
            found["python"] = python_of(chosen, table, chosen.spending)
            planned = await self.desk.plan(person, table, _wording(sql, chosen, may_answer=False))
            found["plan"] = {**planned, "lines": lines_of_plan(planned["text"])}
        except Exception as error:  # noqa: BLE001 - `told` decides what of it may be seen
            found |= await self._at_its_field(person, table, told(error), chosen, sql, described)
        return found

    async def asked(self, request: Request, table: str) -> Response:
        """Ask, at the cost shown in the plan; the answer has a separate address."""
        guest = await self.who(request)
        person, form = guest.person, await guest.form()
        chosen = chosen_from(form)
        described = await self.desk.described(person, table)
        sql = sql_of(chosen, table, described["declaration"]["unit"])
        key = str(form.get("key") or "")
        try:
            wording = _wording(sql, chosen, may_answer=True)
            await self.desk.ask(person, table, wording, _form_key(key))
        except Exception as error:  # noqa: BLE001 - `told` decides what of it may be seen
            return await self._ask_page(guest, table, chosen, told(error))
        return RedirectResponse(f"/answers/{key}", 303)

    # --- answers ---

    async def answer(self, request: Request, key: str) -> Response:
        """Show an answer: the table, the picture, the learned facts and corrections, the cost."""
        guest = await self.who(request)
        given = await self.desk.again(guest.person, key)
        if given is None:
            return guest.page("not_yet.html", status=202, key=key)
        answer = _given_answer(given)
        table, sql, python = await self._as_asked(guest.person, key)
        shown = {"answer": answer, "number": answer.facts.receipt.get("entry"), **await looks_of(answer)}
        return guest.page("answer.html", table=table, sql=sql, python=python, key=key, **shown)

    async def _as_asked(self, person: Person, key: str) -> tuple[str, str, str]:
        """Return the table of a question that was sent with this key, and the question as SQL and as Python."""
        found = await self.desk.aside(lambda: self.desk.ledger.sent_with(key, person.name))
        table, sent = ("", None) if found is None else found
        asked = json.loads(sent) if sent else {}
        if "sql" not in asked:
            return table, "", ""
        spending = {name: asked[name] for name in ("epsilon", "error") if name in asked}
        return table, asked["sql"], python_of(Chosen(mode="sql", sql=asked["sql"]), table, spending)

    async def answer_as(self, request: Request, key: str, kind: str) -> Response:
        """Give an answer as csv, json, svg or png."""
        given = await self.desk.again((await self.who(request)).person, key)
        if given is None:
            raise unknown("answer")
        return await file_of(_given_answer(given), kind)


def _wording(sql: str, chosen: Chosen, *, may_answer: bool) -> Any:
    return read_wording(write_json({"sql": sql, **chosen.spending}), may_answer=may_answer)


def _form_key(written: str) -> str:
    if not written or len(written) > 64 or not written.isalnum():
        raise Problem("refused", 422, "this form lacks its key", "open the page again")
    return written


def _given_answer(given: Given) -> Answer:
    return answer_from(json.loads(given.body), json.loads(given.left))


def _with_buttons(chosen: Chosen, form: Any) -> Chosen:
    """Return what is chosen after a button of a page without scripts: one more number, or one less."""
    if form.get("more"):
        return replace(chosen, shown=(*chosen.shown, ("mean", "")))
    if form.get("less") and len(chosen.shown) > 1:
        return replace(chosen, shown=chosen.shown[:-1])
    return chosen


async def file_of(answer: Answer, kind: str) -> Response:
    """Return an answer as csv, json, or a picture."""
    if kind == "csv":
        return Response(answer.to_csv(), media_type="text/csv; charset=utf-8")
    if kind == "json":
        return Response(write_json(json.loads(answer.to_json())), media_type="application/json")
    if kind not in PICTURES:
        raise unknown("answer")
    picture = await asyncio.to_thread(_picture, write_json(answer_record(answer)), kind)
    return Response(picture, 200, dict(PICTURE_HEADERS), media_type=PICTURES[kind])


async def looks_of(answer: Answer) -> dict[str, Any]:
    """Return what a page shows of an answer: its table, the lines below it, and the sizes of its pictures."""
    head, body = cells(answer) if not answer.parts else _cells_of_parts(answer)
    shown = {"head": head, "body": body, "closing": closing_lines(answer, more=""), "details": answer.details()}
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
    if kind != "png":
        return svg_for_page(answer, narrow=kind == "narrow.svg").encode()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "answer.png"
        answer.plot(path)
        return path.read_bytes()
