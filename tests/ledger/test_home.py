"""A ledger opens only where it is one, is ours, and can be trusted; anything else is a clear error and no answer."""

import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing, suppress

import psycopg
import pytest

from tacit.errors import InvalidParameter, LedgerError
from tacit.ledger import anchor, home, open_ledger, sqlite
from tacit.ledger.anchor import anchored_at
from tacit.ledger.chain import canonical, digest
from tacit.ledger.entry import SCHEMA
from tacit.privacy.loss import epsilon
from tacit_gauntlet.stage.ledger import DECLARATION, again, ask, charge, register


def test_without_a_name_the_ledger_is_in_the_home_folder(tacit_home):
    with open_ledger() as ledger:
        assert ledger.place == str((tacit_home / "ledger.db").resolve())


def test_without_tacit_home_it_is_with_other_programs_state(tmp_path, monkeypatch):
    monkeypatch.delenv("TACIT_HOME")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with open_ledger() as ledger:
        assert ledger.place.endswith("state/tacit/ledger.db")


def test_the_key_the_ledger_and_the_anchor_are_for_their_owner_alone(tacit_home):
    with open_ledger() as ledger:
        ask(ledger, register(ledger), "q")
    files = [tacit_home / "signing.key", tacit_home / "ledger.db", tacit_home / "anchors" / ledger.id]
    assert [oct(stat.S_IMODE(file.stat().st_mode)) for file in files] == ["0o600"] * 3
    assert stat.S_IMODE(tacit_home.stat().st_mode) == 0o700


def test_a_key_that_others_may_read_is_refused(tacit_home):
    open_ledger().close()
    (tacit_home / "signing.key").chmod(0o644)
    with open_ledger() as ledger, pytest.raises(LedgerError, match="chmod 600"):
        register(ledger)


def test_without_its_key_a_ledger_can_be_read_and_not_written(where, tacit_home):
    with open_ledger(where) as ledger:
        table = register(ledger)
        charge(ledger, table, "q").commit("1")
    (tacit_home / "signing.key").unlink()
    with open_ledger(where) as ledger:
        ledger.verify()
        assert ledger.recall(table, question_key="q").answer == "1"
        with pytest.raises(LedgerError, match=r"signed by the key(.|\n)*the key (.*) is missing"):
            charge(ledger, table, "more")


def test_another_key_cannot_write(where, tacit_home, monkeypatch, tmp_path):
    with open_ledger(where) as ledger:
        table = register(ledger)
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "other"))
    open_ledger(tmp_path / "other.db").close()
    with open_ledger(where) as ledger, pytest.raises(LedgerError, match="but the key at"):
        charge(ledger, table, "q")
    with open_ledger(where) as ledger, pytest.raises(LedgerError):
        ledger.grant("pay", epsilon(100))


@pytest.mark.parametrize("content", [b"x" * 5000, b"SQLite format 3\x00" + b"x" * 5000])
def test_a_file_that_is_no_ledger_is_refused_and_left_as_it_is(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(LedgerError):
        open_ledger(path)
    assert path.read_bytes() == content


def test_a_database_of_someone_elses_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="is not a ledger"):
        open_ledger(path)
    assert path.read_bytes() == before


def test_a_ledger_of_the_rule_before_is_refused_in_words_and_left_as_it_is(where):
    open_ledger(where).close()
    if where.startswith("postgresql"):
        with psycopg.connect(where, autocommit=True) as link:
            link.execute("COMMENT ON TABLE tacit_head IS 'tacit ledger layout 1'")
    else:
        with closing(sqlite3.connect(where)) as database:
            database.execute("PRAGMA user_version = 1")
    with pytest.raises(LedgerError, match="older version, with another rule for budgets"):
        open_ledger(where)


def test_a_newer_layout_is_refused(where):
    open_ledger(where).close()
    if where.startswith("postgresql"):
        with psycopg.connect(where, autocommit=True) as link:
            link.execute(f"COMMENT ON TABLE tacit_head IS 'tacit ledger layout {SCHEMA + 1}'")
    else:
        with closing(sqlite3.connect(where)) as database:
            database.execute(f"PRAGMA user_version = {SCHEMA + 1}")
    with pytest.raises(LedgerError, match="newer version\nhint: update tacit"):
        open_ledger(where)


def test_a_trigger_on_the_tables_is_refused(where):
    open_ledger(where).close()
    if where.startswith("postgresql"):
        with psycopg.connect(where, autocommit=True) as link:
            link.execute("CREATE RULE free AS ON UPDATE TO tacit_state DO INSTEAD NOTHING")
    else:
        with closing(sqlite3.connect(where)) as database:
            database.execute("CREATE TRIGGER free AFTER UPDATE ON tacit_state BEGIN DELETE FROM tacit_state; END")
    with pytest.raises(LedgerError, match="damaged"):
        open_ledger(where)


def test_a_read_only_ledger_is_refused_before_anything_is_answered(tmp_path):
    """Run as another user where the tests run as root, whom no permission stops."""
    path = tmp_path / "ledger.db"
    with open_ledger(path) as ledger:
        table = register(ledger)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    if os.geteuid() != 0:
        with pytest.raises(LedgerError, match="write the file and its folder"):
            ask(open_ledger(path), table, "q")
        path.parent.chmod(0o755)
        return
    path.parent.chmod(0o755)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    read_only = lambda name: sqlite3.connect(f"file:{name}?mode=ro", uri=True, isolation_level=None)  # noqa: E731
    with pytest.raises(LedgerError, match=r"may not be written(.|\n)*write the file and its folder"):
        open_ledger(path, connect=read_only)


@pytest.mark.parametrize("where", ["", 3, b"ledger.db"])
def test_what_is_no_place_is_refused(where):
    with pytest.raises((InvalidParameter, TypeError)):
        open_ledger(where)


def test_a_server_that_is_not_there_is_an_error_without_the_password():
    with pytest.raises(LedgerError, match="check the address") as refused:
        open_ledger("postgresql://someone:hunter2@/nowhere?host=/nonexistent")
    assert "hunter2" not in str(refused.value)


def test_a_server_that_does_not_sync_is_refused(postgres):
    with psycopg.connect(postgres, autocommit=True) as link:
        link.execute("ALTER SYSTEM SET fsync = off")
        link.execute("SELECT pg_reload_conf()")
        try:
            while link.execute("SHOW fsync").fetchone() != ("off",):
                pass
            with pytest.raises(LedgerError, match="fsync off"):
                open_ledger(postgres)
        finally:
            link.execute("ALTER SYSTEM RESET fsync")
            link.execute("SELECT pg_reload_conf()")
            while link.execute("SHOW fsync").fetchone() != ("on",):
                pass


def test_two_processes_that_make_a_ledger_at_once_get_the_same_one(where):
    script = "import sys; from tacit.ledger import open_ledger; print(open_ledger(sys.argv[1]).id)"
    makers = [
        subprocess.Popen([sys.executable, "-c", script, where], stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    assert len({maker.communicate()[0] for maker in makers}) == 1


def test_a_ledger_made_and_anchored_while_another_opens_it_is_not_taken_for_lost(where, monkeypatch):
    made = []

    def anchored_meanwhile(folder, place):
        monkeypatch.setattr(home, "anchored_at", anchored_at)
        with open_ledger(where) as first:
            made.append(first.id)
        return anchored_at(folder, place)

    monkeypatch.setattr(home, "anchored_at", anchored_meanwhile)
    with open_ledger(where) as second:
        assert [second.id] == made


class Interleaved:
    """A connection that lets something else happen before one of its statements."""

    def __init__(self, path, at, meanwhile):
        self._inner = sqlite3.connect(path, timeout=0, isolation_level=None)
        self.executemany, self.close = self._inner.executemany, self._inner.close
        self._left, self._meanwhile = at, meanwhile

    def execute(self, statement, values=()):
        self._left -= 1
        if self._left == -1:
            self._meanwhile()
        return self._inner.execute(statement, values)


@pytest.mark.parametrize("statement", range(12))
def test_a_ledger_that_another_makes_between_any_two_statements_of_ours_is_opened(tmp_path, monkeypatch, statement):
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0)
    path, met = tmp_path / "ledger.db", []

    def meanwhile():
        met.append(True)
        with suppress(LedgerError):  # where we hold the file just then
            open_ledger(path).close()

    with open_ledger(path, connect=lambda name: Interleaved(name, statement, meanwhile)) as ours:
        id = ours.id
    with open_ledger(path) as theirs:
        assert theirs.id == id
    assert met


def test_a_new_file_that_another_holds_is_waited_for(tmp_path, monkeypatch):
    path = tmp_path / "ledger.db"
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waits = []
    monkeypatch.setattr(sqlite.time, "sleep", lambda seconds: (waits.append(seconds), other.execute("ROLLBACK")))
    with closing(other), open_ledger(path) as ledger:
        ledger.verify()
    assert len(waits) == 1


def test_an_absent_ledger_is_not_made_where_it_should_exist(tmp_path):
    with pytest.raises(LedgerError, match="no ledger exists at"):
        open_ledger(tmp_path / "none.db", create=False)
    assert not (tmp_path / "none.db").exists()


def test_an_old_copy_is_refused_and_can_be_accepted_for_the_record(tmp_path):
    path = tmp_path / "ledger.db"
    with open_ledger(path) as ledger:
        register(ledger)
    shutil.copy(path, tmp_path / "old.db")
    with open_ledger(path) as ledger:
        ask(ledger, again(ledger), "q")
    shutil.copy(tmp_path / "old.db", path)
    with pytest.raises(LedgerError, match=r"is behind(.|\n)*tacit ledger accept --reason"):
        open_ledger(path)
    with open_ledger(path, accept="disk lost") as ledger:
        assert list(ledger.entries())[-1].record["reason"] == "disk lost"
        assert ask(ledger, again(ledger), "q")
    with open_ledger(path) as ledger:
        ledger.verify()


def test_a_torn_anchor_still_knows_the_mark_before(tacit_home):
    with open_ledger() as ledger:
        table = register(ledger)
        ask(ledger, table, "one")
        ask(ledger, table, "two")
        path = tacit_home / "anchors" / ledger.id
        whole = path.read_bytes()
        for slot in (0, 1024):
            path.write_bytes(whole[:slot] + b"torn" + whole[slot + 4 :])
            with open_ledger() as reopened:
                reopened.verify()
        path.write_bytes(b"torn" + whole[4:1024] + b"torn" + whole[1028:])
        with pytest.raises(LedgerError, match=r"anchor(.|\n)*is damaged"):
            open_ledger()


def test_an_anchor_read_while_it_is_written_is_read_again_and_not_taken_for_damaged(tacit_home, monkeypatch):
    with open_ledger() as ledger:
        ask(ledger, register(ledger), "one")
        mark = anchor.LedgerAnchor(tacit_home / "anchors", ledger.id).read()
        marks_of, reads = anchor._positions, []

        def half_written(content):
            reads.append(content)
            return [None, None] if len(reads) == 1 else marks_of(content)

        monkeypatch.setattr(anchor, "_positions", half_written)
        assert anchor.LedgerAnchor(tacit_home / "anchors", ledger.id).read() == mark
    assert len(reads) == 2


def test_a_ledger_held_by_another_process_is_said_to_be_and_goes_on_once_it_is_free(tmp_path):
    path = tmp_path / "ledger.db"
    impatient = lambda name: sqlite3.connect(name, timeout=0.05, isolation_level=None)  # noqa: E731
    with open_ledger(path, connect=impatient) as ledger, closing(sqlite3.connect(path, isolation_level=None)) as other:
        table = register(ledger)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match=r"held by another process; no answer was given(.|\n)*ask again"):
            ask(ledger, table, "q", request_id="r")
        other.execute("ROLLBACK")
        assert ask(ledger, table, "q", request_id="r")
        assert ledger.verify().kinds["charge"] == 1


def test_the_home_folder_must_be_one(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TACIT_HOME", str(tmp_path / "file" / "home"))
    with pytest.raises(LedgerError, match="TACIT_HOME"):
        open_ledger()


def test_a_declaration_is_kept_in_the_ledger_in_full(ledger, table):
    assert [e.record["declaration"] for e in ledger.entries() if e.kind == "table"] == [DECLARATION]


@pytest.mark.parametrize("way", ["copied", "linked", "linked folder"])
def test_another_ledger_of_the_same_key_is_refused_where_one_used_to_be(tmp_path, way):
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    path, other = tmp_path / "here" / "ledger.db", tmp_path / "there" / "ledger.db"
    for place in (path, other):
        with open_ledger(place) as ledger:
            assert ask(ledger, register(ledger, epsilon("0.1")), "q")
    if way == "linked folder":
        path.parent.rename(tmp_path / "elsewhere")
        path.parent.symlink_to(other.parent)
    else:
        path.rename(tmp_path / "kept.db")
        shutil.copy(other, path) if way == "copied" else path.symlink_to(other)
    with pytest.raises(LedgerError, match=r"was replaced(.|\n)*put it back; or, (.|\n)*remove its anchor"):
        open_ledger(path)


def test_a_ledger_that_was_moved_leaves_its_place_to_another_once_it_answers_where_it_is(tmp_path):
    path, moved = tmp_path / "ledger.db", tmp_path / "moved.db"
    with open_ledger(path) as ledger:
        register(ledger)
    path.rename(moved)
    with pytest.raises(LedgerError, match="it is gone"):
        open_ledger(path)
    with open_ledger(moved) as ledger:
        assert ask(ledger, again(ledger), "q")
    with open_ledger(path) as ledger:
        assert ledger.length() == 1


@pytest.mark.parametrize("number", ['"7"', "[]", "1.5", "true", "null"])
def test_a_mark_that_was_never_written_is_damage(tmp_path, tacit_home, number):
    with open_ledger(tmp_path / "ledger.db") as ledger:
        path = tacit_home / "anchors" / ledger.id
    record = {"number": json.loads(number), "hash": "0", "key": "0", "place": "0"}
    for slot in (canonical([record, digest(record)]), "[" * 1024):
        path.write_bytes(slot.encode().ljust(1024))
        with pytest.raises(LedgerError, match=r"the anchor .* is damaged"):
            open_ledger(tmp_path / "ledger.db")


def test_anchors_that_others_could_take_away_are_refused(tmp_path, tacit_home):
    with open_ledger(tmp_path / "ledger.db"):
        (tacit_home / "anchors").chmod(0o777)
    with pytest.raises(LedgerError, match=r"others may write to .*anchors.*\n.*chmod go-w"):
        open_ledger(tmp_path / "ledger.db")


def test_a_key_that_is_no_plain_file_is_refused_and_not_waited_for(tmp_path, tacit_home):
    tacit_home.mkdir(mode=0o700)
    os.mkfifo(tacit_home / "signing.key", 0o600)
    with pytest.raises(LedgerError, match="not a plain file"):
        open_ledger(tmp_path / "ledger.db")
