"""Notes: saved answers, links that show an answer to people without a token, and requests for more budget.

A note is an entry of the chain, and a later entry under its id replaces it: so it is ended. A note charges no budget
and gives no access to a table. The secret of a link has 256 random bits, and the ledger keeps only a hash of it.

Steps: the numbers of a stream that was charged once, released part after part, each part stored before it leaves.

A step is an entry of its own. It names the charge of its stream, which has its answer, and the numbers from `first` to
before `end`. A step begins where the step before it ends, and the transaction that adds one checks that: of two
processes that drew the same part, the second finds the numbers of the first, and drops its own
(docs/proofs/streams.md).
"""

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from hmac import compare_digest
from typing import Any, Literal, TypeVar

from tacit.errors import InvalidParameter, LedgerError
from tacit.ledger.chain import canonical, digest, fresh_secret
from tacit.ledger.draft import NOTE, LedgerDraft
from tacit.ledger.entry import Entry, Record
from tacit.ledger.roles import secret_hash, until_text
from tacit.ledger.spelling import name_key

NoteKind = Literal["saved", "link", "request"]
OPEN_MAX = {"saved": 200, "link": 200, "request": 5}  # of one person
TEXT_MAX = 900

_LINK = re.compile(r"([0-9a-f]{16})_[A-Za-z0-9_-]{43}").fullmatch
_PREFIX = "tacit_"  # of tokens, which a link is not
_NO_CHECK = "0" * 64
Outcome = TypeVar("Outcome")


@dataclass(frozen=True)
class Note:
    """A note: who wrote it, about which table, when, and its own facts in `about`. `holds` is whether it is open."""

    id: str
    of: str
    name: str | None
    table: str
    about: Record
    until: str | None
    reason: str
    time: str
    holds: bool


class KeepsNotes:
    """The part of a ledger for notes; the ledger itself has the rest."""

    def _submit(self, step: Callable[[LedgerDraft], Outcome]) -> Outcome:
        raise NotImplementedError

    def _view(self) -> AbstractContextManager[LedgerDraft]:
        raise NotImplementedError

    def add_note(self, of: NoteKind, *, name: str | None, table: str, about: Record, reason: str = "") -> str:
        """Write a note, for the record, and return its id; one person has a limited number of open ones."""
        id, _ = fresh_secret()
        self._submit(lambda draft: _add(draft, id, of, name, table, about, None, _text(reason)))
        return id

    def add_link(self, *, name: str | None, table: str, answer: int, until: "str | date", reason: str) -> str:
        """Return the secret of a new link to an answer, shown only now; for the record, with the day of its end."""
        id, whole = fresh_secret()
        secret, ends, words = whole.removeprefix(_PREFIX), until_text(until), _text(reason)
        about = {"answer": answer, "check": _check(id, secret)}
        self._submit(lambda draft: _add(draft, id, "link", name, table, about, ends, words))
        return secret

    def end_note(self, id: str, *, name: str | None, reason: str = "") -> Note:
        """End an open note, from now on and for the record."""
        words = _text(reason)
        return self._submit(lambda draft: _end(draft, id, name, words))

    def note(self, id: str) -> Note | None:
        """Return a note, open or ended; None if the id is unknown."""
        with self._view() as draft:
            return _note_of(draft, id)

    def notes(self, of: NoteKind) -> tuple[Note, ...]:
        """Return the open notes of a kind, the oldest first."""
        with self._view() as draft:
            return tuple(_open(draft, of))

    def linked(self, secret: str) -> Note | None:
        """Return the note of a link by its secret; None for an unknown, wrong, ended or expired one.

        The secret's hash is compared in constant time, also if the id is unknown.
        """
        matched = _LINK(secret)
        id = "0" * 16 if matched is None else matched[1]
        with self._view() as draft:
            note = _note_of(draft, id)
        kept = str(_NO_CHECK if note is None else note.about.get("check", _NO_CHECK))
        is_same = compare_digest(kept, _check(id, secret))
        return note if is_same and note is not None and note.of == "link" and note.holds else None


def _check(id: str, secret: str) -> str:
    return digest("link", id, secret_hash(secret[:200]))


def _text(text: object) -> str:
    if not isinstance(text, str) or len(text) > TEXT_MAX:
        raise InvalidParameter(f"a reason is a text of at most {TEXT_MAX} characters\nhint: reason='for the report'")
    canonical(text)
    return text


def _open(draft: LedgerDraft, of: str) -> list[Note]:
    ids = [name.removeprefix(NOTE) for name in draft.rows.names(NOTE)]
    found = [note for id in ids if (note := _note_of(draft, id)) is not None and note.of == of and note.holds]
    return sorted(found, key=lambda note: (note.time, note.id))


def _add(
    draft: LedgerDraft,
    id: str,
    of: str,
    name: str | None,
    table: str,
    about: Record,
    until: str | None,
    reason: str,
) -> Entry:
    if until is not None and until <= draft.time:
        raise InvalidParameter("the day on which a link ends must be in the future\nhint: until='2099-02-01'")
    own = [note for note in _open(draft, of) if name_key(note.name or "") == name_key(name or "")]
    if len(own) >= OPEN_MAX[of]:
        raise InvalidParameter(f"there are {len(own)} open notes of this kind already\nhint: end one of them first")
    record: dict[str, Any] = {"kind": "note", "note": id, "of": of, "name": name, "table": table, "about": about}
    return draft.append({**record, "until": until, "ended": None, "reason": reason})


def _end(draft: LedgerDraft, id: str, name: str | None, reason: str) -> Note:
    entry = draft.fact(NOTE + id)
    if entry is None or entry.record["ended"] is not None:
        raise InvalidParameter("this ledger has no such open note\nhint: it may have been ended already")
    kept = {word: value for word, value in entry.record.items() if word != "time"}
    made = kept.get("made", entry.record["time"])
    return _note(draft.append({**kept, "made": made, "ended": {"by": name, "reason": reason}}), draft.time)


def _note_of(draft: LedgerDraft, id: str) -> Note | None:
    entry = draft.fact(NOTE + id)
    return None if entry is None else _note(entry, draft.time)


def _note(entry: Entry, time: str) -> Note:
    record = entry.record
    until = record["until"]
    return Note(
        id=record["note"],
        of=record["of"],
        name=record["name"],
        table=record["table"],
        about=record["about"],
        until=until,
        reason=record["reason"],
        time=str(record.get("made", record["time"])),
        holds=record["ended"] is None and (until is None or until > time),
    )


@dataclass(frozen=True)
class Step:
    """A released part of a stream: its entry, the numbers from `first` to before `end`, and the text that has them."""

    number: int
    hash: str
    time: str
    first: int
    end: int
    text: str


def steps_of(view: LedgerDraft, charge: int, *, after: int = 0) -> list[Step]:
    """Return the steps of a stream, in order; only those in entries after the number `after`."""
    found: list[Step] = []
    entry = view.last_step(charge)
    while entry is not None and entry.number > after:
        found.append(_step(entry))
        before = entry.record["before"]
        entry = None if before is None else view.entry(before)
    return found[::-1]


def add_step(draft: LedgerDraft, charge: int, *, first: int, end: int, text: str) -> None:
    """Write the numbers from `first` to before `end`; write nothing if they were written meanwhile."""
    if draft.answer_paid_by(charge) is None:
        raise LedgerError(
            f"the start of this stream (charge {charge}) is missing from this ledger; no number was given"
            "\nhint: run tacit ledger verify"
        )
    last = draft.last_step(charge)
    if first == (0 if last is None else last.record["end"]):
        before = None if last is None else last.number
        draft.append({"kind": "step", "charge": charge, "first": first, "end": end, "before": before, "noisy": text})


def _step(entry: Entry) -> Step:
    record = entry.record
    return Step(entry.number, entry.hash, record["time"], record["first"], record["end"], record["noisy"])
