"""Every kind of source is asked alike; opening one reads its schema and no row, and locks down what is ours."""

import datetime as dt
from decimal import Decimal

import duckdb
import ibis
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

from tacit.errors import InvalidParameter, QueryRefused
from tacit.tables.frames import frame_to_arrow
from tacit_gauntlet.stage.table import bounded_table, exact_cells, protected

ROWS = pa.table({"id": [1, 1, 2, 3], "g": ["a", "b", "a", None], "x": [1, 2, None, 9], "d": [dt.date(2020, 1, 1)] * 4})


def as_csv(folder):
    pacsv.write_csv(ROWS, folder / "t.csv")
    return str(folder / "t.csv")


def as_parquet(folder):
    pq.write_table(ROWS, folder / "t.parquet")
    return folder / "t.parquet"


def as_glob(folder):
    for place in range(2):
        pq.write_table(ROWS.slice(2 * place, 2), folder / f"t{place}.parquet")
    return str(folder / "t*.parquet")


def as_connection(_folder):
    connection = duckdb.connect()
    connection.register("rows_of", ROWS)
    connection.execute("CREATE TABLE t AS SELECT * FROM rows_of")
    return connection, "t"


SOURCES = {
    "pandas": lambda _: ROWS.to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get),
    "polars": lambda _: pl.from_arrow(ROWS),
    "arrow": lambda _: ROWS,
    "record batch": lambda _: ROWS.to_batches()[0],
    "csv": as_csv,
    "parquet": as_parquet,
    "glob": as_glob,
    "duckdb": as_connection,
    "ibis": lambda folder: ibis.duckdb.from_connection(as_connection(folder)[0]).table("t"),
}
DECLARED = {"id": {"type": "int"}, "x": {"type": "int", "between": (0, 5)}, "d": {"type": "date"}}


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")
@pytest.mark.parametrize("name", SOURCES)
def test_every_source_gives_the_same_sums(name, tmp_path):
    table = protected(SOURCES[name](tmp_path), columns=DECLARED)
    asked = table.where("d = '2020-01-01'").group_by("g").agg(n=_count(), x=_sum("x"))
    cells = exact_cells(asked)
    assert cells[0] == {
        ("a", "missing"): 5,
        ("a", "below"): 4,
        ("a", "above"): 1,
        ("b", "below"): 3,
        ("b", "above"): 2,
        (None, "above"): 5,
    }


def _count():
    from tacit.query.frame import count

    return count()


def _sum(column):
    from tacit.query.frame import sum as sum_of

    return sum_of(column)


def test_the_name_for_sql_is_the_files_stem(tmp_path):
    assert protected(as_parquet(tmp_path), name=None).session.declaration.name == "t"
    assert protected(ROWS, name=None).session.declaration.name == "data"
    assert protected(as_glob(tmp_path), name=None).session.declaration.name == "t"


def test_ours_is_locked_down_and_a_users_connection_is_not(tmp_path):
    ours = protected(as_parquet(tmp_path)).session.engine._source.backend
    (tmp_path / "other.csv").write_text("a\n1\n")
    for statement in (
        f"SELECT * FROM read_csv('{tmp_path / 'other.csv'}')",
        f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        f"ATTACH '{tmp_path / 'x.db'}'",
    ):
        with pytest.raises(duckdb.Error):
            ours.con.execute(statement)
    connection, name = as_connection(tmp_path)
    protected((connection, name))
    connection.execute("SET threads = 2")


def test_opening_reads_no_row(monkeypatch, tmp_path):
    """A Parquet file whose pages are damaged, but not its footer, opens."""
    path = as_parquet(tmp_path)
    whole = bytearray(path.read_bytes())
    whole[4:60] = bytes(56)
    path.write_bytes(whole)
    assert protected(path, columns=DECLARED).session.declaration.columns["x"].between == (0, 5)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("missing.parquet", "no file exists at"),
        ("missing*.csv", "no file exists at"),
        (5, "a int cannot be opened as a table"),
        (("a", "b"), "must be a connection of DuckDB, PostgreSQL or SQLite"),
    ],
)
def test_what_is_no_source_is_refused(source, words):
    with pytest.raises((QueryRefused, InvalidParameter), match=words):
        protected(source)


def test_files_that_are_not_what_they_say_are_refused_without_their_text(tmp_path):
    for name in ("t.parquet", "t.xlsx"):
        (tmp_path / name).write_text("secret 4711")
        with pytest.raises(QueryRefused) as refused:
            protected(str(tmp_path / name))
        assert "4711" not in str(refused.value)


def test_duplicate_and_nameless_columns_are_refused(tmp_path):
    for header in ("id,g,G", "id,g,g"):
        (tmp_path / "t.csv").write_text(header + "\n1,2,3\n")
        with pytest.raises(QueryRefused, match="two columns of the table are named"):
            protected(str(tmp_path / "t.csv"))
    with pytest.raises(QueryRefused, match="two columns of the table are named"):
        protected(pa.Table.from_arrays([pa.array([1])] * 3, names=["id", "g", "g"]))
    (tmp_path / "t.csv").write_text("id,,x\n1,2,3\n")
    with pytest.raises(QueryRefused, match=r"column 2 .* lacks a name"):
        protected(str(tmp_path / "t.csv"))
    with pytest.raises(InvalidParameter, match="is not text"):
        protected(pd.DataFrame({"id": [1], 5: [2]}))


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_read_from_the_header_alone(delimiter, tmp_path):
    other = ";" if delimiter == "," else ","
    lines = [
        delimiter.join(["id", "g", "x"]),
        *[delimiter.join([str(n), f"a{other}{other}{other}b", "1"]) for n in range(9)],
    ]
    (tmp_path / "t.csv").write_text("\ufeff" + "\n".join(lines))
    (cells,) = exact_cells(protected(str(tmp_path / "t.csv")).group_by("g").count_units())
    assert cells == {(f"a{other}{other}{other}b", "units"): 9}


def test_csv_files_with_different_headers_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("id,g\n1,a\n")
    (tmp_path / "b.csv").write_text("id,h\n1,a\n")
    with pytest.raises(QueryRefused, match="same first line"):
        protected(str(tmp_path / "*.csv"))


def test_csv_columns_are_text_unless_declared(tmp_path):
    (tmp_path / "t.csv").write_text("id,x,y\n1,5,1.50\n2,07,x\n3,9e99,2\n")
    plain = protected(str(tmp_path / "t.csv"))
    assert {facts.type for facts in plain.session.declaration.columns.values()} == {"text"}
    declared = protected(str(tmp_path / "t.csv"), columns={"x": {"type": "int"}, "y": {"type": "decimal"}})
    assert bounded_table(declared.sum("x", between=(0, 10))).sums["total_0"] == [12]
    assert bounded_table(declared.count("y")).sums["counted_0"] == [2]


def test_a_default_collation_is_refused():
    connection, name = as_connection(None)
    connection.execute("SET default_collation = 'nocase'")
    with pytest.raises(QueryRefused, match="collation"):
        protected((connection, name))


@pytest.mark.parametrize("written", ["json", "query_tree", "no_output"])
def test_a_connection_that_prints_how_many_rows_each_step_has_is_refused(written, capfd):
    connection, name = as_connection(None)
    connection.execute(f"SET enable_profiling = '{written}'")
    with pytest.raises(QueryRefused, match="profiling on"):
        protected((connection, name))
    connection.execute("RESET enable_profiling")
    capfd.readouterr()
    protected((connection, name)).count().answer(epsilon=1)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("macro", ["floor(x) AS x * 1000", '"ISNAN"(x) AS false', "hash(x) AS 0", "sum(x) AS 5"])
def test_a_macro_in_place_of_a_function_is_refused(macro):
    connection, name = as_connection(None)
    connection.execute("CREATE MACRO of_my_own(x) AS x + 1")
    protected((connection, name))
    connection.execute(f"CREATE TEMP MACRO {macro}")
    with pytest.raises(QueryRefused, match="that replaces DuckDB's function"):
        protected((connection, name))


def test_a_collated_column_keeps_units_and_keys_apart():
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (id VARCHAR COLLATE nocase, g VARCHAR COLLATE nocase)")
    connection.execute("INSERT INTO t VALUES ('a', 'x'), ('A', 'X'), ('b', 'x')")
    (cells,) = exact_cells(protected((connection, "t")).group_by("g").count_units())
    assert cells == {("x", "units"): 2, ("X", "units"): 1}


def test_one_duckdb_table_has_one_identity_however_it_is_given(tmp_path):
    connection = duckdb.connect(str(tmp_path / "people.db"))
    connection.execute("CREATE TABLE t AS SELECT 1 AS id")
    backend = ibis.duckdb.from_connection(connection)
    with pytest.warns(DeprecationWarning, match="fetch_arrow_table"):
        table = backend.table("t")
    sources = [protected(each).session.engine._source.identity for each in ((connection, "t"), table)]
    assert sources[0] == sources[1] == f'duckdb:{tmp_path / "people.db"}:"main"."t"'


def test_a_duckdb_table_is_known_by_the_schema_it_is_in_whatever_it_is_called(tmp_path):
    connection = duckdb.connect(str(tmp_path / "people.db"))
    odd, quoted = 'É."q" t', '"É.""q"" t"'
    connection.execute(f'CREATE SCHEMA "s.X"; CREATE TABLE "s.X".{quoted} AS SELECT 1 AS id; CREATE SCHEMA s')
    connection.execute(f"CREATE TABLE s.{quoted} AS SELECT 1 AS id; CREATE TABLE {quoted} AS SELECT 1 AS id")
    identities = []
    for schema in ("main", '"s.X"', "s"):
        connection.execute(f"USE people.{schema}")
        identities.append(protected((connection, odd.replace("q", "Q"))).session.engine._source.identity)
    place = f"duckdb:{tmp_path / 'people.db'}"
    assert identities == [f"{place}:{schema}.{quoted}" for schema in ('"main"', '"s.x"', '"s"')]


def test_a_table_in_memory_or_a_temporary_one_is_known_by_nothing(tmp_path):
    stored = duckdb.connect(str(tmp_path / "people.db"))
    for connection, kind in ((duckdb.connect(), "TABLE"), (stored, "TEMP TABLE")):
        connection.execute(f"CREATE {kind} t AS SELECT 1 AS id")
        source = protected((connection, "t")).session.engine._source
        assert (source.identity, source.aliases) == (None, ())


@pytest.mark.parametrize(
    "cells",
    [
        [pd.NA, "a"],
        [[1], "a"],
        [float("nan"), "a"],
        [b"x", "a"],
        [Decimal("1.5"), "a"],
        ["\ud800", "a"],
        [object(), "a"],
    ],
    ids=["NA", "list", "nan", "bytes", "decimal", "surrogate", "object"],
)
def test_an_object_column_is_text_whatever_it_holds(cells):
    frame = pd.DataFrame({"id": [1, 2], "g": pd.Series(cells, dtype=object)})
    table = protected(frame)
    assert table.session.declaration.columns["g"].type == "text"
    assert bounded_table(table.where("g = 'a'").count()).sums["rows"] == [1]


@pytest.mark.parametrize("values", [["a", None], [5, 7], [dt.date(2020, 1, 1)] * 2])
def test_a_category_has_the_type_of_its_values_with_or_without_missing_ones(values):
    full = pd.Series(
        pd.Categorical.from_codes(
            [0, 0], categories=pd.Index([values[0], "zz"] if values[0] == "a" else sorted(set(values)))
        )
    )
    holed = pd.Series(pd.Categorical.from_codes([0, -1], categories=full.cat.categories))
    types = {
        protected(pd.DataFrame({"id": [1, 2], "g": each})).session.declaration.columns["g"].type
        for each in (full, holed)
    }
    assert len(types) == 1


def test_a_file_is_known_in_every_glob_and_under_every_link(tmp_path):
    as_glob(tmp_path)
    (tmp_path / "linked.parquet").hardlink_to(tmp_path / "t1.parquet")
    (tmp_path / "pointed.parquet").symlink_to(tmp_path / "t1.parquet")
    ledger = tmp_path / "ledger.db"
    whole = protected(str(tmp_path / "t*.parquet"), ledger=ledger, name="whole")
    for part in ("t0.parquet", "*1.parquet", "linked.parquet", "pointed.parquet", "*ed.parquet"):
        with pytest.raises(InvalidParameter, match="already known as 'whole'"):
            protected(str(tmp_path / part), ledger=ledger, name="part")
    shared = protected(
        str(tmp_path / "linked.parquet"), ledger=ledger, name="part", budget=None, same_people_as="whole"
    )
    assert shared.session.registered.cohort == whole.session.registered.cohort


def test_a_file_that_grows_is_known_under_a_later_link(tmp_path):
    path, ledger = as_parquet(tmp_path), tmp_path / "ledger.db"
    protected(path, ledger=ledger, name="t")
    pq.write_table(pa.concat_tables([ROWS, ROWS]), path)
    protected(path, ledger=ledger, name="t", budget=None)
    (tmp_path / "linked.parquet").hardlink_to(path)
    with pytest.raises(InvalidParameter, match="already known as 't'"):
        protected(tmp_path / "linked.parquet", ledger=ledger, name="linked")


@pytest.mark.parametrize("name", ["t", "main.t", "air.main.t", '"main"."t"', "x.u"])
def test_a_duckdb_table_may_be_named_with_its_schema_and_database(tmp_path, name):
    with duckdb.connect(str(tmp_path / "air.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS id; CREATE SCHEMA x; CREATE TABLE x.u AS SELECT 1 AS id")
        assert protected((connection, name), name=None).session.declaration.name == name[-2:].strip('".')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("air.duckdb", "name one of its tables\nhint: '.*air.duckdb\\?table=t'; its tables: t, x.u"),
        ("air.duckdb?table=nosuch", "no table 'nosuch'\nhint: its tables: t, x.u"),
        ("gone.duckdb?table=t", "no file exists"),
        ("other.db", "cannot be opened as a DuckDB database"),
    ],
)
def test_a_duckdb_file_is_refused_with_what_to_write(tmp_path, text, said):
    with duckdb.connect(str(tmp_path / "air.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS id; CREATE SCHEMA x; CREATE TABLE x.u AS SELECT 1 AS id")
    (tmp_path / "other.db").write_text("something else")
    with pytest.raises(QueryRefused, match=said):
        protected(str(tmp_path / text))


def test_a_duckdb_file_is_opened_to_read_and_nothing_else_is_reached(tmp_path):
    path = tmp_path / "air.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS id FROM range(5)")
    opened = [protected(f"{path}?table=t", ledger=":memory:") for _ in range(2)]  # twice in one process
    assert opened[0].session.engine._source.identity == opened[1].session.engine._source.identity
    connection = opened[0].session.engine._source.backend.con
    for statement in ("COPY t TO 'out.csv'", "ATTACH 'y.duckdb'", "INSERT INTO t VALUES (9)", "SET threads = 1"):
        with pytest.raises(duckdb.Error):
            connection.execute(statement)


def test_texts_of_a_pandas_frame_have_room_for_more_than_2_to_the_31_bytes_together():
    texts = ["a", None, "b" * 100]
    given = pd.DataFrame({"object": pd.Series(texts, dtype=object), "category": pd.Series(texts, dtype="category")})
    found = frame_to_arrow(given)
    assert found.schema.types == [pa.large_string()] * 2  # others end at 2^31
    assert [found.column(name).to_pylist() for name in found.column_names] == [texts] * 2
