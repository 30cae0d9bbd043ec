"""Attacks by people on a ledger that knows them: spellings, ends, budgets and tokens (L28-L33).

Tokens are attacked here where they are kept; what a server does with them is the server's cases.
"""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import tacit
from tacit.errors import InvalidParameter, LedgerError, NotAllowed
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.ledger import (
    TENTH,
    Connection,
    Ledger,
    RegisteredTable,
    ask,
    connected,
    open_at,
    private_home,
    refused,
    register,
)

SPELLINGS = ("Jos\u00e9", "jos\u00e9", "JOSE\u0301", "JOS\u00c9", "jose\u0301")
GUESSES = {"quick": 40, "full": 2000}


class _Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 16, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


@case("L28", title="one person asks under every spelling of a name", feature="ledger")
def spellings(size: Size) -> Evidence:  # noqa: ARG001 (every spelling is the full size)
    """They have one budget, one account and one set of answers; a look-alike of a person is let in under no name."""
    with private_home() as home, open_at(home / "ledger.db") as ledger:
        table = register(ledger)
        ledger.grant("pay", tacit.epsilon(2 * TENTH), analyst=SPELLINGS[0])
        answered = [ask(ledger, table, f"question {turn}", analyst=name) for turn, name in enumerate(SPELLINGS)]
        again = [ask(ledger, table, "question 0", analyst=name) for name in SPELLINGS]
        ledger.add_person("copy")
        alike = [refused(partial(ledger.add_person, name), InvalidParameter) for name in _look_alikes()]
        found = {
            "answered": sum(each is not None for each in answered),
            "spent under each": {str(ledger.spent(table, name).epsilon) for name in SPELLINGS},
            "the same answer under each": len({None if each is None else each.number for each in again}) == 1,
            "look-alikes refused": all(alike),
            "names": len(ledger.analysts(table)),
        }
        ledger.verify()
    passed = (
        found["answered"] == 2
        and found["spent under each"] == {"1/5"}
        and found["the same answer under each"] is True
        and found["look-alikes refused"] is True
        and found["names"] == 1
    )
    return Evidence(passed, {name: str(value) for name, value in found.items()})


def _look_alikes() -> tuple[str, ...]:
    return ("\u0441\u043e\u0440\u0443", "c\u043epy", "c0py", "\uff43opy", "co\u200bpy", "copy\u202e", "co\tpy")


@case("L29", title="people ask who may not: ended, late, auditors, of other tables, without a name", feature="ledger")
def not_allowed(size: Size) -> Evidence:  # noqa: ARG001 (each way once is the full size)
    """None is charged, none is given what is stored, each refusal is an entry, and a clock set back reopens nothing."""
    clock = _Clock()
    with private_home() as home, open_at(home / "ledger.db", clock=clock) as ledger:
        table, other = register(ledger), register(ledger, name="school")
        _let_in(ledger)
        for question in ("pay", "school"):
            ask(ledger, {"pay": table, "school": other}[question], "stored", analyst="ada")
        clock.now += timedelta(days=20)
        ledger.end_person("ended", reason="left")
        before = [ledger.spent(each) for each in (table, other)]
        tries: dict[str, tuple[RegisteredTable, str | None]] = {
            "ended": (table, "ENDED"),
            "late": (table, "late"),
            "an auditor": (table, "otto"),
            "another table": (other, "ben"),
            "a join with another table": (replace(table, beside=(other.id,)), "ben"),
            "unknown": (table, "eve"),
            "without a name": (table, None),
        }
        found = {name: _gets_nothing(ledger, *tried) for name, tried in tries.items()}
        clock.now -= timedelta(days=15)
        found["late, with the clock set back"] = _gets_nothing(ledger, table, "late")
        found["who may ask does"] = ask(ledger, table, "new", analyst="Ben") is not None
        charged = [ledger.spent(each) for each in (table, other)]
        found["nothing is charged to them"] = charged[1] == before[1] and charged[0].epsilon == (
            (before[0].epsilon or Fraction(0)) + TENTH
        )
        found["each is an entry"] = sum(entry.kind == "refusal" for entry in ledger.entries()) == len(tries) + 1
        found["it verifies"] = not refused(ledger.verify, LedgerError)
    return Evidence(all(found.values()), {name: str(value) for name, value in found.items()})


def _let_in(ledger: Ledger) -> None:
    ledger.add_person("ada", role="curator")
    ledger.add_person("Ben", tables=["pay"])
    ledger.add_person("ended")
    ledger.add_person("late", until="2026-12-01")
    ledger.add_person("otto", role="auditor")


def _gets_nothing(ledger: Ledger, table: RegisteredTable, analyst: str | None) -> bool:
    """Return whether someone is refused a new question, and what is stored."""
    return refused(lambda: ledger.recall(table, question_key="stored", analyst=analyst), NotAllowed) and refused(
        lambda: ask(ledger, table, "new", analyst=analyst), NotAllowed
    )


@case("L30", title="a budget is lowered below what is spent, revoked, and granted anew", feature="ledger")
def lowered(size: Size) -> Evidence:  # noqa: ARG001 (one history is the full size)
    """Nothing more fits, nothing is given back, and a later grant counts from what was spent."""
    with private_home() as home, open_at(home / "ledger.db") as ledger:
        table = register(ledger)
        fits = []

        def step(question: str) -> None:
            fits.append(ask(ledger, table, question, analyst="ben") is not None)

        for question in ("one", "two", "three"):
            step(question)
        ledger.grant("pay", tacit.epsilon(2 * TENTH), analyst="ben", reason="lowered")
        step("four")
        ledger.revoke("pay", analyst="BEN", reason="revoked")
        step("five")
        ledger.grant("pay", tacit.epsilon(4 * TENTH), analyst="ben", reason="anew")
        step("six")
        step("seven")
        spent = ledger.spent(table, "ben").epsilon
        whole = not refused(ledger.verify, LedgerError)
    wanted = [True, True, True, False, False, True, False]
    passed = fits == wanted and spent == 4 * TENTH and whole
    return Evidence(passed, {"fits": str(fits), "spent": str(spent), "verifies": str(whole)})


@case("L31", title="a token is stolen from the database, kept too long, or planted there", feature="ledger")
def stolen(size: Size) -> Evidence:  # noqa: ARG001 (each way once is the full size)
    """No file has a secret; an end holds at once for another process's ledger; no row makes a token or changes one."""
    with private_home() as home:
        path = home / "ledger.db"
        with open_at(path) as ledger, open_at(path) as replica:
            ledger.add_person("ben")
            ledger.add_person("ada", role="curator")
            bens, adas, gone = ledger.new_token("ben"), ledger.new_token("ada"), ledger.new_token("ben")
            held = [replica.whose(each) is not None for each in (bens, adas, gone)]
            ledger.end_token(gone, reason="lost")
            found = {
                "each is its person's": all(held),
                "no file has one": not _written_in(home, (bens, adas, gone)),
                "an end holds at once elsewhere": replica.whose(gone) is None,
                "a row gives nobody another's": _rows_gain_nothing(path, ledger, bens, adas),
            }
            ledger.end_person("ben")
            found["a person's end ends it"] = replica.whose(bens) is None
            ledger.add_person("ben")
            found["and it stays ended"] = replica.whose(bens) is None
            ledger.verify()
    return Evidence(all(found.values()), {name: str(value) for name, value in found.items()})


def _written_in(home: Path, secrets: tuple[str, ...]) -> bool:
    stored = b"".join(each.read_bytes() for each in home.rglob("*") if each.is_file())
    return any(part.encode() in stored for secret in secrets for part in (secret, secret[-43:]))


def _rows_gain_nothing(path: Path, ledger: Ledger, bens: str, adas: str) -> bool:
    """Put ben's hash in the row of ada's token, and in a row of its own: neither lets ben in as ada."""
    forged = adas[:22] + bens[22:]
    with closing(sqlite3.connect(path, isolation_level=None)) as tables:
        ((mine,),) = tables.execute("SELECT hash FROM tacit_token WHERE id = ?", (bens[6:22],)).fetchall()
        ((hers,),) = tables.execute("SELECT hash FROM tacit_token WHERE id = ?", (adas[6:22],)).fetchall()
        tables.execute("UPDATE tacit_token SET hash = ? WHERE id = ?", (_hash_of(forged), adas[6:22]))
        tables.execute("INSERT INTO tacit_token (id, hash) VALUES (?, ?)", ("f" * 16, mine))
        gained = [ledger.whose(forged), ledger.whose("tacit_" + "f" * 16 + bens[22:])]
        tables.execute("UPDATE tacit_token SET hash = ? WHERE id = ?", (hers, adas[6:22]))
    return gained == [None, None] and ledger.whose(bens) is not None


def _hash_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


@case("L32", title="tokens are guessed: ids that are there, that are not, that ended", feature="ledger")
def guessed(size: Size) -> Evidence:
    """Every wrong one has the same answer after the same statements to the store: the time tells nothing of an id."""
    counted: Counter[str] = Counter()
    with private_home() as home, open_at(home / "ledger.db", connect=_counting(counted)) as ledger:
        ledger.add_person("ben")
        held, ended = ledger.new_token("ben"), ledger.new_token("ben")
        ledger.whose(held)
        ledger.end_token(ended)
        wrong = held[:-1] + ("A" if held[-1] != "A" else "B")
        guesses = {"a wrong secret": [wrong], "an id that ended": [ended], "no token at all": ["x", "", "tacit_"]}
        guesses["an id that is not there"] = [f"tacit_{turn:016x}_{'A' * 43}" for turn in range(GUESSES[size])]
        ledger.whose(wrong)  # what it reads is at hand from here on
        taken: dict[str, set[int]] = {}
        for name, secrets in guesses.items():
            for secret in secrets:
                counted.clear()
                if ledger.whose(secret) is not None:
                    return Evidence(False, {"let in": name})
                taken.setdefault(name, set()).add(counted["statements"])
    same = len(set().union(*taken.values())) == 1
    return Evidence(same, {name: sorted(steps) for name, steps in taken.items()})


def _counting(counted: "Counter[str]") -> Callable[[str], Any]:
    class Counting:
        """A connection that counts its statements."""

        def __init__(self, within: Connection) -> None:
            self.within = within

        def execute(self, statement: str, *values: Any) -> Any:
            counted["statements"] += 1
            return self.within.execute(statement, *values)

        def executemany(self, statement: str, rows: Any) -> Any:
            return self.within.executemany(statement, rows)

        def close(self) -> None:
            self.within.close()

    return lambda name: Counting(connected(name))


@case("L33", title="a day of people and tokens, read back from the ledger", feature="ledger")
def audited(size: Size) -> Evidence:  # noqa: ARG001 (one day is the full size)
    """Every act and every refusal is an entry with its reason, the first and last use are shown, and it verifies."""
    clock = _Clock()
    with private_home() as home, open_at(home / "ledger.db", clock=clock) as ledger:
        table = register(ledger)
        ledger.add_person("ben", reason="a study")
        short, lost = ledger.new_token("ben", until=clock.now + timedelta(hours=1)), ledger.new_token("ben")
        for turn in range(3):
            clock.now += timedelta(minutes=5)
            ledger.whose(short)
            ask(ledger, table, f"question {turn}", analyst="ben")
        ledger.end_token(lost, reason="lost")
        clock.now += timedelta(hours=1)
        ledger.whose(short)
        ledger.end_person("ben", reason="left")
        refused(lambda: ask(ledger, table, "late", analyst="ben"), NotAllowed)
        kinds = ledger.verify().kinds
        reasons = {entry.record.get("reason") for entry in ledger.entries() if entry.kind in {"person", "token"}}
        used = [(token.first_used, token.last_used, token.holds) for token in ledger.tokens()]
        token = next(each for each in ledger.tokens() if each.id == short[6:22])
    found = {
        "entries": {kind: kinds.get(kind) for kind in ("person", "token", "refusal")},
        "reasons": sorted(str(reason) for reason in reasons if reason),
    }
    passed = (
        found["entries"] == {"person": 2, "token": 4, "refusal": 1}
        and found["reasons"] == ["a study", "its time is over", "left", "lost"]
        and token.ended
        and not any(holds for *_, holds in used)
    )
    return Evidence(passed, {name: str(value) for name, value in found.items()})
