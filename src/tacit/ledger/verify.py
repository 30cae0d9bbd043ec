"""Verification: reads the whole ledger again and recomputes everything that follows from its entries.

Checked are the chain, the signature on its head, the copied columns, the whole state, that charges are at least the
cost of their events, and that they fitted their budgets. Anything that does not follow is damage, and is named.

The first part saves time: entries that differ only in names, times and answers, at known positions of canonical JSON,
are not parsed again. If that is not certain, the entry is parsed as a whole.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any, Generic, TypeVar

from tacit.accounting import GRAIN, Charge, covers
from tacit.errors import LedgerError, TacitError
from tacit.ledger.budget import Budget, aside_changes
from tacit.ledger.chain import BEGINNING, fingerprint, is_fresh_id, link, verify_signature
from tacit.ledger.draft import (
    PAGE,
    PEOPLE,
    RuleBook,
    analyst_key,
    block_changes,
    changes,
    page_hash,
    page_name,
    person_name,
    written,
)
from tacit.ledger.entry import (
    ACCOUNT,
    Account,
    Entry,
    Head,
    Record,
    account_name,
    account_text,
    charge_from,
    scope_of,
)
from tacit.ledger.locks import ATTEMPTS
from tacit.ledger.roles import ROLES, person_from
from tacit.ledger.rotation import is_signed
from tacit.ledger.state import place_of, whole_state
from tacit.ledger.store import StoreRows
from tacit.privacy import event_from_dict

# ---- entries that need no parsing ------------------------------------------------------------------------------------


_ANSWER, _AS_SHOWN, _ABOUT = '{"answer":"', ',"as_shown":"', '{"about":"'
_REST_OF_ANSWER = re.compile(
    r',"charge":([1-9][0-9]{0,17}),"kind":"answer","question":"([0-9a-f]{64})","table":"[0-9a-f]{32}"'
    r',"time":"([-0-9T:.Z]{27})"\}'
).fullmatch

_CALL = '"call":{'
# The question asked, the question, the request and the time; the texts between them are shared.
_CHARGE = re.compile(
    r'(.*?"asked":")([0-9a-f]{64})(.*?,"kind":"charge","people":"[0-9a-f]{32}","question":")([0-9a-f]{64})'
    r'(","request":)(null|"[0-9a-f]{64}")(.*"time":")([-0-9T:.Z]{27})("\})'
).fullmatch
# Placeholders for the parts that differ, when a new text is parsed once.
_STANDS_IN = ("a" * 64, "b" * 64, "c" * 64, "0" * 27)

SEEN_MAX = 100_000

Meaning = TypeVar("Meaning")


def alike_answer(body: str) -> tuple[str, ...] | None:
    """Return the charge's number, the question and the time of an answer, as text; None for all other entries."""
    if not body.startswith(_ANSWER):
        return None
    _, end = scanstring(body, len(_ANSWER))
    if body.startswith(_AS_SHOWN, end):
        _, end = scanstring(body, end + len(_AS_SHOWN))
    found = _REST_OF_ANSWER(body, end)
    return None if found is None else found.groups()


class AlikeCharges(Generic[Meaning]):
    """Charges by the text they share, each with its meaning, which `means` computes from the record."""

    def __init__(self, means: Callable[[Record], Meaning]) -> None:
        self._means = means
        self._seen: dict[tuple[str, ...], Meaning] = {}

    def find(self, body: str) -> tuple[Meaning, str, str | None, str] | None:
        """Return a charge's effect, its question, its request and its time; None for all other entries."""
        if body.startswith(_ABOUT):  # the question's words, which differ and do not change a total
            _, end = scanstring(body, len(_ABOUT))
            body = "{" + body[end + 1 :]
        found = _CHARGE(body)
        if found is None or _CALL in found[1] + found[3]:  # a call changes the room set aside
            return None
        _, question, request, time = found.group(2, 4, 6, 8)
        same = found.group(1, 3, 5, 7, 9) + (("",) if request == "null" else ())
        meaning = self._seen.get(same) or self._meaning(same, named=request != "null")
        return None if meaning is None else (meaning, question, None if request == "null" else request[1:-1], time)

    def _meaning(self, same: tuple[str, ...], *, named: bool) -> Meaning | None:
        """Return the meaning of a new text, if the parts that differ are where `find` looked for them."""
        asked, question, request, time = _STANDS_IN
        written = f'"{request}"' if named else "null"
        text = "".join(part for pair in zip(same, (asked, question, written, time, ""), strict=False) for part in pair)
        record = json.loads(text)
        standing = (asked, question, request if named else None, time)
        if tuple(record.get(name) for name in ("asked", "question", "request", "time")) != standing:
            return None
        if record["kind"] != "charge" or len(self._seen) >= SEEN_MAX:
            return None
        meaning = self._seen[same] = self._means(record)
        return meaning


# ---- verification ----------------------------------------------------------------------------------------------------


# The columns `request`, `question` and `answers`.
Copied = tuple[str | None, str | None, int | None]

_decode = json.JSONDecoder().raw_decode

# Pending charges are added up at the latest when there are this many.
PENDING_MAX = 10_000


@dataclass(frozen=True)
class Verified:
    """The report of a verified ledger: its entries by kind, the last hash, the signing key, and the keys before."""

    entries: int
    kinds: dict[str, int]
    hash: str
    key: str
    keys_before: tuple[tuple[int, str], ...] = ()  # each with the entry that ended it


def verify(rows: StoreRows) -> Verified:
    """Return what was found whole, or refuse the ledger, naming the first entry or total that does not follow."""
    head = rows.head()
    if head is None:
        raise _damage("the head is missing")
    replay = History()
    for columns in rows.columns():
        replay.take(columns)
    replay.check_end(head)
    _check_state(rows, head, replay.state)
    before = tuple((number, fingerprint(public)) for number, public in replay.keys_before)
    return Verified(replay.number, replay.kinds, replay.hash, fingerprint(replay.public_key), before)


def _check_state(rows: StoreRows, head: Head, state: dict[str, str]) -> None:
    """Refuse a stored state that differs, name by name and node by node, from the sum of the entries."""
    stored = {}
    for name, place, value in rows.values():
        stored[name] = value
        if place != place_of(name):
            raise _damage("a total or a pointer is at a wrong place in the state")
    if stored != state:
        wrong = min(name for name in {*stored, *state} if stored.get(name) != state.get(name))
        if wrong.startswith(ACCOUNT):
            raise _damage("a running total is not the sum of its charges")
        raise _damage("a pointer to a table, a budget or a page of entries is wrong")
    root, nodes = whole_state(state)
    if rows.nodes() != nodes:
        raise _damage("the tree above its totals is wrong")
    if root != head.root:
        raise _damage("its head does not follow from its entries")


class History:
    """The history entry by entry: declarations, charges and answers so far.

    Charges that are alike are added up when a budget changes and at the end: a budget that admits a sum has admitted
    every charge on the way.
    """

    def __init__(self) -> None:
        self.number: int = 0
        self.hash: str = BEGINNING
        self._previous: str = BEGINNING
        self.time: str = ""
        self.ledger: str = ""
        self.public_key: str = ""
        self.keys_before: list[tuple[int, str]] = []
        self._others: Counter[str] = Counter()
        self._charges = self._answers = 0
        self.state: dict[str, str] = {}
        self._alike = AlikeCharges(self._spending)
        self._pending: dict[tuple[Spending, str], list[int]] = {}
        self._latest: dict[tuple[Spending, str], str] = {}  # the time of the last of each
        self._accounts: dict[str, Account] = {}
        self._in_force: dict[tuple[str, str], list[Budget]] = {}  # while charges are added up
        self._unanswered: dict[int, str] = {}
        self._attempts: dict[int, tuple[int, bool]] = {}  # the newest at a charge, and whether it failed
        self._steps: dict[int, tuple[int, int]] = {}  # of each stream, the entry of its newest step, and its end
        self._learned: tuple[int, str] | None = None  # the number and the question of the last answer
        self._page: list[str] = []
        self._rules: dict[int, Entry] = {}
        self._book = RuleBook(self.state.get, lambda number, _: self._rules[number])

    @property
    def kinds(self) -> dict[str, int]:
        counted = {**self._others, "charge": self._charges, "answer": self._answers}
        return {kind: count for kind, count in counted.items() if count}

    def take(self, columns: Sequence[Any]) -> None:
        number, body, hash, request, question, answers = columns
        self.number += 1
        try:
            if number != self.number or hash != link(self.hash, body):
                raise _damage(f"the chain is broken at entry {self.number}")
            self._previous, self.hash = self.hash, hash
            time, copied = self._follow(body, columns)
            if (request, question, answers) != copied or time < self.time:
                raise _damage(f"entry {self.number} is out of order")
            self.time = time
        except LedgerError:
            raise
        except (TacitError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise _damage(f"entry {self.number} cannot be read") from error
        self._page.append(hash)
        if number % PAGE == 0:
            self.state[page_name(number)] = page_hash(self._page)
            self._page.clear()

    def check_end(self, head: Head) -> None:
        """Refuse a head that is not the end of this history, or that is not signed by the ledger's key."""
        if (head.number, head.hash) != (self.number, self.hash):
            raise _damage(f"its head is at entry {head.number} and its entries end at {self.number}")
        if (head.ledger, head.time) != (self.ledger, self.time):
            raise _damage("its head does not follow from its entries")
        if not verify_signature(head.signed(), signature=head.signature, public=self.public_key):
            raise _damage("the signature on its head was not made with its key")
        self._add_up()
        self.state |= _texts(self.accounts())

    def accounts(self) -> dict[str, Account]:
        """Return every running total as it should be."""
        self._add_up()
        return self._accounts

    def _follow(self, body: str, columns: Sequence[Any]) -> tuple[str, Copied]:
        """Apply one entry and return its time and the required values of its copied columns."""
        answer = alike_answer(body)
        if answer is not None:
            return answer[2], self._answer(int(answer[0]), answer[1])
        alike = self._alike.find(body)
        if alike is not None:
            spending, question, request, time = alike
            return time, self._charge(spending, question, request, time)
        record, end = _decode(body)
        if end != len(body):
            raise _damage(f"entry {self.number} has text after its end")
        return record["time"], self._follow_record(record, columns)

    def _follow_record(self, record: Record, columns: Sequence[Any]) -> Copied:
        kind = record["kind"]
        if kind == "charge":
            self.state |= aside_changes(record, self.state.get)
            return self._charge(self._spending(record), record["question"], record["request"], record["time"])
        if kind == "answer":
            return self._answer(record["charge"], record["question"])
        self._others[kind] += 1
        if kind in {"table", "budget", "person", "token"}:
            self._add_up()
            entry = Entry(*columns)
            self._rules[entry.number] = entry
            self._check_person(entry)
            self.state |= changes(entry, self.state.get)
        elif kind == "note":
            self.state |= changes(Entry(*columns), self.state.get)
        elif kind in {"fact", "attempt", "step"}:
            {"fact": self._fact, "attempt": self._attempt, "step": self._step}[kind](record)
            self.state |= changes(Entry(*columns), self.state.get)
        elif kind == "ledger" and self.number == 1:
            self.ledger, self.public_key = record["ledger"], record["public_key"]
            if not is_fresh_id(self.ledger):
                raise _damage("its id is one that tacit never makes")
            self.state |= changes(Entry(*columns), self.state.get)
        elif kind == "key":
            self._change_key(Entry(*columns))
        elif kind == "clock" and record["before"] == self.time:
            self.time = ""  # the curator's word: the one entry that may be of an earlier time
        elif kind not in {"refusal", "override"}:
            raise _damage(f"entry {self.number} has an unknown kind")
        return None, None, None

    def _check_person(self, entry: Entry) -> None:
        """Refuse a person without a role, and a token without a person."""
        record = entry.record
        if record["kind"] == "token":
            if person_name(record["name"]) not in self.state:
                raise _damage(f"entry {self.number} is about a token of a person who is not in the ledger")
        elif record["kind"] == "person" and (record["role"] not in ROLES or not 0 < record["since"] <= self.number):
            raise _damage(f"entry {self.number} gives access to a name that cannot have it")

    def _change_key(self, entry: Entry) -> None:
        """Take the key that an entry names, if the one before has signed it."""
        record, last = entry.record, self.keys_before[-1][0] if self.keys_before else 1
        is_next = record["before"] == self.public_key and record["since"] == last
        if not is_next or not is_signed(self.ledger, entry.number, self._previous, record):
            raise _damage(f"entry {self.number} names a new key, and the key before has not signed it")
        self.keys_before.append((entry.number, self.public_key))
        self.public_key = str(record["public_key"])
        self.state |= changes(entry, self.state.get)

    def _fact(self, record: Record) -> None:
        if self._learned != (record["answer"], record["question"]) or record["answer"] != self.number - 1:
            raise _damage(f"entry {self.number} names as learned what the answer before it is not")

    def _attempt(self, record: Record) -> None:
        """Refuse an attempt at a charge that has its answer or has failed, and one attempt too many."""
        charge, number, failed = (record[name] for name in ("charge", "number", "failed"))
        before, has_failed = self._attempts.get(charge, (1, False))
        is_next = number == (before if failed else before + 1) and number <= ATTEMPTS
        if charge not in self._unanswered or has_failed or not is_next:
            raise _damage(f"entry {self.number} carries out again what may not be")
        self._attempts[charge] = number, failed

    def _step(self, record: Record) -> None:
        """Refuse a step of a stream that was not charged and answered, and one that does not follow the one before."""
        charge, first, end = (record[name] for name in ("charge", "first", "end"))
        before, follows = self._steps.get(charge, (None, 0))
        is_charged = 0 < charge < self.number and charge not in self._unanswered
        if not is_charged or (record["before"], first) != (before, follows) or not first < end:
            raise _damage(f"entry {self.number} is a step that does not follow the step before it")
        self._steps[charge] = self.number, end

    def _answer(self, charge: int, question: str) -> Copied:
        self._answers += 1
        if self._attempts.get(charge, (1, False))[1]:
            raise _damage(f"entry {self.number} is the answer of a charge that failed")
        if self._unanswered.pop(charge, None) != question:
            raise _damage(f"entry {self.number} answers a question that was not charged, or was answered before")
        self._learned = (self.number, question)
        return None, question, charge

    def _charge(self, spending: "Spending", question: str, request: str | None, time: str) -> Copied:
        self._charges += 1
        self._unanswered[self.number] = question
        counted = self._pending.get((spending, time[:10]))
        if counted is None:
            if len(self._pending) >= PENDING_MAX:
                self._add_up()
            self._pending[spending, time[:10]] = [1, self.number, self.number]
            self._latest[spending, time[:10]] = time
        else:
            counted[0] += 1
            counted[2] = self.number
            self._latest[spending, time[:10]] = time
        return request, None, None

    def _spending(self, record: Record) -> "Spending":
        charge = charge_from(record)
        amounts = [amount for field in fields(charge) if (amount := getattr(charge, field.name)) is not None]
        if any(amount < 0 or GRAIN % amount.denominator for amount in amounts):
            raise _damage(f"entry {self.number} has an amount that tacit never writes")
        if not covers(charge, map(event_from_dict, record["events"])):
            raise _damage(f"the events of entry {self.number} cost more than its charge")
        analyst, tables = record["analyst"], (record["table"], *record.get("beside", ()))
        self.state |= written(analyst, self.state.get) | block_changes(record, self.state.get)
        blocks = None if "blocks" not in record else tuple(record["blocks"])
        return Spending(record["people"], analyst_key(analyst) or "", charge, analyst, tables, blocks)

    def _add_up(self) -> None:
        """Add what is pending to the totals, and refuse totals beyond their budgets."""
        pending, self._pending = self._pending, {}
        self._in_force = {}
        self._check_allowed()
        for (spending, day), (count, _, last) in pending.items():
            scopes = dict.fromkeys((scope_of(spending.cohort), scope_of(spending.cohort, analyst=spending.analyst)), 1)
            for budget in self._applying(spending):
                scopes |= self._book.charged(budget, analyst=spending.analyst, time=day, blocks=spending.blocks)
            for scope, times in scopes.items():
                before = self._accounts.get(scope, Account())
                spent = before.spent + spending.charge.times(count * times)
                self._accounts[scope] = Account(spent, before.charges + count, max(before.last, last))
        checked: set[tuple[str, str]] = set()
        for (spending, day), (_, first, _) in pending.items():
            for budget in self._applying(spending):
                limited = self._book.limited(
                    budget, self._account, analyst=spending.analyst, time=day, blocks=spending.blocks
                )
                for scope, account, _ in limited:
                    if (str(budget), scope) not in checked and not budget.rule.admits(account.spent):
                        raise _damage(f"a charge in entries {first} to {account.last} is beyond its budget, {budget}")
                    checked.add((str(budget), scope))

    def _applying(self, spending: "Spending") -> list[Budget]:
        who = spending.cohort, spending.analyst
        if who not in self._in_force:
            self._in_force[who] = self._book.applying(*who)
        return self._in_force[who]

    def _account(self, scope: str) -> Account:
        return self._accounts.get(scope, Account())

    def _check_allowed(self) -> None:
        """Refuse pending charges of people who might not ask when they did."""
        latest, self._latest = self._latest, {}
        if PEOPLE not in self.state:
            return
        for (spending, _), time in latest.items():
            pointer = self.state.get(person_name(spending.name))
            declared = [self._book.table(id) for id in spending.tables]
            person = None if pointer is None else person_from(self._rules[json.loads(pointer)[0]])
            if person is None or any(each is None or person.why_not(each.name, time=time) for each in declared):
                raise _damage(f"a charge before entry {self.number} was made for someone who might not ask")


def _texts(accounts: dict[str, Account]) -> dict[str, str]:
    return {account_name(scope): account_text(account) for scope, account in accounts.items()}


@dataclass(frozen=True, eq=False)  # told apart as objects, since comparing rationals takes its time
class Spending:
    """The analyst, the cohort and the amount of a charge: the parts that a total needs."""

    cohort: str
    analyst: str
    charge: Charge
    name: str | None = None
    tables: tuple[str, ...] = ()
    blocks: tuple[str, ...] | None = None


def _damage(what: str) -> LedgerError:
    return LedgerError(
        f"the ledger does not verify: {what}"
        "\nhint: restore the newest whole copy; answers given since then must be counted as spent"
    )
