"""A backup is a whole ledger in another place: verified there, charged on after the curator's word, never in two."""

import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from tacit.cli import app as door
from tacit.errors import LedgerError
from tacit.ledger import back_up, open_ledger, restore
from tacit_gauntlet.stage.ledger import again, ask, register


@pytest.fixture
def spent(where):
    with open_ledger(where) as ledger:
        table = register(ledger)
        ledger.add_person("ben")
        secret = ledger.new_token("ben")
        assert ledger.whose(secret) is not None
        for turn in range(20):
            ask(ledger, table, f"question {turn}", epsilon=Fraction(1, 100), analyst="ben")
    return where, secret


def test_a_backup_holds_everything_and_is_restored_where_there_is_no_ledger(spent, tmp_path, monkeypatch):
    where, secret = spent
    copy, back = str(tmp_path / "copy.db"), str(tmp_path / "back.db")
    with open_ledger(where) as ledger:
        entries = [(entry.number, entry.hash, entry.body) for entry in ledger.entries()]
    assert back_up(where, copy).entries == restore(copy, back).entries == len(entries)
    with open_ledger(back, create=False) as ledger:
        assert [(entry.number, entry.hash, entry.body) for entry in ledger.entries()] == entries
        assert ledger.spent(again(ledger)).epsilon == Fraction(1, 5)
        assert ledger.whose(secret).name == "ben"
        (token,) = ledger.tokens()
        assert token.first_used is not None
        ledger.verify()


def test_a_copy_that_is_behind_what_was_answered_needs_the_curators_word(tmp_path):
    place, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    with open_ledger(place) as ledger:
        ask(ledger, register(ledger), "one")
    back_up(place, copy)
    with open_ledger(place) as ledger:
        ask(ledger, again(ledger), "two")
    for file in tmp_path.glob("ledger.db*"):
        file.unlink()
    restore(copy, place)
    with pytest.raises(LedgerError, match="behind"):
        open_ledger(place)
    with open_ledger(place, accept="disk lost") as ledger:
        assert ledger.verify().kinds["override"] == 1


def test_nothing_is_written_over_and_nothing_damaged_is_copied(tmp_path):
    place, copy = tmp_path / "ledger.db", tmp_path / "copy.db"
    with open_ledger(place) as ledger:
        ask(ledger, register(ledger), "one")
    back_up(place, copy)
    with pytest.raises(LedgerError, match="already"):
        back_up(place, copy)
    with pytest.raises(LedgerError, match="already"):
        restore(copy, place)
    with pytest.raises(LedgerError, match="no ledger"):
        restore(tmp_path / "nothing.db", tmp_path / "new.db")
    damaged = tmp_path / "damaged.db"
    shutil.copy(copy, damaged)
    content = bytearray(Path(damaged).read_bytes())
    at = content.index(b'"kind":"charge"')
    content[at + 8 : at + 14] = b"answer"
    Path(damaged).write_bytes(bytes(content))
    with pytest.raises(LedgerError):
        restore(damaged, tmp_path / "other.db")
    with pytest.raises(LedgerError, match="no ledger"):
        open_ledger(tmp_path / "other.db", create=False)


def test_the_commands_say_what_was_copied(tmp_path, capsys):
    place, copy, back = (str(tmp_path / name) for name in ("ledger.db", "copy.db", "back.db"))
    with open_ledger(place) as ledger:
        ask(ledger, register(ledger), "one")
    for words in (("backup", copy, "--ledger", place), ("restore", copy, "--ledger", back)):
        with pytest.raises(SystemExit):
            door.main(["ledger", *words])
    said = capsys.readouterr().out.splitlines()
    assert said == [
        f"copied and verified: 5 entries, with the hashes of tokens, to {copy}",
        "restored and verified: 5 entries",
    ]


def test_the_key_is_read_from_the_file_that_is_named(tmp_path, monkeypatch, tacit_home):
    with open_ledger(tmp_path / "ledger.db") as ledger:
        register(ledger)
    named = tmp_path / "shared.key"
    shutil.move(tacit_home / "signing.key", named)
    with open_ledger(tmp_path / "ledger.db") as ledger, pytest.raises(LedgerError, match=r"the key (.*) is missing"):
        ask(ledger, again(ledger), "one")
    monkeypatch.setenv("TACIT_KEY_FILE", str(named))
    with open_ledger(tmp_path / "ledger.db") as ledger:
        ask(ledger, again(ledger), "one")
    named.chmod(0o644)
    with open_ledger(tmp_path / "ledger.db") as ledger, pytest.raises(LedgerError, match="chmod 600"):
        ask(ledger, again(ledger), "two")
