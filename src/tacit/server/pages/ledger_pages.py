"""The ledger as pages: one's answers, opened again for free, two side by side, and the entries themselves.

An answer is shown as the ledger keeps it: the numbers as they were given, with their ±.
"""

import json
from collections.abc import Mapping
from typing import Any

from fastapi import Request, Response

from tacit.answer import amounts
from tacit.errors import TacitError
from tacit.ledger import Person
from tacit.server.access import require
from tacit.server.desk import Desk
from tacit.server.pages.ask_pages import file_of, looks_of
from tacit.server.pages.visits import Visitors
from tacit.server.problems import unknown
from tacit.server.records import kept, read_entries
from tacit.server.replies import number_of

LOOKED_BACK = 2_000  # entries; older ones are on the ledger's pages
PAGE_ENTRIES = 100


class LedgerPages:
    """The pages that read the ledger."""

    def __init__(self, desk: Desk, visitors: Visitors) -> None:
        self.desk = desk
        self.who = visitors.who

    # --- answers ---

    async def history(self, request: Request) -> Response:
        """Show the answers that one may see, the newest first."""
        guest = await self.who(request)
        return guest.page("history.html", answers=await self.desk.aside(lambda: self._answers(guest.person)))

    async def answer(self, request: Request, number: str) -> Response:
        """Show an answer as the ledger keeps it."""
        guest = await self.who(request)
        return guest.page("kept.html", **await self._shown(guest.person, number))

    async def answer_as(self, request: Request, number: str, kind: str) -> Response:
        """Give a kept answer as csv, json, svg or png, or its certificate."""
        person = (await self.who(request)).person
        if kind == "certificate":
            found = await self.desk.certificate(person, number_of(number, "answer"))
            name = f'attachment; filename="certificate-{int(number)}.json"'
            return Response(json.dumps(found, indent=1), 200, {"Content-Disposition": name}, "application/json")
        return await file_of(await kept(self.desk, person, number_of(number, "answer")), kind)

    async def compare(self, request: Request) -> Response:
        """Show two answers side by side."""
        guest = await self.who(request)
        numbers = request.query_params.getlist("n")[:2]
        return guest.page("compare.html", both=[await self._shown(guest.person, number) for number in numbers])

    async def _shown(self, person: Person, number: str) -> dict[str, Any]:
        place = number_of(number, "answer")
        answer = await kept(self.desk, person, place)
        record = await self.desk.certificate(person, place)
        asked = json.loads(record["chain"]["charge"]["body"])
        return {
            "number": place,
            "cost": amounts(answer.facts),
            "about": asked.get("about", ""),
            "analyst": asked.get("analyst"),
            "time": asked["time"][:16].replace("T", " "),
            "table": record["table"]["name"],
            **await looks_of(answer),
        }

    def _answers(self, person: Person) -> list[dict[str, Any]]:
        ledger = self.desk.ledger
        names = {table.id: table.name for table in ledger.tables()}
        found = []
        read, _ = read_entries(ledger, person, max(1, ledger.length() - LOOKED_BACK), LOOKED_BACK)
        for entry in read:
            record = json.loads(entry["body"])
            if entry["kind"] != "charge" or "about" not in record:
                continue
            answer = ledger.answer_of(entry["number"])
            found.append(
                {
                    "number": None if answer is None or "as_shown" not in answer.record else answer.number,
                    "time": record["time"][:16].replace("T", " "),
                    "who": record["analyst"],
                    "table": names.get(record["table"], "?"),
                    "about": record["about"],
                }
            )
        return found[::-1]

    # --- entries ---

    async def ledger(self, request: Request) -> Response:
        """Show entries, the newest first, and whether the chain holds."""
        guest = await self.who(request)
        require(guest.person, "audit")  # others have their answers; to verify a chain is work
        ledger = self.desk.ledger
        last = await self.desk.aside(ledger.length)
        written = request.query_params.get("from")
        first = max(1, last - PAGE_ENTRIES + 1) if written is None else number_of(written, "entry")
        kind = request.query_params.get("kind", "")
        found, _ = await self.desk.aside(lambda: read_entries(ledger, guest.person, first, PAGE_ENTRIES))
        shown = [each | {"words": _words_of_entry(each)} for each in found if kind in ("", each["kind"])]
        verified = await self.desk.aside(self._verified) if request.query_params.get("verify") else None
        return guest.page(
            "ledger.html",
            entries=shown[::-1],
            first=first,
            last=last,
            reads_all=guest.person.tables is None,  # others are not shown how many entries there are
            size=PAGE_ENTRIES,
            kind=kind,
            verified=verified,
        )

    async def entry(self, request: Request, number: str) -> Response:
        """Show one entry, in words and as it is signed."""
        guest = await self.who(request)
        place = number_of(number, "entry")
        found, _ = await self.desk.aside(lambda: read_entries(self.desk.ledger, guest.person, place, 1))
        if not found or found[0]["number"] != place:
            raise unknown("entry")
        record = json.loads(found[0]["body"])
        return guest.page(
            "entry.html",
            entry=found[0],
            has_answer="as_shown" in record,
            words=_words_of_entry(found[0]),
            body=json.dumps(record, indent=1, ensure_ascii=False),
            number=place,
        )

    def _verified(self) -> dict[str, Any]:
        """Verify the chain; return what is wrong with it, or how many entries it has and by which key it is signed."""
        try:
            found = self.desk.ledger.verify()
        except TacitError as error:
            return {"fault": str(error).partition("\n")[0]}
        return {"fault": None, "entries": found.entries, "key": found.key}


def _words_of_entry(entry: Mapping[str, Any]) -> str:
    """Return an entry's words without its number, time and kind, which stand beside them."""
    return str((*entry["text"].split(None, 3), "")[3])
