"""Verifying: read the whole ledger again and recompute everything that follows from its entries.

The chain of hashes, the signature on its head, the columns copied from the entries, every running total, and that
each charge fitted its budgets when it was made. Anything that does not follow is damage, and is named.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tacit.accounting.filter import GRAIN, Charge, Rule
from tacit.errors import LedgerError
from tacit.ledger.chain import BEGINNING, fingerprint, link, verify_signature
from tacit.ledger.entry import Account, Entry, Head, Record, scope_of
from tacit.ledger.rows import Rows
from tacit.ledger.rulebook import RuleBook, pointers_of
from tacit.privacy.number import from_text

_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True)
class Verified:
    """What was found whole: how many entries of each kind, the last hash, and the key that signed it."""

    entries: int
    kinds: dict[str, int]
    hash: str
    key: str


def verify(rows: Rows) -> Verified:
    """Return what was found whole, or refuse the ledger, naming the first entry or total that does not follow."""
    head = rows.head()
    if head is None:
        raise _fault("it has no head")
    replay = Replay()
    for columns in rows.columns():
        replay.take(columns)
    replay.check_end(head)
    if rows.accounts() != replay.accounts():
        raise _fault("a running total is not the sum of its charges")
    if rows.pointers() != replay.pointers:
        raise _fault("a pointer to a table or a budget is wrong")
    return Verified(replay.number, dict(replay.kinds), replay.hash, fingerprint(replay.public_key))


class Replay:
    """The ledger's history, entry by entry: what has been declared, charged and answered so far."""

    def __init__(self) -> None:
        self.number = 0
        self.hash = BEGINNING
        self.time = ""
        self.ledger = ""
        self.public_key = ""
        self.kinds: Counter[str] = Counter()
        self.pointers: dict[str, int] = {}
        self._book = RuleBook()
        self._totals: dict[str, _Total] = {}
        self._limits: dict[tuple[str, str, str], list[tuple[_Total, _Limit | None]]] = {}
        self._unanswered: dict[int, str] = {}
        self._grains: dict[str, int] = {}

    def take(self, columns: Sequence[Any]) -> None:
        """Take the next entry, or refuse it."""
        number, body, hash, *copies = columns
        self.number += 1
        try:
            if number != self.number or hash != link(self.hash, body):
                raise _fault(f"the chain is broken at entry {self.number}")
            record, end = _decode(body)
            if end != len(body):
                raise _fault(f"entry {self.number} has more after its end")
            self.hash = hash
            if copies != self._follow(record, columns) or record["time"] < self.time:
                raise _fault(f"entry {self.number} is not in its place")
            self.time = record["time"]
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _fault(f"entry {self.number} cannot be read") from error

    def check_end(self, head: Head) -> None:
        """Refuse a head that is not the end of this history, or that is not signed by the ledger's key."""
        if (head.number, head.hash) != (self.number, self.hash):
            raise _fault(f"its head is at entry {head.number} and its entries end at {self.number}")
        if (head.ledger, head.time, head.rules) != (self.ledger, self.time, self._book.number):
            raise _fault("its head does not follow from its entries")
        if not verify_signature(head.signed(), signature=head.signature, public=self.public_key):
            raise _fault("the signature on its head is not by its key")

    def accounts(self) -> dict[str, Account]:
        """Return every running total as it should be."""
        return {scope: total.account() for scope, total in self._totals.items() if total.charges}

    def _follow(self, record: Record, columns: Sequence[Any]) -> list[Any]:
        """Apply one entry and return what its copied columns must be."""
        kind = record["kind"]
        self.kinds[kind] += 1
        if kind == "charge":
            self._charge(record)
            self._unanswered[self.number] = record["question"]
            return [record["request"], None, None]
        if kind == "answer":
            if self._unanswered.pop(record["charge"], None) != record["question"]:
                raise _fault(f"entry {self.number} answers what was not charged, or was answered before")
            return [None, record["question"], record["charge"]]
        if kind in {"table", "budget"}:
            entry = Entry(*columns)
            self.pointers |= pointers_of(entry, self._book)
            self._book = self._book.with_entry(entry)
            self._limits.clear()
        elif kind == "ledger" and self.number == 1:
            self.ledger, self.public_key = record["ledger"], record["public_key"]
        elif kind not in {"refusal", "override"}:
            raise _fault(f"entry {self.number} is of no known kind")
        return [None, None, None]

    def _charge(self, record: Record) -> None:
        epsilon = None if record["epsilon"] is None else self._in_grains(record["epsilon"])
        rho, delta = self._in_grains(record["rho"]), self._in_grains(record["delta"])
        key = (record["people"], record["analyst"] or "", record["time"][:10])
        limits = self._limits.get(key) or self._limits_of(key)
        for total, limit in limits:
            total.add(epsilon, rho, delta, self.number)
            if limit is not None and not limit.admits(total):
                raise _fault(f"the charge in entry {self.number} is beyond its budget")

    def _limits_of(self, key: tuple[str, str, str]) -> "list[tuple[_Total, _Limit | None]]":
        """Return the totals a charge adds to, each with its limit; the same for all of one analyst's in one day."""
        people, analyst, day = key
        limits: dict[str, _Limit | None] = {scope_of(people): None, scope_of(people, analyst=analyst): None}
        for budget in self._book.applying(people, analyst):
            limits[budget.scope(analyst=analyst, time=day)] = _Limit.of(budget.rule)
        self._limits[key] = [(self._totals.setdefault(scope, _Total()), limit) for scope, limit in limits.items()]
        return self._limits[key]

    def _in_grains(self, text: str) -> int:
        found = self._grains.get(text)
        if found is None:
            amount = from_text(text) * GRAIN
            if amount.denominator != 1 or amount < 0:
                raise _fault(f"entry {self.number} has an amount that was never written")
            found = self._grains[text] = amount.numerator
        return found


class _Total:
    """A running total in whole grains, so that a million sums are sums of integers."""

    __slots__ = ("charges", "delta", "epsilon", "last", "rho")

    def __init__(self) -> None:
        self.epsilon: int | None = 0
        self.rho = self.delta = self.charges = self.last = 0

    def add(self, epsilon: int | None, rho: int, delta: int, number: int) -> None:
        self.epsilon = None if epsilon is None or self.epsilon is None else self.epsilon + epsilon
        self.rho += rho
        self.delta += delta
        self.charges += 1
        self.last = number

    def account(self) -> Account:
        epsilon = None if self.epsilon is None else Fraction(self.epsilon, GRAIN)
        return Account(Charge(epsilon, Fraction(self.rho, GRAIN), Fraction(self.delta, GRAIN)), self.charges, self.last)


@dataclass(frozen=True)
class _Limit:
    """A rule in whole grains."""

    epsilon: int | None
    rho: int | None
    delta: int

    @classmethod
    def of(cls, rule: Rule) -> "_Limit":
        epsilon, rho = (None if amount is None else amount * GRAIN // 1 for amount in (rule.epsilon, rule.rho))
        return cls(epsilon, rho, rule.delta * GRAIN // 1)

    def admits(self, total: _Total) -> bool:
        pure = self.epsilon is not None and total.epsilon is not None and total.epsilon <= self.epsilon
        return total.delta <= self.delta and (pure or (self.rho is not None and total.rho <= self.rho))


def _fault(what: str) -> LedgerError:
    return LedgerError(
        f"the ledger does not verify: {what}"
        "\nhint: restore the newest whole copy; what was answered since must be taken as spent"
    )
