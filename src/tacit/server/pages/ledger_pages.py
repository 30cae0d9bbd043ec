"""The ledger as pages: its entries, and whether the chain holds."""

import json
from collections.abc import Mapping
from typing import Any

from fastapi import Request, Response

from tacit.errors import TacitError
from tacit.server.access import require
from tacit.server.desk import Desk
from tacit.server.pages.visits import Visitors
from tacit.server.problems import unknown
from tacit.server.records import read_entries
from tacit.server.replies import number_of

LOOKED_BACK = 2_000  # entries; older ones are on the ledger's pages
PAGE_ENTRIES = 100


class LedgerPages:
    """The pages that read the ledger."""

    def __init__(self, desk: Desk, visitors: Visitors) -> None:
        self.desk = desk
        self.who = visitors.who

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
