"""Which data a question is about: the version the curator declares, and what a repeat says about its age."""

import json
import os
import signal
import time

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.ledger.home import open_ledger

WORDS = {"unit": "id", "rows_per_unit": 1, "groups_per_unit": 1, "most_rows_per_unit": 1}
WORDS |= {"budget": tacit.epsilon(200, delta="1e-6")}
ASK = {"epsilon": 50}  # noise is 0 but for a chance of 1e-21


def rows(many):
    return pa.table({"id": range(many), "k": ["a"] * many})


def write(path, many, *, at):
    """Write a file of so many rows as if at a given second."""
    pq.write_table(rows(many), path)
    os.utime(path, (at, at))


def answered(source, **words):
    return tacit.table(source, **(WORDS | words)).count().answer(**ASK)


def test_a_repeat_says_when_it_was_answered_and_from_which_version(tmp_path):
    write(tmp_path / "t.parquet", 100, at=1)
    first, again = answered(tmp_path / "t.parquet"), answered(tmp_path / "t.parquet")
    when = first.facts.receipt["time"][:16].replace("T", " ")
    assert f"Free: answered {when} UTC from version 1; ε" in str(again)
    assert f"Free: answered {when} UTC from version 1; ε" in again._repr_html_()
    assert "written since" not in str(again)
    said = json.loads(again.to_json())["answered"]
    assert said == {"time": first.facts.receipt["time"], "version": 1, "changed": False}


def test_a_repeat_says_that_the_file_was_written_since_until_a_new_version_is_declared(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, 100, at=1)
    answered(path)
    write(path, 300, at=2)
    again = answered(path)
    assert again.to_dicts()[0]["count"] == 100
    assert "declare version=2 (--version 2, or in the tacit.toml)" in str(again)
    assert json.loads(again.to_json())["answered"]["changed"] is True
    fresh = answered(path, version=2)
    assert fresh.to_dicts()[0]["count"] == 300
    assert not fresh.facts.free


def test_the_size_of_a_file_is_in_no_stamp(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, 100, at=1)
    answered(path)
    with path.open("ab") as file:
        file.truncate(os.path.getsize(path))
    number = path.stat().st_ino
    path.write_bytes(path.read_bytes())  # the same rows again
    os.utime(path, (1, 1))
    assert path.stat().st_ino == number
    assert "written since" not in str(answered(path))


def test_a_glob_that_gained_a_file_is_the_same_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "p1.parquet", 100, at=1)
    first = answered(str(tmp_path / "p*.parquet"), name="parts")
    write(tmp_path / "p2.parquet", 200, at=1)
    again = answered("./p*.parquet", name="parts")
    assert (again.facts.free, again.facts.has_changed) == (True, True)
    assert again.to_dicts() == first.to_dicts()
    # the new file is known from now on, alone too
    with pytest.raises(tacit.InvalidParameter, match="already known as 'parts'"):
        answered(tmp_path / "p2.parquet", name="other")


def test_a_duckdb_table_says_that_its_database_was_written_since(tmp_path):
    import duckdb

    path = tmp_path / "air.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS id FROM range(100)")
    with duckdb.connect(str(path), read_only=True) as connection:
        assert answered((connection, "t")).facts.has_changed is None
        assert answered((connection, "t")).facts.has_changed is False
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO t SELECT range + 100 FROM range(100)")
        again = answered((connection, "t"))
        assert (again.to_dicts()[0]["count"], again.facts.has_changed) == (100, True)


def test_a_frame_with_a_name_and_a_version_is_known_after_a_restart():
    frame = pd.DataFrame({"id": range(100)})
    first, again = (answered(frame, name="pay", version=1) for _ in range(2))  # each opens the ledger anew
    assert (first.facts.free, again.facts.free) == (False, True)
    assert again.to_dicts() == first.to_dicts()
    assert not answered(frame.head(50), name="pay", version=2).facts.free


def test_a_frame_without_a_version_is_known_to_its_handle_alone():
    frame = pd.DataFrame({"id": range(100)})
    table = tacit.table(frame, name="pay", **WORDS)
    first = table.count().answer(**ASK)
    assert "charged again: give version=" in str(first)
    assert table.count().answer(**ASK).facts.free
    assert not answered(frame, name="pay").facts.free


@pytest.mark.parametrize("words", [{"version": 1}, {}])
def test_a_frame_without_a_name_is_refused_where_the_ledger_is_kept(words):
    """Two frames that have nothing in common would share a name, and so one budget for life."""
    with pytest.raises(tacit.InvalidParameter, match=r"needs a name.*\nhint: .*name='visits'.*TRYOUT"):
        tacit.table(pd.DataFrame({"id": range(100)}), **(WORDS | words))
    for frame, unit in ((pd.DataFrame({"id": range(100)}), "id"), (pd.DataFrame({"who": ["a", "b"]}), "who")):
        tried = tacit.table(frame, unit=unit, budget=tacit.epsilon(1), ledger=tacit.TRYOUT)
        assert tried.count().answer(epsilon=1).facts.receipt  # each has a ledger of its own


def test_a_version_that_is_not_said_is_the_last_one_and_none_is_lowered(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, 100, at=1)
    answered(path, version=3)
    assert answered(path).facts.version == 3
    with pytest.raises(tacit.InvalidParameter, match=r"version 3 already, not 2.*\n.*version=3"):
        answered(path, version=2)
    with open_ledger() as ledger:
        assert ledger.version_of("t") == 3


def test_trying_out_keeps_nothing_and_every_answer_says_so(tacit_home):
    for _ in range(3):  # the whole budget each time
        shown = tacit.table(rows(50), name="t", ledger=tacit.TRYOUT, **WORDS).count().answer(epsilon=200)
        assert "TRYOUT: nothing is kept" in str(shown)
        assert not shown.facts.durable
    assert not (tacit_home / "ledger.db").exists()


def test_trying_out_what_the_ledger_knows_says_that_it_is_not_charged_there(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, 50, at=1)
    answered(path, name="visits")
    tried = answered(path, name="something_else", ledger=tacit.TRYOUT)
    assert "The ledger in use knows this as 'visits'" in str(tried)
    assert "The ledger in use" not in str(answered(rows(5), name="others", ledger=tacit.TRYOUT))


def test_a_ledger_of_its_own_for_what_the_ledger_knows_says_that_it_is_not_charged_there(tmp_path):
    path = tmp_path / "t.parquet"
    write(path, 50, at=1)
    answered(path, name="visits")
    aside = str(tmp_path / "aside.db")
    assert "The ledger in use knows this as 'visits'" in str(answered(path, name="aside", ledger=aside))
    assert "The ledger in use" not in str(answered(path, name="visits"))
    write(tmp_path / "u.parquet", 50, at=1)  # another file; its name alone tells little
    assert "The ledger in use" not in str(answered(tmp_path / "u.parquet", name="visits", ledger=aside))


def test_an_answer_without_a_group_says_so_and_what_to_do():
    table = tacit.table(rows(3), name="t", ledger=tacit.TRYOUT, **WORDS)
    asked = table.group_by("k").count().answer(epsilon=1)
    assert "No group is shown: none has about " in str(asked)
    assert "keys=[...]" in asked._repr_html_()
    none = table.sql("SELECT k, COUNT(*) AS n FROM t GROUP BY k HAVING n < 0").answer(epsilon=150)
    assert "No row is left after HAVING" in str(none)


def test_an_interrupt_after_the_charge_says_what_stays_spent(monkeypatch):
    table = tacit.table(rows(3), name="t", **WORDS)

    def interrupted(*_):
        for _ in range(100):  # Python drops an interrupt that comes while it runs a finalizer
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)

    monkeypatch.setattr(type(table.session.engine), "parts", interrupted)
    with pytest.raises(KeyboardInterrupt, match=r"ε = 1 is spent \(entry \d+\) and stays spent") as stopped:
        table.count().answer(epsilon=1, request_id="one")
    assert "another request id" in str(stopped.value)
    assert table.session.ledger.spent(table.session.registered).epsilon == 1


def test_an_interrupt_inside_the_engine_is_one_and_no_failure_to_go_around(monkeypatch):
    table = tacit.table(rows(3), name="t", **WORDS)

    def interrupted(*_, **__):
        raise RuntimeError("Query interrupted")  # DuckDB's own words for Ctrl-C

    monkeypatch.setattr(type(table.session.engine._source.backend), "run", interrupted)
    with pytest.raises(KeyboardInterrupt, match="stays spent"):
        table.count().answer(epsilon=1)
