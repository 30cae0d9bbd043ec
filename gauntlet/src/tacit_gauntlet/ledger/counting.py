"""Attacks on what the ledger counts: amounts, clocks, names, failures, repeats and length (L06-L09, L11, L13, L19)."""

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

import tacit
from tacit.errors import InvalidParameter, LedgerError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage import accounting
from tacit_gauntlet.stage.forgery import newer_layout
from tacit_gauntlet.stage.ledger import (
    CHARGES_A_PAGE,
    DECLARATION,
    TENTH,
    Connection,
    Ledger,
    RegisteredTable,
    again,
    ask,
    charge,
    fill,
    noon,
    open_at,
    private_home,
    refused,
    register,
)

THIRD = Fraction(1, 3)
# A million entries are three levels of the state's tree, which an empty ledger does not have.
WORK_MAX = 3


@case("L06", title="hostile amounts, and sums that must be exact", feature="ledger")
def amounts(size: Size) -> Evidence:  # noqa: ARG001 (forty checks are the full size)
    """Amounts are exact: nothing fits that should not, nothing is lost, and what is no amount is refused."""
    tenth, primes = Fraction("0.1"), (7, 43, 97, 10007)
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
            checks[f"file {path.name}"] = refused(partial(open_at, path), LedgerError)
    for event in _no_events():
        checks[f"event {event}"] = refused(partial(accounting.charge_of, event), InvalidParameter)
    for value in _no_amounts():
        checks[f"budget {value!r}"] = refused(partial(tacit.epsilon, value), InvalidParameter)
    failed = [name for name, passed in checks.items() if not passed]
    return Evidence(not failed, {"checks": len(checks), "failed": ", ".join(failed) or "none"})


def _fitting(home: Path, budget: float, amounts: list[Fraction]) -> int:
    """Return how many of the amounts were charged, if what was spent is their sum and no less."""
    with open_at(home / "amounts.db") as ledger:
        table = ledger.register(
            name=f"amounts {len(list(ledger.tables()))}", declaration=DECLARATION, budget=tacit.epsilon(budget)
        )
        charged = [one for turn, one in enumerate(amounts) if ask(ledger, table, str(turn), epsilon=one) is not None]
        spent = ledger.spent(table).epsilon
    exact = spent is not None and sum(charged) <= spent <= Fraction(str(budget))
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


def _no_events() -> list[accounting.Event]:
    nan: Fraction = float("nan")  # type: ignore[assignment]
    return [
        accounting.choice(Fraction(-1)),
        accounting.choice(nan),
        accounting.choice(True),  # type: ignore[arg-type]
        accounting.choice("1"),  # type: ignore[arg-type]
        accounting.laplace(scale=Fraction(0), sensitivity=Fraction(1)),
        accounting.laplace(scale=Fraction(-1), sensitivity=Fraction(1)),
        accounting.laplace(scale=nan, sensitivity=Fraction(1)),
        accounting.gaussian(sigma=Fraction(0), sensitivity_squared=Fraction(1)),
        accounting.gaussian(sigma=Fraction(1), sensitivity_squared=Fraction(-1)),
        accounting.threshold(Fraction(-1, 10)),
        accounting.threshold(0.5),  # type: ignore[arg-type]
    ]


def _no_ledgers(home: Path) -> list[Path]:
    text, other, newer = home / "text.db", home / "other.db", home / "newer.db"
    text.write_bytes(b"this is not a database, and long enough to look at: " * 100)
    with closing(sqlite3.connect(other)) as database:
        database.execute("CREATE TABLE somebody (else_ TEXT)")
    open_at(newer).close()
    newer_layout(newer)
    return [text, other, newer, home, text / "nowhere.db"]


@case("L07", title="the clock jumps back and forth across periods", feature="ledger")
def clocks(size: Size) -> Evidence:  # noqa: ARG001 (the ten jumps are the full size)
    """A period that was left never has room again, whatever the clock says later."""
    start = datetime(2026, 3, 10, 12, tzinfo=UTC)
    now = [start]
    jumps = [(0, 1), (-1, 0), (-400, 0), (1, 1), (0, 0), (-1, 0), (2, 1), (1, 0), (-3000, 0), (3, 1)]
    faults = []
    with private_home() as home, open_at(home / "ledger.db", clock=lambda: now[0]) as ledger:
        table = register(ledger, tacit.epsilon(Fraction(100)))
        ledger.grant("pay", tacit.epsilon(TENTH), period="day", reason="a tenth a day")
        for turn, (days, room) in enumerate(jumps):
            now[0] = start + timedelta(days=days)
            try:
                got = sum(ask(ledger, table, f"{turn} {one}") is not None for one in range(2))
            except LedgerError as refusal:  # no jump is so far that a reading is not believed
                faults.append(f"at day {days:+}: {refusal}")
                continue
            if got != room:
                faults.append(f"at day {days:+} {got} fitted and {room} should")
    return Evidence(not faults, {"jumps": len(jumps), "faults": "; ".join(faults) or "none"})


@case("L08", title="the same people under other names", feature="ledger")
def aliases(size: Size) -> Evidence:  # noqa: ARG001 (the eight tricks are the full size)
    """A budget follows the people: a new name, a new upload or a colluding analyst finds it spent."""
    tricks: dict[str, Callable[[Ledger], bool]] = {
        "the same source under a second name": lambda ledger: _cannot(ledger, name="wages", source="pay"),
        "a second name with a budget of its own": lambda ledger: _cannot(
            ledger, name="wages", source="pay", budget=tacit.epsilon(Fraction(9))
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
            ledger, name="pay", source="pay", budget=tacit.epsilon(Fraction(9))
        ),
        "another analyst": lambda ledger: ask(ledger, again(ledger), "more", analyst="bob") is None,
    }
    survived = {}
    for name, trick in tricks.items():
        with private_home() as home, open_at(home / "ledger.db") as ledger:
            ask(ledger, register(ledger), "all", epsilon=Fraction(1), analyst="ann")
            survived[name] = trick(ledger)
    return Evidence(all(survived.values()), survived)


def _declared(ledger: Ledger, *, version: int = 1, **words: Any) -> RegisteredTable:
    return ledger.register(declaration={**DECLARATION, "version": version}, **words)


def _cannot(ledger: Ledger, **words: Any) -> bool:
    return refused(lambda: _declared(ledger, **words), InvalidParameter)


def _finds_it_spent(ledger: Ledger, *, version: int = 1, **words: Any) -> bool:
    try:
        return ask(ledger, _declared(ledger, version=version, **words), "more") is None
    except InvalidParameter:  # they are taken for other people, who have no budget yet
        return False


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
    with private_home() as home, open_at(home / "ledger.db") as ledger:
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
            with open_at(home / "ledger.db") as ledger:
                budget = tacit.epsilon(Fraction(1)) if restart == 0 else None
                table = _declared(ledger, version=1 + restart // 2, name="pay", source="pay", budget=budget)
                for _ in range(retries // restarts):
                    receipt = ask(ledger, table, "the question", request_id="the request", analyst="ann")
                    answers.add(receipt)
        with open_at(home / "ledger.db") as ledger:
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
        with open_at(path, clock=noon) as ledger:
            table = register(ledger, tacit.epsilon(Fraction(10**6)))
            work.append(_work_of_charges(path, "early"))
            fill(ledger, table, entries // 2)
            work.append(_work_of_charges(path, "late"))
        start, processor = time.perf_counter(), time.process_time()
        with open_at(path) as ledger:
            verified = ledger.verify()
            left = ledger.left(table)
        # what else the machine is doing is not the ledger's
        seconds = min(time.perf_counter() - start, time.process_time() - processor)
    exact = left.epsilon == 10**6 - (entries // 2) * Fraction(1, 1000) - 2 * CHARGES_A_PAGE * TENTH
    in_time = size == "quick" or seconds <= seconds_max
    details = {"entries": verified.entries, "steps of charges": work, "seconds to verify": round(seconds, 2)}
    return Evidence(exact and in_time and work[1] <= WORK_MAX * work[0], details)


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
    for turn in range(CHARGES_A_PAGE):
        counter = [0]
        with open_at(path, clock=noon, connect=lambda name, counter=counter: _counting(name, counter)) as ledger:  # type: ignore[misc]
            table = again(ledger)
            before = counter[0]
            ask(ledger, table, f"{question} {turn}")
            steps += counter[0] - before
    return steps


TODAY = datetime(2026, 3, 10, 12, tzinfo=UTC)
WRONG = datetime(2099, 1, 1, tzinfo=UTC)


@case("L19", title="one reading of a clock that is decades ahead", feature="ledger")
def far_ahead(size: Size) -> Evidence:  # noqa: ARG001 (the eleven checks are the full size)
    """It is refused before anything is written; where it was believed, the curator's word ends it, and no more."""
    now = [TODAY]
    with private_home() as home, open_at(home / "ledger.db", clock=lambda: now[0]) as ledger:
        table = register(ledger, tacit.epsilon(Fraction(100)))
        ledger.grant("pay", tacit.epsilon(TENTH), period="day", reason="a tenth a day")
        before = ledger.length()
        now[0] = WRONG
        checks = {"a reading of 2099 is refused": refused(lambda: charge(ledger, table, "in 2099"), LedgerError)}
        checks["and nothing is written"] = ledger.length() == before
        now[0] = TODAY
        checks["today goes on"] = ask(ledger, table, "today") is not None
        checks["and today is used up"] = ask(ledger, table, "today again") is None
        now[0] = TODAY + timedelta(days=3)
        checks["a later day has room"] = ask(ledger, table, "later") is not None
        now[0] = TODAY + timedelta(days=1)
        checks["no way back over closed days"] = refused(lambda: ledger.correct_clock("back"), InvalidParameter)
        now[0] = WRONG
        by_hand = partial(ledger.correct_clock, "the curator believes it")
        checks["2099 is believed by the curator's word alone"] = not refused(by_hand, InvalidParameter)
        checks["2099 has room of its own"] = ask(ledger, table, "in 2099") is not None
        now[0] = TODAY + timedelta(days=3, hours=1)
        checks["2099 keeps today closed"] = ask(ledger, table, "frozen") is None
        ledger.correct_clock("it was the battery")
        checks["what today spent is spent"] = ask(ledger, table, "more") is None
        now[0] = TODAY + timedelta(days=4)
        checks["the next day has room"] = ask(ledger, table, "next") is not None
        ledger.verify()
    failed = [name for name, passed in checks.items() if not passed]
    return Evidence(not failed, {"checks": len(checks), "failed": "; ".join(failed) or "none"})
