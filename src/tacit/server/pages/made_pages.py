"""Made-up rows, dummy rows and counts that run on, as a page: plan, pay once, then look and download for free.

No decision is made here: the page asks like a client of the API, as the same person.
"""

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import pyarrow.csv as arrow_csv
from fastapi import Request, Response

from tacit.answer import answer_from, text_table
from tacit.errors import InvalidParameter
from tacit.json_wire import write_json
from tacit.learning import MadeRows
from tacit.options import MADE_ROWS, RUNNING, Option, read_options
from tacit.server.desk import Desk, Given, told
from tacit.server.pages.visits import Guest, Visitors
from tacit.server.rows_and_days import RowsAndDays

ROWS_SHOWN, DUMMY_ROWS, ROWS_MOST = 10, 1000, 10**6
LISTS = ("columns", "rules", "once")


class MadePages:
    """The page of made-up rows and running counts."""

    def __init__(self, desk: Desk, visitors: Visitors) -> None:
        self.desk, self.who, self.given = desk, visitors.who, RowsAndDays(desk)

    async def show(self, request: Request, table: str) -> Response:
        return await self._page(await self.who(request), table, {})

    async def asked(self, request: Request, table: str) -> Response:
        """Do what a button says: plans and dummy rows are free, and what is charged once is free again."""
        guest = await self.who(request)
        form = {name: str(value).strip() for name, value in (await guest.form()).items()}
        try:
            found = await self._done(guest, table, form)
        except Exception as error:  # noqa: BLE001 - `told` decides what of it may be seen
            return await self._page(guest, table, form, problem=told(error))
        return found if isinstance(found, Response) else await self._page(guest, table, form, shown=found)

    async def _done(self, guest: Guest, table: str, form: Mapping[str, str]) -> str | Response:
        person, verb = guest.person, form.get("do", "")
        if verb == "dummy":
            return _file(await self.given.dummy(person, table, DUMMY_ROWS), f"{table}-dummy.csv")
        if verb in ("plan rows", "make", "download"):
            words = _words(form, MADE_ROWS)
            if verb == "plan rows":
                return str((await self.given.plan_rows(person, table, words))["text"])
            made = await self.given.make_rows(person, table, words)
            if verb == "download":
                count = min(made.people, ROWS_MOST)
                return await self.desk.free(person, lambda: _file(made.rows(count), f"{table}-made-up.csv"))
            return await self.desk.free(person, lambda: _words_about(made))
        words = _words(form, RUNNING)
        if verb == "plan running":
            return str((await self.given.plan_running(person, table, words))["text"])
        if verb == "start":
            return f"Started: {(await self.given.start(person, table, words))['started']}."
        if verb not in ("step", "show"):
            raise InvalidParameter("the form has no such button\nhint: open the page again")
        given = await (self.given.step if verb == "step" else self.given.show)(person, table, words)
        return _totals_shown(given)

    async def _page(self, guest: Guest, table: str, form: Mapping[str, str], shown: str = "", **more: Any) -> Response:
        described = await self.desk.described(guest.person, table)
        columns = described["declaration"]["columns"]
        times = [name for name, each in columns.items() if each["type"] in ("date", "timestamp")]
        return guest.page(
            "made.html", **more, table=table, columns=columns, times=times, form=form, shown=shown, fixes=()
        )


def _words(form: Mapping[str, str], options: Mapping[str, Option]) -> dict[str, Any]:
    given: dict[str, Any] = {name: form[name] for name in options if form.get(name)}
    for name in {*LISTS} & {*given}:
        parts = given[name].split(";" if name == "rules" else ",")
        given[name] = [part.strip() for part in parts if part.strip()]
    if form.get("several") and options is MADE_ROWS:
        given.setdefault("once", [])
    dates = [each.partition("=") for each in given.pop("dates", "").split(",") if each.strip()]
    if dates:
        given["dates"] = {name.strip(): [end.strip() for end in ends.split(" to ")] for name, _, ends in dates}
    if "rows_per_unit" in given and given["rows_per_unit"].isdecimal():
        given["rows_per_unit"] = int(given["rows_per_unit"])
    return read_options(write_json(given), options)


def _words_about(made: MadeRows) -> str:
    rows = made.rows(ROWS_SHOWN).to_pandas().to_string(index=False)
    return f"{made}\n\n{rows}\n\n{made.report()}"


def _totals_shown(given: Given) -> str:
    return text_table(answer_from(json.loads(given.body), json.loads(given.left)), more="")


def _file(rows: Any, name: str) -> Response:
    written = BytesIO()
    arrow_csv.write_csv(rows, written)
    headers = {"Content-Disposition": f'attachment; filename="{name.encode("ascii", "replace").decode()}"'}
    return Response(written.getvalue(), 200, headers, media_type="text/csv; charset=utf-8")
