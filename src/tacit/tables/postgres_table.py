"""Opens a table of a PostgreSQL server: 'postgresql://host/db?table=clinic.visits', or (connection, 'clinic.visits').

Only plain stored tables are opened: views, foreign tables and row security may compute across rows. The server gives
the columns of a question as Arrow; every expression is ours. A condition that it may also apply is a prefilter, which
never loses a row and never raises.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from tacit import typed_sql as sql
from tacit.errors import InvalidParameter, QueryRefused
from tacit.tables.cells import CellReading, hand
from tacit.tables.postgres_catalog import PostgresColumn, TableFacts, find_table
from tacit.tables.postgres_snapshot import PostgresServer, Snapshot, link_of
from tacit.tables.source import Source, WantedRows, described
from tacit.typed_sql import quoted, text_of


def table_at(text: str) -> "PostgresTable":
    """Return the table that an address names, with ?table= in it; the rest of the address is libpq's."""
    address, _, asked = text.partition("?")
    words = [word for word in asked.split("&") if word]
    named = [unquote(word.partition("=")[2]) for word in words if word.partition("=")[0] == "table"]
    rest = [word for word in words if word.partition("=")[0] != "table"]
    server = PostgresServer("?".join(filter(None, (address, "&".join(rest)))))
    if len(named) > 1:
        raise InvalidParameter("this address names more than one table\nhint: …?table=clinic.visits")
    return opened(server, named[0] if named else None)


def table_of(connection: Any, name: str) -> "PostgresTable | None":
    """Return the table of that name that a psycopg or ADBC connection can reach, by connections of our own, or None."""
    module = type(connection).__module__.partition(".")[0]
    if module in ("psycopg", "psycopg2"):
        password = connection.info.password
        escaped = (password or "").replace("\\", "\\\\").replace("'", "\\'")
        words = f"{connection.info.dsn} password='{escaped}'" if password else connection.info.dsn
        return opened(PostgresServer(words), name)
    if module == "adbc_driver_manager" and hasattr(connection, "adbc_database"):
        if connection.adbc_get_info().get("vendor_name") != "PostgreSQL":
            return None
        return opened(PostgresServer(database=connection.adbc_database), name)
    return None


def opened(server: PostgresServer, name: str | None) -> "PostgresTable":
    """Return a table of a server by its name, or refuse it with the reason."""
    link = link_of(server)
    try:
        return PostgresTable(server, find_table(link, name))
    except QueryRefused:
        raise
    except Exception:  # noqa: BLE001 - libpq's text is not ours
        raise QueryRefused(
            "the catalog of this PostgreSQL database cannot be read\nhint: use PostgreSQL 12 to 18"
        ) from None
    finally:
        link.close()


@dataclass(eq=False)
class PostgresTable:
    """One opened table: its facts, and the snapshot that is read at the moment."""

    server: PostgresServer
    facts: TableFacts
    _turn: Any = field(default_factory=threading.RLock, repr=False)
    _deep: int = 0
    _snapshot: Snapshot | None = field(default=None, repr=False)
    _wanted: WantedRows | None = field(default=None, repr=False)

    def refuse_changes(self) -> None:
        """Refuse if the table is gone, or is not as it was when it was opened; reads no row."""
        link = link_of(self.server)
        try:
            found = find_table(link, self.facts.full_name)
        except Exception:  # noqa: BLE001 - for any reason, it is not the table that was opened
            raise QueryRefused(
                f"{self.facts.full_name} is gone or cannot be read any more, so no charge was made"
                "\nhint: open the table again"
            ) from None
        finally:
            link.close()
        if found != self.facts:
            raise QueryRefused(
                f"{self.facts.full_name} no longer has the columns it was opened with, so no charge was made"
                "\nhint: open the table again, with a new version="
            )

    @contextmanager
    def moment(self, beside: Sequence[Any]) -> Iterator[None]:
        """Hold what is read inside to one snapshot, shared with the tables of the same server in `beside`."""
        with self._turn:
            self._deep += 1
            theirs = [each for each in beside if isinstance(each, PostgresTable) and each.server == self.server]
            held = next((each._snapshot for each in theirs if each._snapshot is not None), None)
            mine = Snapshot(self.server, [each.facts.full_name for each in theirs], _check_all(theirs))
            if self._deep == 1:
                self._snapshot = held or mine
            try:
                yield
            finally:
                self._deep -= 1
                if not self._deep:
                    self._snapshot = None
                    mine.close()

    @contextmanager
    def wanting(self, wanted: WantedRows | None) -> Iterator[None]:
        """Let the server leave out rows that a question does not want, where it certainly tells; inside `moment`."""
        before, self._wanted = self._wanted, wanted
        try:
            yield
        finally:
            self._wanted = before

    def read(self, readings: Sequence[CellReading]) -> Iterator[pa.RecordBatch]:
        """Yield the rows' cells of these columns, from the snapshot of the moment."""
        snapshot, facts = self._snapshot, self.facts
        if snapshot is None:
            raise RuntimeError("rows of a server are read inside a moment")
        columns = [facts.columns[each.name] for each in readings]
        listed = ", ".join(f"{column.sql} AS {quoted(column.name)}" for column in columns)
        condition = None if self._wanted is None else written(self._wanted, facts)
        # as one condition, to which more may be added
        text = f"SELECT {listed} FROM {facts.full_name} WHERE ({condition or 'TRUE'})"  # noqa: S608 - of names, quoted
        for batch in snapshot.read(text, pages=facts.full_name if facts.is_plain else None):
            if list(batch.schema.types) != [column.sent for column in columns]:
                raise TypeError("a column has another type than when the table was opened")
            yield batch


def _check_all(tables: Sequence[PostgresTable]) -> Any:
    def check(link: Any) -> None:
        for table in tables:
            if find_table(link, table.facts.full_name) != table.facts:
                raise TypeError("the table is not as it was when it was opened")

    return check


def into(table: PostgresTable, backend: sql.Connection, name: str) -> Source:
    """Open a server's table in a connection of ours, as a view of that name; reads no row."""
    facts = table.facts
    readings = [column.reading for column in facts.columns.values()]
    handed = hand(backend, name, table.read, readings, frozenset())
    source = described(
        handed.view, backend, {}, stem=facts.name, identity=facts.identity, others=facts.others, readings=readings
    )
    return replace(source, files=(handed,), opened=(table,), stores=(table,), aliases=facts.aliases)


# --- the prefilter ---


def written(wanted: WantedRows, facts: TableFacts) -> str | None:
    """Return a condition that holds wherever a wanted one does and raises for no row; None if that is every row."""
    if wanted.operator in ("and", "or"):
        parts = [written(each, facts) for each in wanted.of]
        known = [part for part in parts if part is not None]
        if wanted.operator == "or" and len(known) < len(parts):
            return None
        return f"({f' {wanted.operator.upper()} '.join(known)})" if known else None
    column = facts.columns.get(wanted.column)
    if column is None or column.type != wanted.type:
        return None
    return _compared_column(column, wanted, is_utf8=facts.is_utf8)


def _compared_column(column: PostgresColumn, wanted: WantedRows, *, is_utf8: bool) -> str | None:
    # the cells as they are sent: what is NULL there is NULL for us
    cell, kind = column.sql, column.type
    if wanted.operator in ("is_null", "is_not_null"):
        return f"({cell} {wanted.operator.upper().replace('_', ' ')})" if kind in _EXACTLY_READ else None
    constants = [_constant_for_server(value, kind, is_utf8=is_utf8) for value in wanted.values]
    if not constants or any(constant is None for constant in constants):
        return None
    listed = ", ".join(filter(None, constants))
    if kind == "text":
        return f'({cell} COLLATE "C" IN ({listed}))' if wanted.operator in ("=", "in") else None
    if wanted.operator == "in":
        return f"({cell} IN ({listed}))"
    return f"({cell} {wanted.operator} {listed})" if wanted.operator in _COMPARISONS else None


_COMPARISONS = {"=", "<>", "<", "<=", ">", ">="}
# Types whose cells mean to us what is sent: NULL, and nothing else, is NULL.
_EXACTLY_READ = {"int", "bool", "date"}


def _constant_for_server(value: object, kind: str, *, is_utf8: bool) -> str | None:
    """Return a constant of the column's own type as SQL writes it, or None where it has to be left to us."""
    if kind == "bool":
        return str(value).upper() if isinstance(value, bool) else None
    if kind == "int":
        return f"({value})" if isinstance(value, int) and not isinstance(value, bool) else None
    if kind == "date":
        return f"'{value}'::date" if type(value).__name__ == "date" else None
    if kind == "text" and isinstance(value, str):
        # a text that the server cannot hold would raise
        is_sendable = is_utf8 and "\0" not in value and value.isprintable()
        return text_of(value) if is_sendable else None
    return None
