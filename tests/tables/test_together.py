"""Several sources are read by one connection, which is locked for the files of all of them and for no other."""

import gc
from dataclasses import replace

import duckdb
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tacit.errors import QueryRefused
from tacit.tables import open_source, open_together, read_columns
from tacit.tables.formats import TOGETHER_MOST, _together

VISITS = pa.table({"id": [1, 2, 2, 3], "day": ["a", "b", "c", None], "x": [1, 2, 3, 4]})
PEOPLE = pa.table({"id": [1, 2, 4], "name": ["p", "q", "r"], "x": [10, 20, 40]})


def as_parquet(folder, name, rows):
    pq.write_table(rows, folder / f"{name}.parquet")
    return open_source(folder / f"{name}.parquet", {})


def as_csv(folder, name, rows):
    pacsv.write_csv(rows, folder / f"{name}.csv")
    return open_source(folder / f"{name}.csv", {})


def as_frame(_folder, _name, rows):
    return open_source(rows, {})


def as_database(folder, name, rows):
    with duckdb.connect(folder / f"{name}.duckdb") as connection:
        connection.register("given", rows)
        connection.execute("CREATE TABLE t AS SELECT * FROM given")
    return open_source(f"{folder}/{name}.duckdb?table=t", {})


PAIRS = [(as_parquet, as_parquet), (as_parquet, as_csv), (as_csv, as_frame), (as_frame, as_database)]
PAIRS += [(as_database, as_database)]


def joined(visits, people):
    """Return (day, name, each x) of the visits of known people, in order."""
    known = people.table.select("name", who=people.table["id"].cast("int64"), other=people.table["x"])
    table = visits.table.inner_join(known, visits.table["id"].cast("int64") == known["who"])
    both = replace(visits, files=visits.files + people.files)
    rows = both.fetch(table.select("day", "name", "x", "other")).to_pylist()
    return sorted(tuple(str(cell) for cell in row.values()) for row in rows)


@pytest.mark.parametrize(("visits_as", "people_as"), PAIRS)
def test_sources_of_any_two_formats_are_read_by_one_connection(visits_as, people_as, tmp_path):
    opened = [visits_as(tmp_path, "visits", VISITS), people_as(tmp_path, "people", PEOPLE)]
    expected = [("a", "p", "1", "10"), ("b", "q", "2", "20"), ("c", "q", "3", "20")]
    assert joined(*open_together(opened)) == expected
    assert joined(*open_together(opened, streams=True)) == expected


def test_the_connection_of_several_sources_reaches_no_other_file(tmp_path):
    opened = [as_parquet(tmp_path, "visits", VISITS), as_parquet(tmp_path, "people", PEOPLE)]
    pq.write_table(PEOPLE, tmp_path / "other.parquet")
    connection = open_together(opened)[0].backend.con
    for name in ("visits", "people"):
        connection.execute(f"SELECT count(*) FROM '{tmp_path}/{name}.parquet'")
    for refused in (
        f"SELECT count(*) FROM '{tmp_path}/other.parquet'",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "INSTALL httpfs",
        f"COPY (SELECT 1) TO '{tmp_path}/visits.csv'",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(refused)


def test_a_source_keeps_its_declared_facts_beside_others(tmp_path):
    declared = open_source(as_csv(tmp_path, "visits", VISITS), read_columns({"x": {"type": "int", "between": (0, 9)}}))
    opened, _ = open_together([declared, as_frame(tmp_path, "people", PEOPLE)])
    assert opened.columns == declared.columns
    assert opened.columns["x"].type == "int"


def test_tables_of_one_connection_of_the_users_are_read_there():
    connection = duckdb.connect()
    for name, rows in (("visits", VISITS), ("people", PEOPLE)):
        connection.register("given", rows)
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
    opened = [open_source((connection, name), {}) for name in ("visits", "people")]
    assert [each.backend.con for each in open_together(opened)] == [connection, connection]


def test_a_connection_of_the_users_and_a_frame_are_not_read_together():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE visits AS SELECT 1 AS id")
    opened = [open_source((connection, "visits"), {}), open_source(PEOPLE, {})]
    with pytest.raises(QueryRefused, match="both as tables of one connection, or both as files or frames"):
        open_together(opened)


def test_sources_are_opened_together_once_and_forgotten_with_the_first_of_them():
    visits, people = as_frame(None, "visits", VISITS), as_frame(None, "people", PEOPLE)
    first, again = open_together([visits, people]), open_together([visits, people])
    assert again[0].backend is first[0].backend
    assert open_together([visits, people], streams=True)[0].backend is not first[0].backend
    assert open_together([visits, as_frame(None, "people", PEOPLE)])[0].backend is not first[0].backend
    for _ in range(TOGETHER_MOST):
        open_together([visits, as_frame(None, "people", PEOPLE)])
    assert open_together([visits, people])[0].backend is not first[0].backend
    kept = len(_together)
    del visits, first, again
    gc.collect()
    assert len(_together) < kept


def test_facts_of_columns_are_those_of_the_sources_and_not_of_those_opened_first():
    visits, people = as_frame(None, "visits", VISITS), as_frame(None, "people", PEOPLE)
    open_together([visits, people])
    known = open_source(visits, read_columns({"x": {"between": (0, 9)}}))
    assert open_together([known, people])[0].columns["x"].between == (0, 9)
    assert open_together([visits, people])[0].columns["x"].between is None
