"""One snapshot for all that an answer reads of PostgreSQL, by any number of connections; and what it leaves out."""

import threading
from contextlib import contextmanager

import pyarrow as pa
import pytest

import tacit
from tacit.engine.engine import FAILED
from tacit.tables import open_source, postgres_snapshot
from tacit.tables.postgres_table import written
from tacit.tables.source import WantedRows
from tacit_gauntlet.stage.table import bounded_plan
from tests.tables.postgres_tables import at, opened, spent

# --- one moment ---


def exact_rows(table):
    """Return the number of rows, of a question that reads all columns."""
    question = table.where("LENGTH(w) > 0").count()
    return question.session.engine.aggregate(bounded_plan(question), "00").sums["rows"][0]


@contextmanager
def at_the_first_batch(monkeypatch, act):
    """Do something between the first rows of a read and the next."""
    read, done = postgres_snapshot.Snapshot._stream, []

    def stream(self, select):
        for batch in read(self, select):
            if len(batch) and not done:
                done.append(act())
            yield batch

    with monkeypatch.context() as patch:
        patch.setattr(postgres_snapshot.Snapshot, "_stream", stream)
        yield
    assert done


def many(run, rows=60_000):
    """Make a table of 100 bytes a row, so that a read takes many batches."""
    run("CREATE TABLE t (id int, x int, w text)")
    run(f"INSERT INTO t SELECT i, i % 7, repeat('w', 100) FROM generate_series(1, {rows}) i")
    return rows


def test_rows_that_come_and_go_while_a_question_reads_do_not_count(run, monkeypatch):
    rows = many(run)
    table = opened(run)
    sql = "SELECT SUM(x) AS s, MEDIAN(x) AS m, COUNT(DISTINCT w) AS d FROM t"
    question = table.sql(sql, between={"s": (0, 9), "m": (0, 9)})
    plan = question.plan(epsilon=1).plan
    wanted = question.session.engine.aggregate(plan, "00")

    def change():
        run("DELETE FROM t WHERE id % 2 = 0; INSERT INTO t SELECT -i, 9, 'new' || i FROM generate_series(1, 99999) i")

    with at_the_first_batch(monkeypatch, change):
        found = question.session.engine.aggregate(plan, "00")
    assert found.sums == wanted.sums
    for column, values in wanted.values.items():
        assert [each.tolist() for each in found.values[column]] == [each.tolist() for each in values]
    assert wanted.values
    assert exact_rows(table) == rows // 2 + 99999


def test_a_table_is_not_emptied_or_altered_under_a_question(run, monkeypatch):
    rows = many(run)
    table = opened(run)
    waiting = []

    def truncate():
        thread = threading.Thread(target=run, args=("TRUNCATE t",))
        thread.start()
        waiting.append(thread)

    with at_the_first_batch(monkeypatch, truncate):
        assert exact_rows(table) == rows
    waiting[0].join()
    assert exact_rows(table) == 0


def test_a_table_is_not_emptied_between_the_snapshot_and_the_read(run, monkeypatch):
    rows = many(run, 1000)
    table, waiting = opened(run), []
    read_pages = postgres_snapshot.Snapshot._parts

    def truncate_first(self, name):
        thread = threading.Thread(target=run, args=("TRUNCATE t",))
        thread.start()
        waiting.append(thread)
        while thread.is_alive() and not run(
            f"SELECT 1 FROM pg_locks WHERE NOT granted AND relation = '{run.schema}.t'::regclass"
        ):
            pass
        return read_pages(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(postgres_snapshot.Snapshot, "_parts", truncate_first)
        found = exact_rows(table)
    waiting[0].join()
    assert found == rows
    assert exact_rows(table) == 0


def end(run, condition):
    """End connections of others, and see to it that there were some."""
    others = f"backend_type = 'client backend' AND pid <> pg_backend_pid() AND {condition}"
    assert run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {others}")


def test_a_connection_that_ends_midway_is_replaced_on_the_same_snapshot(run, monkeypatch):
    rows = many(run, 200_000)
    table = opened(run)

    def change():
        run("DELETE FROM t")
        end(run, f"state = 'active' AND query LIKE 'COPY%{run.schema}%'")

    with at_the_first_batch(monkeypatch, change):
        assert exact_rows(table) == rows


def test_a_server_that_ends_midway_says_one_fixed_thing_and_the_charge_stands(run, monkeypatch):
    many(run, 200_000)
    table = opened(run)

    def everything():
        end(run, "TRUE")

    with at_the_first_batch(monkeypatch, everything), pytest.raises(tacit.EngineError) as failed:
        table.where("LENGTH(w) > 0").count().answer(epsilon=1)
    assert str(failed.value) == FAILED
    assert failed.value.__context__ is None
    assert spent(table) == 1


def test_a_server_that_is_gone_is_refused_before_the_charge(run, monkeypatch):
    run("CREATE TABLE t (id int)")
    table = opened(run)
    monkeypatch.setattr(postgres_snapshot.PostgresServer, "connect", lambda _: 1 / 0)
    with pytest.raises(tacit.QueryRefused, match="no charge was made"):
        table.count().answer(epsilon=1)
    assert spent(table) == 0


# --- several connections ---


def test_pages_are_divided_among_connections_and_every_row_is_read_once(run, monkeypatch):
    rows = many(run)
    monkeypatch.setattr(postgres_snapshot, "PAGES_EACH", 10)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    selects, stream = [], postgres_snapshot.Snapshot._stream
    monkeypatch.setattr(
        postgres_snapshot.Snapshot, "_stream", lambda self, text: selects.append(text) or stream(self, text)
    )
    assert exact_rows(opened(run)) == rows
    assert len([text for text in selects if "ctid" in text]) == 4
    source = open_source(at(run, "t"), {})
    with source.moment():
        assert sorted(source.fetch(source.table.select("id")).column("id").to_pylist()) == list(range(1, rows + 1))


def test_rows_deleted_after_the_snapshot_are_read_by_every_connection(run, monkeypatch):
    rows = many(run)
    monkeypatch.setattr(postgres_snapshot, "PAGES_EACH", 10)
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    table, parts = opened(run), postgres_snapshot.Snapshot._parts

    def deleted_first(self, name):
        run("DELETE FROM t WHERE id % 2 = 0")
        return parts(self, name)

    with monkeypatch.context() as patch:
        patch.setattr(postgres_snapshot.Snapshot, "_parts", deleted_first)
        assert exact_rows(table) == rows
    assert exact_rows(table) == rows // 2


def test_one_connection_of_several_that_ends_is_no_end_of_rows(run, monkeypatch):
    rows = many(run, 200_000)
    monkeypatch.setattr(postgres_snapshot, "PAGES_EACH", 10)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    table = opened(run)

    def change():
        run("DELETE FROM t")
        end(run, f"state = 'active' AND query LIKE 'COPY%{run.schema}%ctid < %'")

    with at_the_first_batch(monkeypatch, change):
        assert exact_rows(table) == rows


def test_a_reader_that_stops_early_leaves_no_connection(run):
    many(run)
    source = open_source(at(run, "t"), {})
    before = run("SELECT count(*) FROM pg_stat_activity")
    with source.moment(), source.stream(source.table.select("w"), 1024) as batches:
        next(iter(batches))
    del batches
    assert run("SELECT count(*) FROM pg_stat_activity") <= before


def test_the_rows_of_two_streams_are_all_yielded_and_a_failure_is_raised():
    def rows(count):
        for _ in range(count):
            yield pa.record_batch({"a": [1, 2]})

    def broken():
        yield from rows(3)
        raise OSError

    assert sum(len(each) for each in postgres_snapshot.merged([lambda: rows(50), lambda: rows(1)])) == 102
    with pytest.raises(OSError):
        list(postgres_snapshot.merged([lambda: rows(50), broken]))


# --- the prefilter ---

CONDITIONS = [
    "x = 3",
    "x <> 3",
    "x < 3 OR x >= 5",
    "x IN (1, 2, 40000000000)",
    "x IS NULL",
    "x IS NOT NULL AND NOT b",
    "b",
    "b IS NULL OR x = 1",
    "d IS NULL",
    "d IS NOT NULL",
    "d >= DATE '2000-01-01'",
    "d <> DATE '2000-01-01'",
    "w = 'A'",
    "w IN ('a', 'é', 'it''s')",
    "c = 'a'",
    "e = 'sad'",
    "w = 'a' OR y > 1",
    "(x = 1 OR x = 2) AND y > 1",
    "x + 1 > 3",
]


def test_a_prefilter_loses_no_row_and_is_used(run, monkeypatch):
    run("CREATE TYPE mood AS ENUM ('sad', 'glad')")
    run("CREATE TABLE t (id int, x int, b bool, d date, w text, c char(3), e mood, y float8)")
    run(
        """INSERT INTO t SELECT i, nullif(i % 6, 4), (ARRAY[true, false, NULL])[i % 3 + 1],
        (ARRAY['2000-01-01', 'infinity', '-infinity', NULL, '4000-01-01', '20000-01-01', '0044-03-15 BC']::date[]
        )[i % 7 + 1],
        (ARRAY['a', 'A', 'é', NULL, 'it''s', repeat('x', 40000)])[i % 6 + 1], (ARRAY['a', 'b', NULL])[i % 3 + 1],
        (ARRAY['sad', 'glad', NULL]::mood[])[i % 3 + 1], nullif(i % 5, 3) FROM generate_series(1, 420) i"""
    )
    table, sent = opened(run), []
    read = postgres_snapshot.Snapshot.read

    def counted(self, select, *, pages=None):
        for batch in read(self, select, pages=pages):
            sent.append(len(batch))
            yield batch

    monkeypatch.setattr(postgres_snapshot.Snapshot, "read", counted)
    for condition in CONDITIONS:
        question = table.where(condition).count()
        plan = question.plan(epsilon=1).plan
        sent.clear()
        found = question.session.engine.aggregate(plan, "00").sums
        fewer = sum(sent)
        with monkeypatch.context() as patch:
            patch.setattr("tacit.engine.engine.wanted_rows", lambda *_: None)
            assert question.session.engine.aggregate(plan, "00").sums == found, condition
        knows = not any(word in condition for word in ("x + 1", "OR y"))
        assert (fewer < 420) == knows, condition


def test_what_a_server_cannot_compare_stands_for_every_row(run):
    run("CREATE TABLE t (id int, x int, w text, y float8)")
    facts = open_source(at(run, "t"), {}).stores[0].facts

    def equal(column, kind, value, operator="="):
        return WantedRows(operator, column, kind, (value,))

    unknown = [
        WantedRows("any"),
        equal("y", "float", 1.0),
        equal("x", "text", "1"),
        equal("x", "int", True),
        equal("none", "int", 1),
        equal("w", "text", "a\0b"),
        equal("w", "text", "\ud800"),
        equal("w", "text", "a", "<"),
        WantedRows("is_null", "w", "text"),
        WantedRows("is_null", "x", "float"),
    ]
    assert [written(each, facts) for each in unknown] == [None] * len(unknown)
    known = equal("x", "int", 1)
    assert written(WantedRows("or", of=(known, unknown[0])), facts) is None
    assert written(WantedRows("and", of=(known, unknown[0])), facts) == '(("x"::int4 = (1)))'
