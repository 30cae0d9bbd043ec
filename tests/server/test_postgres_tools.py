"""Tools that ask PostgreSQL, each as it is, against one server here: asyncpg, SQLAlchemy with pandas, psycopg2,
JDBC, ODBC and R. A tool that is missing here is named with Debian's package that brings it.
"""

import asyncio
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tacit.ledger import open_ledger
from tests.server.conftest import SERVING, write_folder

pytestmark = [pytest.mark.far, pytest.mark.xdist_group("tools of PostgreSQL")]  # one server for all of them

COUNT = "SELECT ward, COUNT(*) AS n FROM visits WHERE days > {} GROUP BY ward"
COLUMNS = ["ward", "n", "n_low", "n_high"]
PREVIEW = "SELECT * FROM visits LIMIT 100"
SPENDS = "-c tacit.epsilon=1"
JDBC = Path("/usr/share/java/postgresql.jar")
ODBC = "psqlodbcw.so"


@dataclass(frozen=True)
class Tools:
    """A server's port of PostgreSQL's protocol, its curator's token, and its folder."""

    port: int
    token: str
    folder: Path

    def charges(self) -> int:
        """How many questions were charged so far, by the ledger."""
        with open_ledger(self.folder / "ledger.db") as ledger:
            return sum(entry.kind == "charge" for entry in ledger.entries())


def missing(what: str, package: str) -> None:
    """Skip in words; on a machine of continuous integration it is an error."""
    message = f"{what} is not here, so it was not tried: Debian has it as {package}"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tools]:
    """One server for every tool: the same question is charged for the first of them, and free for the others."""
    folder = tmp_path_factory.mktemp("tools")
    write_folder(folder)
    words = [sys.executable, "-c", SERVING, "--hold", "10ms", "--workers", "1", "--postgres", "0", "--no-log"]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        token, _, address = (process.stdout.readline().split()[-1] for _ in range(3))
        yield Tools(urlsplit(address).port or 0, token, folder)
        process.kill()


def numbers(rows: Any) -> list[tuple[str, int, int, int]]:
    """Rows of a tool as plain values: they are the same through every tool."""
    return [(str(ward), int(n), int(low), int(high)) for ward, n, low, high in rows]


@pytest.fixture(scope="module")
def answer(tools: Tools) -> list[tuple[str, int, int, int]]:
    """The rows of the question that every tool asks, through psycopg."""
    import psycopg

    given = {"host": "127.0.0.1", "port": tools.port, "user": "curator", "password": tools.token}
    with psycopg.connect(**given, options=SPENDS) as connection:  # type: ignore[arg-type]
        return numbers(connection.execute(COUNT.format(1)).fetchall())


def test_asyncpg_asks_with_parameters_in_binary(tools: Tools, answer: Any) -> None:
    import asyncpg

    async def run() -> tuple[Any, list[str]]:
        connection = await asyncpg.connect(
            host="127.0.0.1",
            port=tools.port,
            user="curator",
            password=tools.token,
            database="tacit",
            server_settings={"tacit.epsilon": "1"},
        )
        notices: list[str] = []
        connection.add_log_listener(lambda _, message: notices.append(message.message))
        rows = await connection.fetch(COUNT.format("$1"), 1)
        with pytest.raises(asyncpg.PostgresError) as refused:
            await connection.fetch(PREVIEW)
        async with connection.transaction():
            assert await connection.fetchval("SELECT 1") == 1
        await connection.close()
        assert refused.value.hint
        return rows, notices

    rows, notices = asyncio.run(run())
    assert list(rows[0].keys()) == COLUMNS
    assert numbers(rows) == answer
    assert any("95 % probability" in each for each in notices)


def test_psycopg2_asks_with_parameters(tools: Tools, answer: Any) -> None:
    import psycopg2

    connection = psycopg2.connect(
        host="127.0.0.1", port=tools.port, user="curator", password=tools.token, dbname="tacit", options=SPENDS
    )
    cursor = connection.cursor()
    cursor.execute(COUNT.format("%s"), (1,))
    assert [each.name for each in cursor.description] == COLUMNS
    assert numbers(cursor.fetchall()) == answer
    with pytest.raises(psycopg2.Error) as refused:
        cursor.execute(PREVIEW)
    connection.close()
    assert refused.value.diag.message_hint


def test_cursors_on_the_server_are_read_in_portions(tools: Tools, answer: Any) -> None:
    import pandas as pd
    import psycopg
    import psycopg2
    import sqlalchemy as sa

    given = {"host": "127.0.0.1", "port": tools.port, "user": "curator", "password": tools.token, "options": SPENDS}
    with psycopg.connect(**given) as one, one.cursor(name="a cursor") as cursor:
        assert numbers(cursor.execute(COUNT.format("%s"), (1,)).fetchmany(2)) == answer[:2]
        assert numbers(cursor) == answer[2:]
    other = psycopg2.connect(**given)
    with other.cursor("held", withhold=True) as held:
        held.execute(COUNT.format(1))
        other.commit()
        assert numbers(held.fetchall()) == answer
    other.close()
    address = f"postgresql+psycopg2://curator:{tools.token}@127.0.0.1:{tools.port}/tacit"
    engine = sa.create_engine(address, connect_args={"options": SPENDS})
    with engine.connect().execution_options(stream_results=True) as connection:
        parts = pd.read_sql(sa.text(COUNT.format(1)), connection, chunksize=2)
        assert [len(each) for each in parts] == [2, 1]
    engine.dispose()


# What tools ask by themselves when they connect or browse: Power BI and others by Npgsql, Metabase, DBeaver, Tableau.
PROBES = {
    "Npgsql's types": """
        SELECT ns.nspname, t.oid, t.typname, t.typtype, t.elemoid FROM (
            SELECT typ.oid, typnamespace, typname, typelem AS elemoid,
                CASE WHEN proc.proname = 'array_recv' THEN 'a' ELSE typ.typtype END AS typtype,
                CASE WHEN typ.typtype = 'm' THEN (SELECT rngtypid FROM pg_range WHERE rngmultitypid = typ.oid) END AS of
            FROM pg_type AS typ LEFT JOIN pg_class AS cls ON (cls.oid = typ.typrelid)
            LEFT JOIN pg_proc AS proc ON proc.oid = typ.typreceive LEFT JOIN pg_range ON (pg_range.rngtypid = typ.oid)
        ) AS t JOIN pg_namespace AS ns ON (ns.oid = typnamespace) WHERE typtype IN ('b', 'r', 'm', 'e', 'd', 'a')""",
    "Power BI's encoding": "select character_set_name from INFORMATION_SCHEMA.character_sets",
    "Power BI's tables": "select TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE from INFORMATION_SCHEMA.tables"
    " where TABLE_SCHEMA not in ('information_schema', 'pg_catalog') order by TABLE_SCHEMA, TABLE_NAME",
    "Metabase's privileges": """
        with table_privileges as (
            select NULL as role, t.schemaname as schema, t.objectname as table,
                pg_catalog.has_any_column_privilege(current_user, t.objectname, 'update') as update,
                pg_catalog.has_any_column_privilege(current_user, t.objectname, 'select') as select,
                pg_catalog.has_table_privilege(current_user, t.objectname, 'delete') as delete
            from (select schemaname, tablename as objectname from pg_catalog.pg_tables
                  union select schemaname, matviewname as objectname from pg_catalog.pg_matviews) t
            where t.schemaname !~ '^pg_' and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage')
        ) select t.* from table_privileges t""",
    "DBeaver's columns": """
        SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) AS def_value, dep.objid
        FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid = c.oid)
        LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum)
        LEFT OUTER JOIN pg_depend dep ON dep.refobjid = a.attrelid AND dep.deptype = 'i' WHERE NOT a.attisdropped""",
}


@pytest.mark.parametrize("sql", PROBES.values(), ids=PROBES)
def test_what_tools_ask_by_themselves_is_answered(tools: Tools, sql: str) -> None:
    import psycopg

    given = {"host": "127.0.0.1", "port": tools.port, "user": "curator", "password": tools.token}
    with psycopg.connect(**given) as connection:  # type: ignore[arg-type]
        assert psycopg.ClientCursor(connection).execute(sql).fetchall()


def test_sqlalchemy_looks_around_and_pandas_reads(tools: Tools, answer: Any) -> None:
    import pandas as pd
    import sqlalchemy as sa

    address = f"postgresql+psycopg://curator:{tools.token}@127.0.0.1:{tools.port}/tacit"
    engine = sa.create_engine(address, connect_args={"options": SPENDS})
    found = sa.inspect(engine)
    assert "public" in found.get_schema_names()
    assert sorted(found.get_table_names()) == ["pay", "visits"]
    types = {each["name"]: str(each["type"]) for each in found.get_columns("visits")}
    assert types == {"patient": "BIGINT", "ward": "TEXT", "days": "BIGINT"}
    assert found.get_pk_constraint("visits")["constrained_columns"] == []
    assert found.get_foreign_keys("visits") == found.get_indexes("visits") == []
    with engine.connect() as connection:
        frame = pd.read_sql(sa.text(COUNT.format(":days")), connection, params={"days": 1})
        visits = sa.Table("visits", sa.MetaData(), autoload_with=connection)
        made = sa.select(visits.c.ward, sa.func.count().label("n")).where(visits.c.days > 1).group_by(visits.c.ward)
        again = connection.execute(made).fetchall()
    engine.dispose()
    assert list(frame.columns) == COLUMNS
    assert numbers(frame.itertuples(index=False)) == numbers(again) == answer


def test_jdbc_lists_tables_and_asks(tools: Tools, answer: Any) -> None:
    if not JDBC.exists():
        missing("JDBC's driver", "libpostgresql-jdbc-java")
    if shutil.which("java") is None:
        missing("Java", "openjdk-17-jre-headless")
    import pyspark
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
    from py4j.protocol import Py4JJavaError

    (jar,) = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
    port, secret = launch_gateway(
        jarpath=str(jar), classpath=str(JDBC), die_on_exit=True, enable_auth=True, redirect_stdout=subprocess.DEVNULL
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret))
    try:
        connection = gateway.jvm.java.sql.DriverManager.getConnection(
            f"jdbc:postgresql://127.0.0.1:{tools.port}/tacit?options=-c%20tacit.epsilon%3D1", "curator", tools.token
        )
        tables = connection.getMetaData().getTables(None, "public", "%", None)
        names = []
        while tables.next():
            names.append(tables.getString("TABLE_NAME"))
        assert sorted(names) == ["pay", "visits"]
        statement = connection.prepareStatement(COUNT.format("?"))
        statement.setInt(1, 1)
        for _ in range(7):  # from the fifth on the driver prepares it on the server
            found, rows = statement.executeQuery(), []
            about = found.getMetaData()
            assert [about.getColumnName(each) for each in (1, 2, 3, 4)] == COLUMNS
            while found.next():
                rows.append((found.getString(1), *(found.getLong(each) for each in (2, 3, 4))))
            assert rows == answer
        with pytest.raises(Py4JJavaError, match="single rows are never shown"):
            connection.createStatement().executeQuery(PREVIEW)
        connection.close()
    finally:
        gateway.shutdown()


def test_odbc_lists_tables_and_asks(tools: Tools, answer: Any) -> None:
    driver = next(Path("/usr/lib").glob(f"*/odbc/{ODBC}"), None)
    if driver is None:
        missing("ODBC's driver", "odbc-postgresql")
    import pyodbc

    given = {"Driver": driver, "Server": "127.0.0.1", "Port": tools.port, "Database": "tacit", "UID": "curator"}
    words = ";".join(f"{name}={value}" for name, value in {**given, "PWD": tools.token}.items())
    with pyodbc.connect(f"{words};ConnSettings=SET tacit.epsilon=1", autocommit=True) as connection:
        cursor = connection.cursor()
        assert sorted(row.table_name for row in cursor.tables(tableType="TABLE")) == ["pay", "visits"]
        assert [row.column_name for row in cursor.columns(table="visits")] == ["patient", "ward", "days"]
        found = cursor.execute(COUNT.format("?"), 1)
        assert [each[0] for each in found.description] == COLUMNS
        assert numbers(found.fetchall()) == answer
        with pytest.raises(pyodbc.Error, match="not in the language"):
            cursor.execute(PREVIEW)
    connection.close()
    in_portions = f"{words};ConnSettings=SET tacit.epsilon=1;UseDeclareFetch=1;Fetch=2"  # as Excel's sources often say
    with pyodbc.connect(in_portions, autocommit=True) as connection:
        assert numbers(connection.cursor().execute(COUNT.format("1")).fetchall()) == answer
    connection.close()


R = """
library(DBI)
given <- commandArgs(TRUE)
connection <- dbConnect(RPostgreSQL::PostgreSQL(), host = "127.0.0.1", port = as.integer(given[1]),
                        user = "curator", password = given[2], dbname = "tacit")
cat(sort(dbListTables(connection)), "\\n")
cat(dbListFields(connection, "visits"), "\\n")
invisible(dbExecute(connection, "SET tacit.epsilon = 1"))
found <- dbGetQuery(connection, "SELECT ward, COUNT(*) AS n FROM visits WHERE days > 1 GROUP BY ward")
cat(names(found), "\\n")
write.table(found, row.names = FALSE, col.names = FALSE, quote = FALSE)
refused <- tryCatch(dbGetQuery(connection, "SELECT * FROM visits LIMIT 100"), error = conditionMessage)
cat(refused)
"""


def test_r_lists_tables_and_asks(tools: Tools, answer: Any) -> None:
    if shutil.which("Rscript") is None:
        missing("R", "r-base-core")
    if subprocess.run(["Rscript", "-e", "library(RPostgreSQL)"], capture_output=True, check=False).returncode:
        missing("R's driver", "r-cran-rpostgresql")
    done = subprocess.run(
        ["Rscript", "-e", textwrap.dedent(R), str(tools.port), tools.token], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert lines[:3] == [["pay", "visits"], ["patient", "ward", "days"], COLUMNS]
    assert numbers(lines[3:6]) == answer


def test_all_of_them_were_charged_once(tools: Tools, answer: Any) -> None:
    assert answer
    assert tools.charges() == 1
