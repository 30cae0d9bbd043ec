"""PostgreSQL's catalog of the declared tables, for the questions that tools ask by themselves: public facts only.

An empty DuckDB has the tables of a schema `pg`, which look like PostgreSQL's, those of `info`, which look like the
standard's, and an empty copy of each table that a person may see. Nothing in it comes from a row. `rows_of` is the one
place that could fill the copies with made-up rows. DuckDB may not read a file here, and has little time and memory.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from tacit.errors import QueryRefused
from tacit.query import PostgresSelect, quoted_name
from tacit.query import Scalar as Constant
from tacit.server.postgres import postgres_types
from tacit.server.postgres.catalog_tables import (
    BASE_TYPES,
    CATALOG_OID,
    DATABASE,
    DUCKDB_TYPES,
    EMPTY,
    FUNCTIONS,
    INFO_TABLES,
    MACROS,
    NAMESPACES,
    PG_TABLES,
    PUBLIC_OID,
    TYPES,
)
from tacit.server.postgres.row_cells import StatementResult
from tacit.tables import Declaration

SECONDS_MAX = 2.0
MEMORY = "256MB"
ROWS_MAX = 10_000
FIRST_OID = 16_384
SETUP = (
    "SET enable_external_access = false",
    f"SET memory_limit = '{MEMORY}'",
    "SET threads = 1",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET lock_configuration = true",
)


class PublicCatalog:
    """The catalog of some tables. Several threads may ask it: each query has a separate cursor."""

    def __init__(self, declarations: Sequence[Declaration]) -> None:
        self.declarations: dict[str, Declaration] = {each.name.lower(): each for each in declarations}
        self._database = duckdb.connect(":memory:")
        for schema in ("pg", "info", "public"):
            self._database.execute(f"CREATE SCHEMA {schema}")
        for schema, tables in (("pg", PG_TABLES), ("info", INFO_TABLES)):
            for name, columns in tables.items():
                self._database.execute(f"CREATE TABLE {schema}.{name} ({_columns_of(columns)})")
        self._fill(declarations)
        for name, forms in _macro_forms().items():
            self._database.execute(f"CREATE MACRO pg.{name}{', '.join(forms)}")
        for line in SETUP:
            self._database.execute(line)

    def ask(
        self, select: PostgresSelect, constants: Sequence[Constant], person: str, settings: Mapping[str, str]
    ) -> StatementResult:
        """Return what a query of the catalog gives: from public facts only."""
        words = {"current_user": person, "session_user": person, "user": person, "current_role": person}
        words |= {f"setting {name}": value for name, value in settings.items()}
        words |= {"current_database": DATABASE, "current_catalog": DATABASE, "current_schema": "public"}
        sql = select.catalog_sql(constants, FUNCTIONS, words, self.declarations)
        cursor = self._database.cursor()
        timer = threading.Timer(SECONDS_MAX, cursor.interrupt)
        timer.start()
        try:
            found = cursor.execute(sql)
            rows = found.fetchmany(ROWS_MAX)
            columns = [(str(name), _number_of(str(kind))) for name, kind, *_ in found.description or ()]
        except duckdb.Error as error:
            raise QueryRefused(_words_of(error)) from None
        finally:
            timer.cancel()
            cursor.close()
        return StatementResult(columns, [tuple(map(_plain, row)) for row in rows])

    def _fill(self, declarations: Sequence[Declaration]) -> None:
        self._add("pg_namespace", [{"oid": oid, "nspname": name, "nspowner": 10} for oid, name in NAMESPACES])
        self._add("pg_type", _type_rows())
        self._add(
            "pg_database",
            [
                {
                    "oid": 5,
                    "datname": DATABASE,
                    "datdba": 10,
                    "encoding": 6,
                    "datallowconn": True,
                    "datlocprovider": "c",
                    "datcollate": "C",
                    "datctype": "C",
                }
            ],
        )
        self._add("pg_roles", [{"oid": 10, "rolname": "curator", "rolinherit": True, "rolcanlogin": True}])
        self._add("pg_settings", [{"name": "max_index_keys", "setting": "32"}])  # JDBC asks for it
        self._add("pg_am", [{"oid": 2, "amname": "heap", "amtype": "t"}])
        self._add(
            "schemata",
            [{"catalog_name": DATABASE, "schema_name": name, "schema_owner": "curator"} for _, name in NAMESPACES],
            "info",
        )
        for at, each in enumerate(declarations):
            self._add_table(FIRST_OID + at, each)

    def _add_table(self, oid: int, declaration: Declaration) -> None:
        name = declaration.name
        columns = {column: facts.type for column, facts in declaration.columns.items() if facts.type in DUCKDB_TYPES}
        where = {"table_catalog": DATABASE, "table_schema": "public", "table_name": name}
        stored = {"relnamespace": PUBLIC_OID, "relowner": 10, "relam": 2, "relkind": "r", "relpersistence": "p"}
        stored |= {"reltuples": -1, "relispopulated": True, "relreplident": "d"}
        self._add("pg_class", [{**stored, "oid": oid, "relname": name, "relnatts": len(columns)}])
        self._add("pg_tables", [{"schemaname": "public", "tablename": name, "tableowner": "curator"}])
        self._add(
            "tables", [{**where, "table_type": "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO"}], "info"
        )
        numbered = [(at, column, postgres_types.OF_TYPE[kind]) for at, (column, kind) in enumerate(columns.items(), 1)]
        self._add("pg_attribute", [_attribute(oid, *each) for each in numbered])
        self._add("columns", [{**where, **_described_column(*each)} for each in numbered], "info")
        self._database.register("made", rows_of(declaration))
        self._database.execute(f"CREATE TABLE public.{quoted_name(name)} AS FROM made")
        self._database.unregister("made")

    def _add(self, table: str, rows: Sequence[Mapping[str, Any]], schema: str = "pg") -> None:
        """Add rows; a column that a row does not have is 0, empty or false, and not NULL."""
        kinds = [each.partition(":")[::2] for each in (PG_TABLES if schema == "pg" else INFO_TABLES)[table].split()]
        marks = ", ".join("?" for _ in kinds)
        for row in rows:
            cells = [row.get(name, EMPTY[kind]) for name, kind in kinds]
            self._database.execute(f"INSERT INTO {schema}.{table} VALUES ({marks})", cells)  # noqa: S608 - our own names


def rows_of(declaration: Declaration) -> pa.Table:
    """Return the rows of a table's public copy, which is empty. Made-up rows that a curator allows would go here."""
    kinds = {
        "bool": pa.bool_(),
        "int": pa.int64(),
        "text": pa.string(),
        "date": pa.date32(),
        "timestamp": pa.timestamp("us"),
    }
    columns = {
        name: kinds.get(each.type, pa.float64())
        for name, each in declaration.columns.items()
        if each.type in DUCKDB_TYPES
    }
    return pa.table({name: pa.array([], kind) for name, kind in columns.items()})


def _attribute(oid: int, at: int, column: str, number: int) -> dict[str, Any]:
    kept = {"atttypmod": -1, "attislocal": True, "attstorage": "p", "attalign": "i"}
    size = postgres_types.SIZES.get(number, -1)
    return {**kept, "attrelid": oid, "attname": column, "atttypid": number, "attlen": size, "attnum": at}


def _described_column(at: int, column: str, number: int) -> dict[str, Any]:
    short, shown = next((name, shown) for oid, name, _, _, _, shown in BASE_TYPES if oid == number)
    kept = {"is_nullable": "YES", "is_identity": "NO", "is_generated": "NEVER", "is_updatable": "NO"}
    kept |= {"udt_catalog": DATABASE, "udt_schema": "pg_catalog", "udt_name": short, "data_type": shown}
    return {**kept, "column_name": column, "ordinal_position": at}


def _type_rows() -> list[dict[str, Any]]:
    found = []
    for oid, name, size, category, array, shown in BASE_TYPES:
        same = {"typnamespace": CATALOG_OID, "typtype": "b", "typisdefined": True, "typdelim": ",", "typtypmod": -1}
        found.append(
            {
                **same,
                "oid": oid,
                "typname": name,
                "typlen": size,
                "typcategory": category,
                "typarray": array,
                "shown": shown,
            }
        )
        if array:
            found.append(
                {
                    **same,
                    "oid": array,
                    "typname": f"_{name}",
                    "typlen": -1,
                    "typcategory": "A",
                    "typelem": oid,
                    "shown": f"{shown}[]",
                }
            )
    return found


def _columns_of(written: str) -> str:
    pairs = (each.partition(":")[::2] for each in written.split())
    return ", ".join(f"{name} {TYPES[kind]}" for name, kind in pairs)


def _macro_forms() -> dict[str, list[str]]:
    forms: dict[str, list[str]] = {}
    for written, body in MACROS.items():
        name, _, arguments = written.partition("(")
        forms.setdefault(name, []).append(f"({arguments} AS ({body})")
    return forms


def _number_of(kind: str) -> int:
    """Return the number of the type that a column of DuckDB has."""
    exact = {
        "BOOLEAN": postgres_types.BOOL,
        "BIGINT": postgres_types.INT8,
        "INTEGER": postgres_types.INT4,
        "SMALLINT": postgres_types.INT2,
    }
    exact |= {
        "DOUBLE": postgres_types.FLOAT8,
        "FLOAT": postgres_types.FLOAT8,
        "DATE": postgres_types.DATE,
        "TIMESTAMP": postgres_types.TIMESTAMP,
    }
    return exact.get(kind, postgres_types.INT8 if "INT" in kind and "[" not in kind else postgres_types.TEXT)


def _plain(value: Any) -> Any:
    return (
        value
        if isinstance(value, bool | int | float | str | list | None) or hasattr(value, "isoformat")
        else str(value)
    )


def _words_of(error: duckdb.Error) -> str:
    """Return why a query of the catalog is not answered; it depends on its own text and on public facts only."""
    if isinstance(error, duckdb.InterruptException | duckdb.OutOfMemoryException):
        return "this query of the catalog takes too long\nhint: ask for less of the catalog at once"
    first = str(error).partition("\n")[0]
    return f"this query of the catalog is not answered here: {first[:200]}\nhint: \\dt and \\d list the declared tables"
