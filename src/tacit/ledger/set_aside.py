"""Room that is set aside: the rest of a call's amount, kept free while the call learns facts and then asks.

The first charge of a call needs room for all of it. Its entry names the call and the rest, and the signed state has the
rests of a cohort's calls, which other charges leave free. Room counts while the lock of its call is held; no clock is
read. Privacy rests only on the charges: a lost lock can never exceed a budget.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from fractions import Fraction

from tacit.accounting import Charge
from tacit.ledger.chain import canonical
from tacit.ledger.entry import Record, amounts_record, charge_from

SET_ASIDE = "set aside "  # the prefix of names in the state

Get = Callable[[str], str | None]


@dataclass
class CallInProgress:
    """A call in progress: its analyst, its request for the record, and the rest of its charges."""

    id: str  # the name of its lock
    ledger: str
    cohort: str
    analyst: str
    record: Record
    rest: Charge
    is_one_question: bool = True  # then a charge that learns no fact is the last

    def rest_after(self, charge: Charge, *, is_last: bool) -> Charge:
        """Return the amount that is left to charge after one more charge of this call."""
        return Charge() if is_last and self.is_one_question else less(self.rest, charge)

    def entry(self, rest: Charge, *, over: list[str]) -> Record:
        """Return the part of an entry that sets the rest aside, and drops the rests of calls that are over."""
        kept = amounts_record(rest) if is_some(rest) else None
        return {"id": self.id, "people": self.cohort, "analyst": self.analyst, "rest": kept, "over": over}


_NOW: ContextVar[CallInProgress | None] = ContextVar("tacit_call", default=None)


def call_in_progress(ledger: str, cohort: str, analyst: str) -> CallInProgress | None:
    """Return the call that this thread is in, if it is about these people and by this analyst."""
    now = _NOW.get()
    return now if now is not None and (now.ledger, now.cohort, now.analyst) == (ledger, cohort, analyst) else None


@contextmanager
def within(call: CallInProgress) -> Iterator[None]:
    """Make all charges inside charges of a call."""
    before = _NOW.set(call)
    try:
        yield
    finally:
        _NOW.reset(before)


def aside_name(cohort: str) -> str:
    """Return the key in the state for the room that is set aside of a cohort's budgets."""
    return SET_ASIDE + cohort


def aside_changes(record: Record, get: Get) -> dict[str, str]:
    """Return the change that an entry of a call makes in the state."""
    call = record.get("call")
    if call is None:
        return {}
    name = aside_name(call["people"])
    kept = {id: rest for id, rest in _stored_rests(get, name).items() if id != call["id"] and id not in call["over"]}
    own = {} if call["rest"] is None else {call["id"]: {"analyst": call["analyst"], **call["rest"]}}
    return {name: canonical(kept | own)}


def set_aside(get: Get, cohort: str) -> dict[str, tuple[str, Charge]]:
    """Return the analyst and the rest of each call that the state names, over or not, by the names of their locks."""
    return {
        id: (str(each["analyst"]), charge_from(each)) for id, each in _stored_rests(get, aside_name(cohort)).items()
    }


def is_some(charge: Charge) -> bool:
    """Return whether an amount is above zero."""
    return bool(charge.epsilon or charge.rho or charge.delta or charge.delta_noise)


def _stored_rests(get: Get, name: str) -> Record:
    text = get(name)
    return {} if text is None else dict(json.loads(text))


def less(whole: Charge, charge: Charge) -> Charge:
    """Return the rest of an amount after a charge, at least zero."""
    stated = whole.epsilon is not None and charge.epsilon is not None
    return Charge(
        max(whole.epsilon - charge.epsilon, Fraction(0)) if stated else None,  # type: ignore[operator]
        max(whole.rho - charge.rho, Fraction(0)),
        max(whole.delta - charge.delta, Fraction(0)),
        max(whole.delta_noise - charge.delta_noise, Fraction(0)),
    )
