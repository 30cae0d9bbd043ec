"""Attacks by somebody who can write the ledger's tables and has no key: totals, pointers, answers, ids (L17, L18).

The tables may be on a shared disk or server. What is in them is believed only as far as the signed head says so, and
before a charge, not at the next verification.
"""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import tacit
from tacit.errors import BudgetExceeded, LedgerError
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.ledger.damage import forget_the_total, lower_the_total
from tacit_gauntlet.stage.forgery import chained, ledger_of_id, watched_anchors, written
from tacit_gauntlet.stage.ledger import TENTH, again, ask, open_at, private_home, refused, register

Rewrite = Callable[[sqlite3.Connection], None]
ASKED = 3
# A third answer would be beyond the budget, and is what every forger is after.
BUDGET = tacit.epsilon(ASKED * TENTH)


@case("L17", title="totals, budgets and answers are rewritten or put back, without the key", feature="ledger")
def rewritten(size: Size) -> Evidence:
    """Each is refused before the charge, or finds the budget spent; a flipped byte changes nothing that is used."""
    flips = 60 if size == "quick" else 2000
    found: dict[str, object] = {}
    with private_home() as home:
        path, old = _spent_ledger(home)
        found |= {name: _gains_nothing(path, rewrite) for name, rewrite in _rewrites(old).items()}
        found["a row planted for the anchor"] = _anchor_is_not_fooled(path, old)
        wrong, answered = _flipped(path, flips)
    passed = all(found.values()) and not wrong
    return Evidence(passed, {**found, "flipped": flips, "still answered": answered, "used what is wrong": wrong})


def _spent_ledger(home: Path) -> tuple[Path, Path]:
    """Return a ledger whose budget is spent, and a copy of it from before the last two answers."""
    path, old = home / "ledger.db", home / "old.db"
    with open_at(path) as ledger:
        table = register(ledger, BUDGET)
        ask(ledger, table, "question 0", analyst="ann")
    shutil.copy(path, old)
    with open_at(path) as ledger:
        table = again(ledger)
        for turn in range(1, ASKED):
            ask(ledger, table, f"question {turn}", analyst="ann")
        ledger.grant("pay", BUDGET, analyst="ann", reason="as much as all")
    return path, old


def _rewrites(old: Path) -> dict[str, Rewrite]:
    return {
        "totals made nothing": lower_the_total,
        "totals removed": forget_the_total,
        "totals put back from an old copy": lambda tables: _put_back(tables, old, "account%"),
        "all of the state put back": lambda tables: _put_back(tables, old, "%"),
        "every budget removed": _remove_the_budgets,
        "a larger budget planted": _plant_a_budget,
        "an answer planted": _plant_an_answer,
    }


def _remove_the_budgets(tables: sqlite3.Connection) -> None:
    tables.execute("DELETE FROM tacit_state WHERE name LIKE 'budgets%'")


def _put_back(tables: sqlite3.Connection, old: Path, names: str) -> None:
    with closing(sqlite3.connect(old)) as copy:
        rows = copy.execute("SELECT value, name FROM tacit_state WHERE name LIKE ?", (names,)).fetchall()
    tables.executemany("UPDATE tacit_state SET value = ? WHERE name = ?", rows)


def _plant_a_budget(tables: sqlite3.Connection) -> None:
    """Add an entry that grants more, whole in itself, and have the state point to it."""
    (last, previous) = tables.execute("SELECT number, hash FROM tacit_head").fetchone()
    (body,) = tables.execute("""SELECT body FROM tacit_entry WHERE body LIKE '%"kind":"budget"%'""").fetchone()
    record = json.loads(body)
    record["budget"]["epsilon"] = record["rule"]["epsilon"] = "9"
    body = written(record)
    planted_entry = (last + 1, body, chained(previous, body))
    tables.execute("INSERT INTO tacit_entry (number, body, hash) VALUES (?, ?, ?)", planted_entry)
    pointer = written([[None, last + 1, planted_entry[2]]])
    tables.execute("UPDATE tacit_state SET value = ? WHERE name LIKE 'budgets%null]'", (pointer,))


def _plant_an_answer(tables: sqlite3.Connection) -> None:
    """Have the answer to a question say something else, with a hash that agrees."""
    (number, body) = tables.execute("SELECT number, body FROM tacit_entry WHERE question IS NOT NULL").fetchone()
    (previous,) = tables.execute("SELECT hash FROM tacit_entry WHERE number = ?", (number - 1,)).fetchone()
    other = body.replace("answer to", "another to")
    row = (other, chained(previous, other), number)
    tables.execute("UPDATE tacit_entry SET body = ?, hash = ? WHERE number = ?", row)


def _gains_nothing(path: Path, rewrite: Rewrite) -> bool:
    """Return whether, after a rewrite, nothing is charged or answered that should not be; the ledger is put back."""
    kept = _kept(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as tables:
        rewrite(tables)
    try:
        with open_at(path) as ledger:
            table = again(ledger)
            more = refused(lambda: _charged(ledger, table, "one more"), LedgerError, BudgetExceeded)
            known = [_recalled(ledger, table, turn) for turn in range(ASKED)]
    except LedgerError:
        return True
    finally:
        _restore(kept)
    return more and _are_right(known)


def _are_right(known: list[str | None]) -> bool:
    return all(text in {None, f'"answer to question {turn}"'} for turn, text in enumerate(known))


def _charged(ledger: Any, table: Any, question: str) -> None:
    if ask(ledger, table, question, analyst="ann") is None:
        raise BudgetExceeded("there is no room")


def _recalled(ledger: Any, table: Any, turn: int) -> str | None:
    """Return the stored answer to a question; None where the ledger has none, or refuses to say."""
    try:
        found = ledger.recall(table, question_key=f"question {turn}")
    except LedgerError:
        return None
    return None if found is None else str(found.answer)


def _kept(path: Path) -> dict[Path, bytes]:
    """Return the ledger and its anchor, to be put back after an attack that may have gone through."""
    return {file: file.read_bytes() for file in (path, *(path.parent / "anchors").iterdir())}


def _restore(kept: dict[Path, bytes]) -> None:
    for file, content in kept.items():
        file.write_bytes(content)
        for rest in ("-wal", "-shm"):
            file.with_name(file.name + rest).unlink(missing_ok=True)


def _anchor_is_not_fooled(path: Path, old: Path) -> bool:
    """An old copy is put back with a row that has the number and hash the anchor knows."""
    kept = _kept(path)
    with closing(sqlite3.connect(path)) as newest:
        (number, hash) = newest.execute("SELECT number, hash FROM tacit_head").fetchone()
    _restore({path: old.read_bytes()})
    with closing(sqlite3.connect(path, isolation_level=None)) as tables:
        tables.execute("INSERT INTO tacit_entry (number, body, hash) VALUES (?, '{}', ?)", (number, hash))
    try:
        return refused(lambda: open_at(path).close(), LedgerError)
    finally:
        _restore(kept)


def _flipped(path: Path, flips: int) -> tuple[int, int]:
    """Flip bits all over a ledger that has room; return how many led to something wrong, and how many answered."""
    with open_at(path) as ledger:
        ledger.grant("pay", tacit.epsilon(Fraction(1)), reason="more")
        ledger.grant("pay", tacit.epsilon(Fraction(1)), analyst="ann", reason="more")
    kept, wrong, answered = _kept(path), 0, 0
    whole = kept[path]
    for flip in range(flips):
        place = flip * len(whole) // flips
        _restore({**kept, path: whole[:place] + bytes([whole[place] ^ (1 << flip % 8)]) + whole[place + 1 :]})
        try:
            with open_at(path) as ledger:
                table = again(ledger)
                receipt = ask(ledger, table, "one more", analyst="ann")
                spent = ledger.spent(table).epsilon, ledger.spent(table, "ann").epsilon
                said = [_recalled(ledger, table, turn) for turn in range(ASKED)]
        except LedgerError:
            continue
        answered += 1
        wrong += receipt is None or spent != ((ASKED + 1) * TENTH,) * 2 or not _are_right(said)
    _restore(kept)
    return wrong, answered


@case("L18", title="a ledger is handed over whose id is a path", feature="ledger")
def foreign_ids(size: Size) -> Evidence:  # noqa: ARG001 (the ids are the full size)
    """It is refused without a look at the path: no file outside the folder of anchors is read, awaited or named."""
    with private_home() as home:
        target = home / "precious.txt"
        target.write_text("not an anchor\n")
        os.mkfifo(home / "waits")
        ids = [str(target), "../precious.txt", str(home / "waits"), "", ".", "A" * 32, "0" * 31 + "\n", "%s" * 16]
        told = {id: _told(home / f"{turn}.db", id, target) for turn, id in enumerate(ids)}
        untouched = target.read_text() == "not an anchor\n"
    failed = [repr(id) for id, right in told.items() if not right]
    return Evidence(untouched and not failed, {"ids": len(ids), "believed": ", ".join(failed) or "none"})


def _told(path: Path, id: str, target: Path) -> bool:
    """Return whether a ledger of that id is refused, in words that do not name the file it is after."""
    ledger_of_id(path, id)
    with watched_anchors(waits=id.endswith("waits")) as looked:
        try:
            open_at(path, create=False).close()
        except LedgerError as error:
            return not looked and target.name not in str(error)
    return False
