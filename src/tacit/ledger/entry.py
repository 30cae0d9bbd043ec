"""The values a ledger holds: entries, the head of their chain, and the running totals of each account.

How they are stored is left to the stores; their meaning is in `charging.py`, `registry.py` and `budget.py`.
"""

import json
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from tacit.accounting import BudgetRule, Charge
from tacit.errors import LedgerError
from tacit.ledger.chain import canonical
from tacit.numbers import from_text, read_json, to_text

# The version of the table layout and of the amounts that a budget's rule counts; another version of tacit writes
# another number.
SCHEMA = 4

Record = dict[str, Any]

# The prefix of accounts' names in the state.
ACCOUNT = "account "


@dataclass(frozen=True)
class Entry:
    """An entry of the chain: its text, its hash, and the columns by which it is looked up.

    `request` is the request of a charge, `question` the question of an answer, `answers` the number of the charge that
    paid for it. The text contains all three too, and the hash covers the text.
    """

    number: int
    body: str
    hash: str
    request: str | None = None
    question: str | None = None
    answers: int | None = None

    @cached_property
    def record(self) -> Record:
        try:
            record = read_json(self.body)
        except (ValueError, TypeError):
            record = None
        if not isinstance(record, dict) or not all(isinstance(record.get(name), str) for name in ("kind", "time")):
            raise LedgerError(f"entry {self.number} of the ledger cannot be read\nhint: run tacit ledger verify")
        return record

    @property
    def kind(self) -> str:
        """The kind of the entry: a charge, an answer, a person, ... (`verify.py` knows them all)."""
        return str(self.record["kind"])


@dataclass(frozen=True)
class Head:
    """The end of the chain, signed: the last entry's number and hash, the root of the state, and the latest time."""

    ledger: str
    number: int
    hash: str
    root: str
    time: str
    signature: str

    def signed(self) -> Record:
        """Return the record that the signature covers: all but itself."""
        return {
            "what": "tacit ledger head 2",
            "ledger": self.ledger,
            "number": self.number,
            "hash": self.hash,
            "root": self.root,
            "time": self.time,
        }


@dataclass(frozen=True)
class Account:
    """The running total of one scope: all it ever spent, in how many charges, and the number of the last."""

    spent: Charge = Charge()
    charges: int = 0
    last: int = 0

    def add(self, charge: Charge, *, number: int) -> "Account":
        """Return the account after one more charge, entry `number`."""
        return Account(self.spent + charge, self.charges + 1, number)


@dataclass
class Writes:
    """The result of one transaction: entries, and their changes in the state; `before` is the head they extend."""

    before: Head | None
    head: Head
    entries: list[Entry] = field(default_factory=list)
    values: list[tuple[str, str, str]] = field(default_factory=list)
    nodes: list[tuple[str, str]] = field(default_factory=list)


@lru_cache(maxsize=4096)
def scope_of(cohort: str, *, analyst: str | None = None, period: str | None = None) -> str:
    """Return the name of an account: the cohort in the data, one analyst's or everyone's, one period's or for life."""
    return canonical([cohort, analyst, period])


def account_name(scope: str) -> str:
    return ACCOUNT + scope


def account_text(account: Account) -> str:
    return canonical({"spent": amounts_record(account.spent), "charges": account.charges, "last": account.last})


@lru_cache(maxsize=4096)
def account_from(text: str) -> Account:
    record = json.loads(text)
    return Account(charge_from(record["spent"]), int(record["charges"]), int(record["last"]))


CHARGE_NAMES = ("epsilon", "rho", "delta", "delta_noise")


def amounts_record(value: Charge | BudgetRule) -> Record:
    """Return a charge or a rule as exact text for an entry."""
    return {name: None if amount is None else to_text(amount) for name, amount in vars(value).items()}


def amounts_from(record: Record) -> dict[str, Any]:
    return {name: None if text is None else from_text(text) for name, text in record.items()}


def charge_from(record: Record) -> Charge:
    return Charge(**amounts_from({name: record[name] for name in CHARGE_NAMES}))
