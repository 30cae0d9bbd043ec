"""Tables of SQLite files are read by their declared types: a cell of another kind is NULL, and stops no question."""

import sqlite3
from contextlib import closing

import pyarrow as pa
import pytest
import sqlalchemy

import tacit
from tacit.errors import EngineError, InvalidParameter, QueryRefused
from tacit.ledger import open_ledger
from tacit.tables import sqlite_table
from tacit_gauntlet.stage.table import bounded_table, protected

BOUNDS = {"rows_per_unit": 9, "groups_per_unit": 9, "most_rows_per_unit": 9}
MADE = """
CREATE TABLE visits (id INTEGER, ward VARCHAR(20), cost REAL, price DECIMAL(9, 2), home BOOLEAN, day DATE, raw BLOB,
                     loose, twice INT GENERATED ALWAYS AS (id * 2) VIRTUAL)
"""
ROWS = [
    (1, "a", None, 1, 1, "2026-01-01", b"x", 1),
    (1, "b", 2.5, 2.5, 0, "2026-01-02", None, "x"),
    (2, "a", 1, 3, 1, "2026-01-03", None, None),
    (3, "é", 4.0, 4, None, "soon", None, 2.5),
    (None, "a", 7.0, 5, 1, "2026-01-05", None, None),
]
# what these cells are, by the types that were declared
SAME = pa.table(
    {
        "id": [1, 1, 2, 3, None],
        "ward": ["a", "b", "a", "é", "a"],
        "cost": [None, 2.5, 1.0, 4.0, 7.0],
        "price": [1.0, 2.5, 3.0, 4.0, 5.0],
        "home": [True, False, True, None, True],
        "day": [row[5] for row in ROWS],
    }
)
DAYS = {"columns": {"day": {"type": "date"}}}


def stored(folder, rows=ROWS, name="clinic.sqlite", made=MADE):
    with closing(sqlite3.connect(folder / name)) as connection:
        connection.execute(made)
        connection.executemany(f"INSERT INTO visits VALUES ({', '.join('?' * len(ROWS[0]))})", rows)
        connection.commit()
    return f"{folder / name}?table=visits"


def fresh(source, **options):
    usual = {"unit": "id", "budget": tacit.epsilon(2), "ledger": tacit.TRYOUT}
    return tacit.table(source, **{**usual, **BOUNDS, **options})


def sums(table):
    asked = [
        table.count(),
        table.group_by("ward", keys=["a", "b", "é", None]).sum("cost", between=(0, 9)),
        table.where("home").agg(n=tacit.count(), people=tacit.count_units()),
        table.where("day >= DATE '2026-01-02'").sum("price", between=(0, 9)),
    ]
    return [bounded_table(each).sums for each in asked]


def test_a_table_has_the_integers_of_its_rows(tmp_path):
    assert sums(protected(stored(tmp_path), **BOUNDS, **DAYS)) == sums(protected(SAME, **BOUNDS, **DAYS))


def test_a_connection_and_a_name_that_other_databases_have_open_the_same_table(tmp_path):
    path = stored(tmp_path, name="clinic.db")
    with closing(sqlite3.connect(tmp_path / "clinic.db")) as connection:
        for source in (path, (connection, "VISITS")):
            assert sums(protected(source, **BOUNDS, **DAYS)) == sums(protected(SAME, **BOUNDS, **DAYS))


ODD = ["7", "x", b"\xff\x00", 2.5, 10**15, -1, None, "9" * 40_000, float("inf"), "é", 0]


@pytest.mark.parametrize("odd", ODD, ids=[repr(each)[:8] for each in ODD])
def test_a_cell_of_another_kind_is_null_and_stops_no_question(tmp_path, odd):
    rows = [*ROWS, (4, odd, odd, odd, odd, odd, odd, odd), (odd, "a", 1, 1, 1, "2026-01-01", None, None)]
    table = protected(stored(tmp_path, rows), **BOUNDS, **DAYS)
    counted = [
        bounded_table(table.where(f"{each} IS NULL OR TRUE").count()) for each in ("ward", "cost", "home", "day")
    ]
    assert len({tuple(each.sums["rows"]) for each in counted}) == 1
    sums(table)


def test_texts_that_are_not_utf_8_are_null(tmp_path):
    path = stored(tmp_path)
    with closing(sqlite3.connect(tmp_path / "clinic.sqlite")) as connection:
        connection.execute("INSERT INTO visits (id, ward) VALUES (9, CAST(x'ff61' AS TEXT))")
        connection.commit()
    counts = bounded_table(protected(path, **BOUNDS).group_by("ward", keys=["a", None]).count())
    assert counts.sums["rows"] == [2, 1]


def test_the_types_that_cannot_be_read_are_public(tmp_path):
    table = protected(stored(tmp_path), **BOUNDS)
    kinds = {name: facts.type for name, facts in table.frame.declaration.columns.items()}
    assert [kinds[name] for name in ("raw", "loose", "twice")] == ["other"] * 3


def test_no_rows_at_all_are_a_table_like_another(tmp_path):
    assert bounded_table(protected(stored(tmp_path, []), **BOUNDS).count()).sums["rows"] == [0]


def test_one_answer_reads_one_transaction_and_later_rows_are_counted(tmp_path):
    table = protected(stored(tmp_path), **BOUNDS)
    source = table.session.engine.source
    counted = source.table.agg(n=source.table.count())
    with closing(sqlite3.connect(tmp_path / "clinic.sqlite")) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        with source.moment():
            assert source.fetch(counted).to_pylist() == [{"n": 5}]
            writer.execute("DELETE FROM visits WHERE id = 1")
            writer.commit()
            assert source.fetch(counted).to_pylist() == [{"n": 5}]
        with source.moment():
            assert source.fetch(counted).to_pylist() == [{"n": 3}]


def test_the_ledger_knows_the_table_by_another_name_of_its_file(tmp_path):
    ledger = open_ledger(":memory:")
    path = stored(tmp_path)
    fresh(path, ledger=ledger)
    (tmp_path / "other.sqlite").hardlink_to(tmp_path / "clinic.sqlite")
    for other in (f"{tmp_path / 'other.sqlite'}?table=visits", path.replace("=visits", "=VISITS")):
        with pytest.raises(InvalidParameter, match="is already known as 'visits'"):
            fresh(other, ledger=ledger, name="fresh")


def test_a_table_that_changed_is_not_charged_for_and_a_broken_file_ends_in_the_fixed_words(tmp_path):
    path = stored(tmp_path)
    table = fresh(path)
    with closing(sqlite3.connect(tmp_path / "clinic.sqlite")) as connection:
        connection.execute("ALTER TABLE visits ADD COLUMN more INT")
    with pytest.raises(QueryRefused, match="no longer has the columns"):
        table.count().answer(epsilon=1)
    again = fresh(path)
    pages = (tmp_path / "clinic.sqlite").read_bytes()
    (tmp_path / "clinic.sqlite").write_bytes(pages[:4096] + b"\xee" * (len(pages) - 4096))
    with pytest.raises(EngineError, match="the charge stands") as failed:
        again.count().answer(epsilon=1, accept_noise=True)
    assert str(tmp_path) not in str(failed.value)
    assert (table.left.laplace, again.left.laplace) == (2, 1)


def test_what_computes_or_is_not_there_is_refused_in_words(tmp_path):
    path = stored(tmp_path)
    with closing(sqlite3.connect(tmp_path / "clinic.sqlite")) as connection:
        connection.execute("CREATE VIEW ranks AS SELECT *, rank() OVER (ORDER BY cost) FROM visits")
        connection.execute("CREATE VIRTUAL TABLE words USING fts5(ward)")
    (tmp_path / "broken.sqlite").write_bytes(b"no")
    for source, said in (
        (path.replace("=visits", "=ranks"), "may compute across rows"),
        (path.replace("=visits", "=words"), "may compute across rows"),
        (path.replace("=visits", "=none"), "its tables: visits"),
        (path.partition("?")[0], "name one of its tables"),
        (f"{tmp_path / 'none.sqlite'}?table=visits", "no file exists"),
        (f"{tmp_path / 'broken.sqlite'}?table=visits", "cannot be read as a SQLite database"),
        ((sqlite3.connect(":memory:"), "visits"), "is in memory"),
    ):
        with pytest.raises(QueryRefused, match=said):
            fresh(source)


def test_objects_of_sqlalchemy_are_refused_in_words(tmp_path):
    engine = sqlalchemy.create_engine(f"sqlite:///{tmp_path / 'clinic.sqlite'}")
    stored(tmp_path)
    reflected = sqlalchemy.Table("visits", sqlalchemy.MetaData(), autoload_with=engine)
    with engine.connect() as connection:
        for source in (
            engine,
            connection,
            reflected,
            sqlalchemy.select(reflected),
            (engine, "visits"),
            (connection, "visits"),
        ):
            with pytest.raises(InvalidParameter, match=r"cannot be opened as a table|must be a connection of DuckDB"):
                fresh(source)
    engine.dispose()


def test_a_reader_that_hands_over_cells_of_any_kind_would_be_seen(tmp_path, monkeypatch):
    kinds = tuple((word, ("1", *how)) for word, (_, *how) in sqlite_table.KINDS)
    monkeypatch.setattr(sqlite_table, "KINDS", kinds)
    with pytest.raises(Exception, match=r"int|str|bytes"):
        test_a_cell_of_another_kind_is_null_and_stops_no_question(tmp_path, "x")
