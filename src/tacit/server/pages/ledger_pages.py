"""The ledger as pages: questions with their entries folded together, other acts with their reasons, and the chain.

A table's health is read from the same entries: the amounts that were spent, by week and person.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from fractions import Fraction
from typing import Any
from urllib.parse import urlencode

from fastapi import Request, Response

from tacit.errors import TacitError
from tacit.ledger import Person
from tacit.numbers import brief, from_text
from tacit.server.access import require, sees
from tacit.server.desk import Desk
from tacit.server.pages.page_look import budget_bars
from tacit.server.pages.visits import Visitors
from tacit.server.problems import number_of, unknown
from tacit.server.records import facts_read, read_entries

PAGE_ENTRIES = 300
LOOKED_BACK = 5_000  # entries of a table's health
KINDS = {
    "question": "questions",
    "budget": "budgets",
    "person": "people",
    "token": "tokens",
    "table": "tables",
    "refusal": "refusals",
    "note": "saved, shared, asked for",
}
_BY = re.compile(r" \(by (?P<who>.+), over HTTP\)$")

Entry = Mapping[str, Any]


@dataclass
class LedgerRow:
    """A question with all its entries, or another act."""

    kind: str
    time: str
    who: str
    table: str
    what: str
    why: str = ""
    spent: Fraction = Fraction(0)
    answer: int | None = None
    entries: list[Entry] = field(default_factory=list)

    @property
    def epsilon(self) -> str:
        """The amount spent, in two digits."""
        return brief(self.spent) if self.spent else ""


class LedgerPages:
    """The pages that read the ledger."""

    def __init__(self, desk: Desk, visitors: Visitors) -> None:
        self.desk = desk
        self.who = visitors.who

    async def ledger(self, request: Request) -> Response:
        """Show questions and acts, the newest first, and whether the chain holds."""
        guest = await self.who(request)
        require(guest.person, "audit")  # others have their answers; to verify a chain is work
        ledger = self.desk.ledger
        last = await self.desk.aside(ledger.length)
        written = request.query_params.get("from")
        first = max(1, last - PAGE_ENTRIES + 1) if not written else number_of(written, "entry")
        chosen = {name: request.query_params.get(name, "") for name in ("who", "table", "kind")}
        read, _ = await self.desk.aside(lambda: read_entries(ledger, guest.person, first, PAGE_ENTRIES))
        names = await self.desk.aside(lambda: {table.id: table.name for table in ledger.tables()})
        rows = rows_of(read, names)
        verified = await self.desk.aside(self._verified) if request.query_params.get("verify") else None
        asked = urlencode({name: value for name, value in chosen.items() if value})
        return guest.page(
            "ledger.html",
            rows=[row for row in rows if all(getattr(row, name) == value for name, value in chosen.items() if value)],
            people=sorted({row.who for row in rows if row.who}),
            tables=sorted({row.table for row in rows if row.table}),
            kinds=KINDS,
            chosen=chosen,
            query=f"{asked}&" if asked else "",
            first=first,
            last=last,
            reads_all=guest.person.tables is None,  # others are not shown how many entries there are
            size=PAGE_ENTRIES,
            verified=verified,
        )

    async def entry(self, request: Request, number: str) -> Response:
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

    async def health(self, request: Request, table: str) -> Response:
        """Show what is known of a table, and what was spent on it, by week and person."""
        guest = await self.who(request)
        require(guest.person, "audit", table)
        facts = await self.desk.aside(lambda: facts_read(self.desk, guest.person, table))
        spent = await self.desk.aside(lambda: self._spent(guest.person, table))
        return guest.page(
            "facts.html",
            table=table,
            facts=facts,
            bars=await self.desk.aside(lambda: budget_bars(self.desk.ledger, table, None)),
            spenders=sorted({who for amounts in spent.values() for who in amounts}),
            weeks=[
                (week, {who: f"ε {brief(amount)}" for who, amount in amounts.items()})
                for week, amounts in sorted(spent.items(), reverse=True)
            ],
            looked_back=LOOKED_BACK,
        )

    def _spent(self, person: Person, table: str) -> dict[str, dict[str, Fraction]]:
        """Return what each person spent on a table, by the Monday of the week."""
        ledger = self.desk.ledger
        ids = {each.id for each in ledger.tables() if each.name == table and sees(person, table)}
        found: dict[str, dict[str, Fraction]] = {}
        for entry in ledger.entries(max(1, ledger.length() - LOOKED_BACK)):
            record = entry.record
            if entry.kind == "charge" and record["table"] in ids and record["epsilon"] is not None:
                day = date.fromisoformat(record["time"][:10])
                week = found.setdefault(str(day - timedelta(days=day.weekday())), {})
                who = record["analyst"] or "nameless"
                week[who] = week.get(who, Fraction(0)) + from_text(record["epsilon"])
        return found

    def _verified(self) -> dict[str, Any]:
        """Verify the chain; return what is wrong with it, or how many entries it has and by which key it is signed."""
        try:
            found = self.desk.ledger.verify()
        except TacitError as error:
            return {"fault": str(error).partition("\n")[0]}
        return {"fault": None, "entries": found.entries, "key": found.key}


def rows_of(read: Sequence[Entry], names: Mapping[str, str]) -> list[LedgerRow]:
    """Return entries as rows, the newest first: those of one question are folded into its row.

    Facts are learned by charges of their own, just before the question that they were learned for: all charges of one
    call are a row. Facts that were learned ahead are a row of their own.
    """
    rows: list[LedgerRow] = []
    by_charge: dict[int, LedgerRow] = {}
    learning: dict[str, LedgerRow] = {}
    for each in read:
        record = json.loads(each["body"])
        entry = {"number": each["number"], "words": f"{each['kind']}: {_words_of_entry(each)}"}
        kind, charge = each["kind"], record.get("charge")
        if kind == "fact" and record.get("answer") in by_charge:
            charge = record["answer"]
        if kind in ("answer", "attempt", "step", "fact") and charge in by_charge:
            row = by_charge[charge]
            row.entries.append(entry)
            by_charge[each["number"]] = row
            if kind == "answer" and "as_shown" in record:
                row.answer = each["number"]
            continue
        row = _row(each, record, names)
        if kind == "charge":
            call = (record.get("call") or {}).get("id", "")
            before = learning.pop(call, None)
            if before is not None:
                row = _joined(before, row, asks="learns" not in record)
            if "learns" in record and call:
                learning[call] = row
            by_charge[each["number"]] = row
        row.entries.append(entry)
        if not any(row is other for other in rows):
            rows.append(row)
    return sorted(rows, key=lambda row: row.entries[-1]["number"], reverse=True)


def _joined(before: LedgerRow, row: LedgerRow, *, asks: bool) -> LedgerRow:
    """Return a row of learning with its next charge: the question's own words, if that is the question."""
    before.spent += row.spent
    before.time = row.time
    before.what = row.what if asks else before.what
    return before


def _row(entry: Entry, record: Mapping[str, Any], names: Mapping[str, str]) -> LedgerRow:
    kind = entry["kind"]
    reason = str(record.get("reason") or "")
    by = _BY.search(reason)
    why = reason if by is None else reason[: by.start()]
    words = _words_of_entry(entry)
    what = words.removesuffix(reason).strip() if reason else words
    named = names.get(str(record.get("table")), "")
    if kind == "charge":
        sent = json.loads(record.get("sent") or "{}")
        about = str(sent.get("sql") or record.get("about") or "")
        learns = record.get("learns", {}).get("words", "")
        spent = from_text(record["epsilon"]) if record.get("epsilon") else Fraction(0)
        what = about or f"learned: {learns}"
        return LedgerRow("question", _time(record), record["analyst"] or "nameless", named, what, spent=spent)
    if kind == "refusal":
        return LedgerRow(kind, _time(record), record.get("analyst") or "nameless", named, words)
    if kind == "note":
        words = words.removeprefix(f"{record['table']} by {record['name']}: ").removesuffix(reason).strip()
        return LedgerRow(kind, _time(record), record["name"] or "nameless", record["table"], words, reason)
    if kind == "table":
        named = record["name"]
    if kind == "budget":  # of a table's people, which several tables may share
        named = next((name for name in names.values() if re.match(rf"{re.escape(name)}[, ]", words)), "")
    return LedgerRow(kind, _time(record), by["who"] if by else "", named, f"{kind}: {what}", why)


def _time(record: Mapping[str, Any]) -> str:
    return str(record["time"])[:16].replace("T", " ")


def _words_of_entry(entry: Entry) -> str:
    """Return an entry's words without its number, time and kind, which stand beside them."""
    return str((*entry["text"].split(None, 3), "")[3])
