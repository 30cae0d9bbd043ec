"""Tables of a PostgreSQL server: what is opened and refused, how each type's odd cells are read, and one snapshot."""

import dataclasses
import datetime as dt
import uuid

import adbc_driver_postgresql.dbapi as adbc
import psycopg
import pyarrow as pa
import pytest

import tacit
from tacit.tables import open_source, postgres_catalog, postgres_snapshot
from tests.tables.postgres_tables import BUDGET, at, opened, spent


def moment(*parts):
    return dt.datetime(*parts)  # noqa: DTZ001 - a column without a zone


def cells(run, column, name="t"):
    """Return a column as our engine reads it, in the order of the ids."""
    source = open_source(at(run, name), {})
    with source.moment():
        found = source.fetch(source.table.select("id", column))
    rows = sorted(zip(found.column("id").to_pylist(), found.column(column).to_pylist(), strict=True))
    return source.columns[column].type, [cell for _, cell in rows]


# --- opening ---


def test_a_table_is_opened_by_its_address_or_by_a_connection(run):
    run("CREATE TABLE t (id int, x int); INSERT INTO t SELECT i, 1 FROM generate_series(1, 50) i")
    sources = [at(run, "t"), at(run, "t").replace("postgresql://", "postgres://")]
    with psycopg.connect(run.address) as link, adbc.connect(run.address) as other:
        for source in [*sources, (link, f"{run.schema}.t"), (other, f"{run.schema}.t")]:
            table = tacit.table(source, unit="id", budget=BUDGET, ledger=":memory:", most_rows_per_unit=1)
            assert table.count().answer(epsilon=500).to_dicts()[0]["count"] == 50


def test_a_password_of_a_connection_is_used_and_never_shown(run):
    run("CREATE TABLE t (id int)")
    source = open_source(at(run, "t", password="hidden-words"), {})
    with psycopg.connect(run.address, password="hidden-words") as link:
        given = open_source((link, f"{run.schema}.t"), {})
    for each in (source, given):
        assert "hidden-words" in str(each.stores[0].server._address)
        assert "hidden-words" not in repr(each) + repr(each.stores) + str(each.identity) + str(each.aliases)
    with pytest.raises(tacit.QueryRefused) as refused:
        tacit.table("postgresql://joe:hidden-words@localhost:1/none?table=t", unit="id", budget=BUDGET)
    assert "hidden-words" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_a_table_is_the_same_by_any_way_to_its_server(run):
    run("CREATE TABLE t (id int)")
    with psycopg.connect(run.address) as link:
        assert open_source((link, f"{run.schema}.T"), {}).identity == open_source(at(run, "t"), {}).identity
    run("ALTER TABLE t RENAME TO renamed")
    aliases = open_source(at(run, "renamed"), {}).aliases
    run("ALTER TABLE renamed RENAME TO t")
    assert open_source(at(run, "t"), {}).aliases == aliases


def test_names_are_read_as_they_are_written_or_in_small_letters(run):
    run('CREATE TABLE t (id int, small int); CREATE TABLE "T" (id int, "Large" int); CREATE TABLE "a.b" (id int)')
    assert "small" in open_source(at(run, "t"), {}).columns
    assert "Large" in open_source(at(run, "T"), {}).columns
    assert "id" in open_source(at(run, "%22a.b%22"), {}).columns


@pytest.mark.parametrize("name", ["none", "a.b.c", "", "t;drop", '"t'])
def test_a_name_of_no_table_is_refused_with_the_tables_there_are(run, name):
    with pytest.raises((tacit.QueryRefused, tacit.InvalidParameter)):
        open_source(f"{run.address}&table={name}", {})


FILES = (
    "CREATE EXTENSION IF NOT EXISTS file_fdw SCHEMA public;"
    " CREATE SERVER IF NOT EXISTS files FOREIGN DATA WRAPPER file_fdw;"
)
NO_ROWS = "SERVER files OPTIONS (filename '/dev/null')"
REFUSED = {
    "CREATE VIEW v AS SELECT * FROM t": "is a view",
    "CREATE MATERIALIZED VIEW v AS SELECT * FROM t": "is a materialised view",
    f"{FILES} CREATE FOREIGN TABLE v (id int) {NO_ROWS}": "'v' is a foreign table",
    f"CREATE TABLE v (id int) PARTITION BY LIST (id); {FILES}"
    f" CREATE FOREIGN TABLE p PARTITION OF v DEFAULT {NO_ROWS}": "a part of 'v' is a foreign table",
    "CREATE TABLE v (j json)": "no column of 'v' can be read",
}


@pytest.mark.parametrize("made", REFUSED, ids=REFUSED.values())
def test_what_is_not_a_stored_table_is_refused_with_the_reason(run, made):
    run("CREATE TABLE t (id int)")
    try:
        run(made)
    except psycopg.errors.UndefinedFile:
        pytest.skip("this PostgreSQL has no file_fdw (Debian's postgresql has it)")
    with pytest.raises(tacit.QueryRefused, match=REFUSED[made]):
        opened(run, "v")


def test_row_security_in_force_for_this_user_is_refused_and_not_for_one_who_sees_all(run, user):
    run(f"CREATE TABLE t (id int, x int); GRANT SELECT ON t TO {run.name}")
    assert open_source(f"{user}&table={run.schema}.t", {}).columns
    run("ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (id > (SELECT count(*) FROM pg_class))")
    with pytest.raises(tacit.QueryRefused, match="row security is in force"):
        open_source(f"{user}&table={run.schema}.t", {})
    assert open_source(at(run, "t"), {}).columns


def test_a_policy_that_comes_later_ends_questions_before_the_charge(run, user):
    run(f"CREATE TABLE t (id int); GRANT SELECT ON t TO {run.name}")
    table = tacit.table(f"{user}&table={run.schema}.t", unit="id", budget=BUDGET, ledger=":memory:")
    run("ALTER TABLE t ENABLE ROW LEVEL SECURITY")
    with pytest.raises(tacit.QueryRefused, match="no charge was made"):
        table.count().answer(epsilon=1)


def test_columns_that_the_user_may_not_read_are_known_and_in_no_question(run, user):
    run(f"CREATE TABLE t (id int, x int, secret int); GRANT SELECT (id, x) ON t TO {run.name}")
    source = open_source(f"{user}&table={run.schema}.t", {})
    assert source.others == {"secret": "a column that this user may not read"}
    run(f"REVOKE ALL ON t FROM {run.name}; REVOKE SELECT (id, x) ON t FROM {run.name}")
    with pytest.raises(tacit.QueryRefused, match="may not read"):
        open_source(f"{user}&table={run.schema}.t", {})


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "WIN1252"])
def test_an_encoding_in_which_a_cell_may_be_unsendable_is_refused(run, encoding):
    name = f"d{uuid.uuid4().hex}"
    run(f"CREATE DATABASE {name} ENCODING '{encoding}' LOCALE 'C' TEMPLATE template0")
    with psycopg.connect(run.address.replace("/postgres", f"/{name}"), autocommit=True) as link:
        link.execute("CREATE TABLE t (id int)")
    with pytest.raises(tacit.QueryRefused, match=encoding):
        open_source(run.address.replace("/postgres", f"/{name}") + "&table=t", {})


def test_partitions_and_children_are_read_with_their_table(run):
    run("CREATE TABLE t (id int, x int) PARTITION BY RANGE (id)")
    run("CREATE TABLE a PARTITION OF t FOR VALUES FROM (0) TO (5)")
    run("CREATE TABLE b PARTITION OF t DEFAULT; INSERT INTO t SELECT i, i FROM generate_series(1, 9) i")
    assert sorted(cells(run, "x")[1]) == list(range(1, 10))
    run("CREATE TABLE p (id int, x int); CREATE TABLE c () INHERITS (p); INSERT INTO p VALUES (1, 1)")
    run("INSERT INTO c VALUES (2, 2)")
    assert cells(run, "x", "p")[1] == [1, 2]


@pytest.mark.parametrize("first", [["t", "a"], ["a", "t"], ["a", "b"]], ids=str)
def test_a_table_and_its_partitions_have_no_budgets_of_their_own(run, tmp_path, first):
    """Whichever is opened first: their rows are the same people's."""
    run("CREATE TABLE t (id int, x int) PARTITION BY RANGE (id)")
    run("CREATE TABLE a PARTITION OF t FOR VALUES FROM (0) TO (5)")
    one, other = (at(run, name) for name in first)
    words = {"unit": "id", "budget": tacit.epsilon(1), "ledger": tmp_path / "ledger.db"}
    tacit.table(one, **words)
    run("CREATE TABLE b PARTITION OF t DEFAULT")  # also a part that comes later
    with pytest.raises(tacit.InvalidParameter, match="a budget belongs to the people in the data"):
        tacit.table(other, **words)
    tacit.table(other, unit="id", ledger=words["ledger"], same_people_as=first[0])
    tacit.table(one, **words).count().answer(epsilon=1)  # the new part changes nothing about how rows are read


def test_tables_are_listed_by_names_that_an_address_takes(run):
    run('CREATE SCHEMA "Care.Odd"; CREATE TABLE "Care.Odd"."Visits 2026" (id int)')
    with pytest.raises(tacit.QueryRefused, match=r'"Care\.Odd"\."Visits 2026"'):
        open_source(run.address, {})
    assert open_source(run.address + '&table="Care.Odd"."Visits 2026"', {}).stem == "Visits 2026"


def test_a_table_that_changes_its_columns_is_refused_before_the_charge(run):
    run("CREATE TABLE t (id int, x int)")
    table = opened(run)
    table.count().answer(epsilon=1)
    run("ALTER TABLE t ALTER x TYPE text")
    with pytest.raises(tacit.QueryRefused, match="no longer has the columns"):
        table.count().answer(epsilon=2)
    run("DROP TABLE t")
    with pytest.raises(tacit.QueryRefused, match="is gone"):
        table.count().answer(epsilon=2)
    assert spent(table) == 1


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("where", ["x > 0", "x > 5"])
def test_cells_of_another_type_than_expected_end_a_question_whether_or_not_there_are_rows(
    run, monkeypatch, rows, where
):
    """A driver of another version may hand over other types; with rows only, a failure shows that there are some."""
    run(f"CREATE TABLE t (id int, x int); INSERT INTO t SELECT i, 1 FROM generate_series(1, {rows}) i")
    sent = postgres_catalog._sent
    monkeypatch.setattr(
        postgres_catalog, "_sent", lambda *words: dataclasses.replace(sent(*words), sent=pa.large_binary())
    )
    with pytest.raises(tacit.EngineError, match="the engine could not finish this question"):
        opened(run).where(where).count().answer(epsilon=1)


# --- types ---

LONG = "x" * (1 << 15)
ODD = {
    "int2": ("int", {"-32768": -32768, "32767": 32767}),
    "int8": ("int", {"9223372036854775807": 2**63 - 1}),
    "bool": ("bool", {"true": True}),
    "float4": ("float", {"1.5": 1.5, "infinity": float("inf")}),
    "float8": ("float", {"5e-324": 5e-324, "-infinity": float("-inf")}),
    "numeric(10, 2)": ("decimal", {"1.5": "1.50", "-99999999.99": "-99999999.99", "NaN": None}),
    "numeric(38, 0)": ("decimal", {"9" * 38: "9" * 38, "NaN": None}),
    "numeric(3, 5)": ("float", {"0.00123": 0.00123}),
    "numeric(60, 2)": ("float", {"1e50": 1e50}),
    "numeric": ("float", {"0.1": 0.1, "1e300": 1e300, "Infinity": float("inf"), "1e400": float("inf")}),
    "text": ("text", {"é": "é", "": "", LONG: LONG, LONG + "y": None}),
    "varchar(9)": ("text", {"a ": "a "}),
    "char(4)": ("text", {"a": "a", " b": " b"}),
    "name": ("text", {"a": "a"}),
    "mood": ("text", {"sad": "sad"}),
    "small": ("int", {"7": 7}),
    "price": ("decimal", {"7": "7.0"}),
    "date": (
        "date",
        {
            "infinity": None,
            "-infinity": None,
            "4714-12-01 BC": None,
            "0001-01-01": dt.date(1, 1, 1),
            "9999-12-31": dt.date(9999, 12, 31),
            "10000-01-01": None,
            "5874897-12-31": None,
        },
    ),
    "timestamp": (
        "timestamp",
        {
            "infinity": None,
            "-infinity": None,
            "4714-12-01 BC": None,
            "0001-01-01": moment(1, 1, 1),
            "9999-12-31 23:59:59.999999": moment(9999, 12, 31, 23, 59, 59, 999999),
            "294276-12-31": None,
        },
    ),
    "timestamptz": (
        "timestamp",
        {
            "infinity": None,
            "2024-02-29 01:00:00+02": moment(2024, 2, 28, 23),
            "294276-12-31": None,
            "4714-12-01 BC": None,
        },
    ),
    "uuid": ("other", {"00112233-4455-6677-8899-aabbccddeeff": "00112233-4455-6677-8899-aabbccddeeff"}),
    "bytea": ("other", {"\\x00ff": b"\x00\xff"}),
}


@pytest.mark.parametrize("kind", ODD)
def test_every_type_is_read_with_its_odd_cells_and_none_raises(run, kind):
    meant, odd = ODD[kind]
    run("CREATE TYPE mood AS ENUM ('sad'); CREATE DOMAIN less AS int4; CREATE DOMAIN small AS less")
    run("CREATE DOMAIN price AS numeric(5, 1)")
    run(f"CREATE TABLE t (id int, c {kind})")
    with psycopg.connect(run.address, autocommit=True) as link:
        for place, cell in enumerate([*odd, None]):
            link.execute(f"INSERT INTO {run.schema}.t VALUES (%s, %s::text::{_qualified(run, kind)})", (place, cell))
    found, read = cells(run, "c")
    read = [str(cell) if meant == "decimal" and cell is not None else cell for cell in read]
    assert (found, read) == (meant, [*odd.values(), None])


def _qualified(run, kind):
    return f"{run.schema}.{kind}" if kind in ("mood", "small", "price") else kind


def test_not_a_number_is_not_a_number(run):
    run("CREATE TABLE t (id int, c float8, d numeric); INSERT INTO t VALUES (1, 'NaN', 'NaN')")
    assert all(cell != cell for column in "cd" for cell in cells(run, column)[1])


def test_other_types_are_known_by_name_and_in_no_question(run):
    run(
        'CREATE TABLE t (id int, a int[], j json, b jsonb, i interval, m money, o oid, p time, c "char", n inet,'
        " r int4range, q t2 DEFAULT NULL)".replace(", q t2 DEFAULT NULL", "")
    )
    source = open_source(at(run, "t"), {})
    assert {name for name, facts in source.columns.items() if facts.type == "other"} == set("ajbimopcnr")
    assert source.others["m"] == "money"
    with pytest.raises(tacit.QueryRefused, match="cannot be read"):
        opened(run, unit="m")


def test_a_number_of_any_length_is_rounded_so_it_is_no_unit(run):
    run("CREATE TABLE t (id numeric, x int)")
    with pytest.raises(tacit.QueryRefused, match="rounded"):
        opened(run)


def test_a_stored_generated_column_is_a_cell_like_another(run):
    run("CREATE TABLE t (id int, x int GENERATED ALWAYS AS (id * 2) STORED); INSERT INTO t VALUES (3)")
    assert cells(run, "x") == ("int", [6])


def test_no_clock_of_the_user_ends_a_read(run):
    """How long a read takes follows from rows, and a failure after the charge would tell."""
    hour = "-cstatement_timeout%3D1h%20-cidle_in_transaction_session_timeout%3D1h"
    link = postgres_snapshot.PostgresServer(f"{run.address}&options={hour}").connect()
    clocks = (
        "SELECT current_setting('statement_timeout') AS s, current_setting('idle_in_transaction_session_timeout') AS i"
    )
    assert set(link.rows(clocks)[0].values()) == {"1h"}
    link.settle()
    assert set(link.rows(clocks)[0].values()) == {"0"}
    link.close()


def test_names_and_settings_of_the_user_change_nothing(run):
    """Functions, operators and settings that a role or a database brings are not ours."""
    run('CREATE TABLE t (id int, "o""d d" text); INSERT INTO t VALUES (1, \'a\')')
    run("CREATE FUNCTION octet_length(text) RETURNS int LANGUAGE sql AS 'SELECT 99999999'")
    shadow = f"-csearch_path%3D{run.schema},pg_catalog%20-cclient_encoding%3DLATIN1%20-cDateStyle%3DGerman"
    source = open_source(f"{run.address}&options={shadow}&table={run.schema}.t", {})
    with source.moment():
        assert source.fetch(source.table.select('o"d d')).to_pylist() == [{'o"d d': "a"}]
