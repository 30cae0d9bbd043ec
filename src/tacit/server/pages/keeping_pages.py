"""Pages to keep and to share answers: saved ones on one page, links that show one, requests for more budget.

None of them charges a budget or reads a row. Names, titles and reasons that people type are text. A link shows one
answer without a sign-in, until its day or until a curator ends it, and only while its maker is a curator of the table.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from fastapi import Request, Response

from tacit.ledger import Note, Person
from tacit.numbers import brief, decimal_meaning, positive, show
from tacit.server import curating
from tacit.server.access import require, sees
from tacit.server.desk import Desk
from tacit.server.pages.answer_pages import PICTURES, AnswerPages, file_of
from tacit.server.pages.page_look import page
from tacit.server.pages.visits import Guest, Visitors
from tacit.server.problems import Problem, number_of, unknown
from tacit.server.records import kept

LINK_DAYS = (7, 30, 90, 365)
TITLE_MAX = 200
SHOWN_MAX = 12  # answers on the page of saved ones


class KeepingPages:
    """The pages of saved answers, links and requests."""

    def __init__(self, desk: Desk, visitors: Visitors, answers: AnswerPages) -> None:
        self.desk = desk
        self.who = visitors.who
        self.answers = answers

    # --- saved answers ---

    async def saved(self, request: Request) -> Response:
        """Show the answers that a person has saved, side by side: free."""
        guest = await self.who(request)
        notes = await self.desk.aside(lambda: self._own(guest.person, "saved"))
        shown = []
        for note in notes[::-1][:SHOWN_MAX]:
            try:
                found = await self.answers.values_of(guest.person, str(note.about["answer"]))
            except Problem:  # a table that this person may not see any more
                continue
            shown.append({**found, "id": note.id, "name": note.about["title"]})
        return guest.page("saved.html", answers=shown)

    async def save(self, request: Request) -> Response:
        guest = await self.who(request)
        form = await guest.form()
        number = number_of(str(form.get("answer") or ""), "answer")
        await kept(self.desk, guest.person, number)  # only one's own, or by one's role
        table = (await self.desk.certificate(guest.person, number))["table"]["name"]
        title = str(form.get("title") or "").strip()[:TITLE_MAX] or f"Answer {number}"
        about = {"title": title, "answer": number}
        add = self.desk.ledger.add_note
        await self.desk.aside(lambda: add("saved", name=guest.person.name, table=table, about=about))
        return await self.saved(request)

    async def end(self, request: Request) -> Response:
        """End a saved answer of one's own, or a link or a request as a curator of its table."""
        guest = await self.who(request)
        form = await guest.form()
        note = await self.desk.aside(lambda: self.desk.ledger.note(str(form.get("id") or "")))
        if note is None or not self._may_end(guest.person, note):
            raise unknown("note")
        reason = str(form.get("reason") or "")
        await self.desk.aside(lambda: self.desk.ledger.end_note(note.id, name=guest.person.name, reason=reason))
        return guest.page("said.html", words="Done, and in the ledger.", back=_page_of(note))

    def _may_end(self, person: Person, note: Note) -> bool:
        is_own = note.name == person.name
        return is_own or (note.of != "saved" and person.role == "curator" and sees(person, note.table))

    def _own(self, person: Person, of: Any) -> list[Note]:
        return [note for note in self.desk.ledger.notes(of) if note.name == person.name]

    # --- links ---

    async def share(self, request: Request, number: str) -> Response:
        """Make a link that shows an answer: only this page shows it."""
        guest = await self.who(request)
        form = await guest.form()
        place = number_of(number, "answer")
        await kept(self.desk, guest.person, place)
        table = (await self.desk.certificate(guest.person, place))["table"]["name"]
        require(guest.person, "curate", table)
        days = next((each for each in LINK_DAYS if str(each) == form.get("days")), LINK_DAYS[0])
        until = datetime.now(UTC) + timedelta(days=days)
        reason = _given_reason(form)
        add = self.desk.ledger.add_link
        secret = await self.desk.aside(
            lambda: add(name=guest.person.name, table=table, answer=place, until=until, reason=reason)
        )
        link = f"{request.url.scheme}://{request.headers.get('host', '')}/shared/{secret}"
        return guest.page("shared_now.html", link=link, until=until.date().isoformat(), number=place)

    async def shared(self, request: Request, secret: str) -> Response:
        person, note = await self._linked(secret)
        values = await self.answers.values_of(person, str(note.about["answer"]))
        shown = {**values, "where": f"/shared/{secret}", "until": str(note.until)[:10]}
        return page(request, "shared.html", person=None, visit=None, **shown)

    async def shared_as(self, request: Request, secret: str, kind: str) -> Response:
        """Give the picture or the numbers of such an answer."""
        del request
        person, note = await self._linked(secret)
        if kind not in (*PICTURES, "csv"):
            raise unknown("answer")
        return await file_of(await kept(self.desk, person, int(note.about["answer"])), kind)

    async def _linked(self, secret: str) -> tuple[Person, Note]:
        """Return who made a link, while they are a curator of its table, and its note."""
        note = await self.desk.doubted(lambda: self.desk.ledger.linked(secret))
        person = None if note is None else await self.desk.aside(lambda: self._maker(note))
        if note is None or person is None:
            raise unknown("link")
        return person, note

    def _maker(self, note: Note) -> Person | None:
        person = self.desk.ledger.person(note.name)
        if person is None or person.role != "curator" or not sees(person, note.table):
            return None
        is_over = person.ended or (person.until is not None and person.until <= _now())
        return None if is_over else person

    # --- requests ---

    async def wish(self, request: Request, table: str) -> Response:
        """Ask the curator for more budget: an entry with the amount and the reason."""
        guest = await self.who(request)
        form = await guest.form()
        require(guest.person, "ask", table)
        written = str(form.get("epsilon") or "").strip()
        epsilon = show(positive(decimal_meaning(written, name="epsilon"), name="epsilon"))
        reason, about = _given_reason(form), {"epsilon": epsilon}
        add = self.desk.ledger.add_note
        await self.desk.aside(lambda: add("request", name=guest.person.name, table=table, about=about, reason=reason))
        words = f"The curators of {table} see the request for ε {epsilon} more, with its reason."
        return guest.page("said.html", words=words, back=f"/tables/{table}")

    async def open_notes(self, guest: Guest) -> dict[str, Any]:
        """Return the requests and links that a curator may act on."""
        if guest.person.role != "curator":
            return {"requests": [], "shares": []}
        requests = await self.desk.aside(lambda: self.desk.ledger.notes("request"))
        shares = await self.desk.aside(lambda: self.desk.ledger.notes("link"))
        seen = [note for note in requests if sees(guest.person, note.table)]
        wholes = [await self.desk.aside(lambda note=note: self._whole(note)) for note in seen]  # type: ignore[misc]
        return {
            "requests": [
                {"note": note, "whole": None if whole is None else brief(whole[0]), "whose": whole and whole[1]}
                for note, whole in zip(seen, wholes, strict=True)
            ],
            "shares": [note for note in shares if sees(guest.person, note.table)],
        }

    def _whole(self, note: Note) -> tuple[Fraction, str | None, Fraction] | None:
        """Return the budget that granting a request sets: ε, for whom, δ; None if the budget is not one of ε."""
        registered = self.desk.ledger.table(note.table)
        statuses = () if registered is None else self.desk.ledger.budget_status(registered, note.name)
        lasting = [each.budget for each in statuses if each.budget.period is None and not each.budget.is_revoked]
        own = [each for each in lasting if each.analyst is not None] or lasting
        if not own or own[0].analyst == "*":
            return None
        epsilon = getattr(own[0].loss, "epsilon", None)
        more = Fraction(note.about["epsilon"])
        return None if epsilon is None else (epsilon + more, own[0].analyst, getattr(own[0].loss, "delta", Fraction(0)))

    async def grant(self, request: Request) -> Response:
        """Grant a request: the budget is raised by the amount, and the request is ended."""
        guest = await self.who(request)
        form = await guest.form()
        note = await self.desk.aside(lambda: self.desk.ledger.note(str(form.get("id") or "")))
        if note is None or note.of != "request" or not note.holds or not sees(guest.person, note.table):
            raise unknown("request")
        require(guest.person, "curate", note.table)

        def act() -> Mapping[str, Any]:
            whole = self._whole(note)
            if whole is None:
                hint = "set it on the page of its budgets"
                raise Problem("refused", 422, "this budget cannot be raised with one button", hint)
            amounts = {"epsilon": show(whole[0]), **({"delta": show(whole[2])} if whole[2] else {})}
            reason = f"asked for by {note.name}: {note.reason}"[: curating.REASON_MAX]
            record = {"table": note.table, **({"analyst": whole[1]} if whole[1] else {}), **amounts, "reason": reason}
            granted = curating.grant(self.desk, guest.person, record)
            self.desk.ledger.end_note(note.id, name=guest.person.name, reason="granted")
            return granted

        granted = await self.desk.aside(act)
        return guest.page("said.html", words=f"{note.table}: {granted['budget']}, from now on.", back="/")


def _given_reason(form: Mapping[str, Any]) -> str:
    written = str(form.get("reason") or "").strip()
    if not written:
        raise Problem("refused", 422, "a reason is needed", "write a reason, for the record")
    return written[: curating.REASON_MAX]


def _page_of(note: Note) -> str:
    return "/saved" if note.of == "saved" else "/"


def _now() -> str:
    return datetime.now(UTC).isoformat()
