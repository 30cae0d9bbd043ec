"""PostgreSQL's catalog of the declared tables, for the questions that tools ask by themselves: public facts only.

An empty DuckDB has the tables, views and functions of `catalog.sql`, and an empty copy of each table that a person may
see. Nothing in it comes from a row. DuckDB may not read a file here, and has little time and memory.
"""

import re
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from tacit import __version__
from tacit.errors import QueryRefused
from tacit.query import PostgresSelect, quoted_name
from tacit.query import Scalar as Constant
from tacit.server.postgres import postgres_types
from tacit.server.postgres.row_cells import StatementResult
from tacit.tables import Declaration

DATABASE = "tacit"
VERSION = "15.0"  # of PostgreSQL: clients choose their queries of the catalog by it
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
DUCKDB_TYPES = {
    "bool": "BOOLEAN",
    "int": "BIGINT",
    "float": "DOUBLE",
    "decimal": "DOUBLE",
    "text": "VARCHAR",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
_TABLE = (
    "INSERT INTO pg.pg_class BY NAME SELECT ? AS oid, ? AS relname, ? AS relnatts, 2200 AS relnamespace, 10 AS relowner"
    ", 2 AS relam, 'r' AS relkind, 'p' AS relpersistence, -1 AS reltuples, true AS relispopulated, 'd' AS relreplident"
)
_COLUMN = (
    "INSERT INTO pg.pg_attribute BY NAME SELECT ? AS attrelid, ? AS attname, ? AS atttypid, ? AS attlen, ? AS attnum,"
    " -1 AS atttypmod, true AS attislocal, 'p' AS attstorage, 'i' AS attalign"
)
# the type of a column of DuckDB -> its number
_NUMBERS = {
    "BOOLEAN": postgres_types.BOOL,
    "INTEGER": postgres_types.INT4,
    "SMALLINT": postgres_types.INT2,
    "DOUBLE": postgres_types.FLOAT8,
    "FLOAT": postgres_types.FLOAT8,
    "DATE": postgres_types.DATE,
    "TIMESTAMP": postgres_types.TIMESTAMP,
}


@cache
def _catalog_text() -> tuple[str, frozenset[str]]:
    """Return the SQL that makes the catalog, and the names of its functions."""
    text = (Path(__file__).parent / "catalog.sql").read_text(encoding="utf-8")
    for name, value in (("{database}", DATABASE), ("{postgres}", VERSION), ("{version}", __version__)):
        text = text.replace(name, value)
    return text, frozenset(re.findall(r"^CREATE MACRO pg\.(\w+)", text, re.MULTILINE))


class PublicCatalog:
    """The catalog of some tables. Several threads may ask it: each query has a separate cursor."""

    def __init__(self, declarations: Sequence[Declaration]) -> None:
        self.declarations: dict[str, Declaration] = {each.name.lower(): each for each in declarations}
        self._database = duckdb.connect(":memory:")
        text, self._functions = _catalog_text()
        self._database.execute(text)
        for oid, each in enumerate(declarations, FIRST_OID):
            self._add_table(oid, each)
        for line in SETUP:
            self._database.execute(line)

    def ask(
        self, select: PostgresSelect, constants: Sequence[Constant], person: str, settings: Mapping[str, str]
    ) -> StatementResult:
        """Return what a query of the catalog gives: from public facts only."""
        words = {"current_user": person, "session_user": person, "user": person, "current_role": person}
        words |= {f"setting {name}": value for name, value in settings.items()}
        words |= {"current_database": DATABASE, "current_catalog": DATABASE, "current_schema": "public"}
        sql = select.catalog_sql(constants, self._functions, words, self.declarations)
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

    def _add_table(self, oid: int, declaration: Declaration) -> None:
        """Add a declared table to the catalog, and an empty copy of it."""
        columns = {name: facts.type for name, facts in declaration.columns.items() if facts.type in DUCKDB_TYPES}
        self._database.execute(_TABLE, [oid, declaration.name, len(columns)])
        for at, (name, kind) in enumerate(columns.items(), 1):
            number = postgres_types.OF_TYPE[kind]
            self._database.execute(_COLUMN, [oid, name, number, postgres_types.SIZES.get(number, -1), at])
        typed = ", ".join(f"{quoted_name(name)} {DUCKDB_TYPES[kind]}" for name, kind in columns.items())
        self._database.execute(f"CREATE TABLE public.{quoted_name(declaration.name)} ({typed})")


def _number_of(kind: str) -> int:
    """Return the number of the type that a column of DuckDB has."""
    return _NUMBERS.get(kind, postgres_types.INT8 if "INT" in kind and "[" not in kind else postgres_types.TEXT)


def _plain(value: Any) -> Any:
    is_plain = isinstance(value, bool | int | float | str | list | None) or hasattr(value, "isoformat")
    return value if is_plain else str(value)


def _words_of(error: duckdb.Error) -> str:
    """Return why a query of the catalog is not answered; it depends on its own text and on public facts only."""
    if isinstance(error, duckdb.InterruptException | duckdb.OutOfMemoryException):
        return "this query of the catalog takes too long\nhint: ask for less of the catalog at once"
    first = str(error).partition("\n")[0]
    return f"this query of the catalog is not answered here: {first[:200]}\nhint: \\dt and \\d list the declared tables"
