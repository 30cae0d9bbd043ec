"""Attacks on what the ledger counts: amounts, clocks, names, failures, repeats and sheer length (L06-L09, L11, L13)."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from tacit.accounting.filter import charge_of
from tacit.errors import InvalidParameter, LedgerError
from tacit.ledger import Ledger, RegisteredTable, StoredAnswer, chain, open_ledger
from tacit.ledger.draft import PAGE, Draft
from tacit.ledger.entry import SCHEMA, Account, Entry, Writes, account_name, account_text, charge_from, scope_of
from tacit.ledger.sqlite import Connection
from tacit.ledger.store import Rows
from tacit.privacy.event import Event, GaussianNoise, KeyThreshold, LaplaceNoise, PureChoice
from tacit.privacy.loss import PureLoss, epsilon
from tacit.privacy.number import Number, decimal_meaning
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.ledger import (
    DECLARATION,
    TENTH,
    again,
    ask,
    charge,
    private_home,
    refused,
    register,
)

THIRD = Fraction(1, 3)
# Charges and answers of one page of the chain.
CHARGES = PAGE // 2
# A million entries are three levels of the state's tree, which an empty ledger does not have.
WORK_MAX = 3


@case("L06", title="hostile amounts, and sums that must be exact", feature="ledger")
def amounts(size: Size) -> Evidence:  # noqa: ARG001 (forty checks are the full size)
    """Amounts are exact: nothing fits that should not, nothing is lost, and what is no amount is refused."""
    tenth, primes = decimal_meaning(0.1, name="epsilon"), (7, 43, 97, 10007)
    with private_home() as home:
        checks = {
            "ten of 0.1 in 1.0": _fitting(home, 1.0, [tenth] * 12) == 10,
            "three of 0.1 in 0.3": _fitting(home, 0.3, [tenth] * 5) == 3,
            "three thirds in 1": _fitting(home, 1, [THIRD] * 4) == 3,
            "nothing after all": _fitting(home, 1, [Fraction(1), Fraction(1, 10**20)]) == 1,
            "nor the smallest float": _fitting(home, 1, [Fraction(1), Fraction("5e-324")]) == 1,
            "the largest float": _fitting(home, 1e308, [Fraction(10) ** 308, tenth]) == 1,
            "a sliver over": _fitting(home, 1, [1 + Fraction(1, 10**40)]) == 0,
            "many denominators": _fitting(home, 1, [Fraction(1, prime) for prime in primes]) == len(primes),
        }
        for path in _no_ledgers(home):
            checks[f"file {path.name}"] = refused(partial(open_ledger, path), LedgerError)
    for event in _no_events():
        checks[f"event {event}"] = refused(partial(charge_of, [event]), InvalidParameter)
    for value in _no_amounts():
        checks[f"budget {value!r}"] = refused(partial(epsilon, value), InvalidParameter)
    failed = [name for name, passed in checks.items() if not passed]
    return Evidence(not failed, {"checks": len(checks), "failed": ", ".join(failed) or "none"})


def _fitting(home: Path, budget: Number, amounts: list[Fraction]) -> int:
    """Return how many of the amounts were charged, if what was spent is their sum and no less."""
    with open_ledger(home / "amounts.db") as ledger:
        table = ledger.register(name=chain.fresh_id(), declaration=DECLARATION, budget=epsilon(budget))
        charged = [one for turn, one in enumerate(amounts) if ask(ledger, table, str(turn), epsilon=one) is not None]
        spent = ledger.spent(table).epsilon
    exact = spent is not None and sum(charged) <= spent <= decimal_meaning(budget, name="budget")
    return len(charged) if exact else -1


def _no_amounts() -> list[Any]:
    return [
        *(
            float("nan"),
            float("inf"),
            float("-inf"),
            -1,
            -1e-300,
            0,
            0.0,
            True,
            None,
            "",
            "one",
            "1/0",
            "nan",
            "1e99999",
        ),
        *([], {}, 1j, b"1", Decimal("NaN"), Decimal("-Infinity")),
    ]


def _no_events() -> list[Event]:
    nan: Fraction = float("nan")  # type: ignore[assignment]
    return [
        PureChoice(Fraction(-1)),
        PureChoice(nan),
        PureChoice(True),  # type: ignore[arg-type]
        PureChoice("1"),  # type: ignore[arg-type]
        LaplaceNoise(scale=Fraction(0), sensitivity=Fraction(1)),
        LaplaceNoise(scale=Fraction(-1), sensitivity=Fraction(1)),
        LaplaceNoise(scale=nan, sensitivity=Fraction(1)),
        GaussianNoise(sigma=Fraction(0), sensitivity_squared=Fraction(1)),
        GaussianNoise(sigma=Fraction(1), sensitivity_squared=Fraction(-1)),
        KeyThreshold(Fraction(-1, 10)),
        KeyThreshold(0.5),  # type: ignore[arg-type]
    ]


def _no_ledgers(home: Path) -> list[Path]:
    text, other, newer = home / "text.db", home / "other.db", home / "newer.db"
    text.write_bytes(b"this is not a database, and long enough to look at: " * 100)
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE somebody (else_ TEXT)")
    open_ledger(newer).close()
    with closing(sqlite3.connect(newer)) as database:
        database.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    return [text, other, newer, home, text / "nowhere.db"]


@case("L07", title="the clock jumps back and forth across periods", feature="ledger")
def clocks(size: Size) -> Evidence:  # noqa: ARG001 (the ten jumps are the full size)
    """A period that was left never has room again, whatever the clock says later."""
    start = datetime(2026, 3, 10, 12, tzinfo=UTC)
    now = [start]
    jumps = [(0, 1), (-1, 0), (-400, 0), (1, 1), (0, 0), (-1, 0), (2, 1), (1, 0), (-3000, 0), (3, 1)]
    faults = []
    with private_home() as home, open_ledger(home / "ledger.db", clock=lambda: now[0]) as ledger:
        table = register(ledger, PureLoss(Fraction(100)))
        ledger.grant("pay", PureLoss(TENTH), period="day", reason="a tenth a day")
        for turn, (days, room) in enumerate(jumps):
            now[0] = start + timedelta(days=days)
            got = [ask(ledger, table, f"{turn} {one}") is not None for one in range(2)]
            if sum(got) != room:
                faults.append(f"at day {days:+} {sum(got)} fitted and {room} should")
    return Evidence(not faults, {"jumps": len(jumps), "faults": "; ".join(faults) or "none"})


@case("L08", title="the same people under other names", feature="ledger")
def aliases(size: Size) -> Evidence:  # noqa: ARG001 (the eight tricks are the full size)
    """A budget follows the people: a new name, a new upload or a colluding analyst finds it spent."""
    tricks: dict[str, Callable[[Ledger], bool]] = {
        "the same source under a second name": lambda ledger: _cannot(ledger, name="wages", source="pay"),
        "a second name with a budget of its own": lambda ledger: _cannot(
            ledger, name="wages", source="pay", budget=PureLoss(Fraction(9))
        ),
        "a second name said to be the same": lambda ledger: _finds_it_spent(
            ledger, name="wages", source="pay", same_people_as="pay"
        ),
        "a copy said to be the same": lambda ledger: _finds_it_spent(
            ledger, name="copy", source="copy", same_people_as="pay"
        ),
        "a new upload under the old name": lambda ledger: _finds_it_spent(ledger, name="pay", source="pay2"),
        "a new version": lambda ledger: _finds_it_spent(ledger, name="pay", source="pay", version=2),
        "a larger budget the second time": lambda ledger: _cannot(
            ledger, name="pay", source="pay", budget=PureLoss(Fraction(9))
        ),
        "another analyst": lambda ledger: ask(ledger, again(ledger), "more", analyst="bob") is None,
    }
    survived = {}
    for name, trick in tricks.items():
        with private_home() as home, open_ledger(home / "ledger.db") as ledger:
            ask(ledger, register(ledger), "all", epsilon=Fraction(1), analyst="ann")
            survived[name] = trick(ledger)
    return Evidence(all(survived.values()), survived)


def _declared(ledger: Ledger, *, version: int = 1, **words: Any) -> RegisteredTable:
    return ledger.register(declaration={**DECLARATION, "version": version}, **words)


def _cannot(ledger: Ledger, **words: Any) -> bool:
    return refused(lambda: _declared(ledger, **words), InvalidParameter)


def _finds_it_spent(ledger: Ledger, *, version: int = 1, **words: Any) -> bool:
    return ask(ledger, _declared(ledger, version=version, **words), "more") is None


@case("L09", title="questions that fail after their charge", feature="ledger")
def failures(size: Size) -> Evidence:  # noqa: ARG001 (the eight ways are the full size)
    """However an answer fails to come about, its charge stays, and it is the same charge."""
    ways: list[Callable[[Ledger, RegisteredTable], object]] = [
        lambda ledger, table: charge(ledger, table, "dropped"),
        lambda ledger, table: _raising(charge(ledger, table, "engine failed"), TimeoutError),
        lambda ledger, table: _raising(charge(ledger, table, "cancelled"), KeyboardInterrupt),
        lambda ledger, table: _raising(charge(ledger, table, "out of memory"), MemoryError),
        lambda ledger, table: charge(ledger, table, "no text").commit(None),  # type: ignore[arg-type]
        lambda ledger, table: charge(ledger, table, "bytes").commit(b"{}"),  # type: ignore[arg-type]
        lambda ledger, table: [charge(ledger, table, "twice").commit('"x"') for _ in range(1)][0],
        lambda ledger, table: [one := charge(ledger, table, "again"), one.commit('"x"'), one.commit('"y"')],
    ]
    with private_home() as home, open_ledger(home / "ledger.db") as ledger:
        table = register(ledger)
        spent = []
        for way in ways:
            with suppress(Exception, KeyboardInterrupt):
                way(ledger, table)
            spent.append(ledger.spent(table).epsilon)
    right = [(turn + 1) * TENTH for turn in range(len(ways))]
    return Evidence(spent == right, {"spent after each": ", ".join(map(str, spent))})


def _raising(_: object, error: type[BaseException]) -> None:
    raise error


@case("L11", title="one request is sent a thousand times, across restarts", feature="ledger")
def repeats(size: Size) -> Evidence:
    """It is charged once and its answer is the same every time, even once the table has a new version."""
    retries, restarts = (60, 4) if size == "quick" else (1000, 20)
    answers = set()
    with private_home() as home:
        for restart in range(restarts):
            with open_ledger(home / "ledger.db") as ledger:
                budget = PureLoss(Fraction(1)) if restart == 0 else None
                table = _declared(ledger, version=1 + restart // 2, name="pay", source="pay", budget=budget)
                for _ in range(retries // restarts):
                    receipt = ask(ledger, table, "the question", request_id="the request", analyst="ann")
                    answers.add(receipt)
        with open_ledger(home / "ledger.db") as ledger:
            spent = ledger.spent(table).epsilon
    return Evidence(len(answers) == 1 and spent == TENTH, {"retries": retries, "answers": len(answers), "spent": spent})


@case("L13", title="a ledger of a million entries", feature="ledger")
def length(size: Size) -> Evidence:
    """A charge's work grows with the depth of the state's tree alone, and a million entries verify in ten seconds.

    A few thousand entries verify too fast for their time to say anything, so the quick run only shows it.
    """
    entries = 4_000 if size == "quick" else 1_000_000
    seconds_max = 10.0
    work: list[int] = []
    with private_home() as home:
        path = home / "ledger.db"
        with open_ledger(path, clock=_noon) as ledger:
            table = register(ledger, PureLoss(Fraction(10**6)))
            work.append(_work_of_charges(path, "early"))
            _fill(ledger, table, entries // 2)
            work.append(_work_of_charges(path, "late"))
        start, processor = time.perf_counter(), time.process_time()
        with open_ledger(path) as ledger:
            verified = ledger.verify()
            left = ledger.left(table)
        # what else the machine is doing is not the ledger's
        seconds = min(time.perf_counter() - start, time.process_time() - processor)
    exact = left.epsilon == 10**6 - (entries // 2) * Fraction(1, 1000) - 2 * CHARGES * TENTH
    in_time = size == "quick" or seconds <= seconds_max
    details = {"entries": verified.entries, "steps of charges": work, "seconds to verify": round(seconds, 2)}
    return Evidence(exact and in_time and work[1] <= WORK_MAX * work[0], details)


def _noon() -> datetime:
    """A clock that stands still, so that copies of an entry are in order."""
    return datetime(2026, 6, 15, 12, tzinfo=UTC)


def _counting(name: str, counter: list[int]) -> Connection:
    """Return a connection that counts the steps of SQLite's machine."""
    connection = sqlite3.connect(name, isolation_level=None, check_same_thread=False)

    def step() -> int:
        counter[0] += 1
        return 0

    connection.set_progress_handler(step, 1)
    return connection


def _work_of_charges(path: Path, question: str) -> int:
    """Return how many steps SQLite takes for a page of charges and answers, each by a process that has just started."""
    steps = 0
    for turn in range(CHARGES):
        counter = [0]
        with open_ledger(path, clock=_noon, connect=lambda name, counter=counter: _counting(name, counter)) as ledger:  # type: ignore[misc]
            table = again(ledger)
            before = counter[0]
            ask(ledger, table, f"{question} {turn}")
            steps += counter[0] - before
    return steps


def _fill(ledger: Ledger, table: RegisteredTable, charges: int) -> None:
    """Write many charges and their answers, copied from a real pair; verifying says whether they are right."""
    event = LaplaceNoise(scale=Fraction(1000), sensitivity=Fraction(1))
    reserved = ledger.reserve(table, [event], question_key="pattern", request_id="pattern", analyst="ann")
    if isinstance(reserved, StoredAnswer):
        raise TypeError("the ledger has been filled before")
    answer = reserved.commit("[1, 2, 3]")
    paid = reserved.charge
    pattern = next(entry for entry in ledger.entries(answer.number)).body
    for first in range(1, charges, 5000):
        copies = range(first, min(first + 5000, charges))
        ledger._store.transact((), partial(_copied, ledger, paid, pattern, copies))


def _copied(ledger: Ledger, paid: Entry, pattern: str, copies: range, rows: Rows) -> Writes | None:
    """Return a transaction of copies of a charge and its answer, each with names of its own."""
    before = rows.head()
    if before is None:
        raise TypeError("the ledger has no head")
    record, draft = paid.record, Draft(rows, before, time=before.time)
    names = [record[name] for name in ("asked", "question", "request")]
    for copy in copies:
        asked, question, request = (f"{name[:-8]}{copy:08x}" for name in names)
        body = paid.body.replace(names[0], asked).replace(names[1], question).replace(names[2], request)
        charged = draft.add(body, request, None, None).number
        body = pattern.replace(names[1], question).replace(f'"charge":{paid.number}', f'"charge":{charged}')
        draft.add(body, None, question, charged)
    cost = charge_from(record).times(len(copies))
    for scope in (scope_of(record["people"]), scope_of(record["people"], analyst=record["analyst"])):
        old = draft.account(scope)
        new = Account(old.spent + cost, old.charges + len(copies), charged)
        draft.state.put(account_name(scope), account_text(new))
    return draft.seal(ledger._signing_key())
