"""Steps: the numbers of a stream that was charged once, released part after part, each part stored before it leaves.

A step is an entry of its own. It names the charge of its stream, which has its answer, and the numbers from `first` to
before `end`. A step begins where the step before it ends, and the transaction that adds one checks that: of two
processes that drew the same part, the second finds the numbers of the first, and drops its own
(docs/proofs/streams.md).
"""

from dataclasses import dataclass

from tacit.errors import LedgerError
from tacit.ledger.draft import LedgerDraft
from tacit.ledger.entry import Entry


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
