"""Old copies, damaged ones, and others in their place: a ledger put back, flipped or replaced (L04, L05, L22, L23)."""

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import tacit
from tacit.errors import BudgetExceeded, InvalidParameter, LedgerError
from tacit_gauntlet.frame.case import Attack, Evidence, Size, case
from tacit_gauntlet.stage.forgery import chained, nothing_spent, number_text, written
from tacit_gauntlet.stage.ledger import (
    TENTH,
    Ledger,
    again,
    answered,
    ask,
    charge,
    open_at,
    private_home,
    refused,
    register,
    reopened,
)


@case("L04", title="an old copy of the ledger is put back, extended, or used beside the real one", feature="ledger")
def rollback(size: Size) -> Evidence:  # noqa: ARG001 (the six scenarios are the full size)
    """Each scenario would let a budget be spent twice: each is refused before an answer leaves."""
    scenarios: list[Callable[[Path], bool]] = [
        _restored,
        _restored_and_extended,
        _removed,
        _two_copies_at_once,
        _put_back_while_open,
        _accepted_for_the_record,
    ]
    survived = {}
    for scenario in scenarios:
        with private_home() as home:
            path = home / "ledger.db"
            with open_at(path) as ledger:
                ask(ledger, register(ledger), "before")
            survived[scenario.__name__.strip("_").replace("_", " ")] = scenario(path)
    return Evidence(all(survived.values()), survived)


def _restored(path: Path) -> bool:
    old = _copied(path)
    _asked(path, "after")
    shutil.copy(old, path)
    return refused(lambda: open_at(path), LedgerError)


def _restored_and_extended(path: Path) -> bool:
    """The copy is extended where no anchor looks, past the number the anchor has, and brought back."""
    old = _copied(path)
    _asked(path, "after")
    with private_home() as elsewhere:
        shutil.copy(path.parent / "signing.key", elsewhere)
        for turn in range(4):
            _asked(old, f"again {turn}")
    shutil.copy(old, path)
    return refused(lambda: open_at(path), LedgerError)


def _removed(path: Path) -> bool:
    path.unlink()
    return refused(lambda: open_at(path), LedgerError)


def _two_copies_at_once(path: Path) -> bool:
    twin = _copied(path)
    here, there = reopened(path), reopened(twin)
    ask(*here, "once")
    reserved = charge(*there, "twice")
    stopped = refused(lambda: reserved.commit('"a second answer"'), LedgerError)
    here[0].close()
    there[0].close()
    return stopped


def _put_back_while_open(path: Path) -> bool:
    ledger, table = reopened(path)
    with closing(sqlite3.connect(path)) as other, other:
        head = other.execute("SELECT number, hash, root, time, signature FROM tacit_head").fetchone()
        state = other.execute("SELECT name, place, value FROM tacit_state").fetchall()
        ask(ledger, table, "after")
        other.execute("DELETE FROM tacit_entry WHERE number > ?", (head[0],))
        other.execute("DELETE FROM tacit_state")
        other.executemany("INSERT INTO tacit_state (name, place, value) VALUES (?, ?, ?)", state)
        other.execute("UPDATE tacit_head SET number = ?, hash = ?, root = ?, time = ?, signature = ?", head)
    stopped = refused(lambda: ask(ledger, table, "more"), LedgerError)
    ledger.close()
    return stopped


def _accepted_for_the_record(path: Path) -> bool:
    old = _copied(path)
    _asked(path, "after")
    shutil.copy(old, path)
    with open_at(path, accept="the disk of the newest copy is lost") as ledger:
        ledger.verify()
        kinds = [entry.kind for entry in ledger.entries()]
    _asked(path, "more")
    return kinds[-1] == "override" and refused(lambda: open_at(path, accept="for no reason"), InvalidParameter)


def _copied(path: Path) -> Path:
    copy = path.with_name("old.db")
    shutil.copy(path, copy)
    return copy


def _asked(path: Path, question: str) -> None:
    ledger, table = reopened(path)
    ask(ledger, table, question)
    ledger.close()


# Every byte of the file is tried, in parts that each end in time.
PARTS = [f"L05{letter}" for letter in ("", *"bcdefghijklmn")]
QUICK = 173


def _attack_of(part: int) -> Attack:
    def attack(size: Size) -> Evidence:
        stride = len(PARTS) * (1 if size == "full" else QUICK if part else QUICK // len(PARTS))
        return damage_at_every(stride, first=part)

    return attack


for _part, _id in enumerate(PARTS):
    _title = f"bytes are flipped, cut, swapped, doubled and rewritten (part {_part + 1} of {len(PARTS)})"
    case(_id, title=_title, feature="ledger")(_attack_of(_part))


def damage_at_every(stride: int, *, first: int = 0) -> Evidence:
    """Flip a bit of every `stride`-th byte from the `first` on; from the very first, also cut at every page and forge.

    Every damage is found by verifying, or changes no entry, no total and no answer.
    """
    with private_home() as home:
        path = home / "ledger.db"
        with open_at(path) as ledger:
            table = register(ledger)
            for question in ("one", "two", "three"):
                ask(ledger, table, question, request_id=question, analyst="ann")
        whole, before = path.read_bytes(), _contents(path)
        tried = unnoticed = 0
        for tampered in _flips(whole, stride, first):
            tried += 1
            unnoticed += _goes_unnoticed(path, tampered, before)
        forged = () if first else _forgeries(home, whole)
        missed = [what for what, tampered in forged if _goes_unnoticed(path, tampered, before)]
    details = {
        "bytes": len(whole),
        "flips and cuts": tried,
        "unnoticed": unnoticed,
        "forgeries unnoticed": ", ".join(missed) or "none",
    }
    return Evidence(unnoticed == 0 and not missed, details)


def _flips(whole: bytes, stride: int, first: int) -> Iterator[bytes]:
    """Yield the file with one bit flipped, in turn at every `stride`-th byte, and, once, cut short at every page."""
    for place in range(first, len(whole), stride):
        flipped = bytes([whole[place] ^ (1 << place % 8)])
        yield whole[:place] + flipped + whole[place + 1 :]
    for length in range(0, 0 if first else len(whole), 4096):
        yield whole[:length]


def _forgeries(home: Path, whole: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the file as rewritten by somebody who knows how it works and does not have the key."""
    for what, forge in FORGERIES.items():
        draft = home / "forged.db"
        draft.write_bytes(whole)
        with closing(sqlite3.connect(draft, isolation_level=None)) as database:
            database.execute("PRAGMA journal_mode = DELETE")
            forge(database)
        yield what, draft.read_bytes()


def _swap(database: sqlite3.Connection) -> None:
    rows = database.execute("SELECT number, body, hash FROM tacit_entry WHERE number IN (4, 6)").fetchall()
    for number, (_, body, hash) in zip((6, 4), rows, strict=True):
        database.execute("UPDATE tacit_entry SET body = ?, hash = ? WHERE number = ?", (body, hash, number))


def _double(database: sqlite3.Connection) -> None:
    database.execute(
        "INSERT INTO tacit_entry (number, body, hash) SELECT 10, body, hash FROM tacit_entry WHERE number = 9"
    )


def _drop_the_last(database: sqlite3.Connection) -> None:
    """Undo the last answer, its head included, as far as it goes without the key."""
    database.execute("DELETE FROM tacit_entry WHERE number = 9")
    database.execute("UPDATE tacit_head SET number = 8, hash = (SELECT hash FROM tacit_entry WHERE number = 8)")


def _cheapen(database: sqlite3.Connection) -> None:
    """Make an old charge smaller, and its own hash and every total agree with that."""
    (body,) = database.execute("SELECT body FROM tacit_entry WHERE number = 4").fetchone()
    (previous,) = database.execute("SELECT hash FROM tacit_entry WHERE number = 3").fetchone()
    record = json.loads(body)
    saved = Fraction(record["epsilon"]) - Fraction(1, 1000)
    record["epsilon"] = "1/1000"
    cheap = written(record)
    database.execute("UPDATE tacit_entry SET body = ?, hash = ? WHERE number = 4", (cheap, chained(previous, cheap)))
    for name, value in database.execute("SELECT name, value FROM tacit_state WHERE name LIKE 'account%'").fetchall():
        account = json.loads(value)
        account["spent"]["epsilon"] = number_text(Fraction(account["spent"]["epsilon"]) - saved)
        database.execute("UPDATE tacit_state SET value = ? WHERE name = ?", (written(account), name))


def lower_the_total(database: sqlite3.Connection) -> None:
    """Make every total nothing, as though nothing had been charged."""
    nothing = nothing_spent()
    database.execute("UPDATE tacit_state SET value = ? WHERE name LIKE 'account%'", (nothing,))


def forget_the_total(database: sqlite3.Connection) -> None:
    """Remove every total."""
    database.execute("DELETE FROM tacit_state WHERE name LIKE 'account%'")


def _point_elsewhere(database: sqlite3.Connection) -> None:
    database.execute("UPDATE tacit_state SET value = '[1,\"x\"]' WHERE name NOT LIKE 'account%'")


def _rewrite_an_answer(database: sqlite3.Connection) -> None:
    """Put other words into an answer, and make its own hash agree with that."""
    (body,) = database.execute("SELECT body FROM tacit_entry WHERE number = 5").fetchone()
    (previous,) = database.execute("SELECT hash FROM tacit_entry WHERE number = 4").fetchone()
    other = body.replace("answer to", "another to")
    database.execute("UPDATE tacit_entry SET body = ?, hash = ? WHERE number = 5", (other, chained(previous, other)))


def _redirect_the_answer(database: sqlite3.Connection) -> None:
    rows = database.execute("SELECT number, question FROM tacit_entry WHERE question IS NOT NULL").fetchall()
    for (number, _), (_, question) in zip(rows, reversed(rows), strict=True):
        database.execute("UPDATE tacit_entry SET question = ? WHERE number = ?", (question, number))


def _plant_a_trigger(database: sqlite3.Connection) -> None:
    database.execute("CREATE TRIGGER free AFTER UPDATE ON tacit_state BEGIN UPDATE tacit_state SET value = '0'; END")


FORGERIES = {
    "two entries swapped": _swap,
    "an entry doubled": _double,
    "the last answer undone": _drop_the_last,
    "an old charge made cheaper": _cheapen,
    "a total lowered": lower_the_total,
    "a total forgotten": forget_the_total,
    "a budget's pointer moved": _point_elsewhere,
    "an answer rewritten": _rewrite_an_answer,
    "an answer given to another question": _redirect_the_answer,
    "a trigger that refunds": _plant_a_trigger,
}


def _goes_unnoticed(path: Path, tampered: bytes, before: object) -> bool:
    """Return whether the ledger opens and verifies although it says something else than before."""
    path.write_bytes(tampered)
    for rest in ("-wal", "-shm"):
        path.with_name(path.name + rest).unlink(missing_ok=True)
    try:
        return _contents(path) != before
    except LedgerError:
        return False
    except Exception:
        return True  # what is not our error may quote what was in the file


def _contents(path: Path) -> object:
    """Return all that a ledger says, once it has verified: entries, totals, and the answers it would give again."""
    with open_at(path) as ledger:
        ledger.verify()
        return [(entry.number, entry.body, entry.hash) for entry in ledger.entries()], _said(ledger)


def _said(ledger: Ledger) -> object:
    table = next(table for table in ledger.tables() if table.name == "pay")
    answers = [
        ledger.recall(table, question_key=question, request_id=request, analyst="ann")
        for question in ("one", "two", "three")
        for request in (None, question)
    ]
    return table, ledger.spent(table), ledger.spent(table, "ann"), answers


BUDGET = tacit.epsilon(TENTH)


@case("L22", title="another ledger of the same key is put in the place of a spent one", feature="ledger")
def put_in_place(_: Size) -> Evidence:
    """Copied over it, moved there or linked to: it is refused, and the spent one put back is as it was."""
    with private_home() as home:
        spent, other, kept = home / "spent.db", home / "other.db", home / "kept.db"
        with open_at(spent) as ledger:
            ask(ledger, register(ledger, BUDGET), "the one question")
        with open_at(other) as ledger:
            register(ledger, BUDGET, name="something else")
        spent.rename(kept)
        shutil.copy(other, spent)
        checks = {"a copy": _is_refused(spent)}
        spent.unlink()
        spent.symlink_to(other)
        checks["a link"] = _is_refused(spent)
        checks["a link, from its own folder"] = _is_refused(Path(os.path.relpath(spent)))
        spent.unlink()
        other.rename(spent)
        checks["the other itself"] = _is_refused(spent)
        kept.replace(spent)
        with open_at(spent) as ledger:
            checks["the spent one is spent"] = ask(ledger, register(ledger, BUDGET), "a second question") is None
    failed = [name for name, passed in checks.items() if not passed]
    return Evidence(not failed, {"ways": len(checks), "answered": "; ".join(failed) or "none"})


def _is_refused(path: Path) -> bool:
    def answer() -> None:
        with open_at(path) as ledger:
            ask(ledger, register(ledger, BUDGET), "a second question")

    return refused(answer, LedgerError)


@case("L23", title="an analyst with a budget asks for answers that others paid for", feature="ledger")
def paid_by_others(_: Size) -> Evidence:
    """What an analyst is shown adds up to no more than their budget, whoever asked first and wherever it was stored."""
    with private_home() as home, open_at(home / "ledger.db") as ledger:
        table = register(ledger, tacit.epsilon(Fraction(100)))
        for turn in range(5):
            ask(ledger, table, f"question {turn}", epsilon=Fraction(1), analyst="ann")
        checks = {"those without one share": _shown(ledger, 5, "cid") == 5}
        ledger.grant("pay", tacit.epsilon(Fraction(2)), analyst="bob", reason="two")
        ledger.grant("pay", tacit.epsilon(TENTH), analyst="dan", period="day", reason="a tenth a day")
        checks["bob"] = _shown(ledger, 5, "bob") == 2
        checks["bob has again what he had"] = _shown(ledger, 5, "bob") == 2
        checks["dan"] = _shown(ledger, 5, "dan") == 0
        ledger.grant("pay", tacit.epsilon(Fraction(1)), analyst="*", reason="one each")
        checks["each"] = _shown(ledger, 5, "eve") == 1
        ledger.verify()
    failed = [name for name, passed in checks.items() if not passed]
    return Evidence(not failed, {"checks": len(checks), "failed": "; ".join(failed) or "none"})


def _shown(ledger: Ledger, questions: int, analyst: str) -> int:
    """Return how many of the questions, each of epsilon 1, an analyst is answered."""
    table, shown = again(ledger), 0
    for turn in range(questions):
        key = f"question {turn}"
        try:
            answered(ledger, table, key, epsilon=Fraction(1), analyst=analyst)
        except BudgetExceeded:
            continue
        shown += 1
    return shown
